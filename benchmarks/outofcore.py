"""Data bigger than memory: memory and seconds of a fit from disk, and how much is learned from a few reads."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import textwrap
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from . import bounded, data, pace, quality, reads
from .linear import chosen
from .report import machine, row
from .stores import Options

GB = 8.0
QUICK = "memory-*,speed-*,quality-a9a,quality-news20bin,quality-mnist,reads-a9a,reads-news20*,reads-mnist"
PARTS = (bounded, pace, quality, reads)
# A row measures and shows itself, and returns what goes into the file.
ROWS: dict[str, Callable[[Options], dict[str, Any]]] = {name: do for part in PARTS for name, do in part.ROWS.items()}
PART = {name: part for part in PARTS for name in part.ROWS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeats", type=int, default=3, help="rounds of the rows that compare times (default 3)")
    parser.add_argument(
        "--gb",
        type=float,
        default=GB,
        help=f"size of the generated stores in GB (default {GB:g}; 0.2 for a quick run)",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="where to generate them (default: a temporary folder); what is there is used again",
    )
    parser.add_argument("--keep", action="store_true", help="leave what was generated in the folder")
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
    if not args.gb > 0:
        sys.exit(f"--gb must be positive, got {args.gb}")
    if args.keep and args.folder is None:
        sys.exit("--keep needs a --folder to keep what was generated in")
    notes: list[str] = []
    results: list[dict[str, Any]] = []
    report = {"machine": machine([*quality.SIDES, pace.Xgboost]), "repeats": args.repeats, "gb": args.gb}
    report |= {"notes": notes, "rows": results}

    def note(text: str) -> None:
        if text not in notes:
            notes.append(text)

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    print(report["machine"])
    with ExitStack() as stack:
        if args.keep:
            args.folder.mkdir(parents=True, exist_ok=True)
            folder = args.folder
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=args.folder)))
        options = Options(args.repeats, args.gb, folder, note, tell)
        before = None
        for name in rows:
            if PART[name] is not before:
                before = PART[name]
                print(f"\n{textwrap.fill(before.INTRO, 118)}\n")
                row(before.HEAD, before.WIDTH, before.LEFT)
            try:
                results.append(ROWS[name](options))
            except data.MissingDataError as error:
                note(f"{name} is left out: {error}")
            if args.json:
                args.json.write_text(json.dumps(report, indent=1))
    print("", *notes, sep="\n")
