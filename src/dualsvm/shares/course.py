"""The course of one problem over its shares: where it stands, what to ask for next, and what that has proven.

The shares agree on weights by the alternating direction method of multipliers (see `share`). From the mean v of their
v_k, which follows from what their dual variables make together, the weights to agree on are

    z  =  clip((s m + K v) / (s + K))

for K shares. The gap between the bounds that z and the dual variables prove has two parts: what z and u differ by,
1/2 (z - m - S u)' S^-1 (z - m - S u), which is large where s is too small, and what the examples lack at z, which is
large where s is too large. So s follows their ratio.
"""

from __future__ import annotations

import numpy as np

from ..checks import Array
from ..solution import relative_gap
from .exchange import Order, Report
from .ground import Ground, padded
from .share import RELAX

_FAIR = 3.0  # times as large one part of the gap may be as the other
_QUICK = 0.25  # power of their ratio that s follows, at most
_TIRED = 0.6  # ... times this, whenever s turns back: a freedom that never comes to rest may lead round in circles
_AWAKE = 1.3  # ... and times this when it has gone on in one direction for so many rounds
_STEADY = 8
_STEP = 2.0  # times as large or small s becomes, at most
_RARE = 0.01  # of a typical coordinate: one that there is less of is as free as that
_CROSSED = 1e-3  # of the bounds: if they cross by more, that is not rounding
_DUST = 1e-12  # of the linear part of the dual: so much is always rounding


class Course:
    """A problem under way: what the dual variables of all shares make, and the best weights certified.

    Parameters
    ----------
    ground : Ground
        What is said of the weights.
    tol : float
        The relative gap that is asked for.
    shares : int
        Number of shares.
    single : bool, default False
        Whether the weights are to be float32 numbers.
    """

    def __init__(self, ground: Ground, tol: float, shares: int, single: bool = False) -> None:
        self.ground, self.tol, self.shares, self.single = ground, tol, shares, single
        self.u, self.linear = np.zeros(ground.n_weights), 0.0
        self.lower, self.upper = ground.conjugate(self.u), np.inf
        self.w: Array | None = None  # those of the upper bound
        self._kept = -np.inf  # the lower bound of dual variables that the shares still have
        self.estimate = np.inf
        self.visited = self.awake = 0
        self._shape = np.ones(ground.n_weights)
        self._freedom, self._quick = 1.0, _QUICK
        self._up: bool | None = None  # whether s was last raised
        self._steady = 0  # how often in a row
        self._z, self._v = ground.weights(self.u), self.u
        self._order: Order | None = None  # of the present round
        self._pivot: Array | None = None
        self._anew = True
        self.better = False  # whether the last proof was of the best dual variables
        self._enough = False  # whether the last weights offered seem good enough, and nobody can prove how good

    @property
    def gap(self) -> float:
        """Relative gap between the bounds."""
        return relative_gap(self.lower, self.upper) if np.isfinite(self.upper) else np.inf

    @property
    def converged(self) -> bool:
        """Whether the gap is within the tolerance, with dual variables that have not been lost."""
        known = np.isfinite(self._kept) and np.isfinite(self.upper)
        return bool(known and relative_gap(self._kept, self.upper) <= self.tol)

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
        return Order(self._z, single=self.single).offer

    def begin(self, stiffness: float, w: Array | None = None) -> None:
        """Take note of the mean of C x' S x over the examples, and maybe of weights to begin with."""
        if self.shares > 1:
            self._freedom = 1 / max(1.0, stiffness)  # passes over problems with s times the variance then do well
        if w is not None:
            self._z = w

    def begin_anew(self, report: Report, shape: Array) -> None:
        """Take note of where the shares are, when some of them have just begun."""
        self._shape = shape
        self._stand(report)
        self._pivot, self._anew, self.better = self._z, True, False
        self._kept, self._enough = -np.inf, False
        self._v = self._pivot + self._freedom / self.shares * self._spread(self.u)
        self._z = self._agreed()

    def order(self, effort: float, certify: bool) -> Order:
        """Return what to ask for in the next round; `certify`: whether to prove how good the present weights are."""
        state = self._z, self._freedom, self._pivot, self._anew
        self._order = Order(*state, effort, self.better, certify, self.single)
        self._pivot, self._anew = None, False
        return self._order

    def take(self, report: Report) -> None:
        """Take note of what a round has brought."""
        assert self._order is not None
        self._stand(report)
        factor, unproven = 1.0, self._order.certify and bool(np.isnan(report.loss))
        if self._order.certify:
            gap, away = self._bound(self._order.offer, report.loss), self.ground.apart(self._z, self.u)
            factor = self._balance(away, report.gap if unproven else gap - away)
        if report.change is not None:
            self.u = self.u + padded(report.change.dense, len(self.u))
            self.linear += report.rise
        self.visited, self.awake = report.visited, report.awake
        self.estimate = report.gap / max(abs(self.dual + report.gap), np.finfo(float).tiny)
        self._enough = unproven and self.estimate <= self.tol
        mean = self._freedom / self.shares * self._spread(self.u)
        self._v = self._v + RELAX * (self._z - self._v + mean)
        self._z = self._agreed()
        if factor != 1:
            self._pivot, self._freedom = self._z, factor * self._freedom
            self._v = self._pivot + factor * (self._v - self._pivot)
            self._z = self._agreed()

    def _stand(self, report: Report) -> None:
        """Take note of where the shares were, and of weights that have come up."""
        told = [vector.length for vector in (report.u, report.change) if vector is not None]
        self.ground = self.ground.wide(max(told, default=0))
        n = self.ground.n_weights
        u = self.u if report.u is None else report.u.dense  # computed anew
        self.u, self._v, self._z, self._shape = (
            padded(each, n, rest) for each, rest in ((u, 0.0), (self._v, 0.0), (self._z, 0.0), (self._shape, 1.0))
        )
        self.w = None if self.w is None else padded(self.w, n)
        self.linear = report.linear

    def _spread(self, u: Array) -> Array:
        return self._shape * self.ground.scaled(u)

    def _agreed(self) -> Array:
        """Return the weights that the shares are to agree on."""
        s = self._freedom * self._shape
        mean = 0.0 if self.ground.mean is None else s * self.ground.mean
        return self.ground.confined((mean + self.shares * self._v) / (s + self.shares))

    def _balance(self, away: float, rest: float) -> float:
        """Return by how much s is to change, given what z and u differ by, and what the examples lack at z."""
        if not (away > 0 and rest > 0) or 1 / _FAIR <= away / rest <= _FAIR:
            return 1.0
        up = away > rest
        self._steady = self._steady + 1 if up == self._up else 0
        if self._up is not None and up != self._up:
            self._quick *= _TIRED
        elif self._steady >= _STEADY:
            self._quick = min(_QUICK, _AWAKE * self._quick)
        self._up = up
        return float(min(max((away / rest) ** self._quick, 1 / _STEP), _STEP))

    def prove(self, w: Array, report: Report) -> None:
        """Take note of what weights lose, and of what the dual variables make, as computed anew."""
        self._stand(report)
        self._bound(w, report.loss)

    def _bound(self, w: Array, loss: float) -> float:
        """Take note of the bounds that u, the linear part and the losses at w prove; return the gap between them."""
        w = padded(w, self.ground.n_weights)
        lower, upper = self.dual, self.ground.distance(w) + loss
        self.better = lower >= self._kept
        self.lower, self._kept = max(self.lower, lower), max(self._kept, lower)
        if self.lower - upper > _CROSSED * max(abs(lower), abs(upper)) + _DUST * abs(self.linear):
            raise ValueError(
                f"what was found proves that the objective is {self.lower:.6g} at least, but what the examples lose "
                f"adds up to {upper:.6g} only: a search misses constraints (one that is not exact has to say so)"
            )
        if upper < self.upper:
            self.upper, self.w = upper, w
        # where rounding makes them cross, it is at least as large as that: the lower bound gives way by as much
        self.lower = min(self.lower, 2 * self.upper - self.lower)
        self._kept = min(self._kept, self.lower)
        return upper - lower


def shape_of(masses: Array, shares: int) -> Array:
    """Return how free shares are to be in every coordinate, given how much there is of each in all examples."""
    total = float(masses.sum())
    if shares == 1 or not 0 < total < np.inf:
        return np.ones(len(masses))
    typical = float((masses / total) @ masses)
    return np.asarray(1 / np.sqrt(_RARE + masses / typical))
