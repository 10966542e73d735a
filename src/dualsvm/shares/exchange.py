"""What travels between shares of the examples and whoever leads them: orders, and reports that add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from ..checks import Array


@dataclass(frozen=True)
class Vector:
    """A vector with a length, as its entries that are not zero, or as all of them, whichever is shorter."""

    length: int
    values: Array
    places: Array | None = None

    @classmethod
    def of(cls, dense: Array) -> Vector:
        """Return a vector as it travels."""
        places = np.flatnonzero(dense)
        narrow = np.int32 if len(dense) < 2**31 else np.int64
        if len(places) * (8 + np.dtype(narrow).itemsize) < dense.nbytes:
            return cls(len(dense), dense[places], places.astype(narrow))
        return cls(len(dense), dense)

    @property
    def dense(self) -> Array:
        """All entries."""
        if self.places is None:
            return self.values
        out = np.zeros(self.length)
        out[self.places] = self.values
        return out

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return int(self.values.nbytes + (0 if self.places is None else self.places.nbytes))

    def __add__(self, other: Vector) -> Vector:
        out = np.zeros(max(self.length, other.length))  # where weights may still come up, some share knows of fewer
        out[: self.length] = self.dense
        out[: other.length] += other.dense
        return Vector.of(out)


@dataclass(frozen=True)
class Order:
    """What a round asks of every share.

    Attributes
    ----------
    z : array
        The weights that all are to agree on.
    freedom : float
        How free each is to differ from them, s.
    pivot : array or None
        The same weights for the last s, where that was another; or where all begin, if they begin `anew`.
    anew : bool
        Whether all begin anew, with nothing but their dual variables.
    effort : float
        Visits of each example, on average, at most.
    better : bool
        Whether the last proof was of the best dual variables so far, which are then to be remembered.
    certify : bool
        Whether to tell the losses at z, along with the dual variables as they were before the round.
    single : bool
        Whether z is then to be rounded to float32 numbers.
    """

    z: Array
    freedom: float = 1.0
    pivot: Array | None = None
    anew: bool = False
    effort: float = 1.0
    better: bool = False
    certify: bool = False
    single: bool = False

    @property
    def offer(self) -> Array:
        """The weights to bound."""
        return self.z.astype(np.float32).astype(np.float64) if self.single else self.z


@dataclass
class Report:
    """What shares tell of a round, or of where they are; reports of several add up.

    Attributes
    ----------
    u : Vector or None
        What their dual variables make, as computed anew, if weights were offered.
    change : Vector or None
        By how much the round has changed it.
    linear, rise : float
        The linear part of the dual before the round, and the change of it.
    loss : float
        What the examples lose at the weights offered; nan where that is not proven.
    gap : float
        What the examples seemed to lack, when they were visited first: no bound.
    visited, awake : int
        Visits, and how many of them found something to gain.
    examples : int
        Number of examples.
    """

    u: Vector | None = None
    change: Vector | None = None
    linear: float = 0.0
    rise: float = 0.0
    loss: float = 0.0
    gap: float = 0.0
    visited: int = 0
    awake: int = 0
    examples: int = 0

    def __add__(self, other: Report) -> Report:
        sums: dict[str, Any] = {}
        for name in (one.name for one in fields(self)):
            mine, yours = getattr(self, name), getattr(other, name)
            if name in ("u", "change"):
                sums[name] = mine if yours is None else yours if mine is None else mine + yours
            else:
                sums[name] = mine + yours
        return Report(**sums)


@dataclass(frozen=True)
class Answer:
    """What some hosts answer; answers of several add up.

    Attributes
    ----------
    sums : sequence
        For every problem, what its shares have reported.
    fresh : frozenset of int
        Hosts that have only just begun, and know nothing of what was asked before: that is all of their answer.
    gone : frozenset of int
        Hosts that are not where they were asked; those that are fresh, too, are nowhere any more.
    each : dict
        What every piece of the data has to say for itself.
    busy : float
        Seconds of work, of the host that took longest.
    nbytes : int
        Of all vectors that were told.
    """

    sums: Sequence[Any] = ()
    fresh: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()
    each: dict[Any, Any] = field(default_factory=dict)
    busy: float = 0.0
    nbytes: int = 0

    def __add__(self, other: Answer) -> Answer:
        sums: Sequence[Any] = self.sums or other.sums
        if self.sums and other.sums:
            sums = [mine + yours for mine, yours in zip(self.sums, other.sums, strict=True)]
        return Answer(
            sums,
            self.fresh | other.fresh,
            self.gone | other.gone,
            self.each | other.each,
            max(self.busy, other.busy),
            self.nbytes + other.nbytes,
        )


class Kept(NamedTuple):
    """The dual variables of a piece of the data, for a file.

    Attributes
    ----------
    print : tuple of int
        Tells the piece from others, most likely.
    arrays : dict of arrays
        What there is to keep; empty where the piece states nothing.
    """

    print: tuple[int, int]
    arrays: dict[str, Array]
