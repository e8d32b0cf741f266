"""A file that does not fit: the definitions that a brief speaks of, to the letter, and of the others a map."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from evogit.llm import estimate_tokens
from evogit.source.outline import Part, outline
from evogit.text import cut, ends, escaped, fence, one_line

MAP_SHARE = 0.35  # share of a file's room that its map takes at most

TOP_SHARE, TOP = 0.15, 40
"""Share of a file's room, and lines, of what stands before its first definition: what it imports."""

MOST_CHARACTERS = 2_000_000  # characters of a file in which a definition is looked for
SHORTEST_NAME = 3  # letters of a name that a text can mean; `x` and `of` are everywhere
MOST_NAMES, MOST_PLACES = 5_000, 200  # names that texts are read for, and lines of files, of each text
LONGEST_PATH = 300  # characters of a path
LEAST = 10  # tokens of room for which it is worth to go on
SAME = 8  # definitions of one name that are looked into for others
MOST_BODIES = 200  # definitions whose text is read for what they call
FEW = 2  # definitions of a name that is called; of more it is not known which is meant
LARGE = 120  # lines of a definition that is shown only where there is room at last: what it is made of is named itself
AROUND = 12  # lines above and below a conflict that are shown with it
NEAR = 3  # lines between two shown places that are shown too
NUMBERS = "where each begins, [how many lines it takes]"  # what numbers in a map are
LONGEST_HEAD = 120  # characters of a definition's first line in a map

_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_DOTTED = re.compile(r"\b([A-Za-z_]\w*)(?:\.|::|#)([A-Za-z_]\w*)")
_LINE = re.compile(r"(?:\", line |:)(\d{1,7})")
_FILE = re.compile(r"[\w./-]+\.\w+\Z")
_PATCHED = re.compile(r"^\+\+\+ (?:b/)?(.+)$|^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)

Ranges = dict[str, list[range]]


@dataclass(slots=True)
class Mentions:
    """What texts speak of, in the order in which they do: names, and lines of files."""

    names: dict[str, None] = field(default_factory=dict)
    dotted: dict[tuple[str, str], None] = field(default_factory=dict)
    places: Ranges = field(default_factory=dict)
    changed: Ranges = field(default_factory=dict)

    def take(self, texts: Iterable[str]) -> Mentions:
        """Read texts, those that matter most first."""
        for text in texts:
            for name in _NAME.findall(text):
                if len(name) >= SHORTEST_NAME and len(self.names) < MOST_NAMES:
                    self.names.setdefault(name)
            for pair in _DOTTED.findall(text):
                if len(self.dotted) < MOST_NAMES:
                    self.dotted.setdefault(pair)
            for found in islice(_LINE.finditer(text), MOST_PLACES):  # such as `src/x.py:12`
                path = _FILE.search(text[max(found.start() - LONGEST_PATH, 0) : found.start()])
                line = int(found[1])
                if path:
                    self.places.setdefault(path[0], []).append(range(line, line + 1))
        return self

    def take_patch(self, patch: str, *, after: bool) -> Mentions:
        """Read where a patch changed something: before it, or `after` it."""
        path = ""
        for named, *numbers in islice((found.groups("") for found in _PATCHED.finditer(patch)), MOST_PLACES):
            path = named or path
            if not named:
                start, count = numbers[2:] if after else numbers[:2]
                self.changed.setdefault(path, []).append(range(int(start), int(start) + int(count or 1)))
        return self

    def lines(self, path: str) -> Iterator[range]:
        """Lines of a file that reports name, then those that patches changed."""
        for said, ranges in self.places.items():
            if path == said or path.endswith(f"/{said}") or said.endswith(f"/{path}"):
                yield from ranges
        yield from self.changed.get(path, ())


def part_of(path: str, text: str, mentions: Mentions, tokens: int, fill: float, whose: str = "", most: int = 0) -> str:
    """Show as much of a file as fits: conflicts, then what is mentioned; without either a share `fill` of the room.

    The first two definitions may take the room up to `most` tokens, so that they are whole.
    """
    parts, lines = outline(text), text.split("\n")
    name = one_line(path, 300) + whose
    if not parts and not any(_conflicts(lines)):
        return f"File {name}:\n{fence(escaped(cut(text, tokens)))}"
    chosen = _Lines(lines, tokens, max(most - tokens, 0))
    plan = _map(parts, frozenset(), int(tokens * MAP_SHARE))
    chosen.room -= estimate_tokens(plan)
    chosen.take_top(parts[0].first - 1 if parts else 0, int(tokens * TOP_SHARE))
    chosen.take_all(_wanted(path, lines, parts, mentions))
    if not chosen.named:
        chosen.room = min(chosen.room, int(tokens * fill))
        chosen.take_all(range(part.first, part.last + 1) for part in parts)
    left = _map(parts, chosen.taken, int(tokens * MAP_SHARE))
    told = [
        f"File {name}, lines {each.start:,}-{each.stop - 1:,} of {len(lines):,}:\n"
        + fence(escaped("\n".join(lines[each.start - 1 : each.stop - 1])))
        for each in chosen.segments()
    ]
    told += [f"Map of the rest of {name}, {len(lines):,} lines ({NUMBERS}):\n{fence(left)}"] if left else []
    return "\n\n".join(told)


def files_text(files: Mapping[str, bytes], tokens: int) -> str:
    """Return whole files for a model, each after its name, the first ones that fit into so many tokens."""
    parts = list[str]()
    for path, data in files.items():
        try:
            text = cut(data.decode(), tokens)
        except UnicodeDecodeError:
            text = ""
        part = f"File {one_line(path, LONGEST_PATH)}:\n{fence(escaped(text)) if text else '(no text)'}"
        tokens -= estimate_tokens(part)
        if tokens < 0 and parts:
            return "\n\n".join([*parts, f"And {len(files) - len(parts)} more files."])
        parts.append(part)
    return "\n\n".join(parts)


def map_of(path: str, text: str, tokens: int) -> str:
    """A file as a map alone; empty where it defines nothing."""
    told = _map(outline(text), frozenset(), tokens)
    return f"Map of {one_line(path, 300)}, {text.count(chr(10)):,} lines ({NUMBERS}):\n{fence(told)}" if told else ""


def named(text: str, name: str) -> Part | None:
    """The definition of a name in a file, the first one; `Class.method` names one inside of another."""
    *around, last = name.strip("()").split(".")
    parts = outline(text[:MOST_CHARACTERS])
    found = [part for part in parts if part.name == last]
    inside = (part for part in parts if part.name in around)
    held = (part for outer in inside for part in _within(outer, found))
    return next(held, found[0] if found else None)


@dataclass(slots=True)
class _Lines:
    """The lines of a file that are to be shown, as far as there is room."""

    lines: Sequence[str]
    room: int
    spare: int = 0
    taken: set[int] = field(default_factory=set)
    named: bool = False

    def take(self, wanted: range) -> None:
        """Take some lines if all of them fit; the first ones of a large definition, if nothing else was taken."""
        new = [number for number in wanted if number not in self.taken and number <= len(self.lines)]
        if self._needed(new) > self.room + self.spare and self.named:
            return
        more = min(max(self._needed(new) - self.room, 0), self.spare)
        self.room += more
        self.spare = (self.spare - more) * (not self.named)
        if self._needed(new) > self.room and len(new) <= LARGE:
            return
        while new and self._needed(new) > self.room:
            new = new[: len(new) // 2]
        self.room -= self._needed(new)
        self.taken.update(new)
        self.named = True

    def take_all(self, wanted: Iterable[range]) -> None:
        """Take one after the other."""
        for lines in wanted:
            if self.room < LEAST:
                return
            self.take(lines)

    def take_top(self, count: int, tokens: int) -> None:
        """Take the first lines."""
        new = list(range(1, min(count, TOP) + 1))
        if self._needed(new) <= tokens:
            self.taken.update(new)
            self.room -= self._needed(new)

    def _needed(self, numbers: Sequence[int]) -> int:
        return sum(len(self.lines[number - 1].encode(errors="replace")) + 1 for number in numbers) // 4

    def segments(self) -> Iterator[range]:
        """Runs of lines that are shown, near ones as one; space at their ends left out."""
        numbers = sorted(number for number in self.taken if self.lines[number - 1].strip())
        while numbers:
            end = 1
            while end < len(numbers) and numbers[end] - numbers[end - 1] <= NEAR:
                end += 1
            yield range(numbers[0], numbers[end - 1] + 1)
            numbers = numbers[end:]


def _wanted(path: str, lines: Sequence[str], parts: Sequence[Part], mentions: Mentions) -> Iterator[range]:
    """Yield what to show, best first: conflicts, places, names, what these call; large definitions last."""
    by_name: dict[str, list[Part]] = {}
    for part in parts:
        by_name.setdefault(part.name, []).append(part)
    told = [*islice(_conflicts(lines), MOST_PLACES), *mentions.lines(path)]
    first = [*_holding(told, parts), *_inside(by_name, mentions)]
    first += [part for name in mentions.names for part in by_name.get(name, ())]
    first = list(dict.fromkeys(first))
    placed = set(_holding(mentions.lines(path), parts))
    small = [part for part in first if part.depth or part.lines <= LARGE or part in placed]
    for part in small:
        yield range(part.first, part.last + 1)
    bodies = ("\n".join(lines[part.first - 1 : part.last]) for part in small[:MOST_BODIES])
    for name in dict.fromkeys(name for body in bodies for name in _NAME.findall(body)):
        alike = by_name.get(name, ())
        yield from (range(each.first, each.last + 1) for each in alike if each.lines <= LARGE and len(alike) <= FEW)
    yield from (range(part.first, part.last + 1) for part in first if part not in small)


def _inside(by_name: Mapping[str, Sequence[Part]], mentions: Mentions) -> Iterator[Part]:
    """The definitions of names with a dot, such as a class's method."""
    for around, last in mentions.dotted:
        inner = by_name.get(last, ())
        for outer in by_name.get(around, ())[:SAME] if inner else ():
            yield from _within(outer, inner)


def _within(outer: Part, parts: Sequence[Part]) -> Sequence[Part]:
    """Those of the parts, which stand in their order, that are inside of one."""
    begin, end = (bisect_right(parts, line, key=lambda part: part.first) for line in (outer.first, outer.last))
    return parts[begin:end]


def _conflicts(lines: Sequence[str]) -> Iterator[range]:
    """Where markers of conflicts stand."""
    begun = 0
    for number, line in enumerate(lines, 1):
        if line.startswith("<<<<<<<"):
            begun = number
        elif line.startswith(">>>>>>>") and begun:
            yield range(max(begun - AROUND, 1), min(number + AROUND, len(lines)) + 1)
            begun = 0


def _holding(places: Iterable[range], parts: Sequence[Part]) -> Iterator[Part]:
    """The innermost definitions that hold some lines; the lines themselves where none does."""
    innermost = {line: part for part in parts for line in range(part.first, part.last + 1)}
    for place in places:
        around = innermost.get(place.start)
        if around and around.last >= place.stop - 1:
            yield around
        else:
            yield Part("", "", place.start, place.stop - 1, 1)


def _map(parts: Sequence[Part], shown: Iterable[int], tokens: int) -> str:
    """The definitions that are not shown; of what is inside of others, or of all, only names where there are many."""
    taken = frozenset(shown)
    left = [part for part in parts if not taken.issuperset((part.first, part.last))]
    more = tokens + 1  # lines are more than those tokens, whatever is in them
    ways = (
        "\n".join(islice((_mapped(part) for part in left), more)),
        "\n".join(islice(_with_names(left), more)),
        ", ".join(f"{part.name} {part.first}" for part in left),
        ", ".join(f"{part.name} {part.first}" for part in left if not part.depth),
    )
    return next((text for text in ways if estimate_tokens(text) <= tokens), ends(ways[-1], 4 * tokens))


def _mapped(part: Part) -> str:
    return f"{part.first} {'  ' * part.depth}{one_line(part.head, LONGEST_HEAD)} [{part.lines}]"


def _with_names(parts: Sequence[Part]) -> Iterator[str]:
    """The outermost definitions, each with the names of those inside of it."""
    groups: list[list[Part]] = []
    for part in parts:
        if part.depth and groups:
            groups[-1].append(part)
        else:
            groups.append([part])
    for outer, *inside in groups:
        names = ", ".join(f"{part.name} {part.first}" for part in inside)
        yield f"{_mapped(outer)}: {names}" if names else _mapped(outer)
