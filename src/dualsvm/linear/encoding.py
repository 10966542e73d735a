"""Parameters and attributes of estimators as JSON and plain arrays."""

from __future__ import annotations

import hashlib
import json
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..checks import Array
from ..prior import Prior
from ..solution import Record, Round


def encode(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    """Return a value as JSON can hold it, with arrays set aside under the given name."""
    if isinstance(value, np.bool_ | np.number):
        arrays[name] = np.asarray(value)
        return {"scalar": name}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Prior):
        parts = (("mean", value.mean), ("variance", value.variance), ("covariance", value.covariance))
        return {"prior": {key: encode(part, f"{name}.{key}", arrays) for key, part in parts}}
    if isinstance(value, dict):
        if not all(isinstance(key, str | int | float | np.bool_ | np.number) for key in value):
            raise TypeError(f"{name} has keys that a file without pickle cannot hold: use numbers or text")
        items = enumerate(value.items())
        return {"items": [[encode(p, f"{name}.{k}.{side}", arrays) for side, p in enumerate(i)] for k, i in items]}
    if sp.issparse(value):
        for part in ("data", "indices", "indptr"):
            arrays[f"{name}.{part}"] = getattr(value.tocsr(), part)
        return {"sparse": name, "shape": list(value.shape)}
    for record, word in ((Record, "records"), (Round, "rounds")):
        if isinstance(value, list) and value and all(isinstance(part, record) for part in value):
            arrays[name] = np.array(value, dtype=np.float64)
            return {word: name}
    array = np.asarray(value)
    if array.dtype == object and array.ndim == 1 and all(isinstance(part, str) for part in array):
        return {"strings": array.tolist()}
    if array.dtype.kind not in "biufUMm":
        kind = f"an array of {array.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        raise TypeError(
            f"{name} is {kind}, which a file without pickle cannot hold: use numbers, text, arrays of them, and for "
            "random_state an integer"
        )
    arrays[name] = array
    return {"array": name}


def as_text(value: Any, name: str) -> str:
    """Return a value as a short text that tells it from others, most likely."""
    if isinstance(value, Real) and not isinstance(value, bool):
        return json.dumps(float(value))
    arrays: dict[str, Array] = {}
    text = json.dumps(encode(value, name, arrays))
    if not arrays:
        return text
    digest = hashlib.sha256(text.encode())
    for key, array in sorted(arrays.items()):
        digest.update(f"{key} {array.dtype.str} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    whole = next(iter(arrays.values()))
    told = f"{whole.tolist()} " if len(arrays) == 1 and whole.size <= 10 else ""
    return f"{told}({digest.hexdigest()[:16]})"


def decode(value: Any, arrays: dict[str, Array]) -> Any:
    """Return what `encode` was given; lists come back as arrays."""
    if not isinstance(value, dict):
        return value
    match value:
        case {"prior": parts}:
            return Prior(**{key: decode(part, arrays) for key, part in parts.items()})
        case {"items": items}:
            return {decode(key, arrays): decode(part, arrays) for key, part in items}
        case {"sparse": name, "shape": shape}:
            parts = tuple(arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
            table = sp.csr_array(parts, shape=tuple(shape))
            table.check_format(full_check=True)  # otherwise a forged file could make scipy write anywhere
            return table
        case {"records": name}:
            return Record.from_table(arrays[name])
        case {"rounds": name}:
            return Round.from_table(arrays[name])
        case {"strings": words}:
            return np.array(words, dtype=object)
        case {"array": name}:
            return arrays[name]
        case {"scalar": name}:
            return arrays[name][()]
    raise ValueError(f"unknown entry {value!r}")
