"""The multiclass task: the problem of the multiclass estimator, by way of constraints that are searched."""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import dualsvm
from dualsvm import Problem, StructuredSVM, SVMClassifier, check_task, solve
from dualsvm.tasks import Multiclass

from .structured import FEATURES, Lazy, assert_all_ways, assert_solves, parameters, said, write_out

RNG = np.random.default_rng(0)
COST = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [3.0, 1.0, 0.0]])
X = RNG.normal(size=(24, 3)) * (RNG.random((24, 3)) < 0.8)
Y = [("b", "a", "c")[k] for k in (X + 0.8 * RNG.normal(size=X.shape)).argmax(axis=1)]
KNOWN = {"dense": list, "array": np.asarray, "sparse": sp.csr_matrix, "sparse array": sp.csr_array}
KNOWN |= {"sparse lines": lambda X: [sp.csr_matrix(x) for x in X], "float32": lambda X: X.astype(np.float32)}


def labels(x, y=None):
    return ["a", "b", "c"]


def classes():
    return np.array(["abc".index(y) for y in Y])


@pytest.mark.parametrize("feature", FEATURES)
def test_certificates_enclose_the_reference_optimum(feature):
    assert_all_ways(lambda: Multiclass(cost=COST), X, Y, labels, feature)


@pytest.mark.parametrize("cost", [None, COST])
@pytest.mark.parametrize("form", KNOWN)
def test_equals_the_estimator(form, cost):
    model = StructuredSVM(Multiclass(cost=cost), C=0.5, tol=1e-7, random_state=0).fit(KNOWN[form](X), Y)
    peer = SVMClassifier(C=0.5, multi_class="crammer_singer", fit_intercept=False, class_loss=cost, tol=1e-7)
    peer.fit(X.astype(np.float32) if form == "float32" else X, Y)
    assert max(model.lower_bound_, peer.lower_bound_) <= min(model.upper_bound_, peer.upper_bound_)
    np.testing.assert_allclose(model.task.unpack(model.coef_).unary, peer.coef_, atol=1e-3)
    assert model.predict(KNOWN[form](X)) == peer.predict(X).tolist()
    assert model.score(KNOWN[form](X), Y) <= 1


@pytest.mark.parametrize("feature", ["plain", "prior with bounds"])
def test_slack_rescaling_is_certified(feature):
    task = Multiclass(cost=COST)
    task.initialize(X, Y)
    terms = said(feature, 9)
    model = StructuredSVM(
        task, C=0.5, rescaling="slack", tol=1e-5, max_iter=5000, random_state=0, **parameters(terms)
    )
    model.fit(X, Y)
    assert_solves(model, write_out(task, X, Y, labels, 0.5, "slack", **terms))
    shaped = {name: value.reshape(3, 3) for name, value in terms.items()}
    peer = solve(
        Problem.multiclass(X, classes(), class_loss=COST, rescaling="slack", cost=0.5, **parameters(shaped)), tol=1e-5
    )
    assert max(model.lower_bound_, peer.lower_bound) <= min(model.upper_bound_, peer.upper_bound)


@pytest.mark.parametrize("form", KNOWN)
def test_keeps_its_promises(form):
    examples = KNOWN[form](X[:5])
    inputs = [examples[[i]] for i in range(5)] if sp.issparse(examples) else examples
    check_task(Multiclass(cost=COST, labels="abc"), inputs, Y[:5], outputs=labels)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_labels=st.integers(1, 5), scale=st.sampled_from([1e-6, 1.0, 1e6]))
def test_searches_find_the_best(seed, n_labels, scale):
    rng = np.random.default_rng(seed)
    cost = rng.integers(0, 4, (n_labels, n_labels)) * (1 - np.eye(n_labels))
    task = Multiclass(cost=cost, labels=range(n_labels))
    inputs, own = rng.normal(size=(7, 4)), rng.integers(n_labels, size=7)
    task.initialize(inputs, own)
    w = scale * rng.normal(size=4 * n_labels)
    scores = np.array([[w[4 * k : 4 * k + 4] @ x for k in range(n_labels)] for x in inputs])
    found = task.encode(inputs, own).search(np.array([5, 2, 3]), w, 1)
    assert found.example.tolist() == [5, 2, 3]
    for k, i in enumerate([5, 2, 3]):
        augmented = scores[i] + cost[own[i]]
        assert found.value[k] == found.bound[k] == pytest.approx(augmented.max() - scores[i, own[i]])
        x = np.zeros(4 * n_labels)
        x[found.column[found.start[k] : found.start[k + 1]]] = found.x[found.start[k] : found.start[k + 1]]
        assert found.l[k] - x @ w == pytest.approx(found.value[k], abs=1e-9 * scale)
        assert task.inference(inputs[i], w) == scores[i].argmax()
        assert augmented[task.loss_augmented_inference(inputs[i], own[i], w)] == pytest.approx(augmented.max())
        slack = cost[own[i]] * (1 - scores[i, own[i]] + scores[i])
        assert slack[task.slack_inference(inputs[i], own[i], w)] == pytest.approx(slack.max())
    assert task.batch_inference(inputs, w) == scores.argmax(axis=1).tolist()


def test_joint_feature_lies_in_the_block_of_the_label():
    task = Multiclass(labels=["low", "high"])
    task.initialize([[1.0, 2.0]], ["low"])
    column, values = task.joint_feature([3.0, 0.0], "high")
    assert (column.tolist(), values.tolist()) == ([2], [3.0])
    parts = task.unpack(np.arange(4.0))
    assert parts.unary.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert parts.labels == ["low", "high"]


def test_labels_of_any_kind():
    kinds = [(1, "x"), None, 2.5]
    task = Multiclass(labels=[(1, "x"), "y", 2.5])
    model = StructuredSVM(task, C=100.0).fit(np.eye(3), [(1, "x"), "y", 2.5])
    assert model.predict(np.eye(3)) == [(1, "x"), "y", 2.5]
    with pytest.raises(ValueError, match="input 1 has no label: leave such examples out"):
        model.fit(np.eye(3), kinds)
    assert StructuredSVM(Multiclass(), C=100.0).fit(np.eye(3), np.arange(3)).predict(np.eye(3)) == [0, 1, 2]


@pytest.mark.parametrize("given_labels", [None, ["c", "b", "a"], np.array(["a", "b", "c"])])
@pytest.mark.parametrize("cost", [None, COST, COST.tolist()])
def test_save_and_load(tmp_path, cost, given_labels):
    model = StructuredSVM(Multiclass(cost, given_labels), random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    again = dualsvm.load(tmp_path / "model")
    assert again.predict(X) == model.predict(X)
    assert again.score(X, Y) == model.score(X, Y)
    assert again.fit(X, Y).coef_.tolist() == model.coef_.tolist()


def test_lazy_inputs():
    lazy = StructuredSVM(Multiclass(), tol=1e-6, random_state=0).fit(Lazy(X), Lazy(Y))
    held = StructuredSVM(Multiclass(), tol=1e-6, random_state=0).fit(X, Y)
    assert lazy.lower_bound_ <= held.upper_bound_
    assert held.lower_bound_ <= lazy.upper_bound_
    assert lazy.predict(Lazy(X)) == held.predict(X)


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: Multiclass(cost=np.eye(3)), "zeros on its diagonal"),
        (lambda: Multiclass(cost=np.ones((2, 3))), r"cost must be numbers of shape \(3, 3\)"),
        (lambda: Multiclass(labels="ab"), "output .* has the label 'c', which was not seen in training"),
    ],
)
def test_parameters_that_do_not_fit(fit, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(fit()).fit(X, Y)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (np.full((24, 3), np.nan), "contains NaN"),
        ([*X[:23], X[0, :2]], "every input must have 3 features, as the first has, got 2"),
        (X[:, None], r"an input must be a vector of features, got shape \(1, 3\)"),
        ([sp.csr_matrix((2, 3))] * 24, r"an input must be a vector of features, got shape \(2, 3\)"),
        (X[:23], "X and Y must have the same length, got 23 and 24"),
        (sp.csr_matrix(X[:23]), "X and Y must have the same length, got 23 and 24"),
    ],
)
def test_inputs_that_do_not_fit(inputs, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(Multiclass()).fit(inputs, Y)


def test_wrong_input_to_a_fitted_model():
    model = StructuredSVM(Multiclass()).fit(X, Y)
    with pytest.raises(ValueError, match="every input must have 3 features"):
        model.predict(np.ones((2, 4)))
    with pytest.raises(ValueError, match="y_hat has the label 'z'"):
        model.task.loss("a", "z")
    with pytest.raises(ValueError, match=r"w must have shape \(9,\)"):
        model.task.unpack(np.zeros(4))
    with pytest.raises(ValueError, match="does not know its labels yet"):
        Multiclass().encode(X)
