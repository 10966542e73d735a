"""Structured problems over shares of the examples: the same bounds, however the examples are divided."""

import numpy as np
import pytest

from dualsvm import Prior, StructuredSVM
from dualsvm.shares import Course, Host, Lead, Order, Together
from dualsvm.structured.constraints import OracleError
from dualsvm.structured.examples import Examples, Stream
from dualsvm.structured.oracle import OfTask, TaskProblem
from dualsvm.structured.share import OracleShare, ground_of
from dualsvm.tasks import Chain, Multiclass

from .structured import FEATURES, Signs, assert_brackets, parameters, said, write_out
from .test_structured import chain_data, chain_outputs, signs_data

C = 0.3


def multiclass_data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["x", "y", "z"], size=n)
    X = np.array([y == label for label in "xyz"]).T + rng.normal(size=(n, 3))
    return list(X), list(y)


CASES = {
    "Signs": (Signs, signs_data(), Signs.outputs),
    "Chain": (Chain, chain_data(), chain_outputs),
    "Multiclass": (Multiclass, multiclass_data(), lambda x, y: list("xyz")),
}


def task_of(case):
    make, (X, Y), _ = CASES[case]
    task = make()
    if hasattr(task, "initialize"):
        task.initialize(X, Y)
    return task


def lead_of(task, X, Y, cuts, tol=1e-3, pieces=1, rescaling="margin", cost=C, read=Examples, **terms):
    """Lead shares that end at these cuts, each of so many pieces; a share may be empty."""
    terms = {"prior": None, "lower": None, "upper": None} | terms
    hosts = []
    for k, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(Y)], strict=True)):
        own = None if a == b else TaskProblem(task, read(X[a:b], Y[a:b]), rescaling, cost, *terms.values())
        sizes = [len(part) for part in np.array_split(np.arange(a, b), pieces)]
        numbers = range(k * pieces, (k + 1) * pieces)
        hosts.append(Host(k, numbers, [OracleShare(own, sizes, k)]))
    ground, outward = ground_of(OfTask(task, 1, cost, *terms.values(), None))
    shares = sum(host.shares[0].problem is not None for host in hosts)
    return Lead(Together(hosts), [Course(ground, tol, shares)], lambda weights: outward(weights[0]))


def evenly(n, shares):
    return np.linspace(0, n, shares + 1).astype(int)[1:-1].tolist()


def pursued(lead, rounds=400):
    lead.begin()
    lead.ended = lead.pursue(rounds)
    return lead


@pytest.mark.parametrize("shares", [1, 2, 4, 8])
@pytest.mark.parametrize("case", CASES)
def test_bounds_are_those_of_the_undivided_problem(case, shares):
    task, (X, Y) = task_of(case), CASES[case][1]
    lead = pursued(lead_of(task, X, Y, evenly(len(Y), shares)))
    local = StructuredSVM(CASES[case][0](), C=C, tol=1e-5, random_state=0).fit(X, Y)
    statement = write_out(task, X, Y, CASES[case][2], C)
    assert lead.ended == "converged"
    assert lead.gap <= 1e-3
    assert lead.lower <= local.upper_bound_ * (1 + 1e-9)
    assert lead.upper >= local.lower_bound_ * (1 - 1e-9)
    assert_brackets((lead.lower, lead.upper), statement.optimum())
    assert statement.primal(lead.weights()) == pytest.approx(lead.upper, rel=1e-9)


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("case", ["Signs", "Chain"])
def test_priors_and_bounds_on_weights(case, feature):
    task, (X, Y) = task_of(case), CASES[case][1]
    terms = said(feature, task.size_joint_feature)
    statement = write_out(task, X, Y, CASES[case][2], C, **terms)
    lead = pursued(lead_of(task, X, Y, evenly(len(Y), 3), **parameters(terms)))
    assert lead.ended == "converged"
    assert_brackets((lead.lower, lead.upper), statement.optimum())
    assert statement.primal(lead.weights()) == pytest.approx(lead.upper, rel=1e-9)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_every_round_has_bounds(rescaling):
    task, (X, Y) = task_of("Chain"), CASES["Chain"][1]
    optimum = write_out(task, X, Y, chain_outputs, C, rescaling).optimum()
    lead = lead_of(task, X, Y, [2, 9], rescaling=rescaling)
    lead.begin()
    for _ in range(10):
        lead.round()
        assert_brackets((lead.lower, lead.upper), optimum)
    lead.prove()
    assert_brackets((lead.lower, lead.upper), optimum)


def test_shares_may_be_empty_and_of_any_size():
    task, (X, Y) = task_of("Chain"), CASES["Chain"][1]
    lead = pursued(lead_of(task, X, Y, [0, 1, 1, 12]))
    assert lead.ended == "converged"
    assert_brackets((lead.lower, lead.upper), write_out(task, X, Y, chain_outputs, C).optimum())


def test_examples_that_are_read_in_their_order():
    task, (X, Y) = task_of("Signs"), CASES["Signs"][1]
    lead = lead_of(task, X, Y, [11], read=lambda X, Y: Stream(list(zip(X, Y, strict=True))))
    lead.begin()
    for effort in (0.4, 0.5, 1.7):  # a pass ends anywhere
        order = lead.courses[0].order(effort, effort == 0.5)
        lead.courses[0].take(lead.hosts.ask("turn", [(order,)]).sums[0])
    lead.ended = lead.pursue(400)
    assert lead.ended == "converged"
    assert_brackets((lead.lower, lead.upper), write_out(task, X, Y, Signs.outputs, C).optimum())


class Words(Signs):
    """As many weights as the words that occur, which nobody knows beforehand."""

    size_joint_feature = None

    def joint_feature(self, x, y):
        word = round(10 * abs(x[0][0]))
        full = super().joint_feature(x, y)
        return np.append(np.arange(4), 4 + word), np.append(full, float(y[0]))

    def inference(self, x, w):
        raise NotImplementedError

    def loss_augmented_inference(self, x, y, w):
        def score(h):
            column, value = self.joint_feature(x, h)
            known = column < len(w)
            return self.loss(y, h) + value[known] @ w[column[known]]

        return max(self.outputs(x), key=score)


@pytest.mark.parametrize("terms", [{}, {"prior": Prior(variance=0.5)}, {"lower": -0.1, "upper": 0.4}])
def test_weights_that_come_up_late(terms):
    X, Y = signs_data()
    order = np.argsort([abs(x[0][0]) for x in X])  # so that shares know of different numbers of weights
    X, Y = [X[i] for i in order], [Y[i] for i in order]
    task, known = Words(), Words()
    lead = pursued(lead_of(task, X, Y, evenly(len(Y), 3), **terms))
    n = known.size_joint_feature = 5 + max(round(10 * abs(x[0][0])) for x in X)
    w = np.zeros(n)
    w[: len(lead.weights())] = lead.weights()
    said = {name: np.full(n, value) for name, value in terms.items() if name != "prior"}
    if "prior" in terms:
        said["variance"] = np.full(n, 0.5)
    statement = write_out(known, X, Y, Signs.outputs, C, **said)
    assert lead.ended == "converged"
    assert_brackets((lead.lower, lead.upper), statement.optimum())
    assert statement.primal(w) == pytest.approx(lead.upper, rel=1e-9)


@pytest.mark.parametrize("feature", ["plain", "covariance"])
def test_what_is_kept_of_every_piece_is_taken_up_again(feature):
    task, (X, Y) = task_of("Chain"), CASES["Chain"][1]
    terms = parameters(said(feature, task.size_joint_feature))
    lead = lead_of(task, X, Y, [7], pieces=2, **terms)
    lead.begin()
    for _ in range(15):
        lead.round()
    lead.prove()
    kept = {piece: own for piece, own in lead.hosts.ask("keep", [()]).each.items()}
    assert sorted(kept) == [0, 1, 2, 3]
    assert all(type(part) is np.ndarray for own in kept.values() for part in own[0].values())
    again = lead_of(task, X, Y, [7], pieces=2, **terms)
    again.begin(kept)
    assert again.courses[0].dual == pytest.approx(lead.courses[0].dual, rel=1e-9)
    np.testing.assert_allclose(again.courses[0].u, lead.courses[0].u, atol=1e-9)


@pytest.mark.parametrize("feature", ["plain", "covariance", "prior with bounds"])
def test_what_is_told_of_a_round_is_what_the_dual_variables_make(feature):
    task, (X, Y) = task_of("Chain"), CASES["Chain"][1]
    lead = lead_of(task, X, Y, [7], **parameters(said(feature, task.size_joint_feature)))
    lead.begin()
    course = lead.courses[0]
    for freedom in (1.0, 0.1, 0.4):
        z = course.weights()
        (report,) = lead.hosts.ask("turn", [(Order(z, freedom, pivot=z, anew=True),)]).sums
        (anew,) = lead.hosts.ask("prove", [(z,)]).sums
        np.testing.assert_allclose(course.u + report.change.dense, anew.u.dense, atol=1e-12)
        assert report.linear + report.rise == pytest.approx(anew.linear, rel=1e-12)
        course.prove(z, anew)
        distance = course.ground.apart(z, course.u)  # and the rest of the gap is what the examples lack
        assert course.ground.distance(z) + anew.loss - course.dual == pytest.approx(distance + anew.gap, rel=1e-9)


class Missing(Signs):
    """A search that finds the worst output only as long as it is asked near 0."""

    def loss_augmented_inference(self, x, y, w):
        return super().loss_augmented_inference(x, y, w) if abs(w).max(initial=0) < 0.2 else y


def test_a_search_that_misses_constraints_is_found_out():
    X, Y = signs_data()
    with pytest.raises(ValueError, match="a search misses constraints"):
        pursued(lead_of(Missing(), X, Y, [15]))


class Failing(Signs):
    def loss_augmented_inference(self, x, y, w):
        if x[0][0] == 7.0:
            raise RuntimeError("too hot")
        return super().loss_augmented_inference(x, y, w)


def test_errors_name_the_piece():
    X, Y = signs_data()
    X[7][0][0] = 7.0
    problem = TaskProblem(Failing(), Examples(X, Y), "margin", C, None, None, None)
    share = OracleShare(problem, [5, 0, 20, 5], 0, names=["a", "b", "c", "d"])
    share.begin(share.measure().u)
    with pytest.raises(OracleError, match="the task failed on example 2 of c: RuntimeError: too hot"):
        share.prove(np.zeros(4))


class Guessing(Signs):
    """A search that does not say that it finds the worst."""

    exact = False


def test_without_proofs_nothing_is_certified():
    X, Y = signs_data()
    lead = pursued(lead_of(Guessing(), X, Y, [15]))
    assert lead.upper == np.inf
    assert lead.ended == "uncertified"
    optimum = write_out(Signs(), X, Y, Signs.outputs, C).optimum()
    assert lead.lower <= optimum * (1 + 1e-9)
    assert write_out(Signs(), X, Y, Signs.outputs, C).primal(lead.weights()) <= optimum * (1 + 3e-3)
