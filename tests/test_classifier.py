"""SVMClassifier: its problems, against the same written out, and its attributes."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import SVC, LinearSVC

from dualsvm import Prior, SVMClassifier

from .estimators import (
    THREE,
    TWO,
    WEIGHTS,
    D,
    N,
    X,
    assert_certified,
    assert_overlap,
    objective,
    statements,
    time_limit,
)

TABLE = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 2.0], [1.0, 1.5, 0.0]])
LABELS = {"binary": TWO, "crammer_singer": THREE, "ovr": THREE}
every_form = pytest.mark.parametrize("form", list(LABELS))
both_losses = pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])


def make(form="crammer_singer", **more):
    return SVMClassifier(multi_class="ovr" if form == "ovr" else "crammer_singer", random_state=0).set_params(
        **{"tol": 1e-6} | more
    )


# the problems


@every_form
@both_losses
@pytest.mark.parametrize(("fit_intercept", "scaling"), [(False, 1.0), (True, 1.0), (True, 5.0)])
def test_bounds_bracket_the_optimum(form, loss, fit_intercept, scaling):
    model = make(form, C=0.7, loss=loss, fit_intercept=fit_intercept, intercept_scaling=scaling)
    model.fit(X, y := LABELS[form])
    intercept = scaling if fit_intercept else 0.0
    problems = statements(X, y, ovr=form == "ovr", cost=0.7, loss=loss, intercept=intercept)
    assert_certified(model, problems, intercept)
    assert fit_intercept or not model.intercept_.any()


@every_form
@both_losses
def test_weights_classes_and_margins(form, loss):
    y, margin = LABELS[form], np.linspace(0.5, 2.0, N)
    by_class = {0: 2.0, 1: 0.5, 2: 1.5}
    model = make(form, C=0.3, loss=loss, class_weight={c: by_class[c] for c in np.unique(y)})
    model.fit(X, y, sample_weight=WEIGHTS, margin=margin)
    cost = 0.3 * WEIGHTS * np.array([by_class[c] for c in y])
    assert_certified(model, statements(X, y, ovr=form == "ovr", cost=cost, loss=loss, margin=margin))


@every_form
def test_balanced_classes(form):
    y = LABELS[form]
    count = np.bincount(y)
    cost = (N / (len(count) * count))[y]
    model = make(form, class_weight="balanced").fit(X, y)
    assert_certified(model, statements(X, y, ovr=form == "ovr", cost=cost))


def test_one_margin_for_all_examples():
    assert_certified(make().fit(X, THREE, margin=2.5), statements(X, THREE, margin=2.5))


@both_losses
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_class_loss(loss, rescaling):
    margin = np.linspace(0.5, 2.0, N)
    model = make(class_loss=TABLE, loss=loss, rescaling=rescaling).fit(X, THREE, margin=margin)
    assert_certified(model, statements(X, THREE, loss=loss, table=TABLE, rescaling=rescaling, margin=margin))


@both_losses
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_class_loss_of_two_classes(loss, rescaling, multi_class):
    # max(0, loss - y w.x), or loss * max(0, 1 - y w.x)
    price = np.where(TWO == 0, 3.0, 0.5)
    scaled = {"margin": price} if rescaling == "margin" else {"cost": price**2 if "squared" in loss else price}
    model = make(loss=loss, rescaling=rescaling, multi_class=multi_class, class_loss=[[0, 3], [0.5, 0]])
    assert_certified(model.fit(X, TWO), statements(X, TWO, loss=loss, **scaled))


@both_losses
def test_the_optimum_of_liblinear(loss):
    other = LinearSVC(loss=loss, tol=1e-10, max_iter=10**6, C=0.7, random_state=0).fit(X, TWO)
    model = make(loss=loss, C=0.7, tol=1e-9).fit(X, TWO)
    assert model.coef_ == pytest.approx(other.coef_, abs=1e-3)
    theirs = objective(other, statements(X, TWO, cost=0.7, loss=loss))
    assert model.lower_bound_ <= theirs
    assert model.upper_bound_ <= theirs * (1 + 1e-9)


# integer weights


@every_form
@both_losses
def test_a_weight_of_k_is_k_copies(form, loss):
    y, times, margin = LABELS[form], np.arange(N) % 4, np.linspace(0.5, 2.0, N)
    one = make(form, loss=loss, class_weight={0: 2.0}).fit(X, y, sample_weight=times, margin=margin)
    rows = np.repeat(np.arange(N), times)
    other = make(form, loss=loss, class_weight={0: 2.0}).fit(X[rows], y[rows], margin=margin[rows])
    assert_overlap(one, other)
    assert one.coef_ == pytest.approx(other.coef_, abs=1e-2)


# labels and predictions


@pytest.mark.parametrize(
    "names",
    [
        np.array([-7, 3, 1000]),
        np.array([0.5, 1.0, 4.0]) * 2,
        np.array(["a", "bb", "c"]),
        np.array(["a", "bb", "c"], dtype=object),
    ],
    ids=lambda names: str(names.dtype),
)
@pytest.mark.parametrize("form", ["crammer_singer", "ovr"])
def test_labels_come_back_as_they_were_given(names, form):
    y = names[THREE]
    model, plain = make(form).fit(X, y), make(form).fit(X, THREE)
    assert model.classes_.tolist() == names.tolist()
    assert model.classes_.dtype == names.dtype
    assert model.predict(X).dtype == names.dtype
    np.testing.assert_array_equal(model.predict(X), names[plain.predict(X)])
    np.testing.assert_array_equal(model.coef_, plain.coef_)


@pytest.mark.parametrize("names", [[False, True], ["no", "yes"], [-1, 1]])
def test_two_labels_come_back_as_they_were_given(names):
    y = np.array(names)[TWO]
    model = make().fit(X, y)
    assert model.predict(X).dtype == y.dtype
    np.testing.assert_array_equal(model.predict(X), y[TWO.argsort()][[0, -1]][(model.decision_function(X) > 0) * 1])
    assert model.score(X, y) > 0.7


def test_labels_in_a_list():
    names = ["x", "y", "z"]
    np.testing.assert_array_equal(
        make().fit(X.tolist(), [names[c] for c in THREE]).predict(X.tolist()),
        np.array(names)[make().fit(X, THREE).predict(X)],
    )


@every_form
def test_scores_and_predictions_are_those_of_the_weights(form):
    model = make(form, intercept_scaling=3.0, tol=1e-3).fit(X, y := LABELS[form])
    new = np.random.default_rng(1).normal(size=(20, D))
    scores = model.decision_function(new)
    expected = new @ model.coef_.T + model.intercept_
    if form == "binary":
        assert scores.shape == (20,)
        assert scores == pytest.approx(expected[:, 0], rel=1e-12)
        np.testing.assert_array_equal(model.predict(new), expected[:, 0] > 0)
    else:
        assert scores.shape == (20, 3)
        assert scores == pytest.approx(expected, rel=1e-12)
        np.testing.assert_array_equal(model.predict(new), expected.argmax(axis=1))
    assert model.score(X, y) == np.mean(model.predict(X) == y)


# what the examples count


@every_form
@both_losses
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_dual_coefficients_make_the_weights(form, loss, fit_intercept):
    model = make(form, loss=loss, fit_intercept=fit_intercept, intercept_scaling=2.0, tol=1e-12)
    model.fit(X, y := LABELS[form])
    assert model.dual_coef_.shape == (1 if form == "binary" else 3, N)
    assert model.dual_coef_ @ X == pytest.approx(model.coef_, abs=1e-4)
    if fit_intercept:
        assert model.dual_coef_.sum(axis=1) * 4 == pytest.approx(model.intercept_, abs=1e-4)
    counts = (np.abs(model.dual_coef_.toarray()) > 0).any(axis=0)
    assert model.n_support_.tolist() == [np.sum(counts & (y == c)) for c in np.unique(y)]


def test_examples_beyond_the_margin_do_not_count():
    x = np.array([[-3.0], [-1.0], [1.0], [5.0], [9.0]])
    model = make(C=10.0, tol=1e-10, fit_intercept=False).fit(x, [0, 0, 1, 1, 1])
    assert model.coef_ == pytest.approx(1.0, abs=1e-4)
    assert set(model.dual_coef_.nonzero()[1].tolist()) <= {1, 2}
    assert model.n_support_.sum() in (1, 2)


# an intercept that is not penalised


def free(X, y, **more):
    """Return the problems with next to no penalty on the intercept; the intercepts are small here."""
    k = len(np.unique(y))
    variance = np.ones((1 if k == 2 or more.get("ovr") else k, X.shape[1] + 1))
    variance[:, -1] = 1e8
    return statements(X, y, variance=variance.ravel(), **more)


@every_form
@both_losses
@pytest.mark.parametrize("scaling", [1.0, 3.0])
def test_unpenalized_intercept(form, loss, scaling):
    y = LABELS[form]
    model = make(form, loss=loss, fit_intercept="unpenalized", intercept_scaling=scaling, tol=1e-5).fit(X, y)
    problems = free(X, y, ovr=form == "ovr", loss=loss)
    optimum = sum(problem.optimum() for problem in problems)
    assert model.converged_
    # the very wide prior that stands for none costs a little
    assert objective(model, problems) == pytest.approx(optimum, rel=1e-3)
    assert objective(model, problems) >= optimum * (1 - 1e-6)
    assert model.upper_bound_ >= optimum * (1 - 1e-6)
    assert model.lower_bound_ == pytest.approx(optimum, rel=1e-3)


def test_unpenalized_as_in_libsvm():
    other = SVC(kernel="linear", tol=1e-9).fit(X, TWO)
    model = make(fit_intercept="unpenalized").fit(X, TWO)
    ours, theirs = (objective(m, free(X, TWO)) for m in (model, other))
    assert ours == pytest.approx(theirs, rel=1e-4)


@every_form
@both_losses
def test_unpenalized_does_not_care_where_the_data_lie(form, loss):
    y = LABELS[form]
    model = make(form, loss=loss, fit_intercept="unpenalized", tol=1e-3, max_iter=2000)
    here, there = clone(model).fit(X, y), clone(model).fit(X + 100.0, y)
    assert here.converged_
    assert there.converged_
    there.intercept_ = there.intercept_ + 100.0 * there.coef_.sum(axis=1)  # as if the data were here
    problems = free(X, y, ovr=form == "ovr", loss=loss)
    assert objective(there, problems) == pytest.approx(objective(here, problems), rel=3e-3)


def test_a_penalised_intercept_does_care():
    here, there = (make(max_iter=10**6, tol=1e-3).fit(X + shift, TWO) for shift in (0.0, 5.0))
    assert there.lower_bound_ > here.upper_bound_


@pytest.mark.parametrize("form", ["binary", "crammer_singer"])
@pytest.mark.parametrize("tol", [0.0, 1e-8])
@pytest.mark.filterwarnings("ignore:not converged")
def test_unpenalized_ends_where_rounding_does(form, tol):
    model = make(form, fit_intercept="unpenalized", tol=tol, max_iter=1000)
    with time_limit(5):
        model.fit(X, LABELS[form])
    assert model.gap_ < 1e-6


def test_unpenalized_with_prior_and_bounds_of_the_coefficients():
    prior, lower = Prior(mean=0.5, variance=[1.0, 2.0, 0.5, 1.0]), [0.0, -0.1, 0.2, -np.inf]
    model = make(fit_intercept="unpenalized", prior=prior, lower=lower, tol=1e-5).fit(X, TWO)
    (problem,) = statements(
        X, TWO, mean=np.array([0.5] * 4 + [0]), variance=np.array([1, 2, 0.5, 1, 1e8]), lower=[*lower, -np.inf]
    )
    assert objective(model, [problem]) == pytest.approx(problem.optimum(), rel=1e-3)


def test_unpenalized_with_covariance():
    A = np.random.default_rng(3).normal(size=(D, D))
    S = A @ A.T + np.eye(D)
    model = make(fit_intercept="unpenalized", prior=Prior(covariance=S), tol=1e-5).fit(X, TWO)
    full = np.eye(D + 1) * 1e8
    full[:D, :D] = S
    (problem,) = statements(X, TWO, covariance=full)
    assert objective(model, [problem]) == pytest.approx(problem.optimum(), rel=1e-3)
