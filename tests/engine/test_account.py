"""Money is limited before every call, counted after every attempt, and remembered by the run."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from evogit.agents import Agent, Brief, NoUsableChangeError, Proposal
from evogit.config import Task
from evogit.config.run_settings import AgentSpec
from evogit.config.user_settings import ModelTable, PriceTable, UserSettings
from evogit.core import Stopped
from evogit.engine.account import RunAccount
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.llm import Account, Model, ModelError, Price, Question, RunEndsError, TokenUsage
from evogit.llm.gateway.gateway import Gateway
from evogit.llm.registry import open_models
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.testing import Asked, InMemoryBackend
from tests.clock import PATIENCE
from tests.openai_server import refusal, serve
from tests.protocol_replies import chat_stream

CALL = TokenUsage(prompt=800, cached=300, completion=200)


@dataclass
class Priced:
    """A model that answers after a moment, at ten dollars for a million tokens of any kind: a cent for a call."""

    name: str = "priced"
    price: Price | None = Price(prompt=10, cached=10, completion=10)
    fails: bool = False

    async def ask(self, question: Question, account: Account) -> str:
        account.check()
        await asyncio.sleep(0.002)
        account.charge(self, CALL, "it broke off" if self.fails else "")
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


def test_dollars_are_exceeded_by_calls_in_flight_at_most_and_hold_on_resume(
    tmp_path: Path, tiny: Callable[..., Task]
) -> None:
    path, task = tmp_path / "r", tiny()
    crew = [Asker(Priced()) for _ in range(3)]
    stopped, history = evolve(path, task, *crew, dollars=0.1)
    assert stopped.reason == "dollars"
    assert 0.1 <= history.spent.dollars < 0.1 + 3 * 0.01
    assert history.spent.calls == round(history.spent.dollars / 0.01)
    again, history_again = evolve(path, task, *crew, dollars=0.1)
    assert (again.reason, history_again.spent) == ("dollars", history.spent), (
        "the account is the run's, not the engine's"
    )
    _, more = evolve(path, task, *crew, dollars=0.15)
    assert 0.15 <= more.spent.dollars < 0.15 + 3 * 0.01


def test_failed_calls_count_and_are_told_apart(tmp_path: Path, tiny: Callable[..., Task]) -> None:
    stopped, history = evolve(tmp_path / "r", tiny(), Asker(Priced(fails=True)), tokens=4000)
    assert (stopped.reason, history.spent.calls, history.spent.failed) == ("tokens", 4, 4)
    assert (history.spent.tokens, history.spent.cached) == (4000, 1200)
    assert {event.reason for event in history.failures} == {"the reply broke off"}


def test_babble_stops_at_the_proposals(tmp_path: Path, tiny: Callable[..., Task]) -> None:
    stopped, history = evolve(tmp_path / "r", tiny(), Asker(Priced(), usable=False), proposals=3)
    assert (stopped.reason, history.counts.failed_proposals, history.spent.calls) == ("proposals", 3, 3)


def test_calls_without_a_price_count_tokens_alone(tmp_path: Path, tiny: Callable[..., Task]) -> None:
    stopped, history = evolve(tmp_path / "r", tiny(), Asker(Priced(price=None)), tokens=2500)
    assert (stopped.reason, history.spent.unpriced, history.spent.dollars) == ("tokens", 3, 0)
    assert history.spent_by.keys() == {("a1", "priced")}


def test_what_another_engine_spent_is_seen_before_the_next_call(tmp_path: Path, tiny: Callable[..., Task]) -> None:
    repository = Repository.create(tmp_path / "r")
    task = tiny()
    accounts = [RunAccount(StoredRun.open(repository, "r").about(task).of(str(i)), tokens=1500) for i in range(2)]
    one, other = (account.of_move("a1", 1) for account in accounts)
    for left in (1500, 500):
        one.check()
        assert (one.left().tokens, one.left().dollars) == (left, None)
        one.charge(Priced(), CALL)
    assert one.left().tokens == 0
    with pytest.raises(Exception, match="the limit on tokens is reached"):
        other.check()


@pytest.mark.slow
@pytest.mark.parametrize("deterministic", [False, True])
async def test_a_stop_waits_for_no_endpoint_that_asks_to_be_asked_again_later(
    tmp_path: Path, tiny: Callable[..., Task], deterministic: bool
) -> None:
    with serve([refusal(429, "slow down", retry_after="60")]) as server:
        user = UserSettings(models={"m": ModelTable(base_url=server.url)})
        models = open_models(user)
        settings = Settings(population=(AgentSpec("editor", "m", 2),), deterministic=deterministic)
        repository = Repository.create(tmp_path / "r")
        task = tiny()
        run = Run(repository, task, "r", settings, models=models.get, backend=InMemoryBackend(task))
        running = asyncio.create_task(run.evolve())
        while run.history.spent.calls < 2:
            await asyncio.sleep(0.02)
        run.stop()
        assert (await asyncio.wait_for(running, PATIENCE)).reason == "interrupted"
        await models.close()
    assert len(server.requests) == 2, "nothing is asked once more"
    assert {failure.reason for failure in run.history.failures} == {"the run ends, so no model is asked again"}


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
    tmp_path: Path, tiny: Callable[..., Task], deterministic: bool, failed: int
) -> None:
    task, begun = tiny(), list[int]()
    rising, settings = Rising(task), Settings(target=1.0, deterministic=deterministic)
    crew = [Repairing(begun, rising.found, breaks_off=not deterministic) for _ in range(3)]
    run = Run(Repository.create(tmp_path / "r"), task, "r", settings, agents=crew, backend=rising)
    assert asyncio.run(run.evolve()).reason == "target"
    assert run.history.counts.failed_proposals == failed


@pytest.mark.slow
async def test_a_dollar_stops_a_program_in_the_middle_of_its_session(tmp_path: Path, tiny: Callable[..., Task]) -> None:
    run = StoredRun.open(Repository.create(tmp_path / "r"), "r")
    account = RunAccount(run.about(tiny()).of("e"), dollars=1.0)
    words = ["word"] * 400
    with serve([chat_stream(words, completion=400), chat_stream(words * 10, gap=0.0002)]) as server:
        price = PriceTable(input=0, output=1000)  # a word is a token, a thousand of them a dollar
        models = open_models(UserSettings(models={"m": ModelTable(base_url=server.url, price=price)}))
        gateway = Gateway(models)
        session = gateway.session(account.of_move("a1", 7), ["m"])
        async with session.listen(tmp_path / "s") as place:
            transport = httpx2.AsyncHTTPTransport(uds=str(place), verify=False)
            async with httpx2.AsyncClient(transport=transport, base_url="http://gateway", timeout=60) as http:
                asked = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Go on."}]}
                answers = [await http.post("/v1/chat/completions", json=asked) for _ in range(3)]
        await gateway.close()
        await models.close()
    assert [answer.status_code for answer in answers] == [200, 200, 402]
    assert 590 <= answers[1].text.count('"word"') <= 610
    assert len(server.requests) == 2
    history = run.history
    assert 1.0 <= history.spent.dollars < 1.01
    assert (history.spent.calls, history.spent.failed) == (2, 1)
    assert account.empty() == "dollars"
