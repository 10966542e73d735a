"""What the tests of all kinds of tasks share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..checks import Array
from ..structured.constraints import Feature, OracleError, as_feature

Draw = Callable[[int], list[Array]]


class Known(NamedTuple):
    """An output, its joint feature vector, and its loss."""

    output: Any
    feature: Feature
    loss: float = 0.0


def announced(task: Any) -> int | None:
    """Return the number of weights, if a task says it."""
    size = getattr(task, "size_joint_feature", None)
    return None if size is None else int(size)


def known(task: Any, x: Any, h: Any, name: str) -> Known:
    """Return an output, or a latent value, with its joint feature vector, which must have the size announced."""
    return Known(h, as_feature(task.joint_feature(x, h), f"{name}: joint_feature", announced(task)))


def is_exact(task: Any) -> bool:
    """Whether a task claims that its searches find the best."""
    return bool(getattr(task, "exact", True))


def rounding_of(w: Array, *features: Feature) -> float:
    """Return by how much scores of feature vectors may differ for rounding alone."""
    return 1e-9 * (1 + sum(feature.size(w) for feature in features))


def refuse_beaten(best: Known, others: Sequence[Known], w: Array, what: str) -> None:
    """Refuse the answer of a search that scores less than another one."""
    rival = max(others, key=lambda other: other.feature.dot(w))
    score, better = best.feature.dot(w), rival.feature.dot(w)
    if better > score + rounding_of(w, best.feature, rival.feature):
        raise OracleError(f"{what}: it scores {score:.6g}, but {short(rival.output)} {better:.6g}")


def guessed(task: Any, X: Sequence[Any], Y: Any) -> list[Any]:
    """Return what `init_latent` says of examples; nothing where the task lacks it."""
    guess = getattr(task, "init_latent", None)
    if not callable(guess):
        return []
    seed = {"random_state": 0} if "random_state" in inspect.signature(guess).parameters else {}
    found = list(guess(X, Y, **seed))
    if len(found) != len(X):
        raise OracleError(f"init_latent must have an entry for all {len(X)} examples, got {len(found)}")
    return found


def size_of(task: Any, begun: Sequence[Known]) -> int:
    """Return the number of weights: as announced, or else those that the values to begin with need."""
    size = announced(task)
    if size is not None:
        return size
    if not begun:
        raise OracleError(
            f"the task, a {type(task).__name__}, does not say how many weights there are: it needs "
            "size_joint_feature, or init_latent to begin with"
        )
    return 1 + max(int(one.feature.column.max(initial=0)) for one in begun)


def check_batch(task: Any, method: str, X: Sequence[Any], *rest: Any) -> None:
    """Refuse answers of a batch method that score otherwise than those to one input at a time."""
    if not hasattr(task, f"batch_{method}") or not hasattr(task, "encode"):
        return
    *Y, w = rest
    found = getattr(task, f"batch_{method}")(list(X), *map(list, Y), w, 1)
    if len(found) != len(X):
        raise OracleError(f"batch_{method} must answer for all {len(X)} examples, got {len(found)} answers")
    for i, (x, h) in enumerate(zip(X, found, strict=True)):
        one = known(task, x, getattr(task, method)(x, *(y[i] for y in Y), w), f"example {i}")
        other = known(task, x, h, f"example {i}")
        scores = one.feature.dot(w), other.feature.dot(w)
        if is_exact(task) and abs(scores[0] - scores[1]) > rounding_of(w, one.feature, other.feature):
            raise OracleError(
                f"example {i}: batch_{method} finds {short(h)}, which scores {scores[1]:.6g}, but {method} "
                f"{short(one.output)} with {scores[0]:.6g}"
            )


def short(output: Any) -> str:
    """Return an output in few words."""
    text = " ".join(repr(output).split())
    return text if len(text) <= 60 else text[:57] + "..."
