"""Shares of any problem agree on its optimum, and all that they prove on the way is true."""

from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import Phase, given, settings

from dualsvm import Prior, Problem
from dualsvm.shares import Course, Ground, Host, Lead, RowShare, Together
from dualsvm.solution import conjugate, linear_part
from dualsvm.state import Layout

from .reference import listed, state

KINDS = ("rows", "groups", "binary", "multiclass", "slack", "regression", "ranking", "lists")
ROUNDS, NEAR = 300, 1e-2  # so many rounds lead so near the optimum of any of these, and mostly much nearer
QUICKLY = {
    "deadline": None,
    "phases": [Phase.generate],
}  # smaller failures take minutes


@dataclass
class Case:
    """A problem in shares, of one or several pieces each, and the same written out."""

    shares: list[list[Problem]]
    statement: Any
    single: bool = False

    def lead(self, tol: float, seed: int = 0) -> Lead:
        """Return the lead of shares that are all here, not begun."""
        self.layout = Layout(self.shares[0][0])
        hosts = [
            Host(k, [(k, j) for j in range(len(pieces))], [RowShare(pieces, seed + k, 1)])
            for k, pieces in enumerate(self.shares)
        ]
        course = Course(Ground.of(self.layout), tol, len(hosts), self.single)
        return Lead(Together(hosts), [course], lambda weights: self.layout.as_seen(weights[0]))

    def alpha(self, lead: Lead) -> list[tuple[Problem, np.ndarray]]:
        """Return the pieces with their dual variables."""
        kept = lead.gather("keep")
        return [(p, kept[k, j][0]) for k, pieces in enumerate(self.shares) for j, p in enumerate(pieces)]

    def dual(self, lead: Lead) -> float:
        """Return what the dual variables prove, in plain numpy; see that they are feasible."""
        u, linear = np.zeros(self.shares[0][0].weight_shape), 0.0
        for problem, alpha in self.alpha(lead):
            cap = np.where(problem.cost > 0, np.inf, 0) if problem.loss == "squared_hinge" else problem.cost
            assert (alpha >= 0).all()
            assert (problem.mapping.mass(alpha) <= cap * (1 + 1e-12)).all()
            u += problem.mapping.combine(problem.view, alpha)
            linear += linear_part(problem, alpha)
        return linear + conjugate(self.shares[0][0], u)

    def made(self, lead: Lead) -> np.ndarray:
        """Return what the dual variables make of the rows, in the coordinates of shares."""
        several = [p.mapping.combine(self.layout.rows(p), alpha) for p, alpha in self.alpha(lead)]
        found = self.layout.inward(sum(several), 0.0)
        assert found is not None
        return found


def said_of_weights(shape, feature, rng):
    """Return a prior and bounds."""
    width = shape[-1]
    match feature:
        case "diagonal":
            return {"mean": rng.normal(size=shape), "variance": rng.uniform(0.1, 3, shape)}
        case "full":
            root = rng.normal(size=(width, width))
            return {"mean": rng.normal(size=shape), "covariance": root @ root.T / width + np.eye(width)}
        case "bounds" | "prior and bounds":
            low = rng.normal(size=shape) - 1
            high = low + rng.choice([0, 1, np.inf], shape)  # 0: the weight is fixed
            low[rng.random(shape) < 0.3] = -np.inf
            prior = {"mean": rng.normal(size=shape), "variance": rng.uniform(0.1, 3, shape)}
            return {"lower": low, "upper": high} | (prior if feature == "prior and bounds" else {})
    return {}


def arguments_of(kind, n, units, rng):
    """Return margins, labels, ... for n rows; of the pairs and queries, all rows are in one of the units."""
    sign = rng.choice([-1.0, 1.0], n)
    match kind:
        case "rows":
            return {"margins": 1 + rng.normal(size=n)}
        case "groups":
            return {"margins": 1 + rng.normal(size=n), "example": units}
        case "binary":
            return {"y": sign, "margin": 1.0, "intercept": 0.5}
        case "regression":
            return {"y": rng.normal(size=n), "epsilon": 0.1, "intercept": 0.5}
        case "multiclass" | "slack":
            k = rng.integers(2, 6)
            table = {"y": rng.integers(k, size=n), "class_loss": (1 - np.eye(k)) * rng.integers(1, 5, (k, k)) / 2}
            return table | {"intercept": 0.5, "rescaling": "slack" if kind == "slack" else "margin"}
        case "ranking":
            near = [(i, j) for i in range(n) for j in range(n) if units[i] == units[j] and i != j]
            return {"pairs": rng.permutation(np.array(near))[: 2 * n], "margin": 1.0}
    return {"y": rng.integers(0, 3, n), "qid": units}


def some(arguments, rows):
    """Return the arguments of some rows, which are next to one another."""
    found = dict(arguments)
    for name in ("margins", "y", "example", "qid"):
        if name in found:
            found[name] = found[name][rows]
    if "pairs" in found:
        first = found["pairs"][:, 0]
        found["pairs"] = found["pairs"][(first >= rows.start) & (first < rows.stop)] - rows.start
    return found


@st.composite
def cases(draw, kind):
    """Return a problem in shares."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(
        st.lists(st.lists(st.sampled_from([1, 2, 7]), min_size=1, max_size=3), min_size=1, max_size=8),
        label="units in pieces, in shares",
    )
    per_unit = 3 if kind in ("groups", "ranking", "lists") else 1
    lengths = [per_unit * size for pieces in sizes for size in pieces]
    n, d = sum(lengths), draw(st.integers(1, 5))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    ends = np.cumsum(lengths)
    if draw(st.booleans()):
        X[: ends[0], 0] = 0  # a feature that the first piece lacks, and others may not
        X[ends[0] :, -1] = 0
    X = X.astype(dtype := draw(st.sampled_from(["float64", "float32"])))
    units = np.arange(n) // per_unit
    arguments = arguments_of(kind, n, units, rng)
    task = {"groups": "rows", "slack": "multiclass"}.get(kind, kind)
    make = Problem if task == "rows" else getattr(Problem, task)
    plain = make(X, **arguments)
    cost = draw(st.sampled_from([0.01, 1.0, 30.0])) * rng.uniform(0.5, 1.5, plain.n_examples)
    if draw(st.booleans()):
        cost[rng.random(len(cost)) < 0.4] = 0
    feature = draw(st.sampled_from(["plain", "diagonal", "full", "bounds", "prior and bounds"]))
    said = said_of_weights(plain.weight_shape, feature, rng)
    loss = draw(st.sampled_from(["hinge", "squared_hinge"]))
    form = draw(st.sampled_from([np.asarray, sp.csr_array]))
    prior = Prior(*(said.get(name) for name in ("mean", "variance", "covariance")))
    box = {name: said[name] for name in ("lower", "upper") if name in said}

    def piece(rows):
        own = cost[rows.start // per_unit : rows.stop // per_unit] if kind in ("groups", "lists") else cost[rows]
        given = some(arguments, rows)
        if kind == "ranking":
            first = arguments["pairs"][:, 0]
            own = cost[(first >= rows.start) & (first < rows.stop)]
        return make(form(X[rows]), **given, cost=own, loss=loss, prior=prior, **box)

    bounds = iter(zip(ends - lengths, ends, strict=True))
    shares = [[piece(slice(*next(bounds))) for _ in pieces] for pieces in sizes]
    if kind == "lists":
        statement = listed(X, **arguments, cost=cost, loss=loss, **said)
    else:
        statement = state(task, X, arguments, cost=cost, loss=loss, **said)
    single = dtype == "float32" and "covariance" not in said
    return Case(shares, statement, single and draw(st.booleans()) and not box)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, **QUICKLY)
@given(data=st.data(), tol=st.sampled_from([1e-3, 1e-5]))
def test_any_shares_agree(kind, data, tol):
    case = data.draw(cases(kind))
    tol = 1e-3 if case.single else tol
    lead, optimum = case.lead(tol), case.statement.optimum()
    slack = 1e-8 * max(abs(optimum), 1)  # of the reference
    lead.begin()
    status = lead.pursue(ROUNDS)
    assert lead.gap <= (tol if status == "converged" else NEAR)
    for record in lead.history:
        assert record.lower - slack <= optimum <= record.upper + slack
    rounding = 1e-9 * max(abs(lead.upper), 1)
    assert case.dual(lead) >= lead.lower - rounding  # what the shares are left with proves the bound
    assert case.statement.primal(lead.weights().ravel()) == pytest.approx(lead.upper, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4, **QUICKLY)
@given(data=st.data())
def test_what_is_known_of_the_dual_variables(kind, data):
    """After any round the lead knows what the dual variables of all shares make."""
    case = data.draw(cases(kind))
    lead = case.lead(0.0)
    lead.begin()
    course = lead.courses[0]
    for _ in range(4):
        lead.round()
        made = case.made(lead)
        size = max(np.abs(made).max(), 1.0)
        np.testing.assert_allclose(course.u, made, rtol=0, atol=1e-9 * size)
        assert course.dual == pytest.approx(case.dual(lead), rel=1e-7, abs=1e-7 * size**2)
        assert case.dual(lead) <= course.upper + 1e-9 * max(abs(course.upper), 1)
