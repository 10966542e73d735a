"""Generated sets of any size on disk, stores and svmlight text, written in a stream; one label in five is flipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import dualsvm

Rows = tuple[Any, np.ndarray]  # X and y
BLOCK = 16e6  # bytes of rows that are made at a time
FLIPPED = 0.2
WORDS = 66  # of a row of the sparse set, on average
DIGITS = 6  # of numbers in text, behind the point


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    repeats: int
    gb: float  # size of the generated stores
    folder: Path  # where they lie
    note: Callable[[str], None]  # something to tell below the table
    tell: Callable[[str], None]  # how far it has come

    @property
    def size(self) -> float:
        """Bytes of a store."""
        return 1e9 * self.gb

    def store(self, name: str) -> Path:
        """Return the path of a store, which is made if it is not there."""
        return self._made(store, name, self.size)

    def text(self, name: str, share: float) -> Path:
        """Return the path of svmlight text of a share of that size, likewise."""
        return self._made(text, name, share * self.size)

    def _made(self, make: Callable[[str, float, Path], Path], name: str, size: float) -> Path:
        self.tell(f"{name}: {1e-9 * size:.3g} GB to generate, unless they are there")
        return make(name, size, self.folder)


@dataclass(frozen=True)
class Recipe:
    """How to make rows: `plant` draws what all of them share, `make` so many rows; `row`: bytes of one."""

    plant: Callable[[np.random.Generator], Any]
    make: Callable[[Any, int, np.random.Generator], Rows]
    row: int
    seed: int = 0

    def blocks(self, size: float) -> Iterator[Rows]:
        """Make rows of so many bytes, a block at a time, the same ones every time."""
        rows, each = max(1000, int(size / self.row)), max(1, int(BLOCK / self.row))
        planted = self.plant(np.random.default_rng(self.seed))
        for k, first in enumerate(range(0, rows, each)):
            yield self.make(planted, min(each, rows - first), np.random.default_rng([self.seed, k]))


def _dense(w: np.ndarray, n: int, rng: np.random.Generator) -> Rows:
    """Rows of length 1 on average, with the labels of a planted w."""
    X = rng.standard_normal((n, len(w)), dtype=np.float32) / np.float32(np.sqrt(len(w)))
    y = np.where(X @ w > 0, 1.0, -1.0)
    return X, np.where(rng.random(n) < FLIPPED, -y, y)


def _sparse(planted: tuple[np.ndarray, np.ndarray, np.ndarray], n: int, rng: np.random.Generator) -> Rows:
    """Rows of length 1: words drawn by a power law, rare ones counting more, with the labels of a planted w."""
    table, weight, w = planted
    words = table[rng.integers(len(table), size=(n, WORDS))]
    words.sort(axis=1)
    new = np.ones(words.shape, dtype=bool)
    new[:, 1:] = words[:, 1:] != words[:, :-1]
    values = np.where(new, weight[words], 0)
    values /= np.sqrt((values**2).sum(axis=1, keepdims=True))
    start = np.concatenate([[0], new.sum(axis=1).cumsum()]).astype(np.int32)
    X = sp.csr_array((values[new], words[new], start), shape=(n, len(w)))
    y = np.where(X @ w > 0, 1.0, -1.0)
    return X, np.where(rng.random(n) < FLIPPED, -y, y)


def _classes(W: np.ndarray, n: int, rng: np.random.Generator) -> Rows:
    """Rows of length 1 on average, of the class whose planted weights give the highest score, or of any class."""
    X = rng.standard_normal((n, len(W)), dtype=np.float32) / np.float32(np.sqrt(len(W)))
    y = (X @ W).argmax(axis=1)
    return X, np.where(rng.random(n) < FLIPPED, rng.integers(W.shape[1], size=n), y)


def _vocabulary(rng: np.random.Generator, d: int = 100_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return words to draw from, as often as they are frequent, what each counts, and a planted w."""
    p = 1.0 / (np.arange(d) + 10.0)
    p = rng.permutation(p / p.sum())
    table = np.repeat(np.arange(d, dtype=np.int32), np.maximum(1, (2**23 * p).round().astype(int)))
    return table, -np.log(p).astype(np.float32), rng.normal(size=d).astype(np.float32)


RECIPES = {
    "dense": Recipe(lambda rng: rng.normal(size=200).astype(np.float32), _dense, 200 * 4),
    "sparse": Recipe(_vocabulary, _sparse, WORDS * 8),
    "classes": Recipe(lambda rng: rng.normal(size=(500, 5)).astype(np.float32), _classes, 500 * 4),
}


def store(name: str, size: float, folder: Path) -> Path:
    """Return the path of a store of so many bytes, which is made if it is not there."""
    path = folder / f"{name}-{size / 1e6:.0f}MB"
    if not path.exists():
        recipe = RECIPES[name]
        dualsvm.open_dataset(lambda: recipe.blocks(size)).save(path)
    return path


def text(name: str, size: float, folder: Path) -> Path:
    """Return the path of svmlight text of so many bytes, of sparse rows, which take fewer in memory; likewise."""
    path = folder / f"{name}-{size / 1e6:.0f}MB.svm"
    if not path.exists():
        draft = path.with_suffix(".draft")
        with open(draft, "wb") as file:
            for X, y in RECIPES[name].blocks(size):
                rounded = sp.csr_matrix((X.data.astype(np.float64).round(DIGITS), X.indices, X.indptr), X.shape)
                dump_svmlight_file(rounded, y, file, zero_based=False)
                if file.tell() >= size:
                    break
        os.replace(draft, path)
    return path


def in_memory(path: Path) -> Rows:
    """Return all rows of a store, or of svmlight text, in memory."""
    if path.is_dir():
        arrays = {file.stem: np.load(file) for file in path.glob("*.npy")}
        y = arrays.pop("target")
        if "indptr" not in arrays:
            return arrays["values"], y
        start = arrays["indptr"]
        start = start.astype(np.int32) if start[-1] < 2**31 else start
        width = dualsvm.open_dataset(path).n_features
        return sp.csr_array((arrays["values"], arrays["indices"], start), shape=(len(y), width)), y
    chunks = list(dualsvm.open_dataset(path, n_jobs=-1))
    width = max(chunk.X.shape[1] for chunk in chunks)
    parts = [sp.csr_array((c.X.data, c.X.indices, c.X.indptr), shape=(len(c), width)) for c in chunks]
    return sp.vstack(parts, format="csr"), np.concatenate([chunk.y for chunk in chunks])


def files(path: Path) -> list[Path]:
    """Return the files with the rows of a store, or text itself."""
    return sorted(path.glob("*.npy")) if path.is_dir() else [path]


def forget(path: Path) -> None:
    """Have the system drop what it holds in memory of these files."""
    for file in files(path):
        with open(file, "rb") as stream:
            os.fsync(stream.fileno())  # what is not written yet is not dropped
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
