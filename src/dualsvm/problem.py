"""The one problem that every task maps onto."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .checks import LIMIT, Array, as_array, as_class_loss, as_ids, as_number, as_vector
from .mapping import Grouped, Lists, Mapping, Multiclass, Pairs, Signed, TwoSided
from .prior import Prior, as_covariance, as_weights
from .queries import grades, groups
from .rows import Rows, as_rows

Loss = Literal["hinge", "squared_hinge"]


class Problem:
    """Examples whose linear constraints share a slack.

    The problem is, over the weights w,

        minimise  1/2 (w - m)' S^-1 (w - m)  +  sum_i C_i max(0, max_j (l_ij - w.x_ij))

    with ``lower <= w <= upper``, where example i owns the constraints (x_ij, l_ij). The class methods `binary`,
    `regression`, `multiclass`, `ranking` and `lists` state those tasks without forming their constraints.

    Parameters
    ----------
    rows : array-like or sparse matrix of shape (n_rows, n_features)
        The x_ij. A C-contiguous float32 or float64 array and a canonical CSR matrix are used as they are,
        without a copy, and must not change while the problem is in use; anything else is converted.
    margins : float or array-like of shape (n_rows,)
        The l_ij.
    example : array-like of shape (n_rows,), default None
        An integer id for every row, in any order: rows with the same id share a slack. None: every row is an
        example of its own, with its position as its id. Hot starts match examples by id.
    cost : float or array-like of shape (n_examples,), default 1.0
        The C_i: one number, or one per example in the order of ascending ids.
    loss : {"hinge", "squared_hinge"}, default "hinge"
        Whether example i pays ``C_i slack_i`` or ``C_i slack_i ** 2``.
    prior : Prior, default None
        Mean m and covariance S of the weights. None: 0 and the identity.
    lower, upper : float or array-like, default None
        Bounds on the weights, one for all or anything that broadcasts to `weight_shape`; -inf and inf leave
        a coordinate free.

    Attributes
    ----------
    task : str
        "rows", "binary", "regression", "multiclass", "ranking" or "lists".
    rows : ndarray or CSR matrix
        The rows in use: the caller's own object where nothing had to be converted.
    n_examples : int
        Number of slacks.
    weight_shape, alpha_shape : tuple of int
        Shapes of the weights and of the dual variables.

    Examples
    --------
    Two examples; the first has two constraints, and pays only for the worse one.

    >>> import numpy as np
    >>> from dualsvm import Problem, solve
    >>> problem = Problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1.0, 1.0, 2.0], example=[7, 7, 8], cost=10.0)
    >>> problem.n_examples
    2
    >>> solve(problem, tol=1e-9).w.round(4).tolist()
    [1.0, 1.0]
    """

    def __init__(
        self,
        rows: Any,
        margins: ArrayLike,
        example: ArrayLike | None = None,
        cost: ArrayLike = 1.0,
        loss: Loss = "hinge",
        prior: Prior | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> None:
        view = as_rows(rows)
        l = as_vector(margins, "margins", view.n, "row")
        ids = None if example is None else as_ids(example, "example", view.n, "row")
        mapping: Mapping = Signed(l, None, "rows")
        if ids is not None and not (np.diff(ids) > 0).all():
            mapping = Grouped(l, *groups(ids))
        self._set(view, mapping, ids, cost, loss, prior, lower, upper)

    @classmethod
    def binary(
        cls,
        X: Any,
        y: ArrayLike,
        *,
        margin: ArrayLike = 1.0,
        intercept: float = 0.0,
        example: ArrayLike | None = None,
        cost: ArrayLike = 1.0,
        loss: Loss = "hinge",
        prior: Prior | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> Problem:
        """State a binary classification problem: ``y_i w.x_i >= margin_i - slack_i``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Feature rows, as in `Problem`.
        y : array-like of shape (n_examples,)
            Labels, -1 and 1.
        margin : float or array-like of shape (n_examples,), default 1.0
            The margin that is asked of an example.
        intercept : float, default 0.0
            Value of a constant feature appended to every row; 0 appends none. The larger, the less its weight
            is regularised.
        example : array-like of shape (n_examples,), default None
            A distinct integer id for every example, by which hot starts match. None: its position.
        cost : float or array-like of shape (n_examples,), default 1.0
            The C_i, in the order of the rows.
        loss, prior, lower, upper
            As in `Problem`; the weight of the constant feature comes last.

        Returns
        -------
        Problem

        Examples
        --------
        >>> from dualsvm import Problem, solve
        >>> problem = Problem.binary([[0.0], [1.0]], [-1, 1], intercept=1.0, cost=100.0)
        >>> solve(problem, tol=1e-9).w.round(3).tolist()
        [2.0, -1.0]
        """
        rows = as_rows(X, "X", intercept)
        sign = as_array(y, "y")
        if sign.shape != (rows.n,):
            raise ValueError(f"y must hold one label per row of X, shape ({rows.n},), got shape {sign.shape}")
        if sign.dtype.kind not in "fiubO" or not ((sign == 1) | (sign == -1)).all():
            raise ValueError(f"y must hold the labels -1 and 1 only, got {_sample(sign)}")
        l = as_vector(margin, "margin", rows.n, "row")
        mapping = Signed(l, np.array(sign, dtype=np.int8), "binary")
        return cls._made(rows, mapping, example, cost, loss, prior, lower, upper)

    @classmethod
    def regression(
        cls,
        X: Any,
        y: ArrayLike,
        *,
        epsilon: float = 0.0,
        intercept: float = 0.0,
        example: ArrayLike | None = None,
        cost: ArrayLike = 1.0,
        loss: Loss = "hinge",
        prior: Prior | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> Problem:
        """State an epsilon-insensitive regression problem: ``|y_i - w.x_i| <= epsilon + slack_i``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Feature rows, as in `Problem`.
        y : array-like of shape (n_examples,)
            Targets.
        epsilon : float, default 0.0
            Errors up to this size are free.
        intercept, example, cost, loss, prior, lower, upper
            As in `Problem.binary`.

        Returns
        -------
        Problem

        Examples
        --------
        >>> from dualsvm import Problem, solve
        >>> problem = Problem.regression([[1.0], [2.0], [3.0]], [2.0, 4.0, 6.0], cost=100.0)
        >>> solve(problem, tol=1e-9).w.round(4).tolist()
        [2.0]
        """
        rows = as_rows(X, "X", intercept)
        targets = as_array(y, "y")
        if targets.shape != (rows.n,):
            raise ValueError(f"y must hold one target per row of X, shape ({rows.n},), got shape {targets.shape}")
        epsilon = as_number(epsilon, "epsilon")
        if epsilon < 0:
            raise ValueError(f"epsilon must not be negative, got {epsilon}")
        mapping = TwoSided(as_vector(targets, "y", rows.n, "row"), epsilon)
        return cls._made(rows, mapping, example, cost, loss, prior, lower, upper)

    @classmethod
    def multiclass(
        cls,
        X: Any,
        y: ArrayLike,
        *,
        class_loss: ArrayLike | None = None,
        n_classes: int | None = None,
        rescaling: Literal["margin", "slack"] = "margin",
        margin: ArrayLike | None = None,
        intercept: float = 0.0,
        example: ArrayLike | None = None,
        cost: ArrayLike = 1.0,
        loss: Loss = "hinge",
        prior: Prior | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> Problem:
        """State a Crammer-Singer problem: ``(w_y - w_j).x_i >= class_loss[y, j] - slack_i`` for all j.

        With slack rescaling, ``(w_y - w_j).x_i >= 1 - slack_i / class_loss[y, j]`` instead. The weights have shape
        (n_classes, n_features), and so have priors and bounds.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Feature rows, as in `Problem`.
        y : array-like of shape (n_examples,)
            Classes, integers from 0.
        class_loss : array-like of shape (n_classes, n_classes), default None
            What it costs to take the class of the row for that of the column; not negative, and zero on the
            diagonal. None: 1 for every mistake.
        n_classes : int, default None
            Number of classes, where not all of them occur in `y`.
        rescaling : {"margin", "slack"}, default "margin"
            Whether a costly mistake asks for a larger margin, or counts more once the margin is missed.
        margin : float or array-like of shape (n_examples,), default None
            Factor on the margins that are asked of an example. None: 1.
        intercept, example, cost, loss, prior, lower, upper
            As in `Problem.binary`.

        Returns
        -------
        Problem

        Examples
        --------
        >>> import numpy as np
        >>> from dualsvm import Problem, solve
        >>> X = np.eye(3)
        >>> solution = solve(Problem.multiclass(X, [0, 1, 2]), tol=1e-9)
        >>> (X @ solution.w.T).argmax(axis=1).tolist()
        [0, 1, 2]
        """
        rows = as_rows(X, "X", intercept)
        labels = as_ids(y, "y", rows.n, "row of X")
        table = as_class_loss(class_loss, n_classes, labels)
        if not isinstance(rescaling, str) or rescaling not in ("margin", "slack"):
            raise ValueError(f'rescaling must be "margin" or "slack", got {rescaling!r}')
        margins = None if margin is None else as_vector(margin, "margin", rows.n, "row")
        if labels.min() < 0 or labels.max() >= len(table):
            raise ValueError(
                f"y must hold classes from 0 to {len(table) - 1}, got values from {labels.min()} to {labels.max()}"
            )
        mapping = Multiclass(labels.astype(np.int32), table, margins, rescaling == "slack")
        return cls._made(rows, mapping, example, cost, loss, prior, lower, upper)

    @classmethod
    def ranking(
        cls,
        X: Any,
        pairs: ArrayLike,
        *,
        margin: ArrayLike = 1.0,
        example: ArrayLike | None = None,
        cost: ArrayLike = 1.0,
        loss: Loss = "hinge",
        prior: Prior | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> Problem:
        """State preferences between rows: ``w.x[preferred] - w.x[other] >= margin - slack``, one slack a pair.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Feature rows, as in `Problem`. Differences of rows are never formed.
        pairs : array-like of shape (n_pairs, 2)
            The positions of the preferred row and of the other one.
        margin : float or array-like of shape (n_pairs,), default 1.0
            The margin that is asked of a pair.
        example, cost, loss, prior, lower, upper
            As in `Problem.binary`, with one example per pair.

        Returns
        -------
        Problem

        Examples
        --------
        >>> from dualsvm import Problem, solve
        >>> problem = Problem.ranking([[0.0], [1.0], [3.0]], [[1, 0], [2, 1]], cost=10.0)
        >>> solve(problem, tol=1e-9).w.round(4).tolist()
        [1.0]
        """
        rows = as_rows(X, "X")
        table = as_array(pairs, "pairs")
        if table.ndim != 2 or table.shape[1] != 2 or table.dtype.kind not in "iu":
            raise ValueError(
                f"pairs must be integers of shape (n_pairs, 2), got dtype {table.dtype} of shape {table.shape}"
            )
        if len(table) == 0:
            raise ValueError("pairs is empty: give at least one preference")
        if table.min() < 0 or table.max() >= rows.n:
            raise ValueError(
                f"pairs must hold rows of X, 0 to {rows.n - 1}, got values from {table.min()} to {table.max()}"
            )
        table = np.array(table, dtype=np.int64, order="C")
        mapping = Pairs(as_vector(margin, "margin", len(table), "pair"), table)
        return cls._made(rows, mapping, example, cost, loss, prior, lower, upper)

    @classmethod
    def lists(
        cls,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        weight: ArrayLike | None = None,
        margin: float = 1.0,
        cost: ArrayLike = 1.0,
        loss: Loss = "hinge",
        prior: Prior | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> Problem:
        """State lists to be ranked, one slack a list: the sum of what its pairs fall short of the margin.

        With the hinge loss this is `ranking` with all pairs of rows of one list, of which the first has the higher
        `y`. Pairs are never listed: the worst constraint is found by sorting, so that lists may be long.
        Centre rows that lie very far from 0: scores are not taken as differences here, and beside a common offset of
        1e9 or more their rounding shows in the bounds.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Feature rows, as in `Problem`.
        y : array-like of shape (n_rows,)
            Relevance: the higher, the further up.
        qid : array-like of shape (n_rows,), default None
            An integer id for every row, in any order: rows with the same id make a list. None: all make one.
        weight : array-like of shape (n_rows,), default None
            What a row counts, not negative; a pair counts the product. None: 1.
        margin : float, default 1.0
            The margin that is asked of a pair; positive.
        cost : float or array-like of shape (n_lists,), default 1.0
            The C_i: one number, or one per list in the order of ascending ids.
        loss, prior, lower, upper
            As in `Problem`. The squared hinge squares the sum over a list.

        Returns
        -------
        Problem

        Examples
        --------
        >>> from dualsvm import Problem, solve
        >>> problem = Problem.lists([[0.0], [1.0], [3.0], [9.0]], [0, 1, 2, 0], [5, 5, 5, 8], cost=10.0)
        >>> problem.n_examples
        2
        >>> solve(problem, tol=1e-9).w.round(4).tolist()
        [1.0]
        """
        rows = as_rows(X, "X")
        relevance = as_array(y, "y")
        if relevance.shape != (rows.n,):
            raise ValueError(
                f"y must hold one relevance per row of X, shape ({rows.n},), got shape {relevance.shape}"
            )
        relevance = as_vector(relevance, "y", rows.n, "row")
        ids = np.zeros(rows.n, np.int64) if qid is None else as_ids(qid, "qid", rows.n, "row")
        start, member = groups(ids)
        grade = grades(relevance[member], start)
        margin = as_number(margin, "margin")
        if margin <= 0:
            raise ValueError(f"margin must be positive, got {margin}")
        if weight is not None:
            weight = as_vector(weight, "weight", rows.n, "row")[member]
            if weight.min() < 0:
                raise ValueError(f"weight must not be negative, got {weight.min()}")
            if weight.max() > LIMIT**0.5:
                raise ValueError(f"weight must be 1e75 at most, as pairs count the product, got {weight.max()}")
        mapping = Lists(start, member, grade, weight, margin)
        return cls._made(rows, mapping, None, cost, loss, prior, lower, upper)

    @classmethod
    def _made(cls, rows: Rows, mapping: Mapping, example: ArrayLike | None, *rest: Any) -> Problem:
        problem = cls.__new__(cls)
        ids = None
        if example is not None:
            ids = as_ids(example, "example", mapping.n_examples, "example")
            if len(np.unique(ids)) < len(ids):
                raise ValueError(
                    f"example must hold distinct ids here: in a {mapping.task} problem no slack is shared"
                )
        problem._set(rows, mapping, ids, *rest)
        return problem

    def _set(
        self,
        view: Rows,
        mapping: Mapping,
        ids: Array | None,
        cost: ArrayLike,
        loss: str,
        prior: Prior | None,
        lower: ArrayLike | None,
        upper: ArrayLike | None,
    ) -> None:
        if not isinstance(loss, str) or loss not in ("hinge", "squared_hinge"):
            raise ValueError(f'loss must be "hinge" or "squared_hinge", got {loss!r}')
        if prior is not None and not isinstance(prior, Prior):
            raise TypeError(f"prior must be a dualsvm.Prior, got {type(prior).__name__}")
        self.view = view
        self.mapping = mapping
        self.ids = None if ids is None else ids.copy()  # a solution keeps them
        self.loss = loss
        self.cost = as_vector(cost, "cost", mapping.n_examples, "example")
        least = self.cost.min()
        if least < 0:
            raise ValueError(f"cost must not be negative, got {least}")
        if least < 1 / LIMIT and ((self.cost > 0) & (self.cost < 1 / LIMIT)).any():
            raise ValueError("cost must be 0 or at least 1e-150: smaller numbers cannot be computed with")
        prior = prior or Prior()
        self.mean = as_weights(prior.mean, "prior mean", self.weight_shape)
        self.variance = as_weights(prior.variance, "prior variance", self.weight_shape)
        if self.variance is not None and not self.variance.min() > 0:
            raise ValueError(
                f"prior variance must be positive, got {self.variance.min()}: "
                "to fix a weight, set its lower and upper bounds to the same value"
            )
        self.covariance = as_covariance(prior.covariance, view.width)
        self.lower = as_weights(lower, "lower", self.weight_shape, free=-np.inf)
        self.upper = as_weights(upper, "upper", self.weight_shape, free=np.inf)
        if self.lower is not None and self.upper is not None and (self.lower > self.upper).any():
            at = tuple(int(k) for k in np.argwhere(self.lower > self.upper)[0])
            raise ValueError(
                f"lower must not exceed upper, but at weight {at} lower is {self.lower[at]}, upper {self.upper[at]}"
            )
        if self.covariance is not None and (self.lower is not None or self.upper is not None):
            raise ValueError(
                "a full prior covariance cannot be combined with bounds on the weights: "
                "use a diagonal variance, or drop the bounds"
            )

    @property
    def task(self) -> str:
        """Name of the task."""
        return self.mapping.task

    @property
    def rows(self) -> Any:
        """The feature rows in use."""
        return self.view.matrix

    @property
    def n_examples(self) -> int:
        """Number of slacks."""
        return self.mapping.n_examples

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """Shape of the weights."""
        return self.mapping.weight_shape(self.view.width)

    @property
    def alpha_shape(self) -> tuple[int, ...]:
        """Shape of the dual variables."""
        return self.mapping.alpha_shape

    def __repr__(self) -> str:
        kind = "x".join(map(str, self.rows.shape))
        return f"<Problem: {self.task}, {self.n_examples} examples, {kind} {self.rows.dtype} rows, {self.loss}>"


def _sample(values: Array) -> str:
    distinct = sorted(set(values.tolist()), key=repr)[:5]
    return ", ".join(map(repr, distinct))
