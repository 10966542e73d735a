"""SVMRanker: its problems, against all pairs written out, and its measures."""

import itertools

import numpy as np
import pytest
import sklearn
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualsvm import SVMRanker

from .estimators import GRADES, QID, WEIGHTS, D, N, X, assert_certified, assert_overlap
from .reference import state

both_slacks = pytest.mark.parametrize("slack", ["pair", "query"])
both_losses = pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])


def make(**more):
    return SVMRanker(tol=1e-6, random_state=0).set_params(**more)


def pairs_of(y, qid):
    return [(i, j) for i, j in itertools.permutations(range(len(y)), 2) if qid[i] == qid[j] and y[i] > y[j]]


def by_pair(loss, y=GRADES, qid=QID, C=1.0, weight=None, X=X):
    """A slack for every pair."""
    pairs = pairs_of(y, qid)
    weight = np.ones(len(y)) if weight is None else weight
    cost = C * np.array([weight[i] * weight[j] for i, j in pairs])
    return state("ranking", X, {"pairs": pairs, "margin": 1.0}, cost=cost, loss=loss)


# the problems


@both_slacks
@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["plain", "weighted"])
def test_hinge_over_all_pairs(slack, weight):
    model = make(slack=slack, C=0.4).fit(X, GRADES, qid=QID, sample_weight=weight)
    assert_certified(model, [by_pair("hinge", C=0.4, weight=weight)], 0.0)
    assert model.coef_.shape == (D,)
    assert model.intercept_ == 0


@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["plain", "weighted"])
def test_the_square_of_every_pair(weight):
    model = make(loss="squared_hinge", C=0.4).fit(X, GRADES, qid=QID, sample_weight=weight)
    assert_certified(model, [by_pair("squared_hinge", C=0.4, weight=weight)], 0.0)


@pytest.mark.parametrize("weight", [None, WEIGHTS[:20]], ids=["plain", "weighted"])
def test_the_square_of_the_sum_over_a_query(weight):
    few, y, qid = X[:20], GRADES[:20], np.arange(20) % 5  # the sets of pairs are written out, 2**4 at most
    model = make(loss="squared_hinge", slack="query", C=0.4).fit(few, y, qid=qid, sample_weight=weight)
    problem = state("lists", few, {"y": y, "qid": qid, "weight": weight}, cost=0.4, loss="squared_hinge")
    assert_certified(model, [problem], 0.0)


@both_slacks
@both_losses
def test_a_weight_of_k_is_k_copies(slack, loss):
    times = np.arange(N) % 4
    rows = np.repeat(np.arange(N), times)
    one, other = (make(slack=slack, loss=loss, C=0.01) for _ in range(2))
    one.fit(X, GRADES, qid=QID, sample_weight=times)
    other.fit(X[rows], GRADES[rows], qid=QID[rows])
    assert_overlap(one, other)
    assert one.coef_ == pytest.approx(other.coef_, abs=1e-2)


@both_slacks
def test_queries_in_any_order_and_with_any_ids(slack):
    names = np.array([3, -5, 10**12, 0, 7, 8, 9, 11, 12])
    order = np.random.default_rng(3).permutation(N)
    one = make(slack=slack).fit(X, GRADES, qid=QID)
    other = make(slack=slack).fit(X[order], GRADES[order], qid=names[QID[order]])
    assert_overlap(one, other)
    assert one.coef_ == pytest.approx(other.coef_, abs=1e-2)
    assert other.score(X[order], GRADES[order], qid=names[QID[order]]) == pytest.approx(other.score(X, GRADES, QID))


@both_slacks
def test_without_ids_all_rows_are_one_query(slack):
    model = make(slack=slack).fit(X[:15], GRADES[:15])
    assert_certified(model, [by_pair("hinge", GRADES[:15], np.zeros(15), X=X[:15])], 0.0)


@both_slacks
@both_losses
def test_queries_without_preference_change_nothing(slack, loss):
    rng = np.random.default_rng(4)
    more = np.vstack([X, rng.normal(size=(7, D))])
    y = np.concatenate([GRADES, [5.0], np.full(6, 2.0)])
    qid = np.concatenate([QID, [100], np.repeat([101, -1], 3)])
    one, other = (
        make(slack=slack, loss=loss).fit(X, GRADES, qid=QID),
        make(slack=slack, loss=loss).fit(more, y, qid=qid),
    )
    assert_overlap(one, other)
    assert one.coef_ == pytest.approx(other.coef_, abs=1e-2)
    assert not other.dual_coef_.toarray()[0, N:].any()
    assert other.score(more, y, qid=qid) == pytest.approx(other.score(X, GRADES, qid=QID))
    assert other.pairwise_accuracy(more, y, qid=qid) == pytest.approx(other.pairwise_accuracy(X, GRADES, qid=QID))


@both_slacks
def test_only_the_order_of_relevances_matters(slack):
    levels = np.array([-7.5, -0.1, 1e6])
    one, other = make(slack=slack).fit(X, GRADES, qid=QID), make(slack=slack).fit(X, levels[GRADES], qid=QID)
    np.testing.assert_array_equal(one.coef_, other.coef_)


@both_slacks
def test_dual_coefficients_make_the_weights(slack):
    model = make(slack=slack, tol=1e-12).fit(X, GRADES, qid=QID)
    assert model.dual_coef_.shape == (1, N)
    assert (model.dual_coef_ @ X)[0] == pytest.approx(model.coef_, abs=1e-4)
    assert model.n_support_ == np.count_nonzero(model.dual_coef_.toarray())


# the measures


def tied(X):
    """Features with a few values only, so that scores are tied."""
    return np.round(X)


@pytest.mark.parametrize("k", [None, 1, 2, 3, 100])
@pytest.mark.parametrize("of", [np.asarray, tied])
def test_score_is_the_mean_ndcg(k, of):
    data = of(X)
    model = make(tol=1e-3).fit(data, GRADES, qid=QID)
    scores = model.predict(data)
    assert scores == pytest.approx(data @ model.coef_)
    values = []
    for q in np.unique(QID):
        rows = q == QID
        if len(set(GRADES[rows])) > 1:
            values.append(ndcg_score([GRADES[rows]], [scores[rows]], k=k))
    assert model.score(data, GRADES, qid=QID, k=k) == pytest.approx(np.mean(values))


@pytest.mark.parametrize("shift", [0.0, -5.0])
@pytest.mark.parametrize("of", [np.asarray, tied])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pairwise_accuracy_counts_pairs(shift, of, dtype):
    data = of(X).astype(dtype)
    model = make(tol=1e-3).fit(data, GRADES, qid=QID)
    scores, values = model.predict(data).astype(np.float64), []
    for q in np.unique(QID):
        mine = [np.sign(scores[i] - scores[j]) for i, j in pairs_of(GRADES, QID) if QID[i] == q]
        if mine:
            values.append(np.mean([(1 + sign) / 2 for sign in mine]))
    assert model.pairwise_accuracy(data, GRADES + shift, qid=QID) == pytest.approx(np.mean(values), rel=1e-12)


def test_ties_count_one_half():
    model = make().fit([[0.0], [1.0]], [0, 1])
    assert model.pairwise_accuracy([[1.0], [1.0], [2.0]], [0, 1, 2]) == pytest.approx((0.5 + 1 + 1) / 3)
    assert model.pairwise_accuracy(np.ones((50, 1)), np.arange(50)) == 0.5


def test_the_best_and_the_worst_order():
    model = make().fit([[0.0], [1.0]], [0, 1])
    up = np.arange(6.0)[:, None]
    assert model.score(up, np.arange(6)) == model.pairwise_accuracy(up, np.arange(6)) == 1
    assert model.pairwise_accuracy(-up, np.arange(6)) == 0
    assert model.score(-up, np.arange(6)) < 1


@pytest.mark.parametrize("measure", ["score", "pairwise_accuracy"])
def test_nothing_to_order_is_ordered_well(measure):
    model = make().fit(X, GRADES, qid=QID)
    assert getattr(model, measure)(X, np.ones(N), qid=QID) == 1
    assert getattr(model, measure)(X, GRADES, qid=np.arange(N)) == 1


def test_ndcg_of_negative_relevances():
    model = make().fit(X, GRADES - 1.0, qid=QID)
    with pytest.raises(ValueError, match=r"not negative, got -1.*shift y, or see pairwise_accuracy"):
        model.score(X, GRADES - 1.0, qid=QID)


# what cannot be


@both_slacks
@pytest.mark.parametrize(
    ("y", "qid"),
    [(np.ones(N), QID), (np.arange(N), np.arange(N)), (np.zeros(N), None)],
    ids=["equal", "single", "one"],
)
def test_no_preference_at_all(slack, y, qid):
    with pytest.raises(ValueError, match=r"y holds no preference.*at least one query with two rows"):
        make(slack=slack).fit(X, y, qid=qid)


@pytest.mark.parametrize("call", ["fit", "score", "pairwise_accuracy", "partial_fit"])
@pytest.mark.parametrize(
    ("qid", "message"),
    [
        (QID[:-1], rf"qid must hold one integer per row of X, shape \({N},\), got shape \({N - 1},\)"),
        (QID.astype(float), "qid must hold integers, got dtype float64"),
        (QID.astype(str), "qid must hold integers, got dtype <U"),
        (QID[:, None], rf"shape \({N},\), got shape \({N}, 1\)"),
        (3, r"got shape \(\)"),
    ],
    ids=["short", "float", "text", "column", "number"],
)
def test_impossible_ids(call, qid, message):
    model = make(tol=1e-2).fit(X, GRADES, qid=QID)
    with pytest.raises(ValueError, match=message):
        getattr(model, call)(X, GRADES, qid=qid)


@pytest.mark.parametrize("slack", ["pairs", None, 1])
def test_unknown_slack(slack):
    with pytest.raises(ValueError, match=f'slack must be "pair" or "query", got {slack!r}'):
        make(slack=slack).fit(X, GRADES, qid=QID)


@both_slacks
@pytest.mark.parametrize("loss", ["epsilon_insensitive", None])
def test_unknown_loss(slack, loss):
    with pytest.raises(ValueError, match=f"loss must be .*hinge.*got {loss!r}"):
        make(slack=slack, loss=loss).fit(X, GRADES, qid=QID)


@both_slacks
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_relevances_that_are_no_numbers(slack, bad):
    y = GRADES.astype(float)
    y[3] = bad
    with pytest.raises(ValueError, match=r"y contains (NaN|infinity)"):
        make(slack=slack).fit(X, y, qid=QID)


def test_a_pipeline_routes_queries_to_fit_and_score():
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = SVMRanker(random_state=0).set_fit_request(qid=True).set_score_request(qid=True)
        pipeline = make_pipeline(StandardScaler(), ranker).fit(X, GRADES, qid=QID)
        direct = pipeline[-1].score(pipeline[0].transform(X), GRADES, qid=QID)
        assert pipeline.score(X, GRADES, qid=QID) == direct
        search = GridSearchCV(make_pipeline(StandardScaler(), ranker), {"svmranker__C": [0.1, 1.0]}, cv=3)
        assert np.isfinite(search.fit(X, GRADES, qid=QID).cv_results_["mean_test_score"]).all()


def test_queries_count_the_mean_weight_of_their_rows():
    model = SVMRanker(random_state=0).fit(X, GRADES, qid=QID)
    names = np.unique(QID)
    each = [model.score(X[q], GRADES[q]) for q in (name == QID for name in names)]
    weight = 1.0 + np.arange(len(X)) % 3
    expected = np.average(each, weights=[weight[name == QID].mean() for name in names])
    assert model.score(X, GRADES, qid=QID, sample_weight=weight) == pytest.approx(expected)
