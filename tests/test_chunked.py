"""Estimators that learn from datasets in chunks: the optimum of a reference QP, with next to nothing in memory."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning

import dualsvm
from dualsvm import Prior, SVMClassifier, SVMRegressor

from .estimators import TARGETS as REAL
from .estimators import THREE, TWO, WEIGHTS, D, N, X, assert_certified, assert_overlap, statements
from .reference import state

STORAGES = {"dense": np.asarray, "sparse": sp.csr_array}
CACHES = [0.0, 0.002, 1.0]  # of 45 rows: none, about ten, all
RNG = np.random.default_rng(3)
MANY = RNG.normal(size=(600, 6))
NOISY = np.where(RNG.random(600) < 0.2, -1, 1) * np.sign(MANY[:, 0] + 0.3 * RNG.normal(size=600)).astype(int)


def chunks(y, rows=X, chunk_rows=7, **more):
    return dualsvm.open_dataset(rows, target=y, chunk_rows=chunk_rows, **more)


@pytest.mark.parametrize("cache_mb", CACHES)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("y", "ovr"), [(TWO, False), (THREE, False), (THREE, True)])
def test_classes(y, ovr, loss, storage, cache_mb):
    multi_class = "ovr" if ovr else "crammer_singer"
    model = SVMClassifier(loss=loss, multi_class=multi_class, tol=1e-5, cache_mb=cache_mb, random_state=0)
    model.fit(chunks(y, STORAGES[storage](X)))
    assert_certified(model, statements(X, y, ovr=ovr, loss=loss))
    assert model.n_support_.sum() <= N
    np.testing.assert_allclose(model.dual_coef_ @ X, model.coef_, atol=0.05)


@pytest.mark.parametrize("cache_mb", CACHES)
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_regression(loss, cache_mb):
    model = SVMRegressor(C=0.5, epsilon=0.2, loss=loss, tol=1e-5, cache_mb=cache_mb, random_state=0)
    model.fit(chunks(REAL))
    own = {"y": REAL, "epsilon": 0.2, "intercept": 1.0}
    squared = "squared_hinge" if loss.startswith("squared") else "hinge"
    assert_certified(model, [state("regression", X, own, cost=0.5, loss=squared)])
    assert model.dual_coef_.shape == (1, N)


@pytest.mark.parametrize("cache_mb", CACHES)
@pytest.mark.parametrize(
    "shape",
    [
        {"mean": np.linspace(-1, 1, D), "variance": np.linspace(0.5, 2, D)},
        {"covariance": np.cov(RNG.normal(size=(D, 20)))},
        {"lower": -0.2, "upper": 0.3},
    ],
    ids=lambda shape: "+".join(shape),
)
def test_priors_and_bounds(shape, cache_mb):
    prior = Prior(**{k: v for k, v in shape.items() if k not in ("lower", "upper")})
    box = {k: v for k, v in shape.items() if k in ("lower", "upper")}
    model = SVMClassifier(fit_intercept=False, prior=prior, tol=1e-5, cache_mb=cache_mb, random_state=0, **box).fit(
        chunks(TWO)
    )
    assert_certified(model, statements(X, TWO, intercept=0.0, **shape), intercept=0.0)


@pytest.mark.parametrize("cache_mb", CACHES)
def test_single_precision(cache_mb):
    rows = (8 * X).round().astype(np.float32) / 8
    model = SVMClassifier(tol=1e-4, cache_mb=cache_mb, random_state=0).fit(chunks(THREE, rows))
    assert model.coef_.dtype == np.float32
    assert_certified(model, statements(rows, THREE), rel=1e-7)


def test_weights_of_rows_and_classes():
    model = SVMClassifier(tol=1e-5, class_weight={0: 2.0, 1: 0.5}, random_state=0)
    model.fit(chunks(TWO, weight=WEIGHTS))
    assert_certified(model, statements(X, TWO, cost=WEIGHTS * np.where(TWO == 0, 2.0, 0.5)))


@pytest.mark.parametrize(
    ("C", "cache_mb"), [(0.1, 0.0), (0.1, 0.01), (10.0, 0.0), (10.0, 0.02), (1000.0, 0.05), (1000.0, 1.0)]
)
def test_same_optimum_as_in_memory(C, cache_mb):
    in_memory = SVMClassifier(C=C, random_state=0).fit(MANY, NOISY)
    model = SVMClassifier(C=C, cache_mb=cache_mb, random_state=0).fit(chunks(NOISY, MANY, 50))
    assert_overlap(model, in_memory)
    assert model.n_iter_ == len(model.history_) <= 60


def test_every_bound_holds():
    optimum = sum(problem.optimum() for problem in statements(MANY, NOISY, cost=10.0))
    model = SVMClassifier(C=10.0, tol=1e-7, cache_mb=0.01, max_iter=200, random_state=0)
    model.fit(chunks(NOISY, MANY, 50))
    lower = np.array([record.lower for record in model.history_])
    upper = np.array([record.upper for record in model.history_])
    assert (lower <= optimum * (1 + 1e-8)).all()
    assert (upper >= optimum * (1 - 1e-8)).all()
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper[1:]) <= 0).all()


def test_same_seed_same_model():
    one, other = (SVMClassifier(C=3.0, cache_mb=0.01, random_state=4).fit(chunks(NOISY, MANY, 50)) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_classes_with_names():
    names = np.array(["low", "high", "mid"])[THREE]
    model = SVMClassifier(random_state=0).fit(chunks(names))
    assert model.classes_.tolist() == ["high", "low", "mid"]
    assert set(model.predict(X)) <= set(names)


def test_text(tmp_path):
    dump_svmlight_file(X, TWO, str(tmp_path / "data"), zero_based=False)
    model = SVMClassifier(tol=1e-5, random_state=0).fit(dualsvm.open_dataset(tmp_path / "data", chunk_rows=8))
    assert_certified(model, statements(X, TWO))


def test_number_of_passes():
    dataset = chunks(NOISY, MANY, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVMClassifier(cache_mb=0.01, random_state=0).fit(dataset, passes=1)
    assert model.n_iter_ == 1
    assert model.upper_bound_ == model.gap_ == np.inf
    assert not model.converged_
    assert model.score(MANY, NOISY) > 0.7
    assert SVMClassifier(cache_mb=0.01, random_state=0).fit(dataset, passes=20).converged_


def test_once_only():
    def parts():
        return iter([(MANY[:300], NOISY[:300]), (MANY[300:], NOISY[300:])])

    with pytest.raises(ValueError, match=r"only once.*classes"):
        SVMClassifier().fit(dualsvm.open_dataset(parts()))
    model = SVMClassifier(random_state=0).fit(dualsvm.open_dataset(parts()), passes=1, classes=[-1, 1])
    assert model.score(MANY, NOISY) > 0.7
    assert SVMRegressor(random_state=0).fit(dualsvm.open_dataset(parts()), passes=1).n_iter_ == 1


def test_too_few_reads():
    with pytest.warns(ConvergenceWarning, match="after 2 passes"):
        model = SVMClassifier(max_iter=2, cache_mb=0.0, random_state=0).fit(chunks(NOISY, MANY, 50))
    assert np.isfinite(model.upper_bound_)


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: SVMClassifier().fit(chunks(TWO), TWO), "itself"),
        (lambda: SVMRegressor().fit(chunks(REAL), sample_weight=WEIGHTS), "itself"),
        (lambda: SVMClassifier().fit(X, TWO, passes=1), "datasets"),
        (lambda: SVMClassifier().fit(chunks(np.zeros(N, int))), "at least 2"),
        (lambda: SVMClassifier().fit(chunks(THREE), classes=[0, 1]), "not among"),
        (lambda: SVMClassifier(cache_mb=-1).fit(chunks(TWO)), "cache_mb"),
        (lambda: SVMClassifier(max_iter=0).fit(chunks(TWO)), "max_iter must be at least 1"),
        (lambda: SVMClassifier().fit(chunks(TWO, weight=np.zeros(N))), "zero for every row"),
        (lambda: SVMClassifier(fit_intercept="unpenalized").fit(chunks(TWO)), "unpenalized"),
        (lambda: SVMRegressor().fit(dualsvm.open_dataset(X, chunk_rows=9)), "no targets"),
        (lambda: SVMClassifier().fit(dualsvm.open_dataset(X, chunk_rows=9)), "no targets"),
    ],
)
def test_what_cannot_be_learned_from(fit, message):
    with pytest.raises(ValueError, match=message):
        fit()
