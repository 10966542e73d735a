"""Labels of any hashable type."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from ..checks import Array


class Labels:
    """The labels of a task, any hashable values, and their numbers; None and NaN stand for a missing label."""

    def __init__(self, values: Iterable[Hashable]) -> None:
        self.values = list(dict.fromkeys(v.item() if isinstance(v, np.generic) else v for v in values))
        self.number = {value: k for k, value in enumerate(self.values)}
        kinds = {type(value) for value in self.values}
        plain = len(kinds) == 1 and issubclass(next(iter(kinds)), bool | int | float | str)
        self.array = np.array(self.values) if plain else np.empty(len(self.values), dtype=object)
        if not plain:
            self.array[:] = self.values

    @classmethod
    def of(cls, seen: list[Any]) -> Labels:
        """Return labels that were seen in outputs, in their order if they have one."""
        if not seen:
            raise ValueError("Y holds no label: give at least one")
        try:
            return cls(sorted(seen))
        except TypeError:  # labels that cannot be compared stay as they came
            return cls(seen)

    def __len__(self) -> int:
        return len(self.values)

    def encode(self, y: Any, name: str) -> Array:
        """Return the numbers of labels, -1 for a missing one."""
        codes = [-1 if missing(label) else self.number.get(label, -2) for label in _listed(y)]
        if -2 in codes:
            label = _listed(y)[codes.index(-2)]
            known = ", ".join(map(repr, self.values[:10])) + (", ..." if len(self) > 10 else "")
            raise ValueError(
                f"{name} has the label {label!r}, which was not seen in training: labels are {known}; "
                "name those that are still to come by labels=..."
            )
        return np.array(codes, dtype=np.int32)

    def decode(self, codes: Array) -> Array:
        """Return the labels of numbers."""
        return self.array[codes]


def labels_in(Y: Iterable[Any]) -> list[Any]:
    """Return the labels that occur in outputs."""
    return list(dict.fromkeys(label for y in Y for label in _listed(y) if not missing(label)))


def missing(label: Any) -> bool:
    """Whether a label stands for one that is not known."""
    return label is None or (isinstance(label, float) and label != label)


def _listed(y: Any) -> list[Any]:
    if isinstance(y, np.ndarray):
        return y.ravel().tolist()
    try:
        return list(y)
    except TypeError:
        raise ValueError(f"an output must be a sequence of labels, got {y!r}") from None
