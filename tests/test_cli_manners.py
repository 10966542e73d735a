"""The command line: what it shows, how it says that something is wrong, and what it leaves behind then."""

import io
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dualsvm import StructuredSVM, SVMClassifier, load, tasks
from dualsvm.cli.arguments import SOLVERS, _parser
from dualsvm.cli.screen import Screen

from .commands import dualsvm, give_stdin, write_text
from .estimators import TARGETS, TWO, N, X, time_limit

PYTHON = [sys.executable, "-m", "dualsvm"]


@pytest.fixture
def data(tmp_path):
    return write_text(tmp_path / "data.svm", X, TWO)


@pytest.fixture
def model(tmp_path):
    return tmp_path / "model.npz"


def left(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "required"),
        ("learn", "invalid choice"),
        ("train", "DATA"),
        ("train data", "where to write the model"),
        ("train --cash-mb 3 data model", "--cash-mb"),
        ("train --cache 3 data model", "--cache"),
        ("train -s 0 data model", "1, 2, 3, 4, 11, 12, 13"),
        ("train -s 3 --loss squared_hinge data model", "--loss hinge"),
        ("train -s 13 --task classify data model", "--task regress"),
        ("train -s 3 --multi-class crammer_singer data model", "--multi-class"),
        ("train --loss hinge --task regress data model", "epsilon_insensitive"),
        ("train --task rank -B 1 data model", "no intercept"),
        ("train -p 0.1 data model", "regress"),
        ("train --slack query data model", "rank"),
        ("train -w1 2 -s 11 data model", "classify"),
        ("train -w1 two data model", "LABEL=WEIGHT"),
        ("train -c 0 data model", "positive number"),
        ("train -e nan data model", "positive number"),
        ("train -v 1 data", "folds"),
        ("train -v 3 data model", "leave MODEL out"),
        ("train -v 3 --checkpoint x data", "--checkpoint"),
        ("train --passes 2 --max-passes 3 data model", "one of them"),
        ("train --checkpoint-every 3 data model", "--checkpoint"),
        ("train --index-base 2 data model", "index"),
        ("predict data", "MODEL"),
        ("certify model", "DATA"),
        ("convert data", "STORE"),
    ],
)
def test_wrong_arguments(words, message, capsys):
    assert dualsvm(*words.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "error" in said.err
    assert message in said.err
    assert len(said.err.splitlines()) <= 3  # the usage and what is wrong


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["train", "-s", "0", "a", "b"], ["--version"]])
def test_help_does_not_wait_for_numpy(words):
    code = f"import sys; from dualsvm.cli import main; main({words!r}); sys.exit('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout + done.stderr != ""


@pytest.mark.parametrize("command", ["train", "predict", "certify", "convert", "info"])
def test_help_has_examples(command, capsys):
    assert dualsvm(command, "--help") == 0
    assert f"  dualsvm {command} " in capsys.readouterr().out.split("examples:")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train nothing model", "nothing: No such file"),
        ("train data.svm nowhere/model", "nowhere"),
        ("train data.svm .", "is a folder"),
        ("train --checkpoint nowhere/state data.svm model", "nowhere"),
        ("train --n-features 2 data.svm model", "beyond the declared width, --n-features 2"),
        ("train --target y data.svm model", "target"),
        ("train real.svm model", "--task regress"),
        ("train -w7 2 data.svm model", "classes that there are"),
        ("train --threads 0 data.svm model", "--threads"),
        ("train empty model", "empty"),
        ("train one.svm model", "at least 2 classes"),
        ("train -v 9 one.svm", "9 folds"),
        ("predict data.svm nothing", "nothing: No such file"),
        ("predict data.svm data.svm", "not an estimator"),
        ("predict data.svm structured", "StructuredSVM"),
        ("predict data.svm unfitted", "not fitted"),
        ("convert data.svm nowhere/store", "nowhere"),
        ("info nothing", "nothing"),
        ("info --verify data.svm", "stores only"),
    ],
)
def test_what_cannot_be_done(words, message, data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path / "real.svm", X, TARGETS)
    write_text(tmp_path / "one.svm", X[:3], np.ones(3))
    (tmp_path / "empty").touch()
    StructuredSVM(tasks.Multiclass(), random_state=0).fit(list(X), TWO.tolist()).save("structured")
    SVMClassifier().save("unfitted")
    before = left(tmp_path)
    assert dualsvm(*words.split()) == 2
    said = capsys.readouterr()
    assert said.err.splitlines()[-1].startswith("dualsvm: error: ")
    assert message in said.err
    assert "Traceback" not in said.err
    assert left(tmp_path) == before


def test_no_traceback_where_the_fault_is_ours(data, model, monkeypatch, capsys):
    def fail(*_):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("dualsvm.cli.train._estimator", fail)
    assert dualsvm("train", data, model) == 2
    assert capsys.readouterr().err == "dualsvm: error: ZeroDivisionError: division by zero\n"


def test_too_few_reads_is_a_warning(data, model, capsys):
    words = ["--max-passes", "2", "--cache-mb", "0", "--chunk-rows", "5", "-e", "1e-9"]
    assert dualsvm("train", *words, data, model) == 0
    said = capsys.readouterr().err
    assert "dualsvm: warning: " in said
    assert "--max-passes or -e" in said
    assert not load(model).converged_


@pytest.mark.parametrize("command", ["train", "predict", "convert"])
def test_full_disk(command, data, model, tmp_path, capsys):
    dualsvm("train", "-q", data, model)
    before, held = model.read_bytes(), left(tmp_path)
    words = {"train": ("-c", "2", data, model), "predict": (data, model, tmp_path / "out")}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, hard))  # as if there were room for so many bytes
    try:
        code = dualsvm(command, "-q", *words.get(command, (data, tmp_path / "store")))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 2
    assert "too large" in capsys.readouterr().err
    assert left(tmp_path) == held
    assert model.read_bytes() == before


def test_full_disk_for_temporary_files(data, model, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    give_stdin(monkeypatch, data)
    assert dualsvm("train", "-", model) == 2
    assert "nowhere" in capsys.readouterr().err


def test_broken_pipe(data, model):
    dualsvm("train", "-q", data, model)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PYTHON, "predict", str(data), str(model)], stdout=writer, stderr=subprocess.PIPE, timeout=60
    )
    os.close(writer)
    assert done.returncode == 141
    assert b"Accuracy" in done.stderr or done.stderr == b""
    assert b"Traceback" not in done.stderr


ENDLESS = ["train", "-e", "1e-300", "--cache-mb", "0", "--chunk-rows", "5"]  # a tolerance that is never reached


class Impatient(io.StringIO):
    """A log that is interrupted when it comes to some words."""

    def __init__(self, words):
        super().__init__()
        self.words = words

    def write(self, text):
        super().write(text)
        if self.words in text:
            signal.raise_signal(signal.SIGINT)
        return len(text)


def test_interrupted(data, model, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", log := Impatient("pass     3"))
    with time_limit(60):
        assert dualsvm(*ENDLESS, data, model) == 130
    assert log.getvalue().endswith("interrupted: this is the model learned so far\n")
    assert f"[{load(model).lower_bound_:.8g}, {load(model).upper_bound_:.8g}]" in capsys.readouterr().out
    assert 0 < load(model).gap_ < 1


def test_interrupted_before_there_is_a_model(data, model, monkeypatch):
    monkeypatch.setattr("dualsvm.cli.screen._LATER", -1.0)
    monkeypatch.setattr(sys, "stderr", log := Impatient("read 5 rows"))  # in the course of looking for the classes
    assert dualsvm(*ENDLESS, data, model) == 130
    assert log.getvalue().endswith("dualsvm: interrupted\n")
    assert not model.exists()


def test_interrupted_in_its_only_pass(data, model, monkeypatch, capsys):
    give_stdin(monkeypatch, data)
    monkeypatch.setattr("dualsvm.cli.screen._LATER", -1.0)
    monkeypatch.setattr(sys, "stderr", Impatient("read 15 rows"))
    words = ["train", "--passes", "1", "--classes", "0,1", "--chunk-rows", "5"]
    assert dualsvm(*words, "-", model) == 130
    assert "gap inf" in capsys.readouterr().out
    assert load(model).coef_.shape == (1, X.shape[1])


def test_told_to_end(data, model):
    words = [*ENDLESS, str(data), str(model)]
    process = subprocess.Popen([*PYTHON, *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            with time_limit(120):
                while "pass     3" not in process.stderr.readline():
                    pass
                process.terminate()
                _, err = process.communicate()
        finally:
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert 0 < load(model).gap_ < 1


def test_the_page_about_it():
    page = (Path(__file__).parent.parent / "docs" / "command-line.md").read_text()
    assert {int(n) for n in re.findall(r"`-s (\d+)`", page)} == set(SOLVERS)
    commands = next(a for a in _parser()._actions if hasattr(a, "choices") and a.choices).choices
    known = {option for parser in commands.values() for action in parser._actions for option in action.option_strings}
    named = set(re.findall(r"(?<![\w-])(--?[a-zA-Z][a-z-]*)", re.sub(r"-w1|python -m", "", page)))
    assert named <= known
    assert set(commands) == set(re.findall(r"^    dualsvm (\w+) \[", page, re.MULTILINE))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_terminal(data, model, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr("dualsvm.cli.screen._SOON", -1.0)  # no pause between updates
    monkeypatch.setenv("COLUMNS", "80")
    assert dualsvm("train", "--chunk-rows", "10", "--cache-mb", "0", data, model) == 0
    shown = terminal.getvalue()
    assert shown.count("\n") == 1  # one line, written over
    lines = [line.removesuffix("\x1b[K") for line in shown.strip().split("\r")]
    assert len(lines) > N // 10
    assert max(map(len, lines)) < 80
    assert any(re.match(r"read \d+ rows \(\d+%\)  ", line) for line in lines)
    assert "gap" in lines[-1]
    assert "rows" not in lines[-1]
    assert str(model) in capsys.readouterr().out


def test_lines_elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    monkeypatch.setattr("dualsvm.cli.screen._LATER", -1.0)
    screen = Screen(quiet=False)
    screen.tick("one")
    with screen:
        print("two")
    screen.say("three")
    Screen(quiet=True).tick("four")
    Screen(quiet=True).say("five")
    assert log.getvalue() == "one\ntwo\nthree\n"
