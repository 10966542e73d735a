"""Workers that are killed, at every moment of a fit: it ends, with a proof, and nothing stays on the workers."""

import logging
import os
import signal
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from dualsvm import SVMClassifier
from dualsvm.dask import DaskSVMClassifier
from dualsvm.dask import cluster as module
from dualsvm.dask.cluster import Cluster

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 6))
Y = (X @ RNG.normal(size=(6, 3)) + RNG.normal(size=(300, 3))).argmax(axis=1)
TOL = 1e-3
MOMENTS = [("measure", 2), ("prove", 1), ("turn", 2), ("settle", 1), ("account", 2)]


@pytest.fixture(scope="module")
def local():
    return SVMClassifier(tol=1e-7).fit(X, Y)


@pytest.fixture(scope="module")
def mortal():
    """A client of two workers that come back when they are killed, however long that takes."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as workers,
        Client(workers) as client,
    ):
        yield client


@pytest.fixture
def pids(mortal):
    """The processes of both workers, once they are back."""
    return list(
        until(lambda: (found := mortal.run(os.getpid, on_error="ignore")) and len(found) == 2 and found).values()
    )


def until(happens):
    """Wait, not for ever."""
    deadline = time.monotonic() + 120
    while not (found := happens()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def hosts_here():
    return len(module._HERE)


def check_left(client):
    """Check that no hosts stay on the workers."""
    until(lambda: not any(client.run(hosts_here, on_error="ignore").values()))


def rows():
    """Return the data under new names, as Dask gives up what has had several workers killed."""
    return da.from_array(X, chunks=(60, 6), name=False), da.from_array(Y, chunks=60, name=False)


def check(model, local):
    assert model.gap_ <= TOL
    assert model.converged_
    assert model.lower_bound_ <= local.upper_bound_ * (1 + 1e-9)
    assert model.upper_bound_ >= local.lower_bound_ * (1 - 1e-9)
    assert model.dual_coef_.shape == local.dual_coef_.shape
    w = np.column_stack([model.coef_, model.intercept_])
    away = w - model.dual_coef_ @ np.column_stack([X, np.ones(300)])
    assert (away**2).sum() / 2 <= TOL * model.upper_bound_  # a part of the gap that these dual variables prove


def when_asked(monkeypatch, verb, act, count=1):
    """Have something happen when a verb is asked for the count-th time."""
    ask, seen = Cluster._ask, []

    def watched(self, asked, messages):
        if asked == verb:
            seen.append(asked)
            if len(seen) == count:
                act()
        return ask(self, asked, messages)

    monkeypatch.setattr(Cluster, "_ask", watched)
    return seen


def kill(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(("verb", "many"), MOMENTS)
def test_workers_killed_before_a_question(mortal, pids, local, monkeypatch, verb, many):
    seen = when_asked(monkeypatch, verb, lambda: kill(pids[:many]), count=3 if verb == "turn" else 1)
    model = DaskSVMClassifier(tol=TOL, random_state=0, client=mortal).fit(*rows())
    assert seen
    check(model, local)
    if verb in ("turn", "settle", "account"):
        assert model.n_restarts_ >= 1
    check_left(mortal)


@pytest.mark.parametrize("verb", ["turn", "account"])
def test_a_worker_killed_while_it_answers(mortal, pids, local, monkeypatch, verb):
    timers = []

    def soon():
        timers.append(threading.Timer(0.02, kill, [pids[:1]]))
        timers[0].start()

    when_asked(monkeypatch, verb, soon)
    model = DaskSVMClassifier(tol=TOL, random_state=0, client=mortal).fit(*rows())
    timers[0].join()
    check(model, local)


def test_workers_killed_while_a_checkpoint_is_written(mortal, pids, local, monkeypatch, tmp_path):
    path = tmp_path / "checkpoint"
    when_asked(monkeypatch, "keep", lambda: kill(pids), count=2)
    model = DaskSVMClassifier(tol=TOL, random_state=0, client=mortal)
    check(model.fit(*rows(), checkpoint=path, checkpoint_every=0), local)
    assert model.n_restarts_ >= 1
    check_left(mortal)


def test_scattered_data_that_are_lost(mortal, pids, monkeypatch):
    parts = [mortal.scatter([array[k : k + 60] for k in range(0, 300, 60)]) for array in (X, Y)]
    model = DaskSVMClassifier(tol=TOL, client=mortal)
    before = vars(model).copy()
    when_asked(monkeypatch, "turn", lambda: kill(pids))
    with pytest.raises(RuntimeError, match=r"partition \d of X is lost.* give delayed objects, collections or paths"):
        model.fit(*parts)
    assert vars(model) == before
    check_left(mortal)


def test_an_error_leaves_no_hosts(mortal, pids, monkeypatch):
    def fail():
        raise ZeroDivisionError

    when_asked(monkeypatch, "turn", fail, count=2)
    with pytest.raises(ZeroDivisionError):
        DaskSVMClassifier(tol=TOL, client=mortal).fit(*rows())
    check_left(mortal)


def test_a_question_that_went_astray_is_asked_again(mortal, pids, local, monkeypatch):
    at = module._at

    def elsewhere(worker):
        others = sorted(set(mortal.nthreads()) - {worker})
        return at(others[0] if wrong.pop() else worker)

    wrong = [False] * 1000
    monkeypatch.setattr(module, "_at", elsewhere)
    when_asked(monkeypatch, "turn", lambda: wrong.append(True), count=2)
    model = DaskSVMClassifier(tol=TOL, random_state=0, client=mortal).fit(*rows())
    check(model, local)
    assert model.n_restarts_ == 0  # nobody was lost
    check_left(mortal)


def in_a_task():
    return DaskSVMClassifier(tol=TOL, random_state=0).fit(*rows()).gap_


def test_fits_in_tasks(mortal, pids):
    both = [mortal.submit(in_a_task, pure=False) for _ in range(2)]  # as many as there are threads
    assert max(mortal.gather(both)) <= TOL
    check_left(mortal)
