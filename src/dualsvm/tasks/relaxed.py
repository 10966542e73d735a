"""The local linear relaxation of graphs: marginals of nodes and edges that agree with each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from ..checks import Array
from ..structured.constraints import Answer, Feature, Found, collect
from .base import Coded, weights_of
from .parts import Parts


class RelaxedCoded(Coded):
    """Graphs whose search is a linear program; predictions are searched as ever.

    Parameters
    ----------
    coded : Coded
        The graphs with whole labels.
    task : Graph
        Whose they are.
    parts : list of Parts
        The graphs.
    codes : list of ndarray
        Their labels.
    """

    def __init__(self, coded: Coded, task: Any, parts: list[Parts], codes: list[Array]) -> None:
        super().__init__(coded.decoder, coded.lengths, None)
        self.task, self.parts, self.codes = task, parts, codes

    def search(self, which: Array, w: Array, threads: int = 1) -> Found:
        """Return the worst constraints of some examples."""
        which = np.ascontiguousarray(which, dtype=np.int64)
        answers = [self._answer(int(i), weights_of(w)) for i in which]
        return collect(which, answers)

    def _answer(self, i: int, w: Array) -> Answer:
        (nodes, edges), bound = self.relaxed(i, w)
        own, parts = self.codes[i], self.parts[i]
        n = nodes.shape[1]
        whole = np.eye(n)[own] * (own >= 0)[:, None]
        pairs = whole[parts.edges[:, 0], :, None] * whole[parts.edges[:, 1], None, :]
        x = self.task._gather(parts, whole - nodes, pairs - edges)
        share = 1 / len(own) if self.task.normalized and len(own) else 1.0
        l = share * float((self.task._cost[own] * nodes).sum())
        value = l - float(w @ x)
        column = np.flatnonzero(x)
        truth = float(w @ self.task._gather(parts, whole, pairs))
        return Answer([(Feature(column.astype(np.int32), x[column]), l)], value, max(value, bound - truth))

    def relaxed(self, i: int, w: Array) -> tuple[tuple[Array, Array], float]:
        """Return the marginals with most loss and score, 0 where labels are missing, and a bound on that."""
        own, parts, task = self.codes[i], self.parts[i], self.task
        share = 1 / len(own) if task.normalized and len(own) else 1.0
        unary, tables = task._scores(parts, w)
        known = own >= 0
        place, kept = np.cumsum(known) - 1, known[parts.edges].all(axis=1)
        unary = unary[known] + share * task._cost[own[known]]
        some, some_tables, bound = solve_local(unary, tables[kept], place[parts.edges[kept]])
        nodes, edges = np.zeros((len(own), unary.shape[1])), np.zeros_like(tables)
        nodes[known], edges[kept] = some, some_tables
        return (nodes, edges), bound


def is_relaxed(y: Any) -> bool:
    """Whether an output is a pair of marginals."""
    return isinstance(y, tuple) and len(y) == 2 and all(isinstance(part, np.ndarray) and part.ndim >= 2 for part in y)


def solve_local(unary: Array, tables: Array, edges: Array) -> tuple[Array, Array, float]:
    """Maximise over the local polytope; return marginals of nodes and edges, and a bound that no labelling exceeds.

    mu_s(a) sums to 1 over a, and mu_st(a, b) to mu_s(a) over b and to mu_t(b) over a. Multipliers of the latter are
    messages: they shift scores from edges to nodes, and the largest then add up to a bound, whatever they are.
    """
    (n, L), m = unary.shape, len(tables)
    if n == 0 or m == 0:
        whole = np.eye(L)[unary.argmax(axis=1)] if n else unary
        return whole, tables, float(unary.max(axis=1).sum()) if n else 0.0
    one = sp.kron(sp.eye_array(n), np.ones((1, L)))
    over = sp.kron(sp.eye_array(m * L), np.ones((1, L)))
    under = sp.kron(sp.eye_array(m), sp.kron(np.ones((1, L)), sp.eye_array(L)))
    at = [sp.kron(sp.csr_array((np.ones(m), (np.arange(m), edges[:, k])), (m, n)), sp.eye_array(L)) for k in (0, 1)]
    agree = sp.block_array([[one, None], [-at[0], over], [-at[1], under]], format="csr")
    right = np.concatenate([np.ones(n), np.zeros(2 * m * L)])
    found = linprog(-np.concatenate([unary.ravel(), tables.ravel()]), A_eq=agree, b_eq=right, method="highs")
    if found.status != 0:
        raise RuntimeError(f"the linear program of the relaxation was not solved: {found.message}")
    nodes = np.maximum(found.x[: n * L].reshape(n, L), 0)
    nodes /= nodes.sum(axis=1, keepdims=True)
    message = -found.eqlin.marginals[n:].reshape(2, m, L)
    hat = unary.copy()
    for side in (0, 1):
        np.add.at(hat, edges[:, side], message[side])
    rest = tables - message[0][:, :, None] - message[1][:, None, :]
    bound = float(hat.max(axis=1).sum() + rest.max(axis=(1, 2)).sum())
    return nodes, agreeing(found.x[n * L :].reshape(m, L, L), nodes[edges[:, 0]], nodes[edges[:, 1]]), bound


def agreeing(tables: Array, first: Array, second: Array) -> Array:
    """Return tables near the given ones whose lines and columns add up to marginals, but for rounding.

    Lines and columns with too much are scaled down; what is then missing is shared out as in independent variables.
    """
    tables = np.maximum(tables, 0)
    for axis, marginal in ((2, first), (1, second)):
        sums = tables.sum(axis=axis)
        factor = np.divide(marginal, sums, out=np.ones_like(sums), where=sums > marginal)
        tables = tables * np.expand_dims(factor, axis)
    lack, lack_too = first - tables.sum(axis=2), second - tables.sum(axis=1)
    total = lack.sum(axis=1)[:, None, None]
    more = lack[:, :, None] * lack_too[:, None, :]
    return tables + np.divide(more, total, out=np.zeros_like(more), where=total > 1e-300)
