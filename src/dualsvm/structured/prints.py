"""Fingerprints, by which a fit tells whether constraints found earlier are still those of an example."""

from __future__ import annotations

import hashlib
import inspect
import secrets
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp


def fingerprint(*parts: Any) -> int:
    """Return 64 bits that values of any kind share with equal ones; those that cannot be read share it with none."""
    text = hashlib.blake2b(digest_size=8)
    for part in parts:
        _read(part, text)
    return int.from_bytes(text.digest(), "little")


def settings_of(task: Any) -> list[Any]:
    """Return what makes a task what it is: its kind, parameters, and what it has learned, but no counters."""
    try:
        names = [*inspect.signature(type(task)).parameters]
    except (TypeError, ValueError):
        names = []
    names += [*getattr(task, "learned", ()), "size_joint_feature"]
    return [type(task).__qualname__, *((name, getattr(task, name, None)) for name in names)]


def _read(value: Any, text: Any) -> None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        text.update(f"{len(value)} values".encode())
        for part in value:
            _read(part, text)
    elif sp.issparse(value):
        table = value.tocoo()
        _read([table.shape, *table.coords, table.data], text)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        text.update(f"{value.dtype.str} {value.shape}".encode())
        text.update(np.ascontiguousarray(value))
    elif value is None or isinstance(value, bool | int | float | str | bytes):
        text.update(f"{type(value).__name__} {value!r}".encode())
    else:
        try:
            text.update(joblib.hash(value).encode())
        except Exception:  # what cannot be pickled is never known again
            text.update(secrets.token_bytes(8))


def same_output(one: Any, other: Any) -> bool:
    """Whether two outputs are the same, be one a list and the other an array."""
    one, other = _plain(one), _plain(other)
    if isinstance(one, list) != isinstance(other, list):  # a string may be a sequence of labels
        one, other = ([*h] if isinstance(h, str) else h for h in (one, other))
    try:
        if one == other:
            return True
    except ValueError:  # of arrays within other objects
        pass
    return fingerprint(one) == fingerprint(other)


def _plain(output: Any) -> Any:
    if sp.issparse(output):
        output = output.toarray()
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, list | tuple):
        return [_plain(part) for part in output]
    return None if isinstance(output, float) and output != output else output  # NaN is a missing label, as None is
