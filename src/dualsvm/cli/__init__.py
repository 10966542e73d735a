"""The command line: `dualsvm train`, `predict`, `certify`, `convert` and `info`.

What the arguments are is said in `arguments`; every command has a module of its own, which is loaded when it runs, so
that help and wrong arguments are answered at once. Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from .arguments import parse

BAD = 2  # what was asked for is wrong, or cannot be done
INTERRUPTED = 130  # as shells say of Ctrl-C
BROKEN_PIPE = 141  # as shells say of who writes to nobody

_OPTIONS = (
    "bad_lines", "cache_mb", "checkpoint", "chunk_rows", "class_weight", "classes", "dtype", "features", "index_base",
    "loss", "max_passes", "multi_class", "n_features", "passes", "qid", "resume", "slack", "target", "weight",
)  # fmt: skip
_NAMES = {"overwrite=True": "--force", "max_iter": "--max-passes", "tol": "-e", "n_jobs": "--threads"}


def main(argv: Sequence[str] | None = None) -> int:
    r"""Run a command, and return its exit code.

    Parameters
    ----------
    argv : sequence of str, default None
        The arguments. None: those of this process.

    Returns
    -------
    int
        0: done. 2: an error, of which standard error tells. 3: the gap is not within the tolerance (`certify`). 130:
        interrupted.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dualsvm.cli import main
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data, model = (str(pathlib.Path(folder, name)) for name in ("data", "model"))
    ...     _ = pathlib.Path(data).write_text("1 1:1\n-1 1:-1\n")
    ...     main(["train", "-q", data, model]), main(["predict", data, model])
    1
    -1
    (0, 0)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = _warn
        try:
            if argv is None:  # whoever is told to end ends as with Ctrl-C
                signal.signal(signal.SIGTERM, signal.default_int_handler)
            arguments = parse(sys.argv[1:] if argv is None else argv)
            code = int(import_module(f".{arguments.command}", __name__).run(arguments))
            sys.stdout.flush()
            return code
        except SystemExit as end:  # of argparse, which has said why
            return end.code if isinstance(end.code, int) else BAD
        except KeyboardInterrupt:
            print("dualsvm: interrupted", file=sys.stderr)
            return INTERRUPTED
        except BrokenPipeError:  # whoever read what is written here has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return BROKEN_PIPE
        except Exception as error:
            print(f"dualsvm: error: {_told(error)}", file=sys.stderr)
            return BAD


def _told(error: Exception) -> str:
    """Return what an error says, in the words of the command line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return "not enough memory: give a smaller --cache-mb or --chunk-rows"
    text = str(error)
    if not isinstance(error, ValueError | TypeError | OSError | ImportError):
        text = f"{type(error).__name__}: {text}"
    return _translated(text)


def _translated(text: str) -> str:
    """Replace what Python calls the options by what they are called here."""
    for name, ours in _NAMES.items():
        text = re.sub(rf"\b{name}(?!\w)", ours, text)
    names = "|".join(_OPTIONS)
    return re.sub(rf'\b({names})=("?)([^\s",;:)]*)\2', lambda m: f"--{m[1].replace('_', '-')} {m[3]}", text)


def _warn(message: Any, *_: Any, **__: Any) -> None:
    print(f"dualsvm: warning: {_translated(str(message))}", file=sys.stderr)
