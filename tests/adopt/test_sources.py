from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from evogit.adopt.foreign_task import PLAIN, File
from evogit.adopt.packages import packages
from evogit.adopt.sources import files_below, read_yaml
from tests.adopt.evaluating import write


def files(**texts: str) -> dict[str, File]:
    return {name.replace("__", "."): (text.encode(), PLAIN) for name, text in texts.items()}


def test_imports_that_everybody_knows_become_packages_and_no_other_names() -> None:
    text = (
        "import numpy as np, os\nfrom sklearn.svm import SVC\nimport utils_of_mine\nfrom . import here\nimport helper\n"
    )
    text += "RUNNER = '''\nfrom shapely import Point\n  import what_of\nfrom requests that users send\n'''\n"
    guarded = "try:\n    import torch\n    import yaml\nexcept ImportError:\n    torch = None\n"
    found = packages(
        files(main__py=text + guarded, helper__py="", requirements__txt="Numpy==2.0 ; python_version>'3'\n")
    )
    assert found == ("Numpy==2.0 ; python_version>'3'", "PyYAML", "scikit-learn", "shapely")


YAML = """\
# comment
plain: some words  # more
quoted: "a \\"b\\" # no comment\\n\\
  \\ and on"
single: 'it''s'
empty:
numbers: [1, 2.5, -3.0e+2, "4"]
flags: {x: true}
nested:
  deep:
    - one
    - key: value
      other: 2
    -   three
block: |
  first

    indented
  last
folded: >-
  one
  line
long: words that go on
  in the next line  # and are one text
below:
  words in
  the next lines
quoted on: 'one

  it''s two'
flow: {timeout: 20, cascade: false, names: ["a, b", 'c'], deep: {url: http://x/y}}
spread: [1,  # the first
  2]
base: &base {a: 1, b: 2}
derived:
  <<: *base
  b: 3
"""


def test_yaml_as_people_write_it() -> None:
    assert read_yaml("a: !!timestamp 'x'\n") == {}
    found = read_yaml(YAML)
    assert found["plain"] == "some words"
    assert found["quoted"] == 'a "b" # no comment\n and on'
    assert (found["single"], found["empty"]) == ("it's", None)
    assert found["numbers"] == [1, 2.5, -300.0, "4"]
    assert found["nested"] == {"deep": ["one", {"key": "value", "other": 2}, "three"]}
    assert found["block"] == "first\n\n  indented\nlast\n"
    assert found["folded"] == "one line"
    assert (found["long"], found["below"]) == ("words that go on in the next line", "words in the next lines")
    assert found["quoted on"] == "one\nit's two"
    assert found["flow"] == {"timeout": 20, "cascade": False, "names": ["a, b", "c"], "deep": {"url": "http://x/y"}}
    assert (found["spread"], found["derived"]) == ([1, 2], {"a": 1, "b": 3})
    assert read_yaml('\ufeff{"a": {"b": [1, "x: y"]},\n "c": null}\n') == {"a": {"b": [1, "x: y"]}, "c": None}
    assert read_yaml("- a\n- b\n") == {}


LEVELS = list(pairwise("abcdefghijklmno"))
BOMBS = {
    "laughs": "a: &a [1, 1]\n" + "".join(f"{y}: &{y} [*{x}, *{x}, *{x}, *{x}]\n" for x, y in LEVELS),
    "merges": "a: &a {k: 1}\n" + "".join(f"{y}: &{y}\n  <<: [*{x}, *{x}, *{x}, *{x}]\n" for x, y in LEVELS),
    "itself": "a: &a [*a]\n",
    "deep": "a: " + "[" * 60_000,
    "date": "a: 2001-99-99\n",
    "digits": f"a: {'9' * 60_000}\n",
    "object": "a: !!python/object/apply:os.system ['true']\n",
    "long": "a: " + "x" * (1 << 19),
    "open": "a: [1, 2\nb: {c: 1\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_yaml_that_grows_or_cannot_be_read_counts_as_empty(name: str) -> None:
    assert read_yaml(BOMBS[name]) == {}


def test_solutions_and_what_runs_left_behind_do_not_come_along(tmp_path: Path) -> None:
    kept = {"evaluator.py": "", "data/a.csv": "1", "env/__init__.py": ""}
    left = ["best_program.py", "openevolve_output/x.py", "evogit-mine/main.py", ".git/HEAD", "a/__pycache__/b.py"]
    write(tmp_path, {**kept, **dict.fromkeys(left, "x")})
    assert files_below(tmp_path).keys() == kept.keys()
