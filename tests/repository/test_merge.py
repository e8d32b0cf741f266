"""Merges compared with what the git command makes of the same pair in a checkout."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import pytest

from evogit.repository import Choose, Merged, Repository, Side

Files = dict[str, bytes | None]

LINES = [b"line %d\n" % number for number in range(30)]
BASE: Files = {"f.py": b"".join(LINES), "g.py": b"g\n", "data": b"\0\1\2"}


def edited(**at: str) -> bytes:
    lines = list(LINES)
    for key, text in at.items():
        lines[int(key.removeprefix("l"))] = text.encode() + b"\n"
    return b"".join(lines)


def digits(seed: int) -> bytes:
    """A text that takes long to compare with another one."""
    rng = random.Random(seed)
    return b"\n".join(bytes([digit]) for digit in rng.choices(b"0123456789", k=30_000)) + b"\n"


def commit(repository: Repository, files: Files, *parents: str) -> str:
    base = repository.tree_of(parents[0]) if parents else None
    tree = repository.trees.write(base, files)
    return repository.commit(tree, parents, author="a1", time=1, title="x", trailers={})


async def merge(
    repository: Repository, ours: Files, theirs: Files, choose: Callable[[], Side] = lambda: "ours"
) -> tuple[Merged, dict[str, bytes]]:
    base = commit(repository, BASE)
    a, b = commit(repository, ours, base), commit(repository, theirs, base)
    merged = settled(repository, a, b, choose)
    return merged, repository.trees.files(merged.tree, lambda path: True)


def settled(repository: Repository, ours: str, theirs: str, choose: Choose) -> Merged:
    merger, tree_of = repository.merger, repository.tree_of
    base = repository.branches.fork(ours, theirs)
    draft = merger.draft(tree_of(base) if base else None, tree_of(ours), tree_of(theirs))
    return merger.merge(draft, partial(merger.settle, choose=choose, how="test"))


async def test_conflicting_hunks_are_settled_one_by_one_and_the_rest_is_merged(repository: Repository) -> None:
    ours: Files = {"f.py": edited(l2="o2", l10="o10", l15="o15")}
    theirs: Files = {"f.py": edited(l2="t2", l15="t15", l25="t25")}
    sides = iter(["theirs", "ours"])
    merged, files = await merge(repository, ours, theirs, lambda: next(sides))  # type: ignore[arg-type]
    assert merged.conflicts == 2
    assert files["f.py"] == edited(l2="t2", l10="o10", l15="o15", l25="t25")


async def test_the_persons_merge_settings_and_drivers_play_no_part(repository: Repository, git) -> None:
    git("config", "merge.evil.driver", "touch EVIL; false")
    git("config", "merge.conflictStyle", "diff3")
    (repository.common / "info").mkdir(exist_ok=True)
    (repository.common / "info" / "attributes").write_text("* merge=evil\n")
    attributes: Files = {".gitattributes": b"* merge=evil\n"}
    _, files = await merge(
        repository, {"f.py": edited(l2="o"), **attributes}, {"f.py": edited(l2="t"), **attributes}, lambda: "theirs"
    )
    assert files["f.py"] == edited(l2="t")
    assert not list(repository.path.rglob("EVIL"))


def numbered(count: int, text: str) -> Files:
    return {f"f{number}": f"{text} {number}\n".encode() * 9 for number in range(count)}


TOO_MUCH: dict[str, tuple[Files, Files, Files]] = {
    "long texts": ({"f": digits(1)}, {"f": digits(2)}, {"f": digits(3)}),
    "large files": ({"f": b"1" * 2_000_000}, {"f": b"2" * 2_000_000}, {"f": b"3" * 2_000_000}),
    "many files": (numbered(99, "a"), numbered(99, "b"), numbered(99, "c")),
    "many renamed": (
        numbered(200, "a"),
        {**dict.fromkeys(numbered(200, "a")), **{f"g{name}": text for name, text in numbered(200, "a 2").items()}},
        {"f7": b"changed"},
    ),
}


@pytest.mark.parametrize("how", TOO_MUCH)
def test_what_would_take_git_long_is_merged_file_by_file(repository: Repository, how: str) -> None:
    old, ours, theirs = TOO_MUCH[how]
    base = commit(repository, old)
    one = commit(repository, {**ours, "mine": b"1"}, base)
    other = commit(repository, {**theirs, "its": b"2"}, base)
    merged = settled(repository, one, other, lambda: "ours")
    files = repository.trees.files(merged.tree, lambda path: True)
    assert files == {path: text for path, text in {**ours, "mine": b"1", "its": b"2"}.items() if text is not None}
    assert len(merged.settled) == sum(text is not None for text in theirs.values())
    assert {each.count for each in merged.settled} == {1}


def test_large_files_that_one_side_changed_are_merged(repository: Repository) -> None:
    base = commit(repository, {"f": digits(1), "g": b"1" * 2_000_000})
    one = commit(repository, {"f": digits(2)}, base)
    other = commit(repository, {"g": b"2" * 2_000_000}, base)
    merged = settled(repository, one, other, lambda: "ours")
    files = repository.trees.files(merged.tree, lambda path: True)
    assert (merged.conflicts, files) == (0, {"f": digits(2), "g": b"2" * 2_000_000})


def test_a_moved_folder_is_followed_however_large(repository: Repository) -> None:
    files = numbered(300, "a")
    base = commit(repository, files)
    moved = {**dict.fromkeys(files), **{f"there/{path}": text for path, text in files.items()}}
    one, other = commit(repository, moved, base), commit(repository, {"f7": b"changed\n"}, base)
    merged = settled(repository, one, other, lambda: "ours")
    assert merged.conflicts == 0
    assert repository.trees.files(merged.tree, lambda path: path == "there/f7") == {"there/f7": b"changed\n"}


@pytest.mark.parametrize("left", ["HEAD", "config"])
async def test_merging_goes_on_after_a_kill_while_git_s_files_were_written(repository: Repository, left: str) -> None:
    await merge(repository, {"f.py": edited(l2="ours")}, {"f.py": edited(l20="theirs")})
    (file,) = (repository.common / "evogit" / "scratch").glob(f"*/{left}")
    file.write_text(file.read_text()[:5])
    merged, files = await merge(Repository.open(repository.path), {"g.py": b"1\n"}, {"f.py": edited(l1="theirs")})
    assert (merged.conflicts, files["g.py"], files["f.py"]) == (0, b"1\n", edited(l1="theirs"))
