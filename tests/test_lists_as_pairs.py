"""With the hinge loss, lists with one slack each are the same problem as all their pairs with one slack each."""

import numpy as np
import pytest
import scipy.sparse as sp

from dualsvm import Prior, Problem, SVMRanker, solve
from dualsvm.queries import groups, preference_pairs

STORAGES = {"dense": np.asarray, "sparse": sp.csr_matrix}
CASES = {
    "ties": {"y": lambda rng, n: rng.integers(3, size=n)},
    "as many grades as rows": {"y": lambda rng, n: rng.permutation(n)},
    "real grades": {"y": lambda rng, n: np.round(rng.normal(size=n), 1)},
    "weights": {"weight": lambda rng, n: rng.uniform(0, 2, n)},
    "weights of 0": {"weight": lambda rng, n: rng.integers(2, size=n)},
    "lists of one": {"qid": lambda rng, n: np.minimum(np.arange(n), 12) + 5},
    "one list": {"qid": lambda rng, n: None},
    "lists in no order": {"qid": lambda rng, n: rng.permutation(np.arange(n) // 7)},
    "equal scores": {"X": lambda rng, X: X[rng.integers(4, size=len(X))]},
    "rows of zeros": {"X": lambda rng, X: X * (rng.random(len(X)) < 0.5)[:, None]},
    "contradictions": {"X": lambda rng, X: np.abs(X) * [[1.0]], "y": lambda rng, n: np.arange(n) % 2},
    "float32": {"X": lambda rng, X: X.astype(np.float32)},
    "a prior": {"shape": {"prior": Prior(mean=0.3, variance=2.0)}},
    "bounds": {"shape": {"lower": -0.05, "upper": 0.1}},
    "a full covariance": {"shape": {"prior": Prior(covariance=np.eye(4) + 0.5)}},
    "another margin": {"margin": 3.0},
}


def both(X, y, qid=None, weight=None, margin=1.0, cost=1.0, **shape):
    """The same problem by its lists and by its pairs, with one cost for all lists or one for each."""
    n = X.shape[0]
    ids = np.zeros(n, int) if qid is None else qid
    start, member = groups(np.asarray(ids))
    pairs = preference_pairs(np.asarray(y, dtype=float), start, member)
    each = np.ones(n) if weight is None else weight
    of_list = np.broadcast_to(cost, len(start) - 1)[np.unique(ids, return_inverse=True)[1]]
    costs = of_list[pairs[:, 0]] * each[pairs[:, 0]] * each[pairs[:, 1]]
    lists = Problem.lists(X, y, qid, weight=weight, margin=margin, cost=cost, **shape)
    return lists, Problem.ranking(X, pairs, margin=margin, cost=costs, **shape)


def assert_one_optimum(lists, pairs, tol, n_jobs=None):
    """Solved either way, and certified by the kernel and by numpy, the bounds hold of one optimum."""
    solutions = [(p, solve(p, tol, max_iter=10**5, random_state=0, n_jobs=n_jobs)) for p in (lists, pairs)]
    bounds = [b for problem, solution in solutions for b in (solution, solution.certify(problem))]
    for b in bounds:
        assert b.gap <= tol * (1 + 1e-6)
        for other in bounds:
            assert b.lower_bound <= other.upper_bound * (1 + 1e-12)
    for ours, again in (bounds[:2], bounds[2:]):
        assert (ours.lower_bound, ours.upper_bound) == pytest.approx(again, rel=1e-9)
    return solutions[0][1]


def given(case, seed=0, n=60, d=4):
    rng = np.random.default_rng(seed)
    said = CASES[case]
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    y = said.get("y", lambda rng, n: rng.integers(4, size=n))(rng, n)
    qid = said.get("qid", lambda rng, n: np.arange(n) // 10)(rng, n)
    more = {"weight": said["weight"](rng, n)} if "weight" in said else {}
    return said.get("X", lambda rng, X: X)(rng, X), y, {"qid": qid, "margin": said.get("margin", 1.0)} | more


@pytest.mark.parametrize("cost", [0.01, 1.0])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("case", CASES)
def test_lists_are_all_their_pairs(case, storage, cost):
    X, y, more = given(case)
    lists, pairs = both(STORAGES[storage](X), y, cost=cost, **more, **CASES[case].get("shape", {}))
    assert_one_optimum(lists, pairs, 1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_with_costs_of_their_own(seed):
    rng = np.random.default_rng(seed)
    X, y, qid = rng.normal(size=(80, 3)), rng.integers(3, size=80), rng.integers(9, size=80)
    cost = rng.uniform(0, 1, len(np.unique(qid))) * (rng.random(len(np.unique(qid))) < 0.8)
    assert_one_optimum(*both(X, y, qid, cost=cost), 1e-5)


@pytest.mark.parametrize("storage", STORAGES)
def test_with_threads(storage):
    """Lists enough for two threads, which add up what they found."""
    rng = np.random.default_rng(2)
    X, y, qid = rng.normal(size=(1500, 6)), rng.integers(4, size=1500), rng.permutation(np.arange(1500) // 5)
    X[:, 0] += 0.5 * y
    lists, pairs = both(STORAGES[storage](X), y, qid, cost=0.02)
    alone = assert_one_optimum(lists, pairs, 1e-3)
    together = assert_one_optimum(lists, pairs, 1e-3, n_jobs=2)
    assert alone.lower_bound <= together.upper_bound
    assert together.lower_bound <= alone.upper_bound


@pytest.mark.parametrize("distinct", [False, True])
def test_a_long_list(distinct):
    """2000 rows, and up to two million pairs."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 3))
    y = X[:, 0] + rng.normal(size=2000)
    lists, pairs = both(X, y if distinct else np.digitize(y, [-1, 0, 2]), cost=1e-6)
    assert_one_optimum(lists, pairs, 1e-3)


def test_preferences_that_are_already_met_cost_nothing():
    X = np.arange(50.0)[:, None]
    solution = solve(Problem.lists(X, np.arange(50), prior=Prior(mean=1.0)), tol=1e-9)
    assert solution.converged
    assert (solution.lower_bound, solution.upper_bound) == (0.0, 0.0)
    np.testing.assert_array_equal(solution.w, [1.0])


@pytest.mark.parametrize("weights", [False, True])
def test_the_ranker_finds_one_optimum_either_way(weights):
    rng = np.random.default_rng(5)
    X, y, qid = rng.normal(size=(200, 5)), rng.integers(5, size=200), rng.integers(20, size=200)
    weight = rng.integers(0, 3, 200) / 2 if weights else None
    pair, query = (
        SVMRanker(0.1, slack=slack, tol=1e-4, random_state=0).fit(X, y, qid=qid, sample_weight=weight)
        for slack in ("pair", "query")
    )
    assert pair.converged_
    assert query.converged_
    assert pair.lower_bound_ <= query.upper_bound_
    assert query.lower_bound_ <= pair.upper_bound_
