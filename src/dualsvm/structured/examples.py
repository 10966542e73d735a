"""The examples of a fit: sequences, lazy ones included, or pairs that can only be read in their order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Protocol

import scipy.sparse as sp

from ..checks import Array


class Readable(Protocol):
    """Inputs and outputs of examples, to be read in parts: in their order only, if they are `sequential`.

    `held` tells whether they lie in memory, so that they may be looked at once and for all.
    """

    X: Any
    Y: Any
    n: int
    sequential: bool
    held: bool

    def read(self, which: Array) -> tuple[list[Any], list[Any]]:
        """Return the inputs and outputs of some examples."""


class SparseRows:
    """The rows of a sparse matrix, each a matrix of one row."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix.tocsr()

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def __getitem__(self, i: int) -> Any:
        return self.matrix[[i]]


class Finite:
    """A sequence with a length and elements only, to iterate over: it need not say where it ends otherwise."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, i: int) -> Any:
        return self.values[i]

    def __iter__(self) -> Iterator[Any]:
        return (self.values[i] for i in range(len(self.values)))


def as_sequence(X: Any) -> Any:
    """Return inputs as a sequence; a sparse matrix, which says nothing of its length, by its rows."""
    return SparseRows(X) if sp.issparse(X) and X.ndim == 2 else X


class Examples:
    """Inputs and outputs that can be read in any order."""

    sequential = False

    def __init__(self, X: Any, Y: Any) -> None:
        self._inputs = as_sequence(X)
        for name, part in (("X", self._inputs), ("Y", Y)):
            if not hasattr(part, "__len__") or not hasattr(part, "__getitem__"):
                raise TypeError(
                    f"{name} must be a sequence, with a length and elements, got {type(part).__name__}; "
                    "pairs (x, y) that can be iterated over again and again are given as fit(pairs)"
                )
        self.X, self.Y = (part if hasattr(part, "__iter__") or sp.issparse(part) else Finite(part) for part in (X, Y))
        self.n = len(self._inputs)
        if self.n != len(Y):
            raise ValueError(f"X and Y must have the same length, got {self.n} and {len(Y)}")
        if self.n == 0:
            raise ValueError("X is empty: give at least one example")
        parts = self._inputs, Y
        self.held = all(isinstance(p, list | tuple | SparseRows) or type(p).__module__ == "numpy" for p in parts)

    def read(self, which: Array) -> tuple[list[Any], list[Any]]:
        """Return the inputs and outputs of some examples."""
        X, Y = [], []
        for i in which:
            try:
                X.append(self._inputs[int(i)])
                Y.append(self.Y[int(i)])
            except Exception as error:
                error.add_note(f"while example {i} was read")
                raise
        return X, Y


class Stream:
    """Pairs (x, y) that can be iterated over again and again, but in their order only."""

    sequential = True
    held = False

    def __init__(self, pairs: Any) -> None:
        if not hasattr(pairs, "__iter__"):
            raise TypeError(f"without Y, X must be pairs (x, y) to iterate over, got {type(pairs).__name__}")
        if iter(pairs) is pairs:
            raise TypeError(
                "the pairs can be read only once, as they are an iterator, but several passes are needed: give a "
                "list, or an object whose __iter__ begins again"
            )
        self.pairs = pairs
        self.n = 0
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(f"element {self.n} must be a pair (x, y), got {type(pair).__name__}")
            self.n += 1
        if self.n == 0:
            raise ValueError("there are no pairs: give at least one example")
        self.X, self.Y = Column(pairs, 0, self.n), Column(pairs, 1, self.n)
        self._next = 0
        self._rest: Iterator[Any] = iter(())

    def read(self, which: Array) -> tuple[list[Any], list[Any]]:
        """Return the inputs and outputs of consecutive examples, the first or those after the last read."""
        if which[0] != self._next:
            if which[0] != 0:
                raise ValueError(f"examples can be read in their order only: {self._next} is next, not {which[0]}")
            self._next = 0
        if self._next == 0:
            self._rest = iter(self.pairs)
        some = list(islice(self._rest, len(which)))
        if len(some) < len(which):
            raise ValueError(f"there were {self.n} pairs at first, but now they end after {self._next + len(some)}")
        self._next += len(some)
        return [x for x, _ in some], [y for _, y in some]


class Column:
    """One side of the pairs."""

    def __init__(self, pairs: Any, side: int, n: int) -> None:
        self.pairs, self.side, self.n = pairs, side, n

    def __iter__(self) -> Iterator[Any]:
        return (pair[self.side] for pair in self.pairs)

    def __len__(self) -> int:
        return self.n


def as_examples(X: Any, Y: Any) -> Examples | Stream:
    """Return the examples of a fit."""
    return Stream(X) if Y is None else Examples(X, Y)
