"""Sequences whose labels have sub-states that are not observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..checks import Array
from ..rows import Rows
from .base import as_codes
from .chain import Chain, stacked
from .hidden import Hidden, named


class HiddenChain(Hidden, Chain):
    """Sequence labelling with sub-states of the labels, which are not observed: transitions tie those.

    A label lasts through several states, or has kinds that are followed by different labels: what one label remembers
    of those before it is not only what it is. This is `Chain` over the pairs (label, k), where it costs nothing to
    take one state for another of the same label.

    Parameters
    ----------
    n_states : int or dict, default 2
        Number of sub-states of every label, or a dict with one for each.
    normalized : bool, default False
        Whether the loss of a sequence is divided by its length.
    start_end : bool, default True
        Whether there are weights for the first and for the last state.
    cost : array-like of shape (n_labels, n_labels), default None
        What it costs to take the label of the row for that of the column, in the order of `labels`, or else of the
        sorted labels. None: 1 for every wrong label (Hamming).
    labels : sequence, default None
        The labels, of any hashable type. None: those that occur in training.

    Notes
    -----
    Inputs and true outputs are those of `Chain`; completed outputs are lists of pairs (label, k), with k from 0, and
    None where the label is missing. The best states of given labels are found by the Viterbi algorithm, too, with
    those of all other labels forbidden.

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm.tasks import HiddenChain
    >>> X, Y = [np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.1], [2.0, 0.0]])], [["sun", "rain", "rain", "sun"]]
    >>> task = HiddenChain(n_states={"sun": 2, "rain": 1})
    >>> task.initialize(X, Y)
    >>> [h] = task.init_latent(X, Y, random_state=0)
    >>> h[1:3], task.label_from_latent(h).tolist()
    ([('rain', 0), ('rain', 0)], ['sun', 'rain', 'rain', 'sun'])
    >>> w = np.zeros(task.size_joint_feature)
    >>> parts = task.unpack(w)  # views of the weights
    >>> parts.states
    [('rain', 0), ('sun', 0), ('sun', 1)]
    >>> parts.transition[0, 2], parts.start[1] = 1.0, 1.0  # from rain to the second kind of sun
    >>> task.latent(X[0], Y[0], w)
    [('sun', 0), ('rain', 0), ('rain', 0), ('sun', 1)]
    """

    _hidden = "states"

    def __init__(
        self,
        n_states: int | dict[Any, int] = 2,
        normalized: bool = False,
        start_end: bool = True,
        cost: Any = None,
        labels: Sequence[Any] | None = None,
    ) -> None:
        self.n_states = n_states
        self.normalized = normalized
        self.start_end = start_end
        self.cost = cost
        self.labels = labels

    def _stacked(self, X: Any, codes: list[Array]) -> Rows:
        rows, lengths = stacked(X, "input {}", self._width)
        as_codes(codes, lengths, "input {}", "positions")
        return rows

    def _outputs(self, codes: list[Array]) -> list[Any]:
        return [self._named[code].tolist() for code in codes]

    def _shaped(self, x: Any, labels: Array) -> Any:
        return labels.tolist()

    def batch_latent(self, X: Any, Y: Sequence[Any], w: Array, n_jobs: int = 1) -> list[list[Any]]:
        """Return the best completed outputs of true outputs.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence
            Sequences of labels.
        w : ndarray
            Weights.
        n_jobs : int, default 1
            Number of threads.

        Returns
        -------
        list of lists of (label, k), None where the label is missing
        """
        own = self._own(Y)
        forbidden = np.where(self._owner[:, None] == self._owner, 0.0, -np.inf)
        found = self._code(X, own, "input {}", forbidden).decode(w, True, n_jobs)
        return self._outputs([np.where(a < 0, a, h) for a, h in zip(own, found, strict=True)])

    def label_from_latent(self, h: Sequence[Any]) -> Array:
        """Return the labels of a completed output.

        Parameters
        ----------
        h : sequence of (label, k)
            A completed output.

        Returns
        -------
        ndarray
            Labels, None where one is missing.
        """
        codes = self.known_labels.encode(h, "h")
        own = np.where(codes < 0, -1, self._owner[codes])
        return named(self._classes)[own] if (codes < 0).any() else self._classes.decode(own)
