"""Labels with sub-types that are not observed: what such tasks share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from ..checks import Array
from ..rows import Rows
from ..solve import as_seed
from .base import LabellingTask
from .costs import as_cost
from .labels import Labels

_SOME = 3000  # rows that suffice to find the centres of a label
_CHUNK = 1 << 20  # numbers of a part


class Hidden(LabellingTask):
    """A task over pairs (label, k) of which only the label is observed; in front of the task that it refines.

    Whoever inherits says what the sub-types are called (`_hidden`, with a parameter "n_..." for their numbers), how
    inputs are stacked (`_stacked`), and what outputs numbers of pairs make (`_outputs`).
    """

    #: so that what was found for one completion of an output holds, moved, for another
    loss_ignores_latent = True
    _hidden: str
    _classes: Labels  # the labels themselves
    _owner: Array  # of which of them a pair is a sub-type
    _named: Array  # the pairs, and None for number -1

    def _stacked(self, X: Any, codes: list[Array]) -> Rows:
        """Return the rows of all inputs, which must have as many as there are numbers."""
        raise NotImplementedError

    def _outputs(self, codes: list[Array]) -> list[Any]:
        """Return the completed outputs that numbers of pairs stand for."""
        raise NotImplementedError

    def _labels_of(self, seen: list[Any]) -> Labels:
        labels = super()._labels_of(seen)
        counts = as_counts(getattr(self, f"n_{self._hidden}"), labels, f"n_{self._hidden}")
        return Labels((label, k) for label, n in zip(labels.values, counts, strict=True) for k in range(n))

    def _settle(self) -> None:
        pairs: list[Any] = self.known_labels.values
        self._classes = Labels(label for label, _ in pairs)
        self._owner = np.array([self._classes.number[label] for label, _ in pairs], dtype=np.int64)
        self._named = named(self.known_labels)
        super()._settle()

    def _costs(self) -> Array:
        cost = as_cost(self.cost, len(self._classes))
        return np.ascontiguousarray(cost[np.ix_(self._owner, self._owner)])

    def _own(self, Y: Sequence[Any]) -> list[Array]:
        """Return the numbers of the first pairs of labels, -1 for one that is missing."""
        number = self.known_labels.number
        first = np.array([*(number[label, 0] for label in self._classes.values), -1], dtype=np.int32)
        codes = self._numbers(self._classes, Y)
        return cut(first[joined(codes)], codes)

    def _blocks(self, own: Array) -> Iterator[tuple[Array, slice]]:
        """Yield, for every label that occurs, which of the numbers are its first pair's, and where its pairs are."""
        for first in np.unique(own[own >= 0]):
            last = np.searchsorted(self._owner, self._owner[first], side="right")
            yield np.flatnonzero(own == first), slice(int(first), int(last))

    def init_latent(self, X: Any, Y: Sequence[Any], random_state: Any = None) -> list[Any]:
        """Return completed outputs to begin with: within each label, sub-types by k-means of the feature rows.

        Parameters
        ----------
        X, Y : sequence
            Inputs and outputs.
        random_state : int, RandomState, Generator or None, default None
            Seed of the first centres.

        Returns
        -------
        list
            Where a label has fewer rows than sub-types, each is of a type of its own.
        """
        own = self._own(Y)
        rows = self._stacked(X, own)
        flat = joined(own)
        random = np.random.RandomState(as_seed(random_state))
        for which, pairs in self._blocks(flat.copy()):
            if len(which) > 1 and pairs.stop - pairs.start > 1:
                flat[which] += nearest(rows, which, pairs.stop - pairs.start, random)
        return self._outputs(cut(flat, own))

    def latent(self, x: Any, y: Any, w: Array) -> Any:
        """Return the best completed output of a true output.

        Parameters
        ----------
        x, y : input and output
            An example.
        w : ndarray
            Weights.

        Returns
        -------
        completed output
        """
        return self.batch_latent([x], [y], w)[0]

    def batch_latent(self, X: Any, Y: Sequence[Any], w: Array, n_jobs: int = 1) -> list[Any]:
        """Return the best completed outputs of true outputs."""
        raise NotImplementedError

    def unpack(self, w: Array) -> Bunch:
        """Return the named parts of weights.

        Parameters
        ----------
        w : ndarray
            Weights.

        Returns
        -------
        Bunch
            As for the task without sub-types, with pairs (label, k) in the place of labels; `labels`; and the pairs,
            as `types` or `states`.
        """
        parts = super().unpack(w)  # type: ignore[misc]
        parts.update({"labels": self._classes.values, self._hidden: self.known_labels.values})
        return parts


def joined(parts: list[Array]) -> Array:
    """Return numbers in parts as one array."""
    return np.concatenate([np.empty(0, np.int32), *parts])


def cut(flat: Array, parts: list[Array]) -> list[Array]:
    """Return numbers in parts of the same lengths as others."""
    ends = accumulate(map(len, parts), initial=0)
    return [flat[a:b] for a, b in pairwise(ends)]


def named(labels: Labels) -> Array:
    """Return labels as an array, with None for number -1."""
    array = np.empty(len(labels) + 1, dtype=object)
    array[:-1] = labels.values
    return array


def as_counts(counts: Any, labels: Labels, name: str) -> list[int]:
    """Return how many sub-types each label has."""
    if isinstance(counts, dict):
        absent = [label for label in labels.values if label not in counts]
        if absent:
            raise ValueError(f"{name} has no number for the label {absent[0]!r}: give one for every label")
        counts = [counts[label] for label in labels.values]
    else:
        counts = [counts] * len(labels)
    for n in counts:
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"{name} must be a positive integer, or a dict with one for every label, got {n!r}")
    return [int(n) for n in counts]


def nearest(rows: Rows, which: Array, count: int, random: np.random.RandomState) -> Array:
    """Return the numbers of the centres, of k-means, that are nearest to some rows."""
    some = which if len(which) <= _SOME else np.sort(random.choice(which, _SOME, replace=False))
    means = KMeans(min(count, len(some)), n_init=1, random_state=random.randint(2**31 - 1))
    with warnings.catch_warnings(), threadpool_limits(1):  # so few rows take longer in threads that wait for a core
        warnings.simplefilter("ignore", ConvergenceWarning)  # of rows that are equal there may be fewer
        centres = means.fit(_narrow(rows.matrix[some])).cluster_centers_.astype(np.float64)
    half = (centres**2).sum(axis=1) / 2
    numbers = np.empty(len(which), dtype=np.int32)
    size = max(1, _CHUNK * rows.n // max(1, rows.numbers))
    for k in range(0, len(which), size):  # argmin |x - c|^2 = argmax x.c - |c|^2 / 2
        numbers[k : k + size] = (rows.matrix[which[k : k + size]] @ centres.T - half).argmax(axis=1)
    return numbers


def _narrow(table: Any) -> Any:
    """Return a table as k-means reads it: with indices of 32 bits where it is sparse."""
    if not sp.issparse(table):
        return table
    parts = table.data, table.indices.astype(np.int32), table.indptr.astype(np.int32)
    return sp.csr_matrix(parts, shape=table.shape)
