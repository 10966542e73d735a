"""Acceleration: passes that draw the weights to a centre, kappa times as strongly as the prior does.

Coordinate ascent is slow where a step along one example reaches far past where all examples together would lead:
where C x' S x is large. Passes over the problem with another term 1/2 kappa (w - c)' S^-1 (w - c) step more
carefully, and a sequence of such problems, the centre c each time a little past the weights of the last (the
accelerated proximal point method), leads to the optimum of the problem itself, whose bounds are computed after each.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .checks import Array

STIFF = 10.0  # plain passes do well up to this stiffness
_SHARE = 0.3  # of the objective that the pull may take: where the prior itself counts, it would only slow things down
_LONG = 60  # visits per example that are too many for one centre: draw more strongly
_SHORT = 15  # so few that, if they brought little, the centre was too near: draw less strongly
_FINE = 0.2  # solve the drawn problem to this part of the gap


class Drawn(Protocol):
    """What is asked of the state of a solve."""

    stiffness: float
    distance: float
    plain_passes: float

    @property
    def wide(self) -> bool:
        """Whether there are as many weights as examples: most can then be fitted, and it is the prior that counts."""

    @property
    def n_examples(self) -> int:
        """Number of examples."""

    def draw(self, centre: Array, kappa: float) -> None:
        """Draw the weights to a centre."""


class Pull:
    """Where the weights are drawn to, and how strongly; kappa is 0 where they are not."""

    def __init__(self, state: Drawn, limit: float | None = None) -> None:
        self.state = state
        stiff = (
            state.stiffness > (STIFF if limit is None else limit) and state.plain_passes > 0
        )  # else Newton's method sees to that
        #: whether to see first how far plain passes come
        self.waits = stiff and state.wide
        self.kappa = state.stiffness if stiff and not self.waits else 0.0
        self.last: Array | None = None

    def begin(self, w: Array) -> None:
        """Draw to the weights that the solve begins with."""
        if self.kappa > 0:
            self.last = w
            self.state.draw(w, self.kappa)

    def left(self, visits: int) -> float:
        """Return how many visits are left for one centre, or for plain passes that are tried first."""
        return _LONG * self.state.n_examples - visits if self.kappa > 0 or self.waits else np.inf

    def goal(self, gap: float, tol: float) -> float:
        """Return to what estimate to solve the drawn problem."""
        return max(_FINE * min(gap, 1.0), 0.3 * tol)

    def move(self, w: Array, before: float, upper: float, gap: float, visits: int) -> None:
        """Move the centre past the weights found, and learn how strong to be, where there is a pull."""
        per_example = visits / self.state.n_examples
        if self.waits and per_example >= _LONG:
            self.waits, self.kappa = False, self.state.stiffness
        elif self.kappa == 0:
            return
        elif self.last is None and gap >= 1:  # a start that says nothing of where the optimum is
            self.kappa = 0.0
        elif per_example >= _LONG:
            self.kappa *= 2
        elif gap > 0.6 * before and 0 < per_example < _SHORT and self.last is not None:
            self.kappa /= 2
        if self.kappa * self.state.distance > _SHARE * upper:
            self.kappa = _SHARE * upper / self.state.distance
        if self.kappa < 1:
            self.kappa = 0.0
        root = np.sqrt(1 / (1 + self.kappa))
        last = w if self.last is None else self.last
        self.state.draw(w + (1 - root) / (1 + root) * (w - last), self.kappa)
        self.last = w
