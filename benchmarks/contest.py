"""All solvers on one task."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import data as sets
from .measure import Entry, race, sweep
from .peers import Fit, installed
from .tasks import Task, objective

TARGET = 1e-3


class UnknownOptimumError(Exception):
    """The optimum of a task is not known well enough to measure against."""


def contests(
    tasks: Iterable[Task], sides: Sequence[Any], *rest: Any, **more: Any
) -> tuple[list[dict[str, Any]], list[str]]:
    """Measure the first of the sides, ours, and its peers; return the results, and notes of what is missing."""
    us, *others = sides
    peers = [side for side in others if installed(side)]
    notes = [f"{side.name} is left out: pip install {side.package}" for side in others if side not in peers]
    results = []
    for task in tasks:
        try:
            data = sets.load(task.set)
            results.append(contest(task, data, us, [peer for peer in peers if peer.covers(task)], *rest, **more))
        except sets.MissingDataError as missing:
            note = f"{task.set} is left out: {missing}"
            notes += [note] if note not in notes else []
        except UnknownOptimumError as error:
            notes.append(f"{task.name} is left out: {error}")
    return results, notes


def contest(
    task: Task,
    data: sets.Data,
    us: Any,
    peers: list[Any],
    repeats: int,
    tight: float,
    limit: float = math.inf,
    describe: Callable[[Entry], dict[str, Any]] | None = None,
    threads: int = 1,
) -> dict[str, Any]:
    """Measure all solvers on one task.

    `tight`: the tolerance of the solve that finds the optimum, with so many `threads`; where it falls short, its
    bounds hold all the same. `limit`: seconds, as in `sweep` and `race`. `describe`: more to tell of an entry.
    """

    def tell(line: str) -> None:
        print(f"{task.name}: {line}", file=sys.stderr, flush=True)

    # The optimum lies between the bounds of this solve. Peers are measured against the upper one, which is a
    # little easier to come near than the optimum itself.
    best = us.fit(us.prepare(data), tight, task, 0, threads)
    tell(f"optimum between {best.lower:.8g} and {best.upper:.8g}")
    if best.upper - best.lower > 0.1 * TARGET * best.upper:
        raise UnknownOptimumError(f"the optimum is only known to lie in {best.lower:.8g} .. {best.upper:.8g}")

    def above(fit: Fit) -> float:
        return objective(task, data, fit.w) / best.upper - 1.0

    def gap(fit: Fit) -> float:
        """Return the relative gap that is certified, once the certificate has been checked."""
        value = objective(task, data, fit.w)
        slack = 1e-9 * value
        known = abs(value - fit.upper) <= slack
        if not (known and fit.lower <= best.upper + slack and best.lower <= fit.upper + slack):
            raise RuntimeError(f"wrong bounds on {task.name}: {fit.lower} .. {fit.upper}, objective {value}")
        return (fit.upper - fit.lower) / fit.upper

    ours = Entry(us, us.prepare(data), task, gap)
    others = [Entry(peer, peer.prepare(data), task, above) for peer in peers]
    for entry in others:
        sweep(entry, TARGET, tell, limit)
    race([ours, *others], TARGET, repeats, limit)
    others.sort(key=lambda entry: (not entry.reached, entry.seconds))
    return {
        "name": data.name,
        "kind": task.kind,
        "loss": task.loss,
        "shape": data.X.shape,
        "lower": best.lower,
        "upper": best.upper,
        "entries": [_entry(entry) | (describe(entry) if describe else {}) for entry in (ours, *others)],
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "solver": entry.side.name,
        "setting": entry.setting,
        "reached": entry.reached,
        "seconds": entry.seconds,
        "cpu": entry.cpu,
        "value": entry.value,
        "runs": [vars(run) for run in entry.runs],
    }
