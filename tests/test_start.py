"""Hot starts: dual variables are matched, made feasible, and lead to the same optimum."""

import numpy as np
import pytest

from dualsvm import Prior, Problem, solve
from dualsvm.solution import dual
from dualsvm.solve import match

from .problems import CLASSES, TARGETS, TASKS, N, X, Y, assert_optimal


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tol", [1e-1, 1e-3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("task", TASKS)
def test_a_start_from_the_solution_itself_needs_no_pass(task, loss, tol, seed):
    problem = TASKS[task](loss=loss)
    first = solve(problem, tol=tol, max_iter=10**5, random_state=seed)
    again = solve(problem, tol=tol, start=first)
    assert again.converged
    assert again.n_iter == 0
    assert [record.iteration for record in again.history] == [0]
    assert again.upper_bound <= first.upper_bound * (1 + 1e-12)
    np.testing.assert_allclose(again.alpha, first.alpha, atol=1e-12)


CHANGES = {
    "nothing": ({}, {}),
    "C up": ({"cost": 0.5}, {"cost": 2.0}),
    "C down": ({"cost": 2.0}, {"cost": 0.5}),
    "one C to nothing": ({}, {"cost": 0}),
    "to squared": ({}, {"loss": "squared_hinge"}),
    "from squared": ({"loss": "squared_hinge"}, {"cost": 0.2}),
    "bounds": ({}, {"lower": -0.1, "upper": 0.3}),
    "other bounds": ({"lower": 0.0}, {"upper": 0.0}),
    "prior": ({}, {"prior": Prior(mean=0.2, variance=0.5)}),
    "covariance": ({}, {"prior": Prior(covariance=True)}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("task", TASKS)
def test_a_start_from_a_changed_problem(task, change):
    before, after = ({**arguments} for arguments in CHANGES[change])
    if "cost" in after and after["cost"] == 0:
        after["cost"] = np.arange(TASKS[task]().n_examples) > 0
    if change == "covariance":
        d = TASKS[task]().weight_shape[-1]
        after["prior"] = Prior(covariance=np.eye(d) + 0.5)
    old, new = TASKS[task](**before), TASKS[task](**after)
    start = solve(old, tol=1e-4, max_iter=10**5, random_state=0)
    alpha = match(start, new)

    # every example keeps its dual variables, scaled down to the new cap where they exceed it
    cap = new.cost if new.loss == "hinge" else np.where(new.cost > 0, np.inf, 0.0)
    mass = old.mapping.mass(start.alpha)
    factor = np.divide(cap, mass, out=np.ones_like(mass), where=mass > cap)
    factor = np.repeat(factor, len(alpha) // len(factor))
    np.testing.assert_allclose(alpha, (start.alpha.T * factor).T, atol=1e-12)

    hot = solve(new, tol=1e-4, max_iter=10**5, start=start, random_state=0)
    assert hot.history[0].iteration == 0
    began = max(dual(new, alpha), dual(new, np.zeros_like(alpha)))  # the better of the two, as promised
    assert hot.history[0].lower == pytest.approx(began)
    assert_optimal(hot, new, 1e-4)


def test_margins_and_features_may_change():
    start = solve(Problem.binary(X, Y), tol=1e-3)
    for new in (Problem.binary(X, Y, margin=np.linspace(0, 3, N)), Problem.binary(X[:, 1:] + 0.1, Y)):
        np.testing.assert_array_equal(match(start, new), start.alpha)
        assert_optimal(solve(new, tol=1e-4, max_iter=10**5, start=start), new, 1e-4)


@pytest.mark.parametrize("n", [10, 50, 70])
def test_without_ids_examples_are_matched_by_position(n):
    start = solve(Problem.regression(X, TARGETS), tol=1e-3)
    wrapped = np.arange(n) % N
    new = Problem.regression(X[wrapped], TARGETS[wrapped])
    alpha = match(start, new)
    kept = min(n, N)
    np.testing.assert_array_equal(alpha[:kept], start.alpha[:kept])
    assert not alpha[kept:].any()
    assert_optimal(solve(new, tol=1e-4, max_iter=10**5, start=start), new, 1e-4)


@pytest.mark.parametrize(
    "make",
    [
        lambda keep, ids: Problem.binary(X[keep], Y[keep], example=ids),
        lambda keep, ids: Problem.regression(X[keep], TARGETS[keep], example=ids),
        lambda keep, ids: Problem.multiclass(X[keep], CLASSES[keep], n_classes=3, example=ids),
        lambda keep, ids: Problem.ranking(X, np.c_[keep, (keep + 7) % N], example=ids),
        lambda keep, ids: Problem(X[keep], 1.0, example=ids),
    ],
)
def test_with_ids_examples_come_go_and_change_places(make):
    everyone = np.arange(N)
    rng = np.random.default_rng(3)
    names = rng.permutation(1000)[:N] - 500
    start = solve(make(everyone[:50], names[:50]), tol=1e-4, max_iter=10**5)
    keep = rng.permutation(np.setdiff1d(everyone, [0, 3, 4, 20, 49]))  # some gone, ten new ones, all shuffled
    new = make(keep, names[keep])
    expected = np.zeros(new.alpha_shape)
    expected[keep < 50] = start.alpha[keep[keep < 50]]
    np.testing.assert_allclose(match(start, new), expected, atol=1e-12)
    assert_optimal(solve(new, tol=1e-4, max_iter=10**5, start=start), new, 1e-4)


def test_rows_of_a_group_are_matched_in_their_order():
    old = Problem(X[:7], np.arange(7.0), example=[5, 9, 5, 5, -1, 9, 5], cost=100.0)
    start = solve(old, tol=1e-6, max_iter=10**5)
    a = start.alpha  # of 5: a[0], a[2], a[3], a[6]; of 9: a[1], a[5]; of -1: a[4]
    ids = [9, 5, 5, 9, 9, 7, 5, -1]
    expected = [a[1], a[0], a[2], a[5], 0, 0, a[3], a[4]]
    new = Problem(X[:8], 1.0, example=ids, cost=1000.0)
    np.testing.assert_array_equal(match(start, new), expected)
    assert np.count_nonzero(a) >= 4  # else there is little to match
    assert_optimal(solve(new, tol=1e-6, max_iter=10**5, start=start), new, 1e-6)
