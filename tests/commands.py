"""What the tests of the command line share."""

import io
import sys
from types import SimpleNamespace

from sklearn.datasets import dump_svmlight_file

from dualsvm.cli import main


def dualsvm(*words):
    """Run a command in this process, and return its exit code."""
    return main([str(word) for word in words])


def write_text(path, X, y, qid=None, zero_based=False):
    dump_svmlight_file(X, y, str(path), zero_based=zero_based, query_id=qid)
    return path


def give_stdin(monkeypatch, path):
    """Have standard input hold what a file does."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))


def numbers(text):
    return [float(line) for line in text.split()]
