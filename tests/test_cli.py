"""The command line learns what it is asked to, as a reference QP, scikit-learn and LIBLINEAR's letters have it."""

import gzip
import json
import os
import re
import threading

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import mean_squared_error
from sklearn.svm import LinearSVC, LinearSVR

from dualsvm import SVMClassifier, SVMRanker, load, open_dataset

from .commands import dualsvm, give_stdin, numbers, write_text
from .estimators import (
    GRADES,
    QID,
    TARGETS,
    THREE,
    TWO,
    WEIGHTS,
    D,
    N,
    X,
    assert_certified,
    assert_overlap,
    statements,
)
from .reference import state

SIGNS = 2 * TWO - 1


@pytest.fixture
def data(tmp_path):
    return write_text(tmp_path / "data.svm", X, SIGNS)


@pytest.fixture
def three(tmp_path):
    return write_text(tmp_path / "three.svm", X, THREE)


@pytest.fixture
def model(tmp_path):
    return tmp_path / "model.npz"


def test_train_says_what_the_file_holds(data, model, capsys):
    assert dualsvm("train", "-e", "1e-5", data, model) == 0
    learned = load(model)
    assert_certified(learned, statements(X, TWO))
    said = capsys.readouterr()
    low, high, gap = re.search(r"\[(\S+), (\S+)\]: gap (\S+),", said.out).groups()
    assert float(low) == pytest.approx(learned.lower_bound_, rel=1e-7)
    assert float(high) == pytest.approx(learned.upper_bound_, rel=1e-7)
    assert float(gap) == pytest.approx(learned.gap_, rel=1e-2)
    assert f"{N} rows x {D} features" in said.out
    assert f"{learned.n_iter_} passes" in said.out
    assert str(model) in said.out
    assert "gap" in said.err  # the lines of the reads
    assert "\r" not in said.err  # as it is no terminal


def test_quiet(data, model, capsys):
    assert dualsvm("train", "-q", data, model) == 0
    assert dualsvm("predict", "-q", data, model, model.with_name("out")) == 0
    assert dualsvm("convert", "-q", data, model.with_name("store")) == 0
    assert capsys.readouterr() == ("", "")


# what LIBLINEAR, by the hand of scikit-learn, does under the same letters
CLASSIFIERS = {
    "-s 1": {"loss": "squared_hinge"},
    "-s 2": {"loss": "squared_hinge", "dual": False},
    "-s 3": {"loss": "hinge"},
    "-s 4": {"multi_class": "crammer_singer"},
}
SETTINGS = {
    "-c 0.3 -B -1": {"C": 0.3, "fit_intercept": False},
    "-c 2 -B 3": {"C": 2.0, "intercept_scaling": 3.0},
}


@pytest.mark.parametrize("letters", SETTINGS)
@pytest.mark.parametrize("solver", CLASSIFIERS)
def test_classifiers_of_liblinear(solver, letters, three, model):
    assert dualsvm("train", "-q", "-e", "1e-6", *solver.split(), *letters.split(), three, model) == 0
    peer = LinearSVC(**CLASSIFIERS[solver], **SETTINGS[letters], tol=1e-9, max_iter=10**6, random_state=0).fit(
        X, THREE
    )
    learned = load(model)
    np.testing.assert_allclose(learned.coef_, peer.coef_, atol=0.02)
    np.testing.assert_allclose(learned.intercept_, peer.intercept_, atol=0.02)
    cost = SETTINGS[letters]["C"]
    bias = 0.0 if "-B -1" in letters else SETTINGS[letters].get("intercept_scaling", 1.0)
    loss = CLASSIFIERS[solver].get("loss", "hinge")
    assert_certified(learned, statements(X, THREE, ovr=solver != "-s 4", cost=cost, loss=loss, intercept=bias), bias)


@pytest.mark.parametrize(("solver", "y"), [(1, SIGNS), (3, SIGNS), (4, THREE)])
def test_class_weights_of_liblinear(solver, y, tmp_path, model):
    data = write_text(tmp_path / "data", X, y)
    other = y.min()
    assert dualsvm("train", "-q", "-e", "1e-6", "-s", solver, "-w1", 3, f"-w{other}", "0.5", data, model) == 0
    given = CLASSIFIERS[f"-s {solver}"]
    peer = LinearSVC(**given, class_weight={1: 3.0, other: 0.5}, tol=1e-9, max_iter=10**6, random_state=0).fit(X, y)
    np.testing.assert_allclose(load(model).coef_, peer.coef_, atol=0.02)
    cost = np.where(y == 1, 3.0, np.where(y == other, 0.5, 1.0))
    assert_certified(load(model), statements(X, y, cost=cost, loss=given.get("loss", "hinge")))


@pytest.mark.parametrize(("solver", "squared"), [(11, True), (12, True), (13, False)])
def test_regressors_of_liblinear(solver, squared, tmp_path, model):
    data = write_text(tmp_path / "data", X, TARGETS)
    assert dualsvm("train", "-q", "-e", "1e-6", "-s", solver, "-c", "0.5", "-p", "0.2", "-B", "-1", data, model) == 0
    loss = "squared_epsilon_insensitive" if squared else "epsilon_insensitive"
    peer = LinearSVR(loss=loss, C=0.5, epsilon=0.2, fit_intercept=False, tol=1e-9, max_iter=10**6, random_state=0)
    np.testing.assert_allclose(load(model).coef_, peer.fit(X, TARGETS).coef_, atol=0.02)
    own = {"y": TARGETS, "epsilon": 0.2, "intercept": 0.0}
    problem = state("regression", X, own, cost=0.5, loss="squared_hinge" if squared else "hinge")
    assert_certified(load(model), [problem], intercept=0.0)


def test_two_classes_by_crammer_and_singer(data, model, capsys):
    assert dualsvm("train", "-s", "4", data, model) == 0
    assert "counts C twice" in capsys.readouterr().err


def test_bounds_on_weights(data, model):
    words = ["-q", "-e", "1e-5", "--loss", "squared_hinge", "--lower", "-0.2", "--upper", "0.3", "-B", "-1"]
    assert dualsvm("train", *words, data, model) == 0
    problems = statements(X, TWO, loss="squared_hinge", intercept=0.0, lower=-0.2, upper=0.3)
    assert_certified(load(model), problems, intercept=0.0)


def test_balanced_classes(three, model):
    assert dualsvm("train", "-q", "-e", "1e-5", "--class-weight", "balanced", three, model) == 0
    cost = (N / 3 / np.bincount(THREE))[THREE]
    assert_certified(load(model), statements(X, THREE, cost=cost))


@pytest.mark.parametrize("cache_mb", ["0", "0.002", "1"])
def test_small_memory(cache_mb, three, model):
    words = ["--cache-mb", cache_mb, "--chunk-rows", "7", "-q"]
    assert dualsvm("train", *words, three, model) == 0
    assert_certified(load(model), statements(X, THREE))


def test_convert_and_train_from_the_store(data, model, tmp_path, capsys):
    packed = tmp_path / "data.gz"
    packed.write_bytes(gzip.compress(data.read_bytes()))
    store = tmp_path / "store"
    assert dualsvm("convert", packed, store) == 0
    assert f"{N} rows x {D} features" in capsys.readouterr().out
    np.testing.assert_array_equal(open_dataset(store).targets(), SIGNS)
    assert dualsvm("train", "-q", store, model) == 0
    assert_overlap(load(model), SVMClassifier(random_state=0).fit(X, TWO))
    assert dualsvm("convert", packed, store) == 2
    assert "--force" in capsys.readouterr().err
    assert dualsvm("convert", "--force", "--dtype", "float32", packed, store) == 0
    assert json.loads((store / "meta.json").read_text())["arrays"]["values"]["dtype"] == "<f4"


def test_parquet_by_names(tmp_path, model, capsys):
    names = np.array(["low", "high", "mid"])[THREE]
    columns = {f"x{k}": X[:, k] for k in range(D)}
    frame = pl.DataFrame({"kind": names, **columns, "importance": WEIGHTS})
    frame.write_parquet(tmp_path / "data.parquet")
    how = ["--target", "kind", "--weight", "importance", tmp_path / "data.parquet"]
    assert dualsvm("train", "-q", "-e", "1e-5", *how, model) == 0
    assert_certified(load(model), statements(X, np.unique(names, return_inverse=True)[1], cost=WEIGHTS))

    # columns are found by their names, wherever they are
    frame.select(["importance", *reversed(columns), "kind"]).write_parquet(tmp_path / "other.parquet")
    assert dualsvm("predict", tmp_path / "other.parquet", model) == 0
    said = capsys.readouterr()
    learned = load(model)
    predicted = learned.classes_[(X @ learned.coef_.T + learned.intercept_).argmax(axis=1)]
    assert said.out.split() == predicted.tolist()
    assert said.err == ""
    assert dualsvm("predict", "--target", "kind", tmp_path / "other.parquet", model, tmp_path / "out") == 0
    assert f"({(predicted == names).sum()}/{N})" in capsys.readouterr().out
    assert dualsvm("convert", "--features", "x1,x0", tmp_path / "other.parquet", tmp_path / "part") == 0
    assert dualsvm("predict", tmp_path / "part", model) == 2
    assert "x1" in capsys.readouterr().err


def test_predict(three, model, tmp_path, capsys):
    dualsvm("train", "-q", three, model)
    predicted = load(model).predict(X)
    assert dualsvm("predict", three, model) == 0
    said = capsys.readouterr()
    assert said.out == "".join(f"{int(label)}\n" for label in predicted)
    right = int((predicted == THREE).sum())
    assert said.err == f"Accuracy = {100 * right / N:g}% ({right}/{N})\n"

    assert dualsvm("predict", "--scores", "--chunk-rows", "10", three, model, tmp_path / "out") == 0
    assert capsys.readouterr() == (said.err, "")
    scores = np.loadtxt(tmp_path / "out")
    np.testing.assert_allclose(scores, load(model).decision_function(X), rtol=1e-12)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_predict_regression(tmp_path, model, capsys):
    data = write_text(tmp_path / "data", X, TARGETS)
    dualsvm("train", "-q", "--task", "regress", data, model)
    assert dualsvm("predict", "--chunk-rows", "8", data, model) == 0
    said = capsys.readouterr()
    predicted = np.array(numbers(said.out))
    np.testing.assert_allclose(predicted, load(model).predict(X), rtol=1e-12)
    error, correlation = (float(line.split(" = ")[1].split()[0]) for line in said.err.splitlines())
    assert error == pytest.approx(mean_squared_error(TARGETS, predicted), rel=1e-4)
    assert correlation == pytest.approx(np.corrcoef(TARGETS, predicted)[0, 1] ** 2, rel=1e-4)


@pytest.mark.parametrize("shift", [0, -1])
def test_predict_ranking(shift, tmp_path, model, capsys):
    order = np.argsort(QID, kind="stable")
    rows, grades, qid = X[order], GRADES[order] + shift, QID[order]
    learned = SVMRanker(random_state=0).fit(rows, grades, qid=qid)
    learned.save(model)
    data = write_text(tmp_path / "data", rows, grades, qid)
    assert dualsvm("predict", "--chunk-rows", "8", data, model) == 0
    said = capsys.readouterr()
    np.testing.assert_allclose(numbers(said.out), learned.predict(rows), rtol=1e-12)
    found = dict(line.split(" = ") for line in said.err.splitlines())
    right, queries = re.fullmatch(r"(\S+)% \((\d+) queries\)", found["Pairwise accuracy"]).groups()
    assert float(right) / 100 == pytest.approx(learned.pairwise_accuracy(rows, grades, qid), rel=1e-5)
    assert int(queries) == sum(len(set(grades[qid == q])) > 1 for q in set(qid))
    assert ("NDCG" in found) == (shift == 0)  # which has no meaning where relevances are negative
    if shift == 0:
        assert float(found["NDCG"].split()[0]) == pytest.approx(learned.score(rows, grades, qid), rel=1e-5)


def test_standard_input(data, model, capsys, monkeypatch):
    give_stdin(monkeypatch, data)
    assert dualsvm("train", "-e", "1e-5", "-", model) == 0
    folder = re.search(r"in a store in (\S+)", capsys.readouterr().err)[1]
    assert not os.path.exists(folder)
    assert_certified(load(model), statements(X, TWO))
    give_stdin(monkeypatch, data)
    assert dualsvm("predict", "-q", "-", model, "-") == 0
    assert numbers(capsys.readouterr().out) == load(model).predict(X).tolist()


def test_one_pass_over_standard_input(data, model, capsys, monkeypatch):
    give_stdin(monkeypatch, data)
    assert dualsvm("train", "--passes", "1", "--classes=-1,1", "--n-features", D, "-", model) == 0
    said = capsys.readouterr()
    assert "store" not in said.err
    assert "gap inf" in said.out
    assert load(model).n_iter_ == 1
    assert load(model).score(X, SIGNS) > 0.6
    give_stdin(monkeypatch, data)  # how many features there are is not known before its end
    assert dualsvm("train", "--passes", "1", "--classes=-1,1", "-", model) == 0
    assert "store" in capsys.readouterr().err
    assert load(model).n_iter_ == 1


def test_pipe(data, model, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(data.read_bytes()))
    writer.start()
    assert dualsvm("train", "-q", "-e", "1e-5", pipe, model) == 0
    writer.join()
    assert_certified(load(model), statements(X, TWO))


def test_features_beyond_those_of_the_model(data, model, tmp_path, capsys):
    dualsvm("train", "-q", data, model)
    rows = np.column_stack([X, np.ones((N, 2))])
    assert dualsvm("predict", write_text(tmp_path / "wide", rows, SIGNS), model) == 0
    said = capsys.readouterr()
    assert numbers(said.out) == load(model).predict(X).tolist()
    assert "count nothing" in said.err
    rows = np.where(np.arange(D) < D - 1, X, 0.0)
    assert dualsvm("predict", "-q", write_text(tmp_path / "narrow", rows, SIGNS), model) == 0
    assert numbers(capsys.readouterr().out) == load(model).predict(rows).tolist()


@pytest.mark.parametrize("stored", [False, True])
def test_text_that_begins_at_zero_need_not_show_it_again(stored, model, tmp_path, capsys):
    data = write_text(tmp_path / "data", X, SIGNS, zero_based=True)
    if stored:
        assert dualsvm("convert", "-q", data, tmp_path / "store") == 0
        data = tmp_path / "store"
    dualsvm("train", "-q", data, model)
    rows = np.where(np.arange(D) > 0, X, 0.0)  # no index 0
    assert dualsvm("predict", "-q", write_text(tmp_path / "few", rows, SIGNS, zero_based=True), model) == 0
    assert numbers(capsys.readouterr().out) == load(model).predict(rows).tolist()


def test_certify(three, model, tmp_path, capsys, monkeypatch):
    dualsvm("train", "-q", "-e", "1e-4", "-c", "2", three, model)
    dualsvm("convert", "-q", three, tmp_path / "store")
    learned = load(model)
    for source in (three, tmp_path / "store", "-"):
        give_stdin(monkeypatch, three)
        assert dualsvm("certify", model, source) == 0
        said = capsys.readouterr().out
        low, high = map(float, re.search(r"\[(\S+), (\S+)\]", said).groups())
        assert low == pytest.approx(learned.lower_bound_, rel=1e-6)
        assert high == pytest.approx(learned.upper_bound_, rel=1e-6)
        assert "within the tolerance of 0.0001" in said
    assert dualsvm("certify", "-e", "1e-12", model, three) == 3
    assert "NOT within the tolerance of 1e-12" in capsys.readouterr().out
    assert dualsvm("certify", "-q", model, write_text(tmp_path / "other", X[::-1], THREE)) == 3
    assert dualsvm("certify", "-q", model, write_text(tmp_path / "fewer", X[:-1], THREE[:-1])) == 2
    assert capsys.readouterr().out == ""


def test_certify_balanced_classes_from_standard_input(three, model, capsys, monkeypatch):
    dualsvm("train", "-q", "--class-weight", "balanced", three, model)
    give_stdin(monkeypatch, three)
    assert dualsvm("certify", "-q", model, "-") == 0


def test_checkpoints(three, model, tmp_path, capsys):
    state = tmp_path / "state.npz"
    words = ["train", "-e", "1e-5", "--cache-mb", "0", "--chunk-rows", "9", "--checkpoint", state]
    assert dualsvm(*words, "--checkpoint-every", "0", "--max-passes", "3", three, model) == 0
    halfway = load(model)
    assert not halfway.converged_
    capsys.readouterr()
    assert dualsvm("info", state) == 0
    said = capsys.readouterr().out
    assert f"{N} rows x {D} features" in said
    assert "after 3 reads" in said
    assert f"{halfway.lower_bound_:.8g}" in said
    assert dualsvm(*words, "--resume", state, three, model) == 0
    learned = load(model)
    assert_certified(learned, statements(X, THREE))
    assert learned.history_[:3] == halfway.history_
    assert dualsvm(*words, "--resume", state, "-c", "7", three, model) == 2
    assert "another problem" in capsys.readouterr().err
    assert dualsvm("predict", three, state) == 2


def test_bad_lines_are_counted(data, model, capsys):
    data.write_text(data.read_text() + "1 4:1 3:1\n")
    assert dualsvm("train", data, model) == 2
    assert f"line {N + 1}" in (said := capsys.readouterr().err)
    assert "--bad-lines skip" in said
    assert dualsvm("train", "--bad-lines", "skip", data, model) == 0
    assert "(1 bad lines left out)" in capsys.readouterr().out


@pytest.mark.parametrize("chunk_rows", [None, 7])
def test_cross_validation_of_classes(chunk_rows, three, capsys):
    more = [] if chunk_rows is None else ["--chunk-rows", chunk_rows]
    assert dualsvm("train", "-v", "3", "-q", *more, three) == 0
    accuracy = float(re.fullmatch(r"Cross Validation Accuracy = (\S+)%\n", capsys.readouterr().out)[1])
    # every row is predicted by a model that has not seen it
    fold = np.random.default_rng(0).permutation(np.arange(N) % 3)
    right = 0
    for k in range(3):
        each = SVMClassifier(tol=1e-8, random_state=0).fit(X[fold != k], THREE[fold != k])
        right += int((each.predict(X[fold == k]) == THREE[fold == k]).sum())
    assert accuracy == pytest.approx(100 * right / N, abs=100 / N + 1e-3)
    assert SVMClassifier(random_state=0).fit(X, THREE).score(X, THREE) * 100 > accuracy


def test_cross_validation_of_regression(tmp_path, capsys):
    data = write_text(tmp_path / "data", X, TARGETS)
    assert dualsvm("train", "-v", "5", "-q", "-s", "13", data) == 0
    said = dict(line.split(" = ") for line in capsys.readouterr().out.splitlines())
    assert 0 < float(said["Cross Validation Mean squared error"]) < TARGETS.var()
    assert 0.5 < float(said["Cross Validation Squared correlation coefficient"]) < 1


def test_info(three, model, tmp_path, capsys):
    dualsvm("train", "-q", "-c", "3", three, model)
    assert dualsvm("info", model) == 0
    said, learned = capsys.readouterr().out, load(model)
    assert "SVMClassifier(C=3.0" in said
    assert "3 classes: 0, 1, 2" in said
    assert f"{learned.n_support_.sum()} support vectors of {N} rows" in said
    assert f"[{learned.lower_bound_:.8g}, {learned.upper_bound_:.8g}]" in said

    dualsvm("convert", "-q", three, tmp_path / "store")
    for source in (three, tmp_path / "store"):
        assert dualsvm("info", source) == 0
        said = capsys.readouterr().out
        assert f"{N} rows x {D} features, sparse" in said
        assert "0 ({}), 1 ({}), 2 ({})".format(*np.bincount(THREE)) in said
    values = tmp_path / "store" / "values.npy"
    values.write_bytes(values.read_bytes()[:-1] + b"\x01")
    assert dualsvm("info", tmp_path / "store") == 0
    assert dualsvm("info", "--verify", tmp_path / "store") == 2
    assert "checksum" in capsys.readouterr().err
