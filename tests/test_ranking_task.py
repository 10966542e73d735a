"""Rankings: measures against their definitions, searches against all rankings, and certificates."""

from itertools import combinations, pairwise, permutations, product

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from sklearn.metrics import ndcg_score, roc_auc_score

import dualsvm
from dualsvm import Problem, StructuredSVM, check_task, solve
from dualsvm.tasks import Ranking

from .structured import FEATURES, Lazy, assert_all_ways, assert_solves, write_out

FORMS = {
    "auc": {},
    "ndcg": {"measure": "ndcg"},
    "ndcg at 2": {"measure": "ndcg", "k": 2},
    "precision at 1": {"measure": "precision", "k": 1},
    "precision at 2": {"measure": "precision", "k": 2},
    "precision at 9": {"measure": "precision", "k": 9},  # more than there are
}
RNG = np.random.default_rng(0)
X = [RNG.normal(size=(n, 3)) for n in (4, 3, 4, 1, 4, 3)]
Y = [RNG.integers(0, 3, len(x)) for x in X]
Y[0][:], Y[2][:], Y[4] = 0, 2, np.array([0, 0, 1, 2])


def task_of(form, **more):
    return Ranking(**FORMS[form] | more)


def rivals(form):
    """All rankings that compete with the true one, by the definition."""
    measure, k = FORMS[form].get("measure", "auc"), FORMS[form].get("k")

    def outputs(x, y):
        y, n = np.asarray(y), len(y)
        if measure == "auc":
            pairs = [(i, j) for i in range(n) for j in range(n) if y[i] > y[j]]
            for swapped in product([False, True], repeat=len(pairs)):
                yield np.array([p[::-1] if s else p for p, s in zip(pairs, swapped, strict=True)]).reshape(-1, 2)
        elif len(set(y > 0 if measure == "precision" else y)) == 1:
            yield y
        elif measure == "ndcg":
            yield from map(np.array, permutations(range(n)))
        else:
            for chosen in combinations(range(n), min(k, n)):
                yield np.isin(np.arange(n), chosen).astype(int)

    return outputs


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("form", ["auc", "ndcg at 2", "precision at 2"])
def test_certificates_enclose_the_reference_optimum(form, feature):
    assert_all_ways(lambda: task_of(form), X, Y, rivals(form), feature)


@pytest.mark.parametrize("form", FORMS)
def test_keeps_its_promises(form):
    check_task(task_of(form), X, Y, outputs=rivals(form))
    check_task(task_of(form), [sp.csr_array(x) for x in X], Y)


@pytest.mark.parametrize("form", ["auc", "ndcg", "precision at 2"])
def test_slack_rescaling_encloses_the_optimum(form):
    model = StructuredSVM(task_of(form), rescaling="slack", tol=0.2, max_iter=500, random_state=0).fit(X, Y)
    assert_solves(model, write_out(model.task, X, Y, rivals(form), 1.0, "slack"), converged=False)
    assert np.isfinite(model.upper_bound_)


def test_auc_is_the_problem_of_lists():
    """Of which every pair asks for a margin of 1/2 and costs 2 C / (number of pairs)."""
    rng = np.random.default_rng(3)
    x, y, query = rng.normal(size=(60, 4)), rng.integers(0, 4, 60), np.repeat(np.arange(6), 10)
    model = StructuredSVM(Ranking(), C=0.5, tol=1e-6, random_state=0)
    model.fit(x.reshape(6, 10, 4), y.reshape(6, 10))
    counts = [(q[:, None] > q).sum() for q in y.reshape(6, 10)]
    peer = solve(Problem.lists(x, y, query, margin=0.5, cost=2 * 0.5 / np.array(counts)), tol=1e-6, max_iter=5000)
    assert max(model.lower_bound_, peer.lower_bound) <= min(model.upper_bound_, peer.upper_bound)
    np.testing.assert_allclose(model.coef_, peer.w, atol=1e-2)


@settings(max_examples=60, deadline=None)
@given(
    form=st.sampled_from(list(FORMS)),
    n=st.integers(1, 4),
    grades=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
    tie=st.booleans(),
)
def test_searches_find_the_worst(form, n, grades, seed, tie):
    rng = np.random.default_rng(seed)
    x = rng.integers(-1, 2, (n, 2)) / 2 if tie else rng.normal(size=(n, 2))
    y = rng.integers(0, grades, n)
    w = rng.integers(-1, 2, 2) / 1.0 if tie else rng.normal(size=2)
    task = task_of(form)
    task.initialize([x], [y])
    np.testing.assert_allclose(task.inference(x, w), x @ w, rtol=1e-12, atol=1e-15)

    def value(h):
        return task.loss(y, h) + task.joint_feature(x, h) @ w

    worst = max(map(value, rivals(form)(x, y)))
    assert value(task.loss_augmented_inference(x, y, w)) == pytest.approx(worst, abs=1e-12)
    found = task.encode([x], [y]).search(np.arange(1), w, 1)
    assert found.value[0] == found.bound[0] == pytest.approx(worst - value(y), abs=1e-12)
    assert found.l[0] - found.x @ w[found.column] == pytest.approx(worst - value(y), abs=1e-12)
    assert task.loss(y, y) == 0
    if grades == 1:
        assert len(found.x) == found.l[0] == 0


def orders(v):
    """All orders of documents, best first, that a ranking with ties allows."""
    return [p for p in permutations(range(len(v))) if all(v[a] >= v[b] for a, b in pairwise(p))]


def mean_over_orders(v, of):
    return np.mean([of(p) for p in orders(v)], axis=0)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(2, 5), seed=st.integers(0, 2**32 - 1), k=st.integers(1, 6))
def test_measures_are_what_they_are_called(n, seed, k):
    """Against scikit-learn, and against means over all orders of ties."""
    rng = np.random.default_rng(seed)
    x, y, v = rng.normal(size=(n, 2)), rng.integers(0, 3, n), rng.integers(0, 4, n) - 1.5
    discount = 1 / np.log2(np.arange(n) + 2) * (np.arange(n) < k)
    relevant = int((y > 0).sum())

    ndcg = Ranking("ndcg", k=k)
    ndcg.initialize([x], [y])
    if len(set(y)) > 1:
        assert ndcg.loss(y, v) == pytest.approx(1 - ndcg_score([2.0**y - 1], [v], k=k))
        np.testing.assert_allclose(
            ndcg.joint_feature(x, v), mean_over_orders(v, lambda p: discount @ x[list(p)]), atol=1e-12
        )
    precision = Ranking("precision", k=k)
    precision.initialize([x], [y])
    first = min(k, n)
    if 0 < relevant < n:
        hits = mean_over_orders(v, lambda p: sum(y[i] > 0 for i in p[:k]))
        assert precision.loss(y, v) == pytest.approx(1 - hits / min(relevant, first))
        np.testing.assert_allclose(
            precision.joint_feature(x, v), mean_over_orders(v, lambda p: x[list(p[:k])].mean(axis=0)), atol=1e-12
        )
    auc = Ranking()
    auc.initialize([x], [y])
    if 0 < relevant < n:
        assert auc.loss(y > 0, v) == pytest.approx(1 - roc_auc_score(y > 0, v))
    pairs = [(i, j) for i in range(n) for j in range(n) if y[i] > y[j]]
    if pairs:
        wrong = np.mean([(v[i] < v[j]) + (v[i] == v[j]) / 2 for i, j in pairs])
        assert auc.loss(y, v) == pytest.approx(wrong)
        ideal = np.mean([x[i] - x[j] for i, j in pairs], axis=0)
        np.testing.assert_allclose(auc.joint_feature(x, y), ideal, atol=1e-12)
        np.testing.assert_allclose(auc.joint_feature(x, pairs), ideal, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_one_grade_says_nothing(form):
    inputs, grades = RNG.normal(size=(3, 5, 2)), [np.full(5, g) for g in range(3)]
    model = StructuredSVM(task_of(form)).fit(inputs, grades)
    assert not model.coef_.any()
    assert (model.lower_bound_, model.upper_bound_) == (0, 0)
    assert model.score(inputs, grades) == 1


def test_a_long_list():
    """All pairs of which would be too many to hold."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50_000, 2)).astype(np.float32)
    y = (x[:, 0] + rng.normal(size=len(x)) > 1).astype(int)
    task = Ranking()
    task.initialize([x], [y])
    found = task.encode([x], [y]).search(np.arange(1), np.zeros(2), 1)
    assert found.l[0] == found.value[0] == 1  # without weights all pairs are swapped
    means = x[y == 1].mean(axis=0, dtype=float) - x[y == 0].mean(axis=0, dtype=float)
    np.testing.assert_allclose(found.x, 2 * means, rtol=1e-9)
    assert task.loss(y, x[:, 0]) == pytest.approx(1 - roc_auc_score(y, x[:, 0]))


@pytest.mark.parametrize("form", FORMS)
def test_save_and_load(tmp_path, form):
    model = StructuredSVM(task_of(form), random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    again = dualsvm.load(tmp_path / "model")
    for a, b in zip(again.predict(X), model.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert vars(again.task) == vars(model.task)
    assert again.score(X, Y) == model.score(X, Y)


def test_lazy_and_sparse_inputs():
    models = [
        StructuredSVM(Ranking("ndcg", k=3), tol=1e-6, max_iter=5000, random_state=0).fit(inputs, grades)
        for inputs, grades in ((X, Y), (Lazy(X), Lazy(Y)), ([sp.csr_matrix(x) for x in X], Y))
    ]
    assert max(model.lower_bound_ for model in models) <= min(model.upper_bound_ for model in models)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"measure": "map"}, 'measure must be "auc", "ndcg" or "precision", got \'map\''),
        ({"measure": "precision"}, '"precision" needs k'),
        ({"k": 3}, '"auc" has no k, got 3'),
        ({"measure": "ndcg", "k": 0}, "k must be a positive integer, got 0"),
        ({"measure": "ndcg", "k": 1.5}, "k must be a positive integer, got 1.5"),
    ],
)
def test_parameters_that_make_no_sense(parameters, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(Ranking(**parameters)).fit(X, Y)


LIST = np.ones((2, 3))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (LIST, [1, -1], "output 0 holds grades, which must not be negative, got -1"),
        (LIST, [1, np.nan], "output 0 contains NaN"),
        (LIST, [1], "output 0 must have a number for each of 2 documents, got 1"),
        (LIST, [[1, 0]], "output 0 must be a vector of numbers"),
        (LIST, ["a", "b"], "output 0 must be a vector of numbers"),
        (LIST, [101, 0], "grade of 101, and 2.grade is what it counts"),
        (LIST * np.inf, [1, 0], "contains NaN, infinity"),
        (LIST[0], [1, 0], r"must have shape \(n_documents, n_features\), got \(3,\)"),
    ],
)
def test_examples_that_are_none(x, y, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(Ranking("ndcg")).fit([x], [y])


def test_rankings_that_are_none():
    task = Ranking()
    task.initialize([LIST], [[0, 1]])
    with pytest.raises(ValueError, match="pairs of documents from 0 to 1"):
        task.joint_feature(LIST, [[0, 2]])
    with pytest.raises(ValueError, match="must have 3 features, as the first input in training, got 2"):
        task.inference(LIST[:, :2], np.ones(3))
    with pytest.raises(ValueError, match="y and y_hat must have the same length, got 2 and 3"):
        task.loss([0, 1], [1, 2, 3])
