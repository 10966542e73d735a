"""The sets: real ones from the folder that DUALSVM_DATA names, and a generated one."""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file


class MissingDataError(Exception):
    """A set cannot be read; the message says why and what to do."""


@dataclass(frozen=True)
class Data:
    name: str
    X: Any  # C-contiguous float32 array, or canonical CSR matrix of float32 and int32
    y: np.ndarray  # -1 and 1


def load(name: str) -> Data:
    return Data(name, *SETS[name]())


def a9a() -> tuple[Any, np.ndarray]:
    X, y = load_svmlight_file(str(_file("a9a/a9a.gz")), n_features=123, dtype=np.float32)
    X = sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    return X, y.astype(np.float64)


def mnist() -> tuple[Any, np.ndarray]:
    """Even digits against odd ones."""
    pixels = _idx(_file("mnist/train-images-idx3-ubyte.gz"), header=16).reshape(-1, 784)
    digit = _idx(_file("mnist/train-labels-idx1-ubyte.gz"), header=8)
    return pixels.astype(np.float32) / np.float32(255), np.where(digit % 2 == 0, 1.0, -1.0)


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


SETS = {"a9a": a9a, "mnist": mnist, "sparse": sparse}


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
