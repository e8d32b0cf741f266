"""What counts as nearly the same: only what surely does the same, and it is not evaluated again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evogit.agents import Agent, Brief, Proposal
from evogit.breeding.fingerprints import MAX_SOURCE_BYTES, UNCHANGED, Fingerprints, essence
from evogit.config import Task
from evogit.events import Duplicate, Entry, Proposed
from evogit.history import History
from evogit.repository import EXECUTABLE, Repository
from evogit.review import open_run
from evogit.run import Run, Settings
from tests.conftest import PROGRAM, TOML

MakeTask = Callable[..., Task]

BASE = '''\
"""A module."""
import math
from os import path as p

SIZE = 10


def area(radius, *, scale=1.0):
    """Its area."""
    total = 0
    for step in range(SIZE):
        total += scale * radius**2  # grows
    return total * math.pi


class Ball:
    """Round."""

    weight = 3

    def heavy(self):
        limit = self.weight
        return [limit for _ in range(2)]
'''

SAME = {
    "comments and layout": (BASE.replace("  # grows", "").replace("\n\n\n", "\n\n"), BASE),
    "docstrings": (BASE.replace('    """Its area."""\n', "").replace("A module.", "Something else."), BASE),
    "names of locals": (BASE.replace("total", "amount").replace("step", "_").replace("limit", "cap"), BASE),
    "how a literal is written": ("x = 1_000 + 0x10 + 1e3\ny = 'a'\n", 'x = (1000 + 16) + 1000.0\ny = "a"\n'),
    "pass": ("def f():\n    x = 1\n    pass\n    return x\n", "def f():\n    y = 1\n    return y\n"),
    "line ends": ("x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
    "closures": (
        "def f():\n    a = 1\n    def g():\n        return a\n    return g\n",
        "def f():\n    b = 1\n    def g():\n        return b\n    return g\n",
    ),
}

DIFFERENT = {
    "numbers": (BASE, BASE.replace("10", "11")),
    "an integer for a float": ("x = 1\n", "x = 1.0\n"),
    "a truth for a number": ("x = 1\n", "x = True\n"),
    "the sign of zero": ("x = 0.0\n", "x = -0.0\n"),
    "globals": (BASE, BASE.replace("SIZE", "COUNT")),
    "parameters": (BASE, BASE.replace("radius", "r")),
    "attributes of classes": (BASE, BASE.replace("weight = 3", "mass = 3")),
    "methods": (BASE, BASE.replace("heavy", "light")),
    "a local for another": (
        "def f():\n    a = 1\n    b = 2\n    return a\n",
        "def f():\n    a = 1\n    b = 2\n    return b\n",
    ),
    "a global in a default": (
        "def f(a=j):\n    j = 1\n    return a + j\n",
        "def f(a=k):\n    k = 1\n    return a + k\n",
    ),
    "a global beside a comprehension": (
        "def f(y):\n    return [i for i in y] + i\n",
        "def f(y):\n    return [j for j in y] + j\n",
    ),
    "a parameter of a lambda": (
        "def f():\n    a = 1\n    return lambda b: a\n",
        "def f():\n    b = 1\n    return lambda b: b\n",
    ),
    "a class inside": (
        "def f():\n    x = 1\n    class A:\n        x = 2\n    return A\n",
        "def f():\n    y = 1\n    class A:\n        y = 2\n    return A\n",
    ),
    "declared globals": (
        "def f():\n    global a\n    a = 1\n",
        "def f():\n    global b\n    b = 1\n",
    ),
    "names of imports": ("def f():\n    import os\n    return os\n", "def f():\n    import re\n    return re\n"),
    "captures": (
        "def f(x):\n    match x:\n        case [a, *b]:\n            return a\n",
        "def f(x):\n    match x:\n        case [b, *a]:\n            return a\n",
    ),
    "what is shown by name": ("def f():\n    a = 1\n    return f'{a=}'\n", "def f():\n    b = 1\n    return f'{b=}'\n"),
    "locals that Python or tools look for": (
        "def f():\n    __class__ = 1\n    return super()\n",
        "def f():\n    parent = 1\n    return super()\n",
    ),
    "strings that are values": ("x = 'a'\n", "x = 'b'\n"),
    "two words for one": ("x = 'a', 'b'\n", "x = \"a', 'b\"\n"),
}


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME)
def test_what_does_the_same_is_the_same(pair: tuple[str, str]) -> None:
    assert essence(pair[0].encode()) == essence(pair[1].encode()) != ""


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_what_may_do_something_else_is_not(pair: tuple[str, str]) -> None:
    assert essence(pair[0].encode()) != essence(pair[1].encode())


@pytest.mark.parametrize(
    "content",
    [
        b"def f(:\n",
        b"x = \xff\n",
        b"\0",
        b"-" * 100_000 + b"1",
        b"x = 1" + b"+1" * 50_000,
        b"print(__doc__)\n",
        b"def f():\n    a = 1\n    return locals()\n",
        b"x = open('program.py').read()\n",
    ],
)
def test_of_what_cannot_be_told_every_byte_matters(content: bytes) -> None:
    assert essence(content) == ""


def test_a_tree_is_its_changes_in_effect(path: Path) -> None:
    repository, write = (made := Repository.create(path)), made.trees.write
    seed = write(None, {"a.py": BASE.encode(), "b.txt": b"b\n", "c.py": b"x = 1\n"})
    novelty = Fingerprints(repository, _with_seed(repository, seed))
    noted = BASE.replace("grows", "shrinks").encode()
    assert novelty.fingerprint(seed) == novelty.fingerprint(write(seed, {"a.py": noted})) == UNCHANGED
    trees = [
        write(seed, {"b.txt": b"b \n"}),
        write(seed, {"c.py": b"x = 1\n"}, {"c.py": EXECUTABLE}),
        write(seed, {"c.py": None}),
        write(seed, {"d.py": b"x = 1\n"}),
        write(seed, {"c.py": b"x = 1\n#" + b"." * MAX_SOURCE_BYTES}),
        write(seed, {"c.py": b"x = 2\n"}),
    ]
    assert len({UNCHANGED, *map(novelty.fingerprint, trees)}) == 7
    assert novelty.fingerprint(write(trees[-1], {"a.py": noted})) == novelty.fingerprint(trees[-1])


def test_a_change_in_a_file_too_large_to_look_into_is_seen(path: Path) -> None:
    repository = Repository.create(path)
    filler = b"#" + b"." * MAX_SOURCE_BYTES + b"\n"
    trees = [repository.trees.write(None, {"a.py": b"x = %d\n" % number + filler}) for number in range(3)]
    novelty = Fingerprints(repository, _with_seed(repository, trees[0]))
    assert len({UNCHANGED, *map(novelty.fingerprint, trees)}) == 3


def test_only_so_much_python_is_taken_apart(tmp_path: Path) -> None:
    repository, write = (made := Repository.create(tmp_path / "r")), made.trees.write
    novelty = Fingerprints(repository, _with_seed(repository, write(None, {"a.py": b"x = 1\n"})))
    modules = {f"m{n}.py": b"y = %d\n" % n * 8_000 for n in range(6)}
    tree = write(None, dict(modules))
    first, last = (write(tree, {path: modules[path] + b"# noted\n"}) for path in ("m0.py", "m5.py"))
    assert novelty.fingerprint(first) == novelty.fingerprint(tree)
    assert novelty.fingerprint(last) != novelty.fingerprint(tree), "of the last one every byte matters"


def _with_seed(repository: Repository, tree: str) -> Any:
    history = History("r")
    commit = repository.commit(tree, (), author="seed", time=1, title="seed", trailers={})
    event = Proposed(engine="", move=0, candidate=commit, tree=tree, parents=(), agent="seed", operator="seed")
    history.apply(Entry(id="", host="", seq=1, time=1, event=event))
    return history


class Author(Agent):
    """An agent that renames a local, adds a comment, then changes a number."""

    kind = "author"

    def __init__(self) -> None:
        self.texts = iter(
            [
                PROGRAM.replace("B = 2.0", "B = 2.5"),
                PROGRAM.replace("B = 2.0", "B = 2.50  # tuned"),
                PROGRAM + "\n# nothing\n",
                PROGRAM.replace("B = 2.0", "B = 3.5"),
            ]
        )

    async def propose(self, brief: Brief, rng: object) -> Proposal:
        await asyncio.sleep(0)
        return Proposal(changes={"program.py": next(self.texts).encode()}, title="t")


@pytest.mark.slow
@pytest.mark.parametrize(("toml", "evaluated", "alike"), [(TOML, 5, 0), (TOML.replace('novelty = "tree"', ""), 3, 2)])
def test_what_is_nearly_the_same_is_refused_and_counted(
    path: Path, tiny: MakeTask, toml: str, evaluated: int, alike: int
) -> None:
    repository, task = Repository.create(path), tiny(toml=toml)
    settings = Settings(
        proposals=4, sandbox="bubblewrap", jobs=1, selector="best-of-n"
    )  # nothing but what the author says
    run = Run(repository, task, "r", settings, agents=[Author()])
    asyncio.run(run.evolve())
    entries: list[Entry] = []
    repository.journal("r", entries.append)
    again = [entry.event for entry in entries if isinstance(entry.event, Duplicate)]
    assert [event.likeness for event in again] == ["fingerprint"] * alike
    history = open_run(repository).history
    assert (history.counts.evaluated, history.counts.duplicates, history.counts.alike) == (evaluated, alike, alike)
    if alike:
        assert [event.first for event in again] == [list(history.phylogeny)[1].commit, history.seed]
