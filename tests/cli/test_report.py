"""`evogit report`: what a person reads in the morning, checked against small runs of known shape."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evogit.core import Evaluation, Metric
from evogit.events import (
    Decision,
    Duplicate,
    Evaluated,
    FailedProposal,
    Halted,
    Proposed,
    RunStarted,
    Spent,
    Tactic,
    TaskChanged,
)
from evogit.history import History
from evogit.repository import Repository
from evogit.review.reporting import remarks, report_record, steps

from .conftest import Cli, Small, Story


def test_the_page_and_its_data_tell_how_the_best_came_to_be_and_who_brought_it(cli: Cli, small: Small) -> None:
    done = cli("report", cwd=small.folder)
    assert done.code == 0
    page = done.out
    assert re.search(r"\+0\.5000 \(1\.5x\) +1\.5000 +a1 +" + small.step[:7], page)
    assert re.search(r"\+0\.3000 \(18 % more\) +2\.0000 +a1 +" + small.merge[:7], page)
    assert re.search(r"score +1\.0000 +2\.0000 +\+1\.0000 \(2\.0x\) +1\.1000 +1\.9000 +\+0\.8000 \(1\.7x\)", page)
    assert re.search(r"a1 +3 +3 +3 +\+1\.0000 +\+0\.5000", page)
    assert re.search(r"a2 +3 +2 +0 +- +\+0\.1000", page)
    assert re.search(r"1 +timeout: 10 s", page)
    assert re.search(r"main\.py +\+1 +-1", page)
    assert "evogit diff seed best" in page
    assert max(map(len, page.splitlines())) <= 100
    record = cli("report", "--json", cwd=small.folder).json
    assert [step["commit"] for step in record["steps"]] == [small.seed, small.step, small.left, small.merge]
    assert sum(step["gain"] or 0 for step in record["steps"]) == pytest.approx(1.0)
    assert record["spent"]["failed"] == {"timeout": 1}
    assert record["evidence"]["commit"] == small.merge
    assert record["remarks"] == []


def test_a_run_without_an_improvement_says_so(cli: Cli, tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    seed = story.add(1.0, title="Seed")
    story.add(None, seed, reason="took 11 s")
    story.add(None, seed, reason="took 12 s")
    for reason in ("a", "b", "c", "d", "e"):
        story.add(None, seed, reason=reason, files={"main.py": reason.encode()})
    page = cli("report", cwd=story.folder).out
    assert "no candidate is better than the seed" in page
    assert re.search(r"2 +timeout: took 12 s", page)
    assert "and 1 for other reasons" in page
    assert "how it was reached" not in page


def test_everything_can_be_looked_at_before_anybody_is_judged_again(cli: Cli, small: Small) -> None:
    journal = Repository.open(small.folder).journal("toy", History("toy").apply)
    metrics = (Metric(name="errors", direction="minimize", primary=True),)
    changed = TaskChanged(by="Ada", task_digest="2", metrics=metrics, split="train", evaluator="w", editable=("*.py",))
    journal.append(changed)
    assert cli("show", "best", cwd=small.folder).code == 3
    for command in ("status", "log", "graph", "report", "diff seed " + small.merge):
        assert cli(*command.split(), cwd=small.folder).code == 0
    shown = cli("show", small.dead, cwd=small.folder).out
    assert "not evaluated since the task changed" in shown
    assert "ok, as the task was then: score 1.2" in shown
    assert re.search(f"{small.merge[:7]} +old ", cli("log", cwd=small.folder).out)
    record = cli("show", small.dead, "--json", cwd=small.folder).json
    assert (record["status"], record["former"]) == (None, {"status": "ok", "metrics": {"score": 1.2}})


def spend(story: Story, failure: str = "", seconds: float = 0.0) -> None:
    story.journal.append(Spent(engine="e", move=1, agent="a1", model="big", failure=failure, seconds=seconds))


def test_the_morning_is_told_what_the_night_waited_for(cli: Cli, tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    story.add(1.0, title="Seed")
    for _ in range(2):
        spend(story, "the connection broke")
    spend(story)  # twice is no outage
    for _ in range(3):
        spend(story, "the endpoint answered 429: usage limit reached")
    spend(story, seconds=60.0)  # asked before all that, by an agent beside: not the end of it
    spend(story, "the endpoint answered 429: usage limit reached")
    spend(story)
    story.journal.append(Halted(engine="e", reason="asleep", seconds=3600.0))
    story.journal.append(Halted(engine="e", reason="no-room", seconds=90.0))
    for _ in range(4):
        spend(story, "no connection within 10 s")
    page = cli("report", cwd=story.folder).out
    assert "big did not answer, 4 attempts: the endpoint answered 429: usage limit reached" in page
    assert re.search(r"1:00:00 +the machine slept, or the process was stopped", page)
    assert re.search(r"1:30 +the disk was full", page)
    assert "big did not answer, 4 attempts: no connection within 10 s" in page
    assert "the connection broke" not in page
    told = cli("report", "--json", cwd=story.folder).json["interruptions"]
    assert sorted(each["what"] for each in told) == ["asleep", "endpoint", "endpoint", "no-room"]
    assert [each["until"] for each in told if "no connection" in each["why"]] == [None]


def test_what_broken_calls_may_cost_is_told_apart_and_an_outage_is_no_unusable_proposal(
    cli: Cli, tmp_path: Path
) -> None:
    story = Story(tmp_path / "repo")
    seed = story.add(1.0, title="Seed")
    known = {"engine": "e", "agent": "a1", "model": "big"}
    story.journal.append(Spent(move=1, prompt=1000, completion=100, dollars=0.25, **known))
    lost = {"failure": "the connection broke", "estimated": True}
    story.journal.append(Spent(move=1, prompt=1000, completion=9000, dollars=1.5, **lost, **known))
    story.journal.append(Spent(move=2, failure="the endpoint answered 500: no", dollars=0.0, **known))
    for move, reason in ((1, "no edit block"), (2, "the endpoint answered 500: no")):
        story.journal.append(FailedProposal(engine="e", move=move, agent="a1", parents=(seed,), reason=reason))
    page = cli("report", cwd=story.folder).out
    told = cli("status", "--json", cwd=story.folder).json
    assert [told[name] for name in ("proposals", "unusable", "unanswered")] == [1, 1, 1]
    assert told["spending"]["answered"] == {"calls": 1, "tokens": 1100, "dollars": 0.25}
    assert told["spending"]["at_most"] == {"calls": 1, "tokens": 10_000, "dollars": 1.5}
    assert re.search(r"\$0\.25\b.*\$1\.50 at most", page)
    assert re.search(r"1 +1 +no edit block", page)
    assert not re.search(r"1 +2 +the endpoint answered 500", page)
    spent = cli("report", "--json", cwd=story.folder).json["spending"]
    assert (spent["broken"], spent["broken_dollars"]) == (1, 1.5)


def propose(story: Story, value: float, parent: str, **known: Any) -> str:
    """A candidate by a model: its commit says which."""
    tree = story.repository.trees.write(None, {"main.py": f"VALUE = {value}\n".encode()})
    commit = story.repository.commit(
        tree, (parent,), author="a1", time=0, title="t", trailers={"Agent": "a1", "Model": "gpt"}
    )
    story.journal.append(
        Proposed(
            engine="f",
            move=1,
            candidate=commit,
            tree=tree,
            parents=(parent,),
            agent="a1",
            operator="mutation",
            strategy="blocks",
        )
    )
    story.judge(commit, value)
    return commit


def test_agents_models_and_money_are_counted(tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    start = story.history.started
    assert isinstance(start, RunStarted)
    population = [{"kind": "editor", "model": "gpt", "count": 1}, {"kind": "mutator", "model": "", "count": 1}]
    known = {name: getattr(start, name) for name in start.__slots__ if name not in ("engine", "settings")}
    story.journal.append(RunStarted(engine="f", settings={"population": population}, **known))
    seed = story.add(1.0, title="Seed")
    story.journal.append(Spent(engine="f", move=1, agent="a1", model="gpt", prompt=10, completion=5, dollars=0.5))
    propose(story, 3.0, seed)
    story.journal.append(Duplicate(engine="f", move=2, agent="a1", first=seed))
    story.journal.append(FailedProposal(engine="f", move=3, agent="a2", parents=(seed,), reason="line 3 is no edit"))
    story.journal.append(FailedProposal(engine="f", move=4, agent="a2", parents=(seed,), reason="line 14 is no edit"))
    story.journal.append(Decision(kind="guide", by="Ada", reason="keep it short"))
    story.journal.append(Tactic(engine="f", move=5, agent="a1", best=seed, text="sort first"))
    record = report_record(story.repository, story.history)
    first, second = record["contributions"]["agents"]
    assert (first["name"], first["kind"], first["proposals"], first["best_step"]) == ("a1", "editor@gpt", 2, 2.0)
    assert (first["tokens"], first["dollars"], first["dollars_per_improvement"]) == (15, 0.5, 0.5)
    assert (second["kind"], second["proposals"], second["candidates"]) == ("mutator", 2, 0)
    assert [(row["name"], row["records"]) for row in record["contributions"]["models"]] == [("gpt", 1)]
    operators = {row["name"]: (row["proposals"], row["dollars"]) for row in record["contributions"]["operators"]}
    assert operators == {"mutation (blocks)": (1, 0.5), "mutation": (3, 0.0)}
    assert record["failures"]["proposals"] == [{"reason": "line 14 is no edit", "count": 2, "move": 4}]
    assert record["asked"]["guidance"] == ["keep it short"]
    assert record["asked"]["tactics"] == [{"agent": "a1", "move": 5, "text": "sort first"}]
    assert record["asked"]["agents"] == ["editor@gpt:1", "mutator:1"]


def test_who_fails_when_judged_again_is_counted_once_as_failed(tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    seed = story.add(1.0)
    fine = story.add(2.0, seed, adopt=True)
    story.add(None, seed)
    metrics = story.history.started.metrics if story.history.started else ()
    story.journal.append(
        TaskChanged(by="Ada", task_digest="2", metrics=metrics, split="train", evaluator="w", editable=("*.py",))
    )
    for commit, status in ((seed, "ok"), (fine, "invalid")):
        judged = Evaluation(status=status, metrics={"score": 1.0}, reason="hm", evaluator="w")  # type: ignore[arg-type]
        story.journal.append(Evaluated(candidate=commit, evaluation=judged))
        story.journal.append(Evaluated(candidate=commit, evaluation=judged))
    record = report_record(story.repository, story.history)
    assert (record["evaluated"], record["failed"]) == (3, 2)
    assert record["spent"]["failed"] == {"invalid": 1, "timeout": 1}


@pytest.mark.parametrize(
    ("holdout", "said"), [(1.05, "no better than the seed on the holdout"), (None, "fails on the holdout"), (1.2, "")]
)
def test_a_gain_that_the_holdout_does_not_show_is_remarked(tmp_path: Path, holdout: float | None, said: str) -> None:
    story = Story(tmp_path / "repo")
    best = story.add(2.0, story.add(1.0, holdout=1.1))
    story.judge(best, holdout, split="holdout")
    assert said in "".join(remarks(story.history))
    assert bool(said) == bool(remarks(story.history))


@pytest.mark.slow
def test_a_run_ends_with_a_short_form_of_it(cli: Cli, tmp_path: Path) -> None:
    cli("new", "sine")
    done = cli("run", "sine", "--evaluations", "12")
    assert "reached: evaluations" in done.out
    assert "evogit -C evogit-sine report" in done.out
    page = cli("-C", "evogit-sine", "report", cwd=tmp_path).out
    assert "12 of 12 evaluations" in page
    verify = [line.split() for line in page.splitlines() if " check --uncommitted DIR --task FOLDER" in line]
    assert verify
    assert cli("-C", "evogit-sine", "export", "best", "out").code == 0
    assert cli("-C", "evogit-sine", "check", "--uncommitted", "out", "--task", "sine").code == 0
    assert not subprocess.run(
        ["git", "status", "--porcelain"], cwd=tmp_path / "evogit-sine", capture_output=True, check=True
    ).stdout


def test_a_full_disk_is_told_while_it_is_waited_for(cli: Cli, small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "the disk is full" not in cli("status", cwd=small.folder).out
    monkeypatch.setattr("evogit.repository.faults.ROOM", 1 << 60)
    assert "the disk is full, and an engine waits for room" in cli("status", cwd=small.folder).out


def test_the_way_to_the_best_follows_the_fittest_parents(tmp_path: Path) -> None:
    story = Story(tmp_path / "repo", direction="minimize")
    seed = story.add(9.0)
    poor, good = story.add(8.0, seed), story.add(4.0, seed)
    merged = story.add(3.0, poor, good)
    assert [(step["commit"], step["gain"]) for step in steps(story.history, merged)] == [
        (seed, None),
        (good, 5.0),
        (merged, 1.0),
    ]
