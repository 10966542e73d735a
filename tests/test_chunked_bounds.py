"""Out of core, whatever the chunks, the cache and the end: every bound holds, and the last is that of the model."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import dualsvm
from dualsvm import Prior, SVMClassifier, SVMRegressor

from .estimators import objective
from .reference import state

KINDS = ["binary", "multiclass", "regression"]
CLASSES = {"binary": 2, "multiclass": 4}
SHAPES = ["plain", "prior", "box", "weights", "zeros", "single"]


def rows_of(rng):
    """Return rows of any scale, some of them zero or repeated."""
    n, d = rng.integers(3, 30), rng.integers(1, 5)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1)
    X[rng.random(n) < 0.15] = 0
    X[rng.integers(n, size=n // 4)] = X[rng.integers(n)]
    return X


def terms_of(shape, rng, d):
    """Return what is said of the weights: as an estimator takes it, and as the reference does."""
    if shape == "prior":
        terms = {"mean": rng.normal(size=d), "variance": rng.uniform(0.2, 3, d)}
        return {"prior": Prior(**terms)}, terms
    if shape == "box":
        terms = {"lower": np.full(d, -rng.uniform(0.01, 1)), "upper": np.full(d, rng.uniform(0.01, 1))}
        return terms, terms
    return {}, {}


def learned(kind, shape, loss, seed, **more):
    """Fit a random problem out of core; return the model and the problem written out."""
    rng = np.random.default_rng(seed)
    X = rows_of(rng)
    if shape == "single":
        X = X.astype(np.float32)
    n, d = X.shape
    C, weight = 10.0 ** rng.uniform(-2, 3), rng.uniform(0.1, 3, n) if shape in ("weights", "zeros") else None
    if shape == "zeros":
        weight[1:] *= rng.random(n - 1) < 0.6
    given, terms = terms_of(shape, rng, d)
    squared = loss == "squared_hinge"
    common = {"C": C, "tol": 1e-4, "cache_mb": rng.choice([0, 0.0005, 0.002, 1]), "random_state": seed}
    common |= {"max_iter": int(rng.choice([1, 2, 5, 30])), "fit_intercept": False, **given, **more}
    k = CLASSES.get(kind)
    y = (
        X.astype(np.float64) @ rng.normal(size=d) + rng.normal(size=n)
        if k is None
        else np.sort(rng.integers(0, k, n))
    )
    storage = sp.csr_array if rng.random() < 0.5 else np.asarray
    dataset = dualsvm.open_dataset(storage(X), target=y, weight=weight, chunk_rows=int(rng.integers(1, n + 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what holds must hold at any time
        if k is None:
            own = {"y": y, "epsilon": 0.1}
            names = {False: "epsilon_insensitive", True: "squared_epsilon_insensitive"}
            model = SVMRegressor(loss=names[squared], epsilon=0.1, **common).fit(dataset)
        else:
            own = {"y": 2 * y - 1, "margin": 1.0} if k == 2 else {"y": y, "class_loss": 1.0 - np.eye(k)}
            terms = {name: np.tile(value, 1 if k == 2 else k) for name, value in terms.items()}
            model = SVMClassifier(loss=loss, **common).fit(dataset, classes=np.arange(k))
    return model, state(kind, X, own, cost=C if weight is None else C * weight, loss=loss, **terms)


def assert_bounds(model, problem):
    optimum = problem.optimum()
    little = 1e-6 * abs(optimum) + 1e-9
    for record in model.history_:
        assert record.lower <= optimum + little
        assert record.upper >= optimum - little
    assert model.lower_bound_ == model.history_[-1].lower
    assert model.upper_bound_ == model.history_[-1].upper
    if np.isfinite(model.upper_bound_):
        assert model.upper_bound_ == pytest.approx(objective(model, [problem], 0.0), rel=1e-9, abs=1e-12)
    if model.converged_:
        assert model.upper_bound_ <= optimum * (1 + 1.1 * model.tol) + 1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_bound_holds(kind, shape, loss, seed):
    place = KINDS.index(kind) * 100 + SHAPES.index(shape) * 10 + (loss == "hinge") * 5 + seed
    assert_bounds(*learned(kind, shape, loss, place))


def test_weights_of_zero():
    """Rows that cost nothing are never kept, whatever room there is."""
    rng = np.random.default_rng(0)
    for seed in range(12):
        X, y = rng.normal(size=(17, 3)), rng.integers(0, 3, 17)
        weight = rng.uniform(0.5, 3, 17) * (rng.random(17) < 0.7)
        dataset = dualsvm.open_dataset(X, target=y, weight=weight, chunk_rows=11)
        model = SVMClassifier(C=100.0, cache_mb=0.002, fit_intercept=False, random_state=seed)
        model.fit(dataset, classes=range(3))
        own = {"y": y, "class_loss": 1.0 - np.eye(3)}
        assert_bounds(model, state("multiclass", X, own, cost=100.0 * weight, loss="hinge"))


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_after_every_number_of_reads(kind):
    """The same run, ended later and later: what was found before is not taken back."""
    runs = [learned(kind, "plain", "hinge", 7, max_iter=reads, tol=1e-12, cache_mb=0.0005) for reads in range(1, 8)]
    for model, problem in runs:
        assert_bounds(model, problem)
    last = [tuple(record)[:5] for record in runs[-1][0].history_]
    for model, _ in runs:
        assert [tuple(record)[:5] for record in model.history_] == last[: model.n_iter_]
