"""What a solve returns: weights, dual variables, and a certificate that can be checked again."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from . import store
from .checks import Array
from .problem import Problem

_FORMAT = "dualsvm.Solution 1"
_META = ("lower_bound", "upper_bound", "status", "n_iter", "task", "fingerprint")
_TINY = float(np.finfo(np.float64).tiny)


def relative_gap(lower: float, upper: float) -> float:
    """``(upper - lower) / |upper|``."""
    return (upper - lower) / max(abs(upper), _TINY)


class Certificate(NamedTuple):
    """Proof of how good a solution is: the optimum lies between the two bounds.

    Attributes
    ----------
    lower_bound, upper_bound : float
        The dual of the dual variables and the objective of the weights.

    Examples
    --------
    >>> from dualsvm import Problem, solve
    >>> problem = Problem.regression([[1.0], [2.0]], [1.0, 2.0], cost=10.0)
    >>> certificate = solve(problem, tol=1e-6).certify(problem)
    >>> certificate.lower_bound <= 0.5 <= certificate.upper_bound
    True
    >>> certificate.gap <= 1e-6
    True
    """

    lower_bound: float
    upper_bound: float

    @property
    def gap(self) -> float:
        """Relative gap between the bounds."""
        return relative_gap(self.lower_bound, self.upper_bound)


class Record(NamedTuple):
    """One pass of a solve.

    Attributes
    ----------
    iteration : int
        Number of the pass, from 1; 0 is the state that a hot start began from.
    explored : int
        Examples visited in the pass; where nobody was due, those that were looked at.
    active : int
        Of those, the examples that had anything to gain.
    lower : float
        Greatest lower bound known after the pass: the dual, or that of an earlier pass where the dual is not known
        exactly, as with several classes far from the optimum.
    upper : float
        Least upper bound known after the pass: the primal of the best weights certified so far, inf before the
        first.
    estimate : float
        Relative gap, of all examples if all were looked at, else as seen in passing, while the weights moved. Not a
        bound.
    seconds : float
        Time since the solve began.

    Examples
    --------
    >>> from dualsvm import Problem, solve
    >>> last = solve(Problem.binary([[1.0], [-2.0]], [1, -1])).history[-1]
    >>> last.gap <= 1e-3
    True
    """

    iteration: int
    explored: int
    active: int
    lower: float
    upper: float
    estimate: float
    seconds: float

    @property
    def gap(self) -> float:
        """Relative gap between the two bounds; inf before the first certified weights."""
        return relative_gap(self.lower, self.upper) if np.isfinite(self.upper) else np.inf

    @classmethod
    def from_table(cls, table: Array) -> list[Record]:
        """Return the records whose fields are the columns of a table."""
        lines = table.reshape(-1, len(cls._fields)).tolist()
        return [cls(int(line[0]), int(line[1]), int(line[2]), *line[3:]) for line in lines]


class Round(NamedTuple):
    """One round of a latent fit: its convex problem, and what completing the latent values anew has made of it.

    Attributes
    ----------
    round : int
        Number of the round, from 1.
    changed : int
        Examples whose completion was not that of the round before; in the first round all that were completed.
    lower_bound, upper_bound : float
        The optimum of the convex problem lies between them; the upper one is inf where the oracle proves nothing.
    objective : float
        The objective of the latent problem at the weights of the round: that of their best completions. From round to
        round it never increases.
    n_iter : int
        Passes of the convex solve.
    n_oracle_calls : int
        Calls of the oracle in the round, those for certificates included.
    n_constraints : int
        Constraints held in the end.
    seconds : float
        Time since the first round began.

    Examples
    --------
    >>> from dualsvm import LatentStructuredSVM
    >>> from dualsvm.tasks import HiddenMulticlass
    >>> X, Y = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]], [0, 1, 1, 0]
    >>> model = LatentStructuredSVM(HiddenMulticlass(n_types=2), C=10.0, random_state=0).fit(X, Y)
    >>> last = model.history_[-1]
    >>> last.gap <= 1e-3 and last.objective <= last.upper_bound
    True
    """

    round: int
    changed: int
    lower_bound: float
    upper_bound: float
    objective: float
    n_iter: int
    n_oracle_calls: int
    n_constraints: int
    seconds: float

    @property
    def gap(self) -> float:
        """Relative gap between the bounds of the convex problem; inf without an upper bound."""
        return relative_gap(self.lower_bound, self.upper_bound) if np.isfinite(self.upper_bound) else np.inf

    @classmethod
    def from_table(cls, table: Array) -> list[Round]:
        """Return the records whose fields are the columns of a table."""
        whole = [field in ("round", "changed") or field.startswith("n_") for field in cls._fields]
        lines = table.reshape(-1, len(cls._fields)).tolist()
        return [cls(*(int(v) if w else v for v, w in zip(line, whole, strict=True))) for line in lines]


@dataclass(frozen=True)
class Solution:
    """The result of `solve`.

    Attributes
    ----------
    w : ndarray
        Weights, in the shape `Problem.weight_shape`; within their bounds. Of the weights certified, those with the
        lowest objective: a mean over the last passes, equal to what `alpha` makes of the rows only in the limit.
    alpha : ndarray
        Dual variables, in the shape `Problem.alpha_shape`: not negative, and those of an example add up to its
        cost at most (hinge).
    lower_bound, upper_bound : float
        The optimum of the problem lies between them. `upper_bound` is the objective at `w`.
    status : {"converged", "max_iter", "stopped", "interrupted", "stalled"}
        How the solve ended: within the tolerance, after the last pass allowed, by a callback, by Ctrl-C, or where
        rounding let it come no closer.
    converged : bool
        Whether the relative gap between the bounds is within the tolerance asked for.
    n_iter : int
        Number of passes.
    history : list of Record
        One record for every pass.
    task : str
        The task of the problem that was solved.
    ids : ndarray or None
        The ids by which the problem named its rows or examples.
    fingerprint : str
        Of a "lists" problem: hot starts take dual variables over only between problems with the same preferences.

    Examples
    --------
    >>> from dualsvm import Problem, solve
    >>> problem = Problem.binary([[1.0, 0.2], [-0.5, 1.0]], [1, -1])
    >>> solution = solve(problem, tol=1e-6)
    >>> solution.lower_bound <= solution.upper_bound and solution.gap <= 1e-6
    True
    >>> solution.certify(problem).gap <= 1e-6
    True
    """

    w: Array
    alpha: Array
    lower_bound: float
    upper_bound: float
    status: str
    n_iter: int
    history: list[Record] = field(repr=False)
    task: str
    ids: Array | None = field(default=None, repr=False)
    fingerprint: str = field(default="", repr=False)

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.status == "converged"

    @property
    def gap(self) -> float:
        """Relative gap between the bounds, ``(upper - lower) / |upper|``."""
        return relative_gap(self.lower_bound, self.upper_bound)

    def certify(self, problem: Problem) -> Certificate:
        """Recompute both bounds from the problem alone, in plain numpy, without the compiled kernel.

        Parameters
        ----------
        problem : Problem
            The problem solved, or another one of the same shape: the bounds are those of the problem given. Where
            dual variables do not carry over (lists with other preferences), the lower bound is that of zeros.

        Returns
        -------
        Certificate
            ``lower_bound``, ``upper_bound`` and ``gap``. The upper bound is inf if `w` leaves the bounds that
            the problem sets on the weights.
        """
        if self.w.shape != problem.weight_shape or self.alpha.shape != problem.alpha_shape:
            raise ValueError(
                f"this solution has weights of shape {self.w.shape} and dual variables of shape {self.alpha.shape}, "
                f"but the problem asks for {problem.weight_shape} and {problem.alpha_shape}"
            )
        same = self.fingerprint == problem.mapping.fingerprint
        alpha = feasible(problem, self.alpha) if same else np.zeros(problem.alpha_shape)
        return Certificate(dual(problem, alpha), primal(problem, self.w))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the solution to an ``.npz`` file, which replaces an older one only when it is complete.

        Parameters
        ----------
        path : path-like
            Where to write, exactly this name.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from dualsvm import Problem, Solution, solve
        >>> solution = solve(Problem.binary([[1.0], [-2.0]], [1, -1]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "solution.npz"
        ...     solution.save(path)
        ...     Solution.load(path).gap == solution.gap
        True
        """
        meta = {name: getattr(self, name) for name in _META}
        table = np.array(self.history, dtype=np.float64)
        arrays = {"w": self.w, "alpha": self.alpha, "history": table}
        if self.ids is not None:
            arrays["ids"] = self.ids
        store.write(path, _FORMAT, meta, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Solution:
        """Read a solution that `save` wrote. No pickle is involved: files from strangers are safe to load.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        Solution
        """
        return store.read(path, "a solution", {_FORMAT: cls._restored})

    @classmethod
    def _restored(cls, meta: dict[str, Any], arrays: dict[str, Array]) -> Solution:
        history = Record.from_table(arrays["history"])
        return cls(w=arrays["w"], alpha=arrays["alpha"], history=history, ids=arrays.get("ids"), **meta)


def feasible(problem: Problem, alpha: Array) -> Array:
    """Return the dual variables, clipped at 0 and scaled down where they exceed their cap."""
    alpha = np.maximum(alpha, 0.0)
    cap = np.where(problem.cost > 0, np.inf, 0.0) if problem.loss == "squared_hinge" else problem.cost
    mass = problem.mapping.mass(alpha)
    over = mass > cap
    if over.any():
        factor = np.ones_like(mass)
        factor[over] = cap[over] / mass[over]
        alpha = problem.mapping.scale(alpha, factor)
    return alpha


def dual(problem: Problem, alpha: Array) -> float:
    """Return the dual at feasible dual variables: a lower bound on the optimum."""
    return linear_part(problem, alpha) + conjugate(problem, problem.mapping.combine(problem.view, alpha))


def linear_part(problem: Problem, alpha: Array) -> float:
    """Return what feasible dual variables add to the dual by themselves."""
    value = problem.mapping.linear(alpha)
    if problem.loss == "squared_hinge":
        paying = problem.cost > 0
        mass = problem.mapping.mass(alpha)[paying]
        value -= float((mass * (mass / (4 * problem.cost[paying]))).sum())
    return value


def conjugate(problem: Problem, u: Array) -> float:
    """Return what they add through ``u = sum alpha x``: the minimum over w of what prior and bounds ask, less w.u."""
    m = _or(problem.mean, 0.0, u)
    if problem.covariance is not None:
        return -float((m * u).sum()) - 0.5 * float((u * (u @ problem.covariance)).sum())
    s = _or(problem.variance, 1.0, u)
    free = m + s * u
    w = np.clip(free, _or(problem.lower, -np.inf, u), _or(problem.upper, np.inf, u))
    # inside the box the minimum over w does not need w, which may round
    return float(np.where(w == free, -u * (m + 0.5 * s * u), 0.5 * (w - m) ** 2 / s - w * u).sum())


def primal(problem: Problem, w: Array) -> float:
    """Return the objective at w: an upper bound on the optimum; inf outside the bounds on the weights."""
    away = distance(problem, w)
    return losses(problem, w) + away if np.isfinite(away) else np.inf


def losses(problem: Problem, w: Array) -> float:
    """Return what the examples pay at w."""
    slack = np.maximum(problem.mapping.violations(problem.view, w), 0.0)
    return float((problem.cost * (slack**2 if problem.loss == "squared_hinge" else slack)).sum())


def distance(problem: Problem, w: Array) -> float:
    """Return what w pays to the prior; inf outside the bounds on the weights."""
    if (w < _or(problem.lower, -np.inf, w)).any() or (w > _or(problem.upper, np.inf, w)).any():
        return np.inf
    away = w - _or(problem.mean, 0.0, w)
    if problem.covariance is not None:
        scaled = cho_solve(cho_factor(problem.covariance, lower=True), away.T).T
    else:
        scaled = away / _or(problem.variance, 1.0, w)
    return 0.5 * float((away * scaled).sum())


def _or(value: Any, default: float, like: Array) -> Array:
    return np.full(like.shape, default) if value is None else value
