"""Several labels at once, each present or not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.utils import Bunch

from .. import _core
from ..checks import Array
from .base import Coded, LabellingTask, as_codes
from .chain import as_width, stacked
from .costs import as_cost
from .graph import joined, pair_slots
from .labels import Labels
from .parts import as_edges, constant, cycles_of

_SAME = "every output must have the same number of zeros and ones, at least one"


class Multilabel(LabellingTask):
    """Multilabel classification: any of several labels may be present, and pairs of them attract or repel each other.

    The score of a vector y of zeros and ones for features x is ``sum_k y_k unary[k].x + sum_(j,k) pairwise[y_j,
    y_k]``, with a table of its own for every pair (j, k) of labels that an edge joins. The best y is found exactly
    where the edges form no cycle and where there are up to 12 labels that hang together; else as in `Graph`, with a
    bound on how much better others could be, which certificates count.

    Parameters
    ----------
    edges : {"full", "tree"}, sequence of pairs, or None, default "full"
        The pairs of labels that know of each other: all; those of the tree whose labels, in training, tell most about
        each other (of largest mutual information, after Chow and Liu); those given; or none.
    pairwise : {"full", "both"}, default "full"
        What a pair has weights for: each of its four values, or only that both are present.
    normalized : bool, default False
        Whether the loss is divided by the number of labels.
    max_iter : int, default 50
        Most iterations of message passing in one search.
    cost : array-like of shape (2, 2), default None
        What it costs to take the value (0 or 1) of the row for that of the column. None: 1 for every mistake.

    Notes
    -----
    Inputs are vectors of features, dense or sparse; a constant one among them serves as intercept. Outputs are
    vectors of zeros and ones. Where it is not known whether a label is present (None or NaN), it is left out in
    training, together with its pairs, and predicted like the others.

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm import StructuredSVM
    >>> from dualsvm.tasks import Multilabel
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=(50, 2)), np.ones(50)])
    >>> Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0, (X[:, 0] > 0) & (X[:, 1] > 0)])
    >>> model = StructuredSVM(Multilabel("tree", normalized=True), C=10.0, random_state=0).fit(X, Y)
    >>> model.score(X, Y) > 0.95, model.gap_ <= 1e-3
    (True, True)
    >>> model.task.unpack(model.coef_).edges.tolist()
    [[0, 2], [1, 2]]
    """

    learned = ("_labels", "_width", "_n_outputs", "_pairs")
    labels = (0, 1)
    _n_outputs = 0
    _pairs: Array

    def __init__(
        self,
        edges: Any = "full",
        pairwise: str = "full",
        normalized: bool = False,
        max_iter: int = 50,
        cost: Any = None,
    ) -> None:
        self.edges = edges
        self.pairwise = pairwise
        self.normalized = normalized
        self.max_iter = max_iter
        self.cost = cost

    def survey(self, X: Any, Y: Any) -> dict[str, Any]:
        """Return what a part of the examples tells, for `agree`.

        Parameters
        ----------
        X, Y : iterables
            Inputs and outputs.

        Returns
        -------
        dict
            The numbers of features and labels, and which labels occur together how often.
        """
        told = super().survey(X, Y)
        codes = [Labels(self.labels).encode(self._flat(y), f"output {i}") for i, y in enumerate(Y)]
        lengths = {len(code) for code in codes}
        if len(lengths) > 1 or 0 in lengths:
            raise ValueError(_SAME)
        tree = isinstance(self.edges, str) and self.edges == "tree" and codes
        return told | {"outputs": next(iter(lengths), None), "counts": counted(np.array(codes)) if tree else 0}

    def _agree_on(self, surveys: Sequence[dict[str, Any]]) -> None:
        super()._agree_on(surveys)
        n = {survey["outputs"] for survey in surveys} - {None}
        if len(n) != 1:
            raise ValueError(_SAME)
        (self._n_outputs,) = n
        self._pairs = self._chosen(self._n_outputs, sum(survey["counts"] for survey in surveys))

    def _chosen(self, n: int, counts: Array) -> Array:
        if self.edges is None:
            return np.empty((0, 2), np.int32)
        if not isinstance(self.edges, str):
            return as_edges(self.edges, n, "edges")
        if self.edges == "full":
            return np.array(list(combinations(range(n), 2)), dtype=np.int32).reshape(-1, 2)
        if self.edges == "tree":
            return chow_liu(counts)
        raise ValueError(f'edges must be "full", "tree", pairs of labels or None, got {self.edges!r}')

    def _width_of(self, x: Any, width: int | None) -> int:
        return as_width(as_line(x), width)

    def _flat(self, y: Any) -> Any:
        return y.toarray().ravel() if sp.issparse(y) else y

    def _settle(self) -> None:
        self._cost = as_cost(self.cost, 2)
        if self.pairwise not in ("full", "both"):
            raise ValueError(f'pairwise must be "full" or "both", got {self.pairwise!r}')
        both = np.array([[-1, -1], [-1, 0]], dtype=np.int32)
        self._slots = both if self.pairwise == "both" else pair_slots("full", 2)
        if not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise ValueError(f"max_iter must be a positive integer, got {self.max_iter!r}")

    @property
    def _sizes(self) -> tuple[int, int, int, int]:
        """Numbers of labels, features and edges, and of weights of an edge."""
        return self._n_outputs, int(self._width or 0), len(self._pairs), int(self._slots.max()) + 1

    @property
    def size_joint_feature(self) -> int:
        """Number of weights."""
        n, width, m, weights = self._sizes
        return n * width + m * weights

    def _code(self, X: Sequence[Any], codes: list[Array] | None, names: str) -> Coded:
        n, width, m, weights = self._sizes
        rows, ones = stacked([as_line(x) for x in X], names, self._width)
        lengths = [n for _ in ones]
        own = as_codes(codes, lengths, names, "labels")
        examples = np.arange(len(lengths) + 1, dtype=np.int64)
        spec = {
            "start": examples * n,
            "row": np.repeat(examples[:-1], n).astype(np.int32),
            "node_type": np.tile(np.arange(n, dtype=np.int32), len(lengths)),
            "label": np.concatenate([np.empty(0, np.int32), *own]),
            "edge": np.ascontiguousarray(self._pairs, dtype=np.int32),  # of all examples
            "edge_from": np.zeros(len(lengths), np.int64),
            "edge_to": np.full(len(lengths), m, np.int64),
            "edge_type": np.arange(m, dtype=np.int32) if m else None,
            "edge_features": joined([constant(m)], 1),
            "node_terms": (n, width, 1, np.array([-1, 0], np.int32)),
            "edge_terms": (max(m, 1), int(m > 0), weights, self._slots.ravel()),
            "cost": self._cost,
            "normalized": bool(self.normalized),
            "iterations": int(self.max_iter),
        }
        looped = cycles_of(np.array([n]), np.array([m]), self._pairs)[0] > 0
        looks = 0.0 if not looped else 2.0**n * n if n <= 12 else 4.0 * (1 + self.max_iter) * m
        price = (rows.numbers / max(1, len(lengths)) * n + 8 * m + looks) / 2
        return Coded(_core.graphs(rows.kernel, spec), lengths, price)

    def unpack(self, w: Array) -> Bunch:
        """Return the named parts of weights.

        Parameters
        ----------
        w : ndarray
            Weights.

        Returns
        -------
        Bunch
            `unary` (labels x features), `pairwise` (edges x 2 x 2) and `edges`, two labels each.
        """
        n, width, m, weights = self._sizes
        w = np.asarray(w)
        if w.shape != (self.size_joint_feature,):
            raise ValueError(f"w must have shape ({self.size_joint_feature},), got {w.shape}")
        table = np.zeros((m, weights + 1))  # slot -1 has no weight
        table[:, :weights] = w[n * width :].reshape(m, weights)
        return Bunch(unary=w[: n * width].reshape(n, width), pairwise=table[:, self._slots], edges=self._pairs)


def as_line(x: Any) -> Any:
    """Return a vector of features, dense or sparse, as one line."""
    if sp.issparse(x):
        if x.ndim == 2 and x.shape[0] != 1:
            raise ValueError(f"an input must be a vector of features, got a sparse matrix of shape {x.shape}")
        return x.reshape(1, -1)
    line = np.asarray(x)
    if line.ndim != 1:
        raise ValueError(f"an input must be a vector of features, got an array of shape {line.shape}")
    return line[None]


def counted(codes: Array) -> Array:
    """Return how often columns of 0 and 1, -1 if not known, have which values, for every pair of columns."""
    present = [(codes == value).astype(np.float64) for value in (0, 1)]
    return np.array([[a.T @ b for b in present] for a in present])


def chow_liu(counts: Array) -> Array:
    """Return the edges of the tree of largest mutual information between columns of which values were counted."""
    n = counts.shape[-1]
    total = np.maximum(counts.sum(axis=(0, 1)), 1)
    joint = counts / total
    apart = joint.sum(axis=1)[:, None] * joint.sum(axis=0)[None]
    terms = joint * np.log(np.divide(joint, apart, out=np.ones_like(joint), where=joint > 0))
    told = terms.sum(axis=(0, 1))
    tree = minimum_spanning_tree(1.0 + told.max(initial=0) - told).tocoo()  # an entry of 0 would be no edge
    pairs = np.sort(np.stack([tree.row, tree.col], axis=1), axis=1)
    return pairs[np.lexsort(pairs.T[::-1])].reshape(n - 1, 2).astype(np.int32)
