"""Arrays and sparse matrices in memory, and arrays in files."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..checks import Array, as_array
from .chunk import Part, as_targets, between
from .cut import rows_of_size
from .files import Files
from .mapped import expect, mapped
from .source import NoRowsError, Reader, Unhurried


class Arrays:
    """A table of features in an array, a memory map or a CSR matrix, with everything else in arrays beside it."""

    feature_names = None
    groups = None

    def __init__(self, X: Any, target: Any = None, features: Any = None) -> None:
        self._X = X.tocsr() if sp.issparse(X) else X
        if self._X.ndim != 2:
            raise ValueError(f"X must be 2-D (rows x features), got {self._X.ndim}-D of shape {self._X.shape}")
        self.n_rows = int(self._X.shape[0])
        self._columns = None if features is None else _columns(features, self._X.shape[1])
        self.n_features = int(self._X.shape[1]) if self._columns is None else len(self._columns)
        if self.n_rows == 0 or self.n_features == 0:
            kind = NoRowsError if self.n_rows == 0 else ValueError
            raise kind(f"X must have rows and features, got shape {self._X.shape}")
        self.name = "the matrix" if sp.issparse(X) else "the array"
        self._target = None if target is None else as_targets(as_array(target, "target"), self.n_rows)
        self._map = self._X if _is_whole_map(self._X) else None
        self._files = Files([self._X.filename] if _is_map(self._X) else [])
        stored = self._X.nnz * (self._X.dtype.itemsize + 4) if sp.issparse(self._X) else self._X.nbytes
        self.chunk_rows = rows_of_size(stored / self.n_rows)

    def check(self) -> None:
        """Raise if the file of a memory map has changed."""
        self._files.check()

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """Open what reads rows; those of a memory map, so that they do not stay in memory."""
        if self._map is None:
            yield Unhurried(self._plain)
        else:
            with open(self._files.paths[0], "rb", buffering=0) as file:
                yield _Mapped(self, file)

    def _plain(self, start: int, stop: int) -> Part:
        return self.part(between(self._X, start, stop), start, stop)

    def part(self, X: Any, start: int, stop: int) -> Part:
        """Return rows with what belongs to them."""
        y = None if self._target is None else self._target[start:stop]
        return Part(X if self._columns is None else X[:, self._columns], y)

    def targets(self) -> Array | None:
        """Return the targets of all rows."""
        return self._target

    def queries(self) -> Array | None:
        """Return that there are none."""
        return None


class _Mapped:
    """Reads rows of a memory map from its file."""

    def __init__(self, arrays: Arrays, file: Any) -> None:
        self._arrays, self._file = arrays, file
        self._dtype, self._width = arrays._X.dtype, arrays._X.shape[1]
        self._begin, self._row = arrays._X.offset, self._width * self._dtype.itemsize

    def read(self, start: int, stop: int) -> Part:
        X = mapped(self._file, self._dtype, self._begin + start * self._row, (stop - start, self._width))
        return self._arrays.part(X, start, stop)

    def expect(self, start: int, stop: int) -> None:
        expect(self._file, self._begin + start * self._row, (stop - start) * self._row)


def _is_map(X: Any) -> bool:
    """Whether the numbers of an array are those in a file."""
    return isinstance(X, np.memmap) and isinstance(X.filename, str | os.PathLike) and X.mode != "c"


def _is_whole_map(X: Any) -> bool:
    """Whether an array is a file as it lies there, so that pieces of it may be mapped anew."""
    return _is_map(X) and isinstance(X.base, mmap.mmap) and bool(X.flags.c_contiguous)


def _columns(features: Any, width: int) -> Array:
    columns = np.asarray(features)
    if columns.ndim != 1 or columns.size == 0 or columns.dtype.kind not in "iu":
        raise ValueError(f"features must be numbers of columns when the source is an array, got {features!r}")
    if columns.min() < 0 or columns.max() >= width:
        raise ValueError(f"features must lie in 0 .. {width - 1}, got {columns.min()} to {columns.max()}")
    return columns
