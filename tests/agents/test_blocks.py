"""What a model writes becomes exactly the edit that it describes, or nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from evogit.agents.editing.blocks import Delete, EditError, Rename, Replace, Write
from evogit.agents.editing.draft import Draft
from evogit.agents.editing.reply import parse
from evogit.text import marker_length
from tests.clock import assert_grows_linearly

QUICK = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LINES = st.lists(
    st.sampled_from(
        [
            "",
            "a",
            " a",
            "b\t",
            "ü 🙂",
            "<<<<<<< HEAD",
            "=======",
            ">>>>>>> main",
            "<<<<<<< SEARCH x",
            "```",
            "TITLE: no",
        ]
        + [">>>>>>> REPLACE", ">>>>>>> END", "======== ", "%%", "\\", "x" * 300]
    ),
    max_size=8,
)


def carried_out(reply: str, files: dict[str, bytes] | None = None, **refused: str) -> dict[str, bytes | None]:
    """The changes that a reply makes of files."""
    draft = Draft(files if files is not None else {"a.py": b"one\ntwo\nthree\n"}, lambda path: refused.get(path, ""))
    draft.take(parse(reply).blocks)
    return draft.changes


def search(path: str, old: str, new: str, length: int = 7) -> str:
    """One SEARCH block; `old` and `new` end with a newline or are empty."""
    less, equal, greater = "<" * length, "=" * length, ">" * length
    return f"{less} SEARCH {path}\n{old}{equal}\n{new}{greater} REPLACE\n"


def whole(path: str, content: str, length: int = 7) -> str:
    return f"{'<' * length} WRITE {path}\n{content}{'>' * length} END\n"


def fails(reply: str, files: dict[str, bytes] | None = None, **refused: str) -> EditError:
    with pytest.raises(EditError) as caught:
        carried_out(reply, files, **refused)
    return caught.value


def test_a_reply_is_a_plan_a_title_and_blocks() -> None:
    reply = parse(
        "I make it fast.\n\n**TITLE: sort once**\n\n"
        + search("a.py", "old\n", "new\n")
        + whole("dir/new file.txt", "x\n\ny\n")
        + "<<<<<<< DELETE gone.c\n<<<<<<< RENAME from.js => lib/to.js\n"
    )
    assert reply.title == "sort once"
    assert reply.blocks == (
        Replace("a.py", ("old",), ("new",)),
        Write("dir/new file.txt", ("x", "", "y")),
        Delete("gone.c"),
        Rename("from.js", "lib/to.js"),
    )


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("<<<<<<< SEARCH a.py\none\n", "is not closed"),
        ("<<<<<<< SEARCH a.py\none\n>>>>>>> REPLACE\n", "has 0 lines `=======`"),
        ("<<<<<<< SEARCH a.py\none\n=======\n1\n=======\n2\n>>>>>>> REPLACE", "has 2 lines `=======`"),
        ("<<<<<<< SEARCH a.py\none\n" + search("a.py", "two\n", "2\n"), "holds the beginning of another"),
        (search("a.py", "one\n", "1\n") + ">>>>>>> REPLACE\n", "closes a block that is not open"),
        (whole("a.py", "x\n>>>>>>> END\ny\n"), "closes a block that is not open"),
        ("<<<<<<< DELETE", "names no file"),
        ("<<<<<<< RENAME a.py", "from where to where"),
        ("<<<<<<< RENAME a.py => b => c", "from where to where"),
        (search("a.py", " two\n", "2\n"), "does not match 'a.py'"),
        (search("a.py", "", "zero\n"), "is empty, but the file is not"),
        (search("a.py", "two\n", "two\n"), "leave every file as it was"),
        (search("a.py", "two\n", "2\n") + search("a.py", "2\n", "two\n"), "leave every file as it was"),
        (search("a.py", "one\ntwo\n", "1\n") + search("a.py", "two\nthree\n", "2\n"), "does not match"),
        ("<<<<<<< RENAME a.py => a.py", "already"),
        ("<<<<<<< DELETE a.py\n" + search("a.py", "one\n", "1\n"), "there is no file"),
        (whole("a.py", "```python\nx\n"), "code fence"),
        (whole("a.py", "x\0\n"), "NUL"),
        (whole("a.py", "\ud800\n"), "not valid Unicode"),
    ],
)
def test_what_is_not_exactly_right_changes_nothing(reply: str, reason: str) -> None:
    assert reason in str(fails(reply))


def test_one_wrong_block_makes_the_others_void() -> None:
    draft = Draft({"a.py": b"one\n"}, lambda _: "")
    with pytest.raises(EditError):
        draft.take(parse(search("a.py", "one\n", "1\n") + search("a.py", "one\n", "2\n")).blocks)


@pytest.mark.parametrize(
    "block", [search("x/judge.py", "", "1\n"), "<<<<<<< DELETE x/judge.py", whole("x/judge.py", "")]
)
def test_paths_that_may_not_change_are_refused_with_the_reason(block: str) -> None:
    assert str(fails(block, **{"x/judge.py": "expected changes to a.py only"})) == "expected changes to a.py only"
    assert "only" in str(fails("<<<<<<< RENAME a.py => b.py", **{"b.py": "expected changes to a.py only"}))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"one\r\ntwo\r\nthree\r\n", b"one\r\n2\r\n3\r\nthree\r\n"),
        (b"one\ntwo\nthree", b"one\n2\n3\nthree"),
        (b"one\ntwo", b"one\n2\n3"),
        (b"one\r\ntwo", b"one\r\n2\r\n3"),
        (b"two", b"2\n3"),
        (b"\xef\xbb\xbftwo\r\nx\r\n", b"\xef\xbb\xbf2\r\n3\r\nx\r\n"),
        (b"one\r\ntwo\nthree\nfour\n", b"one\r\n2\n3\nthree\nfour\n"),
        (b"a\rb\ntwo\n", b"a\rb\n2\n3\n"),
    ],
    ids=["crlf", "open end", "edited open end", "crlf open end", "one line", "byte order mark", "mixed", "lone cr"],
)
def test_a_file_keeps_its_style(old: bytes, new: bytes) -> None:
    assert carried_out(search("f", "two\n", "2\n3\n"), {"f": old}) == {"f": new}


def test_a_rewritten_file_keeps_its_style_and_a_new_one_ends_with_a_newline() -> None:
    files = {"dos.txt": b"a\r\nb\r\n", "open.txt": b"a\nb"}
    reply = (
        whole("dos.txt", "1\n2\n3\n") + whole("open.txt", "1\n2\n") + whole("new.txt", "1\n2\n") + whole("empty", "")
    )
    expected = {"dos.txt": b"1\r\n2\r\n3\r\n", "open.txt": b"1\n2", "new.txt": b"1\n2\n", "empty": b""}
    assert carried_out(reply, files) == expected


@pytest.mark.parametrize("content", [b"caf\xe9\n", b"PK\0\1\n"])
def test_a_file_that_is_no_text_can_go_and_move_but_not_be_edited(content: bytes) -> None:
    assert "cannot be edited" in str(fails(search("f", "a\n", "b\n"), {"f": content}))
    assert carried_out("<<<<<<< RENAME f => g", {"f": content}) == {"f": None, "g": content}
    assert carried_out("<<<<<<< DELETE f", {"f": content}) == {"f": None}


def test_a_search_must_match_once_and_the_model_learns_where_it_did() -> None:
    error = fails(search("f", "x\n", "y\n"), {"f": b"x\na\nx\nx\n"})
    assert str(error) == "a SEARCH matches 'f' 3 times"
    assert "at the lines 1, 3, 4" in error.hint
    assert "2 times" in str(fails(search("f", "x\nx\n", "y\n"), {"f": b"x\nx\nx\n"}))


def test_content_that_looks_like_markers_is_written_between_longer_ones() -> None:
    conflict = "<<<<<<< SEARCH f\nours\n=======\ntheirs\n>>>>>>> REPLACE\n"
    assert marker_length([conflict]) == 8
    assert marker_length(["Title\n=======\nand\n======== x\n"]) == 9
    reply = search("f", conflict, "both\n=======\n", length=8)
    assert carried_out(reply, {"f": conflict.encode()}) == {"f": b"both\n=======\n"}


@QUICK
@given(before=LINES, old=LINES, after=LINES, new=LINES, crlf=st.booleans(), open_end=st.booleans())
def test_what_is_written_is_what_comes_out(
    before: list[str], old: list[str], after: list[str], new: list[str], crlf: bool, open_end: bool
) -> None:
    old = ["unique", *old]
    end = "\r\n" if crlf else "\n"

    def file(lines: list[str]) -> bytes:
        text = "".join(line + end for line in lines)
        return (text.removesuffix(end) if open_end else text).encode()

    def block(lines: list[str]) -> str:
        return "".join(line + "\n" for line in lines)

    lines = [*before, *old, *after]
    if open_end:  # a last line without end and text is no line, and one line alone does not tell its style
        assume(len(lines) > 1 and lines[-1] and [*before, *new, *after][-1:] not in ([], [""]))
    expected = file([*before, *new, *after])
    length = marker_length([block(lines), block(new)])
    reply = search("f.md", block(old), block(new), length)
    if old == new:
        assert "leave every file as it was" in str(fails(reply, {"f.md": file(lines)}))
    else:
        assert carried_out(reply, {"f.md": file(lines)}) == {"f.md": expected}
        rewritten = whole("f.md", block([*before, *new, *after]), length)
        assert carried_out(rewritten, {"f.md": file(lines)}) == {"f.md": expected}


@pytest.mark.slow
@QUICK
@given(text=st.text(st.sampled_from("<>=SEARCHWITENDRPLX`\n aTITLE:/."), max_size=200) | st.text(max_size=60))
def test_no_reply_breaks_the_parser(text: str) -> None:
    for reply in (text, f"<<<<<<< SEARCH a.py\n{text}\n>>>>>>> REPLACE", f"<<<<<<< WRITE b.py\n{text}\n>>>>>>> END"):
        with suppress(EditError):
            assert carried_out(reply)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("searched", "shown"),
    [
        ("    line 4711 adds 3\n    line 4712 multiplies\n", "4713      line 4712 adds 1"),
        ("  line 900 adds 4\n", "It differs in white space only"),
        ("nothing like it\n", "nothing like it"),
    ],
)
def test_a_search_that_fails_shows_the_closest_lines_of_a_large_file_at_once(searched: str, shown: str) -> None:
    def hint(lines: int) -> str:
        content = "".join(f"    line {number} adds {number % 7}\n" for number in range(lines)).encode()
        return fails(search("f", searched, "x\n"), {"f": content}).hint

    assert shown in hint(47_000)  # over a megabyte
    assert_grows_linearly(hint, 5_000, times=8)


def test_edits_of_a_large_file_cost_no_more_than_its_length_asks_for() -> None:
    def edit(number: int) -> None:
        lines = [f"the line {each}\n" for each in range(number)]
        reply = "".join(search("f", line, "x\n") for line in lines[:20])
        made = carried_out(reply, {"f": "".join(lines).encode()})
        assert made == {"f": b"x\n" * 20 + "".join(lines[20:]).encode()}

    assert_grows_linearly(edit, 4_000)


def test_the_closest_lines_are_fenced_as_data() -> None:
    hint = fails(search("f", "one\n``` two\nthree\n", "x\n"), {"f": b"one\n```\nthree\n"}).hint
    before, _, shown = hint.partition("````\n")
    assert "one" not in before
    assert shown.endswith("three\n````")


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply",
    [
        lambda size: f"<<<<<<< SEARCH a{' ' * size}b\n",
        lambda size: f"TITLE: a{' ' * size}b\n",
        lambda size: f"file: a{' `' * (size // 2)}b\n" + search("", "x\n", "y\n"),
        lambda size: "<<<<<<< DELETE a.py\n" * (size // 10),
        lambda size: search("f", "\n" * (size // 200), "x\n"),
        lambda size: "--- a/f\n+++ b/f\n@@ @@\n" + "\n" * (size + 2) + "+x\n",
        lambda size: "--- a/f\n+++ b/f\n@@ @@\n+x\n" + "\n \n" * size + "x",
        lambda size: "- " * size + "a.py\n" + search("", "y\n", "z\n"),
        lambda size: "<<<<<<< SEARCH f\nx\n=======\n" + "...\n" * size,
    ],
    ids=["spaces", "title", "label", "blocks", "blank", "blank context", "blank ends", "items", "ellipses"],
)
def test_a_hostile_reply_takes_no_longer_than_its_length_asks_for(reply: Callable[[int], str]) -> None:
    def answer(size: int) -> None:
        with pytest.raises(EditError):
            carried_out(reply(size), {"a.py": b"x\n", "f": b"\n" * size})

    assert_grows_linearly(answer, 12_500)


def test_what_nobody_sees_is_found_as_it_is_shown() -> None:
    files = {"a.py": "one\nx = '\u200b'\ntwo\n".encode()}
    assert carried_out(search("a.py", "x = '\\u200b'\n", "x = 3\n"), files) == {"a.py": b"one\nx = 3\ntwo\n"}
