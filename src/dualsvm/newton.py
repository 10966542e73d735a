"""Newton's method, for problems whose primal is smooth and whose weights are few.

With a squared loss and without bounds on the weights the primal is piecewise quadratic,

    f(w) = 1/2 (w - m)' S^-1 (w - m) + sum_i C_i slack_i(w)^2

and to any w belong the dual variables 2 C_i slack_i(w), which make of the rows the weights own(w) = m + S u. The
gradient of f is S^-1 (w - own), and the gap between f(w) and the dual of those variables is
1/2 (w - own)' S^-1 (w - own): every look at the gradient is a certificate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from .checks import Array

_MOST = 2048  # weights
_SHORTEST = 1e-8  # of a step
_SLIGHT = 1e-4  # of what the slope promises: a step must bring more
_STEPS = 5  # that are usually taken
_QUICK = 16  # products of a dense row, and of a factorization, in the time of one of a sparse row
_STRIDES = (64, 16, 4)  # at the beginning, one example stands for so many, if that leaves
_ENOUGH = 5  # examples for every weight
_LITTLE = 0.99  # of the objective left by a step: as good as those few examples can tell


class Newton:
    """Steps of Newton's method on the state of a kernel.

    Parameters
    ----------
    kernel : _core.State
        Of a problem with a smooth primal.
    mean, variance : array or None
        Of the prior.
    threads : int
        Number of threads.
    """

    def __init__(self, kernel: Any, mean: Array | None, variance: Array | None, threads: int) -> None:
        self.kernel = kernel
        self.threads = threads
        self.mean = 0.0 if mean is None else mean
        self.scale = np.ones(kernel.n_weights) if variance is None else np.sqrt(variance)
        self.hessian = np.zeros((len(self.scale), len(self.scale)))

    @staticmethod
    def price(kernel: Any, n_rows: int, numbers: float) -> float:
        """Return what its steps cost, in passes over rows with so many numbers; infinity where it is no option."""
        d = kernel.n_weights
        if not kernel.smooth or d > _MOST or numbers == 0:
            return np.inf
        products = n_rows * min((numbers / n_rows) ** 2, d**2 / _QUICK) / 2
        # half of the rows count in the Hessian, and half of its price is what has proved best to wait for
        return float(products / 4 + _STEPS * d**3 / 6 / _QUICK) / numbers

    def begin(self, n_examples: int) -> tuple[float, float, float]:
        """Find the dual variables that belong to the present weights; return their bounds and the distance.

        With `n_examples`, which all have dual variables of 0, first go to where some of them lead.
        """
        for stride in _STRIDES:
            if n_examples >= _ENOUGH * stride * len(self.scale):
                self._look(stride)
                before = np.inf
                while self.upper < _LITTLE * before:
                    before = self.upper
                    self._improve(stride)
        return self._look(1)

    def step(self) -> tuple[float, float, float] | None:
        """Go to better weights; return the bounds and the distance there, or None where no better ones are found."""
        return self._improve(1)

    def _improve(self, stride: int) -> tuple[float, float, float] | None:
        w = np.empty_like(self.scale)
        self.kernel.get_weights(w)
        self.kernel.curve(self.hessian, self.threads)
        with np.errstate(over="ignore", invalid="ignore"):
            system = stride * self.scale[:, None] * self.hessian * self.scale
        system[np.diag_indices_from(system)] += 1.0
        direction = self.slope.copy()
        if not (np.isfinite(self.gap) and _core.solve_symmetric(system, direction)):
            return None
        promise = float((self.slope * direction).sum())
        direction *= self.scale
        upper, gap, length = self.upper, self.gap, 1.0
        while length > _SHORTEST and np.isfinite(direction).all():
            self.kernel.set_weights(w + length * direction)
            found = self._look(stride)
            if self.upper < upper - _SLIGHT * length * promise or self.gap < 0.5 * gap:
                return found
            length /= 2
        self.kernel.set_weights(w)
        self._look(stride)
        return None

    def _look(self, stride: int) -> tuple[float, float, float]:
        """Answer to the present weights with every stride-th example, which stands for so many."""
        lower, upper, distance = self.kernel.answer(stride, self.threads)
        w, own = np.empty_like(self.scale), np.empty_like(self.scale)
        self.kernel.get_weights(w)
        self.kernel.own(own)
        self.upper = distance + stride * (upper - distance)
        self.slope = (self.mean + stride * (own - self.mean) - w) / self.scale  # downwards, in units of the prior
        with np.errstate(over="ignore"):
            self.gap = 0.5 * float(np.square(self.slope).sum())
        return lower, upper, distance
