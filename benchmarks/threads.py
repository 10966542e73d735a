"""One thread against two: a compiled oracle, and one in Python through joblib."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dualsvm.tasks import Chain

from . import data as sets
from .ocr import LARGE
from .searched import Fitting, Options, Run, fit, line, middle, span

TARGET = 1e-2
LEAST = 1.6  # times as fast with two threads


class Listed:
    """Labels of a few positions, every labelling of which is looked at in Python: a slow oracle."""

    def __init__(self, positions: int, labels: int, width: int) -> None:
        self.labels, self.width = labels, width
        self.size_joint_feature = labels * width + labels * labels
        self.outputs = list(itertools.product(range(labels), repeat=positions))

    def joint_feature(self, x: np.ndarray, y: tuple[int, ...]) -> np.ndarray:
        unary, pairs = np.zeros((self.labels, self.width)), np.zeros((self.labels, self.labels))
        for features, label in zip(x, y, strict=True):
            unary[label] += features
        for a, b in itertools.pairwise(y):
            pairs[a, b] += 1
        return np.concatenate([unary.ravel(), pairs.ravel()])

    def loss(self, y: tuple[int, ...], y_hat: tuple[int, ...]) -> float:
        return float(sum(a != b for a, b in zip(y, y_hat, strict=True)))

    def inference(self, x: np.ndarray, w: np.ndarray) -> tuple[int, ...]:
        return self._best(x, w, None)

    def loss_augmented_inference(self, x: np.ndarray, y: tuple[int, ...], w: np.ndarray) -> tuple[int, ...]:
        return self._best(x, w, y)

    def _best(self, x: np.ndarray, w: np.ndarray, y: tuple[int, ...] | None) -> tuple[int, ...]:
        cut = self.labels * self.width
        unary = (x @ w[:cut].reshape(self.labels, self.width).T).tolist()
        pairs = w[cut:].reshape(self.labels, self.labels).tolist()
        if y is not None:
            unary = [[s + (label != own) for label, s in enumerate(line)] for line, own in zip(unary, y, strict=True)]

        def score(h: tuple[int, ...]) -> float:
            total = sum(line[label] for line, label in zip(unary, h, strict=True))
            return total + sum(pairs[a][b] for a, b in itertools.pairwise(h))

        return max(self.outputs, key=score)


def _listed(n: int = 1000, positions: int = 4, labels: int = 6, width: int = 10) -> Fitting:
    rng = np.random.default_rng(0)
    Y = [tuple(int(label) for label in line) for line in rng.integers(labels, size=(n, positions))]
    centres = rng.normal(size=(labels, width))
    X = [centres[list(y)] + 1.5 * rng.normal(size=(positions, width)) for y in Y]
    return Fitting(partial(Listed, positions, labels, width), X, Y, 0.1)


def _words() -> Fitting:
    data = sets.ocr(LARGE)
    return Fitting(partial(Chain, normalized=True), data.inputs, data.outputs, 1.0 / (0.001 * len(data)))


def threads(name: str, problem: Callable[[], Fitting], options: Options) -> dict[str, Any]:
    made = problem()
    runs: dict[int, list[Run]] = {1: [], 2: []}
    for seed in range(options.repeats):  # in turns, as the machine may be faster now and slower then
        for jobs, some in runs.items():
            some.append(fit(made, TARGET, seed, jobs)[0])
    ratio = middle(runs[1]) / middle(runs[2])
    for jobs, some in runs.items():
        calls = [f"{middle(some, 'calls'):.1f}", "", f"{max(run.held for run in some):,}"]
        told = [] if jobs == 1 else [f"{ratio:.2f}"]
        line(f"{name}, n_jobs={jobs}", f"{TARGET:.0e}", *span(some), *calls, *told)
    if ratio < LEAST:
        options.note(f"{name}: two threads were to be {LEAST:g} times as fast as one")
    return {
        "name": name,
        "ratio": ratio,
        "runs": {jobs: [run._asdict() for run in some] for jobs, some in runs.items()},
    }


ROWS: dict[str, Callable[[Options], dict[str, Any]]] = {
    "threads-ocr": partial(threads, "threads-ocr", _words),
    "threads-python": partial(threads, "threads-python", _listed),
}
