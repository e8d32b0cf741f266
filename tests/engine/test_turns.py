"""Who may plan, propose and apply when; moves here are bare sleeps, so only the order is under test."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from evogit.engine.move_order import FreeTurns, OrderedTurns, Turns, together
from tests.clock import PATIENCE


class Board:
    """What a run of sleeping agents looked like: which results each plan saw, and in what order things happened."""

    def __init__(self, turns: Turns, seed: int, moves: int, over: Callable[[int], bool] = lambda move: False) -> None:
        self._turns = turns
        self._rng = random.Random(seed)
        self._moves = moves
        self._over = over
        self.seen: dict[int, list[int]] = {}
        self.proposed: list[int] = []
        self.applied: list[int] = []

    async def live(self, lane: int) -> None:
        while True:
            move = await self._turns.plan(lane)
            if move >= self._moves or self._over(move):
                return await self._turns.leave(move)
            self.seen[move] = sorted(self.applied)
            if self._rng.random() < 0.2:
                await self._turns.skip(move)
                continue
            await asyncio.sleep(self._rng.random() / 300)
            async with self._turns.proposing(move):
                self.proposed.append(move)
            await asyncio.sleep(self._rng.random() / 300)
            async with self._turns.applying(move):
                self.applied.append(move)
            if self._rng.random() < 0.3:  # as an agent does after a failure
                await asyncio.sleep(self._rng.random() / 100)

    async def play(self, agents: int) -> Board:
        async with asyncio.timeout(PATIENCE):
            await together(self.live(lane) for lane in range(agents))
        return self


@pytest.mark.parametrize("agents", [1, 2, 3, 8])
async def test_an_ordered_move_knows_exactly_the_results_that_it_may_know(agents: int) -> None:
    board = await Board(OrderedTurns(5, agents), agents, 60).play(agents)
    assert board.proposed == sorted(board.proposed)
    assert board.applied == sorted(board.applied)
    assert sorted(board.seen) == list(range(5, 60))
    for move, seen in board.seen.items():
        assert seen == [other for other in board.applied if other <= move - agents]


@pytest.mark.parametrize("end", range(5, 20))
async def test_ordered_agents_all_come_home_wherever_the_run_ends(end: int) -> None:
    ended = False

    def over(move: int) -> bool:
        nonlocal ended
        ended = ended or move >= end
        return ended

    board = await Board(OrderedTurns(0, 4), end, 1000, over).play(4)
    assert sorted(board.seen) == list(range(end)), "the moves before the end, and none after it"


async def test_free_agents_number_their_moves_and_wait_for_nobody() -> None:
    board = await Board(FreeTurns(7), 1, 60).play(3)
    assert sorted(board.seen) == list(range(7, 60))
    assert board.applied != sorted(board.applied), "a quick move overtakes a slow one"


async def test_a_waiting_agent_looks_again_when_something_happens_and_lets_others_work_meanwhile() -> None:
    turns = FreeTurns(0)
    await turns.leave(await turns.plan(0))
    steps = 0

    async def busy() -> None:
        nonlocal steps
        for _ in range(3):
            await asyncio.sleep(0)
            steps += 1

    work = asyncio.create_task(busy())
    await turns.skip(await turns.plan(1))
    assert steps == 3, "the wait after another agent left gave way to the loop"
    waiting = asyncio.create_task(turns.skip(await turns.plan(1)))
    await asyncio.sleep(0)
    async with turns.applying(0):
        assert not waiting.done()
    assert waiting.done(), "those who wait come first"
    await work


async def test_the_first_failure_ends_the_others_and_is_raised_alone() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await together([asyncio.sleep(60), fails()])
