"""What sources do that few expect: marks, indexes, packed files in several parts, threads that cannot be had."""

import bz2
import gc
import gzip
import lzma
import os
import subprocess
import sys
import threading

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import zstandard

import dualsvm
from dualsvm.data import write

from .datasets import opened, whole

RNG = np.random.default_rng(5)


# text


def test_a_mark_at_the_beginning_in_every_pass(tmp_path):
    (tmp_path / "data").write_bytes("\ufeff1 1:2\n-1 2:3\n".encode())
    dataset = dualsvm.open_dataset(tmp_path / "data", chunk_rows=1)
    for order in (None, [1, 0], [0]):
        rows = {chunk.start: chunk.X.toarray()[0].tolist() for chunk in dataset.chunks(order)}
        assert all(rows[k][: k + 1] == [[2.0], [0.0, 3.0]][k] for k in rows)


@pytest.mark.parametrize("threads", [1, 3])
def test_lines_that_are_left_out_do_not_tell_the_base(threads):
    text = "1 0:1 oops\n" + "1 1:2 2:5\n" * 9
    A, _, _, _ = whole(opened(text, bad_lines="skip", n_jobs=threads))
    assert A.tolist() == [[2.0, 5.0]] * 9
    assert whole(opened("1 0:1\n" + text, bad_lines="skip", n_jobs=threads))[0].shape == (10, 3)


@pytest.mark.parametrize("number", [f"0.{'0' * 500}1e100", f"0.{'0' * 400}1", f"-{'0' * 400}.{'0' * 400}12e-9"])
def test_small_numbers_with_many_zeros(number):
    assert whole(opened(f"{number} 1:{number} 2:1\n"))[0].tolist() == [[float(number), 1.0]]


def test_large_numbers_with_many_zeros():
    with pytest.raises(ValueError, match="column 5: expected a finite number"):
        opened(f"1 1:{'0' * 400}1{'0' * 400}.{'0' * 400}\n").targets()


def test_targets_beyond_all_numbers():
    with pytest.raises(ValueError, match="line 1, column 1: expected a finite number"):
        opened("-1e400 1:1\n").targets()


def test_text_that_is_rewritten_while_it_is_read(tmp_path):
    """Same size and time as before: only the lines can tell."""
    path = tmp_path / "data"
    path.write_text("1 1:2\n" * 30)
    state = path.stat()
    dataset = dualsvm.open_dataset(path, chunk_rows=10, read_ahead=0)
    list(dataset)
    chunks = dataset.chunks([0, 2])
    next(chunks)
    path.write_text("1 1:x\n" * 30)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    with pytest.raises(ValueError, match=r"data' has changed since it was opened: open it again"):
        next(chunks)


FEW_THREADS = """
import io, resource
import dualsvm

dualsvm.open_dataset  # loads what it needs
text = b"1 1:2 2:3\\n" * 20_000
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (80 << 20), used + (80 << 20)))  # room for the text and a few stacks
dataset = dualsvm.open_dataset(io.BytesIO(text), n_jobs=64, read_ahead=0)
print(sum(len(chunk) for chunk in dataset))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_threads_that_the_system_does_not_give():
    done = subprocess.run([sys.executable, "-c", FEW_THREADS], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "20000\n"), done.stderr


# packed files

PACKERS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("how", PACKERS)
@pytest.mark.parametrize("damage", [b"not packed at all", b"\0\0\0\0not packed"])
def test_packed_files_with_something_behind_them(how, damage):
    """As when the second of several packed parts is damaged: the rest must not be missed silently."""
    packed = PACKERS[how](b"1 1:2\n")
    assert len(whole(opened(packed + packed))[0]) == 2
    with pytest.raises(ValueError, match=r"the text is (damaged|truncated): .* copy the file again"):
        whole(opened(packed + damage))


@pytest.mark.parametrize("how", ["gzip", "xz"])
def test_packed_files_that_are_filled_up_with_zeros(how):
    packed = PACKERS[how](b"1 1:2\n")
    assert len(whole(opened((packed + bytes(70_000)) * 2))[0]) == 2


def test_zstd_frames_to_be_skipped():
    """pzstd begins a file with one."""
    packed, skipped = PACKERS["zstd"](b"1 1:2\n"), b"\x53\x2a\x4d\x18\x04\0\0\0abcd"
    assert len(whole(opened(skipped + packed + skipped + packed + skipped))[0]) == 2


@pytest.mark.parametrize("how", PACKERS)
def test_packed_files_cut_anywhere(how):
    packed = PACKERS[how](b"1 1:2\n" * 50)
    for size in range(6, len(packed)):
        with pytest.raises(ValueError, match="is truncated"):
            whole(opened(packed[:size]))


# frames


def test_the_index_of_a_frame_is_no_feature():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1]}).loc[[3, 0, 1]]
    named = frame.set_index(pd.Index(["u", "v", "w"]))
    for source in (frame, named, [frame], [named, named]):
        A, y, _, _ = whole(dualsvm.open_dataset(source, target="y"))
        assert A.tolist() == [[4.0], [1.0], [2.0]] * (len(A) // 3)
        assert y.tolist() == [1, 0, 1] * (len(A) // 3)


def test_lists_of_lazy_frames_and_queries():
    frame = pl.DataFrame({"a": [1.0, 2.0], "y": [0, 1]})
    relation = duckdb.connect().sql("select i + 1.0 as a, i as y from range(2) t(i)")
    for source in ([frame.lazy(), frame.lazy()], [relation, relation], [frame.lazy(), relation, lambda: frame]):
        dataset = dualsvm.open_dataset(source, target="y")
        for _ in range(2):
            assert whole(dataset)[0].tolist() == [[1.0], [2.0]] * len(source)


def test_features_of_a_function_without_targets():
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    assert whole(dualsvm.open_dataset(lambda: frame, features=["a"]))[0].tolist() == [[1.0], [2.0]]


def test_a_stream_that_does_not_say_that_it_serves_once():
    """As the results of some databases."""

    class Result:
        def __init__(self):
            self.stream = pa.table({"a": [1.0, 2.0]}).__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.stream

    dataset = dualsvm.open_dataset(Result())
    assert whole(dataset)[0].shape == (2, 1)
    with pytest.raises(ValueError, match=r"the Result cannot be read: .*only once, save the dataset in one pass"):
        whole(dataset)


# arrays


def test_npy_files_by_columns_that_change(tmp_path):
    A = np.asfortranarray(RNG.normal(size=(50, 3)))
    np.save(tmp_path / "a.npy", A)
    dataset = dualsvm.open_dataset(tmp_path / "a.npy", chunk_rows=20)
    np.testing.assert_array_equal(whole(dataset)[0], A)
    os.truncate(tmp_path / "a.npy", 200)  # to read on would end the process
    with pytest.raises(ValueError, match=r"a\.npy' has changed since it was opened"):
        whole(dataset)


@pytest.mark.parametrize(
    "rows",
    [
        sp.csr_array(np.eye(6)),
        np.column_stack([np.ones(8192), RNG.normal(size=(8192, 15))]),
        np.column_stack([RNG.normal(size=(2048, 3)), np.ones((2048, 1))]),
    ],
    ids=["sparse", "ones first", "ones last"],
)
def test_another_order_is_noticed_without_targets(rows):
    """Of sparse rows of ones only the indices tell; of dense ones, not every column does."""
    orders = iter([np.arange(rows.shape[0]), np.arange(rows.shape[0])[::-1]])
    dataset = dualsvm.open_dataset(lambda: [(rows[next(orders)], np.ones(rows.shape[0]))])
    list(dataset)
    with pytest.raises(ValueError, match="in another order"):
        list(dataset)


# threads


def test_garbage_is_collected_in_the_thread_that_reads(monkeypatch):
    """A pass that was left lies in a cycle, as behind an exception; its own thread finds it."""
    complaints, left, found = [], threading.Event(), threading.Event()
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)

    def parts():
        yield np.ones((3, 2)), np.ones(3)
        left.wait(30)
        gc.collect()
        found.set()
        yield np.ones((3, 2)), np.ones(3)

    def leave():
        cycle = [dualsvm.open_dataset(parts, chunk_rows=3).chunks()]
        cycle.append(cycle)
        next(cycle[0])

    gc.disable()
    try:
        leave()
        left.set()
        assert found.wait(30)
    finally:
        gc.enable()
    assert complaints == []
    for thread in threading.enumerate():
        if thread.name == "dualsvm reader":
            thread.join(30)
            assert not thread.is_alive()


# the store


@pytest.mark.parametrize("at_once", [True, False])
def test_a_store_is_replaced_in_a_moment(at_once, tmp_path, monkeypatch):
    """Whoever looks finds a whole store, and beside it only what may be deleted."""
    target, seen = tmp_path / "store", []
    dualsvm.open_dataset(np.ones((5, 2))).save(target)
    if at_once:
        if not write._exchange(tmp_path, tmp_path):
            pytest.skip("this system cannot exchange names")
    else:
        monkeypatch.setattr(write, "_exchange", lambda *_: False)
    rename, delete = os.rename, write.shutil.rmtree

    def look(do, *args, **more):
        do(*args, **more)
        names = sorted(path.name for path in tmp_path.iterdir())
        assert all(name == "store" or name.endswith(".draft") for name in names)
        seen.append("store" in names)

    monkeypatch.setattr(write.os, "rename", lambda *args: look(rename, *args))
    monkeypatch.setattr(write.shutil, "rmtree", lambda *args, **more: look(delete, *args, **more))
    assert dualsvm.open_dataset(np.ones((7, 2))).save(target, overwrite=True).shape == (7, 2)
    assert seen == ([True] if at_once else [False, True, True])
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
