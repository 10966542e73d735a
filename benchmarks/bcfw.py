"""Block-coordinate Frank-Wolfe, compiled on first use with the headers of the kernel."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .data import Sequences

HERE = Path(__file__).parent
HEADERS = HERE.parent / "cpp"
FLAGS = "-std=c++20 -O3 -march=native -DNDEBUG -fPIC -shared -fno-strict-aliasing -Wno-psabi -fopenmp-simd"
FLAGS += " -fno-math-errno -fno-trapping-math"


class NoCompilerError(Exception):
    """The peer cannot be built here; the message says why."""


class State(NamedTuple):
    """What is known after some passes: bounds on the optimum."""

    passes: int
    calls: int  # of the oracle, those for the bounds included
    seconds: float
    lower: float
    upper: float


def iterates(words: Sequences, lam: float, averaged: bool, seed: int) -> Iterator[State]:
    """Yield the state again and again, each time after a tenth more passes and one for the bounds, without an end."""
    library = built()
    rng = np.random.default_rng(seed)
    n, labels = len(words), words.labels
    X = np.ascontiguousarray(words.X, dtype=np.float64)
    w = np.empty(X.shape[1] * labels + labels * labels + 2 * labels)
    cost = 1.0 - np.eye(labels)
    kept = X, words.start, words.y, cost  # the library keeps pointers
    clock = time.perf_counter()
    self = library.bcfw_open(
        *(X.ctypes.data, *X.shape, words.start.ctypes.data, n, words.y.ctypes.data, cost.ctypes.data, labels),
        *(lam, int(averaged)),
    )
    try:
        passes = calls = 0
        while True:
            more = 1 + passes // 10
            for _ in range(more):
                order = rng.permutation(n)
                library.bcfw_pass(self, order.ctypes.data)
            lower, upper = ctypes.c_double(), ctypes.c_double()
            library.bcfw_certify(self, ctypes.byref(lower), ctypes.byref(upper), w.ctypes.data)
            passes, calls = passes + more, calls + n * (more + 1)
            yield State(passes, calls, time.perf_counter() - clock, lower.value, upper.value)
    finally:
        library.bcfw_close(self)
        del kept


@cache
def built() -> Any:
    """Return the library, compiled where that has not been done from the same sources."""
    compiler = shlex.split(os.environ.get("CXX", "")) or [shutil.which("c++") or shutil.which("g++") or "c++"]
    source = HERE / "bcfw.cpp"
    text = b"".join(file.read_bytes() for file in (source, *sorted(HEADERS.glob("*.hpp"))))
    name = hashlib.blake2b(text + " ".join([*compiler, FLAGS]).encode(), digest_size=8).hexdigest()
    file = HERE.parent / "build" / "bcfw" / f"{name}.so"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(f".{os.getpid()}")
        command = [*compiler, *FLAGS.split(), "-I", str(HEADERS), str(source), "-o", str(fresh)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except FileNotFoundError:
            raise NoCompilerError(f"there is no compiler {compiler[0]}: set CXX") from None
        except subprocess.CalledProcessError as error:
            raise NoCompilerError(f"{' '.join(command)} failed: {error.stderr}") from None
        fresh.replace(file)
    library = ctypes.CDLL(str(file))
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    library.bcfw_open.restype = pointer
    library.bcfw_open.argtypes = [
        *(pointer, number, number, pointer, number, pointer, pointer, number),
        *(ctypes.c_double, ctypes.c_int),
    ]
    library.bcfw_pass.argtypes = [pointer, pointer]
    library.bcfw_certify.argtypes = [
        pointer,
        ctypes.POINTER(ctypes.c_double),
        ctypes.POINTER(ctypes.c_double),
        pointer,
    ]
    library.bcfw_close.argtypes = [pointer]
    for name in ("pass", "certify", "close"):
        getattr(library, f"bcfw_{name}").restype = None
    return library
