"""Checkpoints: all that runs know, in a file, from which they can go on."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .. import store
from ..checks import Array
from ..data import Chunk
from ..data.chunk import print_of
from ..solution import Record

if TYPE_CHECKING:
    from .pursue import Runs

FORMAT = "dualsvm.Checkpoint 1"


class Keeper:
    """Writes what runs know to a file, and takes it from there; sees that the data are the same.

    Rows are not written: they are met again.

    Parameters
    ----------
    about : dict
        What problems the runs are to solve: names, and what they stand for, as text.
    path : path-like or None
        Where to write. None: nowhere.
    every : float, default 600.0
        Seconds between two checkpoints.
    beside : dict, default None
        More arrays, by name, that whoever has the runs solved fills, and that checkpoints hold.
    """

    def __init__(
        self,
        about: dict[str, str],
        path: str | os.PathLike[str] | None = None,
        every: float = 600.0,
        beside: dict[str, Array] | None = None,
    ) -> None:
        self.beside = {} if beside is None else beside
        self.about, self.path, self.every = about, path, every
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise FileNotFoundError(f"the folder of the checkpoint {os.fspath(path)!r} does not exist: make it first")
        if path is not None:
            store.clear(path)
        self._last = time.monotonic()
        self._prints: dict[int, tuple[int, int, int]] = {}  # of every chunk: where it begins, its length, its print
        self._origin = ""

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self._last >= self.every

    def look_at(self, chunk: Chunk) -> None:
        """See that a chunk is the one that it was before."""
        found = (chunk.start, *print_of(chunk))
        if self._prints.setdefault(chunk.index, found) != found:
            start, length, _ = self._prints[chunk.index]
            raise ValueError(
                f"{self._origin} was written for other data, or for data in other chunks: chunk {chunk.index} has "
                f"{found[1]} rows from row {found[0]}, and there it was {length} rows from row {start}"
                f"{', which were others' if found[:2] == (start, length) else ''}; give the same data, or begin anew"
            )

    def write(self, runs: Runs) -> None:
        """Write a checkpoint; it replaces an older one only when it is complete."""
        if self.path is None or not all(run.begun and not run.starting for run in runs.runs):
            return
        told = [run.told() for run in runs.runs]
        meta = {
            "about": self.about,
            "shape": runs.dataset.shape,
            "reads": runs.reads,
            "seconds": runs.seconds,
            "met": [] if runs.torn else sorted(runs.met),
            "reading": [run in runs.left for run in runs.runs],
            "facts": [facts for facts, _ in told],
        }
        store.write(self.path, FORMAT, meta, self._arrays(runs, [arrays for _, arrays in told]), packed=False)
        self._last = time.monotonic()

    def _arrays(self, runs: Runs, told: list[dict[str, Array]]) -> Iterator[tuple[str, Array]]:
        yield "prints", np.array([(k, *found) for k, found in self._prints.items()], dtype=np.int64).reshape(-1, 4)
        for name, value in list(self.beside.items()):  # whoever reads ahead may add to it
            yield f"beside.{name}", value
        yield "history", np.array(runs.history, dtype=np.float64)
        first = runs.runs[0].frame.first
        rest = {name: getattr(first, name) for name in ("y", "weight", "qid")}
        for name, value in (_matrix(first.X) | rest).items():
            if value is not None:
                yield f"first.{name}", value
        for index, labels in runs.runs[0].cache.labels.items():
            yield f"labels.{index}", labels
        for k, (run, arrays) in enumerate(zip(runs.runs, told, strict=True)):
            for name, value in arrays.items():
                yield f"{k}.{name}", value
            for index in run.cache.starts:
                yield from _named(f"{k}.alpha.{index}", run.packed(index))
            where = [(index, run.cache.starts[index], run.cache.lengths[index]) for index in run.cache.starts]
            yield f"{k}.where", np.array(where, dtype=np.int64).reshape(-1, 3)

    def recall(self, runs: Runs, path: str | os.PathLike[str]) -> None:
        """Have runs take what a checkpoint knows, if it is one of theirs."""
        name = os.fspath(path)
        meta, arrays = store.read(path, "a checkpoint", {FORMAT: lambda meta, arrays: (meta, arrays)})
        for key in self.about.keys() | meta["about"].keys():
            here, there = self.about.get(key, "nothing"), meta["about"].get(key, "nothing")
            if here != there:
                raise ValueError(
                    f"{name!r} is a checkpoint of another problem: {key} is {there} there, and {here} here; set "
                    f"{key} to what it was, or begin anew"
                )
        for what, now, then in zip(("rows", "features"), runs.dataset.shape, meta["shape"], strict=True):
            if None not in (now, then) and now != then:
                raise ValueError(
                    f"{name!r} was written for other data: {then} {what}, and here are {now}; give the same data, or "
                    "begin anew"
                )
        self._origin = repr(name)
        try:
            self._prints = {int(k): tuple(found) for k, *found in arrays["prints"].tolist()}
            self._take(runs, meta, arrays)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"{name!r} is a checkpoint whose parts do not fit together") from error

    def _take(self, runs: Runs, meta: dict[str, Any], arrays: dict[str, Array]) -> None:
        y, weight, qid = (arrays.get(f"first.{name}") for name in ("y", "weight", "qid"))
        first = Chunk(_unmatrix({name: arrays.get(f"first.{name}") for name in _PARTS}), y, weight, qid)
        labels = {int(index): value for index, value in _under("labels.", arrays).items()}
        self.beside |= _under("beside.", arrays)
        for k, run in enumerate(runs.runs):
            own = _under(f"{k}.", arrays)
            run.recall(first, meta["facts"][k], own)
            duals = {
                index: (start, length, (own[f"alpha.{index}"], own.get(f"alpha.{index}.at")))
                for index, start, length in own["where"].tolist()
            }
            run.cache.recall(duals, labels, own["sample"])
        runs.reads, runs.history = int(meta["reads"]), Record.from_table(arrays["history"])
        runs.began = time.perf_counter() - float(meta["seconds"])
        reading = all(was for was, run in zip(meta["reading"], runs.runs, strict=True) if not run.converged)
        if reading:
            runs.met = set(meta["met"])


def _under(start: str, arrays: dict[str, Array]) -> dict[str, Array]:
    """Return the arrays whose names begin so, by the rest of these."""
    return {name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)}


_PARTS = ("dense", "data", "indices", "indptr", "shape")


def _matrix(X: Any) -> dict[str, Array]:
    if not sp.issparse(X):
        return {"dense": X}
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}


def _unmatrix(parts: dict[str, Any]) -> Any:
    if parts["dense"] is not None:
        return parts["dense"]
    X = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"].tolist()))
    X.check_format(full_check=True)
    return X


def _named(name: str, packed: tuple[Array, Array | None]) -> Iterator[tuple[str, Array]]:
    values, at = packed
    yield name, values
    if at is not None:
        yield f"{name}.at", at
