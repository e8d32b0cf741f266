"""Compiles `sandbox/seccomp.json` to classic BPF (Documentation/userspace-api/seccomp_filter.rst)."""

from __future__ import annotations

import errno
import json
import platform
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evogit.core import SandboxError

MACHINES = ("x86_64", "aarch64")
NUMBER, AUDIT_ARCH, ARGUMENTS = 0, 4, 16  # offsets in `struct seccomp_data`; both machines are little-endian
LOAD, AND, RETURN = 0x20, 0x54, 0x06
IF_EQUAL, IF_GREATER_OR_EQUAL, IF_ANY_BIT = 0x15, 0x35, 0x45
ALLOW, ERROR = 0x7FFF0000, 0x00050000
DONE = 0  # the error of a call that is not made, and said to have been
X32 = 0x40000000  # bit of the numbers of the x32 ABI, a second table of the same calls

Instruction = tuple[int, int, int, int]
PASS: Instruction = (RETURN, 0, 0, ALLOW)
GO_ON: Instruction = (LOAD, 0, 0, NUMBER)  # to the next rule, which looks at the number of the call again


def compile_filter(profile: Path, machine: str | None = None, *, pinned: bool = False) -> bytes:
    """Return an array of `struct sock_filter`; `pinned`: no change of core. Raises SandboxError: an unknown machine."""
    machine = machine or platform.machine()
    if machine not in MACHINES:
        raise SandboxError(f"expected one of the machines {', '.join(MACHINES)}, got {machine}; use Docker there")
    rules = json.loads(profile.read_text())
    return b"".join(struct.pack("<HBBI", *line) for line in _program(rules, MACHINES.index(machine), pinned=pinned))


def _program(rules: dict[str, Any], machine: int, *, pinned: bool) -> Iterator[Instruction]:
    yield (LOAD, 0, 0, AUDIT_ARCH)
    yield (IF_EQUAL, 1, 0, rules["audit"][machine])
    yield _error(errno.ENOSYS)  # 32-bit calls: ending the program would write to the host's log each time
    yield (LOAD, 0, 0, NUMBER)
    for unknown in (X32, rules["newest"] + 1):
        yield (IF_GREATER_OR_EQUAL, 0, 1, unknown)
        yield _error(errno.ENOSYS)
    for group in (*rules["forbidden"].values(), *([rules["pinned"]] if pinned else ())):
        yield from _refuse(group, machine, errno.EPERM)
    for group in rules["absent"].values():
        yield from _refuse(group, machine, errno.ENOSYS)
    for group in rules["ignored"].values():
        yield from _refuse(group, machine, DONE)
    for rule in rules["refused_flags"]:
        bits = rule.get("all")
        test = [(IF_ANY_BIT, 0, 1, rule["any"])] if bits is None else [(AND, 0, 0, bits), (IF_EQUAL, 0, 1, bits)]
        yield from _only(rule["number"][machine], [_argument(rule), *test, _error(errno.EPERM), GO_ON])
    for rule in rules["refused_values"].values():
        yield from _only(rule["number"][machine], [*_values(rule, listed=_error(errno.EPERM), other=GO_ON)])
    for rule in rules["allowed_values"].values():
        yield from _only(rule["number"][machine], [*_values(rule, listed=PASS, other=_error(errno.EPERM))])
    yield PASS


def _error(number: int) -> Instruction:
    return (RETURN, 0, 0, ERROR | number)


def _refuse(calls: dict[str, list[int | None]], machine: int, error: int) -> Iterator[Instruction]:
    for numbers in calls.values():
        number = numbers[machine]
        if number is not None:
            yield (IF_EQUAL, 0, 1, number)
            yield _error(error)


def _only(number: int, body: list[Instruction]) -> Iterator[Instruction]:
    """Run the body for one system call; it returns, or ends with the number loaded again."""
    yield (IF_EQUAL, 0, len(body), number)
    yield from body


def _values(rule: dict[str, Any], *, listed: Instruction, other: Instruction) -> Iterator[Instruction]:
    """Decide a call by whether an argument has one of the values that are listed."""
    yield _argument(rule)
    for value in rule["values"]:
        yield (IF_EQUAL, 0, 1, value)
        yield listed
    yield other


def _argument(rule: dict[str, Any]) -> Instruction:
    return (LOAD, 0, 0, ARGUMENTS + 8 * int(rule["argument"]))
