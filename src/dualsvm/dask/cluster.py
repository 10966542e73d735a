"""Hosts on the workers of a Dask cluster.

A host is made by a task, of pieces of the data, and stays on the worker that made it; the result of the task is a
token of it. What it is asked is one short task, which depends on the token; answers are added up on the workers, and
only their sum comes here. So nothing waits for a worker that is gone: Dask runs the tasks of such a one again
elsewhere, the one that makes the host among them. The new host then answers that it has only just begun.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from distributed import CancelledError, Client, Future, get_worker, rejoin, secede, wait
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker

from ..shares import Answer, Host
from .load import Piece

_FAN = 8  # answers that are added up in one task
_LOOK = 5.0  # seconds after which to look whether there are any workers
_ALONE = 300.0  # seconds without a worker after which to give up
_FORGOTTEN = 3600.0  # seconds after which a host that nobody asks is let go
_ATTEMPTS = 100  # to get an answer that is lost on the way, in a row
_LOST = (KilledWorker, CancelledError, CommClosedError)  # what befalls tasks, not what they do

Make = Callable[[int, Sequence[Piece], Sequence[Any], int], Host]  # of its number, pieces, their blocks, and threads


@dataclass(frozen=True)
class Token:
    """Stands for a host on a worker, which itself does not travel."""

    number: int
    fit: str
    key: str
    address: str


_HERE: dict[tuple[str, str], tuple[str, Host, float]] = {}  # by worker and key: fit, host, and when it was last asked
_OVER: deque[str] = deque(maxlen=1000)  # fits that are over, whose hosts nobody needs any more


def settle(make: Make, fit: str, number: int, pieces: Sequence[Piece], blocks: Sequence[Any]) -> Token:
    """Make a host on this worker; let go of those that nobody has asked for long, as whoever did must be gone."""
    for key, (_, _, last) in list(_HERE.items()):
        if time.monotonic() - last > _FORGOTTEN:
            _HERE.pop(key, None)
    worker = get_worker()
    token = Token(number, fit, uuid.uuid4().hex, worker.address)
    _HERE[token.address, token.key] = fit, make(number, pieces, blocks, worker.state.nthreads), time.monotonic()
    if fit in _OVER:
        leave(fit)
    return token


def asked(token: Token, serial: int, verb: str, messages: Sequence[Any]) -> Answer:
    """Ask a host, if it is here."""
    here, nobody = get_worker().address, frozenset([token.number])
    if token.address != here:  # a task that went astray
        return Answer(gone=nobody)
    if (place := (here, token.key)) not in _HERE:
        return Answer(fresh=nobody, gone=nobody)
    host = _HERE[place][1]
    _HERE[place] = token.fit, host, time.monotonic()
    return host.ask(serial, verb, messages)


def added(answers: Sequence[Answer]) -> Answer:
    """Add up answers."""
    return sum(answers[1:], answers[0])


def leave(fit: str) -> None:
    """Let go of all hosts of a fit, and of those that are still being made."""
    _OVER.append(fit)
    for key, (whose, _, _) in list(_HERE.items()):
        if whose == fit:
            _HERE.pop(key, None)


class Cluster:
    """Hosts on workers, each with some pieces of the data.

    Parameters
    ----------
    client : Client
        Whose workers they are on.
    pieces : sequence of Piece
        The data, in the order of their numbers, without empty pieces.
    sizes : sequence of int
        Their numbers of rows, or of whatever their work is in proportion to.
    make : callable
        Makes a host, on a worker, of its number, pieces, their blocks, and the number of threads there.
    """

    def __init__(self, client: Client, pieces: Sequence[Piece], sizes: Sequence[int], make: Make) -> None:
        self._client, self._pieces, self._make, self._serial = client, pieces, make, 0
        self._fit = uuid.uuid4().hex
        self._dealt = deal(sizes, self._homes(), self._workers())
        self._hosts: list[Future[Any]] = []
        self._made: list[Future[Any]] = []  # all there ever were
        self._open: list[Future[Any]] = []  # what the present question is about
        self._where: list[str] = []  # they are; empty where that is not known

    def __len__(self) -> int:
        return len(self._dealt)

    def _host(self, number: int) -> Future[Any]:
        """Have a host made, by the worker that it was dealt to if that is still there."""
        worker, numbers = self._dealt[number]
        own = [self._pieces[k] for k in numbers]
        blocks = [list(piece.futures) for piece in own]
        made = self._client.submit(settle, self._make, self._fit, number, own, blocks, **_at(worker))
        self._made.append(made)
        return made

    def ask(self, verb: str, messages: Sequence[Any]) -> Answer:
        """Ask all hosts; return the sum of their answers."""
        self._serial += 1
        for _ in range(_ATTEMPTS):
            try:
                answer = self._ask(verb, messages)
            except Exception as error:
                if self._client.status == "running" and not isinstance(error, _LOST):
                    raise
                self._check()
                reason, self._where = str(error), []
                continue
            finally:
                _release(self._open)
            if not answer.gone:
                return answer
            reason, self._where = "hosts are not where they were", []
            for number in answer.gone & answer.fresh:
                self._hosts[number] = self._host(number)
        raise RuntimeError(f"the cluster has lost what it was asked {_ATTEMPTS} times in a row: {reason}")

    def _ask(self, verb: str, messages: Sequence[Any]) -> Answer:
        while not self._where:
            self._find()
        try:
            letter = self._client.scatter(list(messages), hash=False, timeout=_ALONE)
        except TimeoutError:
            raise _abandoned() from None
        self._open += letter
        pairs = zip(self._hosts, self._where, strict=True)
        parts = [self._submit(asked, host, self._serial, verb, letter, **_at(where)) for host, where in pairs]
        while len(parts) > 1:
            parts = [self._submit(added, parts[k : k + _FAN], pure=False) for k in range(0, len(parts), _FAN)]
        answer: Answer = self._result(parts[0])
        return answer

    def _submit(self, function: Callable[..., Any], *args: Any, **how: Any) -> Future[Any]:
        """Submit a task, whose result is let go when the question is answered."""
        self._open.append(future := self._client.submit(function, *args, **how))
        return future

    def _find(self) -> None:
        """Find out where the hosts are, when all have been made; have those made anew that are nowhere."""
        self._hosts = self._hosts or [self._host(number) for number in range(len(self._dealt))]
        for number, host in enumerate(self._hosts):
            if host.status == "cancelled" or _killed(host):
                self._hosts[number] = self._host(number)
        tokens: list[Token] = self._result(self._submit(list, self._hosts, pure=False))
        workers = self._workers()
        missing = [token.number for token in tokens if token.address not in workers]
        for number in missing:  # a copy of the token is all that is left
            self._hosts[number] = self._host(number)
        self._where = [] if missing else [token.address for token in tokens]

    def _homes(self) -> list[list[str]]:
        """Return the workers that have a piece; none where one has to be loaded first."""
        futures = [piece.futures[0] for piece in self._pieces if piece.futures]
        self._await(futures)
        where = self._client.who_has(futures)
        return [list(where.get(piece.futures[0].key, ())) if piece.futures else [] for piece in self._pieces]

    def _workers(self) -> list[str]:
        """Return all workers, as soon as there are any."""
        began = time.monotonic()
        while not (workers := sorted(self._client.nthreads())):
            if time.monotonic() - began > _ALONE:
                raise _abandoned()
            time.sleep(_LOOK / 50)
        return workers

    def _result(self, future: Future[Any]) -> Any:
        while True:
            self._await([future])
            with suppress(TimeoutError):  # it may be lost again before it is here
                return future.result(timeout=_LOOK)

    def _await(self, futures: list[Future[Any]]) -> None:
        """Wait for results, as long as there is anybody who may bring them."""
        began = time.monotonic()
        while True:
            try:
                wait(futures, timeout=_LOOK)
                break
            except TimeoutError:
                if self._client.nthreads():
                    began = time.monotonic()
                elif time.monotonic() - began > _ALONE:
                    raise _abandoned() from None
        for future in futures:
            if future.status == "error":
                error = future.exception()
                assert error is not None
                raise error

    def _check(self) -> None:
        """Raise if what was lost cannot be had again; else see that the data come back."""
        if self._client.status != "running":
            raise RuntimeError(
                "the connection to Dask's scheduler is lost: fit again when there is one, from a checkpoint if you "
                "have one"
            )
        futures = [(piece, future) for piece in self._pieces for future in piece.futures]
        for piece, future in futures:
            if future.status == "cancelled":
                raise RuntimeError(
                    f"{piece.name} is lost, and the cluster does not know how to make it again: it was restarted, or "
                    "the data were scattered to a worker that is gone; give delayed objects, collections or paths, "
                    "and fit again"
                )
        if killed := [(piece, future) for piece, future in futures if _killed(future)]:
            try:
                self._client.retry([future for _, future in killed])
            except KeyError:  # of what the pieces are made of, which is not ours
                raise RuntimeError(
                    f"workers died again and again while they made {killed[0][0].name}: see whether it takes more "
                    "memory than they have"
                ) from None

    def close(self) -> None:
        """Let go of the hosts, wherever they are."""
        _release(self._made)
        if self._client.status == "running":
            letting = threading.Thread(target=self._leave, daemon=True)
            letting.start()
            letting.join(_LOOK)  # not longer: a worker may not answer

    def _leave(self) -> None:
        with suppress(Exception):  # whoever is gone has let go
            self._client.run(leave, self._fit, on_error="ignore")


@contextmanager
def aside() -> Iterator[None]:
    """Have a task that fits leave its thread to those that it waits for; elsewhere this does nothing."""
    try:
        secede()
    except (AttributeError, KeyError, ValueError):  # this is no task, or one that has done so already
        yield
        return
    try:
        yield
    finally:
        rejoin()


def _abandoned() -> RuntimeError:
    return RuntimeError(
        f"the cluster has had no workers for {_ALONE:.0f} seconds: start some, and fit again, from a checkpoint if "
        "you have one"
    )


def _killed(future: Future[Any]) -> bool:
    """Tell whether a task was given up as workers died again and again while they had it."""
    return future.status == "error" and isinstance(future.exception(), KilledWorker)


def _release(futures: list[Future[Any]]) -> None:
    """Let go of futures. An error that something still refers to would keep them, and what they depend on, alive."""
    for future in futures:
        future.release()
    futures.clear()


def _at(worker: str) -> dict[str, Any]:
    """Return how to submit what a worker is to do, or another one if it is gone."""
    return {"pure": False, "workers": [worker], "allow_other_workers": True}


def deal(sizes: Sequence[int], homes: Sequence[Sequence[str]], workers: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Deal pieces to workers: the largest first, to whoever has it, unless that one has enough.

    Parameters
    ----------
    sizes : sequence of int
        Of the pieces.
    homes : sequence of sequence of str
        Who has them.
    workers : sequence of str
        All workers.

    Returns
    -------
    list of tuple
        Workers, and the numbers of the pieces of each; without those that get none.

    Examples
    --------
    >>> from dualsvm.dask.cluster import deal
    >>> deal([5, 5, 5, 5], [["a"], ["a"], ["a"], ["b"]], ["a", "b"])
    [('a', [0, 1]), ('b', [2, 3])]
    """
    enough = 1.2 * sum(sizes) / len(workers)
    load = dict.fromkeys(workers, 0)
    dealt: dict[str, list[int]] = {worker: [] for worker in workers}
    for k in sorted(range(len(sizes)), key=lambda k: (-sizes[k], k)):
        own = [worker for worker in homes[k] if worker in load and load[worker] + sizes[k] <= enough]
        best = min(own or load, key=lambda worker: (load[worker], worker))
        load[best] += sizes[k]
        dealt[best].append(k)
    return [(worker, sorted(numbers)) for worker, numbers in dealt.items() if numbers]
