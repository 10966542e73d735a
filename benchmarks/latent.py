"""Errors of models with latent values against those without, and rounds that go on against rounds from scratch."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import data, hidden, rounds
from .linear import chosen
from .report import machine
from .searched import Options

QUICK = "digits,mnist,bags,ocr-hidden,hot-*"
# A row measures and shows itself, and returns what goes into the file.
ROWS: dict[str, Callable[[Options], dict[str, Any]]] = hidden.ROWS | rounds.ROWS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeats", type=int, default=3, help="runs of the rows that compare times (default 3)")
    parser.add_argument(
        "--rows",
        default=QUICK,
        help=f"which rows, names or shell patterns, with commas (default {QUICK}, some ten minutes; '*' for all): "
        f"{', '.join(ROWS)}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run there, too")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    rows = chosen("rows", args.rows, list(ROWS))
    if args.repeats < 1:
        sys.exit(f"--repeats must be at least 1, got {args.repeats}")
    notes: list[str] = []
    results: list[dict[str, Any]] = []
    report = {"machine": machine(()), "repeats": args.repeats, "notes": notes, "rows": results}

    def note(text: str) -> None:
        if text not in notes:
            notes.append(text)

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    introduce(report)
    options = Options(args.repeats, 0.0, note, tell)
    for name in rows:
        try:
            results.append(ROWS[name](options))
        except data.MissingDataError as error:
            note(f"{name} is left out: {error}")
        if args.json:
            args.json.write_text(json.dumps(report, indent=1))
    for text in notes:
        print(text)


def introduce(report: dict[str, Any]) -> None:
    print(f"""{report["machine"]}

One thread. Errors are those on test data; C and the number of sub-types were chosen on a part of the training data
that the others were tried on, and the models shown are trained on all of it. Rows hot-*: rounds that go on with the
constraints of the round before, against rounds that a fresh StructuredSVM solves from scratch, from the same first
completions, in turns: median of {report["repeats"]} seeds (least-most), calls of the oracle for each example, and the
objective of the latent problem in the end. Early rounds are solved loosely, hot and cold by the same rule; 'all to
tol' are cold ones without this. Ratio: cold / hot, by the clock and by CPU time.
""")
