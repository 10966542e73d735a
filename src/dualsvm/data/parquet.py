"""Parquet and Arrow files: rows in groups, each of which is read from its beginning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..checks import Array
from .chunk import joined
from .columns import Columns, pyarrow
from .cut import rows_of_size
from .files import Files
from .source import NoRowsError, Reader, Unhurried


class GroupFile(Protocol):
    """An open file whose rows lie in groups."""

    schema: Any
    rows: list[int]  # of each group

    def batches(self, first: int, columns: list[str], size: int) -> Iterator[Any]:
        """Yield the record batches of all groups from the first on."""

    def close(self) -> None:
        """Close the file."""


class _Parquet:
    def __init__(self, path: Path, threads: int) -> None:
        pyarrow()
        import pyarrow.parquet as pq

        self._file = pq.ParquetFile(path)
        self._threads = threads
        meta = self._file.metadata
        self.schema = self._file.schema_arrow
        self.rows = [meta.row_group(k).num_rows for k in range(meta.num_row_groups)]

    def batches(self, first: int, columns: list[str], size: int) -> Iterator[Any]:
        groups = range(first, len(self.rows))
        for group in groups:
            yield from self._file.iter_batches(size, [group], columns, use_threads=self._threads > 1)

    def close(self) -> None:
        self._file.close()


class _Ipc:
    def __init__(self, path: Path, threads: int) -> None:
        pa = pyarrow()
        self._map = pa.memory_map(str(path))
        self._options = pa.ipc.IpcReadOptions
        file = pa.ipc.open_file(self._map, options=self._options(included_fields=[0], use_threads=False))
        self.schema = pa.ipc.open_file(self._map).schema
        self.rows = [file.get_batch(k).num_rows for k in range(file.num_record_batches)]
        self._threads = threads

    def batches(self, first: int, columns: list[str], size: int) -> Iterator[Any]:
        fields = sorted(self.schema.get_field_index(column) for column in columns)
        options = self._options(included_fields=fields, use_threads=self._threads > 1)
        file = pyarrow().ipc.open_file(self._map, options=options)
        for k in range(first, len(self.rows)):
            batch = file.get_batch(k)
            for start in range(0, batch.num_rows, size):
                yield batch.slice(start, size)

    def close(self) -> None:
        self._map.close()


class GroupFiles:
    """A table of rows in one or several files, one behind the other."""

    def __init__(self, name: str, paths: list[Path], kind: str, choice: dict[str, Any], threads: int) -> None:
        self.name, self._kind, self._threads = name, kind, threads
        self._files = Files(paths)
        self._first = [0]  # group of every file, and behind the last
        starts = [0]  # row of every group, and behind the last
        self._columns: Columns
        for path in paths:
            with closing(self._open(path)) as file:
                columns = Columns(file.schema, repr(str(path)), **choice)
                if len(self._first) > 1 and (columns.read, columns.dtype, columns.width) != self._shape():
                    raise ValueError(
                        f"{str(path)!r} has other columns or types than {str(paths[0])!r}: make them equal"
                    )
                self._columns = columns
                starts += (starts[-1] + np.cumsum(file.rows, dtype=np.int64)).tolist()
                self._first.append(self._first[-1] + len(file.rows))
        self._starts = np.array(starts)
        self.n_rows, self.n_features = starts[-1], self._columns.width
        if self.n_rows == 0:
            raise NoRowsError(f"{self.name} has no rows")
        self.feature_names = self._columns.names
        self.groups: Array | None = self._starts[:-1]
        self.chunk_rows = rows_of_size(self.n_features * np.dtype(self._columns.dtype).itemsize)

    def _shape(self) -> tuple[Any, ...]:
        return self._columns.read, self._columns.dtype, self._columns.width

    def _open(self, path: Path) -> GroupFile:
        try:
            return _Parquet(path, self._threads) if self._kind == "Parquet" else _Ipc(path, self._threads)
        except ValueError as error:  # that of pyarrow is one
            raise ValueError(f"{str(path)!r} is not a whole {self._kind} file: {error}") from error

    def check(self) -> None:
        """Raise if a file has changed."""
        self._files.check()

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """Open what reads rows; those that follow the last ones read cost least."""
        cursor = _Cursor(self, self._columns.read)
        try:
            yield Unhurried(lambda a, b: joined([self._columns.part(batch) for batch in cursor.read(a, b)]))
        finally:
            cursor.close()

    def batches(self, group: int, columns: list[str]) -> Iterator[Any]:
        """Yield the record batches of all groups from one on."""
        size = min(1 << 16, self.chunk_rows)
        at = int(np.searchsorted(self._first, group, side="right")) - 1
        for k in range(at, len(self._files.paths)):
            path = self._files.paths[k]
            with closing(self._open(path)) as file:
                try:
                    yield from file.batches(max(0, group - self._first[k]), columns, size)
                except (ValueError, OSError) as error:  # those of pyarrow are such
                    raise ValueError(f"{str(path)!r} is damaged: {error}; copy the file again") from error

    def begin(self, row: int) -> tuple[int, int]:
        """Return the group that holds a row, and how many rows of it come before."""
        group = int(np.searchsorted(self._starts, row, side="right")) - 1
        return group, row - int(self._starts[group])

    def targets(self) -> Array | None:
        """Return the targets of all rows."""
        return self._whole(self._columns.target)

    def queries(self) -> Array | None:
        """Return the queries of all rows."""
        return self._whole(self._columns.qid)

    def _whole(self, column: str | None) -> Array | None:
        if column is None:
            return None
        return np.concatenate([self._columns.whole(batch, column) for batch in self.batches(0, [column])])


class _Cursor:
    """A place in the files, from which reading goes on."""

    def __init__(self, files: GroupFiles, columns: list[str]) -> None:
        self._files, self._columns = files, columns
        self._at = -1
        self._batches: Iterator[Any] = iter(())
        self._rest: Any = None

    def read(self, start: int, stop: int) -> Iterator[Any]:
        if start != self._at:
            self.close()
            group, skipped = self._files.begin(start)
            self._batches, self._rest = self._files.batches(group, self._columns), None
            for _ in self._take(skipped):
                pass
        yield from self._take(stop - start)
        self._at = stop

    def _take(self, n: int) -> Iterator[Any]:
        while n > 0:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            if batch is None:
                raise ValueError(f"{self._files.name} ends too early: copy the file again")
            self._rest = batch.slice(n) if batch.num_rows > n else None
            yield batch.slice(0, n)
            n -= batch.num_rows

    def close(self) -> None:
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder and of those in it, sorted; names that begin with . or _ aside."""
    found = (path for path in folder.rglob("*.parquet") if path.is_file())
    return sorted(p for p in found if not any(part[0] in "._" for part in p.relative_to(folder).parts))
