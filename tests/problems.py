"""Small problems of every task, and what must hold of a solution of any of them."""

import numpy as np
import pytest

import dualsvm.newton
from dualsvm import Problem, solve

RNG = np.random.default_rng(0)
N, D = 60, 5
X = RNG.normal(size=(N, D))
Y = np.sign(X[:, 0] + RNG.normal(size=N))
TARGETS = X[:, 0] + 0.5 * RNG.normal(size=N)
CLASSES = X[:, :3].argmax(axis=1)
LOSSES = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [3.0, 0.5, 0.0]])
TASKS = {
    "rows": lambda **k: Problem(X * Y[:, None], 1.0, **k),
    "grouped": lambda **k: Problem(X * Y[:, None], 1.0, example=np.arange(N) // 3, **k),
    "binary": lambda **k: Problem.binary(X, Y, intercept=1.0, **k),
    "regression": lambda **k: Problem.regression(X, TARGETS, epsilon=0.1, **k),
    "multiclass": lambda **k: Problem.multiclass(X, CLASSES, **k),
    "slack": lambda **k: Problem.multiclass(X, CLASSES, class_loss=LOSSES, rescaling="slack", margin=0.5, **k),
    "ranking": lambda **k: Problem.ranking(X, np.arange(N).reshape(-1, 2), **k),
    "lists": lambda **k: Problem.lists(X, CLASSES, np.arange(N) // 6, **k),
}


def large(n=400, **more):
    """A problem with enough examples for more than one thread."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(n, 10))
    return Problem.binary(rows, np.sign(rows[:, 0] + rng.normal(size=n)), **more)


def without_newton(monkeypatch):
    """Leave all to passes."""
    monkeypatch.setattr(dualsvm.newton.Newton, "price", staticmethod(lambda *_: np.inf))


def assert_optimal(solution, problem, tol):
    """The certificate holds, and an independent cold solve finds the same optimum."""
    assert solution.converged
    assert solution.gap <= tol
    bounds = solution.lower_bound, solution.upper_bound
    assert solution.certify(problem) == pytest.approx(bounds, rel=1e-9)
    cold = solve(problem, tol=tol, max_iter=10**5, random_state=5)
    assert solution.lower_bound <= cold.upper_bound * (1 + 1e-12)
    assert cold.lower_bound <= solution.upper_bound * (1 + 1e-12)
