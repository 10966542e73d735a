"""Outputs that are completed by latent values, and the convex problem of a task that this makes."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..checks import Array
from ..prior import Prior
from ..structured.base import PART
from ..structured.constraints import OracleError
from ..structured.crew import Crew
from ..structured.examples import Examples, Stream
from ..structured.oracle import TaskProblem
from ..structured.prints import fingerprint


class Completed:
    """Examples with completed outputs in place of the true ones."""

    def __init__(self, truth: Examples | Stream, completions: list[Any]) -> None:
        self.truth, self.Y = truth, completions
        self.X, self.n, self.sequential, self.held = truth.X, truth.n, truth.sequential, truth.held

    def read(self, which: Array) -> tuple[list[Any], list[Any]]:
        """Return the inputs and completed outputs of some examples."""
        return self.truth.read(which)[0], [self.Y[int(i)] for i in which]


class CompletedProblem(TaskProblem):
    """The problem of a task whose true outputs y_i are completed to h_i: that of `TaskProblem` with h_i for y_i."""

    def __init__(
        self,
        task: Any,
        truth: Examples | Stream,
        rescaling: str,
        cost: ArrayLike,
        prior: Prior | None,
        lower: ArrayLike | None,
        upper: ArrayLike | None,
        learned: Array | None = None,
    ) -> None:
        self.truth = truth
        self._codes: list[int] = []  # fingerprints of the completions
        super().__init__(task, Completed(truth, []), rescaling, cost, prior, lower, upper, learned)  # type: ignore[arg-type]

    def _look(self) -> None:
        if self.completions:
            super()._look()

    @property
    def completions(self) -> list[Any]:
        """The completed outputs; none before the first completion."""
        completions: list[Any] = self.examples.Y  # type: ignore[assignment]
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
        return self._with(some, [fingerprint(h) for h in some])

    def _with(self, completions: list[Any], codes: list[int]) -> Self:
        other = copy.copy(self)
        other.examples, other._codes = Completed(self.truth, completions), codes  # type: ignore[assignment]
        other._look()
        return other

    def completed(self, w: Array, crew: Crew) -> tuple[Self, Array]:
        """Return the problem with the best completions at weights, and a mask of the examples that have changed."""
        some: list[Any] = []
        for part in np.array_split(np.arange(self.n_examples), -(-self.n_examples // PART)):
            X, Y = self.truth.read(part)
            if hasattr(self.task, "batch_latent"):
                some += self.task.batch_latent(X, Y, w, crew.threads)
            else:
                some += crew.map(_complete, list(zip(part.tolist(), X, Y, strict=True)), self.task, w)
        codes = [fingerprint(h) for h in some]
        if not self._codes:
            return self._with(some, codes), np.ones(self.n_examples, dtype=bool)
        changed = np.array([one != other for one, other in zip(codes, self._codes, strict=True)])
        for i in np.flatnonzero(changed):
            _check_shape(self.completions[i], some[i], int(i))
        return self._with(some, codes), changed


def _complete(some: list[tuple[int, Any, Any]], task: Any, w: Array) -> list[Any]:
    completions = []
    for i, x, y in some:
        try:
            completions.append(task.latent(x, y, w))
        except Exception as error:
            raise OracleError(f"the task failed to complete example {i}: {type(error).__name__}: {error}") from error
    return completions


def _check_shape(before: Any, now: Any, i: int) -> None:
    """Refuse a completion of another kind than the one before it."""
    shapes = [_shape(h) for h in (before, now)]
    if shapes[0] != shapes[1]:
        raise OracleError(
            f"example {i}: its completion was {shapes[0]}, and is {shapes[1]} now: completions of one output must be "
            "of one shape"
        )


def _shape(h: Any) -> str:
    if isinstance(h, np.ndarray):
        return f"an array of shape {h.shape}"
    if isinstance(h, list | tuple):
        return f"a {type(h).__name__} of {len(h)}"
    return f"a {type(h).__name__}"
