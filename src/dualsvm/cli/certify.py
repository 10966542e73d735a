"""``dualsvm certify``."""

from __future__ import annotations

from argparse import Namespace

from .screen import Screen
from .sources import columns, fitted, opened, text_of

NOT_WITHIN = 3


def run(arguments: Namespace) -> int:
    """Compute the bounds of a model anew, in one pass over its data."""
    a = arguments
    model, screen = fitted(a.model), Screen(a.quiet)
    tol = model.tol if a.tol is None else a.tol
    text = {"n_features": model.n_features_in_} | text_of(model)
    more = columns(model, a, a.data)
    balanced = isinstance(getattr(model, "class_weight", None), str)  # which needs the classes of all rows first
    with opened(a, screen, again=balanced, text=text, **more) as dataset, screen:
        found = model.certify(dataset)
    holds = found.gap <= tol
    if not a.quiet:
        print(
            f"the optimum lies within [{found.lower_bound:.8g}, {found.upper_bound:.8g}]: gap {found.gap:.2e}, ",
            end="",
        )
        print(f"{'within' if holds else 'NOT within'} the tolerance of {tol:g}")
    return 0 if holds else NOT_WITHIN
