"""What structured models are given: sequences of all kinds, and tasks and examples that are wrong."""

import numpy as np
import pytest
import scipy.sparse as sp

from dualsvm import OracleError, Prior, StructuredSVM
from dualsvm.tasks import Chain, Multiclass

from .structured import Lazy, Pairs, Signs, assert_solves, write_out
from .test_structured import C, chain_data, chain_outputs, reference, signs_data

X, Y = signs_data()


def fit(*data, task=None, **settings):
    settings = {"C": C, "tol": 1e-5, "max_iter": 5000, "random_state": 0} | settings
    return StructuredSVM(task or Signs(), **settings).fit(*data)


@pytest.mark.parametrize(
    "form",
    [(np.array(X), Y), (tuple(X), tuple(Y)), (Lazy(X), Lazy(Y)), (Pairs(X, Y),), (list(zip(X, Y, strict=True)),)],
    ids=["array", "tuple", "lazy", "stream", "list of pairs"],
)
def test_forms_of_examples(form):
    assert_solves(fit(*form), reference("Signs"))


@pytest.mark.parametrize("form", ["lazy", "stream"])
def test_forms_of_compiled_examples(form):
    chains, labels = chain_data()
    model = fit(*((Lazy(chains), Lazy(labels)) if form == "lazy" else (Pairs(chains, labels),)), task=Chain())
    assert_solves(model, write_out(model.task, chains, labels, chain_outputs, C))


def test_lazy_inputs_are_not_held(monkeypatch):
    """However many there are, a part is held at a time; also when outputs are predicted."""
    alive = 0

    class Counted(np.ndarray):
        def __new__(cls, values):
            nonlocal alive
            alive += 1
            return np.asarray(values).view(cls)

        def __del__(self):
            nonlocal alive
            alive -= self.base is not None and type(self.base) is not Counted

    most = 0

    class Loads(Lazy):
        def __getitem__(self, i):
            nonlocal most
            value = Counted(super().__getitem__(i).copy())
            most = max(most, alive)
            return value

    inputs = np.random.default_rng(0).normal(size=(3000, 2))
    labels = (inputs[:, 0] > 0).tolist()
    model = fit(Loads(inputs), labels, task=Multiclass(), C=1e-3, tol=0.1)
    model.predict(Loads(inputs))
    assert most < 2500


def test_a_stream_is_read_in_its_order():
    class Ordered(Pairs):
        def __iter__(self):
            for i, pair in enumerate(super().__iter__()):
                self.seen = i
                yield pair

    assert_solves(fit(Ordered(X, Y)), reference("Signs"))


def test_a_stream_that_shrinks():
    class Shrinks(Pairs):
        times = 0

        def __iter__(self):
            self.times += 1
            return iter(list(super().__iter__())[: 30 if self.times < 3 else 20])

    with pytest.raises(ValueError, match="there were 30 pairs at first, but now they end after 20"):
        fit(Shrinks(X, Y))


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_matrix, sp.coo_array, sp.csr_array])
def test_a_sparse_matrix(make):
    """Its rows are the inputs."""
    seen = []

    class Columns(Multiclass):
        def _shaped(self, x, labels):
            seen.append(x.shape)
            return super()._shaped(x, labels)

    inputs = np.random.default_rng(0).normal(size=(12, 3))
    labels = list("abca" * 3)
    table = make(inputs)
    model = fit(table, labels, task=Columns())
    assert_solves(model, write_out(model.task, inputs, labels, lambda x, y: "abc", C))
    assert model.predict(table) == model.predict(inputs)
    assert model.score(table, labels) == model.score(inputs, labels)
    assert (1, 3) in seen


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ((iter(zip(X, Y, strict=True)),), TypeError, "the pairs can be read only once"),
        ((zip(X, Y, strict=True),), TypeError, "the pairs can be read only once"),
        ((iter(X), Y), TypeError, "X must be a sequence, with a length and elements, got list_iterator"),
        ((X, iter(Y)), TypeError, "Y must be a sequence"),
        ((X, Y[:-1]), ValueError, "X and Y must have the same length, got 30 and 29"),
        (([], []), ValueError, "X is empty: give at least one example"),
        (([],), ValueError, "there are no pairs"),
        (([1, 2],), TypeError, r"element 0 must be a pair \(x, y\), got int"),
        ((3,), TypeError, r"X must be pairs \(x, y\) to iterate over, got int"),
    ],
)
def test_examples_that_are_none(data, error, message):
    with pytest.raises(error, match=message):
        fit(*data)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"C": 0.0}, ValueError, "C must be positive, got 0"),
        ({"C": np.nan}, ValueError, "C must be a finite number"),
        ({"rescaling": "both"}, ValueError, 'rescaling must be "margin" or "slack"'),
        ({"tol": -1.0}, ValueError, "tol"),
        ({"max_iter": -1}, ValueError, "max_iter"),
        ({"cache_mb": 0}, ValueError, "cache_mb must be positive"),
        ({"prune_after": 0}, ValueError, "prune_after must be a positive integer"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
        ({"verbose": "loud"}, TypeError, "verbose must be an integer"),
        ({"prior": 3.0}, TypeError, "prior must be a dualsvm.Prior, got float"),
        ({"lower": np.zeros(3)}, ValueError, r"lower must be one number or have the shape of the weights, \(4,\)"),
        ({"lower": 1.0, "upper": 0.0}, ValueError, "lower must not exceed upper"),
        ({"random_state": "seed"}, ValueError, "seed"),
    ],
)
def test_parameters_that_make_no_sense(settings, error, message):
    with pytest.raises(error, match=message):
        fit(X, Y, **settings)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), r"sample_weight must be one number or one per example, shape \(30,\)"),
        (-np.ones(30), "sample_weight must not be negative"),
        (np.zeros(30), "not zero for every example"),
        (np.full(30, np.nan), "sample_weight contains NaN"),
    ],
)
def test_sample_weights_that_make_no_sense(weight, message):
    with pytest.raises(ValueError, match=message):
        fit(X, Y, weight)


class Wrong(Signs):
    """Wrong in one way, for the example whose number x[0, 0] holds."""

    def __init__(self, what):
        super().__init__()
        self.what = what

    def _here(self, x):
        return x[0, 0] == 7

    def joint_feature(self, x, y):
        full = super().joint_feature(x, y)
        if not self._here(x):
            return full
        return {
            "length": full[:3],
            "nan": full * np.nan,
            "matrix": full[None],
            "text": "none",
            "indices": ([0, 9], [1.0, 1.0]),
            "negative index": ([-1], [1.0]),
            "uneven": ([0, 1], [1.0]),
            "three": (0, 1, 2),
        }.get(self.what, full)

    def loss(self, y, y_hat):
        strange = {"loss of truth": 0.5, "nan loss": np.nan, "no loss": None}
        return strange.get(self.what, super().loss(y, y_hat)) if y == (1, 1) else super().loss(y, y_hat)

    def loss_augmented_inference(self, x, y, w, relaxed=False, return_energy=False):
        if self._here(x) and self.what == "worse than truth":
            return min(self.outputs(x), key=lambda h: self.loss(y, h) + self.joint_feature(x, h) @ w)
        if self._here(x) and self.what == "raises":
            raise ZeroDivisionError("at last")
        return super().loss_augmented_inference(x, y, w)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("length", "example 7: joint_feature must have 4 entries, got 3"),
        ("nan", "example 7: joint_feature contains NaN, infinity"),
        ("matrix", r"example 7: joint_feature must be a vector, got an array of shape \(1, 4\)"),
        ("text", "example 7: joint_feature must be a vector of numbers or"),
        ("indices", r"example 7: joint_feature has indices from 0 to 9, outside 0 \.\. 3"),
        ("negative index", r"example 7: joint_feature has indices from -1 to -1, outside 0 \.\. 3"),
        ("uneven", r"example 7: joint_feature must be \(indices, values\)"),
        ("three", "example 7: joint_feature must be a vector or .*, got a tuple of 3"),
        ("loss of truth", "the loss of the true output must be 0, got 0.5"),
        ("nan loss", r"loss\(y, y\) must be finite"),
        ("no loss", r"loss\(y, y\) must be a number, got None"),
        (
            "worse than truth",
            "example 7: loss_augmented_inference returned an output that is worse than the true one",
        ),
        ("raises", "the task failed on example 7: ZeroDivisionError: at last"),
    ],
)
@pytest.mark.parametrize("form", ["held", "stream"])
def test_tasks_that_are_wrong(what, message, form):
    inputs = [x.copy() for x in X]
    for i, x in enumerate(inputs):
        x[0, 0] = i
    outputs = [(-1, 1) if "loss" not in what else y for y in Y]
    with pytest.raises(OracleError, match=message):
        fit(*((inputs, outputs) if form == "held" else (Pairs(inputs, outputs),)), task=Wrong(what), C=10.0)


def test_a_search_that_is_not_exact_is_not_certified():
    class Lazybones(Signs):
        exact = False

        def loss_augmented_inference(self, x, y, w, relaxed=False, return_energy=False):
            return (-y[0], y[1])

    model = fit(X, Y, task=Lazybones())
    assert model.certified_ is False
    assert model.converged_ is False
    assert model.upper_bound_ == model.gap_ == np.inf
    assert model.lower_bound_ <= reference("Signs").optimum()
    assert model.coef_.any()


def test_a_slack_search_that_is_wrong():
    class Poor(Signs):
        def slack_inference(self, x, y, w):
            return (-y[0], -y[1])

    with pytest.raises(OracleError, match="slack_inference returned an output that is worse than the true one"):
        fit(X, Y, task=Poor(), rescaling="slack", prior=Prior(mean=[9.0, 9.0, 0.0, 0.0]))


@pytest.mark.parametrize("name", ["joint_feature", "loss", "inference", "loss_augmented_inference"])
def test_methods_that_are_missing(name):
    class Lacks(Signs):
        pass

    setattr(Lacks, name, None)
    with pytest.raises(TypeError, match=f"the task, a Lacks, lacks {name}"):
        fit(X, Y, task=Lacks())


def test_an_input_that_cannot_be_loaded():
    class Broken(Lazy):
        def __getitem__(self, i):
            if i == 5 and self.loads > 40:
                raise OSError("disk on fire")
            return super().__getitem__(i)

    model = StructuredSVM(Signs(), C=C, tol=1e-9, random_state=0)
    with pytest.raises(OSError, match="disk on fire") as info:
        model.fit(Broken(X), Y)
    assert info.value.__notes__ == ["while example 5 was read"]
    assert_solves(model, reference("Signs"), converged=False)


@pytest.mark.parametrize("form", ["lazy", "stream"])
def test_errors_of_parts_name_the_example(form):
    chains, labels = chain_data(40)
    labels[33] = np.array(["q"] * len(labels[33]))
    data = (Lazy(chains), Lazy(labels)) if form == "lazy" else (Pairs(chains, labels),)
    with pytest.raises(OracleError, match=r"example 33: .*has the label 'q'"):
        fit(*data, task=Chain(labels="xyz"))


def test_models_that_are_not_fitted_or_given_too_little():
    with pytest.raises(ValueError, match="not fitted"):
        StructuredSVM(Signs()).predict(X)
    with pytest.raises(ValueError, match="X and Y must have the same length, got 30 and 2"):
        fit(X, Y, tol=0.5).score(X, Y[:2])
