"""Lists to be ranked: what holds of their bounds and dual variables after any sequence of verbs."""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from scipy.optimize import linprog

from dualsvm import Prior, Problem, solve
from dualsvm.solution import dual, primal
from dualsvm.state import State

from .reference import listed

SCALES = {"unit": 0, "tiny": -8, "huge": 8}
QUIRKS = ("duplicates", "zero rows", "zero cost", "zero weights", "contradictory")
GRADES = {
    "three grades": lambda rng, n: rng.integers(3, size=n),
    "as many grades as rows": lambda rng, n: rng.permutation(n) - n / 2,
    "real numbers with ties": lambda rng, n: rng.normal(size=5)[rng.integers(5, size=n)],
    "one grade": lambda rng, n: np.full(n, 7),
}
VERBS = (("optimize", 1), ("optimize", 20), ("certify", 0), ("explore", 0))
ROUNDING = 1e-12  # relative to the size of the terms that are added up


@st.composite
def cases(draw, scale):
    """Return a problem, and the same by its pairs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.sampled_from([1, 2, 5, 20, 300])), draw(st.integers(1, 5))
    quirks = draw(st.sets(st.sampled_from(QUIRKS), max_size=3))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8) * 10.0 ** SCALES[scale]
    y = GRADES[draw(st.sampled_from(list(GRADES)))](rng, n)
    if "zero rows" in quirks:
        X[rng.random(n) < 0.4] = 0
    if "duplicates" in quirks:
        X = X[rng.integers(n // 3 + 1, size=n)]
    if "contradictory" in quirks:
        X[n - n // 2 :], y[n - n // 2 :] = X[: n // 2], -y[: n // 2]
    X = X.astype(draw(st.sampled_from(["float32", "float64"])))
    count = draw(st.sampled_from([1, n // 30 + 1, n // 2 + 1, n]))  # with 128 lists due, two threads share them
    qid = (rng.permutation(3 * count)[:count] - count)[rng.integers(count, size=n)]
    weight = draw(st.sampled_from([None, rng.uniform(0, 3, n), rng.integers(0, 3, n)]))
    if "zero weights" in quirks:
        weight = (np.ones(n) if weight is None else weight) * (rng.random(n) < 0.5)
    lists = len(np.unique(qid))
    cost = draw(st.sampled_from([0.001, 0.1, 10.0])) * rng.uniform(0.5, 1.5, lists)
    if "zero cost" in quirks:
        cost[rng.random(lists) < 0.4] = 0
    prior, box = {}, {}
    match draw(st.sampled_from(["no prior", "diagonal", "full"])):
        case "diagonal":
            prior = {"mean": rng.normal(size=d), "variance": rng.uniform(0.1, 3, d)}
        case "full":
            root = rng.normal(size=(d, d))
            prior = {"mean": rng.normal(size=d), "covariance": root @ root.T + np.eye(d)}
    if "covariance" not in prior and draw(st.booleans()):
        box = {"lower": rng.normal(size=d) - 1}
        box["upper"] = box["lower"] + rng.choice([0, 1, np.inf], d)
        box["lower"][rng.random(d) < 0.3] = -np.inf
    said = {"weight": weight, "margin": draw(st.sampled_from([0.3, 1.0, 7.0])), "cost": cost, **box}
    said["loss"] = draw(st.sampled_from(["hinge", "squared_hinge"]))
    rows = draw(st.sampled_from([np.asarray, sp.csr_matrix]))(X)
    return Problem.lists(rows, y, qid, **said, prior=Prior(**prior)), listed(X, y, qid, **said, **prior)


def assert_planes_hold(statement, alpha, rng):
    """What alpha says of a list never exceeds what the list pays: mass loss(s) >= l - beta.s, at any scores s."""
    s, n = statement, len(statement.cost)
    beta, l, mass = alpha[:, 0] - alpha[:, 1], *(np.bincount(s.list, alpha[:, k], n) for k in (2, 3))
    worth = s.weight * np.bincount(s.list, s.weight, n)[s.list]  # at most what a row counts in a constraint
    tries = [np.zeros(len(beta)), -beta, beta, s.y.astype(float), -s.y.astype(float)]
    tries += [s.margin * 10.0**k * rng.normal(size=len(beta)) for k in (-2, 0, 0, 0, 1, 3)]
    for scores in tries:
        said = s.margin * l - np.bincount(s.list, beta * scores, n)
        size = mass * np.bincount(s.list, worth * (s.margin + np.abs(scores)), n)
        assert (said <= mass * s.losses(scores) + ROUNDING * size).all()


class Watched:
    """A state, and what must hold of it after every verb."""

    def __init__(self, problem, statement, threads, start=None):
        self.problem, self.statement = problem, statement
        self.state, self.rng = State(problem, start, 0, threads), np.random.default_rng(0)
        s = statement
        n = len(s.cost)
        self.worth = s.weight * np.bincount(s.list, s.weight, n)[s.list]
        self.inverse = np.abs(np.linalg.inv(s.covariance))
        self.dual, self.size, self.reach = -np.inf, 0.0, 0.0
        self.check()

    def note_sizes(self, mass):
        """Note the largest magnitudes of what is added up in w, and in the dual."""
        s = self.statement
        u = np.abs(s.X).T @ (mass[s.list] * self.worth)
        self.reach = np.maximum(self.reach, np.abs(s.mean) + np.abs(s.covariance) @ u)
        squares = (mass[s.cost > 0] ** 2 / s.cost[s.cost > 0]).sum() * s.squared
        size = (
            s.margin * (mass[s.list] @ self.worth) + self.reach @ u + self.reach @ self.inverse @ self.reach + squares
        )
        self.size = max(self.size, size)

    def near(self, value, w=None):
        return pytest.approx(value, rel=0, abs=self.rounding(w))

    def rounding(self, w=None):
        """Return what rounding may do to the dual; with w, to the primal there."""
        s, size = self.statement, self.size
        if w is not None:
            reach = np.maximum(self.reach, np.abs(w))
            terms = np.bincount(s.list, self.worth * (s.margin + np.abs(s.X) @ reach), len(s.cost))
            size = size + s.cost @ (terms**2 if s.squared else terms) + reach @ self.inverse @ reach
        return ROUNDING * size

    def check(self):
        s, alpha, w = self.statement, self.state.alpha(), self.state.weights()
        mass = np.bincount(s.list, alpha[:, 3], len(s.cost))
        cap = np.where(s.cost > 0, np.inf, 0) if s.squared else s.cost
        assert (alpha >= 0).all()
        assert (np.minimum(alpha[:, 0], alpha[:, 1]) == 0).all()
        assert (mass <= cap * (1 + 1e-12)).all()
        assert_planes_hold(s, alpha, self.rng)
        self.note_sizes(mass)
        value = dual(self.problem, alpha)
        assert value >= self.dual - self.rounding()
        assert value <= primal(self.problem, w) + self.rounding(w)
        self.dual = value

    def optimize(self, max_passes):
        passes = self.state.optimize(max_passes, 0.0)
        rising = [self.dual, *(each[2] for each in passes)]
        self.check()
        assert (np.diff(rising) >= -self.rounding()).all()
        assert not passes or passes[-1][2] == self.near(self.dual)

    def certify(self, _=None):
        alpha, w = self.state.alpha(), self.state.weights()
        lower, upper = self.state.certify()
        np.testing.assert_array_equal(self.state.alpha(), alpha)
        assert lower == self.near(self.dual)
        assert upper == self.near(self.statement.primal(w), w)  # which also checks lower <= w <= upper
        assert primal(self.problem, w) == self.near(upper, w)
        self.size, self.reach = 0.0, 0.0  # the weights are now rebuilt from alpha
        self.check()
        return lower, upper

    def explore(self, _):
        self.state.explore()
        visited = sum(each[0] for each in self.state.optimize(1, 0.0))
        assert visited == (self.statement.cost > 0).sum()
        self.check()


@pytest.mark.parametrize("scale", SCALES)
@settings(deadline=None, max_examples=75)
@given(data=st.data(), threads=st.sampled_from([1, 2]), verbs=st.lists(st.sampled_from(VERBS), max_size=6))
def test_any_sequence_of_verbs(scale, data, threads, verbs):
    problem, statement = data.draw(cases(scale))
    watched = Watched(problem, statement, threads)
    for verb, passes in verbs:
        getattr(watched, verb)(passes)
    lower, upper = watched.certify()
    again = Watched(problem, statement, threads, watched.state.alpha())  # dual variables told in four numbers a row
    assert again.dual >= watched.dual - watched.rounding()
    again.optimize(3)
    again.certify()
    if scale == "unit" and len(statement.pairs) <= 100:  # what Clarabel solves in no time
        optimum = statement.optimum()
        slack = 1e-8 * max(abs(optimum), 1)
        assert lower - slack <= optimum <= upper + slack


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("seed", range(10))
def test_dual_variables_are_made_of_pairs(seed, loss):
    """There are parts f of the pairs, no more than their weights times the mass, that make beta and l together."""
    rng = np.random.default_rng(seed)
    X, y, weight = rng.normal(size=(7, 3)), rng.integers(4, size=7), rng.uniform(0, 2, 7)
    said = {"weight": weight, "cost": 10.0, "loss": loss, "margin": 2.0}
    alpha = solve(Problem.lists(X, y, **said), tol=1e-7, max_iter=10**4, random_state=0).alpha
    statement = listed(X, y, **said)
    better, worse = statement.pairs.T
    makes = np.zeros((7 + 1, len(better)))
    makes[better, np.arange(len(better))], makes[worse, np.arange(len(better))], makes[7] = 1, -1, 1
    caps = alpha[:, 3].sum() * weight[better] * weight[worse] * (1 + 1e-9)
    found = linprog(
        np.zeros(len(better)),
        A_eq=makes,
        b_eq=np.append(alpha[:, 0] - alpha[:, 1], alpha[:, 2].sum()),
        bounds=np.c_[np.zeros(len(better)), caps],
    )
    assert found.status == 0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("lists", [1, 3])
def test_many_passes_melt_many_constraints(lists, loss):
    """A list keeps 16 constraints at most: far more are met on the way."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(60, 25)), rng.integers(5, size=60)
    said = {"qid": np.arange(60) % lists, "cost": 5e-4 if loss == "squared_hinge" else 0.05, "loss": loss}
    problem, statement = Problem.lists(X, y, **said), listed(X, y, **said)
    watched = Watched(problem, statement, threads=1)
    for _ in range(60):
        watched.optimize(1)
    watched.optimize(2000)
    lower, upper = watched.certify()
    optimum = statement.optimum()
    assert lower * (1 - 1e-8) <= optimum <= upper * (1 + 1e-8)
    assert upper - lower <= 1e-3 * upper
