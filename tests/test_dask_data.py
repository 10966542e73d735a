"""What users give to a cluster arrives there as it is, in checked chunks."""

import os
import pickle
import subprocess
import sys
import threading

import cloudpickle
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask import delayed
from distributed import Client, wait

import dualsvm
from dualsvm.dask.data import as_client, bag_pieces, check_picklable, gather_pieces, held
from dualsvm.dask.load import Piece, load, load_pairs

from .partitions import CUTS, QID, WEIGHT, X, Y, block, chunked, frame, loaded, parts, together


@pytest.mark.parametrize("kind", ["array", "columns", "sparse", "csc", "unknown", "frame", "delayed"])
def test_every_form_arrives_as_it_is(client, kind):
    pieces = gather_pieces(client, block(kind), chunked(Y), chunked(WEIGHT), chunked(QID), chunked(WEIGHT + 1))
    found = loaded(client, pieces)
    assert [piece.name for piece in pieces] == [f"partition {k} of X" for k in range(3)]
    assert [sum(map(len, each)) for each in found] == list(CUTS)
    for name, expected in (("X", X), ("y", Y), ("weight", WEIGHT), ("qid", QID)):
        np.testing.assert_array_equal(together(found, name), expected)
    np.testing.assert_array_equal(np.concatenate([each.margin for each in found]), WEIGHT + 1)
    assert {sp.issparse(each[0].X) for each in found} == {kind in ("sparse", "csc")}
    assert {tuple(each.names or ()) for each in found} == {tuple("abcd") if kind == "frame" else ()}


def test_other_partitions_of_targets_become_those_of_the_rows(client):
    pieces = gather_pieces(client, block("array"), chunked(Y, 7), chunked(WEIGHT[:, None], 50), margin=2)
    found = loaded(client, pieces)
    assert [len(each[0].y) for each in found] == list(CUTS)
    np.testing.assert_array_equal(together(found, "y"), Y)
    np.testing.assert_array_equal(together(found, "weight"), WEIGHT)
    assert [each.margin for each in found] == [2.0] * 3
    found = loaded(client, gather_pieces(client, block("array"), chunked(Y), margin=chunked(WEIGHT[:, None])))
    assert [each.margin.shape for each in found] == [(n,) for n in CUTS]


@pytest.mark.parametrize("form", ["futures", "tuples", "results", "chunks", "series"])
def test_lists(client, form):
    several = list(zip(parts(X), parts(Y), strict=True))
    if form == "futures":
        given = [client.submit(pd.DataFrame, x) for x, _ in several], [client.submit(np.copy, y) for _, y in several]
    elif form == "series":
        given = [delayed(x) for x, _ in several], dd.from_delayed([delayed(pd.Series)(y) for _, y in several])
    elif form == "tuples":
        given = ([(delayed(x), client.submit(np.copy, y)) for x, y in several],)
    elif form == "results":
        given = ([delayed(tuple)(pair) for pair in several],)
    else:
        given = ([delayed(dualsvm.Chunk)(*pair) for pair in several],)
    found = loaded(client, gather_pieces(client, *given))
    np.testing.assert_array_equal(together(found, "X"), X)
    np.testing.assert_array_equal(together(found, "y"), Y)


@pytest.fixture
def stores(tmp_path):
    paths = [tmp_path / f"part{k}" for k in range(3)]
    for path, x, y, weight in zip(paths, parts(X), parts(Y), parts(WEIGHT), strict=True):
        dualsvm.open_dataset(x, target=y, weight=weight).save(path, dtype=np.float64)
    return paths


def test_paths_are_opened_by_workers(two_workers, stores):
    pieces = gather_pieces(two_workers, stores, options={"chunk_rows": 10})
    assert [piece.name for piece in pieces] == [repr(str(path)) for path in stores]
    assert not any(piece.futures for piece in pieces)
    found = loaded(two_workers, pieces)
    assert [len(each) for each in found] == [2, 1, 3]
    for name, expected in (("X", X), ("y", Y), ("weight", WEIGHT)):
        np.testing.assert_array_equal(together(found, name), expected)


def test_what_is_sound_is_not_copied():
    sparse = sp.csr_array(X)
    sparse.indices.flags.writeable = sparse.data.flags.writeable = X.flags.writeable = False  # as they come from afar
    piece = Piece(0, "partition 0 of X", ("X", "y"))
    assert np.shares_memory(load(piece, X, Y)[0].X, X)
    assert np.shares_memory(load(piece, sparse, Y)[0].X.data, sparse.data)
    assert load(piece, X, Y, dtype=np.float32)[0].X.dtype == np.float32
    assert load(piece, X.astype(np.float32), Y)[0].X.dtype == np.float32
    assert load(piece, np.arange(6).reshape(3, 2), Y[:3])[0].X.dtype == np.float64
    with pytest.raises(ValueError, match="partition 0 of X: X has 4 columns, but 5 are expected"):
        load(piece, sparse, Y, width=5)


def test_other_sparse_arrays():
    class Coo:  # as those of the package `sparse`
        def tocsr(self):
            return sp.csr_matrix(X)

    np.testing.assert_array_equal(load(Piece(0, "it", ("X",)), Coo())[0].X.toarray(), X)


def test_frames_of_several_types():
    table = pd.DataFrame({"a": np.array([1, 2], np.int8), "b": np.array([0.5, 1], np.float32)})
    piece = Piece(0, "it", ("X",))
    assert load(piece, table)[0].X.dtype == np.float32
    table["c"] = pd.array([True, False], "boolean")
    table["d"] = pd.array([2, 3], "Int64")
    np.testing.assert_array_equal(load(piece, table)[0].X, [[1, 0.5, 1, 2], [2, 1, 0, 3]])
    few = load(piece, frame().astype(pd.SparseDtype(float, 0.0)))[0].X
    assert sp.issparse(few)
    np.testing.assert_array_equal(few.toarray(), X)


def test_size_of_what_is_loaded():
    from dask.sizeof import sizeof

    big = np.zeros((1000, 100))
    assert 8e5 <= sizeof(load(Piece(0, "it", ("X", "y")), big, np.zeros(1000))) < 9e5


def test_pieces_travel_without_futures(client):
    piece = gather_pieces(client, block("array"), chunked(Y), margin=0.5)[1]
    same = pickle.loads(pickle.dumps(piece))
    assert (same.number, same.name, same.fields, same.margin) == (1, "partition 1 of X", ("X", "y"), 0.5)
    assert same.futures == ()


def test_nothing_is_computed_here_nor_twice(two_workers):
    def rows(block):
        return np.column_stack([np.random.default_rng().random(10), np.full(10, os.getpid())])

    made = da.zeros((30, 2), chunks=(10, 2)).map_blocks(rows)
    pieces = gather_pieces(two_workers, made, made[:, 0])
    for piece in pieces:
        features, targets = two_workers.gather(list(piece.futures))
        np.testing.assert_array_equal(features[:, 0], targets)  # they are of the same call
        assert os.getpid() not in features[:, 1]


def test_rows_that_are_lost_are_made_again(two_workers):
    pieces = held(two_workers, gather_pieces(two_workers, chunked(X), chunked(Y)))
    futures = [piece.futures[0] for piece in pieces]
    wait(futures)
    holders = {worker for several in two_workers.who_has(futures).values() for worker in several}
    two_workers.restart_workers(list(holders))
    np.testing.assert_array_equal(together(loaded(two_workers, pieces), "X"), X)


def test_datasets_that_workers_open(client, stores):
    given = [delayed(dualsvm.open_dataset)(path) for path in stores]
    np.testing.assert_array_equal(together(loaded(client, gather_pieces(client, given)), "X"), X)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((X, Y), TypeError, "X must be a Dask array.*got a ndarray, which lies in memory: fit the local estimator"),
        ((sp.csr_array(X), Y), TypeError, "which lies in memory.*from_array"),
        ((block("array"), Y), TypeError, "y must be a Dask array.*lies in memory"),
        (([X, X], [Y, Y]), TypeError, "element 0 of X must be a delayed object or a future, got a ndarray"),
        ((delayed(X), delayed(Y)), TypeError, "X is one Delayed.*: give a list"),
        (([], []), ValueError, "X is an empty list"),
        (("data.svm",), TypeError, "X must be .* got a str: give a list of paths"),
        ((dualsvm.open_dataset(X),), TypeError, "got a Dataset: give its path"),
        ((["a", delayed(X)],), TypeError, "element 1 of X must be a path"),
        ((["a"], chunked(Y)), ValueError, "their own targets, weights and queries: leave y out"),
        (([(delayed(X),), (delayed(X), delayed(Y))],), ValueError, "all of one length"),
        ((block("array"), chunked(Y[:49], 7)), ValueError, "X has 50 rows, but y has 49"),
        ((block("unknown"), chunked(Y, 25)), ValueError, "X has 3 partitions, but y has 2"),
        ((da.ones(5), da.ones(5)), ValueError, "X must have rows and columns, got a Dask array of 1 dim"),
    ],
)
def test_what_is_no_collection(client, arguments, kind, message):
    with pytest.raises(kind, match=message):
        gather_pieces(client, *arguments)


PAIRS = [(np.arange(k), k % 2) for k in range(7)]


@pytest.mark.parametrize("form", ["bag", "two bags", "delayed", "futures", "two lists"])
def test_pairs(client, form):
    bag = db.from_sequence(PAIRS, npartitions=3)
    inputs, outputs = bag.pluck(0), bag.map(lambda pair: pair[1])
    given = {
        "bag": (bag.map(tuple),),
        "two bags": (inputs, outputs),
        "delayed": ([delayed(PAIRS[:3]), delayed(iter)(PAIRS[3:])],),
        "futures": ([client.submit(list, PAIRS[:3]), client.submit(list, PAIRS[3:])],),
        "two lists": (inputs.to_delayed(), outputs.to_delayed()),
    }[form]
    pieces = held(client, bag_pieces(client, *given), pairs=True)
    found = [pair for piece in pieces for pair in load_pairs(piece, piece.futures[0].result())]
    assert [(x.tolist(), y) for x, y in found] == [(x.tolist(), y) for x, y in PAIRS]


def test_pairs_of_stores(client, stores):
    pieces = held(client, bag_pieces(client, stores), pairs=True)
    found = [piece.futures[0].result() for piece in pieces]
    np.testing.assert_array_equal([x for each in found for x, _ in each], X)
    assert [y for each in found for _, y in each] == Y.tolist()
    np.testing.assert_array_equal(np.concatenate([each.weight for each in found]), WEIGHT)


def test_bad_pairs(client):
    def found(*given):
        return [p.futures[0].result() for p in held(client, bag_pieces(client, *given), pairs=True)]

    with pytest.raises(TypeError, match=r"partition 1 of X: element 2 must be a pair \(x, y\), got int"):
        found(db.from_delayed([delayed(PAIRS), delayed([*PAIRS[:2], 3])]))
    with pytest.raises(ValueError, match="partition 0 of X: there are 7 inputs, but 2 outputs"):
        found([delayed(PAIRS)], [delayed([1, 2])])
    with pytest.raises(TypeError, match=r"element 0 of X must be a delayed object.*lies in memory"):
        found(PAIRS)
    weights = [
        p.futures[0].result().weight
        for p in held(
            client, bag_pieces(client, [delayed(PAIRS)], None, [delayed([1, 2, 3, 4, 5, 6, 7])]), pairs=True
        )
    ]
    assert weights[0].tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_tasks_that_cannot_travel():
    class Task:
        def __init__(self):
            self.lock = threading.Lock()

    with pytest.raises(TypeError, match=r"the task, a Task, cannot be pickled.*__getstate__"):
        check_picklable(Task(), "task")
    check_picklable(dualsvm.tasks.Chain(), "task")
    check_picklable(lambda: Task, "task")
    assert pickle.loads(cloudpickle.dumps(dualsvm)) is dualsvm  # what the user's functions say


def test_clients(client):
    assert as_client(client) is client
    with pytest.raises(TypeError, match=r"must be a distributed.Client or None, got str"):
        as_client("tcp://localhost:8786")
    with Client(client.scheduler.address, set_as_default=False) as other:
        assert as_client(other) is other
    with pytest.raises(ValueError, match="the client is closed: make one"):
        as_client(other)


CODE = """
import sys
import dualsvm, dualsvm.linear, dualsvm.structured
print("dask" in sys.modules)
from dualsvm.dask.data import as_client
try:
    as_client()
except ValueError as error:
    print(error)
for name in [name for name in sys.modules if name.startswith("dualsvm.dask")]:
    del sys.modules[name]
sys.modules["distributed"] = None
try:
    import dualsvm.dask
except ImportError as error:
    print(error)
"""


def test_without_client_and_without_dask():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=100)
    loaded, alone, absent = done.stdout.splitlines()
    assert loaded == "False"
    assert "there is no Dask client" in alone
    assert "LocalCluster" in alone
    assert 'pip install "dualsvm[dask]"' in absent
