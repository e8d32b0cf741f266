from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import pytest

from evogit.core import Evaluation, Metric, Operator, RefusedError, RepositoryError, StopReason
from evogit.events import Adopted, Duplicate, Entry, Evaluated, Event, Stopped
from evogit.repository import Repository
from evogit.repository.journal import CHUNK, Backlog
from evogit.testing import run_started

COMMIT = "1" * 40

WRITER = """
import sys
from pathlib import Path
from evogit.events import (Adopted)
from evogit.repository import Repository
journal = Repository.open(Path(sys.argv[1])).journal("r", lambda entry: None)
for number in range(int(sys.argv[3])):
    journal.append(Adopted(agent=sys.argv[2], candidate=f"{number:040x}"))
"""


def adopted(agent: str = "a1") -> Adopted:
    return Adopted(agent=agent, candidate=COMMIT)


def test_the_page_on_the_format_names_every_field_of_every_record() -> None:
    page = (Path(__file__).parents[2] / "docs" / "design" / "journal.md").read_text()
    rows = {
        row[1]: set(re.findall("`([a-z_-]+)`", row[2])) for row in re.finditer(r"(?m)^\| `([a-z-]+)` \|(.*)$", page)
    }
    known = {event.__struct_defaults__[0]: event for event in get_args(Event)}
    missing = {name: set(event.__struct_fields__) - rows[name] - {"event"} for name, event in known.items()}
    missing["evaluated"] |= set(Evaluation.__struct_fields__) - rows["evaluated"]
    missing["proposed"] |= set(get_args(Operator)) - rows["proposed"]
    missing["stopped"] |= set(get_args(StopReason)) - rows["stopped"]
    assert not any(missing.values()), missing


def test_what_is_appended_comes_back_in_order_and_whole(repository: Repository) -> None:
    events = [
        run_started(
            metrics=(Metric(name="m", direction="maximize", primary=True, best_known=2.0),),
            agents=("a1", "a2"),
            settings={"seed": 3},
        ),
        Evaluated(candidate=COMMIT, evaluation=Evaluation(status="ok", metrics={"m": 0.1}, cases={"é": {"m": 0.1}})),
        Duplicate(engine="h-1", move=2, agent="a1", first=COMMIT),
        Stopped(engine="h-1", reason="evaluations"),
    ]
    journal = repository.journal("r", lambda entry: None)
    for event in events:
        journal.append(event)
    read: list[Entry] = []
    repository.journal("r", read.append)
    assert [entry.event for entry in read] == events
    assert [entry.seq for entry in read] == [1, 2, 3, 4]
    assert {entry.host for entry in read} == {repository.host}


def test_half_a_character_stops_neither_readers_nor_notes(repository: Repository, git) -> None:
    record = {"evogit": 1, "seq": 1, "event": "evaluated", "candidate": COMMIT, "instead": "a\ud800b"}
    text = json.dumps({**record, "evaluation": {"status": "ok", "cases": {"\ud800": {}}}})
    commit = git("commit-tree", repository.trees.write(None, {}), "-m", f"x\n\n{text}").strip()
    git("update-ref", f"refs/evogit/r/journal/{repository.host}", commit)
    read: list[Entry] = []
    repository.journal("r", read.append)
    event = read[0].event
    assert isinstance(event, Evaluated)
    assert (event.instead.encode(), list(event.evaluation.cases)) == (b"a?b", ["?"])
    repository.write_notes("r", {commit: "a\ud800b"})


def test_another_reader_sees_only_what_is_new_and_is_written(repository: Repository) -> None:
    read: list[Entry] = []
    reader = repository.journal("r", read.append)
    writer = repository.journal("r", lambda entry: None)
    assert repository.runs() == [], "opening a journal leaves no trace of it"
    writer.append(adopted())
    reader.refresh()
    reader.refresh()
    assert writer.append(adopted("unwritten"), unless=lambda: True) is None
    writer.append(adopted("a2"))
    reader.refresh()
    assert [entry.event for entry in read] == [adopted(), adopted("a2")]


def test_journals_of_other_hosts_are_merged_by_the_clock(repository: Repository, git) -> None:
    journal = repository.journal("r", lambda entry: None)
    journal.append(adopted("mine"))
    tip = git("rev-parse", f"refs/evogit/r/journal/{repository.host}").strip()
    git("update-ref", "refs/evogit/r/journal/other-abcdef", tip)
    record = {"evogit": 1, "seq": 7, "event": "adopted", "agent": "theirs", "candidate": COMMIT}
    tree = git("rev-parse", f"{tip}^{{tree}}").strip()
    theirs = git("commit-tree", tree, "-m", f"x\n\n{json.dumps(record)}").strip()
    git("update-ref", "refs/evogit/r/journal/other-abcdef", theirs)
    read: list[Entry] = []
    entry = repository.journal("r", read.append).append(adopted("after"))
    assert entry is not None
    assert entry.seq == 8, "the clock passes what was seen of others"
    again: list[Entry] = []
    repository.journal("r", again.append)
    for seen in (read, again):
        assert [item.event.agent for item in seen if isinstance(item.event, Adopted)] == ["mine", "theirs", "after"]


METRIC = {"name": "m", "direction": "maximize"}
CHANGED = {"event": "task-changed", "by": "p", "task_digest": "", "split": "train", "evaluator": "", "editable": []}
BORN = {"event": "proposed", "engine": "e", "move": 1, "candidate": COMMIT, "tree": COMMIT, "agent": "a1"}


@pytest.mark.parametrize(
    "damage",
    [
        {"evogit": 2, "event": "adopted", "agent": "a1", "candidate": COMMIT},
        {"event": "teleported"},
        {"seq": "first", "event": "adopted", "agent": "a1", "candidate": COMMIT},
        {"event": ["adopted"]},
        {"event": "adopted", "agent": "a1", "candidate": "HEAD"},
        {"event": "decision", "kind": "prune", "by": "p", "candidates": ["../../x"]},
        {"event": "decision", "kind": "land", "by": "p"},
        {"event": "evaluated", "candidate": COMMIT, "evaluation": {"status": "ok", "metrics": {"m": float("inf")}}},
        {**CHANGED, "metrics": [METRIC]},
        {**BORN, "operator": "graft", "parents": [COMMIT]},
    ],
)
def test_what_no_engine_writes_is_one_sentence(repository: Repository, git, damage: dict[str, object]) -> None:
    tree = repository.trees.write(None, {})
    commit = git("commit-tree", tree, "-m", f"x\n\n{json.dumps({'evogit': 1, 'seq': 1, **damage})}").strip()
    git("update-ref", f"refs/evogit/r/journal/{repository.host}", commit)
    is_newer = damage.get("evogit") == 2 or damage["event"] == "teleported"
    with pytest.raises(RefusedError if is_newer else (RepositoryError, RefusedError)):
        repository.journal("r", lambda entry: None)


@pytest.mark.slow
def test_two_processes_lose_no_entry(repository: Repository) -> None:
    arguments = [sys.executable, "-c", WRITER, str(repository.path)]
    writers = [subprocess.Popen([*arguments, agent, "400"]) for agent in ("a1", "a2")]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    read: list[Entry] = []
    repository.journal("r", read.append)
    for agent in ("a1", "a2"):
        mine = [e.event.candidate for e in read if isinstance(e.event, Adopted) and e.event.agent == agent]
        assert mine == [f"{number:040x}" for number in range(400)]
    assert [entry.seq for entry in read] == list(range(1, 801))


def test_a_stale_lock_is_waited_for_and_broken(repository: Repository) -> None:
    journal = repository.journal("r", lambda entry: None)
    journal.append(adopted())
    lock = repository.common / f"refs/evogit/r/journal/{repository.host}.lock"
    lock.touch()
    old = time.time() - 60
    os.utime(lock, (old, old))
    assert journal.append(adopted("a2")) is not None
    assert not lock.exists()


def test_evidence_and_candidates_survive_garbage_collection(repository: Repository, git) -> None:
    journal = repository.journal("r", lambda entry: None)
    tree = repository.trees.write(None, {"a.py": b"1"})
    trailers = {"Agent": "a1"}
    kept = repository.commit(tree, (), author="a1", time=1, title="kept", trailers=trailers)
    lost = repository.commit(tree, (), author="a1", time=2, title="lost", trailers=trailers)
    evidence = journal.keep({"stdout": b"hello"}, kept)
    assert journal.keep({}, kept) == ""
    git("gc", "--prune=now", "-q")
    assert git("cat-file", "-p", f"{evidence}:stdout") == "hello"
    assert git("cat-file", "-t", kept).strip() == "commit"
    objects = git("cat-file", "--batch-all-objects", "--batch-check")
    assert kept in objects
    assert lost not in objects


@pytest.mark.parametrize("amount", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7])
def test_records_come_out_oldest_first_and_as_they_were(amount: int) -> None:
    records = [
        (f"{number:040x}", "host é", 1_700_000_000 + number, f"größer\n\n{number}\n") for number in range(amount)
    ]
    backlog = Backlog()
    for name, who, when, message in reversed(records):
        backlog.add((name.encode(), who.encode(), when, message.encode()))
    assert len(backlog) == amount
    assert list(backlog) == records
