"""Rows of several classes whose columns are renumbered, those that many rows have first."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dualsvm import Prior, Problem, SVMClassifier, solve, state
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


@pytest.fixture
def scattered(monkeypatch):
    monkeypatch.setattr(state, "_SCATTERED", 0)


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


@pytest.mark.usefixtures("scattered")
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_weights_are_those_of_dense_rows(terms, loss):
    common = {"loss": loss, "intercept": 0.7, **TERMS[terms]}
    arranged, dense = (Problem.multiclass(rows, Y, **common) for rows in (sp.csr_matrix(X), X))
    assert (state.Layout(arranged, arranged=True)._order is None) == (terms == "covariance")
    options = {"tol": 1e-9, "max_iter": 100_000, "random_state": 0}
    ours, theirs = solve(arranged, **options), solve(dense, **options)
    np.testing.assert_allclose(ours.w, theirs.w, atol=1e-4)
    assert ours.certify(dense).gap <= 1e-8
    assert solve(arranged, start=theirs, **options).n_iter <= 1


def test_many_features_are_arranged_by_themselves():
    wide = sp.random(80, 20_000, density=0.002, format="csr", random_state=0, dtype=np.float32)
    labels = np.arange(80) % 4
    assert state.Layout(Problem.multiclass(wide, labels), arranged=True)._order is not None
    options = {"tol": 1e-7, "fit_intercept": False, "random_state": 0}
    sparse, dense = (SVMClassifier(**options).fit(rows, labels) for rows in (wide, wide.toarray()))
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-3)
    np.testing.assert_array_equal(sparse.predict(wide), dense.predict(wide))
