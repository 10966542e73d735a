"""Constraints from an oracle: several at a time, with bounds or without a proof; and oracles that are wrong."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dualsvm import OracleError, OracleProblem, OracleSolution, Prior, Problem, solve

from .structured import FEATURES, assert_brackets, parameters, said, written

RNG = np.random.default_rng(0)
N, M, D = 12, 5, 4
ROWS, MARGINS, COST = RNG.normal(size=(N, M, D)), RNG.uniform(0, 2, (N, M)), RNG.uniform(0.1, 1, N)


def worst(w, i, count=1):
    order = np.argsort(ROWS[i] @ w - MARGINS[i])[:count]
    return [(ROWS[i, k], MARGINS[i, k], int(k)) for k in order]


def problem_of(oracle=worst, **more):
    return OracleProblem(oracle, N, **{"n_weights": D, "cost": COST} | more)


def reference(**terms):
    return written(ROWS.reshape(-1, D), MARGINS.ravel(), np.repeat(np.arange(N), M), COST, **terms)


@pytest.mark.parametrize("count", [1, 2, M])
@pytest.mark.parametrize("feature", FEATURES)
def test_several_constraints_at_once(feature, count):
    terms = said(feature, D)
    problem = problem_of(lambda w, i: worst(w, i, count), **parameters(terms))
    solution = solve(problem, tol=1e-6, random_state=0)
    assert solution.converged
    assert_brackets((solution.lower_bound, solution.upper_bound), reference(**terms).optimum())
    assert solution.certify(problem).upper_bound == pytest.approx(solution.upper_bound)


def test_equals_the_problem_with_listed_constraints():
    listed = Problem(ROWS.reshape(-1, D), MARGINS.ravel(), example=np.repeat(np.arange(N), M), cost=COST)
    one, two = solve(listed, tol=1e-8), solve(problem_of(), tol=1e-8)
    np.testing.assert_allclose(one.w, two.w, atol=1e-4)


@pytest.mark.parametrize("loose", [0.01, 1.0])
def test_a_bound_that_is_loose(loose):
    def oracle(w, i):
        constraints = worst(w, i)
        x, l, _ = constraints[0]
        return constraints, max(0.0, l - x @ w) + loose

    with pytest.warns(ConvergenceWarning, match="The search finds nothing worse, and proves no more: raise tol"):
        solution = solve(problem_of(oracle), tol=1e-6, max_iter=200, random_state=0)
    optimum = reference().optimum()
    assert solution.certified
    assert solution.status == "stalled"
    assert_brackets((solution.lower_bound, solution.upper_bound), optimum)
    assert solution.upper_bound == pytest.approx(optimum + loose * COST.sum(), rel=1e-3)


def test_no_bound_from_some():
    def oracle(w, i):
        return (worst(w, i), None) if i == 3 else worst(w, i)

    problem = problem_of(oracle, exact=False)
    solution = solve(problem, tol=1e-6, random_state=0)
    assert (solution.certified, solution.converged, solution.status) == (False, False, "uncertified")
    assert solution.upper_bound == solution.gap == np.inf
    assert solution.lower_bound == pytest.approx(reference().optimum(), rel=1e-5)
    assert reference().primal(solution.w) == pytest.approx(reference().optimum(), rel=1e-4)
    assert solution.certify(problem).upper_bound == np.inf


def test_bounds_make_a_search_certified_that_is_not_exact():
    def oracle(w, i):
        constraints = worst(w, i)
        return constraints, max(l - x @ w for x, l, _ in constraints)

    solution = solve(problem_of(oracle, exact=False), tol=1e-6)
    assert solution.certified
    assert solution.converged


def test_nothing_is_violated():
    solution = solve(OracleProblem(lambda w, i: [], 3, n_weights=2))
    assert (solution.lower_bound, solution.upper_bound, solution.converged) == (0, 0, True)
    assert solution.w.tolist() == [0, 0]
    solution = solve(OracleProblem(lambda w, i: [], 3))
    assert len(solution.w) == 0
    solution = solve(OracleProblem(lambda w, i: [], 3, n_weights=2, prior=Prior(mean=1.0), upper=0.5))
    assert solution.w.tolist() == [0.5, 0.5]
    assert solution.upper_bound == pytest.approx(0.25)


def test_weights_that_appear_while_searching():
    def oracle(w, i):
        padded = np.zeros(D)
        padded[: len(w)] = w
        x, l, _ = worst(padded, i)[0]
        return [((np.arange(D), x), l)]

    solution = solve(problem_of(oracle, n_weights=None), tol=1e-6)
    assert_brackets((solution.lower_bound, solution.upper_bound), reference().optimum())


def test_a_start():
    first = solve(problem_of(), tol=1e-6, random_state=0)
    again = solve(problem_of(), tol=1e-6, start=first, random_state=0)
    assert again.n_oracle_calls == N
    costlier = solve(problem_of(cost=3 * COST), tol=1e-6, start=first, random_state=0)
    cold = solve(problem_of(cost=3 * COST), tol=1e-6, random_state=0)
    assert costlier.lower_bound <= cold.upper_bound
    assert cold.lower_bound <= costlier.upper_bound
    assert costlier.n_oracle_calls < cold.n_oracle_calls
    with pytest.raises(TypeError, match=r"start must be a dualsvm\.OracleSolution here, got int"):
        solve(problem_of(), start=3)


@pytest.mark.parametrize("feature", FEATURES)
def test_a_start_under_other_terms(feature):
    terms = said(feature, D)
    solution = solve(problem_of(**parameters(terms)), tol=1e-6, start=solve(problem_of(), tol=1e-3))
    assert_brackets((solution.lower_bound, solution.upper_bound), reference(**terms).optimum())
    assert solution.converged


def test_save_and_load(tmp_path):
    solution = solve(problem_of(), tol=1e-4, random_state=0)
    solution.save(tmp_path / "solution")
    again = OracleSolution.load(tmp_path / "solution")
    assert repr(again) == repr(solution)
    assert again.certify(problem_of()) == solution.certify(problem_of())
    assert again.history == solution.history
    assert solve(problem_of(), tol=1e-4, start=again).n_oracle_calls == N


def test_a_callback_ends_the_search():
    records = []

    def callback(record):
        records.append(record)
        return len(records) == 2

    solution = solve(problem_of(), tol=1e-12, random_state=0, callback=callback)
    assert solution.status == "stopped"
    assert solution.n_iter <= 3  # a certificate may follow
    assert records == solution.history
    assert_brackets((solution.lower_bound, solution.upper_bound), reference().optimum())


def test_a_callback_that_fails():
    def callback(record):
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        solve(problem_of(), callback=callback)


@pytest.mark.parametrize("calls", [1, 20, 40])
def test_an_interrupt_ends_the_search(calls):
    left = [calls]

    def oracle(w, i):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return worst(w, i)

    solution = solve(problem_of(oracle), tol=1e-12, random_state=0)
    assert solution.status == "interrupted"
    assert solution.n_oracle_calls <= calls
    assert_brackets((solution.lower_bound, solution.upper_bound), reference().optimum())


def test_an_error_carries_the_state():
    left = [30]

    def oracle(w, i):
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("no more")
        return worst(w, i)

    with pytest.raises(OracleError, match=r"the oracle failed on example \d+: RuntimeError: no more") as info:
        solve(problem_of(oracle), tol=1e-12, random_state=0)
    solution = info.value.solution
    assert solution.status == "failed"
    assert solve(problem_of(), tol=1e-6, start=solution).converged


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, r"must be a list of \(x, l\) or \(constraints, bound\), got NoneType"),
        ([(np.zeros(3), 1.0)], "x in the oracle's answer for example .* must have 4 entries, got 3"),
        ([(np.full(D, np.nan), 1.0)], "contains NaN"),
        ([(np.zeros(D), np.inf)], "l in the oracle's answer .* must be finite"),
        ([(np.zeros(D), "one")], "l in the oracle's answer .* must be a number"),
        ([np.zeros(D)], r"must hold constraints \(x, l\) or \(x, l, key\)"),
        (([(np.zeros(D), 1.0)], 0.5), "has a bound of 0.5, but a constraint with 1"),
        (([(np.zeros(D), 1.0)], np.nan), "the bound in .* must be finite"),
    ],
)
def test_answers_that_are_none(answer, message):
    with pytest.raises(OracleError, match=message):
        solve(problem_of(lambda w, i: answer))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"oracle": 3}, TypeError, "oracle must be callable, got int"),
        ({"examples": 0}, ValueError, "there are no examples"),
        ({"examples": []}, ValueError, "there are no examples"),
        ({"n_weights": 0}, ValueError, "n_weights must be a positive integer or None"),
        ({"cost": -1.0}, ValueError, "cost must not be negative"),
        ({"cost": np.ones(3)}, ValueError, "cost must be one number or one per example"),
        ({"prior": "flat"}, TypeError, "prior must be a dualsvm.Prior"),
        ({"prior": Prior(variance=0.0)}, ValueError, "prior variance must be positive"),
        ({"prior": Prior(covariance=np.eye(2)), "lower": 0.0}, ValueError, "cannot be combined with bounds"),
    ],
)
def test_problems_that_make_no_sense(arguments, error, message):
    with pytest.raises(error, match=message):
        OracleProblem(**{"oracle": worst, "examples": 2, "n_weights": 2} | arguments)


def test_verbose(capsys):
    solve(problem_of(), verbose=1)
    assert capsys.readouterr().out.startswith("pass")
    solve(problem_of(), verbose=2)
    assert "lower" in capsys.readouterr().out
