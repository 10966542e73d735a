"""Newton's method, for problems whose primal is smooth, or nearly so, and whose weights are few.

With a squared loss and without bounds on the weights the primal is piecewise quadratic,

    f(w) = 1/2 (w - m)' S^-1 (w - m) + sum_i C_i slack_i(w)^2

and to any w belong the dual variables 2 C_i slack_i(w), which make of the rows the weights own(w) = m + S u. The
gradient of f is S^-1 (w - own), and the gap between f(w) and the dual of those variables is
1/2 (w - own)' S^-1 (w - own): every look at the gradient is a certificate.

Losses that are not squared have kinks, and become piecewise quadratic where those are rounded off over a width. The
dual variables are then C_i times the slopes, and the gap has a second part: what the rounded kinks cost, which falls
with the square of the width. The width follows the steps down until that is little enough. Where there are many
examples for every weight, enough of them are still at the kinks to tell the Hessian.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from .checks import Array

_MOST = 2048  # weights
_SHORTEST = 1e-8  # of a step; the longest is as much longer than the one that the Hessian tells
_SHORTER = 1e-3  # times so long, at least, where a step was too long
_SLIGHT = 1e-4  # of what the slope promises: a step must bring more
_STEEP = 0.5  # of the slope at the beginning: a step that ends there was too short
_STEPS = 5  # that are usually taken
_FEW = 20  # steps that must have halved the gap, or taken some of the examples to where they lead
_QUICK = 32  # products of a dense row, and of a factorization, in the time of one of a sparse row
_STRIDES = (64, 16, 4)  # at the beginning, one example stands for so many, if that leaves
_ENOUGH = 5  # examples for every weight
_KNOWN = 0.3  # of the objective, times weights per example: no better can some of the examples tell all
_WIDE = 4.0  # mean slacks: the width of the kinks at the beginning
_NARROWER = 4.0  # times so narrow at once, at most
_AIM = 0.4  # of the tolerance: what rounded kinks may cost
_PLENTY = 200  # examples in the Hessian, for every weight: more would hardly change it
_STRANGE = 2.0  # times the objective that some of the examples told: others are not like them
_POOR = 0.1  # of the gap left by a step: the Hessian is not what it was


class Newton:
    """Steps of Newton's method on the state of a kernel.

    Parameters
    ----------
    kernel : _core.State
        Of a problem without bounds on the weights, with one slack for each example.
    mean, variance : array or None
        Of the prior.
    cost : array
        Of the examples.
    squared : bool
        Whether the losses are squared.
    tol : float
        Relative gap that is wanted.
    threads : int
        Number of threads.
    """

    def __init__(
        self,
        kernel: Any,
        mean: Array | None,
        variance: Array | None,
        cost: Array,
        squared: bool,
        tol: float,
        threads: int,
    ) -> None:
        self.kernel = kernel
        self.threads = threads
        self.mean = 0.0 if mean is None else mean
        self.scale = np.ones(kernel.n_weights) if variance is None else np.sqrt(variance)
        self.hessian = np.zeros((len(self.scale), len(self.scale)))
        self.counts = np.nan  # what the Hessian is to be multiplied by
        self.plenty = False  # whether it knows enough examples
        self.cost = cost
        self.squared = squared
        self.tol = tol
        self.width = 1.0  # of the kinks
        self.value = np.inf  # what the steps lead down
        self.best, self.vain = np.inf, 0  # the gap when it was last halved, and the steps since

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

        With `n_examples` first go to where some of them lead.
        """
        d = len(self.scale)
        strides = [stride for stride in _STRIDES if n_examples >= _ENOUGH * stride * d]
        if not self.squared:
            self._look(strides[0] if strides else 1)
            width = _WIDE * self.loss / max(float(self.cost.sum()), np.finfo(float).tiny)
            self.width = width if 0 < width < np.inf else 1.0
        for stride in strides:
            self._look_wider(stride)
            for _ in range(_FEW):
                if not self._improve(stride, _KNOWN * d * stride / n_examples):
                    break
        return self._look_wider(1)

    def _look_wider(self, stride: int) -> tuple[float, float, float]:
        """Look at more of the examples; if they differ from those before, these cannot tell the Hessian of all."""
        before = self.value
        found = self._look(stride)
        self.plenty = self.plenty and self.value < _STRANGE * before
        return found

    def step(self) -> tuple[float, float, float] | None:
        """Go to better weights; return the bounds and the distance there, or None where no better ones are found."""
        better = self.gap + self.rounding < 0.5 * self.best
        self.best, self.vain = (self.gap + self.rounding, 0) if better else (self.best, self.vain + 1)
        return self.found if self.vain < _FEW and self._improve(1) else None

    def _improve(self, stride: int, known: float = 0.0) -> bool:
        """Step, and return whether there is more to come: whether that led down, and by more than can be known."""
        direction = self._direction(stride)
        promise = float((self.slope * direction).sum())
        if not np.isfinite(promise):
            return False
        aim = max(_AIM * self.tol, known) * self.upper
        if promise < 2 * self.rounding:
            self.width *= min(max(np.sqrt(0.8 * aim / self.rounding), 1 / _NARROWER), 1.0)
        w = np.empty_like(self.scale)
        self.kernel.get_weights(w)
        if promise < 2 * aim and self.rounding <= aim and stride > 1:
            self.kernel.set_weights(w + self.scale * direction)
            return False
        return self._search(w, direction, promise, stride)

    def _direction(self, stride: int) -> Array:
        """Return where the Hessian and the slope lead, in units of the prior, or NaN where rounding has spoilt it."""
        if not self.plenty:
            members = self.kernel.curve(self.hessian, self.threads)
            self.counts = stride / (1.0 if self.squared else self.width)
            self.plenty = members >= _PLENTY * len(self.scale)
        with np.errstate(over="ignore", invalid="ignore"):
            system = self.counts * self.scale[:, None] * self.hessian * self.scale
        system[np.diag_indices_from(system)] += 1.0
        direction = self.slope.copy()
        if not (np.isfinite(self.gap) and _core.solve_symmetric(system, direction)):
            direction.fill(np.nan)
        return direction

    def _search(self, w: Array, direction: Array, promise: float, stride: int) -> bool:
        """Step from w to where it leads down enough, and is not as steep any more; return whether that was found."""
        value, gap = self.value, self.gap
        length, short, long = 1.0, 0.0, np.inf
        while _SHORTEST < length < 1 / _SHORTEST:
            self.kernel.set_weights(w + length * self.scale * direction)
            self._look(stride)
            rise = -float((self.slope * direction).sum())
            if self.value < value - _SLIGHT * length * promise or (self.squared and self.gap < 0.5 * gap):
                if rise >= -_STEEP * promise or long < 2 * length:
                    self.plenty = self.plenty and self.gap < _POOR * gap
                    return True
                short, length = length, np.sqrt(length * long) if long < np.inf else 2 * length
                continue
            self.plenty = False
            long = length
            # to where a parabola with these slopes has its minimum, or to where the tangents meet, if that is nearer
            nearer = min(promise, (value - self.value) / length + rise) / (promise + rise) if rise > 0 else 0.5
            length *= min(max(nearer, _SHORTER), 0.5)
            if length <= short:
                length = np.sqrt(short * long)
        self.kernel.set_weights(w)
        self._look(stride)
        return False

    def _look(self, stride: int) -> tuple[float, float, float]:
        """Answer to the present weights with one run of examples in `stride`, which stands for so many."""
        lower, upper, distance, smooth, rounding = self.kernel.answer(self.width, stride, self.threads)
        w, own = np.empty_like(self.scale), np.empty_like(self.scale)
        self.kernel.get_weights(w)
        self.kernel.own(own)
        self.found = lower, upper, distance
        self.loss = stride * (upper - distance)
        self.upper = distance + self.loss
        self.value = distance + stride * smooth
        self.rounding = stride * rounding
        self.slope = (self.mean + stride * (own - self.mean) - w) / self.scale  # downwards, in units of the prior
        with np.errstate(over="ignore"):
            self.gap = 0.5 * float(np.square(self.slope).sum())
        return self.found
