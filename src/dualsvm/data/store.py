"""The store: a folder of ``.npy`` files and a ``meta.json``, mapped into memory when it is read."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..checks import Array
from .chunk import Part, csr
from .cut import rows_of_size
from .files import Files
from .mapped import expect, mapped
from .source import Reader

FORMAT = "dualsvm store"
VERSION = 1
HEADER = 128  # bytes before the numbers of an .npy file of the store
_VALUES = ("<f4", "<f8")
_TARGETS = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
_BLOCK = 1 << 24


def header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the beginning of an .npy file, of the same length for every shape."""
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    return b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little") + text.ljust(HEADER - 11).encode() + b"\n"


def is_store(path: Path) -> bool:
    """Whether a folder is meant to be a store."""
    return (path / "meta.json").is_file()


class Store:
    """A table of rows in a store. That every file is there, and as long as it should be, is checked at once."""

    groups = None

    def __init__(self, path: Path) -> None:
        self.name = repr(str(path))
        self._path = path
        try:
            self._meta = meta = json.loads((path / "meta.json").read_text(encoding="utf-8"))
            form = meta["format"], meta["version"]
            if form != (FORMAT, VERSION):
                raise ValueError(f"the format is {form[0]!r}, version {form[1]!r}, not {FORMAT!r}, version {VERSION}")
            self.n_rows, self.n_features = _count(meta["rows"]), _count(meta["features"])
            self.sparse = bool(meta["sparse"])
            self.stored = _count(meta["stored"])
            self.feature_names = _names(meta.get("feature_names"), self.n_features)
            self.index_base = meta.get("index_base")  # of the text that the store was made from
            if self.index_base not in (None, 0, 1):
                raise ValueError(f"{self.index_base!r} is no index base")
            self._classes = None if meta.get("classes") is None else np.array(_names(meta["classes"], None))
            self._kinds = {name: str(given["dtype"]) for name, given in meta["arrays"].items()}
            self._check_kinds()
            self._shapes = {name: self._shape(name) for name in self._kinds}
            self._files = Files(self._file(name) for name in self._kinds)
            for name in self._kinds:
                self._check_file(name)
        except FileNotFoundError as error:
            raise ValueError(f"{self.name} is not a whole store: {error}; write it again") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else error
            raise ValueError(f"{self.name} is not a whole store of dualsvm: {what}; write it again") from error
        row = self.stored * (np.dtype(self._kinds["values"]).itemsize + 4 * self.sparse) / max(1, self.n_rows)
        self.chunk_rows = rows_of_size(row)

    def _file(self, name: str) -> Path:
        return self._path / f"{name}.npy"

    def _check_kinds(self) -> None:
        allowed: dict[str, tuple[str, ...]] = {
            "values": _VALUES,
            "target": _TARGETS,
            "weight": ("<f8",),
            "qid": ("<i8",),
        }
        if self.sparse:
            allowed |= {"indices": ("<i4",), "indptr": ("<i8",)}
        for name, kind in self._kinds.items():
            if name not in allowed or kind not in allowed[name]:
                raise ValueError(f"there should be no array {name!r} of {kind!r}")
        for name in ("values", *(("indices", "indptr") if self.sparse else ())):
            if name not in self._kinds:
                raise ValueError(f"there is no array {name!r}")
        if self.n_rows == 0 or self.n_features == 0:
            raise ValueError(f"there are {self.n_rows} rows and {self.n_features} features")

    def _shape(self, name: str) -> tuple[int, ...]:
        if name == "values" and not self.sparse:
            return self.n_rows, self.n_features
        return ({"values": self.stored, "indices": self.stored, "indptr": self.n_rows + 1}.get(name, self.n_rows),)

    def _check_file(self, name: str) -> None:
        kind, shape = np.dtype(self._kinds[name]), self._shapes[name]
        size = HEADER + int(np.prod(shape, dtype=object)) * kind.itemsize
        found = self._file(name).stat().st_size
        if found != size:
            raise ValueError(f"{name}.npy should have {size} bytes and has {found}")
        with open(self._file(name), "rb") as file:
            if file.read(HEADER) != header(kind, shape):
                raise ValueError(f"{name}.npy does not begin as an array of shape {shape} and type {kind.str}")
        if name == "indptr":
            ends = self._all(name)[[0, -1]].tolist()
            if ends != [0, self.stored]:
                raise ValueError(
                    f"indptr.npy should run from 0 to {self.stored} and runs from {ends[0]} to {ends[1]}"
                )

    def verify(self) -> None:
        """Read everything and compare the checksums."""
        for name in self._kinds:
            code = 0
            with open(self._file(name), "rb") as file:
                file.seek(HEADER)
                while block := file.read(_BLOCK):
                    code = zlib.crc32(block, code)
            if code != self._meta["arrays"][name].get("crc32"):
                raise ValueError(f"{self.name} is damaged: {name}.npy has another checksum than meta.json says")

    def check(self) -> None:
        """Raise if a file has changed."""
        self._files.check()

    def _all(self, name: str) -> Array:
        with open(self._file(name), "rb") as file:
            return mapped(file, self._kinds[name], HEADER, self._shapes[name])

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """Open what reads rows."""
        with ExitStack() as stack:
            yield _Reader(self, {n: stack.enter_context(open(self._file(n), "rb", buffering=0)) for n in self._kinds})

    def place(self, name: str, start: int) -> tuple[int, np.dtype[Any], tuple[int, ...]]:
        """Return the byte at which a row of an array begins, and type and shape of such rows."""
        kind, rest = np.dtype(self._kinds[name]), self._shapes[name][1:]
        return HEADER + start * kind.itemsize * int(np.prod(rest, dtype=np.int64)), kind, rest

    def named(self, target: Array | None) -> Array | None:
        """Return targets as the user knows them, where the store holds numbers of classes."""
        if self._classes is None or target is None:
            return target
        if target.size and (target.min() < 0 or target.max() >= len(self._classes)):
            raise ValueError(f"{self.name} is damaged: target.npy holds numbers of no class; write it again")
        return np.asarray(self._classes[target])

    def targets(self) -> Array | None:
        """Return the targets of all rows."""
        return self.named(self._all("target")) if "target" in self._kinds else None

    def queries(self) -> Array | None:
        """Return the queries of all rows."""
        return self._all("qid") if "qid" in self._kinds else None


class _Reader:
    """Reads rows of a store from its files."""

    def __init__(self, store: Store, files: dict[str, Any]) -> None:
        self._store, self._files = store, files

    def _piece(self, name: str, start: int, stop: int) -> Array:
        offset, kind, rest = self._store.place(name, start)
        return mapped(self._files[name], kind, offset, (stop - start, *rest))

    def _starts(self, start: int, stop: int) -> tuple[Array, int, int]:
        indptr = self._piece("indptr", start, stop + 1)
        first, last = int(indptr[0]), int(indptr[-1])
        if not 0 <= first <= last <= self._store.stored or last - first >= 2**31:
            raise ValueError(f"{self._store.name} is damaged: indptr.npy does not increase; write it again")
        return indptr, first, last

    def read(self, start: int, stop: int) -> Part:
        if self._store.sparse:
            indptr, first, last = self._starts(start, stop)
            parts = self._piece("values", first, last), self._piece("indices", first, last)
            X = csr(*parts, (indptr - first).astype(np.int32), self._store.n_features)
        else:
            X = self._piece("values", start, stop)
        beside = [self._piece(n, start, stop) if n in self._files else None for n in ("target", "weight", "qid")]
        return Part(X, self._store.named(beside[0]), *beside[1:])

    def expect(self, start: int, stop: int) -> None:
        names = ["values"]
        if self._store.sparse:
            _, start, stop = self._starts(start, stop)
            names.append("indices")
        for name in names:
            first, last = self._store.place(name, start)[0], self._store.place(name, stop)[0]
            expect(self._files[name], first, last - first)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise ValueError(f"{value!r} is no count")
    return value


def _names(values: Any, n: int | None) -> list[str] | None:
    if values is None:
        return None
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values) or n not in (None, len(values)):
        raise ValueError("names must be text, one for each")
    return values
