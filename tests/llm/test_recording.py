from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evogit.config.user_settings import UserSettings
from evogit.core import UsageError
from evogit.llm import CredentialError, ModelError, Question, RefusingModelError, SpendingLimitError
from evogit.llm.registry import open_models
from tests.openai_server import BAD_KEY, echo_of_the_key, refusal, reply, serve

from .conftest import KEY, Ledger, Opening, question

PRICE = "price = {input = 1, output = 10}\ncontext = 5000\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "recording.ndjson"


async def record(at: Opening, file: Path, ledger: Ledger, *behaviours: Any, questions: Sequence[Question] = ()) -> None:
    """Ask an endpoint that behaves so, and record what comes of it."""
    with serve(behaviours or [reply("hello")]) as server:
        models = at(server.url, record=file)
        try:
            await asyncio.gather(*(models.get("m").ask(each, ledger) for each in questions or [question()]))
        finally:
            await models.close()


async def test_a_replay_repeats_replies_failures_and_charges_without_a_key(at: Opening, file: Path) -> None:
    behaviours = [refusal(500), reply("first"), reply("second"), refusal(400, "too long")]
    with serve(behaviours) as server:
        models = at(server.url, PRICE, record=file)
        heard = Ledger()
        replies = [await models.get("m").ask(question(), heard) for _ in range(2)]
        with pytest.raises(ModelError):
            await models.get("m").ask(question("Too long?"), heard)
        await models.close()
    again = Ledger()
    model = open_models(UserSettings(), replay=file).get("m")
    assert [await model.ask(question(), again) for _ in range(2)] == replies == ["first", "second"]
    with pytest.raises(ModelError, match="the endpoint answered 400: too long"):
        await model.ask(question("Too long?"), again)
    assert again == heard
    assert again.dollars > 0
    assert model.context == 5000


async def test_a_replay_prefers_the_reply_of_the_same_move(at: Opening, file: Path, ledger: Ledger) -> None:
    for move in (1, 2, 3):
        await record(at, file, ledger, reply(f"number {move}"), questions=[question(move=move)])
    model = open_models(UserSettings(), replay=file).get("m")
    assert [await model.ask(question(move=move), ledger) for move in (3, 9, 2)] == ["number 3", "number 1", "number 2"]


async def test_limits_hold_in_a_replay(at: Opening, file: Path, ledger: Ledger) -> None:
    await record(at, file, ledger, refusal(500), reply("late"))
    with pytest.raises(SpendingLimitError):
        await open_models(UserSettings(), replay=file).get("m").ask(question(), Ledger(attempts=1))


async def test_a_question_that_was_not_recorded_is_named(at: Opening, file: Path, ledger: Ledger) -> None:
    await record(at, file, ledger)
    replay = open_models(UserSettings(), replay=file)
    with pytest.raises(ModelError, match="does not have this question: [0-9a-f]{12}, 'Why"):
        await replay.get("m").ask(question("Why?"), ledger)
    await replay.get("m").ask(question(), ledger)
    with pytest.raises(ModelError, match="does not have this question so often"):
        await replay.get("m").ask(question(), ledger)
    foreign = open_models(UserSettings(), replay=file).get("m")
    for error in (ModelError, ModelError, RefusingModelError):
        with pytest.raises(error):
            await foreign.ask(question("Why?"), ledger)
    with pytest.raises(UsageError, match="no replies of the model 'other'; those it has: m"):
        replay.get("other")
    spare = replay.get("other", optional_in_recording=True)
    assert spare.price
    assert spare.price.free
    with pytest.raises(ModelError, match="does not have this question"):
        await spare.ask(question(), ledger)


async def test_no_key_is_recorded_and_many_write_at_once(at: Opening, file: Path, ledger: Ledger) -> None:
    questions = [question(f"{KEY} {n} {'x' * 3000}") for n in range(30)]
    await record(at, file, ledger, echo_of_the_key, questions=questions)
    text = file.read_text()
    assert KEY not in text
    assert "Your key is [redacted]" in text
    assert len(text.splitlines()) == 30
    assert file.stat().st_mode & 0o077 == 0


async def test_what_ends_a_run_is_not_recorded(at: Opening, file: Path, ledger: Ledger) -> None:
    with pytest.raises(CredentialError):
        await record(at, file, ledger, BAD_KEY)
    assert file.read_text() == ""


async def test_a_recording_goes_on_after_a_kill_in_a_line(at: Opening, file: Path, ledger: Ledger) -> None:
    for _ in range(2):
        await record(at, file, ledger)
        file.write_text(file.read_text() + '{"key": "ab')
    model = open_models(UserSettings(), replay=file).get("m")
    assert [await model.ask(question(), ledger) for _ in range(2)] == ["hello", "hello"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "found no record"),
        ("<html>", "found no record"),
        ('{"key": 1}', "line 1: expected a record"),
        ('{"key": "a", "model": "m", "move": 1e400, "attempt": 1, "price": null}', "line 1: expected a record"),
        ("[" * 10_000, "line 1: expected a record"),
        (None, "canno"),
    ],
)
def test_what_is_no_recording_is_refused(file: Path, content: str | None, said: str) -> None:
    if content is not None:
        file.write_text(content)
    with pytest.raises(UsageError, match=said):
        open_models(UserSettings(), replay=file)


def test_a_recording_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write the recording"):
        open_models(UserSettings(), record=tmp_path / "none" / "recording")
    with pytest.raises(UsageError, match="--record or --replay"):
        open_models(UserSettings(), record=tmp_path / "a", replay=tmp_path / "b")
