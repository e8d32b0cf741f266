"""Thoughts in front of a reply, in the forms that endpoints without a parser for them leave behind."""

from __future__ import annotations

import pytest

from evogit.llm.thoughts import NO_ANSWER, without_thoughts

DRAFT = "Maybe so:\n<<<<<<< SEARCH a.py\nLIMIT = 3\n=======\nLIMIT = 300\n>>>>>>> REPLACE\nNo.\n"
ANSWER = "TITLE: b\n<<<<<<< SEARCH a.py\nRATE = 1\n=======\nRATE = 9\n>>>>>>> REPLACE\n"
TEMPLATE = "<<<<<<< WRITE chat.txt\n<think>\n{thoughts}\n</think>\n{answer}\n>>>>>>> END\n"


@pytest.mark.parametrize(
    "reply",
    [
        f"<think>\n{DRAFT}</think>\n\n{ANSWER}",
        f"{DRAFT}</think>\n{ANSWER}",
        f"<thinking>\n{DRAFT}</thinking>\n{ANSWER}",
        f"Let me see.\n<think>{DRAFT}</think>{ANSWER}",
        f"<think>\nI answer behind </think> then.\n{DRAFT}</think>\n{ANSWER}",
        f"<|channel|>analysis<|message|>{DRAFT}<|end|>\n<|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>",
        f"[THINK]{DRAFT}[/THINK]{ANSWER}",
        ANSWER,
    ],
)
def test_the_answer_is_what_stands_behind_the_thoughts(reply: str) -> None:
    assert without_thoughts(reply) == ANSWER


def test_thoughts_without_an_end_are_no_answer() -> None:
    assert without_thoughts(f"<think>\n{DRAFT}") == NO_ANSWER
    assert without_thoughts(f"<|channel|>analysis<|message|>{DRAFT}") == NO_ANSWER


@pytest.mark.parametrize("before", ["", "<think>\nhm\n</think>\n"])
def test_marks_in_an_edit_are_part_of_the_file(before: str) -> None:
    assert without_thoughts(before + TEMPLATE) == TEMPLATE
    assert without_thoughts(f"I cut </think> off.\n{ANSWER}") == f"I cut </think> off.\n{ANSWER}"
