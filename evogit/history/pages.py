"""Values by id that are decoded when somebody asks for one: a command looks at few of all that a run has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value")

Decode = Callable[[int], Iterable[tuple[str, Value]]]
"""What is on a page."""

FRESH = -1
"""The page of what is on none: what a snapshot did not have."""


class Pages(Generic[Value]):
    """A mapping that grows: ids in the order in which they came; with one value its whole page is decoded."""

    def __init__(self, pages: dict[str, int] | None = None, decode: Decode[Value] | None = None) -> None:
        """Begin with the ids on these pages, which are for `decode` to read."""
        self._pages = pages or {}
        self._decode = decode
        self._known: dict[str, Value] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._pages

    def __iter__(self) -> Iterator[str]:
        return iter(self._pages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pages) and [(each, self.get(each)) for each in self] == [
            (each, other.get(each)) for each in other
        ]

    def __setitem__(self, key: str, value: Value) -> None:
        self._pages.setdefault(key, FRESH)
        self._known[key] = value

    def get(self, key: str) -> Value | None:
        """The value of an id; None where there is none."""
        found = self._known.get(key)
        if found is None and key in self._pages:
            self._turn_to(self._pages[key])
            found = self._known[key]
        return found

    def _turn_to(self, page: int) -> None:
        """Decode a page; what came in the place of a value of it since stays."""
        assert self._decode, "what is on no page is known"
        for key, value in self._decode(page):
            self._known.setdefault(key, value)

    def group(self, value: Value) -> int:
        """Values of one group lie together, since who wants one of them often wants all."""
        return 0
