"""Chunks: some rows of a dataset, with what belongs to them, checked and in the form that the kernel reads."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..checks import Array, as_array, as_ids, as_vector
from ..rows import as_rows

_SAMPLE = 1024  # numbers of a chunk that its print looks at


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of a dataset.

    Iterating over a `Dataset` gives these. What they hold is finite and of one kind throughout the dataset.

    Attributes
    ----------
    X : ndarray or CSR array of shape (n, n_features)
        Features, float32 or float64. They may lie in a file that is mapped into memory: do not write to them.
    y : ndarray of shape (n,) or None
        Targets: numbers, or text for classes with names. None if the source holds none.
    weight : ndarray of shape (n,) or None
        Weights of the rows.
    qid : ndarray of shape (n,) or None
        Queries that the rows belong to. All rows of a query are in the same chunk.
    start : int
        Position of the first row in the dataset; the same in every pass.
    index : int
        Number of the chunk.

    Examples
    --------
    >>> import numpy as np
    >>> import dualsvm
    >>> dataset = dualsvm.open_dataset(np.ones((5, 2)), target=np.arange(5), chunk_rows=3)
    >>> [(chunk.index, chunk.start, chunk.stop, chunk.y.tolist()) for chunk in dataset]
    [(0, 0, 3, [0, 1, 2]), (1, 3, 5, [3, 4])]
    """

    X: Any
    y: Array | None = None
    weight: Array | None = None
    qid: Array | None = None
    start: int = 0
    index: int = 0

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def stop(self) -> int:
        """Position behind the last row."""
        return self.start + len(self)


@dataclass(frozen=True, slots=True)
class Part:
    """Rows as a source gives them; `where` tells the byte at which each begins, where that is known."""

    X: Any
    y: Array | None = None
    weight: Array | None = None
    qid: Array | None = None
    where: Array | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def bytes(self) -> int:
        """What the features take."""
        return int(self.X.nnz * (self.X.dtype.itemsize + 4) if sp.issparse(self.X) else self.X.nbytes)

    def between(self, start: int, stop: int) -> Part:
        """Return some of the rows, without a copy of the features."""
        rest = [None if a is None else a[start:stop] for a in (self.y, self.weight, self.qid, self.where)]
        return Part(between(self.X, start, stop), *rest)

    def print(self) -> tuple[int, int]:
        """Return a short number that tells these rows from others, most likely."""
        return print_of(self)


def print_of(rows: Part | Chunk) -> tuple[int, int]:
    """Return a short number that tells rows from others, most likely."""
    X, code = rows.X, 0
    numbers = [X.data, X.indices] if sp.issparse(X) else [X.reshape(-1)]
    if (size := numbers[0].size) > _SAMPLE:  # anywhere: at equal distances they might all be of one column
        some = np.random.default_rng(size).integers(size, size=_SAMPLE)
        numbers = [array[some] for array in numbers]
    for array in (*numbers, X.indptr if sp.issparse(X) else None, rows.y, rows.weight, rows.qid):
        if array is not None:
            code = zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data, code)
    return len(rows), code


def csr(values: Array, indices: Array, indptr: Array, width: int) -> Any:
    """Return a CSR array of these parts; they are put in place, as scipy would copy pieces of larger arrays."""
    X = sp.csr_array((len(indptr) - 1, width), dtype=values.dtype)
    X.data, X.indices, X.indptr = values, indices, indptr
    return X


def between(X: Any, start: int, stop: int) -> Any:
    """Return some rows of a matrix, without a copy of its numbers."""
    if not sp.issparse(X):
        return X[start:stop]
    first, last = X.indptr[start], X.indptr[stop]
    indptr = X.indptr[start : stop + 1]
    kind: Any = np.int32 if last - first < 2**31 and X.shape[1] <= 2**31 else np.int64
    indices = X.indices[first:last].astype(kind, copy=False)
    return csr(X.data[first:last], indices, (indptr - first).astype(kind), X.shape[1])


def joined(parts: Sequence[Part]) -> Part:
    """Return several parts as one; of those from text, the later ones may be wider."""
    if len(parts) == 1:
        return parts[0]
    if sp.issparse(parts[0].X):
        sizes = np.cumsum([0] + [part.X.nnz for part in parts])
        starts = [part.X.indptr[1:].astype(np.int64) + size for part, size in zip(parts, sizes[:-1], strict=True)]
        indptr = np.concatenate([[0], *starts]).astype(np.int32 if sizes[-1] < 2**31 else np.int64, copy=False)
        indices = np.concatenate([part.X.indices for part in parts]).astype(indptr.dtype, copy=False)
        values = np.concatenate([part.X.data for part in parts])
        X = csr(values, indices, indptr, max(part.X.shape[1] for part in parts))
    else:
        X = np.concatenate([part.X for part in parts])
    rest = [_together([getattr(part, name) for part in parts]) for name in ("y", "weight", "qid", "where")]
    return Part(X, *rest)


def _together(arrays: list[Array | None]) -> Array | None:
    given = [array for array in arrays if array is not None]
    return np.concatenate(given) if len(given) == len(arrays) else None


def as_part(part: Part, dtype: Any = None) -> Part:
    """Check what a source gives, and bring it into the form of a chunk, without a copy where possible."""
    X = part.X
    if not sp.issparse(X):
        X = as_array(X, "X")
    if dtype is not None and X.dtype != dtype and X.dtype.kind in "fiub":
        X = X.astype(dtype)
    X = as_rows(X, "X").matrix
    if sp.issparse(X) and (not isinstance(X, sp.csr_array) or X.indices.dtype != np.int32):
        X = between(X, 0, X.shape[0])
    n = X.shape[0]
    y = None if part.y is None else as_targets(part.y, n)
    weight = None if part.weight is None else as_weights(part.weight, n)
    qid = None if part.qid is None else as_ids(_flat(part.qid, n), "qid", n, "row of X")
    return replace(part, X=X, y=y, weight=weight, qid=qid)


def as_weights(weight: Any, n: int) -> Array:
    """Return the weights of rows."""
    vector = as_vector(_flat(weight, n), "weight", n, "row of X")
    if vector.min(initial=0) < 0:
        raise ValueError(f"weight must not be negative, got {vector.min()}")
    return vector


def as_targets(y: Any, n: int) -> Array:
    """Return the targets of rows: numbers as they are, everything else as text."""
    array = _flat(y, n)
    if array.dtype.kind == "O" and all(isinstance(value, str) for value in array):
        array = array.astype(np.str_)
    if array.dtype.kind not in "fiubU":
        raise ValueError(f"y must hold numbers or text, got dtype {array.dtype}")
    if array.shape != (n,):
        raise ValueError(f"y must hold one target per row of X, shape ({n},), got shape {array.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("y contains NaN or infinity: remove or replace those rows")
    kind = np.float64 if array.dtype.kind == "f" and array.dtype.itemsize > 8 else array.dtype.newbyteorder("=")
    return array.astype(kind, copy=False)


def _flat(values: Any, n: int) -> Array:
    """Return one value a row; a table of one column is taken for that column."""
    array = as_array(values, "y")
    return array.reshape(n) if array.shape == (n, 1) else array
