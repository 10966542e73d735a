"""Pieces of files as arrays, mapped into memory: gone from it as soon as nobody holds them."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

from ..checks import Array


def expect(file: Any, offset: int, size: int) -> None:
    """Have the system read a piece of an open file, without waiting for it."""
    if size > 0 and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), offset, size, os.POSIX_FADV_WILLNEED)


def mapped(file: Any, dtype: Any, offset: int, shape: tuple[int, ...]) -> Array:
    """Return a piece of an open file, which must not be written to."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    if size == 0:
        return np.empty(shape, kind)
    if os.fstat(file.fileno()).st_size < offset + size:  # else reading would end the process
        raise ValueError(f"{file.name!r} has become shorter: write it again")
    start = offset - offset % mmap.ALLOCATIONGRANULARITY
    piece = mmap.mmap(file.fileno(), offset - start + size, access=mmap.ACCESS_READ, offset=start)
    return np.frombuffer(piece, kind, size // kind.itemsize, offset - start).reshape(shape)
