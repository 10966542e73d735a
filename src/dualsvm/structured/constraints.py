"""Constraints as a search finds them, and the feature vectors that users give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..checks import LIMIT, Array

_WIDEST = 2**31 - 1  # the kernel counts weights in 32 bits


class OracleError(ValueError):
    """An oracle, or the task that it stands for, failed or broke a promise; the message names the example."""


class Feature(NamedTuple):
    """A feature vector by its entries that are not zero, in the order of their columns."""

    column: Array
    x: Array

    def dot(self, w: Array) -> float:
        """Return ``w.x``; weights that are not there count 0."""
        known = self.column < len(w)
        return float(self.x[known] @ w[self.column[known]])

    def size(self, w: Array) -> float:
        """Return the sum of the absolute values of what `dot` adds: its rounding is a small part of that."""
        known = self.column < len(w)
        return float(np.abs(self.x[known] * w[self.column[known]]).sum())


_BESIDE = ("example", "column", "x", "l", "value", "bound")


class Found(NamedTuple):
    """Constraints found for some examples, in compressed rows.

    Attributes
    ----------
    example : ndarray of shape (n_constraints,)
        Whose slack a constraint shares; where examples have several slacks, which of them.
    start, column, x : ndarray
        The x_ij: entries ``start[r]`` to ``start[r + 1]`` belong to constraint r.
    l : ndarray of shape (n_constraints,)
        The l_ij.
    value : ndarray of shape (n_asked,)
        The largest l_ij - w.x_ij among those found, for every example that was asked; over several slacks, their sum.
    bound : ndarray of shape (n_asked,)
        What no constraint of the example exceeds; NaN where the search cannot say.
    calls : int
        How often the oracle was called.
    """

    example: Array
    start: Array
    column: Array
    x: Array
    l: Array
    value: Array
    bound: Array
    calls: int

    @property
    def width(self) -> int:
        """Number of weights that the constraints ask for."""
        return int(self.column.max(initial=-1)) + 1

    @property
    def matrix(self) -> tuple[Array, Array, Array]:
        """The x_ij as scipy's compressed rows take them."""
        return self.x, self.column, self.start


class Answer(NamedTuple):
    """What the oracle says of one example."""

    constraints: list[tuple[Feature, float]]
    value: float
    bound: float
    calls: int = 1


def collect(which: Sequence[int] | Array, answers: Sequence[Answer]) -> Found:
    """Return the answers for some examples as one."""
    counts = [len(answer.constraints) for answer in answers]
    pairs = [pair for answer in answers for pair in answer.constraints]
    lengths = [len(feature.x) for feature, _ in pairs]
    columns = [feature.column for feature, _ in pairs]
    return Found(
        example=np.repeat(np.asarray(which, dtype=np.int64), counts),
        start=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
        column=np.concatenate([np.empty(0, np.int32), *columns]),
        x=np.concatenate([np.empty(0), *(feature.x for feature, _ in pairs)]),
        l=np.array([l for _, l in pairs], dtype=np.float64),
        value=np.array([answer.value for answer in answers], dtype=np.float64),
        bound=np.array([answer.bound for answer in answers], dtype=np.float64),
        calls=sum(answer.calls for answer in answers),
    )


def joined(found: Sequence[Found]) -> Found:
    """Return what was found for several parts of the examples as one."""
    if len(found) == 1:
        return found[0]
    starts = np.cumsum([0] + [len(part.x) for part in found])
    start = [part.start[1:] + first for part, first in zip(found, starts, strict=False)]
    rest = {name: np.concatenate([getattr(part, name) for part in found]) for name in _BESIDE}
    return Found(start=np.concatenate([[0], *start]), calls=sum(part.calls for part in found), **rest)


def as_feature(value: Any, name: str, width: int | None) -> Feature:
    """Check a feature vector, dense or (indices, values), of at most `width` entries if that is known."""
    if sp.issparse(value):
        value = value.tocoo()
        value = (value.coords[-1], value.data)
    if isinstance(value, tuple):
        if len(value) != 2:
            raise OracleError(f"{name} must be a vector or (indices, values), got a tuple of {len(value)}")
        return _sparse(*value, name, width)
    try:
        dense = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise OracleError(f"{name} must be a vector of numbers or (indices, values), got {value!r}") from None
    if dense.ndim != 1:
        raise OracleError(f"{name} must be a vector, got an array of shape {dense.shape}")
    if width is not None and len(dense) != width:
        raise OracleError(f"{name} must have {width} entries, got {len(dense)}")
    _check_size(dense, name)
    column = np.flatnonzero(dense)
    return Feature(column.astype(np.int32), dense[column])


def _sparse(indices: Any, values: Any, name: str, width: int | None) -> Feature:
    column, x = np.asarray(indices), np.asarray(values)
    if column.shape != x.shape or column.ndim != 1 or (column.size and column.dtype.kind not in "iu"):
        raise OracleError(
            f"{name} must be (indices, values), integers and as many numbers, got {column.dtype} of shape "
            f"{column.shape} and {x.dtype} of shape {x.shape}"
        )
    try:
        x = x.astype(np.float64)
    except (TypeError, ValueError):
        raise OracleError(f"{name} must hold real numbers, got dtype {x.dtype}") from None
    _check_size(x, name)
    most = _WIDEST if width is None else width
    if column.size and (column.min() < 0 or column.max() >= most):
        raise OracleError(f"{name} has indices from {column.min()} to {column.max()}, outside 0 .. {most - 1}")
    return _summed(column.astype(np.int32), x)


def _check_size(x: Array, name: str) -> None:
    if not (np.abs(x) <= LIMIT).all():
        raise OracleError(f"{name} contains NaN, infinity or a number beyond 1e150")


def _summed(column: Array, x: Array) -> Feature:
    """Return entries in the order of their columns, those of one column added up, without zeros."""
    if len(column) and not (np.diff(column) > 0).all():
        order = np.argsort(column, kind="stable")
        column, x = column[order], x[order]
        first = np.flatnonzero(np.concatenate([[True], np.diff(column) > 0]))
        column, x = column[first], np.add.reduceat(x, first)
    kept = x != 0
    return Feature(column[kept], x[kept])


def total(features: Sequence[Feature], factor: float = 1.0) -> Feature:
    """Return the sum of feature vectors, times a factor."""
    column = np.concatenate([feature.column for feature in features])
    return _summed(column, factor * np.concatenate([feature.x for feature in features]))


def difference(one: Feature, other: Feature, factor: float = 1.0) -> Feature:
    """Return ``factor * (one - other)``."""
    column = np.concatenate([one.column, other.column])
    return _summed(column, factor * np.concatenate([one.x, -other.x]))
