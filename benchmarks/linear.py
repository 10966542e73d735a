"""Seconds to 1e-3 of the optimum through the linear estimators, without intercept, one thread each."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

from . import peers
from .contest import TARGET, contests
from .report import COMPARED, LEFT, compare, machine, table
from .tasks import Task

EPSILON = 0.1  # of a target of variance 1
TASKS = {
    task.name: task
    for task in (
        Task("a9a", "binary", "hinge"),
        Task("a9a", "binary", "squared_hinge"),
        Task("mnist", "binary", "hinge"),
        Task("news20", "crammer_singer", "hinge"),
        Task("mnist10", "crammer_singer", "hinge"),
        Task("news20", "ovr", "hinge"),
        Task("news20", "ovr", "squared_hinge"),
        Task("mnist10", "ovr", "hinge"),
        Task("mnist10", "ovr", "squared_hinge"),
        Task("housing", "regression", "epsilon_insensitive", epsilon=EPSILON),
        Task("housing", "regression", "squared_epsilon_insensitive", epsilon=EPSILON),
    )
}
SIDES = (
    peers.Estimator(),
    peers.Liblinear(),
    peers.LiblinearPrimal(),
    peers.LinearSVC(),
    peers.LinearSVCPrimal(),
    peers.LinearSVR(),
    peers.LinearSVRPrimal(),
    peers.SGDClassifier(),
    peers.SGDRegressor(),
    peers.Snap(),
)
TIGHT = 1e-4
NOTE = "sklearnex is left out: it speeds up SVC and SVR, but none of LinearSVC, LinearSVR and SGD"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sets = list(dict.fromkeys(task.set for task in TASKS.values()))
    parser.add_argument("--repeats", type=int, default=3, help="runs of each solver (default 3)")
    parser.add_argument(
        "--limit",
        type=float,
        default=30.0,
        help="seconds of CPU time after which a solver is not run again, nor at a tighter setting (default 30)",
    )
    parser.add_argument("--sets", default=",".join(sets), help="which sets, with commas (default all)")
    parser.add_argument("--rows", help=f"which rows, with commas (default those of the sets): {', '.join(TASKS)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run there, too")
    parser.set_defaults(run=run, known=sets)


def run(args: argparse.Namespace) -> None:
    sets = args.sets.split(",")
    rows = args.rows.split(",") if args.rows else [name for name, task in TASKS.items() if task.set in sets]
    for what, given, known in (("sets", sets, args.known), ("rows", rows, TASKS)):
        if unknown := set(given) - set(known):
            sys.exit(f"unknown {what}: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if args.repeats < 1:
        sys.exit(f"--repeats must be at least 1, got {args.repeats}")
    if math.isnan(args.limit):
        sys.exit("--limit must be a number of seconds")
    here = machine(SIDES)  # the load of the machine is that of others
    tasks = [TASKS[name] for name in rows]
    results, notes = contests(tasks, SIDES, args.repeats, TIGHT, args.limit, threads=os.cpu_count() or 1)
    report = {"machine": here, "repeats": args.repeats, "limit": args.limit, "notes": notes, "rows": results}
    show(report)
    if args.json:
        args.json.write_text(json.dumps(report, indent=1))


def show(report: dict[str, Any]) -> None:
    print(report["machine"])
    for note in [*report["notes"], NOTE]:
        print(note)
    if not report["rows"]:
        return
    print(f"""
C = 1, epsilon = {EPSILON:g}, no intercept, one thread, median of {report["repeats"]} runs (least-most), or of as many
as begin within {report["limit"]:g} s of CPU time.
Ours, SVMClassifier and SVMRegressor: to a certified relative gap of {TARGET:g}, one-vs-rest in every class. Peers,
best first: to an objective within {TARGET:g} of the optimum, at the loosest setting that gets there; 'above' is how
far above the optimum they ended, and 'missed' means that no setting got there, or none before a run took more than
{report["limit"]:g} s of it. Ratio: peer / ours, by the clock and by CPU time.
""")
    lines = [["set", "task", "loss", *COMPARED]]
    for result in report["rows"]:
        lines += compare([result["name"], result["kind"], result["loss"]], result["entries"])
    table(lines, left={0, 1, 2} | {3 + k for k in LEFT})
