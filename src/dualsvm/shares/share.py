"""A share of the examples, at work on its own part of the problem.

With K shares and u = u_1 + ... + u_K, what all dual variables make, the dual is

    D = linear_1 + ... + linear_K + conjugate(u)

and the conjugate is concave. So if share k holds sigma_k with 1/sigma_1 + ... + 1/sigma_K <= 1, in every coordinate,

    conjugate(u + d_1 + ... + d_K) >= sum_k 1/sigma_k conjugate(u + sigma_k d_k)

and each share may raise its own part of the right side: all rises add up to no more than that of D. Its part is an
ordinary problem over its own examples, with another prior: a variance of sigma_k S, around m + S (u - sigma_k u_k).
CoCoA+ takes sigma_k = K for all; but a coordinate that a share has most of, in the sum of squares, it may move more
boldly: sigma_k is that sum over all shares divided by its own.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .. import _core
from ..checks import Array
from ..problem import Problem
from ..state import Layout
from .exchange import Order, Report, Vector
from .ground import Ground

_PASSES = 100  # in a round, at most


class Share(Protocol):
    """What is asked of a share of one problem."""

    def measure(self) -> Report:
        """Tell how much there is of every coordinate, as `u`; and, as `linear`, the sum of C x' S x."""

    def begin(self, masses: Vector) -> None:
        """Take note of how much there is of every coordinate in all shares."""

    def turn(self, order: Order) -> Report:
        """Take a turn: raise the dual, as far as that is safe without knowing what the others do."""

    def prove(self, w: Array | None) -> Report:
        """Compute anew what the dual variables make, and, unless there are none, what is lost at some weights."""

    def keep(self) -> list[Any]:
        """Return the dual variables, for every piece of the data."""

    def take(self, alpha: Sequence[Any]) -> None:
        """Take dual variables, for every piece of the data; `prove` has to follow."""


class RowShare:
    """A share of a problem with rows that are known.

    Parameters
    ----------
    problems : sequence of Problem
        Pieces of one problem, all with the same prior and bounds.
    seed : int
        Of the order in which examples are visited.
    threads : int
        For what needs no order.
    """

    def __init__(self, problems: Sequence[Problem], seed: int, threads: int) -> None:
        self.problems, self._seed, self._threads = problems, seed, threads
        self._layout = Layout(problems[0])
        self._rows = [self._layout.rows(problem) for problem in problems]
        self.ground = Ground.of(self._layout)
        self._sigma = np.ones(self.ground.n_weights)
        self._u = np.zeros(self.ground.n_weights)
        self._linear = 0.0
        self._before = self._u  # where the last move began

    def measure(self) -> Report:
        stiffness = 0.0
        for problem, rows in zip(self.problems, self._rows, strict=True):
            variance = problem.variance
            per_class = variance.mean(axis=0) if variance is not None and variance.ndim == 2 else variance
            stiffness += float(problem.cost.sum()) * problem.mapping.stretch * rows.mean_square(per_class)
        return Report(u=Vector.of(self._masses()), linear=stiffness, examples=self._examples)

    def _masses(self) -> Array:
        squares = sum((rows.squares() for rows in self._rows), np.zeros(self._rows[0].width))
        return np.repeat(squares, self.ground.n_weights // len(squares))

    @property
    def _examples(self) -> int:
        return sum(problem.n_examples for problem in self.problems)

    def begin(self, masses: Vector) -> None:
        own = self._masses()
        self._sigma = np.divide(masses.dense, own, out=np.ones_like(own), where=own > 0)
        layout = copy.copy(self._layout)
        layout.variance = self._sigma if layout.variance is None else self._sigma * layout.variance
        kernels: list[_core.State] = []
        for problem, rows in zip(self.problems, self._rows, strict=True):
            kernels.append(layout.kernel(problem, rows, self._seed, beside=kernels[0] if kernels else None))
        self._kernels = kernels

    def turn(self, order: Order) -> Report:
        report = (
            Report(linear=self._linear, examples=self._examples) if order.offer is None else self.prove(order.offer)
        )
        sigma, kernel = order.boldness * self._sigma, self._kernels[0]
        ahead = self._u + order.momentum * (self._u - self._before)
        mean = self.ground.free(order.u.dense - sigma * ahead)
        kernel.lean(mean)
        if order.boldness < 1:
            kernel.draw(mean, 1 / order.boldness - 1)  # drawn to where it is, only the variance becomes less
        kernel.rebuild(self._u, self._linear, 1.0)
        visits = max(1, int(order.effort * report.examples))
        for visited, awake, _, gap, _ in _core.optimize(self._kernels, _PASSES, visits, 0.0):
            report.gap = report.gap if report.visited else gap
            report.visited, report.awake = report.visited + visited, report.awake + awake
        after = np.empty_like(self._u)
        self._linear = kernel.counted(after)
        report.change, report.rise = Vector.of(after - self._u), self._linear - report.linear
        report.curvature = float((after - ahead) @ (self._sigma * self.ground.scaled(after - ahead)))
        self._before, self._u = self._u, after
        return report

    def prove(self, w: Array | None) -> Report:
        u, self._linear, loss = np.zeros_like(self._u), 0.0, 0.0
        for kernel in self._kernels:
            if w is None:
                self._linear += kernel.deposit(np.empty(0, dtype=bool), u)
            else:
                lost, linear = kernel.inspect(w, u, self._threads)
                self._linear, loss = self._linear + linear, loss + lost
        self._u = u
        return Report(u=Vector.of(u), linear=self._linear, loss=loss, examples=self._examples)

    def _alpha(self, k: int) -> Array:
        flat = np.empty(self._kernels[k].n_alpha)
        self._kernels[k].get_alpha(flat)
        return flat

    def keep(self) -> list[Array]:
        return [self._alpha(k).reshape(problem.alpha_shape) for k, problem in enumerate(self.problems)]

    def take(self, alpha: Sequence[Array]) -> None:
        for kernel, part in zip(self._kernels, alpha, strict=True):
            kernel.resume(np.ascontiguousarray(part, dtype=np.float64).reshape(-1))
