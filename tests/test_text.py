"""Foreign text as plain text: nothing in it acts upon a terminal, and of long ones both ends are kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evogit.cli.text import escape
from evogit.repository import clean_title
from evogit.text import ends, escaped, one_line, plain

from .clock import assert_grows_linearly


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc ü 漢 \N{NO-BREAK SPACE}😀", "a\tb\nc ü 漢 \N{NO-BREAK SPACE}😀"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("\0\x07\x7f\u202e\u200b\U000e0041\ud800", "\ufffd" * 7),
        ("\x1b]0;title\x07", "\ufffd]0;title\ufffd"),
        ("a\u2028b", "a\ufffdb"),
    ],
)
def test_what_is_not_seen_is_replaced(text: str, shown: str) -> None:
    assert plain(text) == shown


SMUGGLED = (
    "\U000e0041",
    "\ufe03",
    "\U000e0150",
    "\u034f",
    "\u17b4",
    "\u180b",
    "\u2800",
    "\u3164",
    "\u115f",
    "\uffa0",
    "\u202e",
    "\u200b",
    "\xad",
)


@pytest.mark.parametrize("unseen", [*SMUGGLED, "\ufe0f", "\u200d"])
def test_what_nobody_sees_reaches_nobody(unseen: str) -> None:
    for text in (f"a{unseen}b", unseen, f"a{unseen * 99}b"):
        assert not {*plain(text), *one_line(text), *escaped(text), *escape(text), *clean_title(text)} & {unseen}
    assert escaped(f"a{unseen}") == "a" + unseen.encode("unicode_escape").decode()


@pytest.mark.parametrize(
    "text", ["❤\ufe0f", "👩\u200d🚀", "❤\ufe0f\u200d🔥", "\u0645\u06cc\u200c\u062e", "漢 é ü", "\ufeffx = 1"]
)
def test_what_belongs_to_emoji_and_scripts_stays(text: str) -> None:
    assert escaped(text) == text
    assert text[0] == "\ufeff" or plain(text) == one_line(text) == escape(text) == text


@given(st.text(max_size=300), st.integers(min_value=10, max_value=100))
def test_a_text_is_kept_or_said_to_be_cut(text: str, most: int) -> None:
    cut = ends(text, most)
    assert cut == text or len(cut.encode(errors="replace")) <= most + 40
    assert cut == text or "more bytes ...]" in cut


def test_of_long_lines_something_is_kept() -> None:
    assert ends("x\n" + 100_000 * "y" + "\nz", 4000).count("y") > 3900


def test_both_ends_are_kept_in_whole_lines() -> None:
    text = "".join(f"line {number}\n" for number in range(1_000))
    first, middle, last = ends(text, 200).partition("\n[... ")
    assert first.splitlines()[-1] in text.splitlines()
    assert text.endswith("\n" + last.partition("\n")[2])
    missing = int(last.partition(" ")[0].replace(",", ""))
    assert len(first) + missing + len(last.partition("\n")[2]) == len(text)
    assert middle


@pytest.mark.slow
@pytest.mark.parametrize(("start", "again"), [("", "\x1b["), ("\x1b[", "0"), ("", "\r"), ("", "\u202e")])
def test_a_hostile_text_takes_no_longer_than_its_length_asks_for(start: str, again: str) -> None:
    assert_grows_linearly(lambda size: plain(start + again * size), 30_000)
