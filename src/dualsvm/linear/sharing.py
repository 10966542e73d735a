"""The problems of a linear estimator over shares of the rows, wherever those are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..checks import Array
from ..data import Chunk
from ..data.chunk import print_of
from ..problem import Problem
from ..shares import Answer, Course, Ground, Host, Kept, RowShare
from ..solution import feasible
from ..state import Layout
from .chunks import Learner
from .report import sparse


@dataclass
class Shared:
    """What all shares of the rows know: whose problems they state, and what the rows have in common.

    Parameters
    ----------
    learner : Learner
        Makes problems of chunks.
    width : int
        Number of features.
    dtype : dtype
        Of the features.
    """

    learner: Learner
    width: int
    dtype: Any

    def courses(self, tol: float, shares: int) -> list[Course]:
        """Return the courses of all problems over so many shares."""
        layouts = self.layouts
        return [Course(Ground.of(layout), tol, shares, self.learner.frame.single) for layout in layouts]

    @property
    def layouts(self) -> list[Layout]:
        """The layouts in which shares have the weights of all problems."""
        return [Layout(problem) for problem in self.problems(self.learner.blank(self.width, self.dtype))]

    def seen(self, weights: Sequence[Array]) -> Array:
        """Return the weights of all problems as the user sees them, a line for every output."""
        pairs = zip(self.layouts, weights, strict=True)
        return np.vstack([np.atleast_2d(layout.as_seen(w)) for layout, w in pairs])

    def inward(self, weights: Array) -> list[Array]:
        """Return weights that the user sees, a line for every output, as shares have them."""
        layouts = self.layouts
        each = [weights] if len(layouts) < len(weights) else list(weights)
        pairs = [(Ground.of(layout), layout.as_kernel(w)) for layout, w in zip(layouts, each, strict=True)]
        return [ground.confined(w) for ground, w in pairs]

    def problems(self, chunk: Chunk) -> list[Problem]:
        """Return the problems that a chunk states, as it was prepared."""
        return [self.learner.problem_of(k)(chunk) for k in range(self.learner.problems)]


class Account(NamedTuple):
    """What the dual variables of a chunk are in the end.

    Attributes
    ----------
    alpha : sparse array of shape (lines, n) or None
        Those of all problems; None where it states nothing.
    coefficients : sparse array of shape (outputs, n_rows)
        What rows count in the weights.
    support : array or None
        Rows with an entry there, of every class; None where there are no classes.
    """

    alpha: sp.csr_array | None
    coefficients: sp.csr_array
    support: Array | None


class RowHost(Host):
    """The shares of some chunks of rows.

    Parameters
    ----------
    number : int
        Of the host, among all.
    shared : Shared
        What it shares with all others.
    chunks : iterable of tuple
        Chunks, with a key and a name for each, and the margins of its rows, or None.
    seed : int
        Of the order in which examples are visited.
    threads : int
        For what can be done side by side.
    """

    def __init__(
        self,
        number: int,
        shared: Shared,
        chunks: Iterable[tuple[Hashable, str, Chunk, Any]],
        seed: int,
        threads: int,
    ) -> None:
        self._learner = shared.learner
        keys: list[Hashable] = []
        stated: list[list[Problem]] = []
        self._codes: dict[Hashable, Array | None] = {}
        self._rows: dict[Hashable, Array | None] = {}
        self._prints: dict[Hashable, tuple[int, int]] = {}  # of all chunks, the number of rows first
        for key, name, chunk, margin in chunks:
            self._prints[key] = print_of(chunk)
            try:
                prepared = self._learner.prepare(chunk)
                if prepared is None:
                    continue
                self._learner.margin = margin
                stated.append(shared.problems(prepared))
            except ValueError as error:
                raise ValueError(str(error) if str(error).startswith(name) else f"{name}: {error}") from error
            self._codes[key], self._rows[key] = self._learner.codes(prepared), self._learner.rows(chunk)
            keys.append(key)
        self._learner.margin = None
        if not stated:  # nothing to learn from: one example that costs nothing
            stated = [shared.problems(self._learner.blank(shared.width, shared.dtype))]
        own = threads if self._learner.problems == 1 else 1
        shares = [RowShare(column, seed + number, own) for column in zip(*stated, strict=True)]
        super().__init__(number, keys, shares, threads)

    def _answer(self, verb: str, messages: Sequence[Any]) -> Answer:
        if verb == "take":
            messages = [{key: self._taken(key, messages[0].get(key)) for key in self.pieces}]
        found = super()._answer("keep" if verb == "account" else verb, messages)
        if verb not in ("keep", "account") or found.fresh:
            return found
        tell = self._kept if verb == "keep" else self._account
        return Answer(each={key: tell(key, found.each.get(key)) for key in self._prints})

    def _kept(self, key: Hashable, alpha: Sequence[Array] | None) -> Kept:
        if alpha is None:
            return Kept(self._prints[key], {})
        table = sparse(alpha)
        parts = {"data": table.data, "indices": table.indices, "indptr": table.indptr, "shape": np.array(table.shape)}
        return Kept(self._prints[key], parts)

    def _taken(self, key: Hashable, kept: Kept | None) -> list[Array]:
        """Return dual variables of a chunk in every problem that were kept, or zeros where they are not those."""
        problems = self._problems(key)
        shapes = [problem.alpha_shape for problem in problems]
        lines = [int(np.prod(shape[1:])) for shape in shapes]
        zeros = [np.zeros(shape) for shape in shapes]
        if kept is None or kept.print != self._prints[key] or not kept.arrays:
            return zeros
        data, indices, indptr, shape = (kept.arrays[name] for name in ("data", "indices", "indptr", "shape"))
        if tuple(shape) != (sum(lines), shapes[0][0]):
            return zeros
        table = sp.csr_array((data, indices, indptr), shape=tuple(shape))
        table.check_format(full_check=True)  # a file may hold anything
        each = np.split(table.toarray(), np.cumsum(lines)[:-1])
        return [feasible(p, a.T.reshape(shape)) for p, a, shape in zip(problems, each, shapes, strict=True)]

    def _problems(self, key: Hashable) -> list[Problem]:
        k = list(self.pieces).index(key)
        return [share.problems[k] for share in self.shares if isinstance(share, RowShare)]

    def _account(self, key: Hashable, alpha: Sequence[Array] | None) -> Account:
        """Tell what the dual variables of a chunk are; None: it states nothing."""
        learner, n = self._learner, self._prints[key][0]
        if alpha is None:
            return Account(None, sp.csr_array((learner.outputs, n)), None)
        pairs = zip(self._problems(key), alpha, strict=True)
        counts = sparse([problem.mapping.coefficients(own, problem.view.n) for problem, own in pairs])
        if (rows := self._rows[key]) is not None:  # some were left out
            counts = sp.csr_array((counts.data, rows[counts.indices], counts.indptr), shape=(counts.shape[0], n))
        codes, support = self._codes[key], None
        if codes is not None:
            some = np.unique(counts.indices)
            support = np.bincount(np.asarray(codes)[some], minlength=len(learner.model.classes_))
        return Account(sparse(alpha), counts, support)
