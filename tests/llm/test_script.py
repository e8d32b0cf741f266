from __future__ import annotations

from pathlib import Path

import pytest

from evogit.config.user_settings import UserSettings
from evogit.core import UsageError
from evogit.llm import Model, TokenUsage
from evogit.llm.registry import open_models

from .conftest import Ledger, question


def scripted(file: Path, text: str) -> Model:
    file.write_text(text)
    return open_models(UserSettings()).get(f"script:{file}")


async def test_what_is_said_depends_on_the_move_not_on_who_asks_first(tmp_path: Path, ledger: Ledger) -> None:
    model = scripted(tmp_path / "replies.txt", "%% the first\none\ntwo lines\n%%\nthree\n%% last, empty\n")
    asked = [(3, 0), (1, 0), (2, 0), (1, 1), (4, 0)]
    replies = [await model.ask(question(move=move, attempt=attempt), ledger) for move, attempt in asked]
    assert replies == ["", "one\ntwo lines\n", "three\n", "three\n", "one\ntwo lines\n"]


async def test_a_script_without_separators_is_one_reply_and_free(tmp_path: Path, ledger: Ledger) -> None:
    model = scripted(tmp_path / "replies.txt", "always 100 %% the same")
    assert await model.ask(question(move=7), ledger) == "always 100 %% the same"
    assert ledger.charges == [(TokenUsage(prompt=6, completion=6), "")]
    assert ledger.dollars == 0


@pytest.mark.parametrize(
    ("content", "said"), [(b" \n", "got an empty file"), (b"\xff", "expected UTF-8"), (None, "No su")]
)
def test_a_bad_script_is_named(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "replies.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=f"replies.txt.*{said}"):
        open_models(UserSettings()).get(f"script:{file}")
