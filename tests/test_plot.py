"""What is drawn is what was recorded."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualsvm import SVMClassifier, solve
from dualsvm.plot import ConvergenceDisplay

from .problems import CLASSES, TASKS, X

plt.switch_backend("Agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return SVMClassifier(random_state=0).fit(X, CLASSES)


def drawn(axes, label):
    (line,) = [line for line in axes.get_lines() if line.get_label() == label]
    return line.get_xdata(), line.get_ydata()


@pytest.mark.parametrize(("column", "name"), [(0, "iteration"), (1, "seconds")])
def test_bounds_and_gap_over_passes_and_seconds(model, column, name):
    display = ConvergenceDisplay.from_estimator(model)
    bounds, gaps = display.axes_[:, column]
    for axes, label, attribute in [
        (bounds, "lower bound", "lower"),
        (bounds, "upper bound", "upper"),
        (gaps, "relative gap", "gap"),
    ]:
        x, y = drawn(axes, label)
        np.testing.assert_array_equal(x, [getattr(record, name) for record in model.history_])
        recorded = np.array([getattr(record, attribute) for record in model.history_])
        known = np.isfinite(recorded)
        np.testing.assert_array_equal(y[known], recorded[known])
        assert np.isnan(y[~known]).all()
    assert drawn(gaps, "tol")[1][0] == model.tol
    assert gaps.get_yscale() == "log"
    assert gaps.get_xlabel() == {"iteration": "passes", "seconds": "seconds"}[name]


def test_one_column_in_given_axes(model):
    _, axes = plt.subplots(2)
    display = ConvergenceDisplay.from_estimator(model, x="seconds", axes=axes)
    assert display.axes_.shape == (2, 1)
    assert display.figure_ is axes[0].figure
    assert axes[1].get_xlabel() == "seconds"


def test_records_of_a_solution():
    solution = solve(TASKS["ranking"](), random_state=0)
    display = ConvergenceDisplay(solution.history).plot()
    np.testing.assert_array_equal(drawn(display.axes_[0, 0], "lower bound")[1], [r.lower for r in solution.history])
    assert "tol" not in display.axes_[1, 0].get_legend_handles_labels()[1]


def test_the_last_step_of_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), SVMClassifier(random_state=0)).fit(X, CLASSES)
    display = ConvergenceDisplay.from_estimator(pipeline)
    assert len(drawn(display.axes_[0, 0], "lower bound")[0]) == len(pipeline[-1].history_)


def test_a_picture_can_be_saved(model, tmp_path):
    for kind in ({}, {"multi_class": "ovr"}, {"fit_intercept": "unpenalized"}):
        fitted = SVMClassifier(random_state=0, **kind).fit(X, CLASSES)
        ConvergenceDisplay.from_estimator(fitted).figure_.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_wrong_input(model):
    with pytest.raises(ValueError, match="not fitted"):
        ConvergenceDisplay.from_estimator(SVMClassifier())
    with pytest.raises(TypeError, match=r"LinearRegression keeps no history_"):
        ConvergenceDisplay.from_estimator(LinearRegression().fit(X, CLASSES))
    with pytest.raises(TypeError, match="must be an estimator of dualsvm, got int"):
        ConvergenceDisplay.from_estimator(3)
    with pytest.raises(ValueError, match=r'x must be "passes", "seconds" or both, got .hours'):
        ConvergenceDisplay.from_estimator(model, x="hours")
    with pytest.raises(ValueError, match="two Axes for every x, 4 in all, got 1"):
        ConvergenceDisplay.from_estimator(model, axes=[plt.gca()])


def test_without_matplotlib(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib, or dualsvm\[plot\]"):
        ConvergenceDisplay.from_estimator(model)
