"""A zoo of merges, built with the git command: Git's own tree where it finds no conflict, a defined one elsewhere."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evogit.repository import Merged, MergeImpossibleError, Repository, Side, UnfitChangeError
from evogit.selection.conflict_settlers import settler

Content = bytes | tuple[int, bytes]  # a plain file's content, or mode and content (of a submodule: the commit's id)

Files = Mapping[str, Content]

LINES = b"".join(b"line %d\n" % number for number in range(20))
OTHER = b"".join(b"other %d\n" % number for number in range(20))
COMMITS = [(0o160000, digit * 40) for digit in (b"1", b"2", b"3")]
MODULE = b"import a\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 1\n"


def at(line: int, text: bytes, lines: bytes = LINES) -> bytes:
    name = lines.split(b" ", 1)[0]
    return lines.replace(b"%s %d\n" % (name, line), text + b"\n")


def link(target: bytes) -> Content:
    return (0o120000, target)


def program(content: bytes) -> Content:
    return (0o100755, content)


@dataclass(frozen=True)
class Case:
    """Three trees. `taken`: the result where a side wins every conflict, unless that is the side as it was.

    `kinds` of conflicts: empty where Git finds none. `refused`: why nothing comes of it.
    """

    base: Files
    ours: Files
    theirs: Files
    taken: Mapping[Side, Files] = field(default_factory=dict)
    kinds: str = ""
    refused: str = ""

    def won(self, side: Side) -> Files:
        return self.taken.get(side, self.ours if side == "ours" else self.theirs)


def both(files: Files) -> Mapping[Side, Files]:
    return {"ours": files, "theirs": files}


def one_file(
    base: Content, ours: Content, theirs: Content, kinds: str = "", taken: dict[Side, Content] | None = None
) -> Case:
    """A case of the file `a` alone."""
    won: dict[Side, Files] = {side: {"a": content} for side, content in (taken or {}).items()}
    return Case({"a": base}, {"a": ours}, {"a": theirs}, won, kinds)


CLEAN = {
    "different files": Case({"a": b"1\n", "b": b"1\n"}, {"a": b"2\n", "b": b"1\n"}, {"a": b"1\n", "b": b"2\n"}),
    "different hunks": Case({"a": LINES}, {"a": at(2, b"x")}, {"a": at(17, b"y")}),
    "the same change": Case({"a": LINES}, {"a": at(2, b"x")}, {"a": at(2, b"x")}),
    "deleted here, untouched there": Case({"a": LINES, "b": b"b\n"}, {"b": b"b\n"}, {"a": LINES, "b": b"c\n"}),
    "deleted on both sides": Case({"a": LINES, "b": b"b\n"}, {"b": b"c\n"}, {"b": b"b\n"}),
    "renamed here, changed there": Case({"a": LINES}, {"b": LINES}, {"a": at(3, b"x")}),
    "renamed and changed, changed there": Case({"a": LINES}, {"b": at(15, b"y")}, {"a": at(3, b"x")}),
    "renamed alike": Case({"a": LINES}, {"b": LINES}, {"b": at(3, b"x")}),
    "executable here, changed there": Case({"a": LINES}, {"a": program(LINES)}, {"a": at(3, b"x")}),
    "added alike": Case({"a": b"1\n"}, {"a": b"2\n", "n": LINES}, {"a": b"1\n", "n": LINES}),
    "folder renamed, a file of it changed": Case(
        {"d/a": LINES, "d/b": OTHER}, {"e/a": LINES, "e/b": OTHER}, {"d/a": at(3, b"x"), "d/b": OTHER}
    ),
    "file becomes a folder": Case({"n": b"n\n", "a": LINES}, {"n/x": b"x\n", "a": LINES}, {"n": b"n\n", "a": OTHER}),
    "folder becomes a file": Case({"n/x": b"n\n", "a": LINES}, {"n": b"x\n", "a": LINES}, {"n/x": b"n\n", "a": OTHER}),
    "link changed here": Case(
        {"l": link(b"a"), "a": b"a\n"}, {"l": link(b"b"), "a": b"a\n"}, {"l": link(b"a"), "a": b"c\n"}
    ),
    "submodule moved here": Case(
        {"s": COMMITS[0], "a": b"a\n"}, {"s": COMMITS[1], "a": b"a\n"}, {"s": COMMITS[0], "a": b"c\n"}
    ),
    "binary changed here": Case({"d": b"\0", "a": b"a\n"}, {"d": b"\0\1", "a": b"a\n"}, {"d": b"\0", "a": b"c\n"}),
    "carriage returns": Case(*({"a": text.replace(b"\n", b"\r\n")} for text in (LINES, at(2, b"x"), at(17, b"y")))),
    "names that need quotes": Case(
        {'a "b"': LINES, "ä\tö": LINES}, {'a "b"': OTHER, "ä\tö": LINES}, {'a "b"': LINES, "ä\tö": OTHER}
    ),
    "emptied here, added there": Case({"a": b"a\n"}, {"a": b""}, {"a": b"a\n", "e": b""}),
}

CONFLICTS = {
    "one line": one_file(LINES, at(2, b"x"), at(2, b"y"), "lines"),
    "one line, and another one apart": one_file(
        LINES, at(2, b"x"), at(17, b"z", at(2, b"y")), "lines", {"ours": at(17, b"z", at(2, b"x"))}
    ),
    "text that looks like conflicts": one_file(
        LINES, at(2, b"<<<<<<< x\n=======\n>>>>>>> y"), at(2, b"=========\n|||||||"), "lines"
    ),
    "added differently": Case({"a": LINES}, {"a": LINES, "n": b"1\n"}, {"a": LINES, "n": b"2\n"}, kinds="lines"),
    "added alike, executable here": Case(
        {"a": LINES}, {"a": LINES, "n": program(b"1\n")}, {"a": LINES, "n": b"1\n"}, kinds="mode"
    ),
    "executable here, one line": one_file(
        LINES, program(at(2, b"x")), at(2, b"y"), "lines", {"theirs": program(at(2, b"y"))}
    ),
    "changed here, deleted there": Case(
        {"a": LINES, "b": b"b\n"},
        {"a": at(2, b"x"), "b": b"b\n"},
        {"b": b"c\n"},
        {"ours": {"a": at(2, b"x"), "b": b"c\n"}},
        "deleted",
    ),
    "deleted here, changed there": Case(
        {"a": LINES, "b": b"b\n"},
        {"b": b"c\n"},
        {"a": at(2, b"x"), "b": b"b\n"},
        {"theirs": {"a": at(2, b"x"), "b": b"c\n"}},
        "deleted",
    ),
    "binary on both sides": one_file(b"\0", b"\0\1", b"\0\2", "binary"),
    "text here, binary there": one_file(LINES, at(2, b"x"), b"\0" + LINES, "binary"),
    "lines that ask for endless markers": one_file(LINES, at(2, b"=" * 2000), at(2, b"y"), "binary"),
    "renamed to two names": Case({"a": LINES}, {"b": LINES}, {"c": LINES}, both({"b": LINES, "c": LINES}), "rename"),
    "renamed to two names and changed": Case(
        {"a": LINES}, {"b": at(2, b"x")}, {"c": at(2, b"y")}, both({"b": at(2, b"x"), "c": at(2, b"y")}), "rename"
    ),
    "two files renamed to one name": Case(
        {"a": LINES, "b": OTHER},
        {"n": LINES, "b": OTHER},
        {"a": LINES, "n": OTHER},
        {"ours": {"n": LINES}, "theirs": {"n": OTHER}},
        "lines",
    ),
    "two changed files renamed to one name": Case(
        {"a": LINES, "b": OTHER},
        {"n": at(2, b"x"), "b": at(2, b"x", OTHER)},
        {"a": at(2, b"y"), "n": at(2, b"y", OTHER)},
        kinds="rename deleted deleted lines",
    ),
    "renamed here, deleted there": Case(
        {"a": LINES, "k": b"k\n"}, {"b": LINES, "k": b"k\n"}, {"k": b"k\n"}, both({"b": LINES, "k": b"k\n"}), "rename"
    ),
    "renamed here, added there": Case(
        {"a": LINES}, {"n": LINES}, {"a": LINES, "n": OTHER}, {"theirs": {"n": OTHER}}, "lines"
    ),
    "renamed and changed, the same line there": Case(
        {"a": LINES}, {"b": at(2, b"x")}, {"a": at(2, b"y")}, {"theirs": {"b": at(2, b"y")}}, "lines"
    ),
    "folder renamed, a file added to it": Case(
        {"d/a": LINES, "d/b": OTHER},
        {"e/a": LINES, "e/b": OTHER},
        {"d/a": LINES, "d/b": OTHER, "d/c": b"c\n"},
        both({"e/a": LINES, "e/b": OTHER, "d/c": b"c\n"}),
        "rename",
    ),
    "file here, folder there": Case(
        {"a": LINES},
        {"a": LINES, "n": b"file\n"},
        {"a": LINES, "n/x": b"x\n", "n/y/z": b"z\n"},
        kinds="rename folder",
    ),
    "changed here, a folder there": Case({"n": LINES}, {"n": at(2, b"x")}, {"n/x": b"x\n"}, kinds="rename folder"),
    "folder changed here, a file there": Case(
        {"n/x": LINES, "n/y": OTHER},
        {"n/x": at(2, b"x"), "n/y": OTHER},
        {"n": b"file\n"},
        kinds="rename folder",
    ),
    "no line end at the end": one_file(b"1\n2", b"1\nx", b"1\ny", "lines"),
    "carriage returns, one line": one_file(
        *(text.replace(b"\n", b"\r\n") for text in (LINES, at(2, b"x"), at(2, b"y"))), "lines"
    ),
    "a module's functions": Case(
        {"m.py": MODULE},
        {"m.py": MODULE.replace(b"return 1", b"return 2", 1) + b"\n\ndef new():\n    return 3\n"},
        {"m.py": MODULE.replace(b"return 1", b"return 4", 1) + b"\n\ndef newer():\n    return 5\n"},
        kinds="lines",
    ),
}

REFUSED = {
    "link changed on both sides": Case({"l": link(b"a")}, {"l": link(b"b")}, {"l": link(b"c")}, refused="'l'"),
    "submodule moved on both sides": Case({"s": COMMITS[0]}, {"s": COMMITS[1]}, {"s": COMMITS[2]}, refused="'s'"),
    "link here, file there": Case({"a": LINES}, {"a": link(b"b")}, {"a": at(2, b"x")}, refused="'a'"),
    "link here, folder there": Case({"b": b"b\n"}, {"a": link(b"b")}, {"a/x": b"x\n"}, refused="'a'"),
    "names that differ in case": Case(
        {"a": b"a\n"}, {"a": b"a\n", "New": b"1\n"}, {"a": b"a\n", "new": b"2\n"}, refused="in case"
    ),
}

CASES = {**CLEAN, **CONFLICTS, **REFUSED}

Ids = tuple[str, str, str]


class Zoo:
    def __init__(self, path: Path, cases: Mapping[str, Case] = CASES) -> None:
        subprocess.run(["git", "init", "-q", str(path)], check=True)
        stream, number = b"", 0
        for case in cases.values():
            number += 3
            sides = (case.base, case.ours, case.theirs)
            parents = (b"", b"from :%d\n" % (number - 2), b"from :%d\n" % (number - 2))
            stream += b"".join(map(_commit, range(number - 2, number + 1), parents, sides))
        importing = ["git", "fast-import", "--quiet", "--export-marks=marks"]
        subprocess.run(importing, cwd=path, input=stream, check=True)
        marks = dict(line.split() for line in (path / "marks").read_text().splitlines())
        self.path = path
        self.repository = Repository.open(path)
        ids = [marks[f":{mark}"] for mark in range(1, number + 1)]
        self.commits: dict[str, Ids] = dict(zip(cases, zip(ids[::3], ids[1::3], ids[2::3], strict=True), strict=True))

    async def merge(self, name: str, strategy: str = "fitter", fitter: Side = "ours") -> Merged:
        merger, trees = self.repository.merger, self.repository.trees
        ids = [self.repository.tree_of(commit) for commit in self.commits[name]]
        merged = merger.merge(merger.draft(*ids), settler(merger, strategy, fitter, random.Random(1)))
        trees.refuse_twins(ids[1], merged.tree)
        return merged

    def files(self, tree: str) -> Files:
        blob = self.repository.trees.blob
        found = {}
        for path, mode, object_id in self.repository.trees.entries(tree):
            content = object_id.encode() if mode == 0o160000 else blob(object_id)
            found[path] = content if mode == 0o100644 else (mode, content)
        return found


def _commit(mark: int, parent: bytes, files: Files) -> bytes:
    lines = b"commit refs/heads/zoo\nmark :%d\ncommitter x <x@example.org> 1 +0000\ndata 0\n" % mark
    lines += parent if parent else b"" if mark == 1 else b"from %s\n" % (b"0" * 40)
    return lines + b"deleteall\n" + b"".join(_file(path, content) for path, content in files.items()) + b"\n"


def _file(path: str, content: Content) -> bytes:
    mode, data = content if isinstance(content, tuple) else (0o100644, content)
    name = b'"' + path.replace('"', '\\"').encode() + b'"'
    if mode == 0o160000:
        return b"M 160000 %s %s\n" % (data, name)
    return b"M %o inline %s\ndata %d\n%s\n" % (mode, name, len(data), data)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    return Zoo(tmp_path_factory.mktemp("zoo") / "r")


@pytest.mark.parametrize("name", CLEAN)
async def test_where_git_finds_no_conflict_nothing_is_decided(zoo: Zoo, name: str) -> None:
    merged = await zoo.merge(name)
    assert (merged.conflicts, merged.settled) == (0, ())


@pytest.mark.parametrize("name", CONFLICTS)
@pytest.mark.parametrize("fitter", ["ours", pytest.param("theirs", marks=pytest.mark.slow)])
async def test_the_fitter_side_wins_every_conflict_and_nothing_else(zoo: Zoo, name: str, fitter: Side) -> None:
    merged = await zoo.merge(name, fitter=fitter)
    assert zoo.files(merged.tree) == CASES[name].won(fitter)
    assert " ".join(each.kind for each in merged.settled) == CASES[name].kinds
    assert merged.conflicts == {"a module's functions": 2, "two changed files renamed to one name": 3}.get(name, 1)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize(
    "strategy", ["fitter", *(pytest.param(each, marks=pytest.mark.slow) for each in ("random", "function"))]
)
async def test_links_submodules_and_twins_are_refused(zoo: Zoo, name: str, strategy: str) -> None:
    with pytest.raises(UnfitChangeError, match=CASES[name].refused) as caught:
        await zoo.merge(name, strategy)
    assert isinstance(caught.value, MergeImpossibleError) is (name != "names that differ in case")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CONFLICTS.items() if "rename" not in case.kinds])
async def test_chance_takes_one_side_or_the_other(zoo: Zoo, name: str) -> None:
    merged = await zoo.merge(name, "random")
    assert name == "a module's functions" or zoo.files(merged.tree) in (
        CASES[name].won("ours"),
        CASES[name].won("theirs"),
    )
    assert merged.tree == (await zoo.merge(name, "random")).tree


async def test_functions_are_taken_whole_and_new_ones_from_both(zoo: Zoo) -> None:
    merged = await zoo.merge("a module's functions", "function", "theirs")
    (module,) = zoo.files(merged.tree).values()
    assert isinstance(module, bytes)
    assert module.count(b"def ") == 4
    assert module.count(b"return 4") == 1
    assert merged.conflicts == 1
    assert compile(module, "m", "exec")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CONFLICTS if name != "a module's functions"])
async def test_what_is_no_python_is_left_to_the_fitter(zoo: Zoo, name: str) -> None:
    """Text without definitions whole, as halves of two rewrites do not fit together."""
    merged = await zoo.merge(name, "function")
    if name == "one line, and another one apart":
        assert zoo.files(merged.tree) == CASES[name].ours
    else:
        assert merged.tree == (await zoo.merge(name)).tree


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CLEAN, *CONFLICTS])
async def test_the_zoo_is_what_git_says_it_is(zoo: Zoo, name: str) -> None:
    """`git merge` in a checkout: the same tree where it succeeds, and it fails where we settle something."""
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(zoo.path)]
    _, ours, theirs = zoo.commits[name]
    subprocess.run([*git, "checkout", "-q", "-f", "--detach", ours], check=True)
    subprocess.run([*git, "clean", "-qfdx"], check=True)
    done = subprocess.run([*git, "merge", "-q", "--no-edit", theirs], capture_output=True, check=False)
    merged = await zoo.merge(name)
    if done.returncode == 0:
        tree = subprocess.run([*git, "rev-parse", "HEAD^{tree}"], capture_output=True, text=True, check=True).stdout
        assert tree.strip() == merged.tree
    else:
        subprocess.run([*git, "merge", "--abort"], check=False, capture_output=True)
    assert (done.returncode == 0) is (name in CLEAN) is (merged.conflicts == 0)


# --- at random ----------------------------------------------------------------------------------------------------

NAMES = ("a", "b", "d", "d/x", "d/y", "e/x", "e/f/z", "B")


def scrambled(files: Files, rng: random.Random) -> Files:
    """A tree some edits away: lines, deletions, renames, modes, links, files where folders were."""
    result = dict(files)
    for _ in range(rng.randrange(1, 4)):
        path, name = rng.choice(sorted(result)), rng.choice(NAMES)
        act = rng.choice(("edit", "edit", "edit", "delete", "move", "add", "mode", "link", "binary"))
        content = result[path]
        text = content[1] if isinstance(content, tuple) else content
        if act == "edit":
            result[path] = (
                at(rng.randrange(20), b"%d" % rng.randrange(3), text) if b" " in text else b"%d\n" % rng.randrange(9)
            )
        elif act == "mode":
            result[path] = program(text) if not isinstance(content, tuple) else text
        elif act == "delete" and len(result) > 1:
            del result[path]
        elif act in ("move", "add", "link", "binary"):
            moved = result.pop(path) if act == "move" else content
            made = {"link": link(b"a"), "binary": b"\0%d" % rng.randrange(9)}
            result = {other: each for other, each in result.items() if not _in_the_way(other, name)}
            result[name] = made.get(act, moved)
    return result or {"a": LINES}


def _in_the_way(one: str, other: str) -> bool:
    return one == other or one.startswith(other + "/") or other.startswith(one + "/")


class Wild(Zoo):
    cases: Mapping[str, Case]

    def __init__(self, path: Path, seed: int, number: int) -> None:
        rng = random.Random(seed)
        self.cases = {}
        for each in range(number):
            base = scrambled({"a": LINES, "b": OTHER, "d/x": at(1, b"x"), "e/f/z": at(2, b"y", OTHER)}, rng)
            self.cases = {**self.cases, str(each): Case(base, scrambled(base, rng), scrambled(base, rng))}
        super().__init__(path, self.cases)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
async def test_random_trees_merge_as_git_merges_them_and_never_end_in_conflict(tmp_path: Path, seed: int) -> None:
    wild, clean, settled, refused = Wild(tmp_path / "r", seed, 40), 0, 0, 0
    for name, (_, ours, theirs) in wild.commits.items():
        command = ["git", "-C", str(wild.path), "merge-tree", "--write-tree", ours, theirs]
        git = subprocess.run(command, capture_output=True, check=False)
        strategy, fitter = random.Random(name).choice(("fitter", "random", "function")), "ours"
        try:
            merged = await wild.merge(name, strategy, fitter)  # type: ignore[arg-type]
        except UnfitChangeError:
            refused += 1
            continue
        if git.returncode == 0:
            assert (merged.tree, merged.conflicts) == (git.stdout.decode().strip(), 0)
            clean += 1
            continue
        assert merged.conflicts
        settled += 1
        plain = [content for content in wild.files(merged.tree).values() if isinstance(content, bytes)]
        assert not any(line.startswith((b"<<<<<<<", b">>>>>>>")) for content in plain for line in content.split(b"\n"))
    assert min(clean, settled) >= 10
    assert refused <= 20
    subprocess.run(["git", "-C", str(wild.path), "fsck", "--strict", "--no-dangling"], check=True, capture_output=True)
