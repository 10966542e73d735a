"""The conformance test of latent tasks finds what is wrong with them."""

from types import SimpleNamespace

import numpy as np
import pytest

from dualsvm import LatentStructuredSVM, LatentSVM, OracleError, check_task
from dualsvm.structured.constraints import Answer, as_feature, collect, difference

from .structured import Signs
from .test_structured import signs_data

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(4, 3)), ["a", "b", "a", "b"]
SIGNALS, CLASSES = rng.normal(size=(4, 6)), [1, -1, -1, 1]


class Types:
    """Two labels of two sub-types each: everything enumerated."""

    size_joint_feature = 12

    def outputs(self, x):
        return [(y, k) for y in "ab" for k in range(2)]

    def joint_feature(self, x, h):
        phi = np.zeros((4, 3))
        phi["ab".index(h[0]) * 2 + h[1]] = x
        return phi.ravel()

    def loss(self, h_true, h):
        return (1.0 + 0.5 * h[1]) * (h_true[0] != h[0])  # what is latent in h may count

    def label_from_latent(self, h):
        return h[0]

    def best(self, x, w, options, gain=lambda h: 0.0):
        return max(options, key=lambda h: self.joint_feature(x, h) @ w + gain(h))

    def latent(self, x, y, w):
        return self.best(x, w, [h for h in self.outputs(x) if h[0] == y])

    def inference(self, x, w):
        return self.best(x, w, self.outputs(x))

    def loss_augmented_inference(self, x, h_true, w):
        return self.best(x, w, self.outputs(x), lambda h: self.loss(h_true, h))


class AllTypes(Types):
    """With all that such a task may have."""

    def init_latent(self, X, Y, random_state):
        types = np.random.RandomState(random_state).randint(2, size=len(Y))
        return list(zip(Y, types.tolist(), strict=True))

    def batch_latent(self, X, Y, w, n_jobs):
        return [self.latent(x, y, w) for x, y in zip(X, Y, strict=True)]

    def batch_inference(self, X, w, n_jobs):
        return [self.inference(x, w) for x in X]

    def encode(self, X, H):
        def search(which, w, threads):
            return collect(which, [self.worst(X[i], H[i], w) for i in which])

        return SimpleNamespace(search=search)

    def worst(self, x, h_true, w):
        h = self.loss_augmented_inference(x, h_true, w)
        own, other = (as_feature(self.joint_feature(x, each), "x", None) for each in (h_true, h))
        a, l = difference(own, other), self.loss(h_true, h)
        return Answer([(a, l)], l - a.dot(w), l - a.dot(w))


class Unsized(AllTypes):
    size_joint_feature = None


class Boxed(Types):
    """Whose labels come back in another container than they were given in."""

    def latent(self, x, y, w):
        return super().latent(x, y[0], w)

    def label_from_latent(self, h):
        return np.array([h[0]])


def test_good_tasks_of_completions():
    for task in (Types(), AllTypes()):
        check_task(task, X, Y)
        check_task(task, X, Y, outputs=task.outputs)
        assert LatentStructuredSVM(task, random_state=0).fit(X, Y).converged_
    check_task(Unsized(), X, Y)
    check_task(Boxed(), X, ["a", ["b"], ("a",), np.array(["b"])])


class LacksLatent(Types):
    latent = None


class TooShort(Types):
    size_joint_feature = 11


class TooLong(Types):
    def joint_feature(self, x, h):
        return np.append(super().joint_feature(x, h), 1.0)

    def best(self, x, w, options, gain=lambda h: 0.0):
        return super().best(x, np.append(w, 0.0), options, gain)


class UnsizedBeginning(Types):
    size_joint_feature = None


class CompletesAnother(Types):
    def latent(self, x, y, w):
        return self.inference(x, w)


class CompletesByTheFirst(Types):
    def latent(self, x, y, w):
        return y, 0


class ChangesShape(Types):
    def latent(self, x, y, w):
        h = super().latent(x, y, w)
        return h if h[1] == 0 else (*h, "more")


class CostsTheTruth(Types):
    def loss(self, h_true, h):
        return 1.0


class Rewards(Types):
    def loss(self, h_true, h):
        return -float(h_true[0] != h[0])


class CostsTypes(Types):
    def loss(self, h_true, h):
        return float(h_true != h)


class CostsByTheTrueType(Types):
    def loss(self, h_true, h):
        return (1.0 + 0.5 * h_true[1]) * (h_true[0] != h[0])


class InfersTheFirst(Types):
    def inference(self, x, w):
        return "a", 0


class LosesTheLoss(Types):
    def loss_augmented_inference(self, x, h_true, w):
        return self.inference(x, w)


class SearchesAfterAnotherTruth(Types):
    """Whose search is right where the true type is 0."""

    def loss_augmented_inference(self, x, h_true, w):
        return super().loss_augmented_inference(x, h_true, w if h_true[1] == 0 else -w)


class EncodesWithoutLoss(AllTypes):
    def worst(self, x, h_true, w):
        a, _ = super().worst(x, h_true, w).constraints[0]
        return Answer([(a, 0.0)], -a.dot(w), 9.0)


class BatchOfFirsts(AllTypes):
    def batch_latent(self, X, Y, w, n_jobs):
        return [(y, 0) for y in Y]


class BatchBackwards(AllTypes):
    def batch_inference(self, X, w, n_jobs):
        return super().batch_inference(X[::-1], w, n_jobs)


class BatchTooShort(AllTypes):
    def batch_latent(self, X, Y, w, n_jobs):
        return super().batch_latent(X[1:], Y[1:], w, n_jobs)


class BeginsTooShort(AllTypes):
    def init_latent(self, X, Y):
        return [(y, 0) for y in Y[1:]]


class BeginsWithOthers(AllTypes):
    def init_latent(self, X, Y):
        return [("a", 0) for _ in Y]


@pytest.mark.parametrize("given", [True, False], ids=["outputs", "sampled"])
@pytest.mark.parametrize(
    ("task", "message"),
    [
        (LacksLatent(), "the task, a LacksLatent, lacks latent"),
        (TooShort(), "the task failed to complete example 0: ValueError: matmul"),
        (TooLong(), "example 0: joint_feature must have 12 entries, got 13"),
        (UnsizedBeginning(), "does not say how many weights there are: it needs size_joint_feature, or init_latent"),
        (CompletesAnother(), "example 0: latent must return a completion of 'a', got .'b', 1., whose .* is 'b'"),
        (CompletesByTheFirst(), "example 0: latent is not the best completion of 'a': it scores"),
        (ChangesShape(), "example 0: its completion was a tuple of 2, and is a tuple of 3 now"),
        (CostsTheTruth(), "example 0: the loss of the true output must be 0, got 1"),
        (Rewards(), "example 0: the loss must not be negative, got -1"),
        (CostsTypes(), "example 0: the loss depends on what is latent in the true output: .* would not be monotone"),
        (CostsByTheTrueType(), "example 0: the loss depends on what is latent in the true output: that of"),
        (InfersTheFirst(), "example 0: inference is not the best output"),
        (LosesTheLoss(), "example 0: loss_augmented_inference is not the best output"),
        (
            SearchesAfterAnotherTruth(),
            "example 0: loss_augmented_inference (returned an output that is worse|is not the best output)",
        ),
        (EncodesWithoutLoss(), "example 0: the search of encode says"),
        (BatchOfFirsts(), "example [0-3]: batch_latent finds .*, which scores .*, but latent"),
        (BatchBackwards(), "example [0-3]: batch_inference finds .*, which scores .*, but inference"),
        (BatchTooShort(), "batch_latent must answer for all 4 examples, got 3 answers"),
        (BeginsTooShort(), "init_latent must have an entry for all 4 examples, got 3"),
        (BeginsWithOthers(), "example 1: init_latent must return a completion of 'b', got"),
    ],
    ids=lambda task: type(task).__name__ if isinstance(task, Types) else "",
)
def test_bad_tasks_of_completions(task, message, given):
    with pytest.raises(OracleError, match=message):
        check_task(task, X, Y, outputs=task.outputs if given else None)


def test_completions_that_are_not_said_to_be_the_best():
    class Honest(CompletesByTheFirst):
        exact = False

    check_task(Honest(), X, Y, outputs=Honest().outputs)


class Place:
    """A window of three in a signal; its latent value is where it begins."""

    size_joint_feature = 4

    def outputs(self, x):
        return range(len(x) - 2)

    def joint_feature(self, x, z):
        return np.append(x[z : z + 3], 1.0)

    def scores(self, x, w):
        return np.array([self.joint_feature(x, z) @ w for z in self.outputs(x)])

    def inference(self, x, w):
        return int(self.scores(x, w).argmax())


class EveryPlace(Place):
    """With all that such a task may have."""

    def init_latent(self, X, y):
        return [int(np.argmax(x[1:-1])) if own > 0 else None for x, own in zip(X, y, strict=True)]

    def batch_inference(self, X, w, n_jobs):
        return [self.inference(x, w) for x in X]

    def violations(self, x, w):
        for z in np.flatnonzero(1 + self.scores(x, w) > 0):
            yield int(z), self.joint_feature(x, z)

    def encode(self, X):
        def search(which, w, threads, every=False):
            found = [self.found(X[i], w, every) for i in which]
            line = np.repeat(np.arange(len(which)), [len(some) for some in found])
            phi = np.array([phi for some in found for _, phi in some]).reshape(-1, 4)
            column = np.tile(np.arange(4), len(phi))
            return line, [z for some in found for z, _ in some], 4 * np.arange(len(phi) + 1), column, phi.ravel()

        return SimpleNamespace(search=search)

    def found(self, x, w, every):
        if every:
            return list(self.violations(x, w))
        z = self.inference(x, w)
        return [(z, self.joint_feature(x, z))]


class PlaceOrNone(EveryPlace):
    violations = None


class Parts:
    """A window of two, the second of which may be moved by one: violations are windows with their best parts."""

    size_joint_feature = 3

    def joint_feature(self, x, z):
        place, move = z
        return np.array([x[place], x[place + 1 + move], float(move)])

    def inference(self, x, w):
        options = [(place, move) for place in range(len(x) - 2) for move in range(2)]
        return max(options, key=lambda z: self.joint_feature(x, z) @ w)

    def violations(self, x, w):
        for place in range(len(x) - 2):
            phi = max((self.joint_feature(x, (place, move)) for move in range(2)), key=lambda phi: phi @ w)
            if 1 + phi @ w > 0:
                yield place, phi


def test_good_tasks_of_windows():
    for task in (Place(), EveryPlace(), PlaceOrNone()):
        check_task(task, SIGNALS, CLASSES)
        check_task(task, SIGNALS, CLASSES, outputs=task.outputs)
        assert LatentSVM(task, random_state=0).fit(SIGNALS, CLASSES).converged_
    check_task(Parts(), SIGNALS, CLASSES)


class PlaceTooShort(Place):
    size_joint_feature = 3


class PlaceTooLong(Place):
    def joint_feature(self, x, z):
        return np.append(super().joint_feature(x, z), 1.0)

    def scores(self, x, w):
        return super().scores(x, np.append(w, 0.0))


class TakesTheSecond(Place):
    def inference(self, x, w):
        return 1 if w.any() else 0


class StartsTooShort(EveryPlace):
    def init_latent(self, X, y):
        return [0]


class StartsOutside(EveryPlace):
    def init_latent(self, X, y):
        return [None if own < 0 else 4 for own in y]


class YieldsAll(EveryPlace):
    def violations(self, x, w):
        return [(z, self.joint_feature(x, z)) for z in self.outputs(x)]


class YieldsTheWorst(EveryPlace):
    def violations(self, x, w):
        return sorted(super().violations(x, w), key=lambda one: -one[1] @ w)[:1]


class YieldsTheFirstTwo(EveryPlace):
    """Of which nobody knows that there are others."""

    def violations(self, x, w):
        return [one for one in super().violations(x, w) if one[0] < 2]


class YieldsTwice(EveryPlace):
    def violations(self, x, w):
        return [*super().violations(x, w)] * 2


class YieldsBare(EveryPlace):
    def violations(self, x, w):
        return [phi for _, phi in super().violations(x, w)]


class YieldsShrunken(EveryPlace):
    def violations(self, x, w):
        return [(z, phi / (1 + abs(w).sum())) for z, phi in super().violations(x, w)]


class EncodesNumbers(EveryPlace):
    """Whose lines are numbers of examples, in place of places among those that were asked about."""

    def encode(self, X):
        coded = super().encode(X)

        def search(which, w, threads, every=False):
            line, *rest = coded.search(which, w, threads, every)
            return which[line], *rest

        return SimpleNamespace(search=search)


class EncodesTheFirst(EveryPlace):
    def found(self, x, w, every):
        return super().found(x, w, every) if every else [(0, self.joint_feature(x, 0))]


class EncodesOtherFeatures(EveryPlace):
    def found(self, x, w, every):
        return [(z, 2 * phi) for z, phi in super().found(x, w, every)]


class EncodesNothing(EveryPlace):
    def found(self, x, w, every):
        return super().found(x, w, every) if every else []


class EncodesTheBestOnly(EveryPlace):
    def found(self, x, w, every):
        return super().found(x, w, False)


class EncodesTwice(EveryPlace):
    def found(self, x, w, every):
        return super().found(x, w, every) * (1 + every)


class BatchOfNaughts(EveryPlace):
    def batch_inference(self, X, w, n_jobs):
        return [0 for _ in X]


@pytest.mark.parametrize("given", [True, False], ids=["outputs", "sampled"])
@pytest.mark.parametrize(
    ("task", "message"),
    [
        (PlaceTooShort(), "the task failed on example 0: ValueError: matmul"),
        (PlaceTooLong(), "example 0: joint_feature must have 4 entries, got 5"),
        (TakesTheSecond(), "example 0: inference is not the best latent value: it scores"),
        (StartsTooShort(), "init_latent must have an entry for all 4 examples, got 1"),
        (StartsOutside(), "example 0, init_latent: joint_feature must have 4 entries, got 3"),
        (YieldsAll(), "example 1: violations yields [0-3], which keeps its margin: 1 [+] w.phi is -"),
        (YieldsTheWorst(), "example 1: violations must yield all that violate their margins, but [0-3] is left out"),
        (YieldsTheFirstTwo(), "example 1: violations (must yield all|yields nothing that scores as high as)"),
        (YieldsTwice(), "example 1: violations yields 0 twice"),
        (YieldsBare(), "example 1: violations must yield .key, features., got"),
        (YieldsShrunken(), "example 1: violations must yield all .*, but 0 comes with 1 [+] w.phi of"),
        (EncodesNumbers(), "the search of encode, asked about 4 examples, must return .* got .* lines .3, 2, 1, 0."),
        (EncodesTheFirst(), "example [0-3]: the search of encode finds 0, which scores .*, but inference"),
        (EncodesOtherFeatures(), "example 3: the search of encode finds 0 with other features than joint_feature"),
        (EncodesNothing(), "example 3: the search of encode must find one latent value, got 0"),
        (
            EncodesTheBestOnly(),
            "example 2: the search of encode and violations must find the same, but 1 [+] w.phi of 1",
        ),
        (EncodesTwice(), "example 2: the search of encode finds the same violation twice"),
        (BatchOfNaughts(), "example [0-3]: batch_inference finds 0, which scores .*, but inference"),
    ],
    ids=lambda task: type(task).__name__ if isinstance(task, Place) else "",
)
def test_bad_tasks_of_windows(task, message, given):
    with pytest.raises(OracleError, match=message):
        check_task(task, SIGNALS, CLASSES, outputs=task.outputs if given else None)


def test_windows_that_are_not_said_to_be_the_best():
    class Honest(TakesTheSecond):
        exact = False

    check_task(Honest(), SIGNALS, CLASSES, outputs=Honest().outputs)


def test_classes_other_than_two():
    with pytest.raises(ValueError, match="y must hold the classes -1 and 1, one for every example, got 0"):
        check_task(Place(), SIGNALS, [0, 1, 1, 0])


def test_a_task_that_is_half_of_a_kind():
    class LacksSearch(Signs):
        loss_augmented_inference = None

    with pytest.raises(OracleError, match="the task, a LacksSearch, lacks loss_augmented_inference"):
        check_task(LacksSearch(), *signs_data(4))
    with pytest.raises(OracleError, match="the task, a object, lacks joint_feature, inference"):
        check_task(object(), SIGNALS, CLASSES)
