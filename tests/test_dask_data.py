"""What users give to a cluster arrives there as it is, in checked chunks, and errors name the partition."""

import pickle
import subprocess
import sys
import threading

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
from dualsvm.dask.survey import survey

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(50, 4)), 1) * (RNG.random((50, 4)) < 0.6)
Y = RNG.integers(0, 3, size=50)
WEIGHT = RNG.random(50)
QID = np.repeat(np.arange(10), 5)
CUTS = (20, 5, 25)


def chunked(array, cuts=CUTS):
    return da.from_array(array, chunks=(cuts, *array.shape[1:]))


def parts(array):
    return np.split(array, np.cumsum(CUTS)[:-1])


def loaded(client, pieces):
    """Load pieces on the workers, and bring them here to look at them."""
    return client.gather([piece.futures[0] for piece in held(client, pieces)])


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def together(several, name):
    return np.concatenate([dense(getattr(chunk, name)) for each in several for chunk in each])


def frame(columns="abcd"):
    return pd.DataFrame(X, columns=list(columns))


def block(kind):
    """Return the rows in some form, in partitions."""
    if kind == "array":
        return chunked(X)
    if kind == "columns":
        return da.from_array(X, chunks=(CUTS, (1, 3)))
    if kind == "sparse":
        return chunked(X).map_blocks(sp.csr_array)
    if kind == "csc":
        return chunked(X).map_blocks(sp.csc_matrix)
    if kind == "unknown":
        table = chunked(np.hstack([X, np.ones((50, 1))]))
        return table[table[:, 4] > 0][:, :4]
    if kind == "frame":
        return dd.from_delayed(
            [delayed(part) for part in (frame()[:20], frame()[20:25], frame()[25:])], meta=frame()[:0]
        )
    return [delayed(part) for part in parts(X)]


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


def text(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_text_is_as_wide_as_the_widest_file(client, tmp_path):
    paths = [text(tmp_path / "a", ["1 1:5", "-1 3:2"]), text(tmp_path / "b", ["1 7:1"])]
    pieces = held(client, gather_pieces(client, paths))
    facts = survey(client, pieces, "classes")
    assert (facts.width, facts.rows, facts.counts.tolist()) == (7, (2, 1), [1, 2])
    found = [load(piece, piece.futures[0].result(), width=facts.width) for piece in pieces]
    assert [each[0].X.shape for each in found] == [(2, 7), (1, 7)]
    assert pieces[0].futures[0].result()[0].X.shape == (2, 3)  # others may hold it
    paths[1].write_text("1 0:1\n")
    with pytest.raises(ValueError, match=r"indices seem to begin at 0 in '.*b', but at 1 in '.*a': say.*index_base"):
        survey(client, gather_pieces(client, paths), "classes")


def test_what_is_sound_is_not_copied():
    sparse = sp.csr_array(X)
    sparse.indices.flags.writeable = sparse.data.flags.writeable = X.flags.writeable = False  # as they come from afar
    piece = Piece(0, "partition 0 of X", ("X", "y"))
    assert np.shares_memory(load(piece, X, Y)[0].X, X)
    assert np.shares_memory(load(piece, sparse, Y)[0].X.data, sparse.data)
    assert load(piece, X, Y, dtype=np.float32)[0].X.dtype == np.float32
    assert load(piece, X.astype(np.float32), Y)[0].X.dtype == np.float32
    assert load(piece, np.arange(6).reshape(3, 2), Y[:3])[0].X.dtype == np.float64


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
    """Rows are made on workers, once for X and y together, and can be made again."""
    made = da.map_blocks(
        lambda block: np.full((10, 3), float(threading.main_thread().native_id)), da.zeros((30, 3), chunks=(10, 3))
    )
    pieces = gather_pieces(two_workers, made, made[:, 0])
    wait([future for piece in pieces for future in piece.futures])
    facts = survey(two_workers, pieces, "numbers")
    assert facts.rows == (10, 10, 10)
    first = [[array.min() for array in two_workers.gather(list(piece.futures))] for piece in pieces]
    assert all(x == y != threading.main_thread().native_id for x, y in first)


def test_lost_rows_are_made_again(two_workers):
    pieces = held(two_workers, gather_pieces(two_workers, chunked(X), chunked(Y)))
    wait([piece.futures[0] for piece in pieces])
    two_workers.restart_workers([next(iter(two_workers.scheduler_info()["workers"]))])
    np.testing.assert_array_equal(together(loaded(two_workers, pieces), "X"), X)


@pytest.mark.parametrize("kind", ["array", "frame", "sparse"])
def test_survey_of_classes(client, kind):
    names = np.array(["no", "yes", "perhaps"])[Y]
    names[:20][names[:20] == "perhaps"] = "no"
    y = chunked(names.astype(object))
    facts = survey(client, gather_pieces(client, block(kind), y, chunked(WEIGHT)), "classes")
    classes, counts = np.unique(names, return_counts=True)
    np.testing.assert_array_equal(facts.classes, classes)
    np.testing.assert_array_equal(facts.counts, counts)
    np.testing.assert_allclose(facts.weights, [part.sum() for part in parts(WEIGHT)])
    assert (facts.rows, facts.starts, facts.n_rows) == (CUTS, [0, 20, 25], 50)
    assert (facts.width, facts.dtype, facts.sparse) == (4, np.float64, kind == "sparse")
    assert facts.feature_names == (list("abcd") if kind == "frame" else None)


def test_survey_of_many_pieces(client):
    table, y = da.ones((300, 2), chunks=(10, 2)), da.arange(300, chunks=10)
    facts = survey(client, gather_pieces(client, table, y % 50, 2.0 * (y >= 100)), "classes")
    assert facts.rows == (10,) * 30
    assert facts.counts.tolist() == [6] * 50
    assert (sum(facts.weights), facts.weighted) == (400.0, True)


def test_empty_partitions_and_mixed_types(client):
    blocks = [np.ones((3, 2), np.float32), np.ones((0, 2)), np.ones((4, 2)), np.ones((0, 2), np.float32)]
    targets = [np.zeros(len(x)) for x in blocks]
    targets[0][0] = 1  # a class that only one partition has
    given = [delayed(x) for x in blocks], [delayed(y) for y in targets]
    facts = survey(client, gather_pieces(client, *given), "classes")
    assert (facts.rows, facts.dtype, facts.classes.tolist()) == ((3, 0, 4, 0), np.float64, [0, 1])
    with pytest.raises(ValueError, match="no rows to learn from: all 2 partitions are empty"):
        survey(client, gather_pieces(client, given[0][1::2], given[1][1::2]), "classes")


def test_survey_of_queries(client):
    rows = chunked(X)
    facts = survey(client, gather_pieces(client, rows, chunked(Y), qid=chunked(QID)), "queries")
    pairs = sum(int((Y[q == QID][:, None] > Y[q == QID]).sum()) for q in range(10))
    assert (facts.queries, facts.pairs, facts.ids, facts.owners) == (10, pairs, None, None)
    torn = QID.copy()
    torn[24:26] = 77
    with pytest.raises(
        ValueError, match="query 77 has rows in partition 1 of X and in partition 2 of X: all rows of"
    ):
        survey(client, gather_pieces(client, rows, chunked(Y), qid=chunked(torn)), "queries")
    with pytest.raises(ValueError, match=r"partition . of X and partition . of X do not say.*give qid"):
        survey(client, gather_pieces(client, rows, chunked(Y)), "queries")
    one = survey(client, gather_pieces(client, rows.rechunk(50), chunked(Y)), "queries")
    assert (one.queries, one.pairs) == (1, int((Y[:, None] > Y).sum()))


def with_block(k, block, kind=np.asarray):
    return [delayed(block if i == k else kind(part)) for i, part in enumerate(parts(X))]


@pytest.mark.parametrize(
    ("k", "block", "targets", "message"),
    [
        (1, np.ones((5, 3)), None, "partition 1 of X has 3 columns, but partition 0 of X has 4"),
        (2, sp.csr_array(np.ones((25, 4))), None, "partition 2 of X is sparse, but partition 0 of X is dense"),
        (1, np.full((5, 4), np.nan), None, "partition 1 of X: X contains NaN"),
        (2, np.ones(25), None, "partition 2 of X: X must be 2-D.*1-D"),
        (
            1,
            np.ones((6, 4)),
            None,
            "partition 1 of X: y must hold one target per row of X, shape .6,., got shape .5,.",
        ),
        (0, np.ones((0, 4)), None, "partition 0 of X: X has no rows, but there are"),
        (0, np.full((20, 4), "a"), None, "partition 0 of X: X must hold real numbers"),
        (
            1,
            frame()[:5],
            None,
            "partition 1 of X has the columns 'a', 'b', 'c', 'd', but partition 0 of X has no names",
        ),
        (
            1,
            parts(X)[1],
            ["a"] * 5,
            "targets of partition 1 of X are text, but those of partition 0 of X are numbers",
        ),
        (2, parts(X)[2], [np.inf] * 25, "partition 2 of X: y contains NaN or infinity"),
        (2, parts(X)[2], np.full(25, 0.5), "partition 2 of X: Unknown label type"),
        (1, parts(X)[1].astype(complex), None, "partition 1 of X: X must hold real numbers, got dtype complex128"),
    ],
)
def test_bad_partitions(client, k, block, targets, message):
    y = [delayed(targets if i == k and targets is not None else part) for i, part in enumerate(parts(Y))]
    with pytest.raises(ValueError, match=message):
        survey(client, gather_pieces(client, with_block(k, block), y), "classes")


def test_bad_columns(client):
    bad = frame()[20:25].assign(c=["x"] * 5)
    with pytest.raises(ValueError, match=r"partition 1 of X: column 'c' holds (object|str), not numbers"):
        survey(
            client, gather_pieces(client, with_block(1, bad, pd.DataFrame), [delayed(y) for y in parts(Y)]), "classes"
        )
    bad = frame()[20:25].assign(d=[1, 2, None, 4, 5])
    with pytest.raises(ValueError, match="partition 1 of X: column 'd' contains NaN or infinity"):
        survey(
            client, gather_pieces(client, with_block(1, bad, pd.DataFrame), [delayed(y) for y in parts(Y)]), "classes"
        )


def test_bad_targets(client):
    rows = block("array")
    with pytest.raises(ValueError, match=r"partition . of X: there are no targets"):
        survey(client, gather_pieces(client, rows), "numbers")
    with pytest.raises(ValueError, match=r"partition . of X: targets must be numbers"):
        survey(client, gather_pieces(client, rows, chunked(np.array(["a"] * 50))), "numbers")
    with pytest.raises(ValueError, match="weights are zero for every row"):
        survey(client, gather_pieces(client, rows, chunked(Y), chunked(np.zeros(50))), "classes")
    with pytest.raises(ValueError, match="partition 2 of X: weight must not be negative"):
        survey(client, gather_pieces(client, rows, chunked(Y), chunked(np.arange(50)[::-1] - 1.0)), "classes")


def test_too_many_classes(client, monkeypatch):
    monkeypatch.setattr("dualsvm.dask.survey._MOST_CLASSES", 30)  # the worker is in this process
    y = da.arange(50, chunks=(CUTS,))
    with pytest.raises(ValueError, match="more than 30 classes"):
        survey(client, gather_pieces(client, block("array"), y), "classes")
    assert len(survey(client, gather_pieces(client, block("array"), y % 30), "classes").classes) == 30


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


def test_paths_that_are_not_there(client, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere' cannot be opened on .*every worker must find"):
        survey(client, gather_pieces(client, [tmp_path / "nowhere"]), "classes")
    with pytest.raises(ValueError, match=r"bad', line 1, column 3: expected index:value"):
        survey(client, gather_pieces(client, [text(tmp_path / "bad", ["1 x"])]), "classes")
    with pytest.raises(ValueError, match="options are for paths"):
        gather_pieces(client, block("array"), chunked(Y), options={"n_features": 4})


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
