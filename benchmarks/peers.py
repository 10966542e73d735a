"""One adapter per solver, all with the same few members.

name, package   what the table calls it, and the distribution that holds it
covers(task)    whether it minimises this
threads         with how many threads it runs a task, given so many; 0 where it takes no part then
option(task)    how a setting is written
settings        tolerances or numbers of passes, from loose to tight
prepare(data)   the data as the solver takes them; not timed
fit             train on prepared data to a setting, with so many threads; timed
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import distributions
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import linear_model, svm
from sklearn.exceptions import ConvergenceWarning

import dualsvm

from .data import Data
from .tasks import Task

GRID = (1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.003, 0.001, 3e-4, 1e-4)
MULTICORE = Path(sys.prefix) / "multicore"  # where the Makefile puts what bears the name of another package


class Fit(NamedTuple):
    """Weights, and from a solver that certifies them its bounds on the optimum."""

    w: np.ndarray
    lower: float = -np.inf
    upper: float = np.inf


class Dualsvm:
    """Problem and solve."""

    name, package = "dualsvm", "dualsvm"

    def covers(self, task: Task) -> bool:
        return task.kind == "binary"

    def threads(self, task: Task, given: int) -> int:
        return given

    def option(self, task: Task) -> str:
        return "tol={:g}"

    def prepare(self, data: Data) -> Data:
        return data

    def fit(self, data: Data, setting: float, task: Task, seed: int, threads: int = 1) -> Fit:
        problem = dualsvm.Problem.binary(data.X, data.y, cost=task.cost, loss=task.loss)
        solution = dualsvm.solve(problem, tol=setting, max_iter=100_000, random_state=seed, n_jobs=threads)
        return Fit(solution.w, solution.lower_bound, solution.upper_bound)


class Estimator(Dualsvm):
    """SVMClassifier and SVMRegressor."""

    def covers(self, task: Task) -> bool:
        return True

    def fit(self, data: Data, setting: float, task: Task, seed: int, threads: int = 1) -> Fit:
        common: dict[str, Any] = {
            "C": task.cost,
            "loss": task.loss,
            "fit_intercept": False,
            "tol": setting,
            "max_iter": 100_000,
            "random_state": seed,
            "n_jobs": threads,
        }
        if task.kind == "regression":
            model = dualsvm.SVMRegressor(epsilon=task.epsilon, **common)
        elif task.kind == "binary":
            model = dualsvm.SVMClassifier(**common)
        else:
            model = dualsvm.SVMClassifier(multi_class=task.kind, **common)
        model.fit(data.X, data.y)
        return Fit(_weights(model.coef_), model.lower_bound_, model.upper_bound_)


class Liblinear:
    """LIBLINEAR's own Python package.

    Its dual solvers end after 300 iterations, whatever the tolerance; for a squared loss it then turns to the
    primal. It draws the order of visits from the C library's generator, which goes on from run to run: the seed is
    not used.
    """

    name, package = "liblinear", "liblinear-official"
    settings = GRID
    solvers: Mapping[str, int] = {
        "hinge": 3,
        "squared_hinge": 1,
        "epsilon_insensitive": 13,
        "squared_epsilon_insensitive": 12,
    }

    more = ""  # options

    def covers(self, task: Task) -> bool:
        return task.loss in self.solvers and not (task.kind == "crammer_singer" and task.squared)

    def threads(self, task: Task, given: int) -> int:
        return 1

    def module(self) -> Any:
        return import_module("liblinear.liblinearutil")

    def option(self, task: Task) -> str:
        return f"-s {4 if task.kind == 'crammer_singer' else self.solvers[task.loss]} -e {{:g}}"

    def prepare(self, data: Data) -> Any:
        return self.module().problem(data.y.astype(np.float64), sp.csr_matrix(data.X))

    def fit(self, prepared: Any, setting: float, task: Task, seed: int, threads: int = 1) -> Fit:
        options = f"{self.option(task).format(setting)} -c {task.cost!r} -p {task.epsilon!r} -B -1 -q"
        module = self.module()
        model = module.train(prepared, module.parameter(options + self.more.format(threads)))
        if task.kind in ("binary", "regression"):
            w = np.ctypeslib.as_array(model.w, (prepared.n,)).copy()
            return Fit(w if task.kind == "regression" else w * model.label[0])  # scores of the class it lists first
        labels = np.array(model.get_labels())
        w = np.ctypeslib.as_array(model.w, (prepared.n, len(labels)))
        return Fit(w.T[np.argsort(labels)])


class LiblinearPrimal(Liblinear):
    """Its trust region Newton method, for squared losses."""

    name = "liblinear primal"
    solvers: Mapping[str, int] = {"squared_hinge": 2, "squared_epsilon_insensitive": 11}

    def covers(self, task: Task) -> bool:
        return task.squared and super().covers(task)


class Multicore(Liblinear):
    """LIBLINEAR's OpenMP build, where it has threads for its solver; elsewhere it is LIBLINEAR."""

    name, package = "multicore", "liblinear-multicore"
    more = " -m {}"

    def threads(self, task: Task, given: int) -> int:
        threaded = task.kind != "crammer_singer" and self.solvers[task.loss] in (1, 2, 3, 11)
        return given if threaded and given > 1 else 0

    def module(self) -> Any:
        """Return its module, which calls itself liblinear, too, under another name."""
        name = "liblinear_multicore"
        if name not in sys.modules:
            spec = spec_from_file_location(name, MULTICORE / "liblinear" / "__init__.py")
            assert spec
            sys.modules[name] = module_from_spec(spec)
        return import_module(f"{name}.liblinearutil")


class MulticorePrimal(Multicore, LiblinearPrimal):
    name = "multicore primal"


class LinearSVC:
    """scikit-learn's copy of LIBLINEAR.

    It copies its input into LIBLINEAR's structure in every fit. CSR in float64 and int32 is what it reads
    without another copy, and the zeros of dense data are left out beforehand.
    """

    name, package = "LinearSVC", "scikit-learn"
    settings = GRID
    dual = True

    def covers(self, task: Task) -> bool:
        return task.kind != "regression" and not (task.kind == "crammer_singer" and task.squared)

    def threads(self, task: Task, given: int) -> int:
        return 1

    def option(self, task: Task) -> str:
        return "tol={:g}"

    def prepare(self, data: Data) -> Any:
        return sp.csr_matrix(data.X, dtype=np.float64), data.y

    def fit(self, prepared: Any, setting: float, task: Task, seed: int, threads: int = 1) -> Fit:
        model = self.model(task).set_params(
            loss=task.loss,
            dual=self.dual,
            fit_intercept=False,
            C=task.cost,
            tol=setting,
            max_iter=1000,
            random_state=seed,
        )
        return Fit(_trained(model, prepared))

    def model(self, task: Task) -> Any:
        return svm.LinearSVC(multi_class="crammer_singer" if task.kind == "crammer_singer" else "ovr")


class LinearSVCPrimal(LinearSVC):
    """What dual="auto" chooses for a squared hinge and more rows than columns."""

    name = "LinearSVC primal"
    dual = False

    def covers(self, task: Task) -> bool:
        return task.squared and super().covers(task)


class LinearSVR(LinearSVC):
    name = "LinearSVR"

    def covers(self, task: Task) -> bool:
        return task.kind == "regression"

    def model(self, task: Task) -> Any:
        return svm.LinearSVR(epsilon=task.epsilon)


class LinearSVRPrimal(LinearSVR):
    name = "LinearSVR primal"
    dual = False

    def covers(self, task: Task) -> bool:
        return task.squared and super().covers(task)


class SGDClassifier:
    """Stochastic gradients: 1/n sum_i loss_i + alpha/2 |w|^2, which times C n is the objective if alpha = 1/(C n).

    The default steps diverge for squared losses: there the first one is 1 / (2 max_i x_i'x_i), and the weights are
    averaged. Zeros are left out beforehand where they are many.
    """

    name, package = "SGDClassifier", "scikit-learn"
    settings = (1, 3, 10, 30, 100, 300)
    averaged = False

    def covers(self, task: Task) -> bool:
        return task.kind in ("binary", "ovr")

    def threads(self, task: Task, given: int) -> int:
        return given if task.kind == "ovr" else 1

    def option(self, task: Task) -> str:
        return "max_iter={:g}"

    def prepare(self, data: Data) -> Any:
        X = sp.csr_matrix(data.X)
        square = float(X.multiply(X).sum(axis=1).max())
        return X if X.nnz < 0.5 * np.prod(X.shape) else data.X, data.y, square

    def fit(self, prepared: Any, setting: int, task: Task, seed: int, threads: int = 1) -> Fit:
        X, y, square = prepared
        model = self.model(task).set_params(
            loss=task.loss,
            alpha=1.0 / (task.cost * X.shape[0]),
            fit_intercept=False,
            max_iter=setting,
            tol=None,
            average=self.averaged or task.squared,
            random_state=seed,
        )
        if task.kind == "ovr":
            model.set_params(n_jobs=threads)
        if task.squared:
            model.set_params(learning_rate="invscaling", eta0=0.5 / square, power_t=0.25)
        return Fit(_trained(model, (X, y)))

    def model(self, task: Task) -> Any:
        return linear_model.SGDClassifier()


class SGDRegressor(SGDClassifier):
    """As above; the mean of the weights comes nearer to the optimum than the last ones for either loss."""

    name = "SGDRegressor"
    averaged = True

    def covers(self, task: Task) -> bool:
        return task.kind == "regression"

    def model(self, task: Task) -> Any:
        return linear_model.SGDRegressor(epsilon=task.epsilon)


class Snap:
    """IBM's Snap ML: sum_i loss_i + regularizer/2 |w|^2. It reads float32."""

    name, package = "snapml", "snapml"
    settings = (0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6, 1e-7)

    def covers(self, task: Task) -> bool:
        return task.kind in ("binary", "ovr")

    def threads(self, task: Task, given: int) -> int:
        return given

    def option(self, task: Task) -> str:
        return "tol={:g}"

    def prepare(self, data: Data) -> Any:
        return data.X.astype(np.float32, copy=False), data.y

    def fit(self, prepared: Any, setting: float, task: Task, seed: int, threads: int = 1) -> Fit:
        from snapml import SupportVectorMachine

        model = SupportVectorMachine(
            loss=task.loss,
            regularizer=1.0 / task.cost,
            fit_intercept=False,
            tol=setting,
            max_iter=20_000,
            n_jobs=threads,
            random_state=seed,
        )
        model.fit(*prepared)
        return Fit(_weights(np.atleast_2d(model.coef_)))


class ReHLine:
    """ReHLine: 1/2 |w|^2 + sum_li relu(u_li x_i'w + v_li) + 1/2 sum_li relu(s_li x_i'w + t_li)^2.

    It reads float64; zeros are left out beforehand where they are many.
    """

    name, package = "rehline", "rehline"
    settings = (3, 6, 10, 20, 30, 60, 100, 200, 300, 600, 1000, 3000, 10_000)

    def covers(self, task: Task) -> bool:
        return task.kind != "crammer_singer"

    def threads(self, task: Task, given: int) -> int:
        return 1

    def option(self, task: Task) -> str:
        return "max_iter={:g}"

    def prepare(self, data: Data) -> Any:
        X = sp.csr_matrix(data.X, dtype=np.float64)
        return X if X.nnz < 0.5 * np.prod(X.shape) else data.X.astype(np.float64, copy=False), data.y

    def fit(self, prepared: Any, setting: int, task: Task, seed: int, threads: int = 1) -> Fit:
        X, y = prepared
        if task.kind == "regression":
            slopes, offsets = [np.outer([1.0, -1.0], np.ones(len(y)))], np.array([-y, y]) - task.epsilon
        else:
            signs = [y] if task.kind == "binary" else [np.where(y == value, 1.0, -1.0) for value in np.unique(y)]
            slopes, offsets = [-sign[None] for sign in signs], np.ones((1, len(y)))
        return Fit(_weights(np.array([self.weights(X, slope, offsets, setting, task, seed) for slope in slopes])))

    def weights(
        self, X: Any, slope: np.ndarray, offset: np.ndarray, passes: int, task: Task, seed: int
    ) -> np.ndarray:
        """Return the w for the losses of relu(slope x'w + offset)."""
        from rehline import ReHLine_solver

        common = {"tol": 1e-9, "max_iter": passes, "verbose": 0, "coordinate_seed": seed}
        if not task.squared:
            return ReHLine_solver(X, U=task.cost * slope, V=task.cost * offset, **common).beta
        root = np.sqrt(2.0 * task.cost)
        none = np.empty((0, 0))
        whole = np.full_like(slope, np.inf)
        return ReHLine_solver(X, none, none, Tau=whole, S=root * slope, T=root * offset, **common).beta


def _trained(model: Any, prepared: Any) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the objective that it reached is what counts
        return _weights(model.fit(*prepared).coef_)


def _weights(coef: np.ndarray) -> np.ndarray:
    return coef.ravel() if len(coef) == 1 else coef


def installed(side: Any) -> str | None:
    """Return the version of a solver's package, None where it is not installed."""
    found = distributions(name=side.package, path=[*sys.path, str(MULTICORE)])
    return next((package.version for package in found), None)
