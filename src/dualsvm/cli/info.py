"""``dualsvm info``."""

from __future__ import annotations

import inspect
import json
from argparse import Namespace
from contextlib import closing
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import scipy.sparse as sp

from ..checks import Array
from ..chunked.snapshot import FORMAT
from ..data import Dataset
from ..linear import SVMClassifier
from ..solution import Record
from .screen import Screen
from .sources import fitted, opened

_MOST = 20  # classes that are listed


def run(arguments: Namespace) -> int:
    """Tell what a file or a folder holds."""
    a = arguments
    path = Path(a.data)
    if path.is_file() and _begins(path, b"PK"):
        lines = _checkpoint(path) or _model(fitted(a.data))
    else:
        more: dict[str, Any] = {"verify": True} if a.verify else {}
        with opened(a, Screen(a.quiet), again=True, **more) as dataset:
            lines = _data(dataset, a.data)
    print("\n".join(lines))
    return 0


def _begins(path: Path, magic: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read(len(magic)) == magic


def _checkpoint(path: Path) -> list[str]:
    """Return what a checkpoint holds; nothing if it is something else."""
    try:
        with np.load(path, allow_pickle=False) as file:
            meta = json.loads(str(file["meta"]))
            if meta["format"] != FORMAT:
                return []
            records = Record.from_table(file["history"])
    except (KeyError, ValueError, BadZipFile):  # of which `load` tells
        return []
    about = ", ".join(f"{name}={value}" for name, value in meta["about"].items())
    rows, features = ("?" if n is None else f"{n:,}" for n in meta["shape"])
    lines = [f"a checkpoint of a training on {rows} rows x {features} features: {about}"]
    for record in records[-1:]:
        bounds = f"[{record.lower:.8g}, {record.upper:.8g}]: gap {record.gap:.2e}"
        lines.append(f"after {meta['reads']} reads, {meta['seconds']:.0f} s, the optimum lies within {bounds}")
    return lines


def _model(model: Any) -> list[str]:
    defaults = inspect.signature(type(model)).parameters
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in ("tol", "verbose")}
    changed = [f"{name}={value!r}" for name, value in given.items() if not _same(value, defaults[name].default)]
    weights = model.coef_.size
    lines = [f"{type(model).__name__}({', '.join(changed)})"]
    if isinstance(model, SVMClassifier):
        lines.append(_listed(model.classes_))
    lines.append(
        f"{model.n_features_in_:,} features; {weights:,} weights of {model.coef_.dtype}, "
        f"{np.count_nonzero(model.coef_):,} of them not zero"
    )
    support = model.n_support_.sum() if isinstance(model, SVMClassifier) else model.n_support_
    lines.append(f"{support:,} support vectors of {model.dual_coef_.shape[1]:,} rows; {model.n_iter_} passes")
    lines.append(
        f"the optimum lies within [{model.lower_bound_:.8g}, {model.upper_bound_:.8g}]: gap {model.gap_:.2e}, "
        f"{'within' if model.converged_ else 'NOT within'} the tolerance of {model.tol:g}"
    )
    return lines


def _same(value: Any, default: Any) -> bool:
    return value is default or (np.ndim(value) == 0 and not isinstance(value, dict) and value == default)


def _data(dataset: Dataset, path: str) -> list[str]:
    with closing(dataset.chunks()) as chunks:
        first = next(chunks)
    y = None if first.y is None else dataset.targets()
    if dataset.n_rows is None:
        for _ in dataset:
            pass
    form = "sparse" if sp.issparse(first.X) else "dense"
    stored = getattr(dataset._passes.source, "stored", None)
    filled = f", {stored:,} stored" if form == "sparse" and stored is not None else ""
    skipped = f"; {dataset.n_skipped} bad lines left out" if dataset.n_skipped else ""
    lines = [
        f"{dataset.n_rows:,} rows x {dataset.n_features:,} features, {form} {first.X.dtype}{filled}, "
        f"{size_of(path)}, {dataset.n_chunks} chunk{'s' * (dataset.n_chunks != 1)}{skipped}"
    ]
    if y is None:
        lines.append("no targets")
    else:
        lines.append(_listed(*np.unique(y, return_counts=True)))
    if first.weight is not None:
        lines.append("rows have weights")
    if first.qid is not None:
        lines.append("rows belong to queries")
    return lines


def _listed(values: Array, counts: Array | None = None) -> str:
    """Return classes, and how often they occur; of many different numbers, the range."""
    if len(values) > _MOST and values.dtype.kind == "f" and not (values == np.floor(values)).all():
        return f"targets from {values.min():g} to {values.max():g}"
    words = [f"{value:g}" if isinstance(value, float) else str(value) for value in values.tolist()]
    if counts is not None:
        words = [f"{word} ({count:,})" for word, count in zip(words, counts.tolist(), strict=True)]
    return f"{len(words)} classes: {', '.join(words[:_MOST])}{', ...' if len(words) > _MOST else ''}"


def size_of(path: str) -> str:
    """Return how much a file or a folder takes."""
    place = Path(path)
    if place.is_dir():
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    else:
        size = place.stat().st_size if place.is_file() else 0
    return f"{size / 1e6:.3g} MB"
