"""Every kind of problem x every feature: the reported bounds bracket the optimum of a reference QP."""

from functools import cache
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from dualsvm import Prior, Problem, solve
from dualsvm.solution import dual

from .reference import state

STORAGES = {"dense": np.asarray, "sparse": sp.csr_matrix}
TOLERANCES = {"float32": 1e-4, "float64": 1e-6}
LOSSES = ("hinge", "squared_hinge")
FEATURES = {
    "plain": (),
    "diagonal prior": ("mean", "variance"),
    "full covariance": ("mean", "covariance"),
    "bounds": ("lower", "upper"),
    "prior with bounds": ("mean", "variance", "lower", "upper"),
}

rng = np.random.default_rng(0)


def eighths(*shape):
    """Numbers that float32 holds exactly, so that both precisions state one problem; many are zero."""
    return rng.integers(-12, 13, shape) / 8 * (rng.random(shape) < 0.7)


def ids(*sizes):
    """Ids of examples with these numbers of rows, in no order and with holes."""
    return rng.permutation(np.repeat(rng.permutation(3 * len(sizes))[: len(sizes)] - 5, sizes))


def grouped(*sizes):
    return "rows", eighths(sum(sizes), 5), {"margins": 1 + eighths(sum(sizes)), "example": ids(*sizes)}


classes, class_loss = np.arange(20) % 5, (1 - np.eye(5)) * rng.integers(1, 9, (5, 5)) / 4
table = {"y": classes, "class_loss": class_loss, "intercept": 0.5}
grades = {"y": rng.integers(0, 3, 16), "qid": rng.permutation(np.repeat([4, 9, 11, 12], 4))}
pairs = np.array([rng.permutation(12)[:2] for _ in range(24)])
KINDS = {
    "rows": ("rows", eighths(24, 5), {"margins": 1 + eighths(24)}),
    "groups": grouped(*[1, 2, 3, 4] * 3),
    "groups of 20": grouped(20, 20, 20),  # past 16 the kernel moves only a few constraints at a time
    "groups of 1, 2 and 40": grouped(*[1, 2] * 5, 40),
    "binary": ("binary", eighths(24, 5), {"y": rng.choice([-1, 1], 24), "margin": 1.0, "intercept": 1.0}),
    "multiclass": ("multiclass", eighths(20, 4), table),
    "multiclass with margins": ("multiclass", eighths(20, 4), table | {"margin": np.arange(1, 21) / 8}),
    "multiclass, slack": ("multiclass", eighths(20, 4), table | {"rescaling": "slack"}),
    "regression": ("regression", eighths(24, 5), {"y": 2 * eighths(24), "epsilon": 0.25, "intercept": 1.0}),
    "ranking": ("ranking", eighths(12, 5), {"pairs": pairs, "margin": 1.0}),
    "lists": ("lists", eighths(16, 4), grades),
    "weighted lists": ("lists", eighths(16, 5), grades | {"weight": np.arange(16) % 5 / 4, "margin": 0.5}),
}


def build(task, X, arguments, mean=None, variance=None, covariance=None, **common):
    make = Problem if task == "rows" else getattr(Problem, task)
    return make(X, **arguments, prior=Prior(mean, variance, covariance), **common)


@cache
def terms(kind, feature):
    """Costs, and what the feature says of the weights."""
    problem, draw = build(*KINDS[kind]), np.random.default_rng(1)
    shape, width = problem.weight_shape, problem.weight_shape[-1]
    root = draw.normal(size=(width, width))
    box = draw.integers(0, 5, (2, *shape)) / 16  # narrow, so that many weights meet theirs
    box[draw.random(box.shape) < 0.3] = np.inf
    said = {
        "mean": draw.integers(-8, 9, shape) / 8,
        "variance": draw.integers(1, 9, shape) / 4,
        "covariance": root @ root.T / width + np.eye(width),
        "lower": -box[0],
        "upper": box[1],
    }
    cost = draw.integers(1, 9, problem.n_examples) / 4
    return {"cost": cost} | {name: said[name] for name in FEATURES[feature]}


@cache
def reference(kind, loss, feature):
    """The problem written out, and its optimum."""
    statement = state(*KINDS[kind], loss=loss, **terms(kind, feature))
    return statement, statement.optimum()


def related(kind, loss, feature):
    """The solution of another problem: other margins, other costs and, where there are any, other bounds."""
    task, X, arguments = KINDS[kind]
    changed = {"margins", "margin", "epsilon", "class_loss", "cost", "lower", "upper"}
    other, said = (
        {name: value * (1.125 if name in changed else 1) for name, value in given.items()}
        for given in (arguments, terms(kind, feature))
    )
    return solve(build(task, X, other, loss=loss, **said), tol=1e-2, random_state=0)


@pytest.mark.parametrize("start", ["cold", "hot"])
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_bracket_the_optimum(kind, loss, feature, storage, dtype, start):
    task, X, arguments = KINDS[kind]
    problem = build(task, STORAGES[storage](X.astype(dtype)), arguments, loss=loss, **terms(kind, feature))
    assert problem.rows.dtype == dtype
    donor = related(kind, loss, feature) if start == "hot" else None
    solution = solve(problem, TOLERANCES[dtype], max_iter=20_000, start=donor, random_state=0)
    lower, upper = solution.lower_bound, solution.upper_bound
    statement, optimum = reference(kind, loss, feature)

    # Clarabel stops at a relative gap and infeasibility of 1e-10: its optimum may err by some of that
    slack = 1e-9 * abs(optimum)
    assert lower - slack <= optimum <= upper + slack
    assert solution.converged
    assert (upper - lower) / abs(upper) <= TOLERANCES[dtype]

    w, alpha = solution.w.ravel(), solution.alpha.ravel()
    assert (alpha >= 0).all()
    # three computations of the bounds: the kernel, plain numpy, and all constraints written out
    bounds = pytest.approx((lower, upper), rel=1e-10)
    assert solution.certify(problem) == bounds
    assert statement.primal(w) == pytest.approx(upper, rel=1e-10)  # also checks lower <= w <= upper
    if task != "lists":  # whose alpha does not name the constraints
        assert loss == "squared_hinge" or (statement.mass(alpha) <= statement.cost * (1 + 1e-12)).all()
        assert statement.dual(alpha) == pytest.approx(lower, rel=1e-10)

    first = solution.history[0]
    assert first.iteration == (start == "cold")
    if start == "hot":  # it began from the donor's alpha, and most of the way from zero to the optimum was done
        assert first.lower == pytest.approx(donor.certify(problem).lower_bound, rel=1e-10)
        assert first.lower > (dual(problem, np.zeros(problem.alpha_shape)) + optimum) / 2


def test_every_feature_moves_the_optimum():
    """Otherwise the matrix would not notice if a feature were ignored."""
    for kind, loss, feature in product(KINDS, LOSSES, list(FEATURES)[1:]):
        plain, moved = (reference(kind, loss, which)[1] for which in ("plain", feature))
        assert abs(moved - plain) > 1e-3 * plain, (kind, loss, feature)


@pytest.mark.parametrize("bound", ["lower", "upper"])
@pytest.mark.parametrize("kind", KINDS)
def test_full_covariance_excludes_bounds(kind, bound):
    with pytest.raises(ValueError, match="full prior covariance cannot be combined with bounds"):
        build(*KINDS[kind], **terms(kind, "full covariance"), **{bound: 0.0})


@pytest.mark.parametrize("feature", ["plain", "prior with bounds"])
@pytest.mark.parametrize("kind", KINDS)
def test_examples_that_cost_nothing(kind, feature):
    """All that is left is the prior: w is its mean, or the nearest to it within the bounds."""
    said = terms(kind, feature) | {"cost": 0.0}
    solution = solve(build(*KINDS[kind], **said))
    statement = state(*KINDS[kind], loss="hinge", **said)
    nearest = statement.weights(np.zeros(len(statement.l)))
    np.testing.assert_array_equal(solution.w.ravel(), nearest)
    assert solution.converged is True
    assert (solution.lower_bound, solution.upper_bound) == pytest.approx([statement.primal(nearest)] * 2, rel=1e-12)
