"""An unpacked archive with links in its `.git`, and the real command: nothing of the user's changes through them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from msgspec import to_builtins

from evogit.core import RefusedError, RepositoryError
from evogit.repository import Repository
from evogit.repository.refs import below
from evogit.review.run_list import ListedRun
from evogit.testing import RecordedRun
from evogit.trust import state_folder
from tests import plain_git
from tests.own import Own

from .conftest import Cli, Small

RUN = ("run", "sine", "--evaluations", "3", "--sandbox", "none")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose files are called like those that EvoGit writes and removes."""
    home = tmp_path / "victim"
    for name in (".bashrc", "toy", "toy.log", "toy.lock", "poetry.lock", "keys/a", "logs/a", "flat/.netrc"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"mine: {name}")
        os.utime(home / name, (1e9, 1e9))
    return home


def content(home: Path) -> dict[Path, object]:
    return {path: path.read_bytes() if path.is_file() else "folder" for path in home.rglob("*")}


def put_link(folder: Path, place: str, target: Path) -> None:
    link = folder / ".git" / place
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


@pytest.mark.parametrize(
    ("command", "place", "target", "code"),
    [
        (("clean", "toy", "--all", "--yes"), "evogit/keys", ".", 1),
        (("clean", "toy", "--all", "--yes"), "evogit/logs", ".", 1),
        (("clean", "toy", "--all", "--yes"), "evogit/cache", ".", 0),
        (("clean", "toy", "--all", "--yes"), "evogit/remotes", ".", 1),
        (("clean", "toy", "--all", "--yes"), "evogit", ".", 1),
        (("clean", "toy", "--all", "--yes"), "evogit/engines/toy", "flat", 1),
        (("doctor", "runs", "--repair"), "evogit/cache", ".", 0),
        (("doctor", "runs", "--repair"), "evogit/engines", ".", 1),
        (("clean", "toy", "--yes"), "evogit/engines/toy", "flat", 1),
        (("status",), "evogit/engines/toy", "flat", 1),
        (("status",), "evogit/host", ".bashrc", 1),
        (("stop",), "evogit/engines/toy", "flat", 1),
        (("sync", "server.git"), "evogit/remotes", ".", 1),
        (("sync", "server.git"), "evogit/remotes/toy.lock", ".bashrc", 1),
        (("sync", "server.git"), "evogit/remotes/toy.draft", ".bashrc", 0),
        (("sync", "server.git"), "evogit/remotes/toy.json", ".bashrc", 1),
    ],
)
def test_a_link_of_an_archive_is_not_followed(
    small: Small, cli: Cli, home: Path, tmp_path: Path, command: tuple[str, ...], place: str, target: str, code: int
) -> None:
    plain_git.git(tmp_path, "init", "-q", "--bare", "server.git")
    put_link(small.folder, place, home / target)
    before = content(home)
    done = cli(
        "-C", small.folder, *command[:1], *(str(tmp_path / word) if "." in word else word for word in command[1:])
    )
    assert content(home) == before
    assert (done.code, place.rpartition("/")[2] in done.err) == (code, code != 0), done.err


@pytest.mark.parametrize("place", ["evogit/host", "evogit/keys/toy", "evogit/engines/toy/h-123456", "evogit/cache/toy"])
def test_nothing_waits_for_a_pipe_of_an_archive(small: Small, cli: Cli, place: str) -> None:
    pipe = small.folder / ".git" / place
    pipe.parent.mkdir(parents=True, exist_ok=True)
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    assert cli("-C", small.folder, "status").code == int("cache" not in place)


@pytest.mark.parametrize(
    "place",
    [
        *(".git/config", ".git/packed-refs", ".git/shallow", ".git/index", ".git/commondir", ".git/HEAD"),
        *(".git/info/exclude", ".git/objects/info/alternates", ".git/refs/x", ".git/logs/refs/x"),
    ],
)
def test_nothing_waits_for_a_pipe_in_the_place_of_a_file_of_git(small: Small, cli: Cli, place: str) -> None:
    pipe = small.folder / place
    pipe.parent.mkdir(parents=True, exist_ok=True)
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    for command in (("-C", small.folder, "status"), ("-C", small.folder / ".git", "status")):
        done = cli(*command)
        assert (done.code, str(pipe) in done.err) == (1, True)


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes"])
def test_nothing_waits_for_a_pipe_at_the_root_of_a_checkout(small: Small, cli: Cli, name: str) -> None:
    os.mkfifo(small.folder / name)
    done = cli("-C", small.folder, "diff", "seed", "best")
    assert (done.code, name in done.err) == (1, True)


@pytest.mark.parametrize("words", [("report",), ("show", "best"), ("diff", "seed", "best")])
def test_a_damaged_index_is_one_sentence(small: Small, cli: Cli, words: tuple[str, ...]) -> None:
    (small.folder / ".git" / "index").write_bytes(b"DIRC\0\0\0\2\xff\xff\xff\xff" + bytes(30))
    done = cli("-C", small.folder, *words)
    assert (done.code, "index" in done.err, "Traceback" in done.err) == (1, True, False)


def test_a_journal_that_measured_something_else_is_not_briefed(tmp_path: Path, cli: Cli) -> None:
    run = RecordedRun(tmp_path / "clone", "demo", task="circle_packing")
    seed = run.add_files({"main.py": b"VALUE = 1\n"}, value=1.0)
    run.add_files({"main.py": b"VALUE = 2\n"}, seed, value=2.0)
    done = cli("show", "--brief", cwd=tmp_path / "clone")
    assert (done.code, "sum_radii" in done.err) == (4, True)


def test_a_branch_that_is_no_text_is_one_sentence(small: Small, cli: Cli) -> None:
    (small.folder / ".git" / "HEAD").write_bytes(b"ref: refs/heads/\xff\xfe\n")
    assert cli("-C", small.folder, "report").code == 0
    assert "Traceback" not in cli("-C", small.folder, "land", "best", "--dry-run").err


def test_the_list_of_runs_goes_on_behind_a_repository_that_cannot_be_read(
    small: Small, cli: Cli, tmp_path: Path
) -> None:
    listed = [ListedRun(repository=str(place), run="toy", pid=1, exit=0) for place in (tmp_path / "bad", small.folder)]
    shutil.copytree(small.folder, tmp_path / "bad")
    state = state_folder({"XDG_STATE_HOME": str(tmp_path / "state")})
    state.mkdir(parents=True)
    (state / "runs.jsonl").write_text("".join(f"{json.dumps(to_builtins(each))}\n" for each in listed))
    (tmp_path / "bad" / ".git" / "packed-refs").unlink(missing_ok=True)
    os.mkfifo(tmp_path / "bad" / ".git" / "packed-refs")
    for _ in range(2):
        [bad, good] = cli("status", "--all", "--json", XDG_STATE_HOME=str(tmp_path / "state")).json["runs"]
        assert (good["trouble"], good["best"], "packed-refs" in bad["trouble"]) == ("", 2.0, True)


@pytest.mark.parametrize("command", [("check", "--uncommitted"), ("run", "--evaluations", "1")])
def test_nothing_waits_for_a_pipe_in_the_place_of_ignored_names(
    cli: Cli, tmp_path: Path, command: tuple[str, ...]
) -> None:
    own = Own.make(tmp_path / "own")
    os.mkfifo(own.folder / ".gitignore")
    done = cli(*command, "--sandbox", "none", cwd=own.folder)
    assert (done.code, ".gitignore" in done.err) == (1, True)


@pytest.mark.parametrize("place", ["refs", "refs/heads/evogit/toy", "refs/evogit/toy/agents", "refs/notes/evogit"])
def test_no_command_walks_through_a_link_among_refs(small: Small, cli: Cli, tmp_path: Path, place: str) -> None:
    repository = Repository.open(small.folder)
    lock = tmp_path / "far" / "a" / "b.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("theirs")
    os.utime(lock, (1e9, 1e9))
    put_link(small.folder, place, tmp_path / "far")
    for command in (
        ("status",),
        ("doctor", "runs", "--repair"),
        ("doctor",),
        ("clean", "toy", "--yes"),
        ("clean", "toy", "--all", "--yes"),
    ):
        done = cli("-C", small.folder, *command)
        assert (done.code, str(small.folder / ".git" / place) in done.out + done.err) == (1, True)
    if place != "refs":  # nor what was opened before
        assert list(below(repository.common, place)) == []
        assert repository.locks("toy") == []
        with pytest.raises(RefusedError, match="link"):
            repository.check_room("toy")
        with pytest.raises(RepositoryError, match="link"):
            repository.sweep(())
    assert lock.read_text() == "theirs"


@pytest.mark.parametrize(
    "command", [("clean", "toy", "--all", "--yes"), ("sync", "server.git"), ("status",), ("doctor", "runs", "--repair")]
)
@pytest.mark.parametrize(
    ("place", "target"),
    [
        ("logs", "."),
        ("logs/refs/evogit/toy/agents", "flat"),
        ("logs/refs/notes/evogit/toy", ".bashrc"),
        ("refs/evogit/toy/keep/x", ".bashrc"),
        ("refs/evogit/toy/journal/x", "new"),
        ("packed-refs", ".bashrc"),
        ("index", ".bashrc"),
    ],
)
def test_nothing_is_written_or_removed_through_a_link_in_a_git_folder(
    small: Small, cli: Cli, home: Path, command: tuple[str, ...], place: str, target: str
) -> None:
    put_link(small.folder, place, home / target)
    before = content(home)
    done = cli("-C", small.folder, *command)
    assert (done.code, content(home), str(small.folder / ".git" / place) in done.err) == (1, before, True)


def test_a_folder_of_git_that_cannot_be_listed_is_refused(small: Small) -> None:
    """A path in it can be opened all the same. The tests may run as root, who can list any."""
    name = "a" * 200
    (small.folder / ".git" / "logs").mkdir(exist_ok=True)
    folder = os.open(small.folder / ".git" / "logs", os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(30):  # a path that is too long for the system
        os.mkdir(name, dir_fd=folder)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    with pytest.raises(RepositoryError, match="cannot be listed"):
        Repository.open(small.folder)
    shutil.rmtree(small.folder / ".git" / "logs")


@pytest.mark.parametrize("place", ["objects", "objects/pack", "objects/info", "each"])
def test_nothing_is_swept_through_links_among_objects(small: Small, cli: Cli, tmp_path: Path, place: str) -> None:
    """The archive has objects of its own elsewhere, so that it is whole."""
    theirs, mine = tmp_path / "theirs", small.folder
    shutil.copytree(mine, theirs)
    objects = theirs / ".git" / "objects"
    names = [f"objects/{path.name}" for path in objects.iterdir()] if place == "each" else [place]
    for file in objects.rglob("*"):
        os.utime(file, (1e9, 1e9))
    for name in names:
        put_link(mine, name, theirs / ".git" / name)
    before, refs = content(theirs), plain_git.git(mine, "for-each-ref")
    done = cli("-C", mine, "clean", "--evidence", "all-but-best", "--yes")
    assert (done.code, "link" in done.err) == (1, True)
    assert (content(theirs), plain_git.git(mine, "for-each-ref")) == (before, refs)


def test_nothing_waits_for_a_pipe_among_the_worktrees_of_an_archive(small: Small, cli: Cli) -> None:
    (small.folder / ".git" / "worktrees" / "x").mkdir(parents=True)
    os.mkfifo(small.folder / ".git" / "worktrees" / "x" / "HEAD")
    assert cli("-C", small.folder, "clean", "toy", "--all", "--yes").code == 1


@pytest.mark.parametrize(
    ("words", "name", "target"),
    [
        (("export", "toy.csv"), "toy.csv", ".bashrc"),
        (("export", "-o", "out/toy.csv"), "out", "."),
        (("export", "toy.html"), "toy.html", ".bashrc"),
        (("run", "sine", "--record", "calls"), "calls", ".bashrc"),
        (("bench", "sine"), "evogit-bench", "."),
        (("bench", "sine"), "evogit-bench/runs/sine/evolve-0.json", ".bashrc"),
        (("bench", "sine", "-o", "results"), "results/evolve-0.json", ".bashrc"),
        (("bench", "sine", "-o", "results"), "results/repositories/tournament-0.git", "."),
        (("export", "best", "out/flat"), "out", "."),
        (("audit", "sine", "--output", "out/flat"), "out", "."),
    ],
)
def test_a_committed_link_does_not_say_where_output_goes(
    small: Small, cli: Cli, home: Path, words: tuple[str, ...], name: str, target: str
) -> None:
    (small.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (small.folder / name).symlink_to(home / target)
    before = content(home)
    done = cli(*words, cwd=small.folder)
    assert (done.code, content(home)) == (2, before)
    assert Path(name).name in done.err


def test_output_does_not_go_into_the_git_folder(small: Small, cli: Cli) -> None:
    (small.folder / "graph.csv").symlink_to(".git/hooks/post-checkout")
    assert cli("export", "graph.csv", cwd=small.folder).code == 2
    assert not (small.folder / ".git/hooks/post-checkout").exists()


@pytest.mark.parametrize("words", [("run", "circle_packing"), ("demo",)])
def test_a_link_is_not_the_folder_of_a_run(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """It may lead to an empty folder of the user's, in which a seed would be, or to a run that pays for models."""
    (tmp_path / "clone").mkdir()
    (tmp_path / "ssh").mkdir()
    for name in ("circle_packing", "demo"):
        (tmp_path / "clone" / f"evogit-{name}").symlink_to("../ssh")
    done = cli(*words, "--sandbox", "none", cwd=tmp_path / "clone")
    assert (done.code, "found a link" in done.err, list((tmp_path / "ssh").iterdir())) == (4, True, [])
    monkeypatch.chdir(tmp_path / "clone")
    with pytest.raises(RefusedError, match="found a link"):
        Repository.default_folder("demo")


def test_output_goes_where_a_link_within_the_repository_or_of_the_users_leads(
    small: Small, cli: Cli, tmp_path: Path
) -> None:
    (small.folder / "pictures").mkdir()
    (small.folder / "out").symlink_to("pictures")
    assert cli("export", "out/a.csv", cwd=small.folder).code == 0
    (tmp_path / "mine").symlink_to(small.folder / "pictures")
    assert cli("export", tmp_path / "mine" / "b.csv", cwd=small.folder).code == 0
    assert {path.name for path in (small.folder / "pictures").iterdir()} == {"a.csv", "b.csv"}


@pytest.fixture
def archive(cli: Cli, tmp_path: Path) -> Path:
    """A repository of EvoGit's own that has no run yet, as it comes out of an archive; and a task beside it."""
    cli("new", "sine")
    return Repository.create(tmp_path / "archive").path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "place", "target"),
    [
        ((), "evogit", "."),
        ((), "evogit/engines/toy", "flat"),
        ((), "evogit/engines/.toy.starting", ".bashrc"),
        ((), "evogit/keys", "."),
        ((), "refs/evogit/toy", "."),
        ((), "refs/evogit", "."),
        (("--detach",), "evogit/logs", "."),
        (("--detach",), "evogit/logs/toy.log", ".bashrc"),
        ((), "../solution.py", ".bashrc"),
    ],
)
def test_a_run_refuses_links_of_an_archive(
    cli: Cli, archive: Path, home: Path, words: tuple[str, ...], place: str, target: str
) -> None:
    put_link(archive, place, home / target)
    before = content(home)
    done = cli("-C", archive, *RUN, "--name", "toy", *words)
    assert content(home) == before
    assert (done.code in (1, 4), place.rpartition("/")[2] in done.err) == (True, True), done.err


@pytest.mark.slow
def test_a_run_works_in_a_worktree_and_through_the_users_own_links(cli: Cli, tmp_path: Path) -> None:
    cli("new", "sine")
    plain_git.git(tmp_path, "init", "-q", "repo")
    plain_git.git(tmp_path / "repo", "commit", "-q", "--allow-empty", "-m", "first")
    plain_git.git(tmp_path / "repo", "worktree", "add", "-q", "../tree")
    (tmp_path / "short").symlink_to(tmp_path / "tree")
    for name in ("repo", "tree", "short"):
        done = cli("-C", name, *RUN, "--name", f"in-{name}")
        assert done.code == 0, done.err
        assert cli("-C", name, "status", "--name", f"in-{name}", "--json").json["run"] == f"in-{name}"
    assert {path.name for path in (tmp_path / "repo/.git/evogit/keys").iterdir()} == {"in-repo", "in-tree", "in-short"}
    for name in ("repo", "tree", "short"):
        assert cli("-C", "short", "clean", f"in-{name}", "--all", "--yes").code == 0
    assert not (tmp_path / "repo/.git/evogit").exists()
