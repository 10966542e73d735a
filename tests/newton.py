"""Problems for Newton's method, and what their Hessians are made of."""

import numpy as np
import scipy.sparse as sp

import dualsvm.state
from dualsvm import Prior, Problem

RNG = np.random.default_rng(0)
N, D = 300, 21
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.4)
TARGETS = X @ RNG.normal(size=D) + RNG.normal(size=N)
Y = np.sign(TARGETS)
PAIRS = RNG.permutation(N).reshape(-1, 2)
KINDS = {
    "dense": np.ascontiguousarray,
    "float": lambda X: X.astype(np.float32),
    "sparse": sp.csr_array,
    "sparse float": lambda X: sp.csr_array(X.astype(np.float32)),
}
TASKS = {
    "rows": lambda X, **more: Problem(X, 1.0, **more),
    "binary": lambda X, **more: Problem.binary(X, Y, intercept=1.0, **more),
    "regression": lambda X, **more: Problem.regression(X, TARGETS, epsilon=0.2, **more),
    "ranking": lambda X, **more: Problem.ranking(X, PAIRS, **more),
}
PRIORS = {
    "none": None,
    "mean and variance": Prior(mean=0.3, variance=2.0),
    "covariance": Prior(covariance=np.eye(D) + 0.5),
}


def features(task, X):
    """What the Hessian is made of, one line for every example."""
    if task == "ranking":
        return X[PAIRS[:, 0]] - X[PAIRS[:, 1]]
    return np.column_stack([X, np.ones(len(X))]) if task == "binary" else X


def newton_first(monkeypatch):
    """Begin with Newton's method where losses have kinks, too, however few the examples are."""
    monkeypatch.setattr(dualsvm.state, "_SOME", 0)
    monkeypatch.setattr(dualsvm.state, "_MANY", 0)
    monkeypatch.setattr(dualsvm.state, "_CHEAP", np.inf)
    monkeypatch.setattr(dualsvm.state, "_DEAR", np.inf)


def gradients(task, w):
    """l - w.x for the constraints of every example, as lines."""
    scores = features(task, X) @ w
    if task == "regression":
        return np.stack([TARGETS - scores, scores - TARGETS], axis=1) - 0.2
    return 1 - (Y * scores if task == "binary" else scores)[:, None]
