"""SVMRegressor: its problem, against the same written out."""

import numpy as np
import pytest
from sklearn.svm import SVR, LinearSVR

from dualsvm import SVMRegressor

from .estimators import TARGETS, WEIGHTS, D, N, X, assert_certified, assert_overlap, objective
from .reference import state

LOSSES = {"epsilon_insensitive": "hinge", "squared_epsilon_insensitive": "squared_hinge"}
both_losses = pytest.mark.parametrize("loss", list(LOSSES))


def make(**more):
    return SVMRegressor(tol=1e-6, random_state=0).set_params(**more)


def written_out(loss, y=TARGETS, X=X, epsilon=0.0, cost=1.0, intercept=1.0, **more):
    own = {"y": y, "epsilon": epsilon, "intercept": intercept}
    return [state("regression", X, own, cost=cost, loss=LOSSES[loss], **more)]


def free(loss, **more):
    """Next to no penalty on the intercept, which is small here."""
    return written_out(loss, variance=np.append(np.ones(D), 1e8), **more)


@both_losses
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("intercept", [0.0, 1.0, 3.0])
def test_bounds_bracket_the_optimum(loss, epsilon, intercept):
    model = make(loss=loss, epsilon=epsilon, C=0.6, fit_intercept=intercept > 0)
    model.set_params(intercept_scaling=intercept or 1.0).fit(X, TARGETS)
    assert_certified(model, written_out(loss, epsilon=epsilon, cost=0.6, intercept=intercept), intercept)
    assert model.coef_.shape == (D,)
    assert np.shape(model.intercept_) == ()


@both_losses
def test_weights(loss):
    model = make(loss=loss, epsilon=0.1, C=0.5).fit(X, TARGETS, sample_weight=WEIGHTS)
    assert_certified(model, written_out(loss, epsilon=0.1, cost=0.5 * WEIGHTS))


@both_losses
@pytest.mark.parametrize("fit_intercept", [True, "unpenalized"])
def test_a_weight_of_k_is_k_copies(loss, fit_intercept):
    times = np.arange(N) % 4
    rows = np.repeat(np.arange(N), times)
    one, other = (make(loss=loss, epsilon=0.1, fit_intercept=fit_intercept) for _ in range(2))
    one.fit(X, TARGETS, sample_weight=times)
    other.fit(X[rows], TARGETS[rows])
    if fit_intercept is True:
        assert_overlap(one, other)
    assert one.predict(X) == pytest.approx(other.predict(X), abs=2e-2)


@both_losses
def test_the_optimum_of_liblinear(loss):
    other = LinearSVR(loss=loss, epsilon=0.1, tol=1e-10, max_iter=10**6, random_state=0, dual=True).fit(X, TARGETS)
    model = make(loss=loss, epsilon=0.1, tol=1e-9).fit(X, TARGETS)
    theirs = objective(other, written_out(loss, epsilon=0.1))
    assert model.lower_bound_ <= theirs
    assert model.upper_bound_ <= theirs * (1 + 1e-9)


def test_errors_within_epsilon_are_free():
    model = make(epsilon=100.0).fit(X, TARGETS)
    assert model.upper_bound_ == 0
    assert not model.coef_.any()
    assert model.n_support_ == 0


def test_predictions_are_those_of_the_weights():
    model = make(intercept_scaling=3.0).fit(X, TARGETS)
    new = np.random.default_rng(1).normal(size=(20, D))
    assert model.predict(new) == pytest.approx(new @ model.coef_ + model.intercept_, rel=1e-12)
    residual, spread = TARGETS - model.predict(X), TARGETS - TARGETS.mean()
    assert model.score(X, TARGETS) == pytest.approx(1 - residual @ residual / (spread @ spread))


@both_losses
def test_dual_coefficients_make_the_weights(loss):
    model = make(loss=loss, epsilon=0.3, tol=1e-12, intercept_scaling=2.0).fit(X, TARGETS)
    assert model.dual_coef_.shape == (1, N)
    assert (model.dual_coef_ @ X)[0] == pytest.approx(model.coef_, abs=1e-4)
    assert model.dual_coef_.sum() * 4 == pytest.approx(model.intercept_, abs=1e-4)
    assert model.n_support_ == np.count_nonzero(model.dual_coef_.toarray())
    assert 0 < model.n_support_ < N


# an intercept that is not penalised


@both_losses
def test_unpenalized_intercept(loss):
    model = make(loss=loss, epsilon=0.1, fit_intercept="unpenalized", tol=1e-5).fit(X, TARGETS)
    problems = free(loss, epsilon=0.1)
    assert objective(model, problems) == pytest.approx(problems[0].optimum(), rel=1e-3)
    assert model.upper_bound_ >= problems[0].optimum() * (1 - 1e-6)


def test_unpenalized_as_in_libsvm():
    other = SVR(kernel="linear", epsilon=0.1, tol=1e-9).fit(X, TARGETS)
    model = make(epsilon=0.1, fit_intercept="unpenalized").fit(X, TARGETS)
    ours, theirs = (objective(m, free("epsilon_insensitive", epsilon=0.1)) for m in (model, other))
    assert ours == pytest.approx(theirs, rel=1e-4)


@both_losses
@pytest.mark.parametrize("far", [1e5, -1e5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_unpenalized_with_targets_far_away(loss, far, dtype):
    # near 1e5 the numbers of single precision lie 0.008 apart
    single = dtype is np.float32
    model = make(loss=loss, epsilon=0.1, fit_intercept="unpenalized", tol=1e-2 if single else 1e-4)
    there = model.fit(X.astype(dtype), TARGETS + far)
    assert there.converged_
    coef = np.append(there.coef_.astype(np.float64), float(there.intercept_) - far)
    (problem,) = free(loss, epsilon=0.1)
    assert problem.primal(coef) == pytest.approx(problem.optimum(), rel=3e-2 if single else 1e-3)


@pytest.mark.parametrize("y", [np.full(N, 3.0), np.zeros(N)], ids=["constant", "zeros"])
@pytest.mark.parametrize("fit_intercept", [True, "unpenalized"])
def test_constant_targets(y, fit_intercept):
    model = make(C=100.0, fit_intercept=fit_intercept).fit(X, y)
    assert model.converged_
    assert model.predict(X) == pytest.approx(y, abs=1.0)


# what cannot be


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", None, "L1"])
def test_unknown_loss(loss):
    with pytest.raises(ValueError, match=rf"loss must be one of 'epsilon_insensitive', .*got {loss!r}"):
        make(loss=loss).fit(X, TARGETS)


@pytest.mark.parametrize("epsilon", [-0.1, np.nan, np.inf, "0.1", None])
def test_impossible_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon must"):
        make(epsilon=epsilon).fit(X, TARGETS)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_targets_that_are_no_numbers(bad):
    y = TARGETS.copy()
    y[3] = bad
    with pytest.raises(ValueError, match=r"y contains (NaN|infinity)"):
        make().fit(X, y)
