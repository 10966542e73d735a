"""Bags of members: against loops over members, one after the other."""

from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from dualsvm.tasks import MultipleInstance
from dualsvm.tasks.files import restore_task, store_task

from .structured import dense

FORMS = {
    "dense": np.asarray,
    "sparse": sp.csr_matrix,
    "sparse array": sp.csr_array,
    "columns": sp.csc_matrix,
    "float32": lambda x: x.astype(np.float32),
    "lists": lambda x: x.tolist(),
}


def bags(n=12, seed=0, width=3, form="dense"):
    """Small numbers, such that sums of their products are exact in any order, and members may be equal."""
    rng = np.random.default_rng(seed)
    X = [rng.integers(-2, 3, (size, width)).astype(float) for size in rng.integers(1, 6, n)]
    return [FORMS[form](x) for x in X]


def known(X, **parameters):
    task = MultipleInstance(**parameters)
    task.initialize(X)
    return task


def by_hand(x, w, intercept):
    """Return the joint features of all members, and their scores."""
    x = np.asarray(x.toarray() if sp.issparse(x) else x, dtype=float)
    phi = np.column_stack([x, np.full(len(x), intercept)]) if intercept else x
    return phi, phi @ w


def unfolded(answer, d):
    """Return lines, members and joint features that a search found, having looked at their form."""
    line, z, start, column, x = answer
    assert (start.dtype, column.dtype, x.dtype) == (np.int64, np.int32, np.float64)
    assert (start[0], len(start), len(z)) == (0, len(line) + 1, len(line))
    assert start[-1] == len(column) == len(x)
    assert x.all()
    for a, b in pairwise(start):
        assert (np.diff(column[a:b]) > 0).all()
    return line.tolist(), z.tolist(), sp.csr_array((x, column, start), shape=(len(line), d)).toarray()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    form=st.sampled_from(sorted(FORMS)),
    intercept=st.sampled_from([0, 1.0, -0.5]),
    asked=st.integers(0, 12),
)
def test_searches_find_the_best(seed, form, intercept, asked):
    X = bags(seed=seed, form=form)
    task = known(X, slack="member", intercept=intercept)
    rng = np.random.default_rng(seed)
    d = 3 + (intercept != 0)
    assert task.size_joint_feature == d
    w = rng.integers(-2, 3, d) / 4
    which = rng.permutation(12)[:asked]
    hand = [by_hand(x, w, intercept) for x in X]
    best = [int(np.argmax(scores)) for _, scores in hand]
    assert task.batch_inference(X, w) == best
    assert [task.inference(x, w) for x in X] == best
    coded = task.encode(X)
    line, z, phi = unfolded(coded.search(which, w), d)
    assert (line, z) == (list(range(asked)), [best[i] for i in which])
    np.testing.assert_array_equal(phi, np.array([hand[i][0][best[i]] for i in which]).reshape(-1, d))
    every = [(k, m) for k, i in enumerate(which) for m in np.flatnonzero(1 + hand[i][1] > 0)]
    line, z, phi = unfolded(coded.search(which, w, threads=2, every=True), d)
    assert list(zip(line, z, strict=True)) == every
    np.testing.assert_array_equal(phi, np.array([hand[which[k]][0][m] for k, m in every]).reshape(-1, d))
    for i in which:
        said = list(task.violations(X[i], w))
        assert [m for m, _ in said] == np.flatnonzero(1 + hand[i][1] > 0).tolist()
        for m, phi in said:
            np.testing.assert_array_equal(dense(phi, d), hand[i][0][m])
            np.testing.assert_array_equal(dense(task.joint_feature(X[i], m), d), hand[i][0][m])


def test_bags_in_one_array():
    X = np.random.default_rng(0).normal(size=(6, 4, 3))
    w = np.array([1.0, -2.0, 0.5, 0.1])
    assert known(X).batch_inference(X, w) == (X @ w[:3]).argmax(axis=1).tolist()
    assert known(X).batch_inference([], w) == []


def test_zeros_that_a_sparse_matrix_holds():
    x = sp.csr_matrix((np.array([0.0, 2.0]), np.array([0, 1]), np.array([0, 2, 2])), shape=(2, 2))
    column, values = known([x]).joint_feature(x, 0)
    assert (column.tolist(), values.tolist()) == ([1, 2], [2.0, 1.0])
    assert x.nnz == 2
    assert [part.tolist() for part in known([x], intercept=0).joint_feature(x, 1)] == [[], []]


def test_one_slack_of_a_bag_has_no_violations():
    assert MultipleInstance().violations is None
    assert callable(MultipleInstance(slack="member").violations)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [0, 1.0])
def test_first_members_are_those_that_negative_bags_lack(form, intercept):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(size, 4)) for size in rng.integers(2, 9, 60)]
    y = np.where(np.arange(60) % 3 == 0, 1, -1)
    planted = [int(rng.integers(len(x))) if label > 0 else None for x, label in zip(X, y, strict=True)]
    for x, z in zip(X, planted, strict=True):
        if z is not None:
            x[z] += [8.0, 0.0, -8.0, 0.0]
    X = [FORMS[form](x) for x in X]
    task = known(X, intercept=intercept)
    assert task.init_latent(X, y, random_state=0) == planted
    assert task.init_latent(X, y.astype(float).tolist(), random_state=np.random.default_rng(0)) == planted


def test_weights_have_names():
    X = bags()
    parts = known(X, intercept=2.0).unpack(np.array([1.0, 2.0, 3.0, 4.0]))
    assert (parts.member.tolist(), parts.intercept) == ([1.0, 2.0, 3.0], 8.0)
    parts = known(X, intercept=0).unpack(np.arange(3.0))
    assert (parts.member.tolist(), parts.intercept) == ([0.0, 1.0, 2.0], 0.0)


@pytest.mark.parametrize("parameters", [{}, {"slack": "member", "intercept": 0}])
def test_files(parameters):
    X = bags()
    arrays = {}
    task = known(X, **parameters)
    again = restore_task(store_task(task, arrays), arrays)
    assert (again.slack, again.intercept) == (task.slack, task.intercept)
    assert again.size_joint_feature == task.size_joint_feature
    w = np.arange(float(task.size_joint_feature))
    assert again.batch_inference(X, w) == task.batch_inference(X, w)
    fresh = restore_task(store_task(MultipleInstance(**parameters), arrays), arrays)
    with pytest.raises(ValueError, match="does not know its features yet"):
        assert fresh.size_joint_feature


NAN = np.array([[1.0, 2.0, np.nan]])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([np.eye(3), np.empty((0, 3))], "bag 1 has no members: leave it out"),
        ([np.eye(3), np.eye(2)], "bag 1 has 2 features, but the others have 3"),
        ([np.eye(3), sp.csr_matrix((1, 2))], "bag 1 has 2 features, but the others have 3"),
        ([np.eye(3), np.ones(3)], r"bag 1 must have shape \(n_members, n_features\), got \(3,\)"),
        ([np.eye(3), [[1.0, 2.0, 3.0], [1.0]]], "bag 1 must be an array, with lines of one length"),
        ([], "X holds no bag"),
    ],
)
def test_bags_that_do_not_fit(X, message):
    with pytest.raises(ValueError, match=message):
        MultipleInstance().initialize(X)
    if X:
        with pytest.raises(ValueError, match=message):
            known([np.eye(3)]).encode(X)


@pytest.mark.parametrize("form", ["dense", "sparse", "lists"])
def test_members_that_are_no_numbers(form):
    X = [np.eye(3), np.eye(3), FORMS[form](NAN)]
    with pytest.raises(ValueError, match="bag 2 contains NaN"):
        known(X).encode(X)
    with pytest.raises(ValueError, match="x contains NaN"):
        known(X).inference(X[2], np.zeros(4))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"slack": "each"}, 'slack must be "bag" or "member", got \'each\''),
        ({"intercept": np.inf}, "intercept must be a finite number"),
        ({"intercept": "yes"}, "intercept must be a finite number"),
    ],
)
def test_parameters_that_do_not_fit(parameters, message):
    with pytest.raises(ValueError, match=message):
        known(bags(), **parameters)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, X: t.init_latent(X, [1] * 11), "y must be 1 or -1 for each of 12 bags"),
        (lambda t, X: t.init_latent(X, [0, 1] * 6), "y must be 1 or -1 for each of 12 bags"),
        (lambda t, X: t.joint_feature(X[0], len(X[0])), "z must be the number of a member, an integer from 0 to"),
        (lambda t, X: t.joint_feature(X[0], None), "z must be the number of a member"),
        (lambda t, X: t.inference(X[0], np.zeros(3)), r"w must have shape \(4,\), got \(3,\)"),
        (lambda t, X: t.unpack(np.zeros(3)), r"w must have shape \(4,\), got \(3,\)"),
    ],
)
def test_calls_that_do_not_fit(call, message):
    X = bags()
    with pytest.raises(ValueError, match=message):
        call(known(X), X)


def test_members_of_one_class_alone_are_drawn():
    X = bags()
    task = known(X)
    assert task.init_latent(X, [-1] * 12) == [None] * 12
    drawn = {tuple(task.init_latent(X, [1] * 12, random_state=seed)) for seed in range(5)}
    assert len(drawn) > 1
    assert all(0 <= z < len(x) for some in drawn for z, x in zip(some, X, strict=True))
