"""Two classes with latent values: every round against all constraints written out, and mining."""

import warnings

import hypothesis.strategies as st
import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from dualsvm import LatentSVM, OracleProblem, SVMClassifier, solve
from dualsvm.latent.mined import LatentProblem
from dualsvm.structured.examples import Examples

from .latent import (
    WIDTH,
    Binary,
    Places,
    Windows,
    assert_ends_in_time,
    assert_never_rises,
    assert_rounds,
    beginnings,
    one_by_one,
    places_data,
    some_places,
)
from .structured import FEATURES, Lazy, Pairs, assert_brackets, parameters, said

X, Y = places_data()
C = 1.0
INIT = some_places(Places(), X, Y, seed=5)
KINDS = [Places, Windows]


def make(task=None, **more):
    more = {"C": C, "tol": 1e-3, "round_tol": 1e-4, "max_iter": 5000, "random_state": 0} | more
    return LatentSVM(task or Places(), **more)


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_round_encloses_the_reference_optimum(kind, feature):
    terms = said(feature, WIDTH + 1)
    problem = Binary(kind(), X, Y, C, **terms)
    model = assert_rounds(problem, lambda **more: make(kind(), **parameters(terms), **more), INIT, X, Y)
    assert model.n_rounds_ > 1


@pytest.mark.parametrize("kind", KINDS)
def test_sample_weight(kind):
    weight = np.random.default_rng(1).uniform(0, 3, len(X)) * (np.arange(len(X)) % 4 > 0)
    problem = Binary(kind(), X, Y, C * weight)
    assert_rounds(problem, lambda **more: make(kind(), **more), INIT, X, Y, weight)


@st.composite
def problems(draw):
    """A task, data, latent values to begin with, and settings."""
    seed = draw(st.integers(0, 2**16))
    task = draw(st.sampled_from(KINDS))()
    inputs, labels = places_data(draw(st.integers(2, 12)), draw(st.integers(WIDTH, 15)), seed)
    rng = np.random.default_rng(seed)
    cost = 10.0 ** draw(st.integers(-2, 1))
    weight = rng.uniform(0, 2, len(inputs)) * (rng.random(len(inputs)) < 0.9) + 1e-3
    terms = said(draw(st.sampled_from(list(FEATURES))), WIDTH + 1, seed)
    return task, inputs, labels, some_places(task, inputs, labels, seed), cost, weight, terms


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=20, deadline=None)
@given(problems(), st.sampled_from([1e-1, 1e-4]), st.sampled_from([0.0, 1e-3, 0.1]), st.sampled_from([2, 200]))
def test_what_holds_of_all_rounds(case, tol, round_tol, max_iter):
    task, inputs, labels, init, cost, weight, terms = case
    problem = Binary(task, inputs, labels, cost * weight, **terms)
    how = {"tol": tol, "round_tol": round_tol, "max_iter": max_iter, "max_rounds": 20}
    model = make(task, C=cost, **how, **parameters(terms)).fit(inputs, labels, weight, init=init)
    assert_never_rises(model)
    assert_ends_in_time(model)
    assert model.objective_ == pytest.approx(problem.objective(model.coef_), rel=1e-9, abs=1e-12)
    state, best = problem.state(model.latent_), problem.state(problem.best(model.coef_))
    assert state.primal(model.coef_) == pytest.approx(best.primal(model.coef_), rel=1e-9, abs=1e-12)
    assert [z is None for z in model.latent_] == [label < 0 for label in labels]
    if model.n_rounds_ == 1:
        assert_brackets((model.lower_bound_, model.upper_bound_), problem.state(init).optimum())


@pytest.mark.parametrize("feature", ["plain", "covariance", "prior with bounds"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_latent_value_is_a_linear_svm(kind, feature):
    inputs, labels = places_data(30, WIDTH)
    terms = said(feature, WIDTH + 1)
    model = make(kind(), **parameters(terms)).fit(inputs, labels)
    rows = np.column_stack([inputs, np.ones(len(inputs))])
    plain = SVMClassifier(C=C, tol=1e-4, loss="hinge", fit_intercept=False, random_state=0, **parameters(terms))
    plain.fit(rows, labels)
    assert model.n_rounds_ <= 2  # the second more precise
    assert model.converged_
    assert max(model.lower_bound_, plain.lower_bound_) <= min(model.upper_bound_, plain.upper_bound_) * (1 + 1e-12)
    assert model.objective_ == pytest.approx(plain.upper_bound_, rel=1e-3)
    np.testing.assert_allclose(model.coef_, np.ravel(plain.coef_), atol=0.2)
    np.testing.assert_allclose(model.decision_function(inputs), rows @ model.coef_)


@pytest.mark.parametrize("feature", ["plain", "covariance", "prior with bounds"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_carried_over_holds_in_the_next_round(kind, feature):
    """The dual variables kept, with the constraints that they are of, prove the lower bound of every round."""
    terms = said(feature, WIDTH + 1)
    problem, given = Binary(kind(), X, Y, C, **terms), parameters(terms)
    for rounds in (1, 2, 20):
        model = make(kind(), warm_start=True, max_rounds=rounds, **given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, Y, init=INIT)
        completions = model.latent_
        optimum, kept = problem.state(completions).optimum(), model._solution
        limits = [given["prior"], given.get("lower"), given.get("upper")]
        stated = LatentProblem(kind(), Examples(X, Y), np.array(Y), problem.cost, *limits).given(completions, "init")
        for x, l, slack in zip(kept.rows.toarray(), kept.margins, kept.example, strict=True):
            i, k = divmod(slack, stated.slacks)
            features = np.array([kind().joint_feature(X[i], z) for z in kind().places(X[i])])
            if Y[i] > 0:
                sets = [features[completions[i]]]
            elif kind is Places:
                sets = -features
            else:  # all sets of the windows that share the slack
                own = features[k :: stated.slacks]
                sets = [-own[list(s)].sum(axis=0) for s in ([0], [1], [0, 1]) if max(s) < len(own) and len(s) == l]
            assert min(abs(x - other).max() for other in sets) < 1e-12
            assert l == 1 or kind is Windows
        certificate = kept.certify(stated)
        assert_brackets((certificate.lower_bound, certificate.upper_bound), optimum)
        assert certificate.upper_bound == pytest.approx(model.objective_, rel=1e-9)


def test_windows_are_examples_of_their_own():
    """Mining finds what a linear SVM on all windows finds."""
    model = make(Windows()).fit(X, Y, init=INIT)
    task, rows, labels = Windows(), [], []
    for x, label, z in zip(X, Y, model.latent_, strict=True):
        some = [task.joint_feature(x, k) for k in (task.places(x) if label < 0 else [z])]
        rows += some
        labels += [label] * len(some)
    plain = SVMClassifier(C=C, tol=1e-4, loss="hinge", fit_intercept=False, random_state=0).fit(rows, labels)
    assert model.objective_ >= plain.lower_bound_ * (1 - 1e-12)
    assert model.lower_bound_ <= plain.upper_bound_ * (1 + 1e-12) + model.upper_bound_ - model.objective_
    assert make(Windows()).fit(X, Y, init=model.latent_).objective_ == pytest.approx(plain.upper_bound_, rel=1e-3)


def test_windows_differ_from_the_worst_alone():
    assert make(Windows()).fit(X, Y, init=INIT).objective_ > 1.01 * make(Places()).fit(X, Y, init=INIT).objective_


KEYS = {
    "tuple": lambda z: (z // 4, z % 4),
    "text": str,
    "numpy": np.int32,
    "negative": lambda z: -int(z),
    "float": lambda z: z / 7,
}


@pytest.mark.parametrize("form", KEYS)
def test_keys_of_all_kinds(form):
    class Keyed(Windows):
        def violations(self, x, w):
            for z, phi in super().violations(x, w):
                yield KEYS[form](z), (np.arange(len(phi)), phi)

    assert_rounds(Binary(Windows(), X, Y, C), lambda **more: make(Keyed(), **more), INIT, X, Y)


def test_more_than_the_violations():
    """Windows that do not violate their margin may be told, too; they are not counted."""

    class All(Windows):
        def violations(self, x, w):
            return [(z, self.joint_feature(x, z)) for z in self.places(x)]

    assert_rounds(Binary(Windows(), X, Y, C), lambda **more: make(All(), **more), INIT, X, Y)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_cache(kind):
    problem = Binary(kind(), X, Y, C)
    tiny = {"cache_mb": 0.002, "tol": 1e-3}
    model = assert_rounds(problem, lambda **more: make(kind(), **tiny, **more), INIT, X, Y)
    assert model.n_constraints_ < make(kind(), tol=1e-3).fit(X, Y, init=INIT).n_constraints_


def test_many_windows_at_zero_weights():
    """All of them violate their margins then: they are added up, and few constraints are held."""
    rng = np.random.default_rng(0)
    inputs, labels = list(rng.normal(size=(6, 3000))), [1, -1, -1, -1, -1, 1]
    for i in (0, 5):
        inputs[i] *= 0.1
        inputs[i][100 : 100 + WIDTH] += [3.0, 5.0, -4.0]
    weight = np.where(np.array(labels) > 0, 100.0, 1.0)
    model = make(Windows(), C=1e-2, tol=1e-3).fit(inputs, labels, weight, init=[100] * 6)
    assert model.converged_
    assert model.n_constraints_ < 2000  # of 12000 windows
    problem = Binary(Windows(), inputs, labels, 1e-2 * weight)
    assert model.objective_ == pytest.approx(problem.objective(model.coef_), rel=1e-9)
    last = problem.state(model.latent_)
    assert last.primal(model.coef_) == pytest.approx(model.upper_bound_, rel=1e-9)
    assert last.primal(np.zeros(WIDTH + 1)) > 2 * model.upper_bound_


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["lazy", "stream", "array"])
def test_forms_of_examples(kind, form):
    data = {
        "lazy": (Lazy(X), Lazy(Y)),
        "stream": (Pairs(X, Y),),
        "array": (np.array(X), np.array(Y, dtype=float)),
    }[form]
    problem = Binary(kind(), X, Y, C)
    assert_rounds(problem, lambda **more: make(kind(), **more), INIT, *data)
    drawn = make(kind(), random_state=2).fit(*data)
    assert problem.objective(drawn.coef_) == pytest.approx(drawn.objective_, rel=1e-9)


class Growing(Windows):
    """Joint features by (indices, values), of which nobody knows how many there are."""

    size_joint_feature = None

    def joint_feature(self, x, z):
        full = super().joint_feature(x, z)
        return np.arange(len(full)), full

    def scores(self, x, w):
        return super().scores(x, np.concatenate([w, np.zeros(WIDTH + 1 - len(w))]))


@pytest.mark.parametrize("every", [True, False])
def test_features_that_appear_while_learning(every):
    task = Growing()
    if not every:
        task.violations = None
    problem, completions = Binary(Windows() if every else Places(), X, Y, C), INIT
    for model in one_by_one(lambda **more: make(task, **more), X, Y, init=INIT):
        w = np.concatenate([model.coef_, np.zeros(WIDTH + 1 - len(model.coef_))])
        assert_brackets((model.lower_bound_, model.upper_bound_), problem.state(completions).optimum())
        assert model.objective_ == pytest.approx(problem.objective(w), rel=1e-9)
        completions = problem.best(w)
    assert model.n_rounds_ > 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_that_is_not_exact_is_not_certified(kind):
    class Sloppy(kind):
        exact = False

        def inference(self, x, w):
            return 2 * int(np.argmax(self.scores(x, w)[::2]))

        def violations(self, x, w):
            return [(z, self.joint_feature(x, z)) for z in np.flatnonzero(self.scores(x, w) > -1) if z % 2]

    task = Sloppy()
    if kind is Places:
        task.violations = None
    for seed in range(3):
        model = make(task, max_rounds=30).fit(X, Y, init=some_places(task, X, Y, seed))
        assert model.certified_ is False
        assert model.upper_bound_ == model.gap_ == model.objective_ == np.inf
        assert model.n_rounds_ < 30
        assert model.coef_.any()
        assert all(np.isfinite(one.lower_bound) for one in model.history_)


class Begins(Places):
    """Has a beginning of its own, where the signal is largest."""

    def init_latent(self, X, y):
        return [int(np.argmax(x[1 : 2 - WIDTH])) for x in X]


class BeginsAtRandom(Places):
    """Has beginnings of its own."""

    seeds = ()

    def init_latent(self, X, y, random_state=None):
        self.seeds = (*self.seeds, random_state)
        return some_places(self, X, y, seed=random_state)


def assert_same(one, two):
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert [a[:-1] for a in one.history_] == [b[:-1] for b in two.history_]
    assert one.latent_ == two.latent_


def test_beginnings():
    task = BeginsAtRandom()
    model = make(task, random_state=5).fit(X, Y)
    assert_same(model, make(random_state=5).fit(X, Y, init=some_places(task, X, Y, seed=task.seeds[0])))
    assert_same(make(Begins()).fit(X, Y), make().fit(X, Y, init=Begins().init_latent(X, Y)))
    one, two, other = (make(random_state=seed).fit(X, Y) for seed in (3, 3, 4))
    assert_same(one, two)
    assert (one.coef_ != other.coef_).any()
    # what is said of negatives is not looked at
    said_of_all = [0 if z is None else z for z in INIT]
    assert_same(make().fit(X, Y, init=said_of_all), make().fit(X, Y, init=INIT))


@pytest.mark.parametrize("kind", [Places, Begins])
def test_several_beginnings(kind):
    best = make(kind(), n_init=3).fit(X, Y)
    assert best.objective_ <= make(kind()).fit(X, Y).objective_
    assert best.objective_ == pytest.approx(Binary(Places(), X, Y, C).objective(best.coef_), rel=1e-9)
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


@pytest.mark.parametrize("kind", KINDS)
def test_several_threads(kind):
    with joblib.parallel_config(backend="threading"):
        model = make(kind(), n_jobs=2).fit(X, Y, init=INIT)
    assert model.converged_
    assert model.objective_ == pytest.approx(Binary(kind(), X, Y, C).objective(model.coef_), rel=1e-9)


def test_max_rounds():
    with pytest.warns(ConvergenceWarning, match="still falling after 1 rounds"):
        model = make(max_rounds=1).fit(X, Y, init=INIT)
    assert not model.converged_
    assert model.n_rounds_ == len(model.history_) == 1
    full = make().fit(X, Y, init=INIT)
    assert full.objective_ < model.objective_
    assert full.history_[0].objective == pytest.approx(model.objective_, rel=0.02)  # early rounds are coarse


def test_history():
    model = make().fit(X, Y, init=INIT)
    assert model.history_[0].changed == Y.count(1)  # negatives are never completed
    assert all(0 < one.changed <= Y.count(1) for one in model.history_)
    assert all(a.seconds <= b.seconds for a, b in zip(model.history_, model.history_[1:], strict=False))
    assert model.history_[-1].n_constraints == model.n_constraints_
    assert model.history_[-1].gap == model.gap_ <= 1e-3


def test_predictions():
    model = make(C=10.0, n_init=4).fit(X, Y)
    scores = np.array([[model.coef_ @ Places().joint_feature(x, z) for z in Places().places(x)] for x in X])
    np.testing.assert_allclose(model.decision_function(X), scores.max(axis=1))
    assert model.latent(X) == scores.argmax(axis=1).tolist()
    assert model.predict(X).tolist() == np.where(scores.max(axis=1) > 0, 1, -1).tolist()
    assert model.score(X, Y) == (model.predict(X) == Y).mean() > 0.8
    assert model.classes_.tolist() == [-1, 1]
    assert is_classifier(model)
    assert model.predict(Lazy(X)).tolist() == model.predict(np.array(X)).tolist() == model.predict(X).tolist()
    assert len(model.predict([])) == len(model.latent([])) == 0


def test_model_selection():
    scores = cross_val_score(make(Begins(), C=10.0), X, Y, cv=4)
    assert scores.shape == (4,)
    assert scores.mean() > 0.6
    search = GridSearchCV(make(Begins()), {"C": [1e-4, 10.0]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"C": 10.0}
    assert search.predict(X).shape == (len(X),)


def test_parameters_and_clones():
    model = make(BeginsAtRandom(), n_init=3, max_rounds=7).fit(X, Y)
    copy = clone(model)
    assert not hasattr(copy, "coef_")
    same = {name: value for name, value in copy.get_params(deep=False).items() if name != "task"}
    assert same == {name: value for name, value in model.get_params(deep=False).items() if name != "task"}
    assert copy.set_params(round_tol=0.1).round_tol == 0.1
    assert_same(clone(model).fit(X, Y), model)


@pytest.mark.parametrize("verbose", [1, 2])
def test_verbose(capsys, verbose):
    model = make(verbose=verbose).fit(X, Y, init=INIT)
    printed = capsys.readouterr().out
    assert printed.lstrip("\r").startswith("round 1: ")
    assert f"round {model.n_rounds_}: " in printed


def test_the_first_round_by_hand():
    """The same problem by the low-level door."""
    with pytest.warns(ConvergenceWarning, match="still falling"):
        model = make(max_rounds=1).fit(X, Y, init=INIT)

    def oracle(w, i):
        z = INIT[i] if Y[i] > 0 else Places().inference(X[i], w)
        return [(Y[i] * Places().joint_feature(X[i], z), 1.0)]

    solution = solve(OracleProblem(oracle, len(X), n_weights=WIDTH + 1, cost=C), tol=1e-4, random_state=0)
    assert max(solution.lower_bound, model.lower_bound_) <= min(solution.upper_bound, model.upper_bound_)
    assert solution.upper_bound == pytest.approx(model.upper_bound_, rel=1e-4)
