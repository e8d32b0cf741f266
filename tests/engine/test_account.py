"""What a call may cost is set aside before it is sent; what it did cost is counted, and remembered by the run."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evogit.agents import Agent, Brief, NoUsableChangeError, Proposal
from evogit.config import Task
from evogit.config.run_settings import AgentSpec
from evogit.config.user_settings import ModelTable, UserSettings
from evogit.engine.account import RunAccount
from evogit.events import Entry, Stopped
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.llm import (
    Account,
    Message,
    Model,
    ModelError,
    Price,
    Question,
    Reservation,
    RunEndsError,
    SpendingLimitError,
    TokenUsage,
)
from evogit.llm.endpoint import Patience
from evogit.llm.recording import RecordedModel, Recorder, ReplayedModel, read_recording
from evogit.llm.registry import open_models
from evogit.llm.script import ScriptedModel
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.testing import Asked, InMemoryBackend, ScriptedAgent
from tests.clock import PATIENCE
from tests.openai_server import SILENT, refusal, reply, serve

CALL = TokenUsage(prompt=800, cached=300, completion=200)


@dataclass
class Priced:
    """A model that answers after a moment, at ten dollars for a million tokens of any kind: a cent for a call."""

    name: str = "priced"
    price: Price | None = Price(prompt=10, cached=10, completion=10)
    fails: bool = False

    async def ask(self, question: Question, account: Account) -> str:
        reservation = await account.reserve(self, TokenUsage(prompt=CALL.prompt, completion=CALL.completion))
        await asyncio.sleep(0.002)
        account.charge(self, CALL, "it broke off" if self.fails else "", reservation)
        if self.fails:
            raise ModelError("the reply broke off")
        return "babble"


class Asker(Agent):
    """Asks, and writes the number of its move into the program, or nothing for `usable` false."""

    kind = "asker"

    def __init__(self, model: Model, usable: bool = True) -> None:
        self._model = model
        self._usable = usable

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        assert brief.account
        reply = await self._model.ask(Question(messages=(), move=brief.move), brief.account)
        if not self._usable:
            raise NoUsableChangeError(f"cannot read {reply!r}")
        text = brief.files["program.py"] + b"# %d\n" % brief.move
        return Proposal(changes={"program.py": text}, title="a note")


def evolve(path: Path, task: Task, *agents: Asker, **settings: Any) -> tuple[Stopped, History]:
    repository = Repository.open(path) if path.exists() else Repository.create(path)
    run = Run(
        repository, task, "r", Settings(**settings), agents=agents, backend=InMemoryBackend(task, lambda asked: 1.0)
    )
    return asyncio.run(run.evolve()), run.history


def test_dollars_are_never_exceeded_and_hold_on_resume(task: Task, path: Path) -> None:
    crew = [Asker(Priced()) for _ in range(3)]
    stopped, history = evolve(path, task, *crew, dollars=0.1)
    assert stopped.reason == "dollars"
    assert (history.spent.dollars, history.spent.calls) == (0.1, 10)
    assert not history.reserved
    again, history_again = evolve(path, task, *crew, dollars=0.1)
    assert (again.reason, history_again.spent) == ("dollars", history.spent), (
        "the account is the run's, not the engine's"
    )
    _, more = evolve(path, task, *crew, dollars=0.15)
    assert more.spent.dollars == 0.15


def test_failed_calls_count_and_are_told_apart(task: Task, path: Path) -> None:
    stopped, history = evolve(path, task, Asker(Priced(fails=True)), tokens=4000)
    assert (stopped.reason, history.spent.calls, history.spent.failed) == ("tokens", 4, 4)
    assert (history.spent.tokens, history.spent.cached) == (4000, 1200)
    assert {event.reason for event in history.failures} == {"the reply broke off"}


def test_babble_stops_at_the_proposals(task: Task, path: Path) -> None:
    stopped, history = evolve(path, task, Asker(Priced(), usable=False), proposals=3)
    assert (stopped.reason, history.counts.failed_proposals, history.spent.calls) == ("proposals", 3, 3)


def test_calls_without_a_price_count_tokens_alone(task: Task, path: Path) -> None:
    stopped, history = evolve(path, task, Asker(Priced(price=None)), tokens=2500)
    assert (stopped.reason, history.spent.unpriced, history.spent.dollars) == ("tokens", 2, 0)
    assert history.spent_by.keys() == {("a1", "priced")}


CHEAP = Priced(price=Price(prompt=1, cached=1, completion=10))
ASKS = TokenUsage(prompt=1000, completion=4000)
"""What a question costs at most at CHEAP: $0.041."""


@contextmanager
def joined(tmp_path: Path, task: Task, **limits: Any) -> Iterator[list[tuple[StoredRun, RunAccount]]]:
    """Two engines of one run, each with what it knows and its account."""
    repository = Repository.create(tmp_path / "r")
    engines = repository.engines("r")
    with engines.enter(join=True) as one, engines.enter(join=True) as other:
        runs = [StoredRun.open(repository, "r") for _ in range(2)]
        yield [
            (run, RunAccount(run.about(task).of(name), **limits)) for run, name in zip(runs, (one, other), strict=True)
        ]


async def test_what_another_engine_has_in_flight_is_counted(task: Task, tmp_path: Path) -> None:
    with joined(tmp_path, task, dollars=0.05) as [(_, one), (known, other)]:
        held = await one.of_move("a1", 1).reserve(CHEAP, ASKS)
        assert (held.worst, held.ceiling) == (ASKS, 4000)
        waiting = asyncio.create_task(other.of_move("a2", 2).reserve(CHEAP, ASKS))
        await asyncio.sleep(0.1)
        assert not waiting.done(), "what the first one gives back may pay for all of it"
        one.of_move("a1", 1).charge(CHEAP, TokenUsage(prompt=100, completion=400), "", held)
        lowered = await waiting
        assert lowered.ceiling == 4000
        other.of_move("a2", 2).charge(CHEAP, TokenUsage(prompt=100, completion=4000), "", lowered)
        with pytest.raises(SpendingLimitError, match="does not pay for a question") as caught:
            await one.of_move("a1", 3).reserve(CHEAP, ASKS)
        assert caught.value.limit == "dollars"
        assert known.history.committed() == known.history.spent
        assert known.history.spent.dollars == 0.0442


async def test_many_that_ask_at_once_never_hold_more_than_there_is(task: Task, tmp_path: Path) -> None:
    """Two engines, 12 agents, some of which hang up: all that may be billed fits into the limit at every moment."""
    rng = random.Random(5)
    with joined(tmp_path, task, dollars=0.5, tokens=200_000) as accounts:

        async def live(run: StoredRun, account: RunAccount, name: str) -> None:
            for move in range(100):
                mine = account.of_move(name, move)
                worst = TokenUsage(prompt=rng.randrange(10, 3000), completion=rng.randrange(1, 9000))
                try:
                    held = await mine.reserve(CHEAP, worst)
                except SpendingLimitError:
                    return
                committed = run.history.committed()
                assert committed.dollars <= 0.5
                assert committed.tokens <= 200_000
                assert held.worst
                await asyncio.sleep(rng.random() / 500)
                told = TokenUsage(
                    prompt=rng.randrange(1, worst.prompt), completion=rng.randrange(held.worst.completion)
                )
                usage = rng.choice([told, TokenUsage(), TokenUsage(prompt=1, estimated=True)])
                mine.charge(CHEAP, held.bound(usage), "", held)

        lives = [live(run, account, f"a{n}") for n in range(6) for run, account in accounts]
        await asyncio.gather(*lives)
        [(run, _), _] = accounts
        run.journal.refresh()
        assert not run.history.reserved
        assert 0.4 < run.history.spent.dollars <= 0.5 or run.history.spent.tokens > 150_000


async def test_more_than_was_set_aside_is_charged_as_far_as_what_is_left_pays_for_it(
    task: Task, tmp_path: Path
) -> None:
    """The endpoint's word is the bill, but no word of it breaks a limit: it ends the run."""
    with joined(tmp_path, task, dollars=0.1, tokens=50_000) as [(run, account), _]:
        mine = account.of_move("a1", 1)
        first = await mine.reserve(CHEAP, ASKS)
        mine.charge(CHEAP, TokenUsage(prompt=9000, completion=4500), "", first)
        assert (run.history.spent.dollars, account.empty()) == (0.054, None)
        second = await mine.reserve(CHEAP, ASKS)
        mine.charge(CHEAP, TokenUsage(prompt=10**8, completion=10**8), "", second)
        assert run.history.spent.dollars == pytest.approx(0.054 + 0.041)
        assert (account.empty(), run.history.reserved) == ("dollars", {})
        with pytest.raises(SpendingLimitError):
            await mine.reserve(CHEAP, ASKS)


async def test_scripts_and_replays_that_have_a_price_keep_limits_to_the_token(task: Task, tmp_path: Path) -> None:
    """What a reply takes is known beforehand: the last one ends where the limit does."""
    (tmp_path / "script").write_text("%%\n" + "word" * 700 + "\n%%\n" + "word" * 1900)
    price = Price(prompt=1, cached=1, completion=10)
    file, rng = tmp_path / "recording", random.Random(3)
    scripted = RecordedModel(ScriptedModel(tmp_path / "script", price), Recorder(file, ()))

    async def ask(model: Model, account: RunAccount, name: str) -> None:
        with contextlib.suppress(SpendingLimitError, ModelError):
            for move in range(1, 9):
                text = "x" * rng.randrange(100, 5000)
                await model.ask(Question(messages=(Message("user", text),), move=move), account.of_move(name, move))

    for number, model in enumerate((scripted, None)):
        rng.seed(3)
        asked = model or ReplayedModel(scripted.name, read_recording(file)[0][scripted.name])
        with joined(tmp_path / str(number), task, dollars=0.1, tokens=9000) as accounts:
            await asyncio.gather(*(ask(asked, each, f"a{n}") for n in range(4) for _, each in accounts))
            [(run, _), _] = accounts
            run.journal.refresh()
            spent = run.history.spent
            assert spent.dollars <= 0.1
            assert 7000 < spent.tokens <= 9000
            assert run.history.reserved == {}


async def test_what_a_dead_engine_had_in_flight_is_charged_in_full(task: Task, path: Path) -> None:
    repository = Repository.create(path)
    run = StoredRun.open(repository, "r")
    engines = repository.engines("r")
    with engines.enter(join=False) as name:
        await RunAccount(run.about(task).of(name), dollars=0.06).of_move("a1", 1).reserve(CHEAP, ASKS)
    assert (run.history.spent.calls, run.history.committed().dollars) == (0, 0.041)
    with engines.enter(join=False) as name:
        account = RunAccount(run.about(task).of(name), dollars=0.06)
        held = await account.of_move("a1", 2).reserve(CHEAP, ASKS)
    assert held.ceiling == 1800
    assert (run.history.spent.calls, run.history.spent.failed, run.history.spent.dollars) == (1, 1, 0.041)


async def test_a_model_without_a_price_is_not_asked_under_a_limit_on_dollars(task: Task, path: Path) -> None:
    run = StoredRun.open(Repository.create(path), "r")
    account = RunAccount(run.about(task).of("h-1"), dollars=1.0).of_move("a1", 1)
    with pytest.raises(SpendingLimitError, match="the price of priced is not known"):
        await account.reserve(Priced(price=None), ASKS)
    reservation = await account.reserve(Priced(price=Price(prompt=0, cached=0, completion=0)), ASKS)
    assert reservation == Reservation(made=reservation.made)


@pytest.mark.slow
@pytest.mark.parametrize("deterministic", [False, True])
async def test_a_stop_waits_for_no_endpoint_that_asks_to_be_asked_again_later(
    path: Path, tiny: Callable[..., Task], deterministic: bool
) -> None:
    with serve([refusal(429, "slow down", retry_after="60")]) as server:
        user = UserSettings(models={"m": ModelTable(base_url=server.url)})
        models = open_models(user)
        settings = Settings(population=(AgentSpec("editor", "m", 2),), deterministic=deterministic)
        repository = Repository.create(path)
        task = tiny()
        run = Run(repository, task, "r", settings, models=models.get, backend=InMemoryBackend(task))
        running = asyncio.create_task(run.evolve())
        asked = 1 if deterministic else 2  # which asks one after the other
        while run.history.spent.calls < asked:
            await asyncio.sleep(0.02)
        run.stop()
        assert (await asyncio.wait_for(running, PATIENCE)).reason == "interrupted"
        await models.close()
    assert len(server.requests) == asked, "nothing is asked once more"
    assert {failure.reason for failure in run.history.failures} == {"the run ends, so no model is asked again"}


async def test_a_stop_drops_calls_in_flight_and_counts_what_they_may_cost(
    path: Path, tiny: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evogit.engine.stop_request.CALLS", 0.05)
    with serve([SILENT]) as server:
        models = open_models(UserSettings(models={"m": ModelTable(base_url=server.url)}))
        settings, task = Settings(population=(AgentSpec("editor", "m"),), tokens=100_000), tiny()
        run = Run(Repository.create(path), task, "r", settings, models=models.get, backend=InMemoryBackend(task))
        running = asyncio.create_task(run.evolve())
        while not server.requests:
            await asyncio.sleep(0.01)
        run.stop()
        stopped = await asyncio.wait_for(running, PATIENCE)
        await models.close()
    assert (stopped.reason, stopped.detail) == ("interrupted", "")
    assert [failure.reason for failure in run.history.failures] == ["the run ends, so the reply was not waited for"]
    assert run.history.spent.failed == 1
    assert run.history.spent.completion == server.requests[0].body["max_tokens"], "it may be billed"


@pytest.mark.slow
@pytest.mark.parametrize("limit", [None, 0.02])
async def test_a_run_that_is_to_end_waits_for_no_evaluator_that_hangs(
    task: Task, path: Path, monkeypatch: pytest.MonkeyPatch, limit: float | None
) -> None:
    monkeypatch.setattr("evogit.engine.stop_request.ALL", 0.05)
    hangs = asyncio.Event()

    async def judge(asked: Asked) -> float:
        if asked.changed:
            hangs.set()
            await asyncio.Event().wait()
        return 1.0

    run = Run(Repository.create(path), task, "r", Settings(minutes=limit), backend=InMemoryBackend(task, judge))
    running = asyncio.create_task(run.evolve())
    if limit is None:
        await asyncio.wait_for(hangs.wait(), PATIENCE)
        run.stop()
    stopped = await asyncio.wait_for(running, PATIENCE)
    assert stopped.reason == ("minutes" if limit else "interrupted")
    assert stopped.detail == "what was in flight is left for the next start"
    assert run.history.pending


async def test_an_endpoint_that_is_down_costs_no_proposals_and_the_run_goes_on_when_it_is_back(
    task: Task, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doing: list[str] = []
    monkeypatch.setattr(Patience, "retries", 1)
    monkeypatch.setattr(Patience, "pause", 0.001)

    class Watching:
        def entry(self, entry: Entry) -> None:
            pass

        def activity(self, agent: str, what: str) -> None:
            doing.append(what)

    with serve() as server:
        url = server.url
    models = open_models(UserSettings(models={"m": ModelTable(base_url=url)}))
    settings = Settings(population=(AgentSpec("editor", "m"),), proposals=2)
    repository = Repository.create(path)
    run = Run(repository, task, "r", settings, Watching(), models=models.get, backend=InMemoryBackend(task))
    running = asyncio.create_task(run.evolve())
    while "m" not in run.history.outages or run.history.outages["m"].attempts < 5:
        await asyncio.sleep(0.01)
    assert run.history.counts.proposals == 0
    assert "the connection broke" in run.history.outages["m"].why
    assert any(what.startswith("waiting for m: the connection broke") for what in doing)
    with serve([reply("<<<<<<< WRITE extra/n\n1\n>>>>>>> END")], port=int(url.split(":")[-1].split("/")[0])):
        assert (await asyncio.wait_for(running, PATIENCE)).reason == "proposals"
        await models.close()
    assert (run.history.counts.proposals, run.history.counts.failed_proposals) == (2, 0)
    assert run.history.outages == {}


async def test_an_engine_that_waits_for_an_endpoint_ends_with_the_run(
    task: Task, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Patience, "retries", 0)
    monkeypatch.setattr(Patience, "pause", 600.0)
    with serve() as server:
        url = server.url
    models = open_models(UserSettings(models={"m": ModelTable(base_url=url)}))
    repository = Repository.create(path)
    editor = Settings(population=(AgentSpec("editor", "m"),), evaluations=3)
    waits = Run(repository, task, "r", editor, models=models.get, backend=InMemoryBackend(task))
    waiting = asyncio.create_task(waits.evolve())
    while not waits.history.outages:
        await asyncio.sleep(0.01)
    joined = Settings(evaluations=3, selector="sequential", join=True)
    await Run(repository, task, "r", joined, agents=[ScriptedAgent()], backend=InMemoryBackend(task)).evolve()
    assert (await asyncio.wait_for(waiting, PATIENCE)).reason == "evaluations"
    await models.close()


class Rising(InMemoryBackend):
    """Finds everybody better than the seed; `found` is set once somebody is."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, self._better)
        self.found = asyncio.Event()

    def _better(self, asked: Asked) -> float:
        if asked.changed:
            self.found.set()
        return float(bool(asked.changed))


def is_over(brief: Brief) -> bool:
    """Whether no model is asked any more."""
    assert brief.account
    try:
        brief.account.check()
    except RunEndsError:
        return True
    return False


class Repairing(Asker):
    """Asks twice in every move; in the first move at once, later when somebody was found better and the run ends."""

    def __init__(self, begun: list[int], found: asyncio.Event, breaks_off: bool) -> None:
        super().__init__(Priced())
        self._breaks_off = breaks_off
        self._begun = begun
        self._found = found

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        await super().propose(brief, rng)
        self._begun.append(brief.move)
        if brief.move == 1:
            while len(self._begun) < 3:
                await asyncio.sleep(0.01)
        else:
            await self._found.wait()
            await asyncio.sleep(0.3)
            while self._breaks_off and not is_over(brief):
                await asyncio.sleep(0.01)
        return await super().propose(brief, rng)


@pytest.mark.slow
@pytest.mark.parametrize(("deterministic", "failed"), [(False, 2), (True, 0)])
def test_a_limit_that_ends_a_deterministic_run_breaks_off_no_move(
    task: Task, path: Path, deterministic: bool, failed: int
) -> None:
    begun = list[int]()
    rising, settings = Rising(task), Settings(target=1.0, deterministic=deterministic)
    crew = [Repairing(begun, rising.found, breaks_off=not deterministic) for _ in range(3)]
    run = Run(Repository.create(path), task, "r", settings, agents=crew, backend=rising)
    assert asyncio.run(run.evolve()).reason == "target"
    assert run.history.counts.failed_proposals == failed


def test_calls_are_limited_exactly_whatever_is_in_flight_and_hold_on_resume(task: Task, path: Path) -> None:
    crew = [Asker(Priced(price=None)) for _ in range(4)]
    stopped, history = evolve(path, task, *crew, calls=6)
    assert (stopped.reason, history.spent.calls, history.counts.failed_proposals) == ("calls", 6, 0)
    assert not history.reserved
    again, history = evolve(path, task, *crew, calls=6)
    assert (again.reason, history.spent.calls) == ("calls", 6)
    _, history = evolve(path, task, *crew, calls=9)
    assert history.spent.calls == 9


async def test_engines_side_by_side_share_one_limit_on_calls(tmp_path: Path, task: Task) -> None:
    with joined(tmp_path, task, calls=2) as accounts:
        (_, first), (_, second) = accounts
        held = [await each.of_move("a1", 1).reserve(CHEAP, ASKS) for each in (first, second)]
        assert [reservation.ceiling for reservation in held] == [None, None], "a limit on calls bounds no reply"
        first.of_move("a1", 1).charge(CHEAP, TokenUsage(), "the endpoint answered 503", held[0])
        third = await first.of_move("a1", 2).reserve(CHEAP, ASKS)  # what cost nothing is given back
        for account, reservation in ((first, third), (second, held[1])):
            account.of_move("a1", 2).charge(CHEAP, CALL, "", reservation)
        with pytest.raises(SpendingLimitError):
            await second.of_move("a1", 3).reserve(CHEAP, ASKS)
