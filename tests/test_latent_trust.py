"""Latent tasks that fail, or do not keep their promises: each time an error that names the example."""

import numpy as np
import pytest

from dualsvm import OracleError, Prior

from .latent import Places, Types, Windows
from .structured import Pairs
from .test_latent_input import DATA, INIT, each, fit, make


def wrong(kind, what, i=7):
    """Return a task that is wrong in one way, for one example."""
    inputs = [x.copy() for x in DATA[kind][0]]
    labels = [-1 if k == i and kind is not Types else y for k, y in enumerate(DATA[kind][1])]
    mark = inputs[i].copy()

    class Wrong(kind):
        def here(self, x):
            return np.array_equal(x, mark)

        def joint_feature(self, x, h):
            full = super().joint_feature(x, h)
            if not self.here(x):
                return full
            return {
                "length": full[:-1],
                "nan": full * np.nan,
                "infinite": full + np.inf,
                "matrix": full[None],
                "text": "none",
                "indices": ([0, 99], [1.0, 1.0]),
                "uneven": ([0, 1], [1.0]),
                "three": (0, 1, 2),
            }.get(what, full)

        def inference(self, x, w):
            if self.here(x) and what == "raises" and kind is Places:
                raise ZeroDivisionError("at last")
            return super().inference(x, w)

    if kind is Types:

        def loss_augmented_inference(self, x, h_true, w):
            if self.here(x) and what == "raises":
                raise ZeroDivisionError("at last")
            return Types.loss_augmented_inference(self, x, h_true, w)

        Wrong.loss_augmented_inference = loss_augmented_inference
    if kind is Windows:

        def violations(self, x, w):
            if self.here(x):
                if what == "raises":
                    raise ZeroDivisionError("at last")
                phi = np.ones(4)
                answers = {
                    "twice": [(1, phi), (2, phi), (np.int64(1), phi)],
                    "no pair": [phi],
                    "alone": [3],
                    "triple": [(1, phi, 0)],
                    "nothing": None,
                }
                if what in answers:
                    return answers[what]
            return list(Windows.violations(self, x, w))

        Wrong.violations = violations
    return Wrong(), inputs, labels


FEATURES = {
    "length": r"joint_feature must have \d+ entries, got \d+",
    "nan": "joint_feature contains NaN, infinity",
    "infinite": "joint_feature contains NaN, infinity",
    "matrix": r"joint_feature must be a vector, got an array of shape \(1, \d+\)",
    "text": "joint_feature must be a vector of numbers or",
    "indices": "joint_feature has indices from 0 to 99, outside 0",
    "uneven": r"joint_feature must be \(indices, values\)",
    "three": "joint_feature must be a vector or .*, got a tuple of 3",
}


@pytest.mark.parametrize("form", ["held", "stream"])
@pytest.mark.parametrize("what", FEATURES)
@each
def test_features_that_are_wrong(kind, what, form):
    task, X, Y = wrong(kind, what)
    message = (
        FEATURES[what].replace("joint_feature", "the features of violation .*") if kind is Windows else FEATURES[what]
    )
    with pytest.raises(OracleError, match=f"example 7: {message}"):
        fit(task, *((X, Y) if form == "held" else (Pairs(X, Y),)), init=INIT[kind])


@pytest.mark.parametrize("form", ["held", "stream"])
@each
def test_an_oracle_that_raises(kind, form):
    task, X, Y = wrong(kind, "raises")
    with pytest.raises(OracleError, match="the task failed on example 7: ZeroDivisionError: at last") as caught:
        fit(task, *((X, Y) if form == "held" else (Pairs(X, Y),)), init=INIT[kind])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_completion_that_raises():
    class Fails(Types):
        def latent(self, x, y, w):
            if np.array_equal(x, DATA[Types][0][5]):
                raise ZeroDivisionError("at last")
            return super().latent(x, y, w)

    with pytest.raises(OracleError, match="the task failed to complete example 5: ZeroDivisionError: at last"):
        fit(Fails())
    model = make(Fails())
    with pytest.raises(OracleError, match="the task failed to complete example 5"):
        model.fit(*DATA[Types], init=INIT[Types])
    assert model.n_rounds_ == 1


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("twice", "violations yields .*1.* twice: each needs a key of its own"),
        ("no pair", r"violations must yield \(key, features\), got array"),
        ("alone", r"violations must yield \(key, features\), got 3"),
        ("triple", r"violations must yield \(key, features\), got \(1, "),
    ],
)
@pytest.mark.parametrize("form", ["held", "stream"])
def test_violations_that_are_wrong(what, message, form):
    task, X, Y = wrong(Windows, what)
    with pytest.raises(OracleError, match=f"example 7: {message}"):
        fit(task, *((X, Y) if form == "held" else (Pairs(X, Y),)), init=INIT[Windows])


def test_violations_that_are_nothing():
    task, X, Y = wrong(Windows, "nothing")
    with pytest.raises(
        OracleError, match="the task failed on example 7: TypeError: 'NoneType' object is not iterable"
    ):
        fit(task, X, Y, init=INIT[Windows])


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda h_true, h: 0.5, "the loss of the true output must be 0, got 0.5"),
        (lambda h_true, h: np.nan, r"loss\(y, y\) must be finite"),
        (lambda h_true, h: None, r"loss\(y, y\) must be a number, got None"),
        (lambda h_true, h: -1.0 * (h_true[0] != h[0]), "the loss must not be negative, got -1.0"),
    ],
)
def test_losses_that_are_wrong(loss, message):
    class Wrong(Types):
        def loss(self, h_true, h):
            return loss(h_true, h)

        def loss_augmented_inference(self, x, h_true, w):
            return (-h_true[0], 0)

    with pytest.raises(OracleError, match=rf"example \d+: {message}"):
        fit(Wrong())


def test_a_search_that_misses_the_worst():
    class Poor(Types):
        def loss_augmented_inference(self, x, h_true, w):
            scores = self.scores(x, w)
            return min(scores, key=lambda h: self.loss(h_true, h) + scores[h])

    with pytest.raises(
        OracleError, match="loss_augmented_inference returned an output that is worse than the true one"
    ):
        fit(Poor(), prior=Prior(mean=np.arange(12.0)))


class Muddled(Types):
    """Completes by the other output."""

    def latent(self, x, y, w):
        return -y, 0


def test_a_completion_of_another_output():
    with pytest.raises(OracleError, match=r"example 0: latent gives .*, which completes -?1 by label_from_latent"):
        fit(Muddled())
    with pytest.raises(OracleError, match=r"example \d+: latent gives .*, but the output is"):
        fit(Muddled(), init=INIT[Types])
    wrong_way = [(-y, t) for y, t in INIT[Types]]
    with pytest.raises(OracleError, match="example 0: init gives"):
        fit(Types(), init=wrong_way)
    with pytest.raises(OracleError, match=r"example 0: init gives .*, and label_from_latent fails on it"):
        fit(Types(), init=DATA[Types][1])


class Boasting(Types):
    """Promises what it does not keep."""

    loss_ignores_latent = True

    def loss(self, h_true, h):
        return float(h_true != h)


def test_a_promise_that_is_not_kept():
    with pytest.raises(OracleError, match="loss_ignores_latent promises that the loss does not depend on"):
        fit(Boasting(), init=INIT[Types])


class Secret(Windows):
    """Has keys that nobody knows again."""

    def violations(self, x, w):
        return [(lambda key=key: key, features) for key, features in super().violations(x, w)]


def test_keys_that_cannot_be_known_again():
    with pytest.raises(OracleError, match="of a violation cannot be known again: use numbers, strings or"):
        fit(Secret(), init=INIT[Windows])
