"""Snakes: ten labels along a snake on a small grid, and the background; what a pixel is, only its neighbours tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from .data import _file


def snakes() -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Return training and test grids, X, Y, X_test, Y_test; features: the colours of 3 x 3 pixels, or outside."""
    with np.load(_file("snakes/snakes.npz")) as file:
        images = {name: file[name] for name in file.files}
    colours = np.unique(np.concatenate([x.reshape(-1, 3) for name, x in images.items() if name[0] == "X"]), axis=0)

    def features(image: np.ndarray) -> np.ndarray:
        colour = np.argmax((image[:, :, None] == colours).all(axis=3), axis=2)
        around = np.pad(colour, 1, constant_values=len(colours))
        windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3))
        return np.eye(len(colours) + 1)[windows].reshape(*colour.shape, -1)

    X, Y, X_test, Y_test = (
        [images[name] for name in sorted(images) if name.startswith(kind)]
        for kind in ("X_train", "Y_train", "X_test", "Y_test")
    )
    return [features(x) for x in X], Y, [features(x) for x in X_test], Y_test


def accuracy(model: Any, X: list[Any], Y: list[Any]) -> float:
    """Return the share of pixels that are right."""
    right = [(h == y).ravel() for h, y in zip(model.predict(X), Y, strict=True)]
    return float(np.concatenate(right).mean())


if __name__ == "__main__":
    import time

    from dualsvm import StructuredSVM
    from dualsvm.tasks import Grid

    X, Y, X_test, Y_test = snakes()
    start = time.perf_counter()
    model = StructuredSVM(Grid("ends"), C=0.1, tol=0.01, random_state=0).fit(X, Y)
    seconds = time.perf_counter() - start
    print(f"{seconds:.1f} s, gap {model.gap_:.2g}, {accuracy(model, X_test, Y_test):.4f} of the test pixels right")
