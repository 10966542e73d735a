"""Cross-validation, in folds of rows or of queries; the data are read in chunks here, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from ..checks import Array
from ..data import Chunk, Dataset, open_dataset
from ..linear import SVMRanker
from .screen import Screen, Watched
from .sources import aligned
from .tally import tally_of


class Folds:
    """Which fold each row of a dataset is in: rows at random, those of a query together if they are to be ranked."""

    def __init__(self, dataset: Dataset, n: int, seed: int, by_query: bool) -> None:
        self.dataset = dataset
        random = np.random.default_rng(seed)
        self._queries: Array | None = None
        if by_query:
            self._queries = np.unique(np.concatenate([_queries(chunk, dataset) for chunk in dataset]))
            units = len(self._queries)
        else:
            units = len(dataset.targets())
        if units < n:
            raise ValueError(f"{n} folds need {n} {'queries' if by_query else 'rows'} at least, got {units}")
        self._fold = random.permutation(np.arange(units) % n)

    def of(self, chunk: Chunk) -> Array:
        """Return the folds of the rows of a chunk."""
        if self._queries is None:
            return np.asarray(self._fold[chunk.start : chunk.stop])
        return np.asarray(self._fold[np.searchsorted(self._queries, _queries(chunk, self.dataset))])

    def parts(self, k: int, inside: bool) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Yield the rows inside or outside of a fold, as chunks."""
        width = self.dataset.n_features or 0
        for chunk in self.dataset:
            which = np.flatnonzero((self.of(chunk) == k) == inside)
            beside = (None if values is None else values[which] for values in (chunk.y, chunk.weight, chunk.qid))
            if len(which):
                yield aligned(chunk.X, width)[which], *beside
            del chunk


def cross_validate(model: Any, dataset: Dataset, n: int, seed: int, screen: Screen) -> int:
    """Learn from all folds but one, predict that one, and tell how good all predictions are together."""
    folds, tally = Folds(dataset, n, seed, isinstance(model, SVMRanker)), tally_of(model)
    for k in range(n):
        screen.say(f"fold {k + 1} of {n}")
        rest = open_dataset(lambda k=k: folds.parts(k, inside=False))
        with screen:
            each = clone(model).fit(Watched(rest, screen, "read "))
        for X, y, _, qid in folds.parts(k, inside=True):
            tally.add(each, X, y, qid, each.predict(X))
    for line in tally.lines():
        print(f"Cross Validation {line.partition(' (')[0]}")
    return 0


def _queries(chunk: Chunk, dataset: Dataset) -> Array:
    if chunk.qid is None:
        raise ValueError(f"{dataset.name} has no queries: say which column they are in with qid=...")
    return chunk.qid
