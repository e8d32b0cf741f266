"""What a model may try to have done by whoever reads commits and pull requests by machine."""

from __future__ import annotations

import re

import pytest

from evogit.repository import clean, inert, inert_markdown
from evogit.repository.messages import candidate_message

HOSTILE = {
    "closes an issue": ("This Fixes #12 and closes: #7.", r"#\d"),
    "closes one elsewhere": ("resolves octo/repo#12", r"#\d"),
    "closes one by its address": ("Closes https://forge.example/o/r/issues/12", r"issues/\d"),
    "closes one in another spelling": ("fixed GH-34", r"GH-\d"),
    "refers to a merge request": ("see !56 for more", r"!\d"),
    "calls a person": ("Ask @octocat or cc (@org/team) about it", r"@\w"),
    "signs off": ("Signed-off-by: Linus <l@example.org>", r"(?i)signed-off-by:"),
    "names an author": ("  co-authored-by : A <a@example.org>", r"(?i)co-authored-by\s*:"),
    "has a change id": ("* Change-Id: I0123456789", r"Change-Id:"),
    "copies somebody": ("Cc: stable@example.org", r"(?i)^\W*cc\s*:"),
    "says that it fixes a commit": ("Fixes: 0123456789ab (a title)", r"Fixes:"),
    "breaks what depends on it": ("BREAKING CHANGE: all", r"BREAKING[ -]CHANGE\s*:"),
    "skips pipelines": ("faster [skip ci] [ci-skip] ***NO_CI***", r"\[skip ci\]|\[ci-skip\]|\*NO_CI\*"),
    "approves itself": ("/approve\n  /merge\n/label ~bug", r"(?m)^\s*/\w"),
}
"""What a text does -> the text, and what may not be left of it."""


@pytest.mark.parametrize(("text", "live"), HOSTILE.values(), ids=HOSTILE)
def test_what_machines_act_upon_is_inert_in_candidates(text: str, live: str) -> None:
    assert re.search(live, text), "it would have done something"
    message = candidate_message(text, f"First.\n\n{text}\n\nLast.", {"Agent": "a1"})
    assert not re.search(live, message)
    assert message.endswith("\nEvogit-Agent: a1\n")
    assert inert(inert(text)) == inert(text)


@pytest.mark.parametrize(
    "text",
    [
        "C# is 2x faster; x != 1, a@b.example stays, #define N 3, 50 % of 12!",
        "src/main.py: reads it once; see /usr/lib/x and a/b/c",
        "Note: keep the order - it is needed.\n\n- first\n- second",
    ],
)
def test_what_is_only_text_stays(text: str) -> None:
    assert inert(text) == text


def test_commands_to_terminals_and_hidden_characters_leave_nothing() -> None:
    text = "a \x1b[31mred\x1b[0m \x1b]0;title\x07word\x1b]8;;http://x\x1b\\link\u202e\u200b back\x9b1m"
    assert clean(text) == "a red wordlink   back 1m"


def test_a_page_shows_what_is_written_and_nothing_else() -> None:
    text = "![](https://x.example/p.png) [here](https://y.example)\n<img src=x> <!-- hidden --> &#64;octocat\n"
    text += "# Big\n```\n"
    shown = inert_markdown(inert(text))
    for live in (r"!\[[^]]*\]\(", r"\]\(", r"<\w", r"<!", r"&#", r"(?m)^# ", r"(?m)^```"):
        assert re.search(live, text)
        assert not re.search(live, shown), live
    assert inert_markdown("if a < b and `c > d`: x[1]") == "if a < b and `c > d`: x[1]"
