"""Outputs that are completed by latent values, and the convex problem of a task that this makes."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..checks import Array
from ..prior import Prior
from ..structured.constraints import Feature, OracleError, as_feature, difference
from ..structured.crew import Crew
from ..structured.examples import PART, Readable, parts_of
from ..structured.explore import Change
from ..structured.oracle import TaskProblem
from ..structured.prints import fingerprint, same_output
from ..structured.problem import as_loss


class Completed:
    """Examples with completed outputs in place of the true ones."""

    def __init__(self, truth: Readable, completions: list[Any]) -> None:
        self.truth, self.Y = truth, completions
        self.X, self.n, self.sequential, self.held = truth.X, truth.n, truth.sequential, truth.held
        self.most, self.weight = truth.most, truth.weight

    def read(self, which: Array) -> tuple[list[Any], list[Any]]:
        """Return the inputs and completed outputs of some examples."""
        return self.truth.read(which)[0], [self.Y[int(i)] for i in which]


class CompletedProblem(TaskProblem):
    """The problem of a task whose true outputs y_i are completed to h_i: that of `TaskProblem` with h_i for y_i."""

    def __init__(
        self,
        task: Any,
        truth: Readable,
        rescaling: str,
        cost: ArrayLike,
        prior: Prior | None,
        lower: ArrayLike | None,
        upper: ArrayLike | None,
        learned: Array | None = None,
    ) -> None:
        self.truth, self.n_completed = truth, truth.n
        super().__init__(task, Completed(truth, []), rescaling, cost, prior, lower, upper, learned)

    def _look(self) -> None:
        if self.completions:
            super()._look()

    @property
    def outputs(self) -> Any:
        """The true outputs."""
        return self.truth.Y

    @property
    def completions(self) -> list[Any]:
        """The completed outputs; none before the first completion."""
        completions: list[Any] = self.examples.Y
        return completions

    def given(self, completions: Any, name: str) -> Self:
        """Return the problem with completions that the user or the task gives."""
        try:
            some = list(completions)
        except TypeError:
            raise TypeError(
                f"{name} must be a completed output for every example, got {type(completions).__name__}"
            ) from None
        if len(some) != self.n_examples:
            raise ValueError(f"{name} must complete all {self.n_examples} examples, got {len(some)} completions")
        return self._begun(some, name)

    def _begun(self, completions: list[Any], who: str) -> Self:
        """Return the problem with completions to begin with, which must be of the true outputs."""
        for part in self._parts():
            for i, y in zip(part, self.truth.read(part)[1], strict=True):
                _check_label(self.task, completions[i], y, int(i), who)
        return self._with(completions)

    def _with(self, completions: list[Any]) -> Self:
        other = copy.copy(self)
        other.examples = Completed(self.truth, completions)
        other._look()
        return other

    def completed(self, w: Array, crew: Crew) -> tuple[Self, Change]:
        """Return the problem with the best completions at weights, and which examples that has changed."""
        if hasattr(self.task, "batch_latent") and self.truth.held:
            some = self.task.batch_latent(self.truth.X, self.truth.Y, w, crew.threads)
        else:
            some = [h for part in self._parts() for h in self._complete(part, w, crew)]
        if not self.completions:
            return self._begun(some, "latent"), Change(np.arange(self.n_examples), [None] * self.n_examples)
        after = self._with(some)
        pairs = zip(some, self.completions, strict=True)
        which = np.array([i for i, pair in enumerate(pairs) if not _equal(*pair)], dtype=np.int64)
        return after, Change(which, after._moves(self, which, crew), self.rescaling == "slack")

    def _parts(self) -> list[Array]:
        return parts_of(np.arange(self.n_examples), min(PART, self.most))

    def _complete(self, part: Array, w: Array, crew: Crew) -> list[Any]:
        X, Y = self.truth.read(part)
        if hasattr(self.task, "batch_latent"):
            return list(self.task.batch_latent(X, Y, w, crew.threads))
        return crew.map(_complete, list(zip(part.tolist(), X, Y, strict=True)), self.task, w)

    def _moves(self, before: Self, which: Array, crew: Crew) -> list[Feature | None]:
        """Return by how much the constraints of examples have moved: phi of the completion minus that before."""
        moves: list[Feature | None] = []
        chosen = np.zeros(self.n_examples, dtype=bool)
        chosen[which] = True
        for part in self._parts() if self.sequential else parts_of(which, PART):
            X, _ = self.truth.read(part)
            asked = [
                (int(i), x, before.completions[i], self.completions[i])
                for i, x in zip(part, X, strict=True)
                if chosen[i]
            ]
            moves += crew.map(_move, asked, self.task)
        return moves


def _complete(some: list[tuple[int, Any, Any]], task: Any, w: Array) -> list[Any]:
    completions = []
    for i, x, y in some:
        try:
            completions.append(task.latent(x, y, w))
        except Exception as error:
            raise OracleError(f"the task failed to complete example {i}: {type(error).__name__}: {error}") from error
    return completions


def _equal(one: Any, other: Any) -> bool:
    """Whether two completions are the same."""
    if type(one) is type(other) and isinstance(one, bool | int | float | str | tuple | list):
        try:
            return bool(one == other)
        except ValueError:  # of arrays inside
            pass
    return fingerprint(one) == fingerprint(other)


def _check_shape(before: Any, now: Any, i: int) -> None:
    """Refuse a completion of another kind than the one before it."""
    shapes = [_shape(h) for h in (before, now)]
    if shapes[0] != shapes[1]:
        raise OracleError(
            f"example {i}: its completion was {shapes[0]}, and is {shapes[1]} now: completions of one output must be "
            "of one shape"
        )


def _check_label(task: Any, h: Any, y: Any, i: int, who: str) -> None:
    """Refuse a completion that is not one of an output."""
    try:
        label = task.label_from_latent(h)
    except Exception as error:
        raise OracleError(
            f"example {i}: {who} gives {h!r}, and label_from_latent fails on it: {type(error).__name__}: {error}"
        ) from error
    if not same_output(label, y):
        raise OracleError(
            f"example {i}: {who} gives {h!r}, which completes {label!r} by label_from_latent, but the output is {y!r}"
        )


def _check_promise(task: Any, before: Any, h: Any, i: int) -> None:
    """Refuse a loss that must not depend on which completion is true, but differs from 0 between two of an output."""
    for true, other in ((before, h), (h, before)):
        if (loss := as_loss(task.loss(true, other), f"example {i}: loss")) != 0:
            raise OracleError(
                f"example {i}: loss_ignores_latent promises that the loss does not depend on what is latent in the "
                f"true output, but that of {other!r} is 0 where it is the true one, and {loss:.6g} where {true!r} is"
            )


def _shape(h: Any) -> str:
    if isinstance(h, np.generic):  # what arrays hold is as good as Python's own numbers
        h = h.item()
    if isinstance(h, np.ndarray):
        return f"an array of shape {h.shape}"
    if isinstance(h, list | tuple):
        return f"a {type(h).__name__} of {len(h)}"
    return f"a {type(h).__name__}"


def _move(some: list[tuple[int, Any, Any, Any]], task: Any) -> list[Feature | None]:
    """Return phi(h) - phi(before) for completions of examples; None where the loss may not be the same for both."""
    size = getattr(task, "size_joint_feature", None)
    width = None if size is None else int(size)
    moves: list[Feature | None] = []
    for i, x, before, h in some:
        _check_shape(before, h, i)
        _check_label(task, h, task.label_from_latent(before), i, "latent")
        if not getattr(task, "loss_ignores_latent", False):
            moves.append(None)
            continue
        _check_promise(task, before, h, i)
        own, other = (
            as_feature(task.joint_feature(x, each), f"example {i}: joint_feature", width) for each in (h, before)
        )
        moves.append(difference(own, other))
    return moves
