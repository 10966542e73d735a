"""The promises of tasks for `StructuredSVM`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..checks import Array
from ..structured.constraints import Found, OracleError
from ..structured.oracle import _Oracle
from ..structured.problem import as_loss
from .common import Draw, Known, is_exact, known, refuse_beaten, short, size_of


def check_outputs(task: Any, X: Sequence[Any], Y: Sequence[Any], outputs: Any, draw: Draw) -> None:
    """Check a task whose outputs have nothing latent."""
    relative = getattr(task, "relative", False)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        name = f"example {i}"
        tried = draw(size_of(task, [known(task, x, y, name)]))
        if relative:
            others = [y, *(task.loss_augmented_inference(x, y, w) for w in tried)]
            others += [] if outputs is None else list(outputs(x, y))
        else:
            others = [y, *(sampled(task, x, y, Y, tried) if outputs is None else outputs(x))]
        oracle = _Oracle(task, x, y, name, new=True)
        looked = look(oracle, others)
        found = look(oracle, [task.inference(x, w) for w in tried]) if relative else looked
        check_searches(oracle, tried, looked, found)


def sampled(
    task: Any,
    x: Any,
    y: Any,
    Y: Sequence[Any],
    tried: list[Array],
    completed: Callable[[Any, Any], Any] = lambda x, y: y,
) -> list[Any]:
    """Return outputs for x: what the task's searches find, and the outputs of other examples where they fit."""
    found = [*(task.inference(x, w) for w in tried), *(task.loss_augmented_inference(x, y, w) for w in tried)]
    for other in Y[:20]:
        try:
            h = completed(x, other)
            task.joint_feature(x, h)
            task.loss(y, h)
        except Exception:  # an output that is none for this input
            continue
        found.append(h)
    return found


def look(oracle: _Oracle, outputs: list[Any]) -> list[Known]:
    """Return outputs with their joint feature vectors and losses."""
    looked = []
    for h in outputs:
        loss = as_loss(oracle.task.loss(oracle.y, h), f"{oracle.name}: loss")
        if loss < 0:
            raise OracleError(f"{oracle.name}: the loss must not be negative, got {loss} for {short(h)}")
        looked.append(known(oracle.task, oracle.x, h, oracle.name)._replace(loss=loss))
    return looked


def check_searches(oracle: _Oracle, tried: list[Array], others: list[Known], found: list[Known]) -> None:
    """Refuse searches that other outputs beat: the one with the loss, and, by those in `found`, the one without."""
    for w in tried:
        worst, exact = _check_worst(oracle, w, others)
        others.append(worst)
        if exact:  # what loss_augmented_inference found may not score above what inference finds, either
            best = known(oracle.task, oracle.x, oracle.task.inference(oracle.x, w), oracle.name)
            refuse_beaten(best, found, w, f"{oracle.name}: inference is not the best output")


def _check_worst(oracle: _Oracle, w: Array, others: list[Known]) -> tuple[Known, bool]:
    """Return the answer of the loss-augmented search, and whether it is exact: then none may be worse."""
    task, name, own = oracle.task, oracle.name, oracle.own.dot(w)
    x, l, bound = oracle._worst(w)
    value = l - x.dot(w)
    (worst,) = look(oracle, [task.loss_augmented_inference(oracle.x, oracle.y, w)])
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
    exact = is_exact(task) and bound <= value + rounding  # a compiled search says so each time
    if exact and best > value + rounding:
        raise OracleError(
            f"{name}: loss_augmented_inference is not the best output: loss and score exceed those of the true "
            f"output by {value:.6g}, but those of {short(rival.output)} by {best:.6g}"
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
