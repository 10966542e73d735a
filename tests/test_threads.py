"""Threads and memory that stay between two solves: nobody sees them, but for the time that they save."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from dualsvm import Problem, _core, solve

RNG = np.random.default_rng(0)
N, D = 2_000, 4_000
TEXT = sp.random_array((N, D), density=0.01, format="csr", rng=RNG)  # 40 numbers a row: passes run in threads
SIGNS = RNG.choice([-1.0, 1.0], N)
TASKS = Path("/proc/self/task")
linux = pytest.mark.skipif(not TASKS.is_dir(), reason="the system does not list the threads of a process")


def solved(cost=1.0, **more):
    return solve(Problem.binary(TEXT, SIGNS, cost=cost), tol=1e-4, random_state=0, **({"n_jobs": 2} | more))


STAY = """
import os
import numpy as np, scipy.sparse as sp
from dualsvm import Problem, solve

rng = np.random.default_rng(0)
rows = sp.random_array((2000, 4000), density=0.01, format="csr", rng=rng)
signs, labels = rng.choice([-1.0, 1.0], 2000), rng.integers(3, size=2000)
for cost in (1.0, 0.1, 10.0):
    solve(Problem.binary(rows, signs, cost=cost), tol=1e-4, random_state=0, n_jobs=2)
    solve(Problem.multiclass(rows, labels), tol=1e-2, random_state=0, n_jobs=2)
    print(len(os.listdir("/proc/self/task")))
"""


@linux
def test_threads_stay_and_do_not_become_more():
    done = subprocess.run([sys.executable, "-c", STAY], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    counts = done.stdout.split()
    assert len(counts) == 3
    assert len(set(counts)) == 1


def test_solves_side_by_side_do_not_share_their_threads():
    alone = solved()
    with ThreadPoolExecutor(4) as pool:
        for solution in pool.map(lambda _: solved(), range(12)):
            np.testing.assert_array_equal(solution.w, alone.w)


FORKED = """
import os, sys, warnings
import numpy as np, scipy.sparse as sp
from dualsvm import Problem, solve

rng = np.random.default_rng(0)
rows = sp.random_array((2000, 4000), density=0.01, format="csr", rng=rng)
problem = Problem.binary(rows, rng.choice([-1.0, 1.0], 2000))
first = solve(problem, random_state=0, n_jobs=2)
warnings.simplefilter("ignore")  # Python warns of forks beside threads from 3.12 on
for _ in range(3):
    child = os.fork()
    again = solve(problem, random_state=0, n_jobs=2)
    same = np.array_equal(first.w, again.w)
    if child == 0:
        os._exit(0 if same else 1)
    assert same and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_process_has_threads_of_its_own():
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


KEPT = """
import numpy as np, scipy.sparse as sp
from pathlib import Path
from dualsvm import Problem, _core, solve

def resident():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024

diagonal = np.ones(64), (np.arange(64), np.arange(64))
widths = range(20000, 200000, 10000)
problems = [Problem.multiclass(sp.csr_array(diagonal, (64, width)), np.arange(64) % 8) for width in widths]
solve(problems[0], tol=0.1, random_state=0)
_core.trim()
before = resident()
for problem in problems:
    solve(problem, tol=0.1, random_state=0)
print(8 * 8 * sum(problem.view.width for problem in problems), resident() - before)  # of v alone, and what is kept
_core.trim()
print(resident() - before)
"""


@linux
def test_little_memory_is_kept():
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    needed, kept, left = map(int, done.stdout.split())
    assert kept < 100e6 < needed
    assert left < 40e6


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_rows_are_checked_in_threads(threads):
    rng = np.random.default_rng(threads)
    rows = sp.csr_matrix(rng.normal(size=(900, 400)), dtype=np.float32)  # more than a thread checks at once
    check = (rows.indptr, rows.indices, 400, threads)
    assert _core.check_csr(*check) == 0
    assert _core.all_finite(rows.data, threads)
    for at in [0, rows.nnz - 1, *rng.integers(rows.nnz, size=10)]:
        value, rows.data[at] = rows.data[at], rng.choice([np.nan, np.inf, -np.inf])
        assert not _core.all_finite(rows.data, threads)
        rows.data[at] = value
        column, rows.indices[at] = rows.indices[at], rng.choice([-1, 400])
        assert _core.check_csr(*check) == 2
        rows.indices[at] = column
    for i in [0, 899, *rng.integers(900, size=10)]:  # columns of a row that do not increase
        first = rows.indptr[i] + rng.integers(399)
        rows.indices[first : first + 2] = rows.indices[first : first + 2][::-1].copy()
        assert not sp.csr_matrix((rows.data, rows.indices, rows.indptr), rows.shape).has_canonical_format
        assert _core.check_csr(*check) == 1
        rows.indices[first : first + 2] = rows.indices[first : first + 2][::-1].copy()
    assert _core.check_csr(*check) == 0
