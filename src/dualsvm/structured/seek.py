"""Whom to ask about next, and when to optimize what is held. Nothing here knows the task, nor proves anything."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ..checks import Array
from .constraints import Found, joined
from .crew import Crew
from .examples import parts_of
from .problem import Searched
from .working import WorkingSet

_PARTS = 30  # into which the examples are divided: one after the other is explored
_EACH = 32  # examples of a part for each of several workers: less would not be worth the way to them and back
_BY_GAP = 0.8  # of a part is drawn by the last known gaps, the rest uniformly
_MOST = 10  # passes over the cache after a part
_ALONE = 100  # ... after one that nothing new was found in, as where bounds on the weights make steps short
_SOLVED = 0.1  # of the whole gap: a gap of the cached problem that is small enough
_SKIP = 0.25  # of the last gap of an example: so much to gain from its cached constraints spares the oracle
_TRIFLE = 0.01  # of the mean gap: less is not worth a visit
_ENOUGH = 1000  # examples asked about at once


class Seeker:
    """What is held of a problem's constraints, and what every example was last seen to lack."""

    def __init__(self, problem: Searched, seed: int, n_jobs: int | None, cache_mb: float, prune_after: int) -> None:
        self.crew = Crew(n_jobs)
        self.problem, self.limit = problem, cache_mb * 2**20
        self.working = WorkingSet(problem, prune_after, seed)
        self.random = np.random.default_rng(seed)
        n = problem.n_examples
        self.paying = np.flatnonzero(problem.cost > 0)  # the others need not be asked about
        self.gaps = np.where(problem.cost > 0, np.inf, 0.0)  # of the examples, when they were last asked about
        self.queue = self._in_order()
        self.part = max(1, n // _PARTS)
        if problem.price is None and self.crew.threads > 1:
            self.part = max(self.part, min(n // 8, _EACH * self.crew.threads))
        self.asked = 1
        self.calls = 0
        self.gain = 0.0  # of the dual since the last part was asked for
        self.idle = False  # whether nothing new was found when last asked
        self.cached = np.inf
        self.dual = 0.0

    def __enter__(self) -> Self:
        self.crew.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.crew.__exit__(*error)

    def resume(self, rows: sp.csr_array, l: Array, example: Array, alpha: Array) -> None:
        """Take over constraints with their dual variables, for the examples that are there."""
        cost = np.repeat(self.problem.cost, self.problem.slacks)
        here = example < len(cost)
        example, alpha = example[here], np.maximum(alpha[here], 0.0)
        mass = np.bincount(example, alpha, minlength=len(cost))
        factor = np.divide(cost, mass, out=np.ones_like(cost), where=mass > cost)
        self.working.put(rows[here], l[here], example, alpha * factor[example])

    def _in_order(self) -> Array:
        return np.arange(len(self.gaps)) if self.problem.sequential else self.random.permutation(self.paying)

    def weights(self) -> Array:
        """Return the present weights."""
        return self.working.weights()

    @property
    def everybody(self) -> list[Array]:
        """All who need to be asked, in parts."""
        which = np.arange(len(self.gaps)) if self.problem.sequential else self.paying
        return parts_of(which, max(self.part, _ENOUGH))

    def begin_pass(self) -> None:
        """Forget who was to be next: where examples are read in their order, all have just been read."""
        if self.problem.sequential:
            self.queue = self._in_order()

    def choose(self) -> Array:
        """Return the next examples to ask about."""
        if len(self.queue):
            which, self.queue = self.queue[: self.part], self.queue[self.part :]
            return which
        n = self.problem.n_examples
        if self.problem.sequential:
            self.queue = self._in_order()
            return self.choose()
        gaps = self.gaps
        # where its cached constraints still have much to gain, an example need not be asked about, but not for ever
        spared = self.working.cached_gaps() >= np.maximum(_SKIP * gaps, _TRIFLE * gaps.mean())
        spared &= (gaps > 0) & (self.asked > 0)
        gaps = np.where(spared, 0.0, gaps)
        wanted = min(int(np.ceil(_BY_GAP * self.part)), int((gaps > 0).sum()))
        # the smallest of exponential times with these rates: a draw without replacement
        times = np.divide(self.random.exponential(size=n), gaps, out=np.full(n, np.inf), where=gaps > 0)
        drawn = np.argpartition(times, wanted - 1)[:wanted] if wanted else np.empty(0, dtype=np.int64)
        rest = self.problem.cost > 0
        rest[drawn] = False
        others = np.flatnonzero(rest & ~spared)
        more = self.random.permutation(others)[: max(0, self.part - wanted)]
        return np.concatenate([drawn, more])

    def explore(self, which: Array) -> None:
        """Ask for the worst constraints of some examples, and add what is new."""
        self.gain, self.idle = 0.0, True
        self.asked = len(which)
        if len(which):
            which = np.ascontiguousarray(which, dtype=np.int64)
            self._ask(self.weights(), which, self.working.pledged(which))

    def _ask(self, w: Array, which: Array, pledged: Array) -> Found:
        found = self.ask(w, which, pledged)
        self.take(found)
        return found

    def ask(self, w: Array, which: Array, pledged: Array) -> Found:
        """Ask about examples of which so much is pledged by their dual variables, at some weights."""
        found = joined([self.problem.search(w, part, self.crew) for part in parts_of(which, self.problem.most)])
        self.calls += found.calls
        self.gaps[which] = np.maximum(self.problem.cost[which] * np.maximum(found.value, 0.0) - pledged, 0.0)
        return found

    def take(self, found: Found) -> None:
        """Add what is new."""
        added, gain = self.working.insert(found)
        self.working.shrink(self.limit)
        self.idle &= added == 0
        self.gain += gain
        self.dual += gain

    def optimize(self) -> None:
        """Run passes over the cache, while they are worth more than the oracle's next answers would be."""
        price = None if self.problem.price is None else self.asked * self.problem.price
        passes = _ALONE if self.idle else _MOST
        _, gain, self.cached, _ = self.working.optimize(_SOLVED * self.total, passes, price, self.gain)
        self.dual += gain

    @property
    def total(self) -> float:
        """What the gaps of all examples may add up to, from those that are known."""
        known = np.isfinite(self.gaps)
        return float(self.gaps[known].mean() * len(known)) if known.any() else np.inf
