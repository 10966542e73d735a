"""Datasets: rows on disk, in a database or in memory, read in chunks as often as needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from ..checks import Array
from .ahead import read_ahead
from .chunk import Chunk, as_targets
from .passes import StreamPasses, TablePasses
from .write import write_store


class Dataset:
    """Rows on disk, in a database or in memory, read in chunks: `dualsvm.open_dataset` makes one.

    Iterating over it gives a `Chunk` at a time, which a thread reads ahead, and begins again with every ``for`` loop.
    Chunks are the same in every pass. What the source does not tell is known after the first whole pass.

    Attributes
    ----------
    n_rows, n_features, n_chunks : int or None
        Numbers of rows, features and chunks. None: not known yet.
    shape : tuple
        ``(n_rows, n_features)``.
    feature_names : list of str or None
        Names of the features, where they have any.
    seekable : bool
        Whether chunks can be read in any order: tables always, svmlight text that is not packed after its first pass.
    reiterable : bool
        Whether several passes are possible.
    widening : bool
        Whether chunks get wider in the course of the next pass: the first one over svmlight text whose width was not
        declared.
    n_skipped : int
        Number of bad lines that the last whole pass left out, with ``bad_lines="skip"``.
    index_base : int or None
        First index of svmlight text, or of that which a store was made from. None: there is none, or it is not known
        yet.

    Examples
    --------
    >>> import numpy as np
    >>> import dualsvm
    >>> X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    >>> dataset = dualsvm.open_dataset(X, target=y, chunk_rows=2)
    >>> dataset.shape, dataset.n_chunks
    ((6, 2), 3)
    >>> [chunk.X.sum().item() for chunk in dataset]
    [6.0, 22.0, 38.0]
    """

    def __init__(self, passes: TablePasses | StreamPasses, ahead: int = 1) -> None:
        self._passes, self.ahead = passes, ahead

    @property
    def name(self) -> str:
        """What messages call the source."""
        return self._passes.name

    @property
    def n_rows(self) -> int | None:
        """Number of rows, None: not known yet."""
        return self._passes.n_rows

    @property
    def n_features(self) -> int | None:
        """Number of features, None: not known yet."""
        return self._passes.n_features

    @property
    def n_chunks(self) -> int | None:
        """Number of chunks, None: not known yet."""
        return None if self._passes.cuts is None else len(self._passes.cuts) - 1

    @property
    def shape(self) -> tuple[int | None, int | None]:
        """Numbers of rows and features."""
        return self.n_rows, self.n_features

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, where they have any."""
        return self._passes.source.feature_names

    @property
    def seekable(self) -> bool:
        """Whether chunks can be read in any order."""
        return self._passes.seekable

    @property
    def reiterable(self) -> bool:
        """Whether several passes are possible."""
        return self._passes.reiterable

    @property
    def widening(self) -> bool:
        """Whether chunks get wider in the course of the next pass, as its width is not known yet."""
        return self._passes.widening

    @property
    def n_skipped(self) -> int:
        """Number of bad lines that the last whole pass left out."""
        return self._passes.n_skipped

    @property
    def index_base(self) -> int | None:
        """First index of svmlight text, or of that which a store was made from."""
        base: int | None = getattr(self._passes.source, "index_base", None)
        return base

    def __repr__(self) -> str:
        rows, features = ("?" if n is None else n for n in self.shape)
        return f"<Dataset: {rows} rows x {features} features from {self.name}>"

    def __iter__(self) -> Iterator[Chunk]:
        return self.chunks()

    def chunks(
        self, order: Sequence[int] | Array | np.random.Generator | None = None
    ) -> Generator[Chunk, None, None]:
        """Read the chunks once, in a given order.

        Parameters
        ----------
        order : sequence of int or Generator, default None
            Numbers of the chunks to read, in this order; this asks for a `seekable` dataset. Or a random generator,
            for an order as random as the source allows: any order where it can seek; the row groups of Parquet and
            Arrow files in any order, each read through; else the source's own. None: the source's own order.

        Returns
        -------
        generator of Chunk
            Closing it, or leaving a ``for`` loop over it, ends the reading.

        Examples
        --------
        >>> import numpy as np
        >>> import dualsvm
        >>> dataset = dualsvm.open_dataset(np.ones((6, 2)), chunk_rows=2)
        >>> [chunk.start for chunk in dataset.chunks([2, 0])]
        [4, 0]
        >>> sorted(chunk.index for chunk in dataset.chunks(np.random.default_rng(0)))
        [0, 1, 2]
        """
        return read_ahead(self._passes.begin(order), self.ahead)

    def targets(self) -> Array:
        r"""Return the targets of all rows; where the source does not have them in one place, this takes a pass.

        Returns
        -------
        ndarray of shape (n_rows,)

        Examples
        --------
        >>> import io
        >>> import dualsvm
        >>> dualsvm.open_dataset(io.BytesIO(b"1 3:2.5\n-1 1:1 2:1\n")).targets().tolist()
        [1.0, -1.0]
        """
        found = self._passes.targets()
        if found is None and isinstance(self._passes, StreamPasses):
            parts = [chunk.y for chunk in self]
            found = None if parts[0] is None else np.concatenate([y for y in parts if y is not None])
        if found is None:
            raise ValueError(f"{self.name} has no targets: say which column or array they are in with target=...")
        return as_targets(found, len(found))

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        dtype: Any = None,
        overwrite: bool = False,
        callback: Callable[[Chunk], Any] | None = None,
    ) -> Dataset:
        """Write the dataset, in one pass, to a store: the form that is read fastest, and in any order.

        A store is a folder of plain ``.npy`` files (values, target, weight, qid; indices and indptr if sparse) and a
        small ``meta.json``. It appears under its name only when it is whole; a process that is killed on the way
        leaves a hidden folder beside it, with ``.draft`` at its end, which may be deleted.

        Parameters
        ----------
        path : path-like
            The folder to make.
        dtype : {None, np.float32, np.float64}, default None
            Type of the features. None: float32 if that changes none of them, else float64.
        overwrite : bool, default False
            Whether to replace a store that is there, when the new one is whole. Nothing else is ever replaced.
        callback : callable, default None
            Called with every chunk that has been written.

        Returns
        -------
        Dataset
            What was written, opened.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> import dualsvm
        >>> dataset = dualsvm.open_dataset(np.eye(3), target=np.array([1, -1, 1]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = dataset.save(pathlib.Path(folder) / "eye")
        ...     store.shape, next(iter(store)).X.dtype, sorted(p.name for p in pathlib.Path(folder, "eye").iterdir())
        ((3, 3), dtype('float32'), ['meta.json', 'target.npy', 'values.npy'])
        """
        from .open import open_dataset

        with closing(self.chunks()) as chunks:
            write_store(path, chunks, self._known, as_float(dtype), overwrite, callback)
        return open_dataset(path, read_ahead=self.ahead)

    def _known(self) -> dict[str, Any]:
        """Return what a store is to remember beside the rows."""
        return {"feature_names": self.feature_names, "index_base": self.index_base}


def as_float(dtype: Any) -> Any:
    """Return a type of features, None for none."""
    if dtype is None:
        return None
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32, float64 or None, got {dtype!r}")
    return kind.type
