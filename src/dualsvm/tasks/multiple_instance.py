"""Bags of members: a bag is positive where one of its members is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from ..checks import Array, as_array, as_number
from ..linear import SVMClassifier
from ..rows import Rows
from ..solve import as_seed
from .base import compressed, weights_of
from .chain import stacked


class MultipleInstance:
    """Multiple-instance learning: labels of bags, of which it is not known which member makes them positive.

    The score of member z of a bag x is ``member.x_z + intercept``, and that of a bag is the best of its members'. The
    latent value of a positive bag is the member that counts; those of a negative bag must all be negative.

    Parameters
    ----------
    slack : {"bag", "member"}, default "bag"
        Whether a negative bag has one slack, that of its best member, or each of its members one of its own.
    intercept : float, default 1.0
        Value of a constant feature behind the others; 0: none.

    Notes
    -----
    Inputs are bags: arrays or sparse matrices of shape (n_members, n_features). Outputs are 1 and -1, and a latent
    value is the number of a member.

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm.tasks import MultipleInstance
    >>> X = [np.array([[0.1, 0.2], [2.0, 0.1]]), np.array([[0.0, 0.3], [0.2, 0.1], [0.1, 0.0]])]
    >>> task = MultipleInstance()
    >>> task.initialize(X, [1, -1])
    >>> task.init_latent(X, [1, -1], random_state=0)
    [1, None]
    >>> w = np.array([1.0, 0.0, -1.0])
    >>> task.batch_inference(X, w)
    [1, 1]
    >>> task.joint_feature(X[0], 1)
    (array([0, 1, 2], dtype=int32), array([2. , 0.1, 1. ]))
    >>> [z for z, _ in MultipleInstance(slack="member").violations(X[1], w)]
    [1, 2]
    """

    #: attributes beside the parameters that a file has to hold
    learned = ("_width",)
    _width: int | None = None

    def __init__(self, slack: str = "bag", intercept: float = 1.0) -> None:
        self.slack = slack
        self.intercept = intercept

    def initialize(self, X: Sequence[Any], y: Any = None) -> None:
        """Take note of the number of features.

        Parameters
        ----------
        X : iterable
            Bags.
        y : sequence, default None
            Their labels, which are not looked at.
        """
        width = None
        for i, x in enumerate(X):
            width = _width_of(x, width, f"bag {i}")
        if width is None:
            raise ValueError("X holds no bag: give at least one")
        self._width = width
        self._settle()

    def _settle(self) -> None:
        if not isinstance(self.slack, str) or self.slack not in ("bag", "member"):
            raise ValueError(f'slack must be "bag" or "member", got {self.slack!r}')
        as_number(self.intercept, "intercept")

    @property
    def size_joint_feature(self) -> int:
        """Number of weights."""
        if self._width is None:
            raise ValueError(
                "this MultipleInstance does not know its features yet: fit a model, or call initialize(X)"
            )
        return self._width + (as_number(self.intercept, "intercept") != 0)

    def encode(self, X: Sequence[Any]) -> Bags:
        """Return bags with their members in one table, which is searched at once.

        Parameters
        ----------
        X : sequence
            Bags.

        Returns
        -------
        Bags
        """
        return self._encode(X, "bag {}")

    def _encode(self, X: Sequence[Any], names: str) -> Bags:
        width = self._width
        for i, x in enumerate(X):
            width = _width_of(x, width, names.format(i))
        rows, sizes = stacked(X, names, width)
        return Bags(replace(rows, bias=as_number(self.intercept, "intercept")), sizes)

    def joint_feature(self, x: Any, z: int) -> tuple[Array, Array]:
        """Return the joint feature vector of a bag and a member, as (indices, values).

        Parameters
        ----------
        x : array-like or sparse matrix of shape (n_members, n_features)
            A bag.
        z : int
            The number of the member.

        Returns
        -------
        indices, values : ndarray
        """
        size = _shape(x, "x")[0]
        if isinstance(z, bool) or not isinstance(z, int | np.integer) or not 0 <= z < size:
            raise ValueError(f"z must be the number of a member, an integer from 0 to {size - 1}, got {z!r}")
        member = x.tocsr()[[z]] if sp.issparse(x) else np.asarray(x)[[z]]
        _, column, values = self._encode([member], "x").features(np.arange(1))
        return column, values

    def inference(self, x: Any, w: Array) -> int:
        """Return the best member of a bag.

        Parameters
        ----------
        x : array-like or sparse matrix of shape (n_members, n_features)
            A bag.
        w : ndarray
            Weights.

        Returns
        -------
        int
        """
        return int(self._encode([x], "x").best(np.arange(1), w)[0])

    def batch_inference(self, X: Sequence[Any], w: Array, n_jobs: int = 1) -> list[int]:
        """Return the best members of bags.

        Parameters
        ----------
        X : sequence
            Bags.
        w : ndarray
            Weights.
        n_jobs : int, default 1
            Not used: matrix products have threads of their own.

        Returns
        -------
        list of int
        """
        bags = self.encode(X)
        return bags.best(np.arange(len(bags)), w).tolist()

    @property
    def violations(self) -> Callable[[Any, Array], Iterator[tuple[int, tuple[Array, Array]]]] | None:
        """None or, with ``slack="member"``, a function of a negative bag x and weights w.

        It yields (z, joint feature) for the members with ``1 + w.joint_feature(x, z) > 0``.
        """
        return self._violations if self.slack == "member" else None

    def _violations(self, x: Any, w: Array) -> Iterator[tuple[int, tuple[Array, Array]]]:
        _, z, start, column, values = self._encode([x], "x").search(np.arange(1), w, every=True)
        for k, member in enumerate(z.tolist()):
            entries = slice(start[k], start[k + 1])
            yield member, (column[entries], values[entries])

    def init_latent(self, X: Sequence[Any], y: Any, random_state: Any = None) -> list[int | None]:
        """Return members to begin with: the best of positive bags, by a support vector machine of all members.

        For that, members have the labels of their bags, and those of a positive bag together count as one. Where one
        label is absent, nothing tells members apart, and they are drawn.

        Parameters
        ----------
        X : sequence
            Bags.
        y : sequence
            Their labels, 1 and -1.
        random_state : int, RandomState, Generator or None, default None
            Seed of the order in which members are visited, or of the draw.

        Returns
        -------
        list
            The number of a member for each positive bag, None for the others.
        """
        bags, labels = self.encode(X), np.asarray(y)
        if labels.shape != (len(bags),) or not np.isin(labels, (-1, 1)).all():
            raise ValueError(f"y must be 1 or -1 for each of {len(bags)} bags, got {labels.dtype} of {labels.shape}")
        if len(np.unique(labels)) < 2:
            chance = np.random.RandomState(as_seed(random_state)).randint(bags.sizes)
            return [z if own > 0 else None for z, own in zip(chance.tolist(), labels, strict=True)]
        label = np.repeat(labels, bags.sizes)
        weight = np.where(label > 0, 1 / np.repeat(bags.sizes, bags.sizes), 1.0)
        model = SVMClassifier(max_iter=1000, random_state=random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is but a start
            model.fit(bags.rows.matrix, label, sample_weight=weight)
        w = np.zeros(bags.rows.width)  # without the intercept, which is the same for all members
        w[: model.coef_.size] = model.coef_.ravel()
        best = bags.best(np.arange(len(bags)), w)
        return [z if own > 0 else None for z, own in zip(best.tolist(), labels, strict=True)]

    def unpack(self, w: Array) -> Bunch:
        """Return the named parts of weights.

        Parameters
        ----------
        w : ndarray
            Weights.

        Returns
        -------
        Bunch
            `member`, the weights of the features, and `intercept`, what is added to every score.
        """
        w = np.asarray(w)
        if w.shape != (self.size_joint_feature,):
            raise ValueError(f"w must have shape ({self.size_joint_feature},), got {w.shape}")
        width = int(self._width or 0)
        return Bunch(member=w[:width], intercept=float(self.intercept * w[width:].sum()))


class Bags:
    """Bags with their members in one table."""

    def __init__(self, rows: Rows, sizes: Sequence[int]) -> None:
        self.rows, self.sizes = rows, np.asarray(sizes, dtype=np.int64)
        self.start = np.cumsum(self.sizes) - self.sizes

    def __len__(self) -> int:
        return len(self.sizes)

    def search(
        self, which: Array, w: Array, threads: int = 1, every: bool = False
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Return the best members of some bags, or every one whose score exceeds -1, with their joint features.

        Parameters
        ----------
        which : ndarray of int
            Numbers of bags.
        w : ndarray
            Weights.
        threads : int, default 1
            Not used: matrix products have threads of their own.
        every : bool, default False
            Whether to return every member with ``1 + w.joint_feature(x, z) > 0``.

        Returns
        -------
        line, z : ndarray
            Places in `which`, in their order, and numbers of members.
        start, column, x : ndarray
            Joint features in compressed rows.
        """
        which = np.asarray(which, dtype=np.int64)
        if not every:
            line, z = np.arange(len(which)), self.best(which, w)
        else:
            line, members, scores = self._scores(which, w)
            kept = np.flatnonzero(1 + scores > 0)
            line = line[kept]
            z = members[kept] - self.start[which[line]]
        return line, z, *self.features(self.start[which[line]] + z)

    def best(self, which: Array, w: Array) -> Array:
        """Return the numbers of the best members of some bags, of equal ones the first."""
        line, members, scores = self._scores(which, w)
        sizes = self.sizes[which]
        if not len(sizes):
            return np.empty(0, dtype=np.int64)
        top = np.flatnonzero(scores == np.repeat(np.maximum.reduceat(scores, np.cumsum(sizes) - sizes), sizes))
        return members[top[np.searchsorted(line[top], np.arange(len(which)))]] - self.start[which]

    def _scores(self, which: Array, w: Array) -> tuple[Array, Array, Array]:
        """Return, for all members of some bags, the bag's place in `which`, their own in the table, and scores."""
        w = weights_of(w)
        if w.shape != (self.rows.width,):
            raise ValueError(f"w must have shape ({self.rows.width},), got {w.shape}")
        sizes = self.sizes[which]
        line = np.repeat(np.arange(len(which)), sizes)
        members = np.arange(len(line)) + (self.start[which] - np.cumsum(sizes) + sizes)[line]
        if 2 * len(members) > self.rows.n:  # to pick scores is less than to copy members
            return line, members, self.rows.scores(w)[members]
        return line, members, replace(self.rows, matrix=self.rows.matrix[members]).scores(w)

    def features(self, members: Array) -> tuple[Array, Array, Array]:
        """Return joint features of members in compressed rows: starts, columns and entries."""
        table = compressed(self.rows.matrix[members])
        table.eliminate_zeros()  # which a sparse matrix may hold; this one is a copy
        start, column, x = table.indptr.astype(np.int64), table.indices, table.data.astype(np.float64)
        if self.rows.bias != 0:
            column = np.insert(column, start[1:], table.shape[1])
            x = np.insert(x, start[1:], self.rows.bias)
            start += np.arange(len(start))
        return start, column.astype(np.int32), x


def _shape(x: Any, name: str) -> tuple[int, ...]:
    shape = x.shape if sp.issparse(x) else as_array(x, name).shape
    if len(shape) != 2:
        raise ValueError(f"{name} must have shape (n_members, n_features), got {shape}")
    return shape


def _width_of(x: Any, width: int | None, name: str) -> int:
    """Return the number of features of a bag, which must be that of the others."""
    shape = _shape(x, name)
    if shape[0] == 0:
        raise ValueError(f"{name} has no members: leave it out")
    if width is not None and shape[1] != width:
        raise ValueError(f"{name} has {shape[1]} features, but the others have {width}")
    return int(shape[1])
