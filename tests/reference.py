"""The problem with all its constraints written out, and solved by somebody else.

Nothing here knows dualsvm. `constraints` takes the arguments that the constructors of `dualsvm.Problem` take
and materialises every x_ij; the weights of several classes are flattened class by class. In all kinds the
constraints come in the order of dualsvm's alpha, flattened.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import cvxpy as cp
import numpy as np


@dataclass(frozen=True)
class Statement:
    """Minimise 1/2 (w - m)' S^-1 (w - m) + sum_i C_i slack_i (or slack_i^2), with lower <= w <= upper."""

    x: np.ndarray  # constraints x weights
    l: np.ndarray
    example: np.ndarray  # whose slack a constraint shares, 0 .. n-1
    cost: np.ndarray
    squared: bool
    mean: np.ndarray
    covariance: np.ndarray  # diagonal where there are bounds
    lower: np.ndarray
    upper: np.ndarray

    def optimum(self) -> float:
        """Solve the primal QP with Clarabel, in z with w = m + L z and S = L L'."""
        root = np.linalg.cholesky(self.covariance)
        z, slack = cp.Variable(len(root)), cp.Variable(len(self.cost), nonneg=True)
        w, pays = self.mean + root @ z, self.cost[self.example] > 0
        fixed = self.lower == self.upper  # as two inequalities they would leave the solver no interior
        low, high = np.isfinite(self.lower) & ~fixed, np.isfinite(self.upper) & ~fixed
        rules = [
            self.x[pays] @ w + slack[self.example[pays]] >= self.l[pays],
            w[low] >= self.lower[low],
            w[high] <= self.upper[high],
            w[fixed] == self.lower[fixed],
        ]
        price = np.where(self.cost > 0, self.cost, 1)  # nobody asks a slack of the rest: let it be 0
        paid = price @ (slack**2 if self.squared else slack)
        problem = cp.Problem(cp.Minimize(cp.sum_squares(z) / 2 + paid), [rule for rule in rules if rule.size])
        problem.solve(cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        assert problem.status == cp.OPTIMAL
        return float(problem.value)

    def primal(self, w: np.ndarray) -> float:
        """Return the objective at w, by its definition."""
        assert (w >= self.lower).all()
        assert (w <= self.upper).all()
        slack = np.zeros(len(self.cost))
        np.maximum.at(slack, self.example, self.l - self.x @ w)
        return self._distance(w) + self.cost @ (slack**2 if self.squared else slack)

    def dual(self, alpha: np.ndarray) -> float:
        """Return l.alpha + 1/2 (w - m)' S^-1 (w - m) - w.u (- alpha_i^2 / 4 C_i), at the w of alpha."""
        w, paying = self.weights(alpha), self.cost > 0
        squares = (self.mass(alpha)[paying] ** 2 / (4 * self.cost[paying])).sum()
        return self.l @ alpha + self._distance(w) - w @ self.x.T @ alpha - squares * self.squared

    def weights(self, alpha: np.ndarray) -> np.ndarray:
        """Return the w that dual variables stand for: clip(m + S u)."""
        return np.clip(self.mean + self.covariance @ self.x.T @ alpha, self.lower, self.upper)

    def mass(self, alpha: np.ndarray) -> np.ndarray:
        """Return the sum of the dual variables of every example."""
        return np.bincount(self.example, alpha, minlength=len(self.cost))

    def _distance(self, w: np.ndarray) -> float:
        return (w - self.mean) @ np.linalg.solve(self.covariance, w - self.mean) / 2


def state(kind, X, arguments, *, cost, loss, mean=0.0, variance=1.0, covariance=None, lower=-np.inf, upper=np.inf):
    """Write out a problem; mean, variance and bounds come in the shape of the weights that dualsvm shows."""
    x, l, example = constraints(kind, X, **arguments)
    mean, variance, lower, upper = (
        np.broadcast_to(value, x.shape[1]) if np.ndim(value) == 0 else np.ravel(value)
        for value in (mean, variance, lower, upper)
    )
    if covariance is None:
        covariance = np.diag(variance)
    else:  # of the weights of one class, independent of those of the others
        covariance = np.kron(np.eye(x.shape[1] // len(covariance)), covariance)
    cost = np.broadcast_to(cost, example.max() + 1)
    return Statement(x, l, example, cost, loss == "squared_hinge", mean, covariance, lower, upper)


def constraints(kind, X, **arguments):
    """Return all x_ij, their l_ij, and to which example each belongs."""
    X = np.asarray(X, dtype=np.float64)
    if intercept := arguments.pop("intercept", 0.0):
        X = np.column_stack([X, np.full(len(X), intercept)])
    return globals()[f"_{kind}"](X, **arguments)


def _rows(X, margins, example=None):
    one_each = np.arange(len(X))
    return X, margins, one_each if example is None else np.unique(example, return_inverse=True)[1]


def _binary(X, y, margin):
    return np.diag(y) @ X, np.broadcast_to(margin, len(X)), np.arange(len(X))


def _regression(X, y, epsilon):
    x = [sign * row for row in X for sign in (1, -1)]
    l = [sign * target - epsilon for target in y for sign in (1, -1)]
    return np.array(x), np.array(l), np.repeat(np.arange(len(X)), 2)


def _multiclass(X, y, class_loss, margin=1.0, rescaling="margin"):
    def phi(row, j):
        return np.kron(np.eye(len(class_loss))[j], row)

    # j = y gives a constraint of zeros, which says that slacks are not negative
    factor = class_loss if rescaling == "slack" else np.ones_like(class_loss)
    x = [
        factor[own, j] * (phi(row, own) - phi(row, j))
        for row, own in zip(X, y, strict=True)
        for j in range(len(class_loss))
    ]
    l = np.broadcast_to(margin, len(X))[:, None] * class_loss[y]
    return np.array(x), l.ravel(), np.repeat(np.arange(len(X)), len(class_loss))


def _ranking(X, pairs, margin):
    x = [X[preferred] - X[other] for preferred, other in pairs]
    return np.array(x), np.broadcast_to(margin, len(pairs)), np.arange(len(pairs))


def _lists(X, y, qid, margin=1.0, weight=None):
    """One constraint for every set of preference pairs."""
    weight = np.ones(len(X)) if weight is None else weight
    x, l, example = [], [], []
    for q, name in enumerate(np.unique(qid)):
        rows = np.flatnonzero(qid == name)
        pairs = [(i, j, weight[i] * weight[j]) for i in rows for j in rows if y[i] > y[j]]
        for chosen in product([0, 1], repeat=len(pairs)):
            some = [pair for pair, take in zip(pairs, chosen, strict=True) if take]
            x.append(sum((c * (X[i] - X[j]) for i, j, c in some), start=np.zeros(X.shape[1])))
            l.append(margin * sum(c for _, _, c in some))
            example.append(q)
    return np.array(x), np.array(l), np.array(example)


@dataclass(frozen=True)
class Listed:
    """Lists by their pairs: C_i times the sum (or its square) of c_p c_q max(0, margin - w.(x_p - x_q))."""

    X: np.ndarray
    y: np.ndarray
    list: np.ndarray  # of every row, 0 .. n-1
    weight: np.ndarray
    margin: float
    cost: np.ndarray
    squared: bool
    mean: np.ndarray
    covariance: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def pairs(self) -> np.ndarray:
        """All (preferred, other)."""
        wins = (self.list[:, None] == self.list[None, :]) & (self.y[:, None] > self.y[None, :])
        return np.argwhere(wins)

    def losses(self, scores: np.ndarray) -> np.ndarray:
        """Return what the pairs of every list fall short of the margin, summed."""
        better, worse = self.pairs.T
        short = np.maximum(0, self.margin - (scores[better] - scores[worse]))
        return np.bincount(self.list[better], self.weight[better] * self.weight[worse] * short, len(self.cost))

    def primal(self, w: np.ndarray) -> float:
        """Return the objective at w, by its definition."""
        assert (w >= self.lower).all()
        assert (w <= self.upper).all()
        losses = self.losses(self.X @ w)
        away = w - self.mean
        return self.cost @ (losses**2 if self.squared else losses) + away @ np.linalg.solve(self.covariance, away) / 2

    def optimum(self) -> float:
        """Solve the primal QP with Clarabel, with a slack for every pair and one for every list."""
        root = np.linalg.cholesky(self.covariance)
        better, worse = self.pairs[self.cost[self.list[self.pairs[:, 0]]] > 0].T
        z, short = cp.Variable(len(root)), cp.Variable(len(better) + 1, nonneg=True)  # one to spare: never empty
        w = self.mean + root @ z
        fixed = self.lower == self.upper
        low, high = np.isfinite(self.lower) & ~fixed, np.isfinite(self.upper) & ~fixed
        rules = [
            (self.X[better] - self.X[worse]) @ w + short[:-1] >= self.margin,
            w[low] >= self.lower[low],
            w[high] <= self.upper[high],
            w[fixed] == self.lower[fixed],
        ]
        share = np.zeros((len(self.cost), len(better) + 1))
        share[self.list[better], np.arange(len(better))] = self.weight[better] * self.weight[worse]
        paid = self.cost @ cp.square(share @ short) if self.squared else (self.cost @ share) @ short
        problem = cp.Problem(cp.Minimize(cp.sum_squares(z) / 2 + paid), [rule for rule in rules if rule.size])
        problem.solve(cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        assert problem.status == cp.OPTIMAL
        return float(problem.value)


def listed(X, y, qid=None, *, weight=None, margin=1.0, cost=1.0, loss="hinge", **shape):
    """Write out a problem of lists by its pairs; the rest as in `state`."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    n, d = X.shape
    place = np.zeros(n, int) if qid is None else np.unique(qid, return_inverse=True)[1]
    covariance = shape.get("covariance")
    if covariance is None:
        covariance = np.diag(np.broadcast_to(shape.get("variance", 1.0), d))
    rest = (np.broadcast_to(shape.get(k, v), d) for k, v in (("mean", 0.0), ("lower", -np.inf), ("upper", np.inf)))
    mean, lower, upper = rest
    weight = np.ones(n) if weight is None else np.asarray(weight)
    cost = np.broadcast_to(cost, place.max() + 1)
    return Listed(X, y, place, weight, margin, cost, loss == "squared_hinge", mean, covariance, lower, upper)
