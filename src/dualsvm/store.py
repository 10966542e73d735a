"""Files: arrays in an ``.npz`` archive, everything else as JSON beside them. No pickle, so safe to load."""

from __future__ import annotations

import json
import os
import secrets
import zipfile
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .checks import Array

Restored = TypeVar("Restored")


def write(
    path: str | os.PathLike[str],
    form: str,
    meta: dict[str, Any],
    arrays: Mapping[str, Array] | Iterable[tuple[str, Array]],
    packed: bool = True,
) -> None:
    """Write a file, which replaces an older one only when it is complete; arrays may be made one by one, as pairs."""
    target = Path(os.path.realpath(path))
    draft = target.with_name(f"{_draft(target)}{secrets.token_hex(8)}")
    text = np.array(json.dumps({"format": form} | meta))
    pairs = arrays.items() if isinstance(arrays, Mapping) else arrays
    how = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    try:
        with open(draft, "xb") as file:
            with zipfile.ZipFile(file, "w", how) as archive:
                for name, array in chain([("meta", text)], pairs):
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                        np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def clear(path: str | os.PathLike[str]) -> None:
    """Delete what is left of files under this name that were never completed, as whoever wrote them was killed."""
    target = Path(os.path.realpath(path))
    for left in list(target.parent.iterdir()):
        if left.name.startswith(_draft(target)):
            left.unlink(missing_ok=True)


def _draft(target: Path) -> str:
    """Return how the names of unfinished files begin."""
    return f".{target.name[:64]}.draft."


def read(
    path: str | os.PathLike[str],
    what: str,
    makers: Mapping[str, Callable[[dict[str, Any], dict[str, Array]], Restored]],
) -> Restored:
    """Read a file in one of the given formats, and have it made into an object: `what`, as the user knows it."""
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = dict(file)
        meta = json.loads(str(arrays.pop("meta")))
        form = meta.pop("format")
        if form not in makers:
            raise ValueError(f"the format is {form!r}, not {' or '.join(map(repr, makers))}")
        return makers[form](meta, arrays)
    except OSError:
        raise
    except Exception as error:  # whatever numpy, zipfile, zlib and json make of a broken file
        message = f"{os.fspath(path)!r} is not {what} saved by dualsvm, or is one of another version"
        raise ValueError(message) from error
