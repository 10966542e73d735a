"""Oracle calls and seconds of StructuredSVM to certified gaps, against the structured solvers of others."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import conll, data, grids, ocr, threads
from .linear import chosen
from .report import machine
from .searched import HEAD, Options, line
from .structured_peers import ALL

QUICK = "ocr-small,ocr-large,conll2000,snakes,scene,threads-*"
# A row measures and shows itself, and returns what goes into the file. A module with more rows has a ROWS like these.
ROWS: dict[str, Callable[[Options], dict[str, Any]]] = ocr.ROWS | conll.ROWS | grids.ROWS | threads.ROWS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeats", type=int, default=3, help="runs of ours (default 3)")
    parser.add_argument(
        "--patience",
        type=float,
        default=6.0,
        help="a peer is given up on once it has taken so many times what ours takes (default 6)",
    )
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
    if not args.patience > 0:
        sys.exit(f"--patience must be positive, got {args.patience}")
    notes: list[str] = []
    results: list[dict[str, Any]] = []
    here = machine([peer for peer in (*ALL, *conll.PEERS) if peer.package])
    report = {"machine": here, "repeats": args.repeats, "patience": args.patience, "notes": notes, "rows": results}

    def note(text: str) -> None:
        if text not in notes:
            notes.append(text)

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    introduce(report)
    line(*HEAD)
    options = Options(args.repeats, args.patience, note, tell)
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

Ours, StructuredSVM: a fit of its own to each certified relative gap, one thread, median of {report["repeats"]} seeds
(least-most); calls of the oracle for each example, those for certificates included, and how many were hoped to
suffice; constraints held at most. Peers, one run each, with the same compiled oracle: certified, to a relative gap
that they prove by passes at fixed weights, these included; objective, to an objective that near to the optimum, which
the peer itself could not know. dlib proves nothing to its caller. Ratio: peer / ours. '> 6': given up on, as it had
taken {report["patience"]:g} times as long as ours for the target that it was waiting for.
""")
