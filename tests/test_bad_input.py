"""Input that an estimator refuses, with a word on what was expected and what came."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from dualsvm import SVMClassifier, SVMRegressor

from .estimators import KINDS, THREE, TWO, D, N, X, every_kind


def fit(kind, data=X, y=None, *, parameters=None, **more):
    model, own, fit_params = KINDS[kind]
    return clone(model).set_params(**parameters or {}).fit(data, own if y is None else y, **(fit_params | more))


PARAMETERS = [
    *(("C", bad) for bad in (0, 0.0, -1.0, np.nan, np.inf, None, "1", [1.0, 2.0])),
    *(("tol", bad) for bad in (-1e-3, np.nan, np.inf, None, "small")),
    *(("max_iter", bad) for bad in (-1, 1.5, None, "10", True, np.nan)),
]


@every_kind
@pytest.mark.parametrize(("name", "bad"), PARAMETERS, ids=str)
def test_impossible_numbers(kind, name, bad):
    with pytest.raises(ValueError, match=rf"{name} must .*got"):
        fit(kind, parameters={name: bad})


@every_kind
@pytest.mark.parametrize("name", ["n_jobs", "verbose"])
@pytest.mark.parametrize("bad", [1.5, "2"])
def test_impossible_counts(kind, name, bad):
    with pytest.raises(TypeError, match=rf"{name} must be an integer.*got {bad!r}"):
        fit(kind, parameters={name: bad})


@every_kind
def test_no_threads(kind):
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        fit(kind, parameters={"n_jobs": 0})


@pytest.mark.parametrize("kind", ["binary", "crammer_singer", "ovr", "regression"])
@pytest.mark.parametrize("bad", ["free", None, 1, 0, "True"])
def test_impossible_intercept(kind, bad):
    with pytest.raises(ValueError, match=f'fit_intercept must be True, False or "unpenalized", got {bad!r}'):
        fit(kind, parameters={"fit_intercept": bad})


@pytest.mark.parametrize("kind", ["binary", "crammer_singer", "ovr", "unpenalized", "regression"])
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, "1", None])
def test_impossible_intercept_scaling(kind, bad):
    with pytest.raises(ValueError, match=r"intercept_scaling must be .*got"):
        fit(kind, parameters={"intercept_scaling": bad})


@pytest.mark.parametrize(
    ("name", "bad", "expected"),
    [
        ("loss", "log", "hinge"),
        ("loss", None, "hinge"),
        ("multi_class", "ovo", '"crammer_singer" or "ovr"'),
        ("multi_class", None, '"crammer_singer" or "ovr"'),
        ("rescaling", "both", '"margin" or "slack"'),
        ("rescaling", None, '"margin" or "slack"'),
    ],
)
@pytest.mark.parametrize("kind", ["binary", "crammer_singer"])
def test_unknown_names(kind, name, bad, expected):
    with pytest.raises(ValueError, match=rf"{name} must be .*{expected}.*got {bad!r}"):
        fit(kind, parameters={name: bad})


# data


@every_kind
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("of", [np.asarray, sp.csr_array, np.float32], ids=["dense", "sparse", "single"])
def test_features_that_are_no_numbers(kind, bad, of):
    data = X.copy()
    data[2, 1] = bad
    with pytest.raises(ValueError, match=r"X (contains|must|holds).*NaN"):
        fit(kind, of(data))


@every_kind
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_predicting_from_features_that_are_no_numbers(kind, bad):
    data = X.copy()
    data[2, 1] = bad
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
        fit(kind).predict(data)


@every_kind
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones(N - 1), rf"sample_weight .*shape \({N},\), got shape \({N - 1},\)"),
        (np.ones((N, 1)), rf"sample_weight .*shape \({N},\), got shape \({N}, 1\)"),
        (np.append(np.ones(N - 1), -0.5), r"sample_weight must not be negative, got -0\.5"),
        (np.append(np.ones(N - 1), np.nan), "sample_weight contains NaN"),
        (np.append(np.ones(N - 1), np.inf), "sample_weight contains NaN, infinity"),
        (np.zeros(N), "sample_weight must not be zero for every row"),
        (np.full(N, "1"), "sample_weight must hold real numbers, got dtype <U1"),
    ],
    ids=["short", "column", "negative", "NaN", "infinity", "zeros", "text"],
)
def test_impossible_weights(kind, bad, message):
    with pytest.raises(ValueError, match=message):
        fit(kind, sample_weight=bad)


@pytest.mark.parametrize("kind", ["binary", "crammer_singer", "ovr"])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones(N - 1), rf"margin .*shape \({N},\), got shape \({N - 1},\)"),
        (np.append(np.ones(N - 1), np.nan), "margin contains NaN"),
        (np.inf, "margin contains NaN, infinity"),
        ("wide", "margin must hold real numbers"),
    ],
    ids=["short", "NaN", "infinity", "text"],
)
def test_impossible_margins(kind, bad, message):
    with pytest.raises(ValueError, match=message):
        fit(kind, margin=bad)


@every_kind
def test_targets_of_another_length(kind):
    _, y, _ = KINDS[kind]
    with pytest.raises(ValueError, match=rf"inconsistent numbers of samples: \[{N}, {N - 1}\]"):
        fit(kind, X, y[:-1])


@every_kind
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (X[0], "Expected 2D array, got 1D array"),
        (X[None], "dim 3"),
        (X[:0], "0 sample"),
        (X[:, :0], "0 feature"),
        (X.astype(str) + "x", "could not convert string"),
        (X.astype(complex), "Complex data not supported"),
    ],
    ids=["row", "cube", "no rows", "no features", "text", "complex"],
)
def test_impossible_features(kind, data, message):
    _, y, _ = KINDS[kind]
    with pytest.raises(ValueError, match=message):
        fit(kind, data, y[: len(data)])


@every_kind
def test_predicting_with_another_number_of_features(kind):
    with pytest.raises(ValueError, match=f"X has {D - 1} features, but SVM.* is expecting {D} features"):
        fit(kind).predict(X[:, 1:])


# labels


@pytest.mark.parametrize("y", [np.zeros(N), np.full(N, "a"), np.ones(N, bool)], ids=["zeros", "text", "true"])
def test_one_class(y):
    with pytest.raises(ValueError, match=rf"y holds one class only, .*{y[0]!s}.*at least 2 classes"):
        SVMClassifier().fit(X, y)


def test_labels_on_a_scale():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        SVMClassifier().fit(X, np.linspace(0, 1, N))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_labels_that_are_no_numbers(bad):
    y = TWO.astype(float)
    y[0] = bad
    with pytest.raises(ValueError, match=r"y contains (NaN|infinity)"):
        SVMClassifier().fit(X, y)


def test_labels_that_are_missing():
    y = np.array(["a", "b", "c"], dtype=object)[THREE]
    y[5] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        SVMClassifier().fit(X, y)


@pytest.mark.parametrize("weight", [{0: -1.0}, {0: np.nan}, "even", {"zero": 2.0}], ids=str)
def test_impossible_class_weights(weight):
    with pytest.raises(ValueError, match=r"class_weight|cost|class label"):
        SVMClassifier(class_weight=weight).fit(X, TWO)


@pytest.mark.parametrize("kind", ["binary", "crammer_singer"])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table[:-1], r"class_loss must be square \(classes x classes\), got shape"),
        (lambda table: np.pad(table, (0, 1)), r"\d.* class_loss has \d classes"),
        (lambda table: table[0], "class_loss must be square"),
        (lambda table: -table, "class_loss must not be negative, got -1"),
        (lambda table: table + 1, "class_loss must be finite, .*zeros on its diagonal"),
        (lambda table: table * np.nan, "class_loss must be finite"),
        (lambda table: np.where(table > 0, np.inf, 0), "class_loss must be finite"),
        (lambda table: table.astype(str), "class_loss must hold real numbers"),
    ],
    ids=["not square", "too large", "vector", "negative", "diagonal", "NaN", "infinite", "text"],
)
def test_impossible_class_loss(kind, rescaling, change, message):
    k = len(np.unique(KINDS[kind][1]))
    with pytest.raises(ValueError, match=message):
        fit(kind, parameters={"class_loss": change(1.0 - np.eye(k)), "rescaling": rescaling})


def test_class_loss_where_there_is_no_table():
    with pytest.raises(ValueError, match='class_loss does not apply to multi_class="ovr"'):
        fit("ovr", parameters={"class_loss": 1.0 - np.eye(3)})


# a fit that fails leaves the model as it was


def spoiled(values):
    values = values.copy()
    values[0] = np.nan
    return values


@every_kind
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("failure", ["NaN", "more features", "lengths", "weights", "classes", "parameter"])
def test_a_failed_fit_leaves_the_model_as_it_was(kind, method, failure):
    model, y, fit_params = KINDS[kind]
    model = clone(model).fit(X, y, **fit_params)
    before, bounds, C = model.predict(X), (model.lower_bound_, model.upper_bound_), model.C
    data, targets, more = X, y, dict(fit_params)
    if failure in ("NaN", "classes"):
        data = spoiled(X)
    if failure == "classes":
        targets = y + 1 if method == "fit" else y
    if failure == "more features":
        data = spoiled(np.hstack([X, X]))
    if failure == "lengths":
        targets = y[:-1]
    if failure == "weights":
        more["sample_weight"] = -np.ones(N)
    if failure == "parameter":
        model.set_params(C=-1.0)
    with pytest.raises(ValueError, match=r"NaN|features|numbers of samples|sample_weight|C must"):
        getattr(model, method)(data, targets, **more)
    model.set_params(C=C)
    np.testing.assert_array_equal(model.predict(X), before)
    assert (model.lower_bound_, model.upper_bound_) == bounds
    assert model.fit(X, y, **fit_params).converged_


def test_numbers_of_little_precision():
    for C in (np.float32(1), np.float16(1), np.int8(1)):
        assert SVMClassifier(C, tol=np.float32(1e-3), random_state=0).fit(X, TWO).converged_


def test_class_weights_that_leave_nothing():
    for weights in ({0: -1.0, 1: 1.0}, {0: 0.0, 1: 0.0}):
        with pytest.raises(ValueError, match="class_weight must not be negative, nor 0 for every class"):
            SVMClassifier(class_weight=weights).fit(X, np.arange(len(X)) % 2)


def test_text_as_targets():
    with pytest.raises(ValueError, match=r"y must hold real numbers|could not convert string"):
        SVMRegressor().fit(X, np.array(["a"] * len(X)))
