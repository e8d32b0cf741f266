"""Values by key that are decoded when somebody asks for one: a command looks at few of all that a run has."""

from __future__ import annotations

import json
import types
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from itertools import chain, islice, repeat
from operator import attrgetter, is_
from typing import Any, Literal, Protocol, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

Key = TypeVar("Key")
Value = TypeVar("Value")

Content = bytes | memoryview
"""A page as it is stored."""

FRESH = -1
"""The page of what is on none: what came since."""

PAGE = 500  # values on a page
MOST_FRESH = 10_000  # values that are on no page, before the oldest go onto some
MOST_OPEN = 400  # pages that are decoded at a time


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


Column = list[Any]

DERIVED = {"derived": True}
"""Metadata of fields that are in no column, as they follow from others; they come back as in a new object."""


class Texts:
    """Each text once; columns have its number, so that equal ones are one object, whose hash is found once.

    Ids of candidates are told by the candidate's number, as there are many of them; pages are stored apart.
    """

    def __init__(self, candidates: Mapping[str, int], pages: list[Content]) -> None:
        self._candidates = candidates
        self._numbers: dict[str | None, int] = {}
        self.pages = pages

    def numbers(self, values: Iterable[str | None]) -> list[int]:
        """The numbers of texts, new ones for those that are new."""
        known = self._numbers
        return [known.setdefault(value, len(known)) for value in values]

    def encoded(self, part: Codec, value: Any) -> bytes:
        """A value and the texts in it, which can be read without any other."""
        told = part.encode([value], self)
        candidates = cast("Mapping[str | None, int | None]", self._candidates)
        table = [each if (number := candidates.get(each)) is None else number for each in self._numbers]
        return json.dumps([table, told], separators=(",", ":")).encode()

    def apart(self) -> Texts:
        """Other texts, of the same candidates, for what is read by itself."""
        return Texts(self._candidates, self.pages)

    def page(self, content: Content) -> int:
        """The number of a page that is stored."""
        self.pages.append(content)
        return len(self.pages) - 1


class Known(Struct, frozen=True):
    """The input of a decoder: texts, ids of all candidates, and pages, each by number."""

    texts: Column
    candidates: Sequence[str]
    pages: Sequence[Content]

    def decoded(self, part: Codec, told: Content) -> Any:
        """The value of what `Texts.encoded` gave."""
        table, told = json.loads(bytes(told))
        ids = self.candidates
        texts = [ids[each] if type(each) is int else each for each in table]
        return part.decode(told, 1, Known(texts, ids, self.pages))[0]


class Codec(Protocol):
    """The codec of one type."""

    def encode(self, values: Column, texts: Texts) -> Any:
        """Values as JSON."""

    def decode(self, told: Any, amount: int, known: Known) -> Column:
        """So many values of what `encode` gave."""


@cache
def codec(kind: Any) -> Codec:
    """Return the codec of a type: a record, a dataclass, or the type of one of their fields."""
    arguments, origin = get_args(kind), get_origin(kind)
    if is_dataclass(kind) or (isinstance(kind, type) and issubclass(kind, Struct)):
        return _Objects(cast(type, kind))
    if isinstance(kind, type) and issubclass(kind, Pages):
        return _Pages(kind)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if kind is str or origin is Literal:
        return _Text()
    if origin is tuple and arguments[-1] is not Ellipsis:
        return _Tuples([codec(each) for each in arguments])
    if origin in (tuple, list, set, Sequence):
        return _Sequences(tuple if origin is Sequence else origin, codec(arguments[0]))
    if origin in (dict, Mapping) and arguments[1] is not Any:
        return _Mappings(dict, codec(arguments[0]), codec(arguments[1]))
    if origin is Counter:
        return _Mappings(Counter, codec(arguments[0]), _Plain())
    if kind in (int, bool, float, Any) or origin is Mapping:
        return _Plain()
    raise TypeError(f"no rule for {kind}")


def fold(pages: Pages[Any, Any]) -> None:
    """Keep what came long ago as columns: objects of a million candidates take ten times the memory."""
    if pages.fresh >= MOST_FRESH + 4 * PAGE:
        cast(_Pages, codec(type(pages))).fold(pages)


def _union(kinds: Sequence[Any]) -> Codec:
    others = [each for each in kinds if each is not types.NoneType]
    if len(others) == 1 and isinstance(inner := codec(others[0]), _Text | _Plain):
        return inner
    return _Union(kinds)


class _Plain:
    """The codec of JSON values; a column of equal values is stored once."""

    def encode(self, values: Column, texts: Texts) -> Any:
        return values[:1] if len(values) > 1 and all(map(is_, values, repeat(values[0]))) else values

    def decode(self, told: Any, amount: int, known: Known) -> Column:
        found: Column = told if len(told) == amount else told * amount
        return found


class _Text:
    def encode(self, values: Column, texts: Texts) -> Any:
        return _Plain().encode(texts.numbers(values), texts)

    def decode(self, told: Any, amount: int, known: Known) -> Column:
        found = list(map(known.texts.__getitem__, told))
        return found if len(found) == amount else found * amount


class _Tuples:
    """Tuples of so many values."""

    def __init__(self, parts: list[Codec]) -> None:
        self._parts = parts

    def encode(self, values: Column, texts: Texts) -> Any:
        columns = map(list, zip(*values, strict=True)) if values else repeat([])
        return [part.encode(column, texts) for part, column in zip(self._parts, columns, strict=False)]

    def decode(self, told: Any, amount: int, known: Known) -> Column:
        columns = [part.decode(each, amount, known) for part, each in zip(self._parts, told, strict=True)]
        return list(zip(*columns, strict=True))


class _Sequences:
    """Tuples, lists or sets: their lengths, and all values in one column."""

    def __init__(self, make: Any, inner: Codec) -> None:
        self._make = make
        self._inner = inner

    def encode(self, values: Column, texts: Texts) -> Any:
        lengths = list(map(len, values))
        return [lengths, self._inner.encode(list(chain.from_iterable(values)), texts)]

    def decode(self, told: Any, amount: int, known: Known) -> Column:
        lengths, inner = told
        make, flat = self._make, iter(self._inner.decode(inner, sum(lengths), known))
        return [make(islice(flat, length)) for length in lengths]


class _Mappings:
    """Mappings: which keys each has, as many have the same, and all values in one column."""

    def __init__(self, make: Any, keys: Codec, values: Codec) -> None:
        self._make = make
        self._keys = _Sequences(tuple, keys)
        self._values = values

    def encode(self, values: Column, texts: Texts) -> Any:
        shapes: dict[tuple[Any, ...], int] = {}
        which = [shapes.setdefault(tuple(each), len(shapes)) for each in values]
        flat = list(chain.from_iterable(each.values() for each in values))
        return [len(shapes), self._keys.encode(list(shapes), texts), which, len(flat), self._values.encode(flat, texts)]

    def decode(self, told: Any, amount: int, known: Known) -> Column:
        amount_of_shapes, shapes, which, length, flat = told
        keys = self._keys.decode(shapes, amount_of_shapes, known)
        values = iter(self._values.decode(flat, length, known))
        found = [dict(zip(keys[each], values, strict=False)) for each in which]
        return found if self._make is dict else [self._make(each) for each in found]


class _Pages:
    """Pages that are stored apart, so that one is read without the others."""

    def __init__(self, kind: type[Pages[Any, Any]]) -> None:
        key, value = get_args(cast(Any, kind).__orig_bases__[0])
        self._kind = kind
        self._keys = codec(key)
        self._pairs = _Mappings(dict, self._keys, codec(value))

    def encode(self, values: Column, texts: Texts) -> Any:
        return [self._encode(each, texts) for each in values]

    def _encode(self, pages: Pages[Any, Any], texts: Texts) -> Any:
        """The keys, and the number of the page of each; pages that are there stay as they are."""
        used = set(pages.places.values())
        stored = {page: texts.page(content) for page, content in pages.pages.items() if page in used}
        place = {key: stored.get(page, FRESH) for key, page in pages.places.items()}
        for part in pages.parts():
            place.update(dict.fromkeys(part, texts.page(texts.apart().encoded(self._pairs, part))))
        return [self._keys.encode(list(place), texts), list(place.values())]

    def fold(self, pages: Pages[Any, Any]) -> None:
        """Have what came long ago on pages, in memory."""
        nothing = Known([], (), ())
        for part in pages.parts(MOST_FRESH):
            pages.fold(part, Texts({}, []).encoded(self._pairs, part), partial(nothing.decoded, self._pairs))

    def decode(self, told: Any, amount: int, known: Known) -> Column:
        return [self._decode(keys, pages, known) for keys, pages in told]

    def _decode(self, keys: Any, pages: list[int], known: Known) -> Pages[Any, Any]:
        place = dict(zip(self._keys.decode(keys, len(pages), known), pages, strict=True))
        apart = replace(known, texts=[])  # which go with what was decoded
        return self._kind(place, {each: known.pages[each] for each in set(pages)}, partial(apart.decoded, self._pairs))


class _Union:
    """Values of one of several types: which, and a column for each type."""

    def __init__(self, kinds: Sequence[Any]) -> None:
        self._types = [get_origin(each) or each for each in kinds]
        self._codecs = [_Plain() if each is types.NoneType else codec(each) for each in kinds]

    def encode(self, values: Column, texts: Texts) -> Any:
        which = [self._types.index(type(each)) for each in values]
        parts = [[each for each in values if type(each) is kind] for kind in self._types]
        return [which, [part.encode(each, texts) for part, each in zip(self._codecs, parts, strict=True)]]

    def decode(self, told: Any, amount: int, known: Known) -> Column:
        which, parts = told
        lengths = Counter(which)
        found = [
            iter(part.decode(each, lengths[number], known))
            for number, (part, each) in enumerate(zip(self._codecs, parts, strict=True))
        ]
        return [next(found[each]) for each in which]


class _Objects:
    """Records and dataclasses: a column for each field."""

    def __init__(self, kind: type) -> None:
        hints = get_type_hints(kind)
        known = fields(cast(Any, kind)) if is_dataclass(kind) else ()
        names = [each.name for each in known] or cast(type[Struct], kind).__struct_fields__
        self._kind = kind
        self._blank = partial(object.__new__, kind) if known else kind(**dict.fromkeys(names)).__copy__
        self._derived = [each for each in known if each.metadata.get("derived")]
        derived = {each.name for each in self._derived}
        self._fields = {name: codec(hints[name]) for name in names if name not in derived}

    def encode(self, values: Column, texts: Texts) -> Any:
        return {name: part.encode(list(map(attrgetter(name), values)), texts) for name, part in self._fields.items()}

    def decode(self, told: Any, amount: int, known: Known) -> Column:
        found: Column = [self._blank() for _ in range(amount)]
        for name, part in self._fields.items():
            self._fill(found, name, part.decode(told[name], amount, known))
        for each in self._derived:
            self._fill(
                found,
                each.name,
                [(each.default if each.default_factory is MISSING else each.default_factory()) for _ in range(amount)],
            )
        return found

    def _fill(self, objects: Column, name: str, values: Column) -> None:
        slot = getattr(self._kind, name, None)
        setter = getattr(slot, "__set__", None) if isinstance(slot, types.MemberDescriptorType) else None
        calls = map(setter, objects, values) if setter else map(object.__setattr__, objects, repeat(name), values)
        deque(calls, maxlen=0)
