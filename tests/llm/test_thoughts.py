"""Thoughts in front of a reply, in the forms that endpoints without a parser for them leave behind."""

from __future__ import annotations

import pytest

from evogit.llm.thoughts import NO_ANSWER, without_thoughts
from tests.clock import cpu_seconds

DRAFT = "Maybe so:\n<<<<<<< SEARCH a.py\nLIMIT = 3\n=======\nLIMIT = 300\n>>>>>>> REPLACE\nNo.\n"
ANSWER = "TITLE: b\n<<<<<<< SEARCH a.py\nRATE = 1\n=======\nRATE = 9\n>>>>>>> REPLACE\n"
HEADINGS = "Answer\n======\n<<<<<<< WRITE a.rst\n</think>\n=======\n</think>\n--- a\n>>>>>>> END\n"
PATCH = "--- a/chat.txt\n+++ b/chat.txt\n@@ -1,4 +1,4 @@\n <think>\n-a\n+b\n </think>\n c\n"
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
        f"<seed:think>\n{DRAFT}</seed:think>{ANSWER}",
        f"<|START_THINKING|>{DRAFT}<|END_THINKING|>{ANSWER}",
        f"analysisLet me see.\n{DRAFT}assistantfinal{ANSWER}",
        f"<|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>",
        f"<|channel|>analysis<|message|>{DRAFT}<|end|><|channel|>final <|constrain|>json<|message|>{ANSWER}",
        f"Hm.\n--- \n<think>\n{DRAFT}No.</think>\n{ANSWER}",
        f"{DRAFT}No.</think>{ANSWER}",
        f"<think>\n<<<<<<< WRITE a.py\nLIMIT = 300\n</think>\n{ANSWER}",
        ANSWER,
    ],
)
def test_the_answer_is_what_stands_behind_the_thoughts(reply: str) -> None:
    assert without_thoughts(reply) == ANSWER


@pytest.mark.parametrize(
    "before",
    [
        "<think>\n",
        "<|channel|>analysis<|message|>",
        "--- \n<think>\n",
        "<think>\nhm\n</think>\n<think>\n",
        ANSWER + "<think>",
        "So. <think>\n",
    ],
)
def test_thoughts_without_an_end_are_no_answer(before: str) -> None:
    assert without_thoughts(before + DRAFT) == NO_ANSWER


@pytest.mark.parametrize("before", ["", f"<think>\n{DRAFT}</think>\n", f"{DRAFT}</think>\n"])
@pytest.mark.parametrize("answer", [TEMPLATE, HEADINGS, PATCH])
def test_marks_in_an_edit_are_part_of_the_file(before: str, answer: str) -> None:
    assert without_thoughts(before + answer) == answer


def test_an_end_of_thoughts_may_be_mentioned_in_the_answer() -> None:
    quoted = f"{ANSWER}It cuts `</think>` off.\n"
    assert without_thoughts(f"<think>\n{DRAFT}</think>\n{quoted}") == quoted
    assert without_thoughts(f"I cut </think> off.\n{ANSWER}") == f"I cut </think> off.\n{ANSWER}"


@pytest.mark.parametrize("text", ["</think>x", "</think>\n=====\n", "<<<<< WRITE\n</think>\n", "@@ -1\n </think>"])
def test_a_long_reply_full_of_marks_is_read_in_time_that_grows_with_its_length(text: str) -> None:
    def read(times: int) -> None:
        without_thoughts(text * times)

    assert cpu_seconds(lambda: read(16_000)) < 40 * cpu_seconds(lambda: read(1_000))
