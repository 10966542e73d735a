"""Rounds of completing latent values and solving the convex problem that this makes. Nothing here knows the task."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np

from ..checks import Array
from ..solution import Round
from ..structured.crew import Crew
from ..structured.explore import Change, Search

_ROUNDING = 1e-9  # of the objective
_COARSE = 10.0  # times the tolerance: how closely the first rounds are solved
_CLOSE = 1.0  # of the last decrease of the objective: how closely the next round is solved


class Completing(Protocol):
    """A convex problem whose examples have been completed, and can be completed anew."""

    slacks: int
    completions: list[Any]
    n_completed: int  # examples that have completions

    def completed(self, w: Array, crew: Crew) -> tuple[Self, Change]:
        """Return the problem with the best completions at weights, and which examples that has changed."""


class Alternation:
    """Rounds from one beginning; whenever they end, be it by an error, `rounds` and the search hold the best known.

    Parameters
    ----------
    problem : Completing
        The problem of the first round.
    search : Search
        The search for its solution, which all rounds go on with.
    run : callable
        ``run(problem, title)`` has the search solve the convex problem of a round, and returns how that ended.
    max_rounds : int
        Largest number of rounds.
    round_tol : float
        A decrease of the objective by less than this part of it ends the rounds.
    title : str
        What the lines that are printed begin with.
    """

    def __init__(
        self,
        problem: Any,
        search: Search,
        run: Callable[[Any, str], str],
        max_rounds: int,
        round_tol: float,
        title: str = "",
    ) -> None:
        self.problem, self.search, self._run = problem, search, run
        self.max_rounds, self.round_tol, self.title = max_rounds, round_tol, title
        self.completions: list[Any] = problem.completions
        self.rounds: list[Round] = []
        self.ended = ""  # how the last round did
        self.status = "failed"
        self._hot = search.hot  # whether it begins near the end

    @property
    def objective(self) -> float:
        """The objective of the latent problem, inf where it is not known."""
        return self.rounds[-1].objective if self.rounds else np.inf

    def run(self) -> None:
        """Run the rounds."""
        began, changed, status = time.perf_counter(), self.problem.n_completed, ""
        tol, search = self.search.tol, self.search
        while not status:
            search.tol = self._closeness(tol)
            self._solve(changed, began)
            after, change = self.problem.completed(search.w, search.crew)
            if search.tol > tol and (len(change.which) == 0 or self._same()):  # it is the last round, after all
                search.tol = tol
                self.rounds.pop()
                self._solve(changed, began)
                after, change = self.problem.completed(search.w, search.crew)
            changed = len(change.which)
            if changed == 0 or self._same():
                status = "converged"
            else:
                self.problem = after  # which what the search holds is of from now on
                status = self._judge(search.turn(after, change), search.tol > tol)
        self.status = status

    def _solve(self, changed: int, began: float) -> None:
        """Solve the convex problem of a round, and take note of it."""
        ended = "failed"
        try:
            ended = self._run(self.problem, f"{self.title}round {len(self.rounds) + 1}: ")
        finally:
            if ended != "failed" or self.search.calls:
                self._note(ended, changed, began)
        if ended == "interrupted":
            raise KeyboardInterrupt

    def _closeness(self, tol: float) -> float:
        """Return the gap to solve the next round to: that of the user, or more while the objective falls by more."""
        if len(self.rounds) + 1 >= self.max_rounds or self._hot:
            return tol
        if len(self.rounds) < 2:
            return _COARSE * tol
        before, now = (record.objective for record in self.rounds[-2:])
        fall = (before - now) / abs(now) if np.isfinite(before) and now else 0.0
        return min(max(_CLOSE * fall, tol), _COARSE * tol) if fall > self.round_tol else tol

    def _note(self, ended: str, changed: int, began: float) -> None:
        """Take note of a round."""
        search = self.search
        self.ended, self.completions = search.outcome(ended), self.problem.completions
        upper, seconds = search.upper, time.perf_counter() - began
        n_iter = search.record.iteration if search.history else 0
        self.rounds.append(
            Round(
                len(self.rounds) + 1,
                changed,
                search.lower,
                upper,
                upper,
                n_iter,
                search.calls,
                search.working.held,
                seconds,
            )
        )

    def _judge(self, objective: float, loose: bool) -> str:
        """Take note of the objective that the best completions make of the last round; return why to end, if so."""
        before = self.rounds[-1].upper_bound
        if np.isfinite(before) and objective > before + _ROUNDING * abs(before):
            warnings.warn(
                f"after round {len(self.rounds)} the best completions raise the objective from {before:.6g} to "
                f"{objective:.6g}: they are not the best, or the loss depends on latent values of the true output; "
                "rounds might go on for ever, and the weights and completions of this round are kept",
                stacklevel=2,
            )
            return "rejected"
        earlier = self.rounds[-2].objective if len(self.rounds) > 1 else np.inf
        self.rounds[-1] = self.rounds[-1]._replace(objective=min(objective, before))
        self.completions = self.problem.completions
        if np.isfinite(objective) and earlier - objective <= self.round_tol * abs(objective) and not loose:
            return "converged"
        return "max_rounds" if len(self.rounds) >= self.max_rounds else ""

    def _same(self) -> bool:
        """Whether rounds that do not know their objective, as the oracle proves nothing, come to the same again."""
        if len(self.rounds) < 2 or np.isfinite(self.rounds[-1].upper_bound):
            return False
        one, two = (record.lower_bound for record in self.rounds[-2:])
        return abs(one - two) <= self.round_tol * abs(two)
