"""What happens on a worker: a piece of the data becomes checked chunks, or pairs."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.sizeof import sizeof

from ..checks import Array, as_vector
from ..data import Chunk, Dataset, open_dataset
from ..data.chunk import Part, as_part, as_weights, csr
from ..data.source import NoRowsError
from ..structured.examples import Pairs, Rows, as_sequence

FIELDS = ("X", "y", "weight", "qid", "margin")  # what may come in blocks, in this order


@dataclass(frozen=True)
class Piece:
    """A part of the data, which one worker holds: blocks on workers, or a path that the worker opens.

    Attributes
    ----------
    number : int
        Its place among the pieces.
    name : str
        What messages call it.
    fields : tuple of str
        What the blocks are, of `FIELDS`; or "loaded", what `load` made of them.
    futures : tuple of Future
        The blocks. They stay behind when a piece travels, and have to be arguments of whatever looks at it.
    path : str or None
        What to open, with `options`, instead.
    options : dict
        Arguments of `open_dataset`.
    margin : float or None
        The margin that all rows have.
    """

    number: int
    name: str
    fields: tuple[str, ...] = ()
    futures: tuple[Any, ...] = ()
    path: str | None = None
    options: dict[str, Any] | None = None
    margin: float | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Piece, (self.number, self.name, self.fields, (), self.path, self.options, self.margin)


class Loaded(list[Chunk]):
    """The chunks of a piece, without empty ones, and what chunks do not tell.

    Attributes
    ----------
    names : list of str or None
        Names of the features.
    margin : ndarray, float or None
        The margins of all rows, or the one that they share.
    grows : bool
        Whether the width is that of the longest row only, as in text, so that other pieces may be wider.
    index_base : int or None
        The first index of text.
    """

    names: list[str] | None = None
    margin: Any = None
    grows = False
    index_base: int | None = None

    def alike(self, width: int | None = None, dtype: Any = None, margin: Any = None) -> Loaded:
        """Return the same with chunks of this width and type, without a copy of those that have them."""
        same = Loaded(self._as(chunk, width, dtype) for chunk in self)
        same.names, same.margin, same.grows, same.index_base = self.names, margin, self.grows, self.index_base
        return same

    def _as(self, chunk: Chunk, width: int | None, dtype: Any) -> Chunk:
        X = chunk.X
        if width is not None and X.shape[1] != width:
            if not self.grows or X.shape[1] > width:
                raise ValueError(f"X has {X.shape[1]} columns, but {width} are expected")
            X = csr(X.data, X.indices, X.indptr, width)
        if dtype is not None and X.dtype != dtype:
            X = X.astype(dtype)
        return chunk if X is chunk.X else replace(chunk, X=X)


@sizeof.register(Loaded)
def _bytes(loaded: Loaded) -> int:
    """Return what the rows take, so that they are moved only where that pays."""
    beside = sum(a.nbytes for c in loaded for a in (c.y, c.weight, c.qid) if a is not None)
    return beside + sum(Part(chunk.X).bytes for chunk in loaded)


def load(piece: Piece, *blocks: Any, width: int | None = None, dtype: Any = None) -> Loaded:
    """Make checked chunks of a piece.

    Parameters
    ----------
    piece : Piece
        The piece.
    *blocks : object
        The results of its futures: features are arrays, sparse matrices or frames. Or one block that holds all: a
        tuple (X, y), (X, y, weight) or (X, y, weight, qid), a `Chunk`, a `Dataset`, or what `load` has returned.
    width, dtype : int and dtype, default None
        What the chunks of all pieces have in common, once that is known.

    Returns
    -------
    Loaded
        Its chunks: CSR, or C-contiguous, of float32 or float64, without a copy of what is that already.
    """
    try:
        if piece.path is not None:
            loaded = _read(piece)
        elif piece.fields == ("loaded",):
            loaded = blocks[0]
        elif isinstance(blocks[0], Dataset):
            loaded = _read(piece, blocks[0])
        else:
            loaded = _checked(dict(zip(piece.fields, blocks, strict=True)))
        return loaded.alike(width, dtype, loaded.margin if piece.margin is None else piece.margin)
    except (TypeError, ValueError) as error:
        raise _named(error, piece) from error


def _named(error: Exception, piece: Piece) -> Exception:
    """Return an error that says which piece it is about."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(str(error) if str(error).startswith(piece.name) else f"{piece.name}: {error}")


def _dataset(piece: Piece) -> Dataset:
    """Open the dataset of a piece."""
    try:
        return open_dataset(piece.path, **(piece.options or {}))
    except OSError as error:
        where = f"{piece.name} cannot be opened on {platform.node()}"
        raise type(error)(
            f"{where}: {error.strerror or error}; every worker must find the data under this path"
        ) from error


def _read(piece: Piece, dataset: Dataset | None = None) -> Loaded:
    """Read all chunks of a dataset."""
    try:
        dataset = _dataset(piece) if dataset is None else dataset
        grows = dataset.widening
        loaded = Loaded(dataset)
    except NoRowsError:
        return Loaded()
    loaded.names, loaded.index_base, loaded.grows = dataset.feature_names, dataset.index_base, grows
    return loaded.alike(max(chunk.X.shape[1] for chunk in loaded)) if grows else loaded


def _checked(given: dict[str, Any]) -> Loaded:
    """Make a chunk of blocks."""
    X = given["X"]
    if isinstance(X, Chunk):
        X = X.X, X.y, X.weight, X.qid
    if isinstance(X, tuple):
        if len(given) > 1 or not 1 <= len(X) <= 4:
            raise ValueError(
                f"a tuple must be (X, y), (X, y, weight) or (X, y, weight, qid), alone; got {len(X)} elements"
                + "".join(f", and {name}" for name in list(given)[1:])
            )
        given = dict(zip(FIELDS, X, strict=False))
    loaded = Loaded()
    X, loaded.names = as_features(given["X"])
    n = X.shape[0]
    if (margin := given.get("margin")) is not None:
        loaded.margin = as_vector(_flat(margin, n), "margin", n, "row of X")
    parts: list[Any] = [given.get(name) for name in ("y", "weight", "qid")]
    if n:
        part = as_part(Part(X, *parts))
        loaded.append(Chunk(part.X, part.y, part.weight, part.qid))
    elif any(np.shape(part)[:1] not in ((), (0,)) for part in parts):
        raise ValueError("X has no rows, but there are targets, weights or queries")
    return loaded


def _flat(values: Any, n: int) -> Array:
    array = np.asarray(values)
    return array.reshape(n) if array.shape == (n, 1) else array


def as_features(block: Any) -> tuple[Any, list[str] | None]:
    """Return the features of a block, an array or a sparse matrix, and the names of their columns, if they have any.

    Parameters
    ----------
    block : array-like, sparse matrix or frame
        Also the sparse arrays of the package of that name.
    """
    names = None
    if type(block).__module__.split(".")[0] == "pandas" and hasattr(block, "columns"):
        columns = list(block.columns)
        names = columns if all(isinstance(column, str) for column in columns) else None
        X = _of_frame(block)
    elif sp.issparse(block):
        X = block
    elif hasattr(block, "tocsr"):
        X = block.tocsr()
    else:
        X = np.asarray(block)
    if X.ndim != 2:
        raise ValueError(f"X must be 2-D (rows x features), got {X.ndim}-D of shape {X.shape}")
    return X, names


def _of_frame(frame: Any) -> Any:
    """Return the numbers of a frame of pandas."""
    import pandas as pd

    kinds = []
    for column, kind in zip(frame.columns, frame.dtypes, strict=True):
        inner = kind.subtype if isinstance(kind, pd.SparseDtype) else kind
        found = getattr(inner, "numpy_dtype", inner)  # of columns with missing values
        if not isinstance(found, np.dtype) or found.kind not in "fiub":
            raise ValueError(f"column {column!r} holds {kind}, not numbers: turn it into numbers, or leave it out")
        kinds.append(found)
    if kinds and all(isinstance(kind, pd.SparseDtype) for kind in frame.dtypes):
        return frame.sparse.to_coo().tocsr()
    common = np.result_type(*kinds) if kinds else np.dtype(np.float64)
    X = frame.to_numpy(dtype=np.float32 if common in (np.float16, np.float32) else np.float64, na_value=np.nan)
    if not np.isfinite(X).all():
        column = frame.columns[np.flatnonzero(~np.isfinite(X).all(axis=0))[0]]
        raise ValueError(f"column {column!r} contains NaN or infinity: fill in those values, or leave the rows out")
    return X


class PairList(list[tuple[Any, Any]]):
    """The pairs (x, y) of a piece; `weight` is what they count, where that is said."""

    weight: Array | None = None


def load_pairs(piece: Piece, *blocks: Any, alike: bool = False) -> PairList:
    """Return the pairs (x, y) of a piece.

    Parameters
    ----------
    piece : Piece
        The piece.
    *blocks : object
        The results of its futures: pairs, or inputs and outputs, or a `Dataset`.
    alike : bool, default False
        Whether the targets of a query are to be one output, for a piece that is a dataset.

    Returns
    -------
    list of tuple
    """
    try:
        if piece.fields == ("loaded",):
            return blocks[0]
        if piece.path is not None:
            return _rows_as_pairs(_dataset(piece), alike)
        if isinstance(blocks[0], Dataset):
            return _rows_as_pairs(blocks[0], alike)
        return _paired(dict(zip(piece.fields, blocks, strict=True)))
    except NoRowsError:
        return PairList()
    except (TypeError, ValueError) as error:
        raise _named(error, piece) from error


def _rows_as_pairs(dataset: Dataset, alike: bool) -> PairList:
    rows = Rows(Pairs(dataset, alike))
    found = PairList(rows.pairs)
    found.weight = rows.weight
    return found


def _paired(given: dict[str, Any]) -> PairList:
    """Make pairs of blocks."""
    X, Y, weight = (given.get(name) for name in ("X", "y", "weight"))
    X = as_sequence(X)
    if Y is not None:
        Y = Y if hasattr(Y, "__len__") else list(Y)
        X = X if hasattr(X, "__len__") else list(X)
        if len(X) != len(Y):
            raise ValueError(f"there are {len(X)} inputs, but {len(Y)} outputs")
        found = PairList((X[i], Y[i]) for i in range(len(X)))
    else:
        found = PairList()
        for k, pair in enumerate(X):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(f"element {k} must be a pair (x, y), got {type(pair).__name__}")
            found.append((pair[0], pair[1]))
    if weight is not None:
        found.weight = as_weights(weight, len(found))
    return found
