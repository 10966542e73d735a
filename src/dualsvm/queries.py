"""Rows that belong together, such as those of a query, and the preferences among them."""

from __future__ import annotations

import itertools

import numpy as np

from .checks import Array


def groups(ids: Array) -> tuple[Array, Array]:
    """Return where the members of every id begin and end, in the order of ascending ids, and the members."""
    _, inverse, count = np.unique(ids, return_inverse=True, return_counts=True)
    member = np.argsort(inverse.reshape(-1), kind="stable").astype(np.int64)
    return np.concatenate([[0], np.cumsum(count)]).astype(np.int64), member


def grades(values: Array, start: Array) -> Array:
    """Return the rank of every value, from 0, among the distinct ones of its group; groups lie side by side."""
    group = np.repeat(np.arange(len(start) - 1), np.diff(start))
    order = np.lexsort([values, group])
    rank = np.cumsum(np.diff(values[order], prepend=np.nan) != 0)
    out = np.empty(len(values), dtype=np.int32)
    out[order] = rank - rank[start[:-1]][group]
    return out


def count_pairs(values: Array, start: Array) -> Array:
    """Return how many pairs of different values every group holds."""
    group = np.repeat(np.arange(len(start) - 1), np.diff(start))
    alike, count = np.unique(group * len(values) + grades(values, start), return_counts=True)
    same = np.bincount(alike // len(values), count * count, minlength=len(start) - 1)
    return (np.diff(start) ** 2 - same.astype(np.int64)) // 2


def preference_pairs(values: Array, start: Array, member: Array) -> Array:
    """Return all pairs (preferred, other) of rows of one group where the first has the higher value."""
    pairs = np.empty((count_pairs(values[member], start).sum(), 2), np.int64)
    at = 0
    for a, b in itertools.pairwise(start):
        rows = member[a:b]
        rows = rows[np.argsort(values[rows], kind="stable")]
        worse = np.searchsorted(values[rows], values[rows], side="left")  # whoever comes before the first of its like
        k = int(worse.sum())
        pairs[at : at + k, 0] = np.repeat(rows, worse)
        pairs[at : at + k, 1] = rows[np.arange(k) - np.repeat(np.cumsum(worse) - worse, worse)]
        at += k
    return pairs
