"""What a search for constraints ends with: weights, the constraints that matter, and the certificate."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .. import store
from ..checks import Array
from ..prior import Prior
from ..problem import Problem
from ..solution import Certificate, Record, dual, feasible, relative_gap
from .crew import Crew
from .problem import Searched

_FORMAT = "dualsvm.OracleSolution 1"
_META = ("lower_bound", "upper_bound", "status", "n_iter", "n_oracle_calls", "certified")


@dataclass(frozen=True)
class OracleSolution:
    """The result of `solve` for an `OracleProblem`.

    Attributes
    ----------
    w : ndarray of shape (n_weights,)
        Weights, within their bounds.
    rows : sparse array of shape (n_constraints, n_weights)
        The constraints x_ij that were held last.
    margins, alpha : ndarray of shape (n_constraints,)
        Their l_ij and dual variables.
    example : ndarray of shape (n_constraints,)
        Whose they are; where examples have several slacks, which of all slacks they share.
    lower_bound, upper_bound : float
        The optimum lies between them; `upper_bound` is the objective at `w`, or more where the search only bounds
        it, and inf where it does not even do that.
    status : {"converged", "max_iter", "stopped", "interrupted", "stalled", "uncertified", "failed"}
        How the search ended: as in `Solution`, or without anything found that is worse but without a proof, or by an
        error of the oracle. Stalled is also a search that found nothing more while its bounds are further apart.
    certified : bool
        Whether the oracle's answers prove the upper bound.
    n_iter : int
        Number of passes: as many calls of the oracle as there are examples.
    n_oracle_calls : int
        Calls of the oracle, those for certificates included.
    history : list of Record
        One record for every pass; `explored` counts calls and `active` the constraints held.
    prints : ndarray
        Fingerprints of the examples, by which a later fit tells whether they are still the same; may be empty.

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm import OracleProblem, solve
    >>> problem = OracleProblem(lambda w, k: [(np.eye(3)[k], 1.0)], 3, n_weights=3)
    >>> solution = solve(problem)
    >>> solution.w.tolist(), solution.certify(problem).gap <= 1e-3
    ([1.0, 1.0, 1.0], True)
    """

    w: Array
    rows: Any = field(repr=False)
    margins: Array = field(repr=False)
    alpha: Array = field(repr=False)
    example: Array = field(repr=False)
    lower_bound: float
    upper_bound: float
    status: str
    certified: bool
    n_iter: int
    n_oracle_calls: int
    history: list[Record] = field(repr=False)
    prints: Array = field(default_factory=lambda: np.empty(0, np.uint64), repr=False)

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.status == "converged"

    @property
    def gap(self) -> float:
        """Relative gap between the bounds; inf without an upper bound."""
        return relative_gap(self.lower_bound, self.upper_bound) if np.isfinite(self.upper_bound) else np.inf

    def certify(self, problem: Searched) -> Certificate:
        """Recompute both bounds from the problem and its oracle, in plain numpy, without the compiled kernel.

        Parameters
        ----------
        problem : OracleProblem
            The problem solved.

        Returns
        -------
        Certificate
            The upper bound is inf where the oracle does not prove it, or if `w` leaves its bounds.
        """
        d = len(self.w)
        shape = problem.shape(d)
        prior = Prior(shape.mean, shape.variance, shape.covariance)
        limits: dict[str, Any] = {"prior": prior, "lower": shape.lower, "upper": shape.upper}
        # one more constraint, of zeros, so that there always is one
        rows = sp.vstack([self.rows, sp.csr_array((1, d))], format="csr")
        example = np.append(self.example, problem.n_examples * problem.slacks)
        present = np.unique(example)
        cached = Problem(
            rows,
            np.append(self.margins, 0.0),
            example=example,
            cost=np.append(np.repeat(problem.cost, problem.slacks), 1.0)[present],
            **limits,
        )
        lower = dual(cached, feasible(cached, np.append(self.alpha, 0.0)))
        zero = np.zeros(d)
        low, high = (zero + s if b is None else b for b, s in ((shape.lower, -np.inf), (shape.upper, np.inf)))
        if (self.w < low).any() or (self.w > high).any():
            return Certificate(lower, np.inf)
        with Crew(1) as crew:
            found = problem.search(self.w, np.arange(problem.n_examples), crew)
        away = self.w if shape.mean is None else self.w - shape.mean
        scaled = away if shape.variance is None else away / shape.variance
        if shape.covariance is not None:
            scaled = np.linalg.solve(shape.covariance, away)
        paid = problem.cost * np.where(problem.cost > 0, np.maximum(found.bound, 0.0), 0.0)
        upper = float(away @ scaled) / 2 + float(paid.sum())
        return Certificate(lower, np.inf if np.isnan(upper) else upper)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the solution to an ``.npz`` file, which replaces an older one only when it is complete.

        Parameters
        ----------
        path : path-like
            Where to write, exactly this name.
        """
        meta = {name: getattr(self, name) for name in _META} | {"shape": list(self.rows.shape)}
        arrays = {
            "w": self.w,
            "margins": self.margins,
            "alpha": self.alpha,
            "example": self.example,
            "prints": self.prints,
            "history": np.array(self.history, dtype=np.float64),
            "data": self.rows.data,
            "indices": self.rows.indices,
            "indptr": self.rows.indptr,
        }
        store.write(path, _FORMAT, meta, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OracleSolution:
        """Read a solution that `save` wrote. No pickle is involved: files from strangers are safe to load.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        OracleSolution
        """
        return store.read(path, "a solution of an oracle problem", {_FORMAT: cls._restored})

    @classmethod
    def _restored(cls, meta: dict[str, Any], arrays: dict[str, Array]) -> Self:
        parts = arrays.pop("data"), arrays.pop("indices"), arrays.pop("indptr")
        rows = sp.csr_array(parts, shape=tuple(meta.pop("shape")))
        rows.check_format(full_check=True)
        history = Record.from_table(arrays.pop("history"))
        rest: dict[str, Any] = arrays | meta
        solution = cls(rows=rows, history=history, **rest)
        n, d = rows.shape
        lines = solution.margins, solution.alpha, solution.example
        good = all(line.shape == (n,) for line in lines) and solution.w.shape == (d,)
        good &= all(np.isfinite(part).all() for part in (rows.data, solution.w, *lines))
        if not good or solution.example.dtype != np.int64 or solution.example.min(initial=0) < 0:
            raise ValueError("the parts of the solution do not fit together")
        if solution.prints.dtype != np.uint64 or solution.prints.ndim != 1:
            raise ValueError("the fingerprints of the examples are none")
        return solution

    def of(self, prints: Array, slacks: int = 1) -> OracleSolution:
        """Return what is left of the solution for examples with these fingerprints."""
        n = min(len(self.prints), len(prints))
        same = np.zeros(max(n, int(self.example.max(initial=-1)) // slacks + 1), dtype=bool)
        same[:n] = self.prints[:n] == prints[:n]
        return self.restricted(same, slacks)

    def restricted(self, same: Array, slacks: int = 1) -> OracleSolution:
        """Return what is left of the solution for some of the examples, told by a mask."""
        kept = same[self.example // slacks]
        parts: dict[str, Any] = {"margins": self.margins, "alpha": self.alpha, "example": self.example}
        return replace(self, rows=self.rows[kept], **{k: part[kept] for k, part in parts.items()})
