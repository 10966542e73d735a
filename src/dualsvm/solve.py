"""The schedule of optimize and certify, and hot starts. Nothing here knows which task is solved."""

from __future__ import annotations

import functools
import inspect
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .checks import Array, as_number
from .problem import Problem
from .progress import Call, Watcher, printers
from .pull import Pull
from .solution import Record, Solution, feasible, relative_gap
from .state import State

if TYPE_CHECKING:
    from .structured import OracleProblem, OracleSolution

SEARCHED = "The search finds nothing worse, and proves no more"  # where it bounds what it looks for loosely
_SURE = 1 - 1e-6  # of the tolerance: what passes add up is rounded otherwise than what a certificate does
_COARSE = 0.1  # gap to which to solve the first of the problems that draw the weights
_NEAR = 3.0  # times the tolerance: from such a gap on, drawn weights may be good enough before they are where drawn
_PEEK = 4.0  # visits per example after which to see whether they are
_RANDOM, _SEEDING = np.random.RandomState(0), threading.Lock()  # seeded anew by whoever holds the lock


def solve(
    problem: Problem | OracleProblem,
    tol: float = 1e-3,
    max_iter: int = 1000,
    start: Solution | OracleSolution | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callable[[Record], Any] | None = None,
) -> Solution | OracleSolution:
    """Solve a problem to a certified relative gap.

    Parameters
    ----------
    problem : Problem or OracleProblem
        What to solve.
    tol : float, default 1e-3
        Stop when ``(upper - lower) / |upper|`` is at most this, with both bounds proven.
    max_iter : int, default 1000
        Largest number of passes. A pass visits the examples that may have something to gain, not always all.
    start : Solution, default None
        An earlier solution to start from. Its dual variables are matched to the examples of this problem by id
        (by position where the problems name none), clipped to feasibility, and the weights rebuilt from them:
        costs, margins, bounds, prior and features may have changed, and examples may have come and gone. Where
        dual variables of 0 would be a better start, those are taken. For an `OracleProblem`, an
        `OracleSolution` whose constraints are still those of the same examples.
    random_state : int, RandomState, Generator or None, default None
        Seed of the order in which examples are visited. The same seed and `n_jobs` give the same result.
    n_jobs : int, default None
        Number of threads for certificates, for looks at all examples between passes, for the Hessians of Newton's
        method, and for the passes themselves where rows are sparse, have some 25 numbers or more, and are not much
        alike, as texts are: every thread then has some of the features. None is 1 and -1 all cores; there are never
        more threads than cores.
    verbose : int, default 0
        1 shows a live line with a bar on log10 of the gap; 2 prints a line with both bounds for every pass.
    callback : callable, default None
        Called with the `Record` of every pass. If it returns True, the solve stops there.

    Returns
    -------
    Solution or OracleSolution
        With bounds on the optimum that hold whether or not the solve has converged. Ctrl-C also ends a solve with
        the best state reached and its certificate; where constraints are searched, a first one may not be there yet.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` passes do not reach `tol`.

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm import Problem, solve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5))
    >>> y = np.sign(X[:, 0] + 0.1 * rng.normal(size=200))
    >>> problem = Problem.binary(X, y)
    >>> solution = solve(problem, tol=1e-4, random_state=0)
    >>> solution.converged, solution.gap <= 1e-4
    (True, True)

    A hot start, after the cost has changed:

    >>> changed = Problem.binary(X, y, cost=2.0)
    >>> solve(changed, tol=1e-4, start=solution, random_state=0).converged
    True
    """
    from .structured import OracleProblem, OracleSolution
    from .structured.explore import explore

    if not isinstance(problem, Problem | OracleProblem):
        raise TypeError(f"problem must be a dualsvm.Problem or OracleProblem, got {type(problem).__name__}")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {type(callback).__name__}")
    watchers = printers(verbose, tol := as_tolerance(tol))
    if callback is not None:
        watchers.append(Call(callback))
    seed = as_seed(random_state)
    solution: Solution | OracleSolution
    if isinstance(problem, OracleProblem):
        if start is not None and not isinstance(start, OracleSolution):
            raise TypeError(f"start must be a dualsvm.OracleSolution here, got {type(start).__name__}")
        solution = explore(problem, tol, as_passes(max_iter), start, seed, n_jobs, watchers=watchers)
    else:
        if start is not None and not isinstance(start, Solution):
            raise TypeError(f"start must be a dualsvm.Solution, got {type(start).__name__}")
        solution = pursue(problem, tol, max_iter, start, seed, n_jobs, watchers)
    if solution.status in ("max_iter", "stalled"):
        stalled, searched = solution.status == "stalled", isinstance(problem, OracleProblem)
        warn_not_converged(solution.n_iter, solution.gap, tol, stalled, *([SEARCHED] if searched else []))
    return solution


def pursue(
    problem: Problem,
    tol: float,
    max_iter: int,
    start: Solution | None,
    seed: int,
    n_jobs: int | None,
    watchers: Sequence[Watcher] = (),
    single_precision: bool = False,
) -> Solution:
    """Solve a problem as `solve` does, for watchers, and, if asked, with weights that are float32 numbers."""
    tol = as_tolerance(tol)
    max_iter = as_passes(max_iter)
    alpha = None if start is None else match(start, problem)
    w = None if start is None or start.w.shape != problem.weight_shape else start.w
    state = State(problem, alpha, seed, together(as_threads(n_jobs)), w, single_precision)

    run = _Run(state, tol)
    status = "max_iter"
    goal = _COARSE if run.pull.kappa > 0 else _SURE * tol
    try:
        if start is not None:
            goal = run.certify()
            status = run.tell(watchers) or status
        elif run.pull.kappa > 0:
            run.pull.begin(run.weights())
        while status == "max_iter" and not run.converged and run.n_iter < max_iter:
            for watcher in watchers:
                watcher.begin()
            if run.ripe and run.descend():
                status = run.tell(watchers) or status
                continue
            idle = not run.optimize(1 if watchers else max_iter - run.n_iter, goal)
            if idle or state.reached or run.n_iter == max_iter or run.tired or run.ripe:
                goal = run.certify()
            elif run.patience <= 0:
                run.bound()
            status = run.tell(watchers) or status
            if idle:  # no example costs anything
                break
    except KeyboardInterrupt:
        status = "interrupted"
    finally:
        for watcher in watchers:
            watcher.close()
    return run.finish(problem, status)


def warn_not_converged(
    n_iter: int, gap: float, tol: float, stalled: bool = False, limit: str = "Rounding allows no more"
) -> None:
    """Warn whoever called the library that the passes did not suffice."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] in ("dualsvm", "sklearn"):
        frame, level = frame.f_back, level + 1
    warnings.warn(
        f"not converged: after {n_iter} passes the relative gap is {gap:.3g}, and tol is {tol:.3g}; the bounds hold "
        f"all the same. {f'{limit}: raise' if stalled else 'Raise max_iter or'} tol, or scale the "
        "features.",
        ConvergenceWarning,
        stacklevel=level + 1,
    )


def as_passes(max_iter: Any) -> int:
    """Return a number of passes as an integer that is not negative."""
    if not isinstance(max_iter, int | np.integer) or isinstance(max_iter, bool) or max_iter < 0:
        raise ValueError(f"max_iter must be an integer that is not negative, got {max_iter!r}")
    return min(int(max_iter), 2**40)


def as_tolerance(tol: Any) -> float:
    """Return a tolerance as a float that is not negative."""
    number = as_number(tol, "tol")
    if number < 0:
        raise ValueError(f"tol must not be negative, got {number}")
    return number


class _Run:
    """A solve under way: the records so far, and the best weights and dual variables certified."""

    def __init__(self, state: State, tol: float) -> None:
        self.state = state
        self.tol = tol
        self.pull = Pull(state)
        self.began = time.perf_counter()
        self.history: list[Record] = []
        self.lower, self.upper = state.nothing, np.inf
        self.w: Array | None = None
        self.alpha = np.zeros(state.problem.alpha_shape)  # those of the lower bound
        self.visits = 0  # since the weights were last drawn elsewhere
        self.unseen = 0  # since the last certificate
        self.before = np.inf  # the gap when the weights were last drawn elsewhere
        self.all_visits = 0
        self.certified = False  # whether the bounds are those of the present state

    @property
    def n_iter(self) -> int:
        return self.history[-1].iteration if self.history else 0

    @property
    def record(self) -> Record:
        return self.history[-1]

    def weights(self) -> Array:
        return self.state.weights()

    def tell(self, watchers: Sequence[Watcher]) -> str:
        """Have the watchers look; return "stopped" if one wants to stop."""
        return "stopped" if any([watcher.tell(self) for watcher in watchers]) else ""

    @property
    def gap(self) -> float:
        return relative_gap(self.lower, self.upper) if np.isfinite(self.upper) else np.inf

    @property
    def converged(self) -> bool:
        return self.certified and bool(self.gap <= self.tol)

    @property
    def tired(self) -> bool:
        """Whether the weights have been drawn to one place for long enough."""
        return self.pull.left(self.visits) <= 0

    @property
    def patience(self) -> float:
        """How many visits to make before looking whether the weights, drawn to one place, are good enough."""
        near = self.pull.kappa > 0 and self.gap <= _NEAR * self.tol
        return _PEEK * self.state.n_examples - self.unseen if near else np.inf

    def _elapsed(self) -> float:
        return time.perf_counter() - self.began

    def optimize(self, max_passes: int, goal: float) -> bool:
        """Run passes; return whether there was anything to visit."""
        before, n_iter, known = self._elapsed(), self.n_iter, self.lower
        self.certified = False
        passes = self.state.optimize(max_passes, goal, min(self.pull.left(self.visits), self.patience, self.unripe))
        for visited, awake, lower, estimate, seconds in passes:
            before += seconds
            n_iter += 1
            self.visits += visited
            self.unseen += visited
            self.all_visits += visited
            lower = known if self.pull.kappa > 0 else max(known, lower)
            self.history.append(Record(n_iter, visited, awake, lower, self.upper, estimate, before))
        return bool(passes)

    @property
    def unripe(self) -> float:
        """How many visits to make before passes have cost what Newton's method would."""
        return self.state.plain_passes * self.state.n_examples - self.all_visits

    @property
    def ripe(self) -> bool:
        return self.unripe <= 0

    def descend(self) -> bool:
        """Take a step of Newton's method; where that leads nowhere, leave the rest to passes."""
        bounds = self.state.descend(self.w, self.tol)
        if bounds is None:
            self.state.plain_passes = np.inf
            self.state.reset(self.alpha)
            self.pull = Pull(self.state)
            self.pull.begin(self.state.weights() if self.w is None else self.w)
            return False
        n = self.state.n_examples
        self.settle(self.state.weights(), *bounds)
        self.history.append(Record(self.n_iter + 1, n, n, self.lower, self.upper, self.gap, self._elapsed()))
        return True

    def settle(self, w: Array, lower: float, upper: float) -> None:
        """Take note of bounds, if they are better than what is known."""
        if upper < self.upper or self.w is None or np.isnan(self.upper):
            self.w, self.upper = w, upper
        if lower >= self.lower:
            self.alpha, self.lower = self.state.alpha(into=self.alpha), lower
        # where rounding makes them cross, it is at least as large as that: the lower bound gives way by as much
        self.lower = min(self.lower, 2 * self.upper - self.lower)
        self.certified = True

    def bound(self) -> tuple[Array, float]:
        """Certify the present state; return the weights that are bounded, and their bound."""
        w = self.state.weights()
        lower, upper = self.state.certify()
        self.settle(w, lower, upper)
        self.unseen = 0
        last = self.history[-1] if self.history else Record(0, 0, 0, 0.0, 0.0, self.gap, 0.0)
        record = Record(
            last.iteration, last.explored, last.active, self.lower, self.upper, last.estimate, self._elapsed()
        )
        self.history[-1:] = [record]
        return w, upper

    def certify(self) -> float:
        """Certify the present state, and move what draws the weights; return the gap at which to do so again."""
        w, upper = self.bound()
        if self.gap > self.tol:
            self.pull.move(w, self.before, upper, self.gap, self.visits)
        self.before, self.visits = self.gap, 0
        return self.pull.goal(self.gap, self.tol) if self.pull.kappa > 0 else _SURE * self.tol

    def finish(self, problem: Problem, status: str) -> Solution:
        if not self.certified:
            self.certify()
        assert self.w is not None
        return Solution(
            w=self.w,
            alpha=self.alpha,
            lower_bound=self.lower,
            upper_bound=self.upper,
            status="converged" if self.converged else status,
            n_iter=self.n_iter,
            history=self.history,
            task=problem.task,
            ids=problem.ids,
            fingerprint=problem.mapping.fingerprint,
        )


def match(start: Solution, problem: Problem) -> Array:
    """Return the dual variables of an earlier solution as feasible ones of this problem.

    Lines of alpha (rows in a "rows" problem, else examples) are matched by id, the k-th line of an id to the
    k-th; where neither problem names ids, by position. Lines without a match start at 0, and so do all between
    problems that their mapping tells apart.
    """
    if not isinstance(start, Solution):
        raise TypeError(f"start must be a dualsvm.Solution, got {type(start).__name__}")
    shape = problem.alpha_shape
    if start.task != problem.task or start.alpha.shape[1:] != shape[1:]:
        raise ValueError(
            f"start is the solution of a {start.task} problem with dual variables of shape {start.alpha.shape}, "
            f"but this is a {problem.task} problem with shape {shape}: only the first axis may differ"
        )
    if not np.isfinite(start.alpha).all():
        raise ValueError("the dual variables of start contain NaN or infinity")
    if (start.ids is None) != (problem.ids is None):
        raise ValueError(
            "start and problem must both name their examples (example=...) or both leave them unnamed: "
            "dual variables cannot be matched otherwise"
        )
    alpha = np.zeros(shape)
    if start.fingerprint != problem.mapping.fingerprint:
        return alpha
    if start.ids is None or problem.ids is None:
        n = min(len(alpha), len(start.alpha))
        alpha[:n] = start.alpha[:n]
    else:
        old, new = _keys(start.ids, problem.ids)
        _, here, there = np.intersect1d(new, old, assume_unique=True, return_indices=True)
        if not len(here):
            raise ValueError("start and problem have no example id in common: nothing to start from")
        alpha[here] = start.alpha[there]
    return feasible(problem, alpha)


def _keys(*many: Array) -> list[Array]:
    """Turn ids that may repeat into distinct keys, (id, how often it came before), equal across the arrays."""
    names = np.unique(np.concatenate(many))
    longest = max(len(ids) for ids in many)
    keys = []
    for ids in many:
        code = np.searchsorted(names, ids)
        order = np.argsort(code, kind="stable")
        first = np.searchsorted(code[order], code[order])
        nth = np.empty_like(code)
        nth[order] = np.arange(len(code)) - first
        keys.append(code * longest + nth)
    return keys


def as_seed(random_state: Any) -> int:
    """Return the seed that a random state gives."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    if isinstance(random_state, int | np.integer):
        return _seed(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


@functools.lru_cache
def _seed(number: int | np.integer) -> int:
    """Return the seed that a random state with this seed gives: to make one takes as long as a small solve."""
    if not 0 <= number < 2**32:
        return int(check_random_state(number).randint(2**31 - 1))  # which says what is wrong
    with _SEEDING:
        _RANDOM.seed(number)
        return int(_RANDOM.randint(2**31 - 1))


def together(threads: int) -> int:
    """Return how many threads run at once, if so many are asked for: those that wait for one another must."""
    return min(threads, _cores()) if threads > 1 else threads


@functools.lru_cache
def _cores() -> int:
    """Return how many cores this process may use, which takes as long to find out as to look at 100,000 numbers."""
    return int(joblib.cpu_count())


def as_threads(n_jobs: int | None) -> int:
    """Return how many threads `n_jobs` asks for."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer)):
        raise TypeError(f"n_jobs must be an integer or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: None is one thread, -1 all cores")
    return min(int(joblib.effective_n_jobs(n_jobs)), 1024)
