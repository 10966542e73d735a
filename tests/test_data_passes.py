"""Passes: the same chunks every time, in any order where that is possible, read ahead by a thread that goes away."""

import gc
import os
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import dualsvm
from dualsvm.data import svmlight
from dualsvm.data.ahead import read_ahead

from .datasets import opened, same, sparse_rows, whole

X = sparse_rows(100, 8)
Y = np.arange(100.0)


def lines(n=100, queries=None):
    rows = []
    for i in range(n):
        query = "" if queries is None else f"qid:{queries[i]} "
        rows.append(f"{Y[i]:g} {query}" + " ".join(f"{j + 1}:{x!r}" for j, x in enumerate(X[i].tolist()) if x))
    return "\n".join(rows) + "\n"


def every_source(folder):
    """The same rows, in all ways in which they can be read in chunks of 7."""
    (folder / "text").write_text(lines())
    parts = [(X[a : a + 13], Y[a : a + 13]) for a in range(0, 100, 13)]
    sources = {
        "text": (folder / "text", {}),
        "array": (X, {"target": Y}),
        "matrix": (sp.csc_matrix(X), {"target": Y}),
        "list": (parts, {}),
        "function": (lambda: iter(parts), {}),
    }
    for name, (source, options) in sources.items():
        yield name, dualsvm.open_dataset(source, chunk_rows=7, **options)
    dualsvm.open_dataset(X, target=Y).save(folder / "store")
    yield "store", dualsvm.open_dataset(folder / "store", chunk_rows=7)


def test_chunks_are_the_same_in_every_pass_and_source(tmp_path):
    for name, dataset in every_source(tmp_path):
        for _ in range(3):
            assert [len(chunk) for chunk in dataset] == [7] * 14 + [2], name
            same(dataset, X, Y)
        assert (dataset.n_chunks, dataset.shape) == (15, (100, 8))
        assert dataset.reiterable
        np.testing.assert_array_equal(dataset.targets(), Y)


def test_any_order(tmp_path):
    for name, dataset in every_source(tmp_path):
        whole(dataset)
        assert dataset.seekable == (name not in ("list", "function"))
        rng = np.random.default_rng(0)
        same(dataset, X, Y, order=rng)
        if dataset.seekable:
            assert [chunk.index for chunk in dataset.chunks([14, 3, 3, 0])] == [14, 3, 3, 0]
            first = [chunk.index for chunk in dataset.chunks(np.random.default_rng(1))]
            assert first == [chunk.index for chunk in dataset.chunks(np.random.default_rng(1))]
            assert first != [chunk.index for chunk in dataset.chunks(np.random.default_rng(2))]
            chunk = next(iter(dataset.chunks([4])))
            np.testing.assert_array_equal(chunk.y, Y[28:35])
            assert list(dataset.chunks([])) == []
            with pytest.raises(ValueError, match=r"order must hold numbers of chunks, 0 to 14, got 0 to 15"):
                dataset.chunks([0, 15])
            with pytest.raises(ValueError, match="order must be numbers of chunks"):
                dataset.chunks(["a"])
        else:
            with pytest.raises(ValueError, match="can be read in their order only: give order=None"):
                dataset.chunks([1, 0])


def test_text_is_read_in_order_until_its_chunks_are_known(tmp_path):
    (tmp_path / "text").write_text(lines())
    dataset = dualsvm.open_dataset(tmp_path / "text", chunk_rows=7)
    with pytest.raises(ValueError, match="in their order only, until they have been read once"):
        dataset.chunks([1, 0])
    first = [chunk.index for chunk in dataset.chunks(np.random.default_rng(0))]
    assert first == list(range(15))
    assert [chunk.index for chunk in dataset.chunks(np.random.default_rng(0))] != first


QUERIES = np.repeat([5, 3, 9, 4, 1, 7, 8, 2], [1, 30, 2, 3, 40, 4, 12, 8])


@pytest.mark.parametrize("chunk_rows", [1, 6, 20, 1000, None])
@pytest.mark.parametrize("kind", ["text", "array", "list", "store"])
def test_queries_stay_together(chunk_rows, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(svmlight, "BLOCK", 600)
    (tmp_path / "text").write_text(lines(100, QUERIES))
    parts = [(X[a : a + 3], Y[a : a + 3], None, QUERIES[a : a + 3]) for a in range(0, 100, 3)]
    dualsvm.open_dataset(X, target=Y, qid=QUERIES).save(tmp_path / "store")
    options = {"target": Y, "qid": QUERIES} if kind == "array" else {}
    sources = {"text": tmp_path / "text", "array": X, "list": parts, "store": tmp_path / "store"}
    dataset = dualsvm.open_dataset(sources[kind], chunk_rows=chunk_rows, **options)
    for order in (None, np.random.default_rng(0)):
        same(dataset, X, Y, None, QUERIES, order)
        seen = [set(chunk.qid.tolist()) for chunk in dataset.chunks(order)]
        assert sum(map(len, seen)) == len(set().union(*seen)) == 8
        if chunk_rows == 1:
            assert len(seen) == 8
        if chunk_rows == 6:
            assert all(len(chunk) >= 6 for chunk in dataset if chunk.stop < 100)


@pytest.mark.parametrize("queries", [[1, 2, 1, 3], [5, 1, 2, 5]])
@pytest.mark.parametrize("chunk_rows", [1, 100])
def test_queries_that_come_back_are_refused(queries, chunk_rows):
    text = "".join(f"1 qid:{q} 1:1\n" for q in queries)
    message = f"the rows of query {queries[0]} are not consecutive: sort the rows by query"
    with pytest.raises(ValueError, match=message):
        whole(opened(text, chunk_rows=chunk_rows))
    with pytest.raises(ValueError, match=message):
        dualsvm.open_dataset(X[:4], qid=queries, chunk_rows=chunk_rows)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 15), st.integers(1, 15))
def test_streams_and_tables_are_cut_alike(sizes, chunk_rows, step):
    """Every chunk has at least the wanted size, but would not without its last query; the last chunk may be small."""
    qid = np.repeat(np.random.default_rng(0).permutation(len(sizes)), sizes)
    n = len(qid)
    rows = np.arange(float(n))[:, None] + 1
    parts = [(rows[a : a + step], rows[a : a + step, 0], None, qid[a : a + step]) for a in range(0, n, step)]
    for source, options in ((parts, {}), (rows, {"qid": qid, "target": rows[:, 0]})):
        dataset = dualsvm.open_dataset(source, chunk_rows=chunk_rows, read_ahead=0, **options)
        same(dataset, rows, rows[:, 0], None, qid)
        seen = [set(chunk.qid.tolist()) for chunk in dataset]
        assert sum(map(len, seen)) == len(sizes)
        for chunk in dataset:
            last = int((chunk.qid == chunk.qid[-1]).sum())
            assert len(chunk) - last < chunk_rows
            assert len(chunk) >= chunk_rows or chunk.stop == n


# a source that is not what it was


def test_files_that_change_between_passes(tmp_path):
    path = tmp_path / "text"
    path.write_text(lines())
    dataset = dualsvm.open_dataset(path)
    whole(dataset)
    with open(path, "a") as file:
        file.write("1 1:1\n")
    with pytest.raises(
        ValueError, match=r"text' has changed since it was opened \(it had \d+ bytes and has \d+ now\)"
    ):
        whole(dataset)
    path.write_text(lines())
    os.utime(path, ns=(1, 1))
    with pytest.raises(
        ValueError, match=r"text' has changed since it was opened \(it was written to\): open it again"
    ):
        whole(dataset)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        whole(dataset)


def test_a_file_that_changes_during_a_pass(tmp_path):
    path = tmp_path / "text"
    path.write_text(lines())
    dataset = dualsvm.open_dataset(path, chunk_rows=5, read_ahead=0)
    chunks = iter(dataset)
    next(chunks)
    os.utime(path, ns=(1, 1))
    with pytest.raises(ValueError, match="has changed since it was opened"):
        list(chunks)
    assert dataset.n_rows is None


@pytest.mark.parametrize("make", [lambda p: iter(p), lambda p: (c for c in p)], ids=["iterator", "generator"])
def test_an_iterator_serves_once(make):
    parts = [(X[:50], Y[:50]), (X[50:], Y[50:])]
    dataset = dualsvm.open_dataset(make(parts))
    assert not dataset.reiterable
    same(dataset, X, Y)
    assert dataset.shape == (100, 8)
    for use in (dataset.chunks, dataset.targets, lambda: iter(dataset), lambda: dataset.save("nowhere")):
        with pytest.raises(
            ValueError, match=r"can be read only once, as it is an iterator.*a function that returns a new"
        ):
            use()


class Lying:
    """Seems to begin again, but is at its end."""

    def __init__(self, parts):
        self.rest = iter(parts)

    def __iter__(self):
        yield from self.rest


def test_an_iterator_that_hides_it():
    dataset = dualsvm.open_dataset(Lying([(X, Y)]))
    whole(dataset)
    with pytest.raises(ValueError, match="ended after 0 rows, but there were 100 before: it can be read only once"):
        whole(dataset)


def test_rows_in_another_order_are_noticed():
    rng = np.random.default_rng(0)

    def shuffled():
        which = rng.permutation(100)
        yield X[which], Y[which]

    dataset = dualsvm.open_dataset(shuffled)
    whole(dataset)
    with pytest.raises(ValueError, match=r"function gives other rows than in the first pass.*switch shuffling off"):
        whole(dataset)


def test_chunks_that_are_not_alike():
    good = (X, Y)
    for other, message in {
        "width": ((X[:, :5], Y), "dense float64 rows of 5 features .* but what came before dense float64 rows of 8"),
        "type": ((X.astype(np.float32), Y), "it holds dense float32 rows"),
        "form": ((sp.csr_array(X), Y), "it holds sparse float64 rows"),
        "target": ((X, Y.astype(int)), "targets of int64"),
        "text": ((X, Y.astype(str)), "targets of text"),
        "weights": ((X, Y, Y), "with targets of float64, weights, but"),
    }.values():
        with pytest.raises(ValueError, match=rf"the list, from row 100: .*{message}"):
            whole(dualsvm.open_dataset([good, other]))


# the thread that reads ahead


def readers():
    return [thread for thread in threading.enumerate() if thread.name == "dualsvm reader"]


def gone():
    gc.collect()
    return not readers()


def endless():
    while True:
        yield X, Y


@pytest.mark.parametrize("depth", [1, 3])
def test_no_thread_is_left(depth):
    dataset = dualsvm.open_dataset(endless, chunk_rows=10, read_ahead=depth)
    chunks = dataset.chunks()
    next(chunks)
    assert len(readers()) == 1
    chunks.close()
    assert gone()
    for chunk in dataset:
        if chunk.index == 5:
            break
    assert gone()
    del chunks
    dataset.chunks()  # never begun
    assert gone()

    def failing():
        for chunk in dataset:
            if chunk.index == 3:
                raise RuntimeError("of the caller")

    with pytest.raises(RuntimeError, match="of the caller"):
        failing()
    assert gone()
    finite = dualsvm.open_dataset([(X, Y)], read_ahead=depth)
    for _ in range(20):
        whole(finite)
    assert gone()


def test_leaving_python_in_the_middle_of_a_pass():
    code = """
import numpy as np, dualsvm
def endless():
    while True:
        yield np.ones((1000, 10)), np.ones(1000)
chunks = iter(dualsvm.open_dataset(endless, chunk_rows=100, read_ahead=2))
print(len(next(chunks)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "100\n", "")


def test_errors_of_the_thread_reach_the_caller():
    def failing():
        yield X, Y
        raise OSError("the network is down")

    for depth in (0, 1, 2):
        dataset = dualsvm.open_dataset(failing, read_ahead=depth, chunk_rows=100)
        chunks = dataset.chunks()
        assert len(next(chunks)) == 100
        with pytest.raises(OSError, match="the network is down"):
            next(chunks)
        assert gone()
        assert dataset.n_rows is None


def test_reading_is_ahead_but_not_far():
    begun = []

    def slow():
        for k in range(50):
            begun.append(k)
            yield k

    items = read_ahead(slow(), 2)
    assert next(items) == 0
    for _ in range(100):
        time.sleep(0.01)
        if len(begun) >= 4:
            break
    time.sleep(0.05)
    assert len(begun) == 4  # one is out, two wait, and one is in the hand of the thread
    items.close()
    assert gone()


def test_chunks_are_not_kept():
    """Nobody holds on to a chunk that the caller has let go."""
    dataset = dualsvm.open_dataset(lambda: ((X.copy(), Y) for _ in range(8)), chunk_rows=100)
    alive = []
    for chunk in dataset:
        alive.append(weakref.ref(chunk.X.base if chunk.X.base is not None else chunk.X))
        del chunk
        assert sum(ref() is not None for ref in alive) <= 1


def test_two_passes_at_once(tmp_path):
    for _, dataset in every_source(tmp_path):
        for one, other in zip(dataset, dataset, strict=True):
            np.testing.assert_array_equal(one.y, other.y)
    assert gone()


def test_a_pass_that_was_left_teaches_nothing(tmp_path):
    (tmp_path / "text").write_text(lines())
    dataset = dualsvm.open_dataset(tmp_path / "text", chunk_rows=7)
    for _chunk in dataset:
        break
    assert dataset.n_rows is None
    same(dataset, X, Y)


# weights and queries


def test_weights_and_queries_beside_any_source(tmp_path):
    weight = np.random.default_rng(0).random(100)
    (tmp_path / "text").write_text(lines())
    dualsvm.open_dataset(X, target=Y).save(tmp_path / "store")
    sources = (tmp_path / "text", {}), (X, {"target": Y}), ([(X, Y)], {}), (tmp_path / "store", {})
    for source, options in sources:
        dataset = dualsvm.open_dataset(source, weight=weight, qid=QUERIES, chunk_rows=7, **options)
        same(dataset, X, Y, weight, QUERIES)
        same(dataset, X, Y, weight, QUERIES, order=np.random.default_rng(0))
        seen = [set(chunk.qid.tolist()) for chunk in dataset]
        assert sum(map(len, seen)) == 8
        for name, values in (("weight", weight), ("qid", QUERIES)):
            for wrong in (values[:-1], np.append(values, values[-1])):
                with pytest.raises(ValueError, match=rf"{name} has (99|101) entries, but .* has (more|100) rows"):
                    whole(dualsvm.open_dataset(source, **{name: wrong}, chunk_rows=7, **options))
        with pytest.raises(ValueError, match="weight must not be negative"):
            dualsvm.open_dataset(source, weight=-weight, **options)
    assert whole(dualsvm.open_dataset([(X, Y, weight)]))[2].tolist() == weight.tolist()
    for name in ("weight", "qid"):
        with pytest.raises(ValueError, match=f"the list has its own {name}: leave {name} out"):
            whole(dualsvm.open_dataset([(X, Y, weight, QUERIES)], **{name: QUERIES}))


def test_repr(tmp_path):
    (tmp_path / "text").write_text("1 1:1\n")
    dataset = dualsvm.open_dataset(tmp_path / "text")
    assert repr(dataset).startswith("<Dataset: ? rows x ? features from '")
    whole(dataset)
    assert repr(dataset).startswith("<Dataset: 1 rows x 1 features from '")
