"""One adapter per solver, all with the same few members.

name, package   what the table calls it, and the distribution that holds it
option          how a setting is written
settings        tolerances, from loose to tight
prepare(data)   the data as the solver takes them; not timed
fit             train on prepared data to a setting; timed
"""

from __future__ import annotations

import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import dualsvm

from .data import Data

GRID = (1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.003, 0.001)


class Fit(NamedTuple):
    """Weights, and from a solver that certifies them its bounds on the optimum and whether they suffice."""

    w: np.ndarray
    lower: float = -np.inf
    upper: float = np.inf
    converged: bool = False


class Dualsvm:
    name, package = "dualsvm", "dualsvm"
    option = "tol={:g}"
    settings = (1e-3,)

    def prepare(self, data: Data) -> Data:
        return data

    def fit(self, data: Data, setting: float, cost: float, seed: int) -> Fit:
        problem = dualsvm.Problem.binary(data.X, data.y, cost=cost)
        solution = dualsvm.solve(problem, tol=setting, max_iter=100_000, random_state=seed, n_jobs=1)
        return Fit(solution.w, solution.lower_bound, solution.upper_bound, solution.converged)


class Liblinear:
    """LIBLINEAR's own Python package.

    Its dual solvers end after 300 iterations, whatever the tolerance. It draws the order of visits from the C
    library's generator, which goes on from run to run: the seed is not used.
    """

    name, package = "liblinear", "liblinear-official"
    option = "-s 3 -e {:g}"
    settings = GRID

    def prepare(self, data: Data) -> Any:
        from liblinear.liblinearutil import problem

        return problem(data.y, sp.csr_matrix(data.X))

    def fit(self, prepared: Any, setting: float, cost: float, seed: int) -> Fit:
        from liblinear.liblinearutil import parameter, train

        model = train(prepared, parameter(f"{self.option.format(setting)} -c {cost!r} -B -1 -q"))
        w = np.ctypeslib.as_array(model.w, (prepared.n,)).copy()
        return Fit(w * model.label[0])  # its scores are those of the class that it lists first


class Sklearn:
    """scikit-learn's copy of LIBLINEAR.

    It copies its input into LIBLINEAR's structure in every fit. CSR in float64 and int32 is what it reads
    without another copy, and the zeros of dense data are left out beforehand.
    """

    name, package = "LinearSVC", "scikit-learn"
    option = "tol={:g}"
    settings = GRID

    def prepare(self, data: Data) -> Any:
        return sp.csr_matrix(data.X, dtype=np.float64), data.y

    def fit(self, prepared: Any, setting: float, cost: float, seed: int) -> Fit:
        model = LinearSVC(
            loss="hinge",
            dual=True,
            fit_intercept=False,
            C=cost,
            tol=setting,
            max_iter=20_000,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the objective that it reached is what counts
            model.fit(*prepared)
        return Fit(model.coef_.ravel())


SIDES = {side.name: side for side in (Dualsvm(), Liblinear(), Sklearn())}


def installed(side: Any) -> str | None:
    """Return the version of a solver's package, None where it is not installed."""
    try:
        return version(side.package)
    except PackageNotFoundError:
        return None
