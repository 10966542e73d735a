"""Shares that are lost at any moment, in this process: bounds stay true, and in the end dual variables prove them."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dualsvm import Problem
from dualsvm.shares import Course, Ground, Host, Lead, RowShare
from dualsvm.state import Layout

from .reference import state

SHARES, TOL = 3, 1e-3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.where(X[:, 0] + RNG.normal(size=60) > 0, 1.0, -1.0)
CUTS = np.split(np.arange(60), [15, 40])
COSTS = (0.05, 2.0)  # two problems side by side; the first is done long before the other
STATED = [state("binary", X, {"y": Y, "margin": 1.0}, cost=cost, loss="hinge") for cost in COSTS]
OPTIMA = [statement.optimum() for statement in STATED]


def piece(k, cost):
    return Problem.binary(X[CUTS[k]], Y[CUTS[k]], cost=cost)


def host(k):
    return Host(k, [k], [RowShare([piece(k, cost)], k, 1) for cost in COSTS])


class Losing:
    """Hosts of which some are lost: `events` says, by the number of the question, what befalls whom.

    "before": a new host is asked; "after": the first one does what it was asked, but its answer is lost with it;
    "twice": a question comes twice; "late": an earlier one comes once more, after it was answered.
    """

    def __init__(self, events):
        self.events, self.hosts = events, [host(k) for k in range(SHARES)]
        self.asked, self.lost = [], 0

    def __len__(self):
        return SHARES

    def ask(self, verb, messages):
        self.asked.append((len(self.asked), verb, messages))
        question, happens = self.asked[-1], self.events.get(len(self.asked), {})
        for k, how in happens.items():
            if how in ("after", "twice"):
                self.hosts[k].ask(*question)
            if how in ("before", "after"):
                self.hosts[k], self.lost = host(k), self.lost + 1
        answers = [one.ask(*question) for one in self.hosts]
        for k, how in happens.items():
            if how == "late" and len(self.asked) > 1:
                assert self.hosts[k].ask(*self.asked[-2]).fresh == {k}
        return sum(answers[1:], answers[0])


def led(events):
    """Lead all to the end; check the bounds of every round."""
    hosts = Losing(events)
    grounds = [Ground.of(Layout(piece(0, cost))) for cost in COSTS]
    lead = Lead(hosts, [Course(ground, TOL, SHARES) for ground in grounds], np.array)
    lead.keep = lambda: check_bounds(lead)
    lead.begin()
    return hosts, lead, lead.pursue(3000)


def check_bounds(lead):
    for course, optimum in zip(lead.courses, OPTIMA, strict=True):
        assert course.lower <= optimum * (1 + 1e-7)
        assert course.upper >= optimum * (1 - 1e-7)


def check_end(lead):
    """Check by definition that what is left in the end proves the tolerance."""
    kept = lead.gather("keep")
    assert sorted(kept) == list(range(SHARES))
    for k, (course, statement) in enumerate(zip(lead.courses, STATED, strict=True)):
        alpha = np.concatenate([np.ravel(kept[number][k]) for number in range(SHARES)])
        assert alpha.min() >= 0
        assert alpha.max() <= COSTS[k] * (1 + 1e-12)
        upper = statement.primal(course.w)
        np.testing.assert_allclose(course.upper, upper, rtol=1e-9)
        assert upper - statement.dual(alpha) <= TOL * upper * (1 + 1e-6)
    check_bounds(lead)


moments = st.dictionaries(
    st.integers(1, 60),
    st.dictionaries(st.integers(0, SHARES - 1), st.sampled_from(["before", "after", "twice", "late"]), min_size=1),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(moments)
@example({k: {0: "after", 1: "before", 2: "after"} for k in range(1, 30)})
@example({k: {k % SHARES: "before"} for k in range(1, 60)})
def test_whatever_is_lost_bounds_are_true_and_all_ends(events):
    hosts, lead, status = led(events)
    assert status == "converged"
    check_end(lead)
    assert lead.restarts <= hosts.lost


def test_every_loss_is_told():
    hosts, _, _ = led({})
    turns = [k + 1 for k, (_, verb, _) in enumerate(hosts.asked) if verb == "turn"]
    hosts, lead, _ = led({turns[2]: {0: "before", 2: "after"}})
    assert hosts.lost == lead.restarts == 2


def test_what_is_lost_when_all_is_done_is_found_again():
    hosts, lead, status = led({})
    assert status == "converged"
    rounds = lead.rounds
    hosts.events = {len(hosts.asked) + 1: {1: "before"}}
    check_end(lead)
    assert hosts.lost == lead.restarts == 1
    assert lead.rounds > rounds


def test_a_question_that_comes_late_moves_nothing():
    hosts, lead, _ = led({})
    before = lead.gather("keep")
    for serial, verb, messages in hosts.asked[:-1]:
        for one in hosts.hosts:
            assert one.ask(serial, verb, messages).fresh
    for k, kept in lead.gather("keep").items():
        np.testing.assert_array_equal(kept, before[k])
