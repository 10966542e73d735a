"""All solvers on one task."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from . import data as sets
from .measure import Entry, bandwidth, elsewhere, race, sweep
from .peers import Fit, installed
from .tasks import Task, objective

CLOSE = 3.0  # a peer that took so many times as long as the fastest one in the sweep is not run again
FLOOR = 1.0  # seconds of CPU time that a peer always has


class UnknownOptimumError(Exception):
    """The optimum of a task is not known well enough to measure against."""


def contests(
    tasks: Iterable[Task], sides: Sequence[Any], note: Callable[[str], None], **options: Any
) -> Iterator[list[dict[str, Any]]]:
    """Measure the first of the sides, ours, and its peers on task after task; `note` is told what is left out."""
    us, *others = sides
    peers = [side for side in others if installed(side)]
    for package in dict.fromkeys(side.package for side in others if side not in peers):
        note(f"{package} is left out: make .venv/bench installs it")
    missing = set()
    for task in tasks:
        try:
            data = sets.load(task.set)
            yield contest(task, data, us, [peer for peer in peers if peer.covers(task)], **options)
        except sets.MissingDataError as error:
            if task.set not in missing:
                note(f"{task.set} is left out: {error}")
            missing.add(task.set)
        except UnknownOptimumError as error:
            note(f"{task.name} is left out: {error}")


def contest(
    task: Task,
    data: sets.Data,
    us: Any,
    peers: list[Any],
    repeats: int,
    patience: float = math.inf,
    threads: Sequence[int] = (1,),
    describe: Callable[[Entry], dict[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """Measure all solvers on one task; return a result for each number of threads and each target.

    `patience`: a peer is given up on once a run of it has taken so many times what ours took for the tightest target
    that the peer has not reached. `describe`: more to tell of an entry.
    """

    def tell(line: str) -> None:
        print(f"{task.name}: {line}", file=sys.stderr, flush=True)

    clock, spent = time.perf_counter(), elsewhere()
    # The optimum lies between the bounds of this solve. Peers are measured against the upper one, which is a
    # little easier to come near than the optimum itself.
    tight = task.targets[-1] / 5
    best = us.fit(us.prepare(data), tight, task, 0, os.cpu_count() or 1)
    tell(f"optimum between {best.lower:.8g} and {best.upper:.8g}")
    if best.upper - best.lower > 2 * tight * best.upper:
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

    prepared = {peer.name: peer.prepare(data) for peer in peers}
    known: dict[tuple[str, int], list[Entry]] = {}  # by solver and number of threads: an entry for each target
    results = []
    for count in threads:
        tell(f"{count} threads")
        ours = {t: Entry(us, us.prepare(data), task, (t,), t, gap, count) for t in task.targets}
        for entry in ours.values():
            sweep([entry], tell)
        limits = {target: max(FLOOR, patience * entry.cpu) for target, entry in ours.items()}
        runners = [(peer, used) for peer in peers if (used := peer.threads(task, count))]
        fresh = [runner for runner in runners if (runner[0].name, runner[1]) not in known]
        for peer, used in fresh:
            rest = peer, prepared[peer.name], task, peer.settings
            known[peer.name, used] = [Entry(*rest, t, above, used) for t in task.targets]
            sweep(known[peer.name, used], tell, limits.__getitem__)
        for k, (target, mine) in enumerate(ours.items()):
            theirs = [known[peer.name, used][k] for peer, used in runners]
            fastest = min((entry.seconds for entry in theirs if entry.reached), default=math.inf)
            race([mine, *(entry for entry in theirs if entry.reached and entry.seconds <= CLOSE * fastest)], repeats)
            theirs.sort(key=lambda entry: (not entry.reached, entry.seconds))
            results.append(
                {
                    "name": task.name,
                    "set": data.name,
                    "shape": data.X.shape,
                    "target": target,
                    "threads": count,
                    "pass": data.bytes / bandwidth(count),  # seconds
                    "lower": best.lower,
                    "upper": best.upper,
                    "entries": [_entry(entry) | (describe(entry) if describe else {}) for entry in (mine, *theirs)],
                }
            )
    others = (elsewhere() - spent) / (time.perf_counter() - clock)
    return [result | {"others": others} for result in results]


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "solver": entry.side.name,
        "setting": entry.setting,
        "threads": entry.threads,
        "reached": entry.reached,
        "given_up": entry.given_up,
        "seconds": entry.seconds,
        "cpu": entry.cpu,
        "value": entry.value,
        "runs": [vars(run) for run in entry.runs],
        "log": [vars(run) for run in entry.log],
    }
