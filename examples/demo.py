"""Train a certified SVM on data that ships with scikit-learn, and check its certificate again."""

import numpy as np
from sklearn.datasets import load_digits

from dualsvm import Problem, solve

digits = load_digits()
X = digits.data / 16.0
train = np.arange(len(X)) % 4 != 0
problem = Problem.multiclass(X[train], digits.target[train], intercept=1.0, cost=1.0)
print(f"Handwritten digits: {problem}\n")

solution = solve(problem, tol=1e-3, random_state=0, verbose=1)

scores = np.column_stack([X[~train], np.ones((~train).sum())]) @ solution.w.T
accuracy = (scores.argmax(axis=1) == digits.target[~train]).mean()
print(f"\nThe optimum lies between {solution.lower_bound:.8g} and {solution.upper_bound:.8g}:")
print(f"these weights are within {100 * solution.gap:.3f} % of it. Test accuracy {100 * accuracy:.1f} %.")

checked = solution.certify(problem)
print("\nThe same bounds, computed again from the problem alone, in plain numpy:")
print(f"lower {checked.lower_bound:.8g}   upper {checked.upper_bound:.8g}   gap {checked.gap:.2e}")
agree = np.allclose(checked, (solution.lower_bound, solution.upper_bound), rtol=1e-9)
print("The certificate holds." if agree and solution.converged else "THE CERTIFICATE DOES NOT HOLD.")
raise SystemExit(not (agree and solution.converged))
