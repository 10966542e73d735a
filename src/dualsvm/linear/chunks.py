"""Learning from a dataset that is read in chunks: the same problems, whose rows are met a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..checks import Array, as_number
from ..chunked import Run, pursue_chunks
from ..data import Chunk, Dataset
from ..problem import Problem
from ..progress import Watcher, printers
from ..rows import Rows
from ..solution import Record
from ..solve import as_passes, as_seed, as_threads, as_tolerance
from .terms import Frame, Terms, make_terms

State = Callable[[Any, Terms], list[Problem]]


class Learner:
    """Solves the problems of an estimator, one after the other, over the chunks of a dataset.

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
    passes : int or None
        Reads after which to be content with what there is.
    """

    def __init__(
        self,
        model: Any,
        dataset: Dataset,
        outputs: int,
        state: Callable[[Chunk], State],
        prepare: Callable[[Chunk], Chunk | None],
        passes: int | None,
    ) -> None:
        self.model, self.dataset, self.outputs = model, dataset, outputs
        self.state, self.prepare = state, prepare
        self.passes = None if passes is None else as_passes(passes)
        self.limit = 1e6 * as_number(model.cache_mb, "cache_mb")
        if self.limit < 0:
            raise ValueError(f"cache_mb must not be negative, got {model.cache_mb}")
        if isinstance(getattr(model, "fit_intercept", None), str):
            raise ValueError('fit_intercept="unpenalized" needs all rows at once: raise intercept_scaling instead')
        self.bias = model._bias()
        self.terms: Terms | None = None
        self.frame = Frame(self.bias, None, False)
        self.runs: list[Run] = []
        self.endings: list[str] = []
        self.labels: Array | None = None  # classes of all rows, where there are any
        self.width = 0
        self._found: list[Any] = []  # what every example counts in the weights, for each problem

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

    def learn(self, titles: list[str], watchers: list[Watcher]) -> None:
        """Solve the problems, which have these titles."""
        m, tol = self.model, as_tolerance(self.model.tol)
        reads = as_passes(m.max_iter) if self.passes is None else self.passes
        for k, title in enumerate(titles):
            run = Run(
                self.dataset,
                self.problem_of(k),
                self.limit,
                tol,
                as_seed(m.random_state),
                as_threads(m.n_jobs),
                self.prepare,
                True,
            )
            self.runs.append(run)
            self.endings.append(pursue_chunks(run, reads, [*printers(m.verbose, tol, title), *watchers]))
            self._found.append(self._coefficients(run, k))
            run.release()
            if self.endings[-1] in ("stopped", "interrupted"):
                break

    def bounds(self) -> tuple[float, float]:
        """Return the sums of the bounds; the upper one is that of the weights, or infinite."""
        return sum(run.lower for run in self.runs), sum(self._upper(run) for run in self.runs)

    def _upper(self, run: Run) -> float:
        return run.upper if self._certified(run) else np.inf

    def _certified(self, run: Run) -> bool:
        """Whether to offer the weights of the upper bound: not where a number of passes was asked for."""
        return run.w is not None and (run.converged or self.passes is None)

    def weights(self) -> list[Array]:
        """Return the weights of the problems."""
        return [run.weights() if run.w is None or not self._certified(run) else run.w for run in self.runs]

    def solved(self) -> list[Array]:
        """Return the weights of the problems but the last."""
        return self.weights()[:-1]

    def history(self) -> list[Record]:
        """Return the records of all problems."""
        return [record for run in self.runs for record in run.history]

    def coefficients(self) -> sp.csr_array:
        """Return what every example counts in the weights, (outputs, rows)."""
        return sp.vstack(self._found, format="csr")

    def _coefficients(self, run: Run, k: int) -> Any:
        cache, parts = run.cache, []
        order = sorted(cache.starts, key=lambda index: cache.starts[index])
        if cache.labels:
            self.labels = np.concatenate([cache.labels[index] for index in order])
        self.width = run.frame.n_features
        for index in order:
            alpha = cache.alpha(index)
            empty = Chunk(sp.csr_array((len(alpha), self.width)), cache.labels.get(index, np.zeros(len(alpha))))
            found = self.problem_of(k)(empty).mapping.coefficients(alpha, len(alpha))
            parts.append(sp.csr_array(np.atleast_2d(found.T)))
        return sp.hstack(parts, format="csr")


def alone(beside: list[Any]) -> None:
    """Refuse what a dataset brings with it."""
    if any(value is not None for value in beside):
        raise ValueError("a dataset holds its targets and weights itself: say where they are in open_dataset")


def refuse(**given: Any) -> None:
    """Refuse what only a dataset can be read with."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is for datasets that are read in chunks: see dualsvm.open_dataset")
