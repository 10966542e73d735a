"""Learning on a cluster: rounds and bytes to certified gaps for many shares, seconds with two workers, and faults."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import data, shared, workers
from .linear import chosen
from .report import machine, row

SHARES = "1,2,4,8,16,32"
PARTS = (shared, workers)
# A row measures and shows itself, and returns what goes into the file.
ROWS: dict[str, Callable[[Any], dict[str, Any]]] = {name: do for part in PARTS for name, do in part.ROWS.items()}
PART = {name: part for part in PARTS for name in part.ROWS}


class Dask:
    name, package = "Dask", "dask"


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    repeats: int
    shares: list[int]
    note: Callable[[str], None]  # something to tell below the table
    tell: Callable[[str], None]  # how far it has come


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeats", type=int, default=5, help="runs of the rows that measure seconds (default 5)")
    parser.add_argument("--shares", default=SHARES, help=f"numbers of shares to simulate (default {SHARES})")
    parser.add_argument(
        "--rows",
        default="*",
        help=f"which rows, names or shell patterns, with commas (default all): {', '.join(ROWS)}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured there, too")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    rows = chosen("rows", args.rows, list(ROWS))
    if args.repeats < 1:
        sys.exit(f"--repeats must be at least 1, got {args.repeats}")
    if not all(count.isdecimal() and int(count) for count in args.shares.split(",")):
        sys.exit(f"--shares must be numbers with commas, such as {SHARES}, got {args.shares}")
    shares = [int(count) for count in args.shares.split(",")]
    notes: list[str] = []
    results: list[dict[str, Any]] = []
    report = {"machine": machine([Dask]), "repeats": args.repeats, "shares": shares, "notes": notes, "rows": results}

    def note(text: str) -> None:
        if text not in notes:
            notes.append(text)

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    print(report["machine"])
    options = Options(args.repeats, shares, note, tell)
    before = None
    for name in rows:
        if PART[name] is not before:
            before = PART[name]
            print(f"\n{textwrap.fill(' '.join(before.INTRO.split()), 118)}\n")
            row(before.HEAD, before.WIDTH, before.LEFT)
        try:
            results.append(ROWS[name](options))
        except data.MissingDataError as error:
            note(f"{name} is left out: {error}")
        if args.json:
            args.json.write_text(json.dumps(report, indent=1))
    print("", *notes, sep="\n")
