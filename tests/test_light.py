"""Passes with weights in single precision: several classes, far from the optimum."""

import numpy as np
import pytest
import scipy.sparse as sp

from dualsvm import Prior, Problem, solve
from dualsvm.solution import dual, primal
from dualsvm.state import State

RNG = np.random.default_rng(0)
N, D = 300, 12
ROWS = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.4)
FORMS = {
    "dense": lambda: ROWS,
    "dense float32": lambda: ROWS.astype(np.float32),
    "sparse": lambda: sp.csr_matrix(ROWS),
    "sparse float32": lambda: sp.csr_matrix(ROWS, dtype=np.float32),
}
CENTRE = RNG.normal(size=(5, D))
LABELS = RNG.integers(5, size=N)


def problem(k=5, rows=ROWS, **more):
    scores = rows[:, :D] @ RNG.normal(size=(D, k))
    return Problem.multiclass(rows, (scores + RNG.normal(size=scores.shape)).argmax(axis=1), n_classes=k, **more)


def light(state, passes=1):
    """Run passes; return whether the last was one of those, whose dual nobody knows exactly."""
    return state.optimize(passes, 0.0)[-1][2] == -np.inf


def assert_bounds(state, problem):
    w = state.weights()
    lower, upper = state.certify()
    assert lower == pytest.approx(dual(problem, state.alpha()), rel=1e-11)
    assert upper == pytest.approx(primal(problem, w), rel=1e-11)
    assert lower <= upper * (1 + 1e-12)  # at the optimum, rounding may have them cross
    return lower, upper


@pytest.mark.parametrize("intercept", [0.0, 0.7])
@pytest.mark.parametrize("k", [3, 8, 9, 20, 21, 50])  # one to six vectors, full or not, and classes beside
@pytest.mark.parametrize("form", FORMS)
def test_bounds_are_those_of_exact_numbers(form, k, intercept):
    given = problem(k, FORMS[form](), intercept=intercept)
    state = State(given, None, 0, 1)
    before = -np.inf
    for _ in range(5):
        assert light(state)
        lower, _ = assert_bounds(state, given)
        assert lower > before
        before = lower


def test_passes_near_the_optimum_are_exact():
    given = problem()
    state = State(given, None, 0, 1)
    assert light(state)
    while state.optimize(1, 0.0)[-1][2] == -np.inf:
        pass
    lower, upper = assert_bounds(state, given)
    assert upper - lower <= 1e-3 * upper
    solution = solve(given, tol=1e-9, max_iter=10**5, random_state=0)
    assert solution.gap <= 1e-9
    assert lower <= solution.upper_bound * (1 + 1e-12)
    assert solution.lower_bound <= upper * (1 + 1e-12)


def take_weights(state):
    state._kernel.set_weights(state.layout.as_kernel(CENTRE))
    np.testing.assert_array_equal(state.weights(), CENTRE)


VERBS = {
    "draw": lambda state: state.draw(CENTRE, 3.0),
    "draw nowhere": lambda state: state.draw(CENTRE, 0.0),
    "set_weights": take_weights,
    "set_alpha": lambda state: state.reset(np.full(state.problem.alpha_shape, 1e-3)),
    "explore": lambda state: state.explore(),
    "nothing": lambda state: state.weights(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_what_comes_between_passes(verb):
    """Every verb finds the numbers of a state that has just been certified."""
    given = problem()
    states = State(given, None, 0, 1), State(given, None, 0, 1)
    for state in states:
        assert light(state, 2)
    states[1].certify()
    for state in states:
        VERBS[verb](state)
    (lower, upper), (other_lower, other_upper) = (assert_bounds(state, given) for state in states)
    assert lower == pytest.approx(other_lower, rel=1e-12)
    assert upper == pytest.approx(other_upper, rel=1e-12)
    for state in states:
        assert light(state) == (verb != "draw")
        assert_bounds(state, given)


def test_threads():
    rows = sp.random(5000, 9000, density=0.002, format="csr", random_state=0, dtype=np.float32)
    given = Problem.multiclass(rows, RNG.integers(7, size=5000), cost=0.2)
    state = State(given, None, 0, 3)
    assert light(state, 5)
    assert_bounds(state, given)
    assert solve(given, tol=1e-3, random_state=0, n_jobs=3).certify(given).gap <= 1e-3


@pytest.mark.parametrize(("scale", "cost"), [(1e20, 1e-40), (1e-20, 1e40), (1e60, 1e-120)])
def test_numbers_beyond_single_precision(scale, cost):
    """Rows times s with costs by s^2 are the same problem, whose objective is divided by s^2."""
    plain = solve(Problem.multiclass(ROWS, LABELS), tol=1e-6, max_iter=10**5, random_state=0)
    given = Problem.multiclass(scale * ROWS, LABELS, cost=cost)
    assert not light(State(given, None, 0, 1))
    scaled = solve(given, tol=1e-6, max_iter=10**5, random_state=0)
    assert scaled.gap <= 1e-6
    assert scaled.lower_bound / cost <= plain.upper_bound * (1 + 1e-9)
    assert plain.lower_bound <= scaled.upper_bound / cost * (1 + 1e-9)


@pytest.mark.parametrize(
    "more",
    [
        {"loss": "squared_hinge"},
        {"rescaling": "slack"},
        {"lower": 0.0},
        {"prior": Prior(variance=2.0)},
    ],
)
def test_where_passes_are_always_exact(more):
    given = problem(**more)
    state = State(given, None, 0, 1)
    assert not light(state)
    assert_bounds(state, given)
