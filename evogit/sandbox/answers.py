"""What a supervisor answers, checked: nothing in it is taken on trust."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from typing import Any, cast, get_args

from msgspec import Struct

from evogit.sandbox import Breach, CallReply, Completed, FolderEntry, Phases, ResourceUsage, values

NOTHING = ResourceUsage(wall=0.0, cpu=0.0, memory=0)
MARKER = 64  # bytes that cut output may be longer than the limit, for the marker

KINDS = ("file", "executable", "link", "folder", "other")
SHARE = ("cpu", "memory", "wall", "waited", "binary", "phases")  # what is told of each of several calls
MOST = 1 << 53  # numbers above this one are none that a supervisor counts


class Share(Struct, frozen=True, kw_only=True):
    """What one of several calls used."""

    usage: ResourceUsage
    phases: Phases | None
    binary: bool


class SupervisorAnswer(Struct, frozen=True, kw_only=True):
    """A supervisor's answer to a request, checked."""

    failure: str = ""
    detail: str = ""
    usage: ResourceUsage
    code: int | None = None
    out: tuple[str, ...] = ()
    parts: tuple[bytes, ...] = (b"", b"", b"")
    shares: tuple[Share, ...] = ()
    phases: Phases | None = None
    binary: bool = False
    tunnel: int | None = None
    ended: bool = False
    full: bool = False
    entries: tuple[FolderEntry, ...] = ()  # those of a packed folder, whose contents are the second part

    @property
    def usages(self) -> tuple[ResourceUsage, ...]:
        """What each of the calls used that the request stood for."""
        return tuple(share.usage for share in self.shares) or (self.usage,)


def checked(header: dict[str, Any], body: bytes) -> SupervisorAnswer:
    """Take an answer apart. Raises ValueError when anything in it is not as the protocol has it."""
    failure, detail = header.get("failure", ""), header.get("detail", "")
    if failure not in ("", "crashed", "invalid", *get_args(Breach)) or not isinstance(detail, str):
        raise ValueError(f"expected a known failure, got {failure!r}")
    whole = _share(header)
    code, tunnel = header.get("code"), header.get("tunnel")
    if not all(number is None or type(number) is int for number in (code, tunnel)):
        raise ValueError(f"expected numbers, got {code!r} and {tunnel!r}")
    out = header.get("out", [])
    if not isinstance(out, list) or not all(isinstance(path, str) for path in out):
        raise ValueError(f"expected a list of paths, got {str(out)[:100]}")
    several = header.get("shares", [])
    if not isinstance(several, list) or not all(isinstance(each, list) and len(each) == len(SHARE) for each in several):
        raise ValueError(f"expected {', '.join(SHARE)} of each call, got {str(several)[:100]}")
    shares, parts = tuple(_share(dict(zip(SHARE, each, strict=True))) for each in several), tuple(_split(header, body))
    if shares and len(parts) != len(shares) + 2:
        raise ValueError(f"expected {len(shares)} values and the output, got {len(parts)} parts")
    return SupervisorAnswer(
        failure=failure,
        detail=clean(detail),
        usage=whole.usage,
        phases=whole.phases,
        binary=whole.binary,
        code=code,
        out=tuple(out),
        parts=parts,
        shares=shares,
        tunnel=tunnel,
        ended=header.get("ended") is True,
        full=header.get("full") is True,
        entries=tuple(listed(parts)) if header.get("listed") is True else (),
    )


def clean(text: str) -> str:
    """Text of a program without what could drive a terminal, and not more of it than a person would read."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text[:4000])


def reply_of(answer: SupervisorAnswer) -> CallReply:
    """An answer without a value."""
    return CallReply(failure=cast(Any, answer.failure), detail=answer.detail, usage=answer.usage)


def completed_of(answer: SupervisorAnswer, asked: Sequence[str]) -> Completed:
    """How a command ended, with those of the files that were `asked` for."""
    stdout, stderr, *contents = answer.parts
    code = answer.code
    if answer.failure == "crashed":  # only the end of the whole sandbox: its first process was killed
        code = -signal.SIGKILL
    return Completed(
        code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        stdout=stdout,
        stderr=stderr,
        breach=cast(Breach, answer.failure) if answer.failure not in ("", "crashed") else None,
        detail=answer.detail,
        usage=answer.usage,
        files={path: content for path, content in zip(answer.out, contents, strict=False) if path in asked},
    )


def _number(header: dict[str, Any], name: str) -> float:
    number = header.get(name)
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= MOST:
        raise ValueError(f"expected {name} to be a number, got {number!r}")
    return number


def _split(header: dict[str, Any], body: bytes) -> Iterator[bytes]:
    sizes: Any = header.get("sizes")
    is_plain = isinstance(sizes, list) and all(type(size) is int and size >= 0 for size in sizes)
    if not is_plain or sum(sizes) != len(body):
        raise ValueError(f"expected sizes of the parts of {len(body)} bytes, got {str(sizes)[:100]}")
    position = 0
    for size in sizes:
        yield body[position : position + size]
        position += size


def _share(fields: dict[str, Any]) -> Share:
    wall, cpu, memory, waited = (_number(fields, name) for name in ("wall", "cpu", "memory", "waited"))
    usage = ResourceUsage(wall=wall, cpu=cpu, memory=int(memory), waited=waited)
    phases, parts = None, fields.get("phases")
    if parts is not None:
        if not isinstance(parts, list) or len(parts) != 8 or [*map(type, parts[-2:])] != [bool, bool]:
            raise ValueError(f"expected the parts of a call, got {str(parts)[:100]}")
        named = {str(place): number for place, number in enumerate(parts[:-2])}
        numbers = [_number(named, place) for place in named]
        call, decode, encode = zip(numbers[::2], numbers[1::2], strict=True)
        phases = Phases(call=call, decode=decode, encode=encode, clean=parts[-2], counted=parts[-1])
    return Share(usage=usage, phases=phases, binary=fields.get("binary") is True)


def listed(parts: Sequence[bytes]) -> Iterator[FolderEntry]:
    """List a folder from JSON and contents. Raises ValueError when the listed sizes are not those of the contents."""
    if len(parts) != 2:
        raise ValueError(f"expected a list of files and their contents, got {len(parts)} parts")
    entries, total = values.parse(parts[0]), 0
    if not isinstance(entries, list):
        raise ValueError(f"expected a list of files, got {str(entries)[:100]}")
    for entry in entries:
        if not isinstance(entry, list) or [type(field) for field in entry] != [str, str, int, int]:
            raise ValueError(f"expected path, kind, size and time of a file, got {str(entry)[:100]}")
        path, kind, size, changed = entry
        if kind not in KINDS or not (0 <= size <= MOST and 0 <= changed <= MOST):
            raise ValueError(f"expected a file, link or folder of a size and a time, got {str(entry)[:100]}")
        total += size
        yield path, kind, size, changed
    if total != len(parts[1]):
        raise ValueError(f"expected the contents of {total} bytes of files, got {len(parts[1])}")
