"""Ranking on the command line."""

import re

import numpy as np
import pytest

from dualsvm import SVMRanker, load

from .commands import dualsvm, give_stdin, write_text
from .estimators import GRADES, QID, X, assert_overlap

ORDER = np.argsort(QID, kind="stable")
ROWS, RELEVANCE, QUERIES = X[ORDER], GRADES[ORDER], QID[ORDER]


@pytest.fixture
def data(tmp_path):
    return write_text(tmp_path / "data", ROWS, RELEVANCE, QUERIES)


@pytest.mark.parametrize("slack", ["pair", "query"])
def test_train(slack, data, tmp_path, monkeypatch):
    model = tmp_path / "model.npz"
    in_memory = SVMRanker(slack=slack, tol=1e-5, random_state=0).fit(ROWS, RELEVANCE, qid=QUERIES)
    how = ["-q", "-e", "1e-4", "--task", "rank", "--slack", slack, "--chunk-rows", "10", "--cache-mb", "0.001"]
    for source in (data, "-"):
        give_stdin(monkeypatch, data)
        assert dualsvm("train", *how, source, model) == 0
        assert_overlap(load(model), in_memory)
    assert dualsvm("certify", "-q", model, data) == 0
    assert dualsvm("certify", "-q", "-e", "1e-12", model, data) == 3


def test_cross_validation_keeps_queries_together(data, capsys):
    assert dualsvm("train", "-q", "-v", "3", "--task", "rank", data) == 0
    said = dict(line.split(" = ") for line in capsys.readouterr().out.splitlines())
    fold = np.random.default_rng(0).permutation(np.arange(9) % 3)[QUERIES]
    right = []
    for k in range(3):
        each = SVMRanker(tol=1e-6, random_state=0).fit(ROWS[fold != k], RELEVANCE[fold != k], qid=QUERIES[fold != k])
        for q in set(QUERIES[fold == k]):
            some = q == QUERIES
            if len(set(RELEVANCE[some])) > 1:
                right.append(each.pairwise_accuracy(ROWS[some], RELEVANCE[some]))
    assert float(said["Cross Validation Pairwise accuracy"][:-1]) == pytest.approx(100 * np.mean(right), abs=3)
    assert 0 < float(said["Cross Validation NDCG"]) <= 1


def test_no_queries(tmp_path, capsys):
    data = write_text(tmp_path / "data", ROWS, RELEVANCE)
    assert dualsvm("train", "-v", "3", "--task", "rank", data) == 2
    assert re.search("has no queries.*--qid", capsys.readouterr().err)
