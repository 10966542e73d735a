"""Latent models that go on from something: hot starts, parts of streams, checkpoints, failures, files."""

import functools
from unittest import mock

import numpy as np
import pytest

import dualsvm
from dualsvm import OracleError, OracleSolution, Prior
from dualsvm.structured.explore import Search

from .latent import (
    Binary,
    Places,
    Structural,
    Types,
    Windows,
    assert_never_rises,
    places_data,
    some_places,
    some_types,
    types_data,
)
from .structured import Lazy, Pairs, assert_brackets

C = 0.7


class Case:
    """A task with its data, completions to begin with, and what it comes to by enumeration."""

    def __init__(self, kind, problem, data, begin, method):
        self.kind, self.problem, self.data, self.method = kind, problem, data(), method
        self.init = begin(kind(), *self.data, seed=9 if kind is Types else 5)

    def make(self, task=None, **more):
        more = {"C": C, "tol": 1e-3, "round_tol": 1e-4, "max_iter": 5000, "random_state": 0} | more
        return self.problem.estimator(task or self.kind(), **more)

    def state(self, X=None, Y=None, cost=C, **terms):
        X, Y = self.data if X is None else (X, Y)
        return self.problem(self.kind(), X, Y, cost, **terms)


CASES = {
    "Types": Case(Types, Structural, types_data, some_types, "loss_augmented_inference"),
    "Places": Case(Places, Binary, places_data, some_places, "inference"),
    "Windows": Case(Windows, Binary, places_data, some_places, "violations"),
}
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def fails(case, method, calls, error=RuntimeError):
    """Return a task that works for so many calls of a method."""

    def failing(self, *arguments):
        self.calls += 1
        if self.calls > self.limit:
            raise error("the lights went out")
        return getattr(case.kind, method)(self, *arguments)

    task = type("Fails", (case.kind,), {method: failing, "calls": 0, "limit": calls})()
    return task


@functools.cache
def counted(case):
    """Fit, and return the model and the calls of the searched method before the second round, and in all."""
    task, calls, turn = fails(case, case.method, 10**9), [], Search.turn

    def watched(search, *arguments):
        calls.append(task.calls)
        return turn(search, *arguments)

    with mock.patch.object(Search, "turn", watched):
        model = case.make(task).fit(*case.data, init=case.init)
    assert model.n_rounds_ > 1
    return model, calls[0], task.calls


def assert_true(model, state):
    """Bounds and objective of a model are those of its weights."""
    assert_never_rises(model)
    assert model.objective_ == pytest.approx(state.objective(model.coef_), rel=1e-9)


@each
def test_warm_start(case):
    model = case.make(warm_start=True).fit(*case.data, init=case.init)
    first, calls = model.objective_, model.n_oracle_calls_
    model.fit(*case.data)
    assert_true(model, case.state())
    assert model.objective_ <= first * (1 + 1e-3)
    assert model.n_rounds_ <= 2
    assert model.n_oracle_calls_ < calls
    assert model.converged_


@each
@pytest.mark.parametrize("changed", [0.5, 2.0])
def test_another_cost(case, changed):
    model = case.make(warm_start=True).fit(*case.data, init=case.init)
    latent = model.latent_
    model.C = changed * C
    model.fit(*case.data)
    assert_true(model, case.state(cost=changed * C))
    # the first round went on from what was best at the weights before
    first = model.history_[0]
    assert_brackets((first.lower_bound, first.upper_bound), case.state(cost=changed * C).state(latent).optimum())


@each
def test_changed_examples_never_give_a_false_bound(case):
    X, Y = case.data
    model = case.make(warm_start=True).fit(X, Y, init=case.init)
    others = [x if i % 3 else -x for i, x in enumerate(X)]
    best = case.state(others, Y).best(model.coef_)
    model.fit(others, Y)
    assert_true(model, case.state(others, Y))
    first = model.history_[0]
    assert_brackets((first.lower_bound, first.upper_bound), case.state(others, Y).state(best).optimum())
    turned = [-y if i % 4 == 0 else y for i, y in enumerate(Y)]
    best = case.state(X, turned).best(model.coef_)
    model.fit(X, turned)
    assert_true(model, case.state(X, turned))
    first = model.history_[0]
    assert_brackets((first.lower_bound, first.upper_bound), case.state(X, turned).state(best).optimum())
    assert_true(model.fit(X[:9], Y[:9]), case.state(X[:9], Y[:9]))


@each
def test_init_overrides_a_warm_start(case):
    model = case.make(warm_start=True).fit(*case.data)
    again = case.make().fit(*case.data, init=case.init)
    model.fit(*case.data, init=case.init)
    np.testing.assert_array_equal(model.coef_, again.coef_)


@each
def test_a_task_of_another_size_starts_anew(case):
    model = case.make(warm_start=True).fit(*case.data, init=case.init)
    size = len(model.coef_)
    model.task = case.kind(case.kind().types + 1) if case.kind is Types else case.kind(case.kind().width + 1)
    model.fit(*case.data)
    assert len(model.coef_) > size
    assert_true(model, case.problem(model.task, *case.data, C))


@each
def test_partial_fit_draws_to_what_was_learned(case):
    X, Y = case.data
    model = case.make().partial_fit(X[:10], Y[:10], init=case.init[:10])
    assert_true(model, case.state(X[:10], Y[:10]))
    np.testing.assert_array_equal(model.coef_, case.make().fit(X[:10], Y[:10], init=case.init[:10]).coef_)
    before = model.coef_
    model.partial_fit(Pairs(X[10:], Y[10:]))
    later = case.state(X[10:], Y[10:], mean=before)
    assert_true(model, later)
    first = model.history_[0]
    assert_brackets((first.lower_bound, first.upper_bound), later.state(later.best(before)).optimum())
    assert model.objective_ <= later.objective(before) * (1 + 1e-3)


@pytest.mark.parametrize("name", ["Places", "Windows"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_parts_of_one_class(name, sign):
    case = CASES[name]
    part = [(x, y) for x, y in zip(*case.data, strict=True) if y == sign]
    model = case.make().partial_fit(part)  # even the first
    some = [list(side) for side in zip(*part, strict=True)]
    assert_true(model, case.state(*some))
    model.fit(*case.data, init=case.init)
    before = model.coef_
    model.partial_fit(*some)
    assert_true(model, case.state(*some, mean=before))


@each
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("place", ["first round", "certificate", "second round"])
def test_a_failure_keeps_what_was_trained(case, error, place):
    full, first, total = counted(case)
    n = len(case.data[0]) if case.kind is Types else case.data[1].count(-1)
    positives = case.data[1].count(1) if case.method == "inference" else 0  # completed before the second round
    limit = {
        "first round": first // 2,
        "certificate": first - positives - n // 2,  # the last one of the first round
        "second round": (first + total) // 2,
    }[place]
    model = case.make(fails(case, case.method, limit, error))
    with pytest.raises((OracleError, KeyboardInterrupt)) as caught:
        model.fit(*case.data, init=case.init)
    if error is RuntimeError:
        assert "RuntimeError: the lights went out" in str(caught.value)
        assert "example" in str(caught.value)
    assert not model.converged_
    assert model.n_rounds_ == len(model.history_)
    assert model.n_oracle_calls_ == sum(one.n_oracle_calls for one in model.history_) > 0
    reached = case.state().objective(model.coef_)
    assert reached <= model.objective_ * (1 + 1e-9)
    if place == "second round":
        assert reached <= full.history_[0].objective * (1 + 1e-9)
        assert np.isfinite(model.objective_)
        assert_never_rises(model)
    model.task_.limit = 10**9
    assert len(model.predict(case.data[0])) == len(case.data[0])


@each
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_while_completing(case, error):
    if case.kind is Types:
        task = fails(case, "latent", len(case.data[0]) // 2, error)
    else:  # the first completion that is asked for after the first round

        class Fails(case.kind):
            def inference(self, x, w):
                if self.armed and any(x is other for other in positives):
                    raise error("the lights went out")
                return super().inference(x, w)

        positives = [x for x, y in zip(*case.data, strict=True) if y > 0]
        task = Fails()
        task.armed = True
    model = case.make(task)
    with pytest.raises((OracleError, KeyboardInterrupt)):
        model.fit(*case.data, init=case.init)
    assert model.n_rounds_ == 1
    assert model.objective_ == model.upper_bound_
    assert model.latent_ == case.init
    state = case.state().state(case.init)
    assert_brackets((model.lower_bound_, model.upper_bound_), state.optimum())
    assert state.primal(model.coef_) == pytest.approx(model.upper_bound_, rel=1e-9)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("more", [3, 40])
def test_a_failure_in_a_later_beginning(tmp_path, error, more):
    """Whether it is in completing at random weights or in a round: what was best is kept, also in the checkpoint."""
    case = CASES["Types"]
    task = fails(case, "latent", 10**9)
    one = case.make(task).fit(*case.data)
    model = case.make(fails(case, "latent", task.calls + more, error), n_init=3)
    with pytest.raises((OracleError, KeyboardInterrupt)):
        model.fit(*case.data, checkpoint=tmp_path / "state")
    assert model.objective_ <= one.objective_
    if more == 3:
        np.testing.assert_array_equal(model.coef_, one.coef_)
        assert model.history_[-1].objective == one.history_[-1].objective
    np.testing.assert_array_equal(OracleSolution.load(tmp_path / "state").w, model.coef_)


@each
@pytest.mark.parametrize("warm_start", [True, False])
def test_an_input_that_cannot_be_loaded(case, warm_start):
    class Broken(Lazy):
        limit = 10**9

        def __getitem__(self, i):
            if i == 5 and self.loads > self.limit:
                raise OSError("disk on fire")
            return super().__getitem__(i)

    X, Y = case.data
    whole = Broken(X)
    full = case.make(warm_start=warm_start).fit(whole, Y, init=case.init)
    broken = Broken(X)
    broken.limit = whole.loads - 2 * len(X)
    model = case.make(warm_start=warm_start)
    with pytest.raises(OSError, match="disk on fire"):
        model.fit(broken, Y, init=case.init)
    assert case.state().objective(model.coef_) <= full.history_[0].objective * (1 + 1e-9)
    assert_true(model.fit(X, Y), case.state())


@each
@pytest.mark.parametrize(("error", "every"), [(RuntimeError, 600.0), (KeyboardInterrupt, 600.0), (RuntimeError, 0.0)])
def test_a_checkpoint_is_gone_on_from(tmp_path, case, error, every):
    path = tmp_path / "state"
    full, first, total = counted(case)
    for limit in (first // 2, first - 3, (first + total) // 2):
        task = fails(case, case.method, limit, error)
        with pytest.raises((OracleError, KeyboardInterrupt)):
            case.make(task).fit(*case.data, init=case.init, checkpoint=path, checkpoint_every=every)
        w = OracleSolution.load(path).w
        state, reached = case.state(), case.state().objective(w)
        task.limit = 10**9
        resumed = case.make(task).fit(*case.data, resume=path)
        assert_true(resumed, state)
        assert resumed.converged_
        assert resumed.objective_ <= reached * (1 + 1e-3)
        first_round = resumed.history_[0]  # of the completions that are best at the weights written
        optimum = state.state(state.best(w)).optimum()
        assert_brackets((first_round.lower_bound, first_round.upper_bound), optimum)
        if limit > first // 2:  # a round has been finished: there are its weights, or better ones
            assert reached <= full.history_[0].objective * (1 + 1e-9)


@each
def test_the_last_checkpoint_is_the_solution(tmp_path, case):
    path = tmp_path / "state"
    model = case.make().fit(*case.data, init=case.init, checkpoint=path)
    np.testing.assert_array_equal(OracleSolution.load(path).w, model.coef_)
    again = case.make().fit(*case.data, resume=path)
    assert again.n_oracle_calls_ < model.n_oracle_calls_
    assert again.n_rounds_ <= 2
    assert again.objective_ <= model.objective_ * (1 + 1e-3)
    streamed = case.make().fit(Pairs(*case.data), resume=path)
    assert streamed.n_oracle_calls_ < model.n_oracle_calls_
    others = [-x for x in case.data[0]]
    assert_true(case.make().fit(others, case.data[1], resume=path), case.state(others, case.data[1]))


@each
def test_the_checkpoint_of_several_beginnings_is_the_best(tmp_path, case):
    path = tmp_path / "state"
    for seed in range(2):
        model = case.make(n_init=4, random_state=seed).fit(*case.data, checkpoint=path)
        np.testing.assert_array_equal(OracleSolution.load(path).w, model.coef_)
    resumed = case.make(n_init=4).fit(*case.data, resume=path)
    assert resumed.objective_ <= model.objective_ * (1 + 1e-3)
    assert resumed.n_rounds_ == 1


@each
def test_a_checkpoint_of_another_size(tmp_path, case):
    other = CASES["Types" if case.kind is not Types else "Places"]
    other.make().fit(*other.data, init=other.init, checkpoint=tmp_path / "state")
    model = case.make().fit(*case.data, resume=tmp_path / "state")
    assert_true(model, case.state())


@pytest.mark.parametrize(("one", "other"), [("Places", "Windows"), ("Windows", "Places")])
def test_a_checkpoint_of_other_slacks(tmp_path, one, other):
    """Constraints of worst windows are none of sets of windows, and the other way round."""
    case, other = CASES[one], CASES[other]
    other.make().fit(*other.data, init=other.init, checkpoint=tmp_path / "state")
    model = case.make().fit(*case.data, resume=tmp_path / "state")
    assert_true(model, case.state())
    best = case.state().best(OracleSolution.load(tmp_path / "state").w)
    first = model.history_[0]
    assert_brackets((first.lower_bound, first.upper_bound), case.state().state(best).optimum())


@each
def test_weights_whose_number_is_not_known(tmp_path, case):
    """They may all be there in the end; what is begun with is not."""

    def padded(method):
        def wrapped(self, *arguments):
            w = arguments[-1]
            full = np.concatenate([w, np.zeros(case.kind().size_joint_feature - len(w))])
            return getattr(case.kind, method)(self, *arguments[:-1], full)

        return wrapped

    methods = [name for name in ("latent", "inference", case.method) if hasattr(case.kind, name)]
    Growing = type("Growing", (case.kind,), {name: padded(name) for name in methods} | {"size_joint_feature": None})
    X, Y = case.data
    model = case.make(Growing(), warm_start=True).fit(X, Y, init=case.init, checkpoint=tmp_path / "state")
    first = model.objective_
    assert_true(model, case.state())
    assert_true(model.fit(X, Y), case.state())
    assert case.make(Growing()).fit(X, Y, resume=tmp_path / "state").objective_ <= first * (1 + 1e-3)
    model = case.make(Growing()).partial_fit(X[:9], Y[:9], init=case.init[:9])
    before = model.coef_
    model.partial_fit(X[9:], Y[9:])
    assert_true(model, case.state(X[9:], Y[9:], mean=before))


@each
def test_warm_start_after_partial_fit(case):
    X, Y = case.data
    model = case.make(warm_start=True).partial_fit(X[:9], Y[:9]).partial_fit(X[9:], Y[9:])
    best = case.state().best(model.coef_)
    first = model.fit(X, Y).history_[0]
    assert_true(model, case.state())
    assert_brackets((first.lower_bound, first.upper_bound), case.state().state(best).optimum())


@each
def test_save_and_load(tmp_path, case):
    model = case.make(lower=-1.0, prior=Prior(variance=2.0), n_init=2, max_rounds=9).fit(*case.data)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="saved without its task"):
        dualsvm.load(tmp_path / "model")
    again = dualsvm.load(tmp_path / "model", task=case.kind())
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert list(again.predict(case.data[0])) == list(model.predict(case.data[0]))
    assert again.latent(case.data[0]) == model.latent(case.data[0])
    assert again.history_ == model.history_
    assert [type(one) for one in again.history_] == [type(one) for one in model.history_]
    for name in ("objective_", "n_rounds_", "gap_", "converged_", "certified_", "n_iter_", "n_oracle_calls_"):
        assert getattr(again, name) == getattr(model, name)
    assert (again.C, again.lower, again.n_init, again.max_rounds) == (C, -1.0, 2, 9)
    assert again.score(*case.data) == model.score(*case.data)
    assert again.fit(*case.data).objective_ == pytest.approx(model.objective_, rel=1e-9)


@each
def test_save_and_load_what_is_not_fitted_or_failed(tmp_path, case):
    case.make(n_init=3).save(tmp_path / "model")
    fresh = dualsvm.load(tmp_path / "model", task=case.kind())
    assert fresh.n_init == 3
    assert not hasattr(fresh, "coef_")
    model = case.make(fails(case, case.method, 5))
    with pytest.raises(OracleError):
        model.fit(*case.data, init=case.init)
    model.save(tmp_path / "model")
    again = dualsvm.load(tmp_path / "model", task=case.kind())
    assert again.history_ == model.history_
    assert again.objective_ == model.objective_ == np.inf
    assert not again.converged_
