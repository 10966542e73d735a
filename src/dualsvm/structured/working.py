"""The kernel's working set of constraints, in the coordinates that the user sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, solve_triangular

from .. import _core
from ..checks import Array
from .constraints import Answer, Feature, Found, collect
from .problem import Searched


class WorkingSet:
    """The constraints found so far, their dual variables, and the weights that these make.

    With a full prior covariance S = L L' the kernel works on z with w = L z, and constraints become x L.
    """

    def __init__(self, problem: Searched, prune_after: int, seed: int) -> None:
        self.problem = problem
        self._rotation: Array | None = None
        self._kernel = _core.Working(self._spec(problem.n_weights), prune_after, seed)
        self._kernel.admit(np.repeat(problem.cost, problem.slacks))

    def _spec(self, d: int) -> dict[str, Any]:
        shape = self.problem.shape(d)
        mean = shape.mean
        if shape.covariance is not None:
            self._rotation = cholesky(shape.covariance, lower=True)
            if mean is not None:
                mean = solve_triangular(self._rotation, mean, lower=True)
        self._shape, self._mean = shape, mean
        rest = {"variance": shape.variance, "lower": shape.lower, "upper": shape.upper}
        return {"n_weights": d, "mean": mean} | rest

    def grow(self, d: int) -> None:
        """Make room for d weights."""
        if d > self._kernel.n_weights:
            self._kernel.grow(self._spec(d))

    @property
    def held(self) -> int:
        """Number of constraints."""
        return int(self._kernel.held)

    def insert(self, found: Found) -> tuple[int, float]:
        """Add constraints; return how many were new, and how much the dual has gained by them."""
        self.grow(max(found.width, self.problem.n_weights))
        return self._kernel.insert(found.example, *self._inward(found.start, found.column, found.x), found.l)

    def put(self, rows: sp.csr_array, l: Array, example: Array, alpha: Array) -> None:
        """Take over constraints with feasible dual variables."""
        self.grow(rows.shape[1])
        start, column = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
        self._kernel.put(example, *self._inward(start, column, rows.data), l, alpha)

    def forget(self, which: Array) -> None:
        """Drop the constraints of some examples; `rebuild` has to follow."""
        self._kernel.forget(self._slacks(which))

    def move(self, which: Array, moves: Sequence[Feature], scaled: bool) -> None:
        """Add a vector to all constraints of an example, l times it if `scaled`; `rebuild` has to follow."""
        by = collect(which * self.problem.slacks, [Answer([(move, 0.0)], 0.0, 0.0) for move in moves])
        self.grow(by.width)
        self._kernel.move(by.example, *self._inward(by.start, by.column, by.x), by.l, scaled)

    def optimize(self, gap: float, passes: int, price: float | None, gain: float) -> tuple[int, float, float, float]:
        """Run passes over the cache, down to a gap of the cached problem, so many of them at most.

        With a price, that of the searches since the last passes, which have gained so much already, also until a pass
        gains less for what it reads than all of that. Return blocks visited, the gain of the dual, the gap of the
        cached problem, and columns read.
        """
        return self._kernel.optimize(gap, passes, price is not None, gain, price or 0.0)

    def look(self) -> float:
        """Return the gap of the cached problem at the present weights, and have the next pass visit all blocks."""
        return self._kernel.look()

    def shrink(self, limit: float) -> None:
        """Come down to a number of bytes, without a change of the weights or the dual."""
        if self._kernel.bytes > limit:
            self._kernel.shrink(int(limit))

    def rebuild(self) -> float:
        """Compute the weights from the dual variables; return the dual."""
        return self._kernel.rebuild()

    def pledged(self, which: Array) -> Array:
        """Return sum_j alpha_ij (l_ij - w.x_ij) of some examples."""
        return self._kernel.pledged(self._slacks(which)).reshape(-1, self.problem.slacks).sum(axis=1)

    def cached_gaps(self) -> Array:
        """Return the gap of the cached constraints of every example, when they were last looked at."""
        return self._kernel.cached_gaps().reshape(-1, self.problem.slacks).sum(axis=1)

    def weights(self) -> Array:
        """Return the weights."""
        z = self._kernel.weights()
        return z if self._rotation is None else self._rotation @ z

    def distance(self, w: Array) -> float:
        """Return what weights pay to the prior; those that are not there are 0."""
        z = np.zeros(self._kernel.n_weights)
        z[: len(w)] = w
        if self._rotation is not None:
            z = solve_triangular(self._rotation, z, lower=True)
        away = z if self._mean is None else z - self._mean
        return 0.5 * float(away @ (away if self._shape.variance is None else away / self._shape.variance))

    def content(self) -> tuple[sp.csr_array, Array, Array, Array]:
        """Return rows, margins, examples and dual variables of what is held."""
        example, start, column, x, l, alpha = self._kernel.content()
        rows = sp.csr_array((x, column, start), shape=(len(l), self._kernel.n_weights))
        if self._rotation is not None:
            rows = sp.csr_array(solve_triangular(self._rotation, rows.toarray().T, lower=True, trans="T").T)
        return rows, l, example, alpha

    def _slacks(self, which: Array) -> Array:
        """Return the slacks of some examples."""
        k = self.problem.slacks
        return which if k == 1 else (which[:, None] * k + np.arange(k)).ravel()

    def _inward(self, start: Array, column: Array, x: Array) -> tuple[Array, Array, Array]:
        """Return rows in the coordinates of the kernel."""
        if self._rotation is None:
            return start, column, x
        n, d = len(start) - 1, len(self._rotation)
        rows = sp.csr_array((x, column, start), shape=(n, d)) @ self._rotation
        columns = np.tile(np.arange(d, dtype=np.int32), n)
        return np.arange(n + 1, dtype=np.int64) * d, columns, np.ascontiguousarray(rows).reshape(-1)
