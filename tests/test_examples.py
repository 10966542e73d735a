"""The examples run, and come to what they say."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_demo(capfd):
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLES / "demo.py"))
    assert ended.value.code == 0
    said = capfd.readouterr().out
    assert said.count("$ dualsvm ") == 4
    assert "The certificates hold." in said


def test_sub_types_of_digits(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "digits.png"
    monkeypatch.setattr(sys, "argv", ["plot_latent_digits.py", str(picture)])
    names = runpy.run_path(str(EXAMPLES / "plot_latent_digits.py"))
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert names["after"] < 0.7 * names["before"]
    assert names["model"].converged_
    assert "less" in capsys.readouterr().out
