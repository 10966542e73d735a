"""Who answers: threads of the kernel for compiled searches, joblib for those in Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Self

import joblib
import numpy as np

from ..solve import as_threads


class Crew:
    """Workers that live as long as a fit, so that no time goes into starting them again.

    Parameters
    ----------
    n_jobs : int or None
        As in joblib: None is 1, or what ``joblib.parallel_config`` says.
    """

    def __init__(self, n_jobs: int | None) -> None:
        self.threads = as_threads(n_jobs)
        self._parallel: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._parallel is not None:
            self._parallel.__exit__(*error)

    def map(self, function: Callable[..., list[Any]], items: Sequence[Any], *rest: Any) -> list[Any]:
        """Return ``function(items, *rest)``, a list with an entry for each item, by parts where there are workers."""
        if self.threads == 1 or len(items) < 2:
            return function(items, *rest)
        if self._parallel is None:
            self._parallel = joblib.Parallel(n_jobs=self.threads, batch_size=1)  # parts are batches already
            self._parallel.__enter__()
        cuts = np.linspace(0, len(items), min(len(items), 2 * self.threads) + 1).astype(int)
        parts = [items[a:b] for a, b in itertools.pairwise(cuts)]
        done = self._parallel(joblib.delayed(function)(part, *rest) for part in parts)
        return [each for part in done for each in part]
