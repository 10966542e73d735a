"""How each task maps onto the one problem: examples, each with constraints that share a slack.

A mapping says two things of a task: what the kernel must know to run it (`kernel`), and, in plain numpy and
independently of the kernel, what its constraints are: their slacks at a given w and what the dual variables
make of them. The second is what certificates are checked with.

=============  ============================================================  ==================
mapping        constraints of example i                                      shape of alpha
=============  ============================================================  ==================
`Grouped`      the rows that carry its id                                    (rows,)
`Signed`       one: x = sign_i row_i                                         (examples,)
`Pairs`        one: x = row[preferred_i] - row[other_i]                      (examples,)
`TwoSided`     two: x = +-row_i, l = +-y_i - epsilon                         (examples, 2)
`Multiclass`   one per class j other than y_i: x = phi(row_i, y_i) -         (examples, classes)
               phi(row_i, j), l = class_loss[y_i, j]
=============  ============================================================  ==================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .rows import Array, Rows


class Mapping(Protocol):
    """What the rest of the library asks of a task. Dual variables come in the shape `alpha_shape`."""

    @property
    def task(self) -> str:
        """Name of the task, as the user knows it."""

    @property
    def n_examples(self) -> int:
        """Number of slacks."""

    @property
    def alpha_shape(self) -> tuple[int, ...]:
        """Shape of the dual variables; the first axis is what hot starts match."""

    def weight_shape(self, width: int) -> tuple[int, ...]:
        """Shape of the weights that the user sees."""

    def kernel(self) -> dict[str, Any]:
        """Return the arguments of the kernel's state that are this task's own."""

    def violations(self, rows: Rows, w: Array) -> Array:
        """Return ``max_j (l_ij - w.x_ij)`` for every example."""

    def combine(self, rows: Rows, alpha: Array) -> Array:
        """Return ``u = sum_ij alpha_ij x_ij`` in the shape of the weights."""

    def linear(self, alpha: Array) -> float:
        """Return ``sum_ij alpha_ij l_ij``."""

    def mass(self, alpha: Array) -> Array:
        """Return ``sum_j alpha_ij`` for every example."""

    def scale(self, alpha: Array, factor: Array) -> Array:
        """Return the dual variables of every example times its factor."""


class _OnePerExample:
    """Shared by the mappings whose alpha has one line per example and whose weights are one vector."""

    @property
    def n_examples(self) -> int:
        return self.alpha_shape[0]

    @property
    def alpha_shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    def weight_shape(self, width: int) -> tuple[int, ...]:
        return (width,)

    def mass(self, alpha: Array) -> Array:
        return np.asarray(alpha.reshape(len(alpha), -1).sum(axis=1))

    def scale(self, alpha: Array, factor: Array) -> Array:
        return alpha * factor.reshape(-1, *[1] * (alpha.ndim - 1))


@dataclass(frozen=True)
class Signed(_OnePerExample):
    """One constraint per example, its row times a sign."""

    margins: Array
    sign: Array | None
    task: str

    @property
    def alpha_shape(self) -> tuple[int, ...]:
        return self.margins.shape

    def _signs(self) -> Array | float:
        return 1.0 if self.sign is None else self.sign.astype(np.float64)

    def kernel(self) -> dict[str, Any]:
        return {"kind": "single", "margins": self.margins, "sign": self.sign}

    def violations(self, rows: Rows, w: Array) -> Array:
        return self.margins - self._signs() * rows.scores(w)

    def combine(self, rows: Rows, alpha: Array) -> Array:
        return rows.combine(alpha * self._signs())

    def linear(self, alpha: Array) -> float:
        return float(alpha @ self.margins)


@dataclass(frozen=True)
class Pairs(_OnePerExample):
    """One constraint per preference pair, the difference of two rows."""

    margins: Array
    pairs: Array
    task: str = "ranking"

    @property
    def alpha_shape(self) -> tuple[int, ...]:
        return self.margins.shape

    def kernel(self) -> dict[str, Any]:
        return {"kind": "pairs", "margins": self.margins, "pairs": self.pairs}

    def violations(self, rows: Rows, w: Array) -> Array:
        out = self.margins.copy()
        for part, x in rows.differences(self.pairs):
            out[part] -= x @ w
        return out

    def combine(self, rows: Rows, alpha: Array) -> Array:
        out = np.zeros(rows.width)
        for part, x in rows.differences(self.pairs):
            out += x.T @ alpha[part]
        return out

    def linear(self, alpha: Array) -> float:
        return float(alpha @ self.margins)


@dataclass(frozen=True)
class TwoSided(_OnePerExample):
    """Epsilon-insensitive regression: a constraint on either side that share one slack."""

    targets: Array
    epsilon: float
    task: str = "regression"

    @property
    def alpha_shape(self) -> tuple[int, ...]:
        return (*self.targets.shape, 2)

    def kernel(self) -> dict[str, Any]:
        return {"kind": "two_sided", "margins": self.targets, "epsilon": self.epsilon}

    def violations(self, rows: Rows, w: Array) -> Array:
        return np.asarray(np.abs(self.targets - rows.scores(w)) - self.epsilon)

    def combine(self, rows: Rows, alpha: Array) -> Array:
        return rows.combine(alpha[:, 0] - alpha[:, 1])

    def linear(self, alpha: Array) -> float:
        return float((alpha[:, 0] - alpha[:, 1]) @ self.targets - self.epsilon * alpha.sum())


@dataclass(frozen=True)
class Multiclass(_OnePerExample):
    """Crammer-Singer classes; neither the kernel nor this class ever forms phi."""

    labels: Array
    class_loss: Array
    task: str = "multiclass"

    @property
    def alpha_shape(self) -> tuple[int, ...]:
        return (*self.labels.shape, len(self.class_loss))

    def weight_shape(self, width: int) -> tuple[int, ...]:
        return (len(self.class_loss), width)

    def kernel(self) -> dict[str, Any]:
        return {"kind": "multiclass", "label": self.labels, "class_loss": self.class_loss}

    def violations(self, rows: Rows, w: Array) -> Array:
        scores = rows.scores(np.ascontiguousarray(w.T))
        own = scores[np.arange(rows.n), self.labels]
        return np.asarray((self.class_loss[self.labels] - own[:, None] + scores).max(axis=1))

    def _off_label(self, alpha: Array) -> Array:
        alpha = alpha.copy()
        alpha[np.arange(len(alpha)), self.labels] = 0
        return alpha

    def combine(self, rows: Rows, alpha: Array) -> Array:
        alpha = self._off_label(alpha)
        coefficients = -alpha
        coefficients[np.arange(len(alpha)), self.labels] = alpha.sum(axis=1)
        return rows.combine(coefficients).T

    def linear(self, alpha: Array) -> float:
        return float((alpha * self.class_loss[self.labels]).sum())

    def mass(self, alpha: Array) -> Array:
        return np.asarray(self._off_label(alpha).sum(axis=1))


@dataclass(frozen=True)
class Grouped:
    """Rows that share the slack of the example whose id they carry."""

    margins: Array
    start: Array  # the rows of example i are member[start[i]:start[i + 1]]
    member: Array
    task: str = "rows"

    @property
    def n_examples(self) -> int:
        return len(self.start) - 1

    @property
    def alpha_shape(self) -> tuple[int, ...]:
        return self.margins.shape

    def weight_shape(self, width: int) -> tuple[int, ...]:
        return (width,)

    def kernel(self) -> dict[str, Any]:
        return {"kind": "group", "margins": self.margins, "start": self.start, "member": self.member}

    def violations(self, rows: Rows, w: Array) -> Array:
        g = self.margins - rows.scores(w)
        return np.maximum.reduceat(g[self.member], self.start[:-1])

    def combine(self, rows: Rows, alpha: Array) -> Array:
        return rows.combine(alpha)

    def linear(self, alpha: Array) -> float:
        return float(alpha @ self.margins)

    def mass(self, alpha: Array) -> Array:
        return np.add.reduceat(alpha[self.member], self.start[:-1])

    def scale(self, alpha: Array, factor: Array) -> Array:
        out = np.empty_like(alpha)
        out[self.member] = alpha[self.member] * np.repeat(factor, np.diff(self.start))
        return out
