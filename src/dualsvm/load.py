"""Estimators from files."""

from __future__ import annotations

import functools
import os
from typing import Any

from . import store
from .latent import LatentStructuredSVM, LatentSVM
from .linear import SVMClassifier, SVMRanker, SVMRegressor
from .structured import StructuredSVM
from .structured.base import OracleEstimator


def load(path: str | os.PathLike[str], task: Any = None) -> Any:
    """Read an estimator that its `save` wrote. No pickle is involved: files from strangers are safe to load.

    Parameters
    ----------
    path : path-like
        The file.
    task : object, default None
        The task of an estimator that has one, where that is not a ready-made one, which the file holds itself.

    Returns
    -------
    SVMClassifier, SVMRegressor, SVMRanker, StructuredSVM, LatentStructuredSVM or LatentSVM

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import dualsvm
    >>> model = dualsvm.SVMRegressor(random_state=0).fit([[1.0], [2.0]], [2.0, 4.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.npz"
    ...     model.save(path)
    ...     dualsvm.load(path).gap_ == model.gap_
    True
    """
    makers: dict[str, Any] = {
        f"dualsvm.{kind.__name__} 1": kind._restored for kind in (SVMClassifier, SVMRegressor, SVMRanker)
    }
    for searching in (StructuredSVM, LatentStructuredSVM, LatentSVM):
        makers[f"dualsvm.{searching.__name__} 1"] = functools.partial(searching._restored, task=task)
    estimator = store.read(path, "an estimator", makers)
    if isinstance(estimator, OracleEstimator) and estimator.task is None:
        raise ValueError(
            f"{os.fspath(path)!r} was saved without its task, which is not a ready-made one: give task=..."
        )
    return estimator
