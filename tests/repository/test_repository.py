from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evogit.core import NotFoundError, RefusedError, RepositoryError, UsageError
from evogit.events import Adopted, Entry
from evogit.repository import Repository

FILLER = """
import resource, signal, sys
from pathlib import Path
from evogit.core import (EvoGitError)
from evogit.events import (Adopted)
from evogit.repository import Repository
repository = Repository.create(Path(sys.argv[1]))
journal = repository.journal("r", lambda entry: None)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
written = 0
try:
    while True:
        if written == 20:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # every write fails from now on
        journal.append(Adopted(agent="a1", candidate=f"{written:040x}"))
        written += 1
except EvoGitError as error:
    print(error, written)
"""

HOLDER = """
import sys, time
from pathlib import Path
from evogit.repository import Repository
with Repository.open(Path(sys.argv[1])).engines("r").enter(join=False):
    print("in", flush=True)
    time.sleep(60)
"""


def test_a_candidate_carries_its_provenance_where_git_finds_it(repository: Repository, git, tmp_path: Path) -> None:
    tree = repository.trees.write(None, {"a.py": b"1"})
    title = "better\x00 start\u202e\nEvogit-Agent: mallory"
    commit = repository.commit(
        tree, (), author="a3", time=1_700_000_000, title=title, trailers={"Agent": "a3", "Operator": "mutation"}
    )
    assert git("log", "-1", "--format=%s|%an|%ct", commit).strip() == "better  start|evogit a3|1700000000"
    assert git("log", "-1", "--format=%(trailers)", commit).strip() == "Evogit-Agent: a3\nEvogit-Operator: mutation"
    other = Repository.create(tmp_path / "other")
    assert tree == other.trees.write(None, {"a.py": b"1"})
    trailers = {"Agent": "a3", "Operator": "mutation"}
    same = other.commit(tree, (), author="a3", time=1_700_000_000, title=title, trailers=trailers)
    assert same == commit, "the same candidate has the same id anywhere"


def test_a_branch_that_somebody_works_on_is_not_moved(repository: Repository, git, tmp_path: Path) -> None:
    tree = repository.trees.write(None, {"a.py": b"1"})
    one, two = (repository.commit(tree, (), author="a1", time=at, title="t", trailers={}) for at in (1, 2))
    assert repository.move_branch("refs/heads/evogit/r/a1", one)
    git("worktree", "add", "-q", str(tmp_path / "wt"), "evogit/r/a1")
    assert not repository.move_branch("refs/heads/evogit/r/a1", two)
    assert repository.target("refs/heads/evogit/r/a1") == one


def test_a_second_engine_is_refused_unless_it_joins(repository: Repository) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(repository.path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"in\n"
    engines = repository.engines("r")
    with pytest.raises(RefusedError, match="--join"), engines.enter(join=False):
        pass
    with engines.enter(join=True) as name:
        assert len(engines.alive()) == 2
        assert name in engines.alive()
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert engines.alive() == [], "a lock dies with its process"
    with engines.enter(join=False):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("age", [60, 0, -3600], ids=["old", "new", "from the future"])
def test_locks_of_a_killed_engine_are_cleared(repository: Repository, age: float) -> None:
    lock = repository.common / "refs/heads/evogit/r/a1.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    os.utime(lock, (time.time() - age, time.time() - age))
    others = repository.common / "refs/heads/main.lock"
    others.touch()
    repository.clear_locks("r")
    assert not lock.exists()
    assert others.exists(), "locks that are not ours are left alone"


def test_bare_repositories_work_and_formats_that_libgit2_cannot_read_are_named(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare.git")], check=True)
    repository = Repository.open(tmp_path / "bare.git")
    tree = repository.trees.write(None, {"a": b"1"})
    commit = repository.commit(tree, (), author="a1", time=1, title="t", trailers={})
    assert repository.move_branch("refs/heads/evogit/r/best", commit)
    assert repository.bare
    subprocess.run(["git", "init", "-q", "--object-format=sha256", str(tmp_path / "r")], check=True)
    with pytest.raises(RepositoryError, match="SHA-256"):
        Repository.open(tmp_path / "r")


def test_a_linked_worktree_shares_host_and_refs(repository: Repository, git, tmp_path: Path) -> None:
    tree = repository.trees.write(None, {"a.py": b"1"})
    repository.plant(repository.commit(tree, (), author="seed", time=1, title="t", trailers={}))
    assert git("status", "--porcelain") == ""
    assert (repository.path / "a.py").read_bytes() == b"1"
    git("worktree", "add", "-q", "-b", "side", str(tmp_path / "wt"))
    linked = Repository.open(tmp_path / "wt")
    assert linked.host == repository.host
    assert linked.common == repository.common


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RefusedError, match="empty"):
        Repository.create(tmp_path)
    with pytest.raises(NotFoundError, match="git init"):
        Repository.open(tmp_path)


@pytest.mark.parametrize("name", ["", "a b", "../x", "x.lock", "a..b", "-x", "a/b", "x."])
def test_run_names_that_no_ref_can_hold_are_refused(repository: Repository, name: str) -> None:
    with pytest.raises(UsageError, match="run's name"):
        repository.journal(name, lambda entry: None)


async def test_packs_stay_few_and_keep_all_and_git_lists_commits(repository: Repository, git, monkeypatch) -> None:
    monkeypatch.setattr("evogit.repository.git.MANY_PACKS", 2)
    journal = repository.journal("r", lambda entry: None)
    tree = repository.trees.write(None, {"a.py": b"1"})
    commit = repository.commit(tree, (), author="a1", time=1, title="t", trailers={})
    kept = []
    journal.keep({"stdout": b"x"}, commit)
    for number in range(6):
        kept.append(journal.keep({"output": b"%d" % number}))
        await repository.pack()
    packs = list((repository.common / "objects" / "pack").glob("*.pack"))
    assert len(packs) <= 3
    assert git("count-objects").startswith("0 objects")
    again = Repository.open(repository.path)
    assert again.tree_of(commit) == tree
    assert [again.trees.files(each, lambda _: True)["output"] for each in kept] == [b"%d" % each for each in range(6)]
    git("commit-graph", "verify")
    git("fsck", "--strict")


def test_notes_show_in_plain_git_log_and_grow(repository: Repository, git) -> None:
    tree = repository.trees.write(None, {"a.py": b"1"})
    one, two = (repository.commit(tree, (), author="a1", time=at, title="t", trailers={}) for at in (1, 2))
    repository.write_notes("r", {one: "ok on train\n"})
    before = repository.target("refs/notes/evogit/r")
    repository.write_notes("r", {one: "ok on train\n"})
    assert repository.target("refs/notes/evogit/r") == before
    repository.write_notes("r", {one: "ok on train\n", two: "timeout on train\n"})
    assert "ok on train" in git("log", "-1", "--notes=evogit/*", one)
    assert "timeout on train" in git("log", "-1", "--notes=evogit/*", two)


def test_a_host_keeps_its_name_whatever_the_environment_says(repository: Repository, monkeypatch) -> None:
    monkeypatch.setitem(os.environ, "GIT_DIR", "/nonexistent")
    assert Repository.open(repository.path).host == repository.host
    assert (repository.common / "evogit" / "host").read_text().strip() == repository.host


def test_refs_in_the_way_are_named_before_anything_is_written(repository: Repository, git) -> None:
    git("commit", "-q", "--allow-empty", "-m", "x")
    repository.check_room("r")
    for ref in ("heads/evogit", "heads/evogit/r", "notes/evogit"):
        git("update-ref", f"refs/{ref}", "HEAD")
        with pytest.raises(RefusedError, match=f"found a ref of that name; try `git .*{ref.split('/', 1)[1]}"):
            repository.check_room("r")
        git("update-ref", "-d", f"refs/{ref}")


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_what_was_recorded_stays(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FILLER, str(tmp_path / "repo")], capture_output=True, text=True)
    assert done.stdout.startswith("cannot write")
    assert "run again" in done.stdout
    read: list[Entry] = []
    Repository.open(tmp_path / "repo").journal("r", read.append)
    assert len(read) == int(done.stdout.split()[-1])


READER = """
import os, sys, getpass, pygit2
from pathlib import Path
from evogit.core import (RepositoryError)
from evogit.events import (Adopted)
from evogit.repository import Repository
pygit2.option(pygit2.enums.Option.SET_OWNER_VALIDATION, 0)
for level in (pygit2.enums.ConfigLevel.GLOBAL, pygit2.enums.ConfigLevel.XDG):
    pygit2.settings.search_path[level] = "/nonexistent"
os.setgid(65534), os.setuid(65534)
repository, read = Repository.open(Path(sys.argv[1])), []
journal = repository.journal("r", read.append)
print(len(read), len(repository.engines("r").alive()))
for write in (lambda: journal.append(read[0].event), repository.engines("r").enter(join=True).__enter__):
    try:
        write()
    except RepositoryError as error:
        print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody without rights")
def test_who_may_only_read_can_look_and_is_told_when_writing(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and "pytest" in str(folder):
            folder.chmod(0o755)
    repository = Repository.create(tmp_path / "repo")
    repository.journal("r", lambda entry: None).append(Adopted(agent="a1", candidate="1" * 40))
    with repository.engines("r").enter(join=False):
        done = subprocess.run([sys.executable, "-c", READER, str(tmp_path / "repo")], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "1 1", done.stderr
    assert "ermission denied" in lines[1]
    assert "ask its owner" in lines[2]


async def test_candidates_that_a_fetch_left_behind_are_missed_in_a_sentence(repository: Repository) -> None:
    tree = repository.trees.write(None, {"a": b"1"})
    here = repository.commit(tree, (), author="a1", time=1, title="t", trailers={})
    for look in (repository.diff, repository.line_changes):
        with pytest.raises(RepositoryError):
            look(here, "1" * 40)
    with pytest.raises(RepositoryError):
        repository.merger.draft(None, tree, "1" * 40)


def test_a_name_that_is_no_utf_8_is_not_asked_for(repository: Repository, git) -> None:
    git("config", "user.name", "Ada")
    assert repository.user == "Ada"
    with (repository.common / "config").open("ab") as config:
        config.write(b"[user]\nname = Andr\xe9\n")
    assert Repository.open(repository.path).user != "Ada"
