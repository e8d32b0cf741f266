"""Replies made to hold whoever makes a set or a dict of them: they cost what a list of their size costs."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Annotated, Any

import pytest
from pydantic import Field

from evogit.evaluation.return_types import check
from evogit.sandbox.values import MisfitError, parse

PRIME = (1 << 61) - 1


def multiples(count: int) -> list[int]:
    return [number * PRIME for number in range(count)]


def signs(count: int) -> list[list[int]]:
    """-1 and -2 have one hash, and so has any row of them of one length."""
    return [[-1 - (number >> place & 1) for place in range(20)] for number in range(count)]


def read(value: Any, returns: Any) -> Any:
    raw = json.dumps(value).encode()
    parse(raw)
    return check(returns)(raw)


def seconds(value: Any, returns: Any) -> float:
    began = time.process_time()
    with suppress(ValueError):
        read(value, returns)
    return time.process_time() - began


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "returns"),
    [
        (multiples(15_000), set[int]),
        (multiples(15_000), frozenset[int]),
        (multiples(15_000), list[int]),
        ([[each] for each in multiples(15_000)], set[tuple[int]]),
        ({str(each): 1 for each in multiples(15_000)}, dict[int, int]),
        ({"deep": [{"er": multiples(15_000)}]}, dict[str, list[dict[str, set[int]]]]),
        (multiples(15_000), Annotated[set[int], Field(max_length=50_000)]),
        (signs(15_000), set[tuple[int, ...]]),
        (signs(15_000), list[set[int]]),
    ],
)
def test_values_with_one_hash_take_no_longer_than_others(value: Any, returns: Any) -> None:
    assert seconds(value, returns) < 40 * seconds([list(range(20))] * 15_000, list[list[int]]) + 0.1
    if returns != list[set[int]]:
        with pytest.raises(ValueError, match="of its values have the same hash, more than 1000"):
            read(value, returns)


def test_sets_are_checked_as_before() -> None:
    assert read([1, 2, 2], set[int]) == {1, 2}
    assert read([[1, "a"]], frozenset[tuple[int, str]]) == frozenset({(1, "a")})
    assert read([1] * 5000, set[int]) == {1}
    assert read([PRIME * 2**number for number in range(900)], set[int])
    assert read(list(range(5000)), set[int]) == set(range(5000))
    assert read([2, 2], Annotated[set[int], Field(max_length=1)]) == {2}
    for value, returns in (([True], set[int]), (["a"], set[int]), (1, set[int]), ({"a": 1}, set[str])):
        with pytest.raises(MisfitError):
            read(value, returns)
    with pytest.raises(MisfitError, match="at most 1"):
        read([1, 2], Annotated[set[int], Field(max_length=1)])
