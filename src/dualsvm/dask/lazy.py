"""Predictions for collections, which are computed only when they are asked for."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from dask import array as da
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed
from distributed import Future

from .load import as_features

_LEFT = ("_alpha", "_fingerprint", "_solution", "dual_coef_", "history_")  # what no prediction needs


def lazily(model: Any, method: str, X: Any) -> Any:
    """Call a method of a fitted estimator for what is given, lazily if that is a collection.

    Parameters
    ----------
    model : estimator
        A fitted one, without Dask.
    method : str
        Such as "predict" or "decision_function".
    X : collection, list or array-like
        A Dask array, dataframe or bag; a list of delayed objects or of futures, each some rows or some inputs; or
        anything that the method takes, which is predicted at once.

    Returns
    -------
    collection, list or array
        An array for an array; for a dataframe a series with its index, or a dataframe with a column for every class;
        for a bag of inputs a bag of outputs; for a list a list of delayed objects.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from dualsvm import SVMClassifier
    >>> from dualsvm.dask.lazy import lazily
    >>> model = SVMClassifier().fit(np.array([[1.0], [2.0], [3.0]]), np.array(["a", "b", "b"]))
    >>> found = lazily(model, "predict", da.from_array(np.array([[0.0], [9.0]]), chunks=1))
    >>> found, found.compute(scheduler="synchronous")
    (dask.array<call, shape=(2,), dtype=<U1, chunksize=(1,), chunktype=numpy.ndarray>, array(['a', 'b'], dtype='<U1'))
    """
    if not in_partitions(X):
        return getattr(model, method)(X)
    light = lightened(model)
    once = delayed(light, traverse=False)
    if isinstance(X, list):
        return [delayed(call, pure=False)(each, once, method) for each in X]
    if isinstance(X, Delayed):
        return delayed(call, pure=False)(X, once, method)
    if isinstance(X, da.Array):
        return _array(light, once, method, X)
    if hasattr(X, "to_dask_array") and X.ndim == 2:
        return _frame(light, once, method, X)
    if hasattr(X, "pluck"):
        return X.map_partitions(call_inputs, once, method)
    raise TypeError(f"X must be a Dask array, dataframe or bag, or a list of partitions, got {type(X).__name__}")


def in_partitions(X: Any) -> bool:
    """Return whether something is a collection, or a list of partitions."""
    several = isinstance(X, list) and bool(X) and all(isinstance(each, Delayed | Future) for each in X)
    return several or is_dask_collection(X)


def call(X: Any, model: Any, method: str, like: Any = None) -> Any:
    """Return the predictions for some rows; `like` is what they look like, of which there may be none."""
    if like is not None and X.shape[0] == 0:
        return like[:0]
    return getattr(model, method)(X if isinstance(X, list) or hasattr(X, "columns") else _rows(X))


def call_inputs(inputs: Any, model: Any, method: str) -> list[Any]:
    """Return the predictions for some inputs."""
    return list(getattr(model, method)(list(inputs)))


def call_frame(frame: Any, model: Any, method: str, like: Any) -> Any:
    """Return the predictions for the rows of a frame, with its index."""
    return framed(call(frame, model, method, like), model, method, frame.index)


def framed(found: Any, model: Any, method: str, index: Any) -> Any:
    """Return predictions as a series, or those for several classes as a frame."""
    import pandas as pd

    if found.ndim == 1:
        return pd.Series(found, index=index, name=method)
    return pd.DataFrame(found, index=index, columns=getattr(model, "classes_", None))


def _rows(X: Any) -> Any:
    return as_features(X)[0] if hasattr(X, "tocsr") else X


def lightened(model: Any) -> Any:
    """Return the model without what no prediction needs, which may be large."""
    light = copy.copy(model)
    for name in _LEFT:
        vars(light).pop(name, None)
    return light


def _array(light: Any, once: Delayed, method: str, X: da.Array) -> da.Array:
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got a Dask array of {X.ndim} dimensions")
    X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    width = light.n_features_in_ if np.isnan(X.shape[1]) else X.shape[1]
    bare = copy.copy(light)
    vars(bare).pop("feature_names_in_", None)  # one row, without names, tells what all predictions look like
    like = getattr(bare, method)(np.zeros((1, width), X.dtype))
    chunks = (X.chunks[0], *((k,) for k in like.shape[1:]))
    drop = 1 if like.ndim == 1 else None
    kind: dict[str, Any] = {"dtype": like.dtype, "meta": like[:0]}
    return da.map_blocks(call, X, once, method, like=like, chunks=chunks, drop_axis=drop, **kind)


def _frame(light: Any, once: Delayed, method: str, X: Any) -> Any:
    like = getattr(light, method)(X._meta_nonempty)
    meta = framed(like[:0], light, method, X._meta.index[:0])
    return X.map_partitions(call_frame, once, method, like, meta=meta)
