"""Passes over a source: which chunks there are, and reading them in order or in any order."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..checks import Array, as_ids
from .chunk import Chunk, Part, as_part, as_weights
from .cut import Queries, gathered, planned
from .source import NoRowsError, Reader, Source, Stream, Table

Chunks = Generator[Chunk, None, None]


class _Passes:
    """What passes over tables and over streams have in common."""

    def __init__(self, source: Source, beside: dict[str, Any] | None, dtype: Any) -> None:
        self.source, self._dtype = source, dtype
        self._beside: dict[str, Array] = {}  # weights and queries of all rows, from beside the source
        for name, values in (beside or {}).items():
            n = np.size(values)
            self._beside[name] = as_weights(values, n) if name == "weight" else as_ids(values, name, n, "row")
        self._kind: tuple[Any, ...] | None = None

    @property
    def name(self) -> str:
        return self.source.name

    def _expect(self, rows: int) -> None:
        for name, values in self._beside.items():
            if len(values) != rows:
                raise ValueError(f"{name} has {len(values)} entries, but {self.name} has {rows} rows")

    def _order(self, order: Any, cuts: Array) -> Array:
        """Return the numbers of the chunks to read."""
        n = len(cuts) - 1
        if isinstance(order, np.random.Generator):
            return order.permutation(n)
        which = np.asarray(order)
        if which.ndim != 1 or (which.size and which.dtype.kind not in "iu"):
            raise ValueError(f"order must be numbers of chunks, a random generator or None, got {order!r}")
        if which.size and (which.min() < 0 or which.max() >= n):
            raise ValueError(f"order must hold numbers of chunks, 0 to {n - 1}, got {which.min()} to {which.max()}")
        return which.astype(np.int64)

    def _read(self, reader: Reader, which: Array, cuts: Array, places: Array) -> Chunks:
        """Read chunks that lie between places, which are rows or bytes."""
        for k, following in zip_longest(which.tolist(), which[1:].tolist()):
            if following not in (None, k + 1):  # the system itself foresees what comes next in the file
                reader.expect(int(places[following]), int(places[following + 1]))
            start, stop = int(cuts[k]), int(cuts[k + 1])
            part = self._sound(reader.read(int(places[k]), int(places[k + 1])), start)
            if len(part) != stop - start:
                raise ValueError(f"{self.name} has changed since it was opened: open it again")
            yield _chunk(self._complete(part, start), start, k)
            del part  # nothing is kept while the next chunk is read

    def _sound(self, part: Part, start: int) -> Part:
        """Check a part, whose first row has this position, and that it is like the others."""
        try:
            sound = as_part(part, self._dtype)
            kind = _kind(sound)
            if self._kind is None:
                self._kind = kind
            if kind != self._kind:
                raise ValueError(f"it holds {_told(kind)}, but what came before {_told(self._kind)}: make them alike")
        except ValueError as error:
            raise ValueError(f"{self.name}, from row {start}: {error}") from error
        return sound

    def _complete(self, part: Part, start: int) -> Part:
        """Add what lies beside the source to a part, whose first row has this position."""
        more: dict[str, Any] = {}
        for name, values in self._beside.items():
            if getattr(part, name) is not None:
                raise ValueError(f"{self.name} has its own {name}: leave {name} out")
            more[name] = values[start : start + len(part)]
            if len(more[name]) < len(part):
                raise ValueError(f"{name} has {len(values)} entries, but {self.name} has more rows")
        return replace(part, **more) if more else part


def _chunk(part: Part, start: int, index: int) -> Chunk:
    return Chunk(part.X, part.y, part.weight, part.qid, start, index)


class TablePasses(_Passes):
    """Passes over a table."""

    seekable = True
    reiterable = True
    widening = False
    n_skipped = 0

    def __init__(
        self, table: Table, chunk_rows: int | None = None, beside: dict[str, Any] | None = None, dtype: Any = None
    ) -> None:
        super().__init__(table, beside, dtype)
        self._table = table
        self._expect(table.n_rows)
        self.n_rows, self.n_features = table.n_rows, table.n_features
        # first rows of the chunks, and the number of rows behind the last
        queries = self._beside.get("qid", table.queries())
        self.cuts: Array = planned(table.n_rows, chunk_rows or table.chunk_rows, table.groups, queries)

    def begin(self, order: Any) -> Chunks:
        """Begin a pass."""
        return self._pass(np.arange(len(self.cuts) - 1) if order is None else self._order(order, self.cuts))

    def _order(self, order: Any, cuts: Array) -> Array:
        groups = self._table.groups
        if groups is None or not isinstance(order, np.random.Generator):
            return super()._order(order, cuts)
        group = np.searchsorted(groups, cuts[:-1], side="right")  # chunks of one group stay together
        return np.argsort(order.permutation(int(group.max()) + 1)[group], kind="stable")

    def _pass(self, which: Array) -> Chunks:
        self._table.check()
        with self._table.reader() as reader:
            yield from self._read(reader, which, self.cuts, self.cuts)
        self._table.check()

    def targets(self) -> Array | None:
        """Return the targets of all rows."""
        self._table.check()
        return self._table.targets()


class StreamPasses(_Passes):
    """Passes over a stream: the first one learns what chunks there are, the others see that they are the same."""

    def __init__(
        self, stream: Stream, chunk_rows: int | None = None, beside: dict[str, Any] | None = None, dtype: Any = None
    ) -> None:
        super().__init__(stream, beside, dtype)
        self._stream = stream
        self._chunk_rows = chunk_rows or stream.chunk_rows
        self._spent = False
        self._prints: list[tuple[int, int]] = []
        self._places: Array | None = None  # bytes at which chunks begin, and where the last one ends
        self.cuts: Array | None = None

    @property
    def n_rows(self) -> int | None:
        return None if self.cuts is None else int(self.cuts[-1])

    @property
    def n_features(self) -> int | None:
        return self._stream.n_features

    @property
    def n_skipped(self) -> int:
        return self._stream.n_skipped

    @property
    def seekable(self) -> bool:
        return self._places is not None

    @property
    def reiterable(self) -> bool:
        return not self._stream.once

    @property
    def widening(self) -> bool:
        return self._stream.trusted and self._stream.n_features is None  # others are compared with their first part

    def targets(self) -> Array | None:
        """Return that only a pass knows them."""
        return None

    def begin(self, order: Any) -> Chunks:
        """Begin a pass."""
        if self._spent:
            raise ValueError(
                f"{self.name} can be read only once, as it is an iterator, and that has been done: give a list or a "
                "function that returns a new iterator, or save the dataset in its one pass and open what was saved"
            )
        if self.cuts is not None and self._places is not None:
            which = np.arange(len(self.cuts) - 1) if order is None else self._order(order, self.cuts)
            return self._picked(which, self.cuts, self._places)
        if order is None or isinstance(order, np.random.Generator):
            return self._through()
        until = "" if self._stream.size is None else ", until they have been read once"
        raise ValueError(
            f"the chunks of {self.name} can be read in their order only{until}: give order=None, or a random "
            "generator, which is content with what is possible; or save the dataset and open what was saved"
        )

    def _picked(self, which: Array, cuts: Array, places: Array) -> Chunks:
        self._stream.check()
        with self._stream.reader() as reader:
            yield from self._read(reader, which, cuts, places)
        self._stream.check()

    def _through(self) -> Chunks:
        """Read the stream from its beginning."""
        stream = self._stream
        self._spent = stream.once
        stream.check()
        cuts, places, prints, width = [0], [], [], 0
        queries = Queries() if self.cuts is None else None
        for k, part in enumerate(gathered(self._parts(), self._chunk_rows)):
            if queries is not None and part.qid is not None:
                queries.meet(part.qid)
            if not stream.trusted:
                prints.append(self._print(part, k))
            if part.where is not None:
                places.append(int(part.where[0]))
            width = max(width, part.X.shape[1])
            cuts.append(cuts[-1] + len(part))
            yield _chunk(part, cuts[-2], k)
            del part
        stream.check()
        self._see(cuts[-1], width)
        self.cuts, self._prints = np.array(cuts), prints
        stream.n_features = width
        if stream.size is not None:
            self._places = np.array([*places, stream.size])

    def _parts(self) -> Iterator[Part]:
        at = 0
        for part in self._stream.parts():
            if part.X.shape[0] == 0:
                continue
            start, at = at, at + part.X.shape[0]
            yield self._complete(self._sound(part, start), start)
            del part

    def _sound(self, part: Part, start: int) -> Part:
        return part if self._stream.trusted else super()._sound(part, start)

    def _print(self, part: Part, k: int) -> tuple[int, int]:
        """Return the print of a chunk, which must be that of the first pass."""
        found = part.print()
        if self.cuts is not None and (k >= len(self._prints) or found != self._prints[k]):
            raise ValueError(
                f"{self.name} gives other rows than in the first pass, or in another order (chunk {k}): rows must "
                "come in the same order every time; sort them, switch shuffling off, or save the dataset in one pass"
            )
        return found

    def _see(self, rows: int, width: int) -> None:
        """Look at what a whole pass has met."""
        if self.cuts is not None and rows != self.cuts[-1]:
            raise ValueError(
                f"{self.name} ended after {rows} rows, but there were {self.cuts[-1]} before: it can be read only "
                "once, or its rows change; save the dataset in one pass and open what was saved"
            )
        if rows == 0:
            raise NoRowsError(f"{self.name} has no rows: at least one is needed")
        if width == 0:
            raise ValueError(f"{self.name} has rows without any feature: at least one is needed")
        self._expect(rows)


def _kind(part: Part) -> tuple[Any, ...]:
    """Return what must be the same of all parts."""
    form = "sparse" if sp.issparse(part.X) else "dense"
    y = None if part.y is None else "text" if part.y.dtype.kind == "U" else str(part.y.dtype)
    return form, str(part.X.dtype), part.X.shape[1], y, part.weight is not None, part.qid is not None


def _told(kind: tuple[Any, ...]) -> str:
    form, dtype, width, y, weight, qid = kind
    beside = ["no targets" if y is None else f"targets of {y}", *["weights"] * weight, *["queries"] * qid]
    return f"{form} {dtype} rows of {width} features with {', '.join(beside)}"
