"""What the latent estimators share."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..checks import Array, as_number
from ..solve import as_seed
from ..structured.base import Checkpoint, OracleEstimator
from ..structured.crew import Crew
from ..structured.examples import as_examples
from ..structured.explore import Search
from ..structured.solution import OracleSolution
from .rounds import Alternation


class LatentEstimator(OracleEstimator):
    """Rounds from one or several beginnings, and the best of them as attributes."""

    _unsaved = ("task_", "latent_")
    #: whether an example of a dataset has one output, be it a query or a row
    _alike = False
    max_rounds: Any
    round_tol: Any
    n_init: Any

    def _check(self) -> None:
        super()._check()
        for name in ("max_rounds", "n_init"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}")
        if as_number(self.round_tol, "round_tol") < 0:
            raise ValueError(f"round_tol must not be negative, got {self.round_tol}")

    def _fit(self, X: Any, Y: Any, sample_weight: Any, init: Any, checkpoint: Checkpoint, resume: Any) -> Self:
        self._check()
        examples = as_examples(X, Y, sample_weight, self._alike)
        outputs = self._outputs(examples, True)
        start = self._start(resume, init)
        if hasattr(self.task, "initialize"):
            self.task.initialize(examples.X, outputs)
        self._learn(examples, sample_weight, init, start, None, checkpoint)
        return self

    def _partial_fit(self, X: Any, Y: Any, sample_weight: Any, init: Any) -> Self:
        self._check()
        examples = as_examples(X, Y, sample_weight, self._alike)
        outputs = self._outputs(examples, False)
        first = not hasattr(self, "coef_")
        if first and hasattr(self.task, "initialize"):
            self.task.initialize(examples.X, outputs)
        self._learn(examples, sample_weight, init, None, None if first else self.coef_, Checkpoint())
        return self

    def _outputs(self, examples: Any, whole: bool) -> Any:
        """Return the outputs of examples, which are all there are or a part of a stream, having checked them."""
        return examples.Y

    def _start(self, resume: Any, init: Any) -> OracleSolution | None:
        """Return what a fit goes on from, if anything."""
        if init is not None and resume is not None:
            raise ValueError("init and resume both say what to begin with: give one of them")
        if resume is not None:
            return OracleSolution.load(resume)
        return getattr(self, "_solution", None) if self.warm_start and init is None else None

    def _problem(self, task: Any, examples: Any, cost: Array, learned: Array | None) -> Any:
        """Return the problem, not yet completed."""
        raise NotImplementedError

    def _learn(
        self,
        examples: Any,
        sample_weight: Any,
        init: Any,
        start: OracleSolution | None,
        learned: Array | None,
        checkpoint: Checkpoint,
    ) -> None:
        task = self.task if learned is None else self.task_
        problem = self._problem(task, examples, self._cost(sample_weight, examples), learned)
        printed = learned is None and (start is not None or checkpoint.path is not None)
        if start is not None and problem.width not in (None, len(start.w)):
            start = None
        once = init is not None or start is not None or learned is not None
        every: list[Alternation] = []
        try:
            for nth in range(1 if once else int(self.n_init)):
                seed = as_seed(self.random_state) + nth
                if init is not None:
                    first = problem.given(init, "init")
                else:
                    w = start.w if start is not None else learned
                    with Crew(self.n_jobs) as crew:
                        first = problem.completed(w, crew)[0] if once else self._initial(problem, seed, nth, crew)
                if start is not None:
                    start = start.of(first.prints(), first.slacks)
                with self._search(first, start, seed) as search:

                    def run(problem: Any, title: str, search: Search = search) -> str:
                        if printed:
                            checkpoint.prints = problem.prints()
                        return self._run(search, checkpoint, title)

                    title = "" if once or self.n_init == 1 else f"start {nth + 1}, "
                    every = _best(every)  # what the others hold is not needed any more
                    every.append(Alternation(first, search, run, int(self.max_rounds), self.round_tol, title))
                    every[-1].run()
        finally:  # what was learned before an error or Ctrl-C is worth keeping
            best = next(iter(_best(every)), None)
            if best is not None:
                self._take(best, task)
                if best is not every[-1]:  # which has left its own checkpoint
                    checkpoint.prints = np.empty(0, np.uint64)
                    checkpoint.write(best.search.finish(best.ended))
        assert best is not None
        if printed or self.warm_start:
            self._keep(best, checkpoint if best is not every[-1] else Checkpoint())
        self._report(best)

    def _keep(self, best: Alternation, checkpoint: Checkpoint) -> None:
        """Keep what a later fit may go on from."""
        checkpoint.prints = best.problem.prints()
        if self.warm_start:
            self._solution = replace(self._solution, prints=checkpoint.prints)
        checkpoint.write(best.search.finish(best.ended))

    def _initial(self, problem: Any, seed: int, nth: int, crew: Crew) -> Any:
        """Return the problem with completions to begin with: the task's, or those that are best at random weights."""
        guess = getattr(problem.task, "init_latent", None)
        if callable(guess):
            drawn = "random_state" in inspect.signature(guess).parameters
            if drawn or nth == 0:
                more = {"random_state": seed % 2**32} if drawn else {}
                return problem.given(guess(problem.truth.X, problem.outputs, **more), "init_latent")
        if problem.width is None:
            raise ValueError(
                f"the task, a {type(problem.task).__name__}, does not say how many weights there are, so that none "
                "can be drawn for the first completions: give init=..., or the task a method init_latent"
            )
        w = np.random.default_rng(seed).standard_normal(problem.width)
        return problem.completed(w, crew)[0]

    def _take(self, rounds: Alternation, task: Any) -> None:
        last = rounds.rounds[-1]
        solution = replace(
            rounds.search.finish(rounds.ended),
            lower_bound=last.lower_bound,
            upper_bound=last.upper_bound,
            status=rounds.ended,
            certified=bool(np.isfinite(last.upper_bound)),
            n_iter=sum(record.n_iter for record in rounds.rounds),
            n_oracle_calls=sum(record.n_oracle_calls for record in rounds.rounds),
        )
        self._set(solution, task)
        self.converged_ = solution.converged and rounds.status == "converged"
        self.latent_ = rounds.completions
        self.objective_ = rounds.objective
        self.n_rounds_ = len(rounds.rounds)
        self.history_ = rounds.rounds

    def _report(self, rounds: Alternation) -> None:
        """Tell how the rounds ended, if it was not well."""
        last = rounds.rounds[-1]
        self._warn(rounds.ended, last.n_iter, last.gap)
        if rounds.status == "max_rounds":
            warnings.warn(
                f"the objective was still falling after {len(rounds.rounds)} rounds: raise max_rounds, or round_tol",
                ConvergenceWarning,
                stacklevel=4,
            )


def _best(every: list[Alternation]) -> list[Alternation]:
    """Return the one with the least objective, if any has come to one."""
    return sorted((rounds for rounds in every if rounds.rounds), key=lambda rounds: rounds.objective)[:1]
