"""The page tells what the terminal, `--json` and exports tell: for generated runs, by the page's own code."""

from __future__ import annotations

import csv
import json
import math
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from evogit.cli.lines.view import View
from evogit.cli.terminal import PRETTY
from evogit.core import Metric, Status
from evogit.page.payload import FollowedRun
from evogit.repository import Repository
from evogit.review.json_records import candidate_record
from evogit.testing import RecordedRun
from tests.cli.conftest import environment, run_forked
from tests.page.conftest import Evaluate

FAILURES: tuple[Status, ...] = ("crashed", "timeout", "invalid")

TEXTS = """(() => {
  const run = new Run(told_);
  for (const delta of deltas_) run.take(delta);
  const told = (index) => ({
    id: run.ids[index], score: scoreText(run, index), gain: run.gainText(index), kind: run.kind(index),
    agent: run.agentName(index), operator: run.operatorName(index), status: run.statusName(index),
    edges: run.edges(index).map(([to, kind]) => [run.ids[to], kind]), holdout: run.holdout.get(index) ?? null,
    evaluated: run.evaluated[index], elapsed: run.elapsed[index], time: run.time[index],
    dollars: run.dollars[index], tokens: run.tokens[index],
  });
  const { best, seed, records, amount, course, position } = run;
  return { best, seed, records, amount, course, position, candidates: run.ids.map((_, index) => told(index)) };
})()"""


class Story:
    """What happens in a generated run, step by step."""

    def __init__(self, path: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        repeats = self.rng.choice((0, 0, 3))
        metric = Metric(name="score", direction=self.rng.choice(("maximize", "minimize")), primary=True)
        self.scale = 10.0 ** self.rng.randrange(-6, 9)
        agents = ("a1", "a2", "a3")
        self.run = RecordedRun(path, f"r{seed}", metrics=(metric,), repeats=repeats, agents=agents)
        self.repeats = repeats
        self.known = [self.run.add(self.value())]
        self.waiting: list[str] = []

    def value(self) -> float:
        """A score, now and then a special one."""
        special = (0.0, -0.0, 1e-12, 0.5 * self.scale, 1e15)
        return self.rng.choice(special) if self.rng.random() < 0.1 else self.rng.gauss(1, 0.3) * self.scale

    def step(self) -> None:
        """One thing of those that happen."""
        what = self.rng.choices((self.propose, self.evaluate, self.repeat, self.holdout, self.decide), (6, 6, 2, 1, 1))
        what[0]()

    def propose(self) -> None:
        amount = min(self.rng.choice((1, 1, 1, 2)), len(self.known))
        parents = self.rng.sample(self.known, amount)
        inspirations = (self.rng.choice(self.known),) if self.rng.random() < 0.2 else ()
        about: dict[str, Any] = {"agent": self.rng.choice(("a1", "a2", "a3")), "strategy": self.rng.choice(("", "s"))}
        about["inspirations"] = tuple(each for each in inspirations if each not in parents)
        child = self.run.propose(*parents, **about)
        self.known.append(child)
        self.waiting.append(child)

    def evaluate(self) -> None:
        if not self.waiting:
            return
        child = self.waiting.pop(self.rng.randrange(len(self.waiting)))
        self.run.evaluate(child, self.rng.choice(FAILURES) if self.rng.random() < 0.2 else self.value())

    def repeat(self) -> None:
        if self.repeats:
            child = self.rng.choice(self.known)
            if self.run.history.fitness(child) is not None:
                self.run.evaluate(child, self.value(), repeat=self.rng.randrange(1, 3))

    def holdout(self) -> None:
        child = self.rng.choice(self.known)
        if self.run.history.fitness(child) is not None:
            self.run.evaluate(child, self.value(), split="holdout")

    def decide(self) -> None:
        self.run.decide(self.rng.choice(("promote", "prune")), self.rng.choice(self.known), reason="so")


def told_by_terminal(followed: FollowedRun) -> list[dict[str, Any]]:
    """What commands print of each candidate, and `--json` says of it."""
    history = followed.history
    view = View(history, PRETTY, time.time())
    found = []
    for candidate in history.phylogeny:
        commit = candidate.commit
        record = candidate_record(history, candidate)
        score = str(view.score(commit))
        score = {"...": "…", "fail": record["status"]}.get(score, score)
        found.append(
            {
                "id": commit[:8],
                "score": score,
                "gain": str(view.gain(commit)),
                "agent": record["agent"],
                "operator": record["operator"],
                "status": record["status"] or "waiting",
                "time": record["time"],
                "origins": [each[:8] for each in history.origins(commit)],
                "pruned": record["pruned"],
                "best": record["best"],
            }
        )
    return found


@pytest.mark.parametrize("some", range(4))
def test_the_page_says_what_the_terminal_says_of_generated_runs(
    some: int, tmp_path: Path, javascript: Evaluate
) -> None:
    repository = Repository.create(tmp_path / "repository")
    for seed in range(some * 25, some * 25 + 25):
        story = Story(repository.path, seed)
        followed = FollowedRun(repository, f"r{seed}")
        payload, deltas = followed.payload(read_only=False), []
        for _ in range(story.rng.randrange(1, 5)):
            for _ in range(story.rng.randrange(12)):
                story.step()
            deltas += [delta] if (delta := followed.advance()) else []
        page = javascript(TEXTS, told=payload, deltas=deltas)
        whole = FollowedRun(repository, f"r{seed}")
        assert differences(page, javascript(TEXTS, told=whole.payload(read_only=False), deltas=[])) == [], seed
        check_the_same(page, whole)


def differences(a: dict[str, Any], b: dict[str, Any]) -> list[Any]:
    """What two pages say differently, in a form that fits on a screen."""
    both = [*zip(a["candidates"], b["candidates"], strict=True), ({"id": "the run", **a}, b)]
    told = [(x["id"], name, x[name], y[name]) for x, y in both for name in y if x[name] != y[name]]
    return [each for each in told if each[1] != "candidates"]


def check_the_same(page: dict[str, Any], followed: FollowedRun) -> None:
    history = followed.history
    terminal = told_by_terminal(followed)
    assert page["amount"] == len(terminal)
    ids = [each["id"] for each in terminal]
    assert [ids[index] for index in page["records"]] == [commit[:8] for commit in history.records]
    for shown, told in zip(page["candidates"], terminal, strict=True):
        assert {name: shown[name] for name in told if name in shown} == {
            name: value for name, value in told.items() if name in shown
        }
        assert [edge[0] for edge in shown["edges"]] == told["origins"]
        assert (shown["kind"] == "pruned") == told["pruned"]
    best = [k for k, each in enumerate(terminal) if each["best"]]
    assert [page["best"]] == (best or [None])
    assert (page["course"][-1][0] if page["course"] else None) == page["best"]


def test_exports_tell_the_same_numbers(tmp_path: Path, javascript: Evaluate) -> None:
    def printed(*options: str) -> str:
        command = [*options, "--repo", tmp_path / "repository"]
        done = run_forked(command, cwd=tmp_path, env=environment(tmp_path))
        assert done.code == 0, done.err
        return done.out

    story = Story(tmp_path / "repository", 7)
    for _ in range(60):
        story.step()
    followed = FollowedRun(Repository.open(tmp_path / "repository"), "r7")
    page = javascript(TEXTS, told=followed.payload(read_only=False), deltas=[])
    printed("export", "run.csv")
    rows = list(csv.DictReader((tmp_path / "run.csv").read_text().splitlines()))
    graph = json.loads(printed("graph", "--all", "--json"))
    values = {each["commit"][:8]: each["metrics"].get("score") for each in graph["candidates"]}
    told = {each["id"]: each["score"] for each in page["candidates"]}
    assert len(rows) == len(told) == len(values)
    places = followed.payload(read_only=False)["places"]
    for row in rows:
        short = row["candidate"][:8]
        if math.isnan(float(row["value"] or "nan")):
            assert told[short] in {"…", *FAILURES}
        else:
            assert told[short] == f"{float(row['value']):,.{places}f}"
            assert float(row["value"]) == values[short]


def test_numbers_read_as_in_the_terminal_to_the_last_digit(javascript: Evaluate) -> None:
    from evogit.cli.text import change, number

    rng = random.Random(3)
    known = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, 0.125, 1e21, 123456789.125, -1e-9, 2.675, 1e-300]
    values = [*known, *(rng.gauss(0, 1) * 10.0 ** rng.randrange(-12, 15) for _ in range(2000))]
    told = [[value, rng.randrange(10)] for value in values]
    page = javascript("told_.map(([value, places]) => [number(value, places), change(value, places)])", told=told)
    assert page == [[number(value, places), change(value, places)] for value, places in told]


def test_filters_choose_what_they_say_and_explain_what_they_cannot_read(tmp_path: Path, javascript: Evaluate) -> None:
    run = RecordedRun(tmp_path / "repository")
    seed = run.add(1.0)
    left = run.add(2.0, seed, agent="a2", family="annealing")
    failed = run.add("crashed", seed)
    merged = run.add(3.0, left, failed)
    run.propose(merged)
    run.decide("promote", left, reason="so")
    payload = FollowedRun(run.repository, "r").payload(read_only=False)

    def chosen(filter_: str) -> list[int]:
        return javascript("[...chosen(new Run(told_), parse(filter_), null)]", told=payload, filter=filter_)

    assert chosen("score>1.5") == [1, 3]
    assert chosen("agent:a2") == chosen("family:anneal") == [1]
    assert chosen("host:nowhere") == []
    assert chosen("failed") == [2]
    assert chosen("waiting") == [4]
    assert chosen("promoted score<=2") == [1]
    assert chosen(f"below:{left[:7]}") == [1, 3, 4]
    assert chosen("above:best change>0") == [1, 3]
    assert chosen("operator:merge best") == [3]
    for wrong, why in (
        ("colour:red", "expected one of"),
        ("score>high", "expected a number"),
        ("age>3", "expected one"),
    ):
        said = javascript(
            "(() => { try { chosen(new Run(told_), parse(filter_), null); } catch (e) { return e.message; } })()",
            told=payload,
            filter=wrong,
        )
        assert why in said


def test_who_lost_the_connection_gets_what_was_missed_or_all_of_it(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path / "repository")
    seed = run.add(1.0)
    followed = FollowedRun(run.repository, "r")
    start = followed.payload(read_only=False)["position"]
    for value in (2.0, 3.0, 4.0):
        run.add(value, seed)
        followed.advance()
    missed = followed.since(start)
    assert missed is not None
    assert [delta["added"]["amount"] for delta in missed] == [1, 1, 1]
    assert followed.since(missed[1]["after"]) == missed[1:]
    assert followed.since(missed[-1]["position"]) == []
    with run.repository.engines("r").enter(join=False):
        followed.advance()
    followed.advance()
    assert [delta["alive"] for delta in followed.since(missed[-1]["position"]) or ()] == [True, False]
    assert followed.since(start - 1) is None


def test_who_follows_hears_what_somebody_elses_reading_found_first(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path / "repository")
    run.add(1.0)
    followed = FollowedRun(run.repository, "r")
    with run.repository.engines("r").enter(join=False):
        assert [delta["alive"] for delta in followed.news()] == [True]
    assert followed.payload(read_only=False)["alive"] is False
    assert [delta["alive"] for delta in followed.news()] == [False]
    assert followed.news() == []


def test_an_engine_that_ends_while_the_run_is_looked_at_is_told(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path / "repository")
    run.add(1.0)
    followed = FollowedRun(run.repository, "r")
    told = [followed.payload(read_only=False)]
    with ThreadPoolExecutor(1) as pool:
        for _ in range(100):
            with run.repository.engines("r").enter(join=False):
                looking = pool.submit(lambda: [delta for _ in range(5) for delta in followed.news()])
                time.sleep(0.001)
            told += looking.result() + followed.news()
            assert not told[-1]["alive"]
