"""svmlight text: ``target [qid:integer] index:value ... [# comment]``, one row a line."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import _core
from .chunk import Part, csr
from .files import Files, packing, unpacked
from .mapped import expect
from .source import NoRowsError, Reader

BLOCK = 16 << 20  # bytes of text that are parsed at a time
_ROOM = 64  # bytes behind the text that the parser may look at, and one for a line end
_WIDEST = 2**31 - 1
_LONGEST = 1 << 30  # bytes of a line
_SHOWN = 60  # characters of a bad line

_EXPECTED = {
    1: "expected a target, a number, at the beginning",
    2: "expected index:value",
    3: "expected a number behind the colon",
    4: "expected a finite number, of 1e150 at most (and 3.4e38 in float32)",
    5: "index 0, though the indices of this file begin at 1; if they begin at 0, give index_base=0",
    6: "the index is beyond the declared width, n_features={width}",
    7: "expected an index below 2**31",
    8: "the index comes twice",
    9: "the index is smaller than the one before: indices must increase",
    10: "expected an integer behind qid:",
    11: "expected a qid, as the lines before have one",
    12: "expected no qid, as the lines before have none",
}


class Text:
    """A stream of rows from svmlight text: a file, packed or not, or an open binary file, which is read once."""

    trusted = True
    feature_names: list[str] | None = None
    chunk_rows: int | None = None

    def __init__(
        self,
        source: Any,
        n_features: int | None = None,
        index_base: Any = "auto",
        bad_lines: str = "error",
        single: bool = False,
        threads: int = 1,
    ) -> None:
        if n_features is not None and not (isinstance(n_features, int | np.integer) and 0 < n_features <= _WIDEST):
            raise ValueError(f"n_features must be an integer from 1 to {_WIDEST}, got {n_features!r}")
        if index_base not in ("auto", 0, 1):
            raise ValueError(f'index_base must be 0, 1 or "auto", got {index_base!r}')
        if not isinstance(bad_lines, str) or bad_lines not in ("error", "skip"):
            raise ValueError(f'bad_lines must be "error" or "skip", got {bad_lines!r}')
        self.once = not isinstance(source, str | os.PathLike)
        self.name = "the text" if self.once else repr(os.fspath(source))
        self._files = Files([] if self.once else [source])
        self._stream = _Peeked(source) if self.once else None
        self.n_features = None if n_features is None else int(n_features)
        self._declared = _WIDEST if n_features is None else int(n_features)
        self._base = index_base
        self._skip = bad_lines == "skip"
        self._single, self._threads = single, threads
        self.n_skipped = 0
        self._how = self._packing()
        self.size = None if self.once or self._how is not None else self._files.bytes

    def _packing(self) -> str | None:
        if self._stream is not None:
            return packing(self._stream.peek(8))
        with open(self._files.paths[0], "rb") as file:
            beginning = file.read(8)
        if not beginning:
            raise NoRowsError(f"{self.name} is empty: it should hold lines of svmlight text")
        return packing(beginning)

    @property
    def index_base(self) -> int | None:
        """First index, None: not known yet."""
        return None if self._base == "auto" else int(self._base)

    def check(self) -> None:
        """Raise if the file has changed."""
        self._files.check()

    def parts(self) -> Iterator[Part]:
        """Read the rows, a block of text at a time."""
        queries, line, skipped, width = 0, 0, 0, self.n_features or 0
        with self._opened() as file:
            for text, size, offset in blocks(file, self.name):
                found = self._parse(text, size, queries, line)
                queries, line = found["queries"], line + found["lines"]
                skipped += found["bad_lines"]
                width = max(width, found["most"] + 1 - self._base)
                part = _part(found, width, offset)
                del found  # nothing is kept while the next block is read
                yield part
                del part
        self.n_skipped = skipped

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """Open what reads rows between bytes once more."""
        with open(self._files.paths[0], "rb", buffering=0) as file:
            yield _Reader(self, file)

    def between(self, file: Any, first: int, last: int) -> Part:
        """Read the rows between two bytes of the open file."""
        file.seek(first)
        text = np.empty(last - first + _ROOM, np.uint8)
        size = _fill(file, text, 0, last - first)
        if first == 0:
            _blank_mark(text, size)
        try:
            found = self._parse(text, _ended(text, size), 0, 0)
        except ValueError as error:  # it could be read before
            raise ValueError(f"{self.name} has changed since it was opened: open it again") from error
        return _part(found, self.n_features or 0, first)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        if self._stream is not None:
            yield unpacked(self._stream, self._how, self.name)
        else:
            with open(self._files.paths[0], "rb", buffering=0) as file:
                yield unpacked(file, self._how, self.name)

    def _parse(self, text: Any, size: int, queries: int, line: int) -> dict[str, Any]:
        rest = self._skip, queries, self._single, self._threads
        if self._base == "auto":  # a file that begins at 0 shows it soon
            found = _core.read_svmlight(text, size, 0, self._declared + 1, *rest)
            self._base = int(found["least"] != 0)
            if self._base == 1:
                found["indices"] = found["indices"] - np.int32(1)
            elif found["most"] >= self._declared:
                found = _core.read_svmlight(text, size, 0, self._declared, *rest)
        else:
            found = _core.read_svmlight(text, size, self._base, self._declared, *rest)
        if found["bad_lines"] and not self._skip:
            fault, begin, at, before = found["bad"]
            end = begin + bytes(text[begin:size]).index(b"\n")
            raise ValueError(self._complaint(fault, bytes(text[begin:end]), at - begin, line + before + 1))
        return found

    def _complaint(self, fault: int, text: bytes, at: int, line: int) -> str:
        if fault == 6 and self._declared == _WIDEST:
            fault = 7
        expected = _EXPECTED[fault].format(width=self._declared)
        if b"\0" in text:
            expected += "; there are zero bytes: is this a text file?"
        first = max(0, at - _SHOWN // 2) if len(text) > _SHOWN else 0
        shown = text[first : first + _SHOWN].decode("utf-8", "replace").rstrip("\r")
        shown = ("..." if first else "") + shown + ("..." if first + _SHOWN < len(text) else "")
        return (
            f"{self.name}, line {line}, column {at + 1}: {expected}, got {shown!r}; mend the line, "
            'or give bad_lines="skip" to leave such lines out'
        )


class _Reader:
    """Reads rows of text that is not packed from any place at which a line begins."""

    def __init__(self, text: Text, file: Any) -> None:
        self._text, self._file = text, file

    def read(self, start: int, stop: int) -> Part:
        return self._text.between(self._file, start, stop)

    def expect(self, start: int, stop: int) -> None:
        expect(self._file, start, stop - start)


def _part(found: dict[str, Any], width: int, offset: int) -> Part:
    X = csr(found["values"], found["indices"], found["indptr"], width)
    return Part(X, found["target"], None, found["qid"], found["where"] + offset)


def blocks(file: Any, name: str, block: int | None = None) -> Iterator[tuple[Any, int, int]]:
    """Yield whole lines of text: an array, how much of it is in use, and the position of its first byte."""
    size = block or BLOCK
    text, filled, offset = np.empty(size + _ROOM, np.uint8), 0, 0
    while True:
        filled = _fill(file, text, filled, size)
        if offset == 0:
            _blank_mark(text, filled)
        if filled < size:
            if filled:
                yield text, _ended(text, filled), offset
            return
        last = _last_line_end(text, filled)
        if last == 0:
            if size >= _LONGEST:
                raise ValueError(f"{name} has a line of more than {size} bytes: is this a text file?")
            text, size = np.concatenate([text[:filled], np.empty(size + _ROOM, np.uint8)]), 2 * size
            continue
        yield text, last, offset
        text[: filled - last] = text[last:filled].copy()
        filled, offset = filled - last, offset + last


def _fill(file: Any, text: Any, filled: int, size: int) -> int:
    view = memoryview(text)
    while filled < size and (n := file.readinto(view[filled:size])):
        filled += n
    return filled


def _blank_mark(text: Any, size: int) -> None:
    """Make blanks of the mark with which some editors begin a file."""
    if bytes(text[: min(3, size)]) == b"\xef\xbb\xbf":
        text[:3] = ord(" ")


def _ended(text: Any, size: int) -> int:
    """End the last line, if it is not ended, and return how long the text is then."""
    if size and text[size - 1] != ord("\n"):
        text[size] = ord("\n")
        return size + 1
    return size


def _last_line_end(text: Any, size: int) -> int:
    """Return the position behind the last line end, 0 if there is none."""
    step = 1 << 16
    for stop in range(size, 0, -step):
        start = max(0, stop - step)
        if (found := bytes(text[start:stop]).rfind(b"\n")) >= 0:
            return start + found + 1
    return 0


class _Peeked(io.RawIOBase):
    """A binary file of which the beginning can be looked at."""

    def __init__(self, file: Any) -> None:
        self._file, self._front = file, b""

    def peek(self, n: int) -> bytes:
        """Return the first n bytes, or fewer if there are not so many."""
        while len(self._front) < n and (more := self._file.read(n - len(self._front))):
            if not isinstance(more, bytes):
                raise TypeError("the source must be a binary file, opened with mode 'rb'")
            self._front += more
        return self._front[:n]

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or a part of it."""
        some = self._front or self._file.read(len(buffer))
        buffer[: len(some)] = some[: len(buffer)]
        self._front = some[len(buffer) :]
        return min(len(some), len(buffer))
