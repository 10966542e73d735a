"""Files: whether they are still what they were, what they hold, and what they hold when unpacked."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

try:
    from compression import zstd as _native
except ImportError:  # before Python 3.14
    _native = None

_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
# frames to be skipped, with which those begin that were packed in several threads
_PACKED |= {bytes([k, 0x2A, 0x4D, 0x18]): "zstd" for k in range(0x50, 0x60)}
_BLOCK = 1 << 15  # packed bytes that are read at a time


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


def unpacked(file: Any, how: str | None, name: str) -> Any:
    """Return an object whose `readinto` gives the bytes of a file."""
    return file if how is None else _Unpacked(file, how, name)


def _unpacker(how: str, name: str) -> tuple[Callable[[], Any], type[Exception]]:
    """Return what makes an object that unpacks, and how that says that the data are wrong."""
    if how == "gzip":
        return lambda: zlib.decompressobj(16 + zlib.MAX_WBITS), zlib.error
    if how == "bzip2":
        return bz2.BZ2Decompressor, OSError
    if how == "xz":
        return lzma.LZMADecompressor, lzma.LZMAError
    if _native is not None:
        return _native.ZstdDecompressor, _native.ZstdError
    try:
        import zstandard
    except ImportError:
        raise ImportError(f"{name} is packed with zstd: install the package zstandard to read it") from None
    return zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError


class _Unpacked(io.RawIOBase):
    """Unpacks a file, which may consist of several packed ones, and notices where the data end too early.

    The readers of the standard library take a second file whose beginning is damaged for the end.
    """

    def __init__(self, file: Any, how: str, name: str) -> None:
        self._file, self._how, self._name = file, how, name
        self._make, self._error = _unpacker(how, name)
        self._now: Any = None  # what unpacks, None between files
        self._packed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or a part of it."""
        while not self._ready:
            if not self._packed and not (packed := self._file.read(_BLOCK)):
                if self._now is not None:
                    raise ValueError(
                        f"{self._name} is truncated: the {self._how} data ends too early; copy the file again"
                    )
                return 0
            self._packed = self._packed or packed
            if self._now is None:
                if self._how in ("gzip", "xz"):
                    self._packed = self._packed.lstrip(b"\0")  # with which they may be filled up
                    if not self._packed:
                        continue
                self._now = self._make()
            self._unpack()
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def _unpack(self) -> None:
        try:
            self._ready = memoryview(self._now.decompress(self._packed))
        except self._error as error:
            raise ValueError(f"{self._name} is damaged: {error}; copy the file again") from error
        self._packed = b""
        if self._now.eof:
            self._packed, self._now = self._now.unused_data, None
