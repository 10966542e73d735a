"""Every compiled path at least once, fast enough to be run under the sanitizers."""

import numpy as np
import pytest
import scipy.sparse as sp

from dualsvm import Prior, Problem, _core, solve
from dualsvm.solution import dual, primal
from dualsvm.state import State

N, D = 400, 19  # enough examples for two threads, and features for whole vectors and some to spare
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.4)
ROWS[[0, 50, 51, N - 1]] = 0  # rows without any entry,
ROWS[60] = ROWS[61]  # rows that are alike, within a group of 40 and of 2
ROWS[300] = ROWS[301]
SIGNS = np.where(ROWS[:, 0] + RNG.normal(size=N) > 0, 1, -1)
TARGETS = ROWS[:, :3].sum(axis=1) + RNG.normal(size=N)
PAIRS = np.c_[np.arange(N), RNG.permutation(N)]
GROUPS = np.r_[np.repeat([-5, 7, 3], 40), np.arange(1000, 1080), np.repeat(np.arange(100, 200), 2)]
LISTS = np.r_[np.repeat([-5, 7, 3], 8), np.arange(1000, 1080), np.repeat(np.arange(100, 248), 2)]


def csr(index):
    def make(dtype):
        matrix = sp.csr_matrix(ROWS.astype(dtype))
        matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
        return matrix

    return make


STORAGES = {"dense": ROWS.astype, "csr32": csr(np.int32), "csr64": csr(np.int64)}


def classes(k, **more):
    table = RNG.random((k, k)) + 0.5
    np.fill_diagonal(table, 0)
    labels = RNG.integers(k, size=N)
    return lambda rows, **common: Problem.multiclass(rows, labels, class_loss=table, **more, **common)


TASKS = {
    "rows": lambda rows, **common: Problem(rows, SIGNS, **common),
    "groups": lambda rows, **common: Problem(rows, np.abs(TARGETS), example=GROUPS, **common),
    "binary": lambda rows, **common: Problem.binary(rows, SIGNS, intercept=1.5, **common),
    "regression": lambda rows, **common: Problem.regression(rows, TARGETS, epsilon=0.1, **common),
    "ranking": lambda rows, **common: Problem.ranking(rows, PAIRS, **common),
    # classes in one to five vectors of four, each with some to spare
    "3 classes": classes(3),
    "7 classes": classes(7, intercept=-0.5),
    "11 classes": classes(11),
    "18 classes": classes(18),
    "7 classes, slack": classes(7, rescaling="slack", margin=np.linspace(0, 2, N), intercept=0.5),
    "18 classes, slack": classes(18, rescaling="slack"),
    # lists of 8, of 1 and of 2; lists of 40, with weights, some of them 0, and as many grades as rows
    "lists": lambda rows, **common: Problem.lists(rows, np.round(TARGETS), LISTS, **common),
    "weighted lists": lambda rows, **common: Problem.lists(
        rows, TARGETS, GROUPS, weight=np.arange(N) % 3 / 2, **common
    ),
}
SHAPES = {
    "plain": {},
    "prior": {"prior": Prior(mean=0.1, variance=0.5)},
    "bounds": {"prior": Prior(mean=-0.1), "lower": -0.1, "upper": 0.2},
}


def assert_certified(problem, threads, tol):
    """A solve ends with a small gap, and the kernel's certificate is that of plain numpy."""
    solution = solve(problem, tol=tol, max_iter=10**4, random_state=0, n_jobs=threads)
    assert solution.gap <= tol
    state = State(problem, solution.alpha, seed=1, threads=threads)
    state.explore()
    passes = state.optimize(2, 0.0)
    assert passes[0][0] == problem.n_examples - np.count_nonzero(problem.cost == 0)  # all were visited
    lower, upper = state.certify()
    alpha, w = state.alpha(), state.weights()
    assert (alpha >= 0).all()
    if problem.loss == "hinge":
        assert (problem.mapping.mass(alpha) <= problem.cost * (1 + 1e-12)).all()
    assert lower == pytest.approx(dual(problem, alpha), rel=1e-9)
    assert upper == pytest.approx(primal(problem, w), rel=1e-9)
    assert solution.lower_bound * (1 - 1e-12) <= lower <= upper * (1 + 1e-12)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("task", TASKS)
def test_every_path(task, storage, dtype, loss, shape, threads):
    n = TASKS[task](ROWS).n_examples
    cost = np.where(np.arange(n) % 5 == 4, 0.0, 0.05)
    problem = TASKS[task](STORAGES[storage](dtype), cost=cost, loss=loss, **SHAPES[shape])
    assert_certified(problem, threads, 1e-2)


@pytest.mark.parametrize("task", TASKS)
def test_rotated_rows(task):
    width = TASKS[task](ROWS).weight_shape[-1]
    factor = np.eye(width) + 0.1 * RNG.normal(size=(width, width))
    problem = TASKS[task](ROWS, cost=0.05, prior=Prior(mean=0.1, covariance=factor @ factor.T))
    assert_certified(problem, 2, 1e-2)


@pytest.mark.parametrize("task", TASKS)
def test_hard_costs(task):
    """Costs so large that dual variables move between constraints, and end at no cap."""
    assert_certified(TASKS[task](ROWS[:, :3], cost=5.0), 1, 0.2)


@pytest.mark.parametrize("scale", [1e-4, 1e-9, 1e-30, 1e-160])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("task", TASKS)
def test_short_rows(task, loss, scale):
    """Where x'x is small, rounding must not carry alpha beyond its cap: then the lower bound would be none."""
    rows = ROWS.copy()
    rows[::2] *= scale
    shape = TASKS[task](ROWS).weight_shape
    for prior in (None, Prior(variance=np.linspace(1, 3, np.prod(shape)).reshape(shape))):
        assert_certified(TASKS[task](rows, cost=0.05, loss=loss, prior=prior), 1, 1e-2)


def test_numbers_are_checked_to_the_last():
    for dtype in (np.float32, np.float64):
        for n in (1, 7, 4096, 4099):
            x = np.ones(n, dtype)
            assert _core.all_finite(x)
            for bad in (np.nan, np.inf, -np.inf):
                x[-1] = bad
                assert not _core.all_finite(x)
        assert _core.all_finite(np.empty(0, dtype))
    assert _core.all_finite(np.full(3, np.finfo(np.float32).max))
    assert not _core.all_finite(np.array([0.0, 1.1e150]))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sparse_matrices_are_checked(dtype):
    for found, start, column in [
        (0, [0], []),
        (0, [0, 0, 2, 3], [1, 2, 0]),
        (0, [0, 1], [0, 99]),  # the last entry belongs to no row
        (1, [0, 2], [1, 1]),
        (1, [0, 2], [2, 1]),
        (2, [], []),
        (2, [1, 2], [0, 0]),
        (2, [0, 2, 1], [0, 1]),
        (2, [0, -1], [0]),
        (2, [0, 2], [0]),
        (2, [0, 1], [3]),
        (2, [0, 1], [-1]),
    ]:
        assert _core.check_csr(np.array(start, dtype), np.array(column, dtype), 3) == found


@pytest.mark.parametrize("variance", [None, 0.5])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("bias", [0.0, 0.7])
@pytest.mark.parametrize("task", ["binary", "regression"])
@pytest.mark.parametrize("d", [1, 32, 33, 70])  # up to 32, scores are added up one visit ahead
def test_dense_rows_of_any_length(d, task, bias, loss, variance):
    """A pass over dense rows ends where one over the same numbers as sparse rows does, and v is what alpha makes."""
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(N, d))
    y = np.where(rows[:, 0] > rng.normal(size=N), 1, -1)
    prior = None if variance is None else Prior(variance=variance)
    forms = [
        getattr(Problem, task)(form(rows), y, cost=0.02, loss=loss, intercept=bias, prior=prior)
        for form in (np.asarray, sp.csr_matrix)
    ]
    states = [State(form, None, 3, 1) for form in forms]
    for k in range(4):
        for state in states:
            ((*_, lower, _, _),) = state.optimize(1, 0.0)
            assert lower == pytest.approx(dual(forms[0], state.alpha()), rel=1e-11)
        if k == 0:  # later, rounding may tell who is visited, and with it the order
            np.testing.assert_allclose(states[0].alpha(), states[1].alpha(), rtol=1e-8, atol=1e-12)
