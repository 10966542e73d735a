"""Arrow data in memory or on its way: frames, and whatever has ``__arrow_c_stream__``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from ..checks import Array
from .chunk import Part
from .columns import Columns, pyarrow
from .cut import rows_of_size
from .iterables import begin, is_function, is_iterator
from .source import NoRowsError, Reader, Unhurried

_BATCH = 1 << 15  # rows of a record batch that are asked for


class ArrowStream:
    """A stream of rows from an object with ``__arrow_c_stream__``, or from several of them in turn."""

    trusted = False
    size: int | None = None
    n_skipped = 0

    def __init__(self, source: Any, choice: dict[str, Any]) -> None:
        self.name = f"the {type(source).__name__}"
        self._source, self._choice = source, choice
        self.once = is_iterator(source)
        self._columns: Columns | None = None
        self.n_features: int | None = None
        self.chunk_rows: int | None = 0

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, once a pass has begun."""
        return None if self._columns is None else self._columns.names

    def check(self) -> None:
        """Do nothing: what has changed shows in the rows."""

    def parts(self) -> Iterator[Part]:
        """Read the rows, in batches of bounded size."""
        for stream in _streams(self._source):
            reader = _reader(stream, self.name)
            columns = Columns(reader.schema, self.name, **self._choice)
            if self._columns is not None and self._columns.read != columns.read:
                raise ValueError(
                    f"{self.name} gives other columns than before: {columns.read}, not {self._columns.read}"
                )
            self._columns = columns
            step = min(_BATCH, rows_of_size(columns.width * np.dtype(columns.dtype).itemsize))
            for batch in reader:
                for start in range(0, batch.num_rows, step):
                    yield columns.part(batch.slice(start, step))

    def reader(self) -> AbstractContextManager[Reader]:
        """Nothing here has a place in a file."""
        raise NotImplementedError


def _streams(source: Any, inside: bool = False) -> Iterator[Any]:
    """Yield the objects with ``__arrow_c_stream__`` that a source is or gives, or that lie inside it."""
    if is_function(source):
        source = source()
    if hasattr(source, "collect_batches"):  # a lazy frame of Polars, which reads what it needs as it goes
        yield from source.collect_batches(chunk_size=_BATCH)
    elif hasattr(source, "collect"):
        yield source.collect()
    elif hasattr(source, "to_arrow_reader"):  # a relation of DuckDB, whose own batches are larger
        yield source.to_arrow_reader(_BATCH)
    elif hasattr(source, "__arrow_c_stream__"):
        yield source
    elif inside:
        raise TypeError(
            "where columns have names, the source must give objects with __arrow_c_stream__, got "
            f"{type(source).__name__}"
        )
    else:
        for element in begin(source):
            yield from _streams(element, inside=True)


def _reader(stream: Any, name: str) -> Any:
    """Return what reads the record batches of a stream."""
    try:
        return pyarrow().RecordBatchReader.from_stream(_without_index(stream))
    except ValueError as error:  # that of pyarrow is one
        raise ValueError(
            f"{name} cannot be read: {error}; where that works only once, save the dataset in one pass and open what "
            "was saved"
        ) from error


def _without_index(source: Any) -> Any:
    """Return a frame of pandas without its index, which is no feature; anything else as it is."""
    if type(source).__module__.split(".")[0] == "pandas":
        return pyarrow().Table.from_pandas(source, preserve_index=False)
    return source


class Frame:
    """A table of rows in memory, in Arrow's form."""

    groups = None

    def __init__(self, source: Any, choice: dict[str, Any]) -> None:
        self.name = f"the {type(source).__name__}"
        self._table = pyarrow().table(_without_index(source))
        self._columns = Columns(self._table.schema, self.name, **choice)
        self.n_rows, self.n_features = self._table.num_rows, self._columns.width
        self.feature_names = self._columns.names
        self.chunk_rows = rows_of_size(self.n_features * np.dtype(self._columns.dtype).itemsize)
        if self.n_rows == 0:
            raise NoRowsError(f"{self.name} has no rows")

    def check(self) -> None:
        """Do nothing: frames do not change."""

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """Open what reads rows."""
        yield Unhurried(lambda start, stop: self._columns.part(self._table.slice(start, stop - start)))

    def targets(self) -> Array | None:
        """Return the targets of all rows."""
        return None if self._columns.target is None else self._columns.whole(self._table, self._columns.target)

    def queries(self) -> Array | None:
        """Return the queries of all rows."""
        return None if self._columns.qid is None else self._columns.whole(self._table, self._columns.qid)
