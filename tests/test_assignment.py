"""Assignments: searches against all of them, certificates against the problem written out."""

from itertools import permutations, product

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import dualsvm
from dualsvm import StructuredSVM, check_task
from dualsvm.tasks import Assignment

from .structured import FEATURES, Lazy, assert_all_ways, assert_solves, write_out

RNG = np.random.default_rng(0)
FORMS = {"all rows": {}, "some rows": {"unmatched": True}, "normalized": {"normalized": True}}
FORMS |= {"some rows, normalized": {"unmatched": True, "normalized": True}}


def examples(unmatched, n=8, seed=0):
    """Tables of different shapes; with unmatched rows also some with more rows than columns."""
    rng = np.random.default_rng(seed)
    shapes = [(2, 3), (3, 3), (1, 2), *([(3, 2)] if unmatched else [(2, 4)])] * n
    X = [rng.normal(size=(*shape, 3)) for shape in shapes[:n]]
    Y = []
    for x in X:
        options = list(everything(unmatched)(x))
        scores = [sum(x[i, j, 0] for i, j in enumerate(y) if j >= 0) for y in options]
        Y.append(options[int(np.argmax(scores + rng.normal(size=len(options))))])
    return X, Y


def everything(unmatched):
    """All assignments of a table, by trying out all columns for all rows."""

    def outputs(x, y=None):
        n, m = x.shape[:2]
        for columns in product(range(-1 if unmatched else 0, m), repeat=n):
            used = [j for j in columns if j >= 0]
            if len(used) == len(set(used)):
                yield list(columns)

    return outputs


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("form", ["all rows", "some rows"])
def test_certificates_enclose_the_reference_optimum(form, feature):
    unmatched = "unmatched" in FORMS[form]
    assert_all_ways(lambda: Assignment(**FORMS[form]), *examples(unmatched), everything(unmatched), feature)


@pytest.mark.parametrize("form", FORMS)
def test_keeps_its_promises(form):
    unmatched = "unmatched" in FORMS[form]
    check_task(Assignment(**FORMS[form]), *examples(unmatched), outputs=everything(unmatched))
    check_task(Assignment(**FORMS[form]), *examples(unmatched))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the bounds of the search are loose
def test_slack_rescaling_encloses_the_optimum():
    X, Y = examples(False)
    model = StructuredSVM(Assignment(), C=0.5, rescaling="slack", tol=0.05, max_iter=500, random_state=0).fit(X, Y)
    assert_solves(model, write_out(model.task, X, Y, everything(False), 0.5, "slack"), converged=False)
    assert np.isfinite(model.upper_bound_)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 3),
    extra=st.integers(-1, 2),
    unmatched=st.booleans(),
    normalized=st.booleans(),
    tie=st.booleans(),
)
def test_searches_find_the_best(seed, n, extra, unmatched, normalized, tie):
    rng = np.random.default_rng(seed)
    m = n + max(extra, -n if unmatched else 0)
    x = rng.integers(-1, 2, (n, m, 2)).astype(float) if tie else rng.normal(size=(n, m, 2))
    task, outputs = Assignment(unmatched, normalized), list(everything(unmatched)(x))
    y = outputs[rng.integers(len(outputs))]
    task.initialize([x], [y])
    w = rng.integers(-1, 2, 2) if tie else rng.normal(size=2)

    def score(h):
        return sum(float(x[i, j] @ w) for i, j in enumerate(h) if j >= 0)

    def loss(h):
        return sum(a != b for a, b in zip(y, h, strict=True)) / (n if normalized else 1)

    assert score(task.inference(x, w)) == pytest.approx(max(map(score, outputs)), abs=1e-12)
    worst = max(loss(h) + score(h) for h in outputs)
    h = task.loss_augmented_inference(x, y, w)
    assert loss(h) + score(h) == pytest.approx(worst, abs=1e-12)
    assert task.loss(y, h) == pytest.approx(loss(h))
    found = task.encode([x], [y]).search(np.arange(1), w, 1)
    assert found.value[0] == pytest.approx(worst - score(y), abs=1e-12)
    assert found.l[0] - found.x @ w[found.column] == pytest.approx(worst - score(y), abs=1e-12)


def test_definitions():
    x = np.arange(18.0).reshape(2, 3, 3)
    task = Assignment(unmatched=True)
    task.initialize([x], [[0, 1]])
    np.testing.assert_array_equal(task.joint_feature(x, [2, 0]), x[0, 2] + x[1, 0])
    np.testing.assert_array_equal(task.joint_feature(x, [2, -1]), x[0, 2])
    assert task.loss([0, 1], [0, -1]) == 1
    assert Assignment(normalized=True).loss([0, 1], [1, 2]) == 1
    assert Assignment(normalized=True).loss([0, 1], [0, 2]) == 0.5
    assert task.inference(x, np.array([-1.0, 0.0, 0.0])).tolist() == [0, -1]  # the only pair that does not cost


@pytest.mark.parametrize("form", FORMS)
def test_save_and_load(tmp_path, form):
    X, Y = examples("unmatched" in FORMS[form])
    model = StructuredSVM(Assignment(**FORMS[form]), random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    again = dualsvm.load(tmp_path / "model")
    assert list(map(list, again.predict(X))) == list(map(list, model.predict(X)))
    assert again.score(X, Y) == model.score(X, Y)
    assert vars(again.task) == vars(model.task)


def test_lazy_inputs():
    X, Y = examples(False)
    lazy = StructuredSVM(Assignment(), tol=1e-6, random_state=0).fit(Lazy(X), Lazy(Y))
    held = StructuredSVM(Assignment(), tol=1e-6, random_state=0).fit(X, Y)
    assert max(lazy.lower_bound_, held.lower_bound_) <= min(lazy.upper_bound_, held.upper_bound_)


TABLE = np.ones((2, 3, 1))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (TABLE, [1, 1], "output 0 assigns column 1 to rows 0 and 1: it can have only one"),
        (TABLE, [0, 3], r"output 0 has columns from 0 to 3, outside 0 \.\. 2"),
        (TABLE, [0, -1], r"outside 0 \.\. 2; unmatched=True allows rows without a column"),
        (TABLE, [0], "output 0 must have a column for each of 2 rows, got 1"),
        (TABLE, [[0, 1]], r"must be a vector of numbers of columns, got int64 of shape \(1, 2\)"),
        (TABLE, [0.0, 1.0], "must be a vector of numbers of columns, got float64"),
        (TABLE, [0, None], "must be a vector of numbers of columns, got object"),
        (TABLE * np.nan, [0, 1], "contains NaN"),
        (np.ones((3, 2, 1)), [0, 1, 2], "3 rows, but only 2 columns, and every row needs one of its own"),
        (np.ones((2, 3)), [0, 1], r"must have shape \(n_rows, n_columns, n_features\), got \(2, 3\)"),
    ],
)
def test_examples_that_are_none(x, y, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(Assignment()).fit([x], [y])


def test_inputs_with_other_features():
    with pytest.raises(ValueError, match="must have 1 features, as the first input in training, got 2"):
        StructuredSVM(Assignment()).fit([TABLE, np.ones((2, 3, 2))], [[0, 1], [0, 1]])
    with pytest.raises(ValueError, match="does not know the number of features yet"):
        Assignment().inference(TABLE, np.ones(1))
    with pytest.raises(ValueError, match="y and y_hat must have the same length, got 2 and 1"):
        Assignment().loss([0, 1], [0])


def test_all_permutations_of_a_larger_table():
    x = RNG.normal(size=(6, 6, 4))
    task, w = Assignment(), RNG.normal(size=4)
    task.initialize([x], [range(6)])
    scores = x @ w
    best = max(sum(scores[i, j] for i, j in enumerate(p)) for p in permutations(range(6)))
    assert scores[np.arange(6), task.inference(x, w)].sum() == pytest.approx(best)
