"""svmlight text: what scikit-learn reads of it, we read; what is wrong with it, we say."""

import bz2
import gzip
import io
import lzma
import os
import sys

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import dualsvm
from dualsvm.data import files, svmlight

from .datasets import opened, same, sparse_rows, whole

TEXT = """# a file
1 1:0.5 3:2 # the first
-1 2:1e-3 3:-4

+1.5 4:7
0
"""
X = np.array([[0.5, 0, 2, 0], [0, 1e-3, -4, 0], [0, 0, 0, 7], [0, 0, 0, 0]])
Y = np.array([1, -1, 1.5, 0])


def test_a_small_text():
    dataset = opened(TEXT)
    assert dataset.shape == (None, None)
    assert not dataset.reiterable
    same(dataset, X, Y)
    assert dataset.shape == (4, 4)


@pytest.mark.parametrize(
    "text", [TEXT.replace("\n", "\r\n"), TEXT.rstrip("\n"), "\ufeff" + TEXT, TEXT.replace(" ", "\t ")]
)
def test_line_ends_and_blanks(text):
    same(opened(text), X, Y)


PACKERS = {
    "plain": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


@pytest.mark.parametrize("how", PACKERS)
@pytest.mark.parametrize("members", [1, 3])
def test_packed_files(how, members, tmp_path):
    """Also those of several packed files, one behind the other."""
    path = tmp_path / f"data.{how}"
    path.write_bytes(PACKERS[how](TEXT.encode()) * members)
    dataset = dualsvm.open_dataset(path)
    for _ in range(2):
        same(dataset, np.tile(X, (members, 1)), np.tile(Y, members))
    assert dataset.seekable == (how == "plain")
    same(opened(path.read_bytes()), np.tile(X, (members, 1)), np.tile(Y, members))


@pytest.mark.parametrize("how", ["gz", "bz2", "xz", "zst"])
@pytest.mark.parametrize("part", [0.5, 0.98])
def test_truncated_packed_files(how, part, tmp_path):
    content = PACKERS[how](b"".join(b"%d 1:%d\n" % (i % 7, i * i + 1) for i in range(20_000)))
    (tmp_path / "data").write_bytes(content[: int(part * len(content))])
    with pytest.raises(ValueError, match=r"data' is truncated: .* copy the file again"):
        whole(dualsvm.open_dataset(tmp_path / "data"))


@pytest.mark.parametrize("how", ["gz", "bz2", "xz", "zst"])
def test_damaged_packed_files(how, tmp_path):
    content = bytearray(PACKERS[how](b"".join(b"%d 1:%d\n" % (i % 7, i * i + 1) for i in range(20_000))))
    content[len(content) // 2] ^= 255
    (tmp_path / "data").write_bytes(content)
    with pytest.raises(ValueError, match=r"data'( is (damaged|truncated)|, line )"):
        whole(dualsvm.open_dataset(tmp_path / "data"))


def test_zstd_needs_a_package(tmp_path, monkeypatch):
    path = tmp_path / "data"
    path.write_bytes(PACKERS["zst"](TEXT.encode()))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setattr(files, "_native", None)
    with pytest.raises(ImportError, match=r"data' is packed with zstd: install the package zstandard"):
        whole(dualsvm.open_dataset(path))


@pytest.mark.parametrize("zero_based", [False, True])
@pytest.mark.parametrize("with_queries", [False, True])
@pytest.mark.parametrize("block", [1 << 9, 1 << 20])
@pytest.mark.parametrize("threads", [1, 3])
def test_against_scikit_learn(zero_based, with_queries, block, threads, tmp_path, monkeypatch):
    monkeypatch.setattr(svmlight, "BLOCK", block)  # lines that cross blocks, and lines that are longer
    A = sparse_rows(150, 40)
    A[:, 0] = 1.0  # so that scikit-learn's guess is right
    y = np.random.default_rng(1).normal(size=150)
    qid = np.repeat(np.arange(30), 5) if with_queries else None
    path = str(tmp_path / "data")
    dump_svmlight_file(A, y, path, zero_based=zero_based, query_id=qid, comment="made by a test")
    dataset = dualsvm.open_dataset(path, n_jobs=threads)
    theirs = load_svmlight_file(path, query_id=with_queries)
    for _ in range(2):
        same(dataset, theirs[0].toarray(), theirs[1], None, theirs[2] if with_queries else None)
    assert dataset.shape == (150, 40)
    assert (dataset.n_chunks > 3) == (block < 1000)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-1e150, 1e150), st.lists(st.floats(-1e150, 1e150), max_size=6)), min_size=1),
    st.sampled_from(["%r", "%.3g", "%.17g", "%e", "%.25f", "%+g"]),
    st.integers(1, 3),
)
def test_numbers_are_those_nearest_to_the_text(rows, form, threads):
    """What Python makes of the same digits is the reference."""
    lines, expected = [], []
    for target, values in rows:
        words = [form % value for value in (target, *values)]
        lines.append(" ".join([words[0], *(f"{i}:{word}" for i, word in enumerate(words[1:], start=1)), "7:1"]))
        expected.append([float(word) for word in words])
    try:
        A, y, _, _ = whole(opened("\n".join(lines), n_features=7, n_jobs=threads))
    except ValueError:  # rounding went beyond the limit
        assert any(abs(value) > 1e150 for row in expected for value in row)
        return
    for row, found, target in zip(expected, A, y, strict=True):
        assert [target, *found[: len(row) - 1]] == row
        assert not found[len(row) - 1 : 6].any()


NUMBERS = ["1", "-0", "+3", "1.", ".5", "-.5e1", "1E5", "1e-5", "0.1", "123456789012345678", "9007199254740993"]
NUMBERS += [
    "0.30000000000000004",
    "2.2250738585072011e-308",
    "5e-324",
    "1e-400",
    "1" + "0" * 100,
    "0." + "0" * 60 + "7",
]
NUMBERS += [
    "179769313486231570e130",
    "12345678.12345678",
    "0.00000000000000000000000000001",
    "1e+22",
    "1e23",
    "8.5e-23",
]


@pytest.mark.parametrize("number", NUMBERS)
def test_odd_numbers(number):
    A, y, _, _ = whole(opened(f"{number} 1:{number} 2:1\n"))
    assert y[0] == A[0, 0] == float(number)


def test_zeros_are_not_stored_but_count_for_the_width():
    chunk = next(iter(opened("1 1:0 2:0.0 5:1 9:0\n")))
    assert (chunk.X.nnz, chunk.X.shape) == (1, (1, 9))


def test_single_precision():
    chunk = next(iter(opened("0.1 1:0.1 2:16777217\n", dtype=np.float32)))
    assert chunk.X.dtype == np.float32
    assert chunk.X.data.tolist() == [np.float32(0.1), np.float32(16777216)]
    assert chunk.y[0] == 0.1
    with pytest.raises(ValueError, match=r"line 1, column 5: expected a finite number"):
        whole(opened("1 1:1e39\n", dtype=np.float32))


def test_declared_and_discovered_width(tmp_path):
    path = tmp_path / "data"
    path.write_text(TEXT)
    assert dualsvm.open_dataset(path, n_features=9).shape == (None, 9)
    same(dualsvm.open_dataset(path, n_features=9), np.pad(X, ((0, 0), (0, 5))), Y)
    dataset = dualsvm.open_dataset(path, chunk_rows=1)
    assert [chunk.X.shape[1] for chunk in dataset] == [3, 3, 4, 4] or dataset.n_features == 4
    assert {chunk.X.shape[1] for chunk in dataset} == {4}


def test_the_base_is_guessed_or_declared():
    assert whole(opened("1 0:1 2:5\n"))[0].tolist() == [[1, 0, 5]]
    assert whole(opened("1 1:1 2:5\n"))[0].tolist() == [[1, 5]]
    assert whole(opened("1 1:1 2:5\n", index_base=0))[0].tolist() == [[0, 1, 5]]


def test_a_base_that_shows_too_late(monkeypatch):
    monkeypatch.setattr(svmlight, "BLOCK", 64)
    text = "1 1:1\n" * 50 + "1 0:1\n"
    with pytest.raises(ValueError, match=r"line 51, column 3: index 0, though .* begin at 1; .* give index_base=0"):
        whole(opened(text))
    assert whole(opened(text, index_base=0))[0].shape == (51, 2)


BAD = {
    "x 1:1": (1, "expected a target, a number, at the beginning"),
    "nan 1:1": (1, "expected a target"),
    "1,2 1:1": (1, "expected a target"),
    "1x 1:1": (1, "expected a target"),
    "- 1:1": (1, "expected a target"),
    "1e 1:1": (1, "expected a target"),
    "1:1 2:2": (1, "expected a target"),
    "1e200 1:1": (1, "expected a finite number, of 1e150 at most"),
    "1 1": (3, "expected index:value"),
    "1 a:1": (3, "expected index:value"),
    "1 -1:1": (3, "expected index:value"),
    "1 1.5:1": (3, "expected index:value"),
    "1 1 :1": (3, "expected index:value"),
    "1 1:1 qid:3": (7, "expected index:value"),
    "1 sid:1 1:1": (3, "expected index:value"),
    "1 1:": (5, "expected a number behind the colon"),
    "1 1:a": (5, "expected a number behind the colon"),
    "1 1: 1": (5, "expected a number behind the colon"),
    "1 1:0x10": (5, "expected a number behind the colon"),
    "1 1:1:1": (5, "expected a number behind the colon"),
    "1 1:nan": (5, "expected a number behind the colon"),
    "1 1:inf": (5, "expected a number behind the colon"),
    "1 1:1\r2:2": (5, "expected a number behind the colon"),
    "1 1:1e151": (5, "expected a finite number"),
    "1 1:-1e999": (5, "expected a finite number"),
    "1 0:1": (3, "index 0, though the indices of this file begin at 1"),
    "1 1:1 100:1": (7, "the index is beyond the declared width, n_features=99"),
    "1 2:1 2:1": (7, "the index comes twice"),
    "1 3:1 2:1": (7, "the index is smaller than the one before: indices must increase"),
    "1 qid:a 1:1": (3, "expected an integer behind qid:"),
    "1 qid:1.5 1:1": (3, "expected an integer behind qid:"),
    "1 qid:5 1:1": (3, "expected no qid, as the lines before have none"),
    "1\0 1:1": (1, "expected a target.*there are zero bytes: is this a text file"),
}


@pytest.mark.parametrize("line", BAD)
@pytest.mark.parametrize("threads", [1, 2])
def test_bad_lines(line, threads, tmp_path):
    column, expected = BAD[line]
    path = tmp_path / "data"
    good = "1 1:1 2:2 # fine\n"
    path.write_bytes((good * 40 + line + "\n" + good * 20 + line + "\n" + good).encode())
    options = {"n_features": 99, "index_base": 1, "n_jobs": threads}
    dataset = dualsvm.open_dataset(path, **options)
    with pytest.raises(
        ValueError, match=rf"data', line 41, column {column}: {expected}.*, got .*mend the line"
    ) as caught:
        whole(dataset)
    assert repr(line) in str(caught.value)
    lenient = dualsvm.open_dataset(path, bad_lines="skip", **options)
    for _ in range(2):
        assert whole(lenient)[0].shape == (61, 99)
    assert lenient.n_skipped == 2


def test_indices_beyond_what_is_possible():
    with pytest.raises(ValueError, match=r"line 1, column 3: expected an index below 2\*\*31"):
        whole(opened("1 99999999999999999999999:1\n"))
    with pytest.raises(ValueError, match=r"expected an index below 2\*\*31|beyond the declared width"):
        whole(opened("1 4294967297:1\n"))
    assert next(iter(opened("1 2147483647:1\n"))).X.shape == (1, 2**31 - 1)


def test_a_line_that_lacks_its_query():
    with pytest.raises(ValueError, match=r"line 3, column 3: expected a qid, as the lines before have one"):
        whole(opened("1 qid:1 1:1\n1 qid:1 1:1\n1 1:1\n"))
    for threads in (1, 2):
        dataset = opened("1 qid:1 1:1\n" * 9 + "1 1:1\n" * 12, n_jobs=threads, bad_lines="skip")
        assert len(whole(dataset)[0]) == 9
        assert dataset.n_skipped == 12
        with pytest.raises(ValueError, match="line 10, column 3: expected a qid"):
            whole(opened("1 qid:1 1:1\n" * 9 + "1 1:1\n" * 12, n_jobs=threads))


def test_long_lines_are_shown_in_part():
    line = (
        "1 "
        + " ".join(f"{i}:{i}" for i in range(1, 100))
        + " 100:oops "
        + " ".join(f"{i}:1" for i in range(101, 200))
    )
    with pytest.raises(ValueError, match=r"got '\.\.\..*98:98 99:99 100:oops 101:1 .*\.\.\.'; mend") as caught:
        whole(opened(line))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "\ufeff"])
def test_texts_without_rows(text, tmp_path):
    (tmp_path / "data").write_text(text)
    with pytest.raises(ValueError, match=r"data' (is empty|has no rows)"):
        whole(dualsvm.open_dataset(tmp_path / "data"))
    with pytest.raises(ValueError, match="the text has no rows"):
        whole(opened(text))


def test_rows_without_features():
    with pytest.raises(ValueError, match="rows without any feature"):
        whole(opened("1\n2\n"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 0}, "n_features must be an integer from 1"),
        ({"n_features": 2.5}, "n_features must be an integer"),
        ({"index_base": 2}, "index_base must be 0, 1 or"),
        ({"bad_lines": "warn"}, 'bad_lines must be "error" or "skip"'),
        ({"target": "y"}, "target is for named columns and arrays only"),
        ({"features": ["a"]}, "features is for named columns and arrays only"),
        ({"qid": "q"}, "qid is for named columns and arrays only"),
        ({"weight": "w"}, "weight is for named columns and arrays only"),
        ({"chunk_rows": 0}, "chunk_rows must be a positive integer"),
        ({"read_ahead": -1}, "read_ahead must be a number of chunks"),
        ({"dtype": int}, "dtype must be float32, float64 or None"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        opened(TEXT, **options)


def test_a_text_file_opened_as_text(tmp_path):
    (tmp_path / "data").write_text(TEXT)
    with open(tmp_path / "data") as file, pytest.raises(TypeError, match="must be a binary file"):
        dualsvm.open_dataset(file)


def test_a_pipe():
    """Standard input gives as much as there is, and cannot seek."""

    class Pipe(io.RawIOBase):
        def __init__(self):
            self.rest = TEXT.encode()

        def readable(self):
            return True

        def readinto(self, buffer):
            n = min(len(buffer), 3, len(self.rest))
            buffer[:n], self.rest = self.rest[:n], self.rest[n:]
            return n

    same(dualsvm.open_dataset(Pipe()), X, Y)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="makes a pipe")
def test_a_pipe_with_a_name(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(
        ValueError, match=r"pipe' is not a regular file: open it with mode 'rb' and give the open file"
    ):
        dualsvm.open_dataset(tmp_path / "pipe")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.integers(1, 3))
def test_any_bytes_are_read_or_refused(content, threads):
    for bad_lines in ("error", "skip"):
        message = ""
        try:
            whole(opened(b"1 1:1\n" + content, bad_lines=bad_lines, n_jobs=threads))
        except ValueError as error:
            message = str(error)
        assert message == "" or (bad_lines == "error" and message.startswith("the text, line"))


TOKENS = st.sampled_from(
    ["1", "-1", " ", " ", "1:2", "2:.5", "qid:3", "#", "\n", "\r\n", "3:1e5", ":", "x", "0:1", "9:1", "\t"]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(TOKENS, max_size=60))
def test_threads_and_blocks_change_nothing(tokens):
    text = "".join(tokens) + "\n"
    found = []
    for threads in (1, 2, 5):
        try:
            dataset = opened("1 1:1\n" + text, index_base=1, bad_lines="skip", n_jobs=threads)
            found.append(([a if a is None else a.tolist() for a in whole(dataset)], dataset.n_skipped))
        except ValueError as error:  # a query that comes back
            found.append(str(error))
    assert found[0] == found[1] == found[2]
