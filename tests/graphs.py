"""Pairwise models by their definition: every output listed, every feature added up in plain Python."""

from itertools import combinations, product

import numpy as np
from scipy.optimize import linprog

from .reference import Statement


def joint_feature(x, y, n_labels, edge_width=1, slots=None, kinds=None):
    """Return phi(x, y): features of nodes at f L + label, then those of edges; labels below 0 count nothing."""
    features, edges = np.asarray(x[0]), x[1]
    edge_features = np.asarray(x[2]) if len(x) == 3 else np.ones((len(edges), 1))
    slots = np.arange(n_labels**2).reshape(n_labels, n_labels) if slots is None else slots
    kinds = np.zeros(len(edges), int) if kinds is None else kinds
    width, weights = features.shape[1], slots.max() + 1
    phi = np.zeros(width * n_labels + (max(kinds, default=0) + 1) * edge_width * weights)
    for s, label in enumerate(y):
        for f in range(width):
            if label >= 0:
                phi[f * n_labels + label] += features[s, f]
    for (a, b), line, kind in zip(edges, edge_features, kinds, strict=True):
        if y[a] >= 0 and y[b] >= 0 and slots[y[a], y[b]] >= 0:
            for e in range(edge_width):
                phi[width * n_labels + (kind * edge_width + e) * weights + slots[y[a], y[b]]] += line[e]
    return phi


def outputs(n, n_labels):
    """Return all labellings of n nodes."""
    return np.array(list(product(range(n_labels), repeat=n)), dtype=int).reshape(-1, n)


def scores(unary, tables, edges, Y):
    """Return the score of every labelling."""
    total = unary[np.arange(len(unary)), Y].sum(axis=1) if len(unary) else np.zeros(len(Y))
    for table, (a, b) in zip(tables, edges, strict=True):
        total = total + table[Y[:, a], Y[:, b]]
    return total


def relaxation(unary, tables, edges):
    """Return the optimum of the local linear relaxation, constraint by constraint."""
    n, L = unary.shape
    at = {(s, a): s * L + a for s in range(n) for a in range(L)}
    for e, _ in enumerate(edges):
        at |= {(e, a, b, "edge"): len(at) + a * L + b for a in range(L) for b in range(L)}
    lines, right = [], []

    def rule(ones, minus, value):
        line = np.zeros(len(at))
        line[[at[k] for k in ones]] = 1
        line[[at[k] for k in minus]] = -1
        lines.append(line)
        right.append(value)

    for s in range(n):
        rule([(s, a) for a in range(L)], [], 1)
    for e, (s, t) in enumerate(edges):
        for a in range(L):
            rule([(e, a, b, "edge") for b in range(L)], [(s, a)], 0)
            rule([(e, b, a, "edge") for b in range(L)], [(t, a)], 0)
    values = np.concatenate([unary.ravel(), np.ravel(tables)])
    return -linprog(-values, A_eq=np.array(lines), b_eq=right, method="highs").fun


def random_graph(rng, n, n_labels, width=2, edge_width=2, share=0.5, forest=False):
    """Return (features, edges, edge_features) and labels of n nodes."""
    pairs = [pair for pair in combinations(range(n), 2) if rng.random() < share]
    if forest:
        order = rng.permutation(n)
        pairs = [(order[k], order[rng.integers(k)]) for k in range(1, n) if rng.random() < share]
    edges = [tuple(int(s) for s in rng.permutation(pair)) for pair in pairs]
    x = (
        rng.normal(size=(n, width)),
        np.array(edges, dtype=int).reshape(-1, 2),
        rng.normal(size=(len(edges), edge_width)),
    )
    return x, rng.integers(n_labels, size=n)


def grid_edges(height, width):
    """Return the edges of a grid and their kinds, 0 across and 1 down."""
    across = [((r, c), (r, c + 1)) for r in range(height) for c in range(width - 1)]
    down = [((r, c), (r + 1, c)) for r in range(height - 1) for c in range(width)]
    number = [(a[0] * width + a[1], b[0] * width + b[1]) for a, b in across + down]
    return np.array(number, dtype=int).reshape(-1, 2), [0] * len(across) + [1] * len(down)


def statement(examples, n_labels, C, phi, *, slack=False, mean=0.0, variance=1.0, lower=-np.inf, upper=np.inf):
    """Return the problem with a constraint for every labelling, of examples (x, y) under the Hamming loss."""
    x, l, example = [], [], []
    for i, (graph, y) in enumerate(examples):
        known = np.flatnonzero(np.asarray(y) >= 0)
        for h in outputs(len(known), n_labels):
            other = np.full(len(y), -1)
            other[known] = h
            loss = float((other != y).sum())
            x.append((loss if slack else 1.0) * (phi(graph, y) - phi(graph, other)))
            l.append(loss)
            example.append(i)
    x = np.array(x)
    d = x.shape[1]
    mean, variance, lower, upper = (np.broadcast_to(v, d).astype(float) for v in (mean, variance, lower, upper))
    cost = np.full(len(examples), C)
    return Statement(x, np.array(l), np.array(example), cost, False, mean, np.diag(variance), lower, upper)
