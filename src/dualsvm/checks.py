"""Checks of what the user gives: each returns it in the form that the library uses, or says what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core

Array = NDArray[Any]

LIMIT = 1e150  # numbers beyond are refused: their squares and sums would overflow
_MOST_CLASSES = 1 << 15  # their table of losses takes 8 GB


def as_array(values: Any, name: str) -> Array:
    """Return values as an array, or say which argument cannot be one."""
    try:
        return np.asarray(values)
    except ValueError as error:  # lists of different lengths
        raise ValueError(f"{name} must be an array, with lines of one length: {error}") from None


def as_number(value: Any, name: str) -> float:
    """Return a finite number as a float."""
    array = as_array(value, name)
    if array.ndim != 0 or array.dtype.kind not in "fiub" or not abs(float(array)) <= LIMIT:
        raise ValueError(f"{name} must be a finite number, of 1e150 at most, got {value!r}")
    return float(array)


def as_vector(values: Any, name: str, n: int, per: str) -> Array:
    """Return finite numbers, one or one for each of `n` things, as a float64 vector of length n."""
    array = as_array(values, name)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.ndim != 0 and array.shape != (n,):
        raise ValueError(f"{name} must be one number or one per {per}, shape ({n},), got shape {array.shape}")
    array = np.array(array, dtype=np.float64, order="C")
    if not _core.all_finite(array.reshape(-1)):
        raise ValueError(f"{name} contains NaN, infinity or a number beyond 1e150: replace those entries")
    return array if array.ndim else np.full(n, array)


def as_ids(values: Any, name: str, n: int, per: str) -> Array:
    """Return integers, one for each of `n` things, as an int64 vector."""
    array = as_array(values, name)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers, got dtype {array.dtype}")
    if array.shape != (n,):
        raise ValueError(f"{name} must hold one integer per {per}, shape ({n},), got shape {array.shape}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} contains integers beyond 2**63 - 1")
    return np.ascontiguousarray(array, dtype=np.int64)


def as_class_loss(values: Any, n_classes: Any, labels: Array) -> Array:
    """Return a table of losses, classes x classes; None is 1 for every mistake."""
    if n_classes is not None and not isinstance(n_classes, int | np.integer):
        raise ValueError(f"n_classes must be an integer, got {n_classes!r}")
    if values is not None:
        table = as_array(values, "class_loss")
        if table.dtype.kind not in "fiub":
            raise ValueError(f"class_loss must hold real numbers, got dtype {table.dtype}")
        table = np.array(table, dtype=np.float64, order="C")
        if table.ndim != 2 or table.shape[0] != table.shape[1]:
            raise ValueError(f"class_loss must be square (classes x classes), got shape {table.shape}")
        if n_classes is not None and n_classes != len(table):
            raise ValueError(f"n_classes is {n_classes}, but class_loss has {len(table)} classes")
        if not (np.abs(table) <= LIMIT).all() or np.diag(table).any():
            raise ValueError("class_loss must be finite, of 1e150 at most, with zeros on its diagonal")
        if table.min(initial=0) < 0:
            raise ValueError(f"class_loss must not be negative, got {table.min()}")
    else:
        count = int(labels.max()) + 1 if n_classes is None else int(n_classes)
        if count > _MOST_CLASSES:
            what = f"y holds class numbers up to {labels.max()}" if n_classes is None else f"n_classes is {count}"
            raise ValueError(f"{what}: renumber the classes from 0; {_MOST_CLASSES} of them are possible")
        table = 1.0 - np.eye(max(count, 0))
    if len(table) < 2:
        raise ValueError(f"a multiclass problem needs at least 2 classes, got {len(table)}")
    return table
