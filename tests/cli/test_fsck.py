"""`evogit doctor runs` finds what is damaged, by real damage, and repairs what loses nothing."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import evogit.review.soundness  # noqa: F401  each command is a fork of this process
from evogit.history import snapshot
from evogit.repository import Repository
from evogit.review import open_run
from tests.cli.conftest import Cli, Done, Small, Story
from tests.plain_git import git


def ref(folder: Path, kind: str) -> str:
    """The only ref of a kind that the run has."""
    return git(folder, "for-each-ref", "--format=%(refname)", f"refs/evogit/toy/{kind}").strip()


def lose(folder: Path, name: str) -> None:
    """Remove one object, as a disk does."""
    (folder / ".git" / "objects" / name[:2] / name[2:]).unlink()


def entry(folder: Path, message: str, *parents: str, host: str | None = None, tree: str | None = None) -> None:
    """Append a commit to the journal by hand."""
    name = ref(folder, "journal")
    host = host or name.rpartition("/")[2]
    who = ["-c", f"user.name={host}", "-c", f"user.email={host}@evogit.invalid"]
    links = [option for parent in (git(folder, "rev-parse", name).strip(), *parents) for option in ("-p", parent)]
    tree = tree or git(folder, "hash-object", "-t", "tree", "-w", "--stdin", input="").strip()
    made = git(folder, *who, "commit-tree", *links, tree, input=message).strip()
    git(folder, "update-ref", name, made)


def said(done: Done, part: str) -> str:
    """What was found wrong with a part of the only run."""
    assert done.code == 1, done.out
    (run,) = done.json["runs"]
    assert {each["part"] for each in run["wrong"]} == {part}, run["wrong"]
    return " ".join(each["said"] for each in run["wrong"])


def adopted(seq: int, candidate: str, agent: str = "a1") -> str:
    """A record that an engine could have written."""
    told = {"evogit": 1, "seq": seq, "event": "adopted", "agent": agent, "candidate": candidate}
    return f"adopted: {agent}\n\n{json.dumps(told)}\n"


def test_a_run_that_is_well_is_sound(small: Small, cli: Cli) -> None:
    done = cli("doctor", "runs", cwd=small.folder)
    assert done.code == 0
    assert "toy: 22 entries, 7 candidates, 1 pieces of evidence: sound" in done.out.splitlines()[0]
    assert "wrong" not in done.out


def test_branches_that_are_behind_are_no_damage_and_repair_moves_them(small: Small, cli: Cli) -> None:
    done = cli("doctor", "runs", "--repair", cwd=small.folder)
    assert done.code == 0
    assert "behind the journal or absent: a1, a2, best" in done.out
    assert git(small.folder, "rev-parse", "evogit/toy/a1", "evogit/toy/a2", "evogit/toy/best").split() == [
        *(small.merge, small.right),
        small.merge,
    ]
    git(small.folder, "update-ref", "refs/heads/evogit/toy/a1", small.left)
    assert cli("doctor", "runs", cwd=small.folder).code == 0


@pytest.mark.parametrize("branch", ["a1", "best"])
def test_a_branch_where_the_journal_never_had_it_is_wrong_and_put_back(small: Small, cli: Cli, branch: str) -> None:
    cli("doctor", "runs", "--repair", cwd=small.folder)
    git(small.folder, "update-ref", f"refs/heads/evogit/toy/{branch}", small.dead)
    assert "the journal never had it" in said(cli("doctor", "runs", "--json", cwd=small.folder), "branches")
    done = cli("doctor", "runs", "--repair", "--json", cwd=small.folder)
    assert done.code == 0
    assert [each["part"] for each in done.json["runs"][0]["repaired"]] == ["branches"]
    assert git(small.folder, "rev-parse", f"evogit/toy/{branch}").strip() == small.merge


def test_a_person_s_commit_on_a_branch_is_told_and_stays(small: Small, cli: Cli) -> None:
    tree = git(small.folder, "rev-parse", f"{small.merge}^{{tree}}").strip()
    mine = git(small.folder, "commit-tree", tree, "-p", small.merge, "-m", "mine").strip()
    git(small.folder, "update-ref", "refs/heads/evogit/toy/a1", mine)
    done = cli("doctor", "runs", "--repair", cwd=small.folder)
    assert done.code == 0
    assert f"refs/heads/evogit/toy/a1 is at {mine[:7]}, a person's, and stays there" in done.out
    assert git(small.folder, "rev-parse", "evogit/toy/a1").strip() == mine


def test_a_missing_file_of_a_candidate_is_found(small: Small, cli: Cli) -> None:
    blob = git(small.folder, "rev-parse", f"{small.dead}:main.py").strip()
    lose(small.folder, blob)
    found = said(cli("doctor", "runs", "--json", cwd=small.folder), "candidates")
    assert f"the candidate {small.dead[:7]} is not whole: the file 'main.py' ({blob}) is missing" in found


def test_a_missing_candidate_is_found(small: Small, cli: Cli) -> None:
    lose(small.folder, small.dead)
    assert f"the candidate {small.dead[:7]} is missing" in said(
        cli("doctor", "runs", "--json", cwd=small.folder), "candidates"
    )


def test_missing_evidence_that_nobody_thinned_is_found(small: Small, cli: Cli) -> None:
    lose(small.folder, git(small.folder, "rev-parse", f"{ref(small.folder, 'keep')}:stdout").strip())
    assert "nobody thinned it" in said(cli("doctor", "runs", "--json", cwd=small.folder), "evidence")


def test_what_is_not_kept_any_more_is_kept_again(small: Small, cli: Cli) -> None:
    keep = ref(small.folder, "keep")
    git(small.folder, "update-ref", "-d", keep)
    done = cli("doctor", "runs", "--json", cwd=small.folder)
    (run,) = done.json["runs"]
    assert (done.code, len(run["wrong"])) == (1, 8)
    assert all("not kept" in each["said"] and each["repairable"] for each in run["wrong"])
    assert cli("doctor", "runs", "--repair", cwd=small.folder).code == 0
    git(small.folder, "gc", "-q", "--prune=now")
    assert cli("doctor", "runs", cwd=small.folder).code == 0


def test_a_cut_chain_is_found(small: Small, cli: Cli) -> None:
    cut = git(small.folder, "rev-parse", f"{ref(small.folder, 'journal')}~5").strip()
    lose(small.folder, cut)
    found = said(cli("doctor", "runs", "--json", cwd=small.folder), "journal")
    assert f"the entry {cut} is missing, so nothing before it can be read" in found


FORGED: dict[str, tuple[Callable[[Small], None], str]] = {
    "clock": (lambda small: entry(small.folder, adopted(3, small.dead)), "does not go on"),
    "host": (lambda small: entry(small.folder, adopted(99, small.dead), host="mallory"), "is of 'mallory'"),
    "merge": (lambda small: entry(small.folder, adopted(99, small.dead), small.dead), "has 2 parents"),
    "text": (lambda small: entry(small.folder, "adopted: a1\n\n{}\n"), "expected a journal record"),
    "tree": (
        lambda small: entry(
            small.folder, adopted(99, small.dead), tree=git(small.folder, "rev-parse", f"{small.dead}^{{tree}}").strip()
        ),
        "entries have the empty one",
    ),
}


@pytest.mark.parametrize("forged", FORGED)
def test_an_entry_that_no_engine_wrote_is_found(small: Small, cli: Cli, forged: str) -> None:
    forge, expected = FORGED[forged]
    forge(small)
    assert expected in said(cli("doctor", "runs", "--json", cwd=small.folder), "journal")


def test_an_object_whose_content_was_changed_is_found(small: Small, cli: Cli) -> None:
    tip = git(small.folder, "rev-parse", ref(small.folder, "journal")).strip()
    file, other = (small.folder / ".git" / "objects" / each[:2] / each[2:] for each in (tip, small.dead))
    file.chmod(0o644)
    file.write_bytes(other.read_bytes())
    assert "cannot be read" in said(cli("doctor", "runs", "--json", cwd=small.folder), "journal")


def test_behind_the_seal_nothing_is_believed(tmp_path: Path, cli: Cli) -> None:
    folder = tmp_path / "sealed"
    Repository.create(folder).keys.make("toy")
    story = Story(folder)
    seed = story.add(1.0)
    assert cli("doctor", "runs", cwd=folder).code == 0
    sealed = git(folder, "rev-parse", ref(folder, "journal")).strip()
    entry(folder, adopted(99, seed))
    found = said(cli("doctor", "runs", "--json", cwd=folder), "journal")
    assert "by 1: it came from elsewhere" in found
    git(folder, *found.split("`git ")[1].split("`")[0].split())
    assert git(folder, "rev-parse", ref(folder, "journal")).strip() == sealed
    assert cli("doctor", "runs", cwd=folder).code == 0


def test_a_lock_of_a_dead_process_is_found_and_removed(small: Small, cli: Cli) -> None:
    lock = small.folder / ".git" / f"{ref(small.folder, 'keep')}.lock"
    lock.touch()
    assert cli("doctor", "runs", cwd=small.folder).code == 0  # somebody may be at it
    os.utime(lock, (time.time() - 60,) * 2)
    assert "a dead process" in said(cli("doctor", "runs", "--json", cwd=small.folder), "locks")
    assert cli("doctor", "runs", "--repair", cwd=small.folder).code == 0
    assert not lock.exists()


def test_a_snapshot_that_says_otherwise_is_found_and_removed(
    small: Small, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".local" / "state"))  # the same user's as the command's
    repository = Repository.open(small.folder)
    run = open_run(repository, "toy")
    assert (position := run.journal.position)
    snapshot.save(repository, run.history, position)
    assert cli("doctor", "runs", cwd=small.folder).code == 0
    run.history.heads["a1"] = small.dead
    snapshot.save(repository, run.history, position)
    assert "otherwise than the journals: agents" in said(cli("doctor", "runs", "--json", cwd=small.folder), "snapshot")
    assert cli("doctor", "runs", "--repair", cwd=small.folder).code == 0
    assert not repository.snapshot("toy").path.exists()


def test_nothing_is_repaired_while_an_engine_is_at_work(small: Small, cli: Cli) -> None:
    with Repository.open(small.folder).engines("toy").enter(join=False):
        done = cli("doctor", "runs", cwd=small.folder)
        assert (done.code, "1 engine at work" in done.out) == (0, True)
        refused = cli("doctor", "runs", "--repair", cwd=small.folder)
    assert refused.code == 4
    assert "another engine" in refused.err
