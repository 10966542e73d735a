"""Small latent tasks of one's own, their convex and non-convex problems by enumeration, and rounds one by one."""

import warnings
from itertools import count, pairwise
from unittest import mock

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dualsvm import LatentStructuredSVM, LatentSVM
from dualsvm.latent.rounds import Alternation

from .structured import assert_brackets, write_out, written

WIDTH = 3  # of a window


class Types:
    """Outputs -1 and 1, each of some sub-types, h = (y, type); some sub-types of wrong outputs cost more."""

    def __init__(self, types=2, features=3):
        self.types, self.features = types, features

    @property
    def size_joint_feature(self):
        return 2 * self.types * self.features

    def outputs(self, x=None, h=None):
        return [(y, t) for y in (-1, 1) for t in range(self.types)]

    def completions(self, x, y):
        return [(y, t) for t in range(self.types)]

    def joint_feature(self, x, h):
        phi = np.zeros((2 * self.types, self.features))
        phi[self.types * (h[0] > 0) + h[1]] = x
        return phi.ravel()

    def loss(self, h_true, h):
        return (1.0 + 0.5 * h[1]) * (h_true[0] != h[0])

    def label_from_latent(self, h):
        return h[0]

    def scores(self, x, w):
        return dict(zip(self.outputs(), (w.reshape(-1, self.features) @ x).tolist(), strict=True))

    def latent(self, x, y, w):
        return max(self.completions(x, y), key=self.scores(x, w).get)

    def inference(self, x, w):
        return max(self.outputs(), key=self.scores(x, w).get)

    def loss_augmented_inference(self, x, h_true, w):
        scores = self.scores(x, w)
        return max(scores, key=lambda h: self.loss(h_true, h) + scores[h])


class ExactSlack(Types):
    """The search of slack rescaling, too."""

    def slack_inference(self, x, h_true, w):
        scores = self.scores(x, w)
        return max(scores, key=lambda h: self.loss(h_true, h) * (1 - scores[h_true] + scores[h]))


class Places:
    """Where in a signal something is: the latent value is where a window begins."""

    def __init__(self, width=WIDTH):
        self.width = width

    @property
    def size_joint_feature(self):
        return self.width + 1

    def places(self, x):
        return range(len(x) - self.width + 1)

    def joint_feature(self, x, z):
        return np.append(x[z : z + self.width], 1.0)

    def scores(self, x, w):
        return np.correlate(x, w[:-1], "valid") + w[-1]

    def inference(self, x, w):
        return int(np.argmax(self.scores(x, w)))


class Windows(Places):
    """Every window of a negative is an example of its own."""

    def violations(self, x, w):
        for z in np.flatnonzero(self.scores(x, w) > -1):
            yield z, self.joint_feature(x, z)


def types_data(n=16, seed=0, features=3):
    """Class 1 on both sides of class -1, with noise."""
    rng = np.random.default_rng(seed)
    place = rng.normal(scale=2.0, size=n)
    X = np.column_stack([place, rng.normal(size=(n, features - 2)), np.ones(n)])
    Y = np.where(abs(place) + 0.5 * rng.normal(size=n) > 1.3, 1, -1).tolist()
    Y[0], Y[1] = 1, -1
    return list(X), Y


def places_data(n=20, length=12, seed=0):
    """Signals with a bump somewhere, or none."""
    rng = np.random.default_rng(seed)
    X, y = 0.5 * rng.normal(size=(n, length)), rng.permutation(np.resize([1, -1], n))
    for i in np.flatnonzero(y > 0):
        place = rng.integers(length - WIDTH + 1)
        X[i, place : place + WIDTH] += [0.7, 1.2, -0.9]
    return list(X), y.tolist()


def some_types(task, X, Y, seed=0):
    """Completions at random."""
    rng = np.random.default_rng(seed)
    return [(y, int(rng.integers(task.types))) for y in Y]


def some_places(task, X, y, seed=0):
    """Latent values, half of them where the signal is largest and half at random; None for negatives."""
    rng = np.random.default_rng(seed)
    places = []
    for x, label in zip(X, y, strict=True):
        most = len(task.places(x)) - 1
        guess = np.argmax(x) - 1 if rng.random() < 0.5 else rng.integers(most + 1)
        places.append(int(np.clip(guess, 0, most)) if label > 0 else None)
    return places


class Structural:
    """What the rounds of `LatentStructuredSVM` have to do, by enumeration."""

    estimator = LatentStructuredSVM

    def __init__(self, task, X, Y, cost=1.0, rescaling="margin", **terms):
        self.task, self.X, self.Y, self.terms = task, X, Y, terms
        self.cost, self.rescaling = np.broadcast_to(cost, len(X)), rescaling

    def state(self, completions):
        """The convex problem of a round."""
        return write_out(self.task, self.X, completions, self.task.outputs, self.cost, self.rescaling, **self.terms)

    def best(self, w):
        """The best completions."""
        return [
            max(self.task.completions(x, y), key=lambda h: self.task.joint_feature(x, h) @ w)
            for x, y in zip(self.X, self.Y, strict=True)
        ]

    def objective(self, w):
        """The non-convex objective, by its definition; what the prior costs is asked of the reference."""
        nothing = written(np.zeros((1, len(w))), [0.0], [0], [1.0], **self.terms)
        paid = 0.0
        for x, y, cost in zip(self.X, self.Y, self.cost, strict=True):
            own = max(self.task.joint_feature(x, h) @ w for h in self.task.completions(x, y))
            short = []
            for h in self.task.outputs(x):
                loss, score = self.task.loss((y, 0), h), self.task.joint_feature(x, h) @ w
                short.append(loss * (1 - own + score) if self.rescaling == "slack" else loss - own + score)
            paid += cost * max(0.0, *short)
        return nothing.primal(w) + paid


class Binary:
    """What the rounds of `LatentSVM` have to do, by enumeration; where there are `violations`, one slack each."""

    estimator = LatentSVM

    def __init__(self, task, X, y, cost=1.0, **terms):
        self.task, self.X, self.y, self.terms = task, X, y, terms
        self.cost, self.every = np.broadcast_to(cost, len(X)), hasattr(task, "violations")

    def state(self, completions):
        """The convex problem of a round."""
        x, owner, cost = [], [], []
        for a, label, z, each in zip(self.X, self.y, completions, self.cost, strict=True):
            rows = [label * self.task.joint_feature(a, k) for k in ([z] if label > 0 else self.task.places(a))]
            x += rows
            if label < 0 and self.every:
                owner += [len(cost) + k for k in range(len(rows))]
                cost += [each] * len(rows)
            else:
                owner += [len(cost)] * len(rows)
                cost.append(each)
        return written(np.array(x), np.ones(len(x)), owner, cost, **self.terms)

    def best(self, w):
        """The best latent values of the positives."""
        return [
            max(self.task.places(x), key=lambda z: self.task.joint_feature(x, z) @ w) if label > 0 else None
            for x, label in zip(self.X, self.y, strict=True)
        ]

    def objective(self, w):
        """The non-convex objective, by its definition; what the prior costs is asked of the reference."""
        nothing = written(np.zeros((1, len(w))), [0.0], [0], [1.0], **self.terms)
        paid = 0.0
        for x, label, cost in zip(self.X, self.y, self.cost, strict=True):
            scores = np.array([self.task.joint_feature(x, z) @ w for z in self.task.places(x)])
            if label > 0:
                paid += cost * max(0.0, 1 - scores.max())
            else:
                short = np.maximum(0.0, 1 + scores)
                paid += cost * (short.sum() if self.every else short.max())
        return nothing.primal(w) + paid


def one_by_one(make, *data, **how):
    """Fit again and again, with one more round allowed each time: a model for every round."""
    for rounds in count(1):
        model = make(max_rounds=rounds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(*data, **how)
        assert model.n_rounds_ == rounds
        yield model
        if model.converged_:
            return


def assert_rounds(problem, make, init, *data, **how):
    """Look at all rounds: each solves the problem that its completions make, and completes by what is best."""
    seen, note = {}, Alternation._note

    def watched(rounds, *arguments):
        note(rounds, *arguments)
        last = rounds.rounds[-1]  # which may be one that was taken up again, to solve it more closely
        seen[last.round] = list(rounds.problem.completions), rounds.search.w.copy(), last

    model = make()
    with mock.patch.object(Alternation, "_note", watched):
        model.fit(*data, init=init, **how)
    completions = init
    assert len(seen) == model.n_rounds_
    for (taken, w, noted), last in zip(seen.values(), model.history_, strict=True):
        assert taken == completions
        state = problem.state(completions)
        assert (last.lower_bound, last.upper_bound) == (noted.lower_bound, noted.upper_bound)
        assert_brackets((last.lower_bound, last.upper_bound), state.optimum())
        assert state.primal(w) == pytest.approx(last.upper_bound, rel=1e-9)
        assert last.objective == pytest.approx(problem.objective(w), rel=1e-9)
        completions = problem.best(w)
    np.testing.assert_array_equal(model.coef_, w)
    assert model.latent_ == completions
    assert model.upper_bound_ - model.lower_bound_ <= model.tol * abs(model.upper_bound_)
    assert model.converged_
    assert_never_rises(model)
    return model


def assert_never_rises(model):
    """The objective does not, and the convex problem of a round lies between."""
    for one in model.history_:
        assert one.lower_bound <= one.upper_bound * (1 + 1e-12) + 1e-12
        assert one.objective <= one.upper_bound
    for before, after in pairwise(model.history_):
        assert after.upper_bound <= before.objective
    assert model.objective_ == model.history_[-1].objective


def assert_ends_in_time(model):
    """Rounds go on as long as the objective falls by enough and completions change."""
    falls = [before.objective - after.objective for before, after in pairwise(model.history_)]
    enough = [model.round_tol * one.objective for one in model.history_[1:]]
    if model.converged_ and model.objective_ < model.upper_bound_ * (1 - 1e-9):  # completions have changed
        assert falls[-1] <= enough[-1]


def beginnings(fit):
    """Return what a fit returns, and the objectives of all its beginnings."""
    found, run = [], Alternation.run

    def watched(rounds):
        run(rounds)
        found.append(rounds.objective)

    with mock.patch.object(Alternation, "run", watched):
        return fit(), found
