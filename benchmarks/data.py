"""The sets: real ones from the folder that DUALSVM_DATA names, and generated ones."""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import scale


class MissingDataError(Exception):
    """A set cannot be read; the message says why and what to do."""


@dataclass(frozen=True)
class Data:
    name: str
    X: Any  # C-contiguous array, or canonical CSR matrix with int32; in float32, but where said
    y: np.ndarray  # -1 and 1, classes, or targets

    @property
    def bytes(self) -> int:
        """What one pass over X reads."""
        parts = (self.X.data, self.X.indices, self.X.indptr) if sp.issparse(self.X) else (self.X,)
        return sum(part.nbytes for part in parts)


@dataclass(frozen=True)
class Sequences:
    """Sequences one behind the other: those positions of sequence i are start[i] .. start[i+1]."""

    X: np.ndarray  # positions x features, in float64
    y: np.ndarray  # int32
    start: np.ndarray  # int64
    labels: int

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def inputs(self) -> list[np.ndarray]:
        return np.split(self.X, self.start[1:-1])

    @property
    def outputs(self) -> list[np.ndarray]:
        return np.split(self.y, self.start[1:-1])


Sentence = tuple[list[str], list[str], list[str]]  # words, parts of speech, tags of chunks


@lru_cache(maxsize=1)  # rows of one set follow one another
def load(name: str) -> Data:
    return Data(name, *SETS[name]())


def a9a() -> tuple[Any, np.ndarray]:
    X, y = load_svmlight_file(str(_file("a9a/a9a.gz")), n_features=123, dtype=np.float32)
    X = sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    return X, y.astype(np.float64)


def mnist() -> tuple[Any, np.ndarray]:
    """Even digits against odd ones."""
    X, digit = mnist10()
    return X, np.where(digit % 2 == 0, 1.0, -1.0)


def mnist64() -> tuple[Any, np.ndarray]:
    """The same in float64."""
    X, y = mnist()
    return X.astype(np.float64), y


def mnist10(part: str = "train") -> tuple[Any, np.ndarray]:
    """The ten digits, "train" or "t10k", which is for tests."""
    pixels = _idx(_file(f"mnist/{part}-images-idx3-ubyte.gz"), header=16).reshape(-1, 784)
    digit = _idx(_file(f"mnist/{part}-labels-idx1-ubyte.gz"), header=8)
    return pixels.astype(np.float32) / np.float32(255), digit.astype(np.int64)


def news20() -> tuple[Any, np.ndarray]:
    """Twenty newsgroups."""
    with np.load(_file("news20/news20.npz")) as file:
        y = file["train_y"].astype(np.int64)
        entries = file["train_data"], file["train_indices"], file["train_indptr"]
        X = sp.csr_matrix(entries, shape=(len(y), int(file["shape"][-1])))
    X.sum_duplicates()  # and sorts
    return X, y


def news20bin() -> tuple[Any, np.ndarray]:
    """The first of them against the rest."""
    X, y = news20()
    return X, np.where(y == 0, 1.0, -1.0)


def housing() -> tuple[Any, np.ndarray]:
    """California housing in float64: every column, and the target, of mean 0 and variance 1.

    A missing number of bedrooms is replaced by the median; the proximity to the ocean is one column for each value.
    """
    with gzip.open(_file("housing/housing.csv.gz"), "rt", newline="") as stream:
        lines = list(csv.DictReader(stream))
    target, text = "median_house_value", "ocean_proximity"
    numbers = {key: np.array([float(line[key] or "nan") for line in lines]) for key in lines[0] if key != text}
    y = numbers.pop(target)
    columns = [np.where(np.isnan(x), np.nanmedian(x), x) for x in numbers.values()]
    place = np.array([line[text] for line in lines])
    columns += [(place == value).astype(np.float64) for value in np.unique(place)]
    return np.ascontiguousarray(scale(np.column_stack(columns))), scale(y)


def sparse(n: int = 200_000, d: int = 100_000, words: int = 66, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Bags of words drawn by a power law, about 65 distinct ones a row, weighted as tf-idf does.

    The labels are those of a planted w, with noise on the scores and one label in twenty flipped.
    """
    rng = np.random.default_rng(seed)
    p = 1.0 / (np.arange(d) + 10.0)
    p = rng.permutation(p / p.sum())
    row = np.repeat(np.arange(n), rng.poisson(words, n) + 1)
    column = np.minimum(np.searchsorted(np.cumsum(p), rng.random(len(row))), d - 1)
    X = sp.csr_matrix((np.ones(len(row)), (row, column)), shape=(n, d))  # counts: duplicates are summed
    X.data *= -np.log(p)[X.indices]
    X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1).A1), np.diff(X.indptr))
    score = X @ rng.normal(size=d)
    score += 0.5 * score.std() * rng.normal(size=n)
    y = np.where(score > 0, 1.0, -1.0) * np.where(rng.random(n) < 0.05, -1.0, 1.0)
    return X.astype(np.float32), y


def noisy(n: int = 200_000, seed: int = 0) -> tuple[Any, np.ndarray]:
    """The sparse set with one more label in five flipped."""
    X, y = sparse(n, seed=seed)
    return X, y * np.where(np.random.default_rng(seed + 1).random(n) < 0.2, -1.0, 1.0)


def generated(n: int = 500_000, d: int = 90, factors: int = 12, seed: int = 0) -> tuple[Any, np.ndarray]:
    """A regression in float64 on correlated columns: a few factors and noise; every one, and y, of variance 1.

    The targets are those of a planted w, with noise of Student's t with three degrees of freedom.
    """
    rng = np.random.default_rng(seed)
    X = scale(rng.normal(size=(n, factors)) @ rng.normal(size=(factors, d)) + rng.normal(size=(n, d)))
    score = X @ rng.normal(size=d)
    return X, scale(score + 0.5 * score.std() * rng.standard_t(3, n))


def small(seed: int, n: int = 500, d: int = 20) -> Data:
    """A small dense problem in float64: labels of a planted w, with noise on the scores."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ rng.normal(size=d)
    return Data("small", X, np.where(score + 0.5 * score.std() * rng.normal(size=n) > 0, 1.0, -1.0))


@lru_cache(maxsize=4)
def ocr(folds: tuple[int, ...]) -> Sequences:
    """Handwritten words of these folds: a letter is 16 x 8 pixels of 0 and 1."""
    with np.load(_file("ocr/letters.npz")) as file:
        X, y, lengths, fold = (file[key] for key in ("X", "y", "lengths", "fold"))
    words = np.isin(fold, folds)
    letters = np.repeat(words, lengths)
    start = np.concatenate([[0], np.cumsum(lengths[words])]).astype(np.int64)
    return Sequences(X[letters].astype(np.float64), y[letters].astype(np.int32), start, 26)


@lru_cache(maxsize=2)
def conll2000(part: str) -> list[Sentence]:
    """Sentences of Wall Street Journal text, "train" or "test"."""
    with gzip.open(_file(f"conll2000/{part}.txt.gz"), "rt", encoding="utf-8") as stream:
        texts = stream.read().strip().split("\n\n")
    lines = [[line.split() for line in text.splitlines()] for text in texts]
    return [tuple(list(column) for column in zip(*sentence, strict=True)) for sentence in lines]


def snakes() -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Training and test grids, X, Y, X_test, Y_test; features: the colours of 3 x 3 pixels, or outside."""
    with np.load(_file("snakes/snakes.npz")) as file:
        images = {name: file[name] for name in file.files}
    colours = np.unique(np.concatenate([x.reshape(-1, 3) for name, x in images.items() if name[0] == "X"]), axis=0)

    def features(image: np.ndarray) -> np.ndarray:
        colour = np.argmax((image[:, :, None] == colours).all(axis=3), axis=2)
        around = np.pad(colour, 1, constant_values=len(colours))
        windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3))
        return np.eye(len(colours) + 1)[windows].reshape(*colour.shape, -1)

    X, Y, X_test, Y_test = (
        [images[name] for name in sorted(images) if name.startswith(kind)]
        for kind in ("X_train", "Y_train", "X_test", "Y_test")
    )
    return [features(x) for x in X], Y, [features(x) for x in X_test], Y_test


def scene() -> tuple[Any, Any, Any, Any]:
    """Photographs with up to six labels: X, Y, X_test, Y_test."""
    with np.load(_file("scene/scene.npz")) as file:
        X, Y, X_test, Y_test = (file[key] for key in ("X_train", "y_train", "X_test", "y_test"))
    return X.astype(np.float64), Y.astype(int), X_test.astype(np.float64), Y_test.astype(int)


SETS = {
    "a9a": a9a,
    "mnist": mnist,
    "mnist64": mnist64,
    "sparse": sparse,
    "noisy": noisy,
    "mnist10": mnist10,
    "news20": news20,
    "news20bin": news20bin,
    "housing": housing,
    "generated": generated,
}


def _file(path: str) -> Path:
    folder = os.environ.get("DUALSVM_DATA")
    if not folder:
        raise MissingDataError("set DUALSVM_DATA to the folder that holds the benchmark data")
    file = Path(folder) / path
    if not file.is_file():
        raise MissingDataError(f"DUALSVM_DATA is set, but {file} is missing")
    return file


def _idx(file: Path, header: int) -> np.ndarray:
    with gzip.open(file) as stream:
        return np.frombuffer(stream.read(), dtype=np.uint8, offset=header)
