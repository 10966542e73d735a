"""Learning on: partial_fit, and fits that start from the last."""

import numpy as np
import pytest
from sklearn.base import clone

from dualsvm import SVMClassifier, SVMRanker, SVMRegressor

from .estimators import (
    GRADES,
    KINDS,
    QID,
    TARGETS,
    THREE,
    TWO,
    WEIGHTS,
    D,
    N,
    X,
    assert_certified,
    assert_overlap,
    every_kind,
    statements,
    weights,
)
from .reference import state

UNIT = 2.0
HALVES = np.arange(N) < 25, np.arange(N) >= 25


def classifier(form, **more):
    multi_class = "ovr" if form == "ovr" else "crammer_singer"
    return SVMClassifier(multi_class=multi_class, tol=1e-9, intercept_scaling=UNIT, random_state=0, **more)


# parts of a stream


@pytest.mark.parametrize("form", ["binary", "crammer_singer", "ovr"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_what_was_learned_is_the_prior_of_the_next_part(form, loss, first):
    y = TWO if form == "binary" else THREE
    one, two = HALVES
    model = classifier(form, loss=loss, C=0.5)
    if first == "fit":
        model.fit(X[one], y[one], sample_weight=WEIGHTS[one])
    else:
        model.partial_fit(X[one], y[one], classes=np.unique(y), sample_weight=WEIGHTS[one])
    mean = weights(model, UNIT)
    model.partial_fit(X[two], y[two], sample_weight=WEIGHTS[two], margin=0.8)
    common = {"cost": 0.5 * WEIGHTS[two], "loss": loss, "intercept": UNIT, "margin": 0.8}
    if form == "ovr":
        problems = [statements(X[two], np.where(y[two] == c, 1, -1), mean=mean[c], **common)[0] for c in range(3)]
    else:
        problems = statements(X[two], y[two], mean=mean, **common)
    model.tol = 1e-4  # the mean is known to a few digits only
    assert_certified(model, problems, UNIT, rel=1e-4)


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_a_stream_of_targets(first):
    one, two = HALVES
    model = SVMRegressor(epsilon=0.1, tol=1e-9, intercept_scaling=UNIT, random_state=0)
    getattr(model, first)(X[one], TARGETS[one])
    mean = weights(model, UNIT)
    model.partial_fit(X[two], TARGETS[two], sample_weight=WEIGHTS[two])
    own = {"y": TARGETS[two], "epsilon": 0.1, "intercept": UNIT}
    problem = state("regression", X[two], own, cost=WEIGHTS[two], loss="hinge", mean=mean)
    model.tol = 1e-4
    assert_certified(model, [problem], UNIT, rel=1e-4)


@pytest.mark.parametrize("slack", ["pair", "query"])
def test_a_stream_of_queries(slack):
    one, two = QID < 5, QID >= 5
    model = SVMRanker(slack=slack, tol=1e-9, random_state=0).partial_fit(X[one], GRADES[one], qid=QID[one])
    mean = model.coef_.copy()
    model.partial_fit(X[two], GRADES[two], qid=QID[two])
    rows = np.flatnonzero(two)
    pairs = [(i, j) for i in rows for j in rows if QID[i] == QID[j] and GRADES[i] > GRADES[j]]
    problem = state("ranking", X, {"pairs": pairs, "margin": 1.0}, cost=1.0, loss="hinge", mean=mean)
    model.tol = 1e-4
    assert_certified(model, [problem], 0.0, rel=1e-4)


@every_kind
def test_the_first_part_is_a_fit(kind):
    model, y, fit_params = KINDS[kind]
    more = {"classes": np.unique(y)} if isinstance(model, SVMClassifier) else {}
    one = clone(model).partial_fit(X, y, **more, **fit_params)
    other = clone(model).fit(X, y, **fit_params)
    assert_overlap(one, other)
    np.testing.assert_array_equal(one.coef_, other.coef_)


@every_kind
def test_a_stream_is_learned(kind):
    model, y, fit_params = KINDS[kind]
    more = {"classes": np.unique(y)} if isinstance(model, SVMClassifier) else {}
    model, whole = clone(model), clone(model).fit(X, y, **fit_params)
    for _ in range(5):
        for part in (QID < 3, (QID >= 3) & (QID < 6), QID >= 6):
            model.partial_fit(X[part], y[part], **more, **{k: v[part] for k, v in fit_params.items()})
            assert model.converged_
    assert model.score(X, y, **fit_params) > whole.score(X, y, **fit_params) - 0.15


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_what_was_learned_within_bounds_is_the_prior_of_the_next_part(first):
    one, two = HALVES
    model = SVMRegressor(lower=-0.1, upper=0.1, tol=1e-9, intercept_scaling=UNIT, random_state=0)
    getattr(model, first)(X[one], TARGETS[one])
    mean = weights(model, UNIT)
    model.partial_fit(X[two], TARGETS[two])
    own = {"y": TARGETS[two], "epsilon": 0.0, "intercept": UNIT}
    limit = np.append(np.full(D, 0.1), np.inf)
    problem = state("regression", X[two], own, cost=1.0, loss="hinge", mean=mean, lower=-limit, upper=limit)
    model.tol = 1e-4
    assert_certified(model, [problem], UNIT, rel=1e-4)


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_bounds_hold_in_a_stream(multi_class):
    model = SVMClassifier(lower=-0.1, upper=[0.2] * D + [0.5], multi_class=multi_class, random_state=0)
    for part in HALVES:
        model.partial_fit(X[part], THREE[part], classes=[0, 1, 2])
        assert model.coef_.min() >= -0.1
        assert model.coef_.max() <= 0.2
        assert model.intercept_.max() <= 0.5


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_a_part_may_lack_a_class(multi_class):
    names = np.array(["a", "b", "c"])
    model = SVMClassifier(multi_class=multi_class, class_weight={"a": 2.0}, random_state=0)
    for c in range(3):
        some = c != THREE
        model.partial_fit(X[some], names[THREE[some]], classes=["c", "b", "a"])
        assert model.classes_.tolist() == ["a", "b", "c"]
        assert model.coef_.shape == (3, D)
        assert model.n_support_.shape == (3,)
        assert model.n_support_[c] == 0
    assert model.score(X, names[THREE]) > 0.5


def test_a_part_with_one_class_only():
    model = SVMClassifier(random_state=0).partial_fit(X, TWO, classes=[0, 1])
    before = model.decision_function(X[TWO == 1]).mean()
    model.partial_fit(X[TWO == 1], TWO[TWO == 1])
    assert model.decision_function(X[TWO == 1]).mean() > before


def test_unknown_classes():
    model = SVMClassifier(random_state=0).partial_fit(X, TWO, classes=[0, 1])
    before = model.predict(X)
    with pytest.raises(ValueError, match=r"y holds classes that are not among \[0, 1\]: \[2\]"):
        model.partial_fit(X, THREE)
    np.testing.assert_array_equal(model.predict(X), before)


def test_the_first_part_must_name_the_classes():
    with pytest.raises(ValueError, match="classes must be given in the first call of partial_fit"):
        SVMClassifier().partial_fit(X, TWO)


def test_a_single_class_is_too_few():
    with pytest.raises(ValueError, match=r"classes must name at least 2 classes, got \[1\]"):
        SVMClassifier().partial_fit(X[TWO == 1], TWO[TWO == 1], classes=[1, 1])


def test_classes_must_stay():
    model = SVMClassifier(random_state=0).partial_fit(X, TWO, classes=[0, 1])
    with pytest.raises(ValueError, match=r"classes must stay those of the first call, \[0, 1\], got \[0, 1, 2\]"):
        model.partial_fit(X, TWO, classes=[0, 1, 2])
    model.partial_fit(X, TWO, classes=[1, 0])


def test_balanced_weights_need_all_examples():
    with pytest.raises(ValueError, match="class_weight='balanced' needs all examples at once"):
        SVMClassifier(class_weight="balanced").partial_fit(X, TWO, classes=[0, 1])


@every_kind
def test_another_number_of_features(kind):
    model, y, fit_params = KINDS[kind]
    model = clone(model).fit(X, y, **fit_params)
    before = model.predict(X)
    with pytest.raises(ValueError, match=f"X has {2 * D} features, but SVM.* is expecting {D} features"):
        model.partial_fit(np.hstack([X, X]), y, **fit_params)
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_first_part_that_fails_commits_to_nothing():
    model = SVMClassifier(random_state=0)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(X * np.nan, TWO, classes=[0, 1])
    model.partial_fit(np.hstack([X, X]), THREE, classes=[0, 1, 2])
    assert model.coef_.shape == (3, 2 * D)


@pytest.mark.parametrize("change", [{"intercept_scaling": 5.0}, {"fit_intercept": "unpenalized"}], ids=str)
@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_the_intercept_is_kept_when_its_terms_change(change, first):
    model = SVMRegressor(C=0.1, tol=1e-9, random_state=0)
    getattr(model, first)(X, TARGETS)
    before = model.predict(X)
    model.set_params(epsilon=100.0, **change).partial_fit(X, TARGETS)  # all errors are free: nothing is learned
    assert model.predict(X) == pytest.approx(before, abs=1e-3)


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_a_stream_that_gives_up_its_intercept(first):
    model = SVMRegressor(random_state=0)
    getattr(model, first)(X, TARGETS)
    model.set_params(fit_intercept=False).partial_fit(X, TARGETS)
    assert model.intercept_ == 0
    assert model.converged_


# starting from the last fit


@every_kind
def test_warm_start_finds_the_same_optimum_sooner(kind):
    template, y, fit_params = KINDS[kind]
    visits = {"warm": 0, "cold": 0}
    for seed in range(4):
        model = clone(template).set_params(warm_start=True, tol=1e-6, max_iter=10**5, random_state=seed)
        model.fit(X, y, **fit_params).set_params(C=1.1).fit(X, y, **fit_params)
        cold = clone(model).set_params(warm_start=False).fit(X, y, **fit_params)
        assert_overlap(model, cold)
        visits["warm"] += sum(r.explored for r in model.history_)
        visits["cold"] += sum(r.explored for r in cold.history_)
    assert visits["warm"] < visits["cold"]


@every_kind
def test_a_second_fit_of_the_same_is_done_at_once(kind):
    model, y, fit_params = KINDS[kind]
    model = clone(model).set_params(warm_start=True).fit(X, y, **fit_params)
    bounds = model.lower_bound_, model.upper_bound_
    model.fit(X, y, **fit_params)
    assert model.n_iter_ == 0
    assert model.lower_bound_ >= bounds[0] * (1 - 1e-9)
    assert model.upper_bound_ == pytest.approx(bounds[1], rel=1e-9)


CHANGES = {
    "more features": lambda X, y: (np.hstack([X, X**2]), y),
    "fewer features": lambda X, y: (X[:, 1:], y),
    "fewer rows": lambda X, y: (X[:30], y[:30]),
    "more rows": lambda X, y: (np.vstack([X, X + 0.1]), np.concatenate([y, y])),
    "single precision": lambda X, y: (X.astype(np.float32), y),
    "reversed": lambda X, y: (X[::-1], y[::-1]),
}


@every_kind
@pytest.mark.parametrize("change", list(CHANGES))
def test_warm_start_on_other_data(kind, change):
    model, y, fit_params = KINDS[kind]
    model = clone(model).set_params(warm_start=True).fit(X, y, **fit_params)
    data, targets = CHANGES[change](X, y)
    more = {k: np.resize(v, len(targets)) for k, v in fit_params.items()}
    model.fit(data, targets, **more)
    cold = clone(model).set_params(warm_start=False).fit(data, targets, **more)
    assert_overlap(model, cold)
    assert model.coef_.shape == cold.coef_.shape


@pytest.mark.parametrize(
    "change",
    [
        {"multi_class": "ovr"},
        {"loss": "squared_hinge"},
        {"class_loss": 2.0 * (1 - np.eye(3)), "rescaling": "slack"},
        {"fit_intercept": False},
        {"fit_intercept": "unpenalized"},
        {"intercept_scaling": 3.0},
        {"lower": 0.0},
        {"class_weight": {0: 0.0}},
    ],
    ids=str,
)
def test_warm_start_with_other_parameters(change):
    model = SVMClassifier(warm_start=True, random_state=0).fit(X, THREE)
    model.set_params(**change).fit(X, THREE)
    cold = clone(model).fit(X, THREE)
    assert_overlap(model, cold)


@pytest.mark.parametrize("other", [TWO, THREE + 1, np.array(["a", "b", "c"])[THREE], QID], ids=str)
@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_warm_start_with_other_classes(other, multi_class):
    model = SVMClassifier(warm_start=True, multi_class=multi_class, random_state=0).fit(X, THREE)
    model.fit(X, other)
    assert_overlap(model, clone(model).fit(X, other))
    assert model.classes_.tolist() == np.unique(other).tolist()


def test_without_warm_start_the_last_fit_does_not_matter():
    model = SVMClassifier(random_state=0).fit(X, TWO)
    first = model.coef_.copy()
    np.testing.assert_array_equal(model.set_params(C=10.0).fit(X, TWO).set_params(C=1.0).fit(X, TWO).coef_, first)
