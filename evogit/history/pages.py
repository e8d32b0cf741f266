"""Values by key that are decoded when somebody asks for one: a command looks at few of all that a run has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

Content = bytes | memoryview
"""A page as it is stored."""

FRESH = -1
"""The page of what is on none: what came since."""

PAGE = 500
"""Values on a page."""

MOST_FRESH = 10_000
"""Values that are on no page, before the oldest go onto some."""

MOST_OPEN = 400
"""Pages that are decoded at a time."""


class Pages(Mapping[Key, Value]):
    """A mapping that only grows: keys in the order in which they came; with one value its whole page is decoded.

    A value is never changed in place: it is set again. So a page that was decoded may be forgotten, and memory does not
    grow with what somebody looked at once.
    """

    def __init__(
        self,
        page_of: dict[Key, int] | None = None,
        pages: Mapping[int, Content] | None = None,
        decode: Callable[[Content], dict[Key, Value]] | None = None,
    ) -> None:
        """Begin with the keys on these pages, which are for `decode` to read."""
        self._page_of = page_of or {}
        self._pages = dict(pages or {})
        self._decode = decode
        self._open: dict[int, dict[Key, Value]] = {}
        self._fresh: dict[Key, Value] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._page_of

    def __iter__(self) -> Iterator[Key]:
        return iter(self._page_of)

    def __reversed__(self) -> Iterator[Key]:
        return reversed(self._page_of)

    def __len__(self) -> int:
        return len(self._page_of)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pages) and list(self.items()) == list(other.items())

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, key: Key) -> Value:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: Key, value: Value) -> None:
        self._page_of[key] = FRESH  # what its page has is out of date from now on
        self._fresh[key] = value

    def get(self, key: Key, default: None = None) -> Value | None:  # type: ignore[override]
        """The value of a key; None where there is none."""
        found = self._fresh.get(key)
        if found is None and (page := self._page_of.get(key)) is not None:
            return (self._open.get(page) or self._turn_to(page))[key]
        return found

    def _turn_to(self, page: int) -> dict[Key, Value]:
        assert self._decode, "what is on no page is fresh"
        if len(self._open) >= MOST_OPEN:
            del self._open[next(iter(self._open))]
        found = self._open[page] = self._decode(self._pages[page])
        return found

    @property
    def fresh(self) -> int:
        """How many values are on no page."""
        return len(self._fresh)

    @property
    def pages(self) -> Mapping[int, Content]:
        """The pages by number."""
        return self._pages

    @property
    def places(self) -> Mapping[Key, int]:
        """The page of each key."""
        return self._page_of

    def parts(self, most: int = 0) -> list[dict[Key, Value]]:
        """The fresh values by pages that they could make, but for the latest so many; those of one group together."""
        oldest = sorted(islice(self._fresh, max(len(self._fresh) - most, 0)), key=lambda key: self.group(self[key]))
        return [{key: self[key] for key in oldest[at : at + PAGE]} for at in range(0, len(oldest), PAGE)]

    def fold(self, part: dict[Key, Value], content: Content, decode: Callable[[Content], dict[Key, Value]]) -> None:
        """Let fresh values be on a page of their own."""
        page = max(self._pages, default=FRESH) + 1
        self._pages[page] = content
        self._decode = self._decode or decode
        for key in part:
            del self._fresh[key]
            self._page_of[key] = page

    def group(self, value: Value) -> int:
        """Values of one group lie together, since who wants one of them often wants all."""
        return 0
