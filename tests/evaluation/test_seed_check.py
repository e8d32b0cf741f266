"""Trees that cannot be a seed are refused in a sentence; odd but honest ones are evaluated as they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evogit.config import load_repository_task
from evogit.core import ConfigError, EvoGitError, NotFoundError, RepositoryError
from evogit.evaluation.seed_files import check_tree
from evogit.repository import Repository
from evogit.review.checking import judge_seed

TOML = """\
name = "own"
goal = "Improve it."
editable = ["src/**"]
{more}
[metrics.score]
direction = "maximize"
[evaluator]
kind = "command"
command = "{command}"
{evaluator}
[evaluator.read]
score = "exit"
[sandbox]
disk = "1m"
"""
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"


def git(folder: Path, *argv: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    return subprocess.run(["git", "-C", folder, *who, *argv], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A repository with one editable file, by plain Git."""
    folder = tmp_path / "own"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "src" / "main.sh").write_text("echo hello\n")
    (folder / "src" / "main.sh").chmod(0o755)
    write_toml(folder)
    return folder


def write_toml(folder: Path, more: str = "", command: str = "src/main.sh", evaluator: str = "") -> None:
    (folder / "evogit.toml").write_text(TOML.format(more=more, command=command, evaluator=evaluator))


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "it")


def checked(folder: Path) -> list[str]:
    repository = Repository.open(folder)
    return check_tree(load_repository_task(folder), repository, repository.tree_of(repository.head()))


def test_pointers_of_git_lfs_are_refused_unless_excluded(own: Path) -> None:
    (own / "data.bin").write_text(POINTER)
    commit(own)
    with pytest.raises(ConfigError, match=r'data.bin: pointers of Git LFS, .* excluded = \["data.bin"\]'):
        checked(own)
    write_toml(own, more='excluded = ["data.bin"]')
    assert checked(own) == []


def test_a_seed_larger_than_a_sandboxs_disk_is_refused(own: Path) -> None:
    (own / "big.bin").write_bytes(bytes(3 << 19))
    commit(own)
    with pytest.raises(ConfigError, match=r"1.5 MB, more than the 1.0 MB that sandbox.disk allows; .*\(big.bin, "):
        checked(own)
    write_toml(own, more='excluded = ["*.bin"]')
    assert checked(own) == []


@pytest.mark.slow
def test_submodules_are_files_of_the_seed_once_they_are_fetched(own: Path, tmp_path: Path) -> None:
    """One in another, of names with slashes; seen from a linked worktree too."""
    commit(own)
    for name, inner in (("inner", own), ("outer", tmp_path / "inner")):
        git(own, "clone", "-q", str(own), str(tmp_path / name))
        git(tmp_path / name, "submodule", "--quiet", "add", str(inner), f"deps/{name}")
        commit(tmp_path / name)
    git(own, "submodule", "--quiet", "add", str(tmp_path / "outer"), "src/module")
    commit(own)
    assert [said.split(":")[0] for said in checked(own)] == ["src/module/deps/outer"]
    git(own, "submodule", "--quiet", "update", "--init", "--recursive")
    assert checked(own) == []
    git(own, "worktree", "add", "-q", str(tmp_path / "linked"))
    for folder in (own, tmp_path / "linked"):
        repository = Repository.open(folder)
        found = {entry.path for entry in repository.trees.whole(repository.tree_of(repository.head()))}
        assert {"src/main.sh", "src/module/src/main.sh", "src/module/deps/outer/src/main.sh"} < found
    git(tmp_path, "clone", "-q", str(own), str(tmp_path / "clone"))
    (tmp_path / "clone" / "evogit.toml").write_bytes((own / "evogit.toml").read_bytes())
    assert "`git submodule update --init` brings them" in checked(tmp_path / "clone")[0]


def test_what_is_editable_must_be_a_plain_file(own: Path) -> None:
    (own / "src" / "main.sh").unlink()
    (own / "src" / "link").symlink_to("../evogit.toml")
    commit(own)
    with pytest.raises(ConfigError, match="editable: no file of the commit at HEAD matches"):
        checked(own)


def test_a_repository_that_lacks_blobs_is_refused(own: Path, tmp_path: Path) -> None:
    commit(own)
    git(own, "config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    git(own, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{own}", str(partial))
    write_toml(partial)
    with pytest.raises(RepositoryError, match="partial clone"):
        checked(partial)


def test_a_repository_without_a_commit_or_a_checkout_is_refused(own: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="commit what is to be improved first"):
        checked(own)
    commit(own)
    git(own, "clone", "-q", "--bare", str(own), str(tmp_path / "bare"))
    with pytest.raises(EvoGitError, match="evogit.toml"):
        load_repository_task(tmp_path / "bare")


@pytest.mark.slow
async def test_links_modes_subfolders_shallow_clones_and_detached_heads_are_supported(
    own: Path, tmp_path: Path
) -> None:
    """A service of a monorepo that uses a link and a program elsewhere, in a shallow clone without a branch."""
    commit(own)
    service = own / "services" / "api"
    service.mkdir(parents=True)
    (service / "run").symlink_to("../../src/main.sh")
    write_toml(own, command="test -x run && test -L run && ./run", evaluator='directory = "services/api"')
    commit(own)
    shallow = tmp_path / "shallow"
    git(own, "clone", "-q", "--depth=1", f"file://{own}", str(shallow))
    git(shallow, "checkout", "-q", "--detach")
    [judged] = [each async for each in judge_seed(load_repository_task(shallow), ["train"], "bubblewrap")]
    assert (judged.evaluation.status, judged.evaluation.metrics) == ("ok", {"score": 1.0})
    assert "hello" in judged.evidence.feedback["command"]
