"""Several labels at once: against all vectors of zeros and ones, and against one classifier per label."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

import dualsvm
from dualsvm import Problem, StructuredSVM, check_task, solve
from dualsvm.tasks import Multilabel
from dualsvm.tasks.multilabel import chow_liu, counted

from .graphs import outputs, statement

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(12, 2)), np.ones(12)])
Y = (X @ RNG.normal(size=(3, 4)) + RNG.normal(size=(12, 4)) > 0).astype(int)
EDGES = {"full": list(combinations(range(4), 2)), "some": [(2, 0), (1, 3)], "none": []}
PAIRS = {"full": 4, "both": 1}


def given(edges):
    return {"full": "full", "none": None}.get(edges, EDGES[edges])


def joint_feature(x, y, edges, pairwise):
    """By the definition: x at every label that is present, then the values of every pair; below 0 counts nothing."""
    unary = [x if present == 1 else 0 * x for present in y]
    tables = np.zeros((len(edges), PAIRS[pairwise]))
    for line, (j, k) in zip(tables, edges, strict=True):
        if y[j] >= 0 and y[k] >= 0:
            if pairwise == "full":
                line[2 * y[j] + y[k]] = 1
            else:
                line[0] = y[j] * y[k]
    return np.concatenate([*unary, tables.ravel()])


@pytest.mark.parametrize("pairwise", PAIRS)
@pytest.mark.parametrize("edges", EDGES)
def test_joint_features_and_searches(edges, pairwise):
    task = Multilabel(given(edges), pairwise)
    task.initialize(X, Y)
    rng = np.random.default_rng(1)
    for x, y in zip(X[:4], Y, strict=False):
        phi = np.zeros(task.size_joint_feature)
        column, values = task.joint_feature(x, y)
        phi[column] = values
        np.testing.assert_allclose(phi, joint_feature(x, y, EDGES[edges], pairwise))
        w = rng.normal(size=len(phi))
        all_scores = np.array([w @ joint_feature(x, h, EDGES[edges], pairwise) for h in outputs(4, 2)])
        assert w @ joint_feature(x, task.inference(x, w), EDGES[edges], pairwise) == pytest.approx(all_scores.max())
        losses = np.not_equal(outputs(4, 2), y).sum(axis=1)
        h = task.loss_augmented_inference(x, y, w)
        value = np.not_equal(h, y).sum() + w @ joint_feature(x, h, EDGES[edges], pairwise)
        assert value == pytest.approx((all_scores + losses).max())
    check_task(task, X[:3], Y[:3], outputs=lambda x: outputs(4, 2))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("pairwise", PAIRS)
@pytest.mark.parametrize("edges", EDGES)
def test_certificates_bracket_the_optimum(edges, pairwise, missing):
    codes = np.where(np.random.default_rng(3).random(Y.shape) < 0.3, -1, Y) if missing else Y
    model = StructuredSVM(Multilabel(given(edges), pairwise), C=0.7, tol=1e-6, random_state=0)
    model.fit(X, np.where(codes < 0, np.nan, codes))
    made = list(zip(X, codes, strict=True))
    optimum = statement(made, 2, 0.7, lambda x, y: joint_feature(x, y, EDGES[edges], pairwise)).optimum()
    assert model.lower_bound_ <= optimum * (1 + 1e-7)
    assert model.upper_bound_ >= optimum * (1 - 1e-7)
    assert model.gap_ <= 1e-6


def test_without_edges_every_label_has_its_own_classifier():
    """The worst vector is the worst in every entry: the slacks are those of binary problems, added up."""
    model = StructuredSVM(Multilabel(None), C=0.5, tol=1e-8, random_state=0).fit(X, Y)
    alone = [solve(Problem.binary(X, 2 * Y[:, k] - 1, cost=0.5), tol=1e-9) for k in range(4)]
    # of 0 and 1 only the latter has a score: the margin is one-sided, as in a binary problem with labels +-1
    assert model.upper_bound_ == pytest.approx(sum(one.upper_bound for one in alone), rel=1e-6)
    np.testing.assert_allclose(model.task.unpack(model.coef_).unary, [one.w for one in alone], atol=1e-3)


def test_the_tree_is_that_of_most_information():
    rng = np.random.default_rng(5)
    for _ in range(10):
        codes = rng.integers(2, size=(40, 1)) ^ (rng.random((40, 4)) < rng.random(4) / 2).astype(int)
        codes[rng.random(codes.shape) < 0.1] = -1
        told = np.zeros((4, 4))
        for j, k in combinations(range(4), 2):
            both = codes[(codes[:, j] >= 0) & (codes[:, k] >= 0)][:, [j, k]]
            for a in (0, 1):
                for b in (0, 1):
                    p = np.mean((both == [a, b]).all(axis=1))
                    if p > 0:
                        told[j, k] += p * np.log(p / np.mean(both[:, 0] == a) / np.mean(both[:, 1] == b))

        def connected(tree):
            reached = {0}
            for _ in range(4):
                reached |= {b for a, b in tree if a in reached} | {a for a, b in tree if b in reached}
            return len(reached) == 4

        trees = [tree for tree in combinations(list(combinations(range(4), 2)), 3) if connected(tree)]
        best = max(sum(told[pair] for pair in tree) for tree in trees)
        found = [tuple(pair) for pair in chow_liu(counted(codes))]
        assert connected(found)
        assert sum(told[pair] for pair in found) == pytest.approx(best)


def test_many_labels_are_bounded():
    rng = np.random.default_rng(2)
    y = rng.integers(2, size=14)
    task = Multilabel("full", "both", max_iter=3)
    task.initialize([np.ones(1)], [y])
    w = 2 * rng.normal(size=task.size_joint_feature)
    H = outputs(14, 2)
    pairs = np.array(list(combinations(range(14), 2)))
    scores = H @ w[:14] + (H[:, pairs[:, 0]] * H[:, pairs[:, 1]]) @ w[14:]
    best = (scores + np.not_equal(H, y).sum(axis=1)).max() - scores[np.equal(H, y).all(axis=1)][0]
    found = task.encode([np.ones(1)], [y]).search(np.array([0]), w)
    assert found.value[0] <= best + 1e-9
    assert found.bound[0] >= best - 1e-9


def test_sparse_inputs_booleans_and_files(tmp_path):
    model = StructuredSVM(Multilabel("tree", normalized=True), random_state=0).fit(X, Y)
    rows = [sp.csr_matrix(X)[i] for i in range(len(X))]
    same = StructuredSVM(Multilabel("tree", normalized=True), random_state=0).fit(rows, Y.astype(bool).tolist())
    np.testing.assert_allclose(same.coef_, model.coef_, atol=1e-9)
    lines = [sp.csr_array(y) for y in Y[:, None]]
    np.testing.assert_allclose(
        StructuredSVM(Multilabel("tree", normalized=True), random_state=0).fit(X, lines).coef_, model.coef_, atol=1e-9
    )
    model.save(tmp_path / "model.npz")
    again = dualsvm.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.task.unpack(again.coef_).edges.shape == (3, 2)
    given_pairs = StructuredSVM(Multilabel([(0, 1)], "both", cost=[[0, 1], [2, 0]])).fit(X, Y)
    given_pairs.save(tmp_path / "pairs.npz")
    np.testing.assert_array_equal(dualsvm.load(tmp_path / "pairs.npz").predict(X), given_pairs.predict(X))


@pytest.mark.parametrize(
    ("task", "inputs", "labels", "message"),
    [
        (Multilabel("star"), X, Y, 'edges must be "full", "tree", pairs of labels or None'),
        (Multilabel(pairwise="potts"), X, Y, 'pairwise must be "full" or "both"'),
        (Multilabel([(0, 4)]), X, Y, r"edge 0 of edges joins \[0, 4\], but its 4 nodes"),
        (Multilabel([(1, 1)]), X, Y, "with itself"),
        (Multilabel(max_iter=1.5), X, Y, "max_iter must be a positive integer"),
        (Multilabel(cost=[[0, 1, 2]]), X, Y, r"cost must be numbers of shape \(2, 2\)"),
        (Multilabel(), X, 2 * Y, "has the label 2"),
        (Multilabel(), X[:2], [[0, 1], [0, 1, 1]], "the same number of zeros and ones"),
        (Multilabel(), X[:2], [[], []], "at least one"),
        (Multilabel(), X[None], [Y[0]], "must be a vector of features"),
        (Multilabel(), [X[0], X[1, :2]], Y[:2], "every input must have 3 features, as the first has, got 2"),
        (Multilabel(), np.where(X == 1, np.nan, X), Y, "NaN"),
    ],
)
def test_bad_input(task, inputs, labels, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(task).fit(inputs, labels)
