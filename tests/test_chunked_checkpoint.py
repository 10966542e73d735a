"""Checkpoints: fits from datasets go on where they were, whatever ended them, and only with what they are of."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.base import clone

import dualsvm
from dualsvm import SVMClassifier, SVMRegressor
from dualsvm.chunked import Runs
from dualsvm.chunked.cache import Cache

from .estimators import TARGETS as REAL
from .estimators import THREE, TWO, WEIGHTS, N, X, assert_certified, statements
from .reference import state

KINDS = {
    "binary": (SVMClassifier(), TWO),
    "crammer_singer": (SVMClassifier(), THREE),
    "ovr": (SVMClassifier(multi_class="ovr"), THREE),
    "regression": (SVMRegressor(epsilon=0.1), REAL),
}
every_kind = pytest.mark.parametrize("kind", list(KINDS))
ROWS = 9  # of a chunk


class BrokenError(Exception):
    pass


def made(kind, **parameters):
    model, y = KINDS[kind]
    return clone(model).set_params(**{"tol": 1e-4, "cache_mb": 0.002, "random_state": 0} | parameters), y


def written(kind):
    if kind == "regression":
        return [state("regression", X, {"y": REAL, "epsilon": 0.1, "intercept": 1.0}, cost=1.0, loss="hinge")]
    return statements(X, KINDS[kind][1], ovr=kind == "ovr")


def table(y, rows=X, chunk_rows=ROWS, **more):
    return dualsvm.open_dataset(rows, target=y, chunk_rows=chunk_rows, **more)


def stream(y, error=None, after=10**9, rows=X):
    """Return a dataset that fails after so many chunks, and a list of those that were read."""
    read = []

    def parts():
        for k in range(0, len(rows), ROWS):
            if len(read) == after:
                raise error
            read.append(k // ROWS)
            yield rows[k : k + ROWS], y[k : k + ROWS]

    return dualsvm.open_dataset(parts, chunk_rows=ROWS, read_ahead=0), read


def known(kind):
    return {} if kind == "regression" else {"classes": np.unique(KINDS[kind][1])}


@every_kind
@pytest.mark.parametrize("after", [3, 5, 12])
@pytest.mark.parametrize("seekable", [True, False])
def test_after_an_error(kind, after, seekable, tmp_path):
    model, y = made(kind)
    path = tmp_path / "checkpoint"
    with pytest.raises(BrokenError):
        model.fit(stream(y, BrokenError(), after)[0], checkpoint=path, **known(kind))
    assert not hasattr(model, "coef_")
    dataset, read = (table(y), None) if seekable else stream(y)
    model.fit(dataset, resume=path, **known(kind))
    assert_certified(model, written(kind))
    assert model.n_iter_ == len(model.history_)
    if read is not None:  # what was met of the read that failed was only passed over
        assert len(read) == 5 * (model.n_iter_ - after // 5)


def test_the_read_goes_on(tmp_path):
    """Chunks that were met before are not met again, and what they have added counts."""
    model = SVMRegressor(random_state=0)
    with pytest.raises(BrokenError):
        model.fit(stream(REAL, BrokenError(), 3)[0], checkpoint=tmp_path / "c")
    read = []
    dataset = table(REAL)
    chunks = dataset.chunks

    def counted(order):
        for chunk in chunks(order):
            read.append(chunk.index)
            yield chunk

    dataset.chunks = counted
    model.fit(dataset, passes=1, resume=tmp_path / "c")
    assert read == [3, 4]
    assert model.n_iter_ == 1
    assert model.history_[0].explored >= N


@every_kind
def test_an_error_leaves_what_was_learned_before(kind):
    model, y = made(kind)
    model.fit(table(y))
    before = {name: value for name, value in vars(model).items() if name.endswith("_") or name == "_alpha"}
    with pytest.raises(BrokenError):
        model.fit(stream(y, BrokenError(), 7)[0], **known(kind))
    assert all(getattr(model, name) is value for name, value in before.items())


def test_a_file_that_changes(tmp_path):
    lines = [f"{y} " + " ".join(f"{k + 1}:{x:.6f}" for k, x in enumerate(row)) for row, y in zip(X, TWO, strict=True)]
    (tmp_path / "data").write_text("\n".join(lines))
    dataset = dualsvm.open_dataset(tmp_path / "data", chunk_rows=ROWS)
    model = SVMClassifier(cache_mb=0.0, random_state=0).fit(table(THREE)).set_params(tol=1e-6)
    before = model.coef_
    with pytest.MonkeyPatch.context() as patch:
        settle = Runs.settle

        def change(self):
            settle(self)
            (tmp_path / "data").write_text("\n".join(lines[1:]))

        patch.setattr(Runs, "settle", change)
        with pytest.raises(ValueError, match="changed"):
            model.fit(dataset, checkpoint=tmp_path / "c")
    assert model.coef_ is before
    (tmp_path / "data").write_text("\n".join(lines))
    model.fit(dualsvm.open_dataset(tmp_path / "data", chunk_rows=ROWS), resume=tmp_path / "c")
    assert_certified(model, statements(X.round(6), TWO))


@pytest.mark.parametrize("where", [(Runs, "settle"), (Cache, "keep"), (Cache, "end"), (Cache, "meet")])
@every_kind
def test_ctrl_c(kind, where, tmp_path, monkeypatch):
    model, y = made(kind)
    owner, name = where
    calls, whole = [], getattr(owner, name)

    def interrupted(self, *given):
        calls.append(1)
        result = whole(self, *given)
        if len(calls) == (2 if name in ("settle", "end") else 8):
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(table(y), checkpoint=tmp_path / "c")
    monkeypatch.undo()
    optimum = sum(problem.optimum() for problem in written(kind))
    assert model.lower_bound_ <= optimum * (1 + 1e-9)
    again = clone(model).fit(table(y), resume=tmp_path / "c")
    assert_certified(again, written(kind))
    assert again.certify(X, y).gap <= again.tol * (1 + 1e-6)  # the bounds are those of the dual variables


@every_kind
def test_once_more(kind, tmp_path):
    """A fit that has ended is made anew from its checkpoint, without a read, or goes on to a smaller gap."""
    model, y = made(kind, tol=1e-2)
    model.fit(table(y), checkpoint=tmp_path / "c")
    dataset, read = stream(y)
    again = clone(model).fit(dataset, resume=tmp_path / "c", **known(kind))
    assert not read
    for name in ("coef_", "intercept_", "n_support_", "n_iter_", "lower_bound_", "upper_bound_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    for name in ("_alpha", "dual_coef_"):
        np.testing.assert_array_equal(getattr(again, name).toarray(), getattr(model, name).toarray())
    again.set_params(tol=1e-5).fit(table(y), resume=tmp_path / "c", checkpoint=tmp_path / "c")
    assert again.n_iter_ > model.n_iter_
    assert_certified(again, written(kind))
    assert again.certify(X, y).gap <= 1e-5


def test_single_precision_and_weights(tmp_path):
    rows = (8 * X).round().astype(np.float32) / 8
    model = SVMClassifier(lower=-0.3, upper=0.5, tol=1e-4, cache_mb=0.002, random_state=0)
    data = {"rows": rows, "weight": WEIGHTS}
    with pytest.warns(Warning, match="not converged"):
        model.fit(table(THREE, **data), max_passes=2, checkpoint=tmp_path / "c")
    model.fit(table(THREE, **data), resume=tmp_path / "c")
    assert model.coef_.dtype == np.float32
    box = {"lower": np.tile([-0.3] * 4 + [-np.inf], 3), "upper": np.tile([0.5] * 4 + [np.inf], 3)}
    assert_certified(model, statements(rows, THREE, cost=WEIGHTS, **box), rel=1e-6)


def test_every_chunk_a_checkpoint(tmp_path):
    model, y = made("ovr", tol=1e-2)
    model.fit(table(y), checkpoint=tmp_path / "c", checkpoint_every=0.0)
    same, _ = made("ovr", tol=1e-2)
    np.testing.assert_array_equal(model.coef_, same.fit(table(y)).coef_)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


KILLED = """
import os, random, signal, sys, time
from dualsvm import SVMClassifier, open_dataset
from dualsvm.store import read

store, path = sys.argv[1:]
random.seed(1)

def number():
    return os.stat(path).st_ino if os.path.exists(path) else 0

for k in range(20):
    before = number()
    pid = os.fork()
    if pid == 0:
        try:
            model = SVMClassifier(multi_class="ovr", tol=0.0, cache_mb=0.01, random_state=k)
            on = {"resume": path} if k % 4 and before else {}
            model.fit(open_dataset(store, chunk_rows=50), checkpoint=path, checkpoint_every=0.0, **on)
        finally:
            os._exit(1)
    while k % 2 and number() == before:  # half of them get as far as a checkpoint of their own
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
        time.sleep(0.001)
    time.sleep(random.uniform(0.0, 0.1))
    os.kill(pid, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    if number():
        read(path, "a checkpoint", {"dualsvm.Checkpoint 1": lambda *found: found})
"""


def test_killed(tmp_path):
    """Killed at any moment, what the checkpoint holds is whole, and good to go on from."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 5))
    y = (rows[:, :3] + rng.normal(size=(400, 3))).argmax(axis=1)
    dualsvm.open_dataset(rows, target=y).save(tmp_path / "store")
    arguments = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path / "store"), str(tmp_path / "c")]
    subprocess.run(arguments, check=True, timeout=300)
    model = SVMClassifier(multi_class="ovr", tol=1e-4, cache_mb=0.01, random_state=0)
    model.fit(dualsvm.open_dataset(tmp_path / "store", chunk_rows=50), resume=tmp_path / "c")
    assert_certified(model, statements(rows, y, ovr=True))
    assert model.certify(rows, y).gap <= 1e-4
    model.fit(dualsvm.open_dataset(tmp_path / "store", chunk_rows=50), checkpoint=tmp_path / "c", passes=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "store"]  # nothing half-written is left


@pytest.mark.parametrize(
    ("go_on", "message"),
    [
        (lambda p: SVMClassifier(C=2).fit(table(TWO), resume=p), r"C is 1\.0 there, and 2\.0 here"),
        (lambda p: SVMClassifier(upper=np.ones(4)).fit(table(TWO), resume=p), "upper"),
        (lambda p: SVMClassifier().fit(table(THREE), resume=p), "classes"),
        (lambda p: SVMRegressor().fit(table(TWO), resume=p), "another problem"),
        (lambda p: SVMClassifier().fit(table(TWO[:-1], X[:-1]), resume=p), "45 rows, and here are 44"),
        (lambda p: SVMClassifier().fit(table(TWO, X[:, :3]), resume=p), "4 features, and here are 3"),
        (lambda p: SVMClassifier().fit(table(TWO, chunk_rows=11), resume=p), "other chunks"),
        (lambda p: SVMClassifier().fit(table(TWO, X[::-1]), resume=p), "which were others"),
        (lambda p: SVMClassifier().fit(table(TWO, weight=WEIGHTS), resume=p), "which were others"),
        (lambda p: SVMClassifier().fit(table(1 - TWO), resume=p), "which were others"),
        (lambda p: SVMClassifier().fit(X, TWO, resume=p), "resume is for datasets"),
        (lambda p: SVMClassifier().fit(X, TWO, checkpoint=p), "checkpoint is for datasets"),
    ],
)
def test_what_it_is_not_a_checkpoint_of(go_on, message, tmp_path):
    path = tmp_path / "c"
    with pytest.warns(Warning, match="not converged"):
        SVMClassifier(tol=0.0, random_state=0).fit(table(TWO), max_passes=2, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        go_on(path)
    assert path.read_bytes() == before


def test_other_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        SVMClassifier().fit(table(TWO), resume=tmp_path / "c")
    with pytest.raises(FileNotFoundError, match="folder"):
        SVMClassifier().fit(table(TWO), checkpoint=tmp_path / "no" / "c")
    SVMClassifier().fit(X, TWO).save(tmp_path / "c")
    with pytest.raises(ValueError, match="not a checkpoint"):
        SVMClassifier().fit(table(TWO), resume=tmp_path / "c")
    SVMClassifier().fit(table(TWO), checkpoint=tmp_path / "c")
    whole = (tmp_path / "c").read_bytes()
    for part in (whole[: len(whole) // 2], whole[:-1000], b""):
        (tmp_path / "c").write_bytes(part)
        with pytest.raises(ValueError, match="not a checkpoint"):
            SVMClassifier().fit(table(TWO), resume=tmp_path / "c")


def test_partial_fit_takes_chunks():
    by_chunk, by_hand = SVMClassifier(random_state=0), SVMClassifier(random_state=0)
    for chunk in table(THREE, weight=WEIGHTS):
        by_chunk.partial_fit(chunk, classes=[0, 1, 2])
        which = slice(chunk.start, chunk.stop)
        by_hand.partial_fit(X[which], THREE[which], [0, 1, 2], WEIGHTS[which])
    np.testing.assert_array_equal(by_chunk.coef_, by_hand.coef_)
    chunk = next(iter(table(REAL)))
    one, other = SVMRegressor(random_state=0), SVMRegressor(random_state=0)
    np.testing.assert_array_equal(one.partial_fit(chunk).coef_, other.partial_fit(chunk.X, chunk.y).coef_)
    with pytest.raises(ValueError, match="itself"):
        one.partial_fit(chunk, chunk.y)
    with pytest.raises(ValueError, match="no targets"):
        one.partial_fit(next(iter(dualsvm.open_dataset(X))))
