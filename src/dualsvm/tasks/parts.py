"""The parts of a graph: features of its nodes, edges, and features of those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..checks import LIMIT, Array, as_array


class Parts(NamedTuple):
    """A graph whose nodes and edges have features."""

    features: Any  # nodes x features, an array or sparse
    edges: Array  # two nodes each
    edge_features: Any  # edges x features, a sparse array
    edge_type: Array | None = None

    @property
    def n(self) -> int:
        """Number of nodes."""
        return int(self.features.shape[0])


def as_parts(x: Any, name: str) -> Parts:
    """Check a graph, (features, edges) or (features, edges, edge_features)."""
    if not isinstance(x, tuple | list) or len(x) not in (2, 3):
        what = f"{len(x)} parts" if isinstance(x, tuple | list) else type(x).__name__
        raise ValueError(f"{name} must be (features, edges) or (features, edges, edge_features), got {what}")
    features = x[0] if sp.issparse(x[0]) else as_array(x[0], f"the features of {name}")
    if features.ndim != 2:
        raise ValueError(f"the features of {name} must have shape (n_nodes, n_features), got {features.shape}")
    edges = as_edges(x[1], features.shape[0], name)
    return Parts(features, edges, as_edge_features(x[2] if len(x) == 3 else None, len(edges), name))


def as_edges(values: Any, n: int, name: str) -> Array:
    """Check edges between n nodes: no loops, and no two between the same nodes."""
    edges = as_array(values, f"the edges of {name}")
    if edges.size == 0:
        return np.empty((0, 2), dtype=np.int32)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            f"the edges of {name} must be integers of shape (n_edges, 2), got {edges.dtype} of shape {edges.shape}"
        )
    outside = (edges < 0) | (edges >= n)
    if outside.any():
        k = int(np.argmax(outside.any(axis=1)))
        raise ValueError(f"edge {k} of {name} joins {edges[k].tolist()}, but its {n} nodes are 0 .. {n - 1}")
    edges = np.ascontiguousarray(edges, dtype=np.int32)
    loops = edges[:, 0] == edges[:, 1]
    if loops.any():
        k = int(np.argmax(loops))
        raise ValueError(f"edge {k} of {name} joins node {edges[k, 0]} with itself: leave such edges out")
    low, high = edges.min(axis=1).astype(np.int64), edges.max(axis=1)
    _, first = np.unique(low * n + high, return_index=True)
    if len(first) < len(edges):
        k = int(np.setdiff1d(np.arange(len(edges)), first)[0])
        raise ValueError(
            f"{name} has the edge {edges[k].tolist()} twice, in one direction or both: give it once, with the "
            "features of both"
        )
    return edges


def as_edge_features(values: Any, m: int, name: str) -> Any:
    """Check the features of m edges; None is a constant 1."""
    if values is None:
        return constant(m)
    table = values if sp.issparse(values) else as_array(values, f"the edge features of {name}")
    if m == 0 and table.size == 0 and table.ndim != 2:
        return sp.csr_array((0, 0))
    if table.ndim != 2 or table.shape[0] != m or table.dtype.kind not in "fiub":
        raise ValueError(
            f"the edge features of {name} must be numbers of shape ({m}, n_edge_features), one line for every edge, "
            f"got {table.dtype} of shape {table.shape}"
        )
    table = sp.csr_array(table, dtype=np.float64)
    if not (np.abs(table.data) <= LIMIT).all():
        raise ValueError(f"the edge features of {name} contain NaN, infinity or a number beyond 1e150")
    return table


def constant(m: int) -> Any:
    """Return a feature of m edges that always is 1."""
    return sp.csr_array((np.ones(m), np.zeros(m, np.int32), np.arange(m + 1)), shape=(m, 1))


def cycles(parts: Sequence[Parts]) -> Array:
    """Return how many edges each graph has more than a forest."""
    sizes = np.array([(part.n, len(part.edges)) for part in parts], dtype=np.int64).reshape(-1, 2)
    return cycles_of(
        sizes[:, 0], sizes[:, 1], np.concatenate([np.empty((0, 2), np.int32), *(part.edges for part in parts)])
    )


def cycles_of(n: Array, m: Array, edges: Array) -> Array:
    """Return how many edges graphs of n nodes and m edges, given one behind the other, have more than a forest."""
    total, graph = int(n.sum()), np.arange(len(n))
    if total == 0:
        return np.zeros(len(n), dtype=np.int64)
    ends = edges + np.repeat(np.cumsum(n) - n, m)[:, None]
    links = sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(total, total))
    _, component = connected_components(links, directed=False)
    _, some = np.unique(component, return_index=True)  # a node of every component
    return m - n + np.bincount(np.repeat(graph, n)[some], minlength=len(n))
