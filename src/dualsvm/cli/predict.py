"""``dualsvm predict``."""

from __future__ import annotations

import os
import secrets
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..checks import Array
from ..linear import SVMClassifier
from .screen import Screen
from .sources import aligned, check_place, columns, fitted, opened, text_of
from .tally import tally_of


def run(arguments: Namespace) -> int:
    """Predict chunk by chunk."""
    a = arguments
    model, screen = fitted(a.model), Screen(a.quiet)
    aside = a.out != "-" and (Path(a.out).is_file() or not Path(a.out).exists())
    if aside:
        check_place(a.out)
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    tally, width, wider, targets = tally_of(model), model.n_features_in_, 0, False
    with (
        opened(a, screen, text=text_of(model), **columns(model, a, a.data)) as dataset,
        _written(a.out, aside) as out,
    ):
        _check_names(model, dataset.feature_names, dataset.name)
        for chunk in dataset:
            wider = max(wider, chunk.X.shape[1])
            X = aligned(chunk.X, width)
            scores = model.decision_function(X) if isinstance(model, SVMClassifier) else model.predict(X)
            predicted = _decided(model, scores)
            out.write(_lines(scores) if a.scores else _labels(model, predicted))
            if chunk.y is not None and (chunk.y.dtype.kind in "biuf") == (predicted.dtype.kind in "biuf"):
                targets = True
                tally.add(model, X, chunk.y, chunk.qid, predicted)
            del chunk, X
    screen.close_line()
    if wider > width:
        screen.say(f"features beyond the {width:,} of the model, up to {wider:,}, count nothing")
    if dataset.n_skipped:
        screen.say(f"{dataset.n_skipped} bad lines were left out")
    if targets and not a.quiet:
        for line in tally.lines():
            print(line, file=sys.stderr if a.out == "-" else sys.stdout)
    return 0


def _check_names(model: Any, names: list[str] | None, where: str) -> None:
    """Refuse features with other names than those that were learned from."""
    known = getattr(model, "feature_names_in_", None)
    if known is not None and names is not None and known.tolist() != names:
        raise ValueError(f"{where} has features {names[:5]}..., but the model knows {known[:5].tolist()}...")


def _decided(model: Any, scores: Array) -> Array:
    """Return what scores mean."""
    if not isinstance(model, SVMClassifier):
        return scores
    codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    return np.asarray(model.classes_[codes])


def _labels(model: Any, predicted: Array) -> str:
    if not isinstance(model, SVMClassifier):
        return _lines(predicted)
    words = np.array([_word(label) for label in model.classes_.tolist()], dtype=object)
    return "\n".join(words[np.searchsorted(model.classes_, predicted)].tolist()) + "\n"


def _word(label: Any) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _lines(scores: Array) -> str:
    """Return numbers in full precision, those of a row on one line."""
    if scores.ndim == 1:
        return "\n".join(scores.astype(str).tolist()) + "\n"
    return "".join(" ".join(line) + "\n" for line in scores.astype(str).tolist())


@contextmanager
def _written(path: str, aside: bool) -> Iterator[Any]:
    """Open what to write to; a file appears, or is replaced, only when it is complete."""
    if path == "-":
        yield sys.stdout
        return
    if not aside:  # a pipe, or /dev/null
        with open(path, "w", encoding="utf-8") as file:
            yield file
        return
    place = Path(os.path.realpath(path))
    draft = place.with_name(f".{place.name}.{secrets.token_hex(6)}.draft")
    try:
        with open(draft, "x", encoding="utf-8") as file:
            yield file
        os.replace(draft, place)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
