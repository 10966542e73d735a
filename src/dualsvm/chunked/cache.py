"""What is in memory of all chunks: dual variables, rows up to a limit, and witnesses for the rows that are not."""

from __future__ import annotations

from collections import deque

import numpy as np

from ..checks import Array
from .part import EVERYBODY, NOBODY, Frame, Part

Packed = tuple[Array, Array | None]  # values and, where most are 0, places

_FULL = 0.95  # of the limit that is handed out
_ROOM = 0.85  # of the limit that is left in use when it has been exceeded
_FIRST_ROOM = 0.75  # the same, while nobody knows how much there is
_RECENT = 32  # chunks from whose ranks the bar is found
_WITNESSES = 0.05  # of the limit: a random sample of the rows that are not kept
_SAMPLE = 64  # ranks of every chunk, from which to learn where the bar is
_ANEW = 8  # reads, of which one builds the sums anew, so that rounding never drifts


class Cache:
    """Dual variables of all chunks that were met, and some of their rows.

    What the dual variables of those make that are not in memory follows what changes; now and then a read builds it
    anew, and it then only counts what that has met.
    """

    def __init__(self, frame: Frame, limit: float, random: np.random.Generator, threads: int) -> None:
        self.frame, self.limit, self.random, self.threads = frame, limit, random, threads
        self.bar = np.inf  # who ranks below is kept
        self.total = 0.0  # bytes of all rows, once they have been met
        self.met_bytes = 0  # bytes of those met in the present read
        self.expected = 0.0  # bytes that there will be, before they have been met
        self.starts: dict[int, int] = {}
        self.lengths: dict[int, int] = {}  # lines of dual variables
        self.labels: dict[int, Array] = {}  # classes of the examples, where they have any
        self.forget()
        self._sample: deque[tuple[Array, float]] = deque(maxlen=_RECENT)
        self._reads = 0

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts.values())

    def begin(self) -> None:
        """Take note that a read begins."""
        self.met_bytes = 0
        self._met: set[int] = set()
        self._reads += 1
        self._anew = self._reads % _ANEW == 0
        if self._anew:
            self.count(np.zeros_like(self._come), 0.0)

    def count_anew(self) -> None:
        """Have the next read build the sums anew."""
        self._reads = _ANEW - 1

    def count(self, u: Array, linear: float) -> None:
        """Take note of what the dual variables of the rows make that are not in memory."""
        self._come, self._gone, self._linear = u, np.zeros_like(u), linear

    def rest(self) -> tuple[Array, float]:
        """Return what the dual variables of the rows make that are not in memory, and their linear part."""
        return self._come - self._gone, self._linear

    def alpha(self, index: int) -> Array:
        """Return the dual variables of a chunk, those of an example on one line."""
        alpha = np.zeros((self.lengths[index], *self.frame.alpha_shape))
        if index in self._duals:
            values, at = self._duals[index]
            alpha.reshape(-1)[slice(None) if at is None else at] = values
        if index in self.parts:
            alpha[self.parts[index].which] = self.parts[index].alpha()
        return alpha

    def meet(self, part: Part) -> None:
        """Give the rows of a chunk their dual variables."""
        chunk = part.chunk
        index = chunk.index
        self.starts[index], self.lengths[index] = chunk.start, len(part.which)
        if chunk.y is not None and chunk.y.dtype.kind == "i":
            self.labels[index] = chunk.y
        part.resume(self.alpha(index))
        if not self._anew:
            part.count_all_but(self.parts[index].which if index in self.parts else NOBODY)
        self.limit = max(self.limit, part.bytes)  # a chunk is in memory anyway

    def give_way(self, part: Part) -> None:
        """Drop what was kept of a chunk, all rows of which have been met."""
        if (old := self.parts.pop(part.chunk.index, None)) is not None:
            self.bytes -= old.bytes
        self._met.add(part.chunk.index)
        self.met_bytes += part.bytes
        self.expected = max(self.expected, self.met_bytes)

    def company(self, part: Part, share: float) -> list[Part]:
        """Return some of what is in memory, at random: `share` times as many examples as a part has."""
        room, some = share * len(part), []
        for index in self.random.permutation(list(self.parts)).tolist():
            room -= len(self.parts[index])
            if room < 0:
                break
            some.append(self.parts[index])
        return some

    def overflows(self, part: Part) -> bool:
        """Whether not all of a part could be kept."""
        return self.bytes + part.bytes > self.limit

    def visit(self, part: Part, company: list[Part], passes: int) -> tuple[int, int, float]:
        """Run passes over the rows of a chunk, in company; find out whom to keep. Return what `optimize` does."""
        visited, awake, estimate, linear = part.meet(company, passes, self.bar, self._come, self._gone)
        self._linear += linear
        return visited, awake, estimate

    def take(self, part: Part, alpha: Array) -> None:
        """Give the rows of a chunk these dual variables, which nothing counts yet, and find out whom to keep."""
        part.resume(alpha)
        part.rank_units(self.frame.current(), self.random, self.threads)
        self._linear += part.deposit(~(part.rank < self.bar), self._come)

    def keep(self, part: Part) -> None:
        """Keep those units of a chunk that rank below the bar, and the dual variables of all."""
        index = part.chunk.index
        self._sample.append((self.random.choice(part.rank, _SAMPLE), part.bytes / _SAMPLE))
        self._remember(index, part.alpha())
        self._witnesses.pop(index, None)
        self._replace(index, part, part.rank < self.bar)
        if self.bytes > self.limit:
            self._evict()
        elif self.total > 0:
            self.bar = self._fair()

    def _fair(self) -> float:
        """Return below which rank a share of the rows lies that has room."""
        if not self._sample:
            return np.inf
        ranks, sizes = np.concatenate([ranks for ranks, _ in self._sample]), [size for _, size in self._sample]
        room = _FULL * self.limit * (_SAMPLE * sum(sizes) / self.total)
        return _rank_at(ranks, np.repeat(sizes, _SAMPLE), room)

    def _replace(self, index: int, part: Part, keep: Array) -> None:
        """Keep these units of a part in memory, and a few witnesses for the rest."""
        rest = np.flatnonzero(~keep)
        if len(rest) and index not in self._witnesses:
            share = _WITNESSES * self.limit / (self.total or self.expected)
            n = max(1, min(len(rest), int(share * len(keep))))
            chosen = np.sort(self.random.choice(rest, n, replace=False))
            self._witnesses[index] = part.some(chosen), len(rest) / n
        if keep.any():
            self.parts[index] = part.some(np.flatnonzero(keep))
            self.bytes += self.parts[index].bytes

    def _evict(self) -> None:
        """Drop units until the limit is kept."""
        w = self.frame.current()
        for part in self.parts.values():
            part.rank_units(w, self.random, self.threads)
        ranks, sizes = (np.concatenate([getattr(p, name) for p in self.parts.values()]) for name in ("rank", "sizes"))
        self.bar = _rank_at(ranks, sizes, (_ROOM if self.total > 0 else _FIRST_ROOM) * self.limit)
        for index in list(self.parts):
            part = self.parts[index]
            keep = part.rank < self.bar
            if keep.all():
                continue
            if index in self._met or not self._anew:
                self._linear += part.deposit(~keep, self._come)
            self._remember(index, self.alpha(index))
            self.bytes -= part.bytes
            del self.parts[index]
            self._replace(index, part, keep)

    def _remember(self, index: int, alpha: Array) -> None:
        self._duals[index] = packed(alpha)

    def packed(self, index: int) -> Packed:
        """Return the dual variables of a chunk as they are kept: values, and their places, where most are 0."""
        return self._duals[index] if index in self._duals and index not in self.parts else packed(self.alpha(index))

    def sample(self) -> Array:
        """Return what the bar is learned from, as a table."""
        return np.array([[*ranks, size] for ranks, size in self._sample]).reshape(-1, _SAMPLE + 1)

    def recall(self, duals: dict[int, tuple[int, int, Packed]], labels: dict[int, Array], sample: Array) -> None:
        """Take the dual variables of chunks, given with where these begin and how many rows they have."""
        for index, (start, length, packed) in duals.items():
            self.starts[index], self.lengths[index], self._duals[index] = start, length, packed
            self.alpha(index)  # an error, if they do not fit
        self.labels = dict(labels)
        self._sample.extend((line[:-1], float(line[-1])) for line in sample)
        self.count_anew()

    def end(self) -> tuple[Array, float]:
        """Take note that a read has ended; return what all dual variables make, and their linear part."""
        self.total = float(self.met_bytes)
        self.bar = self._fair()
        self._anew = False
        self.count(*self.rest())
        u, linear = self.rest()
        for part in self.parts.values():
            linear += part.kernel.deposit(EVERYBODY, u)
        return u, linear

    def let_go(self) -> None:
        """Let go of all rows; dual variables stay."""
        for index in list(self.parts):
            self._remember(index, self.alpha(index))
        self.parts.clear()
        self._witnesses.clear()
        self.bytes = 0

    def forget(self) -> None:
        """Let go of all rows, and make all dual variables 0."""
        self.parts: dict[int, Part] = {}
        self.bytes = 0
        self._duals: dict[int, Packed] = {}
        self._witnesses: dict[int, tuple[Part, float]] = {}
        self._met, self._anew = set(), False
        self.count(np.zeros(self.frame.kernel.n_weights), 0.0)

    def missing(self, w: Array) -> float:
        """Estimate by how much the losses at w of all rows that are not in memory exceed their part of u."""
        found = (part.kernel.survey(w, np.empty(0), 1)[1] * each for part, each in self._witnesses.values())
        return float(sum(found))


def packed(alpha: Array) -> Packed:
    """Return dual variables as they are kept."""
    at = np.flatnonzero(alpha)
    if 1.5 * len(at) > alpha.size:
        return alpha.reshape(-1), None
    return alpha.reshape(-1)[at], at.astype(np.uint32 if alpha.size < 2**32 else np.int64)


def _rank_at(ranks: Array, sizes: Array, room: float) -> float:
    """Return below which rank everybody has room."""
    order = np.argsort(ranks)
    at = int(np.searchsorted(np.cumsum(sizes[order]), room, side="right"))
    return float(ranks[order[at]]) if at < len(ranks) else np.inf
