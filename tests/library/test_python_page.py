"""The page for Python programs is true: its examples are run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import evogit

PAGE = Path(__file__).parents[2] / "docs" / "python.md"

BLOCK = re.compile(r"```python(?: file=(\S+))?\n(.*?)```", re.DOTALL)


@pytest.mark.slow
def test_the_examples_run(here: Path) -> None:
    names: dict[str, Any] = {"__name__": "example"}
    for file, code in BLOCK.findall(PAGE.read_text()):
        if file:
            (here / file).write_text(code)
        else:
            exec(compile(code, "docs/python.md", "exec"), names)
    assert names["result"].best.score > names["result"].seed.score
    assert names["small"].best.score <= names["small"].seed.score
    assert 60 < evogit.read("evogit-packing", "packing").evaluations < 70


def test_the_first_example_is_short() -> None:
    (first, *_) = [code for file, code in BLOCK.findall(PAGE.read_text()) if not file]
    assert len([line for line in first.splitlines() if line.strip()]) <= 7


def test_what_the_page_names_is_there() -> None:
    text = PAGE.read_text()
    assert set(re.findall(r"evogit\.([a-zA-Z_]+)\b", text)) - {"core", "events"} <= set(evogit.__all__)
    for place in re.findall(r"\]\(([^)#]+)\)", text):
        assert (PAGE.parent / place).is_file()


def test_types_come_along() -> None:
    assert (Path(evogit.__file__).parent / "py.typed").is_file()
