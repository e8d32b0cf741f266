from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evogit.core import Adopted, Cost, Entry, Evaluated, Evaluation, Event, FailedProposal, Metric, Proposed, RunStarted
from evogit.repository import Repository
from evogit.repository.journal_cache import HEAD, LEAST
from evogit.review.removing import remove

RUN = "r"


def events(amount: int) -> list[Event]:
    """Of all shapes: nested ones, lists, mappings of mappings, numbers without and with a fraction."""
    metric = Metric(name="m", direction="minimize", primary=True, baseline=1.5)
    about = {"engine": "e", "task": "t", "task_digest": "d", "evaluator": "v", "provider": "none", "image": ""}
    found: list[Event] = [
        RunStarted(metrics=(metric,), split="train", agents=("a1",), population="p/", editable=("*",), **about)
    ]
    for number in range(amount - 1):
        made = {"engine": "e", "move": number, "agent": "a1"}
        commit, parents = f"{number:040x}", (f"{1:040x}", f"{2:040x}")
        cases = {"é": {"m": number / 3}}
        cost = Cost(wall=1.0, memory=number)
        kinds: list[Event] = [
            Proposed(candidate=commit, tree=commit, parents=parents, operator="merge", title="größer\n", **made),
            Evaluated(
                candidate=commit, evaluation=Evaluation(status="ok", metrics={"m": 1e300}, cases=cases, cost=cost)
            ),
            FailedProposal(parents=(), reason="no change", **made),
            Adopted(agent="a1", candidate=commit),
        ]
        found.append(kinds[number % len(kinds)])
    return found


@pytest.fixture
def written(repository: Repository) -> Repository:
    """A repository with a journal that is worth a cache, which nobody has read yet."""
    journal = repository.journal(RUN, lambda entry: None)
    for event in events(LEAST + 50):
        journal.append(event)
    return repository


def read(repository: Repository) -> list[Entry]:
    found: list[Entry] = []
    Repository.open(repository.path).journal(RUN, found.append)
    return found


def cache(repository: Repository) -> Path:
    return repository.common / "evogit" / "cache" / RUN / repository.host


def test_a_journal_reads_the_same_with_a_cache_as_without(written: Repository) -> None:
    assert not cache(written).exists()
    without = read(written)
    assert cache(written).exists()
    assert read(written) == without
    assert [entry.event for entry in without] == events(LEAST + 50)


def test_what_was_appended_since_is_read_and_added_once_there_is_enough_of_it(written: Repository) -> None:
    read(written)
    journal, before = written.journal(RUN, lambda entry: None), cache(written).read_bytes()
    journal.append(Adopted(agent="a2", candidate="1" * 40))
    assert read(written)[-1].event == Adopted(agent="a2", candidate="1" * 40)
    assert cache(written).read_bytes() == before
    for event in events(LEAST):
        journal.append(event)
    assert len(read(written)) == 2 * LEAST + 51
    assert cache(written).read_bytes().startswith(before)
    assert len(cache(written).read_bytes()) > len(before)
    assert len(read(written)) == 2 * LEAST + 51


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    return content.replace(b"no change", b"no chance", 1)


def of_another_version(content: bytes) -> bytes:
    return content.replace(HEAD, HEAD.replace(b" 1 ", b" 2 "))


def with_a_line_twice(content: bytes) -> bytes:
    return content + content.splitlines(keepends=True)[1]


def binary(content: bytes) -> bytes:
    return b"\0\xff\n" * 99


@pytest.mark.parametrize("damage", [cut, flipped, of_another_version, with_a_line_twice, binary, lambda content: b""])
def test_a_damaged_cache_does_no_harm_and_is_replaced(written: Repository, damage: Callable[[bytes], bytes]) -> None:
    without = read(written)
    whole = cache(written).read_bytes()
    cache(written).write_bytes(damage(whole))
    assert read(written) == without
    assert cache(written).read_bytes().startswith(whole)


def test_a_cache_of_another_chain_is_not_used(written: Repository) -> None:
    read(written)
    other = Repository.create(written.path.parent / "other")
    journal = other.journal(RUN, lambda entry: None)
    for number in range(3):
        journal.append(Adopted(agent="a9", candidate=f"{number:040x}"))
    cache(other).parent.mkdir(parents=True)
    cache(other).write_bytes(cache(written).read_bytes())
    assert [entry.event.agent for entry in read(other) if isinstance(entry.event, Adopted)] == ["a9"] * 3


def test_a_journal_that_was_put_back_is_read_as_it_is_now(written: Repository) -> None:
    entries = read(written)
    ref = f"refs/evogit/{RUN}/journal/{written.host}"
    written.move_branch(ref, entries[9].id)
    assert read(written) == entries[:10]


def test_nothing_of_a_run_that_is_removed_stays(written: Repository) -> None:
    read(written)
    remove(written, RUN)
    assert not (written.common / "evogit" / "cache").exists()


def test_a_folder_that_cannot_be_written_does_no_harm(written: Repository) -> None:
    (written.common / "evogit" / "cache").write_text("in the way")
    assert read(written) == read(written)
