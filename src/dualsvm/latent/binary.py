"""The estimator of two classes with latent values."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..checks import Array
from ..prior import Prior
from ..solve import as_threads
from ..structured.base import Checkpoint
from ..structured.constraints import as_feature
from ..structured.examples import as_sequence
from .base import LatentEstimator
from .mined import LatentProblem


class LatentSVM(ClassifierMixin, LatentEstimator):
    """Two classes with latent values, such as where in an image an object is: the best one counts.

    The score of an input is max over z of w.phi(x, z), and its sign the class. The objective, over the weights w, is

        1/2 |w|^2 + C sum over positives of max(0, 1 - score(x_i)) + C sum over negatives of max(0, 1 + score(x_i))

    which is not convex in the scores of the positives. Rounds complete these by what is best at the present weights
    and solve the convex problem that this makes, from the constraints and dual variables of the round before, with
    its certificate. Negatives need no completion: they are searched for their worst z again and again, and what was
    found is kept as long as it matters. From round to round the objective never increases.

    Parameters
    ----------
    task : object
        `dualsvm.tasks.MultipleInstance`, or any object with ``size_joint_feature``, ``joint_feature(x, z)`` and
        ``inference(x, w)``, the best z, which completes positives and finds the worst offence of negatives. If there
        is a better beginning than random weights, ``init_latent(X, y)`` or ``init_latent(X, y, random_state=...)``
        returns a z for every positive, and anything for negatives. Where a negative holds many examples, as an image
        many windows, ``violations(x, w)`` yields all those with 1 + w.phi > 0 as (key, features); each then has a
        slack of its own, which is known by its key: that must be the same at all weights, such as the place of a
        window, not its rank among those found. There is no intercept: a feature that is always 1 makes one.
        `check_task` checks all this.
    C : float, default 1.0
        Cost of a slack; larger means less regularisation.
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
    max_iter : int, default 1000
        Largest number of passes of a round; a pass is as many searches as there are examples.
    cache_mb : float, default 1024.0
        Memory for constraints, in megabytes. Beyond it those that share a slack are merged into one, which changes
        neither the weights nor the lower bound. The features of completed positives come on top.
    prune_after, random_state, n_jobs, verbose
        As in `StructuredSVM`, for the convex problem of every round.
    warm_start : bool, default False
        Whether a fit begins with what is best at the weights of the last, and with its constraints where examples,
        their completions and the parameters of the task are the same.

    Attributes
    ----------
    coef_ : ndarray of shape (n_weights,)
        Weights.
    classes_ : ndarray of shape (2,)
        -1 and 1.
    latent_ : list
        The latent values of the positives that are best at these weights, None for negatives. Files do not hold them.
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
        Passes, and examples asked about, in all rounds.
    n_constraints_ : int
        Constraints held in the end.
    task_ : object
        The task as it was when the model was fitted.

    Examples
    --------
    A signal has a bump somewhere, or none.

    >>> import numpy as np
    >>> from dualsvm import LatentSVM
    >>> class Place:
    ...     "The latent value is where a window of three begins."
    ...     size_joint_feature = 4
    ...     def joint_feature(self, x, z):
    ...         return np.append(x[z : z + 3], 1.0)
    ...     def inference(self, x, w):
    ...         return int(np.argmax(np.correlate(x, w[:3], "valid")))
    ...     def init_latent(self, X, y):
    ...         return [int(np.argmax(x[1:-1])) for x in X]
    >>> rng = np.random.default_rng(0)
    >>> X, y = 0.1 * rng.normal(size=(40, 12)), np.repeat([1, -1], 20)
    >>> places = rng.integers(0, 10, size=20).tolist()
    >>> for x, place in zip(X, places):
    ...     x[place : place + 3] += [0.5, 1.0, 0.5]
    >>> model = LatentSVM(Place(), C=10.0, random_state=0).fit(X, y)
    >>> model.score(X, y), max(abs(z - place) for z, place in zip(model.latent(X), places)), model.gap_ <= 1e-3
    (1.0, 1, True)
    """

    _needed = ("joint_feature", "inference")
    _alike = True

    def __init__(
        self,
        task: Any,
        C: float = 1.0,
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
        y: Any = None,
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
            first completions of ready-made tasks, if `init` is not given. Or, with y None, pairs (x, y) that can be
            iterated over again and again, which are read in their order. Or a `Dataset`, as in `StructuredSVM.fit`;
            all targets of a query are to be its class. Completions and features of positives lie in memory, too.
        y : array-like of shape (n_examples,), default None
            Classes, -1 and 1.
        sample_weight : array-like of shape (n_examples,), default None
            What an example counts.
        init : sequence, default None
            Latent values of the positives to begin with, and anything for negatives. None: the task's `init_latent`,
            or else random weights.
        checkpoint : path-like, default None
            Where to write the state so far, every `checkpoint_every` seconds and after every round, be that an error
            or Ctrl-C. An older file is replaced only when the new one is complete.
        checkpoint_every : float, default 600.0
            Seconds between checkpoints.
        resume : path-like, default None
            A checkpoint to go on from: a new round begins with the completions that are best at its weights.

        Returns
        -------
        self : LatentSVM
        """
        return self._fit(X, y, sample_weight, init, Checkpoint(checkpoint, checkpoint_every), resume)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, init: Any = None) -> Self:
        """Learn from a further part of a stream: what was learned before is the mean of the prior.

        Parameters
        ----------
        X, y, sample_weight, init
            As in `fit`; a part may hold one class only. What the task learns from data, it learns from the first
            part. Later parts begin with the completions that are best at the weights learned before.

        Returns
        -------
        self : LatentSVM
        """
        return self._partial_fit(X, y, sample_weight, init)

    def _outputs(self, examples: Any, whole: bool) -> Array:
        labels = _labels(examples)
        for sign, name in ((1, "positive"), (-1, "negative")):
            if whole and sign not in labels:
                raise ValueError(f"there are no {name} examples: y must hold both -1 and 1")
        return labels

    def _problem(self, task: Any, examples: Any, cost: Array, learned: Array | None) -> LatentProblem:
        return LatentProblem(task, examples, _labels(examples), cost, self.prior, self.lower, self.upper, learned)

    @property
    def classes_(self) -> Array:
        """The classes, -1 and 1."""
        return np.array([-1, 1])

    def latent(self, X: Any) -> list[Any]:
        """Return the best latent values of inputs.

        Parameters
        ----------
        X : sequence
            Inputs.

        Returns
        -------
        list
        """
        return self._look(X)[0]

    def decision_function(self, X: Any) -> Array:
        """Return the scores of inputs: those of their best latent values.

        Parameters
        ----------
        X : sequence
            Inputs.

        Returns
        -------
        ndarray of shape (n_examples,)
        """
        return self._look(X)[1]

    def predict(self, X: Any) -> Array:
        """Return the classes of inputs.

        Parameters
        ----------
        X : sequence
            Inputs.

        Returns
        -------
        ndarray of shape (n_examples,)
            1 where the score is positive, else -1.
        """
        return np.where(self.decision_function(X) > 0, 1, -1)

    def _look(self, X: Any) -> tuple[list[Any], Array]:
        """Return the best latent values of inputs, and their scores."""
        check_is_fitted(self)
        found: list[Any] = []
        scores: list[float] = []
        for some in self._parts(as_sequence(X)):
            if hasattr(self.task_, "encode"):
                latent = self.task_.batch_inference(some, self.coef_, as_threads(self.n_jobs))
            else:
                latent = [self.task_.inference(x, self.coef_) for x in some]
            for x, z in zip(some, latent, strict=True):
                scores.append(as_feature(self.task_.joint_feature(x, z), "joint_feature", None).dot(self.coef_))
            found += latent
        return found, np.array(scores)


def _labels(examples: Any) -> Array:
    """Return the classes of examples, which must be -1 and 1."""
    given = list(examples.Y)
    try:
        labels = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        labels = np.full(len(given), np.nan)
    words = any(isinstance(label, str) for label in given)
    if labels.shape != (examples.n,) or words or not np.isin(labels, (-1, 1)).all():
        wrong = next((label for label in given if not np.ndim(label) and label not in (-1, 1)), np.shape(labels))
        raise ValueError(f"y must hold the classes -1 and 1, one for every example, got {wrong!r}")
    return labels.astype(np.int64)
