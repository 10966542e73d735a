"""Joint features that are sums of rows of the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..checks import Array
from ..rows import Rows
from ..structured.constraints import Found
from .base import alike, weights_of
from .chain import stacked

_ALONE = 20_000  # entries that are read in the time that Python takes for an example


class Summed:
    """Examples whose joint features are sums of rows, searched one after the other."""

    def __init__(self, task: SumTask, rows: Rows, shapes: list[tuple[int, ...]], truths: list[Any] | None) -> None:
        self.task, self.rows, self.shapes, self.truths = task, rows, shapes, truths
        self.start = np.concatenate([[0], np.cumsum([np.prod(shape) for shape in shapes])]).astype(np.int64)
        self.own = (
            None if truths is None else [task._coefficients(*pair) for pair in zip(truths, shapes, strict=True)]
        )
        self.price = _ALONE + rows.numbers / max(1, len(shapes))

    def scores(self, which: Array, w: Array) -> list[Array]:
        """Return the scores of the rows of some examples."""
        parts = [np.arange(self.start[i], self.start[i + 1]) for i in which]
        scores = self.rows.matrix[np.concatenate([np.empty(0, np.int64), *parts])] @ weights_of(w)
        cuts = np.cumsum([len(part) for part in parts])[:-1]
        return [part.reshape(self.shapes[i]) for i, part in zip(which, np.split(scores, cuts), strict=True)]

    def search(self, which: Array, w: Array, threads: int = 1) -> Found:
        """Return the worst constraints of some examples."""
        assert self.truths is not None, "without outputs only the best ones can be found"
        assert self.own is not None
        which = np.ascontiguousarray(which, dtype=np.int64)
        row, factor, start = [], [], [0]
        l, value = np.empty(len(which)), np.empty(len(which))
        for k, (i, scores) in enumerate(zip(which, self.scores(which, w), strict=True)):
            difference, l[k] = self.task._worst(scores, self.truths[i], self.own[i])
            kept = np.flatnonzero(difference)
            row.append(self.start[i] + kept)
            factor.append(difference[kept])
            start.append(start[-1] + len(kept))
            value[k] = l[k] - factor[k] @ scores.reshape(-1)[kept]
        sums = sp.csr_array((np.concatenate(factor), np.concatenate(row), start), shape=(len(which), self.rows.n))
        x = sp.csr_array(sums @ self.rows.matrix)
        x.sort_indices()
        column, begin = x.indices.astype(np.int32), x.indptr.astype(np.int64)
        return Found(which, begin, column, x.data.astype(np.float64), l, value, value, len(which))


class SumTask:
    """A task whose joint feature is ``sum_r c_r(y) x_r`` over the rows x_r of the input.

    Whoever inherits says what an input is (`_shape`), checks outputs (`_read`), knows their coefficients c
    (`_coefficients`) and losses (`_loss`), and finds the best one for scores of the rows (`_best`).
    """

    #: attributes beside the parameters that a file has to hold
    learned = ("_width",)
    _width: int | None = None

    def initialize(self, X: Any, Y: Any) -> None:
        """Take note of the number of features.

        Parameters
        ----------
        X, Y : iterables
            Inputs and outputs.
        """
        self.agree([self.survey(X, Y)])

    def survey(self, X: Any, Y: Any) -> dict[str, Any]:
        """Return what a part of the examples tells, for `agree`.

        Parameters
        ----------
        X, Y : iterables
            Inputs and outputs.

        Returns
        -------
        dict
            The number of features.
        """
        self._settle()
        width = None
        for x in X:
            self._shape(x, width, "an input")
            width = int(x.shape[-1] if sp.issparse(x) else np.shape(x)[-1])
        return {"width": width}

    def agree(self, surveys: Sequence[dict[str, Any]]) -> None:
        """Take note of what parts of the examples tell together, as `initialize` does of all.

        Parameters
        ----------
        surveys : sequence
            What `survey` has returned for the parts.
        """
        self._width = alike(surveys, "width", "features")

    def _settle(self) -> None:
        """Check the parameters."""

    @property
    def size_joint_feature(self) -> int:
        """Number of weights."""
        if self._width is None:
            raise ValueError(
                f"this {type(self).__name__} does not know the number of features yet: fit a model or call "
                "initialize(X, Y)"
            )
        return self._width

    def _shape(self, x: Any, width: int | None, name: str) -> tuple[int, ...]:
        """Return the shape of the scores of an input, which must have `width` features."""
        raise NotImplementedError

    def _read(self, y: Any, shape: tuple[int, ...] | None, name: str, true: bool) -> Array:
        """Check an output, the true one or another, for scores of some shape."""
        raise NotImplementedError

    def _coefficients(self, y: Array, shape: tuple[int, ...]) -> Array:
        raise NotImplementedError

    def _best(self, scores: Array, y: Array | None) -> Array:
        """Return the output with the largest score or, with a true output, of loss and score together."""
        raise NotImplementedError

    def _worst(self, scores: Array, y: Array, own: Array) -> tuple[Array, float]:
        """Return coefficients of the true output minus those of the worst, and the loss of the latter."""
        h = self._best(scores, y)
        return own - self._coefficients(h, scores.shape), self._loss(y, h)

    def _loss(self, y: Array, h: Array) -> float:
        raise NotImplementedError

    def encode(self, X: Sequence[Any], Y: Sequence[Any] | None = None, names: str = "input {}") -> Summed:
        """Return examples, checked, as the search reads them.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence, default None
            Outputs; without them only the best outputs can be found.
        names : str, default "input {}"
            What errors call an input.

        Returns
        -------
        Summed
        """
        shapes = [self._shape(x, self.size_joint_feature, names.format(i)) for i, x in enumerate(X)]
        flat = [x if sp.issparse(x) else np.asarray(x).reshape(-1, self.size_joint_feature) for x in X]
        rows, _ = stacked(flat, names, self._width)
        truths = None
        if Y is not None:
            truths = [self._read(y, s, f"output {i}", True) for i, (y, s) in enumerate(zip(Y, shapes, strict=True))]
        return Summed(self, rows, shapes, truths)

    def joint_feature(self, x: Any, y: Any) -> Array:
        """Return the joint feature vector of an input and an output.

        Parameters
        ----------
        x : input
            An input.
        y : output
            An output.

        Returns
        -------
        ndarray of shape (n_features,)
        """
        coded = self.encode([x], names="x")
        y = self._read(y, coded.shapes[0], "y", False)
        return np.asarray(self._coefficients(y, coded.shapes[0]) @ coded.rows.matrix)

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return what it costs to take one output for another.

        Parameters
        ----------
        y, y_hat : output
            The true output and the other one.

        Returns
        -------
        float
        """
        y, other = self._read(y, None, "y", True), self._read(y_hat, None, "y_hat", False)
        if other.ndim == 1 and len(y) != len(other):
            raise ValueError(f"y and y_hat must have the same length, got {len(y)} and {len(other)}")
        return self._loss(y, other)

    def inference(self, x: Any, w: Array) -> Array:
        """Return the best output for an input.

        Parameters
        ----------
        x : input
            An input.
        w : ndarray
            Weights.

        Returns
        -------
        ndarray
        """
        return self._best(self.encode([x], names="x").scores(np.arange(1), w)[0], None)

    def batch_inference(self, X: Sequence[Any], w: Array, n_jobs: int = 1) -> list[Array]:
        """Return the best outputs for inputs.

        Parameters
        ----------
        X : sequence
            Inputs.
        w : ndarray
            Weights.
        n_jobs : int, default 1
            Not used: one thread searches.

        Returns
        -------
        list of ndarray
        """
        return [self._best(scores, None) for scores in self.encode(X).scores(np.arange(len(X)), w)]

    def loss_augmented_inference(self, x: Any, y: Any, w: Array) -> Array:
        """Return the output with the largest sum of its loss and its score.

        Parameters
        ----------
        x, y : input and output
            An example.
        w : ndarray
            Weights.

        Returns
        -------
        ndarray
        """
        (scores,) = self.encode([x], names="x").scores(np.arange(1), w)
        return self._best(scores, self._read(y, scores.shape, "y", True))
