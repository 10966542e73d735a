"""Seconds to 1e-3 of the optimum of a binary hinge-loss problem without intercept, one thread each."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from . import data as sets
from .measure import Entry, memory, primal, race, sweep
from .peers import SIDES, Dualsvm, Fit, installed

TARGET = 1e-3
TIGHT = 1e-5  # asked of the solve that finds the optimum; where it falls short, its bounds hold all the same


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeats", type=int, default=5, help="runs of each solver (default 5)")
    parser.add_argument("--sets", default=",".join(sets.SETS), help="which sets, with commas (default all)")
    parser.add_argument("--cost", type=float, default=1.0, help="C (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run there, too")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    names = args.sets.split(",")
    if unknown := set(names) - set(sets.SETS):
        sys.exit(f"unknown sets: {', '.join(sorted(unknown))}; there are {', '.join(sets.SETS)}")
    if args.repeats < 1:
        sys.exit(f"--repeats must be at least 1, got {args.repeats}")
    peers = [side for side in SIDES.values() if not isinstance(side, Dualsvm) and installed(side)]
    absent = [side for side in SIDES.values() if not installed(side)]
    notes = [f"{side.name} is left out: pip install {side.package}" for side in absent]
    here, results = machine(), []  # the load of the machine is that of others
    for name in names:
        try:
            data = sets.load(name)
        except sets.MissingDataError as missing:
            notes.append(f"{name} is left out: {missing}")
        else:
            results.append(contest(data, peers, args.cost, args.repeats))

    report = {"machine": here, "cost": args.cost, "repeats": args.repeats, "notes": notes, "sets": results}
    show(report)
    if args.json:
        args.json.write_text(json.dumps(report, indent=1))


def contest(data: sets.Data, peers: list[Any], cost: float, repeats: int) -> dict[str, Any]:
    """Measure all solvers on one set."""

    def tell(line: str) -> None:
        print(f"{data.name}: {line}", file=sys.stderr, flush=True)

    # The optimum lies between the bounds of this solve. Peers are measured against the upper one, which is a
    # little easier to come near than the optimum itself.
    tight = Dualsvm().fit(data, TIGHT, cost, 0)
    tell(f"optimum between {tight.lower:.8g} and {tight.upper:.8g}")
    if tight.upper - tight.lower > 0.1 * TARGET * tight.upper:
        raise RuntimeError(f"the optimum of {data.name} is not known well enough to measure against")

    def above(fit: Fit) -> float:
        return primal(data, fit.w, cost) / tight.upper - 1.0

    def gap(fit: Fit) -> float:
        """Return the relative gap that is certified, once the certificate has been checked."""
        value = primal(data, fit.w, cost)
        slack = 1e-9 * value
        known = abs(value - fit.upper) <= slack
        if not (known and fit.lower <= tight.upper + slack and tight.lower <= fit.upper + slack):
            raise RuntimeError(f"wrong bounds on {data.name}: {fit.lower} .. {fit.upper}, objective {value}")
        relative = (fit.upper - fit.lower) / fit.upper
        if not fit.converged:
            raise RuntimeError(f"dualsvm has not converged on {data.name}: its gap is {relative:.2g}")
        return relative

    us = SIDES["dualsvm"]
    ours = Entry(us, us.prepare(data), cost, gap)
    others = [Entry(peer, peer.prepare(data), cost, above) for peer in peers]
    for entry in others:
        sweep(entry, TARGET, tell)
    race([ours, *others], TARGET, repeats)
    others.sort(key=lambda entry: (not entry.reached, entry.seconds))
    return {
        "name": data.name,
        "shape": data.X.shape,
        "lower": tight.lower,
        "upper": tight.upper,
        "entries": [describe(data.name, entry) for entry in (ours, *others)],
    }


def describe(name: str, entry: Entry) -> dict[str, Any]:
    loaded, growth = memory(name, entry) if os.access("/proc/self/clear_refs", os.W_OK) else (None, None)
    return {
        "solver": entry.side.name,
        "setting": entry.setting,
        "reached": entry.reached,
        "seconds": entry.seconds,
        "cpu": entry.cpu,
        "value": entry.value,
        "runs": [vars(run) for run in entry.runs],
        "data_mb": loaded,
        "growth_mb": growth,
    }


def machine() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    versions = [f"numpy {version('numpy')}"]
    versions += [f"{side.package} {installed(side)}" for side in SIDES.values() if installed(side)]
    return f"{os.cpu_count()} x {model}{load}; Python {platform.python_version()}, {', '.join(versions)}"


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
    head = ["set", "rows x columns", "ours s", "", "gap"]
    speed = [[*head, "peer", "setting", "peer s", "", "above", "ratio", "cpu"]]
    space = [["set", "solver", "data MB", "training MB"]]
    for result in report["sets"]:
        ours, *others = result["entries"]
        head = [result["name"], "{:,} x {:,}".format(*result["shape"]), *times(ours), f"{ours['value']:.1e}"]
        for peer in others or [None]:
            speed.append(head + (against(ours, peer) if peer else []))
            head = [""] * len(head)
        for entry in result["entries"]:
            if entry["data_mb"] is not None:
                numbers = [f"{entry['data_mb']:.0f}", f"{entry['growth_mb']:.0f}"]
                space.append(["" if entry is not ours else result["name"], entry["solver"], *numbers])
    table(speed, left={0, 1, 3, 5, 6, 8})
    if len(space) > 1:
        print("\nMemory: the data as the solver takes them, and how far training rises above that.\n")
        table(space, left={0, 1})


def times(entry: dict[str, Any]) -> list[str]:
    seconds = [run["seconds"] for run in entry["runs"]]
    return [f"{entry['seconds']:.3f}", f"({min(seconds):.3f}-{max(seconds):.3f})"]


def against(ours: dict[str, Any], peer: dict[str, Any]) -> list[str]:
    ratios = [f"{peer[clock] / ours[clock]:.2f}" for clock in ("seconds", "cpu")] if peer["reached"] else ["missed"]
    return [peer["solver"], peer["setting"], *times(peer), f"{peer['value']:.1e}", *ratios]


def table(lines: list[list[str]], left: set[int]) -> None:
    width = [max(len(line[k]) for line in lines if k < len(line)) for k in range(len(lines[0]))]
    for line in lines:
        cells = [f"{c:<{width[k]}}" if k in left else f"{c:>{width[k]}}" for k, c in enumerate(line)]
        print("  ".join(cells).rstrip())
