"""Checkpoints: what all shares know, in a file, from which a cluster, with other workers maybe, can go on."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from .. import store
from ..checks import Array, as_number
from ..shares import Kept, Lead
from ..solution import Record

FORMAT = "dualsvm.SharedCheckpoint 1"


class Checkpoint:
    """Where to write what is known so far, and how often, and where to go on from.

    Parameters
    ----------
    path : path-like or None
        Where to write. None: nowhere.
    every : float
        Seconds between two checkpoints.
    resume : path-like or None
        A checkpoint to go on from.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, every: Any, resume: str | os.PathLike[str] | None
    ) -> None:
        self.path, self.every, self.resume = path, as_number(every, "checkpoint_every"), resume
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise FileNotFoundError(f"the folder of the checkpoint {os.fspath(path)!r} does not exist: make it first")
        if path is not None:
            store.clear(path)
        self._last = time.monotonic()

    def begin(
        self, lead: Lead, about: dict[str, str], start: dict[Any, Kept] | None, weights: list[Array] | None
    ) -> None:
        """Have a lead begin: with what a checkpoint holds, with what a last fit has left, or with nothing."""
        self._lead, self._about = lead, about
        lead.keep = self._after
        if self.resume is None:
            lead.begin(start, None if start is None else weights)
            return
        meta, arrays = store.read(self.resume, "a checkpoint", {FORMAT: lambda meta, arrays: (meta, arrays)})
        name = os.fspath(self.resume)
        for key in about.keys() | meta["about"].keys():
            here, there = about.get(key, "nothing"), meta["about"].get(key, "nothing")
            if here != there:
                raise ValueError(
                    f"{name!r} is a checkpoint of another problem: {key} is {there} there, and {here} here; set "
                    f"{key} to what it was, or begin anew"
                )
        try:
            kept = _unpacked(arrays)
            weights = [arrays[f"w.{k}"] for k in range(len(lead.courses))] if "w.0" in arrays else None
            lead.rounds, lead.history = int(meta["rounds"]), Record.from_table(arrays["history"])
            lead.began = time.perf_counter() - float(meta["seconds"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{name!r} is a checkpoint whose parts do not fit together") from error
        lead.begin(kept, weights)
        found = lead.gather("keep")
        strange = [key for key in found if key not in kept or kept[key].print != found[key].print]
        if strange or len(found) != len(kept):
            where = f", such as partition {min(strange)[0]}" if strange else ""
            raise ValueError(
                f"{name!r} was written for other data, or for data in other partitions{where}: give the same data, "
                "or begin anew"
            )

    def _after(self) -> None:
        if time.monotonic() - self._last >= self.every:
            self.write()

    def write(self) -> None:
        """Write a checkpoint, if that is wanted; it replaces an older one only when it is complete."""
        if self.path is None:
            return
        lead, before = self._lead, self._lead.restarts
        kept: dict[Any, Kept] = lead.gather("keep")
        if lead.restarts > before:  # a part of it is lost; the older one has it
            return
        meta = {"about": self._about, "rounds": lead.rounds, "seconds": time.perf_counter() - lead.began}
        arrays: dict[str, Array] = {"history": np.array(lead.history, dtype=np.float64)}
        if all(course.w is not None for course in lead.courses):
            arrays |= {f"w.{k}": np.asarray(course.w) for k, course in enumerate(lead.courses)}
        for key, one in kept.items():
            arrays |= _packed(key, one)
        store.write(self.path, FORMAT, meta, arrays, packed=False)
        self._last = time.monotonic()


def _packed(key: tuple[int, int], kept: Kept) -> dict[str, Array]:
    name = f"{key[0]}.{key[1]}"
    return {f"print.{name}": np.array(kept.print)} | {f"{part}.{name}": value for part, value in kept.arrays.items()}


def _unpacked(arrays: dict[str, Array]) -> dict[Any, Kept]:
    found: dict[tuple[int, int], dict[str, Array]] = {}
    for name, value in arrays.items():
        if name.count(".") == 2:
            part, piece, chunk = name.split(".")
            found.setdefault((int(piece), int(chunk)), {})[part] = value
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                raise ValueError("dual variables must be finite")
    prints = {key: tuple(parts.pop("print").tolist()) for key, parts in found.items()}
    return {key: Kept(prints[key], parts) for key, parts in found.items()}
