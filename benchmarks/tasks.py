"""What is minimised, and the objective in plain numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .data import Data


@dataclass(frozen=True)
class Task:
    """Minimise 1/2 |w|^2 + C sum_i loss(slack_i) on a set, without intercept."""

    set: str
    kind: str  # "binary", "crammer_singer", "ovr" or "regression"
    loss: str  # as the estimators name it
    cost: float = 1.0
    epsilon: float = 0.0  # of a regression
    targets: tuple[float, ...] = (1e-3,)  # relative distances from the optimum, from loose to tight

    @property
    def squared(self) -> bool:
        return self.loss.startswith("squared")

    @property
    def name(self) -> str:
        kind = {"crammer_singer": "-cs", "ovr": "-ovr"}.get(self.kind, "")
        cost = "" if self.cost == 1.0 else f"-C{self.cost:g}"
        return f"{self.set}{kind}-{self.loss}{cost}"


def objective(task: Task, data: Data, w: np.ndarray) -> float:
    """The objective at w, (columns,) or one line for every class; in float64 and apart from any solver."""
    w = w.astype(np.float64)
    slack = np.maximum(0.0, _violations(task, data.y, data.X @ w.T))
    return 0.5 * float(np.vdot(w, w)) + task.cost * float((slack**2 if task.squared else slack).sum())


def _violations(task: Task, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    if task.kind == "binary":
        return 1.0 - y * scores
    if task.kind == "regression":
        return np.abs(y - scores) - task.epsilon
    own = y[:, None] == np.unique(y)
    if task.kind == "ovr":
        return 1.0 - np.where(own, scores, -scores)
    return (scores + ~own).max(axis=1) - scores[own]
