"""Rankers: certificates, warm starts and checkpoints, from datasets and in memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import dualsvm
from dualsvm import SVMRanker

from .estimators import GRADES, QID, WEIGHTS, N, X, assert_overlap

ORDER = np.argsort(QID, kind="stable")  # queries one after the other
ROWS, Y, Q = X[ORDER], GRADES[ORDER].copy(), QID[ORDER]
Y[Q == 3] = 1  # one without a preference
slacks = pytest.mark.parametrize("slack", ["pair", "query"])


class BrokenError(Exception):
    pass


def ranker(slack, **more):
    return SVMRanker(slack=slack, **{"C": 0.3, "tol": 1e-3, "cache_mb": 0.01, "random_state": 0} | more)


def queries(rows=ROWS, y=Y, chunk_rows=10, **more):
    return dualsvm.open_dataset(rows, target=y, qid=Q[: len(y)], chunk_rows=chunk_rows, **more)


def failing(after):
    chunks, read = list(queries()), []

    def parts():
        for chunk in chunks:
            if len(read) == after:
                raise BrokenError
            read.append(1)
            yield chunk.X, chunk.y

    return dualsvm.open_dataset(parts, qid=Q, chunk_rows=10, read_ahead=0)


@slacks
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("weight", [None, WEIGHTS])
def test_certificate(slack, loss, weight, tmp_path):
    model = ranker(slack, loss=loss).fit(ROWS, Y, Q, weight)
    model.save(tmp_path / "model")
    certificate = dualsvm.load(tmp_path / "model").certify(ROWS, Y, Q, weight)
    assert certificate == pytest.approx((model.lower_bound_, model.upper_bound_), rel=1e-9)
    dataset = queries() if weight is None else queries(weight=weight)
    chunked = clone(model).fit(dataset)
    chunked.save(tmp_path / "model")
    certificate = dualsvm.load(tmp_path / "model").certify(dataset)
    assert certificate == pytest.approx((chunked.lower_bound_, chunked.upper_bound_), rel=1e-9)
    assert_overlap(model, chunked)


@slacks
def test_what_cannot_be_certified(slack):
    model = ranker(slack).fit(queries())
    with pytest.raises(ValueError, match="examples"):
        model.certify(queries(ROWS[:-5], Y[:-5]))
    with pytest.raises(ValueError, match="features"):
        model.certify(queries(ROWS[:, :3]))
    if slack == "query":
        for other in (queries(weight=1 + 1e-9 * WEIGHTS), queries(y=Y.max() - Y)):
            with pytest.raises(ValueError, match=r"other queries|no dual variables"):
                model.certify(other)
    with pytest.raises(ValueError, match="partial_fit"):
        model.partial_fit(ROWS, Y, Q).certify(queries())


def test_tampered_pairs_are_clipped():
    model = ranker("pair", tol=1e-6).fit(ROWS, Y, Q)
    alpha, optimum = model._alpha.toarray(), model.certify(ROWS, Y, Q).upper_bound
    for factor in (5.0, 0.0, -1.0):
        model._alpha = sp.csr_array(alpha * factor)
        assert model.certify(ROWS, Y, Q).lower_bound <= optimum


@pytest.mark.parametrize("factors", [(1, 1, 1.1, 1), (0, 0, 1, 1), (-1, 1, 1, 1), (2, 2, 2, 1), (0.5, 0.5, 1, 1)])
def test_tampered_sums_of_pairs_are_refused(factors):
    model = ranker("query").fit(ROWS, Y, Q)
    model._alpha = sp.csr_array(model._alpha.toarray() * np.array(factors)[:, None])
    with pytest.raises(ValueError, match="no dual variables"):
        model.certify(ROWS, Y, Q)


@slacks
@pytest.mark.parametrize("C", [0.1, 0.3, 1.0])
def test_warm_start(slack, C):
    model = ranker(slack, warm_start=True).fit(queries()).set_params(C=C).fit(queries())
    assert_overlap(model, ranker(slack, C=C).fit(ROWS, Y, Q))
    assert slack == "query" or C != 0.3 or model.n_iter_ == 1


@slacks
@pytest.mark.parametrize("after", [2, 7])
def test_checkpoint(slack, after, tmp_path):
    model = ranker(slack)
    with pytest.raises(BrokenError):
        model.fit(failing(after), checkpoint=tmp_path / "c")
    model.fit(queries(), resume=tmp_path / "c", checkpoint=tmp_path / "c")
    assert_overlap(model, ranker(slack).fit(ROWS, Y, Q))
    assert model.dual_coef_.shape == (1, N)
    np.testing.assert_allclose((model.dual_coef_ @ ROWS)[0], model.coef_, atol=0.1)
    again = ranker(slack).fit(queries(), resume=tmp_path / "c")
    np.testing.assert_array_equal(again.dual_coef_.toarray(), model.dual_coef_.toarray())
    assert again.certify(queries()).gap <= 1e-3


@slacks
def test_max_passes(slack):
    with pytest.warns(Warning, match="after 2 passes"):
        model = ranker(slack, tol=0.0).fit(queries(), max_passes=2)
    assert model.lower_bound_ < model.upper_bound_ < np.inf
