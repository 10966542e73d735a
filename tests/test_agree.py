"""Tasks that learn from pieces of the examples know what they would have learned from all of them."""

import copy
import pickle

import numpy as np
import pytest

from dualsvm.structured.agree import agreed, survey
from dualsvm.tasks import Assignment, Chain, Graph, Grid, Multiclass, Multilabel, Ranking, Tree

from .structured import Signs

RNG = np.random.default_rng(0)
EDGE = [(0, 1)]


def labels(*shape):
    """Random labels of the first examples; the last one has a label of its own."""
    return [RNG.choice(["x", "y"], size=shape) for _ in range(6)] + [np.full(shape, "z")]


def rows(*shape):
    return [RNG.normal(size=shape) for _ in range(7)]


CASES = {
    "Chain": (Chain(), rows(2, 3), labels(2)),
    "Chain, named": (Chain(labels=["w", "z", "y", "x"]), rows(2, 3), labels(2)),
    "Multiclass": (Multiclass(), rows(3), [str(y) for y in labels()]),
    "Graph": (
        Graph(),
        [(x, EDGE, np.ones((1, 2))) if i > 3 else (x, []) for i, x in enumerate(rows(2, 3))],
        labels(2),
    ),
    "Tree": (Tree(), [(x, EDGE) for x in rows(2, 3)], labels(2)),
    "Grid": (Grid(), rows(2, 2, 3), labels(2, 2)),
    "Multilabel": (Multilabel(), rows(3), list(RNG.integers(0, 2, size=(7, 4)))),
    "Multilabel, tree": (Multilabel(edges="tree"), rows(3), list(RNG.integers(0, 2, size=(7, 4)))),
    "Assignment": (Assignment(), rows(2, 2, 3), [np.arange(2)] * 7),
    "Ranking": (Ranking(), rows(2, 3), [np.arange(2)] * 7),
}


def in_pieces(task, X, Y, cuts=(1, 4)):
    told = [survey(task, X[a:b], Y[a:b]) for a, b in zip([0, *cuts], [*cuts, len(Y)], strict=True)]
    return agreed(task, pickle.loads(pickle.dumps(told)))


@pytest.mark.parametrize("case", CASES)
def test_pieces_tell_what_all_examples_tell(case):
    task, X, Y = CASES[case]
    before, task = vars(task).copy(), copy.copy(task)
    own = in_pieces(task, X, Y)
    assert vars(task) == before
    task.initialize(X, Y)
    assert own.size_joint_feature == task.size_joint_feature > 0
    w = RNG.normal(size=own.size_joint_feature)
    for x, y in zip(X, Y, strict=True):
        for ours, theirs in zip(own.joint_feature(x, y), task.joint_feature(x, y), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(own.inference(x, w), task.inference(x, w))


def test_inputs_of_different_widths_are_refused():
    X = [np.ones((2, 3))] * 5 + [np.ones((2, 4))] * 2
    with pytest.raises(ValueError, match=r"same number of features, got \[3, 4\]"):
        in_pieces(Chain(), X, labels(2), (1, 5))


def test_pieces_without_labels():
    missing, own = [[None, None]] * 4, [["x", "y"]] * 3
    assert in_pieces(Chain(), rows(2, 3), missing + own).known_labels.values == ["x", "y"]
    with pytest.raises(ValueError, match="Y holds no label"):
        in_pieces(Chain(), rows(2, 3), missing + [[None, None]] * 3)


def test_outputs_of_different_lengths_are_refused():
    Y = [np.zeros(3, int)] * 4 + [np.zeros(4, int)] * 3
    with pytest.raises(ValueError, match="every output must have the same number"):
        in_pieces(Multilabel(), rows(3), Y)


class Learning(Signs):
    """A task of the user's that looks at its examples."""

    seen = 0

    def initialize(self, X, Y):
        self.seen = len(X)


def test_a_task_that_cannot_agree_learns_from_the_first_piece():
    task = Learning()
    assert in_pieces(task, rows(2, 3), labels(2)).seen == 1
    assert task.seen == 0


def test_a_task_that_learns_nothing_stays_what_it_is():
    task = Signs()
    assert in_pieces(task, rows(2, 3), labels(2)) is task
