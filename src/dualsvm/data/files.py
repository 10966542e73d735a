"""Files: whether they are still what they were, what they hold, and what they hold when unpacked."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

try:
    from compression import zstd as _native
except ImportError:  # before Python 3.14
    _native = None

_DAMAGED: tuple[type[Exception], ...] = (zlib.error, lzma.LZMAError, gzip.BadGzipFile)
if _native is not None:
    _DAMAGED += (_native.ZstdError,)
_OPEN: dict[str, Callable[[Any], Any]] = {"gzip": gzip.open, "bzip2": bz2.BZ2File, "xz": lzma.LZMAFile}
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


class Files:
    """Files that must not change between passes: their sizes and times are remembered."""

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        self.paths = [Path(path) for path in paths]
        self._seen = [_state(path) for path in self.paths]

    @property
    def bytes(self) -> int:
        """What the files take."""
        return sum(size for size, _ in self._seen)

    def check(self) -> None:
        """Raise if a file has changed."""
        for path, (size, time) in zip(self.paths, self._seen, strict=True):
            now = _state(path)
            if now != (size, time):
                how = f"it had {size} bytes and has {now[0]} now" if now[0] != size else "it was written to"
                raise ValueError(f"{str(path)!r} has changed since it was opened ({how}): open it again")


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def packing(beginning: bytes) -> str | None:
    """Return how a file is packed that begins like this, None: not at all."""
    return next((name for magic, name in _PACKED.items() if beginning.startswith(magic)), None)


@contextmanager
def unpacked(file: Any, how: str | None, name: str) -> Iterator[Any]:
    """Give the bytes of a file as an object with `readinto`, and say which file it was that is broken."""
    try:
        if how is None:
            yield file
        elif how == "zstd":
            with _zstd(file, name) as stream:
                yield stream
        else:
            with _OPEN[how](file) as stream:
                yield stream
    except EOFError:
        raise ValueError(f"{name} is truncated: the {how} data ends too early; copy the file again") from None
    except _DAMAGED as error:
        raise ValueError(f"{name} is damaged: {error}; copy the file again") from error
    except OSError as error:
        if how == "bzip2" and error.errno is None:  # how bz2 says that the data are wrong
            raise ValueError(f"{name} is damaged: {error}; copy the file again") from error
        raise


def _zstd(file: Any, name: str) -> Any:
    if _native is not None:
        return _native.ZstdFile(file)
    try:
        import zstandard
    except ImportError:
        raise ImportError(f"{name} is packed with zstd: install the package zstandard to read it") from None
    return io.BufferedReader(_Zstd(file, name, zstandard), 1 << 17)


class _Zstd(io.RawIOBase):
    """Unpacks zstd, and notices where the data end too early, which zstandard's own reader does not."""

    def __init__(self, file: Any, name: str, zstandard: Any) -> None:
        self._file, self._name, self._library = file, name, zstandard
        self._unpacker: Any = None
        self._packed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or a part of it."""
        while not self._ready:
            if not self._packed and not (packed := self._file.read(1 << 14)):
                if self._unpacker is not None:
                    raise EOFError
                return 0
            self._packed = self._packed or packed
            if self._unpacker is None:
                self._unpacker = self._library.ZstdDecompressor().decompressobj()
            try:
                self._ready = memoryview(self._unpacker.decompress(self._packed))
            except self._library.ZstdError as error:
                raise ValueError(f"{self._name} is damaged: {error}; copy the file again") from error
            self._packed = b""
            if self._unpacker.eof:
                self._packed, self._unpacker = self._unpacker.unused_data, None
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n
