"""`evogit clean RUN` lets go of evidence, of nothing else, and says so wherever it would have been shown."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import evogit.review.evidence_collection
import evogit.review.soundness  # noqa: F401  each command is a fork of this process
from evogit.page import details
from evogit.page.payload import FollowedRun
from evogit.repository import Repository
from evogit.repository.keeping import Keeping
from evogit.review import forking, open_run
from tests.cli.conftest import Cli, Forked, Story, environment
from tests.plain_git import git

ALL = ("--evidence", "all-but-best", "--yes")


def said(number: int) -> dict[str, bytes]:
    """What an agent said, which is much and like nothing else."""
    return {"transcript.txt": os.urandom(100_000).hex().encode() + b"\n%d\n" % number}


@dataclass(frozen=True)
class Talkative:
    """A run whose agents said much.

    seed 1.0 --- step 1.5 --- best 2.0
      \\            \\ \\--- dead 1.2
       fail          pruned 1.1
    """

    folder: Path
    seed: str
    step: str
    fail: str
    dead: str
    pruned: str
    best: str

    def transcript(self, commit: str) -> str:
        """The id of an agent's transcript."""
        tree = open_run(Repository.open(self.folder), "toy").history.sessions[commit]
        return f"{tree}:transcript.txt"

    def has(self, commit: str) -> bool:
        """Whether the transcript of a candidate's agent is there."""
        history = open_run(Repository.open(self.folder), "toy").history
        return Repository.open(self.folder).trees.exists(history.sessions[commit])


@pytest.fixture
def talkative(tmp_path: Path) -> Talkative:
    story = Story(tmp_path / "repo")
    seed = story.add(1.0, made=said(0))
    step = story.add(1.5, seed, made=said(1), adopt=True)
    fail = story.add(None, seed, agent="a2", made=said(2))
    dead = story.add(1.2, step, agent="a2", made=said(3))
    pruned = story.add(1.1, step, agent="a2", made=said(4))
    best = story.add(2.0, step, made=said(5), adopt=True)
    story.decide("prune", pruned)
    story.stop()
    age(story.folder)
    return Talkative(story.folder, seed, step, fail, dead, pruned, best)


def age(folder: Path) -> None:
    """Let an hour pass, for objects."""
    for file in (folder / ".git" / "objects").rglob("*"):
        os.utime(file, (time.time() - 3600,) * 2)


def objects(folder: Path) -> set[str]:
    """The ids of all objects."""
    return set(git(folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split())


def refs(folder: Path) -> str:
    return git(folder, "for-each-ref")


def check(cli: Cli, folder: Path) -> None:
    """All is well, for Git and for us."""
    done = cli("doctor", "runs", cwd=folder)
    assert done.code == 0, done.out
    assert "missing" not in git(folder, "fsck", "--strict")


def test_without_yes_it_says_what_would_go_and_changes_nothing(talkative: Talkative, cli: Cli) -> None:
    before = refs(talkative.folder), objects(talkative.folder)
    done = cli("clean", "toy", cwd=talkative.folder)
    assert done.code == 0
    assert "6 candidates (4 in lineages of what counts) and 17 journal entries, all of which stay" in done.out
    assert ["goes", "evidence", "of", "candidates", "that", "failed", "1", "piece"] in [
        line.split()[:8] for line in done.out.splitlines()
    ]
    assert "nothing was changed; --yes does it" in done.err
    told = cli("clean", "--evidence", "all-but-best", "--json", cwd=talkative.folder).json
    assert {owner: share["pieces"] for owner, share in told["goes"].items()} == {
        "failed candidates": 1,
        "other candidates": 1,
    }
    assert (refs(talkative.folder), objects(talkative.folder)) == before


def test_what_failed_goes_with_its_room_and_the_rest_stays(talkative: Talkative, cli: Cli) -> None:
    lost = git(talkative.folder, "rev-parse", talkative.transcript(talkative.fail)).strip()
    done = cli("clean", "toy", "--yes", "--json", cwd=talkative.folder).json
    assert done["before"] - done["after"] > 100_000
    assert lost not in objects(talkative.folder)
    kept = [talkative.seed, talkative.step, talkative.dead, talkative.pruned, talkative.best]
    assert [talkative.has(commit) for commit in (*kept, talkative.fail)] == [True] * 5 + [False]
    check(cli, talkative.folder)
    git(talkative.folder, "gc", "-q", "--prune=now")
    assert all(map(talkative.has, kept))
    check(cli, talkative.folder)


def test_lineages_of_what_counts_stay_whatever_is_asked(talkative: Talkative, cli: Cli) -> None:
    assert cli("clean", *ALL, cwd=talkative.folder).code == 0
    kept = (talkative.seed, talkative.step, talkative.pruned, talkative.best)
    assert all(map(talkative.has, kept))
    assert not any(map(talkative.has, (talkative.fail, talkative.dead)))
    assert git(talkative.folder, "cat-file", "-t", talkative.dead).strip() == "commit"
    check(cli, talkative.folder)


def test_what_is_gone_is_told_where_it_would_have_been_shown(talkative: Talkative, cli: Cli) -> None:
    sentence = "what was kept of it was thinned by `evogit clean RUN`"
    assert sentence not in cli("show", talkative.fail, cwd=talkative.folder).out
    cli("clean", "toy", "--yes", cwd=talkative.folder)
    assert sentence in cli("show", talkative.fail, cwd=talkative.folder).out
    assert sentence not in cli("show", talkative.dead, cwd=talkative.folder).out
    assert cli("show", talkative.fail, "--json", cwd=talkative.folder).json["missing"] == sentence
    done = cli("show", talkative.fail, "--file", "transcript.txt", cwd=talkative.folder)
    assert (done.code, sentence in done.err) == (3, True)
    repository = Repository.open(talkative.folder)
    followed = FollowedRun(repository, "toy")
    shown = details.session(followed, followed.history.phylogeny[talkative.fail])
    assert [each["text"] for each in shown["said"]] == [sentence]


def test_packed_objects_go_too_and_a_person_s_stay(talkative: Talkative, cli: Cli) -> None:
    folder = talkative.folder
    git(folder, "config", "gc.writeCommitGraph", "true")
    dropped = git(folder, "hash-object", "-w", "--stdin", input="a stash that was dropped\n").strip()
    shared = git(folder, "rev-parse", talkative.transcript(talkative.dead)).strip()
    mine = git(folder, "mktree", input=f"100644 blob {shared}\tcopy.txt\n").strip()
    git(folder, "gc", "-q")
    git(folder, "multi-pack-index", "write")
    age(folder)
    done = cli("clean", *ALL, "--json", cwd=folder).json
    assert done["after"] < done["before"]
    left = objects(folder)
    assert {dropped, mine, shared} <= left  # nothing names them, but they are no evidence, or of a tree of hers
    assert git(folder, "cat-file", "-p", dropped) == "a stash that was dropped\n"
    assert not talkative.has(talkative.fail)
    check(cli, folder)


def test_what_another_host_says_to_have_given_up_is_not_removed(talkative: Talkative, cli: Cli) -> None:
    """Nothing seals such a list: anybody may name a commit there that was dropped, and is wanted back."""
    mine = git(talkative.folder, "commit-tree", f"{talkative.seed}^{{tree}}", input="a week of work\n").strip()
    blob = git(talkative.folder, "hash-object", "-w", "--stdin", input=f"{mine}\nhello\n").strip()
    tree = git(talkative.folder, "mktree", input=f"100644 blob {blob}\tevidence\n").strip()
    for host in ("stranger", Repository.open(talkative.folder).host):
        tip = git(talkative.folder, "commit-tree", tree, input="thinned\n").strip()
        git(talkative.folder, "update-ref", f"refs/evogit/toy/thinned/{host}", tip)
    age(talkative.folder)
    done = cli("clean", *ALL, cwd=talkative.folder)
    assert done.code == 0, done.err
    assert mine in objects(talkative.folder)
    assert not talkative.has(talkative.dead)


def test_an_object_that_libgit2_cannot_parse_is_left_alone(talkative: Talkative, cli: Cli) -> None:
    command = ("hash-object", "-w", "-t", "commit", "--literally", "--stdin")
    odd = git(talkative.folder, *command, input=f"tree {'4b825dc642cb6eb9a060e54bf8d69288fbee4904'}\n\nkeep x\n")
    age(talkative.folder)
    done = cli("clean", *ALL, cwd=talkative.folder)
    assert done.code == 0, done.err
    assert odd.strip() in objects(talkative.folder)


def test_what_was_written_just_now_waits_for_the_next_time(talkative: Talkative, cli: Cli) -> None:
    lost = git(talkative.folder, "rev-parse", talkative.transcript(talkative.fail)).strip()
    os.utime(talkative.folder / ".git" / "objects" / lost[:2] / lost[2:])
    assert "objects of it were written in the last minute" in cli("clean", "toy", "--yes", cwd=talkative.folder).out
    assert lost in objects(talkative.folder)
    age(talkative.folder)
    cli("clean", "toy", "--yes", cwd=talkative.folder)
    assert lost not in objects(talkative.folder)
    check(cli, talkative.folder)


def test_a_run_goes_on_after_it_and_is_thinned_again(talkative: Talkative, cli: Cli) -> None:
    cli("clean", *ALL, cwd=talkative.folder)
    story = Story(talkative.folder)
    story.moves = 9
    again = story.add(None, talkative.best, made=said(9))
    kept = story.journal.keep({"why": b"not journalled yet"}, again)
    age(talkative.folder)
    assert talkative.has(again)
    cli("clean", *ALL, cwd=talkative.folder)
    assert not talkative.has(again)
    assert Repository.open(talkative.folder).trees.exists(kept)
    keep = Keeping(story.repository._repo, "toy")
    assert len(keep.read(list(keep.tips().values())).chain) == 1
    assert len(git(talkative.folder, "rev-list", f"refs/evogit/toy/thinned/{story.repository.host}").split()) == 2
    check(cli, talkative.folder)


def test_the_new_chain_is_as_old_as_what_it_holds_so_that_git_walks_it_fast(talkative: Talkative, cli: Cli) -> None:
    cli("clean", *ALL, cwd=talkative.folder)
    keep = f"refs/evogit/toy/keep/{Repository.open(talkative.folder).host}"
    held = git(talkative.folder, "log", "--format=%ct", keep).split()
    assert held[0] == max(held[1:])


@pytest.mark.slow
def test_a_fork_keeps_what_it_has_and_one_of_later_knows_what_is_gone(talkative: Talkative, cli: Cli) -> None:
    folder = talkative.folder
    fork(folder, "early", talkative.best)
    done = cli("clean", "toy", "--yes", cwd=folder)
    assert "1 piece of it something else has, too" in done.out
    assert talkative_has(folder, "early", talkative.fail)
    fork(folder, "late", talkative.best)
    cli("clean", "early", "--yes", cwd=folder)
    assert not talkative_has(folder, "late", talkative.fail)
    shown = cli("show", talkative.fail, "--name", "late", cwd=folder).out
    assert "thinned by `evogit clean RUN`" in shown
    check(cli, folder)


def fork(folder: Path, name: str, at: str) -> None:
    repository = Repository.open(folder)
    forking.make(repository, forking.plan(repository, "toy", at, name))


def talkative_has(folder: Path, run: str, commit: str) -> bool:
    repository = Repository.open(folder)
    return repository.trees.exists(open_run(repository, run).history.sessions[commit])


def test_it_waits_for_engines_of_all_runs(talkative: Talkative, cli: Cli) -> None:
    Story(talkative.folder, "second").add(1.0)
    with Repository.open(talkative.folder).engines("second").enter(join=False):
        done = cli("clean", "toy", "--yes", cwd=talkative.folder)
    assert (done.code, "an engine works on second" in done.err) == (4, True)
    assert talkative.has(talkative.fail)


def test_nothing_is_removed_where_something_is_damaged(talkative: Talkative, cli: Cli) -> None:
    before = objects(talkative.folder)
    file = talkative.folder / ".git" / "objects" / talkative.dead[:2] / talkative.dead[2:]
    file.unlink()
    done = cli("clean", "toy", "--yes", cwd=talkative.folder)
    assert (done.code, "see `evogit doctor runs`" in done.err) == (1, True)
    assert before - objects(talkative.folder) == {talkative.dead}


MOMENTS: dict[str, Callable[[Talkative, str], bool]] = {
    "begun": lambda run, _: any((run.folder / ".git/evogit/engines/toy").glob("*")),
    "told": lambda run, _: "/thinned/" in refs(run.folder),
    "rewritten": lambda run, keep: keep not in refs(run.folder),
    "swept": lambda run, _: not run.has(run.fail),
}


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_moment_it_loses_nothing_that_was_to_stay(talkative: Talkative, cli: Cli, moment: str) -> None:
    folder = talkative.folder
    keep = git(folder, "for-each-ref", "--format=%(objectname)", "refs/evogit/toy/keep").strip()
    child = Forked(["clean", *ALL], cwd=folder, env=environment(folder.parent))
    while child.poll() is None and not MOMENTS[moment](talkative, keep):
        time.sleep(0.002)
    child.kill()
    child.wait()
    kept = (talkative.seed, talkative.step, talkative.pruned, talkative.best)
    assert all(map(talkative.has, kept))
    check(cli, folder)
    assert cli("clean", *ALL, cwd=folder).code == 0
    assert all(map(talkative.has, kept))
    assert not any(map(talkative.has, (talkative.fail, talkative.dead)))
    check(cli, folder)
