"""What the linear estimators share: parameters and manners. What their problems are, each of them says itself."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import store
from ..checks import Array, as_number, as_vector
from ..data import Chunk
from ..problem import Problem
from ..progress import Halt, Watcher, printers
from ..proximal import pursue_wide
from ..rows import as_rows
from ..solution import Solution, relative_gap
from ..solve import as_passes, as_seed, as_threads, as_tolerance, pursue, together, warn_not_converged
from .callbacks import Callbacks, CallbackSupportMixin, with_callbacks
from .chunks import Learner
from .encoding import decode, encode
from .report import joined, sparse, stacked
from .terms import Frame, Terms, Wide, far_centre, make_terms, mean_square

FLOATS = [np.float64, np.float32]
_PIECE = 2**20  # rows that are counted at once
_MOST_ALPHA = 2**34  # dual variables of one output that a file may announce
_LEARNED = ("_alpha", "_fingerprint")  # attributes that are kept beside those that the user sees


class LinearSVM(CallbackSupportMixin, BaseEstimator):
    """A linear model whose weights are the certified solution of one problem, or of one for every output."""

    def _learn(
        self,
        X: Any,
        outputs: int,
        state: Callable[[Any, Terms], list[Problem]],
        data: dict[str, Any],
        onward: bool = False,
        titles: Sequence[str] = ("",),
        middle: float = 0.0,
        codes: Array | None = None,
    ) -> Self:
        """Solve the problems that `state` makes of rows and of the terms on the weights, and set the attributes.

        `onward`: what was learned before is the mean of the prior, as a stream is learned from. `titles`: what to
        call the problems. `middle`: where an intercept that is not penalised is looked for first. `codes`: the
        classes of the rows.
        """
        tol, max_iter = as_tolerance(self.tol), as_passes(self.max_iter)
        rows, frame, terms = self._frame(X, outputs, middle)
        if onward and hasattr(self, "coef_"):
            terms = replace(terms, mean=frame.weights(self.coef_, self.intercept_))
        problems = state(as_rows(rows, "X", frame.bias, together(as_threads(self.n_jobs))), terms)

        done: list[Array] = []  # weights of the problems solved so far, of which a callback sees the next

        def attributes(w: Array) -> dict[str, Any]:
            known = stacked([*done, w])
            if len(known) < outputs:
                known = np.pad(known, [(0, outputs - len(known)), (0, 0)])
            return self._attributes(*frame.seen(known))

        callbacks = Callbacks(self, max_iter * len(problems), data, attributes)
        watchers: list[Watcher] = [callbacks] if callbacks.watching else []
        starts = self._starts(problems, frame) if self.warm_start and not onward else [None] * len(problems)
        solutions = self._solve(problems, terms, starts, watchers, titles, frame.single, done)

        self._forget()
        if not onward:
            self._alpha = sparse([s.alpha for s in solutions])
            self._fingerprint = solutions[0].fingerprint
        self._report(problems, solutions, codes)
        done.clear()
        for name, value in attributes(stacked([s.w for s in solutions])).items():
            setattr(self, name, value)
        callbacks.end()
        endings = {solution.status for solution in solutions}
        if "interrupted" in endings:
            raise FittedInterrupt
        if not self.converged_ and endings & {"max_iter", "stalled"}:
            warn_not_converged(self.n_iter_, self.gap_, tol, stalled="max_iter" not in endings)
        return self

    def _learn_chunks(self, learner: Learner) -> Self:
        """Solve the problems that a learner meets in chunks, or all at once if they fit; set the attributes."""
        dataset = learner.dataset
        most = learner.reads.most(self.max_iter)
        if (names := dataset.feature_names) is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        if (chunk := learner.whole()) is not None:
            self.n_features_in_ = chunk.X.shape[1]
            data, state, codes = {"X": dataset, "y": None}, learner.state(chunk), learner.codes(chunk)
            return self._learn(chunk.X, learner.outputs, state, data, titles=learner.titles, codes=codes)

        def attributes(w: Array) -> dict[str, Any]:
            return self._attributes(*learner.frame.seen(w))

        callbacks = Callbacks(self, most, {"X": dataset, "y": None}, attributes)
        learner.learn([callbacks] if callbacks.watching else [])
        self._forget()
        self.n_features_in_ = learner.width
        self.lower_bound_, self.upper_bound_ = learner.bounds()
        self.gap_ = relative_gap(self.lower_bound_, self.upper_bound_) if np.isfinite(self.upper_bound_) else np.inf
        self.converged_ = bool(self.gap_ <= as_tolerance(self.tol))
        self.history_ = learner.runs.history
        self.n_iter_ = learner.runs.reads
        if (alpha := learner.alpha()) is not None:
            self._alpha, self._fingerprint = alpha, learner.fingerprint
        self.dual_coef_ = learner.coefficients()
        self._count_support(learner.labels())
        for name, value in attributes(learner.weights()).items():
            setattr(self, name, value)
        callbacks.end()
        if learner.ending == "interrupted":
            raise FittedInterrupt
        if not self.converged_ and learner.ending == "max_iter" and not learner.reads.newest:
            warn_not_converged(self.n_iter_, self.gap_, as_tolerance(self.tol))
        return self

    def _frame(self, X: Any, outputs: int, middle: float) -> tuple[Any, Frame, Terms]:
        """Return the rows to learn from, what their weights stand for, and what is said of those."""
        d, bias, centre, wide = X.shape[1], self._bias(), None, None
        if isinstance(getattr(self, "fit_intercept", None), str):
            bounded = any(np.ndim(b) > 0 and np.shape(b)[-1] == d + 1 for b in (self.lower, self.upper))
            centre = None if bounded or sp.issparse(X) else far_centre(X)
            if centre is not None:
                X = np.subtract(X, centre, dtype=np.float64)
            wide = Wide(middle, mean_square(X))
        terms = make_terms(self.prior, self.lower, self.upper, outputs, d, bias, wide)
        single = X.dtype == np.float32 and terms.covariance is None
        return X, Frame(bias, centre, single), terms.rounded() if single else terms

    def _solve(
        self,
        problems: list[Problem],
        terms: Terms,
        starts: Sequence[Solution | None],
        watchers: list[Watcher],
        titles: Sequence[str],
        single: bool,
        done: list[Array],
    ) -> list[Solution]:
        """Solve the problems, several of them side by side if nobody watches."""
        tol = as_tolerance(self.tol)
        watching = [[*printers(self.verbose, tol, title), *watchers] for title in titles]
        alone = len(problems) == 1
        seeds = [as_seed(self.random_state) for _ in problems]
        n_jobs = self.n_jobs if alone else 1

        def one(k: int, max_iter: int) -> Solution:
            problem = problems[k]
            rest = tol, max_iter, starts[k], seeds[k], n_jobs, watching[k], single
            narrow = terms.narrow_of(slice(None) if len(problem.weight_shape) == 2 else k)
            return pursue(problem, *rest) if narrow is None else pursue_wide(problem, narrow, *rest)

        if not alone and not any(watching) and as_threads(self.n_jobs) > 1:
            return self._side_by_side(one, watching)
        solutions: list[Solution] = []
        for k in range(len(problems)):
            halted = bool(solutions) and solutions[-1].status in ("stopped", "interrupted")
            solution = one(k, 0 if halted else self.max_iter)
            solutions.append(replace(solution, status=solutions[-1].status) if halted else solution)
            done.append(solution.w)
        return solutions

    def _side_by_side(self, one: Callable[[int, int], Solution], watching: list[list[Watcher]]) -> list[Solution]:
        """Solve the problems in threads; Ctrl-C ends all of them."""
        halt = Halt()
        for watchers in watching:
            watchers.append(halt)
        with ThreadPoolExecutor(as_threads(self.n_jobs)) as pool:
            runs: list[Future[Solution]] = []
            try:
                while len(runs) < len(watching):
                    runs.append(pool.submit(one, len(runs), self.max_iter))
                wait(runs)
            except KeyboardInterrupt:
                halt.now = True
                while len(runs) < len(watching):
                    runs.append(pool.submit(one, len(runs), self.max_iter))
                wait(runs)
        solutions = [run.result() for run in runs]
        return [replace(s, status="interrupted") if s.status == "stopped" else s for s in solutions]

    def _report(self, problems: list[Problem], solutions: list[Solution], codes: Array | None) -> None:
        self.lower_bound_ = float(sum(s.lower_bound for s in solutions))
        self.upper_bound_ = float(sum(s.upper_bound for s in solutions))
        self.gap_ = relative_gap(self.lower_bound_, self.upper_bound_)
        self.converged_ = bool(self.gap_ <= as_tolerance(self.tol))
        self.history_ = joined(solutions)
        self.n_iter_ = sum(s.n_iter for s in solutions)
        shares = []
        for problem, solution in zip(problems, solutions, strict=True):
            shares.append(problem.mapping.coefficients(solution.alpha, problem.view.n))
        self.dual_coef_ = sparse(shares)
        self._count_support(codes)

    def _count_support(self, codes: Array | None) -> None:
        """Count the examples that have an entry in `dual_coef_`, of every class if there are any."""
        support = self.dual_coef_.indices
        if self.dual_coef_.shape[0] > 1:
            counted = np.zeros(self.dual_coef_.shape[1], dtype=bool)
            counted[support] = True
            support = np.flatnonzero(counted)
        if codes is None:
            self.n_support_: Any = len(support)
        else:
            each = len(self.classes_)
            parts = (support[k : k + _PIECE] for k in range(0, len(support), _PIECE))
            self.n_support_ = sum((np.bincount(codes[p], minlength=each) for p in parts), np.zeros(each, dtype=int))

    def _starts(self, problems: list[Problem], frame: Frame) -> list[Solution | None]:
        """Return what is left of the last fit to start from, one for every problem."""
        none: list[Solution | None] = [None] * len(problems)
        width = problems[0].view.matrix.shape[1]
        if not hasattr(self, "_alpha") or np.shape(self.coef_)[-1] != width:
            return none
        rows = [int(np.prod(problem.alpha_shape[1:])) for problem in problems]
        outputs = sum(p.weight_shape[0] if len(p.weight_shape) == 2 else 1 for p in problems)
        if sum(rows) != self._alpha.shape[0] or outputs != len(np.atleast_2d(self.coef_)):
            return none
        weights = frame.weights(self.coef_, self.intercept_)
        starts, first = none, 0
        for k, problem in enumerate(problems):
            shape = problem.alpha_shape
            alpha = self._alpha[first : first + rows[k]].toarray().T.reshape(-1, *shape[1:])
            w = weights if len(problem.weight_shape) == 2 else weights[k]
            starts[k] = Solution(w, alpha, -np.inf, np.inf, "max_iter", 0, [], problem.task, None, self._fingerprint)
            first += rows[k]
        return starts

    def _forget(self) -> None:
        """Drop what is left of the last fit to start from."""
        for name in _LEARNED:
            if hasattr(self, name):
                delattr(self, name)

    def _bias(self) -> float:
        """Return the value of the constant feature, 0 for none."""
        fit_intercept = getattr(self, "fit_intercept", False)
        if not (isinstance(fit_intercept, bool | np.bool_) or fit_intercept == "unpenalized"):
            raise ValueError(f'fit_intercept must be True, False or "unpenalized", got {fit_intercept!r}')
        if not fit_intercept:
            return 0.0
        bias = as_number(self.intercept_scaling, "intercept_scaling")
        if bias <= 0:
            raise ValueError(f"intercept_scaling must be positive, got {bias}")
        return bias

    def _attributes(self, coef: Array, intercept: Array) -> dict[str, Any]:
        """Return coefficients, (outputs, features), and intercepts as the user sees them."""
        return {"coef_": coef, "intercept_": intercept}

    def _cost(self, sample_weight: Any, n: int) -> Array:
        """Return C times the weights of the examples."""
        C = as_number(self.C, "C")
        if C <= 0:
            raise ValueError(f"C must be positive, got {C}")
        return C * weights_of(sample_weight, n)

    def _cost_of(self, chunk: Chunk, weight: Array | None = None, codes: Array | None = None) -> Array:
        """Return the costs of the examples of a chunk; `weight`: factors by class."""
        cost = self._cost(None, len(chunk))
        if chunk.weight is not None:
            cost = cost * chunk.weight
        return cost if weight is None or codes is None else cost * weight[codes]

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def _more_of(self, X: Any, y: Any, onward: bool, **checks: Any) -> tuple[Any, Array]:
        """Check the data of a fit, or of a further part of a stream."""
        reset = not (onward and hasattr(self, "coef_"))
        if reset and _plain(X, y):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            return X, y
        finite = {"accept_sparse": "csr", "dtype": FLOATS, "ensure_all_finite": False, "reset": reset}
        return validate_data(self, X, y, **(finite | checks))  # the problem looks for NaN

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator, fitted or not, to an ``.npz`` file that `dualsvm.load` reads; no pickle is involved.

        Parameters
        ----------
        path : path-like
            Where to write, exactly this name. An older file is replaced only when the new one is complete.
        """
        names = [*self.get_params(deep=False), *_LEARNED]
        names += [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]
        arrays: dict[str, Array] = {}
        meta = {name: encode(getattr(self, name), name, arrays) for name in names if hasattr(self, name)}
        kind = next(kind for kind in type(self).__mro__ if kind.__module__.startswith("dualsvm."))
        store.write(path, f"dualsvm.{kind.__name__} 1", {"state": meta}, arrays)

    @classmethod
    def _restored(cls, meta: dict[str, Any], arrays: dict[str, Array]) -> Self:
        state = {name: decode(value, arrays) for name, value in meta["state"].items()}
        parameters = {name: state.pop(name) for name in cls._get_param_names()}
        estimator = cls(**parameters)
        for name, value in state.items():
            if name not in _LEARNED and (name.startswith("_") or not name.endswith("_")):
                raise ValueError(f"{name} is no attribute of a fitted estimator")
            setattr(estimator, name, value)
        estimator._check_learned()
        return estimator

    def _check_learned(self) -> None:
        """Refuse attributes that do not fit together, as a file may hold anything."""
        if not hasattr(self, "coef_"):
            return
        coef, intercept = np.asarray(self.coef_), np.asarray(self.intercept_)
        outputs = coef.shape[:-1]
        good = coef.dtype in FLOATS and intercept.dtype in FLOATS and outputs == intercept.shape
        good &= coef.shape == self._shape() and np.isfinite(coef).all() and np.isfinite(intercept).all()
        if hasattr(self, "_alpha"):
            good &= sp.issparse(self._alpha) and isinstance(self._fingerprint, str)
            good &= self._alpha.shape[1] <= _MOST_ALPHA and np.isfinite(self._alpha.data).all()
        if not good:
            raise ValueError("the attributes of the estimator do not fit together")

    def _shape(self) -> tuple[int, ...]:
        """Return the shape that the coefficients must have."""
        return (self.n_features_in_,)


class FittedInterrupt(KeyboardInterrupt):
    """Ctrl-C that came while a model was learned, which is fitted all the same."""


def learning(method: Callable[..., Any]) -> Any:
    """Make a method that fits leave an estimator as it was if it fails, and tell scikit-learn's callbacks."""

    @functools.wraps(method)
    def unharmed(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = vars(self).copy()
        try:
            return method(self, *args, **kwargs)
        except FittedInterrupt:
            raise KeyboardInterrupt from None
        except BaseException:
            for name in [name for name in vars(self) if name.endswith("_") or name in _LEARNED]:
                delattr(self, name)
            vars(self).update(before)
            raise

    return with_callbacks(unharmed)


def _plain(X: Any, y: Any) -> bool:
    """Whether scikit-learn would take the data of a fit as they are: to ask takes longer than to see."""
    if not (type(X) in (np.ndarray, sp.csr_matrix, sp.csr_array) and X.dtype in FLOATS and type(y) is np.ndarray):
        return False
    fit = X.ndim == 2 and min(X.shape) > 0 and y.shape == X.shape[:1]
    return fit and (y.dtype.kind in "biu" or (y.dtype.kind == "f" and bool(np.isfinite(y).all())))


def weights_of(sample_weight: Any, n: int) -> Array:
    """Return the weights of the examples as a vector."""
    if sample_weight is None:
        return np.ones(n)
    weights = as_vector(sample_weight, "sample_weight", n, "row of X")
    if weights.min() < 0:
        raise ValueError(f"sample_weight must not be negative, got {weights.min()}")
    if not weights.any():
        raise ValueError("sample_weight must not be zero for every row: at least one must count")
    return weights
