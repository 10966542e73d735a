"""The linear estimators on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ..checks import Array
from ..data.cut import query_starts
from ..linear import SVMClassifier, SVMRanker, SVMRegressor
from ..linear.base import FittedInterrupt
from ..linear.chunks import Learner, Reads
from ..linear.classes import ClassLearner
from ..linear.queries import QueryLearner
from ..linear.regressor import TargetLearner
from ..linear.sharing import Account, RowHost, Shared
from ..progress import printers
from ..shares import Kept, Lead
from ..solve import as_passes, as_seed, as_threads, as_tolerance, warn_not_converged
from .base import OnCluster, unharmed
from .checkpoint import Checkpoint
from .cluster import Cluster
from .data import as_client, gather_pieces, held
from .load import Piece, load
from .score import in_partitions, tally
from .survey import Facts, Targets, survey


@dataclass
class Partitions:
    """Stands in for the dataset of a learner, which is in many places."""

    name: str = "the data"
    n_chunks: int = 1


_DATA: Any = Partitions()


@dataclass
class Make:
    """Makes hosts, on workers, of pieces.

    Parameters
    ----------
    shared : Shared
        What all shares know.
    seed : int
        Of the order in which examples are visited.
    n_jobs : int or None
        Number of threads; None: all that a worker has.
    """

    shared: Shared
    seed: int
    n_jobs: int | None

    def __call__(self, number: int, pieces: Sequence[Piece], blocks: Sequence[Any], threads: int) -> RowHost:
        """Return a host of some pieces."""
        chunks: list[Any] = []
        for piece, some in zip(pieces, blocks, strict=True):
            loaded = load(piece, *some, width=self.shared.width, dtype=self.shared.dtype)
            at = 0
            for k, chunk in enumerate(loaded):
                margin = loaded.margin
                if np.ndim(margin) > 0:
                    margin = margin[at : at + len(chunk)]
                at += len(chunk)
                _check_queries(chunk.qid, piece.name)
                chunks.append(((piece.number, k), piece.name, replace(chunk, index=len(chunks)), margin))
        threads = threads if self.n_jobs is None else as_threads(self.n_jobs)
        return RowHost(number, self.shared, chunks, self.seed, threads)


def _check_queries(qid: Array | None, name: str) -> None:
    if qid is not None and len(query_starts(qid)) > len(np.unique(qid)):
        raise ValueError(f"{name}: rows of one query must be next to one another: sort the partition by its queries")


class DaskLinear(OnCluster):
    """What the linear estimators do on a cluster."""

    _targets: Targets
    coef_: Any
    intercept_: Any
    tol: Any
    max_iter: Any
    random_state: Any
    n_jobs: int | None
    verbose: int
    warm_start: bool

    def _prepared(self, facts: Facts) -> Learner:
        """Return what makes problems of chunks, given what is known of all of them."""
        raise NotImplementedError

    def _fit_shares(self, given: dict[str, Any], options: Any, checkpoint: Checkpoint) -> Self:
        client = as_client(self.client)
        tol, max_iter = as_tolerance(self.tol), as_passes(self.max_iter)
        pieces = held(client, gather_pieces(client, **given, options=options))
        facts = survey(client, pieces, self._targets)
        shared = Shared(self._prepared(facts), facts.width, facts.dtype)
        make = Make(shared, as_seed(self.random_state), self.n_jobs)
        some = [k for k, rows in enumerate(facts.rows) if rows > 0]
        cluster = Cluster(client, [pieces[k] for k in some], [facts.rows[k] for k in some], make)
        lead = Lead(cluster, shared.courses(tol, len(cluster)), shared.seen)
        try:
            start = self._start(shared.learner)
            checkpoint.begin(lead, shared.learner.about(), start, self._weights(shared) if start else None)
            status = lead.pursue(max_iter, printers(self.verbose, tol))
            checkpoint.write()
            kept = lead.gather("keep") if self.warm_start else None
            accounts = lead.gather("account")
        finally:
            cluster.close()
        self._set(lead, shared.learner, facts, accounts)
        self._kept = kept
        if status == "interrupted":
            raise FittedInterrupt
        if not self.converged_ and status in ("max_iter", "stalled"):
            warn_not_converged(self.n_iter_, self.gap_, tol, status == "stalled")
        return self

    def _start(self, learner: Learner) -> dict[Any, Kept] | None:
        """Return what the last fit has left to start from."""
        same = np.array_equal(getattr(self, "classes_", ()), getattr(learner.model, "classes_", ()))
        return getattr(self, "_kept", None) if self.warm_start and same else None

    def _weights(self, shared: Shared) -> list[Array] | None:
        """Return the weights of the last fit as shares have them, if they are as many."""
        weights = shared.learner.frame.weights(self.coef_, self.intercept_)
        return shared.inward(weights) if np.shape(self.coef_)[-1] == shared.width else None

    def _set(self, lead: Lead, learner: Learner, facts: Facts, accounts: dict[Any, Account]) -> None:
        """Set the attributes of a fit."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        if hasattr(learner.model, "classes_"):
            self.classes_ = learner.model.classes_
        self.n_features_in_ = facts.width
        if facts.feature_names is not None:
            self.feature_names_in_ = np.array(facts.feature_names, dtype=object)
        self.lower_bound_, self.upper_bound_, self.gap_ = lead.lower, lead.upper, float(lead.gap)
        self.converged_ = bool(self.gap_ <= as_tolerance(self.tol))
        self.n_iter_, self.history_, self.n_restarts_ = lead.rounds, lead.history, lead.restarts
        self.n_shares_ = len(lead.hosts)
        each = [accounts[key] for key in sorted(accounts)]
        self.dual_coef_ = sp.hstack([account.coefficients for account in each], format="csr")
        alpha = [account.alpha for account in each if account.alpha is not None]
        self._alpha, self._fingerprint = sp.hstack(alpha, format="csr"), ""
        support = [account.support for account in each if account.support is not None]
        self.n_support_: Any = sum(support) if support else len(np.unique(self.dual_coef_.indices))
        attributes = self._attributes(*learner.frame.seen(lead.weights()))  # type: ignore[attr-defined]
        for name, value in attributes.items():
            setattr(self, name, value)


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
        return ClassLearner(model, _DATA, Reads(), model._class_weight(typical))

    def predict(self, X: Any) -> Any:
        """Return the class with the highest score: lazily for Dask collections, and at once for arrays.

        Parameters
        ----------
        X : Dask array or dataframe, list of futures or delayed objects, or array-like
            Features.

        Returns
        -------
        Dask array or series, list of delayed objects, or ndarray
        """
        return self._call("predict", X)

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
        return TargetLearner(self._bare(), _DATA, Reads())

    def predict(self, X: Any) -> Any:
        """Return the predicted targets: lazily for Dask collections, and at once for arrays.

        Parameters
        ----------
        X : Dask array or dataframe, list of futures or delayed objects, or array-like
            Features.

        Returns
        -------
        Dask array or series, list of delayed objects, or ndarray
        """
        return self._call("predict", X)

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

    def _prepared(self, facts: Facts) -> Learner:
        if facts.pairs == 0:
            raise ValueError(
                "y holds no preference: within every query all relevances are equal; give at least one query with "
                "two rows of different relevance"
            )
        return QueryLearner(self._bare(), _DATA, Reads())

    def predict(self, X: Any) -> Any:
        """Return the scores by which to rank: lazily for Dask collections, and at once for arrays.

        Parameters
        ----------
        X : Dask array or dataframe, list of futures or delayed objects, or array-like
            Features.

        Returns
        -------
        Dask array or series, list of delayed objects, or ndarray
        """
        return self._call("predict", X)

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
