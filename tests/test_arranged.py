"""Rows of several classes in copies that are read faster: without zeros, and with common columns first."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dualsvm import Prior, Problem, SVMClassifier, solve, state
from dualsvm.linear.report import sparse
from dualsvm.rows import Rows

RNG = np.random.default_rng(0)
N, D, K = 60, 40, 5
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < np.geomspace(1, 0.02, D)[RNG.permutation(D)])
Y = RNG.integers(K, size=N)
MEAN, VARIANCE = RNG.normal(size=(K, D + 1)), RNG.uniform(0.5, 2, size=(K, D + 1))
TERMS = {
    "plain": {},
    "mean and variance": {"prior": Prior(mean=MEAN, variance=VARIANCE)},
    "bounds": {"lower": MEAN - 0.5, "upper": np.inf},
    "covariance": {"prior": Prior(covariance=np.diag(VARIANCE[0]) + 0.1)},
}


@given(st.integers(0, 2**32 - 1))
def test_dual_variables_are_reported_line_by_line(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 30)
    parts = [
        rng.normal(size=(n, k)) * (rng.random((n, k)) < rng.random()) for k in rng.integers(1, 5, rng.integers(1, 4))
    ]
    if rng.random() < 0.5:
        parts.append(np.asfortranarray(np.zeros((n, 3))))
    reported, wanted = sparse([parts[0][:, 0], *parts]), np.hstack([parts[0][:, :1], *parts]).T
    np.testing.assert_array_equal(reported.toarray(), wanted)
    assert reported.nnz == np.count_nonzero(wanted)
    assert reported.has_canonical_format
    np.testing.assert_array_equal(sparse([wanted[0]]).toarray(), wanted[:1])


NEVER = -1.0  # so few numbers are not zero
COPIES = {  # whether rows are given as sparse ones, and from how many weights on they are arranged
    "arranged": (sp.csr_matrix(X), 0),
    "without zeros": (X, np.inf),
    "both": (X, 0),
}


@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float32, np.float64]), st.sampled_from([np.int32, np.int64]))
def test_the_columns_that_many_rows_have_come_first(seed, dtype, index):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 30, size=2)
    dense = (rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.random(d))).astype(dtype)
    matrix = sp.csr_matrix(dense)
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    rows, order = Rows(matrix).common_first()
    assert sorted(order) == list(range(d))
    np.testing.assert_array_equal(rows.matrix.toarray(), dense[:, order])
    digits = [len(f"{count:b}") if count else 0 for count in (dense != 0).sum(axis=0)[order]]
    assert digits == sorted(digits, reverse=True)
    for i in range(n):
        columns = rows.matrix.indices[rows.matrix.indptr[i] : rows.matrix.indptr[i + 1]]
        assert list(columns) == sorted(columns)


@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float32, np.float64]))
def test_dense_rows_lose_their_zeros(seed, dtype):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 30, size=2)
    dense = (rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.random(d))).astype(dtype)  # zeros of either sign
    ours, theirs = Rows(dense, 0.5).without_zeros(), sp.csr_matrix(dense)
    assert ours.bias == 0.5
    assert ours.matrix.dtype == dtype
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(ours.matrix, name), getattr(theirs, name))
    assert Rows(dense).filled() == theirs.nnz / dense.size


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_weights_are_those_of_dense_rows(terms, loss, copy, monkeypatch):
    common = {"loss": loss, "intercept": 0.7, **TERMS[terms]}
    options = {"tol": 1e-9, "max_iter": 100_000, "random_state": 0}
    dense = Problem.multiclass(X, Y, **common)
    with monkeypatch.context() as plain:
        plain.setattr(state, "_FILLED", NEVER)
        assert state.Layout(dense, arranged=True).rows(dense).matrix is dense.rows or terms == "covariance"
        theirs = solve(dense, **options)
    rows, weights = COPIES[copy]
    monkeypatch.setattr(state, "_SCATTERED", weights)
    arranged = Problem.multiclass(rows, Y, **common)
    layout = state.Layout(arranged, arranged=True)
    assert sp.issparse(layout.rows(arranged).matrix) == (terms != "covariance")
    assert (layout._order is None) == (terms == "covariance" or weights > 0)
    ours = solve(arranged, **options)
    np.testing.assert_allclose(ours.w, theirs.w, atol=1e-4)
    assert ours.certify(dense).gap <= 1e-8
    assert solve(arranged, start=theirs, **options).n_iter <= 1


def test_rows_that_are_mostly_filled_stay_as_they_are():
    problem = Problem.multiclass(np.ones((20, 3)), np.arange(20) % 4)
    assert state.Layout(problem, arranged=True).rows(problem).matrix is problem.rows


def test_many_features_are_arranged_by_themselves(monkeypatch):
    wide = sp.random(80, 20_000, density=0.002, format="csr", random_state=0, dtype=np.float32)
    labels = np.arange(80) % 4
    assert state.Layout(Problem.multiclass(wide, labels), arranged=True)._order is not None
    options = {"tol": 1e-7, "fit_intercept": False, "random_state": 0}
    sparse = SVMClassifier(**options).fit(wide, labels)
    monkeypatch.setattr(state, "_FILLED", NEVER)
    dense = SVMClassifier(**options).fit(wide.toarray(), labels)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-3)
    np.testing.assert_array_equal(sparse.predict(wide), dense.predict(wide))
