"""How good predictions are, counted chunk by chunk; told in LIBLINEAR's words."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import Array
from ..linear import SVMClassifier, SVMRanker
from ..queries import count_pairs, groups


class Tally:
    """What has been predicted so far, against what is true."""

    def add(self, model: Any, X: Any, y: Array, qid: Array | None, predicted: Array) -> None:
        """Count some rows."""
        raise NotImplementedError

    def lines(self) -> list[str]:
        """Return what was found."""
        raise NotImplementedError


class Accuracy(Tally):
    """Part of the rows whose class is right."""

    def __init__(self) -> None:
        self._right = self._rows = 0

    def add(self, model: Any, X: Any, y: Array, qid: Array | None, predicted: Array) -> None:
        self._right += int(np.count_nonzero(predicted == y.astype(predicted.dtype, copy=False)))
        self._rows += len(y)

    def lines(self) -> list[str]:
        return [f"Accuracy = {100 * self._right / self._rows:g}% ({self._right}/{self._rows})"]


class Errors(Tally):
    """Mean squared error and squared correlation of regression."""

    def __init__(self) -> None:
        self._rows = 0
        self._square = 0.0
        self._mean = np.zeros(2)
        self._spread = np.zeros((2, 2))  # sums of products of what is predicted and true, less their means

    def add(self, model: Any, X: Any, y: Array, qid: Array | None, predicted: Array) -> None:
        both = np.stack([predicted, y]).astype(np.float64)
        self._square += float(((both[0] - both[1]) ** 2).sum())
        n, m = self._rows, len(y)
        mean = both.mean(axis=1)
        apart, rest = mean - self._mean, both - mean[:, None]
        self._spread += rest @ rest.T + np.outer(apart, apart) * n * m / (n + m)
        self._mean += apart * m / (n + m)
        self._rows += m

    def lines(self) -> list[str]:
        (one, product), (_, other) = self._spread
        correlation = product**2 / (one * other) if one * other > 0 else np.nan
        return [
            f"Mean squared error = {self._square / self._rows:g} (regression)",
            f"Squared correlation coefficient = {correlation:g} (regression)",
        ]


class Orders(Tally):
    """NDCG and the part of the pairs in the right order, over queries that hold a preference."""

    def __init__(self) -> None:
        self._queries, self._right, self._gain, self._negative = 0, 0.0, 0.0, False

    def add(self, model: Any, X: Any, y: Array, qid: Array | None, predicted: Array) -> None:
        start, member = groups(np.zeros(len(y), np.int64) if qid is None else qid)
        y = np.asarray(y, dtype=np.float64)
        n = int(np.count_nonzero(count_pairs(y[member], start)))
        self._queries += n
        self._negative |= bool(y.min() < 0)
        self._right += n * model.pairwise_accuracy(X, y, qid)
        if not self._negative:
            self._gain += n * model.score(X, y, qid)

    def lines(self) -> list[str]:
        if self._queries == 0:
            return ["no query holds rows of different relevance"]
        lines = [f"Pairwise accuracy = {100 * self._right / self._queries:g}% ({self._queries} queries)"]
        if not self._negative:
            lines.append(f"NDCG = {self._gain / self._queries:g} ({self._queries} queries)")
        return lines


def tally_of(model: Any) -> Tally:
    """Return what counts how good the predictions of a model are."""
    return Accuracy() if isinstance(model, SVMClassifier) else Orders() if isinstance(model, SVMRanker) else Errors()
