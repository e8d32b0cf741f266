"""Judges candidates with the real evaluator of the task that a test module names, in the real sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from evogit.adopt import find_task
from evogit.core import BaseFiles, Evaluation, Files
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.inputs import PUBLIC
from evogit.sandbox.archive import pack

Judged = Callable[..., Awaitable[Evaluation]]


@asynccontextmanager
async def judge_of(name: str) -> AsyncIterator[Judged]:
    """`judged(code, split)`: the evaluation of the seed with `code` added to its first file, or with other `files`."""
    task = find_task(name)
    seed = {path: data for path, (data, _) in task.seed_files().items()}
    first, known = min(seed), dict[object, Evaluation]()

    async with Evaluator(task, provider="bubblewrap", jobs=1, drawing=PUBLIC) as evaluator:

        async def judge(code: str = "", split: str = "train", files: Mapping[str, bytes] | None = None) -> Evaluation:
            archive = pack(files or {first: seed[first] + b"\n\n" + code.encode()})
            if (archive, split) not in known:
                candidate = Files(archive, (), BaseFiles("seed", pack(seed)))
                known[archive, split], _ = await evaluator.evaluate("0" * 40, candidate, split=split)
            return known[archive, split]

        yield judge


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def judged(request: pytest.FixtureRequest) -> AsyncIterator[Judged]:
    """The judge of the task that the test module names."""
    async with judge_of(request.module.TASK) as judge:
        yield judge
