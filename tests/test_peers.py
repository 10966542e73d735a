"""The optimum is that of liblinear, as scikit-learn wraps it: its primal, computed here, meets our bounds."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from dualsvm import Problem, solve

TIGHT = {"dual": True, "tol": 1e-7, "max_iter": 10**6, "random_state": 0}


def scaled(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def with_constant(X, value):
    """The intercept is the weight of a constant feature, regularised like the others."""
    return np.c_[X, np.full(len(X), value)]


def assert_met(solution, peer, distance):
    """The peer's primal lies above our lower bound, and close to our upper bound."""
    assert solution.converged
    assert solution.lower_bound <= peer * (1 + 1e-12)
    assert peer == pytest.approx(solution.upper_bound, rel=distance)


@pytest.mark.parametrize("scaling", [0.5, 1.0, 10.0])
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize(("loss", "power"), [("hinge", 1), ("squared_hinge", 2)])
def test_binary(loss, power, C, scaling):
    X, y = scaled(load_breast_cancer)
    sign = 2.0 * y - 1
    peer = LinearSVC(loss=loss, C=C, intercept_scaling=scaling, **TIGHT).fit(X, y)
    w = np.r_[peer.coef_[0], peer.intercept_ / scaling]
    slack = np.maximum(0, 1 - sign * (with_constant(X, scaling) @ w))
    primal = w @ w / 2 + C * (slack**power).sum()
    solution = solve(Problem.binary(X, sign, intercept=scaling, cost=C, loss=loss), tol=1e-5, max_iter=10**5)
    assert_met(solution, primal, 1e-4)
    np.testing.assert_allclose(solution.w, w, atol=0.02 * abs(w).max())


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize(
    ("loss", "ours", "power"),
    [("epsilon_insensitive", "hinge", 1), ("squared_epsilon_insensitive", "squared_hinge", 2)],
)
def test_regression(loss, ours, power, C):
    X, y = scaled(load_diabetes)
    y = (y - y.mean()) / y.std() + 0.5
    peer = LinearSVR(loss=loss, epsilon=0.2, C=C, **TIGHT).fit(X, y)
    w = np.r_[peer.coef_, peer.intercept_]
    slack = np.maximum(0, abs(y - with_constant(X, 1.0) @ w) - 0.2)
    primal = w @ w / 2 + C * (slack**power).sum()
    problem = Problem.regression(X, y, epsilon=0.2, intercept=1.0, cost=C, loss=ours)
    assert_met(solve(problem, tol=1e-4, max_iter=10**5), primal, 2e-4)


@pytest.mark.parametrize("load", [load_iris, load_digits])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_crammer_singer(load, C):
    X, y = scaled(load)
    peer = LinearSVC(multi_class="crammer_singer", C=C, **{**TIGHT, "tol": 1e-4}).fit(X, y)
    w = np.c_[peer.coef_, peer.intercept_]
    scores = with_constant(X, 1.0) @ w.T
    own = scores[np.arange(len(y)), y]
    scores[np.arange(len(y)), y] -= 1
    slack = (1 + scores).max(axis=1) - own
    primal = (w**2).sum() / 2 + C * slack.sum()
    solution = solve(Problem.multiclass(X, y, intercept=1.0, cost=C), tol=1e-3, max_iter=10**5)
    assert_met(solution, primal, 2e-3)
