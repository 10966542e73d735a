"""Sweeps, interleaved timing, and the memory of a fit."""

from __future__ import annotations

import gc
import math
import multiprocessing
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from . import data as sets
from .peers import Fit
from .tasks import Task


@dataclass
class Run:
    seconds: float
    cpu: float  # of all threads: on a busy machine steadier than what passed on the clock
    value: float  # what the judge made of the fit


@dataclass
class Entry:
    """A solver in the race on one set: its data, the step of its settings it runs at, its runs there."""

    side: Any
    prepared: Any
    task: Task
    judge: Callable[[Fit], float]  # 0 for the optimum, growing with the distance from it
    step: int = 0
    reached: bool = True
    runs: list[Run] = field(default_factory=list)

    @property
    def setting(self) -> str:
        return str(self.side.option(self.task).format(self.side.settings[self.step]))

    @property
    def seconds(self) -> float:
        return statistics.median(run.seconds for run in self.runs)

    @property
    def cpu(self) -> float:
        return statistics.median(run.cpu for run in self.runs)

    @property
    def value(self) -> float:
        """The worst of the runs."""
        return max(run.value for run in self.runs)

    def run(self, seed: int) -> Run:
        gc.collect()
        with threadpool_limits(1):
            cpu, clock = time.process_time(), time.perf_counter()
            fit = self.side.fit(self.prepared, self.side.settings[self.step], self.task, seed)
            seconds, cpu = time.perf_counter() - clock, time.process_time() - cpu
        return Run(seconds, cpu, self.judge(fit))

    def tighten(self) -> bool:
        """Go on to the next tighter setting; return False, and leave the race, where there is none."""
        self.reached = self.step + 1 < len(self.side.settings)
        self.step += self.reached
        return self.reached


def sweep(entry: Entry, target: float, tell: Callable[[str], None], limit: float = math.inf) -> None:
    """Find the loosest setting that meets the target, which is the fastest; keep its run, or the last one.

    After a run of more than `limit` seconds of CPU time the search is given up.
    """
    while True:
        entry.runs = [entry.run(0)]
        tell(f"{entry.side.name} {entry.setting}: {entry.seconds:.3g} s, {entry.value:.2g} above the optimum")
        if entry.value <= target:
            return
        if entry.cpu > limit:
            entry.reached = False
        elif entry.tighten():
            continue
        return


def race(entries: list[Entry], target: float, repeats: int, limit: float = math.inf) -> None:
    """Time the entries in turn, round after round, until each has its runs, or has run for `limit` seconds.

    Those are seconds of CPU time, which do not depend on what else runs.
    An entry that misses the target in a run drops its runs and begins again with the next tighter setting. One that
    took longer than the limit in the sweep stays with that run.
    """
    for entry in entries:
        slow = bool(entry.runs) and entry.runs[0].cpu > limit
        entry.runs = entry.runs if slow or not entry.reached else []

    def waits(entry: Entry) -> bool:
        spent = sum(run.cpu for run in entry.runs)
        return entry.reached and len(entry.runs) < repeats and (not entry.runs or spent <= limit)

    while waiting := [entry for entry in entries if waits(entry)]:
        for entry in waiting:
            run = entry.run(len(entry.runs))
            if run.value <= target:
                entry.runs.append(run)
            else:
                entry.runs = [] if entry.tighten() else [run]


def memory(entry: Entry) -> tuple[float, float]:
    """Return, in MB, what the prepared data take, and how far a fit rises above that: in a fresh process."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as process:
        setting = entry.side.settings[entry.step]
        return process.submit(_memory, entry.side, setting, entry.task).result()


def _memory(side: Any, setting: float, task: Task) -> tuple[float, float]:
    small = sets.Data("small", np.eye(2, dtype=np.float32), np.array([1.0, -1.0]))
    side.fit(side.prepare(small), side.settings[0], task, 0)  # what is loaded on first use is not the data's
    empty = _status("VmRSS")
    data = sets.load(task.set)
    prepared = side.prepare(data)
    del data
    gc.collect()
    loaded = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far, that of loading, is forgotten
    side.fit(prepared, setting, task, 0)
    return loaded - empty, max(0.0, _status("VmHWM") - loaded)


def _status(key: str) -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024 / 1e6
