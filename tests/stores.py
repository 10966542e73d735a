"""A store of rows, targets, weights and queries."""

import numpy as np
import scipy.sparse as sp

import dualsvm

from .datasets import sparse_rows

X = sparse_rows(90, 7)
Y = np.arange(90) % 4
W = np.linspace(0, 1, 90)
Q = np.repeat(np.arange(9), 10)


def saved(folder, source=None, name="store", **options):
    source = sp.csr_array(X) if source is None else source
    dataset = dualsvm.open_dataset(source, target=Y, weight=W, qid=Q, chunk_rows=20)
    dataset.save(folder / name, **options)
    return folder / name
