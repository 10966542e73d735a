"""Hosts on the workers of a Dask cluster.

A host is made by a task, of pieces of the data, and stays on the worker that made it; the result of the task is a
token of it. What it is asked is one short task, which depends on the token; answers are added up on the workers, and
only their sum comes here. So nothing waits for a worker that is gone: Dask runs the tasks of such a one again
elsewhere, the one that makes the host among them. The new host then answers that it has only just begun.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from distributed import Client, Future, fire_and_forget, get_worker, wait
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker

from ..shares import Answer, Host
from .load import Piece

_FAN = 8  # answers that are added up in one task
_LOOK = 5.0  # seconds after which to look whether there are any workers
_ALONE = 300.0  # seconds without a worker after which to give up
_FORGOTTEN = 3600.0  # seconds after which a host that nobody asks is let go
_ATTEMPTS = 100  # to get an answer that is lost on the way, in a row
_LOST = (KilledWorker, FutureCancelledError, CommClosedError)  # what befalls tasks, not what they do

Make = Callable[[int, Sequence[Piece], Sequence[Any], int], Host]  # of its number, pieces, their blocks, and threads


@dataclass(frozen=True)
class Token:
    """Stands for a host on a worker, which itself does not travel."""

    number: int
    key: str


_HERE: dict[tuple[str, str], tuple[Host, float]] = {}  # hosts on the workers of this process, and when last asked


def settle(make: Make, number: int, pieces: Sequence[Piece], blocks: Sequence[Any]) -> Token:
    """Make a host on this worker; let go of those that nobody has asked for long, as whoever did must be gone."""
    for key, (_, last) in list(_HERE.items()):
        if time.monotonic() - last > _FORGOTTEN:
            _HERE.pop(key, None)
    worker, token = get_worker(), Token(number, uuid.uuid4().hex)
    _HERE[worker.address, token.key] = make(number, pieces, blocks, worker.state.nthreads), time.monotonic()
    return token


def asked(token: Token, serial: int, verb: str, messages: Sequence[Any]) -> Answer:
    """Ask a host, if it is here."""
    place = get_worker().address, token.key
    if place not in _HERE:
        nobody = frozenset([token.number])
        return Answer(fresh=nobody, gone=nobody)
    host = _HERE[place][0]
    _HERE[place] = host, time.monotonic()
    return host.ask(serial, verb, messages)


def added(answers: Sequence[Answer]) -> Answer:
    """Add up answers."""
    return sum(answers[1:], answers[0])


def leave(token: Token) -> None:
    """Let go of a host."""
    _HERE.pop((get_worker().address, token.key), None)


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
        self._dealt = deal(sizes, _homes(client, pieces), sorted(client.nthreads()))
        self._hosts = [self._host(number) for number in range(len(self._dealt))]
        self._where: list[str] = []  # they are; empty where that is not known

    def __len__(self) -> int:
        return len(self._dealt)

    def _host(self, number: int) -> Future[Any]:
        """Have a host made, by the worker that it was dealt to if that is still there."""
        worker, numbers = self._dealt[number]
        own = [self._pieces[k] for k in numbers]
        blocks = [list(piece.futures) for piece in own]
        return self._client.submit(settle, self._make, number, own, blocks, **_at(worker))

    def ask(self, verb: str, messages: Sequence[Any]) -> Answer:
        """Ask all hosts; return the sum of their answers."""
        self._serial += 1
        for _ in range(_ATTEMPTS):
            try:
                answer = self._ask(verb, messages)
            except _LOST as error:
                lost, self._where = error, []
                continue
            if answer.fresh:
                self._where = []
            for number in answer.gone:
                self._hosts[number] = self._host(number)
            return answer
        raise RuntimeError(f"the cluster has lost what it was asked {_ATTEMPTS} times in a row: {lost}") from lost

    def _ask(self, verb: str, messages: Sequence[Any]) -> Answer:
        if not self._where:
            self._find()
        letter = self._client.scatter(list(messages), hash=False)
        pairs = zip(self._hosts, self._where, strict=True)
        parts = [self._client.submit(asked, host, self._serial, verb, letter, **_at(where)) for host, where in pairs]
        while len(parts) > 1:
            parts = [self._client.submit(added, parts[k : k + _FAN], pure=False) for k in range(0, len(parts), _FAN)]
        self._await(parts)
        answer: Answer = parts[0].result()
        return answer

    def _find(self) -> None:
        """Find out where the hosts are, when all have been made."""
        for number, host in enumerate(self._hosts):
            if host.status in ("cancelled", "lost"):
                self._hosts[number] = self._host(number)
        self._await(self._hosts)
        found = self._client.who_has(self._hosts)
        self._where = [next(iter(found.get(host.key, ())), "") for host in self._hosts]

    def _await(self, futures: list[Future[Any]]) -> None:
        """Wait for results, as long as there is anybody who may bring them."""
        alone = 0.0
        while True:
            try:
                wait(futures, timeout=_LOOK)
                break
            except TimeoutError:
                alone = 0.0 if self._client.nthreads() else alone + _LOOK
                if alone > _ALONE:
                    raise RuntimeError(
                        f"the cluster has had no workers for {_ALONE:.0f} seconds: start some, and fit again, from a "
                        "checkpoint if there is one"
                    ) from None
        for future in futures:
            if future.status == "error":
                error = future.exception()
                assert error is not None
                raise error

    def close(self) -> None:
        """Let go of the hosts, without waiting for that."""
        for host, where in zip(self._hosts, self._where, strict=False):
            fire_and_forget(self._client.submit(leave, host, **_at(where)))
        self._hosts.clear()


def _at(worker: str) -> dict[str, Any]:
    """Return how to submit what a worker is to do, or another one if it is gone."""
    return {"pure": False} | ({"workers": [worker], "allow_other_workers": True} if worker else {})


def _homes(client: Client, pieces: Sequence[Piece]) -> list[list[str]]:
    """Return the workers that have a piece; none where one has to be loaded first."""
    futures = [piece.futures[0] for piece in pieces if piece.futures]
    wait(futures)
    where = client.who_has(futures)
    return [list(where.get(piece.futures[0].key, ())) if piece.futures else [] for piece in pieces]


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
