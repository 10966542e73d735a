"""Reads that serve several problems over the same rows, until each of them has its certificate."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing

import numpy as np

from .. import _core
from ..checks import Array
from ..data import Chunk, Dataset
from ..data.ahead import read_ahead
from ..progress import Watcher
from ..solution import Record, relative_gap
from .run import Ahead, Run
from .snapshot import Keeper


class Runs:
    """Problems over the same rows, side by side: a read of the data serves all that are not done yet.

    Parameters
    ----------
    dataset : Dataset
        What to read.
    runs : sequence of Run
        One for every problem. Of those that are done, rows are let go.
    limit : float
        Bytes that rows may take in memory, which the problems share.
    threads : int, default 1
        Number of problems that work at the same time.
    prepare : callable, default None
        Makes of a chunk what the problems, and what is kept, speak of: classes as small integers, say. None: there is
        nothing in it to learn from.
    """

    def __init__(
        self,
        dataset: Dataset,
        runs: Sequence[Run],
        limit: float,
        threads: int = 1,
        prepare: Callable[[Chunk], Chunk | None] | None = None,
    ) -> None:
        self.dataset, self.runs, self.limit, self.prepare = dataset, list(runs), limit, prepare
        self.threads = min(threads, len(self.runs))
        self.keeper: Keeper | None = None  # who writes all of this to a file, now and then
        self.reads = 0
        self.met: set[int] = set()  # chunks that the present read has met
        self.torn = False  # whether some problem stopped halfway, in the midst of a chunk
        self.history: list[Record] = []
        self.began = time.perf_counter()
        self._pool: ThreadPoolExecutor | None = None

    @property
    def lower(self) -> float:
        """The sum of the lower bounds."""
        return sum(run.lower for run in self.runs)

    @property
    def upper(self) -> float:
        """The sum of the upper bounds."""
        return sum(run.upper for run in self.runs)

    @property
    def gap(self) -> float:
        """Relative gap between the bounds."""
        return relative_gap(self.lower, self.upper) if np.isfinite(self.upper) else np.inf

    @property
    def left(self) -> list[Run]:
        """The problems that are not done yet."""
        return [run for run in self.runs if not run.converged]

    @property
    def certified(self) -> bool:
        """Whether all problems have weights whose upper bound is known."""
        return bool(np.isfinite(self.upper))

    @property
    def seconds(self) -> float:
        """Time since all of this began."""
        return time.perf_counter() - self.began

    @property
    def record(self) -> Record:
        """The record of the last read."""
        return self.history[-1]

    def weights(self) -> Array:
        """Return the best weights known, certified or not: a line for every output."""
        return np.vstack([np.atleast_2d(run.weights()) for run in self.runs])

    def read(self) -> None:
        """Read the data once, or go on with a read that a checkpoint knows of."""
        left = self.left
        for run in left:
            run.share(self.limit / len(left))
            if not self.met:
                run.begin_read()
        with closing(read_ahead(self._prepared(left), self.dataset.ahead)) as chunks:
            for raw, chunk, ahead in chunks:
                if self.keeper is not None:
                    if self.met and self.keeper.due:
                        self.keeper.write(self)
                    self.keeper.look_at(raw)
                if chunk is not None:
                    self._meet(left, chunk, ahead)
                self.met.add(raw.index)
                del raw, chunk, ahead
        if not all(run.begun for run in left):
            raise ValueError(
                f"{self.dataset.name} holds nothing to learn from: no chunk has an example, such as two rows of one "
                "query with different relevance"
            )
        if not any(run.explored or run.starting for run in left):
            raise ValueError(f"the weights in {self.dataset.name} are zero for every row: at least one must count")
        self._each(left, lambda _, run: run.end_read())
        _core.trim()  # rows have come and gone
        self.met.clear()
        for run in left:
            if run.converged:
                run.cache.let_go()
        self.reads += 1
        explored, active = sum(run.explored for run in left), sum(run.active for run in left)
        estimate, seconds = max(run.estimate for run in left), self.seconds
        self.history.append(Record(self.reads, explored, active, self.lower, self.upper, estimate, seconds))

    def _chunks(self) -> Generator[Chunk, None, None]:
        """Return the chunks to read: in random order, those that are left of a read, or all in their order."""
        n = self.dataset.n_chunks
        if self.met:
            rest = [k for k in range(n or 0) if k not in self.met] if self.dataset.seekable else None
            return self.dataset.chunks(rest)
        # dual variables to start from come in the order of the rows
        return self.dataset.chunks(None if any(run.starting for run in self.left) else self.runs[0].random)

    def _prepared(self, left: list[Run]) -> Generator[tuple[Chunk, Chunk | None, list[Ahead | None]], None, None]:
        """Read chunks, and do for each problem what can be done before it meets them: a thread is ahead with this."""
        with closing(self._chunks()) as chunks:
            for raw in chunks:
                if raw.index not in self.met:
                    chunk = raw if self.prepare is None else self.prepare(raw)
                    yield raw, chunk, [] if chunk is None else [run.ahead(chunk) for run in left]
                    del chunk
                del raw

    def _meet(self, left: list[Run], chunk: Chunk, ahead: list[Ahead | None]) -> None:
        self._each(left, lambda k, run: run.meet(chunk, ahead[k]))

    def settle(self) -> None:
        """Solve what is in memory of the problems that are not done yet."""
        self._each(self.left, lambda _, run: run.settle())

    def _each(self, runs: list[Run], act: Callable[[int, Run], None]) -> None:
        self.torn = True
        if self._pool is None or len(runs) == 1:
            for k, run in enumerate(runs):
                act(k, run)
        else:
            acts = [self._pool.submit(act, k, run) for k, run in enumerate(runs)]
            try:
                for one in acts:
                    one.result()
            finally:  # after Ctrl-C, too, nobody is still at work
                wait(acts)
        self.torn = False

    def pursue(self, max_reads: int, watchers: Sequence[Watcher] = (), last: bool = False) -> str:
        """Read until every gap is within the tolerance, or so many times; return how that ended.

        `last`: whether to go on solving what is in memory after the last read, though no read will bound the weights.
        """
        status = "max_iter"
        with ExitStack() as stack:
            for watcher in watchers:
                stack.callback(watcher.close)
            if self.threads > 1:
                self._pool = stack.enter_context(ThreadPoolExecutor(self.threads))
            try:
                while status == "max_iter" and self.left and self.reads < max_reads:
                    for watcher in watchers:
                        watcher.begin()
                    self.read()
                    if any([watcher.tell(self) for watcher in watchers]):
                        status = "stopped"
                    if self.left and (last or self.reads < max_reads):
                        self.settle()
                    if self.keeper is not None and self.keeper.due:
                        self.keeper.write(self)
            except KeyboardInterrupt:
                status = "interrupted"
            finally:
                if self.keeper is not None:
                    self.keeper.write(self)
        self._pool = None
        return status if self.left else "converged"
