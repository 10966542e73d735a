"""What all estimators share: scikit-learn's manners, kinds of data, paths over C, and bad input."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualsvm import Prior, SVMClassifier, SVMRanker, SVMRegressor, c_path

from .estimators import (
    GRADES,
    KINDS,
    QID,
    TARGETS,
    THREE,
    TWO,
    WEIGHTS,
    D,
    N,
    X,
    assert_overlap,
    every_kind,
    statements,
)
from .reference import state

CLASSIFIERS = ("binary", "crammer_singer", "ovr", "unpenalized")


def fitted(kind, data=X, **more):
    model, y, fit_params = KINDS[kind]
    return clone(model).set_params(**more).fit(data, y, **fit_params)


def scores(model, data=X):
    return model.decision_function(data) if hasattr(model, "decision_function") else model.predict(data)


# scikit-learn's manners


@every_kind
def test_pickle(kind):
    model = fitted(kind)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(scores(again), scores(model))
    assert again.history_ == model.history_


@every_kind
def test_a_clone_is_not_fitted(kind):
    model = fitted(kind, C=0.5)
    again = clone(model)
    assert str(again.get_params()) == str(model.get_params())
    with pytest.raises(NotFittedError):
        again.predict(X)


@every_kind
def test_fit_leaves_parameters_and_data_alone(kind):
    model, y, fit_params = KINDS[kind]
    model = clone(model).set_params(prior=Prior(mean=[0.1] * D), lower=[-1.0] * D)
    data, before = X.copy(), dict(model.get_params())
    model.fit(data, y, **fit_params)
    assert all(value is before[name] for name, value in model.get_params().items())
    np.testing.assert_array_equal(data, X)


@pytest.mark.parametrize("kind", [*CLASSIFIERS, "regression"])
def test_grid_search_over_costs(kind):
    model, y, _ = KINDS[kind]
    search = GridSearchCV(clone(model), {"C": [1e-3, 1.0]}, cv=3).fit(X, y)
    ours = [cross_val_score(clone(model).set_params(C=C), X, y, cv=3).mean() for C in (1e-3, 1.0)]
    assert search.cv_results_["mean_test_score"].tolist() == pytest.approx(ours)
    assert search.best_estimator_.converged_


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_pipeline_with_a_scaler(kind):
    model, y, _ = KINDS[kind]
    pipe = make_pipeline(StandardScaler(), clone(model)).fit(1000 * X + 50, y)
    direct = clone(model).fit(StandardScaler().fit_transform(1000 * X + 50), y)
    np.testing.assert_array_equal(pipe.predict(1000 * X + 50), direct.predict((X - X.mean(0)) / X.std(0)))


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_calibration(kind):
    model, y, _ = KINDS[kind]
    calibrated = CalibratedClassifierCV(clone(model), cv=3).fit(X, y, sample_weight=WEIGHTS)
    p = calibrated.predict_proba(X)
    assert p.shape == (N, len(np.unique(y)))
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert np.mean(calibrated.predict(X) == y) > 0.5


def test_cross_validation():
    model = KINDS["crammer_singer"][0]
    folds = np.arange(N) % 3
    ours = []
    for f in range(3):
        part = clone(model).fit(X[folds != f], THREE[folds != f])
        ours.append(np.mean(part.predict(X[folds == f]) == THREE[folds == f]))
    cv = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(3)]
    assert cross_val_score(model, X, THREE, cv=cv).tolist() == ours


# metadata


def test_routed_weights_and_margins():
    with sklearn.config_context(enable_metadata_routing=True):
        model = SVMClassifier(C=0.05, tol=1e-7, random_state=0).set_fit_request(sample_weight=True, margin=True)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        pipe.fit(X, TWO, sample_weight=WEIGHTS, margin=np.full(N, 0.5))
    plain = SVMClassifier(C=0.05, tol=1e-7, random_state=0)
    plain.fit((X - X.mean(0)) / X.std(0), TWO, sample_weight=WEIGHTS, margin=0.5)
    assert pipe[-1].coef_ == pytest.approx(plain.coef_, abs=1e-3)


def test_routed_queries():
    with sklearn.config_context(enable_metadata_routing=True):
        model = SVMRanker(random_state=0).set_fit_request(qid=True).set_score_request(qid=True)
        found = cross_validate(
            model,
            X,
            GRADES,
            cv=GroupKFold(3),
            params={"qid": QID, "groups": QID},
            return_estimator=True,
            return_indices=True,
        )
    for part, rows, score in zip(found["estimator"], found["indices"]["test"], found["test_score"], strict=True):
        assert part.score(X[rows], GRADES[rows], qid=QID[rows]) == score


def test_grid_search_of_a_ranker():
    with sklearn.config_context(enable_metadata_routing=True):
        model = SVMRanker(random_state=0).set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(model, {"C": [0.01, 1.0], "slack": ["pair", "query"]}, cv=GroupKFold(3))
        search.fit(X, GRADES, qid=QID, groups=QID)
    assert search.best_estimator_.converged_
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()


# frames


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@every_kind
def test_frames(frame, kind):
    data = frame({name: X[:, k] for k, name in enumerate("abcd")})
    model, plain = fitted(kind, data, tol=1e-7), fitted(kind, tol=1e-7)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.n_features_in_ == D
    assert scores(model, data) == pytest.approx(scores(plain), abs=1e-3)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame({name: X[:, k] for k, name in enumerate("abdc")}))
    _, y, fit_params = KINDS[kind]
    model.fit(X[:, :3], y, **fit_params)  # an array has no names
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 3


def test_series_of_labels_weights_and_ids():
    index = np.arange(N)[::-1]
    y, weight, qid = (pd.Series(values, index=index) for values in (GRADES, WEIGHTS, QID))
    model = SVMRanker(random_state=0).fit(X, y, qid=qid, sample_weight=weight)
    np.testing.assert_array_equal(
        model.coef_, SVMRanker(random_state=0).fit(X, GRADES, qid=QID, sample_weight=WEIGHTS).coef_
    )


# kinds of arrays


def frozen(values):
    values = values.copy()
    values.flags.writeable = False
    return values


def large_indices(values):
    rows = sp.csr_array(values)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


def with_duplicates(values):
    rows = sp.coo_array(values)
    pairs = np.concatenate([rows.row, rows.row]), np.concatenate([rows.col, rows.col])
    return sp.coo_array((np.concatenate([rows.data, rows.data]) / 2, pairs), shape=values.shape)


FORMS = {
    "fortran": np.asfortranarray,
    "slice": lambda values: np.repeat(np.repeat(values, 2, axis=0), 3, axis=1)[::2, ::3],
    "read-only": frozen,
    "list": lambda values: values.tolist(),
    "csr": sp.csr_array,
    "csr matrix": sp.csr_matrix,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "duplicates": with_duplicates,
    "int64 indices": large_indices,
}


@pytest.mark.parametrize("form", list(FORMS))
@every_kind
def test_all_forms_of_data_are_one(form, kind):
    values = np.where(np.abs(X) < 0.4, 0.0, X)
    data = FORMS[form](values)
    plain, model = fitted(kind, values, tol=1e-8), fitted(kind, data, tol=1e-8)
    assert model.upper_bound_ == pytest.approx(plain.upper_bound_, rel=1e-6)
    assert scores(model, data) == pytest.approx(scores(plain, values), abs=1e-3)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, bool, np.float16])
def test_numbers_of_other_kinds(dtype):
    values = np.abs(np.round(3 * X)).astype(dtype)
    one, other = fitted("crammer_singer", values), fitted("crammer_singer", values.astype(np.float64))
    assert one.coef_ == pytest.approx(other.coef_, abs=1e-2)
    assert scores(one, values).shape == (N, 3)


# single precision


@pytest.mark.parametrize("of", [np.asarray, sp.csr_array])
@every_kind
def test_single_precision_stays(of, kind):
    model = fitted(kind, of(X.astype(np.float32)))
    assert model.converged_
    assert model.coef_.dtype == np.asarray(model.intercept_).dtype == np.float32
    assert scores(model, of(X.astype(np.float32))).dtype == np.float32
    assert fitted(kind).coef_.dtype == np.float64


@pytest.mark.parametrize("kind", ["binary", "crammer_singer", "ovr"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_bounds_are_those_of_the_rounded_weights(kind, loss, tol):
    single, y = X.astype(np.float32), KINDS[kind][1]
    model = fitted(kind, single, loss=loss, tol=tol, intercept_scaling=2.0)
    problems = statements(single, y, ovr=kind == "ovr", loss=loss, intercept=2.0)
    w = np.column_stack([model.coef_.astype(np.float64), model.intercept_.astype(np.float64) / 2])
    parts = w if kind == "ovr" else [w.ravel()]
    value = sum(problem.primal(part) for problem, part in zip(problems, parts, strict=True))
    assert model.upper_bound_ == pytest.approx(value, rel=1e-12)
    assert model.lower_bound_ <= sum(problem.optimum() for problem in problems) * (1 + 1e-8)


def test_bounds_of_a_regression_are_those_of_the_rounded_weights():
    single = X.astype(np.float32)
    model = fitted("regression", single, tol=1e-6)
    own = {"y": TARGETS, "epsilon": 0.1, "intercept": 1.0}
    problem = state("regression", single, own, cost=1.0, loss="hinge")
    w = np.append(model.coef_.astype(np.float64), float(model.intercept_))
    assert model.upper_bound_ == pytest.approx(problem.primal(w), rel=1e-12)


@every_kind
@pytest.mark.parametrize("bound", [0.1, 0.7])
def test_single_precision_keeps_within_bounds(kind, bound):
    above, below = (fitted(kind, X.astype(np.float32), **{side: bound}) for side in ("lower", "upper"))
    assert above.coef_.dtype == np.float32
    assert above.coef_.min() >= np.float32(bound)
    assert below.coef_.max() <= np.float32(bound)


def test_a_full_covariance_is_kept_in_double_precision():
    model = fitted("binary", X.astype(np.float32), prior=Prior(covariance=np.eye(D) + 0.1))
    assert model.coef_.dtype == np.float64


# threads


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("fit_intercept", [True, "unpenalized"])
def test_classes_side_by_side_are_the_same(loss, fit_intercept):
    one, two = (fitted("ovr", loss=loss, fit_intercept=fit_intercept, n_jobs=n_jobs) for n_jobs in (None, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)
    np.testing.assert_array_equal(one.dual_coef_.toarray(), two.dual_coef_.toarray())
    assert (one.lower_bound_, one.upper_bound_, one.n_iter_) == (two.lower_bound_, two.upper_bound_, two.n_iter_)


@every_kind
def test_more_threads_find_the_same_optimum(kind):
    assert_overlap(fitted(kind), fitted(kind, n_jobs=2))


# the certificate and its history


@every_kind
def test_the_history_ends_with_the_certificate(kind):
    model = fitted(kind)
    last = model.history_[-1]
    assert last.iteration == model.n_iter_
    assert last.lower == pytest.approx(model.lower_bound_, rel=1e-12)
    assert last.upper == pytest.approx(model.upper_bound_, rel=1e-12)
    assert model.gap_ == pytest.approx((model.upper_bound_ - model.lower_bound_) / abs(model.upper_bound_))
    steps = [record.iteration for record in model.history_]
    assert steps == sorted(set(steps))
    seconds = [record.seconds for record in model.history_]
    assert seconds == sorted(seconds)
    assert all(record.lower <= model.upper_bound_ * (1 + 1e-9) for record in model.history_)


@every_kind
@pytest.mark.parametrize("make", [int, np.random.RandomState, np.random.default_rng])
def test_the_same_seed_gives_the_same_model(kind, make):
    one, other = (fitted(kind, random_state=make(3)) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, other.coef_)


# paths over C


@every_kind
def test_path(kind):
    model, y, fit_params = KINDS[kind]
    Cs = [1.0, 0.01, 3.0, 0.01]
    models = c_path(model, X, y, Cs, **fit_params)
    assert [m.C for m in models] == Cs
    assert not hasattr(model, "coef_")
    assert not any(m.warm_start for m in models)
    for m in models:
        assert_overlap(m, fitted(kind, C=m.C))
    assert len({id(m) for m in models}) == 4
    assert models[0].upper_bound_ != models[1].upper_bound_


def test_path_leaves_a_fitted_estimator_alone():
    model = fitted("binary", C=0.3)
    before = model.coef_.copy()
    c_path(model, X, TWO, [1.0, 2.0], sample_weight=WEIGHTS, margin=0.5)
    assert model.C == 0.3
    np.testing.assert_array_equal(model.coef_, before)


def test_path_hands_on_what_goes_with_the_fit():
    (model,) = c_path(SVMClassifier(random_state=0), X, TWO, [0.5], sample_weight=WEIGHTS, margin=0.7)
    alone = SVMClassifier(C=0.5, random_state=0).fit(X, TWO, sample_weight=WEIGHTS, margin=0.7)
    assert_overlap(model, alone)


def test_path_keeps_warm_start_as_it_was():
    assert all(m.warm_start for m in c_path(SVMClassifier(warm_start=True), X, TWO, [0.1, 1.0]))


def test_empty_path():
    assert c_path(SVMRegressor(), X, TARGETS, []) == []


@pytest.mark.parametrize("Cs", [1.0, [[1.0]], ["1"], [True], None, [1.0, [2.0]]], ids=str)
def test_impossible_paths(Cs):
    with pytest.raises(ValueError, match="Cs must be"):
        c_path(SVMClassifier(), X, TWO, Cs)


@pytest.mark.parametrize("C", [0.0, -1.0, np.nan, np.inf])
def test_impossible_cost_on_a_path(C):
    with pytest.raises(ValueError, match="C must be"):
        c_path(SVMClassifier(), X, TWO, [1.0, C])


def test_path_of_something_else():
    with pytest.raises(TypeError, match="one of dualsvm's linear estimators, got StandardScaler"):
        c_path(StandardScaler(), X, TWO, [1.0])
