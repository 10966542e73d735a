"""One label for an input, where each label has sub-types that are not observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..checks import Array
from ..rows import Rows
from .base import weights_of
from .hidden import Hidden, joined
from .multiclass import Multiclass


class HiddenMulticlass(Hidden, Multiclass):
    """Classification into classes that are mixtures of sub-types, which are not observed.

    The score of label y and type k for an input x is ``unary[y, k].x``, and that of a label is the best of its types:
    a class need not be convex. This is `Multiclass` over the pairs (y, k), where it costs nothing to take one type
    for another of the same label.

    Parameters
    ----------
    n_types : int or dict, default 2
        Number of sub-types of every label, or a dict with one for each.
    cost : array-like of shape (n_labels, n_labels), default None
        What it costs to take the label of the row for that of the column, in the order of `labels`, or else of the
        sorted labels. None: 1 for every mistake.
    labels : sequence, default None
        The labels, of any hashable type. None: those that occur in training.

    Notes
    -----
    Inputs are those of `Multiclass`, true outputs are labels, and completed outputs pairs (label, k), with k from 0.
    For several examples at once the scores are matrix products.

    Examples
    --------
    Two classes of two clouds each, which no line separates.

    >>> import numpy as np
    >>> from dualsvm.tasks import HiddenMulticlass
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.1], [0.1, 1.0], [0.0, -1.0], [1.1, 0.0], [0.0, -1.2]])
    >>> Y = ["flat", "flat", "steep", "steep", "flat", "steep"]
    >>> task = HiddenMulticlass()
    >>> task.initialize(X, Y)
    >>> H = task.init_latent(X, Y, random_state=0)
    >>> H[0] == H[4] != H[1], [task.label_from_latent(h) for h in H] == Y
    (True, True)
    >>> w = np.array([1.0, 0.0, -1.0, 0.0, 0.0, 1.0, 0.0, -1.0])
    >>> task.batch_inference(X[:4], w)
    [('flat', 0), ('flat', 1), ('steep', 0), ('steep', 1)]
    >>> task.latent([0.5, 2.0], "flat", w)
    ('flat', 0)
    >>> task.loss(("flat", 0), ("flat", 1)), task.loss(("flat", 0), ("steep", 0))
    (0.0, 1.0)
    """

    _hidden = "types"

    def __init__(
        self, n_types: int | dict[Any, int] = 2, cost: Any = None, labels: Sequence[Any] | None = None
    ) -> None:
        self.n_types = n_types
        self.cost = cost
        self.labels = labels

    def _stacked(self, X: Any, codes: list[Array]) -> Rows:
        return self._code(X, codes, "input {}").rows

    def _outputs(self, codes: list[Array]) -> list[Any]:
        return self._named[joined(codes)].tolist()

    def batch_inference(self, X: Any, w: Array, n_jobs: int = 1) -> list[tuple[Any, int]]:
        """Return the best completed outputs for inputs.

        Parameters
        ----------
        X : sequence, array or sparse matrix
            Inputs.
        w : ndarray
            Weights.
        n_jobs : int, default 1
            Not used: matrix products have threads of their own.

        Returns
        -------
        list of (label, k)
        """
        return self._outputs(self.encode(X).decode(w))

    def batch_latent(self, X: Any, Y: Sequence[Any], w: Array, n_jobs: int = 1) -> list[tuple[Any, int]]:
        """Return the best completed outputs of true outputs.

        Parameters
        ----------
        X : sequence, array or sparse matrix
            Inputs.
        Y : sequence
            Labels.
        w : ndarray
            Weights.
        n_jobs : int, default 1
            Not used: matrix products have threads of their own.

        Returns
        -------
        list of (label, k)
        """
        own = self._own(Y)
        coded, first = self._code(X, own, "input {}"), joined(own)
        best = first.copy()
        for which, pairs in self._blocks(first):
            best[which] += coded.scores(which, weights_of(w), pairs).argmax(axis=1).astype(np.int32)
        return self._named[best].tolist()

    def label_from_latent(self, h: tuple[Any, int]) -> Any:
        """Return the label of a completed output.

        Parameters
        ----------
        h : (label, k)
            A completed output.

        Returns
        -------
        label
        """
        return h[0]
