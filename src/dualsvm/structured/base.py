"""What the estimators share whose constraints are searched."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from .. import store
from ..checks import Array, as_number, as_vector
from ..linear.encoding import decode, encode
from ..progress import printers
from ..solve import SEARCHED, as_passes, as_threads, as_tolerance, warn_not_converged
from ..tasks.files import restore_task, store_task
from .examples import PART, Readable
from .explore import Search
from .problem import Searched
from .solution import OracleSolution


class OracleEstimator(BaseEstimator):
    """Parameters that say how to search, the search itself, its results as attributes, and files."""

    #: what the task must be able to do
    _needed: tuple[str, ...] = ()
    #: attributes that files do not hold
    _unsaved: tuple[str, ...] = ("task_",)
    task: Any
    C: Any
    tol: Any
    max_iter: Any
    cache_mb: Any
    prune_after: Any
    warm_start: bool
    random_state: Any
    n_jobs: int | None
    verbose: int

    def _check(self) -> None:
        """Refuse parameters of the search, and a task, that cannot be."""
        if isinstance(self.task, type):
            raise TypeError(f"the task must be an object, not the class: {self.task.__name__}(...)")
        absent = [name for name in self._needed if not callable(getattr(self.task, name, None))]
        if absent:
            raise TypeError(f"the task, a {type(self.task).__name__}, lacks {', '.join(absent)}")
        as_tolerance(self.tol)
        as_passes(self.max_iter)
        as_threads(self.n_jobs)
        cache_mb = as_number(self.cache_mb, "cache_mb")
        if cache_mb <= 0:
            raise ValueError(f"cache_mb must be positive, got {cache_mb}")
        if not isinstance(self.prune_after, int | np.integer) or self.prune_after < 1:
            raise ValueError(f"prune_after must be a positive integer, got {self.prune_after!r}")

    def _search(self, problem: Searched, start: OracleSolution | None, seed: int) -> Search:
        """Return a search for the solution of a problem."""
        return Search(problem, as_tolerance(self.tol), seed, self.n_jobs, self.cache_mb, int(self.prune_after), start)

    def _run(self, search: Search, checkpoint: Checkpoint, title: str = "") -> str:
        """Have a search run; its state is written to the checkpoint in the end, even if it fails."""
        keep = checkpoint.write if checkpoint.path is not None else None
        watchers = printers(self.verbose, search.tol, title)
        try:
            return search.run(as_passes(self.max_iter), watchers, keep, checkpoint.every)
        finally:
            if keep is not None and search.calls:
                keep(search.finish("stopped"))

    def _set(self, solution: OracleSolution, task: Any) -> None:
        self.coef_ = solution.w
        self.task_ = copy.copy(task)
        self.lower_bound_ = solution.lower_bound
        self.upper_bound_ = solution.upper_bound
        self.gap_ = solution.gap
        self.converged_ = solution.converged
        self.certified_ = solution.certified
        self.n_iter_ = solution.n_iter
        self.n_oracle_calls_ = solution.n_oracle_calls
        self.n_constraints_ = len(solution.margins)
        self.history_: list[Any] = solution.history
        if self.warm_start:
            self._solution = solution
        elif hasattr(self, "_solution"):
            del self._solution

    def _warn(self, status: str, n_iter: int, gap: float) -> None:
        """Tell how a search ended, if it was not at the tolerance."""
        if status == "interrupted":
            raise KeyboardInterrupt
        if status in ("max_iter", "stalled"):
            warn_not_converged(n_iter, gap, self.tol, status == "stalled", SEARCHED)

    def _cost(self, sample_weight: Any, examples: Readable) -> Array:
        n = examples.n
        C = as_number(self.C, "C")
        if C <= 0:
            raise ValueError(f"C must be positive, got {C}")
        if examples.weight is not None:
            sample_weight = examples.weight
        if sample_weight is None:
            return np.full(n, C)
        weights = as_vector(sample_weight, "sample_weight", n, "example")
        if weights.min() < 0 or not weights.any():
            raise ValueError("sample_weight must not be negative, and not zero for every example")
        return C * weights

    def _parts(self, X: Any) -> Iterator[list[Any]]:
        """Yield inputs, which may be loaded only now, in parts."""
        for k in range(0, len(X), PART):
            yield [X[i] for i in range(k, min(k + PART, len(X)))]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator, fitted or not, to an ``.npz`` file that `dualsvm.load` reads; no pickle is involved.

        A ready-made task is written, too; any other one has to be given again, ``load(path, task=task)``.

        Parameters
        ----------
        path : path-like
            Where to write, exactly this name. An older file is replaced only when the new one is complete.
        """
        names = [name for name in self.get_params(deep=False) if name != "task"]
        names += [name for name in vars(self) if name.endswith("_") and name[0] != "_" and name not in self._unsaved]
        arrays: dict[str, Array] = {}
        meta: dict[str, Any] = {"state": {name: encode(getattr(self, name), name, arrays) for name in names}}
        meta["task"] = store_task(getattr(self, "task_", self.task), arrays)
        store.write(path, f"dualsvm.{type(self).__name__} 1", meta, arrays)

    @classmethod
    def _restored(cls, meta: dict[str, Any], arrays: dict[str, Array], task: Any = None) -> Self:
        state = {name: decode(value, arrays) for name, value in meta["state"].items()}
        if task is None:
            task = restore_task(meta["task"], arrays)
        parameters = {name: state.pop(name) for name in cls._get_param_names() if name != "task"}
        estimator = cls(task, **parameters)
        if "history_" in state:
            state["history_"] = list(state["history_"])  # where it is empty, an array has come back
        for name, value in state.items():
            if name.startswith("_") or not name.endswith("_"):
                raise ValueError(f"{name} is no attribute of a fitted estimator")
            setattr(estimator, name, value)
        if hasattr(estimator, "coef_"):
            estimator.task_ = task
            coef = np.asarray(estimator.coef_)
            size = getattr(task, "size_joint_feature", None)
            if (
                coef.ndim != 1
                or coef.dtype != np.float64
                or not np.isfinite(coef).all()
                or size not in (None, len(coef))
            ):
                raise ValueError("the weights do not fit the task")
        return estimator


class Checkpoint:
    """Where to write the state so far, and how often, in seconds; `prints` tell the examples that it is of."""

    def __init__(self, path: str | os.PathLike[str] | None = None, every: Any = 600.0) -> None:
        self.path, self.every = path, as_number(every, "checkpoint_every")
        self.prints: Array = np.empty(0, np.uint64)

    def write(self, solution: OracleSolution) -> None:
        """Write the state, if that is wanted."""
        if self.path is not None:
            replace(solution, prints=self.prints).save(self.path)
