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

Near the optimum f(w) is close to it long before the gap is small, as that has the square of the gradient in it. What
is lacking are dual variables, and those of most examples are known: where the loss is a line, they change only when w
crosses a kink. So the next steps look only at the examples whose losses are curved, and put the tangent
alpha_i (l_i - w.x_i) for every other loss. Tangents lie below the losses, so that the dual of this problem, which is
that of all with some of the dual variables held fast, bounds the optimum from below; f(w) bounds it from above.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _core
from .checks import Array

_MOST = 2048  # weights
_SHORTEST = 1e-8  # of a step; the longest is as much longer than the one that the Hessian tells
_SHORTER = 1e-3  # times so long, at least, where a step was too long
_SLIGHT = 1e-4  # of what the slope promises: a step must bring more
_STEEP = 0.5  # of the slope at the beginning: a step that ends there was too short
_TOGETHER = 1.001  # times the longest step that was too short: no other is between that and one that was too long
_NOTHING = 1e-16  # of the objective: what a step promises is lost in rounding
_STEPS = 5  # that are usually taken
_FEW = 20  # steps that must have halved the gap, or taken some of the examples to where they lead
_QUICK = 32  # products of a dense row, and of a factorization, in the time of one of a sparse row
_STRIDES = (64, 16, 4)  # at the beginning, one example stands for so many, if that leaves
_ENOUGH = 5  # examples for every weight
_KNOWN = 0.3  # of the objective, times weights per example: no better can some of the examples tell all
_WIDE = 4.0  # mean slacks: the width of the kinks at the beginning
_NARROWER = 4.0  # times so narrow at once, at most
_AIM = 0.4  # of the tolerance: what rounded kinks may cost
_COARSE = 3.0  # times as much they may cost where some of the examples stand for all
_PLENTY = 200  # examples in the Hessian, for every weight: more would hardly change it,
_SOME = 100  # ... where the others are not far from them, as at kinks
_SHORT = 2.0  # times what rounded kinks cost: a step that promises less takes few examples past theirs
_PART = 0.5  # of the examples with a curved loss: to look at no others is worth it
_STRANGE = 2.0  # times the objective that some of the examples told: others are not like them
_POOR = 0.1  # of the gap left by a step: the Hessian is not what it was


class Look(NamedTuple):
    """What a look at the examples finds, where some stand for all multiplied by as many.

    Attributes
    ----------
    bounds : tuple of float
        Lower and upper bound, and the distance, as the kernel tells them.
    upper : float
        The objective.
    value : float
        The same with rounded kinks: what steps lead down.
    rounding : float
        How much of the gap is due to these.
    curve : float
        What the outer products of the rows count in the Hessian, all together.
    slope : ndarray
        Downwards, in units of the prior.
    gap : float
        How much of the gap is due to that.
    """

    bounds: tuple[float, float, float]
    upper: float
    value: float
    rounding: float
    curve: float
    slope: Array
    gap: float


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
        self.counted = 0.0  # what the rows count in it, all together
        self.plenty = False  # whether it knows enough examples
        self.cost = cost
        self.squared = squared
        self.tol = tol
        self.width = 1.0  # of the kinks
        self.here = Look((-np.inf, np.inf, 0.0), np.inf, np.inf, np.inf, 0.0, self.scale, np.inf)
        self.refining = False  # whether looks are at those only whose losses were curved at the last one at all
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
            loss = self.here.upper - self.here.bounds[2]
            width = _WIDE * loss / max(float(self.cost.sum()), np.finfo(float).tiny)
            self.width = width if 0 < width < np.inf else 1.0
        for stride in strides:
            self._look_wider(stride)
            for _ in range(_FEW):
                if not self._improve(stride, _KNOWN * d * stride / n_examples):
                    break
        return self._look_wider(1)

    def _look_wider(self, stride: int) -> tuple[float, float, float]:
        """Look at more of the examples; if they differ from those before, these cannot tell the Hessian of all."""
        before = self.here.value
        self._look(stride)
        self.plenty = self.plenty and self.here.value < _STRANGE * before
        return self.here.bounds

    def step(self) -> tuple[float, float, float] | None:
        """Go to better weights, or find better dual variables for these; return the bounds and the distance.

        None where neither is found.
        """
        gap = self.here.gap + self.here.rounding
        better = gap < 0.5 * self.best
        self.best, self.vain = (gap, 0) if better else (self.best, self.vain + 1)
        return self.here.bounds if self.vain < _FEW and self._improve(1) else None

    def _improve(self, stride: int, known: float = 0.0) -> bool:
        """Step, and return whether there is more to come: whether that led down, and by more than can be known."""
        direction, promise = self._direction(stride)
        upper = self.here.upper
        aim = max(_AIM * self.tol, known) * (_COARSE if stride > 1 else 1.0) * upper
        short = 2 * self.tol * upper if self.squared else _SHORT * self.here.rounding
        total = float(self.cost.sum()) * (2.0 if self.squared else 1.0)
        if promise < short and self.here.curve < _PART * total:
            return self._refine(stride, aim, direction, promise)
        return self._advance(stride, aim, direction, promise)

    def _refine(self, stride: int, aim: float, direction: Array, promise: float) -> bool:
        """Step on and on with those alone whose losses are curved; the others then follow, unless that is enough.

        Until then their losses are tangents, which lie below: the lower bounds found on the way hold for all. Where
        that leads further down than promised, it is because of the tangents.
        """
        here, w = self.here, self._weights()
        target = here.upper - self.tol * abs(here.upper)
        course = direction, promise
        self.refining = True
        for _ in range(_FEW):
            more = self._advance(stride, aim, *course)
            lower, upper = self.here.bounds[0], self.here.upper
            if not more or here.upper - upper > promise or (stride == 1 and not lower < target <= self.here.value):
                break
            course = self._direction(stride)
        self.refining = False
        ahead, self.here = self._weights(), here
        if stride == 1 and lower >= target:
            self.kernel.set_weights(w)
            self.here = here._replace(bounds=(lower, *here.bounds[1:]))
            return True
        if here.upper - upper <= promise:
            if stride > 1:
                return False
            direction = (ahead - w) / self.scale
            promise = float((here.slope * direction).sum())
        return self._search(w, direction, promise, stride)

    def _advance(self, stride: int, aim: float, direction: Array, promise: float) -> bool:
        """Go where the direction leads, and make the kinks narrower; return whether there is more to come."""
        if not np.isfinite(promise):
            return False
        w, rounding, narrower = self._weights(), self.here.rounding, 1.0
        if promise < 2 * rounding:
            narrower = min(max(np.sqrt(0.8 * aim / rounding), 1 / _NARROWER), 1.0)
            self.width *= narrower
        if narrower == 1.0 and promise <= _NOTHING * abs(self.here.value):
            return False
        if promise < 2 * aim and rounding <= aim and stride > 1:
            self.kernel.set_weights(w + self.scale * direction)
            return False
        return self._search(w, direction, promise, stride)

    def _direction(self, stride: int) -> tuple[Array, float]:
        """Return where the Hessian and the slope lead, in units of the prior, and what that promises.

        NaN where rounding has spoilt it. A Hessian that knows enough examples only learns how many there are now.
        """
        if not self.plenty:
            members = self.kernel.curve(self.hessian, self.threads)
            self.counted = self.here.curve / stride
            self.plenty = members >= (_PLENTY if self.squared else _SOME) * len(self.scale)
        counts = self.here.curve / self.counted if self.counted > 0 else 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            system = counts / (1.0 if self.squared else self.width) * self.scale[:, None] * self.hessian * self.scale
        system[np.diag_indices_from(system)] += 1.0
        direction = self.here.slope.copy()
        if not (np.isfinite(self.here.gap) and _core.solve_symmetric(system, direction)):
            direction.fill(np.nan)
        return direction, float((self.here.slope * direction).sum())

    def _search(self, w: Array, direction: Array, promise: float, stride: int) -> bool:
        """Step from w to where it leads down enough, and is not as steep any more; return whether that was found."""
        before = self.here
        length, short, long = 1.0, 0.0, np.inf
        while _SHORTEST < length < 1 / _SHORTEST and long > _TOGETHER * short:
            self.kernel.set_weights(w + length * self.scale * direction)
            self._look(stride)
            now = self.here
            rise = -float((now.slope * direction).sum())
            led = now.value < before.value - _SLIGHT * length * promise
            if led or (self.squared and now.gap < 0.5 * before.gap):
                if rise >= -_STEEP * promise or long < 2 * length:
                    self.plenty = self.plenty and now.gap < _POOR * before.gap
                    return True
                short, length = length, np.sqrt(length * long) if long < np.inf else 2 * length
                continue
            self.plenty = False
            long = length
            # to where a parabola with these slopes has its minimum, or to where the tangents meet, if that is nearer
            fall = (before.value - now.value) / length + rise
            length *= min(max(min(promise, fall) / (promise + rise) if rise > 0 else 0.5, _SHORTER), 0.5)
            if length <= short:
                length = np.sqrt(short * long)
        self.kernel.set_weights(w + short * self.scale * direction)
        self._look(stride)
        return short > 0

    def _weights(self) -> Array:
        w: Array = self.kernel.get_weights()
        return w

    def _look(self, stride: int) -> None:
        """Answer to the present weights with one run of examples in `stride`, which stands for so many."""
        if self.refining:
            found = self.kernel.refine(self.width, self.threads)
        else:
            found = self.kernel.answer(self.width, stride, self.threads)
        lower, upper, distance, smooth, rounding, curve = found
        own = np.empty_like(self.scale)
        self.kernel.own(own)
        slope = (self.mean + stride * (own - self.mean) - self._weights()) / self.scale
        with np.errstate(over="ignore"):
            gap = 0.5 * float(np.square(slope).sum())
        self.here = Look(
            bounds=(lower, upper, distance),
            upper=distance + stride * (upper - distance),
            value=distance + stride * smooth,
            rounding=stride * rounding,
            curve=stride * curve,
            slope=slope,
            gap=gap,
        )
