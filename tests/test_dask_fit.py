"""Fits on a cluster find the optimum that the local estimators find, and leave what these leave."""

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask import delayed

import dualsvm
from dualsvm import StructuredSVM
from dualsvm.dask import DaskStructuredSVM, DaskSVMClassifier, DaskSVMRanker, DaskSVMRegressor
from dualsvm.tasks import Chain

from .clusters import cluster

RNG = np.random.default_rng(3)
N, D = 240, 6
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.7)
TWO = np.where(X[:, 0] + 0.5 * RNG.normal(size=N) > 0, "yes", "no")
THREE = (X[:, :3] + 0.5 * RNG.normal(size=(N, 3))).argmax(axis=1) + 5
TARGETS = X @ RNG.normal(size=D) + 0.3 * RNG.normal(size=N)
GRADES = np.clip(np.round(TARGETS), 0, 3).astype(int)
QID = np.repeat(np.arange(N // 8), 8)
WEIGHT = RNG.integers(0, 4, N) / 2
CUTS = (48, 8, 104, 8, 32, 8, 16, 16)  # whole queries
PRIOR = {"mean": RNG.normal(size=D + 1), "variance": RNG.uniform(0.5, 2, D + 1)}
TASKS = {
    "binary": (DaskSVMClassifier, {}, (TWO,)),
    "Crammer-Singer": (DaskSVMClassifier, {}, (THREE,)),
    "one-vs-rest": (DaskSVMClassifier, {"multi_class": "ovr"}, (THREE,)),
    "regression": (DaskSVMRegressor, {"epsilon": 0.2}, (TARGETS,)),
    "pairs": (DaskSVMRanker, {}, (GRADES, QID)),
    "queries": (DaskSVMRanker, {"slack": "query", "C": 0.1}, (GRADES, QID)),
}
SETTINGS = {
    "balanced": ("binary", {"class_weight": "balanced"}),
    "weights of classes": ("Crammer-Singer", {"class_weight": {5: 2.0, 6: 0.5}}),
    "losses": ("Crammer-Singer", {"class_loss": [[0, 1, 2], [1, 0, 1], [3, 1, 0]], "rescaling": "slack"}),
    "squared": ("one-vs-rest", {"loss": "squared_hinge"}),
    "squared, one slack": ("Crammer-Singer", {"loss": "squared_hinge", "C": 0.2}),
    "squared targets": ("regression", {"loss": "squared_epsilon_insensitive"}),
    "squared queries": ("queries", {"loss": "squared_hinge", "C": 0.01}),
    "lower": ("binary", {"lower": 0.0, "upper": 0.7, "intercept_scaling": 2.0}),
    "prior": ("regression", {"prior": dualsvm.Prior(**PRIOR), "C": 0.1}),
    "covariance": ("binary", {"prior": dualsvm.Prior(covariance=np.eye(D + 1) + 0.5)}),
    "no intercept": ("binary", {"fit_intercept": False}),
}


LENGTHS = RNG.integers(2, 6, size=40)
INPUTS = [RNG.normal(size=(n, 3)) for n in LENGTHS]
OUTPUTS = [x.argmax(axis=1) for x in INPUTS]


def blocks(*arrays, cuts=CUTS):
    return [da.from_array(array, chunks=(cuts, *array.shape[1:])) for array in arrays]


def agree(model, local, given, **beside):
    """Both have found the same optimum, and what the one on the cluster says is proven by numpy."""
    slack = 1e-9 * abs(local.upper_bound_)
    assert model.converged_
    assert model.gap_ <= model.tol
    assert model.lower_bound_ <= local.upper_bound_ + slack
    assert local.lower_bound_ <= model.upper_bound_ + slack
    if getattr(model, "slack", None) == "query":
        with pytest.raises(ValueError, match="no dual variables"):
            model.to_local().certify(*given, **beside)
    else:
        lower, upper = model.to_local().certify(*given, **beside)
        assert upper == pytest.approx(model.upper_bound_, rel=1e-6)
        assert lower == pytest.approx(model.lower_bound_, rel=1e-6)
    for name in ("coef_", "intercept_", "dual_coef_", "n_support_"):
        mine, yours = np.asarray(getattr(model, name)), np.asarray(getattr(local, name))
        assert (mine.shape, mine.dtype) == (yours.shape, yours.dtype), name
    assert model.dual_coef_.shape == local.dual_coef_.shape
    assert model.n_features_in_ == local.n_features_in_


def compare(client, kind, tol=1e-4, rows=X, beside=None, **more):
    """Fit on the cluster, and locally."""
    make, parameters, targets = TASKS[kind]
    beside = {} if beside is None else beside
    model = make(client=client, tol=tol, random_state=0, **parameters | more)
    given = dict(zip(beside, blocks(*beside.values()), strict=True))
    model.fit(*blocks(rows, *targets), **given)
    local = model._local(**{k: v for k, v in model.get_params().items() if k != "client"})
    agree(model, local.fit(rows, *targets, **beside), (rows, *targets), **beside)
    return model, local


@pytest.mark.parametrize("kind", TASKS)
def test_same_optimum(two_workers, kind):
    model, local = compare(two_workers, kind)
    assert model.n_shares_ == 2
    assert model.n_iter_ == len(model.history_) == model.history_[-1].iteration
    assert all(r.lower <= local.upper_bound_ * (1 + 1e-9) and r.upper >= local.lower_bound_ for r in model.history_)
    assert all(
        a.lower <= b.lower and a.upper >= b.upper for a, b in zip(model.history_, model.history_[1:], strict=False)
    )
    if hasattr(local, "classes_"):
        np.testing.assert_array_equal(model.classes_, local.classes_)
        assert model.classes_.dtype == local.classes_.dtype
        assert np.mean(model.to_local().predict(X) == local.predict(X)) > 0.98


@pytest.mark.parametrize("workers", [1, 4, 8])
def test_as_many_workers(workers):
    with cluster(workers, processes=True) as client:
        for kind in ("binary", "Crammer-Singer", "regression", "pairs"):
            model, _ = compare(client, kind, tol=1e-2)
            assert workers / 2 <= model.n_shares_ <= workers  # short partitions may have the same home
        chains = db.from_sequence(list(zip(INPUTS, OUTPUTS, strict=True)), npartitions=workers)
        model = DaskStructuredSVM(Chain(), client=client, tol=1e-2, random_state=0).fit(chains)
    local = StructuredSVM(Chain(), tol=1e-2, random_state=0).fit(INPUTS, OUTPUTS)
    assert model.gap_ <= 1e-2
    assert model.lower_bound_ <= local.upper_bound_
    assert local.lower_bound_ <= model.upper_bound_
    assert model.n_shares_ == workers


@pytest.mark.parametrize("setting", SETTINGS)
def test_parameters(client, setting):
    kind, parameters = SETTINGS[setting]
    compare(client, kind, **parameters)


@pytest.mark.parametrize("kind", ["binary", "one-vs-rest", "regression"])
def test_weights_of_rows(client, kind):
    compare(client, kind, beside={"sample_weight": WEIGHT})


def test_margins(client):
    compare(client, "binary", beside={"margin": 0.5 + RNG.random(N)})


def test_single_precision(client):
    model, _ = compare(client, "Crammer-Singer", tol=1e-3, rows=X.astype(np.float32))
    assert model.coef_.dtype == np.float32


def test_dual_coefficients_are_in_the_order_of_the_rows(two_workers):
    model = DaskSVMClassifier(client=two_workers, fit_intercept=False, tol=1e-8, loss="squared_hinge")
    model.fit(*blocks(X, TWO))
    made = np.asarray(model.dual_coef_ @ X).ravel()
    # half the squared distance of any weights to those of any dual variables is at most the gap between the two
    assert np.linalg.norm(model.coef_.ravel() - made) <= np.sqrt(2 * (model.upper_bound_ - model.lower_bound_))
    for k, name in enumerate(model.classes_):
        assert model.n_support_[k] == np.count_nonzero(model.dual_coef_.toarray()[0][name == TWO])


@pytest.mark.parametrize("form", ["sparse", "frame", "futures", "delayed", "text", "stores", "uneven", "empty"])
def test_forms(client, form, tmp_path):
    rows, y = blocks(X, THREE)
    ends = np.cumsum(CUTS)
    slices = [slice(end - size, end) for end, size in zip(ends, CUTS, strict=True)]
    frame = pd.DataFrame(X, columns=list("abcdef"))
    match form:
        case "sparse":
            given = rows.map_blocks(sp.csr_array), y
        case "frame":
            given = dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(THREE), npartitions=3)
        case "futures":
            given = client.scatter([X[s] for s in slices]), client.scatter([THREE[s] for s in slices])
        case "delayed":
            given = [delayed(X[s]) for s in slices], [delayed(THREE[s]) for s in slices]
        case "text" | "stores":
            paths = [tmp_path / f"part{k}" for k in range(len(slices))]
            for path, s in zip(paths, slices, strict=True):
                source = (X[s], THREE[s])
                if form == "text":
                    from sklearn.datasets import dump_svmlight_file

                    dump_svmlight_file(*source, str(path), zero_based=False)
                else:
                    dualsvm.open_dataset([source]).save(path)
            given = (paths,)
        case "uneven":
            given = da.from_array(X, chunks=(70, 4)), da.from_array(THREE, chunks=33)
        case "empty":
            parts = [slice(0, 0), slice(0, 100), slice(100, 100), slice(100, N)]
            given = [delayed(X[s]) for s in parts], [delayed(THREE[s]) for s in parts]
    model = DaskSVMClassifier(client=client, random_state=0).fit(*given)
    local = dualsvm.SVMClassifier(random_state=0).fit(frame if form == "frame" else X, THREE)
    agree(model, local, (frame if form == "frame" else X, THREE))
    if form == "frame":
        np.testing.assert_array_equal(model.feature_names_in_, local.feature_names_in_)


def test_a_class_that_only_one_partition_has(two_workers):
    y = THREE.copy()
    y[:3] = 9
    y[3:][y[3:] == 5] = 6
    model = DaskSVMClassifier(client=two_workers, multi_class="ovr").fit(*blocks(X, y))
    agree(model, dualsvm.SVMClassifier(multi_class="ovr").fit(X, y), (X, y))
    assert model.classes_.tolist() == [6, 7, 9]
