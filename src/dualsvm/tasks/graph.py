"""Graphs: a label at every node, and edges between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from .. import _core
from ..checks import Array
from .base import Coded, LabellingTask, alike, as_codes
from .chain import stacked
from .parts import Parts, as_parts, cycles
from .relaxed import RelaxedCoded, is_relaxed


class Graph(LabellingTask):
    """Labelling of graphs: every node has features and a label, and edges, with features or not, join some of them.

    The score of labels y for a graph x is ``sum_s unary[y_s].x_s + sum_(s,t) pairwise[:, y_s, y_t].x_st`` over its
    nodes s and edges (s, t). The best labels are found exactly where the graph is a forest, where it is small
    (4096 labellings), and where there are two labels and every edge prefers equal ones; else by sequential
    tree-reweighted message passing, which also bounds how much better other labels could be. Certificates count that
    bound: they hold in any case, but the gap may stay open.

    Parameters
    ----------
    normalized : bool, default False
        Whether the loss of a graph is divided by its number of nodes.
    pairwise : {"full", "symmetric", "potts"}, default "full"
        What an edge feature has weights for: every pair of labels, in the direction of the edge; every pair, in
        either direction; or one for labels that are equal.
    submodular : bool, default False
        Whether weights are bounded such that edges prefer equal labels, of which there must be two: those of equal
        labels to 0 at least, those of different ones to 0 at most. With edge features that are not negative, which
        is checked, the search is exact then.
    relaxed : bool, default False
        Whether training competes with fractional labellings, too, those of the local linear relaxation: pairs
        ``(node_marginals, edge_marginals)`` of shapes (n_nodes, n_labels) and (n_edges, n_labels, n_labels). The
        search in training is exact then, as a linear program solved by HiGHS, which takes its time; the certificate
        is that of the relaxed problem, whose optimum is at least that of the original one.
    max_iter : int, default 50
        Most iterations of message passing in one search.
    cost : array-like of shape (n_labels, n_labels), default None
        What it costs to take the label of the row for that of the column, in the order of `labels`, or else of the
        sorted labels. None: 1 for every wrong label (Hamming).
    labels : sequence, default None
        The labels, of any hashable type. None: those that occur in training.

    Notes
    -----
    Inputs are ``(features, edges)`` or ``(features, edges, edge_features)``: an array or sparse matrix of shape
    (n_nodes, n_features), integers of shape (n_edges, 2), and numbers of shape (n_edges, n_edge_features), without
    which edges have one constant feature 1. Outputs are sequences of labels. A node whose label is None or NaN is
    left out in training, together with its edges, and gets a label when predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm import StructuredSVM
    >>> from dualsvm.tasks import Graph
    >>> rng = np.random.default_rng(0)
    >>> triangle = [(0, 1), (1, 2), (0, 2)]
    >>> Y = [np.repeat(rng.choice(["sun", "rain"]), 3) for _ in range(20)]
    >>> X = [(np.column_stack([y == "sun", y == "rain"]) + 0.5 * rng.normal(size=(3, 2)), triangle) for y in Y]
    >>> model = StructuredSVM(Graph(), C=1.0, random_state=0).fit(X, Y)
    >>> model.score(X, Y), model.gap_ <= 1e-3
    (1.0, True)
    >>> model.task.unpack(model.coef_).pairwise.shape
    (1, 2, 2)
    """

    learned = ("_labels", "_width", "_edge_width")
    _edge_width: int | None = None
    _edge_types = 1

    def __init__(
        self,
        normalized: bool = False,
        pairwise: str = "full",
        submodular: bool = False,
        relaxed: bool = False,
        max_iter: int = 50,
        cost: Any = None,
        labels: Sequence[Any] | None = None,
    ) -> None:
        self.normalized = normalized
        self.pairwise = pairwise
        self.submodular = submodular
        self.relaxed = relaxed
        self.max_iter = max_iter
        self.cost = cost
        self.labels = labels

    def _parts(self, x: Any, name: str) -> Parts:
        return as_parts(x, name)

    def _measured(self, X: Any) -> dict[str, Any]:
        width = edge_width = None
        without = 0  # features that edges would have, where there is none
        for i, x in enumerate(X):
            parts = self._parts(x, f"input {i}")
            width = parts.features.shape[1] if width is None else width
            if not len(parts.edges):
                without = max(without, parts.edge_features.shape[1])
            elif edge_width is None:
                edge_width = parts.edge_features.shape[1]
        return {"width": width, "edge_width": edge_width, "without": without}

    def _agree_on(self, surveys: Sequence[dict[str, Any]]) -> None:
        super()._agree_on(surveys)
        edge_width = alike(surveys, "edge_width", "features of edges")
        self._edge_width = edge_width if edge_width is not None else max(1, *(each["without"] for each in surveys))

    def _settle(self) -> None:
        n = len(self.known_labels)
        self._cost = self._costs()
        self._slots = pair_slots(self.pairwise, n)
        if self.submodular and n != 2:
            raise ValueError(f"submodular=True needs two labels, got {n}")
        if not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise ValueError(f"max_iter must be a positive integer, got {self.max_iter!r}")

    @property
    def _sizes(self) -> tuple[int, int, int, int]:
        """Numbers of labels, of features of nodes and of edges, and of weights of an edge feature."""
        n = len(self.known_labels)
        return n, int(self._width or 0), int(self._edge_width or 0), int(self._slots.max(initial=-1)) + 1

    @property
    def size_joint_feature(self) -> int:
        """Number of weights."""
        n, width, edge_width, weights = self._sizes
        return width * n + self._edge_types * edge_width * weights

    def _checked(self, X: Sequence[Any], names: str) -> list[Parts]:
        parts = [self._parts(x, names.format(i)) for i, x in enumerate(X)]
        for i, part in enumerate(parts):
            if len(part.edges) and part.edge_features.shape[1] != self._edge_width:
                raise ValueError(
                    f"{names.format(i)} has edges with {part.edge_features.shape[1]} features, but those of training "
                    f"have {self._edge_width}"
                )
            if self.submodular and part.edge_features.data.min(initial=0) < 0:
                raise ValueError(
                    f"{names.format(i)} has edge features below 0, with which submodular=True cannot keep its "
                    "promise: shift or split them"
                )
        return parts

    def _code(self, X: Sequence[Any], codes: list[Array] | None, names: str) -> Coded:
        n, width, edge_width, weights = self._sizes
        parts = self._checked(X, names)
        rows, lengths = stacked([part.features for part in parts], names, self._width)
        own = as_codes(codes, lengths, names, "nodes")
        m = np.array([len(part.edges) for part in parts], dtype=np.int64)
        last = np.cumsum(m)
        edge_features = joined([part.edge_features for part in parts if len(part.edges)], edge_width)
        types = [part.edge_type for part in parts if part.edge_type is not None]
        spec = {
            "start": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            "label": np.concatenate([np.empty(0, np.int32), *own]),
            "edge": np.concatenate([np.empty((0, 2), np.int32), *(part.edges for part in parts)]),
            "edge_from": last - m,
            "edge_to": last,
            "edge_type": np.concatenate(types) if types else None,
            "edge_features": edge_features,
            "node_terms": (1, width, n, np.arange(n, dtype=np.int32)),
            "edge_terms": (self._edge_types, edge_width, weights, self._slots.ravel()),
            "cost": self._cost,
            "normalized": bool(self.normalized),
            "iterations": int(self.max_iter),
        }
        numbers = np.count_nonzero(rows.matrix) if isinstance(rows.matrix, np.ndarray) else rows.numbers
        sweeps = np.where(cycles(parts) > 0, 1 + self.max_iter, 1)  # message passing mostly ends earlier
        work = numbers * n + len(edge_features[0]) * weights + (sweeps * m).sum() * n * n
        coded = Coded(_core.graphs(rows.kernel, spec), lengths, float(work) / max(1, len(parts)) / 2)
        return RelaxedCoded(coded, self, parts, codes) if self.relaxed and codes is not None else coded

    def joint_feature(self, x: Any, y: Any) -> tuple[Array, Array]:
        """Return the joint feature vector of an input and an output, as (indices, values).

        Parameters
        ----------
        x : input
            An input.
        y : output
            An output; labels that are missing count nothing. Or a relaxed one, (node_marginals, edge_marginals).

        Returns
        -------
        indices, values : ndarray
        """
        if not is_relaxed(y):
            return super().joint_feature(x, y)
        (parts,) = self._checked([x], "x")
        phi = self._gather(parts, *y)
        return np.flatnonzero(phi), phi[phi != 0]

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return what it costs to take one output for another.

        Parameters
        ----------
        y, y_hat : output
            The true output and the other one, which may be relaxed. Labels that are missing cost nothing.

        Returns
        -------
        float
        """
        if not is_relaxed(y_hat):
            return super().loss(y, y_hat)
        own, nodes = self.known_labels.encode(self._flat(y), "y"), np.asarray(y_hat[0])
        if nodes.shape != (len(own), len(self.known_labels)):
            raise ValueError(f"y has {len(own)} labels, but y_hat marginals of shape {nodes.shape}")
        total = float((self._cost[own[own >= 0]] * nodes[own >= 0]).sum())
        return total / len(own) if self.normalized and len(own) else total

    def loss_augmented_inference(self, x: Any, y: Any, w: Array) -> Any:
        """Return the output with the largest sum of its loss and its score.

        Parameters
        ----------
        x, y : input and output
            An example.
        w : ndarray
            Weights.

        Returns
        -------
        output
            With ``relaxed=True`` a relaxed one, (node_marginals, edge_marginals).
        """
        if not self.relaxed:
            return super().loss_augmented_inference(x, y, w)
        coded = self.encode([x], [y])
        assert isinstance(coded, RelaxedCoded)
        return coded.relaxed(0, np.asarray(w, dtype=np.float64))[0]

    def _gather(self, parts: Parts, nodes: Any, edges: Any) -> Array:
        """Return the joint feature vector of marginals."""
        n, _, edge_width, weights = self._sizes
        nodes, edges = np.asarray(nodes, dtype=np.float64), np.asarray(edges, dtype=np.float64).reshape(-1, n * n)
        if nodes.shape != (parts.n, n) or len(edges) != len(parts.edges):
            raise ValueError(
                f"marginals must have shapes ({parts.n}, {n}) and ({len(parts.edges)}, {n}, {n}), got {nodes.shape} "
                f"and {len(edges)} tables"
            )
        pairwise = np.zeros((self._edge_types, edge_width, weights + 1))  # slot -1 collects what has no weight
        for kind in range(self._edge_types):
            of_kind = slice(None) if parts.edge_type is None else parts.edge_type == kind
            table = parts.edge_features[of_kind].T @ edges[of_kind] if len(edges) else np.zeros((edge_width, n * n))
            np.add.at(pairwise[kind].T, self._slots.ravel(), table.T)
        return np.concatenate([(parts.features.T @ nodes).ravel(), pairwise[..., :weights].ravel()])

    def _scores(self, parts: Parts, w: Array) -> tuple[Array, Array]:
        """Return the scores of labels, nodes x labels, and of their pairs, edges x labels x labels."""
        n, width, _, _ = self._sizes
        pairwise = self._pairwise(w)
        tables = np.zeros((len(parts.edges), n * n))
        for kind in range(self._edge_types if len(tables) else 0):
            of_kind = slice(None) if parts.edge_type is None else parts.edge_type == kind
            tables[of_kind] = parts.edge_features[of_kind] @ pairwise[kind].reshape(-1, n * n)
        return parts.features @ w[: width * n].reshape(width, n), tables.reshape(-1, n, n)

    def _pairwise(self, w: Array) -> Array:
        """Return the weights of pairs of labels, types x features x labels x labels."""
        n, width, edge_width, weights = self._sizes
        if np.shape(w) != (self.size_joint_feature,):
            raise ValueError(f"w must have shape ({self.size_joint_feature},), got {np.shape(w)}")
        table = np.zeros((self._edge_types, edge_width, weights + 1))
        table[..., :weights] = np.asarray(w)[width * n :].reshape(self._edge_types, edge_width, weights)
        return table[..., self._slots]

    def weight_bounds(self) -> tuple[Array | None, Array | None]:
        """Return the bounds that `submodular` sets on the weights, (None, None) without."""
        if not self.submodular:
            return None, None
        n, width, edge_width, weights = self._sizes
        lower, upper = np.full(weights, -np.inf), np.full(weights, np.inf)
        lower[np.diag(self._slots)] = 0.0
        upper[[slot for slot in (self._slots[0, 1], self._slots[1, 0]) if slot >= 0]] = 0.0
        free, times = np.full(width * n, np.inf), self._edge_types * edge_width
        return np.concatenate([-free, np.tile(lower, times)]), np.concatenate([free, np.tile(upper, times)])

    def unpack(self, w: Array) -> Bunch:
        """Return the named parts of weights.

        Parameters
        ----------
        w : ndarray
            Weights.

        Returns
        -------
        Bunch
            `unary` (labels x features), `pairwise` (edge features x labels x labels, by the direction of the edge)
            and `labels`.
        """
        n, width, _, _ = self._sizes
        pairwise, unary = self._pairwise(w)[0], np.asarray(w)[: width * n].reshape(width, n).T
        return Bunch(unary=unary, pairwise=pairwise, labels=self.known_labels.values)


class Tree(Graph):
    """Labelling of trees and forests, with an exact search: a `Graph` that refuses cycles.

    Parameters
    ----------
    normalized, pairwise, cost, labels
        As in `Graph`.

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm import StructuredSVM
    >>> from dualsvm.tasks import Tree
    >>> rng = np.random.default_rng(0)
    >>> star = [(0, 1), (0, 2), (0, 3)]
    >>> Y = [np.repeat(rng.integers(3), 4) for _ in range(20)]
    >>> X = [(np.eye(3)[y] + 0.5 * rng.normal(size=(4, 3)), star) for y in Y]
    >>> StructuredSVM(Tree(), random_state=0).fit(X, Y).score(X, Y)
    1.0
    """

    def __init__(
        self, normalized: bool = False, pairwise: str = "full", cost: Any = None, labels: Sequence[Any] | None = None
    ) -> None:
        super().__init__(normalized, pairwise, cost=cost, labels=labels)

    def _checked(self, X: Sequence[Any], names: str) -> list[Parts]:
        parts = super()._checked(X, names)
        if (more := cycles(parts) > 0).any():
            raise ValueError(f"{names.format(int(np.argmax(more)))} has a cycle: use tasks.Graph for such graphs")
        return parts


def pair_slots(pairwise: Any, n: int) -> Array:
    """Return which weight belongs to a pair of labels, -1 where there is none."""
    if pairwise == "full":
        slots = np.arange(n * n).reshape(n, n)
    elif pairwise == "symmetric":
        slots = np.zeros((n, n), dtype=np.int64)
        slots[np.triu_indices(n)] = np.arange(n * (n + 1) // 2)
        slots = np.maximum(slots, slots.T)
    elif pairwise == "potts":
        slots = np.where(np.eye(n, dtype=bool), 0, -1)
    else:
        raise ValueError(f'pairwise must be "full", "symmetric" or "potts", got {pairwise!r}')
    return slots.astype(np.int32)


def joined(tables: list[Any], width: int) -> tuple[Array, Array, Array]:
    """Return the lines of sparse tables as values, columns and starts."""
    table = sp.vstack(tables, format="csr") if tables else sp.csr_array((0, width))
    table.sum_duplicates()
    return table.data.astype(np.float64), table.indices.astype(np.int32), table.indptr.astype(np.int64)
