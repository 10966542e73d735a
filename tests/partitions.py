"""Rows for the tests of Dask, in partitions of every form."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import scipy.sparse as sp
from dask import delayed

from dualsvm.dask.data import held

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(50, 4)), 1) * (RNG.random((50, 4)) < 0.6)
Y = RNG.integers(0, 3, size=50)
WEIGHT = RNG.random(50)
QID = np.repeat(np.arange(10), 5)
CUTS = (20, 5, 25)


def chunked(array, cuts=CUTS):
    return da.from_array(array, chunks=(cuts, *array.shape[1:]))


def parts(array):
    return np.split(array, np.cumsum(CUTS)[:-1])


def loaded(client, pieces):
    """Load pieces on the workers, and bring them here to look at them."""
    return client.gather([piece.futures[0] for piece in held(client, pieces)])


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def together(several, name):
    return np.concatenate([dense(getattr(chunk, name)) for each in several for chunk in each])


def frame(columns="abcd"):
    return pd.DataFrame(X, columns=list(columns))


def block(kind):
    """Return the rows in some form, in partitions."""
    if kind == "array":
        return chunked(X)
    if kind == "columns":
        return da.from_array(X, chunks=(CUTS, (1, 3)))
    if kind == "sparse":
        return chunked(X).map_blocks(sp.csr_array)
    if kind == "csc":
        return chunked(X).map_blocks(sp.csc_matrix)
    if kind == "unknown":
        table = chunked(np.hstack([X, np.ones((50, 1))]))
        return table[table[:, 4] > 0][:, :4]
    if kind == "frame":
        return dd.from_delayed(
            [delayed(part) for part in (frame()[:20], frame()[20:25], frame()[25:])], meta=frame()[:0]
        )
    return [delayed(part) for part in parts(X)]


def text(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path
