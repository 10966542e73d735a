"""Tasks with sub-types that are not observed: against all completions, and against the tasks that they refine."""

from itertools import product

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from dualsvm import StructuredSVM, check_task
from dualsvm.tasks import Chain, HiddenChain, HiddenMulticlass, Multiclass
from dualsvm.tasks.files import restore_task, store_task

from .structured import assert_solves, dense, write_out

RNG = np.random.default_rng(0)
COST = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [3.0, 1.0, 0.0]])
X = RNG.normal(size=(30, 3)) * (RNG.random((30, 3)) < 0.8)
Y = [("b", "a", "c")[k] for k in np.abs(X + 0.3 * RNG.normal(size=X.shape)).argmax(axis=1)]
COUNTS = {"a": 1, "b": 3, "c": 2}
PAIRS = [("a", 0), ("b", 0), ("b", 1), ("b", 2), ("c", 0), ("c", 1)]
FORMS = {"list": list, "array": np.asarray, "sparse": sp.csr_matrix, "sparse array": sp.csr_array}
FORMS |= {"sparse lines": lambda X: [sp.csr_matrix(x) for x in X], "float32": lambda X: X.astype(np.float32)}


def sequences(n=6, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(length, 2)) for length in rng.integers(1, 5, n)]
    Y = [[None if rng.random() < missing else str(y) for y in rng.choice(["a", "b", "c"], len(x))] for x in X]
    return X, Y


def known(task, X, Y):
    task.initialize(X, Y)
    return task


def score(task, x, h, w):
    return dense(task.joint_feature(x, h), task.size_joint_feature) @ w


def completions(task, y):
    """All completed outputs of labels, of which None stands for itself."""
    pairs = task.unpack(np.zeros(task.size_joint_feature)).states
    return [list(h) for h in product(*([p for p in pairs if p[0] == label] if label else [None] for label in y))]


# classes


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), form=st.sampled_from(sorted(FORMS)), scale=st.sampled_from([1e-6, 1.0, 1e6]))
def test_classes_find_the_best(seed, form, scale):
    task = known(HiddenMulticlass(COUNTS, cost=COST), X, Y)
    w = scale * np.random.default_rng(seed).normal(size=task.size_joint_feature)
    inputs = FORMS[form](X)
    found, own = task.batch_inference(inputs, w), task.batch_latent(inputs, Y, w)
    scores = X.astype(np.float32) @ w.reshape(6, 3).T if form == "float32" else X @ w.reshape(6, 3).T
    for i, y in enumerate(Y):
        at = dict(zip(PAIRS, scores[i], strict=True))
        assert at[found[i]] == pytest.approx(scores[i].max())
        assert own[i][0] == y
        assert at[own[i]] == pytest.approx(max(value for pair, value in at.items() if pair[0] == y))
    x = inputs[[0]] if sp.issparse(inputs) else inputs[0]
    assert (task.inference(x, w), task.latent(x, Y[0], w)) == (found[0], own[0])
    worst = task.loss_augmented_inference(x, own[0], w)
    best = max(task.loss(own[0], h) + score(task, x, h, w) for h in PAIRS)
    assert task.loss(own[0], worst) + score(task, x, worst, w) == pytest.approx(best)


def test_classes_are_a_multiclass_task_over_the_pairs():
    task = known(HiddenMulticlass(COUNTS, cost=COST), X, Y)
    w = np.random.default_rng(0).normal(size=18)
    H = task.batch_latent(X, Y, w)
    place = ["abc".index(label) for label, _ in PAIRS]
    peer = known(Multiclass(cost=COST[np.ix_(place, place)], labels=PAIRS), X, H)
    for one, other in zip(
        task.encode(X, H).search(np.arange(30), w), peer.encode(X, H).search(np.arange(30), w), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert task.batch_inference(X, w) == peer.batch_inference(X, w)


def test_one_type_is_the_multiclass_task():
    task, peer = HiddenMulticlass(1, cost=COST), Multiclass(cost=COST)
    H = known(task, X, Y).init_latent(X, Y)
    known(peer, X, Y)
    assert [(y, 0) for y in Y] == H
    w = np.random.default_rng(0).normal(size=9)
    assert [task.label_from_latent(h) for h in task.batch_inference(X, w)] == peer.batch_inference(X, w)
    for one, other in zip(
        task.encode(X, H).search(np.arange(30), w), peer.encode(X, Y).search(np.arange(30), w), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    model = StructuredSVM(HiddenMulticlass(1, cost=COST, labels="abc"), random_state=0).fit(X, H)
    again = StructuredSVM(Multiclass(cost=COST), random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, again.coef_)


@pytest.mark.parametrize("form", ["array", "sparse"])
def test_certificates_at_completed_classes(form):
    task = known(HiddenMulticlass(COUNTS, COST, labels="abc"), X, Y)
    H = task.init_latent(X, Y, random_state=0)
    model = StructuredSVM(task, C=0.7, tol=1e-5, random_state=0).fit(FORMS[form](X), H)
    assert_solves(model, write_out(task, X, H, lambda x, y: PAIRS, 0.7))


def test_classes_keep_their_promises():
    task = HiddenMulticlass(COUNTS, COST, labels="abc")
    check_task(task, X[:6], Y[:6], outputs=lambda x: PAIRS)


@pytest.mark.parametrize("form", FORMS)
def test_first_types_of_classes_are_their_clouds(form):
    rng = np.random.default_rng(1)
    centre = rng.integers(3, size=300)
    clouds = 10 * np.eye(4)[centre] + 0.1 * rng.normal(size=(300, 4)) * (rng.random((300, 4)) < 0.5)
    labels = np.where(centre == 0, "one", "two")
    task = known(HiddenMulticlass({"one": 1, "two": 2}), clouds, labels)
    H = task.init_latent(FORMS[form](clouds), labels, random_state=0)
    assert [h[0] for h in H] == labels.tolist()
    assert len({(c, *h) for c, h in zip(centre, H, strict=True)}) == 3
    assert task.init_latent(FORMS[form](clouds), labels, random_state=0) == H
    assert all(type(k) is int for _, k in H)


def test_many_rows_of_a_class_and_few():
    rng = np.random.default_rng(0)
    many = rng.normal(size=(8002, 2))
    many[:4000, 0] += 20
    many[8000:] = [[0.0, 9.0], [0.0, -9.0]]
    labels = ["many"] * 8000 + ["few"] * 2
    task = known(HiddenMulticlass(5), many, labels)
    H = task.init_latent(many, labels, random_state=np.random.default_rng(0))
    assert {h for h in H if h[0] == "many"} == {("many", k) for k in range(5)}
    assert H[-2] != H[-1]
    same = np.ones((9, 2))
    assert known(HiddenMulticlass(3), same, [0] * 9).init_latent(same, [0] * 9, 0) == [(0, 0)] * 9


def test_weights_of_types_have_names():
    task = known(HiddenMulticlass(COUNTS), X, Y)
    parts = task.unpack(np.arange(18.0))
    assert parts.unary.tolist() == np.arange(18.0).reshape(6, 3).tolist()
    assert (parts.labels, parts.types) == (["a", "b", "c"], PAIRS)
    column, values = task.joint_feature([3.0, 0.0, 1.0], ("b", 1))
    assert (column.tolist(), values.tolist()) == ([6, 8], [3.0, 1.0])
    with pytest.raises(ValueError, match=r"w must have shape \(18,\)"):
        task.unpack(np.zeros(4))


def test_classes_of_any_kind():
    labels = [(1, "x"), "y", 2.5, (1, 2)]
    task = known(HiddenMulticlass({(1, "x"): 2, "y": 1, 2.5: 2, (1, 2): 1}), np.eye(4), labels)
    assert task.batch_latent(np.eye(4), labels, np.zeros(24)) == [(y, 0) for y in labels]
    h = task.inference(np.eye(4)[0], np.repeat([0.0, 1.0, 0, 0, 0, 0], 4))
    assert (h, task.label_from_latent(h)) == (((1, "x"), 1), (1, "x"))
    numbers = known(HiddenMulticlass(), np.eye(3), np.array([3, 1, 2]))
    assert numbers.batch_latent(np.eye(3), np.array([3, 1, 2]), np.zeros(18)) == [(3, 0), (1, 0), (2, 0)]
    assert numbers.batch_inference([], np.zeros(18)) == []


# sequences


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    missing=st.sampled_from([0.0, 0.4]),
    normalized=st.booleans(),
    start_end=st.booleans(),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_sequences_find_the_best(seed, missing, normalized, start_end, scale):
    X, Y = sequences(4, seed, missing)
    task = HiddenChain({"a": 2, "b": 1, "c": 2}, normalized, start_end, COST, labels="abc")
    known(task, X, Y)
    w = scale * np.random.default_rng(seed).normal(size=task.size_joint_feature)
    found, own = task.batch_inference(X, w), task.batch_latent(X, Y, w, n_jobs=2)
    for x, y, h, a in zip(X, Y, found, own, strict=True):
        everything = [h for labels in product("abc", repeat=len(x)) for h in completions(task, labels)]
        assert score(task, x, h, w) == pytest.approx(max(score(task, x, h, w) for h in everything))
        assert a in completions(task, y)
        assert score(task, x, a, w) == pytest.approx(max(score(task, x, h, w) for h in completions(task, y)))
        assert task.latent(x, y, w) == a
        assert task.label_from_latent(a).tolist() == y
        worst = task.loss_augmented_inference(x, a, w)
        kept = [None if label is None else pair for label, pair in zip(y, worst, strict=True)]
        best = max(
            task.loss(a, b) + score(task, x, b, w)
            for labels in product(*("abc" if label else [None] for label in y))
            for b in completions(task, labels)
        )
        assert task.loss(a, kept) + score(task, x, kept, w) == pytest.approx(best)


def test_one_state_is_the_chain():
    X, Y = sequences(missing=0.2)
    task, peer = HiddenChain(1, cost=COST, labels="abc"), Chain(cost=COST, labels="abc")
    H = known(task, X, Y).init_latent(X, Y)
    known(peer, X, Y)
    assert [[None if y is None else (y, 0) for y in labels] for labels in Y] == H
    w = np.random.default_rng(0).normal(size=peer.size_joint_feature)
    for x, h, y in zip(X, H, Y, strict=True):
        assert task.label_from_latent(task.inference(x, w)).tolist() == peer.inference(x, w).tolist()
        for one, other in zip(task.joint_feature(x, h), peer.joint_feature(x, y), strict=True):
            np.testing.assert_array_equal(one, other)
        (h, one), (y, other) = task.k_best(x, w, 3)[1], peer.k_best(x, w, 3)[1]
        assert (task.label_from_latent(h).tolist(), one) == (y.tolist(), other)
    for one, other in zip(
        task.encode(X, H).search(np.arange(6), w), peer.encode(X, Y).search(np.arange(6), w), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    model, again = (StructuredSVM(t, random_state=0).fit(X, Z) for t, Z in ((task, H), (peer, Y)))
    np.testing.assert_array_equal(model.coef_, again.coef_)


def test_certificates_at_completed_sequences():
    X, Y = sequences(5)
    X, Y = [x[:3] for x in X], [y[:3] for y in Y]
    task = known(HiddenChain(2, labels="abc"), X, Y)
    H = task.init_latent(X, Y, random_state=0)
    outputs = [[h for y in product("abc", repeat=n) for h in completions(task, y)] for n in range(4)]
    model = StructuredSVM(task, C=0.7, tol=1e-5, random_state=0).fit(X, H)
    assert_solves(model, write_out(task, X, H, lambda x, y: outputs[len(x)], 0.7))
    check_task(task, X, Y, outputs=lambda x: outputs[len(x)], n_weights=2)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array, lambda x: x.astype(np.float32)])
def test_first_states_of_sequences_are_their_clouds(form):
    rng = np.random.default_rng(1)
    centres = [rng.integers(3, size=n) for n in (5, 0, 9, 30)]
    X = [form(10 * np.eye(4)[c] + 0.1 * rng.normal(size=(len(c), 4))) for c in centres]
    Y = [["one" if k == 0 else "two" for k in c] for c in centres]
    Y[3][4] = None
    task = known(HiddenChain({"one": 1, "two": 2}), X, Y)
    H = task.init_latent(X, Y, random_state=0)
    assert [task.label_from_latent(h).tolist() for h in H] == Y
    assert H[3][4] is None
    flat = [(k, h) for c, h in zip(centres, H, strict=True) for k, h in zip(c, h, strict=True) if h]
    assert len(set(flat)) == 3
    assert task.batch_latent(X, Y, np.zeros(task.size_joint_feature))[1] == []


def test_sparse_sequences_are_dense_ones():
    X, Y = sequences(missing=0.2)
    task = known(HiddenChain(cost=COST, labels="abc"), X, Y)
    w = np.random.default_rng(0).normal(size=task.size_joint_feature)
    thin = [sp.csr_matrix(x) for x in X]
    assert task.batch_latent(X, Y, w) == task.batch_latent(thin, Y, w)
    assert task.batch_inference(X, w) == task.batch_inference(thin, w)


def test_weights_of_states_have_names():
    X, Y = sequences()
    task = known(HiddenChain(COUNTS), X, Y)
    w = np.arange(float(task.size_joint_feature))
    parts = task.unpack(w)
    assert (parts.labels, parts.states) == (["a", "b", "c"], PAIRS)
    assert (parts.unary.shape, parts.transition.shape, parts.start.shape) == ((6, 2), (6, 6), (6,))
    h = [("b", 2), ("a", 0)]
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    by_hand = parts.unary[3] @ x[0] + parts.unary[0] @ x[1] + parts.transition[3, 0] + parts.start[3] + parts.end[0]
    assert score(task, x, h, w) == by_hand
    assert task.loss(h, [("b", 0), ("c", 0)]) == 1
    assert known(HiddenChain(COUNTS, normalized=True), X, Y).loss(h, [("b", 0), ("c", 0)]) == 0.5


def test_labels_of_sequences_are_arrays_as_those_of_chains():
    X = [np.eye(3)]
    task = known(HiddenChain(), X, [[3, 1, 3]])
    labels = task.label_from_latent([(3, 1), (1, 0), (3, 0)])
    assert (labels.tolist(), labels.dtype.kind) == ([3, 1, 3], "i")
    kinds = [(1, 2), (3, 4), (1, 2)]
    task = known(HiddenChain({(1, 2): 2, (3, 4): 1}), X, [kinds])
    assert task.label_from_latent(task.init_latent(X, [kinds], 0)[0]).tolist() == kinds


# both


@pytest.mark.parametrize(
    "make",
    [
        lambda: HiddenMulticlass(COUNTS, COST),
        lambda: HiddenMulticlass(3, labels=["c", "a", "b"]),
        lambda: HiddenChain(COUNTS, True, False, COST),
        lambda: HiddenChain(np.int64(2), labels=np.array(["a", "b", "c"])),
    ],
)
def test_files(make):
    task = make()
    X_, Y_ = (X, Y) if isinstance(task, HiddenMulticlass) else sequences()
    arrays = {}
    known(task, X_, Y_)
    arrays = {}
    again = restore_task(store_task(task, arrays), arrays)
    w = np.random.default_rng(0).normal(size=task.size_joint_feature)
    assert again.batch_inference(X_, w) == task.batch_inference(X_, w)
    H = again.batch_latent(X_, Y_, w)
    assert task.batch_latent(X_, Y_, w) == H
    assert again.loss(H[0], again.inference(X_[0], w)) == task.loss(H[0], task.inference(X_[0], w))
    again.initialize(X_, Y_)  # with the parameters
    assert again.batch_inference(X_, w) == task.batch_inference(X_, w)


def test_files_of_labels_that_are_tuples():
    task = known(HiddenMulticlass({(1, "x"): 2, "y": 1}), np.eye(2), [(1, "x"), "y"])
    again = restore_task(store_task(task, {}), {})
    assert again.n_types == task.n_types
    assert again.unpack(np.zeros(6)).types == [((1, "x"), 0), ((1, "x"), 1), ("y", 0)]
    with pytest.raises(TypeError, match=r"task.n_types holds the label b'x', a bytes"):
        store_task(HiddenMulticlass({b"x": 1}), {})


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True, None, {"a": 1, "b": 0, "c": 1}])
def test_numbers_that_are_none(n):
    with pytest.raises(ValueError, match="n_types must be a positive integer, or a dict with one for every label"):
        HiddenMulticlass(n).initialize(X, Y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: HiddenMulticlass({"a": 1}).initialize(X, Y), "n_types has no number for the label 'b'"),
        (lambda: HiddenChain({"a": 1}).initialize(*sequences()), "n_states has no number for the label"),
        (lambda: HiddenMulticlass(cost=np.ones((6, 6))).initialize(X, Y), r"cost must be numbers of shape \(3, 3\)"),
        (lambda: HiddenMulticlass().latent(X[0], "a", np.zeros(3)), "does not know its labels yet"),
        (lambda: HiddenChain().init_latent([X], [Y]), "does not know its labels yet"),
        (lambda: HiddenChain().label_from_latent([("a", 0)]), "does not know its labels yet"),
    ],
)
def test_parameters_that_do_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, w: t.batch_latent(X[:2], ["a", None], w), "input 1 has no label: leave such examples out"),
        (lambda t, w: t.batch_latent(X[:2], ["a", "z"], w), "output 1 has the label 'z', which was not seen"),
        (lambda t, w: t.batch_latent(X[:2], ["a"], w), "X and Y must have the same length, got 2 and 1"),
        (lambda t, w: t.init_latent(X[:2], ["a"]), "X and Y must have the same length, got 2 and 1"),
        (lambda t, w: t.init_latent(X * np.nan, Y), "contains NaN"),
        (lambda t, w: t.batch_latent(X[:2, :2], ["a", "b"], w), "inputs must have 3 features"),
        (lambda t, w: t.encode(X[:2], [("a", 0), ("a", 1)]), r"output 1 has the label \('a', 1\)"),
    ],
)
def test_classes_that_do_not_fit(call, message):
    task = known(HiddenMulticlass(COUNTS), X, Y)
    with pytest.raises(ValueError, match=message):
        call(task, np.zeros(18))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, w: t.batch_latent([np.eye(2)], ["a"], w), "input 0 has 2 positions, but its output 1 labels"),
        (lambda t, w: t.init_latent([np.eye(2)], ["a"]), "input 0 has 2 positions, but its output 1 labels"),
        (lambda t, w: t.init_latent([np.eye(2)], ["az"]), "output 0 has the label 'z'"),
        (lambda t, w: t.init_latent([np.eye(2), np.eye(2) * np.nan], ["ab", "ab"]), "input 1 contains NaN"),
        (lambda t, w: t.label_from_latent([("a", 5)]), r"h has the label \('a', 5\)"),
    ],
)
def test_sequences_that_do_not_fit(call, message):
    task = known(HiddenChain(), *sequences())
    with pytest.raises(ValueError, match=message):
        call(task, np.zeros(task.size_joint_feature))
