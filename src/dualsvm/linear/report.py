"""What fits report: arrays by row and by problem, brought together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..checks import Array
from ..solution import Record, Solution


def sparse(parts: Sequence[Array]) -> sp.csr_array:
    """Return arrays of one line for every example, side by side, turned around and without their zeros."""
    filled = [_core.turned(np.ascontiguousarray(part.reshape(len(part), -1), np.float64)) for part in parts]
    values, columns, starts = filled[0]
    if len(filled) > 1:
        values, columns = (np.concatenate([part[k] for part in filled]) for k in range(2))
        ends = np.cumsum([0, *(len(part[0]) for part in filled)])
        starts = np.append(
            np.concatenate([part[2][:-1] + end for part, end in zip(filled, ends[:-1], strict=True)]), ends[-1]
        )
    return sp.csr_array((values, columns, starts), shape=(len(starts) - 1, len(parts[0])))


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
