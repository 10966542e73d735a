"""What learns from a stream, and LIBLINEAR, which does not: one adapter each.

name, package   what the table calls it, and the distribution that holds it
streams         whether it holds no more than a part of the data in memory
covers(task)    whether it minimises this
after           weights after numbers of passes over the data, in their order; where several settings are tried, the
                weights of each
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import linear_model, svm
from sklearn.exceptions import ConvergenceWarning

import dualsvm

from .data import Data
from .tasks import Task

CHUNKS = 20
TOL = 1e-5  # so that it is the passes that end a fit of ours


def opened(data: Data) -> Any:
    """Return the data as a dataset of chunks."""
    return dualsvm.open_dataset(data.X, target=data.y, chunk_rows=-(-len(data.y) // CHUNKS))


class Ours:
    """SVMClassifier, with room in memory for a share of the data."""

    package, streams = "dualsvm", True

    def __init__(self, share: float) -> None:
        self.share = share
        self.name = f"dualsvm, cache {100 * share:g} %"

    def covers(self, task: Task) -> bool:
        return True

    def model(self, data: Data, task: Task, tol: float, **more: Any) -> Any:
        kind = {} if task.kind == "binary" else {"multi_class": task.kind}
        cache = self.share * data.bytes / 1e6
        common = {"C": task.cost, "fit_intercept": False, "tol": tol, "cache_mb": cache, "random_state": 0}
        return dualsvm.SVMClassifier(**common, **kind, **more)

    def after(self, data: Data, task: Task, passes: Sequence[int]) -> Iterator[list[np.ndarray]]:
        for k in passes:
            yield [_weights(self.model(data, task, TOL).fit(opened(data), passes=k).coef_)]


class SGD:
    """scikit-learn's SGDClassifier, fed chunk by chunk; the last weights, and the mean of all."""

    name, package, streams = "SGDClassifier", "scikit-learn", True

    def covers(self, task: Task) -> bool:
        return task.kind in ("binary", "ovr")

    def after(self, data: Data, task: Task, passes: Sequence[int]) -> Iterator[list[np.ndarray]]:
        common = {"loss": task.loss, "alpha": 1.0 / (task.cost * len(data.y)), "fit_intercept": False}
        models = [linear_model.SGDClassifier(average=mean, random_state=0, **common) for mean in (False, True)]
        rng, classes, dataset = np.random.default_rng(0), np.unique(data.y), opened(data)
        for k in range(1, passes[-1] + 1):
            for chunk in dataset.chunks(rng):
                for model in models:
                    model.partial_fit(chunk.X, chunk.y, classes=classes)
            if k in passes:
                yield [_weights(model.coef_) for model in models]


class VowpalWabbit:
    """Vowpal Wabbit at several settings; its steps do not depend on how many passes there will be."""

    name, package, streams = "vowpalwabbit", "vowpalwabbit", True
    settings = ("", "-l 0.05", "--sgd -l 0.05", "--coin", "--ftrl")

    def covers(self, task: Task) -> bool:
        return task.kind in ("binary", "ovr")

    def after(self, data: Data, task: Task, passes: Sequence[int]) -> Iterator[list[np.ndarray]]:
        from vowpalwabbit import Workspace

        width, classes = data.X.shape[1], np.unique(data.y)
        l2 = 1.0 / (task.cost * len(data.y))
        several = "" if task.kind == "binary" else f"--oaa {len(classes)}"
        bits = int(np.ceil(np.log2(width * (1 if task.kind == "binary" else len(classes))))) + 1
        with tempfile.TemporaryDirectory() as folder:
            text = Path(folder, "text")
            self.write(text, data, classes, task)
            for k in passes:
                found = []
                for setting in self.settings:
                    told = f"-d {text} -c --passes {k} --holdout_off --loss_function hinge --noconstant --quiet"
                    workspace = Workspace(f"{told} --l2 {l2!r} -b {bits} {several} {setting}")
                    outputs = range(1 if task.kind == "binary" else len(classes))
                    w = np.array([[workspace.get_weight(j, c) for j in range(width)] for c in outputs])
                    workspace.finish()
                    found.append(_weights(w))
                yield found

    def write(self, path: Path, data: Data, classes: np.ndarray, task: Task) -> None:
        X = sp.csr_matrix(data.X)
        labels = data.y if task.kind == "binary" else np.searchsorted(classes, data.y) + 1
        with open(path, "w") as file:
            for i, label in enumerate(labels.astype(int).tolist()):
                at = slice(X.indptr[i], X.indptr[i + 1])
                pairs = zip(X.indices[at].tolist(), X.data[at].tolist(), strict=True)
                file.write(f"{label} | {' '.join(f'{j}:{x:.9g}' for j, x in pairs)}\n")


class InMemory:
    """LIBLINEAR, through LinearSVC, with all rows in memory: it sees them in one random order after the other."""

    name, package, streams = "LinearSVC, in memory", "scikit-learn", False

    def covers(self, task: Task) -> bool:
        return True

    def after(self, data: Data, task: Task, passes: Sequence[int]) -> Iterator[list[np.ndarray]]:
        kind = "crammer_singer" if task.kind == "crammer_singer" else "ovr"
        X = sp.csr_matrix(data.X, dtype=np.float64)
        common = {"loss": task.loss, "multi_class": kind, "C": task.cost, "fit_intercept": False}
        for k in passes:
            model = svm.LinearSVC(dual=True, tol=1e-12, max_iter=k, random_state=0, **common)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                yield [_weights(model.fit(X, data.y).coef_)]


def _weights(coef: np.ndarray) -> np.ndarray:
    return coef.ravel().copy() if len(coef) == 1 else coef.copy()
