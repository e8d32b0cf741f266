"""The choice among models, the look back when nothing helps, and the limit of a session, for agents that ask models."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from evogit.agents import Advice, Agent, Brief, ModelCredit, NoUsableChangeError
from evogit.agents.briefs import briefing
from evogit.llm import (
    Account,
    Limit,
    Message,
    Model,
    ModelError,
    Question,
    Reservation,
    RunEndsError,
    SpendingLimitError,
    TokenUsage,
)
from evogit.llm.bounds import LEAST_REPLY
from evogit.repository.evidence import PROMPT, REPLY, kept_text, numbered
from evogit.text import cut

LONGEST = 300  # tokens of a tactic; what a model says beyond is cut off


class ModelAgent(Agent):
    """Asks a model, of several the one that gains most for its money."""

    def __init__(self, *models: Model) -> None:
        self._models = {model.name: model for model in models}

    def _chosen(self, brief: Brief, rng: random.Random) -> Model:
        return self._models[choose(list(self._models), brief.merits, rng)]

    async def advise(self, brief: Brief, rng: random.Random) -> Advice:
        """Have a model say what to try, after a look at the brief."""
        if brief.background is None or brief.account is None:
            raise NoUsableChangeError("expected a brief with a background and an account, which advice needs")
        model, background = self._chosen(brief, rng), brief.background()
        messages = (
            *briefing.write(brief, background, model.context).messages,
            Message("user", briefing.look_back(background)),
        )
        evidence = {numbered(PROMPT): kept_text("\n\n".join(message.content for message in messages))}
        try:
            reply = await model.ask(Question(messages=messages, move=brief.move), brief.account)
        except (ModelError, RunEndsError, SpendingLimitError) as error:
            raise NoUsableChangeError(str(error), evidence) from error
        evidence[numbered(REPLY)] = kept_text(reply)
        if not reply.strip():
            raise NoUsableChangeError("the reply is empty", evidence)
        return Advice(text=cut(reply.strip(), LONGEST), model=model.name, evidence=evidence)


THRIFT = 0.1
"""The weight w of cost, between ShinkaEvolve's default of 0 and the 0.5 of its example (docs/design/models.md)."""


class Score(Struct, frozen=True, kw_only=True):
    """Why a model is asked, or not: `gain` from 0 to 1, `doubt` the rest of its upper bound, `cheap` from 0 to 1."""

    gain: float
    doubt: float
    cheap: float

    @property
    def total(self) -> float:
        """The model with the highest one is asked."""
        return (1 - THRIFT) * (self.gain + self.doubt) + THRIFT * self.cheap


UNKNOWN = Score(gain=0.0, doubt=math.inf, cheap=1.0)  # of a model of which no move came to an end yet


def scores(models: Sequence[str], merits: Mapping[str, ModelCredit]) -> dict[str, Score]:
    """Return the score of each model by the bandit of ShinkaEvolve (Lange, Imajuku & Cetin 2025, arXiv 2509.19349).

    It is an upper confidence bound on what a model gained over the better one of parent and seed, weighed by cost:

        score = (1 - w) * (gain + sqrt(ln t / n * 1/4)) + w * cheapest / cost

    n are the moves of a model, older ones counting less, t those of all; cost is what a move of it takes, cheapest that
    of the cheapest one. The bound is UCB1-TUNED's (Auer, Cesa-Bianchi & Fischer 2002, "Finite-time analysis of the
    multiarmed bandit problem"), with the largest variance that a number from 0 to 1 can have. Moves in flight are not
    counted, so that the same evaluated candidates give the same choice.
    """
    known = {model: merits[model] for model in models if model in merits}
    moves = max(math.fsum(merit.moves for merit in known.values()), 2.0)
    costs = _costs(known)
    cheapest = min(costs.values(), default=0.0)
    told = {
        model: Score(
            gain=merit.gain,
            doubt=math.sqrt(math.log(moves) / merit.moves / 4),
            cheap=cheapest / costs[model] if costs[model] else 1.0,
        )
        for model, merit in known.items()
    }
    return {model: told.get(model, UNKNOWN) for model in models}


def choose(models: Sequence[str], merits: Callable[[], Mapping[str, ModelCredit]], rng: random.Random) -> str:
    """The model with the highest score, ties broken by chance; merits are not looked up where there is no choice."""
    if len(models) == 1:
        return models[0]
    told = scores(models, merits())
    highest = max(score.total for score in told.values())
    return rng.choice([model for model, score in told.items() if score.total == highest])


def worth(kinds: Sequence[str], merits: Mapping[str, ModelCredit]) -> dict[str, float]:
    """Return what each kind gains at most for its cost, (gain + doubt) / cost, as a share of the largest; unknown: 1.

    Cost divides, as a coder's session costs 20 times an editor's question.
    """
    known = scores([kind for kind in kinds if kind in merits], merits)
    costs = _costs({kind: merits[kind] for kind in known})
    ratios = {kind: (score.gain + score.doubt) / (costs[kind] or 1.0) for kind, score in known.items()}
    most = max(ratios.values(), default=0.0) or 1.0
    return {kind: ratios[kind] / most if kind in ratios else 1.0 for kind in kinds}


def _costs(known: Mapping[str, ModelCredit]) -> dict[str, float]:
    """Return the cost of a move of each: dollars, or tokens if a price is unknown."""
    dollars = {model: merit.dollars for model, merit in known.items() if merit.dollars is not None}
    return dollars if len(dollars) == len(known) else {model: merit.tokens for model, merit in known.items()}


LOOK_AGAIN = 0.5
"""Seconds between two looks at whether the run goes on, while a question waits for others of its session."""


@dataclass(slots=True)
class SessionAllowance:
    """The move's account with the session's limit on tokens; `held` is what questions in flight may take."""

    account: Account
    most: int
    used: int = 0
    held: int = 0
    _counted: asyncio.Event = field(default_factory=asyncio.Event)

    def check(self) -> None:
        """Allow one more attempt."""
        if self.used >= self.most:
            raise SpendingLimitError(f"the session used its {self.most:,} tokens")
        self.account.check()

    async def reserve(self, model: Model, worst: TokenUsage) -> Reservation:
        """Set aside what an attempt may take at most, of the session's tokens and of the run's."""
        reply = await self._room(worst)
        self.held += (held := worst.prompt + reply)
        try:
            reservation = await self.account.reserve(model, replace(worst, completion=reply))
        except BaseException:
            self._release(held)
            raise
        return replace(reservation, held=held, most=reply)

    async def _room(self, worst: TokenUsage) -> int:
        """Tokens of a reply that the session has left; waits for questions in flight where these may give some back."""
        least = min(worst.completion, LEAST_REPLY)
        while True:
            self.check()
            reply = min(worst.completion, self.most - self.used - self.held - worst.prompt)
            if reply >= (worst.completion if self.held else least):
                return reply
            if not self.held:
                raise SpendingLimitError(f"what is left of the session's {self.most:,} tokens is not enough to ask")
            self._counted.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    await self._counted.wait()

    def _release(self, held: int) -> None:
        self.held -= held
        self._counted.set()

    async def pause(self, seconds: float) -> None:
        """Wait so many seconds, or until the run ends."""
        await self.account.pause(seconds)

    async def wait_out(self, model: Model, why: str, seconds: float) -> bool:
        """Wait for an endpoint that is down as the run does."""
        return await self.account.wait_out(model, why, seconds)

    def exhaust(self, limit: Limit) -> None:
        """Count what is left of a limit of the run as used up."""
        self.account.exhaust(limit)

    def charge(
        self, model: Model, usage: TokenUsage, failure: str = "", reservation: Reservation | None = None
    ) -> None:
        """Count one attempt; one whose tokens nobody told counts as what was held for it."""
        held = reservation.held if reservation else 0
        self.used += max(usage.prompt + usage.completion, held if usage.estimated else 0)
        self._release(held)
        self.account.charge(model, usage, failure, reservation)
