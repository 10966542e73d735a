"""Bounds that hold where floating point is thin: tight priors, large offsets, tiny costs, poor starts."""

import numpy as np
import pytest
import scipy.sparse as sp

from dualsvm import Prior, Problem, solve
from dualsvm.solution import dual, primal
from dualsvm.state import State


def noisy(n=20, d=3, seed=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.choice([-1, 1], n)


@pytest.mark.parametrize("variance", [1e-20, 1e-13, 1e-6, 1.0])
@pytest.mark.parametrize("mean", [1.5, 1e3, 1e6])
def test_a_tight_prior_around_a_large_mean(mean, variance):
    X, y = noisy()
    prior = Prior(mean=[mean, 0, 0], variance=[variance, 1, 1])
    problem = Problem.binary(X, y, prior=prior, cost=10.0)
    state = State(problem, None, 0, 1)
    for _ in range(20):
        passes = state.optimize(10, 0.0)
        w = state.weights()
        lower, upper = state.certify()
        assert passes[-1][2] == pytest.approx(lower, rel=1e-9)
        assert lower <= upper * (1 + 1e-12)
    # w_0 is all but fixed at its mean; the bounds must be those of the problem in exact arithmetic
    slack = np.maximum(0, 1 - y * (X @ w))
    assert upper == pytest.approx(((w - [mean, 0, 0]) ** 2 / [variance, 1, 1]).sum() / 2 + 10 * slack.sum(), rel=1e-9)
    u = (X.T * y) @ state.alpha()
    exact = state.alpha().sum() - mean * u[0] - (variance * u[0] ** 2 + u[1] ** 2 + u[2] ** 2) / 2
    assert lower == pytest.approx(exact, rel=1e-9)


def test_a_prior_that_leaves_nothing_to_learn():
    solution = solve(Problem([[1.0]], [2.0], prior=Prior(mean=1.5, variance=1e-20)), tol=1e-9)
    assert solution.converged
    assert max(record.lower for record in solution.history) <= 0.5
    assert solution.upper_bound == pytest.approx(0.5)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1.7e15])
@pytest.mark.parametrize("sparse", [False, True])
def test_pairs_are_differences_whatever_the_rows_have_in_common(offset, sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[:, 0] += offset
    pairs = rng.integers(60, size=(80, 2))
    explicit = solve(Problem(X[pairs[:, 0]] - X[pairs[:, 1]], 1.0), tol=1e-5, max_iter=10**5)
    problem = Problem.ranking(sp.csr_matrix(X) if sparse else X, pairs)
    ranked = solve(problem, tol=1e-5, max_iter=10**5)
    for bounds in (ranked, ranked.certify(problem)):
        assert bounds.lower_bound <= explicit.upper_bound * (1 + 1e-12)
        assert explicit.lower_bound <= bounds.upper_bound * (1 + 1e-12)
        assert bounds.gap <= 1e-5


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("sparse", [False, True])
def test_lists_are_differences_whatever_the_rows_have_in_common(offset, sparse):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(60, 3)), rng.integers(3, size=60), np.arange(60) // 20
    X[:, 0] += offset
    i, j = np.nonzero((y[:, None] > y) & (qid[:, None] == qid))
    explicit = solve(Problem(X[i] - X[j], 1.0, cost=0.1), tol=1e-5, max_iter=10**5)
    problem = Problem.lists(sp.csr_matrix(X) if sparse else X, y, qid, cost=0.1)
    state = State(problem, None, 0, 1)
    for _ in range(50):
        state.optimize(5, 0.0)
        w = state.weights()
        lower, upper = state.certify()
        again = dual(problem, state.alpha()), primal(problem, w)
        for low, high in ((lower, upper), again):
            assert low <= explicit.upper_bound * (1 + 1e-9)
            assert explicit.lower_bound <= high * (1 + 1e-9)
    assert upper - lower <= 1e-3 * upper


def test_changing_pairs_or_labels_afterwards_changes_nothing():
    X, y = noisy()
    y = y.astype(np.int8)
    pairs = np.array([[0, 1], [2, 3]])
    ranking, binary = Problem.ranking(X, pairs), Problem.binary(X, y)
    before = [solve(p, random_state=0).w for p in (ranking, binary)]
    pairs[:] = 10**12
    y *= -1
    np.testing.assert_array_equal(before[0], solve(ranking, random_state=0).w)
    np.testing.assert_array_equal(before[1], solve(binary, random_state=0).w)


@pytest.mark.parametrize("cost", [1e-150, 1e-100, 1e-10, 1e10])
def test_squared_hinge_at_any_cost(cost):
    problem = Problem([[1.0]], [1.0], cost=cost, loss="squared_hinge")
    solution = solve(problem, tol=1e-6)
    optimum = cost / (1 + 2 * cost)  # at w = 2C / (1 + 2C)
    assert solution.converged
    for bounds in (solution, solution.certify(problem)):
        assert bounds.lower_bound <= optimum * (1 + 1e-12)
        assert bounds.upper_bound >= optimum * (1 - 1e-12)


def test_costs_too_small_to_compute_with_are_refused():
    with pytest.raises(ValueError, match="cost must be 0 or at least 1e-150"):
        Problem([[1.0]], [1.0], cost=1e-310)


def test_a_start_worse_than_nothing_is_not_taken():
    X, y = noisy()
    start = solve(Problem.binary(X, y), tol=1e-3)
    scaled = Problem.binary(10 * X, y)
    hot = solve(scaled, tol=0.1, max_iter=10**5, start=start, random_state=0)
    assert hot.history[0].lower == 0.0  # the dual of dual variables of 0
    assert hot.converged
    at_ease = Problem.binary(X * y[:, None], np.ones(len(y)), margin=0.0)  # solved by w = 0
    assert solve(at_ease, start=solve(Problem.binary(X * y[:, None], np.ones(len(y))), tol=1e-3)).converged


def test_rows_that_are_not_aligned():
    X, y = noisy()
    raw = b"x" + X.tobytes()
    unaligned = np.frombuffer(raw, np.float64, offset=1).reshape(X.shape)
    assert not unaligned.flags.aligned
    np.testing.assert_array_equal(
        solve(Problem.binary(unaligned, y), random_state=0).w, solve(Problem.binary(X, y), random_state=0).w
    )


def test_more_threads_than_anyone_has():
    X, y = noisy()
    assert solve(Problem.binary(X, y), max_iter=10**5, n_jobs=10**30).converged
