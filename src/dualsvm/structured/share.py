"""A share of the examples of a structured problem, at work on its own part of the problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
import scipy.sparse as sp

from ..checks import Array
from ..shares.exchange import Order, Report, Vector
from ..shares.ground import Ground, padded
from ..shares.share import Own
from .constraints import Found, joined
from .oracle import OfTask, TaskProblem
from .seek import Seeker
from .working import WorkingSet

_SOME = 1000  # examples that tell how much there is of every coordinate


def ground_of(problem: OfTask) -> tuple[Ground, Callable[[Array], Array]]:
    """Return what is said of the weights, in the coordinates of shares, and what makes of such weights the user's.

    Nobody looks at the examples of the problem.
    """
    working = WorkingSet(problem, 1, 0)

    def wide(d: int) -> Ground:
        working.grow(d)
        return replace(working.ground, grown=wide if problem.width is None else None)

    return wide(0), working.outward


class OracleShare:
    """A share of a problem whose constraints are searched.

    See `RowShare` for the mathematics, and `WorkingSet` for what s becomes.

    Parameters
    ----------
    problem : TaskProblem or None
        The problem of its examples; None if there are none.
    sizes : sequence of int
        How many of these examples belong to each piece of the data, in their order.
    seed : int
        Of the order in which examples are visited.
    n_jobs : int or None, default None
        As in `StructuredSVM`.
    cache_mb : float, default 1024.0
        Memory for constraints, in megabytes.
    prune_after : int, default 50
        A constraint that has been without a dual variable for so many visits is dropped.
    names : sequence of str, default ()
        What errors call these pieces.
    """

    def __init__(
        self,
        problem: TaskProblem | None,
        sizes: Sequence[int],
        seed: int,
        n_jobs: int | None = None,
        cache_mb: float = 1024.0,
        prune_after: int = 50,
        names: Sequence[str] = (),
    ) -> None:
        self.problem, self.sizes = problem, sizes
        self._starts, self._names = np.cumsum([0, *sizes]), names
        if problem is not None and names:
            problem.name_of = self._name_of
        self._settings = seed, n_jobs, cache_mb, prune_after
        self._n = 0 if problem is None else problem.n_examples

    def _name_of(self, i: int) -> str:
        piece = int(np.searchsorted(self._starts, i, side="right")) - 1
        return f"example {i - self._starts[piece]} of {self._names[piece]}"

    def measure(self) -> Report:
        """Tell how much there is of every coordinate in the true outputs, as far as some examples can tell."""
        masses, stiffness = np.zeros(0), 0.0
        if self.problem is not None and self.problem.prior.covariance is None:
            some = np.arange(min(self._n, _SOME))
            if not self.problem.sequential:
                some = np.sort(np.random.default_rng(self._settings[0]).choice(self._n, len(some), replace=False))
            squares = padded(self.problem.squares(some), self.problem.n_weights)
            variance = self.problem.shape(len(squares)).variance
            masses = self._n / len(some) * (squares if variance is None else variance * squares)
            stiffness = float(self.problem.cost.mean() * masses.sum())
        return Report(u=Vector.of(masses), linear=stiffness, examples=self._n)

    def begin(self, shape: Vector) -> None:
        """Take note of how free shares are in every coordinate."""
        if self.problem is None:
            return
        self._seeker = Seeker(self.problem, *self._settings)
        self._working = self._seeker.working
        self._working.free(shape.dense)
        self._free, self._freedom = shape.dense, 1.0
        self._u, self._linear = np.zeros(0), 0.0
        self._own = Own()
        self._found: Found | None = None  # what a proof has found, not yet added
        self._widen(0)

    def _widen(self, n: int) -> None:
        """Make room for n weights, or for as many as have been found."""
        self._working.grow(n)
        self.ground = self._working.ground
        n = self.ground.n_weights
        self._u, self._variance = padded(self._u, n), self.ground.scaled(padded(self._free, n, 1.0))
        self._own.widen(n)

    def turn(self, order: Order) -> Report:
        """Search, and optimize what is held, by turns."""
        if self.problem is None:
            return Report()
        report = self.prove(order.offer) if order.certify else Report(linear=self._linear, examples=self._n)
        self._widen(len(order.z))
        mean = self._own.next(self._wide(order), self._variance, self._u)
        self._freedom = order.freedom
        self._working.lean(mean, self._freedom)
        self._work(order.effort, report)
        before = self._u
        self._u, self._linear = self._working.deposit()
        self._widen(0)
        report.change = Vector.of(self._u - padded(before, len(self._u)))
        report.rise = self._linear - report.linear
        return report

    def _wide(self, order: Order) -> Order:
        n, pivot = self.ground.n_weights, order.pivot
        return replace(order, z=padded(order.z, n), pivot=None if pivot is None else padded(pivot, n))

    def _work(self, effort: float, report: Report) -> None:
        """Search and optimize by turns; the report tells how."""
        seeker = self._seeker
        seen = seeker.gaps.copy() if self._found is not None else np.full(self._n, np.nan)  # when first asked about
        if self._found is not None:
            seeker.gain, seeker.idle, seeker.asked = 0.0, True, self._n
            seeker.take(self._found)
            seeker.optimize()
            self._found = None
        before = seeker.calls - report.visited  # those of a proof count, too
        while len(seeker.paying) and seeker.calls < before + effort * self._n:
            which = seeker.choose()
            seeker.explore(which)
            seen[which] = np.where(np.isnan(seen[which]), seeker.gaps[which], seen[which])
            seeker.optimize()
        report.gap = float(np.nanmean(seen)) * self._n if not np.isnan(seen).all() else 0.0
        report.visited = seeker.calls - before
        report.awake = self._working.held

    def prove(self, w: Array | None) -> Report:
        """Compute anew what the dual variables make, and ask about every example at some weights, unless None."""
        if self.problem is None:
            return Report(u=Vector.of(np.zeros(0)))
        self._u, self._linear = self._working.deposit()
        self._widen(0)
        report = Report(u=Vector.of(self._u), linear=self._linear, awake=self._working.held, examples=self._n)
        if w is None:
            return report
        self._widen(len(w))
        z, cost, calls = padded(w, self.ground.n_weights), self.problem.cost, self._seeker.calls
        self._working.lean(z - self._freedom * self._variance * self._u, self._freedom)  # where its weights are these
        seen, parts = self._working.outward(z), []
        for which in self._seeker.everybody:
            found = self._seeker.ask(seen, which, self._working.pledged(which))
            paid = np.where(cost[which] > 0, cost[which] * np.maximum(found.bound, 0.0), 0.0)
            report.loss += float(paid.sum())
            parts.append(found)
        self._seeker.begin_pass()
        self._found = joined(parts) if parts else None
        report.gap, report.visited = float(self._seeker.gaps.sum()), self._seeker.calls - calls
        return report

    def settle(self, better: bool) -> Report:
        """Stay with the present dual variables: to remember all that was held would take too much."""
        return self.prove(None)

    def keep(self) -> list[dict[str, Array]]:
        """Return what is held, for every piece of the data, as plain arrays."""
        if self.problem is None:
            return [{} for _ in self.sizes]
        rows, l, example, alpha = self._working.content()
        kept, slacks = [], self.problem.slacks
        for a, b in pairwise(accumulate(self.sizes, initial=0)):
            own = (example >= slacks * a) & (example < slacks * b)
            part = rows[own]
            kept.append(
                {"data": part.data, "indices": part.indices, "indptr": part.indptr, "margins": l[own]}
                | {"alpha": alpha[own], "example": example[own] - slacks * a}
            )
        return kept

    def take(self, alpha: Sequence[dict[str, Array]]) -> None:
        """Take over what `keep` has returned, for every piece of the data; `prove` has to follow."""
        if self.problem is None:
            return
        first = accumulate(self.sizes, initial=0)
        for part, a in zip(alpha, first, strict=False):
            if part and len(part["margins"]):
                width = max(self.ground.n_weights, int(part["indices"].max(initial=-1)) + 1)
                shape = len(part["margins"]), width
                rows = sp.csr_array((part["data"], part["indices"], part["indptr"]), shape=shape)
                example = part["example"] + self.problem.slacks * a
                self._seeker.resume(rows, part["margins"], example, part["alpha"])
