"""Wide priors: solved by way of narrow ones, the bounds are those of the wide problem."""

import signal
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest

from dualsvm import Prior, Problem, SVMClassifier, SVMRegressor, solve
from dualsvm.progress import Watcher
from dualsvm.proximal import pursue_wide

from .reference import state

RNG = np.random.default_rng(7)
N, D = 30, 3
X = RNG.integers(-12, 13, (N, D)) / 8
SIGNS = np.where(X[:, 0] + RNG.normal(size=N) > -1, 1, -1)
TARGETS = X[:, 0] + 5 + RNG.integers(-8, 9, N) / 8
CLASSES = np.arange(N) % 3
KINDS = {
    "binary": {"y": SIGNS, "margin": 1.0, "intercept": 1.0},
    "regression": {"y": TARGETS, "epsilon": 0.25, "intercept": 2.0},
    "multiclass": {"y": CLASSES, "class_loss": 1 - np.eye(3), "intercept": 1.0},
    "multiclass, slack": {"y": CLASSES, "class_loss": 2 - 2 * np.eye(3), "intercept": 1.0, "rescaling": "slack"},
}
LOSSES = ("hinge", "squared_hinge")
SHAPES = ("plain", "mean", "bounds", "covariance")


@cache
def given(kind, loss, shape, cost=0.5):
    """A problem whose last weight, that of the intercept, is wide; its narrow variance; and its optimum."""
    task = kind.partition(",")[0]
    make = getattr(Problem, task)
    arguments = KINDS[kind]
    weights = make(X, **arguments).weight_shape
    rng = np.random.default_rng(1)
    said, narrow = {"variance": np.ones(weights)}, np.ones(weights)
    said["variance"][..., -1] = 1e4
    if shape == "mean":
        said["mean"] = rng.integers(-8, 9, weights) / 8
    elif shape == "bounds":
        said |= {"lower": np.full(weights, -0.25), "upper": np.full(weights, 0.25)}
        said["lower"][..., -1], said["upper"][..., -1] = -0.5, 3.0
    elif shape == "covariance":
        root = rng.normal(size=(D, D))
        covariance = np.eye(D + 1)
        covariance[:D, :D] += root @ root.T
        narrow = covariance.copy()
        covariance[D, D] = 1e4
        said = {"covariance": covariance, "mean": np.full(weights, 0.1)}
    box = {name: said[name] for name in ("lower", "upper") if name in said}
    prior = Prior(**{name: said[name] for name in said if name not in box})
    problem = make(X, **arguments, cost=cost, loss=loss, prior=prior, **box)
    return problem, narrow, state(task, X, arguments, cost=cost, loss=loss, **said).optimum()


@contextmanager
def within(seconds):
    """Fail rather than wait for ever."""

    def end(*_):
        raise TimeoutError(f"still not at an end after {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pursued(problem, narrow, tol=1e-4, max_iter=10**4, start=None, n_jobs=None, watchers=(), single=False):
    with within(20):
        return pursue_wide(problem, narrow, tol, max_iter, start, 0, n_jobs, watchers, single)


def assert_true(solution, problem, optimum):
    """All bounds that were ever told hold, and the last ones are those of the solution."""
    slack = 1e-9 * abs(optimum)
    assert solution.lower_bound - slack <= optimum <= solution.upper_bound + slack
    for record in solution.history:
        assert record.lower - slack <= optimum <= record.upper + slack
    assert solution.certify(problem) == pytest.approx((solution.lower_bound, solution.upper_bound), rel=1e-9)
    last = solution.history[-1]
    assert (last.lower, last.upper) == (solution.lower_bound, solution.upper_bound)
    passes = [record.iteration for record in solution.history if record.iteration > 0]
    assert passes == list(range(1, solution.n_iter + 1))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_bounds_are_those_of_the_wide_problem(kind, loss, shape):
    problem, narrow, optimum = given(kind, loss, shape)
    solution = pursued(problem, narrow)
    assert solution.status == "converged"
    assert solution.gap <= 1e-4
    assert_true(solution, problem, optimum)


@pytest.mark.parametrize("max_iter", [0, 1, 2, 3, 5, 8, 13, 40])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bounds_hold_wherever_it_ends(kind, max_iter):
    problem, narrow, optimum = given(kind, "hinge", "plain")
    solution = pursued(problem, narrow, tol=1e-8, max_iter=max_iter)
    assert solution.n_iter == max_iter
    assert solution.status == "max_iter"
    assert_true(solution, problem, optimum)


@pytest.mark.parametrize("tol", [1e-7, 1e-10, 0.0])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_it_ends_whatever_the_tolerance(kind, loss, tol):
    problem, narrow, optimum = given(kind, loss, "plain")
    solution = pursued(problem, narrow, tol=tol, max_iter=300)
    assert solution.n_iter <= 300
    assert (solution.status == "converged") == (solution.gap <= tol)
    assert solution.status in ("converged", "stalled") or solution.n_iter == 300
    assert_true(solution, problem, optimum)


class Told(Watcher):
    """Writes down what it is told, and stops after so many passes."""

    def __init__(self, stop=-1):
        self.records, self.weights, self.closed, self.begun, self.stop = [], [], 0, 0, stop

    def begin(self):
        self.begun += 1

    def tell(self, view):
        self.records.append(view.record)
        self.weights.append(view.weights())
        return len(self.records) == self.stop

    def close(self):
        self.closed += 1


@pytest.mark.parametrize("stop", [*range(1, 13), 16, 20, 25, 30])
def test_whoever_watches_can_stop_it(stop):
    problem, narrow, optimum = given("regression", "hinge", "plain")
    told = Told(stop)
    solution = pursued(problem, narrow, tol=1e-9, watchers=[told])
    assert len(told.records) == stop  # nobody is asked again who has said stop
    assert solution.status == "stopped"
    assert told.closed >= 1
    assert_true(solution, problem, optimum)


def test_watching_changes_nothing():
    problem, narrow, optimum = given("binary", "hinge", "plain")
    told = Told()
    watched, alone = pursued(problem, narrow, watchers=[told]), pursued(problem, narrow)
    assert_true(watched, problem, optimum)
    assert watched.gap <= 1e-4
    assert alone.gap <= 1e-4
    iterations = [record.iteration for record in told.records]
    assert iterations == sorted(iterations)
    assert set(range(1, watched.n_iter + 1)) <= set(iterations)
    for record, w in zip(told.records, told.weights, strict=True):
        assert record.lower - 1e-9 <= optimum <= record.upper + 1e-9
        assert w.shape == problem.weight_shape
    seconds = [record.seconds for record in watched.history]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_hot_starts(kind, shape):
    problem, narrow, optimum = given(kind, "hinge", shape)
    cold = pursued(problem, narrow)
    again = pursued(problem, narrow, start=cold)
    assert again.status == "converged"
    assert_true(again, problem, optimum)
    assert again.n_iter <= cold.n_iter
    other, _, elsewhere = given(kind, "hinge", shape, cost=1.0)
    assert_true(pursued(other, narrow, start=cold), other, elsewhere)


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_from_the_solution_itself_needs_no_pass(kind):
    problem, narrow, _ = given(kind, "hinge", "plain")
    cold = pursued(problem, narrow, tol=1e-3)
    again = pursued(problem, narrow, tol=1e-3, start=cold)
    assert again.status == "converged"
    assert again.n_iter == 0


def test_with_threads():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 5))
    y = rows[:, 0] + 7 + rng.normal(size=400)
    prior = Prior(variance=[1.0] * 5 + [1e4])
    problem = Problem.regression(rows, y, intercept=1.0, cost=0.05, epsilon=0.1, prior=prior)
    alone = pursued(problem, np.ones(6), tol=1e-3)
    together = pursued(problem, np.ones(6), tol=1e-3, n_jobs=2)
    plain = solve(problem, tol=1e-2, max_iter=10**5)
    for some, other in ((alone, together), (together, alone), (alone, plain), (plain, together)):
        assert some.lower_bound <= other.upper_bound * (1 + 1e-12)


@pytest.mark.parametrize("shape", ["plain", "mean", "bounds"])
@pytest.mark.parametrize("kind", KINDS)
def test_in_single_precision(kind, shape):
    problem, narrow, optimum = given(kind, "hinge", shape)
    solution = pursued(problem, narrow, tol=1e-4, single=True)
    np.testing.assert_array_equal(solution.w, solution.w.astype(np.float32))
    assert solution.status == "converged"
    assert_true(solution, problem, optimum)


@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_an_unpenalized_intercept_follows_the_targets(shift):
    """The prior lies around the median of the targets: moving them moves the intercept, and nothing else."""
    model = SVMRegressor(0.5, epsilon=0.25, fit_intercept="unpenalized", tol=1e-5, random_state=0)
    here, there = model.fit(X, TARGETS).upper_bound_, model.fit(X, TARGETS + shift).upper_bound_
    assert here == pytest.approx(there, rel=3e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_an_unpenalized_intercept_is_all_but_free(loss):
    """Beyond the gap, the objective without the intercept's part is not above that of any other intercept."""
    model = SVMClassifier(0.5, loss, fit_intercept="unpenalized", tol=1e-4, random_state=0).fit(X, SIGNS)
    power = 2 if loss == "squared_hinge" else 1

    def free(intercept):
        slack = np.maximum(0, 1 - SIGNS * (X @ model.coef_[0] + intercept))
        return model.coef_[0] @ model.coef_[0] / 2 + 0.5 * (slack**power).sum()

    assert free(model.intercept_[0]) <= model.upper_bound_ * (1 + 1e-9)
    best = min(free(value) for value in np.linspace(-10, 10, 2001))
    assert free(model.intercept_[0]) <= best + 2e-3 * abs(best)
