"""What a run starts from: dual variables of all rows, and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import Array
from ..data import Chunk
from ..problem import Problem
from ..solution import feasible


@dataclass(frozen=True)
class Start:
    """Dual variables and weights, as a fit over rows in the same order left them; costs and all else may differ.

    Attributes
    ----------
    alpha : CSC array of shape (lines, rows)
        Dual variables, those of a row in a column.
    w : array
        Weights, as the user sees them.
    """

    alpha: Any
    w: Array

    def fits(self, problem: Problem) -> bool:
        """Whether this is a start of a problem, which may be that of a chunk."""
        return self.w.shape == problem.weight_shape and self.alpha.shape[0] == np.prod(
            problem.alpha_shape[1:], dtype=int
        )

    def of(self, problem: Problem, chunk: Chunk) -> Array:
        """Return dual variables of the problem of a chunk: those of its rows, clipped; 0 where there are none."""
        known = self.alpha[:, chunk.start : chunk.stop].toarray().T
        alpha = np.zeros((len(chunk), self.alpha.shape[0]))
        alpha[: len(known)] = known
        return feasible(problem, alpha.reshape(problem.alpha_shape))
