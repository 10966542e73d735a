"""The store: what was saved comes back, and nothing half-written is taken for one."""

import errno
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dualsvm
from dualsvm.data import write

from .datasets import same, whole
from .stores import Q, W, X, Y, saved


@pytest.mark.parametrize("source", [X, X.astype(np.float32), sp.csr_array(X), sp.csr_array(X.astype(np.float32))])
def test_what_was_saved_comes_back(source, tmp_path):
    path = saved(tmp_path, source)
    store = dualsvm.open_dataset(path, verify=True, chunk_rows=13)
    dense = source.toarray() if sp.issparse(source) else source
    for order in (None, np.random.default_rng(0)):
        same(store, dense, Y, W, Q, order)
    chunk = next(iter(store))
    assert (sp.issparse(chunk.X), chunk.X.dtype, chunk.y.dtype) == (sp.issparse(source), source.dtype, Y.dtype)
    assert store.shape == X.shape
    np.testing.assert_array_equal(store.targets(), Y)


def test_numpy_alone_reads_it(tmp_path):
    parts = {path.stem: np.load(path) for path in saved(tmp_path).glob("*.npy")}
    assert {name: str(array.dtype) for name, array in parts.items()} == {
        "values": "float64",
        "indices": "int32",
        "indptr": "int64",
        "target": "int64",
        "weight": "float64",
        "qid": "int64",
    }
    matrix = sp.csr_array((parts["values"], parts["indices"], parts["indptr"]), shape=X.shape)
    np.testing.assert_array_equal(matrix.toarray(), X)
    dense = np.load(saved(tmp_path, X, "dense") / "values.npy", mmap_mode="r")
    np.testing.assert_array_equal(dense, X)


def test_only_what_is_there_is_written(tmp_path):
    store = dualsvm.open_dataset(X).save(tmp_path / "store")
    same(store, X)
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == ["meta.json", "values.npy"]


@settings(max_examples=40, deadline=None)
@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        st.tuples(st.integers(1, 12), st.integers(1, 4)),
        elements=st.floats(-(2.0**99), 2.0**99, width=32) | st.sampled_from([0.0, 0.5, 3.0]),
    ),
    st.lists(st.floats(-1e9, 1e9), min_size=12, max_size=12),
    st.integers(1, 5),
    st.booleans(),
)
def test_round_trips(tmp_path_factory, values, more, chunk_rows, sparse):
    """Numbers that float32 holds, and in a part of the cases others behind them, are the same afterwards."""
    A = values.astype(np.float64)
    A[len(A) // 2 :, 0] = more[: len(A) - len(A) // 2]
    folder = tmp_path_factory.mktemp("round")
    dataset = dualsvm.open_dataset(sp.csr_array(A) if sparse else A, chunk_rows=chunk_rows, read_ahead=0)
    store = dataset.save(folder / "store")
    same(store, A)
    kept = next(iter(store)).X.dtype
    assert (kept == np.float32) == bool((A.astype(np.float32) == A).all())
    shutil.rmtree(folder)


def test_single_precision_where_nothing_is_lost(tmp_path):
    """The first numbers are written in float32, and widened when one comes that needs more."""
    A = np.ones((50, 3))
    assert next(iter(dualsvm.open_dataset(A).save(tmp_path / "a"))).X.dtype == np.float32
    A[40, 1] = 0.1
    for k, source in enumerate((A, sp.csr_array(A))):
        store = dualsvm.open_dataset(source, chunk_rows=7).save(tmp_path / f"b{k}")
        same(dualsvm.open_dataset(tmp_path / f"b{k}", verify=True), A)
        assert next(iter(store)).X.dtype == np.float64
        assert not list((tmp_path / f"b{k}").glob("*.wide"))
    store = dualsvm.open_dataset(A).save(tmp_path / "c", dtype=np.float32)
    same(store, A.astype(np.float32))
    store = dualsvm.open_dataset(np.ones((5, 3), np.float32)).save(tmp_path / "d", dtype=np.float64)
    assert next(iter(store)).X.dtype == np.float64


@pytest.mark.parametrize(
    "kind", [bool, np.int8, np.uint16, np.int64, ">i4", np.float32, np.float64, np.longdouble, str]
)
def test_targets_of_all_kinds(kind, tmp_path):
    y = np.array(["ham", "spam", "ä", ""])[Y] if kind is str else (Y % 2 if kind is bool else Y).astype(kind)
    store = dualsvm.open_dataset(X, target=y, chunk_rows=8).save(tmp_path / "store")
    assert store.targets().dtype.kind == y.dtype.kind
    np.testing.assert_array_equal(store.targets(), y)
    same(store, X, y)


def test_more_entries_than_int32_counts(tmp_path):
    """The starts of rows go on beyond 2**31, though those of a chunk do not."""
    writer = write.Writer(tmp_path, None)
    chunk = dualsvm.Chunk(sp.csr_array(np.ones((3, 4))))
    writer.add(chunk)
    writer._stored = 2**31 - 6
    writer.add(chunk)
    writer.finish({})
    assert np.load(tmp_path / "indptr.npy").tolist() == [0, 4, 8, 12, 2**31 - 2, 2**31 + 2, 2**31 + 6]


def test_names_of_features_are_kept(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})
    assert dualsvm.open_dataset(frame, target="y").save(tmp_path / "store").feature_names == ["a", "b"]


def test_text_becomes_a_store(tmp_path):
    """The width of the text is known only at its end."""
    text = tmp_path / "text"
    text.write_text("".join(f"{i % 2} {i + 1}:{i / 8}\n" for i in range(1, 50)))
    dataset = dualsvm.open_dataset(text, chunk_rows=6)
    store = dataset.save(tmp_path / "store")
    same(store, *whole(dataset)[:2])
    assert store.shape == dataset.shape == (49, 50)


def test_one_pass_is_enough(tmp_path):
    calls = []
    store = dualsvm.open_dataset(iter([(X, Y), (X, Y)])).save(tmp_path / "store", callback=calls.append)
    same(store, np.tile(X, (2, 1)), np.tile(Y, 2))
    assert sum(map(len, calls)) == 180


def test_empty_rows_and_columns(tmp_path):
    A = np.zeros((5, 3))
    same(dualsvm.open_dataset(sp.csr_array(A)).save(tmp_path / "store"), A)


# what is there already


def test_nothing_is_replaced_unasked(tmp_path):
    path = saved(tmp_path)
    with pytest.raises(
        FileExistsError, match=r"store' exists: give another path, or overwrite=True to replace a store"
    ):
        saved(tmp_path)
    same(dualsvm.open_dataset(path), X, Y, W, Q)
    store = dualsvm.open_dataset(X[:3]).save(path, overwrite=True)
    same(store, X[:3])
    assert [p.name for p in tmp_path.iterdir()] == ["store"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("keep me")
    (tmp_path / "file").write_text("keep me")
    for name in ("mine", "file"):
        with pytest.raises(FileExistsError, match="exists and is not a store: give another path"):
            saved(tmp_path, name=name, overwrite=True)
    assert (tmp_path / "mine" / "letter").read_text() == (tmp_path / "file").read_text() == "keep me"


def test_a_store_onto_itself(tmp_path):
    path = saved(tmp_path, X)
    store = dualsvm.open_dataset(path).save(path, overwrite=True, dtype=np.float32)
    same(store, X.astype(np.float32), Y, W, Q)


def test_a_place_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        saved(tmp_path / "nowhere")


# failures on the way


def test_a_source_that_fails_leaves_nothing(tmp_path):
    def failing():
        yield X, Y
        raise RuntimeError("no more")

    saved(tmp_path, name="old")
    for name, options in (("new", {}), ("old", {"overwrite": True})):
        with pytest.raises(RuntimeError, match="no more"):
            dualsvm.open_dataset(failing).save(tmp_path / name, **options)
    assert [p.name for p in tmp_path.iterdir()] == ["old"]
    same(dualsvm.open_dataset(tmp_path / "old", verify=True), X, Y, W, Q)


@pytest.mark.parametrize("after", range(0, 40, 3))
def test_a_disk_that_fills_up_leaves_nothing(after, tmp_path, monkeypatch):
    """Every write, in its turn, finds the disk full."""
    saved(tmp_path, name="old")
    count = 0

    def full(function):
        def tried(*args):
            nonlocal count
            count += 1
            if count > after:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*args)

        return tried

    with monkeypatch.context() as patch:
        patch.setattr(write.Growing, "append", full(write.Growing.append))
        patch.setattr(write.Growing, "finish", full(write.Growing.finish))
        patch.setattr(write.os, "fsync", full(os.fsync))
        patch.setattr(write.os, "rename", full(os.rename))
        with pytest.raises(OSError, match="No space left on device"):
            saved(tmp_path, name="new")
        count = 0
        with pytest.raises(OSError, match="No space left on device"):
            saved(tmp_path, name="old", overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["old"]
    same(dualsvm.open_dataset(tmp_path / "old", verify=True), X, Y, W, Q)


def test_a_limit_on_the_size_of_files(tmp_path):
    """A real refusal of the operating system, in a process of its own."""
    code = f"""
import resource, signal, sys
import numpy as np, dualsvm
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    dataset = dualsvm.open_dataset(np.random.default_rng(0).random((5_000, 9)), chunk_rows=500)
    dataset.save({str(tmp_path / "store")!r})
except OSError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "OSError" in done.stdout, done.stderr
    assert "File too large" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounts a small file system")
def test_a_small_file_system(tmp_path):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(tmp_path)], capture_output=True)
    if mounted.returncode:
        pytest.skip("cannot mount")
    try:
        with pytest.raises(OSError, match="No space left on device"):
            dualsvm.open_dataset(np.random.default_rng(0).random((50_000, 3)), chunk_rows=500).save(
                tmp_path / "store"
            )
        assert list(tmp_path.iterdir()) == []
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


KILLED = """
import os, random, signal, sys, time
import numpy as np
import dualsvm

folder, rng = sys.argv[1], random.Random(0)
target = os.path.join(folder, "store")


def chunks():
    for k in range(12):
        yield np.full((400, 30), 1.0 if k < 6 else 0.1), np.arange(400.0)


def save():
    dualsvm.open_dataset(chunks, chunk_rows=400).save(target, overwrite=True)


def whole(path):
    store = dualsvm.open_dataset(path, verify=True, read_ahead=0)
    assert store.shape == (4800, 30), store
    assert sum(chunk.y.sum() for chunk in store) == 12 * np.arange(400).sum()


begun = time.perf_counter()
save()
usual = time.perf_counter() - begun
whole(target)
os.rename(target, target + ".first")
cut = finished = 0
for k in range(20):
    child = os.fork()
    if child == 0:
        try:
            save()
        finally:
            os._exit(0)
    time.sleep(1.2 * usual * rng.random())
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if os.path.exists(target):
        whole(target)
        finished += 1
    else:
        cut += 1
    for name in os.listdir(folder):  # what was left beside it is whole, or does not open
        try:
            whole(os.path.join(folder, name))
        except ValueError:
            assert name.endswith(".draft"), name
    if k % 3 == 0 and os.path.exists(target):
        os.rename(target, target + str(k))
save()
whole(target)
print(cut, finished)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_killed_while_saving(tmp_path):
    """Killed at any moment, there is a whole store or none; saved again, it is whole."""
    run = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    cut, finished = map(int, done.stdout.split())
    assert cut + finished == 20


CODE = """
import pathlib, re, sys
import numpy as np
import dualsvm

store = dualsvm.open_dataset(sys.argv[1])
before = int(re.search(r"VmHWM:\\s*(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
assert sum(float(chunk.X.sum()) for chunk in store.chunks(np.random.default_rng(0))) > 0
after = int(re.search(r"VmHWM:\\s*(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
print((after - before) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the memory in use")
def test_reading_takes_little_memory(tmp_path):
    """Also of what is mapped, only the chunks in use are in memory."""
    dualsvm.open_dataset(lambda: ((np.ones((10_000, 500), np.float32), np.ones(10_000)) for _ in range(7))).save(
        tmp_path / "store"
    )
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "store")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert os.path.getsize(tmp_path / "store" / "values.npy") > 130e6
    assert int(done.stdout) < 80e6


def test_writing_takes_little_memory(tmp_path):
    """Also when numbers that are written already must be widened."""
    code = f"""
import resource
import numpy as np, dualsvm
def chunks():
    for k in range(60):
        yield np.full((1_000, 500), 1 if k < 30 else 0.1), np.ones(1_000)
dualsvm.open_dataset([(np.ones((9, 9)), np.ones(9))]).save({str(tmp_path / "small")!r})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
dualsvm.open_dataset(chunks, chunk_rows=1000).save({str(tmp_path / "store")!r})
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert os.path.getsize(tmp_path / "store" / "values.npy") > 230e6
    assert int(done.stdout) < 110e6
