"""The judge of designers: it counts the tries, and what is chosen packs where nothing of a try is left."""

from __future__ import annotations

import pytest

from .conftest import Judged

TASK = "meta_bin_packing"

pytestmark = pytest.mark.asyncio(loop_scope="module")

ONE_BIN_EACH = "def pack(items, capacity): return [*range(len(items))]"
"""A solver, and a poor one."""


def always(source: str) -> str:
    """A designer that returns this whatever it is asked for."""
    return f"def propose(*_): return {source}\ndef choose(*_): return {source}"


@pytest.mark.slow
async def test_a_narrow_random_search_finds_first_fit_decreasing(judged: Judged) -> None:
    evaluation = await judged(split="lite")
    assert evaluation.metrics == {"excess": 17.5}


async def test_a_wider_search_that_starts_from_the_best_designs_a_better_solver(judged: Judged) -> None:
    better = await judged("MATCH = [0.5, 0.1]", split="lite")
    assert better.ok
    assert better.metrics["excess"] < 8


async def test_a_solver_that_was_not_tried_may_be_chosen(judged: Judged) -> None:
    evaluation = await judged(f"def choose(tried): return {ONE_BIN_EACH!r}", split="lite")
    assert (evaluation.status, evaluation.metrics["excess"]) == ("ok", 200)


async def test_a_try_that_fails_is_told_as_none_and_costs_nothing_else(judged: Judged) -> None:
    code = f"""
BROKEN = ["1 // 0", "def pack(items, capacity): return [0] * len(items)"]
def propose(tried, left, seed):
    if left == 2 or seed != 1: return BROKEN[0]
    return BROKEN[1]
def choose(tried):
    assert [score for _, score in tried] == [None] * len(tried)
    return {ONE_BIN_EACH!r}
"""
    assert (await judged(code, split="lite")).metrics == {"excess": 200}


async def test_what_a_try_leaves_behind_helps_no_later_one(judged: Judged) -> None:
    """Each run of the solver writes its items down; with any of these found, it would answer from a file."""
    source = """
import os, pathlib
left = [path for path in map(pathlib.Path, (".", "/tmp", os.path.expanduser("~"))) if (path / "seen").exists()]
def pack(items, capacity):
    for path in map(pathlib.Path, (".", "/tmp", os.path.expanduser("~"))):
        try: (path / "seen").write_text(repr(items))
        except OSError: pass
    return [0] * len(items) if left else [*range(len(items))]
"""
    assert (await judged(always(repr(source)), split="lite")).metrics == {"excess": 200}


async def test_a_designer_sees_no_instance(judged: Judged) -> None:
    """Its own process, its files and those of its solvers are apart: what a solver writes is not there when it asks."""
    source = "def pack(items, capacity): open('seen', 'w').write('x'); return [*range(len(items))]"
    code = f"""
import os
def propose(*_): return {source!r}
def choose(*_): assert not os.path.exists("seen"); return {ONE_BIN_EACH!r}
"""
    assert (await judged(code, split="lite")).ok


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        (always("'def pack(items, capacity): return [0] * len(items)'"), "invalid", "the capacity is 150"),
        (always("'def pack(items, capacity): return [-1] * len(items)'"), "invalid", "got -1"),
        (always("'def pack(items, capacity): return []'"), "invalid", "items, got 0 bins"),
        (always("'def pack(items, capacity): return {\"excess\": 0}'"), "invalid", "does not fit"),
        (always("'import os; os._exit(0)'"), "crashed", ""),
        (always("'#' * 20_001"), "invalid", "at most 20000 characters"),
        (always("0.0"), "invalid", "does not fit"),
    ],
)
async def test_a_solver_or_designer_that_cheats_gains_nothing(
    judged: Judged, code: str, status: str, reason: str
) -> None:
    evaluation = await judged(code, split="lite")
    assert (evaluation.status, evaluation.metrics) == (status, {})
    assert reason in evaluation.reason


async def test_scores_that_a_designer_makes_up_are_its_own_loss(judged: Judged) -> None:
    """What is told to `choose` is a copy; the judge measures what was chosen, whatever the designer thinks of it."""
    code = "seed = choose\ndef choose(tried): tried[0][1] = -100.0; return seed(tried)"
    assert (await judged(code, split="lite")).metrics == {"excess": 17.5}
