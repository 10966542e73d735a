"""Where shares live: what is asked of them, once and only once."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol

from .exchange import Answer, Report
from .share import Share


class Hosts(Protocol):
    """Some hosts, wherever they are."""

    def __len__(self) -> int:
        """Return how many there are."""

    def ask(self, verb: str, messages: Sequence[Any]) -> Answer:
        """Ask all hosts the same, with the arguments for every problem, or None; return the sum of their answers."""


class Host:
    """The shares of some pieces of the data, one for every problem that these state.

    A question may come twice, as whoever asks cannot always tell whether an answer is still to come or was lost on
    the way: the second time the answer is the same, and nothing is done. Nor is anything done where a question comes
    after a later one: whoever asked has given up waiting for the answer.

    Parameters
    ----------
    number : int
        Of the host, among all.
    pieces : sequence
        Keys of the pieces of the data that the shares hold.
    shares : sequence of Share
        One for every problem.
    threads : int, default 1
        For problems side by side.
    """

    def __init__(self, number: int, pieces: Sequence[Hashable], shares: Sequence[Share], threads: int = 1) -> None:
        self.number, self.pieces, self.shares, self._threads = number, pieces, shares, threads
        self._begun = False
        self._last: tuple[int, Answer] | None = None
        self._lock = threading.Lock()

    def ask(self, serial: int, verb: str, messages: Sequence[Any]) -> Answer:
        """Have every share do something, with the arguments for each; None leaves one alone."""
        with self._lock:
            if self._last is not None and serial < self._last[0]:
                return Answer(fresh=frozenset([self.number]))
            if self._last is None or self._last[0] != serial:
                self._last = serial, self._answer(verb, messages)
            return self._last[1]

    def _answer(self, verb: str, messages: Sequence[Any]) -> Answer:
        began = time.perf_counter()
        if verb == "begin":
            if self._begun:
                return Answer()
            self._all(verb, messages)
            self._begun = True
            return Answer(fresh=frozenset([self.number]))
        if not self._begun and verb != "measure":
            return Answer(fresh=frozenset([self.number]))
        if verb == "take":  # of every piece, for all problems
            alpha = [messages[0][piece] for piece in self.pieces]
            self._all(verb, [([own[k] for own in alpha],) for k in range(len(self.shares))])
            return Answer()
        found = self._all(verb, messages)
        if verb == "keep":
            return Answer(each={piece: [own[k] for own in found] for k, piece in enumerate(self.pieces)})
        vectors = [vector for report in found for vector in (report.u, report.change) if vector is not None]
        return Answer(found, busy=time.perf_counter() - began, nbytes=sum(vector.nbytes for vector in vectors))

    def _all(self, verb: str, messages: Sequence[Any]) -> list[Any]:
        def one(share: Share, message: Any) -> Any:
            return Report() if message is None else getattr(share, verb)(*message)

        if self._threads == 1 or len(self.shares) == 1:
            return [one(share, message) for share, message in zip(self.shares, messages, strict=True)]
        with ThreadPoolExecutor(min(self._threads, len(self.shares))) as pool:
            return list(pool.map(one, self.shares, messages))


class Together:
    """Hosts in this process, asked one after the other.

    Parameters
    ----------
    hosts : sequence of Host
        Who is asked.
    """

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.hosts = hosts
        self._serial = 0

    def __len__(self) -> int:
        return len(self.hosts)

    def ask(self, verb: str, messages: Sequence[Any]) -> Answer:
        """Ask all hosts; return the sum of their answers."""
        self._serial += 1
        answers = [host.ask(self._serial, verb, messages) for host in self.hosts]
        return replace(sum(answers[1:], answers[0]), busy=math.inf)  # nobody waits for anybody
