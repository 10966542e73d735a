"""A conformance test of tasks, for those who write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from .constraints import Feature, Found, OracleError, as_feature
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
    `loss_augmented_inference` nor `inference` is beaten by another output, at random weights and at zeros; and a
    compiled search (`encode`) finds constraints as bad as `loss_augmented_inference` does. So with `slack_inference`.

    Parameters
    ----------
    task : object
        The task; its ``initialize(X, Y)``, if it has one, is called.
    X, Y : sequence
        Some examples; few suffice.
    outputs : callable, default None
        ``outputs(x)`` returns outputs to compare with: all of them where they can be listed. None: the true outputs
        of all the examples that the task accepts for x, and whatever its searches return at other weights. Where
        ``task.relative`` is True, which outputs compete with the true one depends on it, and `inference` looks among
        others (as for rankings, where only pairs with different true grades count): ``outputs(x, y)`` then returns
        the former, and `inference` is compared with what it returns at other weights.
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
    relative = getattr(task, "relative", False)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        name = f"example {i}"
        own = as_feature(task.joint_feature(x, y), f"{name}: joint_feature", size)
        size_now = int(own.column.max(initial=0)) + 1 if size is None else int(size)
        tried = [np.zeros(size_now), *random.normal(size=(n_weights, size_now))]
        if relative:
            others = [y, *(task.loss_augmented_inference(x, y, w) for w in tried)]
            others += [] if outputs is None else list(outputs(x, y))
        else:
            others = [y, *outputs(x)] if outputs is not None else _sampled(task, x, y, Y, tried)
        oracle = _Oracle(task, x, y, name, new=True)
        known = _look(oracle, others)
        found = _look(oracle, [task.inference(x, w) for w in tried]) if relative else known
        for w in tried:
            worst, exact = _check_worst(oracle, w, known)
            known.append(worst)
            if exact:  # what loss_augmented_inference found may not score above what inference finds, either
                _check_best(oracle, w, found)


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


class _Known(NamedTuple):
    """An output, its joint feature vector, and its loss."""

    output: Any
    feature: Feature
    loss: float


def _look(oracle: _Oracle, outputs: list[Any]) -> list[_Known]:
    known = []
    for h in outputs:
        loss = as_loss(oracle.task.loss(oracle.y, h), f"{oracle.name}: loss")
        if loss < 0:
            raise OracleError(f"{oracle.name}: the loss must not be negative, got {loss} for {_short(h)}")
        known.append(_Known(h, oracle._feature(h), loss))
    return known


def _check_worst(oracle: _Oracle, w: Any, others: list[_Known]) -> tuple[_Known, bool]:
    """Return the answer of the loss-augmented search, and whether it is exact: then none may be worse."""
    task, name, own = oracle.task, oracle.name, oracle.own.dot(w)
    x, l, bound = oracle._worst(w)
    value = l - x.dot(w)
    (worst,) = _look(oracle, [task.loss_augmented_inference(oracle.x, oracle.y, w)])
    rounding = 1e-9 * (1 + max(h.loss + h.feature.size(w) for h in (*others, worst)) + oracle.own.size(w))
    rival = max(others, key=lambda h: h.loss + h.feature.dot(w))
    best = rival.loss + rival.feature.dot(w) - own
    if hasattr(task, "encode"):
        found = Found(*task.encode([oracle.x], [oracle.y]).search(np.arange(1), w, 1))
        held = float((found.l - sp.csr_array(found.matrix, shape=(len(found.l), len(w))) @ w).max())
        bound = float(found.bound[0])
        if best > bound + rounding:
            raise OracleError(f"{name}: the search promised no more than {bound:.6g}, but there is {best:.6g}")
        if max(abs(held - value), abs(found.value[0] - value)) > rounding:
            raise OracleError(
                f"{name}: the search of encode says {found.value[0]:.6g} and finds a constraint of {held:.6g}, but "
                f"loss_augmented_inference one of {value:.6g}"
            )
    exact = getattr(task, "exact", True) and bound <= value + rounding  # a compiled search says so each time
    if exact and best > value + rounding:
        raise OracleError(
            f"{name}: loss_augmented_inference is not the best output: loss and score exceed those of the true "
            f"output by {value:.6g}, but those of {_short(rival.output)} by {best:.6g}"
        )
    if hasattr(task, "slack_inference"):
        x, l = oracle._difference(task.slack_inference(oracle.x, oracle.y, w))
        best = max(h.loss * (1 - own + h.feature.dot(w)) for h in others)
        if best > l * (1 - x.dot(w)) + rounding * (1 + max(h.loss for h in others)):
            raise OracleError(
                f"{name}: slack_inference is not the best output: its loss times what it lacks of the margin is "
                f"{l * (1 - x.dot(w)):.6g}, but that of another output {best:.6g}"
            )
    return worst, exact


def _check_best(oracle: _Oracle, w: Any, others: list[_Known]) -> None:
    """Refuse an answer of `inference` that scores less than another output."""
    best = oracle._feature(oracle.task.inference(oracle.x, w))
    rival = max(others, key=lambda h: h.feature.dot(w))
    rounding = 1e-9 * (1 + best.size(w) + rival.feature.size(w))
    if rival.feature.dot(w) > best.dot(w) + rounding:
        raise OracleError(
            f"{oracle.name}: inference is not the best output: it scores {best.dot(w):.6g}, but "
            f"{_short(rival.output)} {rival.feature.dot(w):.6g}"
        )


def _short(output: Any) -> str:
    text = " ".join(repr(output).split())
    return text if len(text) <= 60 else text[:57] + "..."
