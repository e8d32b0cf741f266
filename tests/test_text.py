"""Foreign text as plain text: nothing in it acts upon a terminal, and of long ones both ends are kept."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evogit.text import ends, plain


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


@pytest.mark.parametrize("text", ["\x1b[" * 500_000, "\x1b[" + "0" * 1_000_000, "\r" * 1_000_000, "\u202e" * 500_000])
def test_a_megabyte_takes_no_time(text: str) -> None:
    began = time.process_time()
    plain(text)
    assert time.process_time() - began < 2
