"""Whoever watches a fit: printed lines, scikit-learn's callbacks, Ctrl-C, and warnings."""

import os
import re
import signal
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualsvm import SVMClassifier, SVMRegressor
from dualsvm.progress import bar
from dualsvm.state import State

from .estimators import KINDS, TARGETS, THREE, TWO, D, N, X, every_kind, objective, statements

try:
    from sklearn import callback as skl
except ImportError:
    skl = None
callbacks = pytest.mark.skipif(skl is None, reason="scikit-learn has callbacks from 1.9 on")


def fit(kind, *watchers, **more):
    model, y, fit_params = KINDS[kind]
    model = clone(model).set_params(**more)
    if watchers:
        model.set_callbacks(*watchers)
    return model.fit(X, y, **fit_params)


# what is printed


@every_kind
def test_silence(kind, capsys):
    fit(kind)
    assert capsys.readouterr() == ("", "")


@every_kind
@pytest.mark.parametrize("verbose", [1, 2])
def test_being_watched_changes_nothing(kind, verbose, capsys):
    np.testing.assert_array_equal(fit(kind, verbose=verbose).coef_, fit(kind).coef_)
    assert capsys.readouterr().out


@every_kind
def test_the_last_line_tells_the_end(kind, capsys):
    model = fit(kind, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    passes, gap = re.search(r"pass +(\d+)  gap +(\S+) ", lines[-1]).groups()
    if kind != "ovr":  # there every class counts its own
        assert int(passes) == model.n_iter_
        assert float(gap) == pytest.approx(model.gap_, rel=1e-2)
    assert float(gap) <= model.tol
    assert lines[-1].endswith(f"[{'#' * 24}]")


@every_kind
def test_the_table_has_a_line_for_every_pass(kind, capsys):
    model = fit(kind, verbose=2)
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if re.match(r" *\d+ ", line)]
    assert len(rows) == model.n_iter_
    if kind != "ovr":
        assert [int(row[0]) for row in rows] == list(range(1, model.n_iter_ + 1))
        assert float(rows[-1][3]) == pytest.approx(model.lower_bound_, rel=1e-6)
        assert float(rows[-1][4]) == pytest.approx(model.upper_bound_, rel=1e-6)


@pytest.mark.parametrize("verbose", [1, 2])
def test_classes_have_titles(verbose, capsys):
    y = np.array(["ant", "bee", "cat"])[THREE]
    SVMClassifier(multi_class="ovr", verbose=verbose, n_jobs=2, random_state=0).fit(X, y)
    out = capsys.readouterr().out
    places = [out.index(f"class {name}: ") for name in ("ant", "bee", "cat")]
    assert places == sorted(places)
    SVMClassifier(verbose=verbose, random_state=0).fit(X, y)
    assert "class" not in capsys.readouterr().out


@pytest.mark.parametrize(("gap", "full"), [(np.inf, 0), (1.0, 0), (0.1, 8), (1e-2, 16), (1e-3, 24), (0.0, 24)])
def test_the_bar_is_full_at_the_tolerance(gap, full):
    assert bar(gap, 1e-3).count("#") == pytest.approx(full, abs=1)
    assert len(bar(gap, 1e-3)) == 26


# warnings


@every_kind
@pytest.mark.parametrize("max_iter", [0, 1])
def test_a_warning_names_gap_and_remedy(kind, max_iter):
    with pytest.warns(ConvergenceWarning, match=r"Raise max_iter or tol, or scale the features") as caught:
        model = fit(kind, max_iter=max_iter, tol=1e-9)
    assert len(caught) == 1
    assert f"gap is {model.gap_:.3g}, and tol is 1e-09" in str(caught[0].message)
    assert not model.converged_
    assert model.n_iter_ <= max_iter * (3 if kind == "ovr" else 1)
    assert model.lower_bound_ <= fit(kind).upper_bound_
    assert fit(kind).lower_bound_ <= model.upper_bound_


def test_the_warning_points_at_the_caller():
    with pytest.warns(ConvergenceWarning) as caught:
        SVMClassifier(max_iter=1, tol=1e-9).fit(X, TWO)
    assert caught[0].filename == __file__


# scikit-learn's callbacks


class Recorder:
    """Keeps what it is told; `stop` says when to end."""

    def __init__(self, stop=lambda self: False):
        self.stop = stop
        self.events, self.models, self.seen = [], [], []

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.events.append(("begin", context.task_name, context.task_id))
        self.seen.append((X, y, metadata))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.events.append(("end", context.task_name, context.task_id))
        self.seen.append((X, y, metadata))
        self.models.append(fitted_estimator)
        return context.task_name == "pass" and self.stop(self)

    def count(self, what, name="pass"):
        return sum(event[:2] == (what, name) for event in self.events)


class Everywhere(Recorder):
    """Goes from an estimator to those within."""

    max_propagation_depth = None


def balanced(events):
    """Whether every task that began has ended, the inner one first."""
    open_tasks = []
    for event in events:
        if event[0] == "begin":
            open_tasks.append(event[1:])
        elif event[0] == "end" and (not open_tasks or open_tasks.pop() != event[1:]):
            return False
    return not open_tasks


@callbacks
@every_kind
def test_every_pass_is_a_task(kind):
    recorder = Recorder()
    model = fit(kind, recorder)
    assert recorder.events[0] == ("setup", "fit")
    assert recorder.events[-1] == ("teardown", "fit")
    assert balanced(recorder.events)
    assert recorder.count("begin", "fit") == 1
    assert recorder.count("begin") == model.n_iter_


@callbacks
@every_kind
def test_callbacks_change_nothing(kind):
    np.testing.assert_array_equal(fit(kind, Recorder()).coef_, fit(kind).coef_)


@callbacks
@every_kind
def test_callbacks_see_the_data(kind):
    recorder = Recorder()
    _, y, fit_params = KINDS[kind]
    fit(kind, recorder)
    for data, targets, metadata in recorder.seen:
        np.testing.assert_array_equal(data, X)
        np.testing.assert_array_equal(targets, y)
        assert metadata["sample_weight"] is None
        assert set(fit_params) <= set(metadata)


@callbacks
@every_kind
def test_models_on_the_way_predict(kind):
    recorder = Recorder()
    model = fit(kind, recorder)
    for seen in recorder.models:
        assert seen.coef_.shape == model.coef_.shape
        assert np.shape(seen.intercept_) == np.shape(model.intercept_)
        assert seen.predict(X).shape == (N,)
    np.testing.assert_array_equal(recorder.models[-1].predict(X), model.predict(X))
    if hasattr(model, "classes_"):
        assert recorder.models[-1].n_support_.tolist() == model.n_support_.tolist()


@callbacks
@pytest.mark.parametrize("kind", ["binary", "crammer_singer", "unpenalized"])
def test_models_on_the_way_become_better(kind):
    recorder = Recorder()
    model, problems = fit(kind, recorder), statements(X, KINDS[kind][1])
    values = [objective(seen, problems) for seen in recorder.models]
    assert values[-1] < values[0]
    if kind != "unpenalized":
        assert min(values) >= model.lower_bound_ * (1 - 1e-9)


@callbacks
@every_kind
def test_a_callback_can_end_the_fit(kind):
    recorder = Recorder(stop=lambda self: self.count("end") == 2)
    model = fit(kind, recorder, tol=1e-12)  # and no warning
    assert model.n_iter_ == 2
    assert not model.converged_
    assert recorder.count("end") == 2
    assert balanced(recorder.events)
    best = fit(kind, tol=1e-6, max_iter=10**5)
    assert model.lower_bound_ <= best.upper_bound_ * (1 + 1e-9)
    assert best.lower_bound_ <= model.upper_bound_ * (1 + 1e-9)
    assert model.predict(X).shape == (N,)


@callbacks
def test_an_exception_in_a_callback_passes_through():
    def fail(self):
        raise RuntimeError("no more")

    recorder = Recorder(stop=fail)
    with pytest.raises(RuntimeError, match="no more"):
        fit("binary", recorder)
    assert recorder.events[-1] == ("teardown", "fit")


@callbacks
@every_kind
def test_progress_bar(kind):
    pytest.importorskip("rich")
    np.testing.assert_array_equal(fit(kind, skl.ProgressBar()).coef_, fit(kind).coef_)


@callbacks
def test_callbacks_of_partial_fit_and_warm_start():
    recorder = Recorder()
    model = SVMClassifier(warm_start=True, random_state=0).set_callbacks(recorder)
    model.fit(X, TWO)
    passes = model.n_iter_
    model.fit(X, TWO)
    passes += model.n_iter_
    model.partial_fit(X, TWO)
    passes += model.n_iter_
    assert balanced(recorder.events)
    assert recorder.count("begin", "fit") == 3
    assert recorder.count("begin") == passes


@callbacks
def test_callbacks_reach_into_a_search():
    recorder = Everywhere()
    search = GridSearchCV(SVMRegressor(random_state=0), {"C": [0.1, 1.0]}, cv=2)
    if not hasattr(search, "set_callbacks"):
        pytest.skip("this scikit-learn has no callbacks on a search")
    search.set_callbacks(recorder).fit(X, TARGETS)
    assert recorder.count("begin") >= 5  # two folds of two candidates, and the last fit
    assert recorder.count("begin") == recorder.count("end")


@callbacks
def test_callbacks_of_a_step_of_a_pipeline():
    recorder = Recorder()
    model = SVMRegressor(random_state=0).set_callbacks(recorder)
    pipe = make_pipeline(StandardScaler(), model).fit(X, TARGETS)
    assert recorder.count("begin") == pipe[-1].n_iter_


# Ctrl-C


def interrupt_in_pass(monkeypatch, which):
    """Have Ctrl-C pressed in the kernel, in the given call of it, each of which may do the work of one pass."""
    kernel, calls = State.optimize, []
    monkeypatch.setattr("dualsvm.state._WORK", 1)

    def optimize(*arguments):
        calls.append(1)
        if len(calls) == which:
            os.kill(os.getpid(), signal.SIGINT)
        return kernel(*arguments)

    monkeypatch.setattr(State, "optimize", optimize)


@every_kind
@pytest.mark.parametrize("which", [1, 2])
@pytest.mark.parametrize("verbose", [0, 2])
def test_ctrl_c_leaves_the_best_so_far(kind, which, verbose, monkeypatch, capsys):
    model, y, fit_params = KINDS[kind]
    model, best = clone(model).set_params(tol=1e-10, verbose=verbose), fit(kind, tol=1e-6, max_iter=10**5)
    with monkeypatch.context() as patch:
        interrupt_in_pass(patch, which)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y, **fit_params)
    assert not model.converged_
    assert set(vars(best)) == set(vars(model))
    assert np.shape(model.n_support_) == np.shape(best.n_support_)
    assert model.coef_.shape == best.coef_.shape
    assert model.lower_bound_ <= best.upper_bound_ * (1 + 1e-9)
    assert best.lower_bound_ <= model.upper_bound_ * (1 + 1e-9)
    assert model.gap_ < np.inf
    if kind in ("binary", "crammer_singer", "ovr"):
        value = objective(model, statements(X, y, ovr=kind == "ovr"))
        assert model.upper_bound_ == pytest.approx(value, rel=1e-9)


@callbacks
@every_kind
def test_ctrl_c_under_the_eyes_of_callbacks(kind, monkeypatch):
    model, y, fit_params = KINDS[kind]
    recorder = Recorder()
    model = clone(model).set_callbacks(recorder)
    interrupt_in_pass(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, **fit_params)
    assert recorder.events[-1] == ("teardown", "fit")
    assert recorder.count("end", "fit") == 1
    assert model.predict(X).shape == (N,)
    assert model.coef_.shape[-1] == D


def test_ctrl_c_ends_classes_that_are_solved_side_by_side(monkeypatch):
    kernel, begun = State.optimize, threading.Event()

    def optimize(*arguments):
        if not begun.is_set():
            begun.set()
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(0.5)  # until the main thread has taken note
        return kernel(*arguments)

    monkeypatch.setattr(State, "optimize", optimize)
    model = SVMClassifier(multi_class="ovr", n_jobs=2, tol=1e-12, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, THREE)
    assert model.coef_.shape == (3, D)
    assert 0 <= model.lower_bound_ <= model.upper_bound_ < np.inf
    assert not model.converged_


def test_without_a_standard_output(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    assert SVMClassifier(verbose=1, random_state=0).fit(X, TWO).converged_
