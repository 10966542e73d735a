"""``dualsvm train``."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any

from ..data import Dataset
from ..linear import SVMClassifier, SVMRanker, SVMRegressor
from .cross import cross_validate
from .screen import Screen
from .sources import check_place, opened

_INTERRUPTED = 130


def run(arguments: Namespace) -> int:
    """Learn a model, or cross-validate."""
    a = arguments
    for path in (a.model, a.checkpoint):
        if path is not None:
            check_place(path)
    screen = Screen(a.quiet)
    model = _estimator(a)
    known = a.n_features is not None and (a.task != "classify" or a.classes is not None)
    again = a.passes != 1 or a.folds is not None or not known  # else one read suffices
    with opened(a, screen, again=again) as dataset:
        if a.folds is not None:
            return cross_validate(model, dataset, a.folds, a.seed, screen)
        return _train(model, dataset, a, screen)


def _train(model: Any, dataset: Dataset, a: Namespace, screen: Screen) -> int:
    began, code = time.perf_counter(), 0
    try:
        with screen:
            model.fit(dataset, **_options(a))
    except KeyboardInterrupt:
        if not hasattr(model, "coef_"):
            raise
        code = _INTERRUPTED
        screen.say("interrupted: this is the model learned so far")
    except ValueError as error:
        if a.task == "classify" and "continuous" in str(error):
            raise ValueError(f"the targets are no classes; for regression give --task regress ({error})") from error
        if "class_weight" in str(error):
            raise ValueError(f"--class-weight (-wi) must name classes that there are ({error})") from error
        raise
    seconds = time.perf_counter() - began
    if dataset.index_base is not None:
        model.index_base_ = dataset.index_base  # for text of which a few lines do not show it
    model.set_params(verbose=0).save(a.model)
    if a.solver == 4 and len(model.classes_) == 2:
        screen.say("-s 4 with two classes is -s 3 here; LIBLINEAR's own then counts C twice")
    if not a.quiet:
        _summary(model, dataset, a, seconds)
    return code


def _estimator(a: Namespace) -> Any:
    """Return the estimator that is asked for."""
    given: dict[str, Any] = {"C": a.C, "tol": a.tol, "lower": a.lower, "upper": a.upper, "cache_mb": a.cache_mb}
    given |= {"random_state": a.seed, "n_jobs": a.threads, "verbose": 0 if a.quiet else 1}
    given |= {name: getattr(a, name) for name in ("loss", "multi_class", "class_weight", "epsilon", "slack")}
    if a.bias is not None and a.task != "rank":
        given |= {"fit_intercept": a.bias > 0, "intercept_scaling": a.bias if a.bias > 0 else None}
    kind: Any = {"classify": SVMClassifier, "regress": SVMRegressor, "rank": SVMRanker}[a.task]
    return kind(**{name: value for name, value in given.items() if value is not None})


def _options(a: Namespace) -> dict[str, Any]:
    names = ("passes", "max_passes", "classes", "checkpoint", "checkpoint_every", "resume")
    return {name: getattr(a, name) for name in names if getattr(a, name) is not None}


def _summary(model: Any, dataset: Dataset, a: Namespace, seconds: float) -> None:
    print(f"the optimum lies within [{model.lower_bound_:.8g}, {model.upper_bound_:.8g}]: ", end="")
    print(f"gap {model.gap_:.2e}, tolerance {model.tol:g}")
    skipped = f" ({dataset.n_skipped} bad lines left out)" if dataset.n_skipped else ""
    support = int(model.n_support_.sum()) if isinstance(model, SVMClassifier) else model.n_support_
    rows = "?" if dataset.n_rows is None else f"{dataset.n_rows:,}"
    print(f"{model.n_iter_} passes over {rows} rows x {model.n_features_in_:,} features{skipped}, ", end="")
    print(f"{support:,} support vectors, {seconds:.2f} s")
    print(f"the model is in {a.model}")
