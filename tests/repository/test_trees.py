from __future__ import annotations

import io
import random
import subprocess
import tarfile
import time
import tracemalloc
from collections.abc import Mapping
from pathlib import Path

import pytest

from evogit.core import RepositoryError
from evogit.repository import EXECUTABLE, Repository, check_path, trees
from tests.clock import cpu_seconds

SEED: dict[str, bytes | None] = {"a.py": b"a\n", "lib/b.py": b"b\n", "lib/deep/c.py": b"c\n"}


def test_a_tree_is_its_base_plus_the_changes(repository: Repository) -> None:
    base = repository.trees.write(None, SEED, {"a.py": EXECUTABLE})
    tree = repository.trees.write(base, {"a.py": b"A\n", "lib/deep/c.py": None, "new/d.py": b"d\n"})
    files = repository.trees.files(tree, lambda path: True)
    assert files == {"a.py": b"A\n", "lib/b.py": b"b\n", "new/d.py": b"d\n"}
    modes = {entry.path: entry.mode for entry in repository.trees.entries(tree)}
    assert modes["a.py"] == EXECUTABLE, "an edited file keeps its mode"
    assert repository.trees.write(tree, {"new/d.py": None, "a.py": b"a\n", "lib/deep/c.py": b"c\n"}) == base


@pytest.mark.parametrize(
    "path",
    ["../x", "/etc/passwd", "a//b", "", ".git/config", "sub/.GIT/hooks/x", ".g\u200cit/x", ".git. ./x", "git~1/x"]
    + [".git::$INDEX_ALLOCATION/x", "a\\b", "a\nb", "a\x7fb", "./a", "é" * 128, "a/" * 100 + "x"],
)
def test_paths_that_could_escape_are_refused(repository: Repository, path: str) -> None:
    with pytest.raises(RepositoryError):
        repository.trees.write(None, {path: b""})


def test_ordinary_paths_are_taken() -> None:
    for path in (".github/workflows/x.yml", ".gitignore", "docs/git~notes.md", "naïve.py", "a b/c"):
        check_path(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A.py": b""}, "only in case"),
        ({"LIB/x": b""}, "only in case"),
        ({"missing.py": None}, "no such file"),
        ({"lib": b"now a file"}, "folder"),
        ({"a.py/x": b""}, "found a file"),
        ({"x": b"", "x/y": b""}, "both as a file and as a folder"),
    ],
)
def test_changes_that_do_not_fit_are_refused(repository: Repository, changes: dict, message: str) -> None:
    base = repository.trees.write(None, SEED)
    with pytest.raises(RepositoryError, match=message):
        repository.trees.write(base, changes)


def test_links_and_submodules_ride_along_and_cannot_be_edited(repository: Repository, git) -> None:
    (repository.path / "real").write_text("text")
    (repository.path / "link").symlink_to("real")
    git("add", "real", "link")
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    base = git("write-tree").strip()
    tree = repository.trees.write(base, {"real": b"changed"})
    listed = git("ls-tree", tree)
    assert "120000 blob" in listed
    assert "160000 commit" in listed
    for path in ("link", "module"):
        with pytest.raises(RepositoryError, match="link or a submodule"):
            repository.trees.write(base, {path: b"x"})


def test_the_archive_holds_files_modes_and_links_but_not_what_is_unwanted(repository: Repository, git) -> None:
    (repository.path / "link").symlink_to("a.py")
    (repository.path / "run.sh").write_text("#!/bin/sh\n")
    (repository.path / "run.sh").chmod(0o755)
    (repository.path / "hidden.py").write_text("secret")
    git("add", ".")
    tree = git("write-tree").strip()
    packed = repository.trees.tar(tree, lambda path: path != "hidden.py")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = {member.name: member for member in archive.getmembers()}
    assert set(members) == {"link", "run.sh"}
    assert members["run.sh"].mode == 0o755
    assert members["link"].linkname == "a.py"


def test_names_that_are_not_text_ride_along(repository: Repository, git) -> None:
    blob = git("hash-object", "-w", ".git/HEAD").strip()
    listing = b"100644 blob " + blob.encode() + b"\tna\xefve\n"
    done = subprocess.run(["git", "mktree"], cwd=repository.path, input=listing, capture_output=True, check=True)
    odd, plain = done.stdout.decode().strip(), made(git, {"x": A})
    assert "na\\357ve" in git("ls-tree", repository.trees.write(odd, {"x": b"1"}))
    assert check_changes(repository, plain, odd) == ({"na\udcefve"}, {"x"})
    assert check_changes(repository, odd, plain) == ({"x"}, {"na\udcefve"})


A, B = ("100644", b"a\n"), ("100644", b"b\n")
PROGRAM, LINK, MODULE = ("100755", b"a\n"), ("120000", b"other"), ("160000", b"")
Content = Mapping[str, tuple[str, bytes]]


def made(git, files: Content) -> str:
    """The tree of these files: path -> mode and content."""
    git("read-tree", "--empty")
    for path, (mode, content) in files.items():
        blob = "1" * 40 if mode == "160000" else git("hash-object", "-w", "--stdin", input=content.decode()).strip()
        git("update-index", "--add", "--cacheinfo", f"{mode},{blob},{path}")
    return git("write-tree").strip()


def unpacked(packed: bytes) -> dict[str, tuple[bytes, int, str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return {
            member.name: (member.type, member.mode, member.linkname, file.read() if file else b"")
            for member in archive
            for file in [archive.extractfile(member) if member.isreg() else None]
        }


def is_shown(path: str) -> bool:
    return not path.startswith("secret")


def check_changes(repository: Repository, base: str, tree: str) -> tuple[set[str], set[str]]:
    """Changes of a whole archive must give the other whole archive; returns what was changed and removed."""
    packed, removed = repository.trees.changes(base, tree, is_shown)
    changed, files = unpacked(packed), unpacked(repository.trees.tar(base, is_shown))
    for path in removed:
        del files[path]
    assert files | changed == unpacked(repository.trees.tar(tree, is_shown))
    return set(changed), set(removed)


@pytest.mark.parametrize(
    ("old", "new", "changed", "removed"),
    [
        ({"x": A}, {"x": A}, "", ""),
        ({"x": A}, {"x": B}, "x", ""),
        ({"x": A, "y": A}, {"x": A, "z/z": A}, "z/z", "y"),
        ({"x": A}, {"x": PROGRAM}, "x", ""),
        ({"x": A}, {"x": LINK}, "x", "x"),
        ({"x": LINK}, {"x": PROGRAM}, "x", "x"),
        ({"x": LINK}, {"x": ("120000", b"elsewhere")}, "x", ""),
        ({"x": A}, {"x/y": A, "x/z": B}, "x/y x/z", "x"),
        ({"x/y": A, "x/z/z": B}, {"x": A}, "x", "x/y x/z/z"),
        ({"x/y": A, "x.y": A, "x0": A}, {"x": LINK, "x.y": B}, "x x.y", "x/y x0"),
        ({"x": A}, {"x": MODULE, "y": MODULE}, "", "x"),
        ({"x": MODULE, "y": MODULE}, {"x": A}, "x", ""),
        ({"secret": A, "x": A}, {"secret": B, "x": B}, "x", ""),
        ({"secrets/a": A, "y": A}, {"y": A, "secret": B}, "", ""),
        ({"x": A}, {"secret/x": A}, "", "x"),
        ({"secret/x": A}, {"x": A}, "x", ""),
        ({"n\u00e4h\u200b\t.py": A}, {"n\u00e4h\u200b\t.py": B}, "n\u00e4h\u200b\t.py", ""),
    ],
)
def test_changes_make_one_archive_of_another(
    repository: Repository, git, old: Content, new: Content, changed: str, removed: str
) -> None:
    found = check_changes(repository, made(git, old), made(git, new))
    assert found == (set(changed.split(" ")) - {""}, set(removed.split(" ")) - {""})


@pytest.mark.slow
def test_changes_between_any_two_trees(repository: Repository, git) -> None:
    rng = random.Random(3)
    paths = ["a", "a/b", "a/b/c", "a/d", "b", "b-a", "b/a", "secret", "secret/a", "c.py", "c"]
    trees = []
    for _ in range(12):
        drawn = rng.sample(paths, 5)
        leaves = [path for path in drawn if not any(other.startswith(path + "/") for other in drawn)]
        trees.append(made(git, {path: rng.choice([A, B, PROGRAM, LINK, MODULE]) for path in leaves}))
    for base in trees:
        for tree in trees:
            check_changes(repository, base, tree)


@pytest.mark.slow
def test_changes_take_no_time_for_what_is_equal(repository: Repository) -> None:
    names = [f"src/p{number // 250}/m{number // 25 % 10}/f{number}.py" for number in range(5000)]
    base = repository.trees.write(None, {name: b"%d" % number for number, name in enumerate(names)})
    whole = cpu_seconds(lambda: repository.trees.tar(base, is_shown))
    times = []
    for number in range(0, 5000, 500):  # every tree is new, as every candidate is
        tree = repository.trees.write(base, {names[number]: b"x", names[-1 - number]: None, "new.py": b""})
        begin = time.process_time()
        packed, removed = repository.trees.changes(base, tree, is_shown)
        times.append(time.process_time() - begin)
        assert (set(unpacked(packed)), removed) == ({names[number], "new.py"}, (names[-1 - number],))
    assert min(times) < whole / 4


@pytest.mark.slow
def test_listings_of_many_large_trees_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "MOST_LISTED", 20_000)
    repository = Repository.create(tmp_path / "repo")
    tree = repository.trees.write(None, {f"src/{number}.py": b"" for number in range(2000)})
    tracemalloc.start()
    try:
        for number in range(40):
            tree = repository.trees.write(tree, {"src/0.py": b"%d" % number})
            assert len(repository.trees.entries(tree)) == 2000
        assert tracemalloc.get_traced_memory()[1] < 10e6, "40 listings together would be 20 MB"
    finally:
        tracemalloc.stop()
