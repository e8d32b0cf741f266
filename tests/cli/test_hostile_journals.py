"""Journals that somebody wrote with plain Git: they stop no other run, move no ref, and take nothing back."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from evogit.core import RepositoryError
from evogit.engine.projections import Projections
from evogit.events import Adopted, Entry, Proposed, Spent
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.repository.run_keys import commitment
from evogit.review.run_list import RunOverview
from evogit.testing import RecordedRun, run_started
from tests.cli.conftest import Cli
from tests.page.guarding import serving

HOST = "stranger"
ENGINE = "x-000000"
MOST = 60_000
"""Characters that a command may print of what is 3 MB."""


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


START = {
    "event": "run-started",
    "engine": ENGINE,
    "task": "toy",
    "task_digest": "t",
    "metrics": [{"name": "score", "direction": "maximize", "primary": True}],
    "split": "train",
    "evaluator": "v",
    "provider": "none",
    "image": "i",
    "agents": ["a1"],
    "population": "refs/evogit/zz/agents/",
    "editable": ["*.py"],
}
SEED = {
    "event": "proposed",
    "engine": ENGINE,
    "move": 0,
    "candidate": "SEED",
    "tree": "TREE",
    "parents": [],
    "agent": "seed",
    "operator": "seed",
}
SCORE = {
    "event": "evaluated",
    "candidate": "SEED",
    "evaluation": {"status": "ok", "metrics": {"score": 1.0}, "evaluator": "v", "image": "i"},
}
RUN = [START, SEED, SCORE]
HUGE = {"status": "ok", "metrics": {"score": 1e308}}
SECOND = {**SEED, "candidate": "OTHER"}
SPENT = {"event": "spent", "engine": ENGINE, "move": 1, "agent": "a1", "model": "m"}
ADOPTED = {"event": "adopted", "agent": "a1", "candidate": "SEED"}
HALTED = {"event": "halted", "engine": ENGINE, "reason": "asleep", "seconds": 1e308}
LAND = {"event": "decision", "kind": "land", "by": "x", "candidates": ["SEED"], "commit": "SEED"}

DAMAGE: dict[str, list[Any]] = {
    "brackets": ["x\n\n" + "[" * 400_000],
    "braces": ["x\n\n" + '{"a":' * 100_000],
    "infinite clock": ['x\n\n{"evogit":1,"seq":1e999,"event":"adopted","agent":"a1","candidate":""}'],
    "not a record": ["hello"],
    "deep settings": [{**START, "settings": deep(900)}],
    "settings of another shape": [{**START, "settings": {"population": [1]}}],
    "limit that is a text": [{**START, "settings": {"dollars": "x"}}],
    "repeats that are a text": [{**START, "settings": {"confirmations": "x"}}],
    "no evaluations": [{**START, "settings": {"evaluations": 0}}],
    "grace beyond minutes": [{**START, "settings": {"grace": 99, "minutes": 1}}],
    "target that is a list": [{**START, "settings": {"target": [1]}}],
    "selector that is a list": [{**START, "settings": {"selector": [1]}}],
    "consent that is a number": [{**START, "settings": {"agreed": 5}}],
    "a model twice": [{**START, "settings": {"population": [{"kind": "editor", "model": "a,a"}]}}],
    "too many agents": [{**START, "settings": {"population": [{"kind": "mutator", "count": 9_000}] * 2}}],
    "1e308 dollars": [*RUN, {**SPENT, "dollars": 1e308}],
    "10 ** 400 dollars": [*RUN, {**SPENT, "dollars": 10**400}],
    "dollars taken back": [*RUN, {**SPENT, "dollars": -1000.0}],
    "tokens taken back": [*RUN, {**SPENT, "prompt": -(10**9)}],
    "tokens set aside below 0": [*RUN, {**SPENT, "event": "reserved", "completion": -1}],
    "halted for 1e308 s": [*RUN, HALTED],
    "evaluated for 1e308 s": [START, SEED, {**SCORE, "evaluation": {"status": "ok", "cost": {"wall": 1e308}}}],
    "move below 0": [START, {**SEED, "move": -1}],
    "a billion repeats": [{**START, "repeats": 10**9}],
    "seed with parents": [*RUN, {**SECOND, "parents": ["SEED"]}],
    "its own parent": [*RUN, {**SECOND, "parents": ["OTHER"], "operator": "mutation"}],
    "no prefix of refs": [{**START, "population": ""}],
    "branches as prefix": [{**START, "population": "refs/heads/"}],
    "tags as prefix": [{**START, "population": "refs/tags/"}],
    "agent called like a person's branch": [*RUN, {**ADOPTED, "agent": "human/x"}],
    "landed on main": [*RUN, {**LAND, "branch": "refs/heads/main"}],
}
"""What no engine writes."""

ODD: dict[str, list[Any]] = {
    "agents of a later version": [
        {**START, "settings": {"population": [{"kind": "mutator", "later": 1}]}},
        SEED,
        SCORE,
    ],
    "a second seed": [*RUN, SECOND, {**SCORE, "candidate": "OTHER"}],
    "a title of 3 MB": [START, {**SEED, "title": "A" * 3_000_000}, SCORE],
    "a title of 3 MB with quotes": [START, {**SEED, "title": 'A"' * 1_500_000}, SCORE],
    "names of 3 MB": [{**START, "task": "T" * 3_000_000}, {**SEED, "strategy": "S" * 3_000_000}, SCORE],
    "cases of 3 MB": [START, SEED, {**SCORE, "evaluation": {"status": "ok", "cases": {"C" * 3_000_000: {}}}}],
    "scores of 1e308": [START, SEED, *[{**SCORE, "evaluation": {**HUGE, "repeat": repeat}} for repeat in range(3)]],
}
"""What may be so, and is shown."""

COMMANDS = ("status --json", "log -n 5", "log --json", "report", "graph", "clean toy")


class Hostile:
    """A repository with a sealed run, beside which a stranger's journal comes."""

    def __init__(self, run: RecordedRun, seed: str) -> None:
        self.repository, self.run, self.seed = run.repository, run, seed
        self.other = self.run.commit({"main.py": b"x\n"})
        self.tree = self.repository.tree_of(self.seed)

    @classmethod
    def begin(cls, folder: Path) -> Hostile:
        repository = Repository.create(folder / "own")
        run = RecordedRun(repository, "toy", inputs=commitment(repository.keys.make("toy")))
        return cls(run, run.add_files({"main.py": b"1\n"}, value=1.0))

    @classmethod
    def beside(cls, repository: Repository, run: str) -> Hostile:
        own = RecordedRun(repository, run)
        return cls(own, own.history.seed or "")

    def git(self, *arguments: str, text: str | None = None) -> str:
        command = ["git", "-C", str(self.repository.path), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, input=text).stdout.strip()

    def push(self, records: Sequence[Any], run: str = "zz", host: str = HOST, when: str = "1700000000") -> None:
        """Write a journal of a host as plain Git does, from its first entry."""
        empty, tip = self.git("hash-object", "-t", "tree", "-w", "--stdin", text=""), ""
        for number, record in enumerate(records, 1):
            text = record if isinstance(record, str) else f"x\n\n{self._json(number, record)}\n"
            who = f"{host} <{host}@evogit.invalid> {when} +0000"
            parent = f"parent {tip}\n" if tip else ""
            entry = f"tree {empty}\n{parent}author {who}\ncommitter {who}\n\n{text}"
            tip = self.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", text=entry)
        self.git("update-ref", f"refs/evogit/{run}/journal/{host}", tip)

    def _json(self, seq: int, record: dict[str, Any]) -> str:
        text = json.dumps({"evogit": 1, "seq": seq, **record})
        for name, known in (("SEED", self.seed), ("OTHER", self.other), ("TREE", self.tree)):
            text = text.replace(f'"{name}"', f'"{known}"')
        return text

    def refs(self) -> set[str]:
        """Branches and tags that are no run's own projections."""
        listed = self.git("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
        return {line for line in listed.splitlines() if "refs/heads/evogit/" not in line or "/human/" in line}


@pytest.fixture
def hostile(tmp_path: Path) -> Hostile:
    return Hostile.begin(tmp_path)


@pytest.mark.parametrize("what", DAMAGE)
def test_a_journal_that_cannot_be_read_is_a_line_of_its_own_run(hostile: Hostile, what: str) -> None:
    hostile.push(DAMAGE[what])
    hostile.push(DAMAGE[what], run="yy", host=hostile.repository.host)
    told = {name: RunOverview.of(hostile.repository, name).record() for name in hostile.repository.runs()}
    assert (told["toy"]["best"], told["toy"]["trouble"]) == (1.0, "")
    assert told["yy"]["trouble"]
    assert StoredRun.open(hostile.repository, "zz").journal.unreadable.keys() == {HOST}
    with pytest.raises(RepositoryError):
        StoredRun.open(hostile.repository, "yy")


@pytest.mark.slow
def test_the_page_lists_all_runs_beside_one_that_cannot_be_read(hostile: Hostile) -> None:
    for name, records in DAMAGE.items():
        hostile.push(records, run=name.replace(" ", "-").replace("*", "x").replace("'", ""))
    hostile.push(DAMAGE["brackets"], run="yy", host=hostile.repository.host)
    with serving(hostile.repository.path) as served:
        listed = served.ask("/api/runs")
        told = {run["run"]: run for run in listed.json["runs"]}
        assert (listed.status, told["toy"]["best"], len(told)) == (200, 1.0, len(DAMAGE) + 2)
        assert told["yy"]["trouble"]
        assert served.ask("/api/runs/toy").status == 200
        assert served.ask("/api/runs/yy").status == 409


@pytest.mark.slow
def test_a_sealed_run_goes_on_beside_them_and_among_them(cli: Cli, tmp_path: Path) -> None:
    cli("new", "mine")
    usual = ("run", "./mine", "--sandbox", "none", "--agent", "mutator:1", "--evaluations")
    assert cli(*usual, "3").code == 0
    hostile = Hostile.beside(Repository.open(tmp_path / "evogit-mine"), "mine")
    for number, records in enumerate(DAMAGE.values()):
        for run in (f"zz{number}", "mine"):
            hostile.push(records, run, host=f"{HOST}-{number}")
    done = cli(*usual, "5")
    assert (done.code, cli("-C", "evogit-mine", "status", "--json", "--name", "mine").json["evaluated"]) == (0, 5)


@pytest.mark.parametrize(
    "noted",
    ["[" * 400_000, "{", "[]", '{"remote": 5}', '{"remote": "x", "failing": 1e300}', '{"remote": "x", "met": -1e18}'],
)
def test_a_note_on_a_server_that_nobody_wrote_is_none(hostile: Hostile, cli: Cli, noted: str) -> None:
    file = hostile.repository.common / "evogit" / "remotes" / "toy.json"
    file.parent.mkdir()
    file.write_text(noted)
    assert hostile.repository.contact("toy") is None
    assert cli("-C", "own", "status").code == 0


@pytest.mark.parametrize("gone", [".", ".git/refs", ".git/objects"])
def test_a_repository_that_is_removed_meanwhile_is_a_line(hostile: Hostile, gone: str) -> None:
    shutil.rmtree(hostile.repository.path / gone)
    assert RunOverview.of(hostile.repository, "toy").record()["trouble"]


@pytest.mark.slow
@pytest.mark.parametrize("what", [*DAMAGE, *ODD])
def test_commands_on_other_runs_and_on_the_run_itself_end_in_order(hostile: Hostile, cli: Cli, what: str) -> None:
    hostile.push({**DAMAGE, **ODD}[what])
    before = hostile.refs()
    for command in COMMANDS:
        assert cli("-C", "own", *command.split(), "--name", "toy").code == 0
        assert len(cli("-C", "own", *command.split(), "--name", "zz").out) < MOST
    assert "toy" in cli("-C", "own", "doctor", "runs").out
    cli("-C", "own", "doctor", "runs", "--repair")
    assert len(cli("status", "--all").out) < MOST
    assert hostile.refs() == before


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_journal_of_one_host_leaves_the_others(hostile: Hostile, what: str) -> None:
    run = RecordedRun(hostile.repository, "zz")
    best = run.add_files({"main.py": b"3\n"}, value=3.0)
    records = [each for each in DAMAGE[what] if each not in RUN]
    hostile.push(records)
    stored = StoredRun.open(hostile.repository, "zz")
    assert stored.history.best == best
    assert stored.journal.unreadable[HOST].entries == len(records)
    assert stored.history.spent.picodollars == 0
    run.add_files({"main.py": b"4\n"}, best, value=4.0)
    assert run.history.counts.evaluated == 2


def test_entries_before_the_damaged_one_count(hostile: Hostile) -> None:
    hostile.push([*RUN, {**SPENT, "dollars": 1.0}, {**SPENT, "dollars": -1.0}, {**SPENT, "dollars": 1.0}])
    stored = StoredRun.open(hostile.repository, "zz")
    assert (stored.history.spent.dollars, stored.journal.unreadable[HOST].entries) == (1.0, 2)
    hostile.push([*RUN, {**SPENT, "dollars": 1.0}, {**SPENT, "dollars": 2.0}])
    assert StoredRun.open(hostile.repository, "zz").history.spent.dollars == 3.0


def test_nothing_is_written_that_could_not_be_read(hostile: Hostile) -> None:
    for event in (
        Spent(engine="e", move=1, agent="a1", model="m", dollars=-1.0),
        Adopted(agent="../main", candidate=hostile.seed),
    ):
        with pytest.raises(RepositoryError):
            hostile.run.append(event)
    assert StoredRun.open(hostile.repository, "toy").history.best == hostile.seed


@pytest.mark.parametrize("when", ["999999999999999", "-99999999999"])
def test_a_year_that_no_calendar_has_is_damage(hostile: Hostile, when: str) -> None:
    hostile.push(RUN, when=when)
    assert RunOverview.of(hostile.repository, "zz").record()["best"] is None


def entries(hostile: Hostile, population: str, agents: Sequence[str]) -> Iterator[Entry]:
    seed = Proposed(
        engine="e", move=0, candidate=hostile.seed, tree=hostile.tree, parents=(), agent="seed", operator="seed"
    )
    adopted = [Adopted(agent=agent, candidate=hostile.seed) for agent in agents]
    for number, event in enumerate([run_started(population=population), seed, *adopted], 1):
        yield Entry(id=f"{number:040x}", host="h", seq=number, time=1, event=event)


@pytest.mark.parametrize("population", ["", "refs/heads/", "refs/tags/", "refs/heads/evogit/other/"])
def test_refs_move_below_the_runs_own_prefix_alone(hostile: Hostile, population: str) -> None:
    """Whatever an entry says that was believed all the same."""
    before, history = hostile.refs(), History("zz")
    history.extend(entries(hostile, population, ["main", "v1", "human/x", "land/y", "best", "../../main"]))
    Projections(hostile.repository, history).follow()
    assert hostile.refs() == before
    assert not hostile.repository.branches.below("refs/heads/evogit/other/")
    assert not hostile.repository.branches.below("refs/heads/evogit/zz/land/")
