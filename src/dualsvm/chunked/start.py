"""What a run starts from: dual variables of all rows, and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import Array
from ..problem import Problem
from ..solution import feasible


@dataclass
class Start:
    """Dual variables and weights, as a fit over rows in the same order left them; costs and all else may differ.

    Attributes
    ----------
    alpha : CSC array of shape (lines, rows)
        Dual variables, those of a row in a column, in the order of the rows.
    w : array
        Weights, as the user sees them.
    at : int
        How many columns have been taken.
    """

    alpha: Any
    w: Array
    at: int = 0

    def fits(self, problem: Problem) -> bool:
        """Whether this is a start of a problem, which may be that of a chunk."""
        return self.w.shape == problem.weight_shape and self.alpha.shape[0] == np.prod(
            problem.alpha_shape[1:], dtype=int
        )

    def take(self, problem: Problem) -> Array:
        """Return dual variables of the problem of the next rows: their own, clipped; 0 where there are none."""
        n, lines = problem.alpha_shape[0], self.alpha.shape[0]
        known = self.alpha[:, self.at : self.at + n].toarray().T
        self.at += n
        alpha = np.zeros((n, lines))
        alpha[: len(known)] = known
        return feasible(problem, alpha.reshape(problem.alpha_shape))
