"""Matchings: every row of a table of pairs is assigned a column of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..checks import Array, as_array
from .sums import SumTask


class Assignment(SumTask):
    """Bipartite matching: every row is assigned a column of its own, by the features of the pairs.

    The score of an assignment y for pair features x is ``sum_i w.x[i, y_i]``, the joint feature vector ``sum_i x[i,
    y_i]``, and the loss the number of rows with a wrong column. The best and the worst assignments are found by
    `scipy.optimize.linear_sum_assignment`.

    Parameters
    ----------
    unmatched : bool, default False
        Whether rows may be left without a column, written -1. Such a row adds nothing to the score, so that pairs
        that score below 0 are not made.
    normalized : bool, default False
        Whether the loss is divided by the number of rows.

    Notes
    -----
    Inputs are arrays of shape (n_rows, n_columns, n_features), with at least as many columns as rows unless rows may
    be unmatched; outputs are vectors of n_rows numbers of columns, all different but for those that are -1.

    Examples
    --------
    Which of the points seen a moment ago is which of those seen now?

    >>> import numpy as np
    >>> from dualsvm import StructuredSVM
    >>> from dualsvm.tasks import Assignment
    >>> rng = np.random.default_rng(0)
    >>> before = rng.normal(size=(20, 5, 2))
    >>> Y = [rng.permutation(5) for _ in before]
    >>> after = [points[np.argsort(y)] + 0.05 * rng.normal(size=(5, 2)) for points, y in zip(before, Y)]
    >>> X = [np.abs(a[:, None] - b[None, :]) for a, b in zip(before, after)]
    >>> model = StructuredSVM(Assignment(), C=1.0, random_state=0).fit(X, Y)
    >>> bool((model.coef_ < 0).all()), model.score(X, Y), model.gap_ <= 1e-3
    (True, 1.0, True)
    """

    def __init__(self, unmatched: bool = False, normalized: bool = False) -> None:
        self.unmatched = unmatched
        self.normalized = normalized

    def _shape(self, x: Any, width: int | None, name: str) -> tuple[int, ...]:
        shape = np.shape(x)
        if len(shape) != 3:
            raise ValueError(f"{name} must have shape (n_rows, n_columns, n_features), got {shape}")
        if width is not None and shape[2] != width:
            raise ValueError(f"{name} must have {width} features, as the first input in training, got {shape[2]}")
        if shape[0] > shape[1] and not self.unmatched:
            raise ValueError(
                f"{name} has {shape[0]} rows, but only {shape[1]} columns, and every row needs one of its own; "
                "unmatched=True allows rows without"
            )
        return shape[:2]

    def _read(self, y: Any, shape: tuple[int, ...] | None, name: str, true: bool) -> Array:
        y = as_array(y, name)
        if y.ndim != 1 or (y.size and y.dtype.kind not in "iu"):
            raise ValueError(f"{name} must be a vector of numbers of columns, got {y.dtype} of shape {y.shape}")
        if shape is not None and len(y) != shape[0]:
            raise ValueError(f"{name} must have a column for each of {shape[0]} rows, got {len(y)}")
        y = y.astype(np.int64)
        least, most = (-1 if self.unmatched else 0), np.inf if shape is None else shape[1] - 1
        if y.size and (y.min() < least or y.max() > most):
            hint = "" if self.unmatched or y.min() != -1 else "; unmatched=True allows rows without a column, -1"
            raise ValueError(f"{name} has columns from {y.min()} to {y.max()}, outside {least} .. {most}{hint}")
        columns, counts = np.unique(y[y >= 0], return_counts=True)
        if (counts > 1).any():
            column = columns[counts > 1][0]
            rows = np.flatnonzero(y == column)
            raise ValueError(f"{name} assigns column {column} to rows {rows[0]} and {rows[1]}: it can have only one")
        return y

    def _coefficients(self, y: Array, shape: tuple[int, ...]) -> Array:
        chosen = np.zeros(shape)
        rows = np.flatnonzero(y >= 0)
        chosen[rows, y[rows]] = 1.0
        return chosen.reshape(-1)

    def _best(self, scores: Array, y: Array | None) -> Array:
        n, m = scores.shape
        table = np.zeros((n, m + n if self.unmatched else m))  # behind the last column, one of nothing for each row
        table[:, :m] = scores
        if y is not None:
            wrong = np.full(table.shape, self._step(n))
            rows = np.flatnonzero(y >= 0)
            wrong[rows, y[rows]] = 0.0
            wrong[y < 0, m:] = 0.0
            table += wrong
        _, column = linear_sum_assignment(table, maximize=True)
        return np.where(column < m, column, -1)

    def _loss(self, y: Array, h: Array) -> float:
        return self._step(len(y)) * int((y != h).sum())

    def _step(self, n: int) -> float:
        """Return what a wrong row costs."""
        return 1.0 / max(1, n) if self.normalized else 1.0
