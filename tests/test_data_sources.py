"""Sources: frames, files and databases give the rows that their own libraries give."""

import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import dualsvm

from .datasets import same, sparse_rows, whole

N = 500
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=N), RNG.integers(-5, 5, size=N)
C = RNG.random(N) < 0.5
Y, W = RNG.integers(0, 3, size=N), RNG.random(N)
Q = np.repeat(np.arange(50), 10)
X = np.column_stack([A, B, C])
TABLE = pa.table({"a": A, "y": Y, "b": B, "w": W, "c": C, "q": Q})
ALL = {"target": "y", "weight": "w", "qid": "q"}


def parquet_folder(folder):
    (folder / "sub").mkdir()
    pq.write_table(TABLE.slice(0, 120), folder / "part-0.parquet", row_group_size=50)
    pq.write_table(TABLE.slice(120, 130), folder / "part-1.parquet", row_group_size=1000)
    pq.write_table(TABLE.slice(250), folder / "sub" / "part-2.parquet", row_group_size=13)
    (folder / "_metadata.parquet").write_bytes(b"not to be read")
    return folder


def arrow_file(folder, options=None):
    with (
        pa.OSFile(str(folder / "data.arrow"), "wb") as file,
        pa.ipc.new_file(file, TABLE.schema, options=options) as out,
    ):
        for batch in TABLE.to_batches(max_chunksize=70):
            out.write_batch(batch)
    return folder / "data.arrow"


def one_parquet(folder):
    pq.write_table(TABLE, folder / "data.parquet", row_group_size=64)
    return folder / "data.parquet"


SOURCES = {
    "parquet": one_parquet,
    "parquet folder": parquet_folder,
    "arrow": arrow_file,
    "arrow, packed": lambda folder: arrow_file(folder, pa.ipc.IpcWriteOptions(compression="lz4")),
    "pyarrow": lambda folder: TABLE,
    "pandas": lambda folder: TABLE.to_pandas(),
    "polars": lambda folder: pl.from_arrow(TABLE),
    "polars, lazy": lambda folder: pl.scan_parquet(one_parquet(folder)),
    "polars, lazy in memory": lambda folder: pl.from_arrow(TABLE).lazy().filter(pl.col("a") < 1e9),
    "duckdb": lambda folder: duckdb.connect().sql(f"select * from '{one_parquet(folder)}'"),
    "record batches": lambda folder: TABLE.to_batches(max_chunksize=33),
    "frames": lambda folder: [pl.from_arrow(TABLE.slice(0, 200)), pl.from_arrow(TABLE.slice(200))],
    "function of a reader": lambda folder: lambda: TABLE.to_reader(max_chunksize=41),
    "function of frames": lambda folder: lambda: iter([TABLE.slice(0, 99), TABLE.slice(99)]),
}
SEEKABLE = ("parquet", "parquet folder", "arrow", "arrow, packed", "pyarrow", "pandas", "polars")


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("chunk_rows", [None, 37])
def test_arrow_data(name, chunk_rows, tmp_path):
    dataset = dualsvm.open_dataset(SOURCES[name](tmp_path), **ALL, chunk_rows=chunk_rows)
    assert dataset.seekable == (name in SEEKABLE)
    for order in (None, np.random.default_rng(0), None):
        same(dataset, X, Y, W, Q, order)
    assert dataset.shape == (N, 3)
    assert dataset.feature_names == ["a", "b", "c"]
    np.testing.assert_array_equal(dataset.targets(), Y)
    assert next(iter(dataset)).X.dtype == np.float64


@pytest.mark.parametrize("name", SOURCES)
def test_chosen_columns(name, tmp_path):
    dataset = dualsvm.open_dataset(SOURCES[name](tmp_path), target="a", features=["c", "y"], chunk_rows=64)
    same(dataset, np.column_stack([C, Y]), A)
    assert dataset.feature_names == ["c", "y"]
    assert whole(dualsvm.open_dataset(TABLE))[1] is None


def test_any_order_of_row_groups(tmp_path):
    """Chunks of a row group stay together in a random order, and can be asked for one by one."""
    path = tmp_path / "data.parquet"
    pq.write_table(TABLE, path, row_group_size=100)
    dataset = dualsvm.open_dataset(path, target="y", chunk_rows=30, features=["a"])
    assert dataset.n_chunks == 20
    order = [chunk.index for chunk in dataset.chunks(np.random.default_rng(3))]
    groups = [order[k : k + 4] for k in range(0, 20, 4)]
    assert all(group == list(range(group[0], group[0] + 4)) and group[0] % 4 == 0 for group in groups)
    assert order != sorted(order)
    for chunk in dataset.chunks([19, 7, 8, 0, 0]):
        np.testing.assert_array_equal(chunk.X[:, 0], A[chunk.start : chunk.stop])


def test_small_row_groups_are_taken_together(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(TABLE, path, row_group_size=10)
    dataset = dualsvm.open_dataset(path, target="y", chunk_rows=95)
    assert [len(chunk) for chunk in dataset] == [95, 5] * 5
    assert len(list(dualsvm.open_dataset(path, target="y"))) == 1


def test_single_precision_where_nothing_is_lost():
    single = pa.table({"a": A.astype(np.float32), "b": B.astype(np.int16), "c": C})
    chunk = next(iter(dualsvm.open_dataset(single)))
    assert chunk.X.dtype == np.float32
    np.testing.assert_array_equal(chunk.X, np.column_stack([A.astype(np.float32), B, C]))
    assert next(iter(dualsvm.open_dataset(TABLE, features=["a"], dtype=np.float32))).X.dtype == np.float32
    assert next(iter(dualsvm.open_dataset(single, dtype=np.float64))).X.dtype == np.float64


def test_a_column_of_vectors(tmp_path):
    vectors = RNG.normal(size=(N, 6)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 6)
    table = pa.table({"v": column, "b": B.astype(np.int8), "y": Y})
    pq.write_table(table, tmp_path / "data.parquet", row_group_size=100)
    expected = np.column_stack([vectors, B])
    for source in (table, tmp_path / "data.parquet", pl.from_arrow(table)):
        dataset = dualsvm.open_dataset(source, target="y", chunk_rows=70)
        same(dataset, expected, Y)
        assert dataset.shape == (N, 7)
        assert dataset.feature_names is None
        same(dualsvm.open_dataset(source, target="y", features="v"), vectors, Y)


def test_classes_with_names(tmp_path):
    names = np.array(["spam", "ham", "ä"])[Y]
    for column in (pa.array(names), pa.array(names).dictionary_encode()):
        table = pa.table({"a": A, "y": column})
        dataset = dualsvm.open_dataset(table, target="y", chunk_rows=99)
        same(dataset, A[:, None], names)
        assert dataset.targets().tolist() == names.tolist()
        assert dataset.targets().dtype == next(iter(dataset)).y.dtype  # not object


def test_decimals_and_small_types():
    table = duckdb.connect().sql(
        "select i::decimal(9, 2) / 4 as a, i::tinyint as b, i::ubigint as y from range(9) r(i)"
    )
    same(dualsvm.open_dataset(table, target="y"), np.column_stack([np.arange(9) / 4, np.arange(9)]), np.arange(9))


def test_a_query_over_a_folder(tmp_path):
    """What the database itself computes, from many files, in an order that the query fixes."""
    folder = parquet_folder(tmp_path)
    (folder / "_metadata.parquet").unlink()
    query = f"select a * 2 as double, b, y from read_parquet('{folder}/**/*.parquet') where c order by a"
    dataset = dualsvm.open_dataset(duckdb.connect().sql(query), target="y", chunk_rows=50)
    order = np.flatnonzero(C)[np.argsort(A[C])]
    for _ in range(2):
        same(dataset, np.column_stack([2 * A, B])[order], Y[order])


def test_a_reader_serves_once():
    dataset = dualsvm.open_dataset(TABLE.to_reader(), **ALL)
    assert not dataset.reiterable
    same(dataset, X, Y, W, Q)
    with pytest.raises(ValueError, match="the RecordBatchReader can be read only once"):
        dataset.chunks()


BAD_FRAMES = {
    "no such column": (
        {"target": "z"},
        ValueError,
        r"has no column 'z' for target: it has 'a', 'y', 'b', 'w', 'c', 'q'",
    ),
    "no such feature": ({"features": ["a", "z"]}, ValueError, "has no column 'z' for features"),
    "no feature": ({"features": []}, ValueError, "has no columns left for features"),
    "an array as target": (
        {"target": Y},
        ValueError,
        "target must be the name of a column of the Table, got ndarray",
    ),
    "a number as feature": ({"features": [1]}, ValueError, "features must be the name of a column"),
    "text options": ({"n_features": 3}, ValueError, "n_features is for svmlight text only"),
    "base": ({"index_base": 0}, ValueError, "index_base is for svmlight text only"),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_bad_choices(name):
    options, error, message = BAD_FRAMES[name]
    with pytest.raises(error, match=message):
        dualsvm.open_dataset(TABLE, **options)


def test_columns_that_are_no_numbers():
    table = TABLE.append_column("city", pa.array(["x"] * N))
    with pytest.raises(
        ValueError, match="column 'city' of the Table holds string, not numbers: turn it into numbers"
    ):
        dualsvm.open_dataset(table, target="y")
    same(dualsvm.open_dataset(table, target="y", features=["a"]), A[:, None], Y)
    with pytest.raises(ValueError, match="several columns 'a'"):
        dualsvm.open_dataset(pa.table([A, B], names=["a", "a"]))


@pytest.mark.parametrize("column", ["a", "y", "w", "q"])
def test_missing_values(column):
    values = TABLE.column(column).to_pylist()
    values[417] = None
    table = TABLE.set_column(TABLE.schema.get_field_index(column), column, pa.array(values))
    with pytest.raises(ValueError, match=f"column '{column}' of the Table holds missing values: fill them in"):
        whole(dualsvm.open_dataset(table, **ALL, chunk_rows=100))


def test_numbers_that_are_none():
    table = pa.table({"a": np.where(np.arange(N) == 417, np.nan, A), "y": Y})
    with pytest.raises(ValueError, match="the Table, from row 400: X contains NaN"):
        whole(dualsvm.open_dataset(table, target="y", chunk_rows=100))
    with pytest.raises(ValueError, match="the Table, from row 400: y contains NaN"):
        whole(dualsvm.open_dataset(table, target="a", chunk_rows=100))


def test_broken_files(tmp_path):
    path = one_parquet(tmp_path)
    content = path.read_bytes()
    for cut in (content[: len(content) // 2], content[:-3], b"", b"hello"):
        path.write_bytes(cut)
        with pytest.raises(ValueError, match=r"data.parquet' is not a whole Parquet file"):
            dualsvm.open_dataset(path, target="y")
    path = arrow_file(tmp_path)
    content = path.read_bytes()
    for cut in (content[: len(content) // 2], b"ARROW1", b"", b"hello"):
        path.write_bytes(cut)
        with pytest.raises(ValueError, match=r"data.arrow' is not a whole Arrow file"):
            dualsvm.open_dataset(path, target="y")


def test_damaged_pages(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(TABLE, path, compression="gzip")
    content = bytearray(path.read_bytes())
    content[60:600] = bytes(540)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"data.parquet' is damaged: .*copy the file again"):
        whole(dualsvm.open_dataset(path, features=["a"]))


def test_names_that_the_source_does_not_have():
    with pytest.raises(TypeError, match="where columns have names, the source must give objects with __arrow_c_"):
        whole(dualsvm.open_dataset([(X, Y)], target="y"))
    same(dualsvm.open_dataset(TABLE.select(["a", "b", "c"]).to_batches(77)), X)


def test_files_without_rows(tmp_path):
    pq.write_table(TABLE.slice(0, 0), tmp_path / "data.parquet")
    for source in (tmp_path / "data.parquet", tmp_path, TABLE.slice(0, 0)):
        with pytest.raises(ValueError, match="has no rows"):
            dualsvm.open_dataset(source, target="y")
    with pytest.raises(ValueError, match="has no rows"):
        whole(dualsvm.open_dataset([TABLE.slice(0, 0)], target="y"))


def test_files_of_a_folder_that_differ(tmp_path):
    pq.write_table(TABLE.select(["a", "y"]), tmp_path / "0.parquet")
    pq.write_table(TABLE.select(["a", "y", "b"]), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"1.parquet' has other columns or types than .*0.parquet': make them equal"):
        dualsvm.open_dataset(tmp_path, target="y")
    same(dualsvm.open_dataset(tmp_path, target="y", features=["a"]), np.tile(A, 2)[:, None], np.tile(Y, 2))


def test_parquet_that_changes(tmp_path):
    dataset = dualsvm.open_dataset(one_parquet(tmp_path), target="y")
    whole(dataset)
    pq.write_table(TABLE.slice(1), tmp_path / "data.parquet")
    with pytest.raises(ValueError, match="has changed since it was opened"):
        whole(dataset)


def test_folders_that_hold_nothing(tmp_path):
    with pytest.raises(ValueError, match=r"is a folder with neither a store's meta.json nor Parquet files"):
        dualsvm.open_dataset(tmp_path)
    with pytest.raises(FileNotFoundError):
        dualsvm.open_dataset(tmp_path / "nowhere")


def test_arrow_needs_a_package(tmp_path, monkeypatch):
    path = one_parquet(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"read with pyarrow: pip install 'dualsvm\[arrow\]'"):
        dualsvm.open_dataset(path, target="y")


# arrays


def test_arrays_and_matrices():
    D = sparse_rows(60, 9)
    y = np.arange(60)
    for source in (D, np.asfortranarray(D), D.astype(np.float32).astype(float), D[::-1][::-1]):
        same(dualsvm.open_dataset(source, target=y, chunk_rows=11), source, y)
    for kind in (sp.csr_matrix, sp.csr_array, sp.coo_array, sp.csc_array):
        dataset = dualsvm.open_dataset(kind(D), target=y, chunk_rows=11)
        same(dataset, D, y)
        assert all(chunk.X.indices.dtype == chunk.X.indptr.dtype == np.int32 for chunk in dataset)
    wide = sp.csr_array(D)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    same(dualsvm.open_dataset(wide, target=y, chunk_rows=7), D, y)
    same(dualsvm.open_dataset(D, target=y, features=[4, 0], chunk_rows=7), D[:, [4, 0]], y)
    same(dualsvm.open_dataset(sp.csr_array(D), target=y, features=[4, 0], chunk_rows=7), D[:, [4, 0]], y)
    same(dualsvm.open_dataset((D * 3).astype(np.int8)), (D * 3).astype(np.int8))


def test_arrays_are_not_copied():
    D = np.ones((50, 4))
    assert all(np.shares_memory(chunk.X, D) for chunk in dualsvm.open_dataset(D, chunk_rows=7))
    M = sp.csr_array(D)
    assert all(np.shares_memory(chunk.X.data, M.data) for chunk in dualsvm.open_dataset(M, chunk_rows=7))


def test_maps_and_npy_files(tmp_path):
    D = sparse_rows(60, 9).astype(np.float32)
    np.save(tmp_path / "x.npy", D)
    raw = np.memmap(tmp_path / "raw", np.float32, "w+", 40, D.shape)
    raw[:] = D
    raw.flush()
    for source in (tmp_path / "x.npy", np.load(tmp_path / "x.npy", mmap_mode="r"), raw, raw[:]):
        dataset = dualsvm.open_dataset(source, target=np.arange(60), chunk_rows=11)
        same(dataset, D, np.arange(60))
        same(dataset, D, np.arange(60), order=np.random.default_rng(0))
    changed = np.load(tmp_path / "x.npy", mmap_mode="c")
    changed[0] = 5
    assert whole(dualsvm.open_dataset(changed))[0][0].tolist() == [5] * 9
    dataset = dualsvm.open_dataset(tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", D[:-1])
    with pytest.raises(ValueError, match="has changed since it was opened"):
        whole(dataset)


BAD_ARRAYS = [
    (np.ones(5), {}, "must be 2-D"),
    (np.ones((0, 5)), {}, "must have rows and features"),
    (np.ones((5, 2)), {"target": "y"}, "target must be an array when the features are one, got the name 'y'"),
    (np.ones((5, 2)), {"weight": "w"}, "weight must be an array when the features are one"),
    (np.ones((5, 2)), {"target": [1, 2]}, r"y must hold one target per row of X, shape \(5,\), got shape \(2,\)"),
    (np.ones((5, 2)), {"qid": [0.5] * 5}, "qid must hold integers"),
    (np.ones((5, 2)), {"weight": [1, 2]}, "weight has 2 entries, but the array has 5 rows"),
    (np.ones((5, 2)), {"features": ["a"]}, "features must be numbers of columns"),
    (np.ones((5, 2)), {"features": [2]}, "features must lie in 0 .. 1"),
]


@pytest.mark.parametrize(("source", "options", "message"), BAD_ARRAYS)
def test_bad_arrays(source, options, message):
    with pytest.raises(ValueError, match=message):
        dualsvm.open_dataset(source, **options)


def test_arrays_with_bad_numbers():
    D = np.ones((50, 3))
    D[33, 1] = np.inf
    with pytest.raises(ValueError, match="the array, from row 30: X contains NaN, infinity"):
        whole(dualsvm.open_dataset(D, chunk_rows=10))
    with pytest.raises(ValueError, match="X must hold real numbers"):
        whole(dualsvm.open_dataset(D.astype(complex)))


# the user's own code


class Batches:
    """As xgboost's DataIter."""

    def __init__(self, more=None):
        self.k, self.more = 0, more or {}

    def reset(self):
        self.k = 0

    def next(self, input_data):
        if self.k == 5:
            return 0
        part = slice(100 * self.k, 100 * (self.k + 1))
        input_data(data=X[part], label=Y[part], weight=W[part], qid=Q[part], **self.more)
        self.k += 1
        return 1


def test_data_iter():
    dataset = dualsvm.open_dataset(Batches({"feature_names": list("abc")}), chunk_rows=30)
    for _ in range(2):
        same(dataset, X, Y, W, Q)
    with pytest.raises(ValueError, match=r"next\(\) gave base_margin, which has no meaning here"):
        whole(dualsvm.open_dataset(Batches({"base_margin": 1})))


class Tensor:
    """As PyTorch's, of which only this is used."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype=dtype)


class Loader:
    """As PyTorch's DataLoader, with batches that are lists."""

    def __iter__(self):
        return ([Tensor(X[k : k + 32]), Tensor(Y[k : k + 32, None])] for k in range(0, N, 32))


def test_a_loader_of_tensors():
    dataset = dualsvm.open_dataset(Loader())
    for _ in range(2):
        same(dataset, X, Y)
    assert dataset.n_chunks == 1  # small batches are taken together


def test_frames_as_chunks():
    frame = pd.DataFrame(X, columns=list("abc"))
    same(dualsvm.open_dataset([(frame, pd.Series(Y)), (frame, pd.Series(Y))]), np.tile(X, (2, 1)), np.tile(Y, 2))


@pytest.mark.parametrize(
    ("element", "error", "message"),
    [
        (X, TypeError, r"a chunk must be \(X, y\), .* got ndarray"),
        ((X,), TypeError, "got tuple of 1"),
        ((X, Y, W, Q, Q), TypeError, "got tuple of 5"),
        ((X, Y[:-1]), ValueError, "the list, from row 0: y must hold one target per row"),
        ((X, Y, -W), ValueError, "weight must not be negative"),
        ((X, Y, W, W), ValueError, "qid must hold integers"),
        ((X * np.nan, Y), ValueError, "the list, from row 0: X contains NaN"),
        ((X, Y * 1j), ValueError, "y must hold numbers or text, got dtype complex128"),
        ((X[0], Y), ValueError, "X must be 2-D"),
    ],
)
def test_bad_chunks(element, error, message):
    with pytest.raises(error, match=message):
        whole(dualsvm.open_dataset([element]))


@pytest.mark.parametrize("source", [3, None, object()])
def test_no_sources(source):
    with pytest.raises(TypeError, match="the source must be a path, an array, a frame"):
        dualsvm.open_dataset(source)


def test_no_chunks():
    for source in ([], [(X[:0], Y[:0])], lambda: iter(())):
        with pytest.raises(ValueError, match="has no rows"):
            whole(dualsvm.open_dataset(source))
    with pytest.raises(ValueError, match="has no targets: say which column or array"):
        dualsvm.open_dataset(X).targets()
