"""What lists and the classes with margins or rescaled slacks refuse, and in which forms they are read."""

from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp

from dualsvm import Prior, Problem, solve

from .test_input import (
    BAD_COMMON,
    BAD_ROWS,
    CLASSES,
    FORMS,
    LOSSES,
    N,
    X,
    assert_refused,
    dense,
    entry,
    optimum,
    parts,
)

GRADES = np.array([0, 2, 1, 1, 0, 2])
QID = np.array([4, 4, 4, -1, -1, -1])
LISTS = {"X": X, "y": GRADES, "qid": QID}
SLACK = {"X": X, "y": CLASSES, "class_loss": LOSSES, "rescaling": "slack", "margin": np.linspace(0.5, 1, N)}
FINITE = "contains NaN"


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS)
def test_bad_rows(rows, message):
    assert_refused(Problem.lists, {**LISTS, "X": rows}, f"^X .*{message}", ValueError)


@pytest.mark.parametrize(("make", "given"), [(Problem.lists, LISTS), (Problem.multiclass, SLACK)])
@pytest.mark.parametrize(("changed", "message"), BAD_COMMON)
def test_bad_cost_loss_prior_or_bounds(make, given, changed, message):
    if make == Problem.lists and "cost" in changed and np.shape(changed["cost"]) == (2,):
        changed = {"cost": np.ones(3)}  # there are two lists
        message = r"cost must be one number or one per example, shape \(2,\), got shape \(3,\)"
    assert_refused(make, {**given, **changed}, message)


BAD_LISTS = [
    ({"y": GRADES[:-1]}, r"y must hold one relevance per row of X, shape \(6,\), got shape \(5,\)"),
    ({"y": GRADES[:, None]}, r"y must hold one relevance per row of X, .*got shape \(6, 1\)"),
    ({"y": 1.0}, r"y must hold one relevance per row of X, shape \(6,\), got shape \(\)"),
    ({"y": None}, r"y must hold one relevance per row of X, .*got shape \(\)"),
    ({"y": entry(np.nan)[:, 2]}, f"y {FINITE}"),
    ({"y": entry(np.inf)[:, 2]}, f"y {FINITE}"),
    ({"y": entry(1e151)[:, 2]}, "y .* 1e150"),
    ({"y": GRADES.astype(str)}, "y must hold real numbers, got dtype <U"),
    ({"y": GRADES * 1j}, "y must hold real numbers, got dtype complex128"),
    ({"y": [[1], [1, 2]] * 3}, "y must be an array, with lines of one length"),
    ({"qid": QID[:-1]}, r"qid must hold one integer per row, shape \(6,\), got shape \(5,\)"),
    ({"qid": QID[:, None]}, r"qid must hold one integer per row, .*got shape \(6, 1\)"),
    ({"qid": 3}, r"qid must hold one integer per row, .*got shape \(\)"),
    ({"qid": QID.astype(float)}, "qid must hold integers, got dtype float64"),
    ({"qid": QID.astype(str)}, "qid must hold integers, got dtype <U"),
    ({"qid": QID > 0}, "qid must hold integers, got dtype bool"),
    ({"qid": np.full(N, 2**63, np.uint64)}, r"qid contains integers beyond 2\*\*63"),
    ({"weight": np.ones(5)}, r"weight must be one number or one per row, shape \(6,\), got shape \(5,\)"),
    ({"weight": np.ones((N, 1))}, r"weight must be .*got shape \(6, 1\)"),
    ({"weight": entry(np.nan)[:, 2] + 4}, f"weight {FINITE}"),
    ({"weight": entry(np.inf)[:, 2]}, f"weight {FINITE}"),
    ({"weight": np.array([1, 1, 1, 1, 1, -0.5])}, "weight must not be negative, got -0.5"),
    ({"weight": ["1"] * N}, "weight must hold real numbers, got dtype <U1"),
    ({"margin": 0.0}, "margin must be positive, got 0.0"),
    ({"margin": -1.0}, "margin must be positive, got -1.0"),
    ({"margin": np.nan}, "margin must be a finite number.* got nan"),
    ({"margin": np.inf}, "margin must be a finite number.* got inf"),
    ({"margin": 1e151}, "margin must be a finite number, of 1e150 at most"),
    ({"margin": np.ones(N)}, "margin must be a finite number"),
    ({"margin": None}, "margin must be a finite number.* got None"),
    ({"margin": "1"}, "margin must be a finite number.* got '1'"),
    ({"cost": np.ones(N)}, r"cost must be .* one per example, shape \(2,\), got shape \(6,\)"),
]


@pytest.mark.parametrize(("changed", "message"), BAD_LISTS)
def test_bad_lists(changed, message):
    assert_refused(Problem.lists, {**LISTS, **changed}, message, ValueError)


def test_lists_have_neither_intercepts_nor_names():
    for name in ("intercept", "example", "pairs"):
        with pytest.raises(TypeError, match=name):
            Problem.lists(**LISTS, **{name: 1.0})


BAD_CLASSES = [
    ({"rescaling": "none"}, 'rescaling must be "margin" or "slack", got .none'),
    ({"rescaling": None}, 'rescaling must be "margin" or "slack", got None'),
    ({"rescaling": True}, 'rescaling must be "margin" or "slack", got True'),
    ({"rescaling": ["slack"]}, 'rescaling must be "margin" or "slack"'),
    ({"rescaling": np.array(["slack", "margin"])}, 'rescaling must be "margin" or "slack"'),
    ({"margin": np.ones(5)}, r"margin must be one number or one per row, shape \(6,\), got shape \(5,\)"),
    ({"margin": np.ones((N, 3))}, r"margin must be one number or one per row, .*got shape \(6, 3\)"),
    ({"margin": np.nan}, f"margin {FINITE}"),
    ({"margin": entry(np.inf)[:, 2]}, f"margin {FINITE}"),
    ({"margin": 1e151}, "margin .* 1e150"),
    ({"margin": "1"}, "margin must hold real numbers, got dtype <U1"),
    ({"margin": 1j}, "margin must hold real numbers, got dtype complex128"),
    ({"class_loss": -LOSSES}, "class_loss must not be negative, got -3.0"),
    ({"class_loss": LOSSES + np.eye(3)}, "class_loss must be finite.* with zeros on its diagonal"),
]


@pytest.mark.parametrize(("changed", "message"), BAD_CLASSES)
def test_bad_classes(changed, message):
    assert_refused(Problem.multiclass, {**SLACK, **changed}, message, ValueError)


@pytest.mark.parametrize("form", FORMS)
def test_rows_in_any_form(form):
    rows = FORMS[form]()
    before = deepcopy(parts(rows))
    for make, given in ((Problem.lists, LISTS), (Problem.multiclass, SLACK)):
        found, plain = (optimum(make(**{**given, "X": x, "cost": 0.1})) for x in (rows, dense(rows)))
        assert found == pytest.approx(plain, rel=3e-7)
    np.testing.assert_equal(parts(rows), before)


def test_grades_queries_and_weights_in_any_form():
    plain = optimum(Problem.lists(X, GRADES, QID, weight=[1, 2, 0, 1, 1, 2], cost=0.1))
    for y in (GRADES.tolist(), GRADES.astype(np.uint8), GRADES.astype(np.float16), GRADES * 10.0 - 5, GRADES * 1e149):
        for qid in (QID.tolist(), QID.astype(np.int8), QID.astype(object).tolist(), QID * 2**60):
            weight = np.array([1, 2, 0, 1, 1, 2], np.float32)
            assert optimum(Problem.lists(X, y, qid, weight=weight, cost=0.1)) == pytest.approx(plain, rel=3e-7)
    one = optimum(Problem.lists(X, GRADES, cost=0.1))
    assert optimum(Problem.lists(X, GRADES, np.full(N, 9), weight=1, cost=0.1)) == pytest.approx(one, rel=3e-7)
    four = optimum(Problem.lists(X, GRADES, cost=0.025, weight=2.0))
    assert four == pytest.approx(one, rel=3e-7)  # a pair counts the product


def test_margins_of_one_are_no_margins():
    for rescaling in ("margin", "slack"):
        given = {**SLACK, "rescaling": rescaling}
        plain = optimum(Problem.multiclass(**{**given, "margin": None}))
        for margin in (1, 1.0, np.ones(N), np.ones(N, np.float32), [True] * N):
            assert optimum(Problem.multiclass(**{**given, "margin": margin})) == pytest.approx(plain, rel=3e-7)


def test_costs_follow_ascending_queries():
    cost = np.array([0.3, 0.05])  # of -1 and of 4
    apart = Problem.lists(np.r_[X[3:], X[:3]], np.r_[GRADES[3:], GRADES[:3]], [0, 0, 0, 1, 1, 1], cost=cost)
    assert optimum(Problem.lists(**LISTS, cost=cost)) == pytest.approx(optimum(apart), rel=3e-7)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("make", "given"), [(Problem.lists, LISTS), (Problem.multiclass, SLACK)])
def test_a_solve_leaves_everything_as_it_was(make, given, sparse):
    given = deepcopy(given) | {"prior": Prior(mean=0.1, variance=np.full(3, 2.0)), "lower": np.full(3, -0.5)}
    if make == Problem.lists:
        given["weight"] = np.array([1.0, 2.0, 0.0, 1.0, 1.0, 2.0])
    given["X"] = sp.csr_matrix(X) if sparse else X.copy()
    before = deepcopy(parts(given))
    problem = make(**given)
    first = solve(problem, tol=1e-6, max_iter=10**5, random_state=0, n_jobs=2)
    alpha, w = first.alpha.copy(), first.w.copy()
    solve(problem, tol=1e-9, max_iter=10**5, start=first)
    np.testing.assert_equal(parts(given), before)
    np.testing.assert_equal([first.alpha, first.w], [alpha, w])
    for name in ("y", "qid", "weight", "margin", "class_loss"):  # what is not feature rows was copied
        if name in given:
            given[name][:] = 0
    np.testing.assert_array_equal(solve(problem, tol=1e-6, max_iter=10**5, random_state=0, n_jobs=2).w, w)
