"""Certificates of fitted models, from the data and the dual variables that fits leave; in plain numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..checks import Array
from ..mapping import Lists
from ..problem import Problem
from ..solution import Certificate, conjugate, distance, dual, feasible, linear_part, losses, primal
from .chunks import Learner, State


def certify_rows(model: Any, X: Any, outputs: int, state: State, middle: float = 0.0) -> Certificate:
    """Certify a model on rows in memory, of which `state` makes its problems."""
    rows, frame, terms = model._frame(X, outputs, middle)
    problems = state(rows, terms)
    kept = _Kept(model, len(problems))
    lower = upper = 0.0
    for k, (problem, w) in enumerate(zip(problems, _weights(model, frame, problems), strict=True)):
        kept.expect(problem.alpha_shape[0])
        _expect_same(model, problem.mapping.fingerprint)
        w = _within(problem, w)
        lower += dual(problem, _sound(problem, kept.of(k, problem, 0), w))
        upper += primal(problem, w)
    return Certificate(lower, upper)


def certify_chunks(learner: Learner) -> Certificate:
    """Certify a model in one read of a dataset; what its chunks state, a learner knows."""
    model, dataset, of = learner.model, learner.dataset, [learner.problem_of(k) for k in range(learner.problems)]
    kept = _Kept(model, learner.problems)
    if dataset.n_features not in (None, model.n_features_in_):
        raise ValueError(_strange_width(dataset.n_features, model))
    proofs: list[_Proof] = []
    at = 0
    for raw in dataset:
        chunk = learner.prepare(raw)
        if chunk is None:
            continue
        if chunk.X.shape[1] != model.n_features_in_:
            raise ValueError(_strange_width(chunk.X.shape[1], model))
        problems = [problem_of(chunk) for problem_of in of]
        if not proofs:
            proofs = list(map(_Proof, problems, _weights(model, learner.frame, problems)))
        for k, (problem, proof) in enumerate(zip(problems, proofs, strict=True)):
            proof.meet(problem, kept.of(k, problem, at))
        at += problems[0].alpha_shape[0]
        del raw, chunk, problems
    kept.expect(at)
    _expect_same(model, learner.fingerprint)
    bounds = [proof.bounds() for proof in proofs]
    return Certificate(sum(lower for lower, _ in bounds), sum(upper for _, upper in bounds))


class _Proof:
    """Both bounds of a problem, added up over its chunks."""

    def __init__(self, problem: Problem, w: Array) -> None:
        self.problem, self.w = problem, _within(problem, w)
        self.u, self.linear, self.loss = np.zeros(problem.weight_shape), 0.0, 0.0

    def meet(self, problem: Problem, alpha: Array) -> None:
        alpha = _sound(problem, alpha, self.w)
        self.u += problem.mapping.combine(problem.view, alpha)
        self.linear += linear_part(problem, alpha)
        self.loss += losses(problem, self.w)

    def bounds(self) -> tuple[float, float]:
        return self.linear + conjugate(self.problem, self.u), self.loss + distance(self.problem, self.w)


class _Kept:
    """The dual variables that the last fit has left."""

    def __init__(self, model: Any, problems: int) -> None:
        if not hasattr(model, "_alpha"):
            raise ValueError(
                "this model has no dual variables, without which nothing can be proven: only fit leaves them, not "
                "partial_fit"
            )
        self._lines, self._columns = model._alpha.shape[0] // problems, model._alpha.tocsc()

    def expect(self, n: int) -> None:
        """See that there are dual variables for so many rows, or pairs of them."""
        if n != self._columns.shape[1]:
            raise ValueError(
                f"the data hold {n} examples, but the model was fitted to {self._columns.shape[1]}: give the same "
                "rows, in the same order"
            )

    def of(self, k: int, problem: Problem, start: int) -> Array:
        """Return those of the k-th problem, or of a part of it that begins here."""
        n, lines = problem.alpha_shape[0], slice(k * self._lines, (k + 1) * self._lines)
        found = self._columns[lines, start : start + n].toarray().T
        if found.size != np.prod(problem.alpha_shape):
            if start + n > self._columns.shape[1]:
                self.expect(start + n)
            raise ValueError("the dual variables of this model are those of another kind of problem: fit it again")
        return found.reshape(problem.alpha_shape)


def _sound(problem: Problem, alpha: Array, w: Array) -> Array:
    """Return dual variables that are feasible; refuse sums over sets of pairs that no sets have, where that shows.

    Whatever w is, ``l.alpha - w.u`` of a list is at most the sum of its alpha times what it loses at w.
    """
    alpha = feasible(problem, alpha)
    lists = problem.mapping
    if isinstance(lists, Lists):
        coefficients, mass = lists.coefficients(alpha, problem.view.n), lists.mass(alpha)
        for some in (w, -w, np.zeros_like(w)):
            scores = problem.view.scores(some)
            terms = (lists.margin * alpha[:, 2], coefficients * scores)
            linear, product = (np.add.reduceat(term[lists.member], lists.start[:-1]) for term in terms)
            most = mass * np.maximum(lists.violations(problem.view, some), 0.0)
            if (linear - product > most + 1e-6 * (np.abs(linear) + np.abs(product) + most)).any():
                raise ValueError("what this model holds of its last fit are no dual variables of these queries")
    return alpha


def _expect_same(model: Any, fingerprint: str) -> None:
    """See that dual variables which cannot be clipped are those of the same examples."""
    if model._fingerprint != fingerprint:
        raise ValueError(
            "the model was fitted to other queries, relevances or weights, or to these from elsewhere: give what it "
            "was fitted to, arrays or a dataset, as it was then"
        )


def _weights(model: Any, frame: Any, problems: list[Problem]) -> Iterator[Array]:
    """Yield the weights of a model, of every problem."""
    weights = frame.weights(model.coef_, model.intercept_)
    for k, problem in enumerate(problems):
        yield weights if len(problem.weight_shape) == 2 else weights[k]


def _within(problem: Problem, w: Array) -> Array:
    """Return weights as they are within their bounds, if they leave those only as what the user sees is rounded."""
    low = np.full(w.shape, -np.inf) if problem.lower is None else problem.lower
    high = np.full(w.shape, np.inf) if problem.upper is None else problem.upper
    inside = np.clip(w, low, high)
    return np.where(np.isclose(w, inside, rtol=4 * np.finfo(np.float32).eps, atol=0), inside, w)


def _strange_width(found: int | None, model: Any) -> str:
    return f"the data have {found} features, but the model was fitted with {model.n_features_in_}"
