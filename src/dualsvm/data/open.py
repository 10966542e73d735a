"""The way in: what a source is, and who reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..solve import as_threads
from .arrays import Arrays
from .arrow import ArrowStream, Frame
from .dataset import Dataset, as_float
from .iterables import Chunks, is_data_iter
from .parquet import GroupFiles, parquet_files
from .passes import StreamPasses, TablePasses
from .store import Store, is_store
from .svmlight import Text

_ENDINGS = {".parquet": (b"PAR1", "Parquet"), ".arrow": (b"ARROW1", "Arrow"), ".feather": (b"ARROW1", "Arrow")}


def open_dataset(
    source: Any,
    target: Any = None,
    features: Any = None,
    qid: Any = None,
    weight: Any = None,
    chunk_rows: int | None = None,
    *,
    n_features: int | None = None,
    index_base: Any = "auto",
    bad_lines: str = "error",
    dtype: Any = None,
    verify: bool = False,
    read_ahead: int = 1,
    n_jobs: int | None = None,
) -> Dataset:
    r"""Open data of any size, on disk, in a database or in memory, to be read in chunks.

    Parameters
    ----------
    source : path-like or object
        - A file of svmlight text, plain or packed (gzip, bzip2, xz, zstd), or an open binary file of such text.
          Packed text is read in its order only; plain text in any order from the second pass on.
        - A Parquet file, a folder of them, or an Arrow (IPC) file.
        - A store that `Dataset.save` wrote.
        - An array, a memory map or the path of an ``.npy`` file, of shape (n_rows, n_features), or a sparse matrix.
        - A frame of pandas or Polars, a lazy frame, a relation of DuckDB, or any object with ``__arrow_c_stream__``;
          a list of such objects, or a function that returns one.
        - Chunks ``(X, y)``, ``(X, y, weight)`` or ``(X, y, weight, qid)``: a list, an object whose ``__iter__``
          begins again (as a DataLoader of PyTorch), a function that returns an iterator (as a generator function), or
          an object with `next` and `reset` (as xgboost's DataIter). They must come in the same order every time. An
          iterator serves for one pass.
    target : str or array-like, default None
        The targets: the name of a column, or an array if the features are in one. svmlight text and chunks hold their
        own. None otherwise: there are none.
    features : list, default None
        The features: names of columns, or numbers of columns of an array. A column of lists of one fixed size counts
        as so many features. None: all columns that have no other use.
    qid : str or array-like, default None
        The queries that rows belong to: the name of a column, or an array, with any source that holds none itself.
        The rows of a query must be consecutive.
    weight : str or array-like, default None
        The weights of the rows, likewise.
    chunk_rows : int, default None
        Rows of a chunk, about. None: 16 MB of features or text.
    n_features : int, default None
        Width of svmlight text. None: the largest index, known after the first pass, until which chunks get wider.
    index_base : {"auto", 0, 1}, default "auto"
        First index of svmlight text. "auto": 0 if that occurs in the first 16 MB, else 1.
    bad_lines : {"error", "skip"}, default "error"
        Whether a bad line of svmlight text is an error, or is left out and counted in `Dataset.n_skipped`.
    dtype : {None, np.float32, np.float64}, default None
        Type of the features. None: float32 if the source has it, else float64.
    verify : bool, default False
        Whether to read a store through and compare its checksums. Sizes and counts are always compared.
    read_ahead : int, default 1
        Chunks that wait, read by a thread while the caller works on the last one. 0: no thread.
    n_jobs : int, default None
        Threads that decode svmlight text and Parquet. None: one.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import io
    >>> import dualsvm
    >>> text = b"1 qid:3 1:0.5 4:2 # a comment\n-1 qid:3 2:1\n"
    >>> for chunk in dualsvm.open_dataset(io.BytesIO(text), n_features=5):
    ...     chunk.X.toarray().tolist(), chunk.y.tolist(), chunk.qid.tolist()
    ([[0.5, 0.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0]], [1.0, -1.0], [3, 3])
    """
    if chunk_rows is not None:
        if isinstance(chunk_rows, bool) or not isinstance(chunk_rows, int | np.integer) or chunk_rows < 1:
            raise ValueError(f"chunk_rows must be a positive integer or None, got {chunk_rows!r}")
        chunk_rows = int(chunk_rows)
    if isinstance(read_ahead, bool) or not isinstance(read_ahead, int | np.integer) or read_ahead < 0:
        raise ValueError(f"read_ahead must be a number of chunks, 0 or more, got {read_ahead!r}")
    kind = as_float(dtype)
    threads = as_threads(n_jobs)
    text = {"n_features": n_features, "index_base": index_base, "bad_lines": bad_lines}
    given = {"qid": qid, "weight": weight}
    beside = {name: value for name, value in given.items() if value is not None and not isinstance(value, str)}
    names = {name: None if name in beside else value for name, value in given.items()}
    choice = {"target": target, "features": features} | names
    opener = _file if isinstance(source, str | os.PathLike) else _object
    found = opener(source, text, choice, kind, threads)
    if not isinstance(found, Text):
        _unused(text, {"n_features": None, "index_base": "auto", "bad_lines": "error"}, "svmlight text")
    if isinstance(found, Store):
        if verify:
            found.verify()
    elif verify:
        raise ValueError("verify is for stores only, and this source is something else: leave it out")
    passes = StreamPasses if isinstance(found, Text | ArrowStream | Chunks) else TablePasses
    return Dataset(passes(found, chunk_rows, beside, kind), int(read_ahead))


def _unused(given: dict[str, Any], default: dict[str, Any], where: str) -> None:
    """Refuse what has no meaning for a source."""
    for name, value in given.items():
        if value is not default[name] and not (isinstance(value, str) and value == default[name]):
            raise ValueError(f"{name} is for {where} only, and this source is something else: leave it out")


def _nothing(choice: dict[str, Any]) -> None:
    """Refuse every choice of columns, as the source has no names for them."""
    _unused(choice, dict.fromkeys(choice), "named columns and arrays")


def _file(source: Any, text: dict[str, Any], choice: dict[str, Any], dtype: Any, threads: int) -> Any:
    path = Path(source)
    if path.is_dir():
        return _folder(path, choice, threads)
    if path.exists() and not path.is_file():  # a pipe, from which nothing can be read twice
        raise ValueError(f"{str(path)!r} is not a regular file: open it with mode 'rb' and give the open file")
    with open(path, "rb") as file:
        beginning = file.read(8)
    expected = _ENDINGS.get(path.suffix.lower())
    if expected is not None and not beginning.startswith(expected[0]):
        raise ValueError(f"{str(path)!r} is not a whole {expected[1]} file: it begins with {beginning!r}")
    for magic, kind in _ENDINGS.values():
        if beginning.startswith(magic):
            return GroupFiles(repr(str(path)), [path], kind, choice, threads)
    if beginning.startswith(b"\x93NUMPY"):
        return _array(np.load(path, mmap_mode="r"), choice)
    _nothing(choice)
    return Text(path, **text, single=dtype is np.float32, threads=threads)


def _folder(path: Path, choice: dict[str, Any], threads: int) -> Any:
    if is_store(path):
        _nothing(choice)
        return Store(path)
    files = parquet_files(path)
    if not files:
        raise ValueError(f"{str(path)!r} is a folder with neither a store's meta.json nor Parquet files in it")
    return GroupFiles(repr(str(path)), files, "Parquet", choice, threads)


def _object(source: Any, text: dict[str, Any], choice: dict[str, Any], dtype: Any, threads: int) -> Any:
    if sp.issparse(source) or isinstance(source, np.ndarray):
        return _array(source, choice)
    if hasattr(source, "readinto") or hasattr(source, "read"):
        _nothing(choice)
        return Text(source, **text, single=dtype is np.float32, threads=threads)
    if _is_frame(source):
        return Frame(source, choice)
    if not (_is_arrow(source) or hasattr(source, "__iter__") or callable(source) or is_data_iter(source)):
        raise TypeError(
            "the source must be a path, an array, a frame, an object with __arrow_c_stream__ or chunks to iterate "
            f"over, got {type(source).__name__}"
        )
    if _is_arrow(source) or any(value is not None for value in choice.values()):
        return ArrowStream(source, choice)
    _nothing(choice)
    return Chunks(source)


def _is_frame(source: Any) -> bool:
    """Whether it lies in memory and can be read anywhere."""
    kind = type(source)
    known = kind.__module__.split(".")[0] in ("pandas", "polars", "pyarrow")
    return known and kind.__name__ in ("DataFrame", "Table", "RecordBatch")


def _is_arrow(source: Any) -> bool:
    """Whether a source, or its first element, gives Arrow data; lazy frames do once they are collected."""
    first = source[0] if isinstance(source, list | tuple) and source else source
    return hasattr(first, "__arrow_c_stream__") or hasattr(first, "collect")


def _array(X: Any, choice: dict[str, Any]) -> Arrays:
    for name in ("target", "qid", "weight"):
        if isinstance(choice[name], str):
            raise ValueError(f"{name} must be an array when the features are one, got the name {choice[name]!r}")
    return Arrays(X, choice["target"], choice["features"])
