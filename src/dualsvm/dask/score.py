"""How good predictions for collections are: added up on the workers, so that one number comes here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from dask import array as da
from dask.base import compute
from dask.delayed import delayed

from .data import aligned, by_rows, partitions
from .lazy import call, in_partitions, lightened

_FAN = 8  # sums that are added up in one task


@dataclass(frozen=True)
class Tally:
    """What some rows tell: their weight, what was predicted well of it, and the mean and the squares of targets."""

    weight: float = 0.0
    hits: float = 0.0  # weight of rows whose class was found
    lost: float = 0.0  # squares of what predicted targets are off
    mean: float = 0.0
    spread: float = 0.0  # squares of what targets differ by from their mean

    def __add__(self, other: Tally) -> Tally:
        weight, apart = self.weight + other.weight, other.mean - self.mean
        part = other.weight / weight if weight else 0.0
        return Tally(
            weight,
            self.hits + other.hits,
            self.lost + other.lost,
            self.mean + part * apart,
            self.spread + other.spread + apart**2 * self.weight * part,
        )


def tally(model: Any, X: Any, y: Any, sample_weight: Any = None, client: Any = None) -> Tally:
    """Predict collections, compare with the truth, and return what that makes.

    Parameters
    ----------
    model : estimator
        A fitted one, without Dask.
    X : Dask array or dataframe, or list of delayed objects or futures
        Features.
    y, sample_weight : Dask array or series, or list
        Truth and weights, in partitions as those of X.
    client : Client, default None
        Where to compute. None: wherever Dask does.

    Returns
    -------
    Tally
    """
    beside = {"y": y, "sample_weight": sample_weight}
    given = {"X": X} | {name: value for name, value in beside.items() if value is not None}
    for name, value in given.items():
        if not in_partitions(value):
            raise TypeError(f"{name} is a {type(value).__name__}, but X is in partitions: it must be, too")
    if isinstance(X, da.Array):
        given["X"] = X = by_rows(X)
        given = {name: value if name == "X" else aligned(value, X, name) for name, value in given.items()}
    blocks, once = partitions(given), delayed(lightened(model), traverse=False)
    columns = zip(*blocks.values(), strict=True)
    sums = [delayed(_of_partition, pure=False)(k, once, *column) for k, column in enumerate(columns)]
    while len(sums) > 1:
        sums = [delayed(_added, pure=False)(sums[k : k + _FAN]) for k in range(0, len(sums), _FAN)]
    found: Tally = compute(sums[0])[0] if client is None else client.compute(sums[0]).result()
    if not found.weight > 0:
        raise ValueError("there is nothing to score: no rows, or none that count")
    return found


def _of_partition(number: int, model: Any, X: Any, y: Any, weight: Any = None) -> Tally:
    """Return what one partition tells."""
    y = np.asarray(y).reshape(-1)
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64).reshape(-1)
    if not X.shape[0] == len(y) == len(weight):
        raise ValueError(
            f"partition {number} of X has {X.shape[0]} rows, but {len(y)} targets and {len(weight)} weights"
        )
    if not weight.any():
        return Tally()
    found, total = call(X, model, "predict"), float(weight.sum())
    if hasattr(model, "classes_"):
        return Tally(total, hits=float(weight[found == y].sum()))
    mean = float(weight @ y) / total
    return Tally(total, 0.0, float(weight @ (y - found) ** 2), mean, float(weight @ (y - mean) ** 2))


def _added(several: list[Tally]) -> Tally:
    return sum(several[1:], several[0])
