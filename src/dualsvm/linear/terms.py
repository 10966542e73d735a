"""What the user says of the weights, in the coordinates of the problem: the constant feature is the last weight."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..checks import Array, as_array
from ..prior import Prior
from ..rows import Rows

_WIDE = 1e4  # variance of an intercept that is not penalised, in units of the mean square of the scores' scale


@dataclass(frozen=True)
class Wide:
    """A prior of the intercept that says next to nothing: around `mean`, `scale` a typical x'x."""

    mean: float
    scale: float


@dataclass(frozen=True)
class Terms:
    """Prior and bounds of the weights, (outputs, width) each; None where nothing is said. Covariance: (width, width).

    `narrow` is given where the prior of the intercept is wide: a variance, or a covariance, by way of which to solve.
    """

    mean: Array | None = None
    variance: Array | None = None
    covariance: Array | None = None
    lower: Array | None = None
    upper: Array | None = None
    narrow: Array | None = None

    def of(self, output: int | slice) -> dict[str, Any]:
        """Return what concerns one output, or all of them, as keywords of a `Problem`."""
        mean, variance, lower, upper = (
            None if value is None else value[output] for value in (self.mean, self.variance, self.lower, self.upper)
        )
        return {"prior": Prior(mean, variance, self.covariance), "lower": lower, "upper": upper}

    def rounded(self) -> Terms:
        """Return the same with bounds that are float32 numbers within these, so that weights may be rounded."""
        low, high = self.lower, self.upper
        if high is not None:
            high = _rounded(high, np.greater, -np.inf)
        if low is not None:
            low = _rounded(low, np.less, np.inf)
            if high is not None and self.upper is not None:  # with no float32 number between, one nearby has to do
                low = np.where((low > high) & (self.lower <= self.upper), high, low)
        return replace(self, lower=low, upper=high)

    def narrow_of(self, output: int | slice) -> Array | None:
        """Return the narrow variance of one output, or of all."""
        return self.narrow if self.narrow is None or self.covariance is not None else self.narrow[output]


@dataclass(frozen=True)
class Frame:
    """What the weights of a problem stand for: coefficients, and the intercept in units of the constant feature.

    Where the rows were moved by `centre`, the weight of the constant feature speaks of the score there. `single`: the
    user sees float32.
    """

    bias: float
    centre: Array | None
    single: bool

    def seen(self, w: Array) -> tuple[Array, Array]:
        """Return coefficients, (outputs, features), and intercepts, (outputs,)."""
        kind = np.float32 if self.single else np.float64
        if not self.bias:
            return w.astype(kind), np.zeros(len(w), kind)
        coef, intercept = w[:, :-1], w[:, -1] * self.bias
        if self.centre is not None:
            intercept = intercept - coef @ self.centre
        return np.array(coef, kind, order="C"), intercept.astype(kind)

    def weights(self, coef: Array, intercept: Array) -> Array:
        """Return the weights that stand for coefficients and intercepts."""
        coef, intercept = np.atleast_2d(coef).astype(np.float64), np.ravel(intercept)
        if not self.bias:
            return coef
        if self.centre is not None:
            intercept = intercept + coef @ self.centre
        return np.column_stack([coef, intercept / self.bias])


def _rounded(bound: Array, beyond: Any, inward: float) -> Array:
    """Round to float32, towards `inward` where the nearest lies beyond the bound."""
    largest = np.finfo(np.float32).max
    near = np.where(np.isfinite(bound), np.clip(bound, -largest, largest), bound).astype(np.float32)
    return np.where(beyond(near, bound), np.nextafter(near, np.float32(inward)), near).astype(np.float64)


def far_centre(X: Array) -> Array | None:
    """Return the mean of dense rows if they lie further from 0 than from one another, else None."""
    centre = np.asarray(X.mean(axis=0, dtype=np.float64))
    far = float(centre @ centre)
    return centre if np.isfinite(far) and 2 * far > mean_square(X) else None


def mean_square(X: Any) -> float:
    """Return the mean of x'x over the rows; 1 where they are all zeros."""
    mean = Rows(X).mean_square()
    return mean if 0 < mean < np.inf else 1.0


def make_terms(
    prior: Prior | None, lower: Any, upper: Any, outputs: int, d: int, bias: float, wide: Wide | None
) -> Terms:
    """Translate what is said of the weights that the user sees.

    The user speaks of d coefficients and an intercept. Where there is a constant feature of value `bias`, its weight
    is the intercept divided by that. A quantity given for the coefficients only leaves the intercept as it is: its
    mean 0, no bounds, and its weight of variance 1. A `wide` prior of the intercept overrides what is said of it.
    """
    if prior is not None and not isinstance(prior, Prior):
        raise TypeError(f"prior must be a dualsvm.Prior, got {type(prior).__name__}")
    prior = prior or Prior()

    def spread(value: Any, name: str, filler: float, unit: float) -> Array | None:
        if value is None:
            return None
        array = as_array(value, name)
        if array.dtype.kind not in "fiub":
            raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
        array = array.astype(np.float64)
        with_intercept = bias != 0 and array.ndim > 0 and array.shape[-1] == d + 1
        try:
            array = np.broadcast_to(array, (outputs, d + with_intercept)).copy()
        except ValueError:
            shapes = f"({d},)" + (f" or, with the intercept last, ({d + 1},)" if bias else "")
            shapes += f", or one such line for each of the {outputs} classes" if outputs > 1 else ""
            raise ValueError(
                f"{name} must be one number, or have shape {shapes}; got shape {np.shape(value)}"
            ) from None
        if with_intercept:
            array[:, d] /= unit
        elif bias:
            array = np.column_stack([array, np.full(outputs, filler)])
        return array

    covariance = prior.covariance
    if covariance is not None and bias:
        covariance = as_array(covariance, "prior covariance")
        if covariance.dtype.kind not in "fiub" or covariance.shape not in ((d, d), (d + 1, d + 1)):
            raise ValueError(
                f"prior covariance must be a real matrix of shape ({d}, {d}) or, with the intercept last, "
                f"({d + 1}, {d + 1}), got {covariance.dtype} of shape {covariance.shape}"
            )
        square = np.eye(d + 1)
        square[: len(covariance), : len(covariance)] = covariance
        if len(covariance) == d + 1:
            unit = np.append(np.ones(d), bias)
            square /= np.outer(unit, unit)
        covariance = square
    mean = spread(prior.mean, "prior mean", 0.0, bias)
    variance = spread(prior.variance, "prior variance", 1.0, bias**2)
    narrow = None
    if wide is not None:
        if mean is None:
            mean = np.zeros((outputs, d + 1))
        mean[:, d] = wide.mean / bias
        last = wide.scale / bias**2
        if covariance is not None:
            covariance[d, :] = covariance[:, d] = 0
            narrow = covariance.copy()
            covariance[d, d], narrow[d, d] = _WIDE * last, last
        else:
            variance = np.ones((outputs, d + 1)) if variance is None else variance
            narrow = variance.copy()
            variance[:, d], narrow[:, d] = _WIDE * last, last
    return Terms(
        mean,
        variance,
        covariance,
        spread(lower, "lower", -np.inf, bias),
        spread(upper, "upper", np.inf, bias),
        narrow,
    )
