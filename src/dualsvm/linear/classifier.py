"""Classification: binary, Crammer-Singer, one-vs-rest."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from ..checks import Array, as_array
from ..data import Dataset
from ..prior import Prior
from ..solution import Certificate
from .base import LinearSVM, learning
from .certify import certify_chunks, certify_rows
from .chunks import Reads, State, alone, parted, refuse
from .classes import ClassLearner, classes_of, codes_of, numbered, statement

_BAD_WEIGHT = "class_weight must not be negative, nor 0 for every class"


class SVMClassifier(ClassifierMixin, LinearSVM):
    """Linear support vector classification, with a proof of how close the model is to the best one.

    For two classes, labelled -1 and 1, it minimises over the weights w

        1/2 |w|^2 + sum_i C_i max(0, 1 - y_i w.x_i)

    with the intercept as one more weight. For more classes it minimises the same with one slack for every example,
    shared by all classes (Crammer-Singer), or solves one such problem for every class against the rest.

    Parameters
    ----------
    C : float, default 1.0
        Cost of a slack; larger means less regularisation. An example pays C times its weights.
    loss : {"hinge", "squared_hinge"}, default "hinge"
        Whether an example pays its slack or the square of it.
    multi_class : {"crammer_singer", "ovr"}, default "crammer_singer"
        How more than two classes are told apart: all at once, or each from the rest.
    class_loss : array-like of shape (n_classes, n_classes), default None
        What it costs to take the class of the row for that of the column, in the order of `classes_`; not negative,
        zero on the diagonal. None: 1 for every mistake. With ``multi_class="ovr"`` there is no such table.
    rescaling : {"margin", "slack"}, default "margin"
        Whether a costly mistake asks for a larger margin, or counts more once the margin is missed.
    fit_intercept : bool or "unpenalized", default True
        Whether to have an intercept. It is regularised like any other weight, which matters if the classes lie far
        to one side of the origin: scale the features, raise `intercept_scaling`, or choose "unpenalized", which gives
        the intercept a prior so wide (a standard deviation of 100 times the typical length of a row) that it is free.
        Dense rows that lie further from 0 than from one another are then centred first, in a copy.
    intercept_scaling : float, default 1.0
        Value of the constant feature whose weight, times this, is the intercept. The larger, the less the intercept
        is regularised.
    class_weight : dict or "balanced", default None
        Factors on C by class; "balanced" makes them inversely proportional to how often a class occurs.
    prior : Prior, default None
        Gaussian prior of the weights: anything that broadcasts to (n_features,) or, for several classes, to
        (n_classes, n_features). One more feature speaks of the intercept.
    lower, upper : float or array-like, default None
        Bounds on the weights, in the same shapes; one number bounds the coefficients and leaves the intercept free.
    tol : float, default 1e-3
        Stop when ``(upper - lower) / |upper|`` of the certified bounds is at most this.
    max_iter : int, default 10000
        Largest number of passes, with ``multi_class="ovr"`` of every class. From a `Dataset`, of reads of the data.
    cache_mb : float, default 256.0
        Rows that are kept in memory when learning from a `Dataset`, in millions of bytes, beside a few chunks, and no
        less than one chunk. A dataset that fits, and whose chunks can be read in any order, is read once and solved
        in memory.
    warm_start : bool, default False
        Whether `fit` starts from the dual variables of the last fit. C and everything else may have changed.
    random_state : int, RandomState, Generator or None, default None
        Seed of the order in which examples are visited.
    n_jobs : int, default None
        Number of threads; None is 1 and -1 all cores. With ``multi_class="ovr"`` classes are solved side by side;
        else threads serve the certificates, and passes, too, where rows are sparse and not much alike, as texts are.
    verbose : int, default 0
        1 shows a live line with a bar on log10 of the gap; 2 prints a line for every pass.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features; float32 if X is, unless the prior has a full covariance, or the intercept is
        "unpenalized" and the rows had to be centred.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    lower_bound_, upper_bound_ : float
        Proven bounds on the optimum of the problem; the upper one is the objective of this model.
    gap_ : float
        ``(upper_bound_ - lower_bound_) / |upper_bound_|``.
    converged_ : bool
        Whether `gap_` is within `tol`.
    n_iter_ : int
        Number of passes, of all classes together. From a `Dataset` that does not fit in memory, of reads: each serves
        all classes.
    history_ : list of Record
        One record for every pass, or read.
    dual_coef_ : sparse array of shape (1, n_samples) or (n_classes, n_samples)
        What every example counts in the weights: without prior mean, variance and bounds, and but for the gap,
        ``coef_ = dual_coef_ @ X``.
    n_support_ : ndarray of shape (n_classes,)
        Number of examples of every class with an entry in `dual_coef_`.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    See Also
    --------
    dualsvm.c_path : A path of models over C.
    dualsvm.Problem : The problem behind all of this.

    Notes
    -----
    Ctrl-C ends a fit with the best model so far and its certificate, and is then passed on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dualsvm import SVMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVMClassifier(C=10.0, random_state=0).fit(X, y)
    >>> bool(model.lower_bound_ <= model.upper_bound_), model.gap_ <= 1e-3
    (True, True)
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        loss: str = "hinge",
        *,
        multi_class: str = "crammer_singer",
        class_loss: Any = None,
        rescaling: str = "margin",
        fit_intercept: bool | str = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        prior: Prior | None = None,
        lower: Any = None,
        upper: Any = None,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        cache_mb: float = 256.0,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.multi_class = multi_class
        self.class_loss = class_loss
        self.rescaling = rescaling
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.prior = prior
        self.lower = lower
        self.upper = upper
        self.tol = tol
        self.max_iter = max_iter
        self.cache_mb = cache_mb
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @learning
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        margin: Any = None,
        *,
        passes: int | None = None,
        max_passes: int | None = None,
        classes: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 600.0,
        resume: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or Dataset
            Features. C-contiguous float32 or float64 arrays and canonical CSR matrices are used without a copy, but
            where `multi_class="crammer_singer"` and that is faster: arrays that are mostly zeros are copied without
            these, and matrices with many columns are arranged for the cache in a copy. A `Dataset` comes with its own
            classes and weights, and is read in chunks, as often as needed.
        y : array-like of shape (n_samples,)
            Classes: integers, strings, booleans, or whatever else scikit-learn takes for labels.
        sample_weight : array-like of shape (n_samples,), default None
            Factors on C; an example of weight 2 counts as two examples.
        margin : float or array-like of shape (n_samples,), default None
            The margin that is asked of an example, or with several classes a factor on `class_loss`. None: 1.
        passes : int, default None
            Read a `Dataset` so many times at most, and be content with what is learned by then. If the last weights
            have not been certified, `upper_bound_` and `gap_` are infinite. None: read until the gap is within `tol`.
        max_passes : int, default None
            Read a `Dataset` so many times at most, 2 or more, and end with the best weights that have been certified.
            None: `max_iter` times.
        classes : array-like of shape (n_classes,), default None
            The classes of a `Dataset`, where they are known: else those that can be read only once cannot be learned
            from, and others that do not have all classes in one place are read once more.
        checkpoint : path-like, default None
            Where to write all that is known so far while learning from a `Dataset`, every `checkpoint_every` seconds
            and in the end, be that an error or Ctrl-C. An older file is replaced only when the new one is complete.
        checkpoint_every : float, default 600.0
            Seconds between checkpoints.
        resume : path-like, default None
            A checkpoint of the same problem and data to go on from. Reads before it count, and tolerance, limits and
            threads may be others.

        Returns
        -------
        self : SVMClassifier
        """
        if isinstance(X, Dataset):
            reads = Reads(passes, max_passes, checkpoint, checkpoint_every, resume)
            return self._fit_chunks(X, [y, sample_weight, margin], reads, classes)
        refuse(passes=passes, max_passes=max_passes, classes=classes, checkpoint=checkpoint, resume=resume)
        X, y = self._more_of(X, y, onward=False)
        classes = classes_of(y)
        codes = numbered(y, classes)
        if len(classes) < 2:
            raise ValueError(
                f"y holds one class only, {classes[0]!r}: at least 2 classes are needed (n_samples={X.shape[0]})"
            )
        if not np.array_equal(classes, getattr(self, "classes_", classes)):
            self._forget()  # dual variables of other classes are no start
        self.classes_ = classes
        return self._classify(X, y, codes, y, sample_weight, margin)

    def _fit_chunks(self, dataset: Dataset, beside: list[Any], reads: Reads, classes: Any) -> Self:
        alone(beside)
        targets: Array | None = None
        if classes is None:
            if not dataset.reiterable:
                raise ValueError(f"{dataset.name} can be read only once: say what its classes are with classes=...")
            targets = dataset.targets()
            known = classes_of(targets)
        else:
            known = np.unique(as_array(classes, "classes"))
        if len(known) < 2:
            raise ValueError(f"at least 2 classes are needed, got {known.tolist()}")
        if isinstance(self.class_weight, str) and targets is None:
            raise ValueError(f"class_weight={self.class_weight!r} needs the classes of all rows: leave classes out")
        if not np.array_equal(known, getattr(self, "classes_", known)):
            self._forget()  # dual variables of other classes are no start
        self.classes_ = known
        weight = self._class_weight(known if targets is None else targets)
        del targets  # there may be many
        return self._learn_chunks(ClassLearner(self, dataset, reads, weight))

    @learning
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None, margin: Any = None
    ) -> Self:
        """Learn from one more part of a stream.

        The weights learned so far, by `fit` or by earlier parts, are the mean of the prior for this part: the dual
        variables of what came before stay as they are, and its rows are not needed again. The bounds are those of
        this problem.

        Parameters
        ----------
        X, y, sample_weight, margin
            As in `fit`. Not every class must occur in `y`. X may be a `Chunk` of a dataset, with its own classes and
            weights.
        classes : array-like of shape (n_classes,), default None
            All classes there will be. Needed in the first call, if nothing was fitted before.

        Returns
        -------
        self : SVMClassifier
        """
        first = not hasattr(self, "coef_")
        if first:
            if classes is None:
                raise ValueError("classes must be given in the first call of partial_fit: all that will ever occur")
            known = np.unique(as_array(classes, "classes"))
            if len(known) < 2:
                raise ValueError(f"classes must name at least 2 classes, got {known.tolist()}")
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(np.unique(as_array(classes, "classes")), known):
                raise ValueError(f"classes must stay those of the first call, {known.tolist()}, got {classes!r}")
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all examples at once: give partial_fit a dict instead"
            )
        X, y, sample_weight = parted(X, y, sample_weight)
        X, y = self._more_of(X, y, onward=True)
        codes = codes_of(y, known)
        self.classes_ = known
        return self._classify(X, y, codes, known, sample_weight, margin, onward=True)

    def certify(self, X: Any, y: Any = None, sample_weight: Any = None, margin: Any = None) -> Certificate:
        """Prove how good the model is, from the data alone, in one pass over them.

        Both bounds are computed anew, in plain numpy: the objective of the coefficients and intercepts, and the dual
        of the dual variables that `fit` has left, which files hold, too. What is no dual variable of these examples,
        as a file may hold anything, is clipped.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or Dataset
            The rows that the model was fitted to, in their order, from wherever they come.
        y, sample_weight, margin
            As in `fit`.

        Returns
        -------
        Certificate
            ``lower_bound``, ``upper_bound`` and ``gap`` of the problem that the parameters, as they now are, and the
            data state.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from dualsvm import SVMClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> SVMClassifier(random_state=0).fit(X, y).certify(X, y).gap <= 1e-3
        True
        """
        check_is_fitted(self)
        if isinstance(X, Dataset):
            alone([y, sample_weight, margin])
            balanced = isinstance(self.class_weight, str)
            weight = self._class_weight(X.targets() if balanced else self.classes_)
            return certify_chunks(ClassLearner(self, X, Reads(), weight))
        X, y = self._more_of(X, y, onward=True)
        _, outputs, state = self._stated(X, codes_of(y, self.classes_), y, sample_weight, margin)
        return certify_rows(self, X, outputs, state)

    def _classify(
        self, X: Any, y: Array, codes: Array, typical: Array, sample_weight: Any, margin: Any, onward: bool = False
    ) -> Self:
        """Learn from rows and their classes; `typical`: labels, as frequent as class_weight takes them to be."""
        titles, outputs, state = self._stated(X, codes, typical, sample_weight, margin)
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight, "margin": margin}}
        return self._learn(X, outputs, state, data, onward, titles, codes=codes)

    def _stated(
        self, X: Any, codes: Array, typical: Array, sample_weight: Any, margin: Any
    ) -> tuple[list[str], int, State]:
        cost = self._cost(sample_weight, X.shape[0])
        if (weight := self._class_weight(typical)) is not None:
            if not weight[codes].any():
                raise ValueError(_BAD_WEIGHT)
            cost = cost * weight[codes]
        return statement(self, codes, cost, margin)

    def _class_weight(self, typical: Array) -> Array | None:
        """Return the factors on C by class."""
        if self.class_weight is None:
            return None
        weight = np.asarray(compute_class_weight(self.class_weight, classes=self.classes_, y=typical))
        if (weight < 0).any() or not weight.any():
            raise ValueError(_BAD_WEIGHT)
        return weight

    def _shape(self) -> tuple[int, ...]:
        k = len(self.classes_)
        return (1 if k == 2 else k, self.n_features_in_)

    def decision_function(self, X: Any) -> Array:
        """Return the scores: positive for the second of two classes, or one score for every class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        scores = self._scores(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """Return the class with the highest score.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])
