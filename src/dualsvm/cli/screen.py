"""What standard error shows of work under way."""

from __future__ import annotations

import io
import shutil
import sys
import time
from collections.abc import Generator
from contextlib import closing, redirect_stdout
from types import TracebackType
from typing import Any

from ..data import Chunk, Dataset

_ERASE = "\x1b[K"  # from here to the end of the line
_SOON, _LATER = 0.1, 30.0  # seconds between updates, on a terminal and elsewhere


class Screen(io.TextIOBase):
    """Standard error: on a terminal one line that is written over, elsewhere a line now and then.

    While it is entered, what is printed appears here: the lines of a fit with ``verbose=1``.
    """

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.live = not quiet and sys.stderr.isatty()
        self._line = ""  # what was last printed, and may be written over
        self._open = False  # whether the terminal shows something that is to be written over
        self._next = time.monotonic() + (_SOON if self.live else _LATER)
        self._printing: Any = None

    def isatty(self) -> bool:
        """Return whether lines are written over."""
        return self.live

    def __enter__(self) -> Screen:
        self._printing = redirect_stdout(self)
        self._printing.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._printing.__exit__(kind, error, at)
        self.close_line()

    def write(self, text: str) -> int:
        """Take what is printed."""
        if text.startswith("\r"):
            self._line = text[1:]
            self._show(self._line)
        elif self._open and text:
            self.close_line()
            sys.stderr.write(text.removeprefix("\n"))
        else:
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        """Have everything appear."""
        sys.stderr.flush()

    def tick(self, text: str) -> None:
        """Tell how far something is, if the last time was a while ago."""
        now = time.monotonic()
        if self.quiet or now < self._next:
            return
        self._next = now + (_SOON if self.live else _LATER)
        if self.live:
            self._show(f"{text}  {self._line}")
        else:
            print(text, file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Tell something once and for all."""
        if not self.quiet:
            self.close_line()
            print(text, file=sys.stderr, flush=True)

    def close_line(self) -> None:
        """Leave the line that is written over as it is."""
        if self._open:
            self._show(self._line)
            sys.stderr.write("\n" if self._line else "\r")
        self._open, self._line = False, ""

    def _show(self, text: str) -> None:
        width = shutil.get_terminal_size().columns
        sys.stderr.write(f"\r{text[: width - 1]}{_ERASE}")
        sys.stderr.flush()
        self._open = True


class Watched(Dataset):
    """A dataset that shows how far it has been read."""

    def __init__(self, dataset: Dataset, screen: Screen, what: str = "") -> None:
        super().__init__(dataset._passes, dataset.ahead)
        self._screen, self._what = screen, what

    def chunks(self, order: Any = None) -> Generator[Chunk, None, None]:
        """Read the chunks once."""
        return self._shown(super().chunks(order))

    def _shown(self, chunks: Generator[Chunk, None, None]) -> Generator[Chunk, None, None]:
        rows = 0
        with closing(chunks):
            for chunk in chunks:
                rows += len(chunk)
                yield chunk
                del chunk  # nothing is kept while the next one is read
                share = f" ({rows / self.n_rows:.0%})" if self.n_rows else ""
                self._screen.tick(f"{self._what}{rows:,} rows{share}")
