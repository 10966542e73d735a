"""Tables of losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import LIMIT, Array, as_array


def as_cost(values: Any, n: int) -> Array:
    """Return a table of losses, labels x labels; None is 1 for every mistake."""
    if values is None:
        return 1.0 - np.eye(n)
    table = as_array(values, "cost")
    if table.shape != (n, n) or table.dtype.kind not in "fiub":
        raise ValueError(f"cost must be numbers of shape ({n}, {n}), got {table.dtype} of shape {table.shape}")
    table = np.array(table, dtype=np.float64, order="C")
    if not (np.abs(table) <= LIMIT).all() or np.diag(table).any() or table.min(initial=0) < 0:
        raise ValueError("cost must be finite, of 1e150 at most, not negative, and with zeros on its diagonal")
    return table
