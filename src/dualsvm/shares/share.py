"""A share of the examples, at work on its own part of the problem.

All shares want the same weights z, and each finds its own, w_k, in a round of the alternating direction method of
multipliers (consensus, in the form of Douglas and Rachford, with relaxation r):

    w_k  =  argmin  1/2 (w - 2 z + v_k)' (s S)^-1 (w - 2 z + v_k)  +  the losses of its own examples
    v_k  <-  v_k + r (w_k - z)

The first is an ordinary problem, with a prior around 2 z - v_k, that the share goes on with from its present dual
variables: if these make u_k, then w_k = 2 z - v_k + s S u_k. How free shares are to differ from one another is s:
with s = K, their number, and r = 1 this is CoCoA+, which never lets the dual fall, but is far too careful. And s is
less for features that many examples have, as those pull harder.
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
from .ground import Ground, padded

RELAX = 1.6  # 1 is the plain method, 2 the most
_PASSES = 100  # in a round, at most
_EVERYBODY = np.empty(0, dtype=bool)


class Share(Protocol):
    """What is asked of a share of one problem."""

    def measure(self) -> Report:
        """Tell how much there is of every coordinate, as `u`; and, as `linear`, the sum of C x' S x."""

    def begin(self, shape: Vector) -> None:
        """Take note of how free shares are in every coordinate, in units of what they are to be on average."""

    def turn(self, order: Order) -> Report:
        """Take a turn."""

    def prove(self, w: Array | None) -> Report:
        """Compute anew what the dual variables make, and, unless there are none, what is lost at some weights."""

    def settle(self, better: bool) -> Report:
        """Go back to the best dual variables; `better`: those of the last proof are."""

    def keep(self) -> list[Any]:
        """Return the dual variables, for every piece of the data."""

    def take(self, alpha: Sequence[Any]) -> None:
        """Take dual variables, for every piece of the data; `prove` has to follow."""


class Own:
    """What a share itself makes of the rounds: v_k."""

    def __init__(self) -> None:
        self._v: Array | None = None
        self._z: Array | None = None
        self._freedom = 1.0

    def widen(self, n: int) -> None:
        """Make room for n weights; those that are new begin at 0."""
        if self._v is not None and self._z is not None:
            self._v, self._z = padded(self._v, n), padded(self._z, n)

    def next(self, order: Order, variance: Array, u: Array) -> Array:
        """Return the mean of the share's own problem; `variance` and `u`: its S, and what its dual variables make."""
        if self._v is None or self._z is None or order.anew:
            v = _known(order.pivot) + order.freedom * variance * u
        else:
            v = self._v + RELAX * (self._z - self._v + self._freedom * variance * u)
            if order.freedom != self._freedom:  # the prices (v - z) / s stay what they are
                v = _known(order.pivot) + order.freedom / self._freedom * (v - _known(order.pivot))
        self._v, self._z, self._freedom = v, order.z, order.freedom
        return 2 * order.z - v


def _known(pivot: Array | None) -> Array:
    assert pivot is not None
    return pivot


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
        self.problems, self._threads = problems, threads
        self._layout, self._seed = Layout(problems[0]), seed
        self.ground = Ground.of(self._layout)
        self._rows = [self._layout.rows(problem) for problem in problems]
        self._kernels: list[_core.State] = []
        self._examples = sum(problem.n_examples for problem in problems)
        self._u, self._linear = np.zeros(self.ground.n_weights), 0.0
        self._own = Own()
        self._proven: list[Array] | None = None  # dual variables, when last there was a proof
        self._best: list[Array] | None = None

    def measure(self) -> Report:
        stiffness, width = 0.0, self._rows[0].width
        for problem, rows in zip(self.problems, self._rows, strict=True):
            variance = problem.variance
            per_class = variance.mean(axis=0) if variance is not None and variance.ndim == 2 else variance
            stiffness += float(problem.cost.sum()) * problem.mapping.stretch * rows.mean_square(per_class)
        squares = np.repeat(
            sum((rows.squares() for rows in self._rows), np.zeros(width)), self.ground.n_weights // width
        )
        return Report(u=Vector.of(self.ground.scaled(squares)), linear=stiffness, examples=self._examples)

    def begin(self, shape: Vector) -> None:
        layout = copy.copy(self._layout)
        layout.variance = self.ground.scaled(shape.dense)
        for problem, rows in zip(self.problems, self._rows, strict=True):
            beside = self._kernels[0] if self._kernels else None
            self._kernels.append(layout.kernel(problem, rows, self._seed, beside=beside))
        self._variance = layout.variance

    def turn(self, order: Order) -> Report:
        report, first = Report(linear=self._linear, examples=self._examples), self._kernels[0]
        if order.anew:
            self._proven = self._best = None
        if order.better:
            self._best = self._proven
        if order.certify:
            report = self.prove(order.offer)
        mean = self._own.next(order, self._variance, self._u)
        first.lean(mean, order.freedom)
        first.rebuild(self._u, self._linear, 1.0)
        visits = max(1, int(order.effort * self._examples))
        for visited, awake, _, gap, _ in _core.optimize(self._kernels, _PASSES, visits, 0.0, self._threads)[0]:
            report.gap = report.gap if report.visited else gap
            report.visited, report.awake = report.visited + visited, report.awake + awake
        after = np.empty_like(self._u)
        self._linear = first.counted(after)
        report.change, report.rise = Vector.of(after - self._u), self._linear - report.linear
        self._u = after
        return report

    def prove(self, w: Array | None) -> Report:
        u, self._linear, loss = np.zeros_like(self._u), 0.0, 0.0
        for kernel in self._kernels:
            if w is None:
                self._linear += kernel.deposit(_EVERYBODY, u)
            else:
                lost, linear = kernel.inspect(w, u, self._threads)
                self._linear, loss = self._linear + linear, loss + lost
        self._u = u
        if w is not None:
            self._proven = self.keep()
        return Report(u=Vector.of(u), linear=self._linear, loss=loss, examples=self._examples)

    def settle(self, better: bool) -> Report:
        best = self._proven if better else self._best
        if best is not None:
            self.take(best)
        return self.prove(None)

    def _alpha(self, k: int) -> Array:
        flat = np.empty(self._kernels[k].n_alpha)
        self._kernels[k].get_alpha(flat)
        return flat.reshape(self.problems[k].alpha_shape)

    def keep(self) -> list[Array]:
        return [self._alpha(k) for k in range(len(self._kernels))]

    def take(self, alpha: Sequence[Array]) -> None:
        for kernel, part in zip(self._kernels, alpha, strict=True):
            kernel.resume(np.ascontiguousarray(part, dtype=np.float64).reshape(-1))
