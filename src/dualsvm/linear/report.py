"""What fits report: arrays by row and by problem, brought together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from ..checks import Array
from ..solution import Record, Solution


def sparse(parts: Sequence[Array]) -> sp.csr_array:
    """Return arrays of one line for every example, side by side, turned around and without their zeros."""
    lines = [line for part in parts for line in part.reshape(len(part), -1).T]
    kept = [np.flatnonzero(line != 0) for line in lines]
    start = np.cumsum([0, *map(len, kept)])
    values = np.concatenate([line[some] for line, some in zip(lines, kept, strict=True)])
    return sp.csr_array((values, np.concatenate(kept), start), shape=(len(lines), len(parts[0])))


def stacked(weights: list[Array]) -> Array:
    """Return the weights of several problems, or of one with several outputs, as (outputs, width)."""
    return np.atleast_2d(weights[0]) if len(weights) == 1 else np.vstack(weights)


def joined(solutions: list[Solution]) -> list[Record]:
    """Return one history of problems solved one after the other.

    The lower bounds add up, with 0 for the problems that are still to come: no objective is negative. An upper bound
    is known only when all problems have one.
    """
    if len(solutions) == 1:
        return solutions[0].history
    joined, passes, lower, upper, seconds = [], 0, 0.0, 0.0, 0.0
    for k, solution in enumerate(solutions):
        last = k == len(solutions) - 1
        for r in solution.history:
            bounds = lower + r.lower, upper + r.upper if last else np.inf
            joined.append(
                Record(passes + r.iteration, r.explored, r.active, *bounds, r.estimate, seconds + r.seconds)
            )
        passes += solution.n_iter
        lower, upper = lower + solution.lower_bound, upper + solution.upper_bound
        seconds += solution.history[-1].seconds
    return joined
