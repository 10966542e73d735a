"""The schedule: reads of the data, and solving what is in memory between them.

With alpha of the rest fixed, what is in memory is a problem of its own: its primal adds to the losses in memory
``linear - w.u`` of the rest, which is what those lose at w, or less. So its optimum leads the weights where the rest
may lose more than it seems. Witnesses, a sample of the rest, tell by how much; when that is much, it is time to read.

Each read proves something. The losses that it finds at the weights with which it began add up to an upper bound, and
v, built anew from the dual variables in the course of it, gives the lower bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import Array
from ..data import Chunk, Dataset
from ..problem import Problem
from ..pull import Pull
from ..solution import relative_gap
from .cache import Cache, Packed, packed
from .part import NOTHING, Frame, Part, optimize
from .start import Start

Ahead = tuple[Part, float]  # the rows of a chunk, and what they lose at the weights that the read bounds

_ALL = 10**9  # passes
_NUMBERS = ("lower", "upper", "dual", "promise", "estimate", "loss", "stiffness", "distance")
_FACTS = (*_NUMBERS, "explored", "active", "reads", "visits")  # that a checkpoint holds
_STIFF = 1.0  # plain passes do well up to this stiffness; less than in memory, as those over a chunk see little else


@dataclass(frozen=True)
class Plan:
    """How much work goes into what is in memory; all of these are matters of speed only."""

    chunk_passes: int = 2  # over the rows of a chunk that has just been read; the second finds only some still due
    company: float = 0.75  # rows in memory that are visited along with those, in units of them
    first_company: float = 2.0  # the same in the first read, when most is still to be learned
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
        What is read.
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
        single_precision: bool = False,
        plan: Plan | None = None,
    ) -> None:
        self.dataset, self.problem_of = dataset, problem_of
        self.limit, self.tol, self.threads = limit, tol, threads
        self.plan = plan or Plan()
        self.random = np.random.default_rng(seed)
        self._seed, self._single = seed, single_precision
        self.lower, self.upper = -np.inf, np.inf
        self.dual = -np.inf  # of the present dual variables, as they were at the end of the last read
        self.w: Array | None = None  # those of the upper bound, as the user sees them
        self.offer: Array = NOTHING  # those that the next read will bound, as the kernel has them
        self.promise = np.inf  # what those seem to pay
        self.reads = self.visits = 0
        self.loss, self.explored, self.active = 0.0, 0, 0  # what the present read has added up
        self.estimate = np.inf
        self._judged: Array = NOTHING  # weights that the present read bounds, as the kernel has them
        self._ready = False  # whether chunks can be prepared in advance
        self._whole = True  # whether all rows that have been seen are in memory
        self._start: Start | None = None
        self._part: Part | None = None  # what is being met
        self.frame: Frame
        self.cache: Cache
        self.pull: Pull
        # what a pull asks for
        self.stiffness, self.distance, self.plain_passes, self.wide = 0.0, 0.0, np.inf, False

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
        """Whether the present dual variables prove the weights to be within the tolerance."""
        return bool(np.isfinite(self.upper) and relative_gap(self.dual, self.upper) <= self.tol)

    @property
    def proven(self) -> bool:
        """Whether the weights of the upper bound are better than those offered, by all that is known."""
        return self.w is not None and (self.converged or self.upper <= self.promise)

    @property
    def begun(self) -> bool:
        """Whether a chunk has been met."""
        return hasattr(self, "frame")

    @property
    def starting(self) -> bool:
        """Whether dual variables to start from have not been met with their rows yet."""
        return self._start is not None

    def weights(self) -> Array:
        """Return the best weights known, certified or not, as the user sees them."""
        return self.frame.layout.as_seen(self.offer if len(self.offer) else self.frame.offered())

    def share(self, limit: float) -> None:
        """Take note of how many bytes rows may take in memory from now on."""
        self.limit = limit
        if self.begun:
            self.cache.limit = limit

    def draw(self, centre: Array, kappa: float) -> None:
        """Have the passes draw the weights to a centre, kappa times as strongly as the prior does."""
        self.frame.kernel.draw(self.frame.layout.as_kernel(centre), kappa)

    def start_from(self, start: Start) -> None:
        """Have the first read move nothing, but build v from these dual variables, and bound these weights."""
        self._start, self._whole = start, False

    def begin_read(self) -> None:
        """Take note that a read of the data begins."""
        self.loss, self.explored, self.active = 0.0, 0, 0
        self._judged = self.offer if self.reads > 0 else NOTHING
        if self.begun:
            self.cache.begin()

    def ahead(self, chunk: Chunk) -> Ahead | None:
        """Do what can be done in advance for meeting a chunk, as it was prepared: another thread may see to this."""
        return self._now(chunk) if self._ready else None

    def _now(self, chunk: Chunk) -> Ahead:
        part = Part(self.frame, chunk)
        return part, part.kernel.survey(self._judged, NOTHING, self.threads)[0] if len(self._judged) else 0.0

    def meet(self, chunk: Chunk, ahead: Ahead | None = None) -> None:
        """Meet the next chunk of a read, as it was prepared."""
        if not self.begun:
            self._begin(chunk)
        part, loss = ahead or self._now(chunk)
        self.loss += loss
        if self.cache.expected == 0:
            n = self.dataset.n_rows
            self.cache.expected = part.bytes / len(chunk) * n if n else 10 * self.limit
        self.cache.meet(part)
        self._part = part
        self.cache.give_way(part)
        if self._start is not None:
            self.cache.take(part, self._start.take(part.problem))
        else:
            self._improve(part)
        self.cache.keep(part)
        self._part = None

    def _improve(self, part: Part) -> None:
        seeding = self._whole and self.reads == 0
        if seeding:
            self._feel(part)
        share = self.plan.company if self.reads > 0 else self.plan.first_company
        company = self.cache.company(part, share)
        visited, awake, self.estimate = self.cache.visit(part, company, self.plan.chunk_passes)
        self.explored, self.active = self.explored + visited, self.active + awake
        if seeding and self.cache.overflows(part):
            self._seed_weights(part)

    def _feel(self, part: Part) -> None:
        """Learn how stiff the problem is, from all rows in memory."""
        met = self.cache.met_bytes
        self.stiffness += (part.stiffness() - self.stiffness) * part.bytes / met
        if self.pull.kappa == 0 and self.stiffness > _STIFF:
            self.pull = Pull(self, _STIFF)
            self.pull.begin(self.weights())

    def end_read(self) -> None:
        """Take note that all chunks have been met: bound the weights offered, and build v anew."""
        u, linear = self.cache.end()
        self.reads += 1
        self.visits += self.explored
        if len(self._judged):
            upper = self.frame.kernel.distance(self._judged) + self.loss
            if upper < self.upper:
                self.upper, self.w = upper, self.frame.layout.as_seen(self._judged)
        scale = self.upper if np.isfinite(self.upper) else 0.0
        dual = self.frame.kernel.rebuild(u, linear, scale)
        if self._start is not None and dual < self.frame.kernel.nothing():
            self.cache.forget()
            dual = self.frame.kernel.rebuild(np.zeros_like(u), 0.0, scale)
        self._start = None
        # where rounding makes the bounds cross, it is at least as large as that: the lower one gives way by as much
        self.dual = min(dual, 2 * self.upper - dual)
        self.lower = max(self.lower, self.dual)
        self.lower = min(self.lower, 2 * self.upper - self.lower)

    def told(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return all that is known but for dual variables, for a file: numbers, and arrays."""
        facts = {name: getattr(self, name) for name in _FACTS}
        facts |= {name: getattr(self.cache, name) for name in ("bar", "total", "met_bytes")}
        u = np.empty(self.frame.kernel.n_weights)
        facts |= {"kappa": self.pull.kappa, "linear": self.frame.kernel.counted(u)}
        facts["random"] = self.random.bit_generator.state
        arrays = {"offer": self.offer, "judged": self._judged, "u": u, "sample": self.cache.sample()}
        known = {"w": self.w, "last": self.pull.last}
        return facts, arrays | {name: value for name, value in known.items() if value is not None}

    def packed(self, index: int) -> Packed:
        """Return the dual variables of a chunk, for a file."""
        if self._part is not None and self._part.chunk.index == index:
            return packed(self._part.alpha())
        return self.cache.packed(index)

    def recall(self, first: Chunk, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take what was told, but for dual variables; `first`: some row, as it was prepared."""
        self._begin(first)
        for name in _FACTS:
            setattr(self, name, facts[name])
        self._whole = False
        self.random.bit_generator.state = facts["random"]
        for name in ("bar", "total", "met_bytes"):
            setattr(self.cache, name, facts[name])
        self.cache.count(arrays["u"], facts["linear"])  # no row is in memory
        self.offer, self._judged, self.w = arrays["offer"], arrays["judged"], arrays.get("w")
        self.pull.kappa = facts["kappa"]
        self.draw(self.weights(), 0.0)
        self.pull.begin(arrays.get("last", self.weights()))
        scale = self.upper if np.isfinite(self.upper) else 0.0
        self.frame.kernel.rebuild(arrays["u"], facts["linear"], scale)
        self.frame.kernel.restart()

    def _begin(self, chunk: Chunk) -> None:
        self.frame = Frame(self.problem_of, chunk, self._seed, self._single)
        self.cache = Cache(self.frame, self.limit, self.random, self.threads)
        self.lower = self.frame.kernel.nothing()
        self.pull = Pull(self, _STIFF)
        if self._start is not None and self._start.fits(self.frame.problem):
            self._take(self._start.w)
            self._judged = self.offer
        elif self._start is not None:
            self._start, self._whole = None, True
        self.pull.begin(self.weights())
        self._ready = True

    def _take(self, w: Array) -> None:
        """Offer these weights, and have v be what makes them, until it is built."""
        layout, mean = self.frame.layout, self.frame.layout.mean
        low, high = (
            end if bound is None else bound for bound, end in zip(layout.box, (-np.inf, np.inf), strict=True)
        )
        offer = np.clip(layout.as_kernel(w), low, high)
        self.offer = offer.astype(np.float32).astype(np.float64) if self.frame.single else offer
        u = self.offer if mean is None else self.offer - mean
        self.frame.kernel.rebuild(u if layout.variance is None else u / layout.variance, 0.0, 0.0)

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
        promises = [self._bounds(parts, w)[1] + self.cache.missing(w) for w in candidates]
        self.promise = min(promises)
        self.offer = candidates[promises.index(self.promise)]
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
                self.promise = best
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
        u, linear = self.cache.rest()
        upper = self.frame.kernel.distance(w) + linear - float(w @ u)
        for part in parts:
            loss, own = part.kernel.inspect(w, u, self.threads)
            upper, linear = upper + loss, linear + own
        return self.frame.kernel.rebuild(u, linear, max(upper, 0.0)), upper
