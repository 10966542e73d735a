"""Writing a store: in a stream, beside its final place, where it appears only when it is whole."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import shutil
import sys
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..checks import Array
from .chunk import Chunk
from .store import FORMAT, HEADER, VERSION, header, is_store

_BLOCK = 1 << 22  # numbers that are turned from float32 into float64 at a time
_PRECISE = np.dtype("<f8")
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


class Growing:
    """An .npy file to which rows are appended."""

    def __init__(self, path: Path, dtype: Any, tail: tuple[int, ...] = ()) -> None:
        self._path, self.dtype, self._tail = path, np.dtype(dtype).newbyteorder("<"), tail
        self.rows, self._crc = 0, 0
        self._file = open(path, "xb")  # noqa: SIM115 - it stays open while it grows
        self._file.write(b"\0" * HEADER)

    def append(self, rows: Array) -> None:
        """Write more rows."""
        data = np.ascontiguousarray(rows, dtype=self.dtype).reshape(-1).view(np.uint8)
        self._file.write(data.data)
        self._crc = zlib.crc32(data.data, self._crc)
        self.rows += len(rows)

    def widened(self, dtype: Any) -> Growing:
        """Return a file of another type with the same numbers, in place of this one."""
        self.close()
        draft = self._path.with_suffix(".wide")
        wide = Growing(draft, dtype, self._tail)
        try:
            with open(self._path, "rb") as file:
                file.seek(HEADER)
                rows = max(1, _BLOCK // max(1, int(np.prod(self._tail))))
                size = rows * self.dtype.itemsize * int(np.prod(self._tail, dtype=np.int64))
                while block := file.read(size):
                    wide.append(np.frombuffer(block, self.dtype).reshape(-1, *self._tail))
            os.replace(draft, self._path)
        except BaseException:
            wide.close()
            raise
        wide._path = self._path
        return wide

    def finish(self) -> dict[str, Any]:
        """Complete the file, and return what meta.json says of it."""
        shape = self.rows, *self._tail
        self._file.seek(0)
        self._file.write(header(self.dtype, shape))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.close()
        return {"dtype": self.dtype.str, "shape": list(shape), "crc32": self._crc}

    def close(self) -> None:
        """Close the file; a disk that is full may say so only now."""
        self._file.close()


class Writer:
    """A store that grows by chunks."""

    def __init__(self, folder: Path, dtype: Any) -> None:
        self._folder, self._dtype = folder, dtype
        self._files: dict[str, Growing] = {}
        self._narrow = dtype is None
        self._classes: dict[str, int] | None = None
        self._sparse = False
        self._width, self._stored, self.n_rows = 0, 0, 0

    def _grow(self, name: str, rows: Array, dtype: Any = None, tail: tuple[int, ...] = ()) -> None:
        if name not in self._files:
            self._files[name] = Growing(self._folder / f"{name}.npy", dtype or rows.dtype, tail)
        self._files[name].append(rows)

    def add(self, chunk: Chunk) -> None:
        """Write a chunk."""
        X = chunk.X
        self._sparse = sp.issparse(X)
        self._width = max(self._width, X.shape[1])
        if self._sparse:
            if X.shape[1] > 2**31:
                raise ValueError(f"a store holds fewer than 2**31 features, got {X.shape[1]}")
            starts = X.indptr.astype(np.int64) + self._stored  # beyond what the int32 of a chunk holds
            self._grow("indptr", starts if self.n_rows == 0 else starts[1:], np.int64)
            self._grow("indices", X.indices, np.int32)
            self._add_values(X.data, ())
        else:
            self._add_values(X, (X.shape[1],))
        self._stored += X.nnz if self._sparse else X.size
        self.n_rows += len(chunk)
        if chunk.y is not None:
            self._grow("target", self._numbered(chunk.y) if chunk.y.dtype.kind == "U" else chunk.y)
        if chunk.weight is not None:
            self._grow("weight", chunk.weight, np.float64)
        if chunk.qid is not None:
            self._grow("qid", chunk.qid, np.int64)

    def _add_values(self, values: Array, tail: tuple[int, ...]) -> None:
        """Write features, in float32 as long as that changes none of them."""
        if self._narrow and values.dtype == np.float64 and not _fits_single(values):
            self._narrow = False
            if "values" in self._files:
                self._files["values"] = self._files["values"].widened(_PRECISE)
        kind = self._dtype or (np.float32 if self._narrow else np.float64)
        self._grow("values", values, kind, tail)

    def _numbered(self, labels: Array) -> Array:
        """Return the numbers of classes with names, in the order in which they are first met."""
        self._classes = {} if self._classes is None else self._classes
        names, inverse = np.unique(labels, return_inverse=True)
        numbers = [self._classes.setdefault(name, len(self._classes)) for name in names.tolist()]
        return np.array(numbers, dtype=np.int32)[inverse]

    def finish(self, known: dict[str, Any]) -> None:
        """Complete the files, and write meta.json last, with what else is known."""
        arrays = {name: file.finish() for name, file in self._files.items()}
        meta = {
            "format": FORMAT,
            "version": VERSION,
            "rows": self.n_rows,
            "features": self._width,
            "sparse": self._sparse,
            "stored": self._stored,
            "arrays": arrays,
            "classes": None if self._classes is None else list(self._classes),
            **known,
        }
        with open(self._folder / "meta.json", "x", encoding="utf-8") as file:
            json.dump(meta, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        _sync(self._folder)

    def close(self) -> None:
        """Close what is open, whether or not what was left could be written."""
        for file in self._files.values():
            with suppress(OSError):
                file.close()


def _fits_single(values: Array) -> bool:
    flat = values.reshape(-1)
    return all(
        bool((flat[at : at + _BLOCK].astype(np.float32) == flat[at : at + _BLOCK]).all())
        for at in range(0, flat.size, _BLOCK)
    )


def _sync(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_store(
    path: str | os.PathLike[str],
    chunks: Iterable[Chunk],
    known: Callable[[], dict[str, Any]],
    dtype: Any = None,
    overwrite: bool = False,
    callback: Any = None,
) -> None:
    """Write chunks into a store; whatever happens, the path holds a whole store or what it held before."""
    place = Path(os.path.realpath(path))
    if place.exists() or place.is_symlink():
        if not overwrite:
            raise FileExistsError(f"{str(path)!r} exists: give another path, or overwrite=True to replace a store")
        if not is_store(place):
            raise FileExistsError(f"{str(path)!r} exists and is not a store: give another path")
    draft = place.with_name(f".{place.name}.{secrets.token_hex(6)}.draft")
    draft.mkdir()
    writer = Writer(draft, dtype)
    try:
        for chunk in chunks:
            writer.add(chunk)
            if callback is not None:
                callback(chunk)
        writer.finish(known())
        _move(draft, place)
    except BaseException:
        writer.close()
        shutil.rmtree(draft, ignore_errors=True)
        raise
    _sync(place.parent)


def _move(draft: Path, place: Path) -> None:
    """Give a draft its name, and delete what had it before."""
    if not place.exists():
        os.rename(draft, place)
    elif _exchange(draft, place):
        shutil.rmtree(draft, ignore_errors=True)
    else:
        old = draft.with_suffix(".old.draft")
        os.rename(place, old)
        try:
            os.rename(draft, place)
        except BaseException:
            os.rename(old, place)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders at once, if the system can: there is no moment at which one is missing."""
    swap = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    return swap is not None and swap(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0
