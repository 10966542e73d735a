"""Passes in several threads, each of which has some of the columns of sparse rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dualsvm import Prior, Problem, SVMClassifier, solve
from dualsvm.solution import dual, feasible, primal
from dualsvm.state import State

from .problems import assert_optimal
from .reference import state as written_out

RNG = np.random.default_rng(0)
N, D, K = 1100, 160, 3
DENSE = np.where(RNG.random((N, D)) < 0.25, RNG.normal(size=(N, D)), 0.0)
SCORES = DENSE @ RNG.normal(size=(D, K)) + RNG.normal(size=(N, K))
SIGNS, TARGETS, LABELS = np.sign(SCORES[:, 0]), SCORES[:, 1], SCORES.argmax(axis=1)
ARGUMENTS = {
    "binary": {"y": SIGNS, "margin": 1.0, "intercept": 0.7},
    "regression": {"y": TARGETS, "epsilon": 0.1, "intercept": 0.7},
    "multiclass": {"y": LABELS, "class_loss": 1.0 - np.eye(K), "intercept": 0.7},
}
COST = {"binary": 0.05, "regression": 0.05, "multiclass": 0.1}
TERMS = {
    "plain": {},
    "mean": {"prior": Prior(mean=0.1)},
    "variance": {"prior": Prior(variance=RNG.uniform(0.5, 2, D + 1))},
    "bounds": {"lower": -0.05, "upper": np.where(np.arange(D + 1) < D, np.inf, 0.02)},
}


def rows(dtype=np.float64, index=np.int32, dense=DENSE):
    matrix = sp.csr_matrix(dense, dtype=dtype)
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    return matrix


def stated(task, X=None, **more):
    return getattr(Problem, task)(rows() if X is None else X, **({"cost": COST[task]} | ARGUMENTS[task] | more))


def divided(problem, threads=2):
    """Whether several threads take other steps than one, as they do where they know only of some columns."""
    several, one = State(problem, None, 0, threads), State(problem, None, 0, 1)
    several.optimize(1, 0.0), one.optimize(1, 0.0)
    return not np.array_equal(several.alpha(), one.alpha())


def assert_state(state):
    """The dual variables are feasible, and the bounds of the state are theirs and those of its weights."""
    given, alpha = state.problem, state.alpha()
    np.testing.assert_allclose(feasible(given, alpha), alpha, rtol=1e-12, atol=1e-15)
    w = state.weights()
    lower, upper = state.certify()
    assert lower == pytest.approx(dual(given, alpha), rel=1e-10)
    assert upper == pytest.approx(primal(given, w), rel=1e-10)
    assert lower <= upper * (1 + 1e-12)  # at the optimum, rounding may have them cross
    return lower


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("task", ARGUMENTS)
def test_every_pass_is_what_its_dual_variables_make(task, loss, terms, threads):
    given = stated(task, loss=loss, **TERMS[terms])
    assert divided(given, threads) == (task != "multiclass" or terms != "variance")
    state, before = State(given, None, 0, threads), -np.inf
    for _ in range(5):
        ((visited, _, lower, *_),) = state.optimize(1, 0.0)
        assert visited > 0
        if np.isfinite(lower):  # it is not known where weights are light
            assert lower == pytest.approx(dual(given, state.alpha()), rel=1e-10)
            assert lower > before
            before = lower
    assert_state(state)


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("k", [17, 24, 50])  # of which some lie beside the others, as floats
def test_many_classes(k, threads):
    labels = (DENSE @ RNG.normal(size=(D, k))).argmax(axis=1)
    given = stated("multiclass", y=labels, class_loss=1.0 - np.eye(k))
    assert divided(given, threads)
    state, before = State(given, None, 0, threads), -np.inf
    for _ in range(3):
        state.optimize(2, 0.0)
        lower = assert_state(state)
        assert lower > before
        before = lower


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize(("task", "n"), [("binary", 66_000), ("regression", 66_000), ("multiclass", 20_000)])
def test_looks_at_more_examples_than_there_is_room_for_scores(task, n, threads):
    """A pass that ends at its goal has looked at everybody, which is what the upper bound then comes from."""
    some = np.random.default_rng(1).integers(N, size=n)
    y = {"binary": SIGNS, "regression": TARGETS, "multiclass": LABELS}[task]
    given = stated(task, rows(np.float32)[some], y=y[some], cost=COST[task] * N / n)
    assert divided(given, threads)
    state = State(given, None, 0, threads)
    for goal in (0.3, 0.03):
        while not state.reached:
            state.optimize(100, goal)
        assert_state(state)
        state.reached = False


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("task", ARGUMENTS)
def test_every_kind_of_rows(task, dtype, index):
    given = stated(task, rows(dtype, index))
    assert divided(given)
    assert_optimal(solve(given, tol=1e-5, max_iter=10**5, random_state=0, n_jobs=2), given, 1e-5)


def box(task, terms):
    """The bounds on the weights, class by class."""
    each = {name: np.broadcast_to(bound, D + 1) for name, bound in TERMS[terms].items()}
    return {name: np.tile(bound, K if task == "multiclass" else 1) for name, bound in each.items()}


@pytest.mark.parametrize("terms", ["plain", "bounds"])
@pytest.mark.parametrize("task", ARGUMENTS)
def test_against_a_reference(task, terms):
    given = stated(task, **TERMS[terms])
    solution = solve(given, tol=1e-6, max_iter=10**5, random_state=0, n_jobs=2)
    assert solution.gap <= 1e-6
    arguments = ARGUMENTS[task] | {}
    optimum = written_out(task, DENSE, arguments, cost=COST[task], loss="hinge", **box(task, terms)).optimum()
    assert solution.lower_bound <= optimum * (1 + 1e-8)
    assert optimum <= solution.upper_bound * (1 + 1e-8)


@pytest.mark.parametrize("task", ARGUMENTS)
def test_a_seed_and_a_number_of_threads_say_it_all(task):
    given, options = stated(task), {"tol": 1e-5, "random_state": 3}
    first = solve(given, n_jobs=2, **options)
    again = solve(given, n_jobs=2, callback=lambda _: None, **options)  # one pass a call
    np.testing.assert_array_equal(first.w, again.w)
    np.testing.assert_array_equal(first.alpha, again.alpha)
    assert not np.array_equal(first.alpha, solve(given, n_jobs=1, **options).alpha)


VERBS = {
    "explore": lambda state: state.explore(),
    "certify": lambda state: state.certify(),
    "reset": lambda state: state.reset(np.full(state.problem.alpha_shape, 1e-3)),
    "draw": lambda state: state.draw(np.full(state.problem.weight_shape, 0.1), 2.0),
    "draw and let go": lambda state: (
        state.draw(np.full(state.problem.weight_shape, 0.1), 2.0),
        state.optimize(1, 0.0),
        state.draw(np.zeros(state.problem.weight_shape), 0.0),
    ),
    "answer": lambda state: state.problem.task == "multiclass" or state._kernel.answer(0.5, 1, 2),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("task", ARGUMENTS)
def test_what_comes_between_passes(task, verb):
    """Whatever changes dual variables, all threads know of it."""
    state = State(stated(task), None, 0, 2)
    for _ in range(3):
        state.optimize(2, 0.0)
        VERBS[verb](state)
        state.explore()
        state.optimize(1, 0.0)
        assert_state(state)


def test_rows_that_are_alike_are_left_to_one_thread():
    assert not divided(stated("binary", rows(dense=DENSE + 2.0 * (np.arange(D) < 40))))
    assert divided(stated("binary", intercept=100.0))  # which all have in common, and all threads know


@pytest.mark.parametrize("task", ARGUMENTS)
def test_short_rows_and_dense_ones_are_left_to_one_thread(task):
    assert not divided(stated(task, rows(dense=DENSE * (np.arange(D) < 50))))
    if task != "multiclass":  # whose rows lose their zeros
        assert not divided(stated(task, DENSE))


@pytest.mark.parametrize("cost", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("task", ARGUMENTS)
def test_rows_that_are_more_alike_than_they_seem(task, loss, cost):
    """Where all rows but those that tell how alike they are, are the same, steps at once may lead too far."""
    some = np.unique((np.arange(64) * (5**0.5 - 1) / 2 % 1 * N).astype(int))
    dense = np.repeat(DENSE[:1], N, axis=0)
    dense[some] = DENSE[some]
    y = {"binary": SIGNS, "regression": TARGETS, "multiclass": LABELS}[task]
    given = stated(task, rows(dense=dense), y=y, cost=cost, loss=loss)
    state, before, undone = State(given, None, 0, 2), 0.0, 0
    for _ in range(20):
        state.optimize(1, 0.0)
        lower = dual(given, state.alpha())
        assert lower >= before
        undone += lower == before  # and from then on one thread makes all steps
        before = lower
    assert undone == 1 or (undone == 0 and cost < 30.0)
    assert_state(state)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.sampled_from([0.01, 1.0, 30.0]))
@settings(max_examples=15, deadline=None)
def test_bounds_hold_for_any_rows(seed, threads, cost):
    """Rows of any length, empty ones, features that nobody has, examples that cost nothing."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1024, 1400), rng.integers(100, 2000)
    filled = rng.random((n, d)) < rng.beta(0.5, 4, size=(n, 1)) * rng.random(d)
    X = sp.csr_matrix(np.where(filled, rng.normal(size=(n, d)), 0.0), dtype=np.float32)
    weight = cost * rng.uniform(0.1, 1, n) * (rng.random(n) < 0.9)
    given = Problem.binary(X, rng.choice([-1.0, 1.0], n), cost=weight, intercept=rng.choice([0.0, 1.0]))
    state = State(given, None, 0, threads)
    for _ in range(4):
        state.optimize(2, 0.0)
        assert_state(state)


def test_estimators_have_threads():
    common = {"C": 0.05, "tol": 1e-6, "random_state": 0, "max_iter": 10**5}
    for y in (SIGNS, LABELS):
        one, two = (SVMClassifier(n_jobs=n, **common).fit(rows(np.float32), y) for n in (1, 2))
        assert two.converged_
        assert two.certify(rows(np.float32), y).gap <= 1e-5
        np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-3)
        assert not np.array_equal(one.coef_, two.coef_)
