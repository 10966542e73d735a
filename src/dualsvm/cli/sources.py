"""DATA and MODEL: what the user names, opened."""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ..data import Dataset, open_dataset
from ..data.chunk import csr
from ..data.store import is_store
from ..linear import SVMClassifier, SVMRanker, SVMRegressor
from ..load import load
from .screen import Screen, Watched


@contextmanager
def opened(
    arguments: Namespace, screen: Screen, again: bool = False, text: dict[str, Any] | None = None, **more: Any
) -> Iterator[Dataset]:
    """Open DATA.

    `again`: it will be read several times, so that standard input and pipes are kept in a temporary store. `text`:
    options in case it is svmlight text, and nothing else was said; `more`: options in any case.
    """
    a = arguments
    options: dict[str, Any] = {
        name: getattr(a, name) for name in ("target", "features", "qid", "weight", "chunk_rows")
    }
    options |= {"n_features": a.n_features, "index_base": a.index_base, "bad_lines": a.bad_lines}
    options |= {"dtype": a.dtype, "n_jobs": a.threads} | more
    with _source(a.data) as source:
        if text and _form(a.data) == "text":
            options |= {name: value for name, value in text.items() if options[name] in (None, "auto")}
        dataset = open_dataset(source, **options)
        if dataset.reiterable or not again:
            yield Watched(dataset, screen, "read ")
            return
        with tempfile.TemporaryDirectory(prefix="dualsvm-") as folder:
            screen.say(f"{a.data} can be read only once: it is kept in a store in {folder} (TMPDIR) meanwhile")
            try:
                store = Watched(dataset, screen, "kept ").save(Path(folder, "store"))
            except OSError as error:
                raise OSError(error.errno, f"{error.strerror} (TMPDIR says where DATA is kept)", folder) from error
            yield Watched(store, screen, "read ")


def _source(path: str) -> Any:
    """Return the path, or a file that can be read only once."""
    if path == "-":
        return nullcontext(sys.stdin.buffer)
    if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():  # a pipe
        return open(path, "rb")
    return nullcontext(path)


def _form(path: str) -> str:
    """Return what a source is: "text", "columns" that have names, or "numbers" that have none."""
    place = Path(path)
    if place.is_dir():
        return "numbers" if is_store(place) else "columns"
    if not place.is_file():
        return "text"
    with open(place, "rb") as file:
        beginning = file.read(6)
    columns, numbers = beginning.startswith((b"PAR1", b"ARROW1")), beginning == b"\x93NUMPY"
    return "columns" if columns else "numbers" if numbers else "text"


def fitted(path: str) -> Any:
    """Return the model in a file."""
    model = load(path)
    if not isinstance(model, SVMClassifier | SVMRegressor | SVMRanker):
        raise ValueError(f"{path!r} holds a {type(model).__name__}, which the command line does not know: use Python")
    if not hasattr(model, "coef_"):
        raise ValueError(f"{path!r} holds a {type(model).__name__} that was not fitted")
    return model


def text_of(model: Any) -> dict[str, Any]:
    """Return how text was read that a model was learned from."""
    return {"index_base": model.index_base_} if hasattr(model, "index_base_") else {}


def columns(model: Any, arguments: Namespace, path: str) -> dict[str, Any]:
    """Return which columns of Arrow data a model speaks of, if DATA is that."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or arguments.features is not None or _form(path) != "columns":
        return {}
    return {"features": names.tolist()}


def aligned(X: Any, width: int) -> Any:
    """Return sparse rows with as many columns as a model has weights; what is beyond counts nothing there."""
    if not hasattr(X, "indptr") or X.shape[1] == width:
        return X
    return csr(X.data, X.indices, X.indptr, width) if X.shape[1] < width else X[:, :width]


def check_place(path: str) -> None:
    """Raise if a file could not be written there: better now than after the work."""
    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise IsADirectoryError(f"{path!r} is a folder: name a file")
    if not place.parent.is_dir():
        raise FileNotFoundError(f"{str(place.parent)!r}, where {path!r} would be written, is not a folder")
    if not os.access(place.parent, os.W_OK):
        raise PermissionError(f"{path!r} cannot be written: no permission to write to {str(place.parent)!r}")
