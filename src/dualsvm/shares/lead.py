"""The schedule of rounds over hosts. Nothing here knows where they are, or which task is solved."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from ..checks import Array
from ..progress import Watcher
from ..solution import Record, relative_gap
from .course import Course, shape_of
from .exchange import Report, Vector
from .host import Hosts

_PATIENCE = 5.0  # times as much effort, where hosts would else mostly wait for one another
_ALONE = 10.0  # times as much, at most, where there is but one host, with nobody to agree with
_PROOF = 2.0  # visits of every example, for one more that proves something
_LONG = 100  # rounds in which the gap has to become less, by this part
_LITTLE = 0.01
_ATTEMPTS = 1000  # to begin anew with all hosts, in a row


class Lead:
    """Leads several problems, side by side, over their shares.

    Parameters
    ----------
    hosts : Hosts
        Who has the shares.
    courses : sequence of Course
        The problems.
    seen : callable
        Makes of the weights of the problems, as shares have them, those that the user sees.
    effort : float, default 2.0
        Visits of an example in a round, at least.
    """

    def __init__(
        self,
        hosts: Hosts,
        courses: Sequence[Course],
        seen: Callable[[list[Array]], Array],
        effort: float = 2.0,
    ) -> None:
        self.hosts, self.courses, self._seen = hosts, courses, seen
        self.history: list[Record] = []
        self.rounds = self.restarts = self.nbytes = 0
        self.began = time.perf_counter()
        self.keep: Callable[[], Any] | None = None  # what to do after every round
        self._shapes: list[Array] = []  # how free shares are in every coordinate
        self._effort = self._least = effort
        self._cheap = False  # whether proofs cost little beside all the waiting
        self._since = 0.0  # visits since the last proof
        self._calm = 0  # records before the last loss: what is lost has to be found again before bounds move
        self._limit = 0  # rounds up to which to go on, where dual variables are lost when all was done

    @property
    def left(self) -> list[Course]:
        """Problems that are not done yet."""
        return [course for course in self.courses if not course.done]

    @property
    def lower(self) -> float:
        """The sum of the lower bounds."""
        return sum(course.lower for course in self.courses)

    @property
    def upper(self) -> float:
        """The sum of the upper bounds."""
        return sum(course.upper for course in self.courses)

    @property
    def gap(self) -> float:
        """Relative gap between the sums of the bounds."""
        return relative_gap(self.lower, self.upper) if np.isfinite(self.upper) else np.inf

    @property
    def record(self) -> Record:
        """The record of the last round."""
        return self.history[-1]

    @property
    def certified(self) -> bool:
        """Whether all problems have weights whose upper bound is known."""
        return bool(np.isfinite(self.upper))

    def weights(self) -> Array:
        """Return the best weights known, certified or not, as the user sees them."""
        return self._seen([course.weights() if course.w is None else course.w for course in self.courses])

    def begin(self, alpha: dict[Any, Any] | None = None, weights: Sequence[Array] | None = None) -> None:
        """Have all hosts begin, maybe with dual variables for every piece of the data, and with weights to prove."""
        while (answer := self.hosts.ask("measure", [()] * len(self.courses))).fresh:
            pass
        self._shapes = [shape_of(report.u.dense, len(self.hosts)) for report in answer.sums]
        starts, effort = [None] * len(self.courses) if weights is None else weights, self._least
        for course, report, w in zip(self.courses, answer.sums, starts, strict=True):
            stiffness = report.linear / max(1, report.examples)
            course.begin(stiffness, w)
            if len(self.hosts) == 1:
                self._least = max(self._least, effort * min(max(1.0, stiffness), _ALONE))
        self._effort = self._least
        self._join(alpha)
        self.restarts = 0  # all have only just begun
        if alpha is not None and any(course.dual < course.lower for course in self.courses):  # zeros are better
            self._join({})
        if weights is not None:
            self._prove(weights)

    def gather(self, verb: str) -> dict[Any, Any]:
        """Return what all pieces of the data have to say, after more rounds where some were lost at the very end."""
        while (answer := self.hosts.ask(verb, [()] * len(self.courses))).fresh:
            self._join()
            if self._limit:
                self._settle()
        return answer.each

    def _join(self, alpha: dict[Any, Any] | None = None) -> None:
        """See that all hosts have begun, and learn where they are."""
        self._calm = len(self.history)
        for _ in range(_ATTEMPTS):
            begun = self.hosts.ask("begin", [(Vector.of(shape),) for shape in self._shapes])
            self.restarts += len(begun.fresh)
            if alpha is not None and self.hosts.ask("take", [alpha]).fresh:
                continue
            answer = self.hosts.ask("prove", [(None,)] * len(self.courses))
            if not answer.fresh:
                for course, report, shape in zip(self.courses, answer.sums, self._shapes, strict=True):
                    course.begin_anew(report, shape)
                return
        raise RuntimeError(f"shares of the data were lost {_ATTEMPTS} times in a row, before all had begun")

    def _ask(self, verb: str, messages: Sequence[Any]) -> list[Report] | None:
        """Ask; return None where somebody had to begin anew, and all have to."""
        began = time.perf_counter()
        answer = self.hosts.ask(verb, messages)
        if answer.fresh:
            self._join()
            return None
        self.nbytes += answer.nbytes
        waited = max(0.0, time.perf_counter() - began - answer.busy)
        self._cheap = waited > answer.busy
        worth = waited / max(answer.busy, 1e-9) * self._effort / self._least
        self._effort = self._least * min(max(1.0, worth), _PATIENCE)
        return list(answer.sums)

    def round(self) -> None:
        """Have every share of the problems that are not done take a turn."""
        certify = self._cheap or self._since >= _PROOF
        self._since = self._effort + (0.0 if certify else self._since)
        orders = [None if course.done else (course.order(self._effort, certify),) for course in self.courses]
        reports = self._ask("turn", orders)
        self.rounds += 1
        if reports is not None:
            for course, order, report in zip(self.courses, orders, reports, strict=True):
                if order is not None:
                    course.take(report)
        self._note()

    def _note(self) -> None:
        visited, awake = sum(course.visited for course in self.courses), sum(course.awake for course in self.courses)
        estimate, seconds = max(course.estimate for course in self.courses), time.perf_counter() - self.began
        self.history.append(Record(self.rounds, visited, awake, self.lower, self.upper, estimate, seconds))

    @property
    def _stalled(self) -> bool:
        """Whether the gap has not become less for long: rounding, or a search that bounds too much, lets it not."""
        if len(self.history) - self._calm <= _LONG or not np.isfinite(then := self.history[-1 - _LONG].gap):
            return False
        return self.record.gap > (1 - _LITTLE) * then

    def prove(self) -> None:
        """Prove how good the present weights are."""
        self._prove([course.weights() for course in self.courses])
        if self.history:
            self.history[-1] = self.record._replace(lower=self.lower, upper=self.upper)

    def _prove(self, weights: Sequence[Array]) -> None:
        while (reports := self._ask("prove", [(w,) for w in weights])) is None:
            pass
        for course, w, report in zip(self.courses, weights, reports, strict=True):
            course.prove(w, report)

    def pursue(self, max_rounds: int, watchers: Sequence[Watcher] = ()) -> str:
        """Go on until every gap is within the tolerance, or for so many rounds; return how that ended."""
        status = "max_iter"
        with ExitStack() as stack:
            for watcher in watchers:
                stack.callback(watcher.close)
            try:
                while status == "max_iter" and self.left and self.rounds < max_rounds:
                    for watcher in watchers:
                        watcher.begin()
                    self.round()
                    if any([watcher.tell(self) for watcher in watchers]):
                        status = "stopped"
                    elif self._stalled:
                        status = "stalled"
                    if self.keep is not None:
                        self.keep()
            except KeyboardInterrupt:
                status = "interrupted"
        if self.left and (status != "interrupted" or not self.certified):
            self.prove()
        self._limit = max_rounds if status == "max_iter" else 0
        self._settle()
        if self.left:
            return status
        return "converged" if all(course.converged for course in self.courses) else "uncertified"

    def _settle(self) -> None:
        """Have all shares go back to their best dual variables, after more rounds where some were lost."""
        while True:
            while self.left and self.rounds < self._limit:
                self.round()
            if self._ask("settle", [(course.better,) for course in self.courses]) is not None:
                return
