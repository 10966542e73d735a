"""The promises of tasks for `LatentSVM`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..checks import Array
from ..latent.mined import _look
from ..structured.constraints import OracleError, as_feature, difference
from ..structured.prints import fingerprint
from .common import (
    Draw,
    Known,
    announced,
    check_batch,
    guessed,
    is_exact,
    known,
    refuse_beaten,
    rounding_of,
    short,
    size_of,
)

Windows = dict[int, Known]  # violations by the fingerprints of their keys


def check_windows(task: Any, X: Sequence[Any], labels: Array, outputs: Any, draw: Draw) -> None:
    """Check a task that tells two classes by their best latent values."""
    begun = {  # what init_latent says of negatives is not looked at
        i: known(task, X[i], z, f"example {i}, init_latent")
        for i, z in enumerate(guessed(task, X, labels))
        if labels[i] > 0
    }
    tried = draw(size_of(task, list(begun.values())))
    every = callable(getattr(task, "violations", None))
    best: list[list[Known]] = []  # for every example, at all weights
    violations: dict[int, list[Windows]] = {}  # of negatives
    for i, x in enumerate(X):
        name = f"example {i}"
        best.append([Known(*_look([(i, x)], task, w, False)[0][0]) for w in tried])
        listed = [] if outputs is None else [known(task, x, z, name) for z in outputs(x)]
        others = [*best[i], *listed, *([begun[i]] if i in begun else [])]
        if is_exact(task):
            for w, one in zip(tried, best[i], strict=True):
                refuse_beaten(one, others, w, f"{name}: inference is not the best latent value")
        if every and labels[i] < 0:
            violations[i] = [_windows(task, i, x, w) for w in tried]
            _check_violations(task, name, tried, best[i], violations[i], listed)
    coded = task.encode(X) if hasattr(task, "encode") else None
    for nth, w in enumerate(tried):
        check_batch(task, "inference", X, w)
        if coded is not None:
            _check_search(task, coded, X, w, [some[nth] for some in best])
            _check_every(task, coded, w, {i: some[nth] for i, some in violations.items()})


def _windows(task: Any, i: int, x: Any, w: Array) -> Windows:
    return {fingerprint(key): Known(key, feature) for key, feature in _look([(i, x)], task, w, True)[0]}


def _margin(window: Known, w: Array) -> float:
    """Return ``1 + w.phi``, which is positive for a violation."""
    return 1 + window.feature.dot(w)


def _check_violations(
    task: Any, name: str, tried: list[Array], best: list[Known], found: list[Windows], listed: list[Known]
) -> None:
    """Refuse violations that are none, or that lack some of which it is known from other weights."""
    seen = [window for some in found for window in some.values()]
    if {key for some in found for key in some} <= {fingerprint(z.output) for z in listed}:  # keys are latent values
        seen += listed
    for w, top, some in zip(tried, best, found, strict=True):
        for window in some.values():
            if _margin(window, w) < -rounding_of(w, window.feature):
                raise OracleError(
                    f"{name}: violations yields {short(window.output)}, which keeps its margin: 1 + w.phi is "
                    f"{_margin(window, w):.6g}, and must be above 0"
                )
        if not is_exact(task):
            continue
        for window in seen:  # under one key there may be more than one, as parts are placed otherwise
            least = _margin(window, w) - rounding_of(w, window.feature)
            now = some.get(fingerprint(window.output))
            if least > 0 and (now is None or _margin(now, w) < least):
                raise OracleError(
                    f"{name}: violations must yield all that violate their margins, but {short(window.output)} "
                    + ("is left out" if now is None else f"comes with 1 + w.phi of {_margin(now, w):.6g}")
                    + f": with features that it is known to have, 1 + w.phi is {_margin(window, w):.6g}"
                )
        least = _margin(top, w) - rounding_of(w, top.feature)
        if least > 0 and max((_margin(one, w) for one in some.values()), default=0.0) < least:
            raise OracleError(
                f"{name}: violations yields nothing that scores as high as {short(top.output)}, which inference "
                f"finds: its 1 + w.phi is {_margin(top, w):.6g}"
            )


def _searched(task: Any, coded: Any, which: Array, w: Array, every: bool) -> list[list[Known]]:
    """Return what the search of `encode` finds in some inputs."""
    line, z, start, column, x = coded.search(which, w, 1, every)
    lines = np.asarray(line).tolist()
    if not len(lines) == len(z) == len(start) - 1 or not {*lines} <= {*range(len(which))} or lines != sorted(lines):
        raise OracleError(
            f"the search of encode, asked about {len(which)} examples, must return for everything that it finds a "
            f"line, the place of the example among these, in their order, got {len(z)} latent values, {len(start)} "
            f"starts and lines {short(lines)}"
        )
    found: list[list[Known]] = [[] for _ in which]
    for r, k in enumerate(lines):
        part = slice(start[r], start[r + 1])
        name = f"example {which[k]}: what the search of encode finds"
        found[k].append(Known(z[r], as_feature((column[part], x[part]), name, announced(task))))
    return found


def _check_search(task: Any, coded: Any, X: Sequence[Any], w: Array, best: list[Known]) -> None:
    """Refuse a compiled search that disagrees with `inference`."""
    which = np.arange(len(X))[::-1].copy()  # in which lines are places
    for i, some in zip(which.tolist(), _searched(task, coded, which, w, False), strict=True):
        name = f"example {i}: the search of encode"
        if len(some) != 1:
            raise OracleError(f"{name} must find one latent value, got {len(some)}")
        (one,) = some
        own = known(task, X[i], one.output, name).feature
        if np.abs(difference(own, one.feature).x).max(initial=0.0) > 1e-9 * (1 + np.abs(own.x).max(initial=0.0)):
            raise OracleError(f"{name} finds {short(one.output)} with other features than joint_feature says")
        scores = one.feature.dot(w), best[i].feature.dot(w)
        if is_exact(task) and abs(scores[0] - scores[1]) > rounding_of(w, one.feature, best[i].feature):
            raise OracleError(
                f"{name} finds {short(one.output)}, which scores {scores[0]:.6g}, but inference "
                f"{short(best[i].output)} with {scores[1]:.6g}"
            )


def _check_every(task: Any, coded: Any, w: Array, violations: dict[int, Windows]) -> None:
    """Refuse a compiled search that disagrees with `violations`."""
    which = np.array([*violations][::-1], dtype=np.int64)
    for i, found in zip(which, _searched(task, coded, which, w, True) if violations else [], strict=True):
        some, others = {fingerprint(one.output): one for one in found}, violations[int(i)]
        if len(some) < len(found):
            raise OracleError(f"example {i}: the search of encode finds the same violation twice")
        for key in some | others:
            pair = some.get(key), others.get(key)
            held = [one for one in pair if one is not None]
            margins = [0.0 if one is None else _margin(one, w) for one in pair]
            if abs(margins[0] - margins[1]) > rounding_of(w, *(one.feature for one in held)):
                raise OracleError(
                    f"example {i}: the search of encode and violations must find the same, but 1 + w.phi of "
                    f"{short(held[0].output)} is {margins[0]:.6g} by the one and {margins[1]:.6g} by the other, "
                    "where 0 stands for what is not found"
                )
