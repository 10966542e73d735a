"""Feature rows as the user gave them, dense or sparse: checked once, never copied without need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from . import _core
from .checks import Array, as_array, as_number

_SOME = 1000  # rows that suffice for a mean
_GOLDEN = (5**0.5 - 1) / 2
_PLACES = np.arange(4 * _SOME) * _GOLDEN % 1.0  # everywhere between 0 and 1
_CHUNK = 1 << 20  # numbers turned into float64 at a time by the plain numpy products


@dataclass(frozen=True)
class Rows:
    """Feature rows with, where `bias` is not zero, a constant feature of that value behind the last."""

    matrix: Any
    bias: float = 0.0

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    @property
    def width(self) -> int:
        """Number of features, the constant one included."""
        return int(self.matrix.shape[1]) + (self.bias != 0)

    @property
    def kernel(self) -> Any:
        """What the kernel reads: the array, or the parts of the sparse matrix."""
        m = self.matrix
        return (m.data, m.indices, m.indptr, m.shape[1]) if sp.issparse(m) else m

    @property
    def numbers(self) -> int:
        """How many numbers are stored."""
        return int(self.matrix.nnz if sp.issparse(self.matrix) else self.matrix.size)

    @property
    def _per_row(self) -> int:
        return max(1, self.numbers // max(1, self.n))

    def _chunks(self) -> Iterator[tuple[slice, Any]]:
        for start in range(0, self.n, size := max(1, _CHUNK // self._per_row)):
            part = slice(start, min(start + size, self.n))
            yield part, self.matrix[part].astype(np.float64)

    def scores(self, w: Array) -> Array:
        """``rows @ w`` in float64, with `w` of shape (width,) or (width, k)."""
        out = np.empty((self.n, *w.shape[1:]))
        d = self.matrix.shape[1]
        for part, x in self._chunks():
            out[part] = x @ w[:d]
        if self.bias != 0:
            out += self.bias * w[d]
        return out

    def combine(self, coefficients: Array) -> Array:
        """``rows.T @ coefficients`` in float64, with coefficients of shape (n,) or (n, k)."""
        d = self.matrix.shape[1]
        out = np.zeros((self.width, *coefficients.shape[1:]))
        for part, x in self._chunks():
            out[:d] += x.T @ coefficients[part]
        if self.bias != 0:
            out[d] = self.bias * coefficients.sum(axis=0)
        return out

    def differences(self, pairs: Array) -> Iterator[tuple[slice, Any]]:
        """Yield ``rows[pairs[:, 0]] - rows[pairs[:, 1]]`` in float64, a part of the pairs at a time."""
        for start in range(0, len(pairs), size := max(1, _CHUNK // self._per_row)):
            part = slice(start, min(start + size, len(pairs)))
            first, second = (self.matrix[pairs[part, side]].astype(np.float64) for side in (0, 1))
            yield part, first - second

    def mean_square(self, variance: Array | None = None) -> float:
        """Return the mean of ``x' S x`` over some of the rows, S the diagonal of a variance of shape (width,)."""
        d = self.matrix.shape[1]
        constant = self.bias**2 * (1.0 if variance is None else variance[d]) if self.bias != 0 else 0.0
        if sp.issparse(self.matrix):
            if (nnz := self.matrix.nnz) == 0:
                return float(constant)
            # entries here and there, as rows may repeat a pattern
            some = (_PLACES * nnz).astype(np.intp)
            squares = np.square(self.matrix.data[some], dtype=np.float64)
            if variance is not None:
                squares *= variance[self.matrix.indices[some]]
            return float(squares.mean() * (nnz / self.n) + constant)
        some = np.square(self.matrix[:: max(1, self.n // _SOME)], dtype=np.float64)
        return float((some.sum(axis=1) if variance is None else some @ variance[:d]).mean() + constant)

    def squares(self) -> Array:
        """Return the sum of squares of every column."""
        d, out = self.matrix.shape[1], np.zeros(self.width)
        if sp.issparse(self.matrix):
            out[:d] = np.bincount(self.matrix.indices, np.square(self.matrix.data, dtype=np.float64), minlength=d)
        else:
            for _, x in self._chunks():
                out[:d] += np.einsum("ij,ij->j", x, x)
        if self.bias != 0:
            out[d] = self.bias**2 * self.n
        return out

    def filled(self) -> float:
        """Return which part of the numbers of dense rows is not zero, as some of the rows tell."""
        some = self.matrix[:: max(1, self.n // _SOME)]
        return float(np.count_nonzero(some) / max(1, some.size))

    def without_zeros(self) -> Rows:
        """Return a sparse copy of dense rows."""
        return Rows(sp.csr_matrix(_core.without_zeros(self.matrix), shape=self.matrix.shape), self.bias)

    def common_first(self, parts: int = 1) -> tuple[Rows, Array]:
        """Return a copy of sparse rows with the columns that many rows have first, and the columns in that order.

        With several parts the columns are dealt out to these, and follow part by part.
        """
        m = self.matrix
        order, columns, values = _core.common_first(m.indptr, m.indices, m.data, m.shape[1], parts)
        return Rows(sp.csr_matrix((values, columns, m.indptr), shape=m.shape), self.bias), order

    def times(self, right: Array) -> Rows:
        """Return the rows, constant feature included, times a matrix: dense float64 rows."""
        return Rows(np.ascontiguousarray(self.scores(right)))


def as_rows(rows: Any, name: str = "rows", bias: float = 0.0, threads: int = 1) -> Rows:
    """Check feature rows and bring them into a form that the kernel reads, without a copy where possible."""
    bias = as_number(bias, "intercept")
    if isinstance(rows, Rows):  # checked before
        return Rows(rows.matrix, bias)
    matrix = _sparse(rows, name, threads) if sp.issparse(rows) else _dense(rows, name)
    if matrix.shape[0] == 0:
        raise ValueError(f"{name} has no rows (shape {matrix.shape}): give at least one")
    if matrix.shape[1] == 0 and bias == 0:
        raise ValueError(f"{name} has no columns (shape {matrix.shape}): give at least one feature")
    if not _core.all_finite(cast(Any, matrix).data if sp.issparse(matrix) else matrix.reshape(-1), threads):
        raise ValueError(f"{name} contains NaN, infinity or a number beyond 1e150: replace or remove those entries")
    return Rows(matrix, bias)


def _dense(rows: Any, name: str) -> Array:
    array = as_array(rows, name)
    if array.ndim != 2:
        raise ValueError(f"{name} must be 2-D (rows x features), got {array.ndim}-D of shape {array.shape}")
    return np.require(array, _float_dtype(array.dtype, name), ["C", "A"])


def _sparse(rows: Any, name: str, threads: int) -> Any:
    csr = rows.tocsr()
    if csr.ndim != 2:
        raise ValueError(f"{name} must be 2-D (rows x features), got {csr.ndim}-D of shape {csr.shape}")
    dtype = _float_dtype(csr.dtype, name)
    data, indices, indptr = csr.data, csr.indices, csr.indptr
    if indices.dtype != indptr.dtype or indices.dtype not in (np.int32, np.int64):
        indices, indptr = indices.astype(np.int64), indptr.astype(np.int64)
    indices, indptr = np.require(indices, None, ["C", "A"]), np.require(indptr, None, ["C", "A"])
    found = _core.check_csr(indptr, indices, csr.shape[1], threads)
    if found == 2 or indptr.size != csr.shape[0] + 1 or data.size < indptr[-1]:
        raise ValueError(
            f"{name} is a broken CSR matrix: its indptr must start at 0, not decrease and end within the data, "
            f"and its indices must lie in 0 .. {csr.shape[1] - 1}; rebuild it, for example from a COO matrix"
        )
    if data.size > indptr[-1] or indices.size > indptr[-1]:  # room to spare, which holds anything
        data, indices = data[: indptr[-1]], indices[: indptr[-1]]
    data = np.require(data, dtype, ["C", "A"])
    if found == 1 or data is not csr.data or indices is not csr.indices or indptr is not csr.indptr:
        csr = sp.csr_matrix((data, indices, indptr), shape=csr.shape, copy=found == 1)
    if found == 1:
        csr.sum_duplicates()
    return csr


def _float_dtype(dtype: np.dtype[Any], name: str) -> type[np.float32] | type[np.float64]:
    if dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {dtype}: convert it to float32 or float64 first")
    return np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64
