"""The Gaussian prior on the weights, and the checks of whatever is given per weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .checks import LIMIT, Array, as_array


@dataclass(frozen=True, eq=False)
class Prior:
    """A Gaussian prior on the weights: the regulariser is ``1/2 (w - mean)' S^-1 (w - mean)``.

    Parameters
    ----------
    mean : float or array-like, default None
        Where the weights are drawn to; a number, or anything that broadcasts to the shape of the
        weights. None is 0.
    variance : float or array-like, default None
        The diagonal of S, all positive; a number, or anything that broadcasts to the shape of the weights.
        A feature with a large variance is hardly regularised. None is 1.
    covariance : array-like of shape (n_features, n_features), default None
        A full, symmetric positive definite S, in place of `variance`. The rows are rotated once, into a dense
        float64 copy. Bounds on the weights cannot be combined with it. In multiclass problems the weights of
        every class have this covariance, independently of those of the others.

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm import Prior, Problem, solve
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> problem = Problem.binary(X, [1, -1], prior=Prior(mean=[0.5, 0.0], variance=[1.0, 100.0]))
    >>> solve(problem, tol=1e-9).w.round(3).tolist()
    [1.0, -1.0]
    """

    mean: Any = None
    variance: Any = None
    covariance: Any = None

    def __post_init__(self) -> None:
        if self.variance is not None and self.covariance is not None:
            raise ValueError("give either variance (a diagonal) or covariance (a full matrix), not both")


def as_weights(value: ArrayLike | None, name: str, shape: tuple[int, ...], free: float | None = None) -> Array | None:
    """Return a quantity given per weight in the shape of the weights; None if it says nothing.

    Entries must be finite, or equal to `free` where a weight is left free.
    """
    if value is None:
        return None
    array = as_array(value, name)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    array = array.astype(np.float64)
    good = np.abs(array) <= LIMIT
    if free is None and not good.all():
        raise ValueError(f"{name} contains NaN, infinity or a number beyond 1e150: replace those entries")
    if free is not None and not (good | (array == free)).all():
        raise ValueError(f"{name} must hold finite numbers, of 1e150 at most, or {free} where a weight is free")
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"{name} must be one number or have the shape of the weights, {shape}, got shape {array.shape}"
        ) from None
    if free is not None and (array == free).all():
        return None
    return np.ascontiguousarray(array)


def as_covariance(value: ArrayLike | None, d: int) -> Array | None:
    """Return a symmetric positive definite matrix for d features."""
    if value is None:
        return None
    array = as_array(value, "prior covariance")
    if array.dtype.kind not in "fiub" or array.shape != (d, d):
        raise ValueError(
            f"prior covariance must be a real matrix of shape ({d}, {d}), got {array.dtype} of shape {array.shape}"
        )
    array = array.astype(np.float64)
    if not (np.abs(array) <= LIMIT).all():
        raise ValueError("prior covariance contains NaN, infinity or a number beyond 1e150: replace those entries")
    if not np.allclose(array, array.T, rtol=1e-10, atol=1e-10 * np.abs(array).max()):
        worst = np.abs(array - array.T).max()
        raise ValueError(f"prior covariance must be symmetric, but differs from its transpose by up to {worst:.3g}")
    array = np.asarray((array + array.T) / 2)
    try:
        np.linalg.cholesky(array)
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(array)[0]
        raise ValueError(
            f"prior covariance must be positive definite, but its smallest eigenvalue is {smallest:.3g}: "
            "add a small multiple of the identity"
        ) from None
    return array
