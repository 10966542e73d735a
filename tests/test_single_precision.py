"""Weights that are float32 numbers: what is certified is the objective of the rounded weights."""

import numpy as np
import pytest

from dualsvm import Prior, Problem, SVMClassifier, SVMRanker, SVMRegressor
from dualsvm.progress import Watcher
from dualsvm.solution import primal
from dualsvm.solve import pursue
from dualsvm.state import State

from .problems import TASKS, N, X, Y
from .reference import state

ROWS = X.astype(np.float32)
EXACT = np.float32([-0.125, 0.25])  # bounds that float32 holds exactly


def pursued(problem, tol=1e-4, **more):
    given = {"start": None, "seed": 0, "n_jobs": None} | more
    return pursue(problem, tol, 10**5, single_precision=True, **given)


def assert_rounded(w):
    np.testing.assert_array_equal(w, w.astype(np.float32).astype(np.float64))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("bounds", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_the_upper_bound_is_that_of_the_rounded_weights(task, bounds, loss):
    box = {"lower": float(EXACT[0]), "upper": float(EXACT[1])} if bounds else {}
    problem = TASKS[task](loss=loss, **box)
    solution = pursued(problem)
    assert solution.converged
    assert_rounded(solution.w)
    assert solution.upper_bound == pytest.approx(primal(problem, solution.w), rel=1e-13)
    if bounds:
        assert (solution.w >= EXACT[0]).all()
        assert (solution.w <= EXACT[1]).all()


@pytest.mark.parametrize("passes", [0, 1, 3])
@pytest.mark.parametrize("task", TASKS)
def test_every_certificate_is_that_of_the_weights_told(task, passes):
    problem = TASKS[task]()
    kernel = State(problem, None, 0, 1, single_precision=True)
    for _ in range(4):
        kernel.optimize(passes, 0.0)
        w = kernel.weights()
        assert_rounded(w)
        lower, upper = kernel.certify()
        np.testing.assert_array_equal(kernel.weights(), w)  # certify does not move them
        assert upper == pytest.approx(primal(problem, w), rel=1e-13)
        assert lower <= upper


def test_the_lower_bound_is_not_rounded():
    """Single precision concerns the weights only: the dual is as tight as ever."""
    statement = state("binary", X, {"y": Y, "margin": 1.0}, cost=1.0, loss="hinge")
    solution = pursued(Problem.binary(X, Y), tol=1e-6)
    optimum = statement.optimum()
    assert solution.lower_bound <= optimum * (1 + 1e-9)
    assert solution.lower_bound >= optimum * (1 - 2e-6)
    assert solution.upper_bound >= optimum * (1 - 1e-9)


def test_starts_and_watchers():
    class Told(Watcher):
        weights = ()

        def tell(self, view):
            self.weights = (*self.weights, view.weights())
            return False

    problem, told = Problem.binary(X, Y), Told()
    first = pursued(problem, tol=1e-3, watchers=[told])
    for w in told.weights:
        assert_rounded(w)
    again = pursued(problem, tol=1e-3, start=first)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.w, first.w)
    unrounded = pursue(problem, 1e-3, 10**4, None, 0, None)
    hot = pursued(problem, tol=1e-3, start=unrounded)
    assert_rounded(hot.w)
    assert hot.upper_bound == pytest.approx(primal(problem, hot.w), rel=1e-13)


QID = np.arange(N) // 10
MODELS = {
    "binary": (SVMClassifier(), Y),
    "squared": (SVMClassifier(loss="squared_hinge"), Y),
    "classes": (SVMClassifier(), np.arange(N) % 3),
    "one each": (SVMClassifier(multi_class="ovr"), np.arange(N) % 3),
    "slack": (SVMClassifier(rescaling="slack", class_loss=2 - 2 * np.eye(3)), np.arange(N) % 3),
    "free intercept": (SVMClassifier(fit_intercept="unpenalized"), Y),
    "regression": (SVMRegressor(epsilon=0.1), X[:, 0] + 3),
    "ranking": (SVMRanker(), np.arange(N) % 4),
    "lists": (SVMRanker(slack="query"), np.arange(N) % 4),
}


@pytest.mark.parametrize("name", MODELS)
def test_estimators_learn_in_the_precision_of_the_features(name):
    model, y = MODELS[name]
    model.set_params(random_state=0, tol=1e-3)
    more = {"qid": QID} if isinstance(model, SVMRanker) else {}
    assert model.fit(X, y, **more).coef_.dtype == np.float64
    assert model.fit(ROWS, y, **more).coef_.dtype == np.float32
    assert model.intercept_.dtype == np.float32
    assert model.converged_


def objective(X, y, C, coef, intercept, scaling):
    w = np.append(coef.astype(np.float64), np.float64(intercept) / scaling)
    slack = np.maximum(0, 1 - y * (X.astype(np.float64) @ w[:-1] + scaling * w[-1]))
    return w @ w / 2 + C * slack.sum()


@pytest.mark.parametrize("scaling", [1.0, 4.0, 10.0])
def test_the_bound_of_an_estimator_is_the_objective_of_the_model(scaling):
    """But for the rounding of the intercept, where the scaling is no power of two."""
    for C in np.geomspace(0.01, 1, 10):
        model = SVMClassifier(C, intercept_scaling=scaling, random_state=0).fit(ROWS, Y)
        shown = objective(ROWS, Y, C, model.coef_[0], model.intercept_[0], scaling)
        assert model.upper_bound_ == pytest.approx(shown, rel=1e-7 if scaling == 10 else 1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.1, 0.7, 1 / 3])
def test_bounds_that_float32_does_not_hold(value, dtype):
    """The weights shown lie within the bounds as they were given, not only within rounded ones."""
    rows = X.astype(dtype)
    given = np.full(X.shape[1], value)
    low = SVMClassifier(lower=given, tol=1e-3, random_state=0).fit(rows, Y)
    high = SVMClassifier(upper=given / 10, lower=-given / 10, tol=1e-3, random_state=0).fit(rows, Y)
    assert (low.coef_.astype(np.float64) >= given).all()
    assert (high.coef_.astype(np.float64) <= given / 10).all()
    assert (high.coef_.astype(np.float64) >= -given / 10).all()


def test_bounds_beyond_float32():
    model = SVMClassifier(lower=-1e100, upper=1e100, random_state=0).fit(ROWS, Y)
    free = SVMClassifier(random_state=0).fit(ROWS, Y)
    assert model.converged_
    assert model.lower_bound_ <= free.upper_bound_
    assert free.lower_bound_ <= model.upper_bound_


def test_a_full_covariance_stays_in_double_precision():
    prior = Prior(covariance=np.eye(X.shape[1]) + 0.5)
    model = SVMClassifier(prior=prior, random_state=0).fit(ROWS, Y)
    assert model.coef_.dtype == np.float64
