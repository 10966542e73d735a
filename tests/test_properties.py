"""What holds after any sequence of verbs on the solver's state, for any problem."""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from dualsvm import Prior, Problem
from dualsvm.solution import dual, feasible, primal
from dualsvm.state import State

from .reference import state as write_out

KINDS = ("rows", "groups", "binary", "multiclass", "margins", "slack", "regression", "ranking")
SCALES = {"unit": (0, 1), "tiny": (-8, -7), "huge": (8, 9), "mixed": (-8, 9)}  # of rows, powers of ten
QUIRKS = ("duplicates", "zero rows", "contradictory", "zero cost")
VERBS = (("optimize", 1), ("optimize", 10), ("certify", 0), ("explore", 0))
ROUNDING = 1e-12  # relative to the size of the terms that are added up


def arguments_of(kind, n, contradictory, rng, draw):
    """Margins, labels, ... for n rows; where contradictory, the second half opposes the first."""

    def opposed(values, opposite):
        if contradictory:
            values[n - n // 2 :] = opposite(values[: n // 2])
        return values

    sign = opposed(rng.choice([-1, 1], n), np.negative)
    if kind == "rows":
        return sign, {"margins": 1 + rng.normal(size=n)}
    if kind == "groups":
        count = draw(st.sampled_from([1, n // 30 + 1, n // 3 + 1, n]))
        return sign, {"margins": 1 + rng.normal(size=n), "example": rng.integers(count, size=n)}
    if kind == "ranking":
        return 1, {"pairs": opposed(rng.integers(n, size=(n, 2)), np.fliplr), "margin": 1.0}
    intercept = draw(st.sampled_from([0.0, 0.5]))
    if kind == "binary":
        return 1, {"y": sign, "margin": 1.0, "intercept": intercept}
    if kind == "regression":
        y = opposed(rng.normal(size=n), np.negative)
        return 1, {"y": y, "epsilon": draw(st.sampled_from([0.0, 0.3])), "intercept": intercept}
    k = draw(st.sampled_from([2, 3, 5, 18] if n <= 20 else [2, 3, 5]))
    y = opposed(rng.integers(k, size=n), lambda y: (y + 1) % k)
    table = {"y": y, "class_loss": (1 - np.eye(k)) * rng.integers(5, size=(k, k)) / 2, "intercept": intercept}
    if kind == "margins" or (kind == "slack" and draw(st.booleans())):
        table["margin"] = draw(st.sampled_from([0.0, 3.0, rng.normal(size=n), rng.integers(0, 3, n)]))
    return 1, table | ({"rescaling": "slack"} if kind == "slack" else {})


@st.composite
def cases(draw, kind, scale):
    """Return a problem, the same written out, sizes of its constraints for rounding, and an alpha to start from."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([1, 2, 5, 20, 300]))  # with 128 examples due, two threads share them
    d = draw(st.integers(1, 5))
    quirks = draw(st.sets(st.sampled_from(QUIRKS), max_size=3))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8) * 10.0 ** rng.integers(*SCALES[scale], (n, 1))
    if "zero rows" in quirks:
        X[rng.random(n) < 0.4] = 0
    if "duplicates" in quirks:
        X = X[rng.integers(n // 3 + 1, size=n)]
    if "contradictory" in quirks:
        X[n - n // 2 :] = X[: n // 2]
    sign, arguments = arguments_of(kind, n, "contradictory" in quirks, rng, draw)
    X = (X.T * sign).T.astype(draw(st.sampled_from(["float32", "float64"])))
    task = {"groups": "rows", "margins": "multiclass", "slack": "multiclass"}.get(kind, kind)
    make = Problem if task == "rows" else getattr(Problem, task)
    rows = draw(st.sampled_from([np.asarray, sp.csr_matrix]))(X)

    plain = make(rows, **arguments)
    shape, width = plain.weight_shape, plain.weight_shape[-1]
    cost = draw(st.sampled_from([0.01, 1.0, 100.0])) * rng.uniform(0.5, 1.5, plain.n_examples)
    if "zero cost" in quirks:
        cost[rng.random(len(cost)) < 0.4] = 0
    prior = {}
    match draw(st.sampled_from(["no prior", "diagonal", "full"])):
        case "diagonal":
            prior = {"mean": rng.normal(size=shape), "variance": rng.uniform(0.1, 3, shape)}
        case "full":
            root = rng.normal(size=(width, width))
            prior = {"mean": rng.normal(size=shape), "covariance": root @ root.T + np.eye(width)}
    box = {}
    if "covariance" not in prior and draw(st.booleans()):
        box = {"lower": rng.normal(size=shape) - 1}
        box["upper"] = box["lower"] + rng.choice([0, 1, np.inf], shape)  # 0: the weight is fixed
        box["lower"][rng.random(shape) < 0.3] = -np.inf
    common = {"cost": cost, "loss": draw(st.sampled_from(["hinge", "squared_hinge"])), **box}
    problem = make(rows, **arguments, **common, prior=Prior(**prior))
    start = None
    if draw(st.booleans()):
        start = feasible(problem, cost.mean() * rng.random(problem.alpha_shape))
    statement = write_out(task, X, arguments, **common, **prior)
    # differences of rows are never formed: rounding is relative to both rows
    bulk = np.abs(X)[arguments["pairs"]].sum(axis=1) if kind == "ranking" else np.abs(statement.x)
    return problem, statement, bulk.astype(np.float64), start


class Watched:
    """A state, and what must hold of it after every verb."""

    def __init__(self, problem, statement, bulk, start, threads):
        self.problem, self.statement, self.bulk = problem, statement, bulk
        self.state = State(problem, start, 0, threads)
        self.inverse = np.abs(np.linalg.inv(statement.covariance))
        self.dual, self.size, self.reach = -np.inf, 0.0, 0.0
        self.check()

    def note_sizes(self, alpha):
        """Note the largest magnitudes of what is added up in w, and in the dual."""
        s, u = self.statement, self.bulk.T @ alpha
        self.reach = np.maximum(self.reach, np.abs(s.mean) + np.abs(s.covariance) @ u + np.abs(s.weights(alpha)))
        squares = (s.mass(alpha)[s.cost > 0] ** 2 / s.cost[s.cost > 0]).sum() * s.squared
        size = np.abs(s.l) @ alpha + self.reach @ u + self.reach @ self.inverse @ self.reach + squares
        self.size = max(self.size, size)

    def rounding(self, w=None):
        """Return what rounding may do to the dual; with w, to the primal there."""
        s, size = self.statement, self.size
        if w is not None:
            terms = np.abs(s.l) + self.bulk @ np.maximum(self.reach, np.abs(w.ravel()))
            size += s.cost[s.example] @ (terms**2 if s.squared else terms)
        return ROUNDING * size

    def near(self, value, w=None):
        return pytest.approx(value, rel=0, abs=self.rounding(w))

    def check(self):
        s, alpha, w = self.statement, self.state.alpha(), self.state.weights()
        cap = np.where(s.cost > 0, np.inf, 0) if s.squared else s.cost
        assert (alpha >= 0).all()
        assert (s.mass(alpha.ravel()) <= cap * (1 + 1e-12)).all()
        self.note_sizes(alpha.ravel())
        value = dual(self.problem, alpha)
        assert value == self.near(s.dual(alpha.ravel()))
        assert value >= self.dual - self.rounding()
        assert value <= primal(self.problem, w) + self.rounding(w)
        self.dual = value

    def optimize(self, max_passes):
        passes = self.state.optimize(max_passes, 0.0)
        self.check()
        known = [dual for *_, dual, _, _ in passes if dual > -np.inf]  # passes with light weights know none
        assert not known or known[-1] == self.near(self.dual)

    def certify(self, _=None):
        alpha, w = self.state.alpha(), self.state.weights()
        lower, upper = self.state.certify()
        np.testing.assert_array_equal(self.state.alpha(), alpha)
        assert lower == self.near(self.dual)
        assert upper == self.near(self.statement.primal(w.ravel()), w)  # which also checks lower <= w <= upper
        self.size, self.reach = 0.0, 0.0  # the weights are now rebuilt from alpha
        self.check()
        return lower, upper

    def explore(self, _):
        alpha, w = self.state.alpha(), self.state.weights()
        self.state.explore()
        np.testing.assert_array_equal(self.state.alpha(), alpha)
        np.testing.assert_array_equal(self.state.weights(), w)
        visited = sum(each[0] for each in self.state.optimize(1, 0.0))
        assert visited == (self.statement.cost > 0).sum()
        self.check()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=50)
@given(data=st.data(), threads=st.sampled_from([1, 2]), verbs=st.lists(st.sampled_from(VERBS), max_size=8))
def test_any_sequence_of_verbs(kind, scale, data, threads, verbs):
    problem, statement, bulk, start = data.draw(cases(kind, scale))
    watched = Watched(problem, statement, bulk, start, threads)
    for verb, passes in verbs:
        getattr(watched, verb)(passes)
    lower, upper = watched.certify()
    if scale == "unit" and problem.n_examples <= 20:  # what Clarabel solves in no time
        optimum = statement.optimum()
        slack = 1e-8 * max(abs(optimum), 1)
        assert lower - slack <= optimum <= upper + slack


@pytest.mark.parametrize("cost", [0.01, 1.0])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_classes_of_tiny_rows(rescaling, k, loss, cost):
    """The curvature of a block is then far below the rounding of its gradients, and steps divide by it."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, class_loss = 1e-8 * rng.normal(size=(20, 2)), (1 - np.eye(k)) * rng.integers(1, 5, (k, k)) / 2
        arguments = {"y": rng.integers(k, size=20), "class_loss": class_loss, "rescaling": rescaling}
        problem = Problem.multiclass(X, **arguments, cost=cost, loss=loss)
        statement = write_out("multiclass", X, arguments, cost=cost, loss=loss)
        start = feasible(problem, 3 * cost * rng.random((20, k)))
        Watched(problem, statement, np.abs(statement.x), start, threads=1).optimize(3)
