"""The promises of tasks for `LatentStructuredSVM`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..checks import Array
from ..latent.completed import _check_shape, _complete
from ..structured.constraints import OracleError
from ..structured.oracle import _Oracle
from ..structured.prints import fingerprint, same_output
from .common import Draw, Known, check_batch, guessed, is_exact, known, refuse_beaten, short, size_of
from .outputs import check_searches, look, sampled

_SAME = 20  # completions of one output whose losses are compared


def check_completions(task: Any, X: Sequence[Any], Y: Sequence[Any], outputs: Any, draw: Draw) -> None:
    """Check a task whose outputs are completed: with each completion for the truth, it must be as others are."""
    begun = [_completing(task, X[i], Y[i], h, i, "init_latent") for i, h in enumerate(guessed(task, X, Y))]
    tried = draw(size_of(task, begun))

    def completed(x: Any, y: Any) -> Any:
        return task.latent(x, y, tried[0])

    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        best = [_completing(task, x, y, _complete([(i, x, y)], task, w)[0], i, "latent") for w in tried]
        truths = _distinct([*best, *begun[i : i + 1]])
        for one in truths:
            _check_shape(best[0].output, one.output, i)
        others = sampled(task, x, best[0].output, Y, tried, completed) if outputs is None else list(outputs(x))
        _check_example(task, x, y, f"example {i}", tried, best, truths, others)
    for w in tried:
        check_batch(task, "latent", X, Y, w)
        check_batch(task, "inference", X, w)


def _completing(task: Any, x: Any, y: Any, h: Any, i: int, who: str) -> Known:
    """Return a completed output with its joint feature vector, if it is one of y."""
    label = task.label_from_latent(h)
    if not same_output(label, y):
        raise OracleError(
            f"example {i}: {who} must return a completion of {short(y)}, got {short(h)}, whose label_from_latent is "
            f"{short(label)}"
        )
    return known(task, x, h, f"example {i}")


def _distinct(some: Iterable[Known]) -> list[Known]:
    return list({fingerprint(one.output): one for one in some}.values())


def _check_example(
    task: Any,
    x: Any,
    y: Any,
    name: str,
    tried: list[Array],
    best: list[Known],
    truths: list[Known],
    others: list[Any],
) -> None:
    """Check, with what `latent` finds and other completed outputs, that it is the best, then losses and searches."""
    same = [known(task, x, h, name) for h in others if same_output(task.label_from_latent(h), y)]
    if is_exact(task):
        for w, one in zip(tried, best, strict=True):
            refuse_beaten(one, [*truths, *same], w, f"{name}: latent is not the best completion of {short(y)}")
    outputs = [*(one.output for one in truths), *others]
    looked = []
    for one in _distinct([*truths, *same[:_SAME]]):
        oracle = _Oracle(task, x, one.output, name, new=True)
        looked.append((oracle, look(oracle, outputs)))
        _check_losses(name, *looked[0], *looked[-1])
    for oracle, some in looked[: len(truths)]:
        check_searches(oracle, tried, some, some)


def _check_losses(name: str, one: _Oracle, losses: list[Known], other: _Oracle, others: list[Known]) -> None:
    """Refuse losses that depend on which of two completions of one output is the true one."""
    for a, b in zip(losses, others, strict=True):
        if abs(a.loss - b.loss) > 1e-9 * (1 + a.loss):
            raise OracleError(
                f"{name}: the loss depends on what is latent in the true output: that of {short(a.output)} is "
                f"{a.loss:.6g} for {short(one.y)}, but {b.loss:.6g} for {short(other.y)}, which completes the same "
                "output; rounds would not be monotone: the objective could rise from one to the next"
            )
