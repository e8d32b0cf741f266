"""EvoGit's own files where a stranger made their names: an archive brings its `.git/evogit` along."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from evogit.core import EvoGitError, RefusedError, RepositoryError, UsageError
from evogit.repository import Repository
from evogit.repository.git import held_folder
from evogit.repository.state_files import read_contact
from evogit.repository.state_folder import StateFolder

Act = Callable[[Repository], object]
COMMIT = "1" * 40


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Somebody's home, where every name is one that EvoGit has a use for; all of it is old."""
    home = tmp_path / "home"
    names = ("host", "r", "r.log", "r.json", "r.lock", f"{COMMIT[:7]}.md", "page.html", "x.lock", "h-123456")
    for name in (*names, "keys/y", "logs/y", "ab/y"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"mine: {name}")
        os.utime(home / name, (1e9, 1e9))
    return home


def content(home: Path) -> dict[Path, object]:
    return {path: path.read_bytes() if path.is_file() else "folder" for path in home.rglob("*")}


def enter(repository: Repository) -> None:
    with repository.engines("r").enter(join=False) as name:
        repository.engines("r").note(name, [{}])


def append(repository: Repository) -> None:
    os.write(repository.open_log("r"), b"$(touch x)\n")


def merge(repository: Repository) -> None:
    base, ours, theirs = (repository.trees.write(None, {"f": text}) for text in (b"a\nb\n", b"x\nb\n", b"y\nb\n"))
    assert repository.merger.draft(base, ours, theirs).unsettled == ["f"]


def write_page(repository: Repository) -> None:
    from evogit.cli.commands.serve import write_passage

    write_passage(repository.state, "http://127.0.0.1")


ACTS: dict[str, Act] = {
    "host": lambda repository: repository.host,
    "name": lambda repository: repository.name_clone("beta"),
    "engine": enter,
    "alive": lambda repository: repository.engines("r").alive(),
    "log": append,
    "key": lambda repository: repository.keys.make("r"),
    "own key": lambda repository: repository.keys.keep("r", b"0" * 32),
    "forget": lambda repository: repository.forget_run("r"),
    "snapshot": lambda repository: repository.snapshot("r").write([b"x"]),
    "snapshot is forgotten": lambda repository: repository.snapshot("r").forget(),
    "holdout": lambda repository: repository.holdouts.show("task"),
    "landing": lambda repository: repository.keep_landing_text("r", COMMIT, "text"),
    "contact": lambda repository: repository.contact("r"),
    "page": write_page,
    "merge": merge,
    "locks": lambda repository: repository.clear_locks("r"),
}

READS = (("host", "host"), ("key", "keys/r"), ("contact", "remotes/r.json"))
OPENED = (("alive", "engines/r/h-123456"), ("engine", "engines/.r.starting"), ("log", "logs/r.log"))

LINKS = (
    *("", "engines", "engines/r", "engines/.r.starting", "engines/r/h-123456", "logs", "logs/r.log", "keys", "keys/r"),
    *("cache", "cache/r", "land", "land/r", f"land/r/{COMMIT[:7]}.md", "remotes", "remotes/r.json", "remotes/r.lock"),
    *("holdouts", "host", "page.html", "scratch", "scratch/objects", "scratch/objects/ab", "scratch/merge-x"),
    *("../refs/evogit/r", "../refs/evogit"),
)


def put_link(repository: Repository, place: str, target: Path) -> Path:
    """A link in the place of what is there."""
    link = repository.state.path / place if place else repository.state.path
    if not link.is_symlink():
        link.parent.mkdir(parents=True, exist_ok=True)
        if link.is_dir():
            shutil.rmtree(link)
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    return link


@pytest.mark.parametrize("target", [".", "r"])
@pytest.mark.parametrize("place", LINKS)
def test_nothing_is_changed_through_a_link(home: Path, repository: Repository, place: str, target: str) -> None:
    before = content(home)
    for name, act in ACTS.items():
        put_link(repository, place, home / target)
        with suppress(EvoGitError, OSError):
            act(Repository.open(repository.path))
        assert content(home) == before, name


@pytest.mark.parametrize(
    ("act", "place"),
    [
        *(("engine", place) for place in ("", "engines", "engines/r", "engines/.r.starting", "engines/r/h-123456")),
        *(("log", place) for place in ("logs", "logs/r.log")),
        *(("key", place) for place in ("keys", "keys/r")),
        *(("host", place) for place in ("", "host")),
        *(("forget", place) for place in ("keys", "logs", "remotes")),
        *(("contact", place) for place in ("remotes", "remotes/r.json")),
        ("landing", "land"),
        ("holdout", "holdouts"),
        ("merge", "scratch"),
    ],
)
def test_a_link_is_refused_by_name(home: Path, repository: Repository, act: str, place: str) -> None:
    link = put_link(repository, place, home)
    with pytest.raises(RepositoryError, match=re.escape(str(link))):
        ACTS[act](Repository.open(repository.path))


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder"])
@pytest.mark.parametrize(("act", "place"), [*READS, *OPENED])
def test_what_is_no_file_is_refused_without_waiting(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, act: str, place: str, kind: str
) -> None:
    path = repository.state.path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        monkeypatch.chdir(path.parent)  # a path of a socket has 107 bytes at most
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path.name)
    with pytest.raises(RepositoryError, match=path.name):
        ACTS[act](Repository.open(repository.path))


@pytest.mark.parametrize(("act", "place"), READS)
def test_a_huge_file_is_not_read(repository: Repository, act: str, place: str) -> None:
    path = repository.state.path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(RepositoryError, match=path.name):
        ACTS[act](Repository.open(repository.path))


def test_a_log_with_another_name_is_not_appended_to(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    repository.log_file("r").parent.mkdir()
    os.link(tmp_path / "mine", repository.log_file("r"))
    with pytest.raises(RepositoryError):
        repository.open_log("r")


def test_only_files_that_are_called_like_engines_are_removed(repository: Repository) -> None:
    engines = repository.state.path / "engines" / "r"
    engines.mkdir(parents=True)
    for name in ("notes.txt", "h-123456", ".hidden"):
        (engines / name).touch()
    enter(repository)
    assert {path.name for path in engines.iterdir()} == {"notes.txt", ".hidden"}


@pytest.mark.parametrize("name", ["../../../x", "..", "/etc/x", "a\nb", "", "x" * 300])
def test_a_clone_does_not_take_a_name_that_leads_elsewhere(repository: Repository, name: str) -> None:
    (repository.state.path / "host").write_text(name)
    with pytest.raises(RepositoryError, match="host"):
        repository.engines("r")


@pytest.mark.parametrize("run", ["../../x", "..", "", "/x", "a/b"])
def test_a_run_does_not_lead_elsewhere(repository: Repository, run: str) -> None:
    for act in (repository.engines, repository.snapshot, repository.log_file, repository.open_log):
        with pytest.raises(UsageError):
            act(run)
    for act in (repository.keys.make, repository.keys.find, repository.keys.forget):
        with pytest.raises(RepositoryError):
            act(run)


def test_git_obeys_no_configuration_that_an_archive_brings(repository: Repository, tmp_path: Path) -> None:
    scratch, other = repository.state.path / "scratch", repository.state.path / "other"
    for folder in (scratch, other):
        for name in ("objects", "refs", "info"):
            (folder / name).mkdir(parents=True)
        (folder / "info" / "attributes").write_text("* merge=theirs\n")
        (folder / "HEAD").write_text("ref: refs/heads/none\n")
        (folder / "config").write_text(
            f'[core]\n\trepositoryformatversion = 0\n\tbare = true\n[merge "theirs"]\n\tdriver = touch {tmp_path}/ran\n'
        )
    (scratch / "commondir").write_text("../other\n")
    before = set(scratch.iterdir())
    merge(repository)
    assert not (tmp_path / "ran").exists()
    assert set(scratch.iterdir()) > before
    del repository.__dict__["merger"]  # which leaves nothing behind
    assert set(scratch.iterdir()) == before


def test_packs_of_another_repository_stay(repository: Repository, tmp_path: Path) -> None:
    packs = repository.common / "objects" / "pack"
    packs.rename(tmp_path / "pack")
    packs.symlink_to(tmp_path / "pack")
    for suffix in ("pack", "idx"):
        (tmp_path / "pack" / f"pack-{COMMIT}.{suffix}").write_text("theirs")
        os.utime(tmp_path / "pack" / f"pack-{COMMIT}.{suffix}", (1e9, 1e9))
    with suppress(RepositoryError):
        repository.sweep(())
    assert len(list((tmp_path / "pack").iterdir())) == 2


def test_a_note_about_a_server_that_nests_without_end_is_none(repository: Repository) -> None:
    (repository.state.path / "remotes").mkdir()
    for text in ("[" * 100_000, json.dumps({"remote": 7}), "{}"):
        (repository.state.path / "remotes" / "r.json").write_text(text)
        assert read_contact(StateFolder(repository.common), "r") is None


# --- the checkout of a new repository -------------------------------------------------------------------------------


def seed_of(repository: Repository) -> str:
    tree = repository.trees.write(None, {"a.py": b"theirs", "docs/b.txt": b"theirs"})
    return repository.commit(tree, (), author="a1", time=1, title="seed", trailers={})


@pytest.mark.parametrize(("name", "target"), [("a.py", "r"), ("docs", "."), ("docs/b.txt", "r")])
def test_the_seed_is_not_checked_out_through_a_link(repository: Repository, home: Path, name: str, target: str) -> None:
    before = content(home)
    (repository.path / name).parent.mkdir(exist_ok=True)
    (repository.path / name).symlink_to(home / target)
    with pytest.raises(RefusedError, match=name):
        repository.plant(seed_of(repository))
    assert content(home) == before


def test_the_seed_is_not_checked_out_where_an_archive_says(repository: Repository, home: Path) -> None:
    before = content(home)
    with (repository.common / "config").open("a") as config:
        config.write(f"[core]\n\tworktree = {home}\n")
    with suppress(RepositoryError):
        repository = Repository.open(repository.path)
        repository.plant(seed_of(repository))
    assert content(home) == before


def test_a_checkout_that_was_cut_off_is_done_again(repository: Repository) -> None:
    (repository.path / "docs").mkdir()
    (repository.path / "a.py").write_text("the")
    repository.plant(seed_of(repository))
    assert (repository.path / "a.py").read_text() == (repository.path / "docs" / "b.txt").read_text() == "theirs"


# --- folders in /tmp ------------------------------------------------------------------------------------------------


def test_names_that_others_made_in_a_shared_folder_are_left_alone(tmp_path: Path, home: Path) -> None:
    before = content(home)
    (tmp_path / "x-link").symlink_to(home)
    os.utime(home, (1e9, 1e9))
    os.mkfifo(tmp_path / "x-pipe")
    (tmp_path / "x-left").mkdir()
    os.utime(tmp_path / "x-left", (1e9, 1e9))
    with held_folder(tmp_path, "x-") as folder:
        assert {path.name for path in tmp_path.glob("x-*")} == {"x-link", "x-pipe", folder.name}
    assert content(home) == before
