"""Sweeps, interleaved timing, the speed of the memory, and the memory of a fit."""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from . import data as sets
from .peers import Fit
from .tasks import Task


@dataclass
class Run:
    setting: str
    seconds: float
    cpu: float  # of all threads: on a busy machine steadier than what passed on the clock
    value: float  # what the judge made of the fit


@dataclass
class Entry:
    """A solver in the race to one target: its data, the step of its settings it runs at, its runs there."""

    side: Any
    prepared: Any
    task: Task
    settings: Sequence[float]  # from loose to tight
    target: float
    judge: Callable[[Fit], float]  # 0 for the optimum, growing with the distance from it
    threads: int = 1
    step: int = 0
    reached: bool = True
    given_up: bool = False  # before all settings were tried
    runs: list[Run] = field(default_factory=list)
    log: list[Run] = field(default_factory=list)  # every run, at whichever setting

    @property
    def setting(self) -> str:
        return str(self.side.option(self.task).format(self.settings[self.step]))

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
        with threadpool_limits(self.threads):
            cpu, clock = time.process_time(), time.perf_counter()
            fit = self.side.fit(self.prepared, self.settings[self.step], self.task, seed, self.threads)
            seconds, cpu = time.perf_counter() - clock, time.process_time() - cpu
        with threadpool_limits(1):  # threads that have multiplied spin for a while, into the next run
            value = self.judge(fit)
        self.log.append(Run(self.setting, seconds, cpu, value))
        return self.log[-1]

    def tighten(self) -> bool:
        """Go on to the next tighter setting; return False, and leave the race, where there is none."""
        self.reached = self.step + 1 < len(self.settings)
        self.step += self.reached
        return self.reached


def sweep(
    entries: list[Entry], tell: Callable[[str], None], limit: Callable[[float], float] = lambda target: math.inf
) -> None:
    """Find the loosest setting of one solver that meets each target, which is the fastest; keep its run.

    `entries`: one for each target, from loose to tight. Once a run has taken more CPU time than the `limit` of the
    tightest target, the search is given up, and the entries that wait keep that run; or else the last one.
    """
    waiting = entries
    while waiting:
        last = waiting[-1]
        run = last.run(0)
        tell(f"{last.side.name} {run.setting}: {run.seconds:.3g} s, {run.value:.2g} from the optimum")
        for entry in waiting:
            entry.runs = [run]
        waiting = [entry for entry in waiting if run.value > entry.target]
        if run.cpu > limit(last.target):
            for entry in waiting:
                entry.reached, entry.given_up = False, True
            return
        waiting = [entry for entry in waiting if entry.tighten()]


def race(entries: list[Entry], repeats: int) -> None:
    """Time the entries in turn, round after round, until each has its runs.

    An entry that misses the target in a run drops its runs and begins again with the next tighter setting.
    """
    for entry in entries:
        entry.runs = []
    while waiting := [entry for entry in entries if entry.reached and len(entry.runs) < repeats]:
        for entry in waiting:
            run = entry.run(len(entry.runs))
            if run.value <= entry.target:
                entry.runs.append(run)
            else:
                entry.runs = [] if entry.tighten() else [run]


@cache
def bandwidth(threads: int = 1) -> float:
    """Return the bytes per second that so many threads read: the best of several sums of a large array."""
    parts = np.array_split(np.ones(64_000_000, dtype=np.float32), threads)
    seconds = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(7):
            clock = time.perf_counter()
            list(pool.map(np.sum, parts))
            seconds.append(time.perf_counter() - clock)
    return sum(part.nbytes for part in parts) / min(seconds)


def elsewhere() -> float:
    """Return the seconds that all cores have spent on anything but this process; nan where Linux does not tell."""
    counts = Path("/proc/stat")
    if not counts.is_file():
        return math.nan
    user, nice, system, _, _, *more = (int(ticks) for ticks in counts.read_text().split(maxsplit=9)[1:9])
    return (user + nice + system + sum(more)) / os.sysconf("SC_CLK_TCK") - time.process_time()


def memory(entry: Entry) -> tuple[float, float]:
    """Return, in MB, what the prepared data take, and how far a fit rises above that: in a fresh process."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as process:
        return process.submit(_memory, entry.side, entry.settings[entry.step], entry.task).result()


def _memory(side: Any, setting: float, task: Task) -> tuple[float, float]:
    small = sets.Data("small", np.eye(2, dtype=np.float32), np.array([1.0, -1.0]))
    side.fit(side.prepare(small), setting, task, 0)  # what is loaded on first use is not the data's
    empty = status("VmRSS")
    data = sets.load(task.set)
    prepared = side.prepare(data)
    del data
    gc.collect()
    loaded = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far, that of loading, is forgotten
    side.fit(prepared, setting, task, 0)
    return loaded - empty, max(0.0, status("VmHWM") - loaded)


def status(key: str) -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024 / 1e6
