"""What the page on clusters shows first runs, and prints what it says; the recipes are Python, at least."""

import re
from pathlib import Path

PAGE = (Path(__file__).parent.parent / "docs" / "dask.md").read_text()


def test_the_example_prints_what_the_page_says(capsys):
    ((code, output),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "docs/dask.md", "exec"), {})
    assert capsys.readouterr().out == output


def test_recipes_can_be_compiled():
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) > 3
    for code in blocks:
        compile(code, "docs/dask.md", "exec")
