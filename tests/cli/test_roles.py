"""Agents with roles: what their briefs have, what the user agrees to, who gets the credit, and what a resume knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from evogit.config.run_settings import MAX_ROLE_BYTES, AgentSpec
from evogit.core import UsageError
from evogit.review import EarlierStarts
from evogit.trust import Claim
from tests.conftest import write_task

from .conftest import Cli

WORDS = f"Doubt every gain. {'Think. ' * 500}Propose what is simpler."


def reply(value: float) -> str:
    program = f"def value(x):\n    return {value}\n"
    return f"%%\nTITLE: value {value}\n<<<<<<< WRITE program.py\n{program}>>>>>>> END\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_task(tmp_path / "task", program="def value(x):\n    return 0.0\n")
    (tmp_path / "model.md").write_text("".join(reply(value) for value in (1.0, 2.0, 3.0, 4.0)))
    (tmp_path / "skeptic.md").write_text(f"{WORDS}\n")
    return tmp_path


@pytest.mark.slow
def test_a_role_stands_in_its_briefs_also_after_a_resume_and_gets_its_own_credit(cli: Cli, place: Path) -> None:
    model = f"script:{place / 'model.md'}"
    command = ["run", place / "task", "--name", "r", "--deterministic", "--selector", "best-of-n", "--yes", "--json"]
    agents = ["--agent", f"editor@{model}", "--agent", f"editor@{model}+{place / 'skeptic.md'}"]
    first = cli(*command, *agents, "--proposals", "2")
    assert first.code == 0, first.err
    assert "+skeptic: Doubt every gain. Think." in first.err, "what is sent to models is shown before the first call"
    (place / "skeptic.md").unlink()
    done = cli(*command, "--proposals", "4")
    assert done.code == 0, done.err
    at = ("-C", Path(done.json["repository"]))
    briefs = {"a1": list[bool](), "a2": list[bool]()}
    for candidate in cli(*at, "log", "--json").lines:
        if candidate["agent"] in briefs:
            brief = cli(*at, "show", candidate["commit"], "--file", "prompt.md").out
            briefs[candidate["agent"]].append("## Your role" in brief and WORDS in brief)
    assert briefs == {"a1": [False] * 2, "a2": [True] * 2}
    roles = {role["name"]: role for role in done.json["contributions"]["roles"]}
    assert {name: role["calls"] for name, role in roles.items()} == {f"editor@{model}": 2, f"editor@{model}+skeptic": 2}
    assert "+skeptic" in cli(*at, "report").out


def test_the_spelling_of_a_role_leaves_models_and_numbers_alone(place: Path) -> None:
    role = place / "skeptic.md"
    spec = AgentSpec.parse(f"editor@a/b:free@x:2+{role}")
    assert (spec.kind, spec.model, spec.count, spec.role, spec.words) == ("editor", "a/b:free@x", 2, "skeptic", WORDS)
    assert str(spec) == "editor@a/b:free@x:2+skeptic"
    assert AgentSpec.parse("editor@m+vision:2").model == "m+vision"
    assert AgentSpec.parse("coder@m+skeptic.md", place).words == WORDS


@pytest.mark.parametrize(
    "content",
    [None, b"", b"  \n", b"x" * (MAX_ROLE_BYTES + 1), b"\xff\xfe", b"ghp_" + b"a1B2" * 9],
    ids=["absent", "empty", "blank", "long", "binary", "a key"],
)
def test_a_role_that_cannot_be_sent_is_refused(place: Path, content: bytes | None) -> None:
    file = place / "role.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError):
        AgentSpec.parse(f"editor@m+{file}")


def test_roles_of_a_strangers_start_are_part_of_what_is_agreed_to() -> None:
    population = [{"kind": "editor", "model": "m", "role": "skeptic", "words": WORDS}]
    before = EarlierStarts(last={"population": population}, foreign=Claim("settings", "start", "an engine"))
    (claim,) = before.claims(agents=True, selector=False)
    assert "editor@m+skeptic; skeptic: Doubt every gain. Think." in claim.effect


def test_agents_that_read_no_brief_have_no_role(place: Path) -> None:
    with pytest.raises(UsageError):
        AgentSpec.parse(f"mutator:2+{place / 'skeptic.md'}")
