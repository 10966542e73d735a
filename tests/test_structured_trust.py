"""What must not be believed: constraints of another loss, and oracles that contradict themselves."""

import numpy as np
import pytest
import scipy.sparse as sp

import dualsvm
from dualsvm import OracleError, StructuredSVM, tasks


class Sign:
    """Outputs are -1 and 1; the loss depends on an attribute that is no parameter."""

    size_joint_feature = 3
    scale = 1.0

    def joint_feature(self, x, y):
        return y * x

    def loss(self, y, y_hat):
        return self.scale * float(y != y_hat)

    def inference(self, x, w):
        return 1 if w @ x > 0 else -1

    def loss_augmented_inference(self, x, y, w):
        return max([-1, 1], key=lambda h: self.loss(y, h) + h * (w @ x))


class Tiring(Sign):
    """Finds nothing any more after a while."""

    def __init__(self):
        self.calls = 0

    def loss_augmented_inference(self, x, y, w):
        self.calls += 1
        return super().loss_augmented_inference(x, y, w) if self.calls < 41 else y


class Growing:
    """Features that are met one after the other."""

    size_joint_feature = None

    def joint_feature(self, x, y):
        return np.array([2 * x + y]), np.array([1.0])

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def _scores(self, x, w):
        return np.append(w, np.zeros(2 * x + 2))[2 * x : 2 * x + 2]

    def inference(self, x, w):
        return int(np.argmax(self._scores(x, w)))

    def loss_augmented_inference(self, x, y, w):
        return int(np.argmax(self._scores(x, w) + (np.arange(2) != y)))


def points():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return X, np.where(X[:, 0] + 0.8 * rng.normal(size=40) > 0, 1, -1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("C", "scale", "tol"), [(1, 1.5, 0.3), (10, 1.02, 0.1), (1, 1.5, 1e-3)])
def test_constraints_of_another_loss_are_no_start(C, scale, tol):
    X, Y = points()
    best = StructuredSVM(Sign(), C=C, tol=1e-8).fit(X, Y).upper_bound_
    task = Sign()
    task.scale = scale
    model = StructuredSVM(task, C=C, tol=tol, warm_start=True, random_state=0).fit(X, Y)
    task.scale = 1.0
    model.set_params(max_iter=1).fit(X, Y)
    assert model.lower_bound_ <= best * (1 + 1e-7)
    assert model.set_params(max_iter=1000).fit(X, Y).converged_


def test_bounds_that_cross_are_an_error():
    X, Y = points()
    model = StructuredSVM(Tiring(), random_state=0)
    with pytest.raises(OracleError, match="misses constraints"):
        model.fit(X, Y)
    assert not model.certified_
    assert model.upper_bound_ == np.inf


def test_partial_fit_of_features_that_grow():
    model = StructuredSVM(Growing(), random_state=0).partial_fit([0, 1], [0, 1]).partial_fit([2, 1], [0, 1])
    assert model.coef_.shape == (6,)
    assert model.converged_
    assert model.predict([0, 1, 2]) == [0, 1, 0]


def test_chain_with_more_weights_than_the_kernel_counts():
    x = sp.csr_array((1, 2**21))
    with pytest.raises(ValueError, match="2\\*\\*31 weights"):
        tasks.Chain(labels=range(2048)).initialize([x], [[0]])


@pytest.mark.parametrize("name", tasks.__all__)
def test_save_before_fit(name, tmp_path):
    path = tmp_path / "model.npz"
    StructuredSVM(getattr(tasks, name)(), C=3.0).save(path)
    again = dualsvm.load(path)
    assert type(again.task).__name__ == name
    assert again.C == 3.0


def test_models_that_share_a_task_stay_as_they_were():
    task, X = tasks.Chain(), [np.eye(3), np.eye(3)]
    one = StructuredSVM(task, C=10.0).fit(X, ["aba", "aba"])
    other = StructuredSVM(task, C=10.0).fit(X, ["xyz", "xyz"])
    assert "".join(one.predict(X)[0]) == "aba"
    assert "".join(other.predict(X)[0]) == "xyz"
    assert one.partial_fit(X[:1], ["aba"]).score(X, ["aba", "aba"]) == 1.0


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([np.eye(2)], [1], "an output must be a sequence of labels, got 1"),
        ([np.eye(2), np.full((2, 2), np.nan)], ["ab", "ab"], "input 1 contains NaN"),
    ],
)
def test_errors_name_what_is_wrong(X, Y, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(tasks.Chain()).fit(X, Y)


def test_a_task_is_an_object():
    with pytest.raises(TypeError, match="must be an object, not the class"):
        StructuredSVM(tasks.Chain).fit([np.eye(2)], ["ab"])


def test_scores_need_outputs():
    model = StructuredSVM(tasks.Chain()).fit([np.eye(2)], ["ab"])
    with pytest.raises(TypeError, match="Y must be a sequence of outputs"):
        model.score([np.eye(2)], None)
