"""Problems whose constraints are too many to list, and are searched by an oracle."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..checks import LIMIT, Array, as_vector
from ..prior import Prior, as_covariance, as_weights
from .constraints import Answer, Feature, Found, OracleError, as_feature, collect
from .crew import Crew


class Shape(NamedTuple):
    """The prior and the bounds, for a number of weights; None where there is none."""

    mean: Array | None
    variance: Array | None
    covariance: Array | None
    lower: Array | None
    upper: Array | None


class Searched:
    """Examples whose constraints are searched: what the schedule of `explore` works with.

    Whoever inherits says what a search is, and how many weights there are.
    """

    #: whether examples can only be read in their order
    sequential = False
    #: how many examples may be asked about at once
    most = sys.maxsize
    #: slacks of an example, each with its C_i: found constraints name the slack, example * slacks + k
    slacks = 1

    def __init__(
        self, n_examples: int, cost: ArrayLike, prior: Prior | None, lower: ArrayLike | None, upper: ArrayLike | None
    ) -> None:
        if prior is not None and not isinstance(prior, Prior):
            raise TypeError(f"prior must be a dualsvm.Prior, got {type(prior).__name__}")
        if n_examples == 0:
            raise ValueError("there are no examples: give at least one")
        self.n_examples = n_examples
        self.cost = as_vector(cost, "cost", n_examples, "example")
        if self.cost.min() < 0:
            raise ValueError(f"cost must not be negative, got {self.cost.min()}")
        if ((self.cost > 0) & (self.cost < 1 / LIMIT)).any():
            raise ValueError("cost must be 0 or at least 1e-150: smaller numbers cannot be computed with")
        self.prior = prior or Prior()
        self.lower, self.upper = lower, upper

    @property
    def price(self) -> float | None:
        """Entries of cached constraints that could be read in the time of one call; None: a great many."""
        return None

    @property
    def n_weights(self) -> int:
        """Number of weights, which may grow while constraints are found."""
        raise NotImplementedError

    def search(self, w: Array, which: Array, crew: Crew) -> Found:
        """Return the worst constraints of some examples at the weights w."""
        raise NotImplementedError

    def check(self, width: int | None) -> None:
        """Refuse a prior and bounds that do not fit the number of weights or, if that may grow, beginning at 0."""
        shape = self.shape(1 if width is None else width)
        if width is None:
            low, high = (0.0 if b is None else float(b[0]) for b in (shape.lower, shape.upper))
            if (shape.mean is not None and shape.mean[0] != 0) or shape.covariance is not None or low > 0 or high < 0:
                raise ValueError(
                    "where the number of weights may grow, new ones begin at 0: the prior must have mean 0 and no "
                    "covariance, and the bounds must allow 0; else say how many weights there are"
                )

    def shape(self, d: int) -> Shape:
        """Return the prior and the bounds of d weights."""
        mean = as_weights(self.prior.mean, "prior mean", (d,))
        variance = as_weights(self.prior.variance, "prior variance", (d,))
        if variance is not None and not variance.min(initial=np.inf) > 0:
            raise ValueError(
                f"prior variance must be positive, got {variance.min()}: "
                "to fix a weight, set its lower and upper bounds to the same value"
            )
        covariance = as_covariance(self.prior.covariance, d)
        lower = as_weights(self.lower, "lower", (d,), free=-np.inf)
        upper = as_weights(self.upper, "upper", (d,), free=np.inf)
        if lower is not None and upper is not None and (lower > upper).any():
            k = int(np.argmax(lower > upper))
            raise ValueError(f"lower must not exceed upper, but at weight {k} lower is {lower[k]}, upper {upper[k]}")
        if covariance is not None and (lower is not None or upper is not None):
            raise ValueError(
                "a full prior covariance cannot be combined with bounds on the weights: "
                "use a diagonal variance, or drop the bounds"
            )
        return Shape(mean, variance, covariance, lower, upper)


class OracleProblem(Searched):
    """Examples whose constraints are searched by an oracle, the low-level way to state any structured task.

    The problem is that of `Problem`, with sets of constraints that may be too large to list.

    Parameters
    ----------
    oracle : callable
        ``oracle(w, example)`` returns a list of constraints ``(x, l)`` or ``(x, l, key)``, among them the worst, the
        one with the largest ``l - w.x``; x is a vector or ``(indices, values)``, and keys are not looked at. An
        empty list says that no constraint is violated. Where the search is approximate, it returns ``(constraints,
        bound)``: no constraint of the example has more than `bound`, and the certificate uses that.
    examples : int or sequence
        What the oracle is asked about: elements of the sequence, or the numbers below an integer.
    n_weights : int, default None
        Number of weights. None: as many as the constraints found have features; new ones may appear at any time,
        and `w` is shorter before.
    cost : float or array-like of shape (n_examples,), default 1.0
        The C_i.
    prior, lower, upper
        As in `Problem`; with `n_weights` None one number for all weights.
    exact : bool, default True
        Whether the worst constraint is always found. If not, and no bound is returned, weights cannot be certified.

    Examples
    --------
    Two examples, each with the constraints that w shall exceed a number on either axis.

    >>> import numpy as np
    >>> from dualsvm import OracleProblem, solve
    >>> def oracle(w, number):
    ...     axis = int(w[1] < w[0])
    ...     return [(np.eye(2)[axis], number)]
    >>> problem = OracleProblem(oracle, [1.0, 3.0], n_weights=2, cost=10.0)
    >>> solution = solve(problem, tol=1e-6)
    >>> solution.w.round(3).tolist(), solution.certified
    ([3.0, 3.0], True)
    """

    def __init__(
        self,
        oracle: Callable[[Array, Any], Any],
        examples: int | Sequence[Any],
        n_weights: int | None = None,
        cost: ArrayLike = 1.0,
        prior: Prior | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        exact: bool = True,
    ) -> None:
        if not callable(oracle):
            raise TypeError(f"oracle must be callable, got {type(oracle).__name__}")
        self.examples: Sequence[Any] = range(examples) if isinstance(examples, int | np.integer) else examples
        if n_weights is not None and (not isinstance(n_weights, int | np.integer) or n_weights < 1):
            raise ValueError(f"n_weights must be a positive integer or None, got {n_weights!r}")
        self.oracle, self.exact = oracle, exact
        self._width = None if n_weights is None else int(n_weights)
        self._found = 0
        super().__init__(len(self.examples), cost, prior, lower, upper)
        self.check(self._width)

    @property
    def n_weights(self) -> int:
        """Number of weights, which may grow while constraints are found."""
        return self._found if self._width is None else self._width

    def search(self, w: Array, which: Array, crew: Crew) -> Found:
        """Return the worst constraints of some examples at the weights w."""
        asked = [(int(i), self.examples[int(i)]) for i in which]
        found = collect(which, crew.map(_ask, asked, self.oracle, w, self._width, self.exact))
        self._found = max(self._found, found.width)
        return found


def _ask(
    asked: list[tuple[int, Any]], oracle: Callable[[Array, Any], Any], w: Array, width: int | None, exact: bool
) -> list[Answer]:
    answers = []
    for i, example in asked:
        try:
            said = oracle(w, example)
        except Exception as error:
            raise OracleError(f"the oracle failed on example {i}: {type(error).__name__}: {error}") from error
        answers.append(_answer(said, i, w, width, exact))
    return answers


def _answer(said: Any, i: int, w: Array, width: int | None, exact: bool) -> Answer:
    what = f"the oracle's answer for example {i}"
    bound = np.nan
    if isinstance(said, tuple) and len(said) == 2 and isinstance(said[0], list):
        said, limit = said
        bound = np.nan if limit is None else as_loss(limit, f"the bound in {what}")
    elif not isinstance(said, list):
        raise OracleError(f"{what} must be a list of (x, l) or (constraints, bound), got {type(said).__name__}")
    constraints: list[tuple[Feature, float]] = []
    for one in said:
        if not isinstance(one, tuple) or len(one) not in (2, 3):
            raise OracleError(f"{what} must hold constraints (x, l) or (x, l, key), got {one!r}")
        constraints.append((as_feature(one[0], f"x in {what}", width), as_loss(one[1], f"l in {what}")))
    value = max((l - x.dot(w) for x, l in constraints), default=0.0)
    rounding = 1e-9 * max((abs(l) + x.size(w) for x, l in constraints), default=1.0)
    if np.isnan(bound):
        bound = value if exact else np.nan
    elif bound < value - rounding:
        raise OracleError(f"{what} has a bound of {bound}, but a constraint with {value}")
    return Answer(constraints, value, bound)


def as_loss(value: Any, name: str) -> float:
    """Return a finite number as a float."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise OracleError(f"{name} must be a number, got {value!r}") from None
    if not abs(number) <= LIMIT:
        raise OracleError(f"{name} must be finite, of 1e150 at most, got {number}")
    return number
