import json

import pytest

from evogit.panel import UnusableAnswerError, Verdict, read

GOOD = '{"winner": "second", "reason": "It is shorter."}'


@pytest.mark.parametrize("reply", [GOOD, f"\n {GOOD}\n", f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```"])
def test_one_object_is_an_answer(reply: str) -> None:
    answer = read(reply, Verdict)
    assert (answer.winner, answer.reason) == ("second", "It is shorter.")


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "second",
        f"I think {GOOD}",
        f"{GOOD}\n{GOOD}",
        f"{GOOD} because",
        f"```json\n{GOOD}\n```\nHope that helps!",
        f"[{GOOD}]",
        "null",
        '"first"',
        '{"winner": "first"}',
        '{"winner": "First", "reason": ""}',
        '{"winner": ["first"], "reason": ""}',
        '{"winner": "a", "reason": ""}',
        '{"winner": "first", "reason": null}',
        '{"winner": "first", "winner": "second", "reason": ""}',
        '{"winner": "first", "reason": "", "confidence": 1}',
        json.dumps({"winner": "first", "reason": "x" * 5000}),
        "[" * 19_000,
        "x" * 30_000,
    ],
)
def test_anything_else_is_none(reply: str) -> None:
    with pytest.raises(UnusableAnswerError, match="expected"):
        read(reply, Verdict)
