"""What sub-types a latent SVM finds in handwritten digits, as a picture: plot_latent_digits.py [FILE.png]."""

import sys

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from dualsvm import LatentStructuredSVM, SVMClassifier
from dualsvm.tasks import HiddenMulticlass

TYPES = 4
path = sys.argv[1] if len(sys.argv) > 1 else "latent_digits.png"

X, y = load_digits(return_X_y=True)
X = np.column_stack([X / 16.0, np.ones(len(X))])  # the constant makes an intercept
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
print(f"Handwritten digits: {len(X_train)} to learn from, {len(X_test)} to be tested on.\n")

linear = SVMClassifier(C=1.0, multi_class="crammer_singer", fit_intercept=False, random_state=0).fit(X_train, y_train)
before = 1 - linear.score(X_test, y_test)
print(f"One template for every digit: {100 * before:.2f} % of the test digits wrong.")

# Nobody has said which digits are of which type: rounds of fitting and of choosing the best type find out.
model = LatentStructuredSVM(HiddenMulticlass(n_types=TYPES), C=1.0, random_state=0).fit(X_train, y_train.tolist())
after = 1 - model.score(X_test, y_test.tolist())
print(f"{TYPES} for every digit:          {100 * after:.2f} %, that is {100 * (1 - after / before):.0f} % less.\n")
print("round  changed  objective      gap")
for record in model.history_:
    print(f"{record.round:5}  {record.changed:7}  {record.objective:9.3f}  {record.gap:.1e}")

parts = model.task_.unpack(model.coef_)
templates = dict(zip(parts.types, parts.unary[:, :64], strict=True))
members = {pair: [x for x, h in zip(X_train, model.latent_, strict=True) if h == pair] for pair in templates}

figure = Figure(figsize=(11.0, 7.2), layout="constrained")
upper, lower = figure.subfigures(2, 1, hspace=0.04)
figure.suptitle(
    f"Sub-types of digits that nobody has labelled: {100 * after:.1f} % wrong on test digits, "
    f"{100 * before:.1f} % with one type",
    fontsize=12,
)
upper.suptitle("Mean of the training digits of each type, and their number", fontsize=10)
lower.suptitle("Weights: red speaks for the type, blue against it", fontsize=10)
most = max(abs(template).max() for template in templates.values())
for part, is_mean in ((upper, True), (lower, False)):
    axes = part.subplots(TYPES, 10)
    for digit in range(10):
        order = sorted(range(TYPES), key=lambda k: -len(members[digit, k]))  # the commonest type first
        for axis, k in zip(axes[:, digit], order, strict=True):
            some = members[digit, k]
            axis.set(xticks=[], yticks=[])
            axis.set_frame_on(False)
            if is_mean:
                image = np.mean(some, axis=0)[:64] if some else np.zeros(64)
                axis.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
                axis.set_xlabel(len(some), fontsize=7, labelpad=1)
            else:
                axis.imshow(templates[digit, k].reshape(8, 8), cmap="RdBu_r", vmin=-most, vmax=most)
figure.savefig(path, dpi=150)
print(f"\nThe picture is in {path}.")
