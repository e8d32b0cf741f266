"""A person's own agent: the example of the documentation runs, and what is wrong costs a move and is said."""

from __future__ import annotations

import asyncio
import inspect
import random
import textwrap
from pathlib import Path

import pytest

from evogit.agents import Brief, NoUsableChangeError, Proposal
from evogit.agents.population import OwnAgent
from evogit.cli.options.agents import AgentOptions, population
from evogit.config import Task
from evogit.config.run_settings import AgentSpec, Settings
from evogit.config.user_settings import UserSettings
from evogit.core import Candidate, ConfigError, EvoGitError, UsageError
from evogit.repository import Repository
from evogit.review import EarlierStarts
from evogit.run import Run
from tests.selection.born import Lottery

EXAMPLE = textwrap.dedent(inspect.cleandoc(OwnAgent.__doc__ or "").partition("no more than this:\n\n")[2])
BRIEF = Brief(
    goal="g",
    parent=Candidate(commit="0" * 40, tree="", parents=(), agent="seed", operator="seed"),
    files={"a.py": b"x = 1\ny = 2\n"},
)


def own(folder: Path, text: str) -> str:
    (folder / "mine.py").write_text(text)
    return f"{folder}/mine.py:Doubler"


def propose(kind: str) -> Proposal:
    return asyncio.run(OwnAgent(kind).propose(BRIEF, random.Random(1)))


def test_the_example_proposes_and_its_name_is_its_strategy(tmp_path: Path) -> None:
    proposal = propose(own(tmp_path, EXAMPLE))
    assert proposal.changes == {"a.py": b"x = 1\nx = 1\ny = 2\n"}
    assert (proposal.title, proposal.strategy) == ("double line 1 of a.py", "Doubler")


HEAD = "import asyncio\nfrom evogit import *\nclass Doubler:\n    async def propose(self, b, r):\n        "
LOST = [
    ("return 1 / 0", r"mine.py:Doubler failed, line 5: ZeroDivisionError: division by zero"),
    ("raise SystemExit(3)", "failed, line 5: SystemExit: 3"),
    ("raise asyncio.CancelledError", "failed, line 5: CancelledError"),
    ("raise NoUsableChangeError('nothing\\nleft', {'Bad/name': b''})", "^nothing left$"),
    ("return None", "to return a Proposal with its changes, got None"),
    ("return Proposal(changes={'a.py': 'text'}, title='t')", "whose changes are path -> bytes, or None to delete it"),
    ("return Proposal(changes=3, title='t')", "whose changes are path"),
    ("return Proposal(changes={}, title=None)", "whose title is a text, got None"),
    ("return Proposal(changes={}, title='', strategy='a\\nEvogit-Model: b')", "whose strategy is a word"),
    ("return Proposal(changes={}, title='', modes={'a': 7})", "whose modes are path -> 0o100644 or 0o100755"),
    ("return Proposal(changes={}, title='', evidence={'../x': b''})", "whose evidence is bytes by names"),
]


@pytest.mark.parametrize(("body", "reason"), LOST)
def test_what_goes_wrong_costs_the_move_and_is_told(tmp_path: Path, body: str, reason: str) -> None:
    with pytest.raises(NoUsableChangeError, match=reason) as lost:
        propose(own(tmp_path, f"{HEAD}{body}\n"))
    assert ("traceback" in lost.value.evidence) == ("failed" in str(lost.value))


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("class Doubler: pass", UsageError, "to be an agent with `async def propose"),
        ("class Doubler:\n    def propose(self, b, r): pass", UsageError, "with `async def propose"),
        ("class Doubler:\n    def __init__(self):\n        1 / 0", ConfigError, "be made, line 3: ZeroDivisionError"),
        ("class Other: pass", ConfigError, "defines no 'Doubler'"),
    ],
)
def test_what_is_no_agent_is_said_at_once(tmp_path: Path, text: str, kind: type[EvoGitError], message: str) -> None:
    with pytest.raises(kind, match=message):
        OwnAgent(own(tmp_path, text))


def test_settings_name_it_as_seen_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own(tmp_path, EXAMPLE)
    monkeypatch.setenv("EVOGIT_SETTINGS", str(tmp_path / "settings.toml"))
    user = UserSettings(agents=(AgentSpec("mine.py:Doubler", count=2),))
    assert population(AgentOptions(), EarlierStarts(), user) == (AgentSpec(f"{tmp_path}/mine.py:Doubler", count=2),)


@pytest.mark.slow
def test_a_run_loses_moves_and_goes_on_and_two_alike_are_the_same(task: Task, tmp_path: Path) -> None:
    sometimes = "        if rng.random() < 0.3: raise KeyError(brief.move)\n"
    kind = own(tmp_path, EXAMPLE.replace("        path =", sometimes + "        path =", 1))

    def run(name: str) -> Run:
        settings = Settings(population=(AgentSpec(kind, count=2),), evaluations=12, deterministic=True)
        made = Run(Repository.create(tmp_path / name), task, "r", settings, backend=Lottery(task))
        asyncio.run(made.evolve())
        return made

    one, two = run("one"), run("two")
    assert [each.commit for each in one.history.phylogeny] == [each.commit for each in two.history.phylogeny]
    assert one.history.counts.evaluated == 12
    assert {each.strategy for each in one.history.phylogeny if each.operator == "mutation"} == {"Doubler"}
    assert any("mine.py:Doubler failed, line" in each.reason for each in one.history.failures)
