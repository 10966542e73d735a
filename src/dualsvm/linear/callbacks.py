"""scikit-learn's callbacks, where the installed version has them (1.9 on)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..checks import Array
from ..progress import View, Watcher

__all__ = ["CallbackSupportMixin", "Callbacks", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


class Callbacks(Watcher):
    """Tells an estimator's scikit-learn callbacks of the fit, and of every pass as a task of its own."""

    def __init__(
        self, estimator: Any, max_passes: int, data: dict[str, Any], attributes: Callable[[Array], dict[str, Any]]
    ) -> None:
        self.estimator, self.data, self.attributes = estimator, data, attributes
        self.watching = bool(getattr(estimator, "_skl_callbacks", ()))
        self.context: Any = None
        self.task: Any = None
        if hasattr(estimator, "_init_callback_context"):
            self.context = estimator._init_callback_context(max_subtasks=max_passes)
            self.context.call_on_fit_task_begin(estimator=estimator, **data)

    def begin(self) -> None:
        self.task = self.context.subcontext(task_name="pass")
        self.task.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def tell(self, view: View) -> bool:
        if self.task is None:  # the state that a hot start began from
            return False
        task, self.task = self.task, None
        now = self.attributes
        return bool(
            task.call_on_fit_task_end(
                estimator=self.estimator, reconstruction_attributes=lambda: now(view.weights()), **self.data
            )
        )

    def end(self) -> None:
        """Tell that the fit has ended; the estimator then has its attributes."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, reconstruction_attributes=dict, **self.data)
