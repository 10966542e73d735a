"""The linear estimators on a cluster."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..linear import SVMClassifier, SVMRanker, SVMRegressor
from ..linear.chunks import Learner, Reads
from ..linear.classes import ClassLearner
from ..linear.queries import QueryLearner
from ..linear.regressor import TargetLearner
from .base import unharmed
from .checkpoint import Checkpoint
from .lazy import in_partitions
from .rows import DATA, DaskLinear
from .score import tally
from .survey import Facts


class DaskSVMClassifier(DaskLinear, SVMClassifier, local=SVMClassifier):
    """`dualsvm.SVMClassifier` on a Dask cluster: the same problem and the same proof, with the rows where they are.

    Parameters
    ----------
    client : distributed.Client, default None
        The cluster. None: the client that was made last.
    C, loss, multi_class, class_loss, rescaling, fit_intercept, intercept_scaling, class_weight, prior, lower, upper
        As in `SVMClassifier`; ``fit_intercept="unpenalized"`` is not there.
    tol, random_state, verbose
        As in `SVMClassifier`. Work is divided by how long it takes, so that results differ a little from fit to fit.
    max_iter : int, default 10000
        Largest number of rounds.
    cache_mb : float
        Not used: the rows lie in the memory of the workers, or in files that are mapped there.
    warm_start : bool, default False
        Whether `fit` starts from the dual variables of the last fit, for those partitions that are still the same.
    n_jobs : int, default None
        Number of threads on each worker; None: all that it has.

    Attributes
    ----------
    n_iter_ : int
        Number of rounds.
    history_ : list of Record
        One record for every round.
    n_shares_ : int
        Number of workers that have had a share of the rows.
    n_restarts_ : int
        How often a share was lost with its worker, and began anew.
    classes_, coef_, intercept_, lower_bound_, upper_bound_, gap_, converged_, dual_coef_, n_support_, n_features_in_
        As in `SVMClassifier`, with the rows in the order of the partitions.

    See Also
    --------
    dualsvm.SVMClassifier : The same on one machine, for all that fits there.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from dualsvm.dask import DaskSVMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     model = DaskSVMClassifier(C=10.0, random_state=0)
    ...     model = model.fit(da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50))
    >>> model.gap_ <= 1e-3, model.to_local().score(X, y) > 0.95
    (True, True)
    """

    _targets = "classes"

    @unharmed
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        margin: Any = None,
        *,
        options: dict[str, Any] | None = None,
        checkpoint: Any = None,
        checkpoint_every: float = 600.0,
        resume: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Dask array or dataframe, or list
            Features: a Dask array with dense or sparse blocks, a Dask dataframe, a list of futures or of delayed
            objects, one for each partition, or a list of paths, each of which a worker opens as `open_dataset` does.
        y : Dask array or series, or list, default None
            Classes, in partitions as those of X. Paths bring their own, and so do partitions (X, y).
        sample_weight : Dask array or series, or list, default None
            Factors on C.
        margin : float, Dask array or series, or list, default None
            The margin that is asked of an example.
        options : dict, default None
            Arguments of `open_dataset` for paths.
        checkpoint : path-like, default None
            Where to write, on this machine, all that shares know: every `checkpoint_every` seconds and in the end.
        checkpoint_every : float, default 600.0
            Seconds between checkpoints.
        resume : path-like, default None
            A checkpoint of the same problem and partitions to go on from, on whatever workers there are.

        Returns
        -------
        self : DaskSVMClassifier
        """
        given = {"X": X, "y": y, "sample_weight": sample_weight, "margin": margin}
        return self._fit_shares(given, options, Checkpoint(checkpoint, checkpoint_every, resume))

    def _prepared(self, facts: Facts) -> Learner:
        model = self._bare()
        classes = model.classes_ = np.asarray(facts.classes)
        if len(classes) < 2:
            raise ValueError(
                f"y holds one class only, {classes[0]!r}: at least 2 classes are needed (n_samples={facts.n_rows})"
            )
        typical = classes if not isinstance(self.class_weight, str) else np.repeat(classes, np.asarray(facts.counts))
        return ClassLearner(model, DATA, Reads(), model._class_weight(typical))

    def decision_function(self, X: Any) -> Any:
        """Return the scores: lazily for Dask collections, and at once for arrays.

        Parameters
        ----------
        X : Dask array or dataframe, list of futures or delayed objects, or array-like
            Features.

        Returns
        -------
        Dask array, series or dataframe, list of delayed objects, or ndarray
        """
        return self._call("decision_function", X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean accuracy; that of collections is added up where they are.

        Parameters
        ----------
        X : Dask array or dataframe, list of futures or delayed objects, or array-like
            Features.
        y : Dask array or series, list, or array-like
            Classes, in partitions as those of X.
        sample_weight : Dask array or series, list, or array-like, default None
            Weights.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if not in_partitions(X):
            return float(self.to_local().score(X, y, sample_weight))
        found = tally(self.to_local(), X, y, sample_weight, self.client)
        return found.hits / found.weight


class DaskSVMRegressor(DaskLinear, SVMRegressor, local=SVMRegressor):
    """`dualsvm.SVMRegressor` on a Dask cluster: the same problem and the same proof, with the rows where they are.

    Parameters
    ----------
    client : distributed.Client, default None
        The cluster. None: the client that was made last.
    C, loss, epsilon, fit_intercept, intercept_scaling, prior, lower, upper
        As in `SVMRegressor`; ``fit_intercept="unpenalized"`` is not there.
    tol, max_iter, cache_mb, warm_start, random_state, n_jobs, verbose
        As in `DaskSVMClassifier`.

    Attributes
    ----------
    n_iter_, history_, n_shares_, n_restarts_
        As in `DaskSVMClassifier`.
    coef_, intercept_, lower_bound_, upper_bound_, gap_, converged_, dual_coef_, n_support_, n_features_in_
        As in `SVMRegressor`, with the rows in the order of the partitions.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from dualsvm.dask import DaskSVMRegressor
    >>> X = da.random.default_rng(0).normal(size=(200, 3), chunks=(50, 3))
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     model = DaskSVMRegressor(epsilon=0.1, random_state=0).fit(X, X[:, 0] - 2 * X[:, 1])
    ...     found = model.predict(X).compute()
    >>> model.gap_ <= 1e-3, found.shape
    (True, (200,))
    """

    _targets = "numbers"

    @unharmed
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        options: dict[str, Any] | None = None,
        checkpoint: Any = None,
        checkpoint_every: float = 600.0,
        resume: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Dask array or dataframe, or list
            Features, as in `DaskSVMClassifier.fit`.
        y : Dask array or series, or list, default None
            Targets, in partitions as those of X.
        sample_weight, options, checkpoint, checkpoint_every, resume
            As in `DaskSVMClassifier.fit`.

        Returns
        -------
        self : DaskSVMRegressor
        """
        given = {"X": X, "y": y, "sample_weight": sample_weight}
        return self._fit_shares(given, options, Checkpoint(checkpoint, checkpoint_every, resume))

    def _prepared(self, facts: Facts) -> Learner:
        return TargetLearner(self._bare(), DATA, Reads())

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination; that of collections is added up where they are.

        Parameters
        ----------
        X : Dask array or dataframe, list of futures or delayed objects, or array-like
            Features.
        y : Dask array or series, list, or array-like
            Targets, in partitions as those of X.
        sample_weight : Dask array or series, list, or array-like, default None
            Weights.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if not in_partitions(X):
            return float(self.to_local().score(X, y, sample_weight))
        found = tally(self.to_local(), X, y, sample_weight, self.client)
        if found.spread == 0:
            return float(found.lost == 0)
        return 1 - found.lost / found.spread


class DaskSVMRanker(DaskLinear, SVMRanker, local=SVMRanker):
    """`dualsvm.SVMRanker` on a Dask cluster: the same problem and the same proof, with the rows where they are.

    Parameters
    ----------
    client : distributed.Client, default None
        The cluster. None: the client that was made last.
    C, loss, slack, prior, lower, upper
        As in `SVMRanker`.
    tol, max_iter, cache_mb, warm_start, random_state, n_jobs, verbose
        As in `DaskSVMClassifier`.

    Attributes
    ----------
    n_iter_, history_, n_shares_, n_restarts_
        As in `DaskSVMClassifier`.
    coef_, intercept_, lower_bound_, upper_bound_, gap_, converged_, dual_coef_, n_support_, n_features_in_
        As in `SVMRanker`, with the rows in the order of the partitions.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from dualsvm.dask import DaskSVMRanker
    >>> X = da.random.default_rng(0).normal(size=(200, 3), chunks=(50, 3))
    >>> qid = da.from_array(np.repeat(np.arange(20), 10), chunks=50)
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     model = DaskSVMRanker(random_state=0).fit(X, X[:, 0] > 0.5, qid)
    >>> model.gap_ <= 1e-3
    True
    """

    _targets = "queries"

    @unharmed
    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        sample_weight: Any = None,
        *,
        options: dict[str, Any] | None = None,
        checkpoint: Any = None,
        checkpoint_every: float = 600.0,
        resume: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Dask array or dataframe, or list
            Features, as in `DaskSVMClassifier.fit`.
        y : Dask array or series, or list, default None
            Relevances, in partitions as those of X.
        qid : Dask array or series, or list, default None
            Ids of the queries. All rows of one are in the same partition, next to one another. None: all rows, in a
            single partition, make one.
        sample_weight, options, checkpoint, checkpoint_every, resume
            As in `DaskSVMClassifier.fit`.

        Returns
        -------
        self : DaskSVMRanker
        """
        given = {"X": X, "y": y, "qid": qid, "sample_weight": sample_weight}
        return self._fit_shares(given, options, Checkpoint(checkpoint, checkpoint_every, resume))

    def _set(self, *found: Any) -> None:
        super()._set(*found)
        if self.slack == "query":  # sums over sets of pairs prove nothing without all queries at once
            self._forget()

    def _prepared(self, facts: Facts) -> Learner:
        if facts.pairs == 0:
            raise ValueError(
                "y holds no preference: within every query all relevances are equal; give at least one query with "
                "two rows of different relevance"
            )
        return QueryLearner(self._bare(), DATA, Reads())

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None, k: int | None = None) -> float:
        """Return the mean normalised discounted cumulative gain, for rows in memory only.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y, qid, sample_weight, k
            As in `SVMRanker.score`.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if in_partitions(X):
            raise TypeError(
                f"X is a {type(X).__name__}, but queries are scored in memory: compute relevances, queries and "
                "predict(X), and give those to a metric, such as sklearn.metrics.ndcg_score"
            )
        return float(self.to_local().score(X, y, qid, sample_weight, k))
