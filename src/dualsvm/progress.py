"""Whoever watches a solve: the live line, the table, and callbacks. All are views of the record of a pass."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .checks import Array
from .solution import Record

_BAR = 24


class View(Protocol):
    """What a watcher sees of a solve after a pass."""

    @property
    def record(self) -> Record:
        """The record of the pass."""

    @property
    def certified(self) -> bool:
        """Whether the upper bound is that of the present weights."""

    def weights(self) -> Array:
        """Return the present weights, in the shape that the user sees."""


class Watcher:
    """Is told of every pass; whoever returns True ends the solve."""

    def begin(self) -> None:
        """Take note that a pass begins."""

    def tell(self, view: View) -> bool:
        """Take note of a pass that has ended; return whether to stop."""
        raise NotImplementedError

    def settle(self, view: View) -> None:
        """Take note that bounds were found of a pass told of before."""

    def close(self) -> None:
        """Take note that the solve has ended."""


class Line(Watcher):
    """One line for a pass, with a bar that is full when the gap has come down to the tolerance.

    On a terminal the line is written over in place. Elsewhere a new one is written when bounds were certified, and
    for ever fewer of the other passes.
    """

    def __init__(self, tol: float, title: str = "") -> None:
        self.tol, self.title = tol, title
        self.live = sys.stdout is not None and sys.stdout.isatty()
        self.open = False

    def tell(self, view: View) -> bool:
        record = view.record
        step = 10 ** (len(str(record.iteration)) - 1)
        if self.live or view.certified or record.iteration % step == 0:
            line = (
                f"{self.title}pass {record.iteration:>5}  gap {record.gap:>8.2e}  {record.seconds:>8.2f} s  "
                f"active {record.active:>8}  {bar(record.gap, self.tol)}"
            )
            print(f"\r{line}" if self.live else line, end="" if self.live else "\n", flush=True)
            self.open = self.live
        return False

    def settle(self, view: View) -> None:
        self.tell(view)

    def close(self) -> None:
        if self.open:
            print(flush=True)
        self.open = False


class Table(Watcher):
    """All of every record, one line each, which is printed when its bounds are settled: after the next pass."""

    def __init__(self, title: str = "") -> None:
        head = "  pass   visited    active          lower          upper       gap   seconds"
        self.lines = [f"{title}\n{head}" if title else head]

    def tell(self, view: View) -> bool:
        self.close()
        self.settle(view)
        return False

    def settle(self, view: View) -> None:
        record = view.record
        self.lines = [
            f"{record.iteration:>6} {record.explored:>9} {record.active:>9} {record.lower:>14.8g} "
            f"{record.upper:>14.8g} {record.gap:>9.2e} {record.seconds:>9.3f}"
        ]

    def close(self) -> None:
        for line in self.lines:
            print(line, flush=True)
        self.lines = []


class Call(Watcher):
    """A function that takes the record, and ends the solve by returning True."""

    def __init__(self, function: Callable[[Record], Any]) -> None:
        self.function = function

    def tell(self, view: View) -> bool:
        answer = self.function(view.record)
        return isinstance(answer, bool | np.bool_) and bool(answer)


class Halt(Watcher):
    """Ends the solve when told to."""

    def __init__(self) -> None:
        self.now = False

    def tell(self, view: View) -> bool:
        return self.now


def bar(gap: float, tol: float) -> str:
    """Draw how far log10 of the gap has come from 1 to the tolerance."""
    done = 0.0 if gap >= 1 else 1.0
    if tol < gap < 1:
        done = math.log10(gap) / math.log10(max(tol, 1e-16))
    full = int(min(done, 1.0) * _BAR)
    return f"[{'#' * full}{'.' * (_BAR - full)}]"


def printers(verbose: Any, tol: float, title: str = "") -> list[Watcher]:
    """Return what prints at a level of verbosity."""
    if not isinstance(verbose, int | np.integer):
        raise TypeError(f"verbose must be an integer, got {verbose!r}")
    if verbose <= 0:
        return []
    return [Line(tol, title)] if verbose == 1 else [Table(title)]
