"""What the tables have in common."""

from __future__ import annotations

import math
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


def ratios(ours: dict[str, Any], peer: dict[str, Any]) -> list[str]:
    """Return peer / ours by the clock and by CPU time, or why there is none."""
    if not ours["reached"]:
        return ["ours missed"]
    if not (peer["reached"] or peer["given_up"]):
        return ["missed"]
    pairs = [peer[clock] / ours[clock] for clock in ("seconds", "cpu")]
    return [f"{ratio:.2f}" if peer["reached"] else f"> {math.floor(ratio)}" for ratio in pairs]


def against(ours: dict[str, Any], peer: dict[str, Any]) -> list[str]:
    return [peer["solver"], peer["setting"], *times(peer), f"{peer['value']:.1e}", *ratios(ours, peer)]


def table(lines: list[list[str]], left: set[int]) -> None:
    width = [max(len(line[k]) for line in lines if k < len(line)) for k in range(len(lines[0]))]
    for line in lines:
        row(line, width, left)


def row(cells: list[str], width: Sequence[int], left: set[int]) -> None:
    padded = [f"{c:<{width[k]}}" if k in left else f"{c:>{width[k]}}" for k, c in enumerate(cells)]
    print("  ".join(padded).rstrip(), flush=True)
