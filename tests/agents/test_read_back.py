"""What is read out of a workspace: the edit that was made, whatever else a hostile one holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evogit.agents import Brief, NoUsableChangeError, Proposal
from evogit.agents.programs.read_back import (
    LARGEST,
    MAX_CHANGED_FILES,
    Kind,
    Member,
    Returned,
    read_back,
    read_members,
)
from evogit.agents.programs.uniform import kept_uniform
from evogit.repository import EXECUTABLE, FILE, GITLINK, LINK

from .conftest import SEED, Lab

SHOWN = {path: content for path, content in SEED.items() if not path.startswith("judge/")}
"""What a program finds in its folder: all but what is withheld."""

Entry = bytes | tuple[str, str] | None  # content of a file, or the kind and target of something else; None removes it


def packed(
    changes: Mapping[str, Entry], files: Mapping[str, Entry] = SHOWN, modes: Mapping[str, int] | None = None
) -> list[Member]:
    """What is in a workspace: `files`, changed."""
    modes = {"run.sh": 0o755, **(modes or {})}
    found = []
    for path, entry in {**files, **changes}.items():
        if isinstance(entry, bytes):
            kind: Kind = "executable" if modes.get(path, 0) & 0o100 else "file"
            found.append(Member(path, kind, memoryview(entry)))
        elif entry:
            found.append(Member(path, "link" if entry[0] == "link" else "other", memoryview(entry[1].encode())))
    return found


def listed(entries: list[list[Any]]) -> bytes:
    """A list as `evaluate` sends it."""
    text = json.dumps(entries).encode()
    return len(text).to_bytes(4) + text


@pytest.fixture
def returned(lab: Lab) -> Callable[..., Returned]:
    """Reads back a workspace, or changes of the seed's files as one; whatever is taken makes a candidate."""
    seed = lab.seed()

    def read(changes: Mapping[str, Entry] | list[Member], junk: tuple[str, ...] = (), **how: Any) -> Returned:
        found = changes if isinstance(changes, list) else packed(changes, **how)
        return read_of(lab, seed, found, junk)

    return read


def read_of(lab: Lab, parent: str, members: list[Member], junk: tuple[str, ...] = ()) -> Returned:
    brief = lab.brief(parent)
    assert brief.background is not None
    found = read_back(members, brief, brief.background(), junk)
    applied(lab, brief, found)
    return found


def applied(lab: Lab, brief: Brief, found: Returned) -> dict[str, bytes]:
    """The files of the candidate that it makes."""
    proposal = Proposal(changes=found.changes, modes=found.modes, title="t")
    return lab.files(lab.breeder._bred(brief.parent, brief.donor, proposal).tree)


def test_what_was_not_touched_is_no_change(returned: Callable[..., Returned]) -> None:
    assert returned({}) == Returned(changes={}, modes={}, left_out=[])


def test_bytes_are_taken_as_they_are(returned: Callable[..., Returned]) -> None:
    far = "src/" + "/".join(["a" * 40] * 5) + "/ü.bin"
    changes: dict[str, Entry] = {"new.py": b"VALUE = 2\r\nEND", far: bytes(range(256)) * 5, "src/empty": b""}
    assert returned(changes).changes == changes


CODE = b"def f():\n    if x:\n        return 1\n"


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        (CODE, CODE.replace(b"\n", b"\r\n"), CODE),
        (CODE, CODE.replace(b"1\n", b"2"), CODE.replace(b"1", b"2")),
        (CODE, CODE.replace(b"    ", b"\t").replace(b"1", b"2"), CODE.replace(b"1", b"2")),
        (CODE.replace(b"    ", b"\t"), CODE, CODE.replace(b"    ", b"\t")),
        (CODE.replace(b"\n", b"\r\n"), CODE.replace(b"1", b"2"), CODE.replace(b"\n", b"\r\n").replace(b"1", b"2")),
        (b"a\r\nb\n", b"a\nb\n", b"a\nb\n"),
        (b"a\0\n", b"a\0\r\n", b"a\0\r\n"),
        (b"\x1f\x8bzip", b"\x1f\x8b\r\n\n", b"\x1f\x8b\r\n\n"),
        (b"1.0", b"1.1\n", b"1.1"),
        (b"a", b"a\r\nb\r\n", b"a\r\nb"),
    ],
)
def test_what_was_uniform_in_a_file_stays_so(lab: Lab, old: bytes, new: bytes, kept: bytes) -> None:
    assert changed(lab, "src/a.py", old, new) == ({} if kept == old else {"src/a.py": kept})


def test_recipes_of_a_makefile_may_be_indented_by_tabs(lab: Lab) -> None:
    old, new = b"all:\n    true\n", b"all:\n\ttrue\n"
    assert changed(lab, "src/Makefile", old, new) == {"src/Makefile": new}


def changed(lab: Lab, path: str, old: bytes, new: bytes) -> Mapping[str, bytes | None]:
    parent = lab.add({path: old}, lab.seed())
    return read_of(lab, parent, packed({path: new}, {**SHOWN, path: old})).changes


def test_a_repository_that_a_program_leaves_behind_is_left_out(returned: Callable[..., Returned]) -> None:
    worktree: dict[str, Entry] = {"src/try/.git": b"gitdir: /x\n", "src/try/rate.py": b"", "src/try/deep/a.py": b""}
    clone: dict[str, Entry] = {"src/lib/.git/HEAD": b"", "src/lib/code.py": b""}
    found = returned({**worktree, **clone, "main.py": b"VALUE = 2\n"})
    assert found.changes == {"main.py": b"VALUE = 2\n"}
    assert "src/lib/code.py" in found.left_out[0]


def test_a_file_that_is_gone_is_removed(returned: Callable[..., Returned]) -> None:
    assert returned({"README.md": None}) == Returned(changes={"README.md": None}, modes={}, left_out=[])


def test_bits_of_execution_come_along(returned: Callable[..., Returned]) -> None:
    found = returned({"new.sh": b"#!/bin/sh\n", "new.py": b""}, modes={"new.sh": 0o755, "run.sh": 0o644})
    assert found.modes == {"new.sh": EXECUTABLE, "run.sh": FILE}
    assert found.changes == {"new.sh": b"#!/bin/sh\n", "new.py": b"", "run.sh": SEED["run.sh"]}


HOSTILE: dict[str, tuple[dict[str, Entry], str]] = {
    "a link out": ({"src/x": ("link", "/etc/passwd")}, "1 symbolic link .* (src/x -> /etc/passwd)"),
    "a link above": ({"src/x": ("link", "../../..")}, "1 symbolic link .* (src/x -> ../../..)"),
    "a link onto itself": ({"README.md": ("link", "README.md")}, "1 symbolic link .* (README.md -> README.md)"),
    "a link for a folder": ({"src": ("link", "/")}, "1 symbolic link .* (src -> /)"),
    "a hard link out": ({"src/x": ("hard", "/etc/passwd")}, "1 file of a special kind, .* (src/x)"),
    "a pipe": ({"README.md": ("pipe", "")}, "1 file of a special kind, .* (README.md)"),
    "a device": ({"src/zero": ("device", "")}, "1 file of a special kind, .* (src/zero)"),
    "above the folder": (
        {"../evil.py": b"", "src/../../e.py": b""},
        "2 files whose names .* (../evil.py, src/../../e.py)",
    ),
    "absolute": ({"/evil.py": b""}, "1 file whose names .* (/evil.py)"),
    "a line end": ({"src/a\nb.py": b""}, "1 file whose names .* (src/a b.py)"),
    "an escape": ({"src/\x1b[2J.py": b""}, "1 file whose names .* (src/ [2J.py)"),
    "no UTF-8": ({"src/\udcff.py": b""}, "1 file whose names .* (src/ .py)"),
    "a long name": ({f"src/{'x' * 300}": b""}, "1 file whose names .* (src/xxx"),
    "deep folders": ({"src/" + "d/" * 200 + "x": b""}, "1 file whose names .* (src/d/d"),
    "a .GIT folder": ({"src/.GIT/hooks/x": b""}, "1 file whose names .* (src/.GIT/hooks/x)"),
    "a folded .git": ({".g\u200cit/config": b"", "git~1/x": b""}, "2 files whose names"),
    "two cases": ({"Main.py": b"", "src/a.py": b"", "src/A.py": b""}, "3 files that differ .* only in case (Main.py"),
    "outside": (
        {"setup.cfg": b"", "AGENTS.md": b"!", "judge/x.py": b""},
        "3 files outside .* (AGENTS.md, judge/x.py, ",
    ),
    "withheld": ({"judge/secret.py": b"ANSWER = 0\n"}, "1 file outside .* (judge/secret.py)"),
    "instructions gone": ({"AGENTS.md": None}, "1 removal of what may not be edited (AGENTS.md)"),
    "a folder for a file": ({"README.md": None, "README.md/x.md": b""}, "2 files in the place of a folder"),
    "a file for its folder": ({"src": b"", "src/x": b""}, "1 file in the place of a folder, .* (src/x)"),
    "a large file": ({"src/x.bin": b"x" * (LARGEST + 1)}, "1 file of more than 8,388,608 bytes (src/x.bin)"),
}


@pytest.mark.parametrize(("changes", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_what_may_not_be_is_left_out_and_the_rest_is_taken(
    returned: Callable[..., Returned], changes: dict[str, Entry], sentence: str
) -> None:
    found = returned({**changes, "main.py": b"VALUE = 2\n"})
    assert found.changes == {"main.py": b"VALUE = 2\n"}
    head, _, tail = sentence.partition(" .* ")
    assert any(said.startswith(head) and tail in said for said in found.left_out), found.left_out
    assert all(said.isprintable() and len(said) < 500 for said in found.left_out)


QUIET: dict[str, Mapping[str, Entry]] = {
    "no repository": {},
    "a repository": {".git/HEAD": b"", ".git/hooks/post-checkout": b"", ".git/objects/aa/b": ("link", "/etc")},
    "a pointer to one": {".git": b"gitdir: /\n"},
    "submodules": {"src/module/.git": b"gitdir: ../..\n", "src/other/.git/config": b""},
    "a link for one": {".git": ("link", "/etc")},
    "what Python leaves": {"src/__pycache__/x.cpython-311.pyc": b"", "x.pyc": b""},
    "junk": {"EVOGIT.md": b"", ".tool/history": b"", "src/.tool.cache": b""},
}


@pytest.mark.parametrize("changes", QUIET.values(), ids=QUIET)
def test_some_things_are_left_out_without_a_word(
    returned: Callable[..., Returned], changes: Mapping[str, Entry]
) -> None:
    found = returned({**changes, "main.py": b"2\n"}, junk=("/EVOGIT.md", ".tool/", "*.tool.cache"))
    assert found == Returned(changes={"main.py": b"2\n"}, modes={}, left_out=[])


def test_what_the_parent_ignores_is_left_out_without_a_word(lab: Lab) -> None:
    ignoring = {".gitignore": b"build/\n*.log\n!keep.log\n", "src/.gitignore": b"*.tmp\n", "src/old.log": b"1"}
    parent = lab.add(ignoring, lab.seed())
    files: dict[str, Entry] = {**SHOWN, **ignoring}
    changes = {"build/x.py": b"", "src/a.log": b"", "src/keep.log": b"", "src/a.tmp": b"", "src/old.log": b"2"}
    found = read_of(lab, parent, packed(changes, files))
    assert found == Returned(changes={"src/keep.log": b"", "src/old.log": b"2"}, modes={}, left_out=[])
    found = read_of(lab, parent, packed({".gitignore": b"", "src/a.log": b""}, files))
    assert "src/a.log" not in found.changes, "the parent's patterns count"


def test_junk_that_the_parent_has_stays_as_it_is(returned: Callable[..., Returned]) -> None:
    assert returned({"README.md": b"a brief"}, junk=("/README.md",)).changes == {}
    assert returned({"README.md": None}, junk=("/README.md",)).changes == {}


def test_links_and_submodules_of_the_parent_stay(lab: Lab) -> None:
    tree = lab.history.phylogeny[lab.seed()].tree
    link = lab.repository.trees.write_blob(b"../main.py")
    names = {"src/alias": (LINK, link), "src/vendor": (GITLINK, "1" * 40), "src/\udcff": (FILE, link)}
    tree = lab.repository.trees.with_entries(tree, names)
    commit = lab.repository.commit(tree, (), author="a1", time=1, title="links", trailers={})
    lab.await_evaluation(commit, tree)
    same: dict[str, Entry] = {**SHOWN, "src/alias": ("link", "../main.py")}
    assert read_of(lab, commit, packed({}, same)) == Returned(changes={}, modes={}, left_out=[])
    for changes in ({"src/alias": b""}, {"src/alias": None}, {"src/alias": ("link", "x")}, {"src/vendor": b""}):
        found = read_of(lab, commit, packed({**changes, "main.py": b"2\n"}, same))
        assert found.changes == {"main.py": b"2\n"}
        assert "symbolic link" in found.left_out[0]
    assert "takes two changes" in read_of(lab, commit, packed({"src/vendor/x.py": b""}, same)).left_out[0]


def test_a_file_may_change_the_case_of_its_name(returned: Callable[..., Returned]) -> None:
    assert returned({"main.py": None, "Main.py": b"1"}).changes == {"main.py": None, "Main.py": b"1"}


def test_of_two_entries_at_a_path_the_last_one_counts(returned: Callable[..., Returned]) -> None:
    first, second = packed({"main.py": b"2\n"}), packed({"main.py": b"3\n"})
    assert returned(first + second).changes == {"main.py": b"3\n"}


@pytest.mark.parametrize("files", [{}, {f"project/{path}": content for path, content in SHOWN.items()}])
def test_a_workspace_without_the_candidate_is_no_change(
    returned: Callable[..., Returned], files: dict[str, Entry]
) -> None:
    with pytest.raises(NoUsableChangeError, match="none of the candidate's files are where they were"):
        returned({}, files=files)


def test_a_new_folder_that_is_too_much_is_left_out(returned: Callable[..., Returned]) -> None:
    many: dict[str, Entry] = {f"src/env/lib/{number}.py": b"" for number in range(MAX_CHANGED_FILES)}
    found = returned({**many, "main.py": b"2\n", "src/new.py": b"3"})
    assert found.changes == {"main.py": b"2\n", "src/new.py": b"3"}
    said = "500 new files below src/env, too much to take in (src/env/lib/0.py, src/env/lib/1.py, src/env/lib/10.py, "
    assert found.left_out == [f"{said}...)"]


def test_too_much_that_was_there_before_is_refused(lab: Lab) -> None:
    files: dict[str, bytes | None] = {f"src/{number}.py": b"" for number in range(MAX_CHANGED_FILES)}
    parent = lab.add(files, lab.seed())
    with pytest.raises(NoUsableChangeError, match=r"expected 500 changed files .*, got 501 files and 502 bytes"):
        read_of(lab, parent, packed({**dict.fromkeys(files, b"1"), "main.py": b"2\n"}))


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"hello" * 500,
        b"\0\0\0\x02{}",
        b"\0\0\0\x02[]more",
        listed([["main.py", "file", 10, 0]]) + b"short",
        listed([["main.py", "file", -1, 0]]),
        listed([["main.py", "device", 0, 0]]),
        listed([["main.py", "file", True, 0]]),
        listed([[["main.py"], "file", 0, 0]]),
        b"\0\0\xff\xff" + b"[" * 0xFFFF,
    ],
)
def test_what_is_no_list_of_files_is_refused(packed: bytes) -> None:
    with pytest.raises(NoUsableChangeError, match="the files cannot be read"):
        read_members(packed)


PLACES = st.sampled_from(["main.py", "run.sh", "new.md", "src/a", "src/ü/b.py", "src/d e/f/g.txt", "src/h"])


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.dictionaries(PLACES, st.binary(max_size=8)),
    edit=st.dictionaries(PLACES, st.none() | st.binary(max_size=8)),
    programs=st.sets(PLACES),
)
def test_an_edit_comes_back_as_it_was_made(
    lab: Lab, before: dict[str, bytes], edit: dict[str, bytes | None], programs: set[str]
) -> None:
    files = {**SHOWN, **before}
    tree = lab.repository.trees.write(None, {**SEED, **before}, {"run.sh": EXECUTABLE})
    commit = lab.repository.commit(tree, (), author="a1", time=1, title="t", trailers={})
    if commit not in lab.history.phylogeny:
        lab.await_evaluation(commit, tree)
    modes = {path: 0o755 if path in programs else 0o644 for path in ("run.sh", *edit)}
    found = read_of(lab, commit, packed(edit, files, modes))
    edited = {path: content for path, content in {**files, **edit}.items() if content is not None}
    edited = {path: kept_uniform(path, files.get(path, b""), content) for path, content in edited.items()}
    were = {path: path == "run.sh" for path in files}
    are = {path: modes.get(path) == 0o755 for path in edited}
    differ = {
        path for path in {*files, *edited} if (files.get(path), were.get(path)) != (edited.get(path), are.get(path))
    }
    assert found.changes == {path: edited.get(path) for path in differ}
    assert found.modes == {
        path: EXECUTABLE if are[path] else FILE for path in differ & {*edited} if are[path] != were.get(path, False)
    }
    assert found.left_out == []


def test_names_that_are_magic_to_git_are_names_like_others(returned: Callable[..., Returned]) -> None:
    found = returned({":!x": b"1", ":(top)y": b"2", "z.pyc": b"3"})
    assert set(found.changes) <= {":!x", ":(top)y"}


def test_what_is_in_a_folder_that_cannot_be_read_is_not_gone(lab: Lab) -> None:
    parent = lab.add({"lib/a.py": b"1"}, lab.seed())
    found = read_of(lab, parent, packed({"lib": ("other", "")}))
    assert found.changes == {}
    assert "(lib)" in found.left_out[0]


def test_a_list_of_many_files_deep_down_is_refused_before_anybody_looks_at_it() -> None:
    deep = "/".join(["x"] * 100)
    with pytest.raises(NoUsableChangeError, match="too many files in too many folders"):
        read_members(listed([[f"{deep}/{number}", "file", 0, 0] for number in range(4000)]))


@pytest.mark.slow
def test_patterns_that_take_git_for_ever_fail_the_proposal(returned: Callable[..., Returned]) -> None:
    patterns = {"extra/.gitignore": b"**/" + b"a*/**/" * 12 + b"b\n"}
    deep: Mapping[str, Entry] = {f"extra/{'a/' * 40}{number}": b"x" for number in range(40)}
    with pytest.raises(NoUsableChangeError, match="gitignore files that Git can apply"):
        returned({}, junk=("**/" + "a*/**/" * 12 + "b",), files={**SHOWN, **deep, **patterns})


@pytest.mark.parametrize("kind", ["other", "link"])
def test_folders_too_deep_for_a_candidate_cost_nothing_else(returned: Callable[..., Returned], kind: str) -> None:
    read = returned({"src/program.py": b"better\n", "d/" * 1500 + "d": (kind, "x")})
    assert read.changes == {"src/program.py": b"better\n"}
    assert read.left_out[0].startswith("1 file whose names no candidate can have (d/d/d/")
