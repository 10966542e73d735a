"""SVMRanker learns from datasets in chunks: the optimum of a reference QP, whole queries in memory or none."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import dualsvm
from dualsvm import Prior, SVMRanker

from .estimators import D, assert_certified, assert_overlap
from .reference import listed, state

RNG = np.random.default_rng(5)
LENGTHS = [4, 3, 1, 5, 2, 4, 3, 4, 5, 2, 4, 3]
N = sum(LENGTHS)
X = RNG.normal(size=(N, D)) + 0.3
QID = np.repeat(np.array([30, 7, 8, -2, 10**12, 11, 5, 6, 0, 1, 2, 3]), LENGTHS)  # in no order
GRADES = np.digitize(X[:, 0] + RNG.normal(size=N), [-0.3, 0.9])
GRADES[QID == 11] = 1  # a query without a preference
WEIGHTS = RNG.uniform(0.2, 3.0, size=N)
CACHES = [0.0, 0.004, 1.0]  # of the queries: none, some, all
MANY = RNG.normal(size=(900, 6))
OF = np.repeat(np.arange(150), 6)
NOISY = np.digitize(MANY[:, 0] + MANY[:, 1] + 1.5 * RNG.normal(size=900), [-1, 1])
both_slacks = pytest.mark.parametrize("slack", ["pair", "query"])
both_losses = pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])


def chunks(y=GRADES, qid=QID, rows=X, chunk_rows=7, **more):
    return dualsvm.open_dataset(rows, target=y, qid=qid, chunk_rows=chunk_rows, **more)


def many(**more):
    return chunks(NOISY, OF, MANY, 60, **more)


def written_out(slack, loss, C=1.0, y=GRADES, qid=QID, rows=X, weight=None, **shape):
    """One slack a pair, or one a query, by all pairs."""
    if slack == "query":
        return listed(rows, y, qid, cost=C, loss=loss, weight=weight, **shape)
    weight = np.ones(len(y)) if weight is None else weight
    better, worse = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    own = {"pairs": np.column_stack([better, worse]), "margin": 1.0}
    return state("ranking", rows, own, cost=C * weight[better] * weight[worse], loss=loss, **shape)


@pytest.mark.parametrize("cache_mb", CACHES)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@both_losses
@both_slacks
def test_certified(slack, loss, storage, cache_mb):
    model = SVMRanker(C=0.2, slack=slack, loss=loss, tol=1e-4, cache_mb=cache_mb, random_state=0)
    model.fit(chunks(rows=storage(X)))
    assert_certified(model, [written_out(slack, loss, 0.2)], 0.0)
    assert model.dual_coef_.shape == (1, N)
    assert model.n_support_ == model.dual_coef_.nnz
    assert not model.dual_coef_.toarray()[0, (QID == 11) | (QID == 8)].any()
    np.testing.assert_allclose((model.dual_coef_ @ X)[0], model.coef_, atol=0.05)


@pytest.mark.parametrize("cache_mb", CACHES)
@both_slacks
def test_weights_priors_and_bounds(slack, cache_mb):
    shape = {"mean": np.linspace(-1, 1, D), "variance": np.linspace(0.5, 2, D), "lower": -0.2}
    prior = Prior(mean=shape["mean"], variance=shape["variance"])
    model = SVMRanker(C=0.1, slack=slack, prior=prior, lower=-0.2, tol=1e-4, cache_mb=cache_mb, random_state=0)
    model.fit(chunks(weight=WEIGHTS))
    assert_certified(model, [written_out(slack, "hinge", 0.1, weight=WEIGHTS, **shape)], 0.0)


@both_slacks
@both_losses
@pytest.mark.parametrize(("C", "cache_mb"), [(0.01, 0.0), (0.1, 0.02), (1.0, 0.1), (1.0, 10.0)])
def test_same_optimum_as_in_memory(slack, loss, C, cache_mb):
    C = C / 10 if slack == "query" and loss == "squared_hinge" else C  # which squares sums of many pairs
    in_memory = SVMRanker(C=C, slack=slack, loss=loss, random_state=0).fit(MANY, NOISY, OF)
    model = SVMRanker(C=C, slack=slack, loss=loss, cache_mb=cache_mb, random_state=0).fit(many())
    assert_overlap(model, in_memory)
    assert model.n_iter_ == len(model.history_) <= (6 if cache_mb == 10 else 100)


@both_slacks
def test_every_bound_holds(slack):
    optimum = written_out(slack, "hinge", 0.3, NOISY[:300], OF[:300], MANY[:300]).optimum()
    model = SVMRanker(C=0.3, slack=slack, tol=1e-6, cache_mb=0.03, max_iter=300, random_state=0)
    model.fit(chunks(NOISY[:300], OF[:300], MANY[:300], 40))
    lower = np.array([record.lower for record in model.history_])
    upper = np.array([record.upper for record in model.history_])
    assert len(lower) > 3
    assert (lower <= optimum * (1 + 1e-8)).all()
    assert (upper >= optimum * (1 - 1e-8)).all()
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper[1:]) <= 0).all()


@both_slacks
def test_same_seed_same_model(slack):
    one, other = (SVMRanker(slack=slack, C=0.1, cache_mb=0.03, random_state=4).fit(many()) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, other.coef_)


@both_slacks
def test_single_precision(slack):
    rows = (8 * X).round().astype(np.float32) / 8
    model = SVMRanker(slack=slack, tol=1e-4, cache_mb=0.004, random_state=0).fit(chunks(rows=rows))
    assert model.coef_.dtype == np.float32
    assert_certified(model, [written_out(slack, "hinge", rows=rows)], 0.0, rel=1e-7)


def reads(parts):
    """Chunks that tell how often they were read."""

    class Parts:
        count = 0

        def __iter__(self):
            Parts.count += 1
            return iter(parts)

    return Parts()


@both_slacks
def test_reads_are_counted(slack):
    source = reads([(MANY[a : a + 90], NOISY[a : a + 90], None, OF[a : a + 90]) for a in range(0, 900, 90)])
    model = SVMRanker(slack=slack, C=0.1, cache_mb=0.03, random_state=0).fit(dualsvm.open_dataset(source))
    assert model.converged_
    assert source.count == model.n_iter_ > 1


@both_slacks
def test_number_of_passes(slack):
    model = SVMRanker(slack=slack, C=0.1, cache_mb=0.03, random_state=0).fit(many(), passes=1)
    assert model.n_iter_ == 1
    assert model.upper_bound_ == model.gap_ == np.inf
    assert model.pairwise_accuracy(MANY, NOISY, OF) > 0.7


@both_slacks
def test_text(slack, tmp_path):
    dump_svmlight_file(X, GRADES, str(tmp_path / "data"), zero_based=False, query_id=QID)
    model = SVMRanker(slack=slack, tol=1e-5, random_state=0)
    model.fit(dualsvm.open_dataset(tmp_path / "data", chunk_rows=8))
    assert_certified(model, [written_out(slack, "hinge")], 0.0)


@pytest.mark.parametrize("at", [0, 19, N])
@both_slacks
def test_chunks_without_preference_are_skipped(slack, at):
    rows = np.insert(X, [at] * 15, RNG.normal(size=(15, D)), axis=0)
    y, qid = np.insert(GRADES, [at] * 15, 1), np.insert(QID, [at] * 15, np.arange(1000, 1015))
    dataset = chunks(y, qid, rows, 5)
    assert any((chunk.qid >= 1000).all() and (chunk.qid < 1015).all() for chunk in dataset)
    model = SVMRanker(C=0.1, tol=1e-5, slack=slack, cache_mb=0.01, random_state=0).fit(dataset)
    assert_overlap(model, SVMRanker(C=0.1, tol=1e-5, slack=slack, random_state=0).fit(X, GRADES, QID))
    assert model.dual_coef_.shape == (1, N + 15)
    assert not model.dual_coef_.toarray()[0, at : at + 15].any()
    np.testing.assert_allclose((model.dual_coef_ @ rows)[0], model.coef_, atol=0.01)


@both_slacks
def test_one_query_in_one_chunk(slack):
    dataset = dualsvm.open_dataset(X[:15], target=GRADES[:15])
    model = SVMRanker(slack=slack, tol=1e-6, random_state=0).fit(dataset)
    assert_overlap(model, SVMRanker(slack=slack, tol=1e-6, random_state=0).fit(X[:15], GRADES[:15]))


def test_queries_of_a_dataset_do_not_change_a_classifier():
    y = GRADES > 0
    one, other = (
        dualsvm.SVMClassifier(cache_mb=0.002, random_state=0).fit(chunks(y, qid, chunk_rows=6)) for qid in (QID, None)
    )
    assert_overlap(one, other)
    assert one.n_support_.sum() <= N


TEXT = b"1 qid:1 1:1\n0 qid:1 1:2\n"


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: SVMRanker().fit(chunks(), GRADES), "itself"),
        (lambda: SVMRanker().fit(chunks(), qid=QID), "itself"),
        (lambda: SVMRanker().fit(X, GRADES, QID, passes=1), "datasets"),
        (lambda: SVMRanker().fit(chunks(qid=None)), "several chunks.*qid"),
        (lambda: SVMRanker().fit(dualsvm.open_dataset([(X, GRADES)], chunk_rows=9)), "several chunks"),
        (lambda: SVMRanker().fit(chunks(np.ones(N))), "nothing to learn from.*relevance"),
        (lambda: SVMRanker().fit(chunks(None)), "no relevances"),
        (lambda: SVMRanker().fit(chunks(np.array(["a", "b"])[GRADES % 2])), "no relevances"),
        (lambda: SVMRanker(slack="list").fit(chunks()), "slack"),
        (lambda: SVMRanker(cache_mb=-1).fit(chunks()), "cache_mb"),
        (lambda: SVMRanker(C=0).fit(chunks()), "C must be positive"),
        (
            lambda: SVMRanker().fit(dualsvm.open_dataset(io.BytesIO(TEXT + TEXT.replace(b":1 ", b":2 ", 1)))),
            "qid|query",
        ),
    ],
)
def test_what_cannot_be_learned_from(fit, message):
    with pytest.raises(ValueError, match=message):
        fit()


def test_partial_fit_takes_chunks():
    by_chunk, by_hand = SVMRanker(random_state=0), SVMRanker(random_state=0)
    for chunk in chunks(weight=WEIGHTS, chunk_rows=15):
        by_chunk.partial_fit(chunk)
        by_hand.partial_fit(chunk.X, chunk.y, chunk.qid, chunk.weight)
    np.testing.assert_array_equal(by_chunk.coef_, by_hand.coef_)
    with pytest.raises(ValueError, match="itself"):
        by_chunk.partial_fit(chunk, qid=chunk.qid)
