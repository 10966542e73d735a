"""Newton's method against coordinate ascent, which finds the same optimum another way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

import dualsvm.newton
import dualsvm.state
from dualsvm import Prior, Problem, _core, solve
from dualsvm.solution import feasible
from dualsvm.state import State

from .newton import KINDS, PRIORS, TASKS, D, N, X, Y, newton_first
from .problems import assert_optimal, without_newton
from .reference import state


@pytest.mark.parametrize("kind", ["dense", "sparse float"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_dual_variables_are_refined_where_the_weights_are_good_enough(task, loss, kind, monkeypatch):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(8000, 16))
    targets = rows @ rng.normal(size=16) + rng.normal(size=8000)
    rows, far = KINDS[kind](rows), 4.0 if task == "binary" else 0.5
    more = {"loss": loss, "prior": Prior(mean=0.1, variance=2.0)}
    if task == "binary":
        problem = Problem.binary(rows, np.sign(targets), intercept=1.0, **more)
    else:
        problem = Problem.regression(rows, targets, epsilon=far, **more)
    looks = []

    def look(self, stride, before=dualsvm.newton.Newton._look):
        before(self, stride)
        if stride == 1:
            looks.append(self.refining)

    monkeypatch.setattr(dualsvm.newton.Newton, "_look", look)
    newton_first(monkeypatch)
    if loss == "squared_hinge":
        monkeypatch.setattr(dualsvm.state, "STIFF", 0.0)
    monkeypatch.setattr(dualsvm.newton, "_PART", 1.0)
    for tol in (1e-2, 1e-3, 1e-5):
        solution = solve(problem, tol=tol, random_state=0)
        assert solution.converged
        assert any(looks)
        certificate = solution.certify(problem)
        assert certificate.gap <= tol * (1 + 1e-6)
        assert certificate.lower_bound == pytest.approx(solution.lower_bound, rel=1e-9)
        assert certificate.upper_bound == pytest.approx(solution.upper_bound, rel=1e-9)
        np.testing.assert_allclose(feasible(problem, solution.alpha), solution.alpha, rtol=1e-12)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cost", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("task", TASKS)
def test_same_optimum_as_coordinate_ascent(task, kind, cost, prior, monkeypatch):
    own = Prior(covariance=np.eye(D + 1) + 0.5) if (task, prior) == ("binary", "covariance") else PRIORS[prior]
    problem = TASKS[task](KINDS[kind](X), cost=cost, loss="squared_hinge", prior=own)
    newton = solve(problem, tol=1e-9, random_state=0)
    assert newton.converged
    assert newton.n_iter < 40
    without_newton(monkeypatch)
    passes = solve(problem, tol=1e-5, max_iter=10**5, random_state=0)
    assert passes.converged
    rounding = 1e-12 * passes.upper_bound
    assert newton.lower_bound <= passes.upper_bound + rounding
    assert passes.lower_bound <= newton.upper_bound + rounding
    assert newton.alpha.min() >= 0


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cost", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("task", TASKS)
def test_kinks_have_the_same_optimum(task, kind, cost, prior, monkeypatch):
    own = Prior(covariance=np.eye(D + 1) + 0.5) if (task, prior) == ("binary", "covariance") else PRIORS[prior]
    problem = TASKS[task](KINDS[kind](X), cost=cost, prior=own)
    without = pytest.MonkeyPatch()
    without_newton(without)
    passes = solve(problem, tol=1e-4, max_iter=10**6, random_state=0)
    without.undo()
    newton_first(monkeypatch)
    newton = solve(problem, tol=1e-4, max_iter=10**6, random_state=0)
    assert passes.converged
    assert newton.converged
    rounding = 1e-12 * passes.upper_bound
    assert newton.lower_bound <= passes.upper_bound + rounding
    assert passes.lower_bound <= newton.upper_bound + rounding
    assert newton.alpha.min() >= 0
    assert newton.alpha.max() <= cost


@settings(max_examples=60, deadline=None)
@given(
    regression=st.booleans(),
    n=st.integers(2, 60),
    d=st.integers(1, 6),
    log_cost=st.floats(-3, 2),
    epsilon=st.sampled_from([0.0, 0.1, 1.0]),
    seed=st.integers(0, 10**6),
)
def test_every_step_bounds_the_optimum(regression, n, d, log_cost, epsilon, seed):
    rng = np.random.default_rng(seed)
    rows, cost = rng.normal(size=(n, d)), 10**log_cost * rng.uniform(0.5, 2.0, n)
    targets = np.round(rows @ rng.normal(size=d) + rng.normal(size=n), rng.integers(3))
    signs = np.where(targets > 0, 1.0, -1.0)
    said = {"mean": 0.2, "variance": 1.5}
    if regression:
        problem = Problem.regression(rows, targets, epsilon=epsilon, cost=cost, prior=Prior(**said))
        statement = state("regression", rows, {"y": targets, "epsilon": epsilon}, cost=cost, loss="hinge", **said)
    else:
        problem = Problem.binary(rows, signs, cost=cost, prior=Prior(**said))
        statement = state("binary", rows, {"y": signs, "margin": 1.0}, cost=cost, loss="hinge", **said)
    optimum = statement.optimum()
    slack = 1e-7 * (1 + optimum)
    with pytest.MonkeyPatch.context() as patch:
        newton_first(patch)
        solution = solve(problem, tol=1e-4, max_iter=10**5, random_state=0)
    for record in solution.history:
        assert record.lower <= optimum + slack
        assert record.upper >= optimum - slack
    assert (np.diff([record.lower for record in solution.history]) >= -1e-12 * optimum).all()  # rounding
    assert solution.converged
    assert statement.primal(solution.w) == pytest.approx(solution.upper_bound)
    assert solution.alpha.min() >= 0
    assert (solution.alpha.reshape(n, -1).sum(axis=1) <= cost * (1 + 1e-12)).all()


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_many_examples_and_a_hot_start(task):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(10_000, 20)) @ rng.normal(size=(20, 20))
    targets = rows @ rng.normal(size=20) + 3 * rng.normal(size=10_000)

    def problem(cost):
        if task == "binary":
            return Problem.binary(rows, np.sign(targets), cost=cost)
        return Problem.regression(rows, targets, epsilon=0.1, cost=cost)

    solution = solve(problem(1.0), tol=1e-4, random_state=0)
    assert solution.converged
    assert solution.n_iter < 15  # steps, not passes
    hot = solve(problem(1.1), tol=1e-4, random_state=0, start=solution)
    assert hot.converged
    cold = solve(problem(1.1), tol=1e-4, random_state=0)
    assert hot.lower_bound <= cold.upper_bound
    assert cold.lower_bound <= hot.upper_bound


def test_features_of_different_scales_are_left_to_steps(monkeypatch):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(900, 9)) * np.exp(2 * rng.normal(size=9))
    problem = Problem.regression(rows, rows @ rng.normal(size=9) + rng.normal(size=900), epsilon=0.1, cost=400.0)
    solution = solve(problem, tol=1e-4, max_iter=5000, random_state=0)
    assert solution.converged
    without_newton(monkeypatch)
    with pytest.warns(match="not converged"):
        passes = solve(problem, tol=1e-4, max_iter=5000, random_state=0)
    assert passes.lower_bound <= solution.upper_bound
    assert solution.lower_bound <= passes.upper_bound


def test_bounds_on_weights_are_left_to_passes():
    for loss in ("hinge", "squared_hinge"):
        kernel = State(TASKS["binary"](X, loss=loss, lower=0.0), None, 0, 1)._kernel
        assert not kernel.smooth
        with pytest.raises(ValueError, match="not smooth"):
            kernel.answer(1.0, 1, 1)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_passes_go_on_where_a_step_fails(loss, monkeypatch):
    problem = TASKS["binary"](X, cost=100.0, loss=loss)
    expected = solve(problem, tol=1e-6, max_iter=10**5)
    newton_first(monkeypatch)
    monkeypatch.setattr(dualsvm.newton.Newton, "step", lambda self: None)
    solution = solve(problem, tol=1e-4, max_iter=10**5)
    assert solution.converged
    assert solution.lower_bound <= expected.upper_bound
    assert expected.lower_bound <= solution.upper_bound


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_watcher_changes_nothing(loss):
    for cost in (0.01, 1.0, 1000.0):
        problem = TASKS["binary"](X, cost=cost, loss=loss)
        seen = []
        watched = solve(problem, tol=1e-6, max_iter=10**5, random_state=0, callback=seen.append)
        np.testing.assert_array_equal(watched.w, solve(problem, tol=1e-6, max_iter=10**5, random_state=0).w)
        assert [record.iteration for record in seen] == list(range(1, watched.n_iter + 1))


@given(d=st.integers(1, 40), seed=st.integers(0, 10**6))
def test_symmetric_systems(d, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d + 3, d))
    A = A.T @ A + 0.1 * np.eye(d)
    b = rng.normal(size=d)
    x = b.copy()
    assert _core.solve_symmetric(np.tril(A) + np.triu(np.full((d, d), np.nan), 1), x)
    np.testing.assert_allclose(A @ x, b, atol=1e-8)
    A[d // 2, d // 2] *= -1
    x = b.copy()
    assert not _core.solve_symmetric(A, x)
    np.testing.assert_array_equal(x, b)


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_separable_data_ask_for_short_steps(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(500, 12)) + 2
    y = np.sign(rows @ rng.normal(size=12))
    solution = solve(Problem.binary(rows, y, intercept=1.0, cost=1e3, loss="squared_hinge"), tol=1e-4, random_state=0)
    assert solution.converged
    assert solution.n_iter < 100


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("label", range(3))
def test_every_search_ends(label, seed, tol, monkeypatch):
    """Near the optimum of the rounded losses, rounding decides whether a step led down."""
    looks = 0

    def count(method, more):
        def counted(self, *args):
            nonlocal looks
            looks = more(looks)
            assert looks < 100
            return method(self, *args)

        return counted

    newton = dualsvm.newton.Newton
    monkeypatch.setattr(newton, "_search", count(newton._search, lambda n: 0))
    monkeypatch.setattr(newton, "_look", count(newton._look, lambda n: n + 1))
    rows, labels = load_iris(return_X_y=True)
    problem = Problem.binary(rows, np.where(labels == label, 1, -1), intercept=1.0)
    assert solve(problem, tol=tol, max_iter=5000, random_state=seed).converged


def test_a_hessian_that_rounding_spoils_is_no_harm(monkeypatch):
    """In single precision it is not positive definite here: the passes then start from what was best before."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 40)) + 1e-4 * rng.normal(size=(400, 40))
    y = np.sign(rows @ rng.normal(size=40) + 3 * rng.normal(size=400))
    problem = Problem.binary(rows.astype(np.float32), y, cost=1e3, loss="squared_hinge")
    solution = solve(problem, tol=1e-2, random_state=0)
    assert solution.converged
    without_newton(monkeypatch)
    expected = solve(problem, tol=1e-2, random_state=0)
    assert solution.lower_bound <= expected.upper_bound
    assert expected.lower_bound <= solution.upper_bound


@pytest.mark.parametrize("shape", [(30, 300), (200, 5)])
def test_numbers_at_the_edge_of_what_can_be_squared(shape):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows, y = 1e70 * rng.normal(size=shape), np.sign(rng.normal(size=shape[0]))
        problem = Problem.binary(rows, y, cost=1e100, loss="squared_hinge")
        solution = solve(problem, tol=1.0, max_iter=100, random_state=0)
        assert solution.lower_bound <= solution.upper_bound


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rows_of_nothing_but_zeros(loss, monkeypatch):
    newton_first(monkeypatch)
    problem = Problem.binary(np.zeros((N, D)), Y, cost=0.5, loss=loss)
    solution = solve(problem, tol=1e-3, random_state=0)
    assert solution.converged
    assert not solution.w.any()
    assert solution.upper_bound == pytest.approx(0.5 * N)


def test_examples_that_cost_nothing(monkeypatch):
    newton_first(monkeypatch)
    assert solve(TASKS["binary"](X, cost=0.0), tol=1e-3).gap == 0
    cost = np.zeros(N)
    cost[:5] = 1.0
    problem = TASKS["binary"](X, cost=cost)
    assert_optimal(solve(problem, tol=1e-6, random_state=0, max_iter=10**5), problem, 1e-6)
