"""Preferences among the rows of a query: counted by sorting, and by looking at every pair."""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from dualsvm import SVMRanker, _core
from dualsvm.queries import count_pairs, grades, groups, preference_pairs

SCORES = {
    "few values": lambda rng, n: rng.integers(-2, 3, n) / 2,
    "all equal": lambda rng, n: np.full(n, rng.normal()),
    "any": lambda rng, n: rng.normal(size=n),
    "tiny": lambda rng, n: rng.integers(-3, 4, n) * 5e-324,
    "huge": lambda rng, n: rng.normal(size=n) * 1e307,
    "of all sizes": lambda rng, n: rng.choice([-1, 1], n) * 10.0 ** rng.integers(-300, 300, n),
    "with an offset": lambda rng, n: 2.0**52 + rng.integers(0, 4, n),
    "signed zeros": lambda rng, n: rng.choice([-0.0, 0.0], n),
}
MARGINS = (-1.0, 0.0, 5e-324, 0.5, 1.0, 1e300, np.inf, -np.inf)


def swapped(scores, grade, start, margin):
    return _core.swapped(scores.astype(np.float64), grade.astype(np.int32), np.asarray(start, np.int64), margin)


def by_pairs(scores, grade, start, margin):
    """Look at every pair; differences beyond the largest number are infinite."""
    out = []
    with np.errstate(over="ignore"):
        for a, b in itertools.pairwise(start):
            s, g = scores[a:b], grade[a:b]
            ahead = s[:, None] - s[None, :]
            out.append(float(((g[:, None] > g[None, :]) & (ahead < margin)).sum()))
    return out


@st.composite
def lists(draw, largest=40):
    """Where lists begin and end, and a generator; one-row lists and empty ones among them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.lists(st.sampled_from([0, 1, 2, 3, 17, largest]), min_size=1, max_size=5))
    return np.concatenate([[0], np.cumsum(sizes)]), rng


@pytest.mark.parametrize("kind", SCORES)
@settings(deadline=None, max_examples=30)
@given(made=lists(), margin=st.sampled_from(MARGINS), n_grades=st.sampled_from([1, 2, 3, 1000]))
def test_violated_pairs_are_counted(kind, made, margin, n_grades):
    start, rng = made
    n = start[-1]
    scores, values = SCORES[kind](rng, n), rng.integers(n_grades, size=n).astype(float)
    grade = np.empty(n, np.int32)
    for a, b in itertools.pairwise(start):  # grades count from 0 within a list
        grade[a:b] = np.unique(values[a:b], return_inverse=True)[1]
    assert swapped(scores, grade, start, margin) == by_pairs(scores, grade, start, margin)


@pytest.mark.parametrize("n", [2, 31, 32, 33, 500])
def test_as_many_grades_as_rows(n):
    rng = np.random.default_rng(n)
    grade = rng.permutation(n)
    for scores in (grade.astype(float), -grade.astype(float), rng.normal(size=n), np.zeros(n)):
        for margin in (0.0, 1.0, 1.5, 10.0, np.inf):
            assert swapped(scores, grade, [0, n], margin) == by_pairs(scores, grade, [0, n], margin)
    assert swapped(grade, grade, [0, n], 1.0) == [0.0]  # apart by the margin, exactly
    assert swapped(grade, grade, [0, n], np.nextafter(1.0, 2.0)) == [n - 1.0]
    assert swapped(-grade, grade, [0, n], 0.0) == [n * (n - 1) / 2]


def test_a_margin_missed_by_the_last_bit():
    third = 1 / 3
    scores = np.array([0.0, third, 2 * third, 1.0])
    grade = np.arange(4)
    for margin in (third, np.nextafter(third, 1), np.nextafter(third, 0), 2 * third, 1.0, np.nextafter(1.0, 2)):
        assert swapped(scores, grade, [0, 4], margin) == by_pairs(scores, grade, [0, 4], margin)


def test_scores_further_apart_than_the_largest_number():
    model = SVMRanker(random_state=0).fit([[0.0], [1.0]], [0, 1])
    X, y = np.array([[-1.7e308], [0.0], [1.7e308]]), [1, 0, 2]
    assert model.pairwise_accuracy(X, y) == pytest.approx(2 / 3)  # all but the first two rows are in order


def test_no_lists():
    assert swapped(np.empty(0), np.empty(0), [0], 1.0) == []
    assert swapped(np.empty(0), np.empty(0), [0, 0, 0], 1.0) == [0.0, 0.0]


@settings(deadline=None, max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 60),
    queries=st.integers(1, 8),
    n_values=st.sampled_from([1, 3, 99]),
)
def test_groups_grades_and_pairs(seed, n, queries, n_values):
    rng = np.random.default_rng(seed)
    qid = rng.permutation(1000)[:queries][rng.integers(queries, size=n)] - 500
    values = rng.normal(size=n_values)[rng.integers(n_values, size=n)]
    values[rng.random(n) < 0.1] = -0.0
    values[rng.random(n) < 0.1] = 0.0
    start, member = groups(qid)
    assert sorted(member) == list(range(n))
    grade = grades(values[member], start)
    for q, name in enumerate(np.unique(qid)):
        place = slice(start[q], start[q + 1])
        rows = member[place]
        np.testing.assert_array_equal(rows, np.flatnonzero(qid == name))
        np.testing.assert_array_equal(grade[place], np.unique(values[rows] + 0.0, return_inverse=True)[1])
    expected = {(i, j) for i in range(n) for j in range(n) if qid[i] == qid[j] and values[i] > values[j]}
    pairs = preference_pairs(values, start, member)
    assert len(pairs) == len(expected) == count_pairs(values[member], start).sum()
    assert set(map(tuple, pairs.tolist())) == expected
    assert sum(swapped(rng.normal(size=n), grade, start, np.inf)) == len(expected)
