"""Ranking from graded relevance within queries."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.metrics import ndcg_score
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .. import _core
from ..checks import Array, as_ids, as_vector
from ..data import Chunk, Dataset
from ..prior import Prior
from ..problem import Problem
from ..queries import count_pairs, grades, groups, preference_pairs
from ..solution import Certificate
from .base import LinearSVM, learning, weights_of
from .certify import certify_chunks, certify_rows
from .chunks import Reads, State, alone, parted, refuse
from .queries import QueryLearner
from .terms import Terms

_MOST_PAIRS = 2**32 - 1


class SVMRanker(LinearSVM):
    """Linear ranking support vector machine, with a proof of how close the model is to the best one.

    Of two rows of one query, the one with the higher relevance is to score higher, by a margin of 1. It minimises

        1/2 |w|^2 + C sum over such pairs (i, j) of max(0, 1 - w.(x_i - x_j))

    Parameters
    ----------
    C : float, default 1.0
        Cost of a slack; larger means less regularisation.
    loss : {"hinge", "squared_hinge"}, default "hinge"
        Whether a slack is paid, or the square of it.
    slack : {"pair", "query"}, default "pair"
        Whether every preference pair has a slack of its own, or the pairs of a query share one, which is the sum of
        what they fall short of the margin. With the hinge loss the problem is the same, but with "query" pairs are
        never listed, the worst constraint being found by sorting: choose it for long lists.
    prior, lower, upper, tol, max_iter, warm_start, random_state, n_jobs, verbose
        As in `SVMClassifier`; the weights have shape (n_features,). There is no intercept: it would not change the
        order.
    cache_mb : float, default 256.0
        As in `SVMClassifier`; of a query, all rows are kept in memory or none. Beside them and those of a few chunks
        it takes 8 bytes for every preference pair of the dataset, or up to 36 for every row with ``slack="query"``,
        and about 100 for every pair of a chunk while that is visited.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features; float32 if X is, with the exceptions of `SVMClassifier`.
    intercept_ : float
        0, always.
    lower_bound_, upper_bound_, gap_, converged_, n_iter_, history_
        As in `SVMClassifier`.
    dual_coef_ : sparse array of shape (1, n_samples)
        What every row counts in the weights.
    n_support_ : int
        Number of rows with an entry in `dual_coef_`.

    Notes
    -----
    Queries with one row, or with the same relevance everywhere, hold no preference and change nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm import SVMRanker
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(60, 3)), np.repeat(np.arange(6), 10)
    >>> y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=60), [-0.5, 0.5])
    >>> model = SVMRanker(random_state=0).fit(X, y, qid=qid)
    >>> model.score(X, y, qid=qid) > 0.9, model.pairwise_accuracy(X, y, qid=qid) > 0.9
    (True, True)
    """

    def __init__(
        self,
        C: float = 1.0,
        loss: str = "hinge",
        *,
        slack: str = "pair",
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
        self.slack = slack
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
        qid: Any = None,
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
            `Dataset` comes with its own relevances, queries and weights, and is read in chunks, as often as needed.
            Without queries it has to be read in one.
        y : array-like of shape (n_samples,)
            Relevance: the higher, the further up.
        qid : array-like of shape (n_samples,), default None
            Integer ids of the queries, in any order. None: all rows belong to one.
        sample_weight : array-like of shape (n_samples,), default None
            Weights of the rows. A pair counts the product, so that a row of weight 2 counts as two rows.
        passes, max_passes : int, default None
            Read a `Dataset` so many times at most, as `SVMClassifier.fit` does.
        checkpoint, checkpoint_every, resume
            As in `SVMClassifier.fit`.

        Returns
        -------
        self : SVMRanker
        """
        if isinstance(X, Dataset):
            alone([y, qid, sample_weight])
            reads = Reads(passes, max_passes, checkpoint, checkpoint_every, resume)
            return self._learn_chunks(QueryLearner(self, X, reads))
        refuse(passes=passes, max_passes=max_passes, checkpoint=checkpoint, resume=resume)
        return self._rank(X, y, qid, sample_weight)

    @learning
    def partial_fit(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further queries of a stream, as `SVMClassifier.partial_fit` does.

        Parameters
        ----------
        X, y, qid, sample_weight
            As in `fit`; whole queries. X may be a `Chunk` of a dataset, with its own relevances, queries and weights.

        Returns
        -------
        self : SVMRanker
        """
        if isinstance(X, Chunk):
            alone([qid])
            qid = X.qid
        X, y, sample_weight = parted(X, y, sample_weight)
        return self._rank(X, y, qid, sample_weight, onward=True)

    def certify(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> Certificate:
        """Prove how good the model is, from the data alone, as `SVMClassifier.certify` does.

        With ``slack="query"`` fits leave sums over sets of preference pairs, and whether there are such sets cannot
        be told for sure. Sums that no sets have are an error where that shows; but where a stranger may have written
        the file, only the upper bound is proven.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or Dataset
            The rows that the model was fitted to, in their order.
        y, qid, sample_weight
            As in `fit`.

        Returns
        -------
        Certificate
        """
        check_is_fitted(self)
        if isinstance(X, Dataset):
            alone([y, qid, sample_weight])
            return certify_chunks(QueryLearner(self, X, Reads()))
        X, _, state = self._stated(X, y, qid, sample_weight, onward=True)
        return certify_rows(self, X, 1, state)

    def _rank(self, X: Any, y: Any, qid: Any, sample_weight: Any, onward: bool = False) -> Self:
        X, y, state = self._stated(X, y, qid, sample_weight, onward)
        metadata = {"sample_weight": sample_weight, "qid": qid}
        return self._learn(X, 1, state, {"X": X, "y": y, "metadata": metadata}, onward)

    def _stated(self, X: Any, y: Any, qid: Any, sample_weight: Any, onward: bool) -> tuple[Any, Array, State]:
        """Return rows and relevances that have been checked, and what makes their problem."""
        X, y = self._more_of(X, y, onward, y_numeric=True)
        n = X.shape[0]
        y = as_vector(y, "y", n, "row of X")
        ids = _ids(qid, n)
        start, member = groups(ids)
        if self._check_pairs(count_pairs(y[member], start)) == 0:
            raise ValueError(
                f"y holds no preference: within every query all relevances are equal (n_samples={n}); give at least "
                "one query with two rows of different relevance"
            )
        weight = None if sample_weight is None else weights_of(sample_weight, n)
        return X, y, self._statement(y, ids, weight)

    def _check_pairs(self, counts: Array) -> int:
        """Return how many preference pairs there are, given those of every query; refuse too many."""
        if not isinstance(self.slack, str) or self.slack not in ("pair", "query"):
            raise ValueError(f'slack must be "pair" or "query", got {self.slack!r}')
        n_pairs = int(counts.sum())
        if self.slack == "pair" and n_pairs > _MOST_PAIRS:
            raise ValueError(
                f"the queries hold {n_pairs:,} preference pairs, too many to give each a slack of its own: choose "
                'slack="query"'
            )
        return n_pairs

    def _statement(self, y: Array, ids: Array, weight: Array | None) -> Callable[[Any, Terms], list[Problem]]:
        """Return what makes the problem of rows with these relevances, queries and weights."""
        loss: Any = self.loss
        C = float(self._cost(None, 1)[0])

        def state(X: Any, terms: Terms) -> list[Problem]:
            if self.slack == "query":
                problem = Problem.lists(X, y, ids, weight=weight, cost=C, loss=loss, **terms.of(0))
            else:
                pairs = preference_pairs(y, *groups(ids))
                cost: Any = C if weight is None else C * weight[pairs[:, 0]] * weight[pairs[:, 1]]
                problem = Problem.ranking(X, pairs, cost=cost, loss=loss, **terms.of(0))
            return [problem]

        return state

    def _attributes(self, coef: Array, intercept: Array) -> dict[str, Any]:
        return {"coef_": coef[0], "intercept_": intercept[0]}

    def predict(self, X: Any) -> Array:
        """Return the scores by which to rank: the higher, the further up.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._scores(X)

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None, k: int | None = None) -> float:
        """Return the mean NDCG over the queries: 1 for the best order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Relevance, not negative: the gain of a row.
        qid : array-like of shape (n_samples,), default None
            Integer ids of the queries. None: all rows belong to one. In a Pipeline or a search it arrives only if
            metadata routing is enabled and requested.
        sample_weight : array-like of shape (n_samples,), default None
            Weights of the rows; a query counts the mean of its own.
        k : int, default None
            Look at the first k rows of the ranking only. None: at all.

        Returns
        -------
        float
            Queries without a preference are left out; 1 if there is no other.
        """
        scores, y, start, member = self._by_query(X, y, qid)
        if y.min() < 0:
            raise ValueError(
                f"NDCG needs relevances that are not negative, got {y.min()}: shift y, or see pairwise_accuracy"
            )
        weight = weights_of(sample_weight, len(y))[member]
        queries = [slice(a, b) for a, b in itertools.pairwise(start) if y[a:b].min() < y[a:b].max()]
        values = [ndcg_score(y[None, q], scores[None, q], k=k) for q in queries]
        return float(np.average(values, weights=[weight[q].mean() for q in queries])) if queries else 1.0

    def pairwise_accuracy(self, X: Any, y: Any, qid: Any = None) -> float:
        """Return the mean over the queries of the part of their preference pairs that is ordered rightly.

        Parameters
        ----------
        X, y, qid
            As in `score`; relevances may be negative.

        Returns
        -------
        float
            Ties count one half. Queries without a preference are left out; 1 if there is no other.
        """
        scores, y, start, _ = self._by_query(X, y, qid)
        grade = grades(y, start)
        # pairs with s_i - s_j <= 0, and pairs with s_i - s_j < 0
        wrong, worse = (np.array(_core.swapped(scores, grade, start, m)) for m in (np.nextafter(0.0, 1.0), 0.0))
        all_pairs = count_pairs(y, start)
        some = all_pairs > 0
        return float(np.mean(1 - (wrong + worse)[some] / (2 * all_pairs[some]))) if some.any() else 1.0

    def _by_query(self, X: Any, y: Any, qid: Any) -> tuple[Array, Array, Array, Array]:
        """Return scores and relevances query by query, where each begins, and which rows they are."""
        scores = self.predict(X).astype(np.float64)
        y = as_vector(column_or_1d(y, warn=True), "y", len(scores), "row of X")
        start, member = groups(_ids(qid, len(scores)))
        return scores[member], y[member], start, member

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _ids(qid: Any, n: int) -> Array:
    return np.zeros(n, np.int64) if qid is None else as_ids(qid, "qid", n, "row of X")
