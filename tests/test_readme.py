"""The README's example runs and prints what the README says it prints."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_example_prints_what_the_readme_says(capsys):
    code, output = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL).groups()
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    number = r"\d+\.\d+"
    assert re.sub(number, "#", printed) == re.sub(number, "#", output)
    # any point within the tolerance is a right answer, and instruction sets round differently
    ours, theirs = ([float(x) for x in re.findall(number, text)] for text in (printed, output))
    assert ours == pytest.approx(theirs, rel=2e-4)
