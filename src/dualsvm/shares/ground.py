"""What is said of the weights, and what that makes of dual variables; nothing here knows an example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import Array
from ..solution import conjugate, distance
from ..state import Layout


@dataclass(frozen=True)
class Ground:
    """Prior and bounds of the weights, a vector each or None, in the coordinates in which shares work.

    Where weights may still come up, `grown` makes that of more weights; all begin at 0.
    """

    n_weights: int
    mean: Array | None = None
    variance: Array | None = None
    lower: Array | None = None
    upper: Array | None = None
    covariance: None = None  # it is in the coordinates
    grown: Callable[[int], Ground] | None = None

    @classmethod
    def of(cls, layout: Layout) -> Ground:
        """Return that of problems in the layout of the kernel."""
        return cls(layout.n_weights, layout.mean, layout.variance, *layout.box)

    def wide(self, n: int) -> Ground:
        """Return that of n weights at least."""
        if n <= self.n_weights:
            return self
        if self.grown is None:
            raise ValueError(f"there are {self.n_weights} weights, but a share of the data speaks of {n}")
        return self.grown(n)

    def scaled(self, u: Array) -> Array:
        """Return S u."""
        return u if self.variance is None else self.variance * u

    def free(self, u: Array) -> Array:
        """Return m + S u."""
        return self.scaled(u) if self.mean is None else self.mean + self.scaled(u)

    def confined(self, w: Array) -> Array:
        """Return weights within their bounds."""
        if self.lower is None and self.upper is None:
            return w
        return np.clip(w, -np.inf if self.lower is None else self.lower, np.inf if self.upper is None else self.upper)

    def weights(self, u: Array) -> Array:
        """Return the weights that dual variables make."""
        return self.confined(self.free(u))

    def apart(self, w: Array, u: Array) -> float:
        """Return by how much ``conjugate(u) + w.u`` falls short of what w pays to the prior: 0 at `weights`."""
        return max(0.0, self.distance(w) - float(w @ u) - self.conjugate(u))

    def conjugate(self, u: Array) -> float:
        """Return what u adds to the linear part of the dual."""
        return conjugate(_as_problem(self), u)

    def distance(self, w: Array) -> float:
        """Return what weights pay to the prior."""
        return distance(_as_problem(self), w)


def padded(vector: Array, n: int, rest: float = 0.0) -> Array:
    """Return a vector with zeros, or other numbers, behind it, if it is shorter than n."""
    return vector if len(vector) >= n else np.concatenate([vector, np.full(n - len(vector), rest)])


def _as_problem(ground: Ground) -> Any:
    return ground
