"""Train certified SVMs on data that ships with scikit-learn, and check a certificate again."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from dualsvm import Problem, SVMClassifier, c_path, solve

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, random_state=0)
print(f"Handwritten digits: {len(X_train)} to learn from, {len(X_test)} to be tested on, 10 classes.\n")

model = SVMClassifier(C=1.0, tol=1e-3, random_state=0, verbose=1).fit(X_train, y_train)
print(f"\nThe optimum lies between {model.lower_bound_:.8g} and {model.upper_bound_:.8g}: this model is within")
print(f"{100 * model.gap_:.3f} % of it. Test accuracy {100 * model.score(X_test, y_test):.1f} %.")

print("\nA path of C, each model started from the last:")
for each in c_path(model.set_params(verbose=0), X_train, y_train, [0.01, 0.1, 1.0, 10.0]):
    print(f"  C = {each.C:<5g} gap {each.gap_:.1e}   test accuracy {100 * each.score(X_test, y_test):.1f} %")

problem = Problem.multiclass(X_train, y_train, intercept=1.0, cost=1.0)
solution = solve(problem, tol=1e-3, random_state=0)
checked = solution.certify(problem)
print("\nThe problem behind the first model, solved directly, and its bounds computed again in plain numpy:")
print(f"lower {checked.lower_bound:.8g}   upper {checked.upper_bound:.8g}   gap {checked.gap:.2e}")
agree = np.allclose(checked, (solution.lower_bound, solution.upper_bound), rtol=1e-9)
agree &= solution.lower_bound <= model.upper_bound_ and model.lower_bound_ <= solution.upper_bound
holds = agree and solution.converged and model.converged_
print("The certificate holds." if holds else "THE CERTIFICATE DOES NOT HOLD.")
raise SystemExit(not holds)
