"""What the tests of datasets share."""

import io

import numpy as np
import scipy.sparse as sp

import dualsvm


def whole(dataset, order=None):
    """Read a dataset: its features as a dense array, and its targets, weights and queries, in the order of rows."""
    chunks = sorted(dataset.chunks(order), key=lambda chunk: chunk.start)
    width = max(chunk.X.shape[1] for chunk in chunks)
    rows, at = [], 0
    for chunk in chunks:
        assert chunk.start == at
        assert chunk.stop == (at := at + len(chunk))
        X = chunk.X.toarray() if sp.issparse(chunk.X) else np.asarray(chunk.X)
        rows.append(np.pad(X, ((0, 0), (0, width - X.shape[1]))))
    beside = []
    for name in ("y", "weight", "qid"):
        parts = [getattr(chunk, name) for chunk in chunks]
        beside.append(None if parts[0] is None else np.concatenate(parts))
    return np.concatenate(rows), *beside


def same(dataset, X, y=None, weight=None, qid=None, order=None):
    """Assert that a dataset holds this, in every form of pass."""
    found = whole(dataset, order)
    for one, other in zip(found, (X, y, weight, qid), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_array_equal(one, other)


def opened(text, **options):
    """Open svmlight text that lies in memory."""
    return dualsvm.open_dataset(io.BytesIO(text.encode() if isinstance(text, str) else text), **options)


def sparse_rows(n, width, density=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, width)) < density, rng.normal(size=(n, width)), 0.0)
    X[0, -1] = 1.0  # the last column is in use
    return X
