"""Priors so wide that they hardly regularise a weight, such as an intercept that is not to be penalised.

Coordinate ascent is slow on such a problem: every step along a row moves the wide weight by its large variance, so
steps are short. The way round is a sequence of narrow problems, whose prior draws the wide weights gently to where
the last one left them (the proximal point method, or seen from the dual that of multipliers). Each starts hot, and
after each the bounds of the wide problem itself are computed, for they are what is promised.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .checks import Array
from .problem import Problem
from .progress import View, Watcher
from .solution import Record, Solution, dual, feasible, primal, relative_gap
from .solve import match, pursue
from .state import State

_COARSE = 0.1  # solve a narrow problem to this part of the gap so far, or to less where that brings too little
_FINEST = 1e-14


def pursue_wide(
    problem: Problem,
    variance: Array,
    tol: float,
    max_iter: int,
    start: Solution | None,
    seed: int,
    n_jobs: int | None,
    watchers: Sequence[Watcher] = (),
    single_precision: bool = False,
) -> Solution:
    """Solve a problem as `pursue` does, by way of narrow ones.

    `variance` is that of the narrow problems, in the shape of the weights, or a full one where the problem has that;
    it differs from the problem's own in the wide weights only.
    """
    narrow = copy.copy(problem)
    if problem.covariance is None:
        narrow.variance = variance
        wide = variance != (1.0 if problem.variance is None else problem.variance)
    else:
        narrow.covariance = variance
        wide = np.broadcast_to(np.diag(variance) != np.diag(problem.covariance), problem.weight_shape)
    centre = np.zeros(problem.weight_shape) if problem.mean is None else problem.mean
    relay = _Relay(problem, watchers)
    inner, status = _COARSE, ""
    if start is not None and relay.begin_from(start, single_precision):
        centre = np.where(wide, relay.w, centre)
        solution, status = start, "converged" if relay.gap <= tol else ""
        inner = max(min(inner, _COARSE * relay.gap), _FINEST)
    try:
        while not status:
            narrow.mean, before = centre, relay.gap
            left = max_iter - relay.passes
            told = [relay] if watchers else []
            solution = pursue(narrow, inner, left, start, seed, n_jobs, told, single_precision)
            relay.take(solution)
            if relay.gap <= tol:
                status = "converged"
            elif relay.stopped or solution.status == "interrupted":
                status = "stopped" if relay.stopped else "interrupted"
            elif relay.passes >= max_iter:
                status = "max_iter"
            elif inner == _FINEST and relay.gap >= before:
                status = "stalled"
            finer = 0.3 * inner if relay.gap > 0.5 * before or solution.n_iter == 0 else inner
            inner = max(min(finer, _COARSE * relay.gap), _FINEST)
            centre = np.where(wide, _moved(narrow, solution.alpha), centre)
            start, seed = solution, seed + 1
    except KeyboardInterrupt:
        if not relay.history:
            raise
        status = "interrupted"
    finally:
        for watcher in watchers:
            watcher.close()
    return replace(
        solution,
        task=problem.task,
        ids=problem.ids,
        fingerprint=problem.mapping.fingerprint,
        w=relay.w,
        alpha=relay.alpha,
        lower_bound=relay.lower,
        upper_bound=relay.upper,
        status=status,
        n_iter=relay.passes,
        history=relay.history,
    )


def _moved(problem: Problem, alpha: Array) -> Array:
    """Return the weights that dual variables stand for."""
    u = problem.mapping.combine(problem.view, alpha)
    if problem.covariance is not None:
        return np.asarray(problem.mean + u @ problem.covariance)
    lower = -np.inf if problem.lower is None else problem.lower
    upper = np.inf if problem.upper is None else problem.upper
    return np.asarray(np.clip(problem.mean + u * problem.variance, lower, upper))


def _settled(problem: Problem, alpha: Array) -> Array:
    """Return dual variables after one pass over the wide problem.

    Those of a narrow problem leave a little of u in the wide weights, which their variance makes costly. Steps feel
    nothing else, and one pass takes it away.
    """
    state = State(problem, alpha, seed=0, threads=1, trusted=True)
    state.optimize(1, 0.0)
    return feasible(problem, state.alpha())


@dataclass(frozen=True)
class _View:
    record: Record
    certified: bool
    w: Array

    def weights(self) -> Array:
        return self.w


class _Relay(Watcher):
    """Keeps the best bounds of the wide problem, and tells of the passes over narrow ones under those bounds."""

    def __init__(self, problem: Problem, watchers: Sequence[Watcher]) -> None:
        self.problem, self.watchers = problem, watchers
        self.history: list[Record] = []
        self.passes, self.seconds, self.stopped = 0, 0.0, False
        self.alpha, self.lower = np.zeros(problem.alpha_shape), 0.0  # no objective is negative
        self.w, self.upper = np.zeros(problem.weight_shape), np.inf

    @property
    def gap(self) -> float:
        return relative_gap(self.lower, self.upper) if np.isfinite(self.upper) else np.inf

    def _as_wide(self, record: Record) -> Record:
        return record._replace(
            iteration=self.passes + record.iteration,
            lower=self.lower,
            upper=self.upper,
            seconds=self.seconds + record.seconds,
        )

    def begin(self) -> None:
        for watcher in self.watchers:
            watcher.begin()

    def tell(self, view: View) -> bool:
        if view.record.iteration == 0 and self.history:  # where a narrow problem begins
            return False
        seen = _View(self._as_wide(view.record), False, view.weights())
        self.stopped |= any([watcher.tell(seen) for watcher in self.watchers])
        return self.stopped

    def begin_from(self, start: Solution, single_precision: bool) -> bool:
        """Take note of the bounds that an earlier solution gives, if it has weights of this shape."""
        p = self.problem
        alpha = match(start, p)
        if start.w.shape != p.weight_shape or not np.isfinite(start.w).all():
            return False
        lower = dual(p, alpha)
        if lower > self.lower:
            self.alpha, self.lower = alpha, lower
        low, high = -np.inf if p.lower is None else p.lower, np.inf if p.upper is None else p.upper
        self.w = np.clip(start.w.astype(np.float32) if single_precision else start.w, low, high).astype(np.float64)
        self.upper = primal(p, self.w)
        self.lower = min(self.lower, self.upper)
        self.history.append(Record(0, 0, 0, self.lower, self.upper, self.gap, 0.0))
        return True

    def take(self, solution: Solution) -> None:
        """Take note of a narrow problem solved, and of the bounds that its solution gives of the wide one."""
        records = [self._as_wide(r) for r in solution.history if r.iteration > 0 or not self.history]
        upper = primal(self.problem, solution.w)
        if upper < self.upper:
            self.w, self.upper = solution.w, upper
        self.history += records
        self.passes += solution.n_iter
        self.seconds += solution.history[-1].seconds
        alpha = _settled(self.problem, solution.alpha)
        lower = dual(self.problem, alpha)
        if lower > self.lower:
            self.alpha, self.lower = alpha, lower
        self.lower = min(self.lower, self.upper)  # where rounding makes them cross
        self.history[-1] = self.history[-1]._replace(lower=self.lower, upper=self.upper)
        for watcher in self.watchers:
            watcher.settle(_View(self.history[-1], True, solution.w))
