"""Tasks as JSON and plain arrays."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from .. import tasks
from ..checks import Array
from ..linear.encoding import decode, encode
from .labels import Labels


def store_task(task: Any, arrays: dict[str, Array]) -> dict[str, Any] | None:
    """Return a ready-made task as JSON can hold it, with arrays set aside; None for any other."""
    kind = type(task).__name__
    if kind not in tasks.__all__ or type(task) is not getattr(tasks, kind):
        return None
    names = [*inspect.signature(type(task)).parameters, *task.learned]
    return {"kind": kind, "parts": {name: _out(getattr(task, name, None), f"task.{name}", arrays) for name in names}}


def restore_task(meta: dict[str, Any] | None, arrays: dict[str, Array]) -> Any:
    """Return the task that `store_task` was given, or None."""
    if meta is None:
        return None
    if meta["kind"] not in tasks.__all__:
        raise ValueError(f"{meta['kind']} is no ready-made task")
    kind = getattr(tasks, meta["kind"])
    parts = {name: _in(value, arrays) for name, value in meta["parts"].items()}
    task = kind(**{name: parts[name] for name in inspect.signature(kind).parameters})
    learned = {name: parts[name] for name in task.learned if parts[name] is not None}
    for name, value in learned.items():
        setattr(task, name, value)
    if learned:  # else the estimator had not been fitted
        task._settle()
    return task


def _out(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    if isinstance(value, Labels):
        return {"labels": [_label(label, name) for label in value.values]}
    if isinstance(value, list | tuple) and not all(isinstance(p, int | float | list | np.ndarray) for p in value):
        return {"list": [_label(label, name) for label in value]}
    if isinstance(value, dict):
        return {"counts": [[_label(label, name), _label(count, name)] for label, count in value.items()]}
    return encode(value, name, arrays)


def _in(value: Any, arrays: dict[str, Array]) -> Any:
    match value:
        case {"labels": labels}:
            return Labels(_unlabel(label) for label in labels)
        case {"list": labels}:
            return [_unlabel(label) for label in labels]
        case {"counts": counts}:
            return {_unlabel(label): count for label, count in counts}
    return decode(value, arrays)


def _label(label: Any, name: str) -> Any:
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or isinstance(label, bool | int | float | str):
        return label
    if isinstance(label, tuple):
        return [_label(part, name) for part in label]
    raise TypeError(
        f"{name} holds the label {label!r}, a {type(label).__name__}, which a file without pickle cannot hold: use "
        "numbers, text, or tuples of them"
    )


def _unlabel(label: Any) -> Any:
    return tuple(_unlabel(part) for part in label) if isinstance(label, list) else label
