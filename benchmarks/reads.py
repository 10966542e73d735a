"""How often the data are read on the way to a certified gap, beside the passes that a solve in memory makes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import dualsvm

from . import data as sets
from .quality import SHARES, loaded, optimum, tasks
from .report import row
from .stores import Options
from .streams import Ours, opened
from .tasks import Task, objective

TARGET = 1e-3
FEW = 5  # reads that should do where free support vectors fit in the cache
MOST = 60  # reads after which ours is given up on
PATIENCE = 30  # reads after which block minimisation is
WIDTH = (26, 8, 8, 8, 8, 8, 9, 9, 8)
LEFT = {0}
HEAD = ["reads: row", "passes", "support", "free", "cache", "reads", "seconds", "gap", "blocks"]
INTRO = f"""Reads: how often ours reads the data until the gap is certified to be {TARGET:g}, with room for a share
of them in memory (cache); passes: of a solve in memory, to the same gap; support, free: shares of the rows whose
dual variables are not 0, and lie strictly between their bounds there. blocks: what block minimisation (as in
liblinear-cdblock: blocks of that size in random order, 10 passes over each) would need to an objective as near to
the optimum, if it knew. Wanted: {FEW} reads at most where the free ones fit in the cache, and elsewhere no more
than passes; 'over' where there are more."""


def reads(name: str, kind: str, options: Options) -> dict[str, Any]:
    data = loaded(name)
    results = [_until_certified(data, task, options) for task in tasks(name, kind)]
    return {"name": f"reads-{results[0]['name']}", "target": TARGET, "results": results}


def _until_certified(data: sets.Data, task: Task, options: Options) -> dict[str, Any]:
    options.tell(f"{task.name}: in memory")
    best = optimum(data, task, TARGET)
    support, free = _shares(best, task)
    lines = []
    for share in SHARES:
        options.tell(f"{task.name}: cache {share:g}")
        clock = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = Ours(share).model(data, task, TARGET, max_iter=MOST).fit(opened(data))
        seconds = time.perf_counter() - clock
        over = model.n_iter_ > (FEW if free <= share else best.n_iter_) or not model.converged_
        blocks = block_minimisation(data, task, share, best.lower_bound_) if task.kind == "binary" else None
        told = [task.name, str(best.n_iter_), f"{support:.2f}", f"{free:.2f}"] if share == SHARES[0] else [""] * 4
        told += [f"{100 * share:g} %", str(model.n_iter_), f"{seconds:.1f}", f"{model.gap_:.1e}"]
        told.append("" if blocks is None else f"> {PATIENCE}" if blocks > PATIENCE else str(blocks))
        row([*told, *(["over"] if over else [])], (*WIDTH, 0), LEFT)
        if over:
            options.note(f"{task.name}, cache {100 * share:g} %: {model.n_iter_} reads are more than wanted")
        lines.append(
            {"share": share, "reads": model.n_iter_, "seconds": seconds, "gap": model.gap_, "blocks": blocks}
        )
    return {"name": task.name, "passes": best.n_iter_, "support": support, "free": free, "caches": lines}


def _shares(model: Any, task: Task) -> tuple[float, float]:
    """Return which share of the rows are support vectors, and which share of all is free."""
    dual = np.abs(model.dual_coef_.toarray())
    count, mass = (dual > 0).sum(axis=0), dual.max(axis=0)
    free = (mass > 0) & ((mass < task.cost * (1 - 1e-9)) | (count > 2))  # a class of its own, and one that competes
    return float((count > 0).mean()), float(free.mean())


def block_minimisation(data: sets.Data, task: Task, share: float, lower: float) -> int:
    """Return after how many reads the objective is near the optimum when the dual is maximised block by block.

    The dual over one block, the rest being fixed, is the problem of its rows with what the rest makes of the weights
    as the mean of the prior.
    """
    rng = np.random.default_rng(0)
    blocks = np.array_split(np.arange(len(data.y)), round(1 / share))
    starts: list[Any] = [None] * len(blocks)
    w = np.zeros(data.X.shape[1])
    for count in range(1, PATIENCE + 1):
        for k in rng.permutation(len(blocks)).tolist():
            X, y = data.X[blocks[k]], data.y[blocks[k]]
            rest = w if starts[k] is None else w - X.T @ (starts[k].alpha * y)
            problem = dualsvm.Problem.binary(X, y, cost=task.cost, prior=dualsvm.Prior(mean=rest))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                starts[k] = dualsvm.solve(problem, tol=TARGET / 10, max_iter=10, start=starts[k], random_state=0)
            w = rest + X.T @ (starts[k].alpha * y)
        if objective(task, data, w) <= lower * (1.0 + TARGET) / (1.0 - TARGET):
            return count
    return PATIENCE + 1


SETS: Sequence[tuple[str, str]] = [(name, "binary") for name in ("a9a", "news20bin", "mnist", "noisy")]
ROWS = {f"reads-{name}": partial(reads, name, kind) for name, kind in SETS} | {
    "reads-mnist10-cs": partial(reads, "mnist10", "crammer_singer"),
    "reads-news20-cs": partial(reads, "news20", "crammer_singer"),
}
