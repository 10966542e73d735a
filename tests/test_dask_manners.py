"""The manners of the estimators on a cluster: those of the local ones, and errors that name the partition."""

import pickle
import subprocess
import sys
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import dualsvm
from dualsvm.dask import DaskSVMClassifier, DaskSVMRanker, DaskSVMRegressor

RNG = np.random.default_rng(1)
X = RNG.normal(size=(90, 4))
Y = (X[:, 0] + 0.3 * RNG.normal(size=90) > 0).astype(int)
TARGETS = X @ np.arange(4.0) + RNG.normal(size=90)
WEIGHT = RNG.random(90)
CUTS = (40, 20, 30)


def blocks(*arrays, cuts=CUTS):
    return [da.from_array(array, chunks=(cuts, *array.shape[1:])) for array in arrays]


def parts(*arrays):
    return [[delayed(part) for part in np.split(array, np.cumsum(CUTS)[:-1])] for array in arrays]


def fitted(client, **more):
    return DaskSVMClassifier(client=client, random_state=0, **more).fit(*blocks(X, Y))


@pytest.mark.parametrize("form", ["arrays", "frames", "lists", "memory"])
def test_scores(client, form):
    rows, y, t, weight = blocks(X, Y, TARGETS, WEIGHT)
    if form == "frames":
        rows = dd.from_pandas(pd.DataFrame(X), npartitions=3)
        y, t, weight = (dd.from_pandas(pd.Series(each), npartitions=3) for each in (Y, TARGETS, WEIGHT))
    elif form == "lists":
        rows, y, t, weight = parts(X, Y, TARGETS, WEIGHT)
    elif form == "memory":
        rows, y, t, weight = X, Y, TARGETS, WEIGHT
    model = fitted(client)
    assert model.score(rows, y) == pytest.approx(model.to_local().score(X, Y))
    assert model.score(rows, y, weight) == pytest.approx(model.to_local().score(X, Y, WEIGHT))
    model = DaskSVMRegressor(client=client).fit(*blocks(X, TARGETS + 100))
    assert model.score(rows, t) == pytest.approx(model.to_local().score(X, TARGETS))
    assert model.score(rows, t, weight) == pytest.approx(model.to_local().score(X, TARGETS, WEIGHT))


def test_scores_that_cannot_be(client):
    model = fitted(client)
    with pytest.raises(TypeError, match="y is a ndarray, but X is in partitions"):
        model.score(blocks(X)[0], Y)
    first, second, third = parts(Y)[0]
    with pytest.raises(ValueError, match=r"partition . of X has .. rows, but .. targets"):
        model.score(parts(X)[0], [first, third, second])
    with pytest.raises(ValueError, match="nothing to score"):
        model.score(*blocks(X, Y, 0 * WEIGHT))
    ranker = DaskSVMRanker(client=client).fit(*blocks(X, Y, np.repeat(np.arange(9), 10)))
    with pytest.raises(TypeError, match="queries are scored in memory"):
        ranker.score(*blocks(X, Y))
    assert ranker.score(X, Y) == ranker.to_local().score(X, Y)


def test_predictions_are_lazy(client):
    model, local = fitted(client), fitted(client).to_local()
    found = model.predict(blocks(X)[0])
    assert isinstance(found, da.Array)
    np.testing.assert_array_equal(found.compute(), model.to_local().predict(X))
    np.testing.assert_allclose(model.decision_function(blocks(X)[0]).compute(), model.decision_function(X))
    assert type(local) is dualsvm.SVMClassifier


def test_parameters(client):
    model = DaskSVMClassifier(3.0, client=client, tol=1e-2)
    copy = clone(DaskSVMClassifier(3.0, tol=1e-2))
    assert (copy.C, copy.tol, copy.client) == (3.0, 1e-2, None)
    assert model.set_params(C=2.0).get_params()["C"] == 2.0
    assert "client" in model.get_params()
    assert repr(copy) == "DaskSVMClassifier(C=3.0, tol=0.01)"


def test_pickle_and_files(client, tmp_path):
    model = fitted(client)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.client is None
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    model.save(tmp_path / "model")
    local = dualsvm.load(tmp_path / "model")
    assert type(local) is dualsvm.SVMClassifier
    np.testing.assert_array_equal(local.coef_, model.coef_)
    assert local.certify(X, Y).gap <= 1e-3


def test_not_fitted():
    for call in (
        lambda m: m.predict(X),
        lambda m: m.predict(blocks(X)[0]),
        lambda m: m.to_local(),
        lambda m: m.score(X, Y),
    ):
        with pytest.raises(NotFittedError):
            call(DaskSVMClassifier())
    with pytest.raises(TypeError, match=r"use SVMClassifier.partial_fit"):
        DaskSVMClassifier().partial_fit(X, Y)


def test_a_fit_that_fails_leaves_the_estimator_as_it_was(client):
    model = fitted(client)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="one class only"):
        model.fit(*blocks(X, np.zeros(90)))
    assert vars(model) == before


def test_too_few_rounds(client):
    with pytest.warns(ConvergenceWarning):
        model = fitted(client, C=1000.0, tol=1e-9, max_iter=2)
    assert model.n_iter_ == 2
    assert not model.converged_
    assert np.isfinite([model.lower_bound_, model.upper_bound_]).all()
    lower, upper = model.to_local().certify(X, Y)
    assert (lower, upper) == pytest.approx((model.lower_bound_, model.upper_bound_))


def test_warm_start(client):
    model = fitted(client, tol=1e-5, warm_start=True)
    bounds = model.lower_bound_, model.upper_bound_
    model.fit(*blocks(X, Y))
    assert model.n_iter_ <= 1
    assert bounds[0] <= model.upper_bound_
    assert model.lower_bound_ <= bounds[1]
    model.fit(*blocks(X, 1 - Y))  # other targets
    assert model.converged_
    assert model.to_local().certify(X, 1 - Y).gap <= 1e-5


def test_checkpoints(client, two_workers, tmp_path):
    path = tmp_path / "checkpoint"
    model = DaskSVMClassifier(client=client, tol=1e-7, max_iter=3, C=10.0)
    with pytest.warns(ConvergenceWarning):
        model.fit(*blocks(X, Y), checkpoint=path)
    first = model.upper_bound_
    model.set_params(max_iter=1000, client=two_workers).fit(*blocks(X, Y), resume=path)
    assert model.converged_
    assert model.n_shares_ == 2
    assert [record.iteration for record in model.history_[:4]] == [1, 2, 3, 4]
    assert model.upper_bound_ <= first
    assert model.to_local().certify(X, Y).gap <= 1e-7
    with pytest.raises(ValueError, match=r"another problem: C is .*10"):
        DaskSVMClassifier(client=client).fit(*blocks(X, Y), resume=path)
    with pytest.raises(ValueError, match="written for other data"):
        model.fit(*blocks(X + 1, Y), resume=path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="checkpoint"):
        model.fit(*blocks(X, Y), resume=path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        model.fit(*blocks(X, Y), checkpoint=tmp_path / "nowhere" / "file")


def test_verbose(client, capsys):
    fitted(client, verbose=2)
    assert "gap" in "".join(capsys.readouterr()).lower()


def broken(kind):
    """Return rows and targets, in partitions, of which the second is bad."""
    rows, y = np.split(X, np.cumsum(CUTS)[:-1]), np.split(Y, np.cumsum(CUTS)[:-1])
    if kind == "nan":
        rows[1] = np.where(np.arange(80).reshape(20, 4) == 7, np.nan, rows[1])
    elif kind == "width":
        rows[1] = rows[1][:, :3]
    else:
        y[1] = y[1][:5]
    return [delayed(part) for part in rows], [delayed(part) for part in y]


@pytest.mark.parametrize("kind", ["nan", "width", "length"])
def test_the_partition_is_named(client, kind):
    with pytest.raises(ValueError, match="partition 1 of X"):
        DaskSVMClassifier(client=client).fit(*broken(kind))


def test_what_cannot_be_learned(client):
    with pytest.raises(ValueError, match=r"unpenalized.*intercept_scaling"):
        fitted(client, fit_intercept="unpenalized")
    with pytest.raises(TypeError, match="which lies in memory"):
        DaskSVMClassifier(client=client).fit(X, Y)
    with pytest.raises(ValueError, match="no preference"):
        DaskSVMRanker(client=client).fit(*blocks(X, 0 * Y, np.repeat(np.arange(9), 10)))
    apart = [delayed(each) for each in (X, Y, np.arange(90) % 9)]
    with pytest.raises(ValueError, match="partition 0 of X: rows of one query must be next to one another"):
        DaskSVMRanker(client=client).fit(*([each] for each in apart))


def test_imports():
    """Nothing warns, and whoever does not ask for Dask does not load it."""
    package = str(Path(dualsvm.__file__).parents[1])
    code = f"import sys; sys.path.insert(0, {package!r}); import dualsvm; print('dask' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100)
    assert found.stdout.strip() == "False"


@pytest.mark.skipif(not hasattr(DaskSVMClassifier, "set_callbacks"), reason="callbacks came with scikit-learn 1.9")
def test_callbacks_are_refused(client):
    from sklearn.callback import ProgressBar

    model = DaskSVMClassifier(client=client).set_callbacks(ProgressBar())
    with pytest.raises(TypeError, match="not called on a cluster"):
        model.fit([], [])
    assert not hasattr(model, "coef_")
