"""Grids: a label at every pixel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from ..checks import Array, as_array
from .base import Coded
from .graph import Graph
from .parts import Parts, constant
from .relaxed import is_relaxed


class Grid(Graph):
    """Labelling of images: every pixel has features and a label, and edges join it with its four neighbours.

    Edges from left to right and from top to bottom have weights of their own. Search and certificate are those of
    `Graph`.

    Parameters
    ----------
    edge_features : {"constant", "ends"}, default "constant"
        The features of an edge: a constant 1, or those of its two pixels, one behind the other.
    normalized, pairwise, submodular, relaxed, max_iter, cost, labels
        As in `Graph`.

    Notes
    -----
    Inputs are arrays of shape (height, width, n_features), outputs arrays of labels of shape (height, width). A
    pixel whose label is None or NaN is left out in training, together with its edges, and gets a label when
    predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm import StructuredSVM
    >>> from dualsvm.tasks import Grid
    >>> rng = np.random.default_rng(0)
    >>> Y = [np.arange(6)[:, None] + np.zeros(6, int) < rng.integers(1, 6) for _ in range(10)]
    >>> X = [np.stack([y, ~y], axis=2) + 0.8 * rng.normal(size=(6, 6, 2)) for y in Y]
    >>> model = StructuredSVM(Grid(submodular=True), C=0.1, random_state=0).fit(X, Y)
    >>> model.predict(X)[0].shape, model.gap_ <= 1e-3
    ((6, 6), True)
    >>> bool((model.task.unpack(model.coef_).vertical[0].diagonal() >= 0).all())
    True
    """

    _edge_types = 2

    def __init__(
        self,
        edge_features: str = "constant",
        normalized: bool = False,
        pairwise: str = "full",
        submodular: bool = False,
        relaxed: bool = False,
        max_iter: int = 50,
        cost: Any = None,
        labels: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(normalized, pairwise, submodular, relaxed, max_iter, cost, labels)
        self.edge_features = edge_features

    def _parts(self, x: Any, name: str) -> Parts:
        image = as_array(x, name)
        if image.ndim != 3 or image.dtype.kind not in "fiub":
            raise ValueError(
                f"{name} must hold numbers of shape (height, width, n_features), got {image.dtype} of shape "
                f"{image.shape}"
            )
        if self.edge_features not in ("constant", "ends"):
            raise ValueError(f'edge_features must be "constant" or "ends", got {self.edge_features!r}')
        features = image.reshape(-1, image.shape[2])
        edges, kind = neighbours(*image.shape[:2])
        if self.edge_features == "constant":
            return Parts(features, edges, constant(len(edges)), kind)
        if not np.isfinite(features).all():
            raise ValueError(f"{name} contains NaN or infinity: replace those entries")
        own = sp.csr_array(features, dtype=np.float64)
        return Parts(features, edges, sp.hstack([own[edges[:, 0]], own[edges[:, 1]]], format="csr"), kind)

    def _flat(self, y: Any) -> Any:
        image = y if isinstance(y, np.ndarray) else as_array(y, "an output")
        if image.ndim != 2:
            raise ValueError(f"an output must be labels of shape (height, width), got shape {image.shape}")
        return image

    def _shaped(self, x: Any, labels: Array) -> Any:
        return labels.reshape(np.shape(x)[:2])

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
        for i, (x, y) in enumerate(zip(X, Y if Y is not None else (), strict=False)):
            agree(x, self._flat(y), f"input {i}")
        return super().encode(X, Y)

    def joint_feature(self, x: Any, y: Any) -> tuple[Array, Array]:
        """Return the joint feature vector of an input and an output, as (indices, values).

        Parameters
        ----------
        x : input
            An input.
        y : output
            An output; labels that are missing count nothing. Or a relaxed one, (node_marginals, edge_marginals).

        Returns
        -------
        indices, values : ndarray
        """
        if not is_relaxed(y):
            agree(x, self._flat(y), "x")
        return super().joint_feature(x, y)

    def unpack(self, w: Array) -> Bunch:
        """Return the named parts of weights.

        Parameters
        ----------
        w : ndarray
            Weights.

        Returns
        -------
        Bunch
            `unary` (labels x features), `horizontal` and `vertical` (edge features x labels x labels, the left or
            upper one first), and `labels`.
        """
        parts = super().unpack(w)
        horizontal, vertical = self._pairwise(w)
        return Bunch(unary=parts.unary, horizontal=horizontal, vertical=vertical, labels=parts.labels)


def agree(x: Any, y: Array, name: str) -> None:
    """Refuse labels of another shape than the image has."""
    if np.shape(x)[:2] != y.shape:
        raise ValueError(f"{name} has height and width {np.shape(x)[:2]}, but its output {y.shape}")


@lru_cache(maxsize=256)
def neighbours(height: int, width: int) -> tuple[Array, Array]:
    """Return the edges of a grid, left to right and then top to bottom, and which of these they are (0 or 1)."""
    number = np.arange(height * width, dtype=np.int32).reshape(height, width)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    kind = np.repeat(np.array([0, 1], np.int32), [len(across), len(down)])
    return np.concatenate([across, down]), kind
