"""What the ready-made tasks share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..checks import Array
from ..structured.constraints import Found
from .costs import as_cost
from .labels import Labels, labels_in


class Coded:
    """Examples as a compiled decoder reads them.

    Parameters
    ----------
    decoder : object
        The kernel's.
    price : float or None
        Entries of constraints that could be read in the time of one search; None: a great many.
    """

    def __init__(self, decoder: Any, lengths: Sequence[int] | Array, price: float | None) -> None:
        self.decoder, self.price = decoder, price
        self.lengths = np.asarray(lengths, dtype=np.int64)

    def search(self, which: Array, w: Array, threads: int = 1) -> Found:
        """Return the worst constraints of some examples."""
        which = np.ascontiguousarray(which, dtype=np.int64)
        start, column, x, l, value, bound = self.decoder.search(which, weights_of(w), threads)
        return Found(which, start, column, x, l, value, bound, len(which))

    def decode(self, w: Array, augmented: bool = False, threads: int = 1) -> list[Array]:
        """Return the numbers of the labels of the best output for every example."""
        codes = self.decoder.decode(np.arange(len(self.lengths)), weights_of(w), augmented, threads)
        return np.split(codes, np.cumsum(self.lengths)[:-1]) if len(self.lengths) else []


def as_codes(codes: list[Array] | None, lengths: list[int], names: str, per: str) -> list[Array]:
    """Return the labels of inputs of some lengths, all of them missing where there are none."""
    if codes is None:
        return [np.full(length, -1, dtype=np.int32) for length in lengths]
    for i, (length, code) in enumerate(zip(lengths, codes, strict=True)):
        if len(code) != length:
            raise ValueError(f"{names.format(i)} has {length} {per}, but its output {len(code)} labels")
    return codes


def alike(surveys: Sequence[dict[str, Any]], name: str, what: str) -> int | None:
    """Return the number that all parts of the examples tell, if they tell any."""
    told = {survey[name] for survey in surveys} - {None}
    if len(told) > 1:
        raise ValueError(f"all inputs must have the same number of {what}, got {sorted(told)} in parts of the data")
    return next(iter(told), None)


def compressed(table: Any) -> Any:
    """Return a table in compressed rows; a dense one faster than scipy does."""
    if sp.issparse(table):
        return sp.csr_array(table)
    kept = table != 0
    column = np.broadcast_to(np.arange(table.shape[1], dtype=np.int32), table.shape)[kept]
    start = np.concatenate([[0], np.cumsum(np.count_nonzero(kept, axis=1))])
    return sp.csr_array((table[kept], column, start), shape=table.shape)


def weights_of(w: Any) -> Array:
    """Return weights as the kernel reads them."""
    return np.ascontiguousarray(w, dtype=np.float64)


class LabellingTask:
    """A task whose outputs are vectors of labels, with a compiled search.

    Whoever inherits says how many weights there are (`size_joint_feature`), how examples are encoded (`_code`), and
    what shape an output has (`_shaped`).
    """

    #: attributes beside the parameters that a file has to hold
    learned: tuple[str, ...] = ("_labels", "_width")
    labels: Any
    cost: Any
    normalized: bool
    _cost: Array
    _labels: Labels | None = None
    _width: int | None = None

    def initialize(self, X: Any, Y: Any) -> None:
        """Take note of the labels and of the number of features.

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
            Labels and the number of features.
        """
        labels = labels_in(map(self._flat, Y)) if self.labels is None else []
        return {"labels": labels} | self._measured(X)

    def agree(self, surveys: Sequence[dict[str, Any]]) -> None:
        """Take note of what parts of the examples tell together, as `initialize` does of all.

        Parameters
        ----------
        surveys : sequence
            What `survey` has returned for the parts.
        """
        labels = self._labels_of([label for survey in surveys for label in survey["labels"]])
        self._agree_on(surveys)
        self._labels = labels
        self._settle()

    def _labels_of(self, seen: list[Any]) -> Labels:
        """Return the labels that were named, or else those that were seen."""
        return Labels.of(seen) if self.labels is None else Labels(self.labels)

    def _numbers(self, labels: Labels, Y: Any) -> list[Array]:
        """Return the numbers of the labels of outputs."""
        return [labels.encode(self._flat(y), f"output {i}") for i, y in enumerate(Y)]

    def _costs(self) -> Array:
        """Return what it costs to take one label for another."""
        return as_cost(self.cost, len(self.known_labels))

    def _measured(self, X: Any) -> dict[str, Any]:
        """Return the number of features, which must be the same for all inputs; None if there is none."""
        width = None
        for x in X:
            width = self._width_of(x, width)
        return {"width": width}

    def _agree_on(self, surveys: Sequence[dict[str, Any]]) -> None:
        """Take note of what is told beside labels."""
        self._width = alike(surveys, "width", "features")

    def _width_of(self, x: Any, width: int | None) -> int:
        """Return the number of features of an input, which must be that of the others."""
        raise NotImplementedError

    def _flat(self, y: Any) -> Any:
        """Return an output as a sequence of labels."""
        return y

    def _settle(self) -> None:
        """Check the parameters against labels and features, once these are known."""

    def _code(self, X: Sequence[Any], codes: list[Array] | None, names: str) -> Coded:
        raise NotImplementedError

    def _shaped(self, x: Any, labels: Array) -> Any:
        return labels

    @property
    def known_labels(self) -> Labels:
        """The labels, once they are known."""
        if self._labels is None:
            raise ValueError(
                f"this {type(self).__name__} does not know its labels yet: fit a model, call initialize(X, Y), or "
                "name them by labels=..."
            )
        return self._labels

    def encode(self, X: Sequence[Any], Y: Sequence[Any] | None = None) -> Coded:
        """Return examples as the compiled search reads them.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence, default None
            Outputs; without them only the best outputs can be found.

        Returns
        -------
        Coded
        """
        labels = self.known_labels
        codes = None if Y is None else self._numbers(labels, Y)
        return self._code(X, codes, "input {}")

    def joint_feature(self, x: Any, y: Any) -> tuple[Array, Array]:
        """Return the joint feature vector of an input and an output, as (indices, values).

        Parameters
        ----------
        x : input
            An input.
        y : output
            An output; labels that are missing count nothing.

        Returns
        -------
        indices, values : ndarray
        """
        codes = self.known_labels.encode(self._flat(y), "y")
        return self._code([x], [codes], "x").decoder.joint(0, codes)

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return what it costs to take one output for another.

        Parameters
        ----------
        y, y_hat : output
            The true output and the other one. Labels that are missing cost nothing.

        Returns
        -------
        float
        """
        own, other = (self.known_labels.encode(self._flat(h), n) for h, n in ((y, "y"), (y_hat, "y_hat")))
        if own.shape != other.shape:
            raise ValueError(f"y and y_hat must have the same length, got {len(own)} and {len(other)}")
        return self._loss(own, other)

    def _loss(self, own: Array, other: Array) -> float:
        known = (own >= 0) & (other >= 0)
        total = float(self._cost[own[known], other[known]].sum())
        return total / len(own) if self.normalized and len(own) else total

    def inference(self, x: Any, w: Array) -> Any:
        """Return the best output for an input.

        Parameters
        ----------
        x : input
            An input.
        w : ndarray
            Weights.

        Returns
        -------
        output
        """
        return self.batch_inference([x], w)[0]

    def batch_inference(self, X: Sequence[Any], w: Array, n_jobs: int = 1) -> list[Any]:
        """Return the best outputs for inputs.

        Parameters
        ----------
        X : sequence
            Inputs.
        w : ndarray
            Weights.
        n_jobs : int, default 1
            Number of threads.

        Returns
        -------
        list
        """
        codes = self.encode(X).decode(w, False, n_jobs)
        return [self._shaped(x, self.known_labels.decode(code)) for x, code in zip(X, codes, strict=True)]

    def loss_augmented_inference(self, x: Any, y: Any, w: Array) -> Any:
        """Return the output with the largest sum of its loss and its score.

        Parameters
        ----------
        x, y : input and output
            An example.
        w : ndarray
            Weights.

        Returns
        -------
        output
        """
        (code,) = self.encode([x], [y]).decode(w, True)
        return self._shaped(x, self.known_labels.decode(code))
