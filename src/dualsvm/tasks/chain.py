"""Sequences: a label at every position, and transitions between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from .. import _core
from ..checks import Array
from ..rows import Rows, as_rows
from .base import Coded, LabellingTask, as_codes, weights_of


class Chain(LabellingTask):
    """Sequence labelling: every position has features and a label, neighbours are tied by transitions.

    The score of labels y for a sequence x is ``sum_t unary[y_t].x_t + sum_t transition[y_t, y_(t+1)] + start[y_1] +
    end[y_T]``, and the best labels are found by the Viterbi algorithm.

    Parameters
    ----------
    normalized : bool, default False
        Whether the loss of a sequence is divided by its length.
    start_end : bool, default True
        Whether there are weights for the first and for the last label.
    cost : array-like of shape (n_labels, n_labels), default None
        What it costs to take the label of the row for that of the column, in the order of `labels`, or else of the
        sorted labels. None: 1 for every wrong label (Hamming).
    labels : sequence, default None
        The labels, of any hashable type. None: those that occur in training.

    Notes
    -----
    Inputs are arrays or sparse matrices of shape (length, n_features); outputs are sequences of labels. A position
    whose label is None or NaN is left out in training, together with its transitions, and gets a label when
    predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm import StructuredSVM
    >>> from dualsvm.tasks import Chain
    >>> rng = np.random.default_rng(0)
    >>> Y = [rng.choice(["sun", "rain"], size=6) for _ in range(20)]
    >>> X = [np.column_stack([y == "sun", y == "rain"]) + 0.2 * rng.normal(size=(6, 2)) for y in Y]
    >>> model = StructuredSVM(Chain(), C=1.0, random_state=0).fit(X, Y)
    >>> model.score(X, Y), model.gap_ <= 1e-3
    (1.0, True)
    >>> model.task.unpack(model.coef_).transition.shape
    (2, 2)
    """

    def __init__(
        self, normalized: bool = False, start_end: bool = True, cost: Any = None, labels: Sequence[Any] | None = None
    ) -> None:
        self.normalized = normalized
        self.start_end = start_end
        self.cost = cost
        self.labels = labels

    def _width_of(self, x: Any, width: int | None) -> int:
        return as_width(x, width)

    def _settle(self) -> None:
        n = len(self.known_labels)
        self._cost = self._costs()
        if self.size_joint_feature >= 2**31:
            raise ValueError(f"{n} labels and {self._width} features make 2**31 weights or more: use fewer")

    @property
    def size_joint_feature(self) -> int:
        """Number of weights."""
        n = len(self.known_labels)
        return int(self._width or 0) * n + n * n + (2 * n if self.start_end else 0)

    def _code(self, X: Sequence[Any], codes: list[Array] | None, names: str, cost: Array | None = None) -> Coded:
        n = len(self.known_labels)
        rows, lengths = stacked(X, names, self._width)
        codes = as_codes(codes, lengths, names, "positions")
        start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        spec = {
            "start": start,
            "label": np.concatenate([np.empty(0, np.int32), *codes]),
            "cost": self._cost if cost is None else cost,
            "normalized": bool(self.normalized),
            "start_end": bool(self.start_end),
        }
        numbers = np.count_nonzero(rows.matrix) if isinstance(rows.matrix, np.ndarray) else rows.numbers
        price = (numbers * n + start[-1] * n * n) / max(1, len(lengths)) / 2
        return Coded(_core.chains(rows.kernel, spec), lengths, price)

    def k_best(self, x: Any, w: Array, k: int) -> list[tuple[Any, float]]:
        """Return the k best outputs for an input, with their scores, best first.

        Parameters
        ----------
        x : array-like or sparse matrix of shape (length, n_features)
            An input.
        w : ndarray
            Weights.
        k : int
            How many; there may be fewer.

        Returns
        -------
        list of (output, score)
        """
        codes, scores = self.encode([x]).decoder.best(0, weights_of(w), int(k))
        lines = codes.reshape(len(scores), -1)
        outputs = [self._shaped(x, self.known_labels.decode(line)) for line in lines]
        return list(zip(outputs, scores.tolist(), strict=True))

    def unpack(self, w: Array) -> Bunch:
        """Return the named parts of weights.

        Parameters
        ----------
        w : ndarray
            Weights.

        Returns
        -------
        Bunch
            `unary` (labels x features), `transition` (from x to), `start` and `end` (None without), and `labels`.
        """
        n, width = len(self.known_labels), int(self._width or 0)
        w = np.asarray(w)
        if w.shape != (self.size_joint_feature,):
            raise ValueError(f"w must have shape ({self.size_joint_feature},), got {w.shape}")
        unary, transition, *ends = np.split(w, np.cumsum([width * n, n * n, n])[: 3 if self.start_end else 1])
        start, end = ends if ends else (None, None)
        return Bunch(
            unary=unary.reshape(width, n).T,
            transition=transition.reshape(n, n),
            start=start,
            end=end,
            labels=self.known_labels.values,
        )


def as_width(x: Any, width: int | None) -> int:
    """Return the number of features of an input, which must be that of the others."""
    shape = np.shape(x) if not sp.issparse(x) else x.shape
    if len(shape) != 2:
        raise ValueError(f"an input must have shape (length, n_features), got {shape}")
    if width is not None and shape[1] != width:
        raise ValueError(f"every input must have {width} features, as the first has, got {shape[1]}")
    return int(shape[1])


def stacked(X: Sequence[Any], names: str, width: int | None) -> tuple[Rows, list[int]]:
    """Return the rows of several inputs as one matrix, and how many each has."""
    lengths = []
    for i, x in enumerate(X):
        try:
            as_width(x, width)
        except ValueError as error:
            raise ValueError(f"{names.format(i)}: {error}") from None
        lengths.append(int(x.shape[0] if sp.issparse(x) else np.shape(x)[0]))
    if not sum(lengths):
        return Rows(np.zeros((0, int(width or 0)))), lengths
    try:
        return as_rows(_joined(X, sum(lengths), width), names.format("...")), lengths
    except ValueError:
        for i, x in enumerate(X):  # whose fault it is
            if lengths[i]:
                as_rows(x, names.format(i))
        raise


def _joined(X: Sequence[Any], length: int, width: int | None) -> Any:
    if any(sp.issparse(x) for x in X):
        parts = [sp.csr_array(x) for x in X]
        start = np.concatenate([[0], np.cumsum([part.nnz for part in parts])])
        if start[-1] >= 2**31:
            raise ValueError(
                "the inputs hold 2**31 numbers or more: give X as a lazy sequence, which is read in parts"
            )
        indptr = np.concatenate([[0], *(part.indptr[1:] + s for part, s in zip(parts, start[:-1], strict=True))])
        data = np.concatenate([part.data for part in parts])
        column = np.concatenate([part.indices for part in parts])
        shape = length, int(width or parts[0].shape[1])
        return sp.csr_array((data, column.astype(np.int32), indptr.astype(np.int32)), shape=shape)
    return np.concatenate([np.asarray(x) for x in X])
