"""The estimators reach the objective of liblinear, as scikit-learn wraps it, within the certified gap."""

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine, make_classification
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from dualsvm import SVMClassifier, SVMRegressor

POWER = {"hinge": 1, "squared_hinge": 2, "epsilon_insensitive": 1, "squared_epsilon_insensitive": 2}
TOL = 1e-4


def generated(return_X_y):
    return make_classification(400, 20, n_informative=8, n_classes=4, random_state=0)


BINARY = {"breast cancer": load_breast_cancer}
CLASSES = {"iris": load_iris, "wine": load_wine, "digits": load_digits, "generated": generated}


@cache
def scaled(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def tight(tol=1e-6):
    return {"dual": True, "tol": tol, "max_iter": 10**5, "random_state": 0}


def with_intercept(model, scaling):
    """The weights, those of the constant feature last."""
    return np.c_[np.atleast_2d(model.coef_), np.ravel(model.intercept_) / scaling]


def binary(X, sign, w, C, loss, scaling):
    scores = X @ w[:-1] + scaling * w[-1]
    return w @ w / 2 + (C * np.maximum(0, 1 - sign * scores) ** POWER[loss]).sum()


def one_each(X, y, W, C, loss, scaling):
    return sum(binary(X, np.where(y == c, 1, -1), w, C, loss, scaling) for c, w in enumerate(W))


def crammer_singer(X, y, W, C, scaling):
    scores, own = X @ W[:, :-1].T + scaling * W[:, -1], np.arange(len(y))
    worst = scores + 1
    worst[own, y] -= 1
    return (W**2).sum() / 2 + (C * (worst.max(axis=1) - scores[own, y])).sum()


def regression(X, y, w, C, loss, epsilon, scaling):
    slack = np.maximum(0, abs(y - X @ w[:-1] - scaling * w[-1]) - epsilon)
    return w @ w / 2 + (C * slack ** POWER[loss]).sum()


def assert_met(model, ours, peer, distance=TOL):
    """Our objective is the upper bound; the peer's lies above the lower bound, and close to it."""
    assert model.converged_
    assert model.gap_ <= TOL
    assert ours == pytest.approx(model.upper_bound_, rel=1e-9)
    assert peer >= model.lower_bound_ * (1 - 1e-12)
    assert peer <= model.upper_bound_ * (1 + distance)


@pytest.mark.parametrize("scaling", [1.0, 5.0])
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, loss, C, scaling):
    X, y = scaled(BINARY[name])
    sign = 2 * y - 1
    peer = LinearSVC(C=C, loss=loss, intercept_scaling=scaling, **tight()).fit(X, y)
    model = SVMClassifier(C, loss, intercept_scaling=scaling, tol=TOL, max_iter=10**5, random_state=0).fit(X, y)
    ours, theirs = (binary(X, sign, with_intercept(m, scaling)[0], C, loss, scaling) for m in (model, peer))
    assert_met(model, ours, theirs)
    apart = model.decision_function(X) - peer.decision_function(X)
    assert abs(apart).max() < 0.1 * abs(peer.decision_function(X)).max()


@pytest.mark.parametrize("weights", ["class_weight", "sample_weight"])
def test_weights_are_factors_on_c(weights):
    X, y = scaled(load_breast_cancer)
    rng = np.random.default_rng(0)
    each = rng.uniform(0, 2, len(y)) if weights == "sample_weight" else np.where(y == 1, 0.3, 2.0)
    given = {"class_weight": {0: 2.0, 1: 0.3}} if weights == "class_weight" else {}
    sample = {"sample_weight": each} if weights == "sample_weight" else {}
    peer = LinearSVC(C=0.1, loss="hinge", **given, **tight()).fit(X, y, **sample)
    model = SVMClassifier(0.1, tol=TOL, random_state=0, **given).fit(X, y, **sample)
    ours, theirs = (binary(X, 2 * y - 1, with_intercept(m, 1.0)[0], 0.1 * each, "hinge", 1.0) for m in (model, peer))
    assert_met(model, ours, theirs)


@pytest.mark.parametrize("C", [0.01, 0.1])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("name", CLASSES)
def test_one_against_the_rest(name, loss, C):
    X, y = scaled(CLASSES[name])
    peer = LinearSVC(C=C, loss=loss, **tight(1e-5)).fit(X, y)
    model = SVMClassifier(C, loss, multi_class="ovr", tol=TOL, max_iter=10**5, random_state=0).fit(X, y)
    ours, theirs = (one_each(X, y, with_intercept(m, 1.0), C, loss, 1.0) for m in (model, peer))
    assert_met(model, ours, theirs)


@pytest.mark.parametrize("scaling", [1.0, 3.0])
@pytest.mark.parametrize("C", [0.01, 0.1])
@pytest.mark.parametrize("name", CLASSES)
def test_crammer_singer(name, C, scaling):
    X, y = scaled(CLASSES[name])
    peer = LinearSVC(C=C, multi_class="crammer_singer", intercept_scaling=scaling, **tight(1e-5)).fit(X, y)
    model = SVMClassifier(C, intercept_scaling=scaling, tol=TOL, max_iter=10**5, random_state=0).fit(X, y)
    ours, theirs = (crammer_singer(X, y, with_intercept(m, scaling), C, scaling) for m in (model, peer))
    assert_met(model, ours, theirs)
    assert np.mean(model.predict(X) == peer.predict(X)) > 0.98


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_regression(loss, epsilon, C):
    X, y = scaled(load_diabetes)
    y = (y - y.mean()) / y.std() + 0.5
    peer = LinearSVR(C=C, loss=loss, epsilon=epsilon, **tight()).fit(X, y)
    model = SVMRegressor(C, loss, epsilon=epsilon, tol=TOL, max_iter=10**5, random_state=0).fit(X, y)
    ours, theirs = (regression(X, y, with_intercept(m, 1.0)[0], C, loss, epsilon, 1.0) for m in (model, peer))
    assert_met(model, ours, theirs)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_bounds_hold_of_whatever_a_peer_finds(loss):
    """Far from the optimum, too: after one pass our lower bound is below any objective of the peer's."""
    X, y = scaled(load_breast_cancer)
    for C in (1e-4, 1e-2, 1.0):
        rough = SVMClassifier(C, loss, tol=1.0, random_state=0).fit(X, y)
        peer = LinearSVC(C=C, loss=loss, **tight(1e-5)).fit(X, y)
        theirs = binary(X, 2 * y - 1, with_intercept(peer, 1.0)[0], C, loss, 1.0)
        assert rough.lower_bound_ <= theirs
        assert rough.upper_bound_ >= theirs * (1 - 1e-4)
