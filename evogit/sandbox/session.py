"""A session as the host sees it: requests to the supervisor of one sandbox, whatever provider started it."""

from __future__ import annotations

import dataclasses
import json
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, cast, get_args

from evogit.core import SandboxError
from evogit.sandbox import Breach, Completed, Limits, Reply, Usage
from evogit.sandbox.archive import check_paths, entries_of
from evogit.sandbox.wire import LostError, Wire

PROTOCOL = 1
GRACE = 5.0
"""Seconds that the supervisor has, beyond a request's own limit, before it counts as hung."""
STARTUP = 60.0
"""Seconds for unpacking and preloading."""
NOTHING = Usage(wall=0.0, cpu=0.0, memory=0)
MARKER = 64
"""Bytes that cut output may be longer than the limit, for the marker."""


class Jail(Protocol):
    """A running supervisor."""

    wire: Wire

    def kill(self) -> None:
        """End it and every process below it, and remove what it left; may be called again."""
        ...

    def complaint(self) -> str:
        """What it wrote to stderr, for the message when it did not start."""
        ...

    def autopsy(self) -> tuple[str, str]:
        """Why it is gone: the program's failure (`crashed`, `out-of-memory`) and a sentence.

        Raises:
            SandboxLostError: when the program had no part in it.
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A supervisor's answer to a request, checked."""

    failure: str = ""
    detail: str = ""
    usage: Usage
    code: int | None = None
    out: tuple[str, ...] = ()
    parts: tuple[bytes, ...] = (b"", b"", b"")


class SupervisedSession:
    """Keeps the contract of `Session`."""

    def __init__(self, jail: Jail, files: bytes, limits: Limits, preload: Sequence[str]) -> None:
        self._jail, self._limits = jail, limits
        self._stdout, self._stderr = bytearray(), bytearray()
        self._ended = ""
        self._spent = 0.0
        try:
            self._greet(files, preload)
        except BaseException:
            jail.kill()
            raise

    def call(
        self, target: str, arguments: bytes, *, wall: float | None = None, cpu: float | None = None, fresh: bool = False
    ) -> Reply:
        """Call `module:function` with the JSON text `{"args": [...], "kwargs": {...}}` in the session's process."""
        body = b'{"target":%s,"arguments":%s}' % (json.dumps(target).encode(), arguments)
        answer = self._ask({"do": "call", "fresh": fresh}, body, wall, cpu)
        value, stdout, stderr = answer.parts
        self._stdout += stdout
        self._stderr += stderr
        failure = cast(Any, answer.failure)
        return Reply(value=value, failure=failure, detail=answer.detail, usage=answer.usage)

    def stream(self, target: str, items: Iterator[bytes], *, wall: float | None = None) -> Iterator[Reply]:
        """Call `target` once per JSON item, lazily; a failure is the last reply."""
        for item in items:
            reply = self.call(target, b'{"args":[%s]}' % item, wall=wall)
            yield reply
            if reply.failure:
                return

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        files: Mapping[str, bytes] | None = None,
        out: Sequence[str] = (),
        wall: float | None = None,
    ) -> Completed:
        """Run a command in the candidate's folder, after writing `files` into it.

        A command that cannot be run ends with code 127 or 126, as in a shell.

        Raises:
            SandboxError: when a path of `files` or `out` is not inside the folder.
        """
        files = files or {}
        check_paths(list(files))
        check_paths(list(out))
        sizes = [(path, len(content)) for path, content in files.items()]
        request = {"do": "run", "argv": list(argv), "files": sizes, "out": list(out)}
        answer = self._ask(request, b"".join([*files.values(), stdin]), wall, None)
        return _completed(answer, out)

    def output(self) -> tuple[bytes, bytes]:
        """Stdout and stderr of the session's call processes so far, capped, with the cut marked."""
        return bytes(self._stdout), bytes(self._stderr)

    def close(self) -> None:
        """Kill everything in the session and remove it."""
        self._ended = self._ended or "the session was closed"
        self._jail.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _greet(self, files: bytes, preload: Sequence[str]) -> None:
        entries, body = entries_of(files)
        request = {"limits": dataclasses.asdict(self._limits), "files": entries, "preload": list(preload)}
        deadline = time.monotonic() + STARTUP
        try:
            hello, _ = self._jail.wire.receive(0, deadline=deadline)
            if hello.get("protocol") != PROTOCOL:
                raise SandboxError(f"expected a supervisor of protocol {PROTOCOL}, got {hello}; rebuild the sandbox")
            self._jail.wire.send(request, body, deadline=deadline)
            self._jail.wire.receive(0, deadline=deadline)
        except (LostError, TimeoutError, ValueError) as error:
            said = clean(self._jail.complaint()).strip() or str(error) or f"no answer in {STARTUP:g} s"
            raise SandboxError(f"the sandbox did not start: {said}") from error

    def _ask(self, request: dict[str, Any], body: bytes, wall: float | None, cpu: float | None) -> Answer:
        if self._ended:
            return Answer(failure="crashed", detail=f"not done: {self._ended}", usage=NOTHING)
        if self._spent > self._limits.total:
            return Answer(failure="timeout", detail=f"took {self._limits.total:g} s in all", usage=NOTHING)
        began = time.monotonic()
        answer = self._exchange(request, body, wall or self._limits.wall, cpu or self._limits.cpu)
        self._spent += time.monotonic() - began
        return answer

    def _exchange(self, request: dict[str, Any], body: bytes, wall: float, cpu: float) -> Answer:
        limits, began = self._limits, time.monotonic()
        try:
            deadline = began + wall + GRACE
            self._jail.wire.send({**request, "wall": wall, "cpu": cpu}, body, deadline=deadline)
            most = limits.reply + 2 * (limits.output + MARKER)
            return checked(*self._jail.wire.receive(most, deadline=deadline))
        except TimeoutError:
            return self._lost("timeout", "the sandbox stopped answering and was killed", began)
        except (LostError, ValueError) as error:
            return self._lost("crashed", f"the program brought its sandbox down: {error}", began)

    def _lost(self, failure: str, sentence: str, began: float) -> Answer:
        """The program gets the blame: a supervisor fails only when something makes it."""
        self._ended = sentence
        self._jail.kill()
        usage = Usage(wall=time.monotonic() - began, cpu=0.0, memory=0)
        return Answer(failure=failure, detail=sentence, usage=usage)


def checked(header: dict[str, Any], body: bytes) -> Answer:
    """Take an answer apart.

    Raises:
        ValueError: when anything in it is not as the protocol has it.
    """
    failure, detail = header.get("failure", ""), header.get("detail", "")
    if failure not in ("", "crashed", "invalid", *get_args(Breach)) or not isinstance(detail, str):
        raise ValueError(f"expected a known failure, got {failure!r}")
    usage = Usage(wall=_number(header, "wall"), cpu=_number(header, "cpu"), memory=int(_number(header, "memory")))
    code = header.get("code")
    if code is not None and type(code) is not int:
        raise ValueError(f"expected an exit code, got {code!r}")
    out = header.get("out", [])
    if not isinstance(out, list) or not all(isinstance(path, str) for path in out):
        raise ValueError(f"expected a list of paths, got {str(out)[:100]}")
    parts = tuple(_split(header.get("sizes"), body))
    return Answer(failure=failure, detail=clean(detail), usage=usage, code=code, out=tuple(out), parts=parts)


def clean(text: str) -> str:
    """Text of a program without what could drive a terminal, and not more of it than a person would read."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text[:4000])


def _number(header: dict[str, Any], name: str) -> float:
    number = header.get(name)
    if isinstance(number, bool) or not isinstance(number, int | float) or number < 0:
        raise ValueError(f"expected {name} to be a number, got {number!r}")
    return number


def _split(sizes: object, body: bytes) -> Iterator[bytes]:
    if (
        not isinstance(sizes, list)
        or not all(type(size) is int and size >= 0 for size in sizes)
        or sum(sizes) != len(body)
    ):
        raise ValueError(f"expected sizes of the parts of {len(body)} bytes, got {str(sizes)[:100]}")
    position = 0
    for size in sizes:
        yield body[position : position + size]
        position += size


def _completed(answer: Answer, asked: Sequence[str]) -> Completed:
    stdout, stderr, *contents = answer.parts
    if len(contents) != len(answer.out):
        contents = []
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
