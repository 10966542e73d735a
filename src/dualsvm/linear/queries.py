"""Learning to rank from chunks of queries."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..checks import Array
from ..chunked import Run, Start, rows_of
from ..data import Chunk, Dataset
from ..data.cut import query_starts
from ..queries import count_pairs, grades
from .chunks import Learner, Reads, State


class QueryLearner(Learner):
    """Learns from chunks of whole queries. Those without a preference are left out.

    Of every chunk, `seen` knows where it begins, the lengths of its queries, which of them are learned from, the
    relevances, and the weights where there is one slack for every query.
    """

    def __init__(self, model: Any, dataset: Dataset, reads: Reads) -> None:
        super().__init__(model, dataset, 1, self._state, self._prepare, reads)

    def whole(self) -> None:
        """Return that queries are always met in chunks, as some of them are left out."""

    def _state(self, chunk: Chunk) -> State:
        return self.model._statement(np.asarray(chunk.y), np.asarray(chunk.qid), chunk.weight)

    def _prepare(self, chunk: Chunk) -> Chunk | None:
        """Return the queries of a chunk that hold preferences, with relevances counted from 0."""
        name, n = self.dataset.name, len(chunk)
        if chunk.y is None or chunk.y.dtype.kind not in "fiub":
            raise ValueError(f"{name} has no relevances that are numbers: say where they are with target=...")
        if chunk.qid is None and (chunk.index > 0 or self.dataset.n_chunks not in (None, 1)):
            raise ValueError(
                f"{name} is read in several chunks, and does not say which rows belong to one query: name the column "
                "with qid=..., or, if all belong to one, raise chunk_rows"
            )
        start = np.append(query_starts(np.zeros(n) if chunk.qid is None else chunk.qid), n)
        counts, lengths = count_pairs(chunk.y, start), np.diff(start).astype(np.int32)
        self.model._check_pairs(counts)
        y = grades(chunk.y, start)
        y = y.astype(np.min_scalar_type(-int(y.max()) - 1))
        found = {"start": np.array(chunk.start), "lengths": lengths, "some": counts > 0, "y": y}
        if chunk.weight is not None and self.model.slack == "query":
            found["weight"] = chunk.weight
        self.seen |= {f"{chunk.index}.{name}": value for name, value in found.items()}
        prepared = replace(chunk, y=y, qid=_numbered(lengths))
        rows = np.flatnonzero(np.repeat(counts > 0, lengths))
        if len(rows) == n:
            return prepared
        return rows_of(prepared, rows) if len(rows) else None

    def rows(self, chunk: Chunk) -> Array | None:
        """Return the rows of queries with preferences, where it is not all of them."""
        lengths, some = (self.seen[f"{chunk.index}.{name}"] for name in ("lengths", "some"))
        return None if some.all() else np.flatnonzero(np.repeat(some, lengths))

    def blank(self, width: int, dtype: Any) -> Chunk:
        """Return a chunk with one query, of one preference, that costs nothing."""
        y, zeros = np.array([1, 0], dtype=np.int8), np.zeros(2, dtype=np.int64)
        return Chunk(sp.csr_array((2, width), dtype=dtype), y, np.zeros(2), zeros)

    def _order(self) -> list[int]:
        """Return the numbers of the chunks that have been seen, in the order of their rows."""
        starts = {int(name.split(".")[0]): int(self.seen[name]) for name in self.seen if name.endswith(".start")}
        return sorted(starts, key=lambda index: starts[index])

    def _coefficients(self, run: Run, k: int) -> sp.csr_array:
        last = self._order()[-1]
        found = np.zeros(int(self.seen[f"{last}.start"]) + len(self.seen[f"{last}.y"]))
        for index in run.cache.lengths:
            start, lengths, some, y = (self.seen[f"{index}.{name}"] for name in ("start", "lengths", "some", "y"))
            rows = np.flatnonzero(np.repeat(some, lengths))
            bare = Chunk(sp.csr_array((len(rows), self.width)), y[rows], None, _numbered(lengths[some]))
            mapping = self.problem_of(k)(bare).mapping
            found[start + rows] = mapping.coefficients(run.cache.alpha(index), len(rows))
        return sp.csr_array(found[None])

    def alpha(self) -> sp.csr_array | None:
        """Return the dual variables of pairs, or four numbers for every row of a query with preferences."""
        order, (run,) = self._order(), self.runs.runs
        unmet = [index for index in order if self.seen[f"{index}.some"].any() and index not in run.cache.lengths]
        if unmet or self.dataset.n_chunks != len(order):  # of how many dual variables theirs would be, is not known
            return None
        found = [run.cache.alpha(index) for index in order if index in run.cache.lengths]
        return sp.hstack([sp.csr_array(part.reshape(len(part), -1).T) for part in found], format="csr")

    @property
    def fingerprint(self) -> str:
        """Tells apart queries with one slack each: sums over sets of pairs do not carry over to others."""
        if self.model.slack != "query":
            return ""
        digest = hashlib.sha256()
        for name in ("lengths", "y", "weight"):  # of all chunks, wherever they are cut
            digest.update(b"|")
            for index in self._order():
                if (part := self.seen.get(f"{index}.{name}")) is not None:
                    digest.update(part.astype(np.float64).tobytes())
        return f"read in chunks {digest.hexdigest()}"

    def _starts(self) -> list[Start]:
        """Return what is left of the last fit to start from: no sums over sets of pairs, maybe of other queries."""
        return super()._starts() if self.model.slack == "pair" else []

    def labels(self) -> Array | None:
        """Return that there are no classes."""
        return None


def _numbered(lengths: Array) -> Array:
    """Return the numbers of queries for every row, given their lengths."""
    return np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
