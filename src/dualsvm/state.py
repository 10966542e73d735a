"""The kernel's state of a problem, in the shapes that the user sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, solve_triangular

from . import _core
from .checks import Array
from .newton import Newton
from .problem import Problem
from .pull import STIFF
from .rows import Rows

_WORK = 1e8  # numbers read in one call of the kernel, about: short enough for Ctrl-C, long enough to be cheap
_DEAR = 50  # passes that Newton's method may cost
_CHEAP = 5  # so few that it comes first: where passes do badly, or, with kinks in the losses,
_SOME, _MANY = 16, 400  # where there are so many weights, and examples for every weight
_LATE = 60  # visits of each example that are left to passes otherwise, where there are kinks
_SCATTERED = 1 << 16  # weights: more than the fastest caches hold
_FILLED = 0.5  # of the numbers: a sparse copy of dense rows is then no larger, and read faster
_PARTS = 8  # of the columns, at most, for a thread each
_LANES = 4  # the kernel pads the classes of a multiclass problem to a multiple of this


class Layout:
    """The coordinates and the layout in which the kernel keeps the weights of a problem.

    With a full covariance S = L L' the kernel's weights are z, with w = L z, whose prior is the identity around
    L^-1 m, and rows become rows @ L. Those of several classes lie as features x classes, the classes padded;
    arranged, their rows are copied where that pays: dense ones without their zeros, if those are most of them, and
    sparse ones with the features first that many rows have, if weights are many, which then begin with those, too,
    or, for several threads, every thread's part of them.
    """

    def __init__(self, problem: Problem, arranged: bool = False, threads: int = 1) -> None:
        self._classes = problem.weight_shape[0] if len(problem.weight_shape) == 2 else 0
        self._padded = -(-self._classes // _LANES) * _LANES
        self._rotation: Array | None = None
        mean = problem.mean
        if problem.covariance is not None:
            self._rotation = cholesky(problem.covariance, lower=True)
            if mean is not None:
                mean = solve_triangular(self._rotation, mean.T, lower=True).T
        self.classes = max(1, self._classes)
        self.n_weights = problem.view.width * (self._padded or 1)
        self._order: Array | None = None
        self._arranged: Rows | None = None
        view = problem.view
        arranged = arranged and bool(self._classes) and self._rotation is None
        if arranged and not sp.issparse(view.matrix) and view.filled() <= _FILLED:
            self._arranged = view = view.without_zeros()
        if arranged and sp.issparse(view.matrix) and self.n_weights >= _SCATTERED:
            self._arranged, order = view.common_first(min(threads, _PARTS))
            every = np.arange(problem.view.width)
            self._order = np.append(order, every[len(order) :])  # a constant feature stays where it is
        self.mean, self.variance = self.inward(mean, 0.0), self.inward(problem.variance, 1.0)
        self.box = self.inward(problem.lower, -np.inf), self.inward(problem.upper, np.inf)

    def rows(self, problem: Problem) -> Rows:
        """Return the rows of a problem in these coordinates."""
        if self._arranged is not None:
            return self._arranged
        return problem.view if self._rotation is None else problem.view.times(self._rotation)

    def kernel(
        self,
        problem: Problem,
        rows: Rows,
        seed: int = 0,
        single_precision: bool = False,
        beside: _core.State | None = None,
    ) -> _core.State:
        """Return the kernel's state of a problem, or of more rows of one that there is a state of."""
        spec: dict[str, Any] = {
            "n_weights": self.n_weights,
            "bias": rows.bias,
            "cost": problem.cost,
            "squared": problem.loss == "squared_hinge",
            "mean": self.mean,
            "variance": self.variance,
            "lower": self.box[0],
            "upper": self.box[1],
            "single_precision": single_precision,
            "seed": seed,
        }
        spec |= problem.mapping.kernel()
        return _core.State(rows.kernel, spec) if beside is None else _core.State(rows.kernel, spec, beside)

    def as_kernel(self, w: Array) -> Array:
        """Return weights as the kernel has them."""
        if self._rotation is not None:
            w = solve_triangular(self._rotation, w.T, lower=True).T
        return np.ascontiguousarray(self.inward(w, 0.0))

    def offered(self, kernel: _core.State) -> Array:
        """Return the weights that the kernel's state offers, as the user sees them."""
        return self.as_seen(kernel.get_weights(self._order))

    def as_seen(self, flat: Array) -> Array:
        """Return weights as the kernel has them, but with the features in their own order, as the user sees them."""
        if not self._classes:
            return flat if self._rotation is None else flat @ self._rotation.T
        w = flat.reshape(-1, self._padded)[:, : self._classes].T  # class by class would take ten times as long
        return w if self._rotation is None else w @ self._rotation.T

    def inward(self, value: Array | None, filler: float) -> Array | None:
        """Lay out a quantity of the weights as the kernel does."""
        if value is None or not self._classes:
            return value
        out = np.full((value.shape[1], self._padded), filler)
        out[:, : self._classes] = value.T
        if self._order is not None:
            out = out[self._order]
        return out.reshape(-1)


class State:
    """The kernel's state of a problem, speaking the shapes that the user sees.

    Unless they are trusted, dual variables to start from give way to zeros where those have the higher dual.
    """

    def __init__(
        self,
        problem: Problem,
        alpha: Array | None,
        seed: int,
        threads: int,
        w: Array | None = None,
        single_precision: bool = False,
        trusted: bool = False,
    ) -> None:
        self.problem = problem
        self.threads = threads
        self.layout = layout = Layout(problem, True, threads)
        rows, variance = layout.rows(problem), problem.variance
        per_class = variance.mean(axis=0) if variance is not None and variance.ndim == 2 else variance
        #: mean over the examples of C x' S x: how far a step along one example can reach
        self.stiffness = float(problem.cost.mean()) * problem.mapping.stretch * rows.mean_square(per_class)
        self.distance = 0.0
        self.reached = False  # whether the last passes have come to their goal
        work = rows.numbers * layout.classes + problem.n_examples  # of a pass over everything
        self._max_visits = max(1, int(_WORK * problem.n_examples / work))
        self._kernel = layout.kernel(problem, rows, seed, single_precision)
        self._squared = problem.loss == "squared_hinge"
        price = Newton.price(self._kernel, problem.n_examples, rows.numbers)
        many = layout.n_weights >= _SOME and problem.n_examples >= _MANY * layout.n_weights
        first = alpha is None and self.stiffness > STIFF if self._squared else many
        #: visits of each example after which Newton's method is worth what it costs
        self.plain_passes = np.inf if price > _DEAR else price if self._squared else max(price, _LATE)
        if first and price < _CHEAP:
            self.plain_passes = 0.0
        self._newton: Newton | None = None
        if alpha is not None:
            reached = self.reset(alpha)
            if reached < self._kernel.nothing() and not trusted:
                self.reset(np.zeros(alpha.size))
        if w is not None and np.isfinite(w).all():
            lower = -np.inf if problem.lower is None else problem.lower
            upper = np.inf if problem.upper is None else problem.upper
            self._kernel.set_weights(self.layout.as_kernel(np.clip(w, lower, upper)))

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return self.problem.n_examples

    @property
    def wide(self) -> bool:
        """Whether there are as many weights as examples."""
        return self.layout.n_weights >= self.n_examples

    def reset(self, alpha: Array) -> float:
        """Take these dual variables; return their dual."""
        return self._kernel.set_alpha(np.ascontiguousarray(alpha, dtype=np.float64).reshape(-1), self.threads)

    def explore(self) -> None:
        """Have the next pass visit every example."""
        self._kernel.explore()

    def optimize(
        self, max_passes: int, goal: float, max_visits: float = np.inf
    ) -> list[tuple[int, int, float, float, float]]:
        """Run passes; return for each (visited, awake, dual, estimate of the relative gap, seconds)."""
        most = int(max(1, min(self._max_visits, max_visits)))
        passes, self.reached = self._kernel.optimize(max_passes, most, goal, self.threads)
        return passes

    @property
    def nothing(self) -> float:
        """The dual where all dual variables are 0."""
        return self._kernel.nothing()

    def draw(self, centre: Array, kappa: float) -> None:
        """Have the passes draw the weights to a centre, kappa times as strongly as the prior does."""
        self._kernel.draw(self.layout.as_kernel(centre), kappa)

    def certify(self) -> tuple[float, float]:
        """Return the lower bound of the dual variables and the upper bound of the present weights.

        `distance` is then the part of the upper bound that is paid to the prior.
        """
        lower, upper, self.distance = self._kernel.certify(self.threads)
        return lower, upper

    def descend(self, start: Array | None, tol: float) -> tuple[float, float] | None:
        """Take a step of Newton's method, the first time from weights to start from, or the present ones.

        Return bounds as `certify` does, or None where nothing better is found.
        """
        if self._newton is not None:
            found = self._newton.step()
        else:
            w = self.layout.as_kernel(self.weights() if start is None else start)
            self._kernel.draw(w, 0.0)
            self._kernel.set_weights(w)
            self._newton = Newton(
                self._kernel,
                self.layout.mean,
                self.layout.variance,
                self.problem.cost,
                self._squared,
                tol,
                self.threads,
            )
            found = self._newton.begin(self.n_examples if self.plain_passes == 0 else 0)
        if found is None:
            return None
        lower, upper, self.distance = found
        return lower, upper

    def weights(self) -> Array:
        """Return the present weights, in the shape that the user sees."""
        return self.layout.offered(self._kernel)

    def alpha(self, into: Array | None = None) -> Array:
        """Return the dual variables, in a new array or in one that is at hand."""
        out = np.empty(self.problem.alpha_shape) if into is None else into
        self._kernel.get_alpha(out.reshape(-1))
        return out
