"""The schedule of explore, optimize and certify for constraints that are searched. Nothing here knows the task."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..checks import Array
from ..progress import Watcher
from ..solution import Record, relative_gap
from .constraints import Feature, OracleError
from .problem import Searched
from .seek import Seeker
from .solution import OracleSolution

_MOST = 10  # passes over the cache before a certificate
_SOLVED = 0.1  # of the tolerance: a gap of the cached problem that is small enough
_TURNED = 50  # passes over it where the problem has changed
_NEAR = 10.0  # times the tolerance: a gap that the next certificate may close
_READY = 0.8  # of the tolerance: certify when the gap seems to have come down to this
_POLISHED = 0.2  # of the tolerance: a larger gap of the cached problem is not worth a certificate
_DUST = 1e-13  # of what the margins asked for cost: rounding may leave so much of an optimum of 0
_CROSSED = 1e-3  # of the bounds: if they cross by more, that is not rounding
_ENOUGH = 1000  # examples asked about at once for a certificate


def explore(
    problem: Searched,
    tol: float,
    max_iter: int,
    start: OracleSolution | None,
    seed: int,
    n_jobs: int | None,
    cache_mb: float = 1024.0,
    prune_after: int = 50,
    watchers: Sequence[Watcher] = (),
    keep: Callable[[OracleSolution], Any] | None = None,
    keep_every: float = 600.0,
) -> OracleSolution:
    """Search, optimize and certify until the gap is within the tolerance.

    `keep` is called with the state so far, every so many seconds. An error carries the state so far as its attribute
    `solution`.
    """
    with Search(problem, tol, seed, n_jobs, cache_mb, prune_after, start) as search:
        try:
            return search.finish(search.run(max_iter, watchers, keep, keep_every))
        except Exception as error:  # of the oracle, or of whatever loads the examples
            error.solution = search.finish("failed")  # type: ignore[attr-defined]
            raise


class Change(NamedTuple):
    """Examples of a problem that have changed.

    Attributes
    ----------
    which : ndarray
        Their numbers.
    moves : list
        For each a vector by which all its constraints have moved, which then keep their dual variables; or None,
        where that is not how they have changed.
    scaled : bool
        Whether constraints move by l times that vector.
    """

    which: Array
    moves: list[Feature | None]
    scaled: bool = False


class Search(Seeker):
    """A search under way: what is held, what every example was last seen to lack, and the best weights certified."""

    def __init__(
        self,
        problem: Searched,
        tol: float,
        seed: int,
        n_jobs: int | None,
        cache_mb: float,
        prune_after: int,
        start: OracleSolution | None = None,
    ) -> None:
        super().__init__(problem, seed, n_jobs, cache_mb, prune_after)
        self.tol = tol
        self.began = time.perf_counter()
        self.history: list[Record] = []
        self.told = 0  # calls that records speak of
        self.factor = 1.0  # of the true gap over what the gaps seen add up to
        self.w: Array | None = None
        self.upper, self.estimate, self.dust = np.inf, np.inf, 0.0
        self.proven = True  # whether every answer that counts in the upper bound was a proof
        self.slack = np.full(problem.n_examples, np.nan)  # bounds on those of the examples, at the best weights
        self.certified = self.open = False
        self.hot = start is not None  # whether to begin with a certificate
        self.turned = False  # whether to begin with what is held
        if start is not None:
            self.resume(start.rows, start.margins, start.example, start.alpha)
        self.lower = -np.inf
        self._bound()

    def run(
        self,
        max_iter: int,
        watchers: Sequence[Watcher] = (),
        keep: Callable[[OracleSolution], Any] | None = None,
        keep_every: float = 600.0,
    ) -> str:
        """Search, optimize and certify until the gap is within the tolerance; return how that ended."""
        status = "max_iter"
        kept = time.perf_counter()
        try:
            if self.hot:
                self.certify()
                status = self.tell(watchers) or status
                self.hot = False
            if self.turned:
                self._settle(_TURNED)
                self._bound()
                self.turned = False
                if self.gap <= _NEAR * self.tol:
                    self.certify()
                    status = self.tell(watchers) or status
            while status == "max_iter" and not self.ended and self.passes < max_iter:
                if not self.open:
                    for watcher in watchers:
                        watcher.begin()
                    self.open = True
                self.explore(self.choose())
                self.optimize()
                if self.promising or self.passes >= max_iter:
                    self.certify()
                if self.certified or self.pass_done:
                    status = self.tell(watchers) or status
                if keep is not None and time.perf_counter() - kept >= keep_every:
                    keep(self.finish("stopped"))
                    kept = time.perf_counter()
            if not self.certified and (status == "max_iter" or self.w is None):
                self.certify()
                self.tell(watchers)
        except KeyboardInterrupt:
            status = "interrupted"
        finally:
            for watcher in watchers:
                watcher.close()
        return status

    def turn(self, problem: Searched, change: Change) -> float:
        """Go on with a problem some of whose examples have changed; return the upper bound of the best weights there.

        What such an example pays at these weights is asked for; the others pay what they did.
        """
        assert self.w is not None
        self.problem = self.working.problem = problem
        self.upper, self.proven, self.certified = np.inf, False, False
        lost = np.array([move is None for move in change.moves], dtype=bool)
        self.working.forget(change.which[lost])
        self.working.move(change.which[~lost], [move for move in change.moves if move is not None], change.scaled)
        self.history, self.calls, self.told = [], 0, 0
        self.lower, self.turned = -np.inf, True
        self._bound()
        paying = change.which[problem.cost[change.which] > 0]
        asked = np.arange(len(self.gaps)) if problem.sequential else paying
        for k in range(0, len(asked), size := max(self.part, _ENOUGH)):
            part = asked[k : k + size]
            self.slack[part] = self._ask(self.w, part, self.working.pledged(part)).bound
        self.gaps[self.paying] = np.inf  # at weights that will move, nothing is known of them
        self.queue = self._in_order()
        paid = np.where(problem.cost > 0, problem.cost * np.maximum(self.slack, 0.0), 0.0)
        upper = self.working.distance(self.w) + float(paid.sum())
        self.proven = bool(np.isfinite(upper))
        self.upper = upper if self.proven else np.inf
        return self.upper

    @property
    def passes(self) -> float:
        return self.calls / self.problem.n_examples

    @property
    def pass_calls(self) -> int:
        return self.calls - self.told

    @property
    def pass_done(self) -> bool:
        return self.pass_calls >= self.problem.n_examples

    @property
    def gap(self) -> float:
        return relative_gap(self.lower, self.upper) if np.isfinite(self.upper) else np.inf

    @property
    def ended(self) -> bool:
        """Whether the last certificate leaves nothing to do: it is good enough, or nothing is left to find."""
        return self.certified and (self.converged or self.unproven or self.stalled)

    @property
    def converged(self) -> bool:
        """Whether the bounds are near enough, or as near as rounding lets them be where the optimum is 0."""
        return self.gap <= self.tol or self.upper - self.lower <= self.dust

    @property
    def unproven(self) -> bool:
        return not self.proven and self.estimate <= self.tol

    @property
    def stalled(self) -> bool:
        return self.idle and self.cached <= 0.1 * self.tol * abs(self.dual)

    @property
    def record(self) -> Record:
        return self.history[-1]

    def explore(self, which: Array) -> None:
        """Ask for the worst constraints of some examples, and add what is new."""
        self.certified = False
        super().explore(which)

    def _settle(self, passes: int) -> None:
        """Run passes over the cache until its own gap is a small part of the tolerance, so many at most."""
        gap = _SOLVED * self.tol * min(abs(self.dual), self.upper)
        _, gain, self.cached, _ = self.working.optimize(gap, passes, None, 0.0)
        self.dual += gain

    @property
    def promising(self) -> bool:
        """Whether the gap seems to have come down to the tolerance."""
        if not np.isfinite(self.gaps).all():
            return False
        total = self.factor * self.total
        return total <= _READY * self.tol * abs(self.dual + total)

    def certify(self) -> None:
        """Ask about all examples at the present weights, and take note of the bounds that this proves."""
        if self.working.look() > _POLISHED * self.tol * abs(self.dual):
            self._settle(_MOST)
        lower = self._bound()
        w, self.cached = self.weights(), self.working.look()
        expected, distance = self.factor * self.total, self.working.distance(w)
        which = np.arange(len(self.gaps)) if self.problem.sequential else self.paying
        pledged, cost = self.working.pledged(which), self.problem.cost[which]
        slack = np.full(len(self.gaps), np.nan)
        paid = seen = scale = 0.0
        self.idle = True
        for k in range(0, len(which), size := max(self.part, _ENOUGH)):
            part = slice(k, k + size)
            found = self._ask(w, which[part], pledged[part])
            slack[which[part]] = found.bound
            paid += float(np.where(cost[part] > 0, cost[part] * np.maximum(found.bound, 0.0), 0.0).sum())
            seen += float(cost[part] @ np.maximum(found.value, 0.0))
            scale += float(self.problem.cost[found.example // self.problem.slacks] @ np.abs(found.l))
        upper = distance + paid
        proven = bool(np.isfinite(paid))
        if (proven and upper < self.upper) or self.w is None or (not proven and not np.isfinite(self.upper)):
            self.w, self.slack = w, slack
            self.upper = float(upper) if proven else np.inf
        self.proven = proven
        self.dust = _DUST * scale
        self._check_order()
        # where rounding makes the bounds cross, it is at least as large as that: the lower one gives way by as much
        self.lower = min(self.lower, 2 * self.upper - self.lower)
        self.estimate = relative_gap(self.lower, float(distance + seen))
        if np.isfinite(expected) and expected > 0:
            self.factor *= min(max((distance + seen - lower) / expected, 0.3), 3.0)
        self.factor = max(self.factor, 0.3)
        self.begin_pass()
        self.certified = True

    def _check_order(self) -> None:
        """Refuse bounds that cross by more than rounding explains: one of them is none, and nobody knows which."""
        lower, upper = self.lower, self.upper
        if lower - upper <= _CROSSED * max(abs(lower), abs(upper)):
            return
        self.lower, self.upper, self.proven, self.certified = -np.inf, np.inf, False, False
        raise OracleError(
            f"constraints that were found prove that the objective is {lower:.6g} at least, but the answers of the "
            f"oracle add up to {upper:.6g} only: it misses constraints (a search that is not exact has to say so), "
            "or the constraints that were started from are not those of this problem"
        )

    def _bound(self) -> float:
        """Compute the dual anew, and take note of it."""
        self.dual = self.working.rebuild()
        self.lower = max(self.lower, self.dual)
        return self.dual

    def tell(self, watchers: Sequence[Watcher]) -> str:
        """Make the record of a pass, and have the watchers look; return "stopped" if one wants to stop."""
        if not self.certified:
            self._bound()
        gap = self.estimate if self.certified else self.total / max(abs(self.dual), np.finfo(float).tiny)
        lower, held = self.lower, self.working.held
        seconds = time.perf_counter() - self.began
        iteration = self.record.iteration + 1 if self.history else int(self.pass_calls > 0)
        self.history.append(Record(iteration, self.pass_calls, held, lower, self.upper, gap, seconds))
        self.told, self.open = self.calls, False
        return "stopped" if any([watcher.tell(self) for watcher in watchers]) else ""

    def outcome(self, status: str) -> str:
        """Return how a run that ended in a way has come out."""
        if self.certified and self.converged:
            return "converged"
        if self.certified and self.unproven:
            return "uncertified"
        return "stalled" if self.certified and self.stalled and status == "max_iter" else status

    def finish(self, status: str) -> OracleSolution:
        """Return what is known now."""
        rows, l, example, alpha = self.working.content()
        w = self.weights() if self.w is None else self.w
        padded = np.zeros(rows.shape[1])
        padded[: len(w)] = w
        return OracleSolution(
            w=padded,
            rows=rows,
            margins=l,
            alpha=alpha,
            example=example,
            lower_bound=self.lower,
            upper_bound=self.upper,
            status=self.outcome(status),
            certified=bool(np.isfinite(self.upper)),
            n_iter=self.record.iteration if self.history else 0,
            n_oracle_calls=self.calls,
            history=self.history,
        )
