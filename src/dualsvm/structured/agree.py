"""Tasks that learn from examples which nobody holds as a whole."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any


def survey(task: Any, X: Any, Y: Any) -> Any:
    """Return what a piece of the examples tells a task, for `agreed`; None if the task learns nothing.

    Ready-made tasks have ``survey(X, Y)``, and any other may. One that has only ``initialize(X, Y)`` is initialised,
    as a copy.

    Parameters
    ----------
    task : object
        The task, which stays as it is.
    X, Y : iterables
        Inputs and outputs of the piece, one at least.

    Returns
    -------
    object
        Something small.
    """
    if callable(getattr(task, "survey", None)):
        return task.survey(X, Y)
    if not callable(getattr(task, "initialize", None)):
        return None
    own = copy.copy(task)
    own.initialize(X, Y)
    return own


def agreed(task: Any, told: Sequence[Any]) -> Any:
    """Return a task that has learned from all pieces.

    A task without ``survey(X, Y)`` and ``agree(surveys)`` has learned from the first piece only, as from the first
    part of a stream: whatever else it has to know, such as labels that other pieces have, it must be given.

    Parameters
    ----------
    task : object
        The task, which stays as it is.
    told : sequence
        What `survey` has returned for the pieces that hold examples, in their order, one at least; for a task without
        ``agree``, that of the first is enough.

    Returns
    -------
    object

    Examples
    --------
    >>> import numpy as np
    >>> from dualsvm.structured.agree import agreed, survey
    >>> from dualsvm.tasks import Chain
    >>> pieces = [([np.ones((2, 3))], [["sun", "sun"]]), ([np.ones((1, 3))], [["rain"]])]
    >>> task = agreed(Chain(), [survey(Chain(), X, Y) for X, Y in pieces])
    >>> task.known_labels.values, task.size_joint_feature
    (['rain', 'sun'], 14)
    """
    if callable(getattr(task, "agree", None)):
        own = copy.copy(task)
        own.agree(told)
        return own
    return task if told[0] is None else told[0]
