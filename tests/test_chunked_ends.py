"""Out of core, ended early or asked for little: what is reported is that of what is returned."""

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import dualsvm
from dualsvm import SVMClassifier, SVMRegressor
from dualsvm.data import svmlight

from .estimators import TARGETS as REAL
from .estimators import THREE, TWO, N, X, assert_certified, objective, statements
from .reference import state


class After:
    """A callback that ends the fit after so many passes."""

    def __init__(self, passes):
        self.left = passes

    def setup(self, *args, **kwargs):
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, *args, **kwargs):
        self.left -= 1
        return self.left <= 0


def dataset(y):
    return dualsvm.open_dataset(X, target=y, chunk_rows=7)


@pytest.mark.parametrize("passes", [1, 2, 5, 8, 11])
def test_one_against_the_rest_ended_by_a_callback(passes):
    pytest.importorskip("sklearn.callback")
    model = SVMClassifier(multi_class="ovr", cache_mb=0.0, random_state=0).set_callbacks(After(passes))
    model.fit(dataset(THREE))
    problems = statements(X, THREE, ovr=True)
    assert model.dual_coef_.shape == (3, N)
    assert model.lower_bound_ <= sum(problem.optimum() for problem in problems) * (1 + 1e-7)
    assert model.upper_bound_ >= objective(model, problems) * (1 - 1e-9)


def test_one_history_of_several_problems():
    model = SVMClassifier(multi_class="ovr", random_state=0).fit(dataset(THREE))
    optimum = sum(problem.optimum() for problem in statements(X, THREE, ovr=True))
    assert [record.iteration for record in model.history_] == list(range(1, model.n_iter_ + 1))
    for record in model.history_:
        assert record.lower <= optimum * (1 + 1e-7)
        assert record.upper >= optimum * (1 - 1e-7)
    assert model.history_[-1].upper == pytest.approx(model.upper_bound_)


@pytest.mark.parametrize("chunk", [0, 1, 8])
def test_interrupted_at_a_chunk(chunk):
    read = []

    def parts():
        for start in range(0, N, 7):
            if len(read) == chunk:
                raise KeyboardInterrupt
            read.append(start)
            yield X[start : start + 7], REAL[start : start + 7]

    with pytest.raises(KeyboardInterrupt):
        SVMRegressor(cache_mb=0.001, random_state=0).fit(dualsvm.open_dataset(parts, chunk_rows=7))


@pytest.mark.parametrize("classes", [None, [0, 1]])
def test_text_that_gets_wider(classes, tmp_path, monkeypatch):
    monkeypatch.setattr(svmlight, "BLOCK", 256)
    rows = X * (np.arange(X.shape[1]) <= np.arange(N)[:, None] // 10)
    dump_svmlight_file(rows, TWO if classes else REAL, str(tmp_path / "data"), zero_based=False)
    data = dualsvm.open_dataset(tmp_path / "data", chunk_rows=7)
    if classes is None:
        model = SVMRegressor(tol=1e-5, random_state=0).fit(data)
        own = {"y": REAL, "epsilon": model.epsilon, "intercept": 1.0}
        assert_certified(model, [state("regression", rows, own, cost=1.0, loss="hinge")])
    else:
        assert_certified(SVMClassifier(tol=1e-5, random_state=0).fit(data, classes=classes), statements(rows, TWO))
