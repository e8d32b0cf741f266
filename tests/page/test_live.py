"""Streams of what happens in a run: who does not keep up, and runs that cannot be read any more."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from evogit.core import NotFoundError
from evogit.page import app as live
from evogit.page.app import Live


async def test_who_does_not_keep_up_starts_over_and_holds_no_more_than_a_hundred(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "EVERY", 0)
    told = 0

    async def news() -> list[dict[str, Any]]:
        nonlocal told
        told += 1
        return [{"position": told}]

    async with aclosing(Live(news).events([])) as events:
        await anext(events)
        waiting = asyncio.create_task(anext(events))
        assert b'"position":1' in await waiting
        while told < 300:
            await asyncio.sleep(0)
        rest = [each async for each in events]
    assert rest[-1] == live.RELOAD
    assert len(rest) <= live.MOST_WAITING


@pytest.mark.parametrize("error", [NotFoundError("it is gone"), KeyError("an object that is packed just now")])
async def test_a_run_that_cannot_be_read_any_more_ends_its_streams(error: Exception) -> None:
    async def news() -> list[dict[str, Any]]:
        raise error

    async with aclosing(Live(news).events([])) as events:
        assert [each async for each in events][-1] == live.RELOAD
