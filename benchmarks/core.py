"""Seconds to 1e-3 of the optimum of a binary hinge-loss problem without intercept, one thread each."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from .contest import contests
from .measure import Entry, memory
from .peers import Dualsvm, Liblinear, LinearSVC
from .report import against, machine, table, times
from .tasks import Task

SETS = ("a9a", "mnist", "sparse")
SIDES = (Dualsvm(), Liblinear(), LinearSVC())
TARGET = 1e-3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeats", type=int, default=5, help="runs of each solver (default 5)")
    parser.add_argument("--sets", default=",".join(SETS), help="which sets, with commas (default all)")
    parser.add_argument("--cost", type=float, default=1.0, help="C (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run there, too")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    names = args.sets.split(",")
    if unknown := set(names) - set(SETS):
        sys.exit(f"unknown sets: {', '.join(sorted(unknown))}; there are {', '.join(SETS)}")
    if args.repeats < 1:
        sys.exit(f"--repeats must be at least 1, got {args.repeats}")
    here = machine(SIDES)  # the load of the machine is that of others
    tasks = [Task(name, "binary", "hinge", args.cost, targets=(TARGET,)) for name in names]
    notes: list[str] = []
    results = [result for (result,) in contests(tasks, SIDES, notes.append, repeats=args.repeats, describe=space)]
    report = {"machine": here, "cost": args.cost, "repeats": args.repeats, "notes": notes, "sets": results}
    show(report)
    if args.json:
        args.json.write_text(json.dumps(report, indent=1))


def space(entry: Entry) -> dict[str, Any]:
    loaded, growth = memory(entry) if os.access("/proc/self/clear_refs", os.W_OK) else (None, None)
    return {"data_mb": loaded, "growth_mb": growth}


def show(report: dict[str, Any]) -> None:
    print(report["machine"])
    for note in report["notes"]:
        print(note)
    if not report["sets"]:
        return
    print(f"""
Hinge loss, C = {report["cost"]:g}, no intercept, one thread, median of {report["repeats"]} runs (least-most).
Ours: to a certified relative gap of {TARGET:g}. Peers, best first: to an objective within {TARGET:g} of the
optimum, at the loosest tolerance that gets there; 'above' is how far above the optimum they ended.
Ratio: peer / ours, by the clock and by CPU time.
""")
    ours = ["set", "rows x columns", "ours s", "", "gap"]
    speed = [[*ours, "peer", "setting", "peer s", "", "above", "ratio", "cpu"]]
    space = [["set", "solver", "data MB", "training MB"]]
    for result in report["sets"]:
        mine, *others = result["entries"]
        head = [result["set"], "{:,} x {:,}".format(*result["shape"]), *times(mine), f"{mine['value']:.1e}"]
        speed += [(head if k == 0 else [""] * len(head)) + against(mine, peer) for k, peer in enumerate(others)]
        for k, entry in enumerate(result["entries"]):
            if entry["data_mb"] is not None:
                numbers = [f"{entry['data_mb']:.0f}", f"{entry['growth_mb']:.0f}"]
                space.append(["" if k else result["set"], entry["solver"], *numbers])
    table(speed, left={0, 1, 3, 5, 6, 8})
    if len(space) > 1:
        print("\nMemory: the data as the solver takes them, and how far training rises above that.\n")
        table(space, left={0, 1})
