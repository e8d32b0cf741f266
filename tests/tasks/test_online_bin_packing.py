"""The online bin packing judge: it keeps the bins itself, and no item is known before its time."""

from __future__ import annotations

import pytest

from .conftest import Judged

TASK = "online_bin_packing"

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_best_fit_has_its_known_values(judged: Judged) -> None:
    evaluation = await judged()
    cases = {name: values["excess"] for name, values in evaluation.cases.items()}
    assert cases == pytest.approx({"U500-1": 5.102, "U500-2": 5.0505, "W1000-1": 3.9801}, abs=1e-4)


async def test_another_number_makes_a_better_rule(judged: Judged) -> None:
    better = await judged("WELCOME[1] = 0.908")
    assert better.ok
    assert better.metrics["excess"] < 3


@pytest.mark.slow
async def test_the_program_keeps_its_bins_as_it_likes(judged: Judged) -> None:
    """First fit, on a list of rooms."""
    code = """
def start(capacity):
    global rooms, whole
    rooms, whole = [], capacity

def place(size):
    b = next((b for b, room in enumerate(rooms) if room >= size), len(rooms))
    if b == len(rooms):
        rooms.append(whole)
    rooms[b] -= size
    return b
"""
    first_fit, best_fit = await judged(code), await judged()
    assert first_fit.metrics["excess"] > best_fit.metrics["excess"]


async def test_forgetting_the_bins_of_the_last_instance_is_up_to_the_program(judged: Judged) -> None:
    evaluation = await judged("def start(capacity): bins.setdefault(capacity, [0])", split="lite")
    assert evaluation.status == "invalid"
    assert "W5-1: item" in evaluation.reason


async def test_a_program_that_stops_in_the_middle_has_crashed(judged: Judged) -> None:
    code = "seed = place\ndef place(size): return seed(size) if len(bins) < 5 else 1 // 0"
    evaluation = await judged(code, split="lite")
    assert (evaluation.status, evaluation.metrics) == ("crashed", {})
    assert "ZeroDivisionError" in evaluation.reason
