"""The schedule: reads of the data, and solving what is in memory between them.

With alpha of the rest fixed, what is in memory is a problem of its own: its primal adds to the losses in memory
``linear - w.u`` of the rest, which is what those lose at w, or less. So its optimum leads the weights where the rest
may lose more than it seems. Witnesses, a sample of the rest, tell by how much; when that is much, it is time to read.

Each read proves something. The losses that it finds at the weights with which it began add up to an upper bound, and
v, built anew from the dual variables in the course of it, gives the lower bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from ..checks import Array
from ..data import Chunk, Dataset
from ..problem import Problem
from ..progress import Watcher
from ..pull import Pull
from ..solution import Record, relative_gap
from .cache import Cache
from .part import EVERYBODY, NOTHING, Frame, Part, optimize

_ALL = 10**9  # passes
_STIFF = 1.0  # plain passes do well up to this stiffness; less than in memory, as those over a chunk see little else


@dataclass(frozen=True)
class Plan:
    """How much work goes into what is in memory; all of these are matters of speed only."""

    chunk_passes: int = 2  # over the rows of a chunk that has just been read
    company: float = 1.0  # rows in memory that are visited along with those, in units of them
    seed_gap: float = 0.02  # to which the first rows are solved, before any is dropped
    seed_passes: int = 60  # over these, at most
    fine: float = 0.1  # part of the gap to which what is in memory is solved after a read
    passes: int = 200  # over that, at most
    far: float = 0.05  # part of the objective that the rest may lose more than it seems


class Run:
    """A solve under way: what is known so far, and what is in memory.

    Parameters
    ----------
    dataset : Dataset
        What to read.
    problem_of : callable
        Makes the problem of the rows of a chunk, or of some of them.
    limit : float
        Bytes that rows may take in memory, beside those of a few chunks.
    tol : float
        The relative gap that is asked for.
    seed : int
        Of the order in which chunks and examples are visited.
    threads : int, default 1
        Number of threads for what needs no order.
    prepare : callable, default None
        Makes of a chunk what `problem_of`, and what is kept, speak of: classes as small integers, say. Of rows with a
        query, those of a query are kept or dropped together. None: there is nothing in it to learn from.
    single_precision : bool, default False
        Whether the weights are to be float32 numbers where the rows are.
    plan : Plan, default None
        How much work goes into what.
    """

    def __init__(
        self,
        dataset: Dataset,
        problem_of: Callable[[Chunk], Problem],
        limit: float,
        tol: float,
        seed: int,
        threads: int = 1,
        prepare: Callable[[Chunk], Chunk | None] | None = None,
        single_precision: bool = False,
        plan: Plan | None = None,
    ) -> None:
        self.dataset, self.problem_of, self.prepare = dataset, problem_of, prepare
        self.limit, self.tol, self.threads = limit, tol, threads
        self.plan = plan or Plan()
        self.random = np.random.default_rng(seed)
        self._seed, self._single = seed, single_precision
        self.lower, self.upper = -np.inf, np.inf
        self.w: Array | None = None  # those of the upper bound, as the user sees them
        self.offer: Array = NOTHING  # those that the next read will bound, as the kernel has them
        self.reads = self.visits = 0
        self.history: list[Record] = []
        self.began = time.perf_counter()
        self.estimate = np.inf
        self._whole = True  # whether all rows that have been seen are in memory
        # what a pull asks for
        self.stiffness, self.distance, self.plain_passes = 0.0, 0.0, np.inf

    @property
    def n_examples(self) -> int:
        """Number of examples in memory, for the pull."""
        return max(1, len(self.cache))

    @property
    def gap(self) -> float:
        """Relative gap between the bounds."""
        return relative_gap(self.lower, self.upper) if np.isfinite(self.upper) else np.inf

    @property
    def converged(self) -> bool:
        """Whether the gap is within the tolerance."""
        return bool(self.gap <= self.tol)

    @property
    def certified(self) -> bool:
        """Whether there are weights whose upper bound is known."""
        return self.w is not None

    @property
    def record(self) -> Record:
        """The record of the last read."""
        return self.history[-1]

    def weights(self) -> Array:
        """Return the best weights known, certified or not, as the user sees them."""
        return self.frame.layout.as_seen(self.offer if len(self.offer) else self.frame.offered())

    def release(self) -> None:
        """Let go of all rows and dual variables; weights and bounds stay."""
        self.offer = self.frame.layout.as_kernel(self.weights())
        self.cache = Cache(self.frame, 0.0, self.random, self.threads)

    def draw(self, centre: Array, kappa: float) -> None:
        """Have the passes draw the weights to a centre, kappa times as strongly as the prior does."""
        self.frame.kernel.draw(self.frame.layout.as_kernel(centre), kappa)

    def read(self) -> None:
        """Read the data once."""
        loss, explored, active, first = 0.0, 0, 0, self.reads == 0
        with closing(self.dataset.chunks(self.random)) as chunks:
            begun = False
            for raw in chunks:
                chunk = raw if self.prepare is None else self.prepare(raw)
                if chunk is None:
                    continue
                if not begun and first:
                    self._begin(chunk)
                if not begun:
                    self.cache.begin()
                begun = True
                part = self.cache.meet(chunk)
                if not first:
                    loss += part.kernel.survey(self.offer, NOTHING, self.threads)[0]
                company = self.cache.company(part, self.plan.company)
                visited, awake, self.estimate = optimize([part, *company], self.plan.chunk_passes)
                explored, active = explored + visited, active + awake
                if self._whole and self.cache.overflows(part):
                    self._seed_weights(part)
                self.cache.keep(part)
                del raw, chunk, part
        if not begun:
            raise ValueError(
                f"{self.dataset.name} holds nothing to learn from: no chunk has an example, such as two "
                "rows of one query with different relevance"
            )
        self.cache.end()
        self.reads += 1
        self.visits += explored
        if not first:
            upper = self.frame.kernel.distance(self.offer) + loss
            if upper < self.upper:
                self.upper, self.w = upper, self.frame.layout.as_seen(self.offer)
        u, linear = self.cache.u.copy(), self.cache.linear
        for part in self.cache.parts.values():
            linear += part.kernel.deposit(EVERYBODY, u)
        scale = self.upper if np.isfinite(self.upper) else 0.0
        self.lower = max(self.lower, self.frame.kernel.rebuild(u, linear, scale))
        # where rounding makes them cross, it is at least as large as that: the lower bound gives way by as much
        self.lower = min(self.lower, 2 * self.upper - self.lower)
        seconds = time.perf_counter() - self.began
        self.history.append(Record(self.reads, explored, active, self.lower, self.upper, self.estimate, seconds))

    def _begin(self, chunk: Chunk) -> None:
        self.frame = Frame(self.problem_of, chunk, self._seed, self._single)
        self.cache = Cache(self.frame, self.limit, self.random, self.threads)
        self.lower = self.frame.kernel.nothing()
        self.stiffness = self.frame.stiffness(chunk)
        self.pull = Pull(self, _STIFF)
        self.pull.begin(self.weights())

    def _seed_weights(self, part: Part) -> None:
        """Solve what has been seen, all of which is in memory: the weights are then near where they will be."""
        self._whole = False
        parts = [*self.cache.parts.values(), part]
        seen = sum(len(part.chunk) for part in parts)
        self._settle(parts, self.plan.seed_gap, self.plan.seed_passes)
        if self.stiffness > _STIFF:  # the pull may take a part of the objective, which grows with the examples
            more = (self.dataset.n_rows or 4 * seen) / seen
            self.pull.kappa = min(self.stiffness, max(self.pull.kappa, 1.0) * more)
            self.pull.begin(self.frame.layout.as_seen(self.offer))

    def settle(self) -> None:
        """Solve what is in memory, the dual variables of all the rest being what they are, as far as that pays."""
        candidates = [w for w in (self.frame.offered(), self.frame.current(), self.offer) if len(w)]
        self.frame.kernel.restart()
        parts = list(self.cache.parts.values())
        self.offer = min(candidates, key=lambda w: self._bounds(parts, w)[1] + self.cache.missing(w))
        if parts:
            self._settle(parts, max(self.plan.fine * min(self.gap, 1.0), 0.2 * self.tol), self.plan.passes)
        elif self.pull.kappa > 0:
            self.distance = self.frame.kernel.distance(self.offer)
            upper = self.upper if np.isfinite(self.upper) else abs(self.lower)
            self.pull.move(self.frame.layout.as_seen(self.offer), 1.0, upper, min(self.gap, 1.0), 0)

    def _settle(self, parts: list[Part], least: float, passes: int) -> None:
        pull, frame = self.pull, self.frame
        most = self.visits + passes * sum(len(part) for part in parts)
        gap, visits, far = np.inf, 0, False
        best = self._bounds(parts, self.offer)[1] + self.cache.missing(self.offer) if len(self.offer) else np.inf
        kept: list[Array] = []  # dual variables when the weights were not yet too far
        goal = pull.goal(min(self.gap, 1.0), self.tol) if pull.kappa > 0 else max(least, 0.1)
        while self.visits < most and not far:
            visited, _, self.estimate = optimize(parts, _ALL, goal, min(pull.left(visits), most - self.visits))
            self.visits, visits = self.visits + visited, visits + visited
            w, before = frame.offered(), gap
            lower, upper = self._bounds(parts, w)
            missing = self.cache.missing(w)
            gap = relative_gap(lower, upper)
            far = missing > self.plan.far * abs(upper)
            if upper + missing < best:
                best, self.offer = upper + missing, w
            if far or upper - lower < max(missing, least * abs(upper)) or visited == 0:
                break
            kept = [] if self._whole else [part.alpha() for part in parts]
            if pull.kappa > 0:
                self.distance = frame.kernel.distance(w)
                pull.move(frame.layout.as_seen(w), min(before, 1e300), upper + missing, gap, visits)
                visits = 0
                goal = pull.goal(gap, self.tol) if pull.kappa > 0 else max(least, 0.1 * gap)
            else:
                goal *= 0.3
        if far and kept:
            for part, alpha in zip(parts, kept, strict=True):
                part.resume(alpha)
            self._bounds(parts, self.offer)
        if far and self.stiffness > _STIFF:
            pull.kappa = min(2 * max(pull.kappa, 1.0), self.stiffness)
        if pull.kappa > 0:
            pull.begin(frame.layout.as_seen(self.offer))

    def _bounds(self, parts: list[Part], w: Array) -> tuple[float, float]:
        """Return bounds on the problem that these parts are, at some weights; builds v anew."""
        u, linear = self.cache.u.copy(), self.cache.linear
        upper = self.frame.kernel.distance(w) + linear - float(w @ u)
        for part in parts:
            loss, own = part.kernel.inspect(w, u, self.threads)
            upper, linear = upper + loss, linear + own
        return self.frame.kernel.rebuild(u, linear, max(upper, 0.0)), upper


def pursue_chunks(run: Run, max_reads: int, watchers: Sequence[Watcher] = ()) -> str:
    """Read until the gap is within the tolerance, or so many times; return how that ended."""
    status = "max_iter"
    try:
        while status == "max_iter" and not run.converged and run.reads < max_reads:
            for watcher in watchers:
                watcher.begin()
            run.read()
            if any([watcher.tell(run) for watcher in watchers]):
                status = "stopped"
            if not run.converged:
                run.settle()
    except KeyboardInterrupt:
        status = "interrupted"
    finally:
        for watcher in watchers:
            watcher.close()
    return "converged" if run.converged else status
