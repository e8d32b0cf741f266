"""Landing: the candidate's change merged with what moved, what it is worth there, and a branch to merge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
from msgspec.structs import replace

from evogit.config import Task
from evogit.core import Evaluation, Metric, NotFoundError, RefusedError, UsageError
from evogit.events import Decision, Measured
from evogit.repository import Repository
from evogit.review.landed_steps import step_gain
from evogit.review.landing import Landing, SplitTrial, follow_undo, land, measure, objections, prepare, trial_of
from evogit.review.landing_text import LandingText, describe
from evogit.review.risks import risks
from tests.own import FILES, Own, main


def plan(own: Own, commit: str, onto: str | None = None, *, squash: bool = True) -> Landing:
    return asyncio.run(prepare(own.repository, own.history, own.history.phylogeny[commit], onto, squash=squash))


def told(own: Own, found: Landing, *trials: SplitTrial, reason: str = "", goal: str = "") -> LandingText:
    return describe(own.repository, own.history, found, trials, goal or own.task.goal, reason)


def landed(own: Own, commit: str, *, squash: bool = True, reason: str = "") -> Decision:
    found = plan(own, commit, squash=squash)
    text = told(own, found, reason=reason).message(squash=squash)
    entry = land(own.stored, found, [(found.tree, text)], reason, squash=squash)
    assert isinstance(entry.event, Decision)
    return entry.event


def trial(before: float | None, after: float | None, split: str = "train") -> SplitTrial:
    def judged(value: float | None) -> Evaluation:
        if value is None:
            return Evaluation(status="crashed", reason="it broke", split=split)
        return Evaluation(status="ok", metrics={"score": value}, split=split)

    return SplitTrial(split=split, before=judged(before), after=judged(after))


def test_a_squash_is_one_commit_of_the_person_on_what_moved_meanwhile(own: Own) -> None:
    best = own.add(2, own.seed, files=main(2), title="raise it\x1b[31m\nEvogit-Candidate: lie")
    own.save("notes", {"notes.txt": "1\n"})
    tip = own.save("a tail", main(1, "\n# the end\n"))
    before = (own.git("status", "--porcelain"), own.git("rev-parse", "HEAD"), (own.folder / ".git/HEAD").read_text())
    made = landed(own, best, reason="it is simple")
    assert made.branch == f"refs/heads/evogit/own/land/{best[:7]}"
    assert own.git("rev-parse", made.branch) == made.commit
    assert own.git("rev-parse", f"{made.commit}^@") == tip
    assert own.git("show", f"{made.commit}:src/main.py") == main(2, "\n# the end\n")["src/main.py"].strip()
    assert own.git("log", "-1", "--format=%an %ae", made.commit) == "Ada ada@example.org"
    assert own.git("log", "-1", "--format=%(trailers:key=Evogit-Candidate,valueonly)", made.commit) == best
    assert "it is simple" in own.git("log", "-1", "--format=%b", made.commit)
    after = (own.git("status", "--porcelain"), own.git("rev-parse", "HEAD"), (own.folder / ".git/HEAD").read_text())
    assert before == after
    own.git("merge", "--ff-only", made.branch)


def test_a_merge_has_the_target_and_the_candidate_as_parents(own: Own) -> None:
    best = own.add(2, own.seed, files=main(2))
    made = landed(own, best, squash=False)
    assert own.git("rev-parse", f"{made.commit}^@").split() == [own.seed, best]


def test_a_conflict_is_refused_and_names_the_files(own: Own) -> None:
    best = own.add(2, own.seed, files=main(2))
    own.save("other", main(7))
    with pytest.raises(RefusedError, match=r"conflicts .* in src/main.py; "):
        plan(own, best)
    assert own.git("branch", "--list", "evogit/*") == ""


@pytest.mark.parametrize("squash", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_what_was_landed_before_is_no_conflict_for_its_descendant(own: Own, squash: bool) -> None:
    first = own.add(2, own.seed, files=main(2))
    second = own.add(3, first, files=main(3))
    own.git("merge", "--ff-only", landed(own, first, squash=squash).branch)
    own.save("notes", {"notes.txt": "1\n"})
    own.git("merge", "--ff-only", landed(own, second, squash=squash).branch)
    assert "VALUE = 3" in (own.folder / "src/main.py").read_text()
    with pytest.raises(RefusedError, match="nothing to land"):
        plan(own, second)


def test_landing_again_replaces_the_branch_and_undo_removes_it(own: Own) -> None:
    best = own.add(2, own.seed, files=main(2))
    first = landed(own, best)
    own.save("notes", {"notes.txt": "1\n"})
    assert plan(own, best).replaces == first.commit
    second = landed(own, best)
    entry = own.history.decisions[-1]
    assert own.git("rev-parse", second.branch) == second.commit != first.commit
    assert "removed" in follow_undo(own.repository, own.history, entry.id)
    assert own.repository.target(second.branch) is None
    undo = own.journal.append(Decision(kind="undo", by="Ada", undoes=entry.id))
    assert undo is not None
    assert "is back" in follow_undo(own.repository, own.history, undo.id)
    own.git("switch", "-q", second.branch.removeprefix("refs/heads/"))
    assert "is checked out and stays" in follow_undo(own.repository, own.history, entry.id)
    with pytest.raises(RefusedError, match="is checked out and would be replaced"):
        plan(own, best, "main")
    own.save("mine", {"notes.txt": "2\n"})
    own.git("switch", "-q", "main")
    assert "moved or removed" in follow_undo(own.repository, own.history, entry.id)


def test_the_target_is_a_branch_of_the_persons(own: Own) -> None:
    best = own.add(2, own.seed, files=main(2))
    own.git("branch", "stable")
    assert plan(own, best, "stable").target == "refs/heads/stable"
    own.git("switch", "-q", "--detach")
    with pytest.raises(UsageError, match="--onto BRANCH"):
        plan(own, best)
    for odd in ("nosuch", "main~0", "../main"):
        with pytest.raises(NotFoundError, match=f"got 'refs/heads/{odd}'"):
            plan(own, best, odd)
    with pytest.raises(UsageError, match="a branch of your own"):
        plan(own, best, "evogit/own/best")


@pytest.mark.slow
def test_a_branch_without_the_seed_takes_one_commit_and_no_merge(own: Own) -> None:
    best = own.add(2, own.seed, files=main(2))
    own.git("switch", "-q", "--orphan", "other")
    own.save("all anew", {**FILES, "README.md": "Another one.\n"})
    assert plan(own, best).paths == ("src/main.py",)
    with pytest.raises(RefusedError, match="land with --squash"):
        plan(own, best, squash=False)


def test_what_a_person_pruned_is_not_landed(own: Own) -> None:
    best = own.add(2, own.seed, files=main(2))
    own.journal.append(Decision(kind="prune", by="Ada", candidates=(best,)))
    with pytest.raises(RefusedError, match="is pruned; undo that first"):
        plan(own, best)


def test_nothing_but_editable_paths_travels(own: Own) -> None:
    bad = own.add(2, own.seed, files={**main(2), "README.md": "taken over\n"})
    with pytest.raises(RefusedError, match=r"would change README.md"):
        plan(own, bad)


def test_two_names_that_differ_only_in_case_are_not_landed(own: Own) -> None:
    best = own.add(2, own.seed, files={**main(2), "src/Lib/new.py": "x = 1\n"})
    own.save("mine", {"src/lib/other.py": "x = 2\n"})
    with pytest.raises(RefusedError, match="'src/Lib' differs from a neighbour only in case"):
        plan(own, best)


@pytest.mark.slow
def test_a_target_that_moves_while_it_is_judged_is_refused(own: Own) -> None:
    found = plan(own, own.add(2, own.seed, files=main(2)))
    own.save("notes", {"notes.txt": "1\n"})
    with pytest.raises(RefusedError, match="moved while this was evaluated"):
        land(own.stored, found, [(found.tree, "x")], "", squash=True)


@pytest.mark.slow
def test_git_must_know_who_lands(own: Own) -> None:
    found = plan(own, own.add(2, own.seed, files=main(2)))
    own.git("config", "user.name", "")
    own.git("config", "--unset", "user.email")
    with pytest.raises(RefusedError, match="expected Git to know who you are"):
        land(own.stored, found, [(found.tree, "x")], "", squash=True)


SCORE = Metric(name="score", direction="maximize", primary=True)


@pytest.mark.parametrize(
    ("trials", "found"),
    [
        ([trial(1, 2), trial(1, 2, "holdout")], 0),
        ([trial(1, 2), trial(1, 1, "holdout")], 0),
        ([trial(None, 2)], 0),
        ([trial(1, 1)], 1),
        ([trial(1, 1, "lite")], 1),
        ([trial(1, None)], 1),
        ([trial(1, 2), trial(3, 2, "holdout")], 1),
    ],
)
def test_objections_say_what_is_no_better(trials: list[SplitTrial], found: int) -> None:
    assert len(objections(SCORE, trials)) == found


@pytest.mark.slow
def test_both_sides_are_judged_with_the_targets_files(own: Own) -> None:
    best = own.add(2, own.seed, files=main(2))
    own.save("a tail", main(1, "\n\n\ndef value():\n    return 10 * VALUE\n"))
    trials = asyncio.run(measure(own.repository, own.task, plan(own, best), "none"))
    values = [(each.split, each.before.metrics["score"], each.after.metrics["score"]) for each in trials]
    assert values == [("train", 10.0, 20.0), ("holdout", 10.0, 20.0)]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository.create(tmp_path_factory.mktemp("empty"))


CHECKLIST: list[tuple[Mapping[str, bytes | None], str]] = [
    ({"a.py": b"import socket\n"}, "a.py imports socket"),
    ({"a.py": b"import os\nimport urllib.request\n"}, "a.py imports urllib.request"),
    ({"a.py": b"import os, socket\n"}, "a.py imports os, socket"),
    ({"a.py": "x = 1  # \u202e1 = x\n".encode()}, "a.py contains invisible characters"),
    ({"a.py": b"x = urllib.request.urlopen('https://x')\n"}, "a.py may use the network: x = urllib"),
    ({"a.py": b"subprocess.run(['x'])\n"}, "a.py may use other programs"),
    ({"a.py": b"eval(text)\n"}, "a.py may use code generated at run time"),
    ({"a.js": b"const n = require('net')\n"}, "a.js imports net"),
    ({"a.c": b"#include <sys/socket.h>\n"}, "a.c imports sys/socket.h"),
    ({"a.py": b"\0\1"}, "a.py is binary"),
    ({"tests/test_a.py": None}, "the test tests/test_a.py is deleted"),
    ({"tests/test_a.py": b"x = 1\n"}, "the test tests/test_a.py is changed"),
    ({".github/workflows/ci.yml": b"on: push\n"}, ".github/workflows/ci.yml is read by tools"),
    ({"src/.gitattributes": b"* filter=x\n"}, "src/.gitattributes is read by tools"),
    ({"conftest.py": b""}, "conftest.py is read by tools"),
    ({"package.json": b"{}"}, "package.json determines what is installed"),
    ({"a.py": b"x\n" * 500}, "the change is large: 500 lines added"),
]


@pytest.mark.parametrize(("changes", "sentence"), CHECKLIST, ids=[sentence[:30] for _, sentence in CHECKLIST])
def test_the_checklist_names_what_to_look_at(
    empty: Repository, changes: Mapping[str, bytes | None], sentence: str
) -> None:
    trees = empty.trees
    before = trees.write(None, {"a.py": b"import os\n", "tests/test_a.py": b"def test(): pass\n"})
    found = risks(empty, before, trees.write(before, changes))
    assert [each for each in found if each.startswith(sentence)], found


def test_the_checklist_sees_modes_and_is_silent_about_harmless_changes(empty: Repository) -> None:
    trees = empty.trees
    before = trees.write(None, {"a.py": b"import os\nmodel.eval()\nx = 1\n"})
    assert risks(empty, before, trees.write(before, {"a.py": b"import os\nmodel.eval()\nx = 2\n"})) == []
    after = trees.write(before, {"a.py": b"import os\nx = 1\n"}, {"a.py": 0o100755})
    assert risks(empty, before, after) == ["a.py becomes executable"]


def test_a_landing_is_not_replaced_once_somebody_committed_to_it(own: Own) -> None:
    best = own.add(2, own.seed, files=main(2))
    made = landed(own, best)
    assert landed(own, best).branch == made.branch
    own.git("switch", "-q", made.branch.removeprefix("refs/heads/"))
    mine = own.save("polish", {"notes.txt": "1\n"})
    own.git("switch", "-q", "main")
    with pytest.raises(RefusedError, match="it has new commits; keep them with `git branch -m evogit/own/land/"):
        plan(own, best)
    assert own.git("rev-parse", made.branch) == mine


@pytest.mark.parametrize(("saved", "expected"), [(0.2, "better"), (0.0, "within noise")])
def test_a_machine_that_slows_down_while_both_are_measured_moves_no_verdict(
    tiny: Callable[..., Task], saved: float, expected: str
) -> None:
    seconds = Metric(name="seconds", direction="minimize", primary=True, scale="log")
    task = replace(tiny(), metrics=(seconds,), repeats=3, measures="time")
    pace = [1.0, 1.01, 2.0, 2.03]
    off = [1.0, 1.01, 1.0, 1.02]
    before = [evaluation(at * by, repeat) for repeat, (at, by) in enumerate(zip(pace, off, strict=True))]
    after = [evaluation(at * (1 - saved), repeat) for repeat, at in enumerate(pace)]
    compared = trial_of(task, before, after).compared(seconds)
    assert compared
    assert compared.verdict == expected
    assert not compared.apart


def evaluation(value: float, repeat: int) -> Evaluation:
    return Evaluation(status="ok", metrics={"seconds": value}, repeat=repeat)


def test_differences_within_the_noise_are_no_gain_and_no_loss() -> None:
    margins = {"score": (0.3, 0.3, 0.5)}
    near, clear = (replace(trial(1.0, after), margins=margins, times=4) for after in (1.4, 1.6))
    worse = replace(trial(1.0, 0.6, "holdout"), margins=margins, times=4)
    assert len(objections(SCORE, [near])) == 1
    assert objections(SCORE, [clear, worse]) == []


def test_a_series_has_a_commit_for_each_step_with_its_gain_and_ends_in_the_result(own: Own) -> None:
    first = own.add(2, own.seed, files=main(2), title="two")
    lost = own.add(2, first, files=main(2, "\n# lost\n"), title="a remark")
    second = own.add(4, lost, files=main(2).copy() | {"src/more.py": "x = 1\n"}, title="more")
    own.save("notes", {"notes.txt": "1\n"})
    tip = own.git("rev-parse", "HEAD")
    found = plan(own, second)
    text = told(own, found)
    assert [(step.title, str(step.size)) for step in text.steps] == [
        ("two", "1 file, +1 -1"),
        ("more", "1 file, +1 -0"),
    ]
    entry = land(own.stored, found, text.series, "", squash=True)
    assert isinstance(entry.event, Decision)
    last = entry.event.commit
    assert own.git("log", "--format=%s", f"{tip}..{last}").splitlines() == ["more", "two"]
    assert own.git("rev-parse", f"{last}^{{tree}}") == found.tree
    assert own.git("show", f"{last}~1:src/main.py") == main(2)["src/main.py"].strip()
    assert "score better by 1 (2.0x)" in own.git("log", "-1", "--format=%b", f"{last}~1")
    assert own.git("log", "-1", "--format=%(trailers:key=Evogit-Candidate,valueonly)", f"{last}~1") == first
    own.git("merge", "--ff-only", entry.event.branch)
    with pytest.raises(RefusedError, match="nothing to land"):
        plan(own, second)


def test_a_step_that_does_not_apply_alone_is_in_the_commit_of_the_next_one(own: Own) -> None:
    lost = own.add(2, own.seed, files=main(7), title="seven")
    first = own.add(
        2, lost, files={"src/main.py": main(1)["src/main.py"].replace("1\n\n", "1\nMORE = 2\n")}, title="more"
    )
    second = own.add(3, first, files={"src/other.py": "x = 1\n"}, title="other")
    text = told(own, plan(own, second))
    assert [(step.title, step.size is None) for step in text.steps] == [("more", True), ("other", False)]
    [(tree, message)] = text.series
    assert tree == own.repository.tree_of(second)
    assert message.startswith("more and other\n")


def test_a_step_tells_what_its_session_measured_where_nothing_was_evaluated_beside_it(own: Own) -> None:
    measured = Measured(pairs=3, parent=0.8, margin=0.05, seed=0.6)
    commit = own.commit({path: text.encode() for path, text in main(2).items()}, own.seed, title="quick")
    own.propose(own.seed, candidate=commit, tree=own.repository.tree_of(commit), title="quick", measured=measured)
    candidate = own.history.phylogeny[commit]
    found = step_gain(own.repository, own.history, candidate, candidate)
    assert found
    assert (found.verdict, found.relative) == ("worse", "20 % less")  # the score of this task is maximised
    assert found.interval[0] < found.gain < found.interval[1] < 0
