"""The bundle for a coding program: what real git makes of it, and what must never be in it."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from evogit.agents import Background
from evogit.breeding.background import Backgrounds
from evogit.breeding.crossings import Crossings
from evogit.core import Evaluation
from evogit.repository import GITLINK, LINK
from evogit.repository.git import passing
from tests.own import Own

from .conftest import SEED, Lab

Cloned = Callable[[Background], Callable[..., str]]


@pytest.fixture
def cloned(tmp_path: Path) -> Cloned:
    """Has git fetch a bundle into a new repository; gives the git command on that."""

    def clone(background: Background) -> Callable[..., str]:
        folder = tmp_path / "workspace"
        (tmp_path / "bundle").write_bytes(background.bundle())

        def git(*arguments: str) -> str:
            command = ["git", "-c", "safe.directory=*", *arguments]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout

        folder.mkdir()
        git("init", "-q")
        git("fetch", "-q", str(tmp_path / "bundle"), "refs/*:refs/*")
        git("checkout", "-q", "-b", "work", "parent")
        return git

    return clone


def background(lab: Lab, parent: str, donor: str = "") -> Background:
    gather = lab.brief(parent, donor).background
    assert gather is not None
    return gather()


def family(lab: Lab) -> tuple[str, str]:
    """A parent with two ancestors, and a donor whose lineage leaves that of the parent after its first step."""
    first = lab.add({"main.py": b"VALUE = 2\n"}, lab.seed(), title="two", evaluation=2.0)
    parent = lab.add({"main.py": b"VALUE = 3\n"}, first, title="three", evaluation=1.5)
    aside = lab.add({"src/x.py": b"X = 3\n"}, first, evaluation=Evaluation(status="crashed", reason="boom"))
    donor = lab.add({"src/x.py": b"X = 4\n", "judge/secret.py": b"ANSWER = 43\n"}, aside, parent, evaluation=5.0)
    return parent, donor


def test_a_clone_shows_the_lineage_the_inspirations_and_their_scores(lab: Lab, cloned: Cloned) -> None:
    parent, donor = family(lab)
    git = cloned(background(lab, parent, donor))
    graph = lab.history.phylogeny
    middle, aside = graph[parent].parents[0], graph[donor].parents[0]
    names = git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()
    assert names == [
        *(f"inspiration/0{number}-{commit[:7]}" for number, commit in enumerate([aside, donor], 1)),
        *(f"lineage/0{number}-{commit[:7]}" for number, commit in enumerate([lab.history.seed, middle, parent], 1)),
        *("parent", "seed", "work"),
    ]
    assert git("log", "--format=%s", "parent").splitlines() == ["three", "two", "seed"]
    assert git("rev-parse", "seed") == git("rev-parse", names[2])
    assert git("merge-base", "parent", names[1]) == git("rev-parse", f"lineage/02-{middle[:7]}")
    notes = git("log", "--format=%s: %N", "--notes", "parent")
    assert "three: score (maximize it, the primary metric): 1.5 (worse, -0.5)\n" in notes
    assert "two: score (maximize it, the primary metric): 2 (better, +1)\n" in notes
    assert "failed (crashed) boom" in git("log", "--notes", names[0])
    assert f"Merged with {parent[:7]}." in git("log", "-1", "--format=%b", names[1])
    assert f"Candidate {parent}, a mutation by a1." in git("log", "-1", "--format=%b")
    assert git("diff", "--stat", f"lineage/02-{middle[:7]}", "parent").splitlines()[0].split()[0] == "main.py"


def test_git_finds_nothing_wrong_and_nothing_to_do(lab: Lab, cloned: Cloned) -> None:
    git = cloned(background(lab, *family(lab)))
    git("fsck", "--strict", "--no-dangling")
    assert git("status", "--porcelain") == ""
    assert git("remote") == ""
    assert git("ls-files", "-s", "run.sh").startswith("100755")


def test_nothing_withheld_is_in_any_object(lab: Lab, cloned: Cloned) -> None:
    git = cloned(background(lab, *family(lab)))
    for line in git("cat-file", "--batch-all-objects", "--batch-check").splitlines():
        kind = line.split()[1]
        shown = git("cat-file", "-p", line.split()[0])
        assert "ANSWER" not in shown
        assert "judge" not in shown, kind
    assert set(git("ls-files").split()) == {path for path in SEED if not path.startswith("judge/")}


def test_what_a_killed_engine_left_of_a_bundle_goes_with_the_next_one(lab: Lab) -> None:
    left = Path(tempfile.mkdtemp(prefix="evogit-bundle-", dir=passing()))
    (left / "objects").mkdir()
    os.utime(left, (0, 0))
    background(lab, family(lab)[0]).bundle()
    assert not left.exists()


def test_nothing_of_the_person_is_in_the_bundle(own: Own, cloned: Cloned) -> None:
    """Neither their name, address, remote and branches, nor what the repository held before the seed."""
    own.git("remote", "add", "origin", "https://example.org/ada.git")
    child = own.add(2, own.seed, files={"src/main.py": "VALUE = 2\n"})
    own.save("on a branch of mine", {"diary.txt": "dear diary\n"})
    known = Backgrounds(own.repository, own.task, own.history).of(own.history.phylogeny[child])
    assert not re.search(rb"\bada\b", known.bundle().partition(b"PACK")[0].lower())  # ids may hold these letters
    git = cloned(known)
    for line in git("cat-file", "--batch-all-objects", "--batch-check").splitlines():
        shown = git("cat-file", "-p", line.split()[0])
        assert not any(
            re.search(rf"\b{word}\b", shown.lower()) for word in ("ada", "example", "diary", "hidden", "case.txt")
        )
    assert own.seed[:7] not in git("log", "--all", "--format=%H")


def test_the_same_history_gives_the_same_bytes(lab: Lab) -> None:
    parent, donor = family(lab)
    first = background(lab, parent, donor).bundle()
    assert background(lab, parent, donor).bundle() == first
    lab.add({"main.py": b"VALUE = 7\n"}, parent, evaluation=9.0)
    assert background(lab, parent, donor).bundle() == first


def test_links_stay_and_submodules_go(lab: Lab, cloned: Cloned) -> None:
    lab.seed()
    trees = lab.repository.trees
    link = trees.write_blob(b"main.py")
    seed = lab.history.phylogeny[lab.history.seed or ""]
    tree = trees.with_entries(seed.tree, {"alias": (LINK, link), "vendor": (GITLINK, "1" * 40)})
    commit = lab.repository.commit(tree, (), author="a1", time=1, title="linked", trailers={})
    lab.await_evaluation(commit, tree)
    git = cloned(background(lab, commit))
    assert git("ls-files", "-s", "alias", "vendor").split() == ["120000", link, "0", "alias"]


def test_a_long_lineage_is_the_seed_and_its_last_twelve_steps(lab: Lab, cloned: Cloned) -> None:
    parent = lab.seed()
    for value in range(20):
        parent = lab.add({"main.py": b"VALUE = %d\n" % value}, parent, title=f"step {value}", evaluation=float(value))
    git = cloned(background(lab, parent))
    assert git("log", "--format=%s").splitlines() == [*(f"step {value}" for value in range(19, 7, -1)), "seed"]
    assert "what lies between is left out" in git("log", "-1", "--format=%b", "parent~11")
    assert "left out" not in git("log", "-11", "--format=%b", "parent")
    assert "step 8" in git("log", "-1", "--format=%s", "--branches=lineage/01-*", "--no-walk")
    assert "8 (better, +1)" in git("notes", "show", "parent~11"), "its parent is not in the bundle, its score counts"


async def test_conflicts_stand_in_a_commit_of_their_own(lab: Lab, cloned: Cloned) -> None:
    seed = lab.seed()
    ours, theirs = (lab.add({"main.py": b"VALUE = %d\n" % value}, seed, evaluation=float(value)) for value in (2, 3))
    opened = Crossings(lab.repository, lab.history, lab.task.is_editable).open("merge", (ours, theirs))
    graph = lab.history.phylogeny
    brief = lab.breeder.brief(replace(graph[ours], tree=opened.merged.tree), graph[theirs], conflicts=opened.markers)
    assert brief.background is not None
    git = cloned(brief.background())
    assert git("show", "parent:main.py").encode() == brief.files["main.py"]
    assert git("show", "parent~:main.py") == "VALUE = 2\n"
    assert f"Half of a merge of {ours[:7]} and {theirs[:7]}" in git("log", "-1", "--format=%s")


def test_a_bundle_is_made_in_a_thread_while_candidates_come(lab: Lab) -> None:
    """What is packed is what was known when the background was gathered."""
    parent, donor = family(lab)
    known = background(lab, parent, donor)
    alone = known.bundle()
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(known.bundle) for _ in range(4)]
        for value in range(50):
            lab.add({"main.py": b"VALUE = %d\n" % (value + 10)}, parent, evaluation=float(value))
        assert {each.result() for each in waiting} == {alone}
