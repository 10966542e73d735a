"""What is refused, with a message that names it; what is read as it is, without a copy and unchanged."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from dualsvm import Prior, Problem, Solution, solve

N, D = 6, 3
X = np.random.default_rng(0).integers(-3, 4, size=(N, D)).astype(float)
MARGINS = np.linspace(0.5, 1.5, N)
SIGNS = np.array([1, -1, 1, 1, -1, -1])
TARGETS = np.linspace(-1.0, 2.0, N)
CLASSES = np.array([0, 1, 2, 0, 1, 2])
PAIRS = np.array([[0, 1], [2, 1], [3, 5], [4, 0]])
LOSSES = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [3.0, 1.0, 0.0]])

TASKS = {
    "rows": (Problem, {"rows": X, "margins": MARGINS}),
    "binary": (Problem.binary, {"X": X, "y": SIGNS}),
    "regression": (Problem.regression, {"X": X, "y": TARGETS, "epsilon": 0.1}),
    "multiclass": (Problem.multiclass, {"X": X, "y": CLASSES, "class_loss": LOSSES}),
    "ranking": (Problem.ranking, {"X": X, "pairs": PAIRS}),
}


def state(task, **changed):
    """State a problem of the task with some of its arguments replaced or added."""
    make, arguments = TASKS[task]
    if "x" in changed:  # the feature rows, whatever the task calls them
        changed["rows" if task == "rows" else "X"] = changed.pop("x")
    return make(**{**arguments, **changed})


def parts(value):
    """The arrays that a value is made of."""
    if isinstance(value, Problem):
        return parts(value.rows)
    if isinstance(value, Prior | Solution):
        return parts(vars(value))
    if isinstance(value, dict):
        return [part for v in value.values() for part in parts(v)]
    if sp.issparse(value):
        return [getattr(value, k) for k in ("data", "indices", "indptr", "row", "col") if hasattr(value, k)]
    return [value]


def assert_refused(call, arguments, message, error=(ValueError, TypeError)):
    """The call fails with the message, and leaves its arguments as they were."""
    before = deepcopy(parts(arguments))
    with pytest.raises(error, match=message):
        call(**arguments)
    np.testing.assert_equal(parts(arguments), before)


def entry(value, dtype=np.float64):
    """Rows with one entry replaced, the last: the one that a loop in steps would miss."""
    changed = X.astype(dtype)
    changed[-1, -1] = value
    return changed


def csr(data=(1.0, 2.0, 3.0), indices=(0, 1, 2), indptr=(0, 1, 1, 2, 2, 2, 3), dtype=np.int32):
    """A CSR matrix made of these parts as they are: scipy checks less when they are set one by one."""
    matrix = sp.csr_matrix((N, D))
    matrix.data = np.array(data)
    matrix.indices, matrix.indptr = np.array(indices, dtype=dtype), np.array(indptr, dtype=dtype)
    return matrix


BAD_ROWS = [
    (X[0], r"must be 2-D \(rows x features\), got 1-D"),
    (X[None], "must be 2-D .*, got 3-D"),
    (sp.coo_array(X[0]), "must be 2-D .*, got 1-D"),
    (None, "must be 2-D"),
    ([[1.0, 2.0], [3.0]] * 3, "must be an array, with lines of one length"),
    (X[:0], r"has no rows \(shape \(0, 3\)\)"),
    (X[:, :0], r"has no columns \(shape \(6, 0\)\)"),
    (sp.csr_matrix((0, D)), "has no rows"),
    (sp.csr_matrix((N, 0)), "has no columns"),
    *[(entry(v, t), "contains NaN, inf") for v in (np.nan, np.inf, -np.inf) for t in ("f4", "f8")],
    *[(entry(v), "beyond 1e150") for v in (1e151, -1e151)],
    *[(sp.csr_matrix(entry(v)), "contains NaN, inf") for v in (np.nan, np.inf, -1e151)],
    (sp.csc_array(entry(np.inf, np.float32)), "contains NaN, inf"),
    # too large only once its duplicates are summed
    (csr(data=[9e149, 9e149, 1.0], indices=[0, 0, 1], indptr=[0, 2, 2, 2, 2, 2, 3]), "beyond 1e150"),
    (X.astype(object), "must hold real numbers, got dtype object"),
    (X.astype(str), "must hold real numbers, got dtype <U"),
    (X.astype(complex), "must hold real numbers, got dtype complex128"),
    (X.astype("M8[s]"), "must hold real numbers, got dtype datetime64"),
    (sp.csr_matrix(X.astype(complex)), "must hold real numbers, got dtype complex128"),
    (csr(indices=[0, 3, 1]), r"broken CSR matrix: .* indices must lie in 0 \.\. 2"),
    (csr(indices=[0, -1, 1]), "broken CSR"),
    (csr(indices=[0, 2**40, 1], dtype=np.int64), "broken CSR"),
    (csr(indptr=[0, 2, 1, 2, 2, 2, 3]), "broken CSR matrix: its indptr must start at 0, not decrease"),
    (csr(indptr=[1, 1, 1, 2, 2, 2, 3]), "broken CSR"),
    (csr(indptr=[0, 1, 1, 2, 2, 2, 9]), "broken CSR"),
    (csr(indptr=[0, 1, 1, 2, 2, 2, -1]), "broken CSR"),
    (csr(indptr=[0, 1, 1, 2, 3]), "broken CSR"),
    (csr(data=[1.0, 2.0]), "broken CSR"),
]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("rows", "message"), BAD_ROWS)
def test_bad_rows(task, rows, message):
    name = "rows" if task == "rows" else "X"
    make, arguments = TASKS[task]
    assert_refused(make, {**arguments, name: rows}, f"^{name} .*{message}", ValueError)


FINITE = "contains NaN"
BAD_ARGUMENTS = [
    ("rows", {"margins": entry(np.nan)[:, 2]}, f"margins {FINITE}"),
    ("rows", {"margins": np.inf}, f"margins {FINITE}"),
    ("rows", {"margins": MARGINS[:-1]}, r"margins must be one number or one per row, .*got shape \(5,\)"),
    ("rows", {"margins": MARGINS[:, None]}, r"margins .* got shape \(6, 1\)"),
    ("rows", {"margins": "1"}, "margins must hold real numbers, got dtype <U1"),
    ("rows", {"margins": 1j}, "margins must hold real numbers, got dtype complex128"),
    ("rows", {"example": np.arange(6.0)}, "example must hold integers, got dtype float64"),
    ("rows", {"example": ["a"] * 6}, "example must hold integers, got dtype <U1"),
    ("rows", {"example": [True] * 6}, "example must hold integers, got dtype bool"),
    ("rows", {"example": np.arange(5)}, r"example must hold one integer per row, .*got shape \(5,\)"),
    ("rows", {"example": np.arange(6)[:, None]}, r"example .* got shape \(6, 1\)"),
    ("rows", {"example": np.full(6, 2**63, np.uint64)}, r"example contains integers beyond 2\*\*63"),
    ("rows", {"example": [1, 1, 2, 2, 3, 3], "cost": np.ones(6)}, r"cost .*\(3,\), got shape \(6,\)"),
    ("binary", {"y": SIGNS[:-1]}, r"y must hold one label per row of X, shape \(6,\), got shape \(5,\)"),
    ("binary", {"y": SIGNS[:, None]}, r"y .* got shape \(6, 1\)"),
    ("binary", {"y": [0, 1, 1, 0, 0, 1]}, "y must hold the labels -1 and 1 only, got 0, 1"),
    ("binary", {"y": [np.nan, 1, 1, -1, -1, 1]}, "y must hold the labels -1 and 1 only, got .*nan"),
    ("binary", {"y": ["no", "yes"] * 3}, "y must hold the labels -1 and 1 only, got 'no', 'yes'"),
    ("binary", {"y": np.array([1, -1, 1, None, "a", 1], object)}, "y must hold the labels -1 and 1 only"),
    ("binary", {"y": SIGNS + 0j}, "y must hold the labels -1 and 1 only"),
    ("binary", {"margin": np.nan}, f"margin {FINITE}"),
    ("binary", {"margin": np.ones(5)}, r"margin must be one number or one per row, shape \(6,\)"),
    ("binary", {"intercept": np.nan}, "intercept must be a finite number.* got nan"),
    ("binary", {"intercept": [1.0]}, r"intercept must be a finite number.* got \[1.0\]"),
    ("binary", {"example": [1, 2, 3, 4, 5, 5]}, "example must hold distinct ids .* binary problem"),
    ("binary", {"example": np.arange(6.0)}, "example must hold integers, got dtype float64"),
    ("regression", {"y": TARGETS[:-1]}, r"y must hold one target per row of X, .*got shape \(5,\)"),
    ("regression", {"y": 1.0}, r"y must hold one target per row of X, shape \(6,\), got shape \(\)"),
    ("regression", {"y": entry(np.nan)[:, 2]}, f"y {FINITE}"),
    ("regression", {"y": TARGETS.astype(str)}, "y must hold real numbers, got dtype <U"),
    ("regression", {"epsilon": -0.1}, "epsilon must not be negative, got -0.1"),
    ("regression", {"epsilon": np.inf}, "epsilon must be a finite number.* got inf"),
    ("regression", {"example": [1, 2, 3, 4, 5, 5]}, "example must hold distinct ids .* regression problem"),
    ("multiclass", {"y": CLASSES[:-1]}, r"y must hold one integer per row of X, .*got shape \(5,\)"),
    ("multiclass", {"y": CLASSES.astype(float)}, "y must hold integers, got dtype float64"),
    ("multiclass", {"y": CLASSES - 1}, "y must hold classes from 0 to 2, got values from -1 to 1"),
    ("multiclass", {"y": CLASSES + 1}, "y must hold classes from 0 to 2, got values from 1 to 3"),
    ("multiclass", {"y": CLASSES * 0, "class_loss": None}, "needs at least 2 classes, got 1"),
    ("multiclass", {"y": CLASSES * 10**6, "class_loss": None}, "y holds .* up to 2000000: renumber"),
    ("multiclass", {"class_loss": LOSSES[:2]}, r"class_loss must be square .*, got shape \(2, 3\)"),
    ("multiclass", {"class_loss": 1.0}, r"class_loss must be square .*, got shape \(\)"),
    ("multiclass", {"class_loss": LOSSES + 1}, "class_loss must be finite.* with zeros on its diagonal"),
    ("multiclass", {"class_loss": entry(np.nan, object)[:3].astype(str)}, "class_loss must .* real"),
    ("multiclass", {"class_loss": np.where(LOSSES == 3, np.nan, LOSSES)}, "class_loss must be finite"),
    ("multiclass", {"class_loss": LOSSES * 1j}, "class_loss must .* real"),
    ("multiclass", {"n_classes": 4}, "n_classes is 4, but class_loss has 3 classes"),
    ("multiclass", {"n_classes": 2, "class_loss": None}, "y must hold .* 0 to 1, got values from 0 to 2"),
    ("multiclass", {"n_classes": 3.5, "class_loss": None}, "n_classes must be an integer.* 3.5"),
    ("multiclass", {"n_classes": "3", "class_loss": None}, "n_classes must be an integer.* '3'"),
    ("multiclass", {"n_classes": 2**40, "class_loss": None}, "n_classes .* 1099511627776"),
    ("multiclass", {"example": [1, 2, 3, 4, 5, 5]}, "example must hold distinct ids .* multiclass problem"),
    ("ranking", {"pairs": PAIRS[:, 0]}, r"pairs must be integers of shape \(n_pairs, 2\), got .* \(4,\)"),
    ("ranking", {"pairs": PAIRS.astype(float)}, r"pairs must be integers .*, got dtype float64"),
    ("ranking", {"pairs": PAIRS[:0]}, "pairs is empty: give at least one"),
    ("ranking", {"pairs": PAIRS + 1}, "pairs must hold rows of X, 0 to 5, got values from 1 to 6"),
    ("ranking", {"pairs": PAIRS - 1}, "pairs must hold rows of X, 0 to 5, got values from -1 to 4"),
    ("ranking", {"pairs": np.array([[0, 2**64 - 1]], np.uint64)}, "pairs .* 0 to 5, got .* 0 to 18446"),
    ("ranking", {"margin": np.ones(6)}, r"margin must be .* one per pair, shape \(4,\), got shape \(6,\)"),
    ("ranking", {"cost": np.ones(6)}, r"cost must be .* one per example, shape \(4,\), got shape \(6,\)"),
    ("ranking", {"example": np.arange(6)}, r"example must hold one .* per example, .*got shape \(6,\)"),
    ("ranking", {"example": [1, 1, 2, 3]}, "example must hold distinct ids .* ranking problem"),
    # what is squared and summed must stay finite
    ("rows", {"margins": 1e151}, "margins .* 1e150"),
    ("binary", {"margin": 1e151}, "margin .* 1e150"),
    ("binary", {"intercept": -1e151}, "intercept .* 1e150"),
    ("regression", {"y": TARGETS * 1e151}, "y .* 1e150"),
    ("multiclass", {"class_loss": LOSSES * 1e151}, "class_loss .* 1e150"),
    ("binary", {"prior": Prior(mean=1e151)}, "prior mean .* 1e150"),
    ("binary", {"lower": 1e151}, "lower .* 1e150"),
    ("binary", {"upper": -1e151}, "upper .* 1e150"),
]


@pytest.mark.parametrize(("task", "changed", "message"), BAD_ARGUMENTS)
def test_bad_arguments(task, changed, message):
    make, arguments = TASKS[task]
    assert_refused(make, {**arguments, **changed}, message, ValueError)


BAD_COMMON = [
    ({"cost": np.nan}, f"cost {FINITE}"),
    ({"cost": np.inf}, f"cost {FINITE}"),
    ({"cost": -1.0}, "cost must not be negative, got -1.0"),
    ({"cost": np.ones(2)}, r"cost must be one number or one per example, .*got shape \(2,\)"),
    ({"cost": None}, "cost must hold real numbers, got dtype object"),
    ({"loss": "logistic"}, 'loss must be "hinge" or .*, got .logistic'),
    ({"loss": None}, "loss must be .*, got None"),
    ({"prior": {"mean": 0.0}}, "prior must be a dualsvm.Prior, got dict"),
    ({"prior": Prior(mean=np.nan)}, f"prior mean {FINITE}"),
    ({"prior": Prior(mean=np.zeros(5))}, r"prior mean .* shape of the weights, .*got shape \(5,\)"),
    ({"prior": Prior(mean="0")}, "prior mean must hold real numbers, got dtype <U1"),
    ({"prior": Prior(variance=np.inf)}, f"prior variance {FINITE}"),
    ({"prior": Prior(variance=np.nan)}, f"prior variance {FINITE}"),
    ({"prior": Prior(variance=[1.0, 2.0, 0.0])}, "prior variance must be positive, got 0.0"),
    ({"prior": Prior(variance=-1.0)}, "prior variance must be positive, got -1.0"),
    ({"prior": Prior(variance=np.ones((2, D)))}, r"prior variance .* shape of the weights, .*\(2, 3\)"),
    ({"prior": Prior(covariance=np.eye(2))}, r"prior covariance .*\(3, 3\), got float64 of shape \(2, 2\)"),
    ({"prior": Prior(covariance=np.ones(D))}, r"prior covariance must be .*\(3, 3\), got .* shape \(3,\)"),
    ({"prior": Prior(covariance=np.eye(D) * 1j)}, "prior covariance must be a real matrix .* complex128"),
    ({"prior": Prior(covariance=np.diag([1.0, 1.0, np.nan]))}, f"prior covariance {FINITE}"),
    ({"prior": Prior(covariance=np.diag([1.0, 1.0, np.inf]))}, f"prior covariance {FINITE}"),
    ({"prior": Prior(covariance=np.eye(D) + 0.1 * np.eye(D, k=1))}, "prior covariance must be symmetric"),
    ({"prior": Prior(covariance=np.diag([1.0, 1.0, -2.0]))}, "must be positive definite, .* is -2"),
    ({"prior": Prior(covariance=np.ones((D, D)))}, "prior covariance must be positive definite"),
    ({"prior": Prior(covariance=np.eye(D)), "lower": 0.0}, "covariance cannot be combined with bounds"),
    ({"prior": Prior(covariance=np.eye(D)), "upper": [np.inf, 0.0, 1.0]}, "combined with bounds"),
    ({"lower": np.nan}, "lower must hold finite numbers.* or -inf"),
    ({"upper": np.nan}, "upper must hold finite numbers.* or inf"),
    ({"lower": np.inf}, "lower must hold finite numbers.* or -inf"),
    ({"upper": -np.inf}, "upper must hold finite numbers.* or inf"),
    ({"lower": np.zeros(2)}, r"lower must .* shape of the weights, .*got shape \(2,\)"),
    ({"upper": "1"}, "upper must hold real numbers, got dtype <U1"),
    ({"lower": [0.0, 0.0, 2.0], "upper": 1.0}, r"lower must not exceed upper, .* lower is 2.0, upper 1.0"),
]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("changed", "message"), BAD_COMMON)
def test_bad_cost_loss_prior_or_bounds(task, changed, message):
    make, arguments = TASKS[task]
    assert_refused(make, {**arguments, **changed}, message)


def test_a_prior_has_one_kind_of_spread():
    with pytest.raises(ValueError, match=r"either variance .* or covariance .* not both"):
        Prior(variance=np.ones(D), covariance=np.eye(D))


BAD_SOLVE = [
    ({"problem": X}, "problem must be a dualsvm.Problem or OracleProblem, got ndarray"),
    ({"tol": -1e-3}, "tol must not be negative, got -0.001"),
    ({"tol": np.nan}, "tol must be a finite number.* got nan"),
    ({"tol": "small"}, "tol must be a finite number.* got 'small'"),
    ({"tol": None}, "tol must be a finite number.* got None"),
    ({"max_iter": -1}, "max_iter must be an integer that is not negative, got -1"),
    ({"max_iter": 10.0}, "max_iter must be an integer .*, got 10.0"),
    ({"max_iter": True}, "max_iter must be an integer .*, got True"),
    ({"max_iter": None}, "max_iter must be an integer .*, got None"),
    ({"n_jobs": 0}, "n_jobs must not be 0"),
    ({"n_jobs": 1.0}, "n_jobs must be an integer or None, got 1.0"),
    ({"n_jobs": True}, "n_jobs must be an integer or None, got True"),
    ({"callback": "print"}, "callback must be callable, got str"),
    ({"random_state": "a"}, "'a' cannot be used to seed"),
    ({"random_state": -1}, "Seed must be between 0 and"),
    ({"verbose": "loud"}, "verbose must be an integer, got 'loud'"),
    ({"start": np.zeros(N)}, "start must be a dualsvm.Solution, got ndarray"),
]


@pytest.mark.parametrize(("changed", "message"), BAD_SOLVE)
def test_bad_arguments_of_solve(changed, message):
    assert_refused(solve, {"problem": state("binary"), **changed}, message)


def test_starts_that_do_not_fit():
    solved = {task: solve(state(task), tol=1e-3) for task in TASKS}
    named = solve(state("binary", example=np.arange(10, 16)), tol=1e-3)
    binary = solved["binary"]
    four = state("multiclass", class_loss=None, n_classes=4)
    nan, infinite = replace(binary, alpha=np.full(N, np.nan)), replace(binary, alpha=np.full(N, np.inf))
    for start, problem, message in [
        (solved["rows"], state("binary"), "start is the solution of a rows problem .* is a binary problem"),
        (solved["regression"], state("multiclass"), "solution of a regression problem"),
        (solved["multiclass"], four, r"shape \(6, 3\), but .*\(6, 4\): only the first axis may differ"),
        (nan, state("binary"), "dual variables of start contain NaN or inf"),
        (infinite, state("binary"), "dual variables of start contain NaN or inf"),
        (named, state("binary"), "must both name their examples"),
        (binary, state("binary", example=np.arange(N)), "must both name their examples"),
        (named, state("binary", example=np.arange(N)), "no example id in common"),
    ]:
        assert_refused(solve, {"problem": problem, "start": start}, message, ValueError)


def optimum(problem):
    solution = solve(problem, tol=1e-7, max_iter=10**5, random_state=0)
    return solution.upper_bound


def dense(rows):
    return (rows.toarray() if sp.issparse(rows) else np.array(rows)).astype(np.float64)


def read_only(rows):
    for part in parts(rows):
        part.flags.writeable = False
    return rows


def unsorted():
    """Duplicate entries and columns in falling order, in the second row and in the last."""
    return csr([1.0, 2.0, 0.5, -1.0, 3.0, 1.0, 1.5], [0, 2, 0, 2, 1, 1, 0], [0, 1, 4, 4, 4, 4, 7])


def spare():
    """Room behind the last entry, never read: scipy leaves such matrices behind too."""
    return csr(data=[1.0, 2.0, 3.0, np.nan], indices=[0, 1, 2, 77])


FORMS = {
    "list": lambda: X.tolist(),
    **{t: (lambda t=t: X.astype(t)) for t in ("int8", "int64", "float16", "float32", "longdouble", ">f8")},
    "bool": lambda: X > 0,
    "uint64": lambda: (X + 3).astype(np.uint64),
    "Fortran": lambda: np.asfortranarray(X),
    "every other row": lambda: np.repeat(X, 2, axis=0)[::2],
    "every other column": lambda: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda: X[::-1, ::-1],
    "read-only": lambda: read_only(X.copy()),
    "read-only csr": lambda: read_only(sp.csr_matrix(X)),
    **{f: (lambda f=f: sp.coo_array(X).asformat(f)) for f in ["csc", "coo", "csr", "bsr", "lil", "dok"]},
    "csc_matrix": lambda: sp.csc_matrix(X.astype(np.float32)),
    "coo with duplicates": lambda: sp.coo_matrix(([1.0, 2.0, 3.0], ([0, 0, 5], [1, 1, 2])), shape=(N, D)),
    "int csr": lambda: sp.csr_matrix(X.astype(int)),
    "bool csr": lambda: sp.csr_matrix(X > 0),
    "int64 indices": lambda: csr(dtype=np.int64),
    "int16 indices": lambda: csr(dtype=np.int16),
    "unsorted csr": unsorted,
    "csr with spare room": spare,
    "empty csr": lambda: sp.csr_matrix((N, D)),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_in_any_form(form):
    rows = FORMS[form]()
    before = deepcopy(parts(rows))
    for task in TASKS:
        given = optimum(state(task, x=rows))
        assert given == pytest.approx(optimum(state(task, x=dense(rows))), rel=3e-7)
    np.testing.assert_equal(parts(rows), before)


def test_a_memory_mapped_file(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    problem = state("binary", x=mapped)
    assert np.shares_memory(problem.rows, mapped)
    assert optimum(problem) == pytest.approx(optimum(state("binary")), rel=3e-7)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_used_without_a_copy(task, dtype):
    rows = X.astype(dtype)
    assert state(task, x=rows).rows is rows
    for kind in (sp.csr_matrix, sp.csr_array):
        for index in (np.int32, np.int64):
            matrix = kind(rows)
            matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
            used = state(task, x=matrix).rows
            for name in ("data", "indices", "indptr"):
                assert np.shares_memory(getattr(used, name), getattr(matrix, name)), (kind, index, name)
                assert getattr(used, name).dtype == getattr(matrix, name).dtype


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_solve_leaves_everything_as_it_was(task, sparse):
    make, arguments = TASKS[task]
    n = len(PAIRS) if task == "ranking" else N
    arguments = {
        **deepcopy(arguments),
        "example": np.arange(n)[::-1].copy(),
        "cost": np.linspace(0.0, 2.0, n),
        "prior": Prior(mean=np.full(D, 0.1), variance=np.full(D, 2.0)),
        "lower": np.full(D, -0.5),
        "upper": np.full(D, 0.5),
    }
    name = "rows" if task == "rows" else "X"
    arguments[name] = sp.csr_matrix(arguments[name]) if sparse else arguments[name]
    before = deepcopy(parts(arguments))
    problem = make(**arguments)
    first = solve(problem, tol=1e-6, n_jobs=2)
    alpha, w = first.alpha.copy(), first.w.copy()
    solve(problem, tol=1e-9, max_iter=10**5, start=first)
    np.testing.assert_equal(parts(arguments), before)
    np.testing.assert_equal([first.alpha, first.w], [alpha, w])


@pytest.mark.parametrize("task", TASKS)
def test_ids_are_any_integers(task):
    n = len(PAIRS) if task == "ranking" else N
    ids = np.array([2**63 - 1, -(2**63), 7, -1, 0, 3])[:n]
    for dtype in (np.int64, object):
        given = ids.astype(dtype).tolist() if dtype is object else ids
        problem = state(task, example=given)
        assert problem.n_examples == n
        assert optimum(problem) == pytest.approx(optimum(state(task)), rel=3e-7)
    small = state(task, example=np.arange(n, dtype=np.uint8)[::-1])
    assert optimum(small) == pytest.approx(optimum(state(task)), rel=3e-7)


def test_costs_follow_ascending_ids_in_a_rows_problem():
    ids, cost = np.array([9, -4, 9, 2, -4, 2]), np.array([1.0, 2.0, 3.0])  # of -4, 2 and 9
    problem = state("rows", example=ids, cost=cost)
    order = np.argsort(ids, kind="stable")
    apart = Problem(X[order], MARGINS[order], example=[0, 0, 1, 1, 2, 2], cost=cost)
    assert problem.n_examples == 3
    assert optimum(problem) == pytest.approx(optimum(apart), rel=3e-7)


def test_only_a_constant_feature():
    for rows in (X[:, :0], sp.csr_matrix((N, 0))):
        problem = Problem.binary(rows, [1, 1, 1, 1, -1, -1], intercept=1.0)
        # the least of 4 max(0, 1 - w) + 2 max(0, 1 + w) + w^2 / 2
        assert solve(problem, tol=1e-9).w == pytest.approx([1.0])


def test_infinite_bounds_are_no_bounds():
    problem = state("binary", prior=Prior(covariance=np.eye(D)), lower=-np.inf, upper=np.full(D, np.inf))
    assert optimum(problem) == pytest.approx(optimum(state("binary")), rel=3e-7)
