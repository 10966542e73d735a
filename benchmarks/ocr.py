"""Handwritten words: oracle calls and seconds to certified gaps, against the solvers of others."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from dualsvm.tasks import Chain

from . import data as sets
from .bcfw import NoCompilerError
from .peers import installed
from .searched import Fitting, Options, Run, fits, line, middle, span
from .structured_peers import ALL, Stage

TARGETS = (1e-1, 1e-2, 1e-3)
FLOOR = 1.0  # seconds that a peer always has
SMALL, LARGE = (0,), tuple(range(1, 10))  # folds


def words(
    name: str, folds: tuple[int, ...], lam: float | None, most: tuple[float, ...], known: float, options: Options
) -> dict[str, Any]:
    """Measure one row. `most`: calls of the oracle for every example that are to suffice; `known`: the optimum."""
    data = sets.ocr(folds)
    n = len(data)
    lam = 1.0 / n if lam is None else lam
    problem = Fitting(partial(Chain, normalized=True), data.inputs, data.outputs, 1.0 / (lam * n))
    ours: dict[float, list[Run]] = {}
    for target in TARGETS:
        ours[target] = fits(problem, target, options.repeats)
        options.tell(f"{name}: ours to {target:g}: {middle(ours[target]):.3g} s")
    lower, upper = (
        pick(getattr(run, side) for runs in ours.values() for run in runs)
        for pick, side in ((max, "lower"), (min, "upper"))
    )
    best = lam * lower, lam * upper
    if lower > upper * (1 + 1e-9):
        raise RuntimeError(f"wrong bounds on {name}: {lower} .. {upper}")
    peers = []
    for peer in ALL:
        if peer.package and not installed(peer):
            options.note(f"{peer.package} is left out: make .venv/bench installs it")
            continue
        limits = {target: max(FLOOR, options.patience * middle(runs)) for target, runs in ours.items()}
        try:
            peers.append({"solver": peer.name} | _outcome(name, peer, data, lam, best[1], limits, options))
        except NoCompilerError as error:
            options.note(f"{peer.name} is left out: {error}")
    result = {"name": name, "n": n, "lambda": lam, "optimum": best, "known": known, "peers": peers}
    result["ours"] = {f"{target:g}": [run._asdict() for run in runs] for target, runs in ours.items()}
    _show(result, ours, most)
    return result


def _outcome(
    name: str, peer: Any, data: sets.Sequences, lam: float, best: float, limits: dict[float, float], options: Options
) -> dict[str, Any]:
    """Run a peer until it is within every target of the optimum, with proof if it gives any, or out of time."""
    near: dict[float, Stage] = {}
    proven: dict[float, Stage] = {}
    last: list[Stage] = []

    def enough(stage: Stage) -> bool:
        last[:] = [stage]
        for target in TARGETS:
            if stage.upper <= (1 + target) * best:
                near.setdefault(target, stage)
            if stage.upper - stage.lower <= target * stage.upper:
                proven.setdefault(target, stage)
        waiting = [t for t in TARGETS if t not in near or (peer.proves and t not in proven)]
        return not waiting or stage.seconds > limits[waiting[0]]

    peer.run(data, lam, 0, enough)
    options.tell(f"{name}: {peer.name}: {last[0].seconds:.3g} s, objective {last[0].upper / best - 1:.2g} above")
    stages = {"objective": near} | ({"certified": proven} if peer.proves else {})
    told = {kind: {f"{t:g}": at._asdict() for t, at in found.items()} for kind, found in stages.items()}
    return told | {"last": last[0]._asdict()}


def _show(result: dict[str, Any], ours: dict[float, list[Run]], most: tuple[float, ...]) -> None:
    n = result["n"]
    for (target, runs), limit in zip(ours.items(), most, strict=True):
        numbers = f"{middle(runs, 'calls'):.1f}", f"{limit:g}", f"{max(run.held for run in runs):,}"
        line(result["name"] if target == TARGETS[0] else "", f"{target:.0e}", *span(runs), *numbers)
        for peer in result["peers"]:
            for kind in ("certified", "objective"):
                if kind in peer:
                    name = f"    {peer['solver']}, {kind}"
                    line(name, "", *_against(peer[kind].get(f"{target:g}"), peer["last"], n, middle(runs)))
    low, high = result["optimum"]
    print(
        f"    lambda {result['lambda']:.3g}: optimum {low:.5f} .. {high:.5f}, reported {result['known']:g}",
        flush=True,
    )


def _against(stage: dict[str, Any] | None, last: dict[str, Any], n: int, seconds: float) -> list[str]:
    """Return seconds, calls and the ratio to ours of a peer, or that it was given up on."""
    at = stage or last
    ratio = at["seconds"] / seconds
    return [
        f"{at['seconds']:.2f}",
        "" if stage else "not reached",
        f"{at['calls'] / n:.1f}",
        "",
        "",
        f"{ratio:.1f}" if stage else f"> {math.floor(ratio)}",
    ]


ROWS: dict[str, Callable[[Options], dict[str, Any]]] = {
    "ocr-small": partial(words, "ocr-small", SMALL, 0.01, (15, 20, 25), 0.19570),
    "ocr-large": partial(words, "ocr-large", LARGE, 0.001, (8, 13, 28), 0.32970),
    "ocr-large-weak": partial(words, "ocr-large-weak", LARGE, None, (12, 26, 60), 0.293),
}
