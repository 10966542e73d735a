"""Rows of a chunk that are in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..checks import Array
from ..data import Chunk
from ..problem import Problem
from ..state import Layout

NOTHING = np.empty(0)
EVERYBODY = np.empty(0, dtype=bool)
NOBODY = np.empty(0, dtype=np.intp)


class Frame:
    """What all parts of a problem share: how problems are made of chunks, and the weights that move.

    Parameters
    ----------
    problem_of : callable
        Makes the problem of the rows of a chunk, or of some of them.
    chunk : Chunk
        The first to be met.
    seed : int
        Of all that is random.
    single_precision : bool
        Whether the weights are to be float32 numbers where the rows are.
    """

    def __init__(
        self, problem_of: Callable[[Chunk], Problem], chunk: Chunk, seed: int, single_precision: bool
    ) -> None:
        self.problem_of = problem_of
        self.first = rows_of(chunk, np.flatnonzero(units_of(chunk) == 0))
        self._one = problem_of(self.first)
        self.layout = Layout(self._one)
        self._row = self.layout.rows(self._one)
        self.single = single = single_precision and chunk.X.dtype == np.float32 and self._one.covariance is None
        #: never visited: it holds the weights, which all parts move
        self.kernel = self.layout.kernel(self._one, self._row, seed, single)
        self.n_features = int(chunk.X.shape[1])
        self.alpha_shape = self._one.alpha_shape[1:]

    @property
    def problem(self) -> Problem:
        """A problem of this kind, with one unit."""
        return self._one

    def offered(self) -> Array:
        """Return the weights that the kernel offers, in its layout."""
        return self.kernel.get_weights()

    def current(self) -> Array:
        """Return the weights as they are, in the layout of the kernel, rounded as those offered are."""
        w = np.empty(self.kernel.n_weights)
        self.kernel.own(w)
        return w.astype(np.float32).astype(np.float64) if self.single else w


class Part:
    """Some rows of one chunk, with the kernel's state of them.

    Parameters
    ----------
    frame : Frame
        What it shares with all others.
    chunk : Chunk
        The rows.
    which : array, default None
        Which lines of the dual variables of the chunk as it is read are theirs. None: all.

    Attributes
    ----------
    rank : array
        Whom to keep: the lower, the rather. Of every unit, as `units_of` tells.
    sizes : array
        Bytes that every unit takes.
    """

    def __init__(self, frame: Frame, chunk: Chunk, which: Array | None = None) -> None:
        if chunk.X.shape[1] != frame.n_features:
            raise ValueError(
                f"rows from row {chunk.start} on have {chunk.X.shape[1]} features, and those before had "
                f"{frame.n_features}: say how many there are with open_dataset(..., n_features=...)"
            )
        self.frame, self.chunk = frame, chunk
        self.problem = frame.problem_of(chunk)
        self._rows = frame.layout.rows(self.problem)
        self.kernel = frame.layout.kernel(self.problem, self._rows, beside=frame.kernel)
        self.which = np.arange(self.problem.alpha_shape[0]) if which is None else which
        self._of_rows = units_of(chunk)
        self._of_examples, self._of_lines = self.problem.mapping.units(self._of_rows)
        self.rank = NOTHING
        self.sizes = self._sizes()
        self._counted = np.zeros(len(self.sizes), dtype=bool)  # units whose dual variables count as not in memory
        self.bytes = int(self.sizes.sum())

    def __len__(self) -> int:
        return self.problem.n_examples

    def _sizes(self) -> Array:
        X, (example, line) = self.chunk.X, self.problem.mapping.held
        if sp.issparse(X):
            rows = np.diff(X.indptr).astype(np.int64) * (X.dtype.itemsize + 4)
        else:
            rows = np.full(X.shape[0], X.shape[1] * X.dtype.itemsize)
        if self._of_examples is self._of_rows:
            return np.asarray(rows + (example + line))
        counts = np.bincount(self._of_examples) * example + np.bincount(self._of_lines) * line
        return np.asarray(np.bincount(self._of_rows, rows) + counts)

    def resume(self, alpha: Array) -> None:
        """Take dual variables that the weights already count."""
        self.kernel.resume(np.ascontiguousarray(alpha, dtype=np.float64).reshape(-1))

    def alpha(self) -> Array:
        """Return the dual variables."""
        flat = np.empty(self.kernel.n_alpha)
        self.kernel.get_alpha(flat)
        return flat.reshape(self.problem.alpha_shape)

    def count_all_but(self, lines: Array) -> None:
        """Take note that dual variables count among those that are not in memory, but for these lines of them."""
        self._counted[:] = True
        self._counted[self._of_lines[lines]] = False

    def meet(
        self, company: list[Part], passes: int, bar: float, u: Array, gone: Array
    ) -> tuple[int, int, float, float]:
        """Run passes over all examples, and on the way over some in memory, as company; rank them.

        What the dual variables make of units that do not rank below the bar is added to u, and what those made that
        counted before to `gone`. Returns what `optimize` does, and the change of the linear part.
        """
        rank = np.empty(len(self))
        kernels = [self.kernel, *(part.kernel for part in company)]
        if self._of_examples is self._of_rows:
            found = _core.meet(kernels, passes, bar, self._counted, u, gone, rank)
            self.rank = rank
            return found
        before = self.deposit(self._counted, gone)
        nobody = np.zeros(len(self), dtype=bool)
        visited, awake, estimate, _ = _core.meet(kernels, passes, np.inf, nobody, u, gone, rank)
        self.rank = self._of_units(rank)
        return visited, awake, estimate, self.deposit(~(self.rank < bar), u) - before

    def stiffness(self) -> float:
        """Return the mean over the examples of C x' S x: how far a step along one example can reach."""
        variance = self.problem.variance
        per_class = variance.mean(axis=0) if variance is not None and variance.ndim == 2 else variance
        return float(self.problem.cost.mean()) * self.problem.mapping.stretch * self._rows.mean_square(per_class)

    def rank_units(self, w: Array, random: np.random.Generator, threads: int) -> None:
        """Rank the units. Below 0 are those with something to gain, in random order, the more so the more gain."""
        rest = np.empty(len(self))
        self.kernel.survey(w, rest, threads)
        rank = np.where(rest > 0, rest, -random.random(len(rest)))
        self.rank = rank if self._of_examples is self._of_rows else self._of_units(rank)

    def _of_units(self, rank: Array) -> Array:
        """Return the ranks of the units, from those of their examples."""
        least = np.full(len(self.sizes), np.inf)
        np.minimum.at(least, self._of_examples, rank)
        share = np.bincount(self._of_examples, rank <= 0) / np.bincount(self._of_examples)
        return np.where(least > 0, least, share * least)

    def deposit(self, keep: Array, u: Array) -> float:
        """Add to u what the dual variables of some units make; return their linear part of the dual."""
        return self.kernel.deposit(np.ascontiguousarray(keep[self._of_examples]), u)

    def some(self, which: Array) -> Part:
        """Return a part of this one: some of its units."""
        chosen = np.zeros(len(self.sizes), dtype=bool)
        chosen[which] = True
        rows, lines = np.flatnonzero(chosen[self._of_rows]), np.flatnonzero(chosen[self._of_lines])
        part = Part(self.frame, rows_of(self.chunk, rows), self.which[lines])
        part.resume(self.alpha()[lines])
        part.rank = self.rank[which]
        return part


def units_of(chunk: Chunk) -> Array:
    """Return to which unit every row belongs: those of a query are kept or dropped together, others one by one."""
    if chunk.qid is None:
        return np.arange(len(chunk), dtype=np.int32)
    return np.cumsum(np.diff(chunk.qid, prepend=chunk.qid[:1]) != 0, dtype=np.int32)


def rows_of(chunk: Chunk, which: Array) -> Chunk:
    """Return some rows of a chunk, in a copy."""

    def of(values: Array | None) -> Array | None:
        return None if values is None else values[which]

    X: Any = chunk.X[which]
    return Chunk(X, of(chunk.y), of(chunk.weight), of(chunk.qid), chunk.start, chunk.index)


def optimize(parts: list[Part], passes: int, goal: float = 0.0, visits: float = np.inf) -> tuple[int, int, float]:
    """Run passes over parts; return (visited, of those with something to gain, the last estimate of the gap)."""
    visited, awake, estimate = 0, 0, np.inf
    most = int(min(max(visits, 1), 2**60))
    for count, gaining, _, seen, _ in _core.optimize([part.kernel for part in parts], passes, most, goal, 1)[0]:
        visited, awake, estimate = visited + count, awake + gaining, seen
    return visited, awake, estimate
