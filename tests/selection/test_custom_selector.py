"""A person's own selector: the example of the documentation runs, and what is wrong is said in a sentence."""

from __future__ import annotations

import asyncio
import inspect
import textwrap
from pathlib import Path
from typing import Any

import pytest

import evogit
from evogit.config import Task
from evogit.config.run_settings import Settings
from evogit.core import ConfigError, EvoGitError, UsageError
from evogit.repository import Repository
from evogit.run import Run
from evogit.selection import Change, Graft, LookBack, Merge, Move, Mutation
from evogit.selection.custom_selector import Own
from evogit.selection.registry import open_selector

from .born import CREW, Born, Lottery

pytestmark = pytest.mark.slow

EXAMPLE = textwrap.dedent(inspect.cleandoc(Own.__doc__ or "").partition("no more than this:\n\n")[2])


def own(folder: Path, text: str) -> str:
    (folder / "mine.py").write_text(text)
    return f"{folder}/mine.py:Climber"


def two() -> Born:
    born = Born()
    born.born(1.0)
    born.born(2.0, 0)
    return born


def test_the_example_chooses_and_adopts(tmp_path: Path) -> None:
    selector, born = open_selector(own(tmp_path, EXAMPLE)), two()
    assert EXAMPLE.count("\n") < 15
    assert born.shares(selector, times=50) == {1: 1.0}
    assert selector.adopts(born.history, "a1", born.ids[1])


NEXT = "    def next_move(self, history, agent, rng):\n"
BROKEN = [
    ("return 1 / 0", r"mine.py:Climber failed, line 4: ZeroDivisionError: division by zero"),
    ("return helper()", r"failed, line 8: KeyError: 'none'"),
    ("return None", r"to return a Move, got None"),
    (
        "return Move(operator='merge', parents=(history.seed,))",
        "failed, line 4: TypeError: .* graft of two",
    ),
    ("return Move(operator='mutation', parents=None)", "failed, line 4: TypeError: .* graft of two"),
    ("return Move(operator='mutation', parents=([],))", r"to choose candidates, got \[\]"),
    ("return Move(operator='mutation', parents=(history.seed,), boldness='much')", r"a sound Move: .*boldness"),
    ("return Move(operator='mutation', parents=('f' * 40,))", "to choose candidates, got 'ffff"),
    ("return Move(operator='mutation', parents=(history.seed,), donor='x')", "to choose candidates, got 'x'"),
    ("raise SystemExit(3)", "failed, line 4: SystemExit: 3"),
    ("return history.phylogeny.find('none')", "failed, line 4: NotFoundError: expected a candidate's id"),
]


KINDS = [
    ({"operator": "mutation", "donor": "b", "strategy": ""}, Mutation(parent="a", donor="b"), True),
    ({"operator": "merge", "parents": ("a", "b"), "donor": None}, Merge(parents=("a", "b")), False),
    (
        {"operator": "graft", "parents": ("a", "b"), "strategy": "model"},
        Graft(parents=("a", "b"), strategy="model"),
        True,
    ),
    ({"operator": "mutation", "advise": True}, LookBack(parent="a"), True),
    ({"operator": "mutation", "change": {"x": b"1"}}, Change(parent="a", change={"x": b"1"}), False),
]


@pytest.mark.parametrize(("words", "kind", "asks"), KINDS)
def test_a_move_by_operator_and_parents_is_of_the_named_kind(words: dict[str, Any], kind: Move, asks: bool) -> None:
    move = evogit.Move(**{"parents": ("a",), **words})
    assert move == kind
    assert isinstance(move, evogit.Move)
    assert (move.operator, move.parents) == (words["operator"], words.get("parents", ("a",)))
    assert move.asks == asks


@pytest.mark.parametrize("words", [{"operator": "clone"}, {"parents": ("a", "b")}, {"parents": "a"}, {"boldnes": 2.0}])
def test_a_move_of_no_kind_is_refused_where_it_is_written(words: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        evogit.Move(**{"operator": "mutation", "parents": ("a",), **words})


@pytest.mark.parametrize(("body", "message"), BROKEN)
def test_what_goes_wrong_names_the_line(tmp_path: Path, body: str, message: str) -> None:
    text = f"from evogit import Move\nclass Climber:\n{NEXT}        {body}\n    def adopts(self, *_): return 1\n"
    selector, born = open_selector(own(tmp_path, text + "\ndef helper():\n    raise KeyError('none')\n")), two()
    with pytest.raises(ConfigError, match=message):
        born.moves(selector, times=1)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("class Climber: pass", UsageError, "to be a selector with next_move and adopts"),
        ("Climber = 3", ConfigError, "failed: TypeError: 'int' object is not callable"),
        ("class Climber:\n    def __init__(self, a): pass", ConfigError, "failed: TypeError: .*missing 1 required"),
        ("class Other: pass", ConfigError, "defines no 'Climber'"),
        ("def", ConfigError, "cannot be run: SyntaxError"),
    ],
)
def test_what_is_no_selector_is_said_at_once(tmp_path: Path, text: str, kind: type[EvoGitError], message: str) -> None:
    with pytest.raises(kind, match=message):
        open_selector(own(tmp_path, text))


@pytest.mark.slow
def test_a_run_follows_it_and_ends_with_a_sentence_when_it_fails(task: Task, tmp_path: Path) -> None:
    counting = "count = 0\n" + EXAMPLE.replace(
        "        valid =", "        global count\n        count += 1\n        if count > 9: 1 / 0\n        valid ="
    )
    repository = Repository.create(tmp_path / "repo")
    settings = Settings(selector=own(tmp_path, counting), evaluations=40, deterministic=True)
    run = Run(repository, task, "r", settings, agents=CREW, backend=Lottery(task))
    with pytest.raises(ConfigError, match=r"mine.py:Climber failed, line \d+: ZeroDivisionError"):
        asyncio.run(run.evolve())
    assert 0 < run.history.counts.evaluated < 20
    assert run.history.stopped
    assert run.history.stopped.reason == "error"
    assert run.history.stopped.detail.count("\n") == 0
