"""What a table of rows does not tell: how the time grows with the data, and what many small fits take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from threadpoolctl import threadpool_limits

from . import data as sets
from .measure import Entry, race
from .peers import Estimator, Fit, LinearSVC
from .tasks import Task, objective

TARGET = 1e-3
ROWS = (50_000, 200_000, 800_000)
FITS = 1_000


def growth(repeats: int, threads: Sequence[int]) -> list[dict[str, Any]]:
    """Ours on the sparse set of several sizes: seconds per nonzero."""
    task = Task("sparse", "binary", "hinge")
    results = []
    print(f"\nGrowth: {task.name} of more and more rows, C = 1, certified {TARGET:g}, median of {repeats} runs\n")
    problems = [sets.Data("sparse", *sets.sparse(n)) for n in ROWS]
    for count in threads:
        entries = [Entry(Estimator(), p, task, (TARGET,), TARGET, _gap(task, p), count) for p in problems]
        race(entries, repeats)
        for entry in entries:
            n, nonzeros = entry.prepared.X.shape[0], entry.prepared.X.nnz
            result = {"rows": n, "nonzeros": nonzeros, "threads": count, "seconds": entry.seconds, "gap": entry.value}
            results.append(result | {"each": entry.seconds / nonzeros, "log": [vars(run) for run in entry.log]})
            cost = f"{1e9 * entry.seconds / nonzeros:6.2f} ns per nonzero"
            print(f"{n:9,} rows  {nonzeros:12,} nonzeros  {count} threads  {entry.seconds:8.3f} s  {cost}")
        ratio = results[-1]["each"] / results[-len(ROWS)]["each"]
        print(f"largest / smallest, per nonzero: {ratio:.2f}", flush=True)
    return results


def small(repeats: int, threads: Sequence[int]) -> dict[str, Any]:
    """Fits of small problems one after another, with one thread: ours and LinearSVC."""
    task = Task("small", "binary", "hinge")
    us, peer = Estimator(), LinearSVC()
    problems = [sets.small(seed) for seed in range(FITS)]
    arrays = [(problem.X, problem.y) for problem in problems]  # dense, as a caller has them
    best = [us.fit(problem, TARGET / 100, task, 0).upper for problem in problems]

    def above(fits: list[Fit]) -> float:
        values = [objective(task, problem, fit.w) for problem, fit in zip(problems, fits, strict=True)]
        return statistics.median(value / upper - 1.0 for value, upper in zip(values, best, strict=True))

    def theirs(tol: float) -> list[Fit]:
        return [peer.fit(pair, tol, task, 0) for pair in arrays]

    def ours() -> list[Fit]:
        return [us.fit(problem, TARGET, task, 0) for problem in problems]

    tol = next(tol for tol in peer.settings if above(theirs(tol)) <= TARGET)
    clocks: dict[str, list[float]] = {"ours": [], "LinearSVC": []}
    with threadpool_limits(1):
        for _ in range(repeats):
            mine = _timed(ours, clocks["ours"])
            fits = _timed(lambda: theirs(tol), clocks["LinearSVC"])
    gap = max(_gap(task, problem)(fit) for problem, fit in zip(problems, mine, strict=True))
    if gap > TARGET:
        raise RuntimeError(f"a small fit was to be certified to {TARGET:g}, and its gap is {gap:g}")
    middle = {name: statistics.median(seconds) for name, seconds in clocks.items()}
    n, d = problems[0].X.shape
    print(
        f"\nSmall: {FITS:,} fits of {n} x {d} in float64, hinge, C = 1, no intercept, one thread, {repeats} rounds\n"
    )
    for name, told in (
        ("ours", f"gap {gap:.1e} at most"),
        ("LinearSVC", f"tol={tol:g}, median {above(fits):.1e} above"),
    ):
        most = f"({1e3 * min(clocks[name]):.3f}-{1e3 * max(clocks[name]):.3f})"
        print(f"{name:10} {1e3 * middle[name]:7.3f} ms per fit {most:15} {told}")
    print(f"ratio: {middle['LinearSVC'] / middle['ours']:.2f}", flush=True)
    return {"tol": tol, "gap": gap, "seconds per fit": clocks}


def _timed(fits: Callable[[], list[Fit]], clocks: list[float]) -> list[Fit]:
    clock = time.perf_counter()
    done = fits()
    clocks.append((time.perf_counter() - clock) / len(done))
    return done


def _gap(task: Task, data: sets.Data) -> Callable[[Fit], float]:
    return lambda fit: 1.0 - fit.lower / objective(task, data, fit.w)
