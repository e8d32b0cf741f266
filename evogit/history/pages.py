"""Values by key that are decoded when somebody asks for one: a command looks at few of all that a run has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

Content = bytes | memoryview
"""A page as it is stored."""

FRESH = -1
"""The page of what is on none: what a snapshot did not have."""


class Pages(Mapping[Key, Value]):
    """A mapping that only grows: keys in the order in which they came; with one value its whole page is decoded."""

    def __init__(
        self,
        page_of: dict[Key, int] | None = None,
        pages: Sequence[Content] = (),
        decode: Callable[[Content], Iterable[tuple[Key, Value]]] | None = None,
    ) -> None:
        """Begin with the keys on these pages, which are for `decode` to read."""
        self._page_of = page_of or {}
        self._pages = pages
        self._decode = decode
        self._closed = set(self._page_of.values())
        self._known: dict[Key, Value] = {}

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
        self._turn_to(self._page_of.setdefault(key, FRESH))
        self._known[key] = value

    def get(self, key: Key, default: None = None) -> Value | None:  # type: ignore[override]
        """The value of a key; None where there is none."""
        found = self._known.get(key)
        if found is None and (page := self._page_of.get(key)) is not None:
            self._turn_to(page)
            found = self._known[key]
        return found

    def _turn_to(self, page: int) -> None:
        """Decode a page, unless it is."""
        if page in self._closed:
            assert self._decode, "what is on no page is known"
            self._known.update(self._decode(self._pages[page]))
            self._closed.discard(page)

    def closed(self) -> dict[int, Content]:
        """The pages to which nobody has turned, by number: they are as they were."""
        return {page: self._pages[page] for page in sorted(self._closed)}

    def places(self) -> Mapping[Key, int]:
        """The page of each key, which may be open."""
        return self._page_of

    def group(self, value: Value) -> int:
        """Values of one group lie together, since who wants one of them often wants all."""
        return 0
