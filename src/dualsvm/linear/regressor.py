"""Epsilon-insensitive regression."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..checks import Array, as_vector
from ..data import Chunk, Dataset
from ..prior import Prior
from ..problem import Problem
from ..solution import Certificate
from .base import LinearSVM, learning
from .certify import certify_chunks, certify_rows
from .chunks import Learner, Reads, State, alone, parted, refuse
from .terms import Terms

_LOSSES = {"epsilon_insensitive": "hinge", "squared_epsilon_insensitive": "squared_hinge"}


class SVMRegressor(RegressorMixin, LinearSVM):
    """Linear support vector regression, with a proof of how close the model is to the best one.

    It minimises over the weights w, with the intercept as one more weight,

        1/2 |w|^2 + sum_i C_i max(0, |y_i - w.x_i| - epsilon)

    Parameters
    ----------
    C : float, default 1.0
        Cost of a slack; larger means less regularisation. An example pays C times its weight.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default "epsilon_insensitive"
        Whether an example pays its slack or the square of it.
    epsilon : float, default 0.0
        Errors up to this size are free; in the units of y.
    fit_intercept : bool or "unpenalized", default True
        Whether to have an intercept. It is regularised like any other weight, which matters if the targets lie far
        from 0: centre them, raise `intercept_scaling`, or choose "unpenalized", which gives the intercept a prior
        around the median of y so wide (a standard deviation of 100 times the typical length of a row) that it is
        free.
    intercept_scaling, prior, lower, upper, tol, max_iter, cache_mb, warm_start, random_state, n_jobs, verbose
        As in `SVMClassifier`; the weights have shape (n_features,).

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features; float32 if X is, with the exceptions of `SVMClassifier`.
    intercept_ : float
        The intercept.
    lower_bound_, upper_bound_, gap_, converged_, n_iter_, history_
        As in `SVMClassifier`.
    dual_coef_ : sparse array of shape (1, n_samples)
        What every example counts in the weights.
    n_support_ : int
        Number of examples with an entry in `dual_coef_`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dualsvm import SVMRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SVMRegressor(C=100.0, epsilon=5.0, fit_intercept="unpenalized", random_state=0).fit(X, y)
    >>> model.converged_, model.score(X, y) > 0.4
    (True, True)
    """

    def __init__(
        self,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        *,
        epsilon: float = 0.0,
        fit_intercept: bool | str = True,
        intercept_scaling: float = 1.0,
        prior: Prior | None = None,
        lower: Any = None,
        upper: Any = None,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        cache_mb: float = 256.0,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.prior = prior
        self.lower = lower
        self.upper = upper
        self.tol = tol
        self.max_iter = max_iter
        self.cache_mb = cache_mb
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @learning
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        passes: int | None = None,
        max_passes: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 600.0,
        resume: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or Dataset
            Features. C-contiguous float32 or float64 arrays and canonical CSR matrices are used without a copy. A
            `Dataset` comes with its own targets and weights, and is read in chunks, as often as needed.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default None
            Factors on C; an example of weight 2 counts as two examples.
        passes, max_passes : int, default None
            Read a `Dataset` so many times at most, as `SVMClassifier.fit` does.
        checkpoint, checkpoint_every, resume
            As in `SVMClassifier.fit`.

        Returns
        -------
        self : SVMRegressor
        """
        if isinstance(X, Dataset):
            alone([y, sample_weight])
            reads = Reads(passes, max_passes, checkpoint, checkpoint_every, resume)
            return self._learn_chunks(TargetLearner(self, X, reads))
        refuse(passes=passes, max_passes=max_passes, checkpoint=checkpoint, resume=resume)
        return self._regress(X, y, sample_weight)

    def _own(self) -> dict[str, Any]:
        if not isinstance(self.loss, str) or self.loss not in _LOSSES:
            raise ValueError(f"loss must be one of {', '.join(map(repr, _LOSSES))}, got {self.loss!r}")
        return {"epsilon": self.epsilon, "intercept": self._bias(), "loss": _LOSSES[self.loss]}

    @learning
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more part of a stream, as `SVMClassifier.partial_fit` does.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. X may be a `Chunk` of a dataset, with its own targets and weights.

        Returns
        -------
        self : SVMRegressor
        """
        return self._regress(*parted(X, y, sample_weight), onward=True)

    def certify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
        """Prove how good the model is, from the data alone, as `SVMClassifier.certify` does.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or Dataset
            The rows that the model was fitted to, in their order.
        y, sample_weight
            As in `fit`.

        Returns
        -------
        Certificate
        """
        check_is_fitted(self)
        if isinstance(X, Dataset):
            alone([y, sample_weight])
            return certify_chunks(TargetLearner(self, X, Reads()))
        X, y = self._more_of(X, y, onward=True, y_numeric=True)
        state, middle = self._stated(X, y, sample_weight)
        return certify_rows(self, X, 1, state, middle)

    def _regress(self, X: Any, y: Any, sample_weight: Any, onward: bool = False) -> Self:
        X, y = self._more_of(X, y, onward, y_numeric=True)
        state, middle = self._stated(X, y, sample_weight)
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        return self._learn(X, 1, state, data, onward, middle=middle)

    def _stated(self, X: Any, y: Any, sample_weight: Any) -> tuple[State, float]:
        """Return what makes the problem of these examples, and where to look for the intercept first."""
        y = as_vector(y, "y", X.shape[0], "row of X")
        own, cost = self._own(), self._cost(sample_weight, X.shape[0])

        def state(X: Any, terms: Terms) -> list[Problem]:
            return [Problem.regression(X, y, cost=cost, **own, **terms.of(0))]

        return state, float(np.median(y)) if self.fit_intercept == "unpenalized" else 0.0

    def _attributes(self, coef: Array, intercept: Array) -> dict[str, Any]:
        return {"coef_": coef[0], "intercept_": intercept[0]}

    def predict(self, X: Any) -> Array:
        """Return the predicted targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._scores(X)


class TargetLearner(Learner):
    """Learns from chunks of rows with targets."""

    def __init__(self, model: SVMRegressor, dataset: Dataset, reads: Reads) -> None:
        super().__init__(model, dataset, 1, self._state, self._prepare, reads)
        self._own = model._own()

    def _prepare(self, chunk: Chunk) -> Chunk:
        if chunk.y is None or chunk.y.dtype.kind not in "fiub":
            name = self.dataset.name
            raise ValueError(f"{name} has no targets that are numbers: say where they are with target=...")
        return replace(chunk, y=chunk.y.astype(np.float64), qid=None)

    def _state(self, chunk: Chunk) -> State:
        y, cost = np.asarray(chunk.y), self.model._cost_of(chunk)
        return lambda X, terms: [Problem.regression(X, y, cost=cost, **self._own, **terms.of(0))]
