"""The schedule of a solve: callbacks, interrupts, warnings, records, seeds and threads."""

import os
import re
import signal
import subprocess
import sys

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from dualsvm import Prior, Problem, Record, solve
from dualsvm.solution import primal

from .problems import CLASSES, LOSSES, TARGETS, TASKS, N, X, Y, assert_optimal, large

# callbacks and interrupts


@pytest.mark.parametrize("hot", [False, True])
def test_the_callback_sees_every_record(hot):
    problem, seen = large(), []
    start = solve(problem, tol=1e-1) if hot else None
    # what list.append returns is not True: the solve goes on
    solution = solve(problem, tol=1e-4, start=start, random_state=0, callback=seen.append)
    assert solution.converged
    assert all(isinstance(record, Record) for record in seen)
    assert [record.iteration for record in seen] == list(range(1 - hot, solution.n_iter + 1))
    assert seen == solution.history


def test_being_watched_changes_nothing(capsys):
    alone = solve(large(), tol=1e-4, random_state=0)
    watched = solve(large(), tol=1e-4, random_state=0, callback=lambda _: None, verbose=1)
    np.testing.assert_array_equal(alone.w, watched.w)
    np.testing.assert_array_equal(alone.alpha, watched.alpha)
    assert [r[:-1] for r in alone.history] == [r[:-1] for r in watched.history]
    assert capsys.readouterr().out


def raise_interrupt(record):
    if record.iteration == 3:
        raise KeyboardInterrupt


@pytest.mark.parametrize("callback", [lambda record: record.iteration == 3, raise_interrupt])
@pytest.mark.parametrize("start", [False, True])
def test_stopped_by_the_callback(callback, start):
    problem = large()
    start = solve(problem, tol=0.5) if start else None
    solution = solve(problem, tol=1e-9, start=start, callback=callback)  # and no warning
    assert not solution.converged
    assert solution.n_iter == 3
    assert solution.history[-1].iteration == 3
    assert solution.history[-1].upper == solution.upper_bound
    assert 1e-9 < solution.gap < np.inf
    bounds = solution.lower_bound, solution.upper_bound
    assert solution.certify(problem) == pytest.approx(bounds, rel=1e-9)


def test_stopped_where_the_tolerance_is_met():
    assert solve(large(), tol=0.99, random_state=0, callback=lambda record: True).converged


def test_truth_as_numpy_has_it_stops():
    assert solve(large(), tol=0.0, callback=lambda record: np.bool_(record.iteration == 3)).n_iter == 3


def test_truth_of_another_kind_does_not_stop():
    assert solve(large(), tol=1e-3, callback=lambda record: "go on").converged


def test_an_exception_in_the_callback_propagates():
    def fail(record):
        raise RuntimeError(f"in pass {record.iteration}")

    with pytest.raises(RuntimeError, match="in pass 1"):
        solve(large(), callback=fail)


def run(code, **environment):
    """Start Python on some code."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_ctrl_c_returns_the_best_so_far():
    process = run("""
import numpy as np
from dualsvm import Problem, solve
from dualsvm.state import State

kernel = State.optimize
def optimize(*arguments):
    print("optimizing", flush=True)
    return kernel(*arguments)
State.optimize = optimize

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 50))
problem = Problem.binary(X, np.sign(X[:, 0] + rng.normal(size=3000)), cost=10.0)
solution = solve(problem, tol=0.0, max_iter=10**9)
print("solution", solution.converged, solution.lower_bound, solution.upper_bound, *solution.certify(problem))
""")
    try:
        for _ in range(2):  # at the second, the first is done
            assert process.stdout.readline() == "optimizing\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert err == ""
    converged, *bounds = out.split("solution ")[1].split()
    lower, upper, lower_again, upper_again = map(float, bounds)
    assert converged == "False"
    assert 0 <= lower < upper < 3000 * 10
    assert (lower_again, upper_again) == pytest.approx((lower, upper), rel=1e-9)


# warnings, records and what is printed


@pytest.mark.parametrize("max_iter", [0, 1, 2, 7])
def test_too_few_passes_warn_with_the_gap(max_iter):
    problem = large()
    with pytest.warns(ConvergenceWarning, match=f"after {max_iter} passes the relative gap is") as caught:
        solution = solve(problem, tol=1e-9, max_iter=max_iter)
    assert f"gap is {solution.gap:.3g}, and tol is 1e-09" in str(caught[0].message)
    assert caught[0].filename == __file__  # it points at the caller
    assert not solution.converged
    assert solution.n_iter == max_iter
    bounds = solution.lower_bound, solution.upper_bound
    assert solution.certify(problem) == pytest.approx(bounds, rel=1e-9)
    assert solution.gap > 1e-9


def test_no_pass_at_all():
    with pytest.warns(ConvergenceWarning, match="after 0 passes the relative gap is 1,"):
        solution = solve(Problem.binary(X, Y), max_iter=0)
    assert (solution.lower_bound, solution.upper_bound) == (0.0, N)  # w = 0 pays for every example
    assert not solution.w.any()
    assert [record.iteration for record in solution.history] == [0]


def test_any_number_of_passes_may_be_allowed():
    for max_iter in (np.int64(1000), sys.maxsize, 10**30):
        assert solve(large(), max_iter=max_iter).converged


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("task", TASKS)
def test_history_is_consistent(task, n_jobs):
    problem = large(loss="squared_hinge") if task == "binary" else TASKS[task]()
    solution = solve(problem, tol=1e-4, max_iter=10**5, random_state=0, n_jobs=n_jobs)
    history = solution.history
    assert [record.iteration for record in history] == list(range(1, solution.n_iter + 1))
    lower, upper = np.array([r.lower for r in history]), np.array([r.upper for r in history])
    seconds = np.array([r.seconds for r in history])
    assert (np.diff(lower) >= -1e-12 * abs(lower[-1])).all()
    assert (upper[1:] <= upper[:-1]).all()
    assert (upper >= lower).all()
    assert (np.diff(seconds) >= 0).all()
    assert seconds[0] >= 0
    assert all(0 <= r.active <= r.explored <= problem.n_examples for r in history)
    assert history[0].explored == problem.n_examples
    assert (history[-1].lower, history[-1].upper) == (solution.lower_bound, solution.upper_bound)
    assert history[-1].gap == solution.gap


def test_verbose_2_prints_every_record(capsys):
    solve(large(), tol=1e-4, random_state=0)
    assert capsys.readouterr() == ("", "")
    solution = solve(large(), tol=1e-4, random_state=0, verbose=2)
    out, err = capsys.readouterr()
    assert err == ""
    title, *lines = out.splitlines()
    assert title.split() == ["pass", "visited", "active", "lower", "upper", "gap", "seconds"]
    for line, record in zip(lines, solution.history, strict=True):
        printed = [float(word) for word in line.split()]
        iteration, explored, active, lower, upper, _, seconds = record
        expected = iteration, explored, active, lower, upper, record.gap, seconds
        assert printed == pytest.approx(expected, rel=0.01, abs=1e-3)


LINE = re.compile(r"pass +(\d+)  gap +(\S+) +(\S+) s  active +(\d+)  \[(#*)(\.*)\]")


def test_verbose_1_prints_some_passes_where_lines_cannot_be_written_over(capsys):
    solution = solve(large(), tol=1e-4, random_state=0, verbose=1)
    out, err = capsys.readouterr()
    assert err == ""
    found = [LINE.fullmatch(line).groups() for line in out.splitlines()]
    assert 3 <= len(found) < solution.n_iter / 2  # some passes, ever fewer
    records = {record.iteration: record for record in solution.history}
    for iteration, gap, seconds, active, full, empty in found:
        record = records[int(iteration)]
        assert float(gap) == pytest.approx(record.gap, rel=0.01)
        assert float(seconds) == pytest.approx(record.seconds, abs=0.1)
        assert int(active) == record.active
        part = np.clip(np.log10(record.gap) / np.log10(1e-4), 0, 1)  # infinite before the first certificate
        assert len(full) / (len(full) + len(empty)) == pytest.approx(part, abs=1 / len(full + empty))
    assert found[-1][0] == str(solution.n_iter)
    assert found[-1][-1] == ""


def test_verbose_1_writes_over_the_line_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    solution = solve(large(), tol=1e-4, random_state=0, verbose=1)
    out = capsys.readouterr().out
    assert out.endswith("]\n")
    assert out.count("\n") == 1
    first, *lines = out.rstrip("\n").split("\r")
    assert first == ""
    assert [int(LINE.fullmatch(line)[1]) for line in lines] == [record.iteration for record in solution.history]
    assert len({len(line) for line in lines}) == 1  # so that each covers the one before


def test_verbose_prints_where_a_hot_start_begins(capsys):
    start = solve(large(), tol=1e-3)
    solve(large(), tol=1e-3, start=start, verbose=1)
    assert LINE.fullmatch(capsys.readouterr().out.splitlines()[0])[1] == "0"


# seeds and threads


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 3])
@pytest.mark.parametrize("task", ["binary", "grouped", "multiclass"])
def test_the_same_seed_gives_the_same_bits(task, n_jobs):
    rows = np.random.default_rng(4).normal(size=(600, 6))
    problem = {
        "binary": Problem.binary(rows, np.sign(rows[:, 0]), cost=0.1),
        "grouped": Problem(rows, 1.0, example=np.arange(600) * 2 // 3, cost=0.1),
        "multiclass": Problem.multiclass(rows, rows.argmax(axis=1), cost=0.1),
    }[task]
    assert problem.n_examples >= 400
    one, two = (solve(problem, tol=1e-3, random_state=3, n_jobs=n_jobs) for _ in range(2))
    np.testing.assert_array_equal(one.w, two.w)
    np.testing.assert_array_equal(one.alpha, two.alpha)
    assert (one.lower_bound, one.upper_bound) == (two.lower_bound, two.upper_bound)
    other = solve(problem, tol=1e-3, random_state=4, n_jobs=n_jobs)
    assert (other.alpha != one.alpha).any()
    lone = solve(problem, tol=1e-3, random_state=3)
    assert one.lower_bound <= lone.upper_bound
    assert lone.lower_bound <= one.upper_bound
    assert ((lone.alpha != one.alpha).any()) <= ((n_jobs or 1) > 1)


def test_kinds_of_random_state():
    def alpha(state):
        return solve(large(), random_state=state).alpha

    for make in (np.random.RandomState, np.random.default_rng, int, np.int64):
        np.testing.assert_array_equal(alpha(make(7)), alpha(make(7)))
    np.testing.assert_array_equal(alpha(7), alpha(np.random.RandomState(7)))
    for state in (np.random.RandomState(7), np.random.default_rng(7), None):
        assert (alpha(state) != alpha(state)).any()  # it moves on


def test_all_cores():
    every = solve(large(1000), random_state=0, n_jobs=-1)
    counted = solve(large(1000), random_state=0, n_jobs=joblib.cpu_count())
    np.testing.assert_array_equal(every.w, counted.w)


def test_more_threads_than_cores():
    """They would wait for one another: there are as many as cores, which give the same result."""
    rows = sp.random(3000, 2000, density=0.02, format="csr", random_state=0)
    problem = Problem.binary(rows, np.where(np.random.default_rng(0).random(3000) < 0.5, 1, -1))
    many, every = (solve(problem, random_state=0, n_jobs=n_jobs) for n_jobs in (joblib.cpu_count() + 3, -1))
    np.testing.assert_array_equal(many.alpha, every.alpha)


def test_more_threads_than_examples():
    problem = Problem.binary(X, Y)
    assert_optimal(solve(problem, tol=1e-4, max_iter=10**5, n_jobs=N + 5), problem, 1e-4)


def test_threads_that_cannot_be_started():
    # room for the stacks of a few threads only, where the system can be told so
    process = run("""
import resource
import sys
import joblib
import numpy as np
from dualsvm import Problem, solve

joblib.cpu_count = lambda: 128
rng = np.random.default_rng(0)
X = rng.normal(size=(9000, 5))
problem = Problem.binary(X, np.sign(X[:, 0]))
if sys.platform == "linux":
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))
solution = solve(problem, tol=1e-2, n_jobs=128, random_state=0)
print(solution.converged, solution.certify(problem).gap <= 1e-2)
""")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "True True\n"), err


BASELINE = """
import numpy as np
from dualsvm import Problem, _core, solve

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 20))
for task in (Problem.binary(X, np.sign(X[:, 0])), Problem.multiclass(X, X[:, :5].argmax(axis=1))):
    solution = solve(task, tol=1e-7, max_iter=10**5, random_state=0)
    print(_core.wide(), solution.lower_bound, solution.upper_bound)
"""


def test_the_plain_loops_prove_the_same():
    runs = []
    for environment in ({"DUALSVM_BASELINE": "1"}, {"DUALSVM_BASELINE": ""}):
        out, err = run(BASELINE, **environment).communicate(timeout=60)
        assert err == ""
        runs.append([line.split() for line in out.splitlines()])
    plain, fastest = runs
    assert [wide for wide, *_ in plain] == ["False", "False"]
    for (_, *bounds), (_, *others) in zip(plain, fastest, strict=True):
        assert [float(b) for b in bounds] == pytest.approx([float(b) for b in others], rel=1e-6)


# costs of nothing


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("task", TASKS)
def test_examples_without_cost_do_not_matter(task, loss):
    n = TASKS[task]().n_examples
    cost = np.where(np.arange(n) % 3 == 0, 0.0, 1.0)
    solution = solve(TASKS[task](cost=cost, loss=loss), tol=1e-5, max_iter=10**5)
    per_example = solution.alpha.reshape(n, -1)
    assert not per_example[cost == 0].any()
    assert per_example[cost > 0].any()
    paying = np.repeat(cost, {"grouped": 3, "lists": 6}.get(task, 1)) > 0
    rescaled = {"class_loss": LOSSES, "rescaling": "slack", "margin": 0.5}
    alone = {
        "rows": lambda: Problem(X[paying] * Y[paying, None], 1.0, loss=loss),
        "grouped": lambda: Problem(X[paying] * Y[paying, None], 1.0, np.arange(N)[paying] // 3, loss=loss),
        "binary": lambda: Problem.binary(X[paying], Y[paying], intercept=1.0, loss=loss),
        "regression": lambda: Problem.regression(X[paying], TARGETS[paying], epsilon=0.1, loss=loss),
        "multiclass": lambda: Problem.multiclass(X[paying], CLASSES[paying], n_classes=3, loss=loss),
        "slack": lambda: Problem.multiclass(X[paying], CLASSES[paying], loss=loss, **rescaled),
        "ranking": lambda: Problem.ranking(X, np.arange(N).reshape(-1, 2)[paying], loss=loss),
        "lists": lambda: Problem.lists(X[paying], CLASSES[paying], np.arange(N)[paying] // 6, loss=loss),
    }[task]()
    other = solve(alone, tol=1e-5, max_iter=10**5)
    rounding = 1e-14 * other.upper_bound
    assert solution.lower_bound <= other.upper_bound + rounding
    assert other.lower_bound <= solution.upper_bound + rounding


@pytest.mark.parametrize("hot", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("task", TASKS)
def test_without_any_cost_the_prior_is_all(task, loss, hot):
    mean = np.linspace(-1, 1, TASKS[task]().weight_shape[-1])
    box = {"lower": -0.5, "upper": 0.75}
    problem = TASKS[task](cost=0.0, loss=loss, prior=Prior(mean=mean, variance=2.0), **box)
    start = solve(TASKS[task](), tol=1e-2) if hot else None
    solution = solve(problem, tol=1e-9, start=start)
    expected = np.broadcast_to(np.clip(mean, -0.5, 0.75), problem.weight_shape)
    np.testing.assert_array_equal(solution.w, expected)
    assert not solution.alpha.any()
    optimum = 0.5 * ((expected - mean) ** 2 / 2.0).sum()
    assert (solution.lower_bound, solution.upper_bound) == pytest.approx((optimum, optimum))
    assert solution.converged


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("cost", [1e-3, 1e-2])
@pytest.mark.parametrize("seed", range(3))
def test_the_lower_bound_of_many_examples_is_the_dual_of_their_variables(seed, cost, classes):
    rng = np.random.default_rng(seed)
    n = 12_000  # so many that u is not always summed up anew
    rows, y = rng.normal(size=(n, 10)) * rng.lognormal(size=10), rng.integers(classes, size=n)
    problem = Problem.binary(rows, 2 * y - 1, cost=cost) if classes == 2 else Problem.multiclass(rows, y, cost=cost)
    solution = solve(problem, tol=1e-2, random_state=seed)
    alpha = solution.alpha.astype(np.longdouble)
    if classes == 2:
        counts = (alpha * (2 * y - 1))[:, None]
    else:
        counts = -alpha
        counts[np.arange(n), y] += alpha.sum(axis=1)
    u = counts.T @ rows.astype(np.longdouble)
    assert solution.lower_bound == pytest.approx(float(alpha.sum() - (u * u).sum() / 2), rel=1e-12)


@pytest.mark.parametrize("order", ["mixed", "by class", "alternating"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rows_that_do_not_fit_into_caches(loss, order):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(8_000, 80))  # 5 MB, which are visited in streams of neighbours
    y = np.sign(rows @ rng.normal(size=80) + 8 * rng.normal(size=8_000))
    if order != "mixed":
        sides = [np.flatnonzero(y == side)[:3_600] for side in (-1, 1)]
        by = np.concatenate(sides) if order == "by class" else np.column_stack(sides).ravel()
        rows, y = rows[by], y[by]
    problem = Problem.binary(rows, y, cost=0.01, loss=loss)
    solution = solve(problem, tol=1e-6, random_state=0, n_jobs=2)
    assert solution.converged
    assert (np.diff([record.lower for record in solution.history]) >= 0).all()
    np.testing.assert_array_equal(solve(problem, tol=1e-6, random_state=0, n_jobs=2).w, solution.w)
    peer = LinearSVC(C=0.01, loss=loss, fit_intercept=False, tol=1e-8, max_iter=100_000, random_state=0)
    assert primal(problem, peer.fit(rows, y).coef_[0]) == pytest.approx(solution.upper_bound, rel=2e-6)
