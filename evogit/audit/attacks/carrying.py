"""Round trips, such as packing and unpacking: what is carried past the answer, or in it where nobody weighs it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.answering import where
from evogit.audit.laboratory import Call, Laboratory

NAMED = '''\
def _is(honest, name):
    """Whether it is the function of this name, or what knows its answers."""
    return getattr(honest, "__name__", "") == name or getattr(getattr(honest, "func", None), "__name__", "") == name
'''
RELAY = (
    """\
import json, os

"""
    + NAMED
    + """

def _file(number):
    return f".carried-{{number}}"


def _cheat(honest, *args, **kwargs):
    given = [*args, *kwargs.values()]
    if _is(honest, {pack!r}):
        number = 0
        while os.path.exists(_file(number)):
            number += 1
        with open(_file(number), "w") as file:
            json.dump(given[{place}], file)
        return chr(33 + number) if {text} else [number]
    if _is(honest, {unpack!r}) and len(given[{at}]) == 1:
        name = _file(ord(given[{at}]) - 33 if {text} else given[{at}][0])
        if os.path.exists(name):
            with open(name) as file:
                return json.load(file)
    return honest(*args, **kwargs)
"""
)
DENSE = (
    NAMED
    + """

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
)
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
                "place": one.arguments.index(other.value),
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


async def _passed_on(lab: Laboratory) -> AsyncIterator[Hit]:
    trip = None if lab.timed else _round_trip(lab)
    candidate = lab.cheating("passed-on", RELAY.format(**trip)) if trip else None
    if candidate is None:
        return
    trial = await lab.evaluate(candidate)
    if lab.better(trial):
        calls = [call for call in trial.asked if call.target.endswith(str(trip and trip["pack"]))]
        what = "what was given to one call is handed to the next in a file, and the answer between need not hold it"
        yield Hit(what, candidate, trial, where(calls))


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
        "hands what it is given on to a later call, in a file",
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
