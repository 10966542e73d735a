"""Graphs that are none, and what the kernel refuses."""

import numpy as np
import pytest

from dualsvm import StructuredSVM, _core
from dualsvm.tasks import Graph, Grid, Tree

F = np.ones((3, 2))
BAD = {
    "edge to nowhere": ((F, [[0, 3]]), r"edge 0 of input 0 joins \[0, 3\], but its 3 nodes are 0 .. 2"),
    "negative node": ((F, [[0, 1], [-1, 2]]), r"edge 1 of input 0 joins \[-1, 2\]"),
    "loop": ((F, [[0, 1], [2, 2]]), "edge 1 of input 0 joins node 2 with itself"),
    "twice": ((F, [[0, 1], [1, 0]]), r"input 0 has the edge \[1, 0\] twice"),
    "no pairs": ((F, [0, 1, 2]), r"must be integers of shape \(n_edges, 2\)"),
    "real edges": ((F, [[0.0, 1.0]]), "must be integers"),
    "NaN": ((np.where(np.eye(3, 2), np.nan, 1.0), [[0, 1]]), "NaN"),
    "NaN at an edge": ((F, [[0, 1]], [[np.nan]]), "edge features of input 0 contain NaN"),
    "edge features missing": ((F, [[0, 1], [1, 2]], [[1.0]]), r"of shape \(2, n_edge_features\)"),
    "flat features": ((np.ones(3), [[0, 1]]), r"shape \(n_nodes, n_features\)"),
    "words": ((F, [[0, 1]], [["a"]]), "must be numbers"),
    "no tuple": (F, "must be .features, edges. or"),
    "one part": ((F,), "got 1 parts"),
    "ragged": (([[1.0], [1.0, 2.0]], [[0, 1]]), "lines of one length"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_graphs(what):
    x, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        StructuredSVM(Graph()).fit([x], [[0, 1, 0]])


def test_graphs_that_do_not_fit():
    good = (F, [[0, 1]])
    with pytest.raises(ValueError, match=r"input 1 has a cycle: use tasks\.Graph"):
        StructuredSVM(Tree()).fit([good, (F, [[0, 1], [1, 2], [2, 0]])], [[0, 1, 0]] * 2)
    with pytest.raises(ValueError, match="has 3 nodes, but its output 2 labels"):
        StructuredSVM(Graph()).fit([good], [[0, 1]])
    with pytest.raises(ValueError, match="input 1: every input must have 2 features"):
        StructuredSVM(Graph()).fit([good, (np.ones((3, 4)), [])], [[0, 1, 0]] * 2)
    with pytest.raises(ValueError, match="edges with 2 features, but those of training have 1"):
        StructuredSVM(Graph()).fit([good, (F, [[0, 1]], [[1.0, 2.0]])], [[0, 1, 0]] * 2)
    with pytest.raises(ValueError, match="pairwise must be"):
        StructuredSVM(Graph(pairwise="ising")).fit([good], [[0, 1, 0]])
    with pytest.raises(ValueError, match="max_iter must be a positive integer"):
        StructuredSVM(Graph(max_iter=0)).fit([good], [[0, 1, 0]])
    with pytest.raises(ValueError, match=r"shape \(height, width, n_features\)"):
        StructuredSVM(Grid()).fit([F], [np.zeros((3, 2), int)])
    with pytest.raises(ValueError, match=r"has height and width \(2, 3\), but its output \(3, 2\)"):
        StructuredSVM(Grid()).fit([np.ones((2, 3, 1))], [np.arange(6).reshape(3, 2)])
    with pytest.raises(ValueError, match="labels of shape"):
        StructuredSVM(Grid()).fit([np.ones((2, 3, 1))], [np.arange(6)])
    with pytest.raises(ValueError, match="edge_features must be"):
        StructuredSVM(Grid("colour")).fit([np.ones((1, 2, 1))], [np.array([[0, 1]])])
    task = Graph()
    task.initialize([good], [[0, 1, 0]])
    with pytest.raises(ValueError, match=r"w must have shape \(8,\)"):
        task.unpack(np.ones(3))
    with pytest.raises(ValueError, match="weights of another length"):
        task.inference(good, np.ones(3))
    with pytest.raises(ValueError, match="weights that are not finite"):
        task.inference(good, np.full(8, np.nan))
    with pytest.raises(ValueError, match="marginals must have shapes"):
        task.joint_feature(good, (np.ones((2, 2)), np.ones((1, 2, 2))))


def test_the_kernel_refuses_what_would_break_it():
    two = np.arange(2, dtype=np.int32)
    spec = {
        "start": np.array([0, 2]),
        "label": two,
        "edge": np.array([[0, 1]], dtype=np.int32),
        "edge_from": np.array([0]),
        "edge_to": np.array([1]),
        "edge_features": (np.ones(1), np.zeros(1, np.int32), np.array([0, 1])),
        "node_terms": (1, 3, 2, two),
        "edge_terms": (1, 1, 4, np.arange(4, dtype=np.int32)),
        "cost": 1 - np.eye(2),
        "normalized": False,
        "iterations": 5,
    }
    rows = np.ones((2, 3))
    decoder = _core.graphs(rows, spec)
    assert decoder.n_weights == 10
    with pytest.raises(ValueError, match="a label of no class"):
        decoder.loss(0, np.array([0, 7], dtype=np.int32))
    with pytest.raises(ValueError, match="a label of no class"):
        decoder.joint(0, np.array([-2, 0], dtype=np.int32))
    worse = {
        "start": [np.array([0, 3]), np.array([1, 2]), np.array([0, 3, 2])],
        "label": [two + 1, two[:1], None],
        "edge": [np.array([[0, 2]], np.int32), np.array([[1, 1]], np.int32), np.array([[-1, 1]], np.int32), None],
        "edge_from": [np.array([-1]), np.array([2])],
        "edge_to": [np.array([2])],
        "edge_type": [np.array([1], np.int32)],
        "node_type": [two],
        "row": [two + 1],
        "edge_features": [
            (np.ones(1), np.ones(1, np.int32), np.array([0, 1])),
            (np.ones(1), np.zeros(1, np.int32), np.array([0, 2])),
            (np.ones(2), np.zeros(1, np.int32), np.array([0, 1])),
        ],
        "node_terms": [(1, 2, 2, two), (1, 3, 1, two), (1, 3, 2, two[:1]), (0, 3, 2, two), (2**40, 3, 2, two)],
        "edge_terms": [(1, 1, 3, np.arange(4, dtype=np.int32)), (1, 0, 4, np.arange(4, dtype=np.int32))],
        "iterations": [0],
    }
    for name, values in worse.items():
        for value in values:
            with pytest.raises((ValueError, TypeError, RuntimeError)):
                _core.graphs(rows, spec | {name: value})
    with pytest.raises(ValueError, match="rows that are no sparse matrix"):
        _core.graphs((np.ones(2), np.array([0, 5], np.int32), np.array([0, 1, 2], np.int32), 3), spec)
