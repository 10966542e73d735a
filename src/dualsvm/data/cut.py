"""Where chunks begin and end: near the wanted size, and never within a query."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ..checks import Array
from .chunk import Part, joined

CHUNK_BYTES = 16 << 20  # large enough to be read at full speed, small enough for several to be in memory


def rows_of_size(row_bytes: float) -> int:
    """Return how many rows make a chunk of the usual size."""
    return max(1, int(CHUNK_BYTES / max(row_bytes, 1)))


def gathered(parts: Iterator[Part], chunk_rows: int | None) -> Iterator[Part]:
    """Join and cut parts into chunks of that many rows; a query stays in one of them.

    None: chunks as parts come; 0: of the usual size, going by the first part.
    """
    held: list[Part] = []
    rows = 0
    enough = chunk_rows or 1
    for part in parts:
        if chunk_rows == 0:
            enough = chunk_rows = rows_of_size(part.bytes / len(part))
        held.append(part)
        rows += len(part)
        del part  # what has been given away is not kept while more is read
        if rows >= enough:
            held = [joined(held)]
            stops = _stops(held[0], chunk_rows)
            yield from _pieces(held, stops)
            rows = sum(map(len, held))
            # a query that goes on and on is not joined again with every part
            enough = (chunk_rows or 1) if stops else 2 * rows
    if held:
        held = [joined(held)]
        yield from _pieces(held, _stops(held[0], chunk_rows))
        yield from held


def _pieces(held: list[Part], stops: list[int]) -> Iterator[Part]:
    """Yield what lies before the stops, and keep the rest of the one part that is held."""
    if stops:
        part = held.pop()
        if stops[-1] < len(part):
            held.append(part.between(stops[-1], len(part)))
        for start, stop in pairwise([0, *stops]):
            yield part.between(start, stop)


def _stops(part: Part, chunk_rows: int | None) -> list[int]:
    """Return where to cut what has come so far."""
    n = len(part)
    if part.qid is None:
        return list(range(chunk_rows, n + 1, chunk_rows)) if chunk_rows else [n]
    starts = query_starts(part.qid)  # the last query may go on
    if chunk_rows is None:
        return [int(starts[-1])] if len(starts) > 1 else []
    return _whole_queries(starts, chunk_rows)


def _whole_queries(starts: Array, chunk_rows: int, groups: Array | None = None) -> list[int]:
    """Return where to cut, given where queries start: after so many rows, or where a group of rows ends."""
    stops: list[int] = []
    at = 0
    while True:
        wanted = at + chunk_rows
        if groups is not None and (k := int(np.searchsorted(groups, at, side="right"))) < len(groups):
            wanted = min(wanted, int(groups[k]))
        if (k := int(np.searchsorted(starts, wanted))) >= len(starts):
            return stops
        stops.append(at := int(starts[k]))


def planned(n_rows: int, chunk_rows: int, groups: Array | None, qid: Array | None) -> Array:
    """Return the first rows of the chunks of a table, and its length behind them.

    Chunks begin where `groups` of rows begin that are read best in one go; small ones are taken together.
    """
    firsts = [0]
    for first in [] if groups is None else groups.tolist():
        if first - firsts[-1] >= chunk_rows and first < n_rows:
            firsts.append(first)
    if qid is not None:
        begins = query_starts(qid)
        refuse_scattered(qid[begins])
        cuts: Array = np.array([0, *_whole_queries(begins, chunk_rows, np.array(firsts))])
    else:
        cuts = np.concatenate([np.arange(a, b, chunk_rows) for a, b in pairwise([*firsts, n_rows])])
    return np.append(cuts, n_rows).astype(np.int64)


def query_starts(qid: Array) -> Array:
    """Return the positions at which the query changes, the first row included."""
    return np.append(0, np.flatnonzero(qid[1:] != qid[:-1]) + 1)


def refuse_scattered(ids: Array) -> None:
    """Raise if a query, of which these are the ids in their order, comes a second time."""
    found, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        _scattered(found[counts > 1][0])


def _scattered(query: int) -> None:
    raise ValueError(f"the rows of query {query} are not consecutive: sort the rows by query")


class Queries:
    """Tells of a stream whether a query comes back after others: it would be torn apart."""

    def __init__(self) -> None:
        self._seen = np.empty(0, np.int64)
        self._new: list[Array] = []
        self._most: int | None = None

    def meet(self, qid: Array) -> None:
        """Look at the queries of the next chunk."""
        ids = qid[query_starts(qid)]
        refuse_scattered(ids)
        if self._most is not None and ids.min() <= self._most:  # else they are all new
            self._seen = np.union1d(self._seen, np.concatenate([*self._new, self._seen]))
            self._new = []
            again = ids[np.isin(ids, self._seen)]
            if again.size:
                _scattered(again[0])
        self._new.append(ids)
        self._most = int(max(ids.max(), ids.max() if self._most is None else self._most))
