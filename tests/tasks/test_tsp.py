"""The judge of tours: each city once, or the tour gains nothing and is told why; the judge measures."""

from __future__ import annotations

import pytest

from .conftest import Judged

TASK = "tsp"

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_nearest_neighbour_is_about_a_quarter_too_long(judged: Judged) -> None:
    """As published for random uniform instances (Johnson and McGeoch 1997); the known lengths are near the optimum."""
    train = await judged()
    assert len(train.cases) == 6
    assert 18 < train.metrics["excess"] < 32


async def test_where_a_tour_begins_and_which_way_it_goes_is_no_matter(judged: Judged) -> None:
    turned = await judged("seed = tour\ndef tour(cities): order = seed(cities)[::-1]; return order[3:] + order[:3]")
    assert turned.metrics == pytest.approx((await judged()).metrics)


async def test_two_numbers_make_local_search(judged: Judged) -> None:
    better = await judged("PASSES = 9\nREACH = 1.0", split="lite")
    assert better.ok
    assert better.metrics["excess"] < 8


async def test_the_cities_of_the_judge_are_out_of_reach(judged: Judged) -> None:
    """Moving all cities to one place would make any tour short."""
    moved = await judged(
        "seed = tour\ndef tour(cities): cities[:] = [(0, 0)] * len(cities); return [*range(len(cities))]"
    )
    assert moved.metrics["excess"] > 100
