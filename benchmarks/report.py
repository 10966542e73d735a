"""What the tables have in common."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .peers import installed


def machine(sides: Sequence[Any]) -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    versions = {"numpy": version("numpy")} | {side.package: installed(side) for side in sides if installed(side)}
    told = ", ".join(f"{package} {number}" for package, number in versions.items())
    return f"{os.cpu_count()} x {model}{load}; Python {platform.python_version()}, {told}"


def times(entry: dict[str, Any]) -> list[str]:
    seconds = [run["seconds"] for run in entry["runs"]]
    return [f"{entry['seconds']:.3f}", f"({min(seconds):.3f}-{max(seconds):.3f})"]


def against(ours: dict[str, Any], peer: dict[str, Any]) -> list[str]:
    ratios = [f"{peer[clock] / ours[clock]:.2f}" for clock in ("seconds", "cpu")]
    if not (ours["reached"] and peer["reached"]):
        ratios = ["missed" if ours["reached"] else "ours missed"]
    return [peer["solver"], peer["setting"], *times(peer), f"{peer['value']:.1e}", *ratios]


def compare(head: list[str], entries: list[dict[str, Any]]) -> list[list[str]]:
    """Return the lines of one contest: ours after its head, and a line for every peer."""
    ours, *others = entries
    head = [*head, *times(ours), f"{ours['value']:.1e}"]
    blank = [""] * len(head)
    return [(blank if k else head) + (against(ours, peer) if peer else []) for k, peer in enumerate(others or [None])]


COMPARED = ["ours s", "", "gap", "peer", "setting", "peer s", "", "above", "ratio", "cpu"]  # what compare adds
LEFT = {1, 3, 4, 6}  # of those, flush left


def table(lines: list[list[str]], left: set[int]) -> None:
    width = [max(len(line[k]) for line in lines if k < len(line)) for k in range(len(lines[0]))]
    for line in lines:
        cells = [f"{c:<{width[k]}}" if k in left else f"{c:>{width[k]}}" for k, c in enumerate(line)]
        print("  ".join(cells).rstrip())
