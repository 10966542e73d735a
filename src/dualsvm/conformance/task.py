"""Which promises a task makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..checks import Array
from ..latent import LatentStructuredSVM, LatentSVM
from ..latent.binary import _labels
from ..structured import OracleError, StructuredSVM
from ..structured.examples import as_examples, as_sequence
from .completions import check_completions
from .outputs import check_outputs
from .windows import check_windows


def check_task(
    task: Any,
    X: Sequence[Any],
    Y: Sequence[Any],
    *,
    outputs: Any = None,
    n_weights: int = 5,
    random_state: Any = 0,
) -> None:
    """Check that a task keeps its promises on some examples.

    The loss of the true output is 0 and no loss is negative; joint features have the size announced; neither
    `loss_augmented_inference` nor `inference` is beaten by another output, at random weights and at zeros; and a
    compiled search (`encode`) finds constraints as bad as `loss_augmented_inference` does. So with `slack_inference`.

    Of a task for `LatentStructuredSVM`, which has `latent`, all this must hold with completed outputs. Moreover what
    `latent` and `init_latent` return completes the output that it is asked for; no other completion known beats
    `latent`; the loss does not depend on what is latent in the true output; and `batch_latent` and `batch_inference`
    score as `latent` and `inference` do.

    Of a task for `LatentSVM`, which has no loss, `inference` must not be beaten by another latent value; `violations`
    must yield what violates its margin, all that is known to, and nothing else; and `batch_inference` and a compiled
    search must agree with these.

    Parameters
    ----------
    task : object
        The task; its ``initialize(X, Y)``, if it has one, is called.
    X, Y : sequence
        Some examples; few suffice. For `LatentSVM`, Y are the classes -1 and 1.
    outputs : callable, default None
        ``outputs(x)`` returns outputs (completed ones, or latent values) to compare with: all of them where they can
        be listed. None: the true outputs of all the examples that the task accepts for x, and whatever its searches
        return at other weights. Where ``task.relative`` is True, which outputs compete with the true one depends on
        it, and `inference` looks among others (as for rankings, where only pairs with different true grades count):
        ``outputs(x, y)`` then returns the former, and `inference` is compared with what it returns at other weights.
    n_weights : int, default 5
        How many random weights are tried for every example.
    random_state : int, RandomState or None, default 0
        Seed of the weights.

    Raises
    ------
    OracleError
        Which promise was broken, and for which example.

    Examples
    --------
    >>> from dualsvm import check_task
    >>> from dualsvm.tasks import Chain
    >>> check_task(Chain(), [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0]]], ["ab", "b"])

    A task for `LatentSVM`: the latent value is a row of the input.

    >>> import numpy as np
    >>> class Row:
    ...     size_joint_feature = 2
    ...     def joint_feature(self, x, z):
    ...         return x[z]
    ...     def inference(self, x, w):
    ...         return int(np.argmax(x @ w))
    >>> check_task(Row(), [np.eye(2), -np.eye(2)], [1, -1], outputs=lambda x: range(len(x)))
    """
    estimator, check = _kind(task)
    absent = [name for name in estimator._needed if not callable(getattr(task, name, None))]
    if absent:
        raise OracleError(f"the task, a {type(task).__name__}, lacks {', '.join(absent)}")
    inputs = as_sequence(X)
    if len(inputs) != len(Y) or len(inputs) == 0:
        raise ValueError(f"X and Y must have the same length, at least 1, got {len(inputs)} and {len(Y)}")
    truth: Any = _labels(as_examples(X, Y)) if estimator is LatentSVM else Y
    if hasattr(task, "initialize"):
        task.initialize(X, truth)
    random = check_random_state(random_state)

    def draw(size: int) -> list[Array]:
        return [np.zeros(size), *random.normal(size=(n_weights, size))]

    check(task, [inputs[i] for i in range(len(inputs))], truth, outputs, draw)


def _kind(task: Any) -> tuple[Any, Any]:
    """Return the estimator that a task is for, and what checks it."""
    if hasattr(task, "latent") or hasattr(task, "label_from_latent"):
        return LatentStructuredSVM, check_completions
    if hasattr(task, "loss") or hasattr(task, "loss_augmented_inference"):
        return StructuredSVM, check_outputs
    return LatentSVM, check_windows
