"""What every source of rows is: a table, whose rows can be read anywhere, or a stream, read from its beginning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from ..checks import Array
from .chunk import Part


class NoRowsError(ValueError):
    """A source holds no rows."""


class Reader(Protocol):
    """Reads rows from one place to another: places are positions of rows in tables, and of bytes in text."""

    def read(self, start: int, stop: int) -> Part:
        """Return the rows."""

    def expect(self, start: int, stop: int) -> None:
        """Hear which rows will be asked for soon, so that the disk can begin."""


class Unhurried:
    """A reader that does nothing in advance."""

    def __init__(self, read: Callable[[int, int], Part]) -> None:
        self.read = read

    def expect(self, start: int, stop: int) -> None:
        """Do nothing."""


class Source(Protocol):
    """What tables and streams have in common."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, where they have any."""

    def check(self) -> None:
        """Raise if the source is not what it was when it was opened."""


class Table(Source, Protocol):
    """Rows that can be read in any order."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def chunk_rows(self) -> int:
        """Rows of a chunk of the usual size."""

    @property
    def groups(self) -> Array | None:
        """First rows of groups that are read best in one go, None: there are none."""

    def reader(self) -> AbstractContextManager[Reader]:
        """Open what reads rows."""

    def targets(self) -> Array | None:
        """Return the targets of all rows."""

    def queries(self) -> Array | None:
        """Return the queries of all rows."""


class Stream(Source, Protocol):
    """Rows that come in their order."""

    once: bool  # whether they can be read only once
    trusted: bool  # whether parts need no check, and are the same in every pass
    size: int | None  # bytes of the file, if rows between two of its bytes can be read again
    chunk_rows: int | None  # of the usual size; 0: to be found from the first part; None: as parts come
    n_features: int | None
    n_skipped: int

    def parts(self) -> Iterator[Part]:
        """Read the rows."""

    def reader(self) -> AbstractContextManager[Reader]:
        """Open what reads rows between bytes once more."""
