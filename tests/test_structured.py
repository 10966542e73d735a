"""Structured models: certificates against all constraints written out, and what holds of every solution."""

from itertools import pairwise, product

import hypothesis.strategies as st
import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.exceptions import ConvergenceWarning

from dualsvm import OracleProblem, Prior, StructuredSVM, solve
from dualsvm.structured.crew import Crew
from dualsvm.structured.examples import Examples
from dualsvm.structured.oracle import TaskProblem
from dualsvm.tasks import Chain

from .structured import (
    FEATURES,
    Lazy,
    Pairs,
    Signs,
    assert_brackets,
    assert_solves,
    parameters,
    said,
    write_out,
    written,
)

RNG = np.random.default_rng(0)
C = 0.3


def signs_data(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2, 3))
    noisy = X[:, :, 0] + X[:, :, 1] / 2 + 0.7 * rng.normal(size=(n, 2))
    return list(X), [tuple(np.where(row > 0, 1, -1)) for row in noisy]


def chain_data(n=15, seed=0):
    rng = np.random.default_rng(seed)
    Y = [rng.choice(["x", "y", "z"], size=rng.integers(1, 4)) for _ in range(n)]
    X = [np.array([[y == label for label in "xyz"] for y in each]) + rng.normal(size=(len(each), 3)) for each in Y]
    return X, Y


def chain_outputs(x, y=None):
    return [list(h) for h in product("xyz", repeat=len(x))]


CASES = {
    "Signs": (Signs, signs_data(), Signs.outputs),
    "Chain": (Chain, chain_data(), chain_outputs),
}


def fitted(case, X=None, Y=None, **settings):
    make, data, _ = CASES[case]
    settings = {"C": C, "tol": 1e-5, "max_iter": 5000, "random_state": 0} | settings
    return StructuredSVM(make(), **settings).fit(*(data if X is None else (X, Y)))


def reference(case, cost=C, rescaling="margin", **terms):
    make, (X, Y), outputs = CASES[case]
    task = make()
    if hasattr(task, "initialize"):
        task.initialize(X, Y)
    return write_out(task, X, Y, outputs, cost, rescaling, **terms)


def size(case):
    return reference(case).x.shape[1]


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("case", CASES)
def test_certificates_enclose_the_reference_optimum(case, feature):
    terms = said(feature, size(case))
    optimum = assert_solves(fitted(case, **parameters(terms)), reference(case, **terms))
    if feature not in ("plain", "lower"):  # otherwise a feature that is ignored would go unnoticed
        assert abs(optimum - reference(case).optimum()) > 1e-3 * optimum


@pytest.mark.parametrize("case", CASES)
def test_sample_weight(case):
    make, (X, Y), _ = CASES[case]
    weight = np.random.default_rng(1).uniform(0, 3, len(X)) * (np.arange(len(X)) % 4 > 0)
    model = StructuredSVM(make(), C=C, tol=1e-5, max_iter=5000, random_state=0).fit(X, Y, sample_weight=weight)
    assert_solves(model, reference(case, C * weight))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the bounds of the search are loose
@pytest.mark.parametrize("feature", ["plain", "prior with bounds", "covariance"])
@pytest.mark.parametrize("case", CASES)
def test_slack_rescaling(case, feature):
    terms = said(feature, size(case))
    model = fitted(case, rescaling="slack", tol=0.1, max_iter=100, **parameters(terms))
    assert_solves(model, reference(case, rescaling="slack", **terms), converged=False)
    assert model.certified_
    assert model.gap_ < 0.7


def test_slack_rescaling_with_an_exact_search():
    class Exact(Signs):
        def slack_inference(self, x, y, w):
            own = self.joint_feature(x, y) @ w
            return max(self.outputs(x), key=lambda h: self.loss(y, h) * (1 - own + self.joint_feature(x, h) @ w))

    model = StructuredSVM(Exact(), C=C, rescaling="slack", tol=1e-5, random_state=0).fit(*signs_data())
    assert_solves(model, reference("Signs", rescaling="slack"))


@st.composite
def problems(draw):
    """Constraints, listed, and searched among by an oracle."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m, d = draw(st.integers(1, 12)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    # not so large that C x'x makes steps short: then many passes are needed
    x = rng.normal(size=(n, m, d)) * (rng.random((n, m, d)) < 0.8) * 10.0 ** draw(st.integers(-2, 0))
    l = rng.uniform(-1, 2, (n, m))
    if draw(st.booleans()):  # duplicates and contradictions
        x[n // 2 :], l[n // 2 :] = -x[: n - n // 2], l[: n - n // 2]
    cost = rng.uniform(0, 2, n) * 10.0 ** draw(st.integers(-2, 1)) * (rng.random(n) < 0.9)
    feature = draw(st.sampled_from(list(FEATURES)))
    return x, l, cost, said(feature, d, seed=int(rng.integers(100)))


def oracle_problem(x, l, cost, terms, **more):
    def oracle(w, i):
        k = int(np.argmax(l[i] - x[i] @ w))
        return [(x[i, k], l[i, k])]

    return OracleProblem(oracle, len(l), n_weights=x.shape[2], cost=cost, **parameters(terms), **more)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=40, deadline=None)
@given(problems(), st.sampled_from([1, 2, 300]), st.sampled_from([1e-2, 1e-6]))
def test_what_holds_of_every_solution(case, max_iter, tol):
    x, l, cost, terms = case
    n, m, d = x.shape
    problem = oracle_problem(*case)
    solution = solve(problem, tol=tol, max_iter=max_iter, random_state=0)
    statement = written(x.reshape(-1, d), l.ravel(), np.repeat(np.arange(n), m), cost, **terms)
    lower, upper = solution.lower_bound, solution.upper_bound
    optimum = statement.optimum()
    scale = statement.primal(np.clip(np.zeros(d), statement.lower, statement.upper)) + abs(optimum) + 1e-6
    assert lower - 1e-8 * scale <= optimum <= upper + 1e-8 * scale + 1e-9
    assert statement.primal(solution.w) == pytest.approx(upper, rel=1e-9, abs=1e-12 * scale)
    assert (solution.alpha >= 0).all()
    mass = np.bincount(solution.example, solution.alpha, minlength=n)
    assert (mass <= cost * (1 + 1e-12)).all()
    lowers = [record.lower for record in solution.history]
    assert all(after >= before - 1e-12 * scale for before, after in pairwise(lowers))
    certificate = solution.certify(problem)
    assert certificate.upper_bound == pytest.approx(upper, rel=1e-9, abs=1e-12 * scale)
    # of what was found for the last certificate the lower bound does not know yet
    assert lower - 1e-12 * scale <= certificate.lower_bound <= optimum + 1e-8 * scale + 1e-9
    assert solution.history[-1].lower == lower
    assert solution.n_oracle_calls == sum(record.explored for record in solution.history)
    if max_iter == 300 and tol == 1e-2:
        assert solution.converged


@pytest.mark.parametrize("case", CASES)
def test_history(case):
    model = fitted(case)
    history = model.history_
    assert [record.iteration for record in history] == list(range(1, len(history) + 1))
    assert all(a.seconds <= b.seconds for a, b in pairwise(history))
    assert history[-1].upper == model.upper_bound_
    assert history[-1].lower == model.lower_bound_
    assert history[-1].active == model.n_constraints_ or history[-1].active > 0
    assert model.n_iter_ == len(history)
    assert sum(record.explored for record in history) == model.n_oracle_calls_


@pytest.mark.parametrize("feature", ["plain", "covariance", "prior with bounds"])
@pytest.mark.parametrize("case", CASES)
def test_a_tiny_cache(case, feature):
    terms = said(feature, size(case))
    model = fitted(case, cache_mb=0.01, tol=1e-3, **parameters(terms))
    assert_solves(model, reference(case, **terms))
    assert model.n_constraints_ <= fitted(case, tol=1e-3, **parameters(terms)).n_constraints_
    lowers = [record.lower for record in model.history_]
    assert all(after >= before * (1 - 1e-12) for before, after in pairwise(lowers))


@pytest.mark.parametrize("prune_after", [1, 5])
def test_pruning_early(prune_after):
    assert_solves(fitted("Chain", prune_after=prune_after), reference("Chain"))


class Growing(Signs):
    """Joint features by (indices, values), of which nobody knows how many there are."""

    size_joint_feature = None

    def joint_feature(self, x, y):
        full = super().joint_feature(x, y)
        return np.arange(len(full))[::-1].copy(), full[::-1].copy()

    def _pad(self, w):
        return np.concatenate([w, np.zeros(Signs.size_joint_feature - len(w))])

    def inference(self, x, w):
        return super().inference(x, self._pad(w))

    def loss_augmented_inference(self, x, y, w, relaxed=False, return_energy=False):
        return super().loss_augmented_inference(x, y, self._pad(w))


@pytest.mark.parametrize("terms", [{}, {"variance": 2.0}, {"lower": -0.2, "upper": 0.1}])
def test_features_that_appear_while_learning(terms):
    X, Y = signs_data()
    for x in X[3:]:  # the first examples know fewer features
        x[0, 2] += 1.0
    for x in X[:3]:
        x[:, 1:] = 0.0
    model = StructuredSVM(Growing(), C=C, tol=1e-5, random_state=0, **parameters(terms)).fit(X, Y)
    model.coef_ = np.concatenate([model.coef_, np.zeros(4 - len(model.coef_))])  # the last is not always wanted
    full = {name: np.full(4, value) for name, value in terms.items()}
    assert_solves(model, write_out(Signs(), X, Y, Signs.outputs, C, **full))


def test_growing_weights_begin_at_zero():
    for terms in ({"prior": Prior(mean=1.0)}, {"lower": 0.5}, {"prior": Prior(covariance=[[1.0]])}):
        with pytest.raises(ValueError, match="new ones begin at 0"):
            StructuredSVM(Growing(), **terms).fit(*signs_data())


@pytest.mark.parametrize("case", CASES)
def test_same_seed_same_weights(case):
    one, two, other = (fitted(case, random_state=seed, tol=1e-2) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.n_oracle_calls_ == two.n_oracle_calls_
    assert (one.coef_ != other.coef_).any()


@pytest.mark.parametrize("case", CASES)
def test_several_threads(case):
    X, _ = CASES[case][1]
    with joblib.parallel_config(backend="threading"):
        several, again = (fitted(case, n_jobs=2, tol=1e-3) for _ in range(2))
        outputs = list(map(list, several.predict(X)))
    assert_solves(several, reference(case))
    np.testing.assert_array_equal(several.coef_, again.coef_)
    assert outputs == [list(several.task.inference(x, several.coef_)) for x in X]


def test_several_processes():
    class Sign:  # here, so that workers need not import the tests
        size_joint_feature = 3

        def joint_feature(self, x, y):
            return y * x

        def loss(self, y, y_hat):
            return float(y != y_hat)

        def inference(self, x, w):
            return 1 if w @ x > 0 else -1

        def loss_augmented_inference(self, x, y, w):
            return y if y * (w @ x) > 0.5 else -y

    X, Y = np.random.default_rng(0).normal(size=(20, 3)), [1, -1] * 10
    with joblib.parallel_config(backend="loky"):
        model = StructuredSVM(Sign(), n_jobs=2, tol=0.1).fit(X, Y)
    assert_solves(model, write_out(Sign(), X, Y, lambda x, y: [-1, 1]))


def test_partial_fit_draws_to_what_was_learned():
    X, Y = signs_data(30)
    model = StructuredSVM(Signs(), C=C, tol=1e-5, random_state=0)
    assert_solves(model.partial_fit(X[:10], Y[:10]), write_out(Signs(), X[:10], Y[:10], Signs.outputs, C))
    before = model.coef_
    model.partial_fit(Pairs(X[10:], Y[10:]))
    assert_solves(model, write_out(Signs(), X[10:], Y[10:], Signs.outputs, C, mean=before))


@pytest.mark.parametrize("terms", [said("covariance", 4), said("prior with bounds", 4)])
def test_partial_fit_with_a_prior(terms):
    X, Y = signs_data(30)
    model = StructuredSVM(Signs(), C=C, tol=1e-5, random_state=0, **parameters(terms)).fit(X[:10], Y[:10])
    before = model.coef_
    model.partial_fit(X[10:], Y[10:])
    assert_solves(model, write_out(Signs(), X[10:], Y[10:], Signs.outputs, C, **terms | {"mean": before}))


def test_partial_fit_keeps_the_labels_of_the_first_part():
    X, Y = chain_data()
    model = StructuredSVM(Chain(labels="xyz"), tol=1e-2).partial_fit(X[:1], Y[:1]).partial_fit(X[1:], Y[1:])
    assert len(model.coef_) == size("Chain")
    with pytest.raises(ValueError, match="has the label 'q', which was not seen"):
        model.partial_fit([X[0]], [["q"] * len(X[0])])


@pytest.mark.parametrize("case", CASES)
def test_max_iter(case):
    with pytest.warns(ConvergenceWarning, match="not converged"):
        model = fitted(case, max_iter=1, tol=1e-9)
    assert not model.converged_
    assert_solves(model, reference(case), converged=False)
    assert model.n_oracle_calls_ <= 3 * len(CASES[case][1][0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # rounding decides
def test_an_extreme_tolerance_ends():
    model = fitted("Signs", tol=1e-16, max_iter=30)
    assert_brackets((model.lower_bound_, model.upper_bound_), reference("Signs").optimum())
    assert model.gap_ < 1e-6


def test_nothing_to_learn():
    X, _ = signs_data(4)
    model = StructuredSVM(Signs(), lower=0.0, upper=0.0).fit(X, [(1, 1)] * 4)
    assert not model.coef_.any()
    assert model.upper_bound_ == pytest.approx(8.0)  # no weights: each loses both signs
    assert model.converged_


@pytest.mark.parametrize("verbose", [1, 2])
def test_verbose(capsys, verbose):
    model = fitted("Signs", verbose=verbose)
    lines = capsys.readouterr().out.splitlines()
    if verbose == 1:
        assert lines[-1].startswith("pass")
        assert "#]" in lines[-1]
    else:
        assert lines[0].split() == ["pass", "visited", "active", "lower", "upper", "gap", "seconds"]
        assert len(lines) == 1 + len(model.history_)
        assert float(lines[-1].split()[5]) <= 1e-5


def test_searches_of_the_problem_are_those_of_the_task():
    """The low-level door and the compiled one lead to the same constraints."""
    X, Y = chain_data()
    task = Chain()
    task.initialize(X, Y)
    w = RNG.normal(size=task.size_joint_feature)
    which = np.array([3, 1, 7])
    with Crew(None) as crew:
        found = TaskProblem(task, Examples(X, Y), "margin", 1.0, None, None, None).search(w, which, crew)
        lazy = TaskProblem(task, Examples(Lazy(X), Lazy(Y)), "margin", 1.0, None, None, None).search(w, which, crew)
    for part in ("example", "start", "column", "x", "l", "value", "bound"):
        np.testing.assert_array_equal(getattr(found, part), getattr(lazy, part))
    for k, i in enumerate(which):
        values = [task.loss(Y[i], h) + dot(task, X[i], h, w) - dot(task, X[i], Y[i], w) for h in chain_outputs(X[i])]
        assert found.value[k] == pytest.approx(max(values))


def dot(task, x, y, w):
    column, values = task.joint_feature(x, y)
    return w[column] @ values
