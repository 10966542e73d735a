"""``dualsvm convert``."""

from __future__ import annotations

import time
from argparse import Namespace

import numpy as np

from .info import size_of
from .screen import Screen
from .sources import opened


def run(arguments: Namespace) -> int:
    """Write a store."""
    a, began, screen = arguments, time.perf_counter(), Screen(arguments.quiet)
    with opened(a, screen) as dataset:
        store = dataset.save(a.store, overwrite=a.force, dtype=None if a.dtype is None else np.dtype(a.dtype))
    screen.close_line()
    if not a.quiet:
        skipped = f" ({dataset.n_skipped} bad lines left out)" if dataset.n_skipped else ""
        print(f"{store.n_rows:,} rows x {store.n_features:,} features{skipped}, {size_of(a.store)}, ", end="")
        print(f"{time.perf_counter() - began:.2f} s\nthe store is in {a.store}")
    return 0
