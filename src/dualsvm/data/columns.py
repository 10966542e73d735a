"""Columns of Arrow data: which of them are features, and how they become rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import Array
from .chunk import Part


def pyarrow() -> Any:
    """Return pyarrow, or say what to install."""
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError("Parquet and Arrow data are read with pyarrow: pip install 'dualsvm[arrow]'") from None
    return pa


class Columns:
    """What the columns of a schema are to a dataset."""

    def __init__(self, schema: Any, name: str, target: Any, features: Any, qid: Any, weight: Any) -> None:
        self._pa = pyarrow()
        self._name, self._names = name, list(schema.names)
        self.target, self.qid = self._one(target, "target"), self._one(qid, "qid")
        self.weight = self._one(weight, "weight")
        special = [column for column in (self.target, self.qid, self.weight) if column is not None]
        if features is None:
            chosen = [column for column in self._names if column not in special]
        else:
            chosen = [features] if isinstance(features, str) else list(features)
        for column in chosen:
            self._one(column, "features")
        if not chosen:
            raise ValueError(f"{name} has no columns left for features: its columns are {_listed(self._names)}")
        self.features = chosen
        self.read = list(dict.fromkeys([*chosen, *special]))
        types = [schema.field(column).type for column in chosen]
        self._check(types)
        lists = [kind.list_size for kind in types if self._pa.types.is_fixed_size_list(kind)]
        self.width = len(types) - len(lists) + sum(lists)
        self.dtype = np.float32 if all(self._is_single(kind) for kind in types) else np.float64
        self.names = None if lists else chosen

    def _one(self, column: Any, what: str) -> str | None:
        if column is None:
            return None
        if not isinstance(column, str):
            raise ValueError(f"{what} must be the name of a column of {self._name}, got {type(column).__name__}")
        if column not in self._names:
            raise ValueError(f"{self._name} has no column {column!r} for {what}: it has {_listed(self._names)}")
        if self._names.count(column) > 1:
            raise ValueError(f"{self._name} has several columns {column!r}: rename them")
        return column

    def _check(self, kinds: list[Any]) -> None:
        known = self._pa.types
        for column, kind in zip(self.features, kinds, strict=True):
            inner = kind.value_type if known.is_fixed_size_list(kind) else kind
            tests = known.is_floating, known.is_integer, known.is_boolean, known.is_decimal
            if not any(test(inner) for test in tests):
                raise ValueError(
                    f"column {column!r} of {self._name} holds {kind}, not numbers: turn it into numbers, or name the "
                    "columns to use in features"
                )

    def _is_single(self, kind: Any) -> bool:
        """Whether float32 holds all values of a type."""
        known = self._pa.types
        inner = kind.value_type if known.is_fixed_size_list(kind) else kind
        small = known.is_int8(inner) or known.is_int16(inner) or known.is_uint8(inner) or known.is_uint16(inner)
        return bool(small or known.is_boolean(inner) or known.is_float32(inner) or known.is_float16(inner))

    def part(self, batch: Any) -> Part:
        """Return the rows of a record batch."""
        if self.names is None:
            X = np.column_stack([self._features(batch, column) for column in self.features]).astype(self.dtype)
        else:
            kind = self._pa.from_numpy_dtype(self.dtype)
            arrays = [self._values(batch, column).cast(kind, safe=False) for column in self.features]
            rows = self._pa.RecordBatch.from_arrays(arrays, names=self.features)
            X = rows.to_tensor(row_major=True).to_numpy()
        y = None if self.target is None else self._numbers(self._values(batch, self.target))
        qid = None if self.qid is None else self._numbers(self._values(batch, self.qid))
        weight = None if self.weight is None else self._numbers(self._values(batch, self.weight))
        return Part(X, y, weight, qid)

    def _features(self, batch: Any, column: str) -> Array:
        """Return a column, or one of lists as so many columns."""
        values = self._values(batch, column)
        if self._pa.types.is_fixed_size_list(values.type):
            values = values.flatten()
            self._refuse_nulls(values, column)
        return self._numbers(values).reshape(batch.num_rows, -1)

    def _values(self, batch: Any, column: str) -> Any:
        values = batch.column(column)
        if isinstance(values, self._pa.ChunkedArray):
            values = values.combine_chunks()
        self._refuse_nulls(values, column)
        return values

    def _refuse_nulls(self, values: Any, column: str) -> None:
        if values.null_count:
            raise ValueError(
                f"column {column!r} of {self._name} holds missing values: fill them in, or leave them out"
            )

    def _numbers(self, values: Any) -> Array:
        known = self._pa.types
        if known.is_dictionary(values.type):
            values = values.dictionary_decode()
        if known.is_decimal(values.type):
            values = values.cast(self._pa.float64())
        return np.asarray(values.to_numpy(zero_copy_only=False))

    def whole(self, table: Any, column: str) -> Array:
        """Return a column of a table that is in memory."""
        return self._numbers(self._values(table, column))


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:10])) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
