"""Training reads the rows where they lie: it needs little memory beside them."""

import subprocess
import sys

N, D, CLASSES = 60_000, 784, 10

# The rows are made in place and in float32, so that only the solve can raise the peak above their size.
CODE = f"""
import pathlib
import re
import resource
import sys
import warnings
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from dualsvm import Problem, solve

rng = np.random.default_rng(0)
X = np.empty(({N}, {D}), dtype=np.float32)
rng.standard_normal(out=X, dtype=np.float32)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    problem = Problem.multiclass(X, rng.integers({CLASSES}, size={N}), intercept=1.0)
    solution = solve(problem, max_iter=2, n_jobs=2)
assert [w.category for w in caught] == [ConvergenceWarning], caught
assert 0 <= solution.lower_bound < solution.upper_bound
status = pathlib.Path("/proc/self/status")
if status.is_file():  # there, ru_maxrss also counts what the process was started from
    print(int(re.search(r"VmHWM:\\s*(\\d+) kB", status.read_text())[1]) * 1024)
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""


def test_training_takes_little_more_than_its_data():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1.3 * (N * D * 4) + 200e6
