"""What is in memory of all chunks: dual variables, rows up to a limit, and witnesses for the rows that are not."""

from __future__ import annotations

import numpy as np

from ..checks import Array
from ..data import Chunk
from .part import EVERYBODY, Frame, Part

Packed = tuple[Array, Array | None]  # values and, where there are several a row, places

_FULL = 0.95  # of the limit that is handed out
_ROOM = 0.85  # of the limit that is left in use when it has been exceeded
_WITNESSES = 0.05  # of the limit: a random sample of the rows that are not kept
_SAMPLE = 64  # ranks of every chunk, from which to learn where the bar is


class Cache:
    """Dual variables of all chunks that were met, and some of their rows.

    `u` and `linear` are what the dual variables of those make that are not in memory and have been met since `begin`.
    """

    def __init__(self, frame: Frame, limit: float, random: np.random.Generator, threads: int) -> None:
        self.frame, self.limit, self.random, self.threads = frame, limit, random, threads
        self.parts: dict[int, Part] = {}
        self.bytes = 0
        self.bar = np.inf  # who ranks below is kept
        self.total = 0.0  # bytes of all rows, once they have been met
        self.starts: dict[int, int] = {}
        self.lengths: dict[int, int] = {}
        self.labels: dict[int, Array] = {}  # classes of the examples, where they have any
        self._duals: dict[int, Packed] = {}
        self._witnesses: dict[int, tuple[Part, float]] = {}
        self.begin()

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts.values())

    def begin(self) -> None:
        """Take note that a read begins."""
        self.u, self.linear = np.zeros(self.frame.kernel.n_weights), 0.0
        self._met: set[int] = set()
        self._sample: list[tuple[Array, float]] = []

    def alpha(self, index: int) -> Array:
        """Return the dual variables of a chunk, those of an example on one line."""
        alpha = np.zeros((self.lengths[index], *self.frame.alpha_shape))
        if index in self._duals:
            values, at = self._duals[index]
            alpha.reshape(-1)[slice(None) if at is None else at] = values
        if index in self.parts:
            alpha[self.parts[index].which] = self.parts[index].alpha()
        return alpha

    def meet(self, chunk: Chunk) -> Part:
        """Return all rows of a chunk, with their dual variables; what was kept of it gives way to them."""
        self.starts[chunk.index], self.lengths[chunk.index] = chunk.start, len(chunk)
        if chunk.y is not None and chunk.y.dtype.kind == "i":
            self.labels[chunk.index] = chunk.y
        part = Part(self.frame, chunk, np.arange(len(chunk)), self.alpha(chunk.index))
        if (old := self.parts.pop(chunk.index, None)) is not None:
            self.bytes -= old.bytes
        return part

    def company(self, part: Part, share: float) -> list[Part]:
        """Return some of what is in memory, at random: `share` times as many rows as a part has."""
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

    def keep(self, part: Part) -> None:
        """Keep those rows of a chunk that are worth it, and the dual variables of all."""
        index = part.chunk.index
        part.rank_rows(self.frame.current(), self.random, self.threads)
        self._sample.append((self.random.choice(part.rank, _SAMPLE), part.bytes / _SAMPLE))
        self._met.add(index)
        self._remember(index, part.alpha())
        self._witnesses.pop(index, None)
        self._replace(index, part, part.rank < max(self.bar, self._share(part)))
        while self.bytes > self.limit:
            self._evict()

    def _share(self, part: Part) -> float:
        """Return below which rank the rows of a chunk take their share of the limit, which they may in any case."""
        if self.total == 0:
            return -np.inf
        return _rank_at(part.rank, part.sizes, _FULL * self.limit * part.bytes / self.total)

    def _replace(self, index: int, part: Part, keep: Array) -> None:
        """Keep these rows of a part in memory, and a few witnesses for the rest."""
        rest = np.flatnonzero(~keep)
        if len(rest) and index in self._met:
            self.linear += part.kernel.deposit(np.ascontiguousarray(~keep), self.u)
        if len(rest) and index not in self._witnesses:
            share = _WITNESSES * self.limit / (self.total or 3 * self.limit or 1.0)
            n = max(1, min(len(rest), int(share * len(keep))))
            chosen = np.sort(self.random.choice(rest, n, replace=False))
            self._witnesses[index] = part.some(chosen), len(rest) / n
        if keep.any():
            self.parts[index] = part.some(np.flatnonzero(keep))
            self.bytes += self.parts[index].bytes

    def _evict(self) -> None:
        """Drop rows until the limit is kept."""
        w = self.frame.current()
        for part in self.parts.values():
            part.rank_rows(w, self.random, self.threads)
        ranks, sizes = (np.concatenate([getattr(p, name) for p in self.parts.values()]) for name in ("rank", "sizes"))
        self.bar = _rank_at(ranks, sizes, _ROOM * self.limit)
        for index, part in list(self.parts.items()):
            keep = part.rank < self.bar
            if keep.all():
                continue
            self._remember(index, self.alpha(index))
            self.bytes -= part.bytes
            del self.parts[index]
            self._replace(index, part, keep)

    def _remember(self, index: int, alpha: Array) -> None:
        self._duals[index] = packed(alpha)

    def packed(self, index: int) -> Packed:
        """Return the dual variables of a chunk as they are kept: values, and their places, where most are 0."""
        return self._duals[index] if index in self._duals and index not in self.parts else packed(self.alpha(index))

    def met(self) -> tuple[Array, float]:
        """Return what all dual variables make that have been met since `begin`, be they in memory or not."""
        u, linear = self.u.copy(), self.linear
        for index, part in self.parts.items():
            if index in self._met:
                linear += part.kernel.deposit(EVERYBODY, u)
        return u, linear

    def sample(self) -> Array:
        """Return what `end` is to learn from, as a table."""
        return np.array([[*ranks, size] for ranks, size in self._sample]).reshape(-1, _SAMPLE + 1)

    def recall(self, duals: dict[int, tuple[int, int, Packed]], labels: dict[int, Array]) -> None:
        """Take the dual variables of chunks, given with where these begin and how many rows they have."""
        for index, (start, length, packed) in duals.items():
            self.starts[index], self.lengths[index], self._duals[index] = start, length, packed
            self.alpha(index)  # an error, if they do not fit
        self.labels = dict(labels)

    def go_on(self, met: set[int], u: Array, linear: float, sample: Array) -> None:
        """Go on with a read in which some chunks have been met."""
        self._met, self.u, self.linear = set(met), u, linear
        self._sample = [(line[:-1], float(line[-1])) for line in sample]

    def end(self) -> None:
        """Take note that a read has ended, and learn from it whom to keep in the next."""
        self.total = float(sum(_SAMPLE * size for _, size in self._sample))
        ranks = np.concatenate([ranks for ranks, _ in self._sample])
        sizes = np.repeat([size for _, size in self._sample], _SAMPLE)
        self.bar = _rank_at(ranks, sizes, _FULL * self.limit)

    def let_go(self) -> None:
        """Let go of all rows; dual variables stay."""
        for index in list(self.parts):
            self._remember(index, self.alpha(index))
        self.parts, self._witnesses, self.bytes = {}, {}, 0

    def forget(self) -> None:
        """Let go of all rows, and make all dual variables 0."""
        self.parts, self._witnesses, self._duals, self.bytes = {}, {}, {}, 0
        self.begin()

    def missing(self, w: Array) -> float:
        """Estimate by how much the losses at w of all rows that are not in memory exceed their part of u."""
        found = (part.kernel.survey(w, np.empty(0), 1)[1] * each for part, each in self._witnesses.values())
        return float(sum(found))


def packed(alpha: Array) -> Packed:
    """Return dual variables as they are kept."""
    if alpha.ndim == 1:
        return alpha, None
    at = np.flatnonzero(alpha)
    return alpha.reshape(-1)[at], at.astype(np.uint32 if alpha.size < 2**32 else np.int64)


def _rank_at(ranks: Array, sizes: Array, room: float) -> float:
    """Return below which rank everybody has room."""
    order = np.argsort(ranks)
    at = int(np.searchsorted(np.cumsum(sizes[order]), room, side="right"))
    return float(ranks[order[at]]) if at < len(ranks) else np.inf
