"""Solving a problem whose rows are read in chunks, as they are more than memory holds.

Dual variables of all examples stay in memory, and so do the weights; of the rows only some do, up to a limit: first
those of examples that are free (0 < alpha < C) or have something to gain, then those that come closest to it. A read
is one pass over the data. Every chunk is met with the dual variables that its examples had when they were last seen,
passes over it raise the dual, and passes over the rows in memory go on between chunks and after the last.

Each read also proves something. The losses that it finds at the weights with which it began add up to an upper bound,
and v, built anew from the dual variables in the course of it, gives the lower bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import _core
from .checks import Array
from .data import Chunk, Dataset
from .problem import Problem
from .progress import Watcher
from .pull import Pull
from .solution import Record, relative_gap
from .state import Layout

_ROW = 100  # bytes that an example takes in memory beside its row and its dual variables
_NOTHING = np.empty(0)
_EVERYBODY = np.empty(0, dtype=bool)


@dataclass
class Plan:
    """How much work goes into what is in memory; all of these are matters of speed only."""

    chunk_passes: int = 2  # over the rows of a chunk that has just been read
    company: float = 1.0  # rows in memory that are visited along with those of a chunk, in units of these
    last_passes: int = 200  # over the rows in memory after a read, at most
    sow: float = 0.02  # gap to which the first rows are solved
    first_passes: int = 60  # over the first rows, before any is dropped
    pull: int = 1
    far: float = 0.05  # of the objective: what the losses of the rest may exceed their part of u by
    witness: float = 0.05  # of the limit: a random sample of the rows that are not kept
    fine: float = 0.1  # of the last gap: to this the rows in memory are solved after a read


class Part:
    """Some rows of one chunk that are in memory, with the kernel's state of them."""

    def __init__(self, run: Run, chunk: Chunk, which: Array, alpha: Array) -> None:
        self.chunk, self.which = chunk, which
        self.problem = run.problem_of(chunk)
        self._rows = run.layout.rows(self.problem)
        self.kernel = run.layout.kernel(self.problem, self._rows, beside=run.root)
        self.kernel.resume(np.ascontiguousarray(alpha, dtype=np.float64).reshape(-1))
        self.rank = _NOTHING

    def alpha(self) -> Array:
        """Return the dual variables."""
        flat = np.empty(self.kernel.n_alpha)
        self.kernel.get_alpha(flat)
        return flat.reshape(self.problem.alpha_shape)

    def sizes(self) -> Array:
        """Return how many bytes each row takes."""
        X, beside = self.chunk.X, _ROW + 8 * int(np.prod(self.problem.alpha_shape[1:]))
        if sp.issparse(X):
            return np.diff(X.indptr) * (X.dtype.itemsize + 4) + beside
        return np.full(X.shape[0], X.shape[1] * X.dtype.itemsize + beside)

    def rank_rows(self, run: Run, w: Array) -> None:
        """Find who is to be kept: the lower, the rather. Below 0 are those with something to gain, in random order."""
        rest = np.empty(len(self.which))
        self.kernel.survey(w, rest, run.threads)
        self.rank = np.where(rest > 0, rest, -run.random.random(len(rest)))

    def some(self, run: Run, which: Array) -> Part:
        """Return a part of this one."""
        part = Part(run, _rows_of(self.chunk, which), self.which[which], self.alpha()[which])
        part.rank = self.rank[which]
        return part


class Run:
    """A solve out of core: what is known so far, and what is in memory.

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
        Makes of a chunk what `problem_of` and what is kept speak of: classes as numbers, say.
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
        prepare: Callable[[Chunk], Chunk] | None = None,
        single_precision: bool = False,
        plan: Plan | None = None,
    ) -> None:
        self.dataset, self.problem_of = dataset, problem_of
        self.prepare = prepare or (lambda chunk: chunk)
        self.labels: dict[int, Array | None] = {}
        self.starts: dict[int, int] = {}
        self.lengths: dict[int, int] = {}
        self.limit, self.tol, self.threads = limit, tol, threads
        self.plan = plan or Plan()
        self.random = np.random.default_rng(seed)
        self._seed, self._single = seed, single_precision
        self.root: Any = None  # holds no example: what all parts move
        self.layout: Any = None
        self.parts: dict[int, Part] = {}  # in memory, by the number of their chunk
        self.bytes, self.total = 0, 0.0
        self.duals: dict[int, tuple[Array, Array | None]] = {}
        self.bar = np.inf  # who ranks below is kept
        self.lower, self.upper = -np.inf, np.inf
        self.w: Array | None = None  # those of the upper bound
        self.offer: Array | None = None  # those that the next read will bound, as the kernel has them
        self.reads = 0
        self.visits = 0
        self.distance, self.plain_passes = 0.0, np.inf
        self.trace: list[Any] = []
        self.dropped = False  # whether any row that was seen is not in memory
        self.witnesses: dict[int, tuple[Part, float]] = {}
        self.history: list[Record] = []
        self.began = time.perf_counter()
        self.estimate = np.inf

    @property
    def n_examples(self) -> int:
        return max(1, self.n_held)

    @property
    def gap(self) -> float:
        return relative_gap(self.lower, self.upper) if np.isfinite(self.upper) else np.inf

    @property
    def converged(self) -> bool:
        return bool(self.gap <= self.tol)

    @property
    def certified(self) -> bool:
        return self.w is not None

    @property
    def n_iter(self) -> int:
        return self.reads

    @property
    def record(self) -> Record:
        return self.history[-1]

    def weights(self) -> Array:
        """Return the weights to be offered next, as the user sees them."""
        return self.layout.as_seen(self.offered() if self.offer is None else self.offer)

    def offered(self) -> Array:
        flat = np.empty(self.root.n_weights)
        self.root.get_weights(flat)
        return flat

    def current(self) -> Array:
        flat = np.empty(self.root.n_weights)
        self.root.own(flat)
        return flat

    def _begin(self, chunk: Chunk) -> None:
        some = self.problem_of(_rows_of(chunk, np.arange(1)))
        self.layout = Layout(some)
        self._some, self._some_rows = some, self.layout.rows(some)
        single = self._single and chunk.X.dtype == np.float32 and some.covariance is None
        self.root = self.layout.kernel(some, self._some_rows, self._seed, single)
        self.lower = self.root.nothing()
        problem = self.problem_of(chunk)
        per_class = None if problem.variance is None else problem.variance.reshape(-1, self._some_rows.width).mean(axis=0)
        rows = self.layout.rows(problem)
        self.stiffness = float(problem.cost.mean()) * problem.mapping.stretch * rows.mean_square(per_class)
        self.pull = Pull(self)
        if self.plan.pull:
            self.pull.begin(self.weights())
        else:
            self.pull.kappa = 0.0

    def read(self) -> None:
        """Read the data once."""
        offer = self.offer if self.reads else None
        loss, explored, active, n = 0.0, 0, 0, 0
        sample: list[tuple[Array, float]] = []
        u: Any = None
        linear = total_bytes = 0.0
        done: set[int] = set()
        with closing(self.dataset.chunks(self.random)) as chunks:
            for raw in chunks:
                chunk = self.prepare(raw)
                self.starts[chunk.index] = chunk.start
                if chunk.y is not None and chunk.y.dtype.kind == "i":
                    self.labels[chunk.index] = chunk.y
                if self.root is None:
                    self._begin(chunk)
                if u is None:
                    u = np.zeros(self.root.n_weights)
                n += len(chunk)
                part = self._meet(chunk)
                if offer is not None:
                    loss += part.kernel.survey(offer, _NOTHING, self.threads)[0]
                visited, awake = self._optimize([part, *self._company(part)], self.plan.chunk_passes)
                explored, active = explored + visited, active + awake
                part.rank_rows(self, self.current())
                sizes = part.sizes()
                sample.append((self.random.choice(part.rank, 64), float(sizes.sum()) / 64))
                keep = part.rank < max(self.bar, self._share(part.rank, sizes))
                done.add(chunk.index)
                if not self.dropped and self.bytes + sizes.sum() > self.limit:
                    self._sow(part, n)
                linear += self._store(part, keep, u)
                while self.bytes > self.limit:
                    linear += self._evict(done, u)
                total_bytes += float(sizes.sum())
        self.reads += 1
        if offer is not None:
            upper = self.root.distance(offer) + loss
            if upper < self.upper:
                self.upper, self.w = upper, self.layout.as_seen(offer)
        self.u_rest, self.linear_rest = u.copy(), linear
        for part in self.parts.values():
            linear += part.kernel.deposit(_EVERYBODY, u)
        self.lower = max(self.lower, self.root.rebuild(u, linear, self.upper if self.upper < np.inf else 0.0))
        self.lower = min(self.lower, 2 * self.upper - self.lower)
        seconds = time.perf_counter() - self.began
        self.history.append(
            Record(self.reads, explored, active, self.lower, self.upper, self.estimate, seconds)
        )
        self.total = float(total_bytes)
        ranks = np.concatenate([r for r, _ in sample])
        weights = np.repeat([b for _, b in sample], 64)
        order = np.argsort(ranks)
        total = np.cumsum(weights[order])
        at = int(np.searchsorted(total, 0.95 * self.limit))
        self.bar = np.inf if at >= len(ranks) else float(ranks[order[at]])

    def _sow(self, part: Part, seen: int) -> None:
        """Solve what has been seen, all of which is in memory: the weights are then not far from where they will be."""
        self.u_rest, self.linear_rest = np.zeros(self.root.n_weights), 0.0
        self._settle([*self.parts.values(), part], self.plan.sow, self.plan.first_passes)
        self.dropped = True
        if self.pull.kappa > 0:  # what the pull may take of the objective grows with the number of examples
            self.pull.kappa = min(self.stiffness, self.pull.kappa * (self.dataset.n_rows or 4 * seen) / seen)
            self.pull.begin(self.layout.as_seen(self.offer))

    def _share(self, rank: Array, sizes: Array) -> float:
        """Return who may be kept of a chunk in any case: its share of the limit."""
        if self.total == 0:
            return -np.inf
        order = np.argsort(rank)
        at = np.searchsorted(np.cumsum(sizes[order]), 0.95 * self.limit * sizes.sum() / self.total)
        return float(rank[order[at]]) if at < len(rank) else np.inf

    def settle(self) -> None:
        """Solve what is in memory, the dual variables of all the rest being what they are, as far as that pays.

        That problem has bounds of its own: its primal adds to the losses in memory what the rest of u makes of w. That
        is less than the losses of the rest at w, and the further w moves the less; by how much, the witnesses tell.
        """
        self.root.restart()
        self.offer = self.offered()
        parts = list(self.parts.values())
        if parts:
            self._settle(parts, max(self.plan.fine * min(self.gap, 1.0), 0.2 * self.tol), self.plan.last_passes)

    def _settle(self, parts: list[Part], least: float, passes: float) -> None:
        pull, held = self.pull, sum(len(part.which) for part in parts)
        most, visits, far = self.visits + passes * held, 0, False
        kept: list[Array] = []
        gap = best = np.inf
        goal = max(least, 0.1) if pull.kappa == 0 else pull.goal(min(self.gap, 1.0), self.tol)
        while self.visits < most:
            before = self.visits
            self._optimize(parts, 10**6, goal, min(pull.left(visits), most - before))
            visits += self.visits - before
            w, last = self.offered(), gap
            lower, upper = self._bounds(parts, w)
            missing = self._missing(w)
            gap = relative_gap(lower, upper)
            self.trace.append((self.visits, lower, upper, missing, pull.kappa))
            far = missing > self.plan.far * abs(upper)
            if upper + missing < best:
                best, self.offer = upper + missing, w
            if far:
                break
            kept = [part.alpha() for part in parts] if self.witnesses else []
            if upper - lower < max(missing, least * abs(upper)) or self.visits == before:
                break
            self.distance = self.root.distance(w)
            if pull.kappa > 0:
                pull.move(self.layout.as_seen(w), min(last, 1e300), upper + missing, gap, visits)
                visits = 0
                goal = pull.goal(gap, self.tol) if pull.kappa > 0 else max(least, 0.1 * gap)
            else:
                goal = 0.3 * goal
        if far and kept:  # too far from where the rest has been seen
            for part, alpha in zip(parts, kept, strict=True):
                part.kernel.resume(np.ascontiguousarray(alpha).reshape(-1))
            self._bounds(parts, self.offer)
        if pull.kappa > 0:
            if far:
                pull.kappa = min(2 * pull.kappa, self.stiffness)
            pull.begin(self.layout.as_seen(self.offer))

    def _missing(self, w: Array) -> float:
        """Return an estimate of what the losses of the examples that are not in memory exceed their part of u by."""
        return sum(part.kernel.survey(w, _NOTHING, 1)[1] * factor for part, factor in self.witnesses.values())

    @property
    def n_held(self) -> int:
        return sum(len(part.which) for part in self.parts.values())

    def draw(self, centre: Array, kappa: float) -> None:
        self.root.draw(self.layout.as_kernel(centre), kappa)

    def _bounds(self, parts: list[Part], w: Array) -> tuple[float, float]:
        """Return bounds on what is in memory alone, at these weights."""
        u, linear = self.u_rest.copy(), self.linear_rest
        upper = self.root.distance(w) + linear - float(w @ u)
        for part in parts:
            loss, own = part.kernel.inspect(w, u, self.threads)
            upper, linear = upper + loss, linear + own
        return self.root.rebuild(u, linear, upper), upper

    def _company(self, part: Part) -> list[Part]:
        """Return some of what is in memory, at random, to be visited along with a chunk."""
        room = self.plan.company * len(part.which)
        some = []
        for index in self.random.permutation(list(self.parts)).tolist():
            room -= len(self.parts[index].which)
            if room < 0:
                break
            some.append(self.parts[index])
        return some

    def alpha(self, index: int) -> Array:
        """Return the dual variables of a chunk, with those of all its rows on a line where they are several."""
        n = self.lengths[index]
        values, at = self.duals[index]
        alpha = np.zeros((n, *self._some.alpha_shape[1:]))
        if at is None:
            alpha[...] = values
        else:
            alpha.reshape(-1)[at] = values
        if index in self.parts:
            alpha[self.parts[index].which] = self.parts[index].alpha()
        return alpha

    def _meet(self, chunk: Chunk) -> Part:
        """Return the rows of a chunk with their dual variables; what was kept of it is left to them."""
        n = self.lengths[chunk.index] = len(chunk)
        alpha = self.alpha(chunk.index) if chunk.index in self.duals else np.zeros((n, *self._some.alpha_shape[1:]))
        old = self.parts.pop(chunk.index, None)
        if old is not None:
            self.bytes -= int(old.sizes().sum())
        return Part(self, chunk, np.arange(n), alpha)

    def _store(self, part: Part, keep: Array, u: Array) -> float:
        """Keep some rows of a chunk, and of the rest what they make of u; return their linear part."""
        linear = part.kernel.deposit(np.ascontiguousarray(~keep), u) if not keep.all() else 0.0
        self.witnesses.pop(part.chunk.index, None)
        rest = np.flatnonzero(~keep)
        if len(rest):
            total = self.total or 3 * self.limit
            n = max(1, min(len(rest), int(self.plan.witness * self.limit / total * len(keep))))
            some = part.some(self, np.sort(self.random.choice(rest, n, replace=False)))
            self.witnesses[part.chunk.index] = some, len(rest) / n
        alpha = part.alpha()
        if alpha.ndim == 1:
            self.duals[part.chunk.index] = alpha, None
        else:
            flat = alpha.reshape(-1)
            at = np.flatnonzero(flat)
            self.duals[part.chunk.index] = flat[at], at.astype(np.uint32)
        if keep.any():
            kept = part.some(self, np.flatnonzero(keep))
            self.parts[part.chunk.index] = kept
            self.bytes += int(kept.sizes().sum())
        return linear

    def _evict(self, done: set[int], u: Array) -> float:
        """Drop rows until the limit is kept; return the linear part of those whose chunks have been met."""
        w = self.current()
        for part in self.parts.values():
            part.rank_rows(self, w)
        ranks = np.concatenate([part.rank for part in self.parts.values()])
        sizes = np.concatenate([part.sizes() for part in self.parts.values()])
        order = np.argsort(ranks)
        at = int(np.searchsorted(np.cumsum(sizes[order]), 0.85 * self.limit))
        self.bar = float(ranks[order[min(at, len(order) - 1)]])
        linear = 0.0
        for index, part in list(self.parts.items()):
            keep = part.rank < self.bar
            if keep.all():
                continue
            if index in done:
                linear += part.kernel.deposit(np.ascontiguousarray(~keep), u)
            self._remember(index, part)
            self.bytes -= int(part.sizes().sum())
            del self.parts[index]
            if keep.any():
                self.parts[index] = part.some(self, np.flatnonzero(keep))
                self.bytes += int(self.parts[index].sizes().sum())
        return linear

    def _remember(self, index: int, part: Part) -> None:
        """Put the dual variables of what was in memory back to those of their chunk."""
        values, at = self.duals[index]
        if at is None:
            values[part.which] = part.alpha()
        else:
            width = int(np.prod(part.problem.alpha_shape[1:]))
            rest = ~np.isin(at // width, part.which)
            alpha = part.alpha().reshape(-1)
            new = np.flatnonzero(alpha)
            where = part.which[new // width] * width + new % width
            self.duals[index] = (
                np.concatenate([values[rest], alpha[new]]),
                np.concatenate([at[rest], where.astype(np.uint32)]),
            )

    def _optimize(self, parts: Sequence[Part], passes: int, goal: float = 0.0, most: float = np.inf) -> tuple[int, int]:
        visited = awake = 0
        for v, a, _lower, self.estimate, _s in _core.optimize([p.kernel for p in parts], passes, int(min(most, 2**60)), goal):
            visited, awake = visited + v, awake + a
        self.visits += visited
        return visited, awake


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


def _rows_of(chunk: Chunk, which: Array) -> Chunk:
    """Return some rows of a chunk, in a copy."""
    X = chunk.X[which]
    rest = [None if a is None else a[which] for a in (chunk.y, chunk.weight, chunk.qid)]
    return Chunk(X, *rest, chunk.start, chunk.index)
