"""The kernel's working set of constraints, in the coordinates that the user sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, solve_triangular

from .. import _core
from ..checks import Array
from ..shares.ground import Ground, padded
from .constraints import Answer, Feature, Found, collect
from .problem import Searched


class WorkingSet:
    """The constraints found so far, their dual variables, and the weights that these make.

    With a full prior covariance S = L L' the kernel works on z with w = L z, and constraints become x L. With a
    variance that is `scale` times what the problem says, it works on `scale` times the dual variables and the C_i.
    """

    def __init__(self, problem: Searched, prune_after: int, seed: int) -> None:
        self.problem = problem
        self._scale, self._leaning, self._freedom = 1.0, None, None
        self._look_at(problem.n_weights)
        self._kernel = _core.Working(self._spec(), prune_after, seed)
        self._kernel.admit(np.repeat(problem.cost, problem.slacks))

    _rotation: Array | None = None
    _leaning: Array | None  # another mean, in the coordinates of the kernel
    _freedom: Array | None  # another variance, in units of the prior's

    def _look_at(self, d: int) -> None:
        """Look at the prior and the bounds of d weights."""
        shape = self.problem.shape(d)
        mean = shape.mean
        if shape.covariance is not None:
            self._rotation = cholesky(shape.covariance, lower=True)
            if mean is not None:
                mean = solve_triangular(self._rotation, mean, lower=True)
        self._width, self._shape, self._mean = d, shape, mean

    def _spec(self) -> dict[str, Any]:
        mean = self._mean if self._leaning is None else padded(self._leaning, self._width)
        variance = self._shape.variance
        if self._freedom is not None:
            variance = self.ground.scaled(padded(self._freedom, self._width, 1.0))
        rest = {"variance": variance, "lower": self._shape.lower, "upper": self._shape.upper}
        return {"n_weights": self._width, "mean": mean} | rest

    @property
    def ground(self) -> Ground:
        """What is said of the weights, in the coordinates of the kernel."""
        return Ground(self._width, self._mean, self._shape.variance, self._shape.lower, self._shape.upper)

    def grow(self, d: int) -> None:
        """Make room for d weights."""
        if d > self._width:
            self._look_at(d)
            self._kernel.grow(self._spec())

    def free(self, freedom: Array) -> None:
        """Have another variance, in units of the prior's, for each of the first weights; before anything is held."""
        self.grow(len(freedom))
        self._freedom = freedom
        self._kernel.grow(self._spec())

    def lean(self, mean: Array, scale: float) -> None:
        """Go on around another mean, in the coordinates of the kernel, and with `scale` times the variance."""
        self.grow(len(mean))
        if scale != self._scale:
            self._kernel.scale(scale / self._scale)
        self._leaning, self._scale = mean, scale
        self._kernel.grow(self._spec())
        self._kernel.rebuild()

    def deposit(self) -> tuple[Array, float]:
        """Return ``u = sum alpha x``, in the coordinates of the kernel, and ``sum alpha l``, both computed anew."""
        u, linear = self._kernel.deposit()
        return u / self._scale, linear / self._scale

    @property
    def held(self) -> int:
        """Number of constraints."""
        return int(self._kernel.held)

    def insert(self, found: Found) -> tuple[int, float]:
        """Add constraints; return how many were new, and how much the dual has gained by them."""
        self.grow(max(found.width, self.problem.n_weights))
        inward = self._inward(found.start, found.column, found.x)
        added, gain = self._kernel.insert(found.example, *inward, found.l)
        return added, gain / self._scale

    def put(self, rows: sp.csr_array, l: Array, example: Array, alpha: Array) -> None:
        """Take over constraints with feasible dual variables."""
        self.grow(rows.shape[1])
        start, column = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
        self._kernel.put(example, *self._inward(start, column, rows.data), l, alpha * self._scale)

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
        s = self._scale
        visited, gain, left, read = self._kernel.optimize(s * gap, passes, price is not None, s * gain, price or 0.0)
        return visited, gain / s, left / s, read

    def look(self) -> float:
        """Return the gap of the cached problem at the present weights, and have the next pass visit all blocks."""
        return self._kernel.look() / self._scale

    def shrink(self, limit: float) -> None:
        """Come down to a number of bytes, without a change of the weights or the dual."""
        if self._kernel.bytes > limit:
            self._kernel.shrink(int(limit))

    def rebuild(self) -> float:
        """Compute the weights from the dual variables; return the dual."""
        return self._kernel.rebuild() / self._scale

    def pledged(self, which: Array) -> Array:
        """Return sum_j alpha_ij (l_ij - w.x_ij) of some examples."""
        return self._per_example(self._kernel.pledged(self._slacks(which)))

    def cached_gaps(self) -> Array:
        """Return the gap of the cached constraints of every example, when they were last looked at."""
        return self._per_example(self._kernel.cached_gaps())

    def weights(self) -> Array:
        """Return the weights."""
        return self.outward(self._kernel.weights())

    def outward(self, z: Array) -> Array:
        """Return weights in the coordinates of the kernel as the user sees them."""
        return z if self._rotation is None else self._rotation @ z

    def distance(self, w: Array) -> float:
        """Return what weights pay to the prior; those that are not there are 0."""
        z = padded(w, self._width)
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
        return rows, l, example, alpha / self._scale

    def _per_example(self, values: Array) -> Array:
        return values.reshape(-1, self.problem.slacks).sum(axis=1) / self._scale

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
