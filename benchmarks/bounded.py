"""Whether memory holds: what a fit from disk takes at most, and whether it finds what a fit in memory finds."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dualsvm

from .data import Data
from .measure import status
from .report import row
from .stores import Options, files, in_memory
from .tasks import Task, objective

CACHE = 256.0  # MB, and in proportion for smaller stores
FULL = 8.0  # GB
MOST = 900.0  # MB
NEAR = 1e-3
TEXT = 0.25  # of the size of a store
COSTS = {"dense": 1.0, "sparse": 1.0, "classes": 0.1}
WIDTH = (16, 22, 7, 9, 9, 7, 9, 9, 9, 11)
LEFT = {0, 1}
HEAD = ["memory: row", "rows x columns", "GB", "support", "peak MB", "reads", "seconds", "gap", "in memory", "apart"]
INTRO = f"""Memory: fit(dataset) with cache_mb={CACHE:g} (less in proportion for stores of less than {FULL:g} GB) in
a process of its own, hinge loss, no intercept, one label in five flipped: the most memory that the process had in
use, mapped files included ({MOST:g} MB wanted), the size of the rows of support vectors in GB, reads, seconds and
certified gap; beside it the seconds of a fit in memory on the same rows, in another process, and how far apart the
two objectives are, both summed up by numpy in one more pass."""

Trained = dict[str, Any]


def memory(name: str, make: Callable[[Options], Path], options: Options) -> dict[str, Any]:
    path = make(options)
    size = sum(file.stat().st_size for file in files(path))
    recipe = path.name.split("-")[0]
    task = Task(name, "crammer_singer" if recipe == "classes" else "binary", "hinge", COSTS[recipe])
    cache = CACHE * min(1.0, options.gb / FULL)
    options.tell(f"{name}: from disk")
    ours = _elsewhere(from_disk, path, task, cache, chunk_rows(path, options.gb))
    options.tell(f"{name}: {ours['seconds']:.1f} s, {ours['reads']} reads, {ours['peak']:.0f} MB; now in memory")
    whole = _elsewhere(all_at_once, path, task)
    for trained in (ours, whole):
        trained["objective"] = summed(path, task, trained.pop("w"))
        if abs(trained["objective"] / trained["upper"] - 1.0) > 1e-5:
            raise RuntimeError(f"the upper bound is {trained['upper']}, but the objective {trained['objective']}")
    apart = ours["objective"] / whole["objective"] - 1.0
    n, d = ours["shape"]
    told = [f"{n:,} x {d:,}", f"{1e-9 * size:.2f}", f"{1e-9 * ours['support'] * size:.2f}", f"{ours['peak']:.0f}"]
    told += [
        str(ours["reads"]),
        f"{ours['seconds']:.1f}",
        f"{ours['gap']:.1e}",
        f"{whole['seconds']:.1f}",
        f"{apart:.1e}",
    ]
    row([name, *told], WIDTH, LEFT)
    if ours["peak"] > MOST:
        options.note(f"{name}: {ours['peak']:.0f} MB were in use, more than {MOST:g}")
    if abs(apart) > NEAR:
        options.note(f"{name}: the objective is {apart:.1e} from that in memory, more than {NEAR:g}")
    return {"name": name, "bytes": size, "cache_mb": cache, "apart": apart, "ours": ours, "in memory": whole}


def chunk_rows(path: Path, gb: float) -> int | None:
    """Return rows of a chunk such that several fit in the cache, which is small for a small store; None: as ever."""
    dataset = dualsvm.open_dataset(path)
    if 4 * gb >= FULL or not path.is_dir():
        return None
    return max(1, int(dataset.n_rows / dataset.n_chunks * 4 * gb / FULL))


def _elsewhere(work: Callable[..., Trained], *args: Any) -> Trained:
    """Do some work in a fresh process."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as process:
        return process.submit(work, *args).result()


def _model(task: Task, cache: float) -> Any:
    return dualsvm.SVMClassifier(C=task.cost, fit_intercept=False, cache_mb=cache, random_state=0)


def from_disk(path: Path, task: Task, cache: float, rows: int | None) -> Trained:
    return _trained(lambda: (dualsvm.open_dataset(path, chunk_rows=rows),), _model(task, cache))


def all_at_once(path: Path, task: Task) -> Trained:
    return _trained(lambda: in_memory(path), _model(task, CACHE))


def _trained(data: Callable[[], tuple[Any, ...]], model: Any) -> Trained:
    given = data()
    clock = time.perf_counter()
    model.fit(*given)
    seconds, peak = time.perf_counter() - clock, status("VmHWM")
    return {
        "seconds": seconds,
        "peak": peak,
        "reads": model.n_iter_,
        "gap": model.gap_,
        "upper": model.upper_bound_,
        "support": float(model.n_support_.sum() / model.dual_coef_.shape[1]),
        "shape": (model.dual_coef_.shape[1], model.n_features_in_),
        "history": [record.seconds for record in model.history_],
        "w": model.coef_.ravel() if len(model.coef_) == 1 else model.coef_,
    }


def summed(path: Path, task: Task, w: np.ndarray) -> float:
    """Return the objective, in one pass."""
    norm = 0.5 * float(np.vdot(w.astype(np.float64), w))
    total = norm
    with closing(dualsvm.open_dataset(path, n_features=None if path.is_dir() else w.shape[-1]).chunks()) as chunks:
        for chunk in chunks:
            total += objective(task, Data(task.set, chunk.X, chunk.y), w) - norm
    return total


ROWS = {
    **{f"memory-{name}": partial(memory, f"memory-{name}", lambda o, name=name: o.store(name)) for name in COSTS},
    "memory-text": partial(memory, "memory-text", lambda o: o.text("sparse", TEXT)),
}
