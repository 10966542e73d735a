"""How near to the optimum a few passes over the data come: ours out of core, streaming learners, and LIBLINEAR."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from . import data as sets
from .peers import installed
from .report import row
from .stores import Options
from .streams import SGD, InMemory, Ours, VowpalWabbit
from .tasks import Task, objective

PASSES = (1, 2, 5, 10)
SHARES = (0.1, 0.3)
TIGHT = 1e-4  # certified gap of the optimum that all are measured against
SIDES = (*(Ours(share) for share in SHARES), SGD(), VowpalWabbit(), InMemory())
WIDTH = (26, 24, *(9 for _ in PASSES))
LEFT = {0, 1}
HEAD = ["quality: row", "solver", *(f"{k} read{'s' * (k > 1)}" for k in PASSES)]
INTRO = f"""Quality: the objective after so many reads of the data, as how far it is above the optimum, relative to
a lower bound that is certified to {TIGHT:g}. Ours: fit(dataset, passes=k), with room for that share of the data in
memory. SGDClassifier: partial_fit with chunk after chunk, the better of last and mean weights after each pass;
vowpalwabbit: the best of {len(VowpalWabbit.settings)} settings after each pass; LinearSVC: all in memory, with
max_iter=k. The same rows in the same random order for all, no intercept; 'behind': a streaming peer was better."""
COSTS = (0.1, 1.0, 10.0)
BASE = {"mnist": 0.1, "mnist10": 0.1}  # of C, where it is not 1


def loaded(name: str) -> sets.Data:
    """Return a set with its rows in random order, so that chunks are alike."""
    X, y = sets.SETS[name]()
    order = np.random.default_rng(5).permutation(len(y))
    return sets.Data(name, X[order], y[order])


def tasks(name: str, kind: str) -> list[Task]:
    return [Task(name, kind, "hinge", BASE.get(name, 1.0) * cost) for cost in COSTS]


def optimum(data: sets.Data, task: Task, tol: float) -> Any:
    """Return a model trained in memory."""
    return Ours(1.0).model(data, task, tol, max_iter=100_000).fit(data.X, data.y)


def quality(name: str, kind: str, options: Options) -> dict[str, Any]:
    data = loaded(name)
    results = [_after_passes(data, task, options) for task in tasks(name, kind)]
    return {"name": f"quality-{results[0]['name']}", "passes": PASSES, "results": results}


def _after_passes(data: sets.Data, task: Task, options: Options) -> dict[str, Any]:
    lower = optimum(data, task, TIGHT).lower_bound_
    sides = [side for side in present(SIDES, options) if side.covers(task)]
    values: dict[str, list[float]] = {}
    for side in sides:
        options.tell(f"{task.name}: {side.name}")
        found = side.after(data, task, PASSES)
        values[side.name] = [min(objective(task, data, w) for w in several) / lower - 1.0 for several in found]
    streams = [values[side.name] for side in sides if side.streams and not isinstance(side, Ours)]
    rivals = [min(some) for some in zip(*streams, strict=True)]
    for side in sides:
        mine = values[side.name]
        compared = zip(PASSES, mine, rivals, strict=True) if isinstance(side, Ours) and rivals else ()
        behind = ", ".join(str(k) for k, own, peer in compared if own > peer + TIGHT)
        cells = [task.name if side is sides[0] else "", side.name, *(f"{value:.1e}" for value in mine)]
        row([*cells, *([f"behind after {behind}"] if behind else [])], (*WIDTH, 0), LEFT)
        if behind:
            options.note(f"{task.name}: {side.name} is behind a streaming peer after {behind}")
    return {"name": task.name, "lower": lower, "above": values}


def present(sides: Sequence[Any], options: Options) -> list[Any]:
    """Return those whose packages are installed, and tell of the others."""
    for side in sides:
        if not installed(side):
            options.note(f"{side.package} is left out: make .venv/bench installs it")
    return [side for side in sides if installed(side)]


ROWS = {
    **{f"quality-{name}": partial(quality, name, "binary") for name in ("a9a", "news20bin", "mnist", "noisy")},
    "quality-mnist10-cs": partial(quality, "mnist10", "crammer_singer"),
    "quality-mnist10-ovr": partial(quality, "mnist10", "ovr"),
}
