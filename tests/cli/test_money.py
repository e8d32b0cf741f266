"""What models may cost: limits, consent and what `status` tells, with real engines and a real endpoint."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import evogit.llm.endpoint  # noqa: F401  imported once, for all commands that are forked from here
from evogit.cli.consent import CostForecast, SentFiles, lines
from evogit.cli.options.agents import DOLLARS, MUTATORS, PROPOSALS, TOKENS, AgentOptions, population, with_ceilings
from evogit.config.run_settings import CALLS, AgentSpec, Settings
from evogit.config.user_settings import UserSettings
from evogit.core import UsageError
from evogit.events import Entry, RunStarted, Spent
from evogit.history import History
from evogit.llm import Price
from evogit.llm.endpoint import Patience
from evogit.review import EarlierStarts
from evogit.testing import SCORE
from tests.clock import PATIENCE, wait_until
from tests.openai_server import CUT, EMPTY, NOT_JSON, RESET, SILENT, Behaviour, Request, Server, reply, serve

from .conftest import Cli, Forked, environment
from .test_run import Screen

KEY = "sk-very-secret-0123456789"

FOUR = (AgentSpec("mutator", count=4),)


def made(*settings: Settings) -> EarlierStarts:
    """Starts with these settings that the user made, the last one last."""
    told = [started.settings for started in past(*settings).engines.values()]
    return EarlierStarts(told[-1], asking=next((each for each in reversed(told) if each["population"][0]["model"]), {}))


def past(*settings: Settings, dollars: float = 0.0) -> History:
    """A run that was started with these settings, one after the other."""
    history = History("r")
    texts = dict.fromkeys(("task", "task_digest", "evaluator", "provider", "image", "split", "population"), "")
    known: dict[str, Any] = {**texts, "metrics": (SCORE,), "agents": (), "editable": ()}
    for number, each in enumerate(settings):
        population = [{"kind": spec.kind, "model": spec.model, "count": spec.count} for spec in each.population]
        chosen = {**each.ceilings, "population": population}
        started = RunStarted(engine=str(number), settings=chosen, **known)
        history.apply(Entry(id="0" * 40, host="h", seq=number + 1, time=0, event=started))
    spent = Spent(engine="0", move=1, agent="a1", model="m", prompt=1000, dollars=dollars)
    history.apply(Entry(id="1" * 40, host="h", seq=99, time=0, event=spent))
    return history


class Known:
    """A model of which only name and price matter."""

    def __init__(self, price: Price | None) -> None:
        self.name = "m"
        self.price = price
        self.context = 1000

    async def ask(self, question: object, account: object) -> str:
        raise NotImplementedError


PAID = Known(Price(prompt=1, cached=1, completion=1))
FREE = Known(Price(prompt=0, cached=0, completion=0))
UNKNOWN = Known(None)
EDITORS = Settings(population=(AgentSpec("editor", "m", 4),))


@pytest.mark.parametrize(
    ("asked", "specs"),
    [
        (AgentOptions(), (f"mutator:{MUTATORS}",)),
        (AgentOptions(agents=2), ("mutator:2",)),
        (AgentOptions(model="m"), ("editor@m:4",)),
        (AgentOptions(model="m", agents=9), ("editor@m:9",)),
        (
            AgentOptions(agent=(AgentSpec("mutator", count=2), AgentSpec("editor", "x:free@1", 8))),
            ("mutator:2", "editor@x:free@1:8"),
        ),
        (AgentOptions(agent=(AgentSpec("editor"), AgentSpec("editor", "b")), model="m"), ("editor@m", "editor@b")),
    ],
)
def test_agents_that_are_asked_for(asked: AgentOptions, specs: tuple[str, ...]) -> None:
    assert tuple(map(str, population(asked, EarlierStarts(), UserSettings()))) == specs


def test_agents_that_nobody_names_are_those_of_before_or_of_the_settings() -> None:
    user = UserSettings(model="usual", agents=(AgentSpec("editor", count=3), AgentSpec("mutator")))
    assert tuple(map(str, population(AgentOptions(), EarlierStarts(), user))) == ("editor@usual:3", "mutator")
    assert population(AgentOptions(), made(EDITORS, Settings(population=FOUR)), user) == FOUR
    assert population(AgentOptions(agent=(AgentSpec("editor"),)), made(EDITORS), user) == (
        AgentSpec("editor", "usual"),
    )


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (AgentOptions(agent=(AgentSpec("editor"),)), 'model = "NAME"'),
        (AgentOptions(agent=(AgentSpec("genius", "m"),)), "mutator, editor, coder, plain-loop, aider, mini, claude"),
        (AgentOptions(agent=(AgentSpec("mutator", "m"),)), "expected no model for mutator agents"),
        (AgentOptions(agent=(AgentSpec("none.py:Good"),)), "with a file that is there"),
        (AgentOptions(agent=(AgentSpec("mutator"),), model="m"), "for agents that name no model"),
        (AgentOptions(agents=0), "--agents above 0"),
        (AgentOptions(record=Path("f")), "agents that ask models"),
    ],
)
def test_agents_that_make_no_sense(asked: AgentOptions, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        population(asked, EarlierStarts(), UserSettings())


def limits(settings: Settings) -> tuple[float | None, int | None, int | None]:
    return settings.dollars, settings.tokens, settings.proposals


def test_only_models_that_cost_money_get_limits_that_nobody_gave() -> None:
    fresh = History("r")
    assert limits(with_ceilings(EDITORS, fresh, EarlierStarts(), [FREE])) == (None, None, None)
    assert limits(with_ceilings(EDITORS, fresh, EarlierStarts(), [FREE, PAID])) == (DOLLARS, None, None)
    assert limits(with_ceilings(EDITORS, fresh, EarlierStarts(), [PAID, UNKNOWN])) == (None, TOKENS, PROPOSALS)
    assert limits(with_ceilings(EDITORS, past(dollars=2), EarlierStarts(), [PAID])) == (DOLLARS + 2, None, None)
    assert limits(with_ceilings(Settings(proposals=7), fresh, EarlierStarts(), [PAID])) == (None, None, 7)


def test_limits_hold_until_others_are_given_and_bind_only_those_who_ask() -> None:
    starts = Settings(population=EDITORS.population, dollars=3, proposals=50), Settings(population=FOUR)
    before, earlier = past(*starts), made(*starts)
    assert limits(with_ceilings(EDITORS, before, earlier, [PAID])) == (3, None, 50)
    assert limits(with_ceilings(Settings(dollars=9), before, earlier, [PAID])) == (9, None, 50)
    assert limits(with_ceilings(Settings(), before, earlier, [])) == (None, None, None)
    called = Settings(population=EDITORS.population, calls=24)
    assert with_ceilings(EDITORS, past(called), made(called), [PAID]).calls == 24
    assert limits(with_ceilings(EDITORS, before, earlier, [UNKNOWN])) == (None, None, 50), (
        "dollars cannot be kept without a price"
    )


def test_limits_that_cannot_be_kept_are_refused() -> None:
    with pytest.raises(UsageError, match="no agent asks one"):
        with_ceilings(Settings(tokens=1), History("r"), EarlierStarts(), [])
    with pytest.raises(UsageError, match=r"price of m .*\[models.NAME\].*--tokens"):
        with_ceilings(Settings(dollars=1), History("r"), EarlierStarts(), [PAID, UNKNOWN])


@pytest.fixture
def endpoint() -> Iterator[Server]:
    """Says `hello` at a price of ten cents a call where `dear` is asked."""
    with serve([reply("hello", prompt=600, cached=300, completion=400, latency=0.02)]) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, cli: Cli, endpoint: Server) -> dict[str, str]:
    """A folder with a task and a person's settings; the environment of commands."""
    cli("new", "sine")
    at = f'base_url = "{endpoint.url}"\nkey_env = "TEST_KEY"\n'
    (tmp_path / "settings.toml").write_text(
        f"[models.dear]\n{at}max_tokens = 400\nprice = {{ input = 1, output = 248.5 }}\n[models.mystery]\n{at}"
        f'[models.own]\nbase_url = "{endpoint.url}"\nprice = {{ input = 0, output = 0 }}\n'
    )
    (tmp_path / "babble.txt").write_text("%%\nbabble\n")
    return {"EVOGIT_SETTINGS": str(tmp_path / "settings.toml"), "TEST_KEY": KEY}


@pytest.mark.slow
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    cli: Cli, place: dict[str, str], tmp_path: Path
) -> None:
    for arguments, words in (
        (("--agent", "editor@m", "--agents", "2"), "--agents N, got both"),
        (("--model", "", "--evaluations", "1"), "the name of a model after --model, got ''"),
        (("--model", "mystery", "--dollars", "1"), "price of mystery"),
        (("--model", "own", "--dollars", "1"), "expected a limit"),
    ):
        done = cli("run", "sine", *arguments, **place)
        assert done.code in (1, 2), done.err
        assert words in done.err
        assert not (tmp_path / "evogit-sine").exists()


def test_what_is_told_to_be_the_most_holds_for_models_that_babble_too() -> None:
    def told(model: Known, kind: str = "editor", **limits: Any) -> str:
        settings = Settings(population=(AgentSpec(kind, "m", 2),), evaluations=6, **limits)
        reach = SentFiles(files={}, kept=0, brief=8000)
        offer = CostForecast(
            settings=settings,
            history=History("r"),
            before=EarlierStarts(),
            models=[(model, "http://x/v1")],
            reach=reach,
        )
        return "\n".join(line.plain for line in lines(offer, short=False))

    dear = Known(Price(prompt=10, cached=1, completion=10))
    both = told(dear, dollars=5.0, proposals=12)
    assert "about   $1.20 in 12 calls for 6 evaluations" in both
    assert "at most $2.40 in 24 calls for 12 proposals" in both
    few = told(dear, dollars=5.0, proposals=3)
    assert "about   $0.60 in 6 calls for 3 proposals" in few
    assert "at most $0.60 in 6 calls for 3 proposals" in few
    assert "at most $1.00, about 10 calls" in told(dear, dollars=1.0, proposals=12)
    assert "at most 50,000 tokens, about 5 calls" in told(UNKNOWN, tokens=50_000)
    few_calls = told(dear, dollars=5.0, calls=4)
    assert "$0.40 in 4 calls" in few_calls
    assert "6 evaluations" not in few_calls
    calls = CALLS["coder"]
    assert f"in {6 * calls} calls for 6 evaluations, {calls} calls for each" in told(dear, "coder", proposals=12)


def test_a_paid_model_needs_consent_after_the_cost_is_told(
    cli: Cli, place: dict[str, str], tmp_path: Path, endpoint: Server
) -> None:
    task = tmp_path / "sine" / "task.toml"
    task.write_text(task.read_text().replace("editable", 'withheld = ["hidden/**"]\neditable', 1))
    (tmp_path / "sine" / "seed" / "hidden").mkdir()
    (tmp_path / "sine" / "seed" / "hidden" / "answers.txt").write_text("42\n")
    done = cli("run", "sine", "--model", "dear", **place)
    assert done.code == 4
    for words in (endpoint.url, "$1.00 in", "1 withheld file is not", "$5.00, about", "as none was given", "--yes"):
        assert words in done.err
    assert "answers" not in done.err
    assert not (tmp_path / "evogit-sine").exists()
    assert not endpoint.requests


@pytest.mark.slow
def test_calls_stop_a_run_and_hold_when_it_goes_on(
    cli: Cli, place: dict[str, str], tmp_path: Path, endpoint: Server
) -> None:
    first = cli("run", "sine", "--model", "dear", "--agents", "3", "--calls", "7", "--yes", "--json", **place)
    assert (first.code, first.json["stopped_because"]) == (0, "calls"), first.err
    assert len(endpoint.requests) == first.json["spending"]["calls"] == 7
    again = cli("run", "sine", **place)
    assert again.code == 0, again.err
    assert "--calls was used up already" in again.out
    assert "7 of 7 calls" in cli("-C", str(tmp_path / "evogit-sine"), "status", **place).out
    assert len(endpoint.requests) == 7
    more = cli("run", "sine", "--calls", "9", "--yes", "--json", **place)
    assert len(endpoint.requests) == more.json["spending"]["calls"] == 9


@pytest.mark.slow
def test_dollars_stop_a_run_and_hold_with_the_consent_when_it_goes_on(
    cli: Cli, place: dict[str, str], tmp_path: Path, endpoint: Server
) -> None:
    first = cli("run", "sine", "--model", "dear", "--agents", "3", "--dollars", "1", "--yes", "--json", **place)
    assert (first.code, first.json["stopped_because"]) == (0, "dollars"), first.err
    spending = first.json["spending"]
    assert 0.9 <= spending["dollars"] <= 1
    assert spending["calls"] == len(endpoint.requests) == round(10 * spending["dollars"])
    assert (spending["tokens"], spending["cached"]) == (1000 * spending["calls"], 300 * spending["calls"])
    assert {each["agent"] for each in spending["by"]} == {"a1", "a2", "a3"}
    again = cli("run", "sine", **place)
    assert (again.code, len(endpoint.requests)) == (0, spending["calls"]), again.err
    assert "$1.00, as before" in again.err
    raised = cli("run", "sine", "--dollars", "1.5", **place)
    assert (raised.code, len(endpoint.requests)) == (4, spending["calls"])
    shown = cli("-C", "evogit-sine", "status", **place).out
    assert re.search(r"budget  \S+  \$(0\.90|1\.00) of \$1\.00", shown)
    assert re.search(r"a1 +dear +\$[\d.]+ +\d+ calls +0 failed +[\d,]+ tokens +50\.0 % cached", shown)
    command = ["git", "-C", str(tmp_path / "evogit-sine"), "cat-file", "--batch-all-objects", "--batch"]
    objects = subprocess.run(command, capture_output=True, check=True)
    assert KEY.encode() not in objects.stdout


@pytest.mark.slow
def test_limits_hold_after_a_kill(cli: Cli, place: dict[str, str], tmp_path: Path, endpoint: Server) -> None:
    command = ["run", "sine", "--model", "dear", "--agents", "3", "--dollars", "1.2", "--yes"]
    engine = Forked(command, cwd=tmp_path, env=environment(tmp_path, **place), stderr=subprocess.PIPE)
    assert engine.stderr
    for _ in range(4):
        next(line for line in engine.stderr if "  asked  " in line)
    engine.send_signal(signal.SIGKILL)
    engine.communicate(timeout=PATIENCE)
    killed = cli("-C", "evogit-sine", "status", "--json", **place).json["spending"]
    lost = len(endpoint.requests) - killed["calls"]
    assert killed["calls"] >= 4
    assert 0 <= lost <= 3, "what is not counted yet was in flight"
    done = cli("run", "sine", "--json", **place)
    assert (done.code, done.json["stopped_because"]) == (0, "dollars"), done.err
    assert 0.9 <= done.json["spending"]["dollars"] <= 1.2
    assert 0 <= done.json["spending"]["calls"] - len(endpoint.requests) <= 3, "set aside, and never sent"


@pytest.mark.slow
def test_babble_stops_at_the_proposals_and_asks_nobody_for_money(cli: Cli, place: dict[str, str]) -> None:
    done = cli("run", "sine", "--model", "script:babble.txt", "--agents", "2", "--proposals", "5", "--json", **place)
    assert (done.code, done.json["stopped_because"], done.json["failed_proposals"]) == (0, "proposals", 5), done.err
    assert "nothing is sent or paid" in done.err
    assert done.json["spending"]["dollars"] == 0


@pytest.mark.slow
def test_consent_is_asked_for_once_on_a_terminal(place: dict[str, str], tmp_path: Path, endpoint: Server) -> None:
    for answer, code, calls in (("", 130, 0), ("n\n", 4, 0), ("y\n", 0, 1)):
        screen = Screen("run", "sine", "--agent", "editor@dear", "--dollars", "0.15", cwd=tmp_path, **place)
        screen.until("accept these costs?")
        screen.press(answer) if answer else screen.interrupt()
        assert screen.end() == code, screen.text
        assert len(endpoint.requests) == calls
        assert "for a\r\n        million tokens" in screen.text.replace("\x1b[0m", ""), "broken between words"
        assert ("[y/N]: \r\ninterrupted" in screen.text) == (code == 130)
    screen = Screen("run", "sine", cwd=tmp_path, **place)
    assert screen.end() == 0, screen.text
    assert "accept these costs" not in screen.text


@dataclass
class Till:
    """An endpoint that bills every question that reaches it, ten cents at most, and does not always say so."""

    billed: float = 0.0
    asked: int = 0

    def answer(self, request: Request) -> Behaviour:
        self.asked += 1
        told = reply("hello", prompt=600, completion=request.body["max_tokens"], latency=0.05)
        self.billed += (600 + 248.5 * request.body["max_tokens"]) / 1e6
        odd = {3: RESET, 5: Behaviour(status=504, body="<html>"), 7: CUT, 9: EMPTY, 11: NOT_JSON}
        return odd.get(self.asked % 12, told)


@pytest.mark.slow
def test_engines_that_join_and_one_that_is_killed_never_exceed_what_the_endpoint_may_bill(
    cli: Cli, place: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of three engines dies with questions in flight; the others spend what is left, and no more."""
    monkeypatch.setattr(Patience, "pause", 0.01)
    till = Till()
    with serve([till.answer]) as server:
        file = tmp_path / "settings.toml"
        file.write_text(re.sub('base_url = "[^"]*"', f'base_url = "{server.url}"', file.read_text()))
        command = ["run", "sine", "--model", "dear", "--agents", "3", "--dollars", "3", "--yes"]
        known: dict[str, Any] = {"cwd": tmp_path, "env": environment(tmp_path, **place)}
        first = Forked(command, stderr=subprocess.PIPE, **known)
        assert first.stderr
        next(line for line in first.stderr if "  asked  " in line)
        others = [Forked([*command, "--join"], **known) for _ in range(2)]
        for _ in range(3):
            next(line for line in first.stderr if "  asked  " in line)
        first.kill()
        first.communicate(timeout=PATIENCE)
        assert [other.wait(timeout=PATIENCE) for other in others] == [0, 0]
        done = cli("run", "sine", "--json", **place)
    assert (done.code, done.json["stopped_because"]) == (0, "dollars"), done.err
    assert till.billed <= done.json["spending"]["dollars"] + 1e-9
    assert 2.7 < done.json["spending"]["dollars"] <= 3


@dataclass
class Log:
    """An endpoint with a log of its own: it answers `left` more questions, and holds all others until they hang up."""

    left: int
    replies: int = 0
    latency: float = 0.05

    def answer(self, request: Request) -> Behaviour:
        if not self.left:
            return SILENT
        self.left -= 1
        self.replies += 1
        change = f"Number {self.replies}\n<<<<<<< WRITE solution.py\nx = {self.replies}\n>>>>>>> END"
        return reply(change, prompt=600, completion=100, latency=self.latency)

    @property
    def bill(self) -> tuple[int, float]:
        """The calls and their dollars."""
        return self.replies, pytest.approx(self.replies * (600 + 248.5 * 100) / 1e6)


@pytest.mark.slow
@pytest.mark.parametrize("limits", [("--proposals", "40"), ("--dollars", "9"), ("--calls", "40")])
def test_what_is_answered_is_what_the_endpoint_logged_whatever_ends_a_call(
    cli: Cli, place: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: tuple[str, str]
) -> None:
    """A kill, a resume, a stop, a fork and time-outs: all other calls are in flight or may be billed."""
    monkeypatch.setattr("evogit.engine.stop_request.CALLS", 0.05)
    log, file = Log(left=3), tmp_path / "settings.toml"

    def start(*arguments: str, asked: int) -> Forked:
        before = len(server.requests)
        engine = Forked(["run", "sine", *arguments], cwd=tmp_path, env=environment(tmp_path, **place))
        wait_until(lambda: len(server.requests) == before + asked)
        return engine

    def costs(name: str = "sine") -> tuple[tuple[int, float], int, int]:
        record = cli("-C", "evogit-sine", "status", "--json", "--name", name, **place).json
        spending = record["spending"]
        parts = [spending[each] for each in ("answered", "in_flight", "at_most", "inherited")]
        assert sum(each["dollars"] for each in parts[::2]) + parts[3]["dollars"] >= spending["dollars"] - 1e-9
        assert all(each["dollars"] >= 0.09 * each["calls"] for each in parts[1:3]), "at most is what a reply may take"
        return (parts[0]["calls"], parts[0]["dollars"]), parts[1]["calls"], parts[2]["calls"]

    with serve([log.answer]) as server:
        file.write_text(re.sub('base_url = "[^"]*"', f'base_url = "{server.url}"', file.read_text()))
        engine = start("--model", "dear", "--agents", "2", *limits, "--yes", asked=5)
        wait_until(lambda: costs() == (log.bill, 2, 0))
        engine.kill()
        engine.wait(timeout=PATIENCE)
        assert costs() == (log.bill, 0, 2)
        log.left = 3
        engine = start(asked=5)
        wait_until(lambda: costs() == (log.bill, 2, 2))
        assert cli("-C", "evogit-sine", "stop", **place).code == 0
        engine.wait(timeout=PATIENCE)
        assert costs() == (log.bill, 0, 4)
        whole, log.left, log.replies = log.bill, 1, 0
        engine = start("--at", "@3", "--name", "fork", *limits, "--yes", asked=3)
        wait_until(lambda: costs("fork") == (log.bill, 2, 0))
        assert costs() == (whole, 0, 4), "the run that it was forked from pays for its own"
        engine.kill()
        engine.wait(timeout=PATIENCE)
        file.write_text(file.read_text().replace("max_tokens", 'total = "0.5s"\nmax_tokens', 1))
        done = cli("run", "sine", "--name", "fork", "--proposals", "7", "--yes", "--json", **place)
        assert done.code == 0, done.err
        bill, flying, lost = costs("fork")
        assert (bill, flying) == (log.bill, 0)
        assert lost > 2, "what took too long may be billed"


@pytest.mark.slow
def test_a_stop_after_calls_waits_for_them_and_begins_none(
    cli: Cli, place: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evogit.engine.stop_request.CALLS", 0.05)
    log, file = Log(left=2, latency=2.0), tmp_path / "settings.toml"
    with serve([log.answer]) as server:
        file.write_text(re.sub('base_url = "[^"]*"', f'base_url = "{server.url}"', file.read_text()))
        command = ["run", "sine", "--model", "dear", "--agents", "2", "--proposals", "9", "--yes"]
        engine = Forked(command, cwd=tmp_path, env=environment(tmp_path, **place))
        wait_until(lambda: len(server.requests) == 2)
        assert cli("-C", "evogit-sine", "stop", "--after-calls", **place).code == 0
        engine.wait(timeout=PATIENCE)
        assert len(server.requests) == 2
    told = cli("-C", "evogit-sine", "status", "--json", **place).json
    assert [told["spending"][each]["calls"] for each in ("answered", "in_flight", "at_most")] == [2, 0, 0]
    assert (told["candidates"], told["pending"], told["charged"]) == (3, 0, 2)


@pytest.mark.slow
def test_a_question_that_a_stop_dropped_is_no_proposal(
    cli: Cli, place: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evogit.engine.stop_request.CALLS", 0.05)
    log, file = Log(left=1), tmp_path / "settings.toml"
    with serve([log.answer]) as server:
        file.write_text(re.sub('base_url = "[^"]*"', f'base_url = "{server.url}"', file.read_text()))
        command = ["run", "sine", "--model", "dear", "--agents", "2", "--proposals", "3", "--yes"]
        engine = Forked(command, cwd=tmp_path, env=environment(tmp_path, **place))
        wait_until(lambda: len(server.requests) == 3)
        assert cli("-C", "evogit-sine", "stop", **place).code == 0
        engine.wait(timeout=PATIENCE)
        told = cli("-C", "evogit-sine", "status", "--json", **place).json
        assert (told["proposals"], told["charged"], told["unanswered"]) == (1, 1, 2)
        log.left = 9
        done = cli("run", "sine", "--json", **place)
        assert (done.json["stopped_because"], log.replies) == ("proposals", 3)


@pytest.mark.slow
@pytest.mark.parametrize("crew", [("--agent", "editor@dear:3"), ("--agent", "editor@dear:2", "--agent", "mutator:1")])
def test_a_replay_follows_the_order_of_moves_and_makes_the_same_candidates(
    cli: Cli, place: dict[str, str], tmp_path: Path, crew: tuple[str, ...]
) -> None:
    latencies = itertools.cycle((0.3, 0.05, 0.15, 0.01))
    numbers, file = itertools.count(1), tmp_path / "settings.toml"

    def answer(request: Request) -> Behaviour:
        body = f"def sines(xs):\n    return [x * 0.{next(numbers)} for x in xs]"
        return reply(f"Line\n<<<<<<< WRITE solution.py\n{body}\n>>>>>>> END", latency=next(latencies))

    def candidates() -> tuple[list[list[Any]], dict[str, Any]]:
        rows = cli("-C", "evogit-sine", "log", "-n", "100", "--json", **place).lines
        told = cli("-C", "evogit-sine", "status", "--json", **place).json
        return [[row[name] for name in ("move", "agent", "title", "tree", "status")] for row in rows], told

    with serve([answer]) as server:
        file.write_text(re.sub('base_url = "[^"]*"', f'base_url = "{server.url}"', file.read_text()))
        command = ("run", "sine", *crew, "--proposals", "12", "--yes")
        assert cli(*command, "--record", "calls.jsonl", **place).code == 0
        first, told = candidates()
        asked = len(server.requests)
        (tmp_path / "evogit-sine").rename(tmp_path / "recorded")
        assert cli(*command, "--replay", "calls.jsonl", **place).code == 0
        again, told_again = candidates()
        assert len(server.requests) == asked > 2
    assert first == again
    assert told_again["stopped_because"] == told["stopped_because"] == "proposals"
    assert told_again["spending"]["answered"] == told["spending"]["answered"]
    (tmp_path / "evogit-sine").rename(tmp_path / "replayed")
    longer = cli(*command[:-3], "--proposals", "99", "--yes", "--replay", "calls.jsonl", "--json", **place)
    assert (longer.json["stopped_because"], longer.json["charged"]) == ("replayed", told["charged"])
