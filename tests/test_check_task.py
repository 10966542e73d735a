"""The conformance test of tasks finds what is wrong with them."""

import numpy as np
import pytest

from dualsvm import OracleError, check_task
from dualsvm.tasks import Chain

from .structured import Signs
from .test_structured import Growing, chain_data, chain_outputs, signs_data

X, Y = signs_data(4)


def test_good_tasks():
    check_task(Signs(), X, Y)
    check_task(Signs(), X, Y, outputs=Signs.outputs)
    check_task(Growing(), X, Y)
    check_task(Chain(), *chain_data(4), outputs=chain_outputs)
    check_task(Chain(normalized=True, start_end=False), *chain_data(4))


class LosesTheLoss(Signs):
    def loss_augmented_inference(self, x, y, w, relaxed=False, return_energy=False):
        return self.inference(x, w)


class TakesTheFirst(Signs):
    def inference(self, x, w, relaxed=False, return_energy=False):
        return (1, 1)


class CostsTheTruth(Signs):
    def loss(self, y, y_hat):
        return 1.0


class Rewards(Signs):
    def loss(self, y, y_hat):
        return -float(y != y_hat)


class TooShort(Signs):
    size_joint_feature = 5


class LacksInference(Signs):
    inference = None


class Miscounts(Chain):
    """Whose compiled search and whose loss do not go together."""

    def _loss(self, own, other):
        return super()._loss(own, other) / 2

    def loss_augmented_inference(self, x, y, w):
        options = chain_outputs(x)
        return max(
            options, key=lambda h: self.loss(y, h) + w[self.joint_feature(x, h)[0]] @ self.joint_feature(x, h)[1]
        )


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (LosesTheLoss(), "example 0: loss_augmented_inference is not the best output"),
        (TakesTheFirst(), "example 0: inference is not the best output: it scores"),
        (CostsTheTruth(), "example 0: the loss of the true output must be 0, got 1"),
        (Rewards(), "the loss must not be negative, got -1"),
        (TooShort(), "joint_feature must have 5 entries, got 4"),
        (LacksInference(), "the task, a LacksInference, lacks inference"),
    ],
)
def test_bad_tasks(task, message):
    with pytest.raises(OracleError, match=message):
        check_task(task, X, Y, outputs=Signs.outputs)


def test_a_compiled_search_that_disagrees():
    with pytest.raises(OracleError, match="the search of encode says"):
        check_task(Miscounts(), *chain_data(4))


def test_a_slack_search_that_is_not_the_best():
    class Forgets(Signs):
        def slack_inference(self, x, y, w):
            return y

    with pytest.raises(OracleError, match="example 0: slack_inference is not the best output"):
        check_task(Forgets(), X, Y, outputs=Signs.outputs)


def test_no_examples():
    with pytest.raises(ValueError, match="at least 1, got 0 and 0"):
        check_task(Signs(), [], [])
    with pytest.raises(ValueError, match="same length"):
        check_task(Signs(), X, Y[:1])


def test_a_search_that_says_it_is_not_exact():
    class Honest(LosesTheLoss):
        exact = False

    check_task(Honest(), X, Y, outputs=Signs.outputs)


def test_outputs_that_depend_on_the_truth():
    class Relative(Signs):
        """Of which only the first sign may be wrong."""

        relative = True

        def loss_augmented_inference(self, x, y, w, relaxed=False, return_energy=False):
            return max(self.rivals(x, y), key=lambda h: self.loss(y, h) + np.asarray(self.joint_feature(x, h)) @ w)

        def rivals(self, x, y):
            return [y, (-y[0], y[1])]

    task = Relative()
    check_task(task, X, Y)
    check_task(task, X, Y, outputs=task.rivals)
    with pytest.raises(OracleError, match="loss_augmented_inference is not the best output"):
        check_task(task, X, Y, outputs=Signs.outputs)
