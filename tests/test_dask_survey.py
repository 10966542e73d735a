"""What is known of all partitions together, and errors that name the partition."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask import delayed

from dualsvm.dask.data import gather_pieces, held
from dualsvm.dask.load import load
from dualsvm.dask.survey import survey

from .partitions import CUTS, QID, WEIGHT, X, Y, block, chunked, frame, parts, text


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


def test_empty_files(client, tmp_path):
    paths = [tmp_path / f"{k}.parquet" for k in range(3)]
    for path, n in zip(paths, (0, 4, 0), strict=True):
        frame()[:n].assign(y=Y[:n]).to_parquet(path)
    lines = text(tmp_path / "a.svm", []), text(tmp_path / "b.svm", ["1 2:1", "0 1:1"])
    for given, options in ((paths, {"target": "y"}), (list(lines), None), ([lines[0], lines[1]], {"n_features": 9})):
        pieces = gather_pieces(client, given, options=options)
        facts = survey(client, pieces, "classes")
        assert facts.rows == ((0, 4, 0) if options == {"target": "y"} else (0, 2))
        with pytest.raises(ValueError, match="all 1 partitions are empty"):
            survey(client, pieces[:1], "classes")


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


def test_torn_queries_far_apart(client):
    qid = np.arange(30)
    qid[4] = 2  # in the first pieces that are added up, and not in the last
    table = da.ones((30, 2), chunks=(2, 2))
    with pytest.raises(ValueError, match="query 2 has rows in partition 1 of X and in partition 2 of X"):
        survey(
            client, gather_pieces(client, table, da.arange(30, chunks=2), qid=da.from_array(qid, chunks=2)), "queries"
        )


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


def test_paths_that_are_not_there(client, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere' cannot be opened on .*every worker must find"):
        survey(client, gather_pieces(client, [tmp_path / "nowhere"]), "classes")
    with pytest.raises(ValueError, match=r"bad', line 1, column 3: expected index:value"):
        survey(client, gather_pieces(client, [text(tmp_path / "bad", ["1 x"])]), "classes")
    with pytest.raises(ValueError, match="options are for paths"):
        gather_pieces(client, block("array"), chunked(Y), options={"n_features": 4})
