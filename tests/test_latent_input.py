"""What latent models are given that is wrong: tasks, completions, classes, parameters."""

import numpy as np
import pytest

from dualsvm import LatentStructuredSVM, LatentSVM, OracleError, Prior
from dualsvm.tasks import MultipleInstance

from .latent import Places, Types, Windows, places_data, some_places, some_types, types_data
from .structured import Pairs

DATA = {Types: types_data(), Places: places_data(), Windows: places_data()}
INIT = {Types: some_types(Types(), *DATA[Types]), Places: some_places(Places(), *DATA[Places])}
INIT[Windows] = INIT[Places]
KINDS = list(DATA)
each = pytest.mark.parametrize("kind", KINDS)


def make(task, **settings):
    estimator = LatentStructuredSVM if isinstance(task, Types) or task is Types else LatentSVM
    return estimator(task, **{"tol": 1e-3, "random_state": 0} | settings)


def fit(task, *data, init=None, weight=None, **settings):
    kind = next((kind for kind in KINDS if isinstance(task, kind)), Types)
    return make(task, **settings).fit(*(data or DATA[kind]), sample_weight=weight, init=init)


@each
def test_the_class_in_place_of_an_object(kind):
    with pytest.raises(TypeError, match=rf"the task must be an object, not the class: {kind.__name__}\(\.\.\.\)"):
        make(kind).fit(*DATA[kind])


NEEDED = {
    Types: ["joint_feature", "loss", "inference", "loss_augmented_inference", "latent", "label_from_latent"],
    Places: ["joint_feature", "inference"],
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in NEEDED for name in NEEDED[kind]])
def test_methods_that_are_missing(kind, name):
    lacking = type("Lacks", (kind,), {name: None})()
    for method in (make(lacking).fit, make(lacking).partial_fit):
        with pytest.raises(TypeError, match=f"the task, a Lacks, lacks {name}$"):
            method(*DATA[kind])


def test_a_task_with_nothing():
    with pytest.raises(TypeError, match="the task, a object, lacks joint_feature, inference"):
        LatentSVM(object()).fit(*DATA[Places])
    with pytest.raises(TypeError, match="the task, a Places, lacks loss, loss_augmented_inference, latent"):
        LatentStructuredSVM(Places()).fit(*DATA[Places])


@each
@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"max_rounds": 0}, ValueError, "max_rounds must be a positive integer, got 0"),
        ({"max_rounds": 2.5}, ValueError, "max_rounds must be a positive integer, got 2.5"),
        ({"n_init": 0}, ValueError, "n_init must be a positive integer, got 0"),
        ({"n_init": None}, ValueError, "n_init must be a positive integer, got None"),
        ({"round_tol": -1e-3}, ValueError, "round_tol must not be negative, got -0.001"),
        ({"round_tol": np.nan}, ValueError, "round_tol must be a finite number"),
        ({"round_tol": "small"}, (TypeError, ValueError), "round_tol must be a finite number|round_tol"),
        ({"C": 0.0}, ValueError, "C must be positive, got 0"),
        ({"C": -1.0}, ValueError, "C must be positive, got -1"),
        ({"C": np.inf}, ValueError, "C must be a finite number"),
        ({"tol": -1.0}, ValueError, "tol"),
        ({"max_iter": -1}, ValueError, "max_iter"),
        ({"cache_mb": 0}, ValueError, "cache_mb must be positive, got 0"),
        ({"prune_after": 0}, ValueError, "prune_after must be a positive integer"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
        ({"verbose": "loud"}, TypeError, "verbose must be an integer"),
        ({"prior": 3.0}, TypeError, "prior must be a dualsvm.Prior, got float"),
        ({"lower": np.zeros(3)}, ValueError, "lower must be one number or have the shape of the weights"),
        ({"lower": 1.0, "upper": 0.0}, ValueError, "lower must not exceed upper"),
        ({"prior": Prior(variance=-1.0)}, ValueError, "prior variance must be positive"),
        ({"random_state": "seed"}, ValueError, "seed"),
    ],
)
def test_parameters_that_make_no_sense(kind, settings, error, message):
    with pytest.raises(error, match=message):
        fit(kind(), **settings)


def test_a_rescaling_that_is_none():
    with pytest.raises(ValueError, match='rescaling must be "margin" or "slack", got \'both\''):
        fit(Types(), rescaling="both")


@each
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), r"sample_weight must be one number or one per example, shape \(\d+,\)"),
        (-1.0, "sample_weight must not be negative"),
        (0.0, "not zero for every example"),
        (np.nan, "sample_weight contains NaN"),
    ],
)
def test_sample_weights_that_make_no_sense(kind, weight, message):
    weight = np.full(len(DATA[kind][0]), weight) if np.ndim(weight) == 0 else weight
    with pytest.raises(ValueError, match=message):
        fit(kind(), weight=weight)


@each
def test_examples_that_are_none(kind):
    X, Y = DATA[kind]
    for data, error, message in [
        ((X, Y[:-1]), ValueError, f"X and Y must have the same length, got {len(X)} and {len(X) - 1}"),
        (([], []), ValueError, "X is empty: give at least one example"),
        (([],), ValueError, "there are no pairs"),
        ((iter(X), Y), TypeError, "X must be a sequence"),
        ((zip(X, Y, strict=True),), TypeError, "the pairs can be read only once"),
        (([1, 2],), TypeError, r"element 0 must be a pair \(x, y\), got int"),
        ((3,), TypeError, r"X must be pairs \(x, y\) to iterate over, got int"),
    ]:
        for method in (make(kind()).fit, make(kind()).partial_fit):
            with pytest.raises(error, match=message):
                method(*data)


@pytest.mark.parametrize("kind", [Places, Windows])
@pytest.mark.parametrize("form", ["held", "stream"])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1] * 20, "there are no negative examples: y must hold both -1 and 1"),
        ([-1] * 20, "there are no positive examples: y must hold both -1 and 1"),
        ([0, 1] * 10, "y must hold the classes -1 and 1, one for every example, got 0"),
        ([1, -1] * 9 + [1, 2], "y must hold the classes -1 and 1, one for every example, got 2"),
        (["a", "b"] * 10, "y must hold the classes -1 and 1, one for every example, got 'a'"),
        ([True, False] * 10, "y must hold the classes -1 and 1, one for every example, got False"),
        ([1.0, np.nan] * 10, "y must hold the classes -1 and 1, one for every example, got nan"),
        ([None, 1] * 10, "y must hold the classes -1 and 1, one for every example, got None"),
        ([[1], [-1]] * 10, r"y must hold the classes -1 and 1, one for every example, got \(20, 1\)"),
        ([[1, -1], [-1]] * 10, r"y must hold the classes -1 and 1, one for every example"),
    ],
)
def test_labels_that_are_wrong(kind, form, labels, message):
    X, _ = DATA[kind]
    with pytest.raises(ValueError, match=message):
        fit(kind(), *((X, labels) if form == "held" else (Pairs(X, labels),)))


@each
def test_a_beginning_that_is_none(kind):
    init = INIT[kind]
    with pytest.raises(ValueError, match=f"init must .* all {len(init)} examples.*, got {len(init) - 1}"):
        fit(kind(), init=init[:-1])
    with pytest.raises(ValueError, match=f"init must .* all {len(init)} examples.*, got {len(init) + 1}"):
        fit(kind(), init=[*init, init[0]])
    with pytest.raises(TypeError, match=r"init must be a .* for every example, got int"):
        fit(kind(), init=3)
    with pytest.raises(ValueError, match=r"init must .* all .* examples.*, got 0"):
        fit(kind(), init=[])


@each
def test_a_beginning_of_the_task_that_is_none(kind):
    for answer, error, message in [
        (INIT[kind][:-1], ValueError, "init_latent must .* examples"),
        (None, TypeError, "init_latent must be a .* for every example, got NoneType"),
    ]:
        begins = type("Begins", (kind,), {"init_latent": lambda self, X, Y, answer=answer: answer})
        with pytest.raises(error, match=message):
            fit(begins())


def test_latent_values_that_are_none():
    positive = DATA[Places][1].index(1)
    for kind in (Places, Windows):
        init = list(INIT[kind])
        init[positive] = 11  # where a window would end behind the signal
        with pytest.raises(OracleError, match=f"example {positive}: joint_feature must have 4 entries, got 2"):
            fit(kind(), init=init)
        init[positive] = None
        message = f"the task failed on example {positive} with the latent value None: TypeError"
        with pytest.raises(OracleError, match=message):
            fit(kind(), init=init)


def test_completions_that_fit_nothing():
    init = list(INIT[Types])
    init[3] = (init[3][0], 7)
    with pytest.raises(OracleError, match="the task failed on example 3: IndexError"):
        fit(Types(), init=init)
    init[3] = (-init[3][0], 0)
    with pytest.raises(ValueError, match=r"example 3: init gives .*, which completes .* by label_from_latent, but"):
        fit(Types(), init=init)


class Labelled(Types):
    """Completions are arrays of a label and a type."""

    def joint_feature(self, x, h):
        return super().joint_feature(x, (int(h[0]), int(h[1])))

    def latent(self, x, y, w):
        return np.array(super().latent(x, y, w))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            lambda h: np.append(h, 0),
            r"its completion was an array of shape \(2,\), and is an array of shape \(3,\) now",
        ),
        (lambda h: h[None], r"its completion was an array of shape \(2,\), and is an array of shape \(1, 2\) now"),
        (lambda h: str(h), r"its completion was an array of shape \(2,\), and is a str now"),
    ],
)
def test_a_completion_that_changes_shape(changes, message):
    class Changes(Labelled):
        def latent(self, x, y, w):
            return changes(super().latent(x, y, w))

    with pytest.raises(OracleError, match=rf"example \d+: {message}: completions of one output must be of one shape"):
        fit(Changes(), init=[np.array(h) for h in INIT[Types]], C=5.0)


@pytest.mark.parametrize("number", [np.int64, np.int8, int])
def test_numbers_are_of_one_shape(number):
    """Completions from an array of numbers may be followed by Python's own, and the other way round."""

    class Numbered(Types):
        def outputs(self, x=None, h=None):
            return list(range(4))

        def completions(self, x, y):
            return [0, 1] if y < 0 else [2, 3]

        def joint_feature(self, x, h):
            return np.kron(np.eye(4)[h], x)

        def loss(self, h_true, h):
            return float(h_true // 2 != h // 2)

        def label_from_latent(self, h):
            return -1 if h < 2 else 1

        def latent(self, x, y, w):
            return number(super().latent(x, y, w))

    numbers = [2 * (y > 0) + t for y, t in INIT[Types]]
    one, two = (fit(Numbered(), init=init) for init in (numbers, np.array(numbers)))
    assert one.history_[-1].round > 1
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.latent_ == two.latent_


@each
def test_two_things_to_begin_with(kind, tmp_path):
    fit(kind(), init=INIT[kind])
    make(kind()).fit(*DATA[kind], checkpoint=tmp_path / "state")
    with pytest.raises(ValueError, match="init and resume both say what to begin with: give one of them"):
        make(kind()).fit(*DATA[kind], init=INIT[kind], resume=tmp_path / "state")
    with pytest.raises(FileNotFoundError):
        make(kind()).fit(*DATA[kind], resume=tmp_path / "nothing")
    (tmp_path / "nonsense").write_bytes(b"no")
    with pytest.raises(ValueError, match="is not a solution of an oracle problem saved by dualsvm"):
        make(kind()).fit(*DATA[kind], resume=tmp_path / "nonsense")


@each
def test_weights_whose_number_is_not_known(kind):
    class Unknown(kind):
        size_joint_feature = None

    with pytest.raises(ValueError, match=r"a Unknown, does not say how many weights there are.*give init="):
        fit(Unknown())
    for terms in ({"prior": Prior(mean=1.0)}, {"lower": 0.5}, {"prior": Prior(covariance=[[1.0]])}):
        with pytest.raises(ValueError, match="new ones begin at 0"):
            fit(Unknown(), init=INIT[kind], **terms)


@each
def test_models_that_are_not_fitted_or_given_too_little(kind):
    X, Y = DATA[kind]
    names = ["predict", "latent"] + ([] if kind is Types else ["decision_function"])
    for name in names:
        with pytest.raises(ValueError, match="not fitted"):
            getattr(make(kind()), name)(X)
    with pytest.raises(ValueError, match="not fitted"):
        make(kind()).score(X, Y)
    with pytest.raises(ValueError, match=r"same length|inconsistent numbers of samples"):
        fit(kind(), tol=0.5).score(X, Y[:2])


@each
def test_a_failure_before_anything_was_learned_leaves_nothing(kind):
    model = make(kind())
    with pytest.raises(ValueError, match="init must"):
        model.fit(*DATA[kind], init=INIT[kind][:-1])
    with pytest.raises(ValueError, match="not fitted"):
        model.predict(DATA[kind][0])


class Endless:
    """A sequence that does not say where it ends, but by its length."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        return self.values[i % len(self.values)]


def test_a_sequence_that_ends_by_its_length_only():
    bags = [np.ones((2, 3)) * y for y in (1, -1, 1, -1)]
    lazy = LatentSVM(MultipleInstance(), random_state=0).fit(Endless(bags), [1, -1, 1, -1])
    assert lazy.objective_ == LatentSVM(MultipleInstance(), random_state=0).fit(bags, [1, -1, 1, -1]).objective_
