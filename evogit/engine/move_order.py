"""In which order the agents' moves take effect: as they come, or always the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Protocol

from evogit.agents.population import Models
from evogit.llm import Account, Model, Question
from evogit.llm.recording import MoveOrder, RecordedTurn

LOOK_AGAIN = 0.2
"""Seconds after which an agent that has nothing to do looks at the journals again."""


async def together(lives: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all until the last one ends; the first failure cancels the others and is raised alone."""
    try:
        async with asyncio.TaskGroup() as group:
            for life in lives:
                group.create_task(life)
    except ExceptionGroup as errors:
        error: Exception = errors
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        raise error from None


class Turns(Protocol):
    """Numbers the moves and says when each may be planned, may propose and may apply its result."""

    async def plan(self, place: int) -> int:
        """Wait until the agent in `place` (from 0) may plan; its move's number."""
        ...

    def proposing(self, move: int) -> AbstractAsyncContextManager[None]:
        """The time in which a move's change becomes a candidate."""
        ...

    def applying(self, move: int) -> AbstractAsyncContextManager[None]:
        """The time in which a move's result becomes part of the history."""
        ...

    async def skip(self, move: int) -> None:
        """Give up a planned move, because all that is left to do is in flight."""
        ...

    async def leave(self, move: int) -> None:
        """Give up a planned move, because the run is over."""
        ...


class FreeTurns:
    """Nobody waits for anybody."""

    def __init__(self, first: int) -> None:
        self._next = first
        self._applied = asyncio.Event()

    async def plan(self, place: int) -> int:
        """At once."""
        self._next += 1
        return self._next - 1

    @asynccontextmanager
    async def proposing(self, move: int) -> AsyncIterator[None]:
        """At once."""
        yield

    @asynccontextmanager
    async def applying(self, move: int) -> AsyncIterator[None]:
        """At once; those who wait in `skip` come first after it."""
        yield
        self._pulse()
        await asyncio.sleep(0)

    async def skip(self, move: int) -> None:
        """Wait until some move's result was applied here, or another engine may have applied one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN):
                await self._applied.wait()

    async def leave(self, move: int) -> None:
        """Let those who wait in `skip` look again."""
        self._pulse()

    def _pulse(self) -> None:
        self._applied.set()
        self._applied = asyncio.Event()


class NotedTurns(FreeTurns):
    """Turns without waiting, whose order a recording keeps."""

    def __init__(self, first: int, order: MoveOrder) -> None:
        super().__init__(first)
        self._order = order

    async def plan(self, place: int) -> int:
        """At once."""
        move = await super().plan(place)
        self._order.note(RecordedTurn(turn="plan", start="", move=move, place=place))
        return move

    @asynccontextmanager
    async def proposing(self, move: int) -> AsyncIterator[None]:
        """At once."""
        self._order.note(RecordedTurn(turn="propose", start="", move=move))
        yield

    @asynccontextmanager
    async def applying(self, move: int) -> AsyncIterator[None]:
        """At once."""
        self._order.note(RecordedTurn(turn="apply", start="", move=move))
        async with super().applying(move):
            yield


class FollowedTurns:
    """Turns in the order of a recording, of planning, proposing and applying alike.

    When all moves of the recording are applied, `end` is called. When the run is `over`, no agent waits to plan. A move
    that is given up loses its places in the order.
    """

    def __init__(self, turns: Sequence[RecordedTurn], over: asyncio.Event, end: Callable[[], object]) -> None:
        self._left = list(turns)
        self._over = over
        self._end = end
        self._changed = asyncio.Event()

    async def plan(self, place: int) -> int:
        """Wait until the recorded agent in this place planned."""
        while not self._over.is_set():
            turn = self._left[0] if self._left else None
            if turn is None:
                self._end()
            elif (turn.turn, turn.place) == ("plan", place):
                self._take(turn)
                return turn.move
            else:
                await self._wait()
        return 0

    @asynccontextmanager
    async def proposing(self, move: int) -> AsyncIterator[None]:
        """Wait for the move's turn to propose."""
        async with self._turn("propose", move):
            yield

    @asynccontextmanager
    async def applying(self, move: int) -> AsyncIterator[None]:
        """Wait for the move's turn to apply its result."""
        async with self._turn("apply", move):
            yield

    @asynccontextmanager
    async def _turn(self, what: str, move: int) -> AsyncIterator[None]:
        turn = next((each for each in self._left if (each.turn, each.move) == (what, move)), None)
        while turn in self._left and self._left[0] is not turn:
            await self._wait()
        try:
            yield
        finally:
            if turn in self._left:
                self._take(turn)

    async def skip(self, move: int) -> None:
        """Give the move up."""
        self._left = [each for each in self._left if each.move != move]
        self._pulse()
        await asyncio.sleep(0)

    async def leave(self, move: int) -> None:
        """Give the move up, and all that were not planned."""
        left = {each.move for each in self._left if each.turn == "plan"} | {move}
        self._left = [each for each in self._left if each.move not in left]
        self._pulse()

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN):  # the run may be over
                await self._changed.wait()

    def _take(self, turn: RecordedTurn | None) -> None:
        self._left = [each for each in self._left if each is not turn]
        self._pulse()

    def _pulse(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class OrderedTurns:
    """The same moves in the same order whatever takes how long.

    With N agents, move s is planned when exactly the results of the moves up to s-N are applied; changes are proposed
    and results applied in the order of the moves, and a move without a result holds its place.
    """

    def __init__(self, first: int, agents: int) -> None:
        self._first = first
        self._agents = agents
        self._planned = self._proposed = self._applied = first
        self._rounds = [0] * agents
        self._closed = False
        self._changed = asyncio.Event()

    async def plan(self, place: int) -> int:
        """Wait for exactly the results that this move may know.

        The place's own last result is applied, so all up to it are; later ones wait until this move is planned.
        """
        move = self._first + place + self._rounds[place] * self._agents
        self._rounds[place] += 1
        while not self._closed and self._planned != move:
            await self._changed.wait()
        self._planned = max(self._planned, move + 1)
        self._pulse()
        return move

    async def asking(self, move: int) -> None:
        """Wait until all earlier moves have proposed or failed."""
        while self._proposed < move:
            await self._changed.wait()

    @asynccontextmanager
    async def proposing(self, move: int) -> AsyncIterator[None]:
        """Wait until all earlier moves have proposed or failed."""
        await self.asking(move)
        try:
            yield
        finally:
            self._proposed += 1
            self._pulse()

    @asynccontextmanager
    async def applying(self, move: int) -> AsyncIterator[None]:
        """Wait until all earlier results are applied, and all moves that must not know this one are planned."""
        while self._applied != move or not (self._closed or self._planned >= move + self._agents):
            await self._changed.wait()
        try:
            yield
        finally:
            self._applied += 1
            self._pulse()

    async def skip(self, move: int) -> None:
        """Hold the move's place, without a result."""
        async with self.proposing(move):
            pass
        async with self.applying(move):
            pass

    async def leave(self, move: int) -> None:
        """Hold the move's place; nothing more is planned, so results need not wait for plans."""
        self._closed = True
        self._pulse()
        await self.skip(move)

    def _pulse(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class AskingInOrder:
    """Lets a move of a deterministic run ask a model once all earlier ones have proposed or failed.

    So replies that depend on the order repeat, too.
    """

    def __init__(self) -> None:
        self._turns: OrderedTurns | None = None

    def follow(self, turns: OrderedTurns) -> None:
        """Take the order from these turns."""
        self._turns = turns

    def of(self, models: Models) -> Models:
        """Return the same models, asked in order."""
        return lambda name: _OrderedModel(models(name), self)

    async def wait(self, move: int) -> None:
        """Wait until it is a move's turn."""
        if self._turns:
            await self._turns.asking(move)


class _OrderedModel:
    def __init__(self, model: Model, order: AskingInOrder) -> None:
        self._model = model
        self._order = order
        self.name = model.name
        self.price = model.price
        self.context = model.context

    async def ask(self, question: Question, account: Account) -> str:
        """Return the model's reply, when it is the move's turn."""
        await self._order.wait(question.move)
        return await self._model.ask(question, account)
