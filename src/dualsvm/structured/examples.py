"""The examples of a fit: sequences, lazy ones included, or what can only be read in its order: pairs, datasets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import islice, pairwise
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from ..checks import Array
from ..data import Chunk, Dataset
from ..data.chunk import between
from ..data.cut import query_starts

PART = 1000  # examples that are held at once, to look at them, to complete them or to predict their outputs


class Readable(Protocol):
    """Inputs and outputs of examples, to be read in parts: in their order only, if they are `sequential`.

    `held` tells whether they lie in memory, so that they may be looked at once and for all, and `most` how many may
    be read at once. `weight` is what they count, where they say so themselves.
    """

    X: Any
    Y: Any
    n: int
    sequential: bool
    held: bool
    most: int
    weight: Array | None

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
    most = sys.maxsize
    weight: Array | None = None

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
    most = sys.maxsize
    weight: Array | None = None

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
        self.X = Column(pairs, 0, self.n)
        self.Y: Any = Column(pairs, 1, self.n)

    _next = 0
    _rest: Iterator[Any] = iter(())

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


class Pairs:
    """The rows of a dataset as pairs (x, y), read in chunks: those of a query make one, or else each row does.

    Inputs are rows or tables of rows, sparse where the dataset is; a sparse row is a table of one. Outputs are arrays
    of targets, or one target: where a row is an example, and where the targets of a query are to be `alike`.
    """

    def __init__(self, dataset: Dataset, alike: bool) -> None:
        self.dataset, self.alike = dataset, alike

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        with closing(self.dataset.chunks()) as chunks:
            for chunk in chunks:
                yield from self.of(chunk)

    def of(self, chunk: Chunk) -> Iterator[tuple[Any, Any]]:
        """Return the pairs of a chunk."""
        X, outputs = chunk.X, Outputs(np.asarray(chunk.y), self.starts(chunk), self.alike or chunk.qid is None)
        if chunk.qid is not None or sp.issparse(X):
            return zip((between(X, a, b) for a, b in pairwise(outputs.starts)), outputs, strict=True)
        return zip(X, outputs, strict=True)

    def starts(self, chunk: Chunk) -> Array:
        """Return where examples begin in a chunk, and its length behind that."""
        n = len(chunk)
        return np.arange(n + 1) if chunk.qid is None else np.append(query_starts(chunk.qid), n)


class Outputs:
    """The outputs of the examples of a dataset, which lie in memory: all targets of an example, or the one it has."""

    def __init__(self, targets: Array, starts: Array, one: bool) -> None:
        self.targets, self.starts, self._one = targets, starts, one

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> Any:
        own = self.targets[self.starts[i] : self.starts[i + 1]]
        return own[0].item() if self._one else own

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


class Rows(Stream):
    """The examples of a dataset, read in chunks, of which no more than a few are in memory."""

    def __init__(self, pairs: Pairs) -> None:
        name, count, one = pairs.dataset.name, 0, pairs.alike
        starts, targets, weights = [], [], []
        for chunk in pairs.dataset:
            if chunk.y is None:
                raise ValueError(f"{name} has no targets: say which column or array they are in with target=...")
            at = pairs.starts(chunk)
            if pairs.alike:
                _same(chunk.y, at, chunk, f"the targets of a query of {name} must be the same, as it has one output")
            if chunk.weight is not None:
                weights.append(_same(chunk.weight, at, chunk, f"the weights of a query of {name} must be the same"))
            starts.append(at[:-1] + chunk.start)
            targets.append(chunk.y)
            count, one = count + 1, one or chunk.qid is None
        Y = np.concatenate(targets)
        self.pairs, self.Y = pairs, Outputs(Y, np.append(np.concatenate(starts), len(Y)), one)
        self.n = len(self.Y)
        self.X = Column(pairs, 0, self.n)
        self.most = max(1, self.n // count)
        self.weight = np.concatenate(weights) if weights else None


def _same(values: Array, starts: Array, chunk: Chunk, message: str) -> Array:
    """Return the one value that each example has for all its rows."""
    first = values[starts[:-1]]
    other = np.flatnonzero(values != np.repeat(first, np.diff(starts)))
    if len(other):
        k = other[0]
        began = first[np.searchsorted(starts, k, side="right") - 1]
        raise ValueError(f"{message}, but query {np.asarray(chunk.qid)[k]} has {began} and {values[k]}")
    return first


def as_examples(X: Any, Y: Any, sample_weight: Any = None, alike: bool = False) -> Readable:
    """Return the examples of a fit; `alike`: those of a dataset have one output each."""
    if not isinstance(X, Dataset):
        return Stream(X) if Y is None else Examples(X, Y)
    if Y is not None or sample_weight is not None:
        raise ValueError("a dataset holds its targets and weights itself: say where they are in open_dataset")
    if not X.reiterable:
        raise ValueError(f"{X.name} can be read only once, but several passes are needed: save it, see Dataset.save")
    examples = Rows(Pairs(X, alike))
    if X.n_chunks != 1:
        return examples
    held = Examples(*zip(*examples.pairs, strict=True))
    held.weight = examples.weight
    return held


def parts_of(which: Array, most: int) -> list[Array]:
    """Return examples in parts of so many at most."""
    return np.array_split(which, -(-len(which) // most)) if len(which) else []
