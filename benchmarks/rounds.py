"""Rounds of completion that go on with the constraints of the round before, against rounds from scratch."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from dualsvm import LatentStructuredSVM, StructuredSVM
from dualsvm.tasks import Chain, HiddenChain, HiddenMulticlass, Multiclass

from . import data as sets
from . import hidden
from .ocr import SMALL
from .report import row
from .searched import Options

MOST = 50  # rounds
TOL = ROUND_TOL = 1e-3
COARSE = 10.0  # times the tolerance, to which LatentStructuredSVM solves the first round
FASTER, NEAR = 3.0, 1e-2  # what is hoped for: hot over cold, and how far the objectives may be apart


class Latent(NamedTuple):
    """A latent problem, and the task over completed outputs that a plain solver can be given."""

    task: Any
    plain: Callable[..., Any]
    inputs: Any
    outputs: Sequence[Any]
    C: float
    tol: float


class Rounds(NamedTuple):
    seconds: float
    cpu: float
    rounds: int
    calls: float  # of the oracle, for every example, those that tell the objective included
    objective: float
    gap: float  # of the last round


def hot(problem: Latent, completions: list[Any], seed: int) -> Rounds:
    model = LatentStructuredSVM(
        problem.task,
        C=problem.C,
        tol=problem.tol,
        round_tol=ROUND_TOL,
        max_rounds=MOST,
        random_state=seed,
        n_jobs=1,
    )
    seconds, cpu = _timed(lambda: model.fit(problem.inputs, problem.outputs, init=completions))
    if not model.converged_:
        raise RuntimeError(f"the rounds did not come to their end: {model.n_rounds_} of them, gap {model.gap_:g}")
    calls = model.n_oracle_calls_ / len(problem.outputs)
    return Rounds(seconds, cpu, model.n_rounds_, calls, model.objective_, model.gap_)


def cold(problem: Latent, completions: list[Any], seed: int, coarse: float = COARSE) -> Rounds:
    """The same alternation where every round begins with nothing but the completions.

    The first is solved to `coarse` times the tolerance, and later ones to what the last has gained, as hot ones are.
    """
    task, n = problem.task, len(problem.outputs)
    pairs = task.known_labels.values
    cost = np.array([[float(a[0] != b[0]) for b in pairs] for a in pairs])
    plain = problem.plain(labels=pairs, cost=cost)
    rounds, calls, last, gap = 0, 0, np.inf, np.inf

    def run() -> None:
        nonlocal rounds, calls, last, gap
        H, tol = completions, coarse * problem.tol
        while rounds < MOST:
            model = StructuredSVM(plain, C=problem.C, tol=tol, random_state=seed, n_jobs=1)
            model.fit(problem.inputs, H)
            if not model.converged_:
                raise RuntimeError(f"a gap was to be {tol:g} at most, and is {model.gap_:g}")
            w, gap = model.coef_, model.gap_
            rounds, calls = rounds + 1, calls + model.n_oracle_calls_
            after = task.batch_latent(problem.inputs, problem.outputs, w)
            objective = model.upper_bound_
            if after != H:
                value = plain.encode(problem.inputs, after).search(np.arange(n), w).value
                calls += n
                objective = 0.5 * float(w @ w) + problem.C * float(np.maximum(value, 0.0).sum())
            decrease = (last - objective) / objective
            ended = after == H or decrease <= ROUND_TOL
            last, H = objective, after
            if ended and tol <= problem.tol:
                return
            tol = problem.tol if ended else float(np.clip(decrease, problem.tol, tol))

    seconds, cpu = _timed(run)
    return Rounds(seconds, cpu, rounds, calls / n, last, gap)


def _timed(run: Callable[[], Any]) -> tuple[float, float]:
    gc.collect()
    with threadpool_limits(1):
        cpu, clock = time.process_time(), time.perf_counter()
        run()
        return time.perf_counter() - clock, time.process_time() - cpu


def compare(name: str, make: Callable[[], Latent], options: Options) -> dict[str, Any]:
    problem = make()
    problem.task.initialize(problem.inputs, problem.outputs)
    ways = {"hot": hot, "cold": cold, "cold, all to tol": partial(cold, coarse=1.0)}
    runs: dict[str, list[Rounds]] = {way: [] for way in ways}
    for seed in range(options.repeats):  # in turns, as the machine may be faster now and slower then
        completions = problem.task.init_latent(problem.inputs, problem.outputs, random_state=seed)
        for way, fit in ways.items():
            runs[way].append(fit(problem, completions, seed))
        told = (f"{way} {some[-1].seconds:.1f} s to {some[-1].objective:.6g}" for way, some in runs.items())
        options.tell(f"{name}: {'; '.join(told)}")
    _line(name, "seconds", "", "rounds", "calls/n", "objective", "gap", "ratio", "cpu", "hot is above")
    result: dict[str, Any] = {"name": name, "ratios": {}}
    for way, some in runs.items():
        took = [run.seconds for run in some]
        middle = [statistics.median(part) for part in zip(*some, strict=True)]
        cells = [f"{middle[0]:.2f}", f"({min(took):.2f}-{max(took):.2f})", f"{middle[2]:g}", f"{middle[3]:.1f}"]
        cells += [f"{middle[4]:.6g}", f"{middle[5]:.0e}"]
        if way != "hot":
            against = [_against(one, two) for one, two in zip(runs["hot"], some, strict=True)]
            seconds, cpu, above = (float(statistics.median(part)) for part in zip(*against, strict=True))
            result["ratios"][way] = {"seconds": seconds, "cpu": cpu, "above": above}
            cells += [f"{seconds:.2f}", f"{cpu:.2f}", f"{above:+.1e}"]
        _line(f"    {way}", *cells)
    ratio, above = (result["ratios"]["cold"][key] for key in ("seconds", "above"))
    if ratio < FASTER:
        options.note(f"{name}: hot rounds were to be {FASTER:g} times as fast as cold ones")
    if abs(above) > NEAR:
        options.note(f"{name}: hot rounds were to end within {NEAR:g} of the objective of cold ones")
    return result | {way: [run._asdict() for run in some] for way, some in runs.items()}


def _against(one: Rounds, two: Rounds) -> tuple[float, float, float]:
    """Return how often as long two takes as one, by the clock and by CPU time, and how far one ends above it."""
    return two.seconds / one.seconds, two.cpu / one.cpu, one.objective / two.objective - 1


def _line(*cells: str) -> None:
    row(list(cells), (20, 8, 15, 6, 7, 9, 6, 5, 5, 12)[: len(cells)], {0, 2})


def _digits() -> Latent:
    (X, y), _ = hidden.digits()
    return Latent(HiddenMulticlass(4), Multiclass, X, y.tolist(), 1.0, TOL)


def _mnist(n: int = 2_000) -> Latent:
    (X, y), _ = hidden.mnist(n)
    return Latent(HiddenMulticlass(4), Multiclass, X, y.tolist(), 0.1, TOL)


def _ocr() -> Latent:
    words = sets.ocr(SMALL)
    task, plain = HiddenChain(2, normalized=True), partial(Chain, normalized=True)
    return Latent(task, plain, words.inputs, [y.tolist() for y in words.outputs], 1.0 / (0.01 * len(words)), TOL)


ROWS: dict[str, Callable[[Options], dict[str, Any]]] = {
    "hot-digits": partial(compare, "hot-digits", _digits),
    "hot-mnist": partial(compare, "hot-mnist", _mnist),
    "hot-ocr": partial(compare, "hot-ocr", _ocr),
}
