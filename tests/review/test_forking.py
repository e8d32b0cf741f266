"""Runs that begin where another one was: what they take over, that they repeat, and that each is whole by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from evogit.core import Evaluation, NotFoundError, RefusedError, UsageError
from evogit.events import Adopted, Decision, Evaluated, Event, Proposed
from evogit.history import History
from evogit.repository import Repository
from evogit.review import open_run
from evogit.review.forking import make, plan
from evogit.review.landing import follow_undo
from evogit.review.removing import remove
from evogit.testing import run_started
from tests.plain_git import git


class Hosts:
    """A run that two clones wrote, as one of them has it after a fetch."""

    def __init__(self, folder: Path) -> None:
        self.repository = Repository.create(folder)
        self.ids: list[str] = []
        self.candidates: list[str] = []
        self.tell("here", run_started(population="refs/heads/evogit/r/"))
        self.born("here", 1.0, ())
        self.born("there", 2.0, (0,))
        self.tell("here", Adopted(agent="a1", candidate=self.candidates[1]))
        self.born("there", 3.0, (1,))
        self.born("here", 0.5, (2,))

    def tell(self, host: str, event: Event) -> None:
        (self.repository.common / "evogit" / "host").write_text(host)
        entry = self.repository.journal("old", lambda entry: None).append(event)
        assert entry
        self.ids.append(entry.id)

    def born(self, host: str, value: float, parents: tuple[int, ...]) -> None:
        (self.repository.common / "evogit" / "host").write_text(host)
        tree = self.repository.trees.write(None, {"a": str(value).encode()})
        before = tuple(self.candidates[i] for i in parents)
        commit = self.repository.commit(tree, before, author="a1", time=1, title="t", trailers={})
        self.repository.journal("old", lambda entry: None).keep({}, commit)
        self.candidates.append(commit)
        proposed = {"engine": "e", "move": len(self.candidates), "agent": "a1", "tree": tree, "parents": before}
        self.tell(host, Proposed(candidate=commit, operator="mutation" if parents else "seed", **proposed))  # type: ignore[arg-type]
        evaluation = Evaluation(status="ok", metrics={"score": value}, evaluator="v")
        self.tell(host, Evaluated(candidate=commit, evaluation=evaluation))


def begin(hosts: Hosts, at: str, name: str = "new") -> History:
    (hosts.repository.common / "evogit" / "host").write_text("here")
    make(hosts.repository, fork := plan(hosts.repository, None, at, name))
    history = open_run(hosts.repository, name).history
    assert [each.commit for each in history.phylogeny] == [each.commit for each in fork.history.phylogeny]
    return history


def test_a_moment_is_everything_that_all_hosts_had_written(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path / "r")
    repository, [seed, second, third, _] = hosts.repository, hosts.candidates
    history = begin(hosts, hosts.ids[5])  # here adopted what there was bred; there has gone on since
    assert [each.commit for each in history.phylogeny] == [seed, second]
    assert (history.heads, history.best) == ({"a1": second}, second)
    assert history.forked
    assert (history.forked.run, history.forked.entry) == ("old", hosts.ids[5])
    assert history.started
    assert history.started.population == "refs/heads/evogit/new/"
    for at in (third, third[:9], "@3", hosts.ids[7]):
        again = plan(repository, "old", at, "other")
        assert again.entries[-1].id == hosts.ids[7]
    assert len(plan(repository, "old", "seed", "other").history.phylogeny) == 1
    own = git(repository.path, "rev-list", "--first-parent", "refs/evogit/new/journal/here").split()
    assert own[1:] == [hosts.ids[i] for i in (5, 2, 1, 0)]


@pytest.mark.slow
def test_a_fork_and_its_origin_live_without_each_other(tmp_path: Path) -> None:
    for gone, left in (("old", "new"), ("new", "old")):
        hosts = Hosts(tmp_path / gone)
        begin(hosts, "best")
        remove(hosts.repository, gone)
        git(hosts.repository.path, "-c", "gc.reflogExpire=now", "gc", "-q", "--prune=now")
        history = open_run(Repository.open(hosts.repository.path), left).history
        assert len(history.phylogeny) == (3 if left == "new" else 4)
        for candidate in history.phylogeny:
            assert hosts.repository.tree_of(candidate.commit) == candidate.tree
        git(hosts.repository.path, "fsck", "--strict")


def test_a_fork_of_a_fork_tells_the_nearer_one_and_what_both_decided(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path / "r")
    hosts.tell("here", Decision(kind="guide", by="p", reason="be bold"))
    begin(hosts, hosts.ids[-1], "new")
    with pytest.raises(UsageError, match="--at"):
        plan(hosts.repository, None, "best", "newer")
    make(hosts.repository, plan(hosts.repository, "new", hosts.ids[-1], "newer"))
    history = open_run(hosts.repository, "newer").history
    assert history.forked
    assert history.forked.run == "new"
    assert history.guidance == ["be bold"]


def test_undoing_a_landing_of_the_origin_leaves_its_branch(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path / "r")
    branch, landed = "refs/heads/evogit/old/land/abc", hosts.candidates[1]
    hosts.repository.move_branch(branch, landed)
    hosts.tell("here", Decision(kind="land", by="p", candidates=(landed,), branch=branch, commit=landed))
    history = begin(hosts, hosts.ids[-1])
    assert "stays" in follow_undo(hosts.repository, history, hosts.ids[-1])
    assert hosts.repository.target(branch) == landed


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Hosts:
    return Hosts(tmp_path_factory.mktemp("hosts") / "r")


@pytest.mark.parametrize(
    ("at", "error", "says"),
    [
        ("@9", NotFoundError, "4 evaluations"),
        ("@0", UsageError, "from 1 on"),
        ("@x", UsageError, "from 1 on"),
        ("zebra", NotFoundError, "expected best, seed"),
        ("", NotFoundError, "expected best, seed"),
        ("ffffffff", NotFoundError, "ffffffff"),
    ],
)
def test_what_is_no_moment_is_refused(hosts: Hosts, at: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        plan(hosts.repository, None, at, "new")


def test_a_fork_takes_no_name_that_is_taken(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path / "r")
    with pytest.raises(RefusedError, match="there already"):
        plan(hosts.repository, None, "best", "old")
    early = plan(hosts.repository, None, "best", "new")
    begin(hosts, "@2")
    with pytest.raises(RefusedError, match="just now"):
        make(hosts.repository, early)
