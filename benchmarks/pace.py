"""What a training pass over a store takes beside a pass that only reads it, and how fast text is parsed."""

from __future__ import annotations

import os
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

import dualsvm

from .bounded import CACHE, COSTS, FULL, chunk_rows
from .measure import elsewhere
from .peers import installed
from .report import row
from .stores import Options, files, forget

READS = 3
TEXT = 0.025  # of the size of a store
BLOCK = 16 << 20
COLD, WARM = "only reading, cold", "reading and summing, warm"
MOST = {COLD: 1.3, WARM: 3.0}  # a training pass should take no more than so many times what it is compared with
LEAST = {"scikit-learn": 10.0, "xgboost, 1 thread": 2.0}  # and these so many times as long as ours, at least
WIDTH = (16, 28, 9, 19, 8, 8, 8)
LEFT = {0, 1, 3}
HEAD = ["speed: row", "what", "seconds", "", "MB/s", "ratio", "cpu"]
INTRO = f"""Speed: reads of a fit with cache_mb={CACHE:g} (in proportion for stores of less than {FULL:g} GB),
{READS} in each fit, from when a read begins to when it ends; 'and settling': with what is solved in memory between
reads, the whole fit divided by its reads. Cold: the system has forgotten the files before every read. Only reading:
plain reads of the files, in blocks of {BLOCK >> 20} MB. Reading and summing: chunks of the dataset, whose numbers
are added up. All in turn, medians over rounds (least-most). Ratio: ours / theirs, by the clock and by CPU time,
wanted {MOST[COLD]:g} at most when cold, and {MOST[WARM]:g} when warm. Text: all rows into memory; ratio: theirs /
ours with one thread, wanted {LEAST["scikit-learn"]:g} at least for scikit-learn and {LEAST["xgboost, 1 thread"]:g}
for xgboost."""

Time = tuple[float, float]  # by the clock, and of the CPU
Times = dict[str, list[Time]]


class Clock:
    """A callback that times the reads of a fit; `before` is called ahead of each and not counted."""

    def __init__(self, before: Callable[[], None]) -> None:
        self.before, self.aside = before, (0.0, 0.0)
        self.reads: list[Time] = []

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    def teardown(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_begin(self, estimator: Any, context: Any, **data: Any) -> None:
        if context.task_name == "pass":
            self.aside = _add(self.aside, timed(self.before))
            self.began = now()

    def on_fit_task_end(self, estimator: Any, context: Any, **data: Any) -> None:
        if context.task_name == "pass":
            self.reads.append(_add(now(), self.began, -1))


def now() -> Time:
    return time.perf_counter(), time.process_time()


def timed(work: Callable[[], Any]) -> Time:
    began = now()
    work()
    return _add(now(), began, -1)


def _add(one: Time, other: Time, times: float = 1.0) -> Time:
    return one[0] + times * other[0], one[1] + times * other[1]


def only_read(path: Path) -> None:
    buffer = bytearray(BLOCK)
    for file in files(path):
        with open(file, "rb", buffering=0) as stream:
            while stream.readinto(buffer):
                pass


def read_and_sum(path: Path) -> None:
    for chunk in dualsvm.open_dataset(path):
        X = chunk.X
        _ = (X.data.sum() + X.indices.sum() if sp.issparse(X) else X.sum()) + chunk.y.sum()


def passes(name: str, options: Options) -> dict[str, Any]:
    recipe = name.removeprefix("speed-")
    path = options.store(recipe)
    found: Times = {}
    clock, spent = now(), elsewhere()
    for k in range(options.repeats):
        for base in MOST:
            options.tell(f"{name}: round {k + 1}, {base}")
            forget(path)
            if base == WARM:
                only_read(path)
            _keep(found, base, timed(partial(only_read if base == COLD else read_and_sum, path)))
            reads, whole = _fit(path, recipe, options.gb, partial(forget, path) if base == COLD else lambda: None)
            state = base.split(", ")[1]
            _keep(found, f"first read, {state}", reads[0])
            _keep(found, f"later reads, {state}", *reads[1:])
            _keep(found, f"reads and settling, {state}", (whole[0] / len(reads), whole[1] / len(reads)))
    others = (elsewhere() - spent) / (now()[0] - clock[0])
    size = sum(file.stat().st_size for file in files(path))
    ratios = {}
    for what in found:
        base = next(base for base in MOST if base.split(", ")[1] == what.split(", ")[1])
        ratios[what] = _ratios(found, what, base)
        _show(name, what, found, size, [] if what == base else ratios[what])
        if ratios[what][0] > MOST[base]:
            told = f"{what}: {ratios[what][0]:.2f} times what {base.split(',')[0]} takes"
            options.note(f"{name}, {told}; {MOST[base]:g} at most was wanted")
    print(f"others kept {others:.1f} cores busy meanwhile", flush=True)
    return {"name": name, "bytes": size, "seconds": found, "ratios": ratios, "others": others}


def _fit(path: Path, recipe: str, gb: float, before: Callable[[], None]) -> tuple[list[Time], Time]:
    """Return what each read of a fit takes, and the whole."""
    clock = Clock(before)
    cache = CACHE * min(1.0, gb / FULL)
    model = dualsvm.SVMClassifier(C=COSTS[recipe], fit_intercept=False, tol=1e-9, cache_mb=cache, random_state=0)
    model.set_callbacks(clock)  # scikit-learn has them from 1.9 on
    dataset = dualsvm.open_dataset(path, chunk_rows=chunk_rows(path, gb))
    whole = timed(lambda: model.fit(dataset, passes=READS))
    return clock.reads, _add(whole, clock.aside, -1)


def parsing(name: str, options: Options) -> dict[str, Any]:
    path, cores = options.text("sparse", TEXT), os.cpu_count() or 1
    ours = "dualsvm, 1 thread"
    loaders: dict[str, Callable[[], Any]] = {
        ours: lambda: list(dualsvm.open_dataset(path, n_jobs=1, read_ahead=0)),
        f"dualsvm, {cores} threads": lambda: list(dualsvm.open_dataset(path, n_jobs=cores)),
        "scikit-learn": lambda: load_svmlight_file(str(path)),
    }
    if installed(Xgboost):
        loaders |= {f"xgboost, {n} thread{'s' * (n > 1)}": partial(Xgboost.load, path, n) for n in (1, cores)}
    else:
        options.note("xgboost is left out: make .venv/bench installs it")
    only_read(path)
    found: Times = {}
    for k in range(options.repeats):
        options.tell(f"{name}: round {k + 1}")
        for what, load in loaders.items():
            _keep(found, what, timed(load))
    ratios = {what: [1.0 / ratio for ratio in _ratios(found, ours, what)] for what in found}
    for what in found:
        _show(name, what, found, path.stat().st_size, [] if what == ours else ratios[what])
        if ratios[what][0] < LEAST.get(what, 0.0):
            told = f"{what}: takes {ratios[what][0]:.2f} times as long as ours"
            options.note(f"{name}, {told}; {LEAST[what]:g} at least was wanted")
    return {"name": name, "bytes": path.stat().st_size, "seconds": found, "ratios": ratios}


def _keep(found: Times, what: str, *times: Time) -> None:
    found.setdefault(what, []).extend(times)


def _ratios(found: Times, one: str, other: str) -> list[float]:
    """Return one / other, by the clock and by CPU time."""
    return [_middle(found[one], k) / max(_middle(found[other], k), 1e-9) for k in (0, 1)]


def _middle(times: list[Time], clock: int) -> float:
    return statistics.median(each[clock] for each in times)


def _show(name: str, what: str, found: Times, size: int, ratios: list[float]) -> None:
    seconds = [each[0] for each in found[what]]
    middle = _middle(found[what], 0)
    told = [name if what == next(iter(found)) else "", what, f"{middle:.3f}"]
    told += [f"({min(seconds):.3f}-{max(seconds):.3f})", f"{1e-6 * size / middle:.0f}"]
    row([*told, *(f"{ratio:.2f}" for ratio in ratios)], WIDTH, LEFT)


class Xgboost:
    """xgboost's reader of text, which it calls deprecated."""

    name, package = "xgboost", "xgboost-cpu"

    @staticmethod
    def load(path: Path, threads: int) -> Any:
        import xgboost

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return xgboost.DMatrix(f"{path}?format=libsvm", nthread=threads)


ROWS = {f"speed-{name}": partial(passes, f"speed-{name}") for name in COSTS} | {
    "speed-text": partial(parsing, "speed-text")
}
