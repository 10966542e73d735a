"""One adapter per solver of chains, all with the same few members.

name, package   what the table calls it, and the distribution that holds it (None: built from bcfw.cpp)
proves          whether it bounds the optimum from below
run             train, and tell of every stage that the solver reaches, until the listener says that this is enough

All minimise  lambda / 2 |w|^2 + mean_i max_h (loss(y_i, h) - w.(phi(x_i, y_i) - phi(x_i, h)))  with the compiled
search of `dualsvm.tasks.Chain`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from dualsvm.tasks import Chain

from .bcfw import iterates
from .data import Sequences


class Stage(NamedTuple):
    """Where a solver stood: its objective there, and the bound from below that it had by then."""

    seconds: float
    calls: int  # of the search
    upper: float
    lower: float = -np.inf


Listener = Callable[[Stage], bool]


class Bcfw:
    """Block-coordinate Frank-Wolfe at its last weights, with a certificate after every tenth more passes."""

    name, package, proves = "BCFW", None, True
    averaged = False

    def run(self, words: Sequences, lam: float, seed: int, enough: Listener) -> None:
        for state in iterates(words, lam, self.averaged, seed):
            if enough(Stage(state.seconds, state.calls, state.upper, state.lower)):
                return


class BcfwAveraged(Bcfw):
    """The same at its averages, which weigh a step by its number."""

    name = "BCFW averaged"
    averaged = True


class Dlib:
    """The cutting-plane solver of dlib, which bundles all examples into one slack.

    That is what it is given, a single example whose constraint is the mean of all: thus one pair of vectors passes
    through Python in a round. Its stopping rule never holds; the objective is looked at in every round.
    """

    name, package, proves = "dlib", "dlib-bin", False

    def run(self, words: Sequences, lam: float, seed: int, enough: Listener) -> None:
        dlib = import_module("dlib")
        task = Chain(normalized=True, labels=list(range(words.labels)))
        task.initialize(words.inputs, words.outputs)
        coded, everything = task.encode(words.inputs, words.outputs), np.arange(len(words))
        d = task.size_joint_feature
        clock = time.perf_counter()
        calls = 0

        class Problem:
            C = 1.0 / lam  # 1/2 |w|^2 + C times the mean
            epsilon, max_cache_size = 1e-12, 0
            num_samples, num_dimensions = 1, d

            def get_truth_joint_feature_vector(self, k: int) -> Any:
                return dlib.vector([0.0] * d)  # the search tells differences

            def separation_oracle(self, k: int, vector: Any) -> Any:
                nonlocal calls
                w = np.array(list(vector))
                found = coded.search(everything, w)
                calls += len(words)
                upper = 0.5 * lam * float(w @ w) + float(np.maximum(found.value, 0.0).mean())
                if enough(Stage(time.perf_counter() - clock, calls, upper)):
                    raise StopIteration
                psi = -np.bincount(found.column, found.x, minlength=d) / len(words)
                return float(found.l.mean()), dlib.vector(psi.tolist())

        with contextlib.suppress(StopIteration):
            dlib.solve_structural_svm_problem(Problem())


ALL = (Bcfw(), BcfwAveraged(), Dlib())
