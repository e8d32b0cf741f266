"""Engines with models that fail, lie and attack, over real HTTP; and with recordings instead of models."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evogit.core import Entry, FailedProposal, Spent
from evogit.repository import Repository

from ..openai_server import (
    CUT,
    EMPTY,
    HUGE,
    NOT_JSON,
    RESET,
    STALLED,
    Behaviour,
    Request,
    echo_of_the_key,
    refusal,
    reply,
    serve,
)
from .conftest import Cli

KEY = "sk-campaign-0123456789"


def write(path: str, content: str = "x = 1") -> Behaviour:
    return reply(f"TITLE: write {path}\n\n<<<<<<< WRITE {path}\n{content}\n>>>>>>> END\n")


ATTACKS = {
    "../../escape.py": "escape.py",
    "/etc/passwd": "passwd",
    ".git/hooks/pre-commit": "hooks",
    "evaluator/evaluate.py": "expected changes to",
}

FAULTS = {
    "answered 429: slow down, [redacted]": refusal(429, f"slow down, {KEY}"),
    "answered 500": refusal(500),
    "Server disconnected": RESET,
    "nothing came for 0.3 s": STALLED,
    "without sending complete message body": CUT,
    "the reply is not JSON": NOT_JSON,
    "no choices": EMPTY,
    "more than 1000000 bytes": HUGE,
    "the reply has no text": reply(None),
    "answered 400: too long": refusal(400, "too long"),
    "no edit block": reply("babble"),
}
"""What the journal says -> what the endpoint does."""


def who_knows_the_key() -> set[str]:
    """Command lines of the processes that have the key in them or in their environment."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes()
            if KEY.encode() in line + (process / "environ").read_bytes():
                found.add(line.replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_no_fault_and_no_attack_of_a_model_breaks_a_run_or_finds_the_key(script: Cli, cli: Cli, tmp_path: Path) -> None:
    knowing: set[str] = set()

    def look_around(request: Request) -> Behaviour:
        knowing.update(who_knows_the_key())
        return write("solution.py", f"KEY = '{request.headers['authorization']}'")

    acts = iter([*FAULTS.values(), *map(write, ATTACKS), look_around, echo_of_the_key])

    def act(request: Request) -> Behaviour:
        earlier = [each["content"] for each in request.body["messages"] if each["role"] == "assistant"]
        chosen = reply(earlier[-1]) if earlier else next(acts, reply("babble"))
        return chosen(request) if callable(chosen) else chosen

    cli("new", "sine")
    settings = tmp_path / "settings.toml"
    with serve([act]) as server:
        settings.write_text(
            f'[models.m]\nbase_url = "{server.url}"\nkey_env = "TEST_KEY"\nprice = {{input = 0, output = 0}}\n'
            'first_byte = "300ms"\npause = "1ms"\nretries = 0\n'
        )
        env = {"EVOGIT_SETTINGS": str(settings), "TEST_KEY": KEY}
        done = script("run", "sine", "--model", "m", "--agents", "6", "--proposals", "25", **env)
    assert done.code == 0, done.err
    place = tmp_path / "evogit-sine"
    said = reasons(place)
    for words in (*FAULTS, *ATTACKS.values()):
        assert words in said
    objects = ["git", "-C", str(place), "cat-file", "--batch-all-objects", "--batch"]
    assert KEY.encode() not in subprocess.run(objects, capture_output=True, check=True).stdout
    assert KEY not in done.out + done.err
    assert len(knowing) == 1, "the engine alone was given the key"
    assert not list(tmp_path.rglob("escape.py"))


def reasons(place: Path) -> str:
    """Why calls and proposals failed, as the journal has it."""
    found: list[str] = []

    def take(entry: Entry) -> None:
        if isinstance(entry.event, Spent):
            found.append(entry.event.failure)
        elif isinstance(entry.event, FailedProposal):
            found.append(entry.event.reason)

    Repository.open(place).journal("sine", take)
    return "\n".join(found)


@pytest.mark.slow
def test_a_replay_makes_the_same_candidates_without_the_model(script: Cli, cli: Cli, tmp_path: Path) -> None:
    cli("new", "sine")
    replies = tmp_path / "replies.txt"
    replies.write_text("".join(f"%%\nTITLE: t\n<<<<<<< WRITE program.py\nN = {n}\n>>>>>>> END\n" for n in range(4)))
    command = ["run", "sine", "--model", f"script:{replies}", "--agents", "2", "--deterministic", "--proposals", "5"]
    assert script(*command, "-C", "recorded", "--record", "recording").code == 0
    replies.unlink()
    replayed = script(*command, "-C", "replayed", "--replay", "recording")
    assert replayed.code == 0, replayed.err
    assert heads(tmp_path / "recorded") == heads(tmp_path / "replayed") != ""


def heads(place: Path) -> str:
    command = ["git", "-C", str(place), "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
