"""What rows with classes state: one problem, or one for every class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from ..checks import Array, as_class_loss, as_vector
from ..data import Chunk, Dataset
from ..problem import Problem
from .chunks import Learner, Reads, State
from .terms import Terms


class ClassLearner(Learner):
    """Learns from chunks of rows with classes.

    Parameters
    ----------
    model : SVMClassifier
        Whose parameters and classes hold.
    dataset : Dataset
        What to learn from.
    reads : Reads
        How often to read.
    weight : array or None
        Factors on the costs, by class.
    """

    def __init__(self, model: Any, dataset: Dataset, reads: Reads, weight: Array | None) -> None:
        self._weight, known = weight, model.classes_
        self._titles, outputs, _ = statement(model, np.arange(len(known)), np.ones(len(known)), None)
        super().__init__(model, dataset, outputs, self._state, self._prepare, reads, len(self._titles))
        self._small = next(kind for kind in (np.int8, np.int16, np.int32) if len(known) <= np.iinfo(kind).max)

    @property
    def titles(self) -> list[str]:
        """What to call the problems."""
        return self._titles

    def codes(self, chunk: Chunk) -> Array | None:
        """Return the numbers of the classes of a chunk."""
        return chunk.y

    def _prepare(self, chunk: Chunk) -> Chunk:
        known, name = self.model.classes_, self.dataset.name
        if chunk.y is None:
            raise ValueError(f"{name} has no targets: say which column they are in with target=...")
        codes = np.minimum(np.searchsorted(known, chunk.y), len(known) - 1)
        if not np.array_equal(known[codes], chunk.y):
            strange = chunk.y[known[codes] != chunk.y][0]
            raise ValueError(f"{name} holds a class that is not among {known.tolist()}: {strange!r}")
        return replace(chunk, y=codes.astype(self._small), qid=None)

    def _state(self, chunk: Chunk) -> State:
        codes = np.asarray(chunk.y, dtype=np.int64)
        return statement(self.model, codes, self.model._cost_of(chunk, self._weight, codes), self.margin)[2]


def statement(model: Any, codes: Array, cost: Array, margin: Any) -> tuple[list[str], int, State]:
    """Return titles of the problems of these examples, the number of outputs, and what makes the problems."""
    n, k = len(codes), len(model.classes_)
    if not isinstance(model.multi_class, str) or model.multi_class not in ("crammer_singer", "ovr"):
        raise ValueError(f'multi_class must be "crammer_singer" or "ovr", got {model.multi_class!r}')
    if not isinstance(model.rescaling, str) or model.rescaling not in ("margin", "slack"):
        raise ValueError(f'rescaling must be "margin" or "slack", got {model.rescaling!r}')
    if model.multi_class == "ovr" and k > 2 and model.class_loss is not None:
        raise ValueError('class_loss does not apply to multi_class="ovr": every class is told from the rest')
    common: dict[str, Any] = {"cost": cost, "loss": model.loss, "intercept": model._bias()}
    margins = np.ones(n) if margin is None else as_vector(margin, "margin", n, "row of X")

    def each(X: Any, terms: Terms) -> list[Problem]:
        """Every class against the rest; of two classes, the second against the first."""
        wanted = range(k) if k > 2 else [1]
        return [
            Problem.binary(X, 2 * (codes == c).view(np.int8) - 1, margin=margins, **common, **terms.of(output))
            for output, c in enumerate(wanted)
        ]

    def together(X: Any, terms: Terms) -> list[Problem]:
        own: dict[str, Any] = {
            "class_loss": model.class_loss,
            "n_classes": k,
            "rescaling": model.rescaling,
            "margin": margin,
        }
        return [Problem.multiclass(X, codes, **own, **common, **terms.of(slice(None)))]

    if k == 2 and model.class_loss is not None:
        # the margin of a mistake, or its cost
        table = as_class_loss(model.class_loss, 2, codes)[codes, 1 - codes]
        if model.rescaling == "margin":
            margins = margins * table
        else:
            common["cost"] = common["cost"] * table ** (1 + (model.loss == "squared_hinge"))
    one_each = k > 2 and model.multi_class == "ovr"
    titles = [f"class {label}: " for label in model.classes_.tolist()] if one_each else [""]
    return titles, 1 if k == 2 else k, each if k == 2 or one_each else together


def codes_of(y: Array, known: Array) -> Array:
    """Return the numbers of the classes of examples, among the known ones."""
    if strange := [label for label in classes_of(y).tolist() if label not in known.tolist()]:
        raise ValueError(f"y holds classes that are not among {known.tolist()}: {strange}")
    return numbered(y, known)


def numbered(y: Array, classes: Array) -> Array:
    """Return the numbers of the classes of examples, among all classes that there are, sorted."""
    return (y == classes[1]).astype(np.intp) if len(classes) == 2 else np.searchsorted(classes, y)


def _two(y: Array) -> Array | None:
    """Return the two numbers that there are, if there are just two: to sort many takes longer than to see."""
    low, high = y.min(), y.max()
    return np.array([low, high]) if low < high and ((y == low) | (y == high)).all() else None


def classes_of(y: Array) -> Array:
    """Return the classes among labels, sorted, if they can be classes."""
    if y.dtype.kind not in "biufU":
        check_classification_targets(y)
    classes = _two(y) if y.dtype.kind in "iuf" and y.size else None
    if classes is None:
        classes = np.unique(y)
    if y.dtype.kind == "f" and not (classes == np.floor(classes)).all():
        check_classification_targets(y)  # knows what to say of them
    return classes
