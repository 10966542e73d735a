"""Files: arrays in an ``.npz`` archive, everything else as JSON beside them. No pickle, so safe to load."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .checks import Array

Restored = TypeVar("Restored")


def write(path: str | os.PathLike[str], form: str, meta: dict[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a file, which replaces an older one only when it is complete."""
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{secrets.token_hex(8)}")
    text = np.array(json.dumps({"format": form} | meta))
    try:
        with open(draft, "xb") as file:
            np.savez_compressed(file, allow_pickle=False, meta=text, **arrays)
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


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
