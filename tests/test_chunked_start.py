"""Fits from datasets start from earlier ones, take a number of reads, and serve all classes with each."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import dualsvm
from dualsvm import Prior, SVMClassifier, SVMRegressor

from .estimators import TARGETS as REAL
from .estimators import THREE, TWO, D, N, X, assert_certified, statements
from .reference import state

RNG = np.random.default_rng(11)
MANY = RNG.normal(size=(200, 6))
FOUR = (MANY[:, :4] + RNG.normal(size=(200, 4))).argmax(axis=1)
KINDS = {
    "binary": (SVMClassifier(), TWO),
    "crammer_singer": (SVMClassifier(), THREE),
    "ovr": (SVMClassifier(multi_class="ovr"), THREE),
    "regression": (SVMRegressor(epsilon=0.1), REAL),
}
every_kind = pytest.mark.parametrize("kind", list(KINDS))


def chunks(y, rows=X, chunk_rows=15, **more):
    return dualsvm.open_dataset(rows, target=y, chunk_rows=chunk_rows, **more)


def made(kind, **parameters):
    model, y = KINDS[kind]
    return clone(model).set_params(**{"tol": 1e-4, "cache_mb": 0.002, "random_state": 0} | parameters), y


def written(kind, rows=X, cost=1.0):
    if kind == "regression":
        return [state("regression", rows, {"y": REAL, "epsilon": 0.1, "intercept": 1.0}, cost=cost, loss="hinge")]
    return statements(rows, KINDS[kind][1], ovr=kind == "ovr", cost=cost)


def counting(y, rows, chunk_rows=50):
    """Return a dataset, and a list that grows with every pass over it."""
    passes = []

    def parts():
        passes.append(1)
        return ((rows[k : k + chunk_rows], y[k : k + chunk_rows]) for k in range(0, len(rows), chunk_rows))

    return dualsvm.open_dataset(parts, chunk_rows=chunk_rows), passes


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_one_read_serves_all_classes(n_jobs):
    dataset, passes = counting(FOUR, MANY)
    model = SVMClassifier(multi_class="ovr", cache_mb=0.01, n_jobs=n_jobs, random_state=0)
    model.fit(dataset, classes=[0, 1, 2, 3])
    assert model.n_iter_ == len(model.history_) == len(passes)
    assert model.converged_
    assert model.history_[-1].upper == pytest.approx(model.upper_bound_)
    assert_certified(model, statements(MANY, FOUR, ovr=True))


def test_threads_change_nothing():
    one, other = (
        SVMClassifier(multi_class="ovr", cache_mb=0.01, n_jobs=n_jobs, random_state=0).fit(chunks(FOUR, MANY, 50))
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_memory_is_shared(monkeypatch):
    from dualsvm.chunked import Runs

    most = []
    end = Runs.settle

    def settle(self):
        most.append(sum(run.cache.bytes for run in self.runs))
        end(self)

    monkeypatch.setattr(Runs, "settle", settle)
    SVMClassifier(multi_class="ovr", cache_mb=0.02, random_state=0).fit(chunks(FOUR, MANY, 20))
    assert 0.005e6 < max(most) <= 0.02e6


def test_verbose_tells_of_reads(capsys):
    model = SVMClassifier(multi_class="ovr", verbose=2, cache_mb=0.0, random_state=0).fit(chunks(THREE))
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [int(line.split()[0]) for line in lines] == list(range(1, model.n_iter_ + 1))


@every_kind
def test_max_passes(kind):
    model, y = made(kind, cache_mb=0.0, tol=1e-6)
    with pytest.warns(ConvergenceWarning, match="after 3 passes"):
        model.fit(chunks(y), max_passes=3)
    assert model.n_iter_ == 3
    optimum = sum(problem.optimum() for problem in written(kind))
    assert model.lower_bound_ <= optimum <= model.upper_bound_ < np.inf
    assert_certified(model.fit(chunks(y), max_passes=1000), written(kind))
    assert model.n_iter_ < 1000


def test_bad_numbers_of_passes():
    for passes, message in [
        ({"max_passes": 1}, "at least 2"),
        ({"max_passes": 2.5}, "integer"),
        ({"passes": 0}, "at least 1"),
        ({"passes": 1, "max_passes": 2}, "not both"),
    ]:
        with pytest.raises(ValueError, match=message):
            SVMClassifier().fit(chunks(TWO), **passes)
    with pytest.raises(ValueError, match="datasets"):
        SVMRegressor().fit(X, REAL, max_passes=3)


@every_kind
def test_dual_variables_are_kept(kind, tmp_path):
    model, y = made(kind)
    model.fit(chunks(y)).save(tmp_path / "model")
    loaded = dualsvm.load(tmp_path / "model")
    in_memory = clone(model).fit(X, y)
    assert loaded._alpha.shape == in_memory._alpha.shape
    np.testing.assert_array_equal(loaded._alpha.toarray(), model._alpha.toarray())
    again = loaded.set_params(warm_start=True).fit(chunks(y))
    assert again.n_iter_ == 1  # which builds the weights from them, and bounds them
    assert_certified(again, written(kind))


@every_kind
@pytest.mark.parametrize("C", [0.3, 4.0])
@pytest.mark.parametrize("way", list(itertools.product(["dataset", "memory"], repeat=2))[:3], ids="-".join)
def test_warm_start(kind, C, way):
    model, y = made(kind, warm_start=True)
    for place, cost in zip(way, (1.0, C), strict=True):
        model.set_params(C=cost)
        model.fit(chunks(y)) if place == "dataset" else model.fit(X, y)
    assert_certified(model, written(kind, cost=C))


def test_warm_start_with_other_class_weights():
    model = SVMClassifier(tol=1e-5, cache_mb=0.002, warm_start=True, random_state=0).fit(chunks(TWO))
    model.set_params(class_weight={0: 3.0, 1: 0.2}).fit(chunks(TWO))
    assert_certified(model, statements(X, TWO, cost=np.where(TWO == 0, 3.0, 0.2)))


@pytest.mark.parametrize(
    "shape",
    [
        {"mean": np.linspace(-1, 1, D), "variance": np.linspace(0.5, 2, D)},
        {"covariance": np.cov(RNG.normal(size=(D, 20)))},
        {"lower": -0.2, "upper": 0.3},
    ],
    ids=lambda shape: "+".join(shape),
)
def test_warm_start_with_priors_and_bounds(shape):
    prior = Prior(**{k: v for k, v in shape.items() if k not in ("lower", "upper")})
    box = {k: v for k, v in shape.items() if k in ("lower", "upper")}
    model = SVMClassifier(fit_intercept=False, tol=1e-5, cache_mb=0.002, warm_start=True, random_state=0)
    model.fit(chunks(TWO)).set_params(prior=prior, **box).fit(chunks(TWO))
    assert_certified(model, statements(X, TWO, intercept=0.0, **shape), intercept=0.0)
    assert model.fit(chunks(TWO)).n_iter_ == 1


def test_warm_start_in_single_precision():
    rows = (8 * X).round().astype(np.float32) / 8
    model = SVMClassifier(intercept_scaling=3.0, tol=1e-4, cache_mb=0.002, warm_start=True, random_state=0)
    model.fit(chunks(THREE, rows)).fit(chunks(THREE, rows))
    assert model.n_iter_ <= 2
    assert_certified(model, statements(rows, THREE, intercept=3.0), intercept=3.0, rel=1e-6)


def test_warm_start_where_nothing_is_a_better_one():
    """The dual of what is left over is far below that of zeros."""
    model = SVMRegressor(C=10.0, cache_mb=0.002, tol=1e-5, warm_start=True, random_state=0).fit(chunks(REAL))
    model.fit(chunks(-REAL))
    written = state("regression", X, {"y": -REAL, "epsilon": 0.0, "intercept": 1.0}, cost=10.0, loss="hinge")
    assert_certified(model, [written])


def test_warm_start_with_other_rows_classes_and_features():
    model = SVMClassifier(tol=1e-5, cache_mb=0.002, warm_start=True, random_state=0).fit(chunks(TWO))
    assert_certified(model.fit(chunks(THREE)), statements(X, THREE))
    assert_certified(model.fit(chunks(THREE, sp.csr_array(X[:, :3]))), statements(X[:, :3], THREE))
    assert_certified(model.fit(chunks(THREE[:30], X[:30])), statements(X[:30], THREE[:30]))
    assert_certified(model.fit(chunks(THREE)), statements(X, THREE))
    assert model._alpha.shape == (3, N)
