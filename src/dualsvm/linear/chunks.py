"""Learning from a dataset that is read in chunks: the same problems, whose rows are met a chunk at a time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..checks import Array, as_number
from ..chunked import Keeper, Run, Runs, Start
from ..data import Chunk, Dataset
from ..data.chunk import Part, joined
from ..problem import Problem
from ..progress import Watcher, printers
from ..rows import Rows
from ..solve import as_passes, as_seed, as_threads, as_tolerance
from .encoding import as_text
from .terms import Frame, Terms, make_terms

_ROW = 100  # bytes that a row takes in memory beside its features, about
_FREE = {"tol", "max_iter", "cache_mb", "warm_start", "random_state", "n_jobs", "verbose"}  # no part of the problem

State = Callable[[Any, Terms], list[Problem]]  # makes problems of rows and the terms on their weights


class Learner:
    """Solves the problems of an estimator, side by side, over the chunks of a dataset.

    Parameters
    ----------
    model : LinearSVM
        Whose parameters hold.
    dataset : Dataset
        What to learn from.
    outputs : int
        Number of lines of the coefficients.
    state : callable
        What the chunk of a dataset states: makes the problems of its rows, given the terms on the weights.
    prepare : callable
        Makes of a chunk what `state` expects; None where there is nothing to learn from in it.
    reads : Reads
        How often to read.
    problems : int, default 1
        How many problems that makes.
    """

    def __init__(
        self,
        model: Any,
        dataset: Dataset,
        outputs: int,
        state: Callable[[Chunk], State],
        prepare: Callable[[Chunk], Chunk | None],
        reads: Reads,
        problems: int = 1,
    ) -> None:
        self.model, self.dataset, self.outputs = model, dataset, outputs
        self.state, self.prepare = state, prepare
        self.reads, self.problems = reads, problems
        self.width = 0  # number of features
        self.margin: Any = None  # that the rows of the next chunk are asked for, where classes are
        self.seen: dict[str, Array] = {}  # what `prepare` has to remember of chunks, which checkpoints hold
        self.limit = 1e6 * as_number(model.cache_mb, "cache_mb")
        if self.limit < 0:
            raise ValueError(f"cache_mb must not be negative, got {model.cache_mb}")
        if isinstance(getattr(model, "fit_intercept", None), str):
            raise ValueError('fit_intercept="unpenalized" needs all rows at once: raise intercept_scaling instead')
        self.bias = model._bias()
        self.terms: Terms | None = None
        self.frame = Frame(self.bias, None, False)
        self.ending = ""

    def problem_of(self, k: int) -> Callable[[Chunk], Problem]:
        """Return what makes the k-th problem of a chunk."""

        def problem(chunk: Chunk) -> Problem:
            if self.terms is None:
                m, d = self.model, chunk.X.shape[1]
                terms = make_terms(m.prior, m.lower, m.upper, self.outputs, d, self.bias, None)
                single = chunk.X.dtype == np.float32 and terms.covariance is None
                self.frame = Frame(self.bias, None, single)
                self.terms = terms.rounded() if single else terms
            return self.state(chunk)(Rows(chunk.X), self.terms)[k]

        return problem

    @property
    def titles(self) -> list[str]:
        """What to call the problems."""
        return [""] * self.problems

    def codes(self, chunk: Chunk) -> Array | None:
        """Return the numbers of the classes of a chunk, where there are classes."""
        return None

    def rows(self, chunk: Chunk) -> Array | None:
        """Return which rows of a chunk that was just prepared are learned from, where it is not all of them."""
        return None

    def blank(self, width: int, dtype: Any) -> Chunk:
        """Return a chunk, as it would be prepared, with one example that costs nothing."""
        return Chunk(sp.csr_array((1, width), dtype=dtype), np.zeros(1, dtype=np.int64), np.zeros(1))

    def whole(self) -> Chunk | None:
        """Return all rows in one chunk, as it was prepared, where they fit in memory and a solve there will do."""
        reads, parts, size = self.reads, [], 0
        if reads.newest or reads.checkpoint is not None or reads.resume is not None or not self.dataset.seekable:
            return None
        with closing(self.dataset.chunks()) as chunks:
            for chunk in chunks:
                parts.append(Part(chunk.X, chunk.y, chunk.weight, chunk.qid))
                size += parts[-1].bytes + _ROW * len(chunk)
                if size * float(self.dataset.n_rows or 0) > self.limit * chunk.stop:
                    return None
        rows = joined(parts)
        if rows.weight is not None and not rows.weight.any():
            raise ValueError(f"the weights in {self.dataset.name} are zero for every row: at least one must count")
        found = self.prepare(Chunk(rows.X, rows.y, rows.weight, rows.qid))
        if found is None:
            raise ValueError(f"{self.dataset.name} holds nothing to learn from")
        return found

    def learn(self, watchers: list[Watcher]) -> None:
        """Solve the problems."""
        m, tol, threads = self.model, as_tolerance(self.model.tol), as_threads(self.model.n_jobs)
        own = threads if self.problems == 1 else 1
        if self.dataset.widening and self.dataset.reiterable:
            deque(self.dataset, maxlen=0)  # only a whole pass tells the width
        several = [
            Run(self.dataset, self.problem_of(k), self.limit, tol, as_seed(m.random_state), own, True)
            for k in range(self.problems)
        ]
        self.runs = Runs(self.dataset, several, self.limit, threads, self.prepare)
        self._keep()
        if m.warm_start and self.reads.resume is None:
            for run, start in zip(several, self._starts(), strict=False):
                run.start_from(start)
        watchers = [*printers(m.verbose, tol), *watchers]
        self.ending = self.runs.pursue(self.reads.most(m.max_iter), watchers, self.reads.newest)
        if not all(run.begun for run in several):  # interrupted before there was anything to learn from
            raise KeyboardInterrupt
        self.width = several[0].frame.n_features
        for run in several:
            run.cache.let_go()
        _core.trim()

    def _keep(self) -> None:
        """See to checkpoints, and go on from one."""
        reads = self.reads
        if reads.checkpoint is None and reads.resume is None:
            return
        every = as_number(reads.checkpoint_every, "checkpoint_every")
        self.runs.keeper = Keeper(self.about(), reads.checkpoint, every, self.seen)
        if reads.resume is not None:
            self.runs.keeper.recall(self.runs, reads.resume)

    def about(self) -> dict[str, str]:
        """Return what a checkpoint says of the problems."""
        names = self.model.get_params(deep=False).keys() - _FREE
        about = {name: as_text(getattr(self.model, name), name) for name in sorted(names)}
        about["estimator"] = type(self.model).__name__
        if hasattr(self.model, "classes_"):
            about["classes"] = as_text(self.model.classes_, "classes")
        return about

    def _starts(self) -> list[Start]:
        """Return what is left of the last fit to start from, for every problem, or nothing."""
        m = self.model
        if not hasattr(m, "_alpha") or len(np.atleast_2d(m.coef_)) != self.outputs:
            return []
        weights = self.frame.weights(m.coef_, m.intercept_)
        if self.problems == 1:
            return [Start(m._alpha.tocsc(), weights if self.outputs > 1 else weights[0])]
        lines = m._alpha.shape[0] // self.problems
        return [Start(m._alpha[k * lines : (k + 1) * lines].tocsc(), weights[k]) for k in range(self.problems)]

    def bounds(self) -> tuple[float, float]:
        """Return the sums of the bounds; the upper one is that of the weights, or infinite."""
        return self.runs.lower, sum(run.upper if self._certified(run) else np.inf for run in self.runs.runs)

    def _certified(self, run: Run) -> bool:
        """Whether to offer the weights of the upper bound; if the newest are asked for, where those are worse."""
        return run.proven if self.reads.newest else run.w is not None

    def weights(self) -> Array:
        """Return the weights of the problems, a line for every output."""
        several = [run.weights() if run.w is None or not self._certified(run) else run.w for run in self.runs.runs]
        return np.vstack([np.atleast_2d(w) for w in several])

    @property
    def fingerprint(self) -> str:
        """Tells apart data between which dual variables do not carry over; mostly empty."""
        return ""

    def alpha(self) -> sp.csr_array | None:
        """Return the dual variables of all problems, (lines, rows); None where they cannot be told apart."""
        return _stacked([self._alpha(run) for run in self.runs.runs])

    def coefficients(self) -> sp.csr_array:
        """Return what every example counts in the weights, (outputs, rows)."""
        return _stacked([self._coefficients(run, k) for k, run in enumerate(self.runs.runs)])

    def _alpha(self, run: Run) -> sp.csr_array:
        return self._side_by_side(run, lambda index, alpha: alpha)

    def _coefficients(self, run: Run, k: int) -> sp.csr_array:
        def found(index: int, alpha: Array) -> Array:
            labels = run.cache.labels.get(index, np.zeros(len(alpha)))
            empty = Chunk(sp.csr_array((len(alpha), self.width)), labels)
            return self.problem_of(k)(empty).mapping.coefficients(alpha, len(alpha))

        return self._side_by_side(run, found)

    def labels(self) -> Array | None:
        """Return the classes of all rows that have been met, where there are any, and 0 for the rest."""
        cache = self.runs.runs[0].cache
        if not cache.labels:
            return None
        labels = np.zeros(self._n_rows, dtype=next(iter(cache.labels.values())).dtype)
        for index, some in cache.labels.items():
            labels[cache.starts[index] :][: len(some)] = some
        return labels

    @property
    def _n_rows(self) -> int:
        cache = self.runs.runs[0].cache
        return self.dataset.n_rows or max(cache.starts[index] + cache.lengths[index] for index in cache.starts)

    def _side_by_side(self, run: Run, of: Callable[[int, Array], Array]) -> sp.csr_array:
        """Return what is found for all chunks, (lines, rows); nothing for those that have not been met."""
        cache = run.cache
        order = sorted(cache.starts, key=lambda index: cache.starts[index])

        def table(index: int) -> Array:
            found = of(index, cache.alpha(index))
            return found.reshape(len(found), -1).T

        # there may be many: counted first, then put in place
        counts = np.array([np.count_nonzero(table(index), axis=1) for index in order])
        ends = np.cumsum(counts.sum(axis=0))
        data, indices = np.empty(ends[-1]), np.empty(ends[-1], np.int32 if self._n_rows < 2**31 else np.int64)
        at = np.concatenate([[0], ends[:-1]])
        for index, count in zip(order, counts, strict=True):
            line, column = np.nonzero(found := table(index))
            values, column = found[line, column], column + cache.starts[index]
            for k, part in enumerate(np.split(np.arange(len(line)), np.cumsum(count)[:-1])):
                place = slice(at[k], at[k] + count[k])
                data[place], indices[place] = values[part], column[part]
            at += count
        return sp.csr_array((data, indices, np.concatenate([[0], ends])), shape=(len(ends), self._n_rows))


@dataclass(frozen=True)
class Reads:
    """How often to read a dataset, and where to keep what is known meanwhile.

    Attributes
    ----------
    passes : int or None
        Number of reads after which to be content with the newest weights.
    max_passes : int or None
        Largest number of reads, where the weights are to be certified; None: as `max_iter` says.
    checkpoint : path-like or None
        Where to write checkpoints.
    checkpoint_every : float
        Seconds between them.
    resume : path-like or None
        A checkpoint to go on from.
    """

    passes: Any = None
    max_passes: Any = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: Any = 600.0
    resume: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.passes is not None and self.max_passes is not None:
            raise ValueError("give passes, for the newest weights, or max_passes, for certified ones, but not both")
        for name, least in (("passes", 1), ("max_passes", 2)):
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
                why = ": the first read learns, and the next one proves" if least == 2 else ""
                raise ValueError(f"{name} must be an integer of at least {least}{why}; got {value!r}")

    @property
    def newest(self) -> bool:
        """Whether the newest weights are asked for, certified or not."""
        return self.passes is not None

    def most(self, max_iter: Any) -> int:
        """Return the largest number of reads."""
        if self.passes is not None:
            return int(self.passes)
        most = as_passes(max_iter if self.max_passes is None else self.max_passes)
        if most < 1:
            raise ValueError(
                "max_iter must be at least 1 to learn from a dataset: nothing is known before it is read"
            )
        return most


def _stacked(tables: list[sp.csr_array]) -> sp.csr_array:
    return tables[0] if len(tables) == 1 else sp.vstack(tables, format="csr")  # which would copy it


def alone(beside: list[Any]) -> None:
    """Refuse what a dataset brings with it."""
    if any(value is not None for value in beside):
        raise ValueError("a dataset holds its targets and weights itself: say where they are in open_dataset")


def parted(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return features, targets and weights, which a chunk of a dataset brings with it."""
    if not isinstance(X, Chunk):
        return X, y, sample_weight
    alone([y, sample_weight])
    if X.y is None:
        raise ValueError("the chunk has no targets: say where they are in open_dataset")
    return X.X, X.y, X.weight


def refuse(**given: Any) -> None:
    """Refuse what only a dataset can be read with."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is for datasets that are read in chunks: see dualsvm.open_dataset")
