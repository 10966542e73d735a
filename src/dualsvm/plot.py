"""Pictures, with matplotlib, which is imported when the first one is drawn (``pip install dualsvm[plot]``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .checks import Array
from .solution import Record

_AXES = {"passes": "iteration", "seconds": "seconds"}


class ConvergenceDisplay:
    """Bounds on the optimum and the gap between them, over the passes of a fit and over its seconds.

    Make it with `from_estimator`, or from the records of a `Solution`.

    Parameters
    ----------
    history : list of Record
        One record for every pass.
    tol : float, default None
        The tolerance, drawn as a line.
    name : str, default None
        Title of the figure.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    axes_ : ndarray of matplotlib Axes of shape (2, k)
        Bounds above, the gap below; one column for passes, one for seconds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dualsvm import SVMClassifier
    >>> from dualsvm.plot import ConvergenceDisplay
    >>> model = SVMClassifier(random_state=0).fit(*load_iris(return_X_y=True))
    >>> display = ConvergenceDisplay.from_estimator(model)
    >>> display.axes_.shape
    (2, 2)
    """

    def __init__(self, history: Sequence[Record], *, tol: float | None = None, name: str | None = None) -> None:
        self.history, self.tol, self.name = history, tol, name

    @classmethod
    def from_estimator(cls, estimator: Any, *, x: Any = ("passes", "seconds"), axes: Any = None) -> Self:
        """Draw how the fit of an estimator converged.

        Parameters
        ----------
        estimator : fitted estimator
            Any of dualsvm's, or a scikit-learn Pipeline that ends in one.
        x, axes
            As in `plot`.

        Returns
        -------
        ConvergenceDisplay
        """
        estimator = getattr(estimator, "_final_estimator", estimator)
        if not hasattr(type(estimator), "fit"):
            raise TypeError(f"estimator must be an estimator of dualsvm, got {type(estimator).__name__}")
        check_is_fitted(estimator)
        if not hasattr(estimator, "history_"):
            raise TypeError(
                f"{type(estimator).__name__} keeps no history_ of its fit: give a fitted estimator of dualsvm"
            )
        return cls(estimator.history_, tol=estimator.tol, name=type(estimator).__name__).plot(x=x, axes=axes)

    def plot(self, *, x: Any = ("passes", "seconds"), axes: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        x : {"passes", "seconds"} or both, default both
            What to draw over.
        axes : array-like of matplotlib Axes, default None
            Where to draw: two for every `x`, the bounds first. None makes a figure.

        Returns
        -------
        ConvergenceDisplay
            This display.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError("drawing needs matplotlib: pip install matplotlib, or dualsvm[plot]") from None
        over: list[Any] = [x] if isinstance(x, str) or x is None else list(x)
        if not over or any(name not in _AXES for name in over):
            raise ValueError(f'x must be "passes", "seconds" or both, got {x!r}')
        if axes is None:
            size = (4.5 * len(over), 5.5)
            _, axes = plt.subplots(2, len(over), sharex="col", sharey="row", squeeze=False, figsize=size)
            axes[0, 0].figure.set_layout_engine("tight")
        axes = np.asarray(axes, dtype=object)
        if axes.size != 2 * len(over):
            raise ValueError(f"axes must hold two Axes for every x, {2 * len(over)} in all, got {axes.size}")
        self.axes_ = axes.reshape(2, len(over))
        self.figure_ = self.axes_[0, 0].figure
        lower, upper, gap = (self._column(name) for name in ("lower", "upper", "gap"))
        for k, name in enumerate(over):
            bounds, gaps = self.axes_[:, k]
            at = self._column(_AXES[name])
            bounds.plot(at, upper, drawstyle="steps-post", color="tab:red", label="upper bound")
            bounds.plot(at, lower, color="tab:blue", label="lower bound")
            bounds.fill_between(at, lower, upper, step="post", color="0.9", where=np.isfinite(upper))
            gaps.plot(at, gap, drawstyle="steps-post", color="black", label="relative gap")
            if self.tol:
                gaps.axhline(self.tol, color="0.5", linestyle=":", label="tol")
            if (gap[np.isfinite(gap)] > 0).any():
                gaps.set_yscale("log")
            gaps.set_xlabel(name)
        self.axes_[0, 0].set_ylabel("objective")
        self.axes_[1, 0].set_ylabel("relative gap")
        for line in self.axes_[:, 0]:
            line.legend()
        if self.name:
            self.axes_[0, 0].set_title(self.name)
        return self

    def _column(self, name: str) -> Array:
        values = np.array([getattr(record, name) for record in self.history], dtype=np.float64)
        return np.where(np.isfinite(values), values, np.nan)
