"""What the kernel tells Newton's method, against numpy."""

import numpy as np
import pytest

from dualsvm import solve
from dualsvm.solution import dual
from dualsvm.state import State

from .newton import KINDS, PAIRS, PRIORS, RNG, TARGETS, TASKS, D, N, X, features, gradients


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", TASKS)
def test_the_hessian_follows_the_weights(task, kind, threads):
    rows = features(task, X)
    cost = np.linspace(0.5, 2.0, len(rows))
    kernel = State(TASKS[task](KINDS[kind](X), cost=cost, loss="squared_hinge"), None, 0, 1)._kernel
    hessian = np.zeros((rows.shape[1],) * 2)
    for seed in range(3):
        w = 0.5 * np.random.default_rng(seed).normal(size=rows.shape[1])
        kernel.set_weights(w)
        kernel.answer(1.0, 1, threads)
        on = (gradients(task, w) > 0).any(axis=1)
        assert kernel.curve(hessian, threads) == on.sum()
        assert 0 < on.sum() < len(rows) or task == "regression"
        expected = np.tril((2 * cost * on * rows.T) @ rows)
        np.testing.assert_allclose(hessian, expected, atol=1e-12 if "float" not in kind else 1e-4, rtol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", TASKS)
def test_rounded_kinks_make_a_hessian(task, kind, threads):
    """While the weights move and the kinks narrow; wide ones overlap in a regression."""
    rows = features(task, X)
    cost = np.linspace(0.5, 2.0, len(rows))
    kernel = State(TASKS[task](KINDS[kind](X), cost=cost), None, 0, 1)._kernel
    hessian = np.zeros((rows.shape[1],) * 2)
    for seed, width in enumerate((3.0, 0.5, 0.3)):
        w = 0.5 * np.random.default_rng(seed).normal(size=rows.shape[1])
        kernel.set_weights(w)
        kernel.answer(width, 1, threads)
        inside = (np.abs(gradients(task, w)) < width / 2).sum(axis=1)
        assert kernel.curve(hessian, threads) == (inside > 0).sum() > 0
        expected = np.tril((cost * inside * rows.T) @ rows)
        np.testing.assert_allclose(hessian, expected, atol=1e-12 if "float" not in kind else 1e-4, rtol=1e-5)


def answering(stride):
    """Who answers: of every so many runs of 16 examples the first."""
    return (np.arange(N) // 16) % stride == 0 if stride > 1 else np.full(N, True)


@pytest.mark.parametrize("stride", [1, 3, 16])
def test_the_answer_is_the_gradient(stride):
    problem = TASKS["regression"](X, cost=0.7, loss="squared_hinge")
    kernel = State(problem, None, 0, 1)._kernel
    w, own = 0.1 * RNG.normal(size=D), np.empty(D)
    kernel.set_weights(w)
    lower, upper, distance, smooth, gap, curve = kernel.answer(1.0, stride, 1)
    kernel.own(own)
    some = answering(stride)
    residual = (TARGETS - X @ w)[some]
    slack = np.maximum(np.abs(residual) - 0.2, 0.0)
    assert distance == pytest.approx(w @ w / 2)
    assert upper == pytest.approx(w @ w / 2 + 0.7 * (slack**2).sum())
    np.testing.assert_allclose(own, 2 * 0.7 * (slack * np.sign(residual)) @ X[some])
    assert upper - lower == pytest.approx(0.5 * (w - own) @ (w - own))
    assert (smooth, gap) == (pytest.approx(upper - distance), 0.0)
    assert curve == pytest.approx(2 * 0.7 * (slack > 0).sum())


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("width", [0.05, 0.4, 3.0])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_rounded_kinks_are_means_over_their_width(task, width, stride):
    cost = np.linspace(0.5, 2.0, N)
    kernel = State(TASKS[task](X, cost=cost), None, 0, 1)._kernel
    rows, some = features(task, X), answering(stride)
    w, own = 0.1 * RNG.normal(size=rows.shape[1]), np.empty(rows.shape[1])
    around = width * ((np.arange(4000) + 0.5) / 4000 - 0.5)

    def rounded(w):
        lines = gradients(task, w)[:, :, None] + around
        return float(cost @ np.maximum(lines, 0.0).mean(axis=2).sum(axis=1))

    kernel.set_weights(w)
    lower, upper, _, smooth, gap, curve = kernel.answer(width, stride, 1)
    kernel.own(own)
    excess = np.maximum(gradients(task, w), 0.0).sum(axis=1)
    assert upper == pytest.approx(w @ w / 2 + (cost * excess)[some].sum())
    assert upper - lower == pytest.approx(0.5 * (w - own) @ (w - own) + gap)
    inside = (np.abs(gradients(task, w)) < width / 2).sum(axis=1)
    assert curve == pytest.approx((cost * inside)[some].sum())
    alpha = np.empty(kernel.n_alpha)
    kernel.get_alpha(alpha)
    assert alpha.min() >= 0
    assert (alpha.reshape(N, -1).sum(axis=1) <= cost).all()
    if stride == 1:
        assert smooth == pytest.approx(rounded(w), rel=1e-6)
        step = 1e-4 * RNG.normal(size=len(w))
        assert (rounded(w - step) - rounded(w + step)) / 2 == pytest.approx(own @ step, rel=1e-3)


def lines_of_alpha(kernel):
    alpha = np.empty(kernel.n_alpha)
    kernel.get_alpha(alpha)
    return alpha.reshape(len(PAIRS) if kernel.n_alpha == len(PAIRS) else N, -1)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("prior", ["none", "mean and variance"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", TASKS)
def test_losses_that_are_lines_become_tangents(task, kind, prior, loss, threads):
    """Their dual variables stay, and the lower bound is one of the problem, wherever the weights go."""
    cost = np.linspace(0.5, 2.0, len(features(task, X)))
    problem = TASKS[task](KINDS[kind](X), cost=cost, loss=loss, prior=PRIORS[prior])
    best = solve(problem, tol=1e-3, random_state=0, max_iter=10**5)
    kernel, other = (State(problem, None, 0, 1)._kernel for _ in range(2))
    kernel.set_weights(best.w)
    kernel.answer(0.8, 1, threads)
    squared = loss == "squared_hinge"

    def curves(w, width):
        at = gradients(task, w)
        return (at > 0 if squared else np.abs(at) < width / 2).any(axis=1)

    curved = curves(best.w, 0.8)
    assert 0 < curved.sum() < len(curved) or squared
    for far, width in ((0.0, 0.8), (0.01, 0.8), (0.1, 0.3), (3.0, 0.1)):
        w = best.w + far * RNG.normal(size=best.w.shape)
        kernel.set_weights(w)
        other.set_weights(w)
        before = lines_of_alpha(kernel)
        lower, upper, distance, smooth, _, curve = kernel.refine(width, threads)
        other.answer(width, 1, threads)
        alpha = lines_of_alpha(kernel)
        np.testing.assert_array_equal(alpha[~curved], before[~curved])
        np.testing.assert_allclose(alpha[curved], lines_of_alpha(other)[curved], atol=1e-9)
        assert alpha.min() >= 0
        assert squared or (alpha.sum(axis=1) <= cost * (1 + 1e-12)).all()
        assert lower == pytest.approx(dual(problem, alpha.reshape(problem.alpha_shape)), rel=1e-6, abs=1e-6)
        assert lower <= best.upper_bound * (1 + 1e-9)
        pays = cost * np.maximum(gradients(task, w), 0.0).max(axis=1) ** (2 if squared else 1)
        tangents = (before * gradients(task, w)).sum(axis=1)
        loss_there = pays[curved].sum() + tangents[~curved].sum()
        assert upper - distance == pytest.approx(loss_there, rel=1e-6, abs=1e-6)
        assert smooth >= loss_there - 1e-6 * abs(loss_there)
        assert curve <= (2 * cost)[curved].sum() * (1 + 1e-9)
        curved &= curves(w, width)
