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

_ROW = 100  # bytes that an example takes beside its row and its dual variables
NOTHING = np.empty(0)
EVERYBODY = np.empty(0, dtype=bool)


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
        self.first = rows_of(chunk, np.arange(1))
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
        """A problem of this kind, with one row."""
        return self._one

    def stiffness(self, chunk: Chunk) -> float:
        """Return the mean over the examples of a chunk of C x' S x: how far a step along one example can reach."""
        problem = self.problem_of(chunk)
        variance, rows = problem.variance, self.layout.rows(problem)
        per_class = variance.mean(axis=0) if variance is not None and variance.ndim == 2 else variance
        return float(problem.cost.mean()) * problem.mapping.stretch * rows.mean_square(per_class)

    def offered(self) -> Array:
        """Return the weights that the kernel offers, in its layout."""
        w = np.empty(self.kernel.n_weights)
        self.kernel.get_weights(w)
        return w

    def current(self) -> Array:
        """Return the weights as they are, in the layout of the kernel."""
        w = np.empty(self.kernel.n_weights)
        self.kernel.own(w)
        return w


class Part:
    """Some rows of one chunk, with the kernel's state of them.

    Parameters
    ----------
    frame : Frame
        What it shares with all others.
    chunk : Chunk
        The rows.
    which : array
        Which of the rows of the chunk as it is read they are.
    alpha : array
        Their dual variables, which the weights already count.
    """

    def __init__(self, frame: Frame, chunk: Chunk, which: Array, alpha: Array) -> None:
        self.frame, self.chunk, self.which = frame, chunk, which
        self.problem = frame.problem_of(chunk)
        self._rows = frame.layout.rows(self.problem)
        self.kernel = frame.layout.kernel(self.problem, self._rows, beside=frame.kernel)
        self.resume(alpha)
        self.rank = NOTHING
        #: bytes that each row takes
        self.sizes = self._sizes()
        self.bytes = int(self.sizes.sum())

    def __len__(self) -> int:
        return len(self.which)

    def _sizes(self) -> Array:
        X, beside = self.chunk.X, _ROW + 8 * int(np.prod(self.frame.alpha_shape))
        if sp.issparse(X):
            return np.asarray(np.diff(X.indptr).astype(np.int64) * (X.dtype.itemsize + 4) + beside)
        return np.full(X.shape[0], X.shape[1] * X.dtype.itemsize + beside)

    def resume(self, alpha: Array) -> None:
        """Take dual variables that the weights already count."""
        self.kernel.resume(np.ascontiguousarray(alpha, dtype=np.float64).reshape(-1))

    def alpha(self) -> Array:
        """Return the dual variables."""
        flat = np.empty(self.kernel.n_alpha)
        self.kernel.get_alpha(flat)
        return flat.reshape(self.problem.alpha_shape)

    def rank_rows(self, w: Array, random: np.random.Generator, threads: int) -> None:
        """Find whom to keep: the lower, the rather. Below 0 are those with something to gain, in random order."""
        rest = np.empty(len(self))
        self.kernel.survey(w, rest, threads)
        self.rank = np.where(rest > 0, rest, -random.random(len(rest)))

    def some(self, which: Array) -> Part:
        """Return a part of this one."""
        part = Part(self.frame, rows_of(self.chunk, which), self.which[which], self.alpha()[which])
        part.rank = self.rank[which]
        return part


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
    for count, gaining, _, seen, _ in _core.optimize([part.kernel for part in parts], passes, most, goal):
        visited, awake, estimate = visited + count, awake + gaining, seen
    return visited, awake, estimate
