"""Seconds with two workers against two threads in one process, and what the loss of a worker costs."""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from distributed import Client, LocalCluster, wait

import dualsvm
from dualsvm.dask import DaskSVMClassifier
from dualsvm.shares import Lead

from . import data as sets
from .measure import status
from .report import row
from .stores import in_memory
from .tasks import Task

TARGETS = (1e-2, 1e-3)
WORKERS = 2
WIDTH = (16, 7, 9, 15, 7, 7, 9, 15, 7, 7, 7, 7, 8, 7)
LEFT = {0, 3, 7}
HEAD = ["seconds: row", "target", "workers", "", "cpu", "rounds", "threads", "", "cpu", "passes", "ratio"]
HEAD += ["client", "worker", "process"]
INTRO = f"""Seconds: DaskSVMClassifier with {WORKERS} worker processes of one thread, which hold the rows already,
against SVMClassifier(n_jobs={WORKERS}) in one process, to the same certified gap; medians, least and most, in
turns, and seconds of CPU time of all processes. Ratio: threads / workers. Last, in MB, how far memory rises above
what was in use before the fit, at most: of the client, of a worker, and of the one process. killed-*: one of the
workers is killed after half the rounds, with all that it held, is started again and reads its rows again; beside
it, in place of threads, the same without that."""


class Run(NamedTuple):
    seconds: float
    cpu: float  # of all processes
    rounds: int  # or passes
    gap: float
    growth: tuple[float, ...]  # MB, of the client and of each worker
    restarts: int = 0


@contextmanager
def placed(data: sets.Data) -> Iterator[tuple[Client, list[Path]]]:
    """Start workers; yield a client, and stores with the rows for each."""
    cuts = np.linspace(0, len(data.y), WORKERS + 1).astype(int)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, str(k)) for k in range(WORKERS)]
        for path, (a, b) in zip(paths, pairwise(cuts), strict=True):
            dualsvm.open_dataset(data.X[a:b], target=data.y[a:b]).save(path)
        options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0", "local_directory": folder}
        with LocalCluster(n_workers=WORKERS, **options) as cluster, Client(cluster) as client:
            yield client, paths


def clear() -> float:
    """Forget the most memory that was in use so far; return what is, in MB; nan where Linux does not let us."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        return float("nan")
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def peak() -> float:
    return status("VmHWM") if os.access("/proc/self/clear_refs", os.W_OK) else float("nan")


def with_workers(client: Client, paths: Sequence[Path], task: Task, tol: float, seed: int) -> Run:
    client.wait_for_workers(WORKERS)
    homes = sorted(client.nthreads())
    rows = [
        client.submit(in_memory, path, workers=[home], allow_other_workers=True, pure=False)
        for path, home in zip(paths, homes, strict=True)
    ]
    wait(rows)
    model = DaskSVMClassifier(client=client, **_common(task, tol, seed))
    before = [clear(), *client.run(clear).values()]
    workers, cpu, clock = client.run(time.process_time), time.process_time(), time.perf_counter()
    model.fit(rows)
    seconds, cpu = time.perf_counter() - clock, time.process_time() - cpu
    spent = sum(now - workers.get(worker, 0.0) for worker, now in client.run(time.process_time).items())
    growth = [most - had for most, had in zip([peak(), *client.run(peak).values()], before, strict=False)]
    _check(model, tol)
    return Run(seconds, cpu + spent, model.n_iter_, model.gap_, tuple(growth), model.n_restarts_)


def with_threads(data: sets.Data, task: Task, tol: float, seed: int) -> Run:
    model = dualsvm.SVMClassifier(n_jobs=WORKERS, **_common(task, tol, seed))
    before, cpu, clock = clear(), time.process_time(), time.perf_counter()
    model.fit(data.X, data.y)
    seconds, cpu = time.perf_counter() - clock, time.process_time() - cpu
    _check(model, tol)
    return Run(seconds, cpu, model.n_iter_, model.gap_, (peak() - before,))


def _common(task: Task, tol: float, seed: int) -> dict[str, Any]:
    return {"C": task.cost, "loss": task.loss, "fit_intercept": False, "tol": tol, "random_state": seed}


def _check(model: Any, tol: float) -> None:
    if not model.converged_:
        raise RuntimeError(f"the gap was to be {tol:g} at most, and is {model.gap_:g}")


def seconds(name: str, task: Task, options: Any) -> dict[str, Any]:
    data = sets.load(task.set)
    results = []
    with placed(data) as (client, paths):
        with_workers(client, paths, task, TARGETS[0], 0)  # what is loaded on first use is no part of it
        for target in TARGETS:
            ours, theirs = [], []
            for seed in range(options.repeats):
                ours.append(with_workers(client, paths, task, target, seed))
                theirs.append(with_threads(data, task, target, seed))
                told = f"{ours[-1].seconds:.2f} s with workers, {theirs[-1].seconds:.2f} s with threads"
                options.tell(f"{name} to {target:g}: {told}")
            _show(name if target == TARGETS[0] else "", target, ours, theirs)
            both = {"workers": ours, "threads": theirs}
            results.append({"target": target} | {who: [run._asdict() for run in runs] for who, runs in both.items()})
    return {"name": name, "results": results}


def killed(name: str, task: Task, options: Any) -> dict[str, Any]:
    data, target = sets.load(task.set), TARGETS[-1]
    with placed(data) as (client, paths):
        with_workers(client, paths, task, target, 0)
        whole, hurt = [], []
        for seed in range(options.repeats):
            whole.append(with_workers(client, paths, task, target, seed))
            with _murder(client, max(1, whole[-1].rounds // 2)):
                hurt.append(with_workers(client, paths, task, target, seed))
            told = f"{hurt[-1].seconds:.2f} s and {hurt[-1].rounds} rounds, {whole[-1].rounds} if nobody is killed"
            options.tell(f"{name}: {told}")
            if not hurt[-1].restarts:
                options.note(f"{name}: the worker that was killed had no share")
    _show(name, target, hurt, whole)
    return {"name": name, "hurt": [run._asdict() for run in hurt], "whole": [run._asdict() for run in whole]}


@contextmanager
def _murder(client: Client, after: int) -> Iterator[None]:
    """Kill a worker after so many rounds."""
    usual, victims = Lead.round, [sorted(client.run(os.getpid).values())[0]]

    def fatal(lead: Lead) -> None:
        usual(lead)
        if lead.rounds >= after and victims:
            os.kill(victims.pop(), signal.SIGKILL)

    with mock.patch.object(Lead, "round", fatal):
        yield


def _show(name: str, target: float, ours: Sequence[Run], theirs: Sequence[Run]) -> None:
    cells = [name, f"{target:.0e}"]
    for runs in (ours, theirs):
        times = [run.seconds for run in runs]
        cells += [f"{_middle(runs, 'seconds'):.2f}", f"({min(times):.2f}-{max(times):.2f})"]
        cells += [f"{_middle(runs, 'cpu'):.2f}", f"{_middle(runs, 'rounds'):g}"]
    cells.append(f"{_middle(theirs, 'seconds') / _middle(ours, 'seconds'):.2f}")
    if "killed" not in name:
        most = [max(run.growth[0] for run in ours), max(max(run.growth[1:]) for run in ours)]
        cells += [f"{size:.0f}" for size in (*most, max(run.growth[0] for run in theirs))]
    row(cells, WIDTH, LEFT)


def _middle(runs: Sequence[Run], name: str) -> float:
    return float(statistics.median(getattr(run, name) for run in runs))


TASKS = [Task(name, "binary", "hinge") for name in ("sparse", "mnist")]
ROWS = {f"seconds-{task.set}": partial(seconds, f"seconds-{task.set}", task) for task in TASKS}
ROWS |= {f"killed-{task.set}": partial(killed, f"killed-{task.set}", task) for task in TASKS}
