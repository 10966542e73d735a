"""A conformance test of tasks, for those who write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .constraints import OracleError, as_feature
from .oracle import _Oracle
from .problem import as_loss


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
    `loss_augmented_inference` nor `inference` is beaten by another output, at random weights and at zeros; and
    `inference` agrees with the loss-augmented search where the loss decides nothing.

    Parameters
    ----------
    task : object
        The task; its ``initialize(X, Y)``, if it has one, is called.
    X, Y : sequence
        Some examples; few suffice.
    outputs : callable, default None
        ``outputs(x)`` returns outputs to compare with: all of them where they can be listed. None: the true outputs
        of all the examples that the task accepts for x, and whatever its searches return at other weights.
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
    """
    needed = ("joint_feature", "loss", "inference", "loss_augmented_inference")
    absent = [name for name in needed if not callable(getattr(task, name, None))]
    if absent:
        raise OracleError(f"the task, a {type(task).__name__}, lacks {', '.join(absent)}")
    if len(X) != len(Y) or len(X) == 0:
        raise ValueError(f"X and Y must have the same length, at least 1, got {len(X)} and {len(Y)}")
    if hasattr(task, "initialize"):
        task.initialize(X, Y)
    random = check_random_state(random_state)
    size = getattr(task, "size_joint_feature", None)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        name = f"example {i}"
        own = as_feature(task.joint_feature(x, y), f"{name}: joint_feature", size)
        size_now = int(own.column.max(initial=0)) + 1 if size is None else int(size)
        tried = [np.zeros(size_now), *random.normal(size=(n_weights, size_now))]
        others = list(outputs(x)) if outputs is not None else _sampled(task, x, y, Y, tried)
        for w in tried:
            _check(task, x, y, w, others, name)


def _sampled(task: Any, x: Any, y: Any, Y: Sequence[Any], tried: list[Any]) -> list[Any]:
    """Return outputs for x: what the task's searches find, and the outputs of other examples where they fit."""
    found = [y, *(task.inference(x, w) for w in tried), *(task.loss_augmented_inference(x, y, w) for w in tried)]
    for other in Y[:20]:
        try:
            task.joint_feature(x, other)
            task.loss(y, other)
        except Exception:  # an output that is none for this input
            continue
        found.append(other)
    return found


def _check(task: Any, x: Any, y: Any, w: Any, others: list[Any], name: str) -> None:
    exact = getattr(task, "exact", True)
    oracle = _Oracle(task, x, y, name, new=True)
    features = [oracle._feature(h) for h in others]
    scores = np.array([feature.dot(w) for feature in features])
    losses = np.array([as_loss(task.loss(y, h), f"{name}: loss") for h in others])
    if (losses < 0).any():
        raise OracleError(f"{name}: the loss must not be negative, got {losses.min()}")
    rounding = 1e-9 * (1 + losses.max(initial=0) + max((f.size(w) for f in features), default=0) + oracle.own.size(w))
    worst, l, _ = oracle._worst(w, 0.0)
    best = float((losses + scores).max(initial=-np.inf)) - oracle.own.dot(w)
    value = l - worst.dot(w)
    if hasattr(task, "encode"):  # a compiled search may be exact or not, and says so
        bound = float(task.encode([x], [y]).search(np.arange(1), w).bound[0])
        exact = exact and bound <= value + rounding
        if best > bound + rounding:
            raise OracleError(f"{name}: the search promised no more than {bound:.6g}, but there is {best:.6g}")
    if exact and best > value + rounding:
        h = others[int(np.argmax(losses + scores))]
        raise OracleError(
            f"{name}: loss_augmented_inference is not the best output: loss and score exceed those of the true "
            f"output by {value:.6g}, but those of {_short(h)} by {best:.6g}"
        )
    found = oracle._feature(task.inference(x, w)).dot(w)
    if exact and scores.max(initial=-np.inf) > found + rounding:
        h = others[int(np.argmax(scores))]
        raise OracleError(
            f"{name}: inference is not the best output: it scores {found:.6g}, but {_short(h)} {scores.max():.6g}"
        )
    # loss_augmented_inference knows outputs, too: none may score above what inference found
    if exact and oracle.own.dot(w) - worst.dot(w) > found + rounding:
        raise OracleError(f"{name}: inference scores {found:.6g}, less than what loss_augmented_inference returned")


def _short(output: Any) -> str:
    text = " ".join(repr(output).split())
    return text if len(text) <= 60 else text[:57] + "..."
