"""CoNLL-2000: chunks of sentences by sparse features, against CRFsuite."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from dualsvm.tasks import Chain

from . import data as sets
from .chunks import encode, f1, features, vocabulary
from .measure import status
from .peers import installed
from .searched import Fitting, Options, fit, line

TARGET = 1e-2
COST = (
    0.1  # C of a sentence, whose loss is its number of wrong tags; the best of several on a tenth of the training set
)
LEAST_F1, MOST_MB = 93.5, 3000.0


class Ours:
    name, package = "dualsvm", "dualsvm"

    def train(self, train: list[sets.Sentence], numbers: dict[str, int]) -> tuple[Callable[..., Any], dict[str, Any]]:
        X, Y = encode(train, numbers), [tags for *_, tags in train]
        run, model = fit(Fitting(Chain, X, Y, COST), TARGET)
        told = run._asdict() | {"weights": len(model.coef_)}
        return lambda sentences: model.predict(encode(sentences, numbers)), told


class Perceptron:
    """CRFsuite's averaged perceptron."""

    name, package = "CRFsuite ap", "python-crfsuite"
    algorithm, settings = "ap", {}

    def train(self, train: list[sets.Sentence], numbers: dict[str, int]) -> tuple[Callable[..., Any], dict[str, Any]]:
        crfsuite = import_module("pycrfsuite")

        def items(sentence: sets.Sentence) -> Any:
            return crfsuite.ItemSequence([[name for name in told if name in numbers] for told in features(sentence)])

        trainer = crfsuite.Trainer(algorithm=self.algorithm, params=self.settings, verbose=False)
        for sentence in train:
            trainer.append(items(sentence), sentence[2])
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "model")
            clock = time.perf_counter()
            trainer.train(file)
            seconds = time.perf_counter() - clock
            tagger = crfsuite.Tagger()
            tagger.open(file)
        return lambda sentences: [tagger.tag(items(sentence)) for sentence in sentences], {"seconds": seconds}


class Likelihood(Perceptron):
    """CRFsuite's conditional random field, by L-BFGS."""

    name = "CRFsuite lbfgs"
    algorithm, settings = "lbfgs", {"max_iterations": 100, "c2": 1.0}


PEERS = (Perceptron(), Likelihood())


def _trained(side: Any) -> dict[str, Any]:
    train, test = sets.conll2000("train"), sets.conll2000("test")
    tag, told = side.train(train, vocabulary(train))
    said = tag(test)
    return told | {"solver": side.name, "f1": f1([tags for *_, tags in test], said), "mb": status("VmHWM")}


def conll2000(options: Options) -> dict[str, Any]:
    results = []
    sets.conll2000("test")  # else nobody need be started
    for side in (Ours(), *PEERS):
        if not installed(side):
            options.note(f"{side.package} is left out: make .venv/bench installs it")
            continue
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:  # with its own peak
            results.append(process.submit(_trained, side).result())
        options.tell(f"conll2000: {side.name}: {results[-1]['seconds']:.3g} s, F1 {results[-1]['f1']:.2f}")
    ours = results[0]
    for result in results:
        mine = result is ours
        numbers = [f"{ours['calls']:.1f}", "", f"{ours['held']:,}", ""] if mine else ["", "", "", ""]
        ratio = "" if mine else f"{result['seconds'] / ours['seconds']:.1f}"
        name = f"conll2000, {ours['weights']:,} weights" if mine else f"    {result['solver']}"
        line(name, f"{TARGET:.0e}" if mine else "", f"{result['seconds']:.2f}", "", *numbers[:3], ratio)
        print(f"        F1 {result['f1']:.2f} on the test set, {result['mb']:,.0f} MB at most", flush=True)
    if ours["f1"] < LEAST_F1 or ours["mb"] > MOST_MB:
        options.note(f"conll2000 was to reach an F1 of {LEAST_F1:g} within {MOST_MB:,.0f} MB")
    return {"name": "conll2000", "C": COST, "sides": results}


ROWS: dict[str, Callable[[Options], dict[str, Any]]] = {"conll2000": conll2000}
