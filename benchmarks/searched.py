"""Fits of StructuredSVM, timed, with their certificates checked: what the structured rows share."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import dualsvm

from .report import row

WIDTH = (34, 12, 9, 17, 9, 8, 8, 8)
LEFT = {0, 1, 3}
HEAD = ["row, and its peers", "target", "seconds", "", "calls/n", "at most", "held", "ratio"]


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    repeats: int
    patience: float
    note: Callable[[str], None]  # something to tell below the table
    tell: Callable[[str], None]  # how far it has come


class Fitting(NamedTuple):
    """A structured problem as an estimator takes it."""

    task: Callable[[], Any]
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    C: float


class Run(NamedTuple):
    seconds: float
    cpu: float
    calls: float  # of the oracle, for every example, those for certificates included
    held: int  # constraints, at most
    gap: float
    lower: float
    upper: float


def fit(problem: Fitting, tol: float, seed: int = 0, jobs: int = 1, **more: Any) -> tuple[Run, Any]:
    """Train to a certified gap; return what that took, and the model."""
    model = dualsvm.StructuredSVM(problem.task(), C=problem.C, tol=tol, random_state=seed, n_jobs=jobs, **more)
    gc.collect()
    with threadpool_limits(jobs):
        cpu, clock = time.process_time(), time.perf_counter()
        model.fit(problem.inputs, problem.outputs)
        seconds, cpu = time.perf_counter() - clock, time.process_time() - cpu
    held = max(record.active for record in model.history_)
    calls = model.n_oracle_calls_ / len(problem.inputs)
    run = Run(seconds, cpu, calls, held, model.gap_, model.lower_bound_, model.upper_bound_)
    if not model.converged_:
        raise RuntimeError(f"the gap was to be {tol:g} at most, and is {model.gap_:g}")
    return run, model


def fits(problem: Fitting, tol: float, repeats: int, jobs: int = 1, **more: Any) -> list[Run]:
    """Train with one seed after the other; check the first certificate."""
    runs = []
    for seed in range(repeats):
        run, model = fit(problem, tol, seed, jobs, **more)
        if seed == 0:
            check(problem, model)
        runs.append(run)
    return runs


def check(problem: Fitting, model: Any) -> None:
    """Refuse an upper bound that is not the objective at the weights, asked about example by example."""
    task, w = model.task, model.coef_
    if hasattr(task, "encode"):
        value = task.encode(problem.inputs, problem.outputs).search(np.arange(len(problem.inputs)), w).value
        objective = 0.5 * float(w @ w) + problem.C * float(np.maximum(value, 0.0).sum())
        if abs(objective - model.upper_bound_) > 1e-9 * objective:
            raise RuntimeError(f"the upper bound is {model.upper_bound_}, but the objective {objective}")


def middle(runs: Sequence[Run], name: str = "seconds") -> float:
    return float(statistics.median(getattr(run, name) for run in runs))


def span(runs: Sequence[Run]) -> list[str]:
    """Return the median of the seconds, and the least and the most."""
    seconds = [run.seconds for run in runs]
    return [f"{middle(runs):.2f}", f"({min(seconds):.2f}-{max(seconds):.2f})"]


def line(*cells: str) -> None:
    row(list(cells), WIDTH[: len(cells)], LEFT)
