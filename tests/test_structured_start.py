"""Structured models that go on from something: hot starts, checkpoints, files."""

import numpy as np
import pytest

import dualsvm
from dualsvm import OracleError, OracleSolution, StructuredSVM
from dualsvm.tasks import Assignment, Chain, Multiclass

from .structured import Lazy, Pairs, Signs, assert_solves, write_out
from .test_structured import C, chain_data, chain_outputs, reference, signs_data

X, Y = signs_data()


def model_of(task=None, **settings):
    settings = {"C": C, "tol": 1e-4, "max_iter": 2000, "random_state": 0, "warm_start": True} | settings
    return StructuredSVM(task or Signs(), **settings)


class Fails(Signs):
    """Works for so many calls."""

    def __init__(self, calls, error=RuntimeError):
        super().__init__()
        self.left, self.error = calls, error

    def loss_augmented_inference(self, x, y, w, relaxed=False, return_energy=False):
        self.left -= 1
        if self.left < 0:
            raise self.error("the lights went out")
        return super().loss_augmented_inference(x, y, w)


@pytest.mark.parametrize("changed", [0.5, 1.0, 2.0])
def test_another_cost(changed):
    model = model_of().fit(X, Y)
    model.C = changed * C
    cold = model_of(C=changed * C).fit(X, Y)
    model.fit(X, Y)
    assert_solves(model, reference("Signs", changed * C))
    assert model.n_oracle_calls_ < cold.n_oracle_calls_
    if changed == 1:
        assert model.n_oracle_calls_ == len(X)  # one certificate


@pytest.mark.parametrize("form", [(Lazy(X), Lazy(Y)), (Pairs(X, Y),)])
def test_starts_from_other_forms_of_the_same_examples(form):
    model = model_of().fit(X, Y)
    assert model.fit(*form).n_oracle_calls_ == len(X)


def test_more_examples_and_other_weights():
    model = model_of().fit(X[:20], Y[:20])
    assert_solves(model.fit(X, Y), reference("Signs"))
    weight = np.linspace(0, 2, len(X))
    assert_solves(model.fit(X, Y, sample_weight=weight), reference("Signs", C * weight))
    assert_solves(model.fit(X[:5], Y[:5]), write_out(Signs(), X[:5], Y[:5], Signs.outputs, C))


def test_changed_examples_never_give_a_false_bound():
    model = model_of().fit(X, Y)
    others = [x if i % 3 else -x for i, x in enumerate(X)]
    assert_solves(model.fit(others, Y), write_out(Signs(), others, Y, Signs.outputs, C))
    turned = [y if i % 2 else (-y[0], y[1]) for i, y in enumerate(Y)]
    assert_solves(model.fit(others, turned), write_out(Signs(), others, turned, Signs.outputs, C))


def test_what_only_other_outputs_see():
    """The joint features of the true outputs stay as they are; the constraints do not."""
    tables = np.random.default_rng(0).normal(size=(6, 2, 3, 2))
    true, changed = [[0, 1]] * 6, tables.copy()
    changed[:, :, 2] *= 0.1
    changed[:, 0, 1] *= -1
    model = model_of(Assignment()).fit(tables, true)
    outputs = [[a, b] for a in range(3) for b in range(3) if a != b]
    assert_solves(model.fit(changed, true), write_out(model.task, changed, true, lambda x, y: outputs, C))


def test_another_loss():
    inputs, labels = np.random.default_rng(0).normal(size=(12, 2)), ["a", "b", "c"] * 4
    model = model_of(Multiclass(cost=5 * (1 - np.eye(3)))).fit(inputs, labels)
    model.task = Multiclass()
    assert_solves(model.fit(inputs, labels), write_out(model.task, inputs, labels, lambda x, y: "abc", C))
    model.task.cost = 0.1 * (1 - np.eye(3))  # of the same object
    assert_solves(model.fit(inputs, labels), write_out(model.task, inputs, labels, lambda x, y: "abc", C))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_another_rescaling():
    model = model_of(tol=0.05, max_iter=50).fit(X, Y)
    model.rescaling = "slack"
    assert_solves(model.fit(X, Y), reference("Signs", rescaling="slack"), converged=False)
    model.rescaling = "margin"
    assert_solves(model.fit(X, Y), reference("Signs"))


def test_other_labels():
    """With a label in between, weights change their places."""
    inputs = np.random.default_rng(0).normal(size=(12, 2))
    model = model_of(Multiclass(cost=None)).fit(inputs, ["a", "c"] * 6)
    labels = ["a", "c"] * 5 + ["b", "b"]
    assert_solves(model.fit(inputs, labels), write_out(model.task, inputs, labels, lambda x, y: "abc", C))


@pytest.mark.parametrize("task", [Chain(), Chain(cost=1 - np.eye(3), labels=["z", "y", "x"]), Chain(labels="xyz")])
def test_chains_start_warm(task):
    chains, labels = chain_data()
    model = model_of(task).fit(chains, labels)
    assert model.fit(chains, labels).n_oracle_calls_ == len(chains)


def test_warm_start_after_partial_fit():
    model = model_of().partial_fit(X, Y)
    assert_solves(model.fit(X, Y), reference("Signs"))


def test_a_task_that_counts_its_calls_still_starts_warm():
    model = model_of(Signs()).fit(X, Y)
    assert model.task.inference_calls > 0
    assert model.fit(X, Y).n_oracle_calls_ == len(X)


@pytest.mark.parametrize("calls", [15, 40, 80])
def test_a_failure_keeps_the_state(calls):
    model = model_of(Fails(calls), tol=1e-6)
    with pytest.raises(
        OracleError, match=r"the task failed on example \d+: RuntimeError: the lights went out"
    ) as info:
        model.fit(X, Y)
    assert isinstance(info.value.__cause__, RuntimeError)
    assert not model.converged_
    assert 0 < model.n_oracle_calls_ <= calls
    assert_solves(model, reference("Signs"), converged=False)
    model.task = Signs()
    assert_solves(model.fit(X, Y), reference("Signs"))


def test_an_interrupt_keeps_the_state():
    model = model_of(Fails(70, KeyboardInterrupt), tol=1e-6)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.coef_.any()
    assert 0 < model.n_oracle_calls_ <= 70
    assert_solves(model, reference("Signs"), converged=False)


@pytest.mark.parametrize("every", [0.0, 600.0])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_checkpoint_is_gone_on_from(tmp_path, every, error):
    path = tmp_path / "state"
    task = Fails(70, error)
    with pytest.raises((OracleError, KeyboardInterrupt)):
        model_of(task, tol=1e-6, warm_start=False).fit(X, Y, checkpoint=path, checkpoint_every=every)
    state = OracleSolution.load(path)
    assert 0 < state.n_oracle_calls <= 70
    assert len(state.alpha) > 0
    task.left = 10**9
    resumed = model_of(task, tol=1e-6, warm_start=False).fit(X, Y, resume=path)
    cold = model_of(tol=1e-6, warm_start=False).fit(X, Y)
    assert_solves(resumed, reference("Signs"))
    assert resumed.n_oracle_calls_ < cold.n_oracle_calls_


def test_the_last_checkpoint_is_the_solution(tmp_path):
    path = tmp_path / "state"
    model = model_of(warm_start=False).fit(X, Y, checkpoint=path)
    state = OracleSolution.load(path)
    assert state.status == "converged"
    assert (state.lower_bound, state.upper_bound) == (model.lower_bound_, model.upper_bound_)
    np.testing.assert_array_equal(state.w, model.coef_)
    assert model_of(warm_start=False).fit(X, Y, resume=path).n_oracle_calls_ == len(X)
    other = [-x for x in X]
    assert_solves(
        model_of(warm_start=False).fit(other, Y, resume=path), write_out(Signs(), other, Y, Signs.outputs, C)
    )


def test_a_checkpoint_of_a_stream(tmp_path):
    chains, labels = chain_data()
    path = tmp_path / "state"
    model_of(Chain(), warm_start=False).fit(Pairs(chains, labels), checkpoint=path, checkpoint_every=0.0)
    again = model_of(Chain(), warm_start=False).fit(Pairs(chains, labels), resume=path)
    assert again.n_oracle_calls_ == len(chains)
    assert_solves(again, write_out(again.task, chains, labels, chain_outputs, C))


def test_no_file_to_resume(tmp_path):
    with pytest.raises(FileNotFoundError):
        model_of().fit(X, Y, resume=tmp_path / "nothing")
    (tmp_path / "nonsense").write_bytes(b"no")
    with pytest.raises(ValueError, match="is not a solution of an oracle problem saved by dualsvm"):
        model_of().fit(X, Y, resume=tmp_path / "nonsense")


def test_save_and_load_a_task_of_ones_own(tmp_path):
    model = model_of(lower=-1.0, prior=dualsvm.Prior(variance=2.0)).fit(X, Y)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="saved without its task"):
        dualsvm.load(tmp_path / "model")
    again = dualsvm.load(tmp_path / "model", task=Signs())
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.predict(X) == model.predict(X)
    assert again.history_ == model.history_
    assert (again.gap_, again.lower, again.C) == (model.gap_, -1.0, C)
    assert again.fit(X, Y).lower_bound_ <= model.upper_bound_

    class Other(Signs):
        size_joint_feature = 5

    with pytest.raises(ValueError, match="is not an estimator saved by dualsvm"):
        dualsvm.load(tmp_path / "model", task=Other())


@pytest.mark.parametrize("cost", [None, [[0, 1, 2], [1, 0, 1], [2, 1, 0]], ((0, 1, 2), (1, 0, 1), (2, 1, 0))])
@pytest.mark.parametrize("labels", [None, ["z", "y", "x"], "xyz", np.array(["x", "y", "z"])])
def test_save_and_load_a_chain(tmp_path, cost, labels):
    chains, outputs = chain_data()
    model = model_of(Chain(cost=cost, labels=labels), tol=1e-2).fit(chains, outputs)
    model.save(tmp_path / "model")
    again = dualsvm.load(tmp_path / "model")
    assert [list(y) for y in again.predict(chains)] == [list(y) for y in model.predict(chains)]
    assert again.score(chains, outputs) == model.score(chains, outputs)
    again.save(tmp_path / "again")
    again = dualsvm.load(tmp_path / "again")
    assert again.fit(chains, outputs).coef_.tolist() == model.coef_.tolist()


@pytest.mark.parametrize("labels", [[3, 1, 2], [True, False], [(1, "a"), (2, "b")], [1.5, 2.5], np.array([5, 7])])
def test_labels_come_back_as_they_were(tmp_path, labels):
    outputs = [[labels[0], labels[1]], [labels[1]]]
    chains = [np.eye(2), np.ones((1, 2))]
    model = model_of(Chain(labels=labels), tol=1e-2).fit(chains, outputs)
    model.save(tmp_path / "model")
    again = dualsvm.load(tmp_path / "model")
    before, after = model.predict(chains), again.predict(chains)
    assert [y.tolist() for y in before] == [y.tolist() for y in after]
    assert before[0].dtype == after[0].dtype
    assert again.fit(chains, outputs).predict(chains)[0].dtype == before[0].dtype


def test_a_model_that_failed_can_be_saved(tmp_path):
    model = model_of(Fails(15))
    with pytest.raises(OracleError):
        model.fit(X, Y)
    model.save(tmp_path / "model")
    again = dualsvm.load(tmp_path / "model", task=Signs())
    assert again.history_ == model.history_
    assert again.upper_bound_ == np.inf
    assert not again.certified_
