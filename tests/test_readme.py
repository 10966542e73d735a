"""What the README shows runs, and prints what the README says it prints."""

import re
from pathlib import Path

import pytest

from dualsvm.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text()
NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e-\d+)?"


def assert_alike(printed, said):
    """The same words; and the same bounds, but for what any right answer may differ by, and accuracies."""
    assert re.sub(NUMBER, "#", printed) == re.sub(NUMBER, "#", said)
    for what, most in ((r"\[([\d.]+), ([\d.]+)\]", 2e-4), (r"ccuracy (= )?([\d.]+)", 5e-3)):
        ours, theirs = ([float(one[-1]) for one in re.findall(what, text)] for text in (printed, said))
        assert ours == pytest.approx(theirs, rel=most)


def test_examples_print_what_the_readme_says(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code, output in re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL):
        exec(compile(code, "README.md", "exec"), names)
        assert_alike(capsys.readouterr().out, output)
    # the commands work on the files that the examples have written
    (commands,) = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for step in commands.split("$ dualsvm ")[1:]:
        command, _, output = step.partition("\n")
        assert main(command.split()) == 0
        assert_alike(capsys.readouterr().out, output)
