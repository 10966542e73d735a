"""What latent values are worth: sub-types of digits, members of bags, states of letters."""

from __future__ import annotations

import gc
import itertools
import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from dualsvm import LatentStructuredSVM, LatentSVM, StructuredSVM, SVMClassifier
from dualsvm.tasks import Chain, HiddenChain, HiddenMulticlass, MultipleInstance

from . import data as sets
from .measure import status
from .ocr import LARGE, SMALL
from .searched import Options

Pair = tuple[Any, Any]  # inputs, outputs
LEAST = 0.3  # of the linear error that sub-types are to save
FOUND = 0.9  # of the responsible members that are to be found
DIGIT, SIZE = 3, 8  # that makes a bag positive, and members of a bag


def classes(
    name: str,
    load: Callable[[], tuple[Pair, Pair]],
    costs: Sequence[float],
    linear: Sequence[float],
    types: Sequence[int],
    tols: tuple[float, float],
    tuned: int,
    options: Options,
) -> dict[str, Any]:
    """Sub-types of classes against one weight vector for each class (Crammer and Singer).

    `tuned`: so many examples, a third of them held out, tell which `costs` and `types`, and which `linear` costs, are
    best; `tols`: of the fits there, and of the last.
    """
    train, test = load()
    some = train if tuned >= len(train[1]) else _taken(train, slice(0, tuned))
    X, X_held, y, y_held = train_test_split(*some, test_size=1 / 3, random_state=0, stratify=some[1])

    def flat(C: float, tol: float) -> Any:
        return SVMClassifier(C=C, multi_class="crammer_singer", fit_intercept=False, tol=tol, random_state=0)

    def mixed(C: float, k: int, tol: float) -> Any:
        return LatentStructuredSVM(
            HiddenMulticlass(n_types=k), C=C, tol=tol, round_tol=min(tol, 1e-2), random_state=0, n_jobs=1
        )

    tried = _tried(partial(flat, tol=tols[1]), [(C,) for C in linear], (X, y), (X_held, y_held))
    (C_linear,) = min(tried, key=tried.__getitem__)
    before = _error(_fitted(flat(C_linear, tols[1]), train)[0], test)
    options.tell(f"{name}: linear, C = {C_linear:g}: {before:.2%}")
    tried = _tried(partial(mixed, tol=tols[0]), itertools.product(costs, types), (X, y), (X_held, y_held))
    C, k = min(tried, key=tried.__getitem__)
    options.tell(f"{name}: " + ", ".join(f"C = {c:g}, {n} types: {e:.2%}" for (c, n), e in tried.items()))
    model, cost = _fitted(mixed(C, k, tols[1]), train)
    after = _error(model, test)
    saved = 1 - after / before
    _show(name, f"{k} types, C = {C:g}: error {after:.2%}, linear at C = {C_linear:g} {before:.2%}: {saved:.0%} less")
    _show("", cost["told"])
    if saved < LEAST:
        options.note(f"{name}: sub-types were to save {LEAST:.0%} of the linear error")
    return {"name": name, "C": C, "types": k, "error": after, "C_linear": C_linear, "linear": before} | cost


def digits() -> tuple[Pair, Pair]:
    """The digits of scikit-learn, one half of them for tests."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(_with_one(X / 16), y, test_size=0.5, random_state=0, stratify=y)
    return (X, y), (X_test, y_test)


def mnist(n: int) -> tuple[Pair, Pair]:
    X, y = sets.mnist10()
    X_test, y_test = sets.mnist10("t10k")
    return (_with_one(X[:n]), y[:n]), (_with_one(X_test), y_test)


def bags(name: str, n: int, n_test: int, C: float, tol: float, options: Options) -> dict[str, Any]:
    """Bags of images, the positive ones with one image of a certain digit: is it found?"""
    train, test = (
        _bags(*sets.mnist10(part), count, seed) for seed, (part, count) in enumerate([("train", n), ("t10k", n_test)])
    )
    results = {}
    for slack in ("bag", "member"):
        model = LatentSVM(MultipleInstance(slack), C=C, tol=tol, random_state=0, n_jobs=1)
        model, cost = _fitted(model, train[:2])
        shares = []
        for X, y, place in (train, test):
            positive = np.flatnonzero(y > 0)
            shares.append(float(np.mean(np.array(model.latent([X[i] for i in positive])) == place[positive])))
        right = float(model.score(*test[:2]))
        _show(
            name if slack == "bag" else "",
            f"slack of the {slack}: found in {shares[0]:.1%} of the positive bags, {shares[1]:.1%} of test bags; "
            f"{right:.1%} of test bags right",
        )
        _show("", cost["told"])
        if min(shares) < FOUND:
            options.note(f"{name}: the responsible member was to be found in {FOUND:.0%} of the positive bags")
        results[slack] = {"train": shares[0], "test": shares[1], "accuracy": right} | cost
    return {"name": name, "bags": n, "members": SIZE, "digit": DIGIT, "C": C} | results


def _bags(X: np.ndarray, y: np.ndarray, n: int, seed: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return bags of images, every second one positive; their labels; and where the digit is in a positive one."""
    rng = np.random.default_rng(seed)
    label = np.where(np.arange(n) % 2, -1, 1)
    own, others = (np.flatnonzero(some) for some in (y == DIGIT, y != DIGIT))
    members = rng.choice(others, (n, SIZE), replace=n * SIZE > len(others))
    place, positive = rng.integers(SIZE, size=n), label > 0
    members[positive, place[positive]] = rng.choice(own, positive.sum(), replace=positive.sum() > len(own))
    return list(X[members]), label, place


def letters(
    name: str,
    folds: tuple[int, ...],
    costs: Sequence[float],
    plain_costs: Sequence[float],
    states: Sequence[int],
    tols: tuple[float, float],
    options: Options,
) -> dict[str, Any]:
    """Handwritten words, with states of letters and without. A third of the words is held out to choose."""
    train, test = (_words(some) for some in (folds, tuple(k for k in range(10) if k not in folds)))
    order = np.random.default_rng(0).permutation(len(train[0]))
    cut = len(order) // 3
    held, some = (_taken(train, part) for part in (order[:cut], order[cut:]))

    def plain(C: float, tol: float) -> Any:
        return StructuredSVM(Chain(), C=C, tol=tol, random_state=0, n_jobs=1)

    def latent(C: float, k: int, tol: float) -> Any:
        round_tol = min(tol, 1e-2)
        return LatentStructuredSVM(HiddenChain(k), C=C, tol=tol, round_tol=round_tol, random_state=0, n_jobs=1)

    tried = _tried(partial(plain, tol=tols[0]), [(C,) for C in plain_costs], some, held)
    (C_plain,) = min(tried, key=tried.__getitem__)
    before = _error(_fitted(plain(C_plain, tols[1]), train)[0], test)
    options.tell(f"{name}: Chain, C = {C_plain:g}: {before:.2%}")
    tried = _tried(partial(latent, tol=tols[0]), itertools.product(costs, states), some, held)
    C, k = min(tried, key=tried.__getitem__)
    options.tell(f"{name}: " + ", ".join(f"C = {c:g}, {n} states: {e:.2%}" for (c, n), e in tried.items()))
    model, cost = _fitted(latent(C, k, tols[1]), train)
    after = _error(model, test)
    saved = 1 - after / before
    _show(name, f"{k} states, C = {C:g}: error {after:.2%}, Chain at C = {C_plain:g} {before:.2%}: {saved:.0%} less")
    _show("", cost["told"])
    if after >= before:
        options.note(f"{name}: states were to have fewer letters wrong than Chain")
    return {"name": name, "C": C, "states": k, "error": after, "C_plain": C_plain, "plain": before} | cost


def _words(folds: tuple[int, ...]) -> Pair:
    words = sets.ocr(folds)
    return words.inputs, [y.tolist() for y in words.outputs]


def _taken(pair: Pair, which: Any) -> Pair:
    return tuple(part[which] if isinstance(part, np.ndarray) else [part[i] for i in which] for part in pair)  # type: ignore[return-value]


def _tried(
    make: Callable[..., Any], settings: Iterable[tuple[Any, ...]], train: Pair, held: Pair
) -> dict[Any, float]:
    """Return the error on held-out examples for every setting."""
    return {setting: _error(_fitted(make(*setting), train)[0], held) for setting in settings}


def _fitted(model: Any, train: Pair) -> tuple[Any, dict[str, Any]]:
    """Return a fitted model, and what that took."""
    gc.collect()
    measured = os.access("/proc/self/clear_refs", os.W_OK)
    if measured:
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clock, cpu = time.perf_counter(), time.process_time()
        model.fit(*train)
        clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    peak = status("VmHWM") if measured else None
    cost = {"seconds": clock, "cpu": cpu, "gap": float(model.gap_), "peak_mb": peak}
    if hasattr(model, "n_rounds_"):
        cost |= {"rounds": model.n_rounds_, "calls": model.n_oracle_calls_ / len(train[0])}
        told = f"{model.n_rounds_} rounds in {clock:.1f} s, the last to a certified gap of {model.gap_:.0e}"
        told += "" if model.converged_ else " (not converged)"
        cost["told"] = told + f"; {cost['calls']:.1f} calls/n" + (f"; at most {peak:,.0f} MB" if measured else "")
    return model, cost


def _error(model: Any, test: Pair) -> float:
    """Return the share of labels that are wrong."""
    found, true = model.predict(test[0]), test[1]
    if np.ndim(true[0]):
        found, true = np.concatenate([np.asarray(h) for h in found]), np.concatenate(true)
    return float(np.mean(np.asarray(found) != np.asarray(true)))


def _with_one(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X, np.ones(len(X), X.dtype)])


def _show(name: str, text: str) -> None:
    print(f"{name:<18}{text}", flush=True)


ROWS: dict[str, Callable[[Options], dict[str, Any]]] = {
    "digits": partial(
        classes, "digits", digits, (0.3, 1.0, 3.0), (0.1, 0.3, 1.0, 3.0), (2, 4, 6), (1e-2, 1e-3), 10**9
    ),
    "mnist": partial(
        classes, "mnist", partial(mnist, 60_000), (0.01, 0.03), (0.01, 0.03, 0.1, 0.3), (4, 8), (1e-1, 1e-2), 12_000
    ),
    "bags": partial(bags, "bags", 4_000, 1_000, 0.1, 1e-2),
    "ocr-hidden": partial(letters, "ocr-hidden", LARGE, (0.1, 0.3, 1.0), (0.1, 0.3, 1.0, 3.0), (2, 3), (1e-1, 1e-2)),
    "ocr-hidden-small": partial(
        letters, "ocr-hidden-small", SMALL, (0.1, 0.2, 0.5), (0.1, 0.2, 0.5), (2, 3), (1e-2, 1e-3)
    ),
}
