"""Certificates of fitted models: both bounds from the data alone, against the optimum of a reference QP."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import dualsvm
from dualsvm import Prior, SVMClassifier, SVMRegressor

from .estimators import TARGETS as REAL
from .estimators import THREE, TWO, WEIGHTS, D, N, X, objective, statements
from .reference import state

RNG = np.random.default_rng(5)
TABLE = [[0, 1, 2], [3, 0, 1], [1, 2, 0]]
KINDS = {
    "binary": (SVMClassifier(), TWO),
    "squared": (SVMClassifier(loss="squared_hinge", C=3.0), TWO),
    "balanced": (SVMClassifier(class_weight="balanced"), THREE),
    "crammer_singer": (SVMClassifier(), THREE),
    "slack": (SVMClassifier(class_loss=TABLE, rescaling="slack"), THREE),
    "ovr": (SVMClassifier(multi_class="ovr", loss="squared_hinge"), THREE),
    "prior": (SVMClassifier(prior=Prior(np.linspace(-1, 1, D), np.linspace(0.5, 2, D)), fit_intercept=False), TWO),
    "covariance": (SVMClassifier(prior=Prior(covariance=np.cov(RNG.normal(size=(D, 20)))), fit_intercept=False), TWO),
    "box": (SVMClassifier(lower=-0.1, upper=0.3, intercept_scaling=3.0), THREE),
    "boxed intercept": (SVMClassifier(lower=-0.1, upper=np.append(np.ones(D), 0.1), intercept_scaling=3.0), TWO),
    "regression": (SVMRegressor(epsilon=0.1), REAL),
    "squared regression": (SVMRegressor(loss="squared_epsilon_insensitive", C=2.0), REAL),
}
every_kind = pytest.mark.parametrize("kind", list(KINDS))


def made(kind):
    model, y = KINDS[kind]
    return clone(model).set_params(tol=1e-4, cache_mb=0.002, random_state=0), y


def chunks(y, rows=X, **more):
    return dualsvm.open_dataset(rows, target=y, chunk_rows=13, **more)


def assert_same(certificate, model):
    assert certificate.lower_bound == pytest.approx(model.lower_bound_, rel=1e-9)
    assert certificate.upper_bound == pytest.approx(model.upper_bound_, rel=1e-6 if single(model) else 1e-9)
    assert certificate.gap <= model.tol * (1 + 1e-6)


def single(model):
    return model.coef_.dtype == np.float32


@every_kind
@pytest.mark.parametrize("rows", [sp.csr_array(X), X.astype(np.float32)], ids=["sparse", "single"])
def test_what_the_fit_has_found(kind, rows, tmp_path):
    model, y = made(kind)
    for fit in (lambda: model.fit(rows, y), lambda: model.fit(chunks(y, rows))):
        fit().save(tmp_path / "model")
        loaded = dualsvm.load(tmp_path / "model")
        assert_same(loaded.certify(rows, y), model)
        assert_same(loaded.certify(chunks(y, rows)), model)


@pytest.mark.parametrize("ovr", [False, True])
def test_the_optimum_lies_between(ovr):
    problems = statements(X, THREE, ovr=ovr, cost=WEIGHTS)
    model = SVMClassifier(multi_class="ovr" if ovr else "crammer_singer", tol=0.1, cache_mb=0.0, random_state=0)
    model.fit(chunks(THREE, weight=WEIGHTS))
    for certificate in (model.certify(X, THREE, WEIGHTS), model.certify(chunks(THREE, weight=WEIGHTS))):
        optimum = sum(problem.optimum() for problem in problems)
        assert certificate.lower_bound <= optimum <= certificate.upper_bound
        assert certificate.upper_bound == pytest.approx(objective(model, problems))
        assert certificate.gap <= 0.1


def test_other_parameters_state_another_problem():
    """The bounds are those of what is asked about, not of what was fitted."""
    model = SVMRegressor(epsilon=0.1, random_state=0).fit(chunks(REAL)).set_params(C=0.2, epsilon=0.3)
    problem = state("regression", X, {"y": REAL, "epsilon": 0.3, "intercept": 1.0}, cost=0.2, loss="hinge")
    certificate = model.certify(X, REAL)
    assert certificate.lower_bound <= problem.optimum() <= certificate.upper_bound
    assert certificate.upper_bound == pytest.approx(objective(model, [problem]))


@pytest.mark.parametrize("fit", ["memory", "dataset"])
@pytest.mark.parametrize("kind", ["binary", "crammer_singer", "ovr", "regression", "box"])
def test_dual_variables_that_were_tampered_with(kind, fit):
    model, y = made(kind)
    (model.fit(X, y) if fit == "memory" else model.fit(chunks(y))).set_params(tol=1e-7)
    optimum = 0.5 * sum(clone(model).fit(X, y).certify(X, y)[:2])
    alpha = model._alpha.toarray()
    for forged in (100 * alpha, -alpha, alpha + 10, RNG.normal(size=alpha.shape), np.zeros_like(alpha)):
        model._alpha = sp.csr_array(forged)
        for certificate in (model.certify(X, y), model.certify(chunks(y))):
            assert certificate.lower_bound <= optimum * (1 + 1e-6) <= certificate.upper_bound * (1 + 2e-6)
    model._alpha = sp.csr_array(alpha)
    model.lower_bound_ = model.upper_bound_ = model.gap_ = 0.0
    assert model.certify(X, y).lower_bound > 0.9 * optimum


def test_weights_beyond_their_bounds():
    model = SVMClassifier(random_state=0).fit(X, TWO).set_params(upper=np.abs(X).mean() / 100)
    assert model.certify(X, TWO).upper_bound == np.inf
    assert model.certify(chunks(TWO)).upper_bound == np.inf


@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_unpenalized_intercept(shift):
    classes = SVMClassifier(fit_intercept="unpenalized", random_state=0).fit(X + shift, THREE)
    assert_same(classes.certify(X + shift, THREE), classes)
    real = SVMRegressor(fit_intercept="unpenalized", random_state=0).fit(X + shift, REAL + shift)
    assert_same(real.certify(X + shift, REAL + shift), real)
    with pytest.raises(ValueError, match="all rows at once"):
        classes.certify(chunks(THREE, X + shift))


@pytest.mark.parametrize(
    ("certify", "message"),
    [
        (lambda m: m.certify(X[:-1], TWO[:-1]), f"{N - 1} examples.*{N}"),
        (lambda m: m.certify(np.vstack([X, X]), np.append(TWO, TWO)), f"{2 * N} examples.*{N}"),
        (lambda m: m.certify(chunks(TWO[:-1], X[:-1])), f"{N - 1} examples.*{N}"),
        (lambda m: m.certify(chunks(np.append(TWO, TWO), np.vstack([X, X]))), f"examples.*{N}"),
        (lambda m: m.certify(X[:, :3], TWO), "3 features"),
        (lambda m: m.certify(chunks(TWO, X[:, :3])), "3 features.*4"),
        (lambda m: m.certify(X, THREE), "not among"),
        (lambda m: m.certify(chunks(THREE)), "not among"),
        (lambda m: m.certify(chunks(TWO), TWO), "itself"),
        (lambda m: m.certify(dualsvm.open_dataset(X)), "no targets"),
        (lambda m: m.certify(X, TWO, -WEIGHTS), "negative"),
        (lambda m: m.partial_fit(X, TWO).certify(X, TWO), "partial_fit"),
        (lambda m: m.partial_fit(X, TWO).certify(chunks(TWO)), "partial_fit"),
    ],
)
def test_what_cannot_be_certified(certify, message):
    with pytest.raises(ValueError, match=message):
        certify(SVMClassifier(random_state=0).fit(X, TWO))


def test_not_fitted():
    for model, y in KINDS.values():
        with pytest.raises(NotFittedError):
            clone(model).certify(X, y)
