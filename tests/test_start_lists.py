"""Hot starts of lists: dual variables carry over between problems with the same preferences, and no others."""

import numpy as np
import pytest

from dualsvm import Prior, Problem, Solution, SVMRanker, solve
from dualsvm.solution import dual
from dualsvm.solve import match

from .problems import assert_optimal
from .reference import listed

N, D = 48, 4
RNG = np.random.default_rng(6)
X = RNG.normal(size=(N, D))
Y = RNG.integers(4, size=N)
QID = RNG.permutation(np.repeat([3, 8, -1, 40], 12))
WEIGHT = RNG.integers(0, 5, N) / 2
TOL = 1e-4


def lists(X=X, y=Y, qid=QID, **more):
    return Problem.lists(X, y, qid, **{"cost": 0.3, **more})


def solved(problem, tol=TOL, **more):
    return solve(problem, tol, max_iter=10**5, random_state=0, **more)


@pytest.fixture(scope="module", params=["hinge", "squared_hinge"])
def loss(request):
    return request.param


@pytest.fixture(scope="module")
def start(loss):
    return solved(lists(loss=loss))


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_a_start_from_the_solution_itself_needs_no_pass(loss, tol, weight):
    problem = lists(loss=loss, weight=weight)
    first = solved(problem, tol)
    again = solve(problem, tol, start=first)
    assert again.converged
    assert again.n_iter == 0
    assert [record.iteration for record in again.history] == [0]
    assert again.upper_bound <= first.upper_bound * (1 + 1e-12)
    np.testing.assert_allclose(again.alpha, first.alpha, atol=1e-12)


def test_a_start_from_a_file(tmp_path, start, loss):
    start.save(tmp_path / "lists.npz")
    loaded = Solution.load(tmp_path / "lists.npz")
    assert loaded.fingerprint == start.fingerprint != ""
    assert solved(lists(loss=loss), start=loaded).n_iter == 0
    assert not match(loaded, lists(y=-Y, loss=loss)).any()


SAME = {  # other problems with the same preferences
    "C up": {"cost": 1.0},
    "C down": {"cost": 0.05},
    "costs": {"cost": np.array([0.0, 0.1, 0.3, 2.0])},
    "margin up": {"margin": 3.0},
    "margin down": {"margin": 0.1},
    "features": {"X": X[:, ::-1] + 0.1},
    "more features": {"X": np.c_[X, X[:, 0] ** 2]},
    "grades by other names": {"y": 10.0 * Y - 3},
    "queries by other names": {"qid": 2 * QID + 100},
    "prior": {"prior": Prior(mean=0.2, variance=0.5)},
    "covariance": {"prior": Prior(covariance=np.eye(D) + 0.5)},
    "bounds": {"lower": -0.1, "upper": 0.3},
}


@pytest.mark.parametrize("change", SAME)
def test_the_same_preferences(change, start, loss):
    problem = lists(**{"loss": loss, **SAME[change]})
    alpha = match(start, problem)
    cap = problem.cost if loss == "hinge" else np.where(problem.cost > 0, np.inf, 0.0)
    mass = problem.mapping.mass(start.alpha)
    factor = np.divide(cap, mass, out=np.ones(4), where=mass > cap)[np.unique(QID, return_inverse=True)[1]]
    np.testing.assert_allclose(alpha, start.alpha * factor[:, None], atol=1e-12)
    hot = solved(problem, start=start)
    began = max(dual(problem, alpha), dual(problem, np.zeros_like(alpha)))
    assert hot.history[0].lower == pytest.approx(began)
    assert_optimal(hot, problem, TOL)


def test_between_the_losses(loss):
    other = {"hinge": "squared_hinge", "squared_hinge": "hinge"}[loss]
    new = lists(loss=other)
    assert_optimal(solved(new, start=solved(lists(loss=loss))), new, TOL)


OTHER = {  # other preferences, though the shapes are the same
    "reversed grades": {"y": -Y},
    "one grade changed": {"y": np.where(np.arange(N) == 5, Y + 1, Y)},
    "other queries": {"qid": np.roll(QID, 1)},
    "one query": {"qid": None, "cost": 0.03},
    "queries in another order": {"qid": -QID},
    "weights": {"weight": WEIGHT},
    "other weights": {"weight": np.where(np.arange(N) == 7, 0.5, 1.0)},
    "rows in another order": {"X": X[::-1], "y": Y[::-1], "qid": QID[::-1]},
    "some rows gone": {"X": X[:-3], "y": Y[:-3], "qid": QID[:-3]},
    "more rows": {"X": np.r_[X, X[:3]], "y": np.r_[Y, Y[:3]], "qid": np.r_[QID, QID[:3]]},
    "no preferences": {"y": np.zeros(N)},
}


@pytest.mark.parametrize("change", OTHER)
def test_other_preferences(change, start, loss):
    """Dual variables would say nothing of this problem: a lower bound made of them could lie above the optimum."""
    given = {"X": X, "y": Y, "qid": QID, "cost": 0.3} | OTHER[change] | {"loss": loss}
    problem = Problem.lists(**given)
    assert not match(start, problem).any()
    hot = solved(problem, start=start)
    optimum = listed(**given).optimum()
    assert hot.history[0].lower == 0.0
    for record in hot.history:
        assert record.lower <= optimum * (1 + 1e-9) + 1e-12
        assert record.upper >= optimum * (1 - 1e-9) - 1e-12
    assert hot.converged
    assert hot.lower_bound <= optimum * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("change", ["reversed grades", "one grade changed", "other queries", "weights"])
def test_certificates_of_other_preferences(change, start, loss):
    """`certify` promises the bounds of whatever problem of the same shape it is given."""
    given = {"X": X, "y": Y, "qid": QID, "cost": 0.3} | OTHER[change] | {"loss": loss}
    optimum = listed(**given).optimum()
    certificate = start.certify(Problem.lists(**given))
    assert certificate.lower_bound <= optimum * (1 + 1e-9)
    assert certificate.upper_bound >= optimum * (1 - 1e-9)


def test_unweighted_is_not_weighted_by_one(start, loss):
    """They are the same problem: that a start is not taken over is allowed, a false bound is not."""
    problem = lists(loss=loss, weight=np.ones(N))
    hot = solved(problem, start=start)
    assert_optimal(hot, problem, TOL)
    assert hot.lower_bound <= start.upper_bound * (1 + 1e-12)


def test_a_chain_of_starts(loss):
    """Every start melts the constraints of a list into one: the bounds stay true over many."""
    solution = None
    for k in range(30):
        problem = lists(X=X + 0.01 * k, cost=0.02 * (k + 1), margin=1 + 0.1 * (k % 3), loss=loss)
        solution = solve(problem, 1e-2, max_iter=10**4, start=solution, random_state=k)
        assert solution.converged
        assert solution.certify(problem) == pytest.approx((solution.lower_bound, solution.upper_bound), rel=1e-9)
    optimum = listed(X + 0.29, Y, QID, cost=0.6, margin=1 + 0.1 * (29 % 3), loss=loss).optimum()
    assert solution.lower_bound <= optimum * (1 + 1e-9)
    assert solution.upper_bound >= optimum * (1 - 1e-9)


def test_the_ranker_starts_from_the_same_preferences_only():
    model = SVMRanker(0.1, slack="query", warm_start=True, random_state=0).fit(X, Y, qid=QID)
    assert model.fit(X, Y, qid=QID).n_iter_ == 0
    for y, qid in ((-Y, QID), (Y, np.roll(QID, 1)), (Y[:-2], QID[:-2])):
        model.fit(X[: len(y)], y, qid=qid)
        cold = SVMRanker(0.1, slack="query", random_state=1).fit(X[: len(y)], y, qid=qid)
        assert model.converged_
        assert model.history_[0].lower == 0.0
        assert model.lower_bound_ <= cold.upper_bound_
        assert cold.lower_bound_ <= model.upper_bound_
