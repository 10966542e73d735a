"""Data for the estimators, and what must hold of a fitted one, by the problem written out in full."""

import contextlib
import signal

import numpy as np
import pytest

from dualsvm import SVMClassifier, SVMRanker, SVMRegressor

from .reference import state

RNG = np.random.default_rng(7)
N, D = 45, 4
X = RNG.normal(size=(N, D)) + 0.3
TWO = np.where(X[:, 0] + RNG.normal(size=N) > 0.5, 1, 0)
THREE = (X[:, :3] + RNG.normal(size=(N, 3))).argmax(axis=1)
TARGETS = X @ [1.0, -2.0, 0.0, 0.5] + 0.5 * RNG.normal(size=N) + 1.0
QID = np.arange(N) % 9
GRADES = np.digitize(X[:, 0] + RNG.normal(size=N), [-0.3, 0.9])
WEIGHTS = RNG.uniform(0.2, 3.0, size=N)

# every estimator, what it is fitted to, and what goes with that
KINDS = {
    "binary": (SVMClassifier(random_state=0), TWO, {}),
    "crammer_singer": (SVMClassifier(random_state=0), THREE, {}),
    "ovr": (SVMClassifier(multi_class="ovr", random_state=0), THREE, {}),
    "unpenalized": (SVMClassifier(fit_intercept="unpenalized", random_state=0), THREE, {}),
    "regression": (SVMRegressor(epsilon=0.1, random_state=0), TARGETS, {}),
    "pairs": (SVMRanker(random_state=0), GRADES, {"qid": QID}),
    "queries": (SVMRanker(slack="query", random_state=0), GRADES, {"qid": QID}),
}
every_kind = pytest.mark.parametrize("kind", list(KINDS))


def statements(X, y, *, ovr=False, cost=1.0, loss="hinge", intercept=1.0, margin=1.0, table=None, **more):
    """Write out the problems of a classifier: one, or one for every class. `more`: rescaling, prior and bounds."""
    codes = np.unique(y, return_inverse=True)[1]
    k = codes.max() + 1
    own = {"margin": margin, "intercept": intercept}
    common = {"cost": cost, "loss": loss}
    if k == 2 or ovr:
        signs = [2 * codes - 1] if k == 2 else [np.where(codes == c, 1, -1) for c in range(k)]
        return [state("binary", X, {"y": sign, **own}, **common, **more) for sign in signs]
    own |= {"y": codes, "class_loss": 1.0 - np.eye(k) if table is None else np.asarray(table)}
    if "rescaling" in more:
        own["rescaling"] = more.pop("rescaling")
    return [state("multiclass", X, own, **common, **more)]


def weights(model, intercept):
    """Return the weights of a model as the written-out problem has them, (outputs, width)."""
    coef = np.atleast_2d(model.coef_).astype(np.float64)
    return np.column_stack([coef, np.ravel(model.intercept_) / intercept]) if intercept else coef


def objective(model, problems, intercept=1.0):
    """Return the objective of a model, by its definition."""
    w = weights(model, intercept)
    parts = [w.ravel()] if len(problems) == 1 else w
    return sum(problem.primal(part) for problem, part in zip(problems, parts, strict=True))


def assert_certified(model, problems, intercept=1.0, rel=1e-9):
    """The upper bound is the objective of the model, and the optimum lies between the bounds."""
    optimum = sum(problem.optimum() for problem in problems)
    assert model.converged_
    assert model.gap_ <= model.tol
    assert model.upper_bound_ == pytest.approx(objective(model, problems, intercept), rel=rel)
    assert model.lower_bound_ <= optimum * (1 + max(rel, 1e-7))
    assert model.upper_bound_ >= optimum * (1 - max(rel, 1e-7))
    assert model.upper_bound_ <= optimum * (1 + 1.1 * model.tol) + 1e-9


def assert_overlap(one, other):
    """The bounds of two models allow for one and the same optimum."""
    assert one.converged_
    assert other.converged_
    assert one.lower_bound_ <= other.upper_bound_ * (1 + 1e-12)
    assert other.lower_bound_ <= one.upper_bound_ * (1 + 1e-12)


@contextlib.contextmanager
def time_limit(seconds):
    """Fail rather than hang."""

    def fail(*_):
        raise TimeoutError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
