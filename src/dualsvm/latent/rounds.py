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
from ..structured.solution import OracleSolution

_ROUNDING = 1e-9  # of the objective


class Completing(Protocol):
    """A convex problem whose examples have been completed, and can be completed anew."""

    slacks: int
    completions: list[Any]

    def completed(self, w: Array, crew: Crew) -> tuple[Self, Array]:
        """Return the problem with the best completions at weights, and a mask of the examples that have changed."""

    def carried(self, solution: OracleSolution, before: Self, changed: Array) -> OracleSolution:
        """Return what a solution of the problem `before` is worth here."""


class Alternation:
    """Rounds from one beginning; whenever they end, be it by an error, `solution` is the best that is known.

    Parameters
    ----------
    problem : Completing
        The problem of the first round.
    search : callable
        ``search(problem, start, title, **more)`` solves a convex problem; see `explore`.
    max_rounds : int
        Largest number of rounds.
    round_tol : float
        A decrease of the objective by less than this part of it ends the rounds.
    n_jobs : int or None
        Who completes.
    title : str
        What the lines that are printed begin with.
    """

    def __init__(
        self,
        problem: Any,
        search: Callable[..., OracleSolution],
        max_rounds: int,
        round_tol: float,
        n_jobs: int | None,
        title: str = "",
    ) -> None:
        self.problem, self._search = problem, search
        self.max_rounds, self.round_tol, self.n_jobs, self.title = max_rounds, round_tol, n_jobs, title
        self.completions: list[Any] = problem.completions
        self.solution: OracleSolution | None = None
        self.rounds: list[Round] = []
        self.status = "failed"
        self._end = ""

    @property
    def objective(self) -> float:
        """The objective of the latent problem, inf where it is not known."""
        return self.rounds[-1].objective if self.rounds else np.inf

    def run(self, start: OracleSolution | None, changed: int) -> None:
        """Run the rounds, the first from what `start` holds."""
        began, problem, more = time.perf_counter(), self.problem, dict[str, Any]()
        while True:
            self._end = ""
            solution = self._search(problem, start, f"{self.title}round {len(self.rounds) + 1}: ", **more)
            if self._end:
                break
            if solution.status != "interrupted" or np.isfinite(solution.upper_bound) or not self.rounds:
                self._note(problem, solution, changed, began)
            if solution.status == "interrupted":
                raise KeyboardInterrupt
            with Crew(self.n_jobs) as crew:
                after, differ = problem.completed(solution.w, crew)
            changed = int(differ.sum())
            if changed == 0 or self._same():
                self._end = "converged"
                break
            more = {"at": solution.w, "proceed": lambda upper, after=after: self._proceed(upper, after)}
            start, problem = after.carried(solution, problem, differ), after
        self.status = self._end

    def _proceed(self, upper: float, after: Any) -> bool:
        """Take note of the objective that the best completions make of the last round; say whether to go on."""
        self._end = self._verdict(upper)
        if self._end == "rejected":
            warnings.warn(
                f"after round {len(self.rounds)} the best completions raise the objective from {self.objective:.6g} "
                f"to {upper:.6g}: the loss depends on latent values of the true output, and rounds might go on for "
                "ever; the weights and completions of this round are kept",
                stacklevel=2,
            )
        else:
            self.rounds[-1] = self.rounds[-1]._replace(objective=min(upper, self.objective))
            self.completions = after.completions
        return not self._end

    def _verdict(self, upper: float) -> str:
        """Return why the rounds end, if they do, with the best completions at the weights of the last."""
        before = self.rounds[-1].upper_bound
        if np.isfinite(before) and upper > before + _ROUNDING * abs(before):
            return "rejected"
        earlier = self.rounds[-2].objective if len(self.rounds) > 1 else np.inf
        if np.isfinite(upper) and earlier - upper <= self.round_tol * abs(upper):
            return "converged"
        return "max_rounds" if len(self.rounds) >= self.max_rounds else ""

    def _same(self) -> bool:
        """Whether rounds that do not know their objective, as the oracle proves nothing, come to the same again."""
        if len(self.rounds) < 2 or np.isfinite(self.rounds[-1].upper_bound):
            return False
        one, two = (record.lower_bound for record in self.rounds[-2:])
        return abs(one - two) <= self.round_tol * abs(two)

    def _note(self, problem: Any, solution: OracleSolution, changed: int, began: float) -> None:
        self.problem, self.solution, self.completions = problem, solution, problem.completions
        self.rounds.append(
            Round(
                len(self.rounds) + 1,
                changed,
                solution.lower_bound,
                solution.upper_bound,
                solution.upper_bound,
                solution.n_iter,
                solution.n_oracle_calls,
                len(solution.margins),
                time.perf_counter() - began,
            )
        )
