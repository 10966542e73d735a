"""Chunks that come from the user's own code: lists, generators, functions, objects like xgboost's DataIter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from ..checks import as_array
from .chunk import Part
from .source import Reader


class Chunks:
    """A stream of rows from (X, y), (X, y, weight) or (X, y, weight, qid), in whatever way they are iterated over."""

    trusted = False
    size: int | None = None
    chunk_rows: int | None = 0
    feature_names: list[str] | None = None
    n_skipped = 0

    def __init__(self, source: Any) -> None:
        self.n_features: int | None = None
        self.once = is_iterator(source)
        self.name = f"the {type(source).__name__}"
        self._source = source

    def check(self) -> None:
        """Do nothing: what has changed shows in the chunks."""

    def parts(self) -> Iterator[Part]:
        """Read the chunks."""
        for element in begin(self._source):
            yield element if isinstance(element, Part) else as_chunk(element)

    def reader(self) -> AbstractContextManager[Reader]:
        """Nothing here has a place in a file."""
        raise NotImplementedError


def begin(source: Any) -> Iterator[Any]:
    """Begin to iterate over a source, from its beginning."""
    if is_data_iter(source):
        return _data_iter(source)
    return iter(source() if is_function(source) else source)


def is_iterator(source: Any) -> bool:
    """Whether it serves for one pass only; it is not begun, as that may have side effects."""
    return hasattr(source, "__iter__") and hasattr(source, "__next__")


def is_function(source: Any) -> bool:
    """Whether it is to be called for something to iterate over."""
    return callable(source) and not any(hasattr(source, name) for name in ("__iter__", "__arrow_c_stream__"))


def as_chunk(element: Any) -> Part:
    """Return what the user's code gave as a part."""
    if not isinstance(element, tuple | list) or not 2 <= len(element) <= 4:
        count = f" of {len(element)}" if isinstance(element, tuple | list) else ""
        raise TypeError(
            f"a chunk must be (X, y), (X, y, weight) or (X, y, weight, qid), got {type(element).__name__}{count}"
        )
    X, *rest = element
    return Part(X if hasattr(X, "tocsr") else as_array(X, "X"), *rest)


def is_data_iter(source: Any) -> bool:
    """Whether it has the methods of xgboost's DataIter."""
    return callable(getattr(source, "next", None)) and callable(getattr(source, "reset", None))


def _data_iter(source: Any) -> Iterator[Part]:
    """Iterate over an object whose `next` hands a batch to a function and tells whether there was one."""
    source.reset()
    given: list[Part] = []
    while source.next(_taker(given)):
        if len(given) != 1:
            raise ValueError(f"next() must hand over one batch a call, but gave {len(given)}")
        yield given.pop()


def _taker(given: list[Part]) -> Callable[..., None]:
    def take(data: Any, *, label: Any = None, weight: Any = None, qid: Any = None, **rest: Any) -> None:
        rest = {name: value for name, value in rest.items() if value is not None}
        unknown = rest.keys() - {"feature_names", "feature_types"}
        if unknown:
            raise ValueError(f"next() gave {', '.join(sorted(unknown))}, which has no meaning here: leave it out")
        given.append(Part(data if hasattr(data, "tocsr") else as_array(data, "data"), label, weight, qid))

    return take
