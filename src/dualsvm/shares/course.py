"""The course of one problem over its shares: where it stands, what to ask for next, and what that has proven.

A round is a step of the proximal gradient method on the dual, which shares take side by side (see `share`). On its
own it is slow and steady, so it is accelerated: it starts not from where the last round has led, but a little further
on in the same direction (Nesterov; only u has to go on, no dual variable leaves its bounds), and begins anew where
the dual falls. And it need not be as careful as the worst case asks for: how much the moves of the shares add up to,
of what they could at most, is seen in every round, and changes slowly.
"""

from __future__ import annotations

import numpy as np

from ..checks import Array
from ..solution import relative_gap
from .exchange import Order, Report, Vector
from .ground import Ground, padded

_MARGIN = 1.5  # times as careful as the last round has shown to be enough
_CALMER = 0.9  # ... but no less than this times as careful as in the last round


class Course:
    """A problem under way: what the dual variables of all shares make, and the best weights certified.

    Parameters
    ----------
    ground : Ground
        What is said of the weights.
    tol : float
        The relative gap that is asked for.
    single : bool, default False
        Whether the weights are to be float32 numbers.
    """

    def __init__(self, ground: Ground, tol: float, single: bool = False) -> None:
        self.ground, self.tol, self.single = ground, tol, single
        self.u, self.linear = np.zeros(ground.n_weights), 0.0
        self.lower, self.upper = ground.conjugate(self.u), np.inf
        self.w: Array | None = None  # those of the upper bound
        self.estimate = np.inf
        self.visited = self.awake = 0
        self._enough = False  # whether the last weights asked about seem good enough, and nobody can prove how good
        self._asked: Array | None = None  # weights that the present round is to bound
        self._before, self._time, self._momentum, self._boldness = self.u, 1.0, 0.0, 1.0
        self._ahead = self.u
        self._dual = self.lower

    @property
    def gap(self) -> float:
        """Relative gap between the bounds."""
        return relative_gap(self.lower, self.upper) if np.isfinite(self.upper) else np.inf

    @property
    def converged(self) -> bool:
        """Whether the gap is within the tolerance."""
        return bool(self.gap <= self.tol)

    @property
    def done(self) -> bool:
        """Whether the gap is within the tolerance, or seems to be where nobody can prove it."""
        return self.converged or self._enough

    @property
    def dual(self) -> float:
        """The dual, as far as it is known."""
        return self.linear + self.ground.conjugate(self.u)

    def weights(self) -> Array:
        """Return the present weights."""
        w = self.ground.weights(self.u)
        return w.astype(np.float32).astype(np.float64) if self.single else w

    def order(self, effort: float, certify: bool) -> Order:
        """Return what to ask for in the next round; `certify`: whether to prove how good the present weights are."""
        self._asked = self.weights() if certify else None
        later = (1 + np.sqrt(1 + 4 * self._time**2)) / 2
        self._momentum, self._time = (self._time - 1) / later, later
        self._ahead = self.u + self._momentum * (self.u - self._before)
        return Order(Vector.of(self._ahead), self._momentum, self._boldness, effort, self._asked)

    def take(self, report: Report) -> None:
        """Take note of what a round has brought."""
        self._stand(report)
        if self._asked is not None:
            self._bound(self._asked, report.loss)
        change = np.zeros_like(self.u) if report.change is None else padded(report.change.dense, len(self.u))
        self._before, self.u, self.linear = self.u, self.u + change, self.linear + report.rise
        self.visited, self.awake = report.visited, report.awake
        self.estimate = report.gap / max(abs(self.dual + report.gap), np.finfo(float).tiny)
        self._enough = self._asked is not None and bool(np.isnan(report.loss)) and self.estimate <= self.tol
        self._learn(report.curvature)

    def _stand(self, report: Report) -> None:
        """Take note of where the shares were, and of weights that have come up."""
        told = [vector.length for vector in (report.u, report.change) if vector is not None]
        self.ground = self.ground.wide(max(told, default=0))
        u = self.u if report.u is None else report.u.dense  # computed anew
        self.u, self._before, self._ahead = (
            padded(each, self.ground.n_weights) for each in (u, self._before, self._ahead)
        )
        self.linear = report.linear

    def _learn(self, most: float) -> None:
        """Learn from the last round how bold the next one may be, and whether to go on in its direction."""
        move, dual = self.u - self._ahead, self.dual
        if most > 0:
            needed = float(move @ self.ground.scaled(move)) / most
            self._boldness = min(1.0, max(_MARGIN * needed, _CALMER * self._boldness))
        if dual < self._dual:
            self._time = 1.0
        self._dual = dual

    def prove(self, w: Array, report: Report) -> None:
        """Take note of what weights lose, and of what the dual variables make, as computed anew."""
        self._stand(report)
        self._bound(w, report.loss)

    def begin_anew(self, report: Report) -> None:
        """Take note of where the shares are, when some of them have just begun."""
        self._stand(report)
        self._before, self._time, self._boldness, self._dual = self.u, 1.0, 1.0, self.dual

    def _bound(self, w: Array, loss: float) -> None:
        """Take note of the bounds that u, the linear part and the losses at w prove."""
        w = padded(w, self.ground.n_weights)
        lower, upper = self.dual, self.ground.distance(w) + loss
        self.lower = max(self.lower, lower)
        if upper < self.upper:
            self.upper, self.w = upper, w
        # where rounding makes them cross, it is at least as large as that: the lower bound gives way by as much
        self.lower = min(self.lower, 2 * self.upper - self.lower)
