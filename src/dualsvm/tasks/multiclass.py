"""One label for an input, out of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from ..checks import Array
from ..rows import Rows, as_rows
from ..structured.constraints import Found
from .base import Coded, LabellingTask, compressed, weights_of
from .chain import stacked
from .labels import Labels

_CHUNK = 1 << 20  # numbers of a part


class Multiclass(LabellingTask):
    """Classification into several classes, with one weight for every class and feature (Crammer and Singer).

    The score of label y for an input x is ``unary[y].x``: the joint feature vector holds x in the block of y, and the
    blocks of the labels follow one another. As a structured task this is the problem of ``SVMClassifier(multi_class=
    "crammer_singer", fit_intercept=False)``, which solves it faster.

    Parameters
    ----------
    cost : array-like of shape (n_labels, n_labels), default None
        What it costs to take the label of the row for that of the column, in the order of `labels`, or else of the
        sorted labels. None: 1 for every mistake.
    labels : sequence, default None
        The labels, of any hashable type. None: those that occur in training.

    Notes
    -----
    Inputs are vectors of features or sparse matrices of one row, or all of them the rows of one array or sparse
    matrix; outputs are labels. For several examples at once the scores are one matrix product. The exact search of
    slack rescaling, `slack_inference`, tries all labels.

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm import StructuredSVM
    >>> from dualsvm.tasks import Multiclass
    >>> X = np.array([[1.0, 0.1], [0.9, -0.2], [-0.1, 1.0], [0.2, 1.1], [-1.0, -0.9], [-0.8, -1.0]])
    >>> Y = ["east", "east", "north", "north", "other", "other"]
    >>> model = StructuredSVM(Multiclass(), C=10.0, random_state=0).fit(X, Y)
    >>> model.predict([[2.0, 0.0], [0.0, 2.0]]), model.gap_ <= 1e-3
    (['east', 'north'], True)
    >>> model.task.unpack(model.coef_).unary.shape
    (3, 2)
    """

    normalized = False

    def __init__(self, cost: Any = None, labels: Sequence[Any] | None = None) -> None:
        self.cost = cost
        self.labels = labels

    def _flat(self, y: Any) -> list[Any]:
        return [y]

    def _numbers(self, labels: Labels, Y: Any) -> list[Array]:
        try:
            return list(labels.encode(list(Y), "Y")[:, None])
        except ValueError:  # whose fault it is
            return super()._numbers(labels, Y)

    def _measured(self, X: Any) -> dict[str, Any]:
        return super()._measured(X[:1] if _is_table(X) else X)

    def _width_of(self, x: Any, width: int | None) -> int:
        return _line(x, width).shape[1]

    def _settle(self) -> None:
        n = len(self.known_labels)
        self._cost = self._costs()
        if n * int(self._width or 0) >= 2**31:
            raise ValueError(f"{n} labels and {self._width} features make 2**31 weights or more: use fewer")

    @property
    def size_joint_feature(self) -> int:
        """Number of weights."""
        return len(self.known_labels) * int(self._width or 0)

    def _code(self, X: Any, codes: list[Array] | None, names: str) -> Classes:
        width = int(self._width or 0) if len(self.known_labels) else 0
        if _is_table(X):
            if X.shape[1] != width:
                raise ValueError(f"inputs must have {width} features, as the first one in training, got {X.shape[1]}")
            rows = as_rows(X, names.format("..."))
        else:
            rows, _ = stacked([_line(x, width, f"{names.format(i)}: ") for i, x in enumerate(X)], names, width)
        own = None if codes is None else np.array(codes, dtype=np.int64).reshape(-1)
        if own is not None and len(own) != rows.n:
            raise ValueError(f"X and Y must have the same length, got {rows.n} and {len(own)}")
        if own is not None and own.min() < 0:
            raise ValueError(f"{names.format(own.argmin())} has no label: leave such examples out")
        return Classes(rows, own, self._cost)

    def _shaped(self, x: Any, labels: Array) -> Any:
        label = labels[0]
        return label.item() if isinstance(label, np.generic) else label

    def slack_inference(self, x: Any, y: Any, w: Array) -> Any:
        """Return the label h with the largest ``loss(y, h) (1 - w.(phi(x, y) - phi(x, h)))``.

        Parameters
        ----------
        x, y : input and output
            An example.
        w : ndarray
            Weights.

        Returns
        -------
        label
        """
        (own,) = self.known_labels.encode([y], "y")
        scores = self._code([x], None, "x").scores(np.arange(1), weights_of(w))[0]
        worst = int(np.argmax(self._cost[own] * (1 - scores[own] + scores)))
        return self.known_labels.values[worst]

    def unpack(self, w: Array) -> Bunch:
        """Return the named parts of weights.

        Parameters
        ----------
        w : ndarray
            Weights.

        Returns
        -------
        Bunch
            `unary` (labels x features) and `labels`.
        """
        w = np.asarray(w)
        if w.shape != (self.size_joint_feature,):
            raise ValueError(f"w must have shape ({self.size_joint_feature},), got {w.shape}")
        return Bunch(unary=w.reshape(len(self.known_labels), -1), labels=self.known_labels.values)


class Classes(Coded):
    """Examples of which the scores of all labels are one matrix product."""

    def __init__(self, rows: Rows, own: Array | None, cost: Array) -> None:
        # a product reads faster than entries of constraints, which are written, too
        price = rows.numbers / max(1, rows.n) * (4 + len(cost) / 4)
        super().__init__(self, np.ones(rows.n, dtype=np.int64), price)
        self.rows, self.own, self.cost = rows, own, cost

    def scores(self, which: Array, w: Array, labels: slice = slice(None)) -> Array:
        """Return examples x labels, or some of these, by products in parts: rows are copied, perhaps converted."""
        unary = w.reshape(len(self.cost), -1)[labels].T
        out = np.empty((len(which), unary.shape[1]))
        for part in self._parts(len(which)):
            out[part] = self.rows.matrix[which[part]] @ unary
        return out

    def _parts(self, n: int) -> list[slice]:
        """Return n examples in parts that a cache holds."""
        size = max(1, _CHUNK * self.rows.n // max(1, self.rows.numbers))
        return [slice(k, k + size) for k in range(0, max(1, n), size)]

    def search(self, which: Array, w: Array, threads: int = 1) -> Found:
        """Return the worst constraints of some examples."""
        which = np.ascontiguousarray(which, dtype=np.int64)
        own, worst, value = self._worst(which, weights_of(w))
        parts = [self._differences(which[part], own[part], worst[part]) for part in self._parts(len(which))]
        counts, column, x = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        start = np.concatenate([[0], np.cumsum(counts)])
        return Found(which, start, column, x, self.cost[own, worst], value, value, len(which))

    def decode(self, w: Array, augmented: bool = False, threads: int = 1) -> list[Array]:
        """Return the number of the label of the best output for every example."""
        everything = np.arange(self.rows.n)
        if augmented:
            return list(self._worst(everything, weights_of(w))[1][:, None])
        return list(self.scores(everything, weights_of(w)).argmax(axis=1)[:, None])

    def joint(self, i: int, codes: Array) -> tuple[Array, Array]:
        """Return the joint feature vector of an example and a label."""
        row = sp.csr_array(self.rows.matrix[[i]])
        return codes[0] * np.int64(self.rows.width) + row.indices, row.data

    def _worst(self, which: Array, w: Array) -> tuple[Array, Array, Array]:
        assert self.own is not None, "without outputs only the best ones can be found"
        own, at = self.own[which], np.arange(len(which))
        scores = self.scores(which, w)
        true = scores[at, own]
        scores += self.cost[own]
        worst = scores.argmax(axis=1)
        return own, worst, scores[at, worst] - true

    def _differences(self, which: Array, own: Array, other: Array) -> tuple[Array, Array, Array]:
        """Return x in the block of `own` minus x in that of `other`: counts (0 if they agree), columns, entries."""
        differ = np.flatnonzero(own != other)
        table = compressed(self.rows.matrix[which[differ]])
        twice = table[np.repeat(np.arange(len(differ)), 2)]
        counts = np.diff(twice.indptr).astype(np.int64)
        block = np.sort(np.column_stack([own, other])[differ], axis=1).ravel()
        sign = np.where(block == np.repeat(own[differ], 2), 1.0, -1.0)
        entries = np.zeros(len(which), dtype=np.int64)
        entries[differ] = counts.reshape(-1, 2).sum(axis=1)
        column = twice.indices.astype(np.int32) + np.repeat((block * self.rows.width).astype(np.int32), counts)
        return entries, column, twice.data * np.repeat(sign, counts)


def _is_table(X: Any) -> bool:
    return (isinstance(X, np.ndarray) or sp.issparse(X)) and X.ndim == 2


def _line(x: Any, width: int | None, name: str = "") -> Any:
    """Return an input as a matrix of one row."""
    x = x.reshape(1, -1) if sp.issparse(x) and (x.ndim == 1 or x.shape[0] == 1) else x
    line = x if sp.issparse(x) else np.asarray(x)[None]
    if line.ndim != 2 or line.shape[0] != 1:
        raise ValueError(f"{name}an input must be a vector of features, got shape {line.shape[not sp.issparse(x) :]}")
    if width is not None and line.shape[1] != width:
        raise ValueError(f"{name}every input must have {width} features, as the first has, got {line.shape[1]}")
    return line
