"""From a file of text to a certified model, with less memory than the data take: the command line, step by step."""

import contextlib
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_digits
from sklearn.model_selection import train_test_split

import dualsvm
from dualsvm.cli import main


def run(command):
    """Run a command as a shell would, in this process, and return whether its exit code is 0."""
    print(f"\n$ dualsvm {command}", flush=True)
    return main(command.split()) == 0


X, y = load_digits(return_X_y=True)
pairs = np.triu_indices(64)
X = (X[:, pairs[0]] * X[:, pairs[1]]) / 256
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
    dump_svmlight_file(X_train, y_train, "digits.svm", zero_based=False)
    dump_svmlight_file(X_test, y_test, "test.svm", zero_based=False)
    size = Path("digits.svm").stat().st_size / 1e6
    print(f"digits.svm holds handwritten digits, and of each all products of two pixels: {size:.1f} MB of text.")

    good = run("convert digits.svm digits")
    print("\nOf its rows, no more than 2 MB shall be in memory:")
    good &= run("train --cache-mb 2 --chunk-rows 100 digits model.npz")
    print("\nIs that so? The bounds once more, from the model and the data:")
    good &= run("certify model.npz digits")
    good &= run("predict test.svm model.npz labels.txt")
    model = dualsvm.load("model.npz")

print("\nThe same in Python, with everything in memory:")
whole = dualsvm.SVMClassifier(random_state=0).fit(X_train, y_train)
print(f"the optimum lies within [{whole.lower_bound_:.8g}, {whole.upper_bound_:.8g}]: gap {whole.gap_:.2e}")

good &= model.converged_ and whole.converged_
good &= model.lower_bound_ <= whole.upper_bound_ and whole.lower_bound_ <= model.upper_bound_
print("\nThe certificates hold." if good else "\nTHE CERTIFICATES DO NOT HOLD.")
raise SystemExit(not good)
