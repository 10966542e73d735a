"""What an estimator is told of its weights: priors and bounds, in the shapes and units that the user sees."""

import itertools

import numpy as np
import pytest

from dualsvm import Prior, SVMClassifier, SVMRanker, SVMRegressor

from .estimators import GRADES, QID, TARGETS, THREE, TWO, D, X, assert_certified, statements
from .reference import state

UNIT = 4.0  # intercept_scaling; a power of 2, so that bounds of the intercept can be met exactly
SHAPES = {"number": (), "coefficients": (D,), "weights": (D + 1,), "table": (3, D), "full table": (3, D + 1)}
every_shape = pytest.mark.parametrize("shape", list(SHAPES))


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def spread(value, filler, unit, outputs=3):
    """Write a quantity out for every weight of the problem: the intercept's is the last, in units of its feature."""
    value = np.asarray(value, dtype=np.float64)
    if value.ndim and value.shape[-1] == D + 1:
        return np.broadcast_to(value, (outputs, D + 1)) / np.append(np.ones(D), unit)
    return np.column_stack([np.broadcast_to(value, (outputs, D)), np.full(outputs, filler)])


def fit(y=THREE, **more):
    return SVMClassifier(tol=1e-6, intercept_scaling=UNIT, random_state=0).set_params(**more).fit(X, y)


@every_shape
@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_prior_of_several_classes(rng, shape, multi_class):
    mean, variance = rng.normal(size=SHAPES[shape]), rng.uniform(0.3, 3.0, size=SHAPES[shape])
    model = fit(prior=Prior(mean=mean, variance=variance), multi_class=multi_class)
    means, variances = spread(mean, 0.0, UNIT), spread(variance, 1.0, UNIT**2)
    common = {"intercept": UNIT}
    if multi_class == "ovr":
        every = statements(X, THREE, ovr=True, **common)
        problems = [
            statements(X, np.where(c == THREE, 1, -1), mean=means[c], variance=variances[c], **common)[0]
            for c in range(len(every))
        ]
    else:
        problems = statements(X, THREE, mean=means, variance=variances, **common)
    assert_certified(model, problems, UNIT)


@every_shape
def test_bounds_of_several_classes(rng, shape):
    lower = rng.uniform(-0.5, 0.0, size=SHAPES[shape])
    upper = lower + 0.25
    model = fit(lower=lower, upper=upper)
    lowest, highest = spread(lower, -np.inf, UNIT), spread(upper, np.inf, UNIT)
    assert_certified(model, statements(X, THREE, intercept=UNIT, lower=lowest, upper=highest), UNIT)
    assert (model.coef_ >= lowest[:, :D]).all()
    assert (model.coef_ <= highest[:, :D]).all()


@pytest.mark.parametrize("shape", ["number", "coefficients", "weights"])
def test_prior_and_bounds_of_two_classes(rng, shape):
    mean = rng.normal(size=SHAPES[shape])
    lower = mean - 0.05
    model = fit(TWO, prior=Prior(mean=mean), lower=lower)
    terms = {"mean": spread(mean, 0.0, UNIT, 1), "lower": spread(lower, -np.inf, UNIT, 1)}
    assert_certified(model, statements(X, TWO, intercept=UNIT, **terms), UNIT)


def test_a_number_leaves_the_intercept_free():
    model = fit(TWO, lower=0.0, upper=0.0)
    assert not model.coef_.any()
    assert model.intercept_[0] != 0


@pytest.mark.parametrize(("bound", "value"), [("lower", 3.0), ("upper", -3.0)])
@pytest.mark.parametrize("fit_intercept", [True, "unpenalized"])
def test_bounds_speak_of_the_intercept_that_is_seen(bound, value, fit_intercept):
    limits = [*[-np.inf if bound == "lower" else np.inf] * D, value]
    model = fit(TWO, fit_intercept=fit_intercept, **{bound: limits}, tol=1e-3)
    assert model.intercept_[0] == pytest.approx(value, rel=1e-6)
    assert model.intercept_[0] >= value if bound == "lower" else model.intercept_[0] <= value


def test_a_tight_prior_puts_the_intercept_where_it_says():
    prior = Prior(mean=[0.0] * D + [-2.0], variance=[1.0] * D + [1e-10])
    assert fit(TWO, prior=prior).intercept_ == pytest.approx([-2.0], abs=1e-3)


@pytest.mark.parametrize("size", [D, D + 1])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_full_covariance(rng, size, y):
    A = rng.normal(size=(size, size))
    S = A @ A.T + 0.5 * np.eye(size)
    model = fit(y, prior=Prior(mean=0.3, covariance=S))
    full = np.eye(D + 1)
    full[:size, :size] = S
    unit = np.append(np.ones(D), UNIT if size == D + 1 else 1.0)
    mean = spread(0.3, 0.0, UNIT, 1 if y is TWO else 3)
    problems = statements(X, y, intercept=UNIT, covariance=full / np.outer(unit, unit), mean=mean)
    assert_certified(model, problems, UNIT, rel=1e-8)


@pytest.mark.parametrize("shape", [(), (D,), (D + 1,)], ids=str)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_regressor(rng, shape, loss):
    mean, lower = rng.normal(size=shape), rng.uniform(-1.0, 0.0, size=shape)
    name = loss.replace("hinge", "epsilon_insensitive")
    model = SVMRegressor(loss=name, epsilon=0.2, prior=Prior(mean=mean, variance=0.5), lower=lower, random_state=0)
    model.set_params(intercept_scaling=UNIT, tol=1e-6, max_iter=10**5).fit(X, TARGETS)
    terms = {
        "mean": spread(mean, 0.0, UNIT, 1),
        "lower": spread(lower, -np.inf, UNIT, 1),
        "variance": np.append(np.full(D, 0.5), 1.0),
    }
    own = {"y": TARGETS, "epsilon": 0.2, "intercept": UNIT}
    assert_certified(model, [state("regression", X, own, cost=1.0, loss=loss, **terms)], UNIT)


@pytest.mark.parametrize("slack", ["pair", "query"])
def test_ranker(rng, slack):
    mean, variance = rng.normal(size=D), rng.uniform(0.5, 2.0, size=D)
    model = SVMRanker(slack=slack, prior=Prior(mean, variance), upper=0.4, tol=1e-6, random_state=0)
    model.fit(X, GRADES, qid=QID)
    pairs = [
        (i, j) for i, j in itertools.permutations(range(len(X)), 2) if QID[i] == QID[j] and GRADES[i] > GRADES[j]
    ]
    terms = {"mean": mean, "variance": variance, "upper": 0.4}
    problem = state("ranking", X, {"pairs": pairs, "margin": 1.0}, cost=1.0, loss="hinge", **terms)
    assert_certified(model, [problem], 0.0)


# what cannot be


@pytest.mark.parametrize("name", ["lower", "upper", "mean", "variance"])
@pytest.mark.parametrize("shape", [(D - 1,), (D + 2,), (2, D), (3, D + 2), (1, 3, D)], ids=str)
def test_wrong_shapes(name, shape):
    terms = {name: np.ones(shape)} if name in ("lower", "upper") else {"prior": Prior(**{name: np.ones(shape)})}
    with pytest.raises(ValueError, match=rf"{name} .*shape \({D},\).*\({D + 1},\).*got shape \({shape[0]},") as error:
        fit(**terms)
    assert "3 classes" in str(error.value)


def test_without_an_intercept_nothing_can_be_said_of_it():
    with pytest.raises(
        ValueError, match=rf"lower must be one number, or have shape \({D},\).*got shape \({D + 1},\)"
    ):
        fit(lower=np.zeros(D + 1), fit_intercept=False)


@pytest.mark.parametrize("size", [1, D - 1, D + 2])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_wrong_covariance(size, fit_intercept):
    with pytest.raises(ValueError, match=rf"covariance .*\({D}, {D}\).*got float64 of shape \({size}, {size}\)"):
        fit(prior=Prior(covariance=np.eye(size)), fit_intercept=fit_intercept)


@pytest.mark.parametrize("prior", [1.0, np.ones(D), {"mean": 0.0}, "flat"], ids=lambda p: type(p).__name__)
def test_a_prior_of_another_type(prior):
    with pytest.raises(TypeError, match=f"prior must be a dualsvm.Prior, got {type(prior).__name__}"):
        fit(prior=prior)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_bounds_that_contradict(y):
    with pytest.raises(ValueError, match=r"lower.*upper"):
        fit(y, lower=1.0, upper=[2.0, 2.0, 0.5, 2.0])


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"lower": np.nan}, "lower"),
        ({"upper": [np.nan] * D}, "upper"),
        ({"lower": "low"}, "lower must hold real numbers"),
        ({"lower": np.inf}, "lower"),
        ({"prior": Prior(mean=np.nan)}, "prior mean"),
        ({"prior": Prior(variance=0.0)}, "prior variance"),
        ({"prior": Prior(variance=-1.0)}, "prior variance"),
        ({"prior": Prior(covariance=-np.eye(D))}, "positive definite"),
        ({"prior": Prior(covariance=np.eye(D)), "lower": 0.0}, "covariance"),
    ],
    ids=str,
)
def test_impossible_terms(terms, message):
    with pytest.raises(ValueError, match=message):
        fit(**terms)
