"""Predictions for collections are those of the local estimator, and nothing is computed before they are asked for."""

import cloudpickle
import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask import delayed

import dualsvm
from dualsvm.dask.lazy import lazily

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
FRAME = pd.DataFrame(X, columns=list("abcd"), index=np.arange(100, 160))
THREE = np.array(["a", "bb", "c"])[RNG.integers(0, 3, 60)]
METHODS = ["predict", "decision_function"]


@pytest.fixture(autouse=True)
def _here():
    """Compute here, whatever cluster other tests have."""
    with dask.config.set(scheduler="synchronous"):
        yield


def same(found, expected):
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("y", [THREE, THREE == "a"])
def test_arrays(method, y):
    model = dualsvm.SVMClassifier().fit(X, y)
    expected = getattr(model, method)(X)
    rows = da.from_array(X, chunks=(25, 3))
    whole = rows.rechunk((25, 4))
    for some in (rows, whole.map_blocks(sp.csr_array), whole.map_blocks(sp.csc_matrix), whole[whole[:, 0] < 9]):
        found = lazily(model, method, some)
        assert isinstance(found, da.Array)
        assert (found.dtype, found.ndim) == (expected.dtype, expected.ndim)
        same(found.compute(), expected)
    assert lazily(model, method, rows).shape == expected.shape
    same(lazily(model, method, X), expected)  # at once


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("y", [THREE, THREE == "a"])
def test_frames_keep_their_index(method, y):
    model = dualsvm.SVMClassifier().fit(FRAME, y)
    found = lazily(model, method, dd.from_pandas(FRAME, npartitions=3))
    computed, expected = found.compute(), getattr(model, method)(FRAME)
    np.testing.assert_array_equal(computed.index, FRAME.index)
    if expected.ndim == 2:
        assert computed.columns.tolist() == found.columns.tolist() == ["a", "bb", "c"]
    else:
        assert (computed.dtype, computed.name) == (found.dtype, method)
    np.testing.assert_array_equal(computed.to_numpy(), expected)


def test_regression_and_ranking():
    rows = da.from_array(X.astype(np.float32), chunks=(20, 4))
    for model in (dualsvm.SVMRegressor(), dualsvm.SVMRanker()):
        model.fit(X.astype(np.float32), X[:, 0])
        same(lazily(model, "predict", rows).compute(), model.predict(X.astype(np.float32)))


def test_empty_partitions():
    model = dualsvm.SVMClassifier().fit(FRAME, THREE)
    few = da.from_array(X, chunks=(20, 4))
    few = few[da.arange(60, chunks=20) >= 40]
    bare = dualsvm.SVMClassifier().fit(X, THREE)
    same(lazily(bare, "predict", few).compute(), bare.predict(X[40:]))
    same(lazily(bare, "decision_function", few).compute(), bare.decision_function(X[40:]))
    table = dd.from_delayed([delayed(FRAME[:0]), delayed(FRAME[40:])], meta=FRAME[:0])
    found = lazily(model, "predict", table).compute()
    np.testing.assert_array_equal(found, model.predict(FRAME[40:]))


def test_lists(client):
    model = dualsvm.SVMClassifier().fit(X, THREE)
    found = lazily(model, "predict", [delayed(X[:20]), delayed(sp.csr_array(X[20:]))])
    same(np.concatenate(dask.compute(*found)), model.predict(X))
    futures = [client.submit(np.copy, part) for part in (X[:20], X[20:])]
    found = client.gather(client.compute(lazily(model, "predict", futures)))
    same(np.concatenate(found), model.predict(X))
    same(lazily(model, "predict", X[:3].tolist()), model.predict(X[:3]))


def test_bags():
    inputs = [X[k : k + 3] for k in range(0, 60, 3)]
    outputs = [(x[:, 0] > 0).astype(int) for x in inputs]
    model = dualsvm.StructuredSVM(dualsvm.tasks.Chain(), random_state=0).fit(inputs, outputs)
    expected = [y.tolist() for y in model.predict(inputs)]
    found = lazily(model, "predict", db.from_sequence(inputs, npartitions=3))
    assert isinstance(found, db.Bag)
    assert [y.tolist() for y in found.compute()] == expected
    parts = dask.compute(*lazily(model, "predict", [delayed(inputs[:8]), delayed(inputs[8:])]))
    assert [y.tolist() for part in parts for y in part] == expected


class Loaded:
    """An estimator that takes room."""

    def __init__(self):
        self.coef_, self.dual_coef_ = RNG.normal(size=20_000), RNG.normal(size=1_000_000)

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize("kind", ["array", "frame", "bag", "list"])
def test_the_model_travels_once_and_light(kind):
    table = da.zeros((50, 3), chunks=(1, 3))
    some = {
        "array": table,
        "frame": table.to_dask_dataframe(columns=list("abc")),
        "bag": db.from_sequence(range(50), npartitions=50),
        "list": [delayed(np.zeros)((1, 3)) for _ in range(50)],
    }[kind]
    model = Loaded()
    found = lazily(model, "predict", some)
    several = found if kind == "list" else [found.optimize() if kind == "frame" else found]
    graphs = [dict(each.__dask_graph__()) for each in several]
    merged = {key: value for graph in graphs for key, value in graph.items()}
    assert 160_000 < len(cloudpickle.dumps(merged)) < 320_000
    assert model.dual_coef_.size == 1_000_000  # as it was


def test_what_cannot_be_predicted():
    model = dualsvm.SVMClassifier().fit(FRAME, THREE)
    with pytest.raises(ValueError, match="X has 3 features, but SVMClassifier is expecting 4"):
        lazily(model, "predict", da.zeros((5, 3)))
    with pytest.raises(ValueError, match="feature names should match"):
        lazily(model, "predict", dd.from_pandas(FRAME[list("abdc")], npartitions=2))
    with pytest.raises(ValueError, match="X must have rows and columns, got a Dask array of 1 dim"):
        lazily(model, "predict", da.zeros(5))
    with pytest.raises(TypeError, match=r"X must be a Dask array, dataframe or bag.*got Series"):
        lazily(model, "predict", dd.from_pandas(FRAME["a"], npartitions=2))
