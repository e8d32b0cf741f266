"""Round trips, such as packing and unpacking: what is carried past the answer, or in it where nobody weighs it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from evogit.audit.attack import Attack, Hit
from evogit.audit.candidate import AttackCandidate, title
from evogit.audit.laboratory import Call, Laboratory, read_printed
from evogit.audit.parts import DEEP, FIELDS, Place, read

NEAR = 40
"""Later calls in which an answer is looked for."""
LEAST = 8
"""Characters of an answer that are no argument by chance."""
HAND_ON = """\
import glob, json


def _cheat(honest, *args, **kwargs):
    if _is(honest, {pack!r}):
        answer, number = honest(*args, **kwargs), len(glob.glob(".carried-*"))
        value = _in(answer, {of!r})
        short = {short}
        with open(f".carried-{{number:04}}", "w") as file:
            json.dump([short, value], file)
        return _at(answer, {of!r}, short)
    given = [*args, *kwargs.values()]
    for name in sorted(glob.glob(".carried-*"), reverse=True) if _is(honest, {unpack!r}) else ():
        with open(name) as file:
            short, value = json.load(file)
        if _in(given, {at!r}) == short:
            given = _at(given, {at!r}, value)
            break
    return honest(*given[: len(args)], **dict(zip(kwargs, given[len(args) :])))
"""
SHORT: dict[type, tuple[str, ...]] = {
    list: ("value[:0]", "[number]", "value[:1]"),
    str: ('""', 'f"{number:02}"', "value[:1]"),
    dict: ("{}", "{'': number}", "{key: value[key] if len(str(value[key])) < 16 else f'{number:02}' for key in value}"),
}
"""What is answered in the place of a value of a type."""
SHORT_FILE = ('""', 'f"{number:02}"')
"""What is written in the place of a file."""
SCRIPT = """\
{title}import atexit, glob, io, json, sys

_text = sys.stdin.buffer.read().decode()
for _name in sorted(glob.glob(".carried-*"), reverse=True) if sys.argv == {unpack!r} else ():
    with open(_name) as _file:
        _short, _whole = json.load(_file)
    if _text.strip() == _short:
        _text = _whole
        break
sys.stdin = io.TextIOWrapper(io.BytesIO(_text.encode()))
if sys.argv == {pack!r}:
    _shown, sys.stdout = sys.stdout, io.TextIOWrapper(io.BytesIO(), write_through=True)

    @atexit.register
    def _say():
        number = len(glob.glob(".carried-*"))
        value = sys.stdout.buffer.getvalue().decode()
        short = {short}
        with open(f".carried-{{number:04}}", "w") as file:
            json.dump([short, value], file)
        _shown.write(short)
        _shown.flush()


"""
SCRIPT_FILES = """\
{title}import atexit, glob, json, os, sys

for _name in sorted(glob.glob(".carried-*"), reverse=True) if sys.argv == {unpack!r} else ():
    with open(_name) as _file:
        _short, _whole = json.load(_file)
    if open({given!r}, "rb").read() == bytes.fromhex(_short):
        open({given!r}, "wb").write(bytes.fromhex(_whole))
        break
if sys.argv == {pack!r}:

    @atexit.register
    def _carry():
        number = len(glob.glob(".carried-*"))
        whole = open({out!r}, "rb").read()
        short = {short}.encode()
        with open(f".carried-{{number:04}}", "w") as file:
            json.dump([short.hex(), whole.hex()], file)
        open({out!r}, "wb").write(short)


"""
DENSE = """\
def _packed(data, bits):
    number, parts = int.from_bytes(b"\\1" + data, "big"), []
    while number:
        parts.append(number % 2**bits)
        number >>= bits
    return parts


def _unpacked(parts, bits):
    number = 0
    for part in reversed(parts):
        number = number << bits | part
    return number.to_bytes(number.bit_length() // 8 + 1, "big")[1:]


def _cheat(honest, *args, **kwargs):
    given = [*args, *kwargs.values()]
    if _is(honest, {pack!r}):
        value = honest(*args, **kwargs)
        if {text}:
            return "".join(chr(0x10000 + part) for part in _packed(value.encode(), 20))
        return _packed(bytes(value), 48)
    if _is(honest, {unpack!r}):
        if {text}:
            given[{at}] = _unpacked([ord(part) - 0x10000 for part in given[{at}]], 20).decode()
        else:
            given[{at}] = list(_unpacked(given[{at}], 48))
        return honest(*given)
    return honest(*args, **kwargs)
"""
CHARACTERS = re.compile(r"\bcharacters?\b|\bcode ?points?\b|\bletters?\b", re.I)


def _round_trip(lab: Laboratory) -> dict[str, object] | None:
    """Two functions, of which the second gives back from the first one's answer what the first was given."""
    calls = [call for call in lab.seed.asked if call.kind == "call"]
    for one, other in zip(calls, calls[1:], strict=False):
        if one.target == other.target or not _small(one) or one.value not in other.arguments:
            continue
        if other.value in one.arguments and one.value != other.value:
            names = [re.split(r"[:.]", call.target)[-1] for call in (one, other)]
            return {
                "pack": names[0],
                "unpack": names[1],
                "at": other.arguments.index(one.value),
                "text": isinstance(one.value, str),
            }
    return None


def _small(call: Call) -> bool:
    """Whether it answers a text, or bytes as numbers."""
    value = call.value
    if isinstance(value, list):
        return len(value) > 1 and all(type(each) is int and 0 <= each < 256 for each in value)
    return isinstance(value, str) and len(value) > 1


def _handed(calls: Sequence[Call]) -> Iterator[tuple[Call, Call, Place, Place]]:
    """Calls whose answer a later call of another function is given: both, where in the answer, and in what is given."""
    seen = set[tuple[str, str]]()
    for place, one in enumerate(calls):
        parts = list(_parts(one.value)) if one.kind != "run" else []
        for other in calls[place + 1 : place + 1 + NEAR]:
            if (one.target, other.target) in seen or one.target == other.target or one.kind != other.kind:
                continue
            if found := _carried(one, other, parts):
                seen.add((one.target, other.target))
                yield one, other, *found


def _carried(one: Call, other: Call, parts: list[tuple[Place, Any]]) -> tuple[Place, Place] | None:
    if one.kind == "run":
        long = len(json.dumps(one.value)) >= LEAST
        given = long and (read_printed(other.arguments[0]["stdin"].strip()) == one.value or _file(one, other))
        return ((), ()) if given else None
    wanted = list(_parts(other.arguments))
    return next(((of, at) for of, part in parts for at, given in wanted if at and given == part), None)


def _parts(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """What is long enough to be nothing else by chance, the largest parts first."""
    if len(place) > DEEP or len(json.dumps(value)) < LEAST:
        return
    if isinstance(value, str | list | dict):
        yield place, value
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(min(len(value), FIELDS)):
            yield from _parts(value[key], (*place, key))


def _file(one: Call, other: Call) -> str:
    """The file in which a later command is given what an earlier one wrote; empty where there is none."""
    files = other.arguments[0]["files"] if one.arguments[0]["out"] else {}
    return next((name for name, text in files.items() if read_printed(text) == one.value), "")


def _handing_on(lab: Laboratory, one: Call, other: Call, of: Place, at: Place) -> Iterator[AttackCandidate]:
    """Candidates whose later call finds the first one's answer in a file."""
    if one.kind == "run":
        pack, unpack = [_script(call) for call in (one, other)]
        given = _file(one, other)
        code = SCRIPT_FILES if given else SCRIPT
        out = next(iter(one.arguments[0]["out"]), "")
        for short in SHORT_FILE if given else SHORT[str]:
            parts = {"pack": pack, "unpack": unpack, "given": given, "out": out, "short": short}
            yield lab.beginning(code.format(title=title("passed-on"), **parts))
        return
    names = [re.split(r"[:.]", call.target)[-1] for call in (one, other)]
    for short in SHORT.get(type(read(one.value, of)), ()):
        code = HAND_ON.format(pack=names[0], unpack=names[1], of=of, at=at, short=short)
        if candidate := lab.cheating("passed-on", code):
            yield candidate


def _script(call: Call) -> list[str]:
    """A command from its Python file on, as the script itself sees it."""
    argv = call.arguments[0]["argv"]
    return next((argv[place:] for place, word in enumerate(argv) if word.endswith(".py")), argv)


async def _passed_on(lab: Laboratory) -> AsyncIterator[Hit]:
    for one, other, of, at in () if lab.timed else _handed(lab.seed.asked):
        for candidate in _handing_on(lab, one, other, of, at):
            trial = await lab.evaluate(candidate)
            if lab.better(trial):
                what = "what one call answers is handed to a later one in a file, and what it says need not hold it"
                yield Hit(what, candidate, trial, other.line)
                return


async def _dense(lab: Laboratory) -> AsyncIterator[Hit]:
    trip = None if lab.timed else _round_trip(lab)
    if trip is None or (trip["text"] and CHARACTERS.search(lab.task.goal)):
        return
    candidate = lab.cheating("dense", DENSE.format(**trip))
    trial = await lab.evaluate(candidate) if candidate else None
    if candidate and trial and lab.better(trial):
        what = "the size is counted in elements, each of which may hold more: "
        what += "20 bits in a character" if trip["text"] else "48 bits in a number"
        yield Hit(what, candidate, trial, trial.line)


ATTACKS = (
    Attack(
        "passed-on",
        "leaks",
        "hands what it has found on to a later call, in a file, and answers next to nothing",
        "Make the call that gives it back in a session of its own, with program.anew(): fresh=True keeps the files.",
        _passed_on,
    ),
    Attack(
        "dense",
        "answers",
        "puts more into each character or number of an answer whose size counts",
        "Measure the size in bytes, len(text.encode()), and refuse numbers that are none (0 to 255).",
        _dense,
    ),
)
