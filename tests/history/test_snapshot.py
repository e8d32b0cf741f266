from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import asdict

from evogit.core import Beside, Cost, Evaluation, Metric
from evogit.events import (
    Adopted,
    Compared,
    Decision,
    Duplicate,
    Evaluated,
    Event,
    FailedProposal,
    Forked,
    Proposed,
    Reviewed,
    RunStarted,
    Spent,
    Stopped,
    TaskChanged,
)
from evogit.history import History, snapshot
from evogit.history.context import StoredRun
from evogit.history.pages import Pages
from evogit.history.snapshot import LEAST
from evogit.repository import Repository
from evogit.review.removing import remove
from evogit.testing import RecordedRun, run_started

RUN = "r"
ABOUT: dict[str, Any] = {"task_digest": "d", "split": "train", "evaluator": "v", "editable": ("*",)}


def commit(number: int) -> str:
    return f"{number:040x}"


def started(judged: str = "outside", repeats: int = 0, *, paired: bool = False, reviewer: str = "") -> RunStarted:
    metric = Metric(name="m", direction="minimize", primary=True, baseline=1.5)
    settings: Any = {
        "population": [{"kind": "mutator", "count": 2}],
        "selector": "elitist",
        **({"reviewer": reviewer} if reviewer else {}),
    }
    known = {"metrics": (metric,), "agents": ("a1", "a2"), "settings": settings, **ABOUT}
    return run_started(judged=judged, repeats=repeats, paired=paired, **known)


def proposed(number: int, parents: tuple[int, ...]) -> Proposed:
    return Proposed(
        engine="e",
        move=number,
        candidate=commit(number),
        tree=commit(number % 7 + 900),
        parents=tuple(map(commit, parents)),
        agent=("a1", "human", "minimize")[number % 3] if parents else "a1",
        operator=("seed", "mutation", "merge")[len(parents)],  # type: ignore[arg-type]
        strategy=("", "number@0.03+swap", "fitter")[len(parents)],
        title="größer\n",
        shown=tuple(map(commit, range(max(number - number % 4, 0), number))),
        inspirations=tuple(map(commit, range(max(number - number % 3, 0), number))),
        fingerprint=f"{number % 5:016x}",
        evidence=commit(7) if number % 4 == 0 else "",
    )


def evaluated(
    number: int, value: float, repeat: int = 0, status: Any = "ok", split: str = "train", beside: Beside | None = None
) -> Evaluated:
    evaluation = Evaluation(
        status=status,
        metrics={"m": value} if status == "ok" else {},
        cases={"é": {"m": value / 3}} if status == "ok" else {},
        reason="" if status == "ok" else "it\nbroke",
        cost=Cost(wall=1.0, memory=number),
        repeat=repeat,
        split=split,
        evaluator="v",
        key=f"{number}",
        beside=beside,
    )
    return Evaluated(candidate=commit(number), evaluation=evaluation, evidence=commit(8))


def happening(known: int) -> st.SearchStrategy[Event]:
    """One more fact about a run in which so many candidates were proposed before."""
    one = st.integers(0, known - 1)
    parents = st.one_of(st.tuples(one), st.tuples(one, one))
    made: dict[str, Any] = {"engine": "e", "agent": "a2"}
    statuses = st.sampled_from(["ok", "ok", "ok", "invalid", "evaluator-error", "flaky"])
    values = st.floats(-1e9, 1e9)
    pair = {"winner": st.sampled_from(["a", "b", "tie"]), "judge": st.sampled_from(["j", "k"])}
    return st.one_of(
        st.builds(evaluated, one, values, st.sampled_from([0, 0, 0, 1, 2]), statuses),
        st.builds(evaluated, one, values, split=st.just("holdout")),
        st.builds(
            lambda each, reference, value, other, repeat: evaluated(
                each, value, repeat, beside=Beside(candidate=commit(reference), metrics={"m": other})
            ),
            one,
            one,
            st.floats(0, 1e308),
            st.floats(0, 1e308),
            st.integers(1, 3),
        ),
        st.builds(lambda each: Adopted(agent="a1", candidate=commit(each)), one),
        st.builds(lambda each: Duplicate(move=5, first=commit(each[0]), parents=(commit(each[-1]),), **made), parents),
        st.builds(
            lambda each, why: FailedProposal(move=9, parents=(commit(each),), reason=why, **made), one, st.text()
        ),
        st.builds(
            lambda move, model, cost: Spent(move=move, model=model, dollars=cost, prompt=3, **made),
            st.integers(0, known),
            st.sampled_from(["x", "y"]),
            st.one_of(st.none(), st.floats(0, 1)),
        ),
        st.builds(
            lambda a, b, known, **told: Compared(by="model", a=commit(a), b=commit(b), calibration=known, **told),
            one,
            one,
            st.booleans(),
            **pair,
        ),
        st.builds(
            lambda kind, each, whole: Decision(kind=kind, by="me", candidates=(commit(each),), subtree=whole),
            st.sampled_from(["promote", "prune", "guide"]),
            one,
            st.booleans(),
        ),
        st.builds(
            lambda each, verdict: Reviewed(engine="e", candidate=commit(each), model="x", verdict=verdict, reason="no"),
            one,
            st.sampled_from(["passed", "refused", "unreviewed"]),
        ),
        st.just(TaskChanged(by="me", metrics=started().metrics, **ABOUT)),
        st.just(Stopped(engine="e", reason="asked")),
        st.just(Forked(run="o", entry=commit(3), population="refs/heads/evogit/q/")),
    )


@st.composite
def runs(draw: st.DrawFn) -> list[Event]:
    """Runs of all kinds: exact, noisy, measured side by side and judged by pairs."""
    kinds = [started(), started(repeats=2), started(repeats=2, paired=True), started(judged="pairs")]
    kinds += [started(reviewer="x"), started(repeats=2, reviewer="x")]
    first = draw(st.sampled_from(kinds))
    events: list[Event] = [first, proposed(0, ()), evaluated(0, 3.0)]
    for number in range(1, draw(st.integers(1, 9))):
        one = st.integers(0, number - 1)
        events.append(proposed(number, draw(st.one_of(st.tuples(one), st.tuples(one, one)))))
        events += draw(st.lists(happening(number + 1), max_size=5))
    return events


def told(value: Any) -> Any:
    """All that an object holds, but for what is derived from the rest when asked for."""
    if is_dataclass(value):
        names = [each.name for each in fields(value) if not each.metadata.get("derived")]
        return type(value), {name: told(getattr(value, name)) for name in names}
    if isinstance(value, Struct):
        return type(value), {name: told(each) for name, each in asdict(value).items()}
    if isinstance(value, Pages):
        return [(key, told(value.get(key))) for key in value]
    if isinstance(value, dict):
        return type(value), [(told(key), told(each)) for key, each in value.items()]
    if isinstance(value, tuple | list):
        return [told(each) for each in value]
    return value


def write(repository: Repository, events: list[Event]) -> None:
    journal = repository.journal(RUN, lambda entry: None)
    for event in events:
        journal.append(event)


def rebuilt(repository: Repository) -> History:
    history = History(RUN)
    repository.journal(RUN, history.apply)
    return history


def opened(repository: Repository) -> History:
    return StoredRun.open(Repository.open(repository.path), RUN).history


def file(repository: Repository) -> Path:
    return repository.snapshot(RUN).path


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(events=runs(), share=st.floats(0, 1))
def test_a_state_that_was_saved_and_went_on_is_the_one_of_all_entries(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event], share: float
) -> None:
    repository = Repository.create(tmp_path_factory.mktemp("snapshot") / "r")
    cut = max(int(share * len(events)), 1)
    write(repository, events[:cut])
    before = StoredRun.open(repository, RUN)
    assert (position := before.journal.position)
    snapshot.save(repository, before.history, position)
    write(repository, events[cut:])
    loaded = snapshot.load(repository, RUN)
    assert loaded
    assert told(loaded[0]) == told(before.history)
    assert told(opened(repository)) == told(rebuilt(repository))


def test_the_spread_of_a_noisy_run_is_saved_once_it_was_asked_for(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "r")
    events = [started(repeats=2), proposed(0, ()), *(evaluated(0, 3.0 + repeat, repeat) for repeat in range(3))]
    write(repository, events)
    before = StoredRun.open(repository, RUN)
    interval = before.history.interval(commit(0))
    assert (position := before.journal.position)
    snapshot.save(repository, before.history, position)
    assert interval is not None
    assert opened(repository).interval(commit(0)) == interval


@pytest.fixture(scope="module")
def long_made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a run that is worth a snapshot, which nobody has read yet; tests copy it."""
    repository = Repository.create(tmp_path_factory.mktemp("long") / "r")
    events: list[Event] = [started(), proposed(0, ())]
    for number in range(1, LEAST // 2 + 10):
        events += [proposed(number, (number // 2,)), evaluated(number, 1 / number)]
    write(repository, events)
    return repository.path


@pytest.fixture
def long(long_made: Path, tmp_path: Path) -> Repository:
    shutil.copytree(long_made, tmp_path / "long", symlinks=True)
    return Repository.open(tmp_path / "long")


def test_what_was_appended_since_is_read_and_added_once_there_is_enough_of_it(long: Repository) -> None:
    assert not file(long).exists()
    opened(long)
    before = file(long).read_bytes()
    write(long, [Adopted(agent="a2", candidate=commit(1))])
    assert opened(long).heads == {"a2": commit(1)}
    assert file(long).read_bytes() == before
    write(long, [Adopted(agent="a2", candidate=commit(number % 9)) for number in range(LEAST)])
    assert told(opened(long)) == told(rebuilt(long))
    assert file(long).read_bytes() != before
    assert told(opened(long)) == told(rebuilt(long))


DAMAGES: list[Callable[[bytes], bytes]] = [
    lambda content: content[: len(content) // 2],
    lambda content: content.replace(b"mutation", b"Mutation", 1),
    lambda content: content.replace(b"snapshot ", b"snapshot 0", 1),
    lambda content: content + b" ",
    lambda content: b"\0\xff\n" * 99,
    lambda content: b"",
    lambda content: b'evogit snapshot 0badcafe 0badcafe\n{"tips":{},"seq":3,"state":{}}',  # as older versions wrote it
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_snapshot_does_no_harm_and_is_replaced(long: Repository, damage: Callable[[bytes], bytes]) -> None:
    opened(long)
    whole = file(long).read_bytes()
    file(long).write_bytes(damage(whole))
    assert file(long).read_bytes() != whole
    assert told(opened(long)) == told(rebuilt(long))
    assert file(long).read_bytes() == whole


def test_a_snapshot_that_somebody_else_sealed_is_not_used(
    long: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = StoredRun.open(long, RUN)
    assert run.journal.position
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "strangers"))
    run.history.heads["a2"] = commit(7)
    snapshot.save(long, run.history, run.journal.position)
    assert opened(long).heads == {"a2": commit(7)}, "it could be read"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "own"))
    assert opened(long).heads == {}


def test_there_is_no_snapshot_where_no_key_can_be_kept(
    long: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert told(opened(long)) == told(rebuilt(long))
    assert not file(long).exists()


def test_a_snapshot_of_another_chain_is_not_used(long: Repository) -> None:
    opened(long)
    other = Repository.create(long.path.parent / "other")
    write(other, [started(), proposed(0, ())])
    file(other).parent.mkdir(parents=True)
    file(other).write_bytes(file(long).read_bytes())
    assert len(opened(other).phylogeny) == 1


def test_a_journal_that_was_put_back_is_read_as_it_is_now(long: Repository) -> None:
    before = StoredRun.open(long, RUN)
    write(long, [Adopted(agent="a2", candidate=commit(1))])
    assert before.journal.position
    snapshot.save(long, opened(long), StoredRun.open(long, RUN).journal.position or before.journal.position)
    long.move_branch(f"refs/evogit/{RUN}/journal/{long.host}", before.journal.position.tips[long.host])
    assert opened(long).heads == {}


@pytest.mark.slow
def test_entries_of_another_host_that_come_late_take_their_place(long: Repository) -> None:
    opened(long)
    long.move_branch(f"refs/evogit/{RUN}/journal/elsewhere", early(long))
    assert opened(long).heads == {"a9": commit(0)}
    assert told(opened(long)) == told(rebuilt(long))


def early(repository: Repository) -> str:
    """An entry that another host wrote when there was only the seed."""
    elsewhere = Repository.create(repository.path.parent / "elsewhere")
    write(elsewhere, [Adopted(agent="a9", candidate=commit(0))])
    tip = elsewhere.target(f"refs/evogit/{RUN}/journal/{elsewhere.host}")
    assert tip
    fetch = ["git", "fetch", "-q", str(elsewhere.path), f"refs/evogit/{RUN}/*:refs/elsewhere/*"]
    subprocess.run(fetch, cwd=repository.path, check=True)
    return tip


def test_nothing_of_a_run_that_is_removed_stays(long: Repository) -> None:
    opened(long)
    remove(long, RUN)
    assert not file(long).parent.exists()


def test_a_folder_that_cannot_be_written_does_no_harm(long: Repository) -> None:
    (long.common / "evogit" / "cache").write_text("in the way")
    assert told(opened(long)) == told(rebuilt(long))


def test_what_an_engine_wrote_is_kept_for_who_reads_next_once_it_is_worth_it(long: Repository) -> None:
    run = StoredRun.open(long, RUN)
    before, whole = run.entries, file(long).read_bytes()
    run.journal.append(Adopted(agent="a2", candidate=commit(1)))
    run.keep(before)
    assert file(long).read_bytes() == whole
    for number in range(LEAST):
        run.journal.append(Adopted(agent="a2", candidate=commit(number % 9)))
    run.keep(before)
    assert (known := snapshot.load(long, RUN))
    assert known[1].entries == run.entries == before + LEAST + 1
    assert told(known[0]) == told(rebuilt(long))


def test_of_a_snapshot_only_what_is_asked_for_is_decoded(long: Repository) -> None:
    opened(long)
    history = opened(long)
    assert "trees" not in vars(history)
    assert history.trees == rebuilt(long).trees
    assert "trees" in vars(history)
    with pytest.raises(AttributeError, match="nothing"):
        history.nothing  # type: ignore[attr-defined]  # noqa: B018


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of three values, of which two are decoded at a time, and no more than fifteen values on none."""
    monkeypatch.setattr("evogit.history.pages.PAGE", 3)
    monkeypatch.setattr("evogit.history.pages.MOST_FRESH", 3)
    monkeypatch.setattr("evogit.history.pages.MOST_OPEN", 2)


def lived(repository: Repository) -> RecordedRun:
    """A run of fifty candidates, some of which failed, some evaluated again on another split long after."""
    run = RecordedRun(repository, "r")
    made = [run.propose()]
    run.evaluate(made[0], 1.0)
    for number in range(1, 50):
        run.append(Spent(engine="e", move=number, agent="a1", model="m", prompt=number, dollars=0.5))
        made.append(run.propose(made[number // 2], move=number))
        run.evaluate(made[-1], "crashed" if number % 4 == 0 else number / 3)
        if number % 5 == 0:
            run.evaluate(made[number // 3], float(number), split="holdout")
    return run


def read(repository: Repository) -> History:
    history = History("r")
    repository.journal("r", history.apply)
    return history


def test_what_came_long_ago_is_kept_as_columns_and_says_the_same(tmp_path: Path, small: None) -> None:
    run = lived(Repository.create(tmp_path / "r"))
    again = read(run.repository)
    for history in (run.history, again):
        assert [each.commit for each in history.phylogeny] == list(history.phylogeny.ids)
        assert history.evaluation(history.phylogeny.ids[1], "holdout") is not None, "though it came after the page"
        assert history.course.moments.fresh < len(history.course.moments) == 50
        assert history.authors.efforts.fresh < len(history.authors.efforts) == 49
        assert all(effort.done for effort in history.authors.efforts.values())
    assert told(again) == told(run.history)


def test_pages_in_memory_and_in_a_snapshot_go_on_together(tmp_path: Path, small: None) -> None:
    run = lived(Repository.create(tmp_path / "r"))
    stored = StoredRun.open(run.repository, "r")
    for turn in range(3):
        assert (position := stored.journal.position)
        snapshot.save(run.repository, stored.history, position)
        run = RecordedRun(run.repository, "r")
        child = run.propose(run.history.phylogeny.ids[turn])
        run.evaluate(child, 100.0 + turn)
        run.evaluate(run.history.phylogeny.ids[turn + 1], 7.0, split="holdout")
        stored = StoredRun.open(run.repository, "r")
        assert told(stored.history) == told(read(run.repository))


def test_of_decoded_pages_only_the_last_stay(tmp_path: Path, small: None) -> None:
    history = lived(Repository.create(tmp_path / "r")).history
    pages: Pages[str, object] = history.course.moments
    first = pages[history.phylogeny.ids[0]]
    assert pages[history.phylogeny.ids[0]] is first
    list(pages.values())
    assert pages[history.phylogeny.ids[0]] is not first
    assert pages[history.phylogeny.ids[0]] == first
