"""From a task, with the methods that users know, to constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..checks import Array
from ..prior import Prior
from .constraints import Answer, Feature, Found, OracleError, as_feature, collect, difference
from .crew import Crew
from .examples import PART, Readable, parts_of
from .prints import fingerprint, settings_of
from .problem import Searched, Shape, as_loss

_LOSSES = 10  # outputs whose losses tell whether the loss is still the same
_ROUNDS = 12  # calls of the oracle in a search with slack rescaling


class OfTask(Searched):
    """A problem that a task makes of examples.

    `learned` are weights that take the place of the mean of the prior, as a stream is learned from.
    """

    def __init__(
        self,
        task: Any,
        n_examples: int,
        cost: ArrayLike,
        prior: Prior | None,
        lower: ArrayLike | None,
        upper: ArrayLike | None,
        learned: Array | None,
    ) -> None:
        super().__init__(n_examples, cost, prior, *bounds_of(task, lower, upper))
        self.task = task
        self._found = 0
        self._learned: Array | None = None
        self.check(self.width)
        if learned is not None:  # which may be more weights than any constraint has been found to have
            self._learned, self._found = learned, len(learned)

    @property
    def width(self) -> int | None:
        """Number of weights, if the task knows it."""
        size = getattr(self.task, "size_joint_feature", None)
        return None if size is None else int(size)

    @property
    def n_weights(self) -> int:
        """Number of weights, which may grow."""
        return max(self._found, self.width or 0)

    def shape(self, d: int) -> Shape:
        """Return the prior and the bounds of d weights."""
        shape = super().shape(d)
        if self._learned is None:
            return shape
        mean = np.zeros(d)
        mean[: len(self._learned)] = self._learned
        return shape._replace(mean=mean)


class TaskProblem(OfTask):
    """The problem with x = phi(x_i, y_i) - phi(x_i, h) and l = loss(y_i, h) for all outputs h.

    With slack rescaling both are multiplied by loss(y_i, h). `name_of` tells what errors call an example.
    """

    def __init__(
        self,
        task: Any,
        examples: Readable,
        rescaling: str,
        cost: ArrayLike,
        prior: Prior | None,
        lower: ArrayLike | None,
        upper: ArrayLike | None,
        learned: Array | None = None,
    ) -> None:
        super().__init__(task, examples.n, cost, prior, lower, upper, learned)
        self.examples, self.rescaling = examples, rescaling
        self.sequential, self.most = examples.sequential, examples.most
        self.name_of: Callable[[int], str] = "example {}".format
        self.compiled = hasattr(task, "encode") and rescaling == "margin"
        self._look()

    def _look(self) -> None:
        """Look at the examples once and for all, if they are in memory."""
        held = self.compiled and self.examples.held
        self._coded = self.task.encode(self.examples.X, self.examples.Y) if held else None
        self._known = np.zeros(self.n_examples, dtype=bool)  # whose true output has been looked at

    def prints(self) -> Array:
        """Return a fingerprint of every example: its input, its output, and what makes constraints of them."""
        common = fingerprint(self.rescaling, settings_of(self.task), self._some_losses())
        prints = np.empty(self.n_examples, dtype=np.uint64)
        for part in parts_of(np.arange(self.n_examples), min(PART, self.most)):
            for i, x, y in zip(part, *self.examples.read(part), strict=True):
                phi = as_feature(self.task.joint_feature(x, y), f"{self.name_of(i)}: joint_feature", None)
                prints[i] = fingerprint(common, x, y, *phi)
        return prints

    def _some_losses(self) -> list[float | None]:
        """Return losses of the first outputs, among them and the largest: a task may take them from elsewhere."""
        X, Y = self.examples.read(np.arange(min(self.n_examples, _LOSSES)))
        zero = np.zeros(self.n_weights)  # where the worst output is that of the largest loss
        losses: list[float | None] = []
        for x, y in zip(X, Y, strict=True):
            try:
                worst = [self.task.loss_augmented_inference(x, y, zero)]
            except Exception:  # of a task that fails, which the search will tell
                worst = []
            for h in [*Y, *worst]:
                try:
                    losses.append(float(self.task.loss(y, h)))
                except Exception:  # an output that is none for this input
                    losses.append(None)
        return losses

    def squares(self, which: Array) -> Array:
        """Return the sums of the squares of the joint features of some examples, as many as they have."""
        found = [np.zeros(0)]
        for i, x, y in zip(which, *self.examples.read(which), strict=True):
            name = self.name_of(int(i))
            with _blaming(name):
                own = _Oracle(self.task, x, y, name, False).own
            found.append(np.bincount(own.column, own.x**2).astype(np.float64))
        sums = np.zeros(max(len(each) for each in found))
        for each in found:
            sums[: len(each)] += each
        return sums

    @property
    def price(self) -> float | None:
        """What a call costs, as the task says."""
        return getattr(self._coded, "price", None)

    def search(self, w: Array, which: Array, crew: Crew) -> Found:
        """Return the worst constraints of some examples at the weights w."""
        if self._coded is not None:
            return Found(*self._coded.search(which, w, crew.threads))
        X, Y = self.examples.read(which)
        if self.compiled:
            found = Found(*self._encoded(which, X, Y).search(np.arange(len(which)), w, crew.threads))
            return found._replace(example=which[found.example])
        asked = list(zip(map(self.name_of, which.tolist()), X, Y, ~self._known[which], strict=True))
        self._known[which] = True
        answers = crew.map(_ask, asked, self.task, w, self.rescaling)
        found = collect(which, answers)
        self._found = max(self._found, found.width)
        return found

    def _encoded(self, which: Array, X: list[Any], Y: list[Any]) -> Any:
        """Return a part of the examples as the task's search reads them; an error says which of all is wrong."""
        try:
            return self.task.encode(X, Y)
        except Exception:
            for i, x, y in zip(which, X, Y, strict=True):
                try:
                    self.task.encode([x], [y])
                except Exception as error:
                    raise OracleError(f"{self.name_of(int(i))}: {error}") from error
            raise


def bounds_of(task: Any, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Return the bounds that the user sets on the weights, tightened to those that the task needs."""
    if not hasattr(task, "weight_bounds"):
        return lower, upper
    low, high = task.weight_bounds()
    if low is not None:
        lower = low if lower is None else np.maximum(lower, low)
    if high is not None:
        upper = high if upper is None else np.minimum(upper, high)
    return lower, upper


def _ask(asked: list[tuple[str, Any, Any, bool]], task: Any, w: Array, rescaling: str) -> list[Answer]:
    answers = []
    for name, x, y, new in asked:
        with _blaming(name):
            oracle = _Oracle(task, x, y, name, new, hasattr(task, "encode"))
            answers.append(oracle.margin(w) if rescaling == "margin" else oracle.slack(w))
    return answers


@contextmanager
def _blaming(name: str) -> Iterator[None]:
    """Have errors say on which example the task failed."""
    try:
        yield
    except OracleError:
        raise
    except Exception as error:
        raise OracleError(f"the task failed on {name}: {type(error).__name__}: {error}") from error


class _Oracle:
    """The task on one example."""

    def __init__(self, task: Any, x: Any, y: Any, name: str, new: bool, compiled: bool = False) -> None:
        self.task, self.x, self.y, self.name = task, x, y, name
        self.own = self._feature(y)
        self._coded = task.encode([x], [y]) if compiled else None
        if new and (loss := as_loss(task.loss(y, y), f"{name}: loss(y, y)")) != 0:
            raise OracleError(f"{name}: the loss of the true output must be 0, got {loss}")

    def _feature(self, y: Any) -> Feature:
        phi = self.task.joint_feature(self.x, y)
        size = getattr(self.task, "size_joint_feature", None)
        return as_feature(phi, f"{self.name}: joint_feature", None if size is None else int(size))

    def _difference(self, h: Any) -> tuple[Feature, float]:
        """Return phi(y) - phi(h) and loss(y, h)."""
        x = difference(self.own, self._feature(h))
        l = as_loss(self.task.loss(self.y, h), f"{self.name}: loss")
        if l < 0:
            raise OracleError(f"{self.name}: the loss must not be negative, got {l}")
        return x, l

    def _worst(self, w: Array) -> tuple[Feature, float, float]:
        """Return phi(y) - phi(h) and loss(y, h) of the answer h to the weights w, no worse than the true output.

        The third is what no output exceeds, NaN where that is not known.
        """
        if self._coded is not None:
            found = self._coded.search(np.arange(1), w)
            return Feature(found.column, found.x), float(found.l[0]), float(found.bound[0])
        x, l = self._difference(self.task.loss_augmented_inference(self.x, self.y, w))
        value = l - x.dot(w)
        exact = getattr(self.task, "exact", True)
        if exact and value < -1e-9 * (1 + l + self.own.size(w) + x.size(w)):
            raise OracleError(
                f"{self.name}: loss_augmented_inference returned an output that is worse than the true one: its loss "
                f"and score add up to {value:.6g} more than the true output's, which counts 0; a search that is not "
                "exact says so by task.exact = False"
            )
        return x, l, value if exact else np.nan

    def margin(self, w: Array) -> Answer:
        x, l, bound = self._worst(w)
        return Answer([(x, l)], l - x.dot(w), bound)

    def slack(self, w: Array) -> Answer:
        """Search for the largest loss (1 - w.x) by calls with weights w / t, which maximise  1 - w.x + t loss.

        For every t > 0 and every output, loss (1 - w.x) <= (1 - w.x + t loss)^2 / 4t where the bracket is positive,
        so that each call bounds all outputs; at equality, loss t = 1 - w.x, which is how t is chosen next.
        """
        if hasattr(self.task, "slack_inference"):
            x, l = self._difference(self.task.slack_inference(self.x, self.y, w))
            value = l * (1 - x.dot(w))
            if value < -1e-9 * l * (1 + self.own.size(w) + x.size(w)):
                raise OracleError(
                    f"{self.name}: slack_inference returned an output that is worse than the true one: its loss "
                    f"times what it lacks of the margin is {value:.6g}, and that of the true output 0"
                )
            return Answer([(Feature(x.column, l * x.x), l)], value, value)
        found: dict[tuple[float, float], tuple[Feature, float]] = {}
        value, reach, bound, t, calls = 0.0, np.inf, np.inf, 1.0, 0
        low, high = 0.0, np.inf
        while calls < _ROUNDS:
            x, l, most = self._worst(w / t)
            calls += 1
            short = 1 - x.dot(w)
            reach = min(reach, max(short + t * l, 0.0) ** 2 / (4 * t))
            bound = np.fmin(bound, np.maximum(1 + t * most, 0.0) ** 2 / (4 * t))
            if l * short > value:
                value = l * short
            if l > 0:
                found[(l, short)] = (Feature(x.column, l * x.x), l)
            if reach <= value * (1 + 1e-9) or (l <= 0 and t > 1e6):
                break
            if short > t * l:  # the loss counts too little
                low = t
                t = np.sqrt(low * high) if np.isfinite(high) else 4 * t
            else:
                high = t
                t = np.sqrt(low * high) if low > 0 else t / 4
        kept = max(found.values(), key=lambda pair: pair[1] - pair[0].dot(w), default=None)
        bound = max(float(bound), value) if np.isfinite(bound) else np.nan
        return Answer([] if kept is None else [kept], value, bound, calls)
