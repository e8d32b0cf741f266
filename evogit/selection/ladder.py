"""A sorted list in steps: a million values in one list are moved about whenever one comes or goes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Generic, Protocol, TypeVar

STEP = 4000
"""Values of a step; with twice as many it becomes two."""


class Comparable(Protocol):
    """What has an order."""

    def __lt__(self, other: Any, /) -> bool:
        """Whether it comes first."""


Value = TypeVar("Value", bound=Comparable)


class Ladder(Generic[Value]):
    """Values, the least first; one more or less moves a step of them only."""

    def __init__(self, values: Iterable[Value] = ()) -> None:
        ordered = sorted(values)
        self._steps: list[list[Value]] = [ordered[at : at + STEP] for at in range(0, len(ordered), STEP)]
        self._lasts = [step[-1] for step in self._steps]
        self._amount = len(ordered)

    def __len__(self) -> int:
        return self._amount

    def __iter__(self) -> Iterator[Value]:
        return chain.from_iterable(self._steps)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ladder) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, place: int) -> Value:
        for step in self._steps:
            if place < len(step):
                return step[place]
            place -= len(step)
        raise IndexError(f"expected a place below {self._amount}")

    def first(self, most: int) -> Sequence[Value]:
        """The least ones, at most so many."""
        return list(islice(self, most))

    def add(self, value: Value) -> None:
        """Put one more in its place."""
        if not self._steps:
            self._steps, self._lasts = [[]], [value]
        number = min(bisect_left(self._lasts, value), len(self._steps) - 1)
        step = self._steps[number]
        insort(step, value)
        if len(step) > 2 * STEP:
            self._steps[number : number + 1] = step[:STEP], step[STEP:]
            self._lasts.insert(number, step[STEP - 1])
            number += 1
        self._lasts[number] = self._steps[number][-1]
        self._amount += 1

    def remove(self, value: Value) -> None:
        """Take out one that is there."""
        number = bisect_left(self._lasts, value)
        step = self._steps[number]
        del step[bisect_left(step, value)]
        self._amount -= 1
        if step:
            self._lasts[number] = step[-1]
        else:
            del self._steps[number], self._lasts[number]
