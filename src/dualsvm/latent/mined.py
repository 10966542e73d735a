"""Two classes with latent values: positives that are completed, and negatives that are searched."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ..checks import Array
from ..prior import Prior
from ..structured.constraints import Answer, Feature, Found, OracleError, as_feature, collect, difference, total
from ..structured.crew import Crew
from ..structured.examples import PART, Readable, parts_of
from ..structured.explore import Change
from ..structured.oracle import OfTask
from ..structured.prints import fingerprint, settings_of

_SLACKS = 8  # of a negative whose violations have slacks of their own: those that fall on the same are added up
_FEATURES = 10  # inputs whose features tell whether the task is still the same


class Window(NamedTuple):
    """What a search found in an input: the latent value, or the key of a violation, and its features."""

    z: Any
    feature: Feature


class LatentProblem(OfTask):
    """The convex problem of a round of `LatentSVM`.

    A positive has one constraint, w.phi(x_i, z_i) >= 1 at its completion z_i; a negative has one for every z,
    -w.phi(x_i, z) >= 1, of which the search finds the worst. Where a task tells all `violations` of a negative, each
    has a slack of its own. Their sum is the largest of the sums over sets of them,

        sum_k max(0, 1 + w.phi_k)  =  max over sets K of  |K| + w.(sum of phi_k over K),

    so that all those of a negative that fall on one of its few slacks make one constraint, whatever their number.
    """

    def __init__(
        self,
        task: Any,
        truth: Readable,
        labels: Array,
        cost: ArrayLike,
        prior: Prior | None,
        lower: ArrayLike | None,
        upper: ArrayLike | None,
        learned: Array | None = None,
    ) -> None:
        super().__init__(task, truth.n, cost, prior, lower, upper, learned)
        self.truth, self.labels = truth, labels
        self.sequential, self.most = truth.sequential, truth.most
        self.every = callable(getattr(task, "violations", None))
        self.slacks = _SLACKS if self.every else 1
        self.positive = np.flatnonzero(labels > 0)
        self.n_completed = len(self.positive)
        self.completions: list[Any] = [None] * truth.n
        self._features: list[Feature | None] = [None] * truth.n  # of the positives
        self._coded = task.encode(truth.X) if hasattr(task, "encode") and truth.held else None

    @property
    def outputs(self) -> Array:
        """The classes."""
        return self.labels

    def prints(self) -> Array:
        """Return a fingerprint of every example: its input, its label, and its completion."""
        common = fingerprint(settings_of(self.task), self.every, self._some_features())
        prints = np.empty(self.n_examples, dtype=np.uint64)
        for part in self._parts(np.arange(self.n_examples)):
            for i, x in zip(part, self.truth.read(part)[0], strict=True):
                prints[i] = fingerprint(common, x, int(self.labels[i]), *(self._features[i] or ()))
        return prints

    def _some_features(self) -> list[Feature]:
        """Return joint features of the first inputs: a task may make them by more than its parameters."""
        X, _ = self.truth.read(np.arange(min(self.n_examples, _FEATURES)))
        return [one.feature for [one] in _look(list(enumerate(X)), self.task, np.zeros(self.n_weights), False)]

    def given(self, completions: Any, name: str) -> Self:
        """Return the problem with completions of the positives that the user or the task gives."""
        try:
            some = list(completions)
        except TypeError:
            raise TypeError(
                f"{name} must be a latent value for every example, got {type(completions).__name__}"
            ) from None
        if len(some) != self.n_examples:
            raise ValueError(
                f"{name} must have an entry for all {self.n_examples} examples (what it says of negatives is not "
                f"looked at), got {len(some)}"
            )
        windows: dict[int, Window] = {}
        for part in self._parts(self._readable(self.positive)):
            for i, x in zip(part, self.truth.read(part)[0], strict=True):
                if self.labels[i] > 0:
                    windows[int(i)] = Window(some[i], _feature(self.task, x, some[i], int(i)))
        return self._with(windows)[0]

    def completed(self, w: Array, crew: Crew) -> tuple[Self, Change]:
        """Return the problem with the best completions at weights, and which examples that has changed."""
        windows: dict[int, Window] = {}
        for part in self._parts(self._readable(self.positive)):
            windows |= self._best(part, w, crew)
        return self._with({i: windows[i] for i in self.positive.tolist()})

    def _readable(self, which: Array) -> Array:
        """Return examples to read so as to see some of them: all, where they are read in their order."""
        return np.arange(self.n_examples) if self.sequential else which

    def _parts(self, which: Array) -> list[Array]:
        return parts_of(which, min(PART, self.most))

    def _with(self, windows: dict[int, Window]) -> tuple[Self, Change]:
        other = copy.copy(self)
        other.completions, other._features = list(self.completions), list(self._features)
        which, moves = [], list[Feature | None]()
        for i, (z, feature) in windows.items():
            before = self._features[i]
            other.completions[i], other._features[i] = z, feature
            other._found = max(other._found, int(feature.column.max(initial=-1)) + 1)
            if before is None or not all(map(np.array_equal, before, feature)):
                which.append(i)
                moves.append(None if before is None else difference(feature, before))
        return other, Change(np.array(which, dtype=np.int64), moves)

    def _best(self, which: Array, w: Array, crew: Crew) -> dict[int, Window]:
        """Return the best latent values of some examples."""
        if hasattr(self.task, "encode"):
            coded, place = self._code(which)
            _, z, start, column, x = coded.search(place, w, crew.threads)
            return {
                int(i): Window(z[k], Feature(column[start[k] : start[k + 1]], x[start[k] : start[k + 1]]))
                for k, i in enumerate(which)
            }
        X, _ = self.truth.read(which)
        found = crew.map(_look, list(zip(which.tolist(), X, strict=True)), self.task, w, False)
        return {int(i): windows[0] for i, windows in zip(which, found, strict=True)}

    def _code(self, which: Array) -> tuple[Any, Array]:
        """Return examples as the task's search reads them, and their places there."""
        if self._coded is not None:
            return self._coded, which
        return self.task.encode(self.truth.read(which)[0]), np.arange(len(which))

    def search(self, w: Array, which: Array, crew: Crew) -> Found:
        """Return the constraints of positives, and the worst of negatives, at the weights w."""
        positive = self.labels[which] > 0
        asked = which if self.sequential else which[~positive]
        found = self._violations(asked, w, crew) if len(asked) else {}
        exact = getattr(self.task, "exact", True)
        slacks, answers = [], []
        value = np.zeros(len(which))
        for k, i in enumerate(which.tolist()):
            if positive[k]:
                own = self._features[i]
                assert own is not None
                constraints = [(0, own, 1.0)]
            else:
                constraints = found.get(i, [])
            for slack, x, l in constraints:
                answers.append(Answer([(x, l)], 0.0, 0.0))
                slacks.append(i * self.slacks + slack)
                value[k] += l - x.dot(w)
        bound = np.where(positive | exact, value, np.nan)
        all_found = collect(slacks, answers)._replace(value=value, bound=bound, calls=len(which))
        self._found = max(self._found, all_found.width)
        return all_found

    def _violations(self, which: Array, w: Array, crew: Crew) -> dict[int, list[tuple[int, Feature, float]]]:
        """Return constraints of examples, taken for negatives: (which slack, x, l)."""
        if hasattr(self.task, "encode"):
            coded, place = self._code(which)
            line, z, start, column, x = coded.search(place, w, crew.threads, self.every)
            windows: dict[int, list[Window]] = {}
            for r, k in enumerate(np.asarray(line).tolist()):
                part = slice(start[r], start[r + 1])
                windows.setdefault(int(which[k]), []).append(Window(z[r], Feature(column[part], x[part])))
        else:
            X, _ = self.truth.read(which)
            found = crew.map(_look, list(zip(which.tolist(), X, strict=True)), self.task, w, self.every)
            windows = dict(zip(which.tolist(), found, strict=True))
        return {i: _constraints(some, w, self.every) for i, some in windows.items()}


def _constraints(windows: list[Window], w: Array, every: bool) -> list[tuple[int, Feature, float]]:
    if not every:
        return [(0, Feature(one.feature.column, -one.feature.x), 1.0) for one in windows]
    sets: dict[int, list[Feature]] = {}
    for z, feature in windows:
        if 1 + feature.dot(w) > 0:
            sets.setdefault(_slack_of(z), []).append(feature)
    return [(slack, total(features, -1.0), float(len(features))) for slack, features in sets.items()]


def _slack_of(key: Any) -> int:
    return (int(key) if isinstance(key, int | np.integer) else fingerprint(key)) % _SLACKS


def _feature(task: Any, x: Any, z: Any, i: int) -> Feature:
    size = getattr(task, "size_joint_feature", None)
    try:
        phi = task.joint_feature(x, z)
    except Exception as error:
        raise OracleError(
            f"the task failed on example {i} with the latent value {z!r}: {type(error).__name__}: {error}"
        ) from error
    return as_feature(phi, f"example {i}: joint_feature", None if size is None else int(size))


def _look(some: list[tuple[int, Any]], task: Any, w: Array, every: bool) -> list[list[Window]]:
    """Return what is best in every input or, where violations have slacks of their own, all of them."""
    answers = []
    size = getattr(task, "size_joint_feature", None)
    for i, x in some:
        try:
            found = list(task.violations(x, w)) if every else [task.inference(x, w)]
        except Exception as error:
            raise OracleError(f"the task failed on example {i}: {type(error).__name__}: {error}") from error
        if not every:
            answers.append([Window(z, _feature(task, x, z, i)) for z in found])
            continue
        windows: dict[int, Window] = {}
        for one in found:
            if not isinstance(one, tuple) or len(one) != 2:
                raise OracleError(f"example {i}: violations must yield (key, features), got {one!r}")
            name = f"example {i}: the features of violation {one[0]!r}"
            feature = as_feature(one[1], name, None if size is None else int(size))
            if (key := fingerprint(one[0])) != fingerprint(one[0]):
                raise OracleError(
                    f"example {i}: the key {one[0]!r} of a violation cannot be known again: use numbers, strings or "
                    "tuples of these, the same for a violation whatever the weights"
                )
            if windows.setdefault(key, window := Window(one[0], feature)) is not window:
                raise OracleError(f"example {i}: violations yields {one[0]!r} twice: each needs a key of its own")
        answers.append(list(windows.values()))
    return answers
