"""A path over C."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from ..checks import as_array
from .base import LinearSVM


def c_path(estimator: Any, X: Any, y: Any, Cs: Any, **fit_params: Any) -> list[Any]:
    """Fit an estimator for every C of a path, each time starting from the dual variables of the last.

    Parameters
    ----------
    estimator : SVMClassifier, SVMRegressor or SVMRanker
        What to fit; it stays as it is.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features.
    y : array-like of shape (n_samples,)
        Targets.
    Cs : array-like of shape (n_Cs,)
        The values of C, in any order; they are fitted from the smallest to the largest.
    **fit_params
        Handed to `fit`, such as sample_weight or qid.

    Returns
    -------
    list of estimators
        One fitted model for every C, in the order given, each with its own certificate.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from dualsvm import SVMClassifier, c_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> models = c_path(SVMClassifier(random_state=0), scale(X), y, [0.01, 0.1, 1.0])
    >>> [model.C for model in models], all(model.converged_ for model in models)
    ([0.01, 0.1, 1.0], True)
    """
    if not isinstance(estimator, LinearSVM):
        raise TypeError(f"estimator must be one of dualsvm's linear estimators, got {type(estimator).__name__}")
    values = as_array(Cs, "Cs")
    if values.ndim != 1 or values.dtype.kind not in "fiu":
        raise ValueError(f"Cs must be a list of numbers, got {values.dtype} of shape {values.shape}")
    models: list[Any] = [None] * len(values)
    model = clone(estimator)
    for k in np.argsort(values, kind="stable"):
        model = copy.copy(model).set_params(C=float(values[k]), warm_start=True).fit(X, y, **fit_params)
        models[k] = model
    return [model.set_params(warm_start=estimator.warm_start) for model in models]
