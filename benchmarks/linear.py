"""Seconds to the optimum through the linear estimators, without intercept, against the linear solvers of others."""

from __future__ import annotations

import argparse
import json
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from . import peers
from .contest import CLOSE, FLOOR, contests
from .measure import bandwidth
from .report import machine, ratios, row, table, times
from .sections import growth, small
from .tasks import Task

QUICK = "a9a*,news20*,mnist-*,housing*,small"
EPSILON = 0.1  # of a target of variance 1
TARGETS = (1e-2, 1e-3, 1e-5)
SQUARED = "squared_hinge"
TASKS = {
    task.name: task
    for task in (
        *(Task("a9a", "binary", "hinge", cost, targets=TARGETS) for cost in (0.1, 1.0, 10.0)),
        Task("a9a", "binary", SQUARED),
        *(Task("news20bin", "binary", "hinge", cost, targets=TARGETS) for cost in (0.1, 1.0, 10.0)),
        Task("news20bin", "binary", SQUARED),
        *(Task("sparse", "binary", "hinge", cost, targets=TARGETS) for cost in (0.1, 1.0, 10.0)),
        Task("sparse", "binary", SQUARED),
        Task("mnist", "binary", "hinge"),
        Task("mnist", "binary", SQUARED),
        Task("mnist64", "binary", "hinge"),
        *(Task("news20", kind, "hinge") for kind in ("crammer_singer", "ovr")),
        Task("news20", "ovr", SQUARED),
        *(Task("mnist10", kind, "hinge") for kind in ("crammer_singer", "ovr")),
        Task("mnist10", "ovr", SQUARED),
        Task("housing", "regression", "epsilon_insensitive", epsilon=EPSILON),
        Task("housing", "regression", "squared_epsilon_insensitive", epsilon=EPSILON),
        Task("generated", "regression", "epsilon_insensitive", epsilon=EPSILON),
        Task("generated", "regression", "squared_epsilon_insensitive", epsilon=EPSILON),
    )
}
SECTIONS = {"growth": growth, "small": small}
ROWS = {name: task.set for name, task in TASKS.items()} | {"growth": "sparse", "small": "small"}  # their sets
SIDES = (
    peers.Estimator(),
    peers.Liblinear(),
    peers.LiblinearPrimal(),
    peers.Multicore(),
    peers.MulticorePrimal(),
    peers.LinearSVC(),
    peers.LinearSVCPrimal(),
    peers.LinearSVR(),
    peers.LinearSVRPrimal(),
    peers.SGDClassifier(),
    peers.SGDRegressor(),
    peers.Snap(),
    peers.ReHLine(),
)
NOTE = "sklearnex is left out: it speeds up SVC and SVR, but none of LinearSVC, LinearSVR and SGD"
WIDTH = (40, 17, 9, 19, 8, 8, 8)
LEFT = {0, 1, 3}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sets = ", ".join(dict.fromkeys(ROWS.values()))
    parser.add_argument("--repeats", type=int, default=3, help="runs of each solver (default 3)")
    parser.add_argument(
        "--patience",
        type=float,
        default=3.0,
        help="a peer is given up on once a run has taken so many times what ours takes (default 3)",
    )
    parser.add_argument("--threads", default="1", help="numbers of threads, with commas (default 1)")
    parser.add_argument("--sets", default="*", help=f"which sets, with commas (default all): {sets}")
    parser.add_argument(
        "--rows",
        default=QUICK,
        help=f"which rows of these sets, names or shell patterns, with commas (default {QUICK}, some ten minutes; "
        f"'*' for all, over an hour): {', '.join(ROWS)}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run there, too")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    sets = chosen("sets", args.sets, list(ROWS.values()))
    rows = [name for name in chosen("rows", args.rows, list(ROWS)) if ROWS[name] in sets]
    if not all(count.isdecimal() and int(count) for count in args.threads.split(",")):
        sys.exit(f"--threads must be numbers with commas, such as 1,2, got {args.threads}")
    threads = [int(count) for count in args.threads.split(",")]
    if args.repeats < 1:
        sys.exit(f"--repeats must be at least 1, got {args.repeats}")
    if not args.patience > 0:
        sys.exit(f"--patience must be positive, got {args.patience}")
    notes: list[str] = []
    results: list[dict[str, Any]] = []
    report: dict[str, Any] = {"machine": machine(SIDES), "repeats": args.repeats, "patience": args.patience}
    report |= {"bandwidth": {count: bandwidth(count) for count in threads}, "notes": notes, "rows": results}

    def note(line: str) -> None:
        notes.append(line)
        print(line, flush=True)

    def keep() -> None:
        if args.json:
            args.json.write_text(json.dumps(report, indent=1))

    introduce(report)
    tasks = [TASKS[name] for name in rows if name in TASKS]
    if tasks:
        row(["row, and its peers", "target, setting", "seconds", "", "above", "ratio", "cpu"], WIDTH, LEFT)
    common = {"repeats": args.repeats, "patience": args.patience, "threads": threads}
    for measured in contests(tasks, SIDES, note, **common):
        results += measured
        for result in measured:
            show(result, args.repeats)
        print(f"others kept {measured[0]['others']:.1f} cores busy meanwhile", flush=True)
        keep()
    for name in rows:
        if name in SECTIONS:
            report[name] = SECTIONS[name](args.repeats, threads)
            keep()
    if results:
        summarize(results)


def chosen(what: str, patterns: str, known: list[str]) -> list[str]:
    """Return those of the known names that one of the patterns fits."""
    for pattern in patterns.split(","):
        if not any(fnmatch(name, pattern) for name in known):
            sys.exit(f"unknown {what}: {pattern}; there are {', '.join(dict.fromkeys(known))}")
    return [name for name in known if any(fnmatch(name, pattern) for pattern in patterns.split(","))]


def introduce(report: dict[str, Any]) -> None:
    read = ", ".join(f"{1e-9 * rate:.1f} GB/s with {count}" for count, rate in report["bandwidth"].items())
    print(f"""{report["machine"]}
Threads read memory at {read}.
{NOTE}

C = 1 but where said, epsilon = {EPSILON:g}, no intercept, median of {report["repeats"]} runs (least-most).
Ours, SVMClassifier and SVMRegressor: to a certified relative gap, one-vs-rest in every class; beside it the least
that one pass over the data can take, reading them from memory. Peers, best first: to an objective as near to the
optimum, at the loosest setting that gets there; 'above' is how far above the optimum they ended, and for ours the
gap. Every solver has as many threads as ours; one that has none is run as it is, beside ours with every number of
threads. One that took over {CLOSE:g} times as long as the fastest peer keeps its first run: (1 run).
Ratio: peer / ours, by the clock and by CPU time. 'missed': no setting got there. '> 10': given up on, at the setting
told, as a run took over {FLOOR:g} s of CPU time, and {report["patience"]:g} times that of ours for the tightest
target not reached yet. Where others keep cores busy, threads that wait for one another lose most: such rows tell
little of more than one thread.
""")


def show(result: dict[str, Any], repeats: int) -> None:
    ours, *others = result["entries"]
    goal = f"{result['target']:.0e}, {result['threads']} thr."
    limit = f"a pass takes {1e3 * result['pass']:.2f} ms or more"
    row([result["name"], goal, *times(ours), f"{ours['value']:.1e}", limit], WIDTH, LEFT)
    for peer in others:
        numbers = [*times(peer), f"{peer['value']:.1e}", *ratios(ours, peer)]
        once = ["(1 run)"] if peer["reached"] and len(peer["runs"]) < repeats else []
        row(["    " + peer["solver"], peer["setting"], *numbers, *once], (*WIDTH, 0), LEFT)


def summarize(results: list[dict[str, Any]]) -> None:
    print("\nSummary: ours and the fastest peer\n")
    lines = [["row", "target", "threads", "ours s", "peer s", "ratio", "peer"]]
    for result in results:
        ours, *others = result["entries"]
        line = [result["name"], f"{result['target']:.0e}", str(result["threads"]), f"{ours['seconds']:.3f}"]
        if near := [peer for peer in others if peer["reached"]] or [peer for peer in others if peer["given_up"]]:
            line += [f"{near[0]['seconds']:.3f}", ratios(ours, near[0])[0], near[0]["solver"]]
        lines.append(line)
    table(lines, left={0, 6})
