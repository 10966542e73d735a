"""Stiff problems: the pull to a centre changes the way, not the bounds."""

from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp

import dualsvm.pull
from dualsvm import Prior, Problem, solve
from dualsvm.state import State

from .problems import TASKS, assert_optimal, without_newton

STIFF = {name: make for name, make in TASKS.items() if name != "lists"}


def visits(solution):
    return sum(record.explored for record in solution.history)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("task", STIFF)
def test_stiff_problems_reach_the_optimum(task, loss):
    problem = STIFF[task](cost=30.0, loss=loss)
    assert State(problem, None, 0, 1).stiffness > 10
    solution = solve(problem, tol=1e-5, max_iter=10**5, random_state=0)
    assert_optimal(solution, problem, 1e-5)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_the_pull_saves_visits(task, monkeypatch):
    problem = TASKS[task](cost=100.0)
    without_newton(monkeypatch)
    drawn = solve(problem, tol=1e-4, max_iter=10**5, random_state=0)
    monkeypatch.setattr(dualsvm.pull, "STIFF", np.inf)
    plain = solve(problem, tol=1e-4, max_iter=10**5, random_state=0)
    assert drawn.converged
    assert plain.converged
    assert visits(drawn) < visits(plain) / 2


def test_drawn_weights_that_are_good_enough_are_found_to_be(monkeypatch):
    problem = TASKS["binary"](cost=1000.0)
    without_newton(monkeypatch)

    def solutions():
        return [solve(problem, tol=1e-3, max_iter=10**5, random_state=seed) for seed in range(8)]

    looked = solutions()
    monkeypatch.setattr(import_module("dualsvm.solve"), "_PEEK", np.inf)
    drawn = solutions()
    for each in looked:
        assert_optimal(each, problem, 1e-3)
    assert all(each.converged for each in drawn)
    assert sum(map(visits, looked)) < sum(map(visits, drawn))


def test_wide_problems_are_drawn_only_where_plain_passes_take_long(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 60)), np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    pulls = []
    draw = State.draw

    def drawn(state, centre, kappa):
        pulls.append(kappa)
        draw(state, centre, kappa)

    monkeypatch.setattr(State, "draw", drawn)
    assert solve(Problem.binary(X, y, cost=10.0), tol=1e-2, random_state=0).converged
    assert not pulls
    X[:, 1:] = 0.01 * X[:, 1:] + 10  # hardly to be told apart, far from 0
    noisy = Problem.binary(X, y, cost=10.0)
    assert_optimal(solve(noisy, tol=1e-3, max_iter=10**5, random_state=0), noisy, 1e-3)
    assert max(pulls) > 1


@pytest.mark.parametrize("more", [{}, {"lower": -0.1, "upper": 0.2}, {"prior": Prior(mean=0.3, variance=2.0)}])
@pytest.mark.parametrize("task", STIFF)
def test_a_drawn_state_solves_the_drawn_problem(task, more):
    """With the pull as part of the prior, written out, the weights are the same."""
    problem = STIFF[task](**more)
    kappa, rng = 3.0, np.random.default_rng(0)
    centre = 0.1 * rng.normal(size=problem.weight_shape)
    state = State(problem, None, 0, 1)
    state.draw(centre, kappa)
    for _ in range(3000):
        if not state.optimize(1, 0.0):
            break
    prior = more.get("prior", Prior(mean=0.0, variance=1.0))
    mean = (prior.mean + kappa * centre) / (1 + kappa)
    written = STIFF[task](**more | {"prior": Prior(mean=mean, variance=prior.variance / (1 + kappa))})
    expected = solve(written, tol=1e-10, max_iter=10**5, random_state=0)
    np.testing.assert_allclose(state.weights(), expected.w, atol=1e-3)


@pytest.mark.parametrize("task", STIFF)
def test_bounds_of_a_drawn_state_are_those_of_the_problem(task):
    problem = STIFF[task](cost=20.0)
    best = solve(problem, tol=1e-5, max_iter=10**5, random_state=0)
    state, rng = State(problem, None, 0, 1), np.random.default_rng(0)
    for kappa in (100.0, 10.0, 0.0, 1.0):
        state.draw(rng.normal(size=problem.weight_shape), kappa)
        state.optimize(5, 0.0)
        lower, upper = state.certify()
        assert lower <= best.upper_bound * (1 + 1e-12)
        assert upper >= best.lower_bound * (1 - 1e-12)
        assert 0 <= state.distance <= upper


def test_every_record_holds_a_bound():
    problem = TASKS["binary"](cost=100.0)
    best = solve(problem, tol=1e-6, max_iter=10**5, random_state=0)
    for solution in (solve(problem, tol=1e-4, max_iter=10**5, random_state=seed) for seed in range(5)):
        lowers = [record.lower for record in solution.history]
        assert (np.diff(lowers) >= 0).all()
        assert lowers[-1] <= best.upper_bound * (1 + 1e-12)
        assert min(record.upper for record in solution.history) >= best.lower_bound * (1 - 1e-12)


def test_a_full_covariance_is_drawn_in_its_own_coordinates():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    problem = Problem.binary(
        *(lambda X: (X, np.sign(X[:, 0] + rng.normal(size=80))))(rng.normal(size=(80, 5))),
        cost=50.0,
        prior=Prior(mean=0.2, covariance=root @ root.T + np.eye(5)),
    )
    assert_optimal(solve(problem, tol=1e-6, max_iter=10**5, random_state=0), problem, 1e-6)


def test_how_stiff_sparse_rows_are_does_not_depend_on_their_order():
    rng = np.random.default_rng(0)
    n, d = 5000, 10
    X = rng.normal(size=(n, d)) * np.r_[1e-3, np.full(d - 1, 100.0)]
    sparse = sp.csr_array((X.ravel(), np.tile(np.arange(d), n), np.arange(n + 1) * d), shape=(n, d))
    y = np.sign(rng.normal(size=n))
    dense = State(Problem.binary(X, y), None, 0, 1)
    assert State(Problem.binary(sparse, y), None, 0, 1).stiffness == pytest.approx(dense.stiffness, rel=0.1)


@pytest.mark.filterwarnings("ignore:not converged")  # what counts is the way, not how far it leads
@pytest.mark.parametrize("task", STIFF)
def test_a_watcher_changes_nothing(task):
    problem = STIFF[task](cost=1e5)
    alone = solve(problem, tol=1e-6, max_iter=400, random_state=0)
    watched = solve(problem, tol=1e-6, max_iter=400, random_state=0, callback=lambda record: None)
    np.testing.assert_array_equal(alone.w, watched.w)
