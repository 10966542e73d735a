"""Solutions: saved, loaded, and certified again from the problem alone."""

import json
import os
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from dualsvm import Prior, Problem, Solution, solve

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
Y = np.sign(X[:, 0] + 0.5 * RNG.normal(size=40))
CLASSES = X[:, :3].argmax(axis=1)
TARGETS = X @ [1.0, -1.0, 0.5, 0.0] + 0.1 * RNG.normal(size=40)
PROBLEMS = {
    "rows": Problem(X, 1.0, example=np.arange(40) // 3 * 7),
    "binary": Problem.binary(X, Y, intercept=1.0),
    "regression": Problem.regression(X, TARGETS, epsilon=0.1, example=np.arange(40)[::-1]),
    "multiclass": Problem.multiclass(X, CLASSES, lower=-0.5),
    "ranking": Problem.ranking(X, np.arange(40).reshape(20, 2), loss="squared_hinge"),
}


@pytest.fixture
def solution():
    return solve(PROBLEMS["regression"], tol=1e-4, random_state=0)


def assert_same(a, b):
    """Every field is equal, in value and in kind."""
    for field in fields(Solution):
        mine, other = getattr(a, field.name), getattr(b, field.name)
        assert type(mine) is type(other), field.name
        np.testing.assert_array_equal(mine, other)
        if isinstance(mine, np.ndarray):
            assert mine.dtype == other.dtype


@pytest.mark.parametrize("task", PROBLEMS)
def test_round_trip(task, tmp_path):
    problem = PROBLEMS[task]
    solution = solve(problem, tol=1e-4, random_state=0)
    assert (solution.ids is None) == (task in ("binary", "multiclass", "ranking"))
    assert len(solution.history) > 1
    solution.save(tmp_path / "solution.npz")
    loaded = Solution.load(tmp_path / "solution.npz")
    assert_same(loaded, solution)
    assert loaded.certify(problem) == solution.certify(problem)
    assert solve(problem, tol=1e-3, start=loaded).n_iter == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"history": []},
        {"status": "stopped", "upper_bound": np.inf, "lower_bound": -np.inf},
        {"ids": np.array([], dtype=np.int64)},
    ],
)
def test_round_trip_of_extremes(changed, solution, tmp_path):
    solution = replace(solution, **changed)
    solution.save(tmp_path / "s")
    assert_same(Solution.load(tmp_path / "s"), solution)


def test_a_solution_without_any_loss_can_be_saved(tmp_path):
    # both bounds are 0, and so is the gap between them
    solution = solve(Problem.binary(X, Y, prior=Prior(mean=[100.0, 0, 0, 0]), cost=(X[:, 0] * Y > 0.1) * 1.0))
    assert solution.converged is True
    assert solution.gap == 0
    solution.save(tmp_path / "s.npz")
    assert_same(Solution.load(tmp_path / "s.npz"), solution)


@pytest.mark.parametrize("name", ["solution.npz", "solution", "a b.model", ".hidden", "x" * 200])
@pytest.mark.parametrize("kind", [str, Path])
def test_the_name_is_taken_as_it_is(name, kind, solution, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    solution.save(kind(name))
    assert os.listdir() == [name]
    assert_same(Solution.load(kind(name)), solution)


def test_an_older_file_is_replaced(solution, tmp_path):
    path = tmp_path / "s.npz"
    path.write_text("something older, and longer than nothing")
    solution.save(path)
    replace(solution, n_iter=77).save(path)
    assert Solution.load(path).n_iter == 77
    assert os.listdir(tmp_path) == ["s.npz"]


def test_the_file_is_as_readable_as_others(solution, tmp_path):
    (tmp_path / "other").touch()
    solution.save(tmp_path / "s.npz")
    assert (tmp_path / "s.npz").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_failing_save_leaves_the_older_file(solution, tmp_path, monkeypatch):
    path = tmp_path / "s.npz"
    solution.save(path)
    with pytest.raises(ValueError, match="allow_pickle"):
        replace(solution, alpha=np.array([{}, None])).save(path)  # fails while the file is written

    def full(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="disk full"):
            replace(solution, n_iter=77).save(path)
    assert os.listdir(tmp_path) == ["s.npz"]
    assert_same(Solution.load(path), solution)


def test_save_where_nothing_can_be_written(solution, tmp_path):
    with pytest.raises(FileNotFoundError):
        solution.save(tmp_path / "no such folder" / "s.npz")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        solution.save(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]


def spoilt(raw):
    """The file with the first of its compressed bytes changed."""
    middle = raw.index(b"alpha.npy") + 29
    return raw[:middle] + bytes(255 - b for b in raw[middle : middle + 8]) + raw[middle + 8 :]


@pytest.mark.parametrize(
    "broken",
    [
        lambda raw: b"",
        lambda raw: raw[:10],
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw[:-1],
        lambda raw: b"w = 1, alpha = 2\n",
        lambda raw: b"\x80\x04N.",  # a pickle
        spoilt,
    ],
)
def test_load_of_a_broken_file(broken, solution, tmp_path):
    path = tmp_path / "s.npz"
    solution.save(path)
    path.write_bytes(broken(path.read_bytes()))
    with pytest.raises(ValueError, match=r"s\.npz' is not a solution saved by dualsvm"):
        Solution.load(path)


class Trap:
    """An object whose pickle leaves a trace when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def contents(solution, tmp_path):
    solution.save(tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as file:
        return dict(file)


@pytest.mark.parametrize(
    "changed",
    [
        {"meta": None},
        {"w": None},
        {"alpha": None},
        {"history": None},
        {"history": np.zeros((3, 5))},
        {"history": np.full((1, 7), np.inf)},
        {"meta": np.array("not JSON")},
        {"meta": np.array("[]")},
        {"meta": np.array(json.dumps({"format": "dualsvm.Solution 1", "task": "binary"}))},
        {"meta": np.array(json.dumps({"format": "dualsvm.Solution 999"}))},
        {"meta": np.zeros(3)},
    ],
)
def test_load_of_a_file_of_something_else(changed, solution, tmp_path):
    arrays = {**contents(solution, tmp_path), **changed}
    np.savez(tmp_path / "s.npz", **{name: a for name, a in arrays.items() if a is not None})
    with pytest.raises(ValueError, match=r"s\.npz' is not a solution saved by dualsvm"):
        Solution.load(tmp_path / "s.npz")


@pytest.mark.parametrize("name", ["meta", "w", "alpha", "history", "ids"])
def test_load_never_unpickles(name, solution, tmp_path):
    trace = tmp_path / "trace"
    arrays = {**contents(solution, tmp_path), name: np.array([Trap(trace)], dtype=object)}
    np.savez(tmp_path / "s.npz", **arrays)
    with pytest.raises(ValueError, match="not a solution saved by dualsvm") as caught:
        Solution.load(tmp_path / "s.npz")
    assert "allow_pickle" in str(caught.value.__cause__)
    assert not trace.exists()


def test_load_of_an_array_or_of_nothing(tmp_path):
    np.save(tmp_path / "s.npy", X)
    with pytest.raises(ValueError, match="not a solution saved by dualsvm"):
        Solution.load(tmp_path / "s.npy")
    with pytest.raises(FileNotFoundError):
        Solution.load(tmp_path / "missing.npz")
    with pytest.raises(IsADirectoryError):
        Solution.load(tmp_path)


def solution_of(problem, w, alpha):
    return Solution(np.array(w), np.array(alpha), 0.0, 0.0, False, 0, [], problem.task)


TWO = [[1.0, 2.0], [3.0, -1.0]]
# By hand. Scores at w = (1, 0.5): x1.w = 2, x2.w = 2.5; |w|^2 / 2 = 0.625. With alpha = (0.5, 0.25) and u the
# sum of alpha times the constraint, the dual is l.alpha - |u|^2 / 2.
CERTIFICATES = {
    # slacks: 3 - 2 and none; u = (1.25, 0.75), |u|^2 = 2.125
    "rows": (Problem(TWO, [3.0, 2.0], cost=2.0), [0.5, 0.25], 2.0 - 1.0625, 0.625 + 2 * 1),
    # slack alpha of the second is capped at 0.1: u = (0.8, 0.9), |u|^2 = 1.45
    "capped": (Problem(TWO, [3.0, 2.0], cost=[2, 0.1]), [0.5, 0.25], 1.7 - 0.725, 0.625 + 2 * 1),
    # one slack, the worse of the two: 1. The alpha add up to 0.75, and the cap of 0.3 makes them (0.2, 0.1):
    # u = (0.5, 0.3)
    "grouped": (Problem(TWO, [3.0, 2.0], [4, 4], 0.3), [0.5, 0.25], 0.8 - 0.17, 0.625 + 0.3 * 1),
    # the same, squared: - 0.75^2 / (4 * 2)
    "squared": (
        Problem(TWO, [3.0, 2.0], [4, 4], 2.0, "squared_hinge"),
        [0.5, 0.25],
        2.0 - 0.5625 / 8 - 1.0625,
        0.625 + 2 * 1,
    ),
    # slacks: none and 1 + 2.5; u = 0.5 x1 - 0.25 x2 = (-0.25, 1.25)
    "binary": (Problem.binary(TWO, [1, -1], cost=2.0), [0.5, 0.25], 0.75 - 0.8125, 0.625 + 2 * 3.5),
    # errors 1 and -1.5, epsilon 0.5; u = 0.5 x1 - 0.25 x2
    "regression": (
        Problem.regression(TWO, [3.0, 1.0], epsilon=0.5, cost=2.0),
        [[0.5, 0.0], [0.0, 0.25]],
        1.5 - 0.25 - 0.375 - 0.8125,
        0.625 + 2 * (0.5 + 1),
    ),
    # x1 - x2 = (-2, 3) scores -0.5: slack 1.5; u = 0.5 (-2, 3)
    "ranking": (Problem.ranking(TWO, [[0, 1]], cost=2.0), [0.5], 0.5 - 1.625, 0.625 + 2 * 1.5),
    # prior mean (1, 1), variance (1, 4), u = (1.25, 0.75): v = (2.25, 4), clipped to (2, 4);
    # dual 2 + 1/2 (1 + 9/4) - (2.5 + 3); distance of w = (1, 0.5) from the mean: 0.25 / 4 / 2
    "prior and bounds": (
        Problem(TWO, [3.0, 2.0], cost=2.0, prior=Prior([1.0, 1.0], [1.0, 4.0]), upper=[2.0, np.inf]),
        [0.5, 0.25],
        2.0 + 1.625 - 5.5,
        0.03125 + 2 * 1,
    ),
    # S = [[2, 1], [1, 2]], S^-1 = [[2, -1], [-1, 2]] / 3: u' S u = 3.125 + 2 * 0.9375 + 1.125 = 6.125;
    # w' S^-1 w = (2 - 1 + 0.5) / 3 = 0.5
    "covariance": (
        Problem(TWO, [3.0, 2.0], cost=2.0, prior=Prior(covariance=[[2.0, 1.0], [1.0, 2.0]])),
        [0.5, 0.25],
        2.0 - 3.0625,
        0.25 + 2 * 1,
    ),
}


@pytest.mark.parametrize("name", CERTIFICATES)
def test_certify_by_hand(name):
    problem, alpha, lower, upper = CERTIFICATES[name]
    certificate = solution_of(problem, [1.0, 0.5], alpha).certify(problem)
    assert certificate == pytest.approx((lower, upper))
    assert certificate.gap == pytest.approx((upper - lower) / upper)


def test_certify_multiclass_by_hand():
    # scores of (1, 2): 3, 2, 0, true class 1: slack 1 + 3 - 2; of (3, -1): 2, 3, 0, true class 0: the same.
    # alpha of a true class means nothing. u_0 = -0.5 x1 + 0.25 x2 = -u_1, with |u_0|^2 = 1.625
    problem = Problem.multiclass(TWO, [1, 0], n_classes=3, cost=2.0)
    w = [[1.0, 1.0], [8 / 7, 3 / 7], [0.0, 0.0]]
    certificate = solution_of(problem, w, [[0.5, 9.0, 0.0], [9.0, 0.25, 0.0]]).certify(problem)
    norm = 2 + (64 + 9) / 49
    assert certificate == pytest.approx((0.75 - 1.625, norm / 2 + 2 * (2 + 2)))


@pytest.mark.parametrize("task", PROBLEMS)
def test_certify_agrees_with_the_kernel(task):
    solution = solve(PROBLEMS[task], tol=1e-4, random_state=0)
    bounds = solution.lower_bound, solution.upper_bound
    assert solution.certify(PROBLEMS[task]) == pytest.approx(bounds, rel=1e-9)


@pytest.mark.parametrize(
    "other",
    [
        Problem.binary(X, Y, cost=0.1),
        Problem.binary(X, Y, cost=10.0),
        Problem.binary(X, -Y),
        Problem.binary(X, Y, margin=3.0, loss="squared_hinge"),
        Problem.binary(X, Y, prior=Prior(mean=1.0, variance=[1, 2, 3, 4])),
        Problem.binary(X, Y, cost=3.0, lower=-2.0, upper=2.0),
        Problem.binary(X[::-1], Y, cost=np.arange(40.0) / 40),
    ],
)
def test_certify_for_another_problem(other):
    solution = solve(Problem.binary(X, Y), tol=1e-6, max_iter=10**5)
    best = solve(other, tol=1e-6, max_iter=10**5)
    lower, upper = solution.certify(other)
    assert lower <= best.upper_bound
    assert best.lower_bound <= upper < np.inf
    assert upper - lower > 1e-3 * upper  # it is another problem, so nothing is tight


def test_weights_out_of_bounds_prove_nothing():
    solution = solve(Problem.binary(X, Y), tol=1e-6, max_iter=10**5)
    free = np.inf
    for bounds in ({"lower": solution.w.max() + 1e-9}, {"upper": [free, free, free, solution.w[3] - 1e-9]}):
        certificate = solution.certify(Problem.binary(X, Y, **bounds))
        assert certificate.upper_bound == np.inf
        assert np.isfinite(certificate.lower_bound)
    on_the_bound = Problem.binary(X, Y, lower=solution.w, upper=solution.w)
    assert solution.certify(on_the_bound).upper_bound == pytest.approx(solution.upper_bound)


@pytest.mark.parametrize(
    "other",
    [
        Problem.binary(X[:, :3], Y),
        Problem.binary(X[:-1], Y[:-1]),
        Problem.binary(X, Y, intercept=1.0),
        Problem.regression(X, TARGETS),
        Problem.multiclass(X, CLASSES),
    ],
)
def test_certify_refuses_other_shapes(other):
    solution = solve(Problem.binary(X, Y), tol=1e-3)
    with pytest.raises(ValueError, match=r"weights of shape \(4,\) and dual variables of shape \(40,\), but"):
        solution.certify(other)
