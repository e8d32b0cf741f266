from __future__ import annotations

import io
import subprocess
import tarfile
import tracemalloc

import pytest

from evogit.core import RepositoryError
from evogit.repository import EXECUTABLE, Repository, check_path

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


@pytest.mark.parametrize("path", [".github/workflows/x.yml", ".gitignore", "docs/git~notes.md", "naïve.py", "a b/c"])
def test_ordinary_paths_are_taken(path: str) -> None:
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
def test_changes_that_do_not_fit_are_refused(
    repository: Repository, changes: dict[str, bytes | None], message: str
) -> None:
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
    changed = repository.trees.write(done.stdout.decode().strip(), {"x": b"1"})
    assert "na\\357ve" in git("ls-tree", changed)


@pytest.mark.slow
def test_listings_of_many_large_trees_do_not_pile_up(repository: Repository) -> None:
    tree = repository.trees.write(None, {f"src/{number}.py": b"" for number in range(2000)})
    tracemalloc.start()
    try:
        for number in range(400):
            tree = repository.trees.write(tree, {"src/0.py": b"%d" % number})
            assert len(repository.trees.entries(tree)) == 2000
        assert tracemalloc.get_traced_memory()[1] < 100e6, "400 listings together would be 200 MB"
    finally:
        tracemalloc.stop()
