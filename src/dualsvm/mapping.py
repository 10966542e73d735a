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
               phi(row_i, j), l = margin_i class_loss[y_i, j]; rescaled by
               the slack, x is times class_loss[y_i, j], too
`Lists`        one per set of preference pairs of list i: x = the sum of     (rows, 4)
               their differences, l = the sum of their margins
=============  ============================================================  ==================
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .checks import Array
from .rows import Rows

_SOME = 200  # lists that suffice for a mean


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

    @property
    def stretch(self) -> float:
        """How many times as large as that of a row the square of a constraint is, about."""

    def violations(self, rows: Rows, w: Array) -> Array:
        """Return ``max_j (l_ij - w.x_ij)`` for every example."""

    def coefficients(self, alpha: Array, n_rows: int) -> Array:
        """Return what every row counts in u, (n_rows,) or (n_rows, classes)."""

    def combine(self, rows: Rows, alpha: Array) -> Array:
        """Return ``u = sum_ij alpha_ij x_ij`` in the shape of the weights."""

    def linear(self, alpha: Array) -> float:
        """Return ``sum_ij alpha_ij l_ij``."""

    def mass(self, alpha: Array) -> Array:
        """Return ``sum_j alpha_ij`` for every example."""

    def scale(self, alpha: Array, factor: Array) -> Array:
        """Return the dual variables of every example times its factor."""

    def units(self, of_rows: Array) -> tuple[Array, Array]:
        """Return to which unit examples belong, and lines of alpha, given to which every row does."""

    @property
    def held(self) -> tuple[int, int]:
        """Bytes that the kernel holds of an example, and of a line of alpha, about."""

    @property
    def fingerprint(self) -> str:
        """Tell apart problems between which dual variables do not carry over, not even clipped; mostly empty."""


class _Mapping:
    """What most mappings have in common: alpha has one line per example, and the weights are one vector."""

    @property
    def n_examples(self) -> int:
        return self.alpha_shape[0]

    @property
    def alpha_shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def stretch(self) -> float:
        return 1.0

    def weight_shape(self, width: int) -> tuple[int, ...]:
        return (width,)

    def mass(self, alpha: Array) -> Array:
        return np.asarray(alpha.reshape(len(alpha), -1).sum(axis=1))

    def scale(self, alpha: Array, factor: Array) -> Array:
        return alpha * factor.reshape(-1, *[1] * (alpha.ndim - 1))

    def coefficients(self, alpha: Array, n_rows: int) -> Array:
        raise NotImplementedError

    def combine(self, rows: Rows, alpha: Array) -> Array:
        return rows.combine(self.coefficients(alpha, rows.n)).T

    def units(self, of_rows: Array) -> tuple[Array, Array]:
        return of_rows, of_rows

    @property
    def held(self) -> tuple[int, int]:
        return 100, 8 * int(np.prod(self.alpha_shape[1:]))

    @property
    def fingerprint(self) -> str:
        return ""


@dataclass(frozen=True)
class Signed(_Mapping):
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

    def coefficients(self, alpha: Array, n_rows: int) -> Array:
        return alpha * self._signs()

    def linear(self, alpha: Array) -> float:
        return float(alpha @ self.margins)


@dataclass(frozen=True)
class Pairs(_Mapping):
    """One constraint per preference pair, the difference of two rows."""

    margins: Array
    pairs: Array
    task: str = "ranking"

    @property
    def alpha_shape(self) -> tuple[int, ...]:
        return self.margins.shape

    def kernel(self) -> dict[str, Any]:
        return {"kind": "pairs", "margins": self.margins, "pairs": self.pairs}

    @property
    def stretch(self) -> float:
        return 2.0

    def violations(self, rows: Rows, w: Array) -> Array:
        out = self.margins.copy()
        for part, x in rows.differences(self.pairs):
            out[part] -= x @ w
        return out

    def coefficients(self, alpha: Array, n_rows: int) -> Array:
        gained, lost = (np.bincount(self.pairs[:, side], alpha, n_rows) for side in (0, 1))
        return gained - lost

    def combine(self, rows: Rows, alpha: Array) -> Array:
        out = np.zeros(rows.width)
        for part, x in rows.differences(self.pairs):
            out += x.T @ alpha[part]
        return out

    def linear(self, alpha: Array) -> float:
        return float(alpha @ self.margins)

    def units(self, of_rows: Array) -> tuple[Array, Array]:
        of_pairs = of_rows[self.pairs[:, 0]]
        return of_pairs, of_pairs


@dataclass(frozen=True)
class TwoSided(_Mapping):
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

    def coefficients(self, alpha: Array, n_rows: int) -> Array:
        return np.asarray(alpha[:, 0] - alpha[:, 1])

    def linear(self, alpha: Array) -> float:
        return float((alpha[:, 0] - alpha[:, 1]) @ self.targets - self.epsilon * alpha.sum())


@dataclass(frozen=True)
class Multiclass(_Mapping):
    """Crammer-Singer classes; neither the kernel nor this class ever forms phi."""

    labels: Array
    class_loss: Array
    margins: Array | None = None
    rescaled: bool = False  # by the slack
    task: str = "multiclass"

    @property
    def alpha_shape(self) -> tuple[int, ...]:
        return (*self.labels.shape, len(self.class_loss))

    def weight_shape(self, width: int) -> tuple[int, ...]:
        return (len(self.class_loss), width)

    def kernel(self) -> dict[str, Any]:
        return {
            "kind": "multiclass",
            "label": self.labels,
            "class_loss": self.class_loss,
            "margins": self.margins,
            "rescaled": self.rescaled,
        }

    @property
    def stretch(self) -> float:
        return 2.0

    def _l(self) -> Array:
        table = self.class_loss[self.labels]
        return table if self.margins is None else self.margins[:, None] * table

    def violations(self, rows: Rows, w: Array) -> Array:
        scores = rows.scores(np.ascontiguousarray(w.T))
        lead = scores[np.arange(rows.n), self.labels][:, None] - scores
        factor = self.class_loss[self.labels] if self.rescaled else 1.0
        return np.asarray((self._l() - factor * lead).max(axis=1))

    def _off_label(self, alpha: Array) -> Array:
        alpha = alpha.copy()
        alpha[np.arange(len(alpha)), self.labels] = 0
        return alpha

    def coefficients(self, alpha: Array, n_rows: int) -> Array:
        alpha = self._off_label(alpha)
        if self.rescaled:
            alpha *= self.class_loss[self.labels]
        coefficients = -alpha
        coefficients[np.arange(len(alpha)), self.labels] = alpha.sum(axis=1)
        return coefficients

    def linear(self, alpha: Array) -> float:
        return float((alpha * self._l()).sum())

    def mass(self, alpha: Array) -> Array:
        return np.asarray(self._off_label(alpha).sum(axis=1))


class _Shared(_Mapping):
    """Shared by the mappings whose examples own several lines of alpha: member[start[i]:start[i + 1]]."""

    start: Array
    member: Array

    @property
    def n_examples(self) -> int:
        return len(self.start) - 1

    def scale(self, alpha: Array, factor: Array) -> Array:
        each = np.empty(len(alpha))
        each[self.member] = np.repeat(factor, np.diff(self.start))
        return super().scale(alpha, each)

    def units(self, of_rows: Array) -> tuple[Array, Array]:
        return of_rows[self.member[self.start[:-1]]], of_rows


@dataclass(frozen=True)
class Grouped(_Shared):
    """Rows that share the slack of the example whose id they carry."""

    margins: Array
    start: Array
    member: Array
    task: str = "rows"

    @property
    def alpha_shape(self) -> tuple[int, ...]:
        return self.margins.shape

    def kernel(self) -> dict[str, Any]:
        return {"kind": "group", "margins": self.margins, "start": self.start, "member": self.member}

    def violations(self, rows: Rows, w: Array) -> Array:
        g = self.margins - rows.scores(w)
        return np.maximum.reduceat(g[self.member], self.start[:-1])

    def coefficients(self, alpha: Array, n_rows: int) -> Array:
        return alpha

    def linear(self, alpha: Array) -> float:
        return float(alpha @ self.margins)

    def mass(self, alpha: Array) -> Array:
        return np.add.reduceat(alpha[self.member], self.start[:-1])


@dataclass(frozen=True)
class Lists(_Shared):
    """Lists to be ranked, one slack each, which pays for every preference pair.

    A constraint is a set of pairs, and there are too many to give each a dual variable of its own. What the dual
    variables of a list make together is told in four numbers for every row: what it counts in u, its positive and
    its negative part, and equal shares of l.alpha / margin and of the sum of alpha.
    """

    start: Array
    member: Array
    grade: Array  # of the row at a place, from 0 within its list
    weight: Array | None  # likewise
    margin: float
    task: str = "lists"

    @property
    def alpha_shape(self) -> tuple[int, ...]:
        return (len(self.member), 4)

    def kernel(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("start", "member", "grade", "weight", "margin")}
        return {"kind": "lists"} | own

    @property
    def stretch(self) -> float:
        """Where all pairs are violated, a row counts so many times: the sum of the squares, of some lists."""
        lists = list(itertools.pairwise(self.start[: _SOME + 1]))
        weight = np.ones(len(self.grade)) if self.weight is None else self.weight
        return float(np.mean([_square(self.grade[a:b], weight[a:b]) for a, b in lists]))

    def violations(self, rows: Rows, w: Array) -> Array:
        scores = rows.scores(w)[self.member]
        weight = np.ones(len(scores)) if self.weight is None else self.weight
        return np.array(
            [
                _pair_losses(scores[a:b], self.grade[a:b], weight[a:b], self.margin)
                for a, b in itertools.pairwise(self.start)
            ]
        )

    def coefficients(self, alpha: Array, n_rows: int) -> Array:
        return np.asarray(alpha[:, 0] - alpha[:, 1])

    def linear(self, alpha: Array) -> float:
        return self.margin * float(alpha[:, 2].sum())

    def mass(self, alpha: Array) -> Array:
        return np.add.reduceat(alpha[self.member, 3], self.start[:-1])

    @property
    def held(self) -> tuple[int, int]:
        return 2300, 80  # a Gram matrix, and coefficients in a few constraints

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for part in (self.start, self.member, self.grade, self.weight):
            digest.update(b"|" if part is None else part.tobytes())
        return digest.hexdigest()


def _square(grade: Array, weight: Array) -> float:
    """Return the sum over rows of the square of weight times (weights of lower grades - weights of higher ones)."""
    below = np.concatenate([[0.0], np.cumsum(np.bincount(grade, weight))])
    count = weight * (below[grade] + below[grade + 1] - below[-1])
    return float(count @ count)


def _pair_losses(scores: Array, grade: Array, weight: Array, margin: float) -> float:
    """Return the sum of ``weight_i weight_j max(0, margin - (s_i - s_j))`` over pairs with grade_i > grade_j."""
    total = 0.0
    for step in range(1, int(grade.max()) + 1):
        above, below = grade == step, grade < step
        order = np.argsort(scores[below])
        s, c = scores[below][order], weight[below][order]
        # of the rows below, those with s_j > s_i - margin come last; sums over the last k of them
        count, sums = (np.concatenate([[0.0], np.cumsum(x[::-1])]) for x in (c, c * s))
        k = len(s) - np.searchsorted(s, scores[above] - margin, side="right")
        total += float(weight[above] @ ((margin - scores[above]) * count[k] + sums[k]))
    return total
