"""Rankings of the documents of a query, by a measure of the whole list."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..checks import LIMIT, Array, as_array
from .sums import SumTask

_MARGIN = 0.5  # of scores, below which the worst ranking swaps a pair: 1/P of loss for 2/P of the difference


class Ranking(SumTask):
    """Learning to rank with one slack for a query, by measures of the whole list.

    Documents are ranked by their scores ``s_i = w.x_i``. With c_i(v) for a document's part in a ranking v, the joint
    feature vector is ``sum_i c_i(v) x_i``:

    - "auc": c_i is the number of documents that i is ranked above, less those that it is ranked below, divided by the
      number P of pairs that v ranks: together ``1/P sum of x_i - x_j over pairs, i above j``. The loss is the share
      of the pairs with different grades that are ranked the wrong way round, where a tie counts half. Each pair may
      be swapped for itself, and is where the scores differ by less than 1/2: all of them are found by sorting.
    - "ndcg": c_i is the discount ``1 / log2(1 + position)`` at the position of i, 0 beyond the k-th. The loss is
      ``1 - sum_i c_i(v) gain_i / Z`` with ``gain_i = 2^grade - 1``, where Z is what the best order has: 1 - NDCG at
      k. The worst order sorts by ``s_i - gain_i / Z``.
    - "precision": c_i is 1/k for the first k documents, in any order, and 0 for the others. The loss is that of
      "ndcg" with these c_i and with a gain of 1 for a grade above 0, of 0 else: 1 - the share of the k documents that
      are relevant, of what is possible. The worst k documents sort by the same formula.

    Parameters
    ----------
    measure : {"auc", "ndcg", "precision"}, default "auc"
        What is to be optimized.
    k : int, default None
        How many of the first documents count. "ndcg" with None: all; "precision" needs it; "auc" has none.

    Notes
    -----
    Inputs are arrays or sparse matrices of shape (n_documents, n_features), true outputs vectors of grades, not
    negative. Any vector with a number for each document is a ranking, the largest number first: predictions are the
    scores, and true grades the ranking that is wanted. Equal numbers share their positions: c_i is the mean over all
    orders of them, as is the loss. With "auc", `loss_augmented_inference` returns what no order of documents could
    express: an array of pairs (i, j), i above j.

    Which rankings compete with the true one depends on its grades (`relative`): pairs of equal grade are never
    swapped, and where all documents have the same gain, nothing competes. For k documents of which as many are
    relevant, "precision" is the measure of Joachims (A support vector method for multivariate performance measures,
    2005); for "ndcg" see Chapelle, Le and Smola (Large margin optimization of ranking measures, 2007), with discounts
    in the joint feature vector, too, so that sorting solves their assignment problem.

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm import StructuredSVM
    >>> from dualsvm.tasks import Ranking
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 8, 3))
    >>> Y = [(x[:, 0] > 0.5) + (x[:, 0] + x[:, 1] > 1) for x in X]
    >>> model = StructuredSVM(Ranking("ndcg", k=5), C=10.0, random_state=0).fit(X, Y)
    >>> scores = model.predict(X)
    >>> scores[0].shape, model.score(X, Y) > 0.9, model.gap_ <= 1e-3
    ((8,), True, True)
    """

    #: the outputs that compete in training depend on the true one
    relative = True

    def __init__(self, measure: str = "auc", k: int | None = None) -> None:
        self.measure = measure
        self.k = k

    def _settle(self) -> None:
        if not isinstance(self.measure, str) or self.measure not in ("auc", "ndcg", "precision"):
            raise ValueError(f'measure must be "auc", "ndcg" or "precision", got {self.measure!r}')
        if self.k is None:
            if self.measure == "precision":
                raise ValueError('measure "precision" needs k, the number of documents that count')
        elif self.measure == "auc":
            raise ValueError(f'measure "auc" has no k, got {self.k!r}')
        elif isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or self.k < 1:
            raise ValueError(f"k must be a positive integer, got {self.k!r}")

    def _shape(self, x: Any, width: int | None, name: str) -> tuple[int, ...]:
        shape = x.shape if sp.issparse(x) else np.shape(x)
        if len(shape) != 2:
            raise ValueError(f"{name} must have shape (n_documents, n_features), got {shape}")
        if width is not None and shape[1] != width:
            raise ValueError(f"{name} must have {width} features, as the first input in training, got {shape[1]}")
        return shape[:1]

    def _read(self, y: Any, shape: tuple[int, ...] | None, name: str, true: bool) -> Array:
        y = as_array(y, name)
        if y.ndim == 2 and not true and self.measure == "auc":
            return _as_pairs(y, shape, name)
        if y.ndim != 1 or (y.size and y.dtype.kind not in "fiub"):
            raise ValueError(f"{name} must be a vector of numbers, got {y.dtype} of shape {y.shape}")
        if shape is not None and len(y) != shape[0]:
            raise ValueError(f"{name} must have a number for each of {shape[0]} documents, got {len(y)}")
        y = y.astype(np.float64)
        if not (np.abs(y) <= LIMIT).all():
            raise ValueError(f"{name} contains NaN, infinity or a number beyond 1e150")
        if true and y.min(initial=0) < 0:
            raise ValueError(f"{name} holds grades, which must not be negative, got {y.min()}")
        if true and self.measure == "ndcg" and y.max(initial=0) > 100:
            raise ValueError(f"{name} has a grade of {y.max():g}, and 2^grade is what it counts: 100 is the most")
        return y

    def _coefficients(self, y: Array, shape: tuple[int, ...]) -> Array:
        if self.measure != "auc":
            return self._shared(y)
        if y.ndim == 2:
            above, below = (np.bincount(side, minlength=shape[0]) for side in y.T)
            return (above - below) / max(1, len(y))
        ordered = np.sort(y)
        below, upto = np.searchsorted(ordered, y), np.searchsorted(ordered, y, "right")
        return (below + upto - len(y)) / max(1, int(below.sum()))

    def _discounts(self, n: int) -> Array:
        """Return what the positions of n documents count."""
        k = n if self.k is None else min(int(self.k), n)
        discount = np.zeros(n)
        discount[:k] = 1 / k if self.measure == "precision" and k else 1 / np.log2(np.arange(2, k + 2))
        return discount

    def _shared(self, y: Array) -> Array:
        """Return the discounts of documents, those of equal ones shared among them."""
        discount = self._discounts(len(y))
        _, place, counts = np.unique(-y, return_inverse=True, return_counts=True)
        if len(counts) == len(y):
            return discount[place]
        return (np.add.reduceat(discount, np.cumsum(counts) - counts) / counts)[place]

    def _gains(self, y: Array) -> Array:
        """Return the gains of documents; all 0 where no order is better than another."""
        gain = np.exp2(y) - 1 if self.measure == "ndcg" else (y > 0).astype(np.float64)
        return gain if len(y) and gain.min() < gain.max() else np.zeros(len(y))

    def _best(self, scores: Array, y: Array | None) -> Array:
        if y is None:
            return scores
        if self.measure == "auc":
            better, worse = np.nonzero(y[:, None] > y[None, :])
            pairs = np.column_stack([better, worse])
            swapped = scores[better] - _MARGIN < scores[worse]
            return np.where(swapped[:, None], pairs[:, ::-1], pairs)
        gain = self._gains(y)
        if not gain.any():
            return y
        worst = np.empty(len(y))
        worst[np.argsort(gain / (gain @ self._shared(y)) - scores)] = -np.arange(len(y))
        return worst if self.measure == "ndcg" else (worst > -min(int(self.k or 0), len(y))).astype(np.float64)

    def _worst(self, scores: Array, y: Array, own: Array) -> tuple[Array, float]:
        if self.measure == "auc":
            pairs = max(1, _n_pairs(y))
            net, count = _swapped(y, scores, _MARGIN)
            return 2 * net / pairs, count / pairs
        gain = self._gains(y)
        if not gain.any():
            return np.zeros(len(y)), 0.0
        most, worst = float(gain @ own), np.empty(len(y))
        worst[np.argsort(gain / most - scores)] = self._discounts(len(y))
        return own - worst, max(0.0, 1.0 - float(gain @ worst) / most)

    def _loss(self, y: Array, h: Array) -> float:
        if self.measure != "auc":
            gain = self._gains(y)
            return (
                max(0.0, 1.0 - float(gain @ self._shared(h)) / float(gain @ self._shared(y))) if gain.any() else 0.0
            )
        pairs = max(1, _n_pairs(y))
        if h.ndim == 2:
            return int((y[h[:, 0]] < y[h[:, 1]]).sum()) / pairs
        return (_swapped(y, h)[1] + _swapped(y, h, side="left")[1]) / (2 * pairs)


def _n_pairs(y: Array) -> int:
    """Return the number of pairs with different grades."""
    return int(np.searchsorted(np.sort(y), y).sum())


def _swapped(y: Array, scores: Array, margin: float = 0.0, side: Any = "right") -> tuple[Array, int]:
    """Look at pairs with y_i > y_j that are swapped: ``scores_i - margin < scores_j``, or <= with side="left".

    Returns for every document in how many of them it is i, less in how many it is j; and their number.
    """
    net, count = np.zeros(len(y), dtype=np.int64), 0
    order = np.argsort(scores, kind="stable")
    for grade in np.unique(y)[1:]:
        below, own = order[y[order] < grade], np.flatnonzero(y == grade)
        first = np.searchsorted(scores[below], scores[own] - margin, side)
        net[own] += len(below) - first
        net[below] -= np.cumsum(np.bincount(first, minlength=len(below) + 1)[:-1])
        count += int((len(below) - first).sum())
    return net, count


def _as_pairs(y: Array, shape: tuple[int, ...] | None, name: str) -> Array:
    most = np.inf if shape is None else shape[0] - 1
    if y.shape[1] != 2 or (y.size and (y.dtype.kind not in "iu" or y.min() < 0 or y.max() > most)):
        raise ValueError(f"{name} must be a vector of numbers, or pairs of documents from 0 to {most}")
    return y.astype(np.int64)
