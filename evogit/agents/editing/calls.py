"""What a model with tools asks for: blocks in plain text, the same at every endpoint and in every recording.

Beside the blocks that change files there are lines that begin with a marker and ask for something, such as
`<<<<<<< READ main.py 10-40`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from evogit.agents.briefs.bodies import named
from evogit.agents.editing.blocks import Block, EditError, cleaned_path
from evogit.agents.editing.reply import EDITS, PATCH, Opening, Reader, unfenced
from evogit.llm import estimate_tokens
from evogit.text import cut, escaped, fence, one_line, titled

MOST_CALLS = 50  # blocks of one reply, as the template tools.md says
ASKING = ("LIST", "READ", "GREP", "RUN", "PROFILE", "MEASURE", "KEEP", "REVERT", "EVALUATE", "FINISH")
"""Kinds of blocks that ask for something."""

PAIRS, MAX_PAIRS = 3, 12
"""Pairs of a measurement, where the model names no number, and at most."""

LONGEST_COMMAND = 20_000  # characters of a command

_RANGE = r"L?\d{1,9}(?:-L?\d{0,9})?"
_PLACE = re.compile(
    rf"(.*?\S)(?::[ \t]*([A-Za-z_$][\w.$]*)(?:\(\))?|[: \t][ \t]*({_RANGE}(?:,[ \t]*{_RANGE}){{0,{MOST_CALLS}}}))"
)
_HEREDOC = re.compile(r"(?<!<)<<-?[ \t]*([\"']?)([A-Za-z_]\w*)\1")


class List(Struct, frozen=True):
    """Which files there are below a folder; empty: all."""

    folder: str


class ReadLines(Struct, frozen=True):
    """The lines `first` to `last` of a file, counted from 1; `last` 0 stands for the end; or what defines a `name`."""

    path: str
    first: int = 1
    last: int = 0
    name: str = ""


class Grep(Struct, frozen=True):
    """Where a text occurs."""

    text: str


class RunCommand(Struct, frozen=True):
    """A shell command."""

    command: str


class Profile(Struct, frozen=True):
    """A request to profile the draft."""


class Measure(Struct, frozen=True):
    """A request to measure the draft, its parent and the seed in turns, so many times each."""

    pairs: int


class Keep(Struct, frozen=True):
    """A request to make the draft a step of its own, with this title, of this family of ideas."""

    title: str
    family: str = ""


class Revert(Struct, frozen=True):
    """A request to put the draft back to the last step that was kept."""


class Evaluate(Struct, frozen=True):
    """The draft is to be evaluated."""


class Finish(Struct, frozen=True):
    """The draft is to be proposed."""

    title: str
    family: str = ""


class Edits(Struct, frozen=True):
    """Changes of files, in order."""

    blocks: tuple[Block, ...]


Call = List | ReadLines | Grep | RunCommand | Profile | Measure | Keep | Revert | Evaluate | Finish | Edits


class ToolCalls(Struct, frozen=True):
    """What a reply asks for, in order; its title, its family of ideas and how it differs, if it has them."""

    calls: tuple[Call, ...]
    title: str
    family: str = ""
    differs: str = ""


def read_calls(reply: str) -> ToolCalls:
    """Read a reply. Raises EditError: it asks for nothing, for too much, or for what cannot be understood."""
    reader = Reader(reply, (*EDITS, *ASKING))
    calls: list[Call] = []
    for number, opening in enumerate(reader.openings(), 1):
        if number > MOST_CALLS:
            raise EditError(f"the reply holds more than {MOST_CALLS} blocks", "Ask for less at a time.")
        if opening.kind not in (*EDITS, PATCH):
            calls += _calls(reader, opening)
        elif calls and isinstance(before := calls[-1], Edits):
            calls[-1] = Edits((*before.blocks, *reader.blocks(opening)))
        else:
            calls.append(Edits(tuple(reader.blocks(opening))))
    if not calls:
        hint = "Write a block, such as a line `<<<<<<< READ path/of/file`, or `<<<<<<< FINISH what the change does`."
        raise EditError("the reply holds no block", hint)
    return ToolCalls(tuple(calls), reader.title, reader.family, reader.differs)


def _calls(reader: Reader, opening: Opening) -> Sequence[Call]:
    """What one block asks for; a READ may name several ranges of its file."""
    kind, name = opening.kind, opening.name
    if kind == "RUN":
        return [_run(reader, opening)]
    reader.pass_close(opening.length)
    if kind == "LIST":
        return [List("" if name in (".", "./", "/") else name.removeprefix("./"))]
    if kind == "READ":
        return _read(name)
    if kind == "GREP":
        if not name:
            raise EditError("a GREP block names no text", "Write the text behind GREP, on the same line.")
        return [Grep(name)]
    if kind == "MEASURE":
        count = re.match(r"\d{1,6}", name)
        return [Measure(min(max(int(count[0]), 2), MAX_PAIRS) if count else PAIRS)]
    if kind in ("KEEP", "FINISH"):
        family, title = titled(name.removeprefix("TITLE:").strip("*_ \t"))
        return [(Keep if kind == "KEEP" else Finish)(one_line(title), family)]
    bare: Mapping[str, Call] = {"PROFILE": Profile(), "REVERT": Revert(), "EVALUATE": Evaluate()}
    return [bare[kind]]


def _run(reader: Reader, opening: Opening) -> RunCommand:
    lines = [opening.name] if opening.name else []
    for _, end in _HEREDOC.findall(opening.name):  # the lines below are its input, as in `python3 - <<'END'`
        below = reader.through(end)
        if below is None:
            raise EditError(f"no line {one_line(end, 60)!r} ends the input of the command")
        lines += below
    if not opening.name or reader.is_closed(opening.length):
        lines += reader.until_closed(opening, "a command")
    command = "\n".join(unfenced(lines, "the command"))
    if not command.strip() or len(command) > LONGEST_COMMAND:
        said = f"expected a command of {LONGEST_COMMAND:,} characters at most, got {len(command):,}"
        raise EditError(said, "Write a shell command behind RUN.")
    return RunCommand(command)


def _read(name: str) -> list[ReadLines]:
    if not name:
        raise EditError("a READ block names no file", "Write the path behind READ, on the same line.")
    found = _PLACE.fullmatch(name)
    if not found:
        return [ReadLines(cleaned_path(name))]
    path, defined, ranges = cleaned_path(found[1]), found[2], (found[3] or "").replace("L", "")
    if defined:
        return [ReadLines(path, name=defined)]
    parts = (lines.strip().partition("-") for lines in ranges.split(","))
    return [ReadLines(path, max(int(first), 1), int(last or 0) if dash else int(first)) for first, dash, last in parts]


def only_reads(reply: str) -> tuple[ReadLines | List, ...]:
    """Return the READs and LISTs of a reply that has nothing else; of one that cannot be understood nothing."""
    try:
        calls = read_calls(reply).calls
    except EditError:
        return ()
    reads = tuple(call for call in calls if isinstance(call, ReadLines | List))
    return reads if len(reads) == len(calls) else ()


def read(call: ReadLines, text: str, room: int) -> str:
    """Return the lines asked for, as far as they fit. Raises EditError: there are no such lines or names."""
    lines = text.split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    first, last = call.first, min(call.last or len(lines), len(lines))
    if call.name:
        if (part := named(text, call.name)) is None:
            raise EditError(f"{one_line(call.path, 100)!r} has no definition of {one_line(call.name, 100)!r}")
        first, last = part.first, part.last
    if first > max(last, 1):
        raise EditError(f"{one_line(call.path, 100)!r} has {len(lines):,} lines")
    asked, shown, left = lines[first - 1 : last], list[str](), room
    for line in asked:
        if (left := left - estimate_tokens(line + "\n")) < 0:
            break
        shown.append(line)
    end = first + len(shown) - 1
    about = f"File {one_line(call.path, 300)}, lines {first:,}-{end:,} of {len(lines):,}"
    if not shown and asked:
        return f"{about}, the first of which is cut:\n{fence(escaped(cut(asked[0], room)))}"
    more = f"\nREAD {one_line(call.path, 300)} {end + 1}-{last} shows the rest." if end < last else ""
    return f"{about}:\n{fence(escaped(chr(10).join(shown))) or '(empty)'}{more}"
