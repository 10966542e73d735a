"""What the estimators on a cluster share: parameters, predictions, and the way back."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, Self, TypeVar

from sklearn.utils.validation import check_is_fitted

from ..linear.base import FittedInterrupt
from .cluster import aside
from .lazy import lazily

Method = TypeVar("Method", bound=Callable[..., Any])


class OnCluster:
    """An estimator that learns on a cluster; with this before the local one among its bases.

    It has the parameters of the local one, and `client`.
    """

    _local: type[Any]
    client: Any
    get_params: Any

    def __init_subclass__(cls, local: type[Any] | None = None) -> None:
        super().__init_subclass__()
        if local is None:
            return
        cls._local = local
        own = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None)
        signature = inspect.signature(local.__init__)

        def begin(self: Any, *args: Any, client: Any = None, **parameters: Any) -> None:
            local.__init__(self, *args, **parameters)
            self.client = client

        # scikit-learn reads the parameters from the signature; mypy knows nothing of classes made here
        begin.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*signature.parameters.values(), own]
        )
        cls.__init__ = begin  # type: ignore[method-assign]

    def _bare(self) -> Any:
        """Return the local estimator, not fitted."""
        given: dict[str, Any] = self.get_params(deep=False)
        given.pop("client")
        return self._local(**given)

    def to_local(self) -> Any:
        """Return the ordinary estimator, with all that was learned.

        Returns
        -------
        estimator
            That of the same name without "Dask".
        """
        check_is_fitted(self)
        local = self._bare()
        for name, value in vars(self).items():
            if name not in vars(local) and name not in ("client", "_kept"):
                setattr(local, name, value)
        return local

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator as the ordinary one, which `dualsvm.load` gives back; no pickle is involved.

        Parameters
        ----------
        path : path-like
            Where to write, exactly this name. An older file is replaced only when the new one is complete.
        """
        (self.to_local() if hasattr(self, "coef_") else self._bare()).save(path)

    def partial_fit(self, *args: Any, **kwargs: Any) -> Self:
        """Refuse to learn from a stream, which the ordinary estimator does."""
        raise TypeError(f"a stream is learned from on one machine: use {self._local.__name__}.partial_fit")

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, "client": None}  # a connection, which does not travel

    def predict(self, X: Any) -> Any:
        """Return what the ordinary estimator predicts: lazily for Dask collections, and at once for what lies here.

        Parameters
        ----------
        X : Dask array, dataframe or bag, list of futures or delayed objects, or what the ordinary estimator takes
            Features, or inputs.

        Returns
        -------
        Dask array, series or bag, list of delayed objects, or what the ordinary estimator returns
        """
        return self._call("predict", X)

    def _call(self, method: str, X: Any) -> Any:
        check_is_fitted(self)
        return lazily(self.to_local(), method, X)


def unharmed(method: Method) -> Method:
    """Make a method that fits leave an estimator as it was if it fails."""

    @functools.wraps(method)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(self, "_skl_callbacks", ()):
            raise TypeError(
                "scikit-learn's callbacks are not called on a cluster: see verbose, and history_ after fit"
            )
        before = vars(self).copy()
        try:
            with aside():
                return method(self, *args, **kwargs)
        except FittedInterrupt:
            raise KeyboardInterrupt from None
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return fit  # type: ignore[return-value]
