"""Learning from a dataset that is read in chunks: the same problems, whose rows are met a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..checks import Array, as_number
from ..chunked import Run, Runs, Start
from ..data import Chunk, Dataset
from ..problem import Problem
from ..progress import Watcher, printers
from ..rows import Rows
from ..solve import as_passes, as_seed, as_threads, as_tolerance
from .terms import Frame, Terms, make_terms

State = Callable[[Any, Terms], list[Problem]]


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
        Makes of a chunk what `state` expects.
    reads : Reads
        How often to read.
    """

    def __init__(
        self,
        model: Any,
        dataset: Dataset,
        outputs: int,
        state: Callable[[Chunk], State],
        prepare: Callable[[Chunk], Chunk],
        reads: Reads,
    ) -> None:
        self.model, self.dataset, self.outputs = model, dataset, outputs
        self.state, self.prepare = state, prepare
        self.reads = reads
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

    def learn(self, problems: int, watchers: list[Watcher]) -> None:
        """Solve so many problems, side by side."""
        m, tol, threads = self.model, as_tolerance(self.model.tol), as_threads(self.model.n_jobs)
        own = threads if problems == 1 else 1
        several = [
            Run(self.dataset, self.problem_of(k), self.limit, tol, as_seed(m.random_state), own, True)
            for k in range(problems)
        ]
        if m.warm_start:
            for run, start in zip(several, self._starts(problems), strict=False):
                run.start_from(start)
        self.runs = Runs(self.dataset, several, self.limit, threads, self.prepare)
        watchers = [*printers(m.verbose, tol), *watchers]
        self.ending = self.runs.pursue(self.reads.most(m.max_iter), watchers, self.reads.newest)

    def _starts(self, problems: int) -> list[Start]:
        """Return what is left of the last fit to start from, for every problem, or nothing."""
        m = self.model
        if not hasattr(m, "_alpha") or len(np.atleast_2d(m.coef_)) != self.outputs:
            return []
        weights = self.frame.weights(m.coef_, m.intercept_)
        if problems == 1:
            return [Start(m._alpha.tocsc(), weights if self.outputs > 1 else weights[0])]
        lines = m._alpha.shape[0] // problems
        return [Start(m._alpha[k * lines : (k + 1) * lines].tocsc(), weights[k]) for k in range(problems)]

    def bounds(self) -> tuple[float, float]:
        """Return the sums of the bounds; the upper one is that of the weights, or infinite."""
        return self.runs.lower, sum(run.upper if self._certified(run) else np.inf for run in self.runs.runs)

    def _certified(self, run: Run) -> bool:
        """Whether to offer the weights of the upper bound: not where the newest are asked for."""
        return run.w is not None and (run.converged or not self.reads.newest)

    def weights(self) -> Array:
        """Return the weights of the problems, a line for every output."""
        several = [run.weights() if run.w is None or not self._certified(run) else run.w for run in self.runs.runs]
        return np.vstack([np.atleast_2d(w) for w in several])

    @property
    def width(self) -> int:
        """Number of features."""
        return self.runs.runs[0].frame.n_features

    def alpha(self) -> sp.csr_array:
        """Return the dual variables of all problems, (lines, rows)."""
        return self._gathered(lambda k, index, alpha: alpha)

    def coefficients(self) -> sp.csr_array:
        """Return what every example counts in the weights, (outputs, rows)."""

        def found(k: int, index: int, alpha: Array) -> Array:
            labels = self.runs.runs[k].cache.labels.get(index, np.zeros(len(alpha)))
            empty = Chunk(sp.csr_array((len(alpha), self.width)), labels)
            return self.problem_of(k)(empty).mapping.coefficients(alpha, len(alpha))

        return self._gathered(found)

    def labels(self) -> Array | None:
        """Return the classes of all rows that have been met, where there are any, and 0 for the rest."""
        cache = self.runs.runs[0].cache
        if not cache.labels:
            return None
        labels = np.zeros(self._n_rows, dtype=np.int64)
        for index, some in cache.labels.items():
            labels[cache.starts[index] :][: len(some)] = some
        return labels

    @property
    def _n_rows(self) -> int:
        cache = self.runs.runs[0].cache
        return self.dataset.n_rows or max(cache.starts[index] + cache.lengths[index] for index in cache.starts)

    def _gathered(self, of: Callable[[int, int, Array], Array]) -> sp.csr_array:
        """Return what is found for the chunks of every problem, side by side; nothing for those that were not met."""
        lines = []
        for k, run in enumerate(self.runs.runs):
            cache, parts, end = run.cache, [], 0
            for index in sorted(cache.starts, key=lambda index: cache.starts[index]):
                found = of(k, index, cache.alpha(index))
                table = sp.csr_array(found.reshape(len(found), -1).T)
                parts += [sp.csr_array((table.shape[0], cache.starts[index] - end)), table]
                end = cache.starts[index] + len(found)
            parts.append(sp.csr_array((parts[-1].shape[0], self._n_rows - end)))
            lines.append(sp.hstack([part for part in parts if part.shape[1]], format="csr"))
        return sp.vstack(lines, format="csr")


@dataclass(frozen=True)
class Reads:
    """How often to read a dataset.

    Attributes
    ----------
    passes : int or None
        Number of reads after which to be content with the newest weights.
    max_passes : int or None
        Largest number of reads, where the weights are to be certified; None: as `max_iter` says.
    """

    passes: Any = None
    max_passes: Any = None

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
        return (
            as_passes(max_iter if self.max_passes is None else self.max_passes)
            if self.passes is None
            else self.passes
        )


def alone(beside: list[Any]) -> None:
    """Refuse what a dataset brings with it."""
    if any(value is not None for value in beside):
        raise ValueError("a dataset holds its targets and weights itself: say where they are in open_dataset")


def refuse(**given: Any) -> None:
    """Refuse what only a dataset can be read with."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is for datasets that are read in chunks: see dualsvm.open_dataset")
