"""A session as the host sees it: requests to the supervisor of one sandbox, whatever provider started it."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, Protocol, Self, cast

from evogit.core import Files, SandboxLostError
from evogit.sandbox import CallReply, Completed, FolderEntry, LargestRequest, Limits, Piece, Place, ResourceUsage
from evogit.sandbox.answers import MARKER, NOTHING, Share, SupervisorAnswer, checked, completed_of, reply_of
from evogit.sandbox.archive import archive_of, check_paths
from evogit.sandbox.wire import LostError, Wire

GRACE = 5.0  # seconds that the supervisor has, beyond a request's own limit, before it counts as hung
STARTUP = 60.0  # seconds for unpacking and preloading; the first request of a session waits for it
BATCH, BATCH_BYTES = 256, 1 << 20  # items, and their bytes, that a supervisor feeds at once
LENGTH = struct.Struct(">I")  # in front of each piece of a body of several
STARVED = 0.2  # share of a time limit that a program waited for a core, from which on the machine is the cause
ASLEEP = 0.5  # share in which it was neither running nor ready, from which on the program is the cause
NONE: Mapping[Place, Piece] = MappingProxyType({})  # no pieces
SILENCE = "the sandbox stopped answering and was killed"
CLOSED = SupervisorAnswer(failure="crashed", detail="not done: the session was closed", usage=NOTHING)

POLL = 0.01  # seconds between two looks at an end that is silent
SOON = 0.001  # seconds to wait first where bytes are likely to come; then twice as long, and so on
CHUNK = 1 << 16


class Jail(Protocol):
    """A running supervisor."""

    wire: Wire

    def kill(self) -> None:
        """End it and every process below it, and remove what it left; may be called again."""

    def complaint(self) -> str:
        """What it wrote to stderr, for the message when it did not start."""

    def autopsy(self) -> tuple[str, str]:
        """Return how the program ended it: a failure, and a sentence. Raises SandboxLostError if it is not to blame."""

    def silence(self) -> str:
        """Return a sentence that blames the program for no answer. Raises SandboxLostError if it is not to blame."""


class Session:
    """One life of a candidate: its files unpacked in a place of its own, gone without a trace at the end."""

    def __init__(
        self, jail: Jail, limits: Limits, release: Callable[[bool], None], files: tuple[dict[str, Any], bytes]
    ) -> None:
        """Open a session; `release` takes back the supervisor, and whether it works. Raises SandboxLostError."""
        self._jail, self._limits, self._release = jail, limits, release
        self._stdout, self._stderr = bytearray(), bytearray()
        self._ended: SupervisorAnswer | None = None
        self._lost = False
        self._loss: SandboxLostError | None = None
        self._held: dict[int, tuple[int, Piece]] = {}
        self._lock = threading.Lock()
        self.usage = NOTHING  # what all requests used so far: sums, and the peak of memory
        self.largest = LargestRequest()  # the one that came nearest to its limits
        self._heard = NOTHING
        self.starved = ""  # how long a request that ran out of time waited for a core, if the machine was the cause
        self._patience = STARTUP
        self._answered = 0.0
        self._exchange(*files, time.monotonic() + STARTUP, None)

    def call(
        self,
        target: str,
        arguments: bytes,
        *,
        pieces: Mapping[Place, Piece] = NONE,
        held: Mapping[Place, Piece] = NONE,
        wall: float | None = None,
        cpu: float | None = None,
        fresh: bool = False,
    ) -> CallReply:
        """Call `module:function` with the JSON text `{"args": [...], "kwargs": {...}}` in the session's process.

        `pieces` and `held` take the places of nulls; `held` ones are sent once. `fresh` starts another process first.
        """
        request: dict[str, Any] = {"do": "call", "fresh": fresh, "target": target, "given": [], "held": []}
        body = LENGTH.pack(len(arguments)) + arguments
        if held or pieces:
            for piece in (piece for piece in held.values() if id(piece) not in self._held):
                number = len(self._held)
                answer = self._ask({"do": "hold", "number": number, "about": piece.form}, bytes(piece.content))
                self._held[id(piece)] = number, piece
                if answer.failure:
                    return reply_of(answer)
            request["given"] = [[place, piece.form] for place, piece in pieces.items()]
            request["held"] = [[place, self._held[id(piece)][0]] for place, piece in held.items()]
            body += _in_pieces([piece.content for piece in pieces.values()])
        answer = self._ask(request, body, wall=wall, cpu=cpu, fits=lambda answer: len(answer.parts) == 3)
        value, stdout, stderr = answer.parts
        self._stdout += stdout
        self._stderr += stderr
        return _called(answer, answer, value)

    def stream(self, target: str, items: Iterable[bytes], *, wall: float | None = None) -> Iterator[CallReply]:
        """Call `target` once per JSON item. Items of a list are sent ahead; other iterables wait for each reply."""
        if isinstance(items, list | tuple):
            yield from self._feed(target, items, wall)
            return
        for item in items:
            reply = self.call(target, b'{"args":[%s]}' % item, wall=wall)
            yield reply
            if reply.failure:
                return

    def _feed(self, target: str, items: Sequence[bytes], wall: float | None) -> Iterator[CallReply]:
        """Yield replies by batches that start small, so that the first ones come soon."""
        first, most = 0, 8
        while first < len(items):
            batch: list[bytes] = []
            size = 0
            for item in items[first : first + most]:
                if batch and size + len(item) > BATCH_BYTES:
                    break
                batch.append(item)
                size += len(item)
            for reply in self._fed(target, batch, first, len(items), wall):
                yield reply
                if reply.failure:
                    return
            first, most = first + len(batch), min(BATCH, 2 * most)

    def _fed(self, target: str, batch: list[bytes], first: int, of: int, wall: float | None) -> Iterator[CallReply]:
        about = json.dumps({"target": target, "first": first + 1, "of": of}).encode()
        body = _in_pieces([about, *batch])
        left = max(0.0, self._limits.total - self.usage.wall)
        longest = min(left + GRACE, len(batch) * (wall or self._limits.wall))

        def fits(answer: SupervisorAnswer) -> bool:
            return len(answer.shares) == len(batch) or (bool(answer.failure) and 0 < len(answer.shares) < len(batch))

        answer = self._ask({"do": "feed", "total": left}, body, wall=wall, longest=longest, fits=fits)
        *values, stdout, stderr = answer.parts
        self._stdout += stdout
        self._stderr += stderr
        for value, share in zip(values[:-1], answer.shares[:-1], strict=True):
            yield CallReply(value=value, usage=share.usage, phases=share.phases, binary=share.binary)
        yield _called(answer, answer.shares[-1] if answer.shares else answer, values[-1])

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        files: Mapping[str, bytes] | None = None,
        out: Sequence[str] = (),
        wall: float | None = None,
    ) -> Completed:
        """Run a command after writing `files`; 127 or 126 as in a shell. Raises SandboxError: a path leaves it."""
        files = files or {}
        check_paths(list(files))
        check_paths(list(out))
        sizes = [(path, len(content)) for path, content in files.items()]
        request = {"do": "run", "argv": list(argv), "files": sizes, "out": list(out)}
        body = b"".join([*files.values(), stdin])
        answer = self._ask(request, body, wall=wall, fits=lambda answer: len(answer.parts) == 2 + len(answer.out))
        return completed_of(answer, out)

    def start(self, argv: Sequence[str]) -> CallReply:
        """Run a command in the candidate's folder and leave it running; its output is the session's."""
        return reply_of(self._ask({"do": "start", "argv": list(argv)}))

    def connect(self, port: int, *, patience: float) -> socket.socket | CallReply:
        """Connect to a port inside, within `patience` seconds, or return the failure; a thread carries the bytes."""
        until, since = time.monotonic() + patience, self.usage
        while True:
            answer = self._ask({"do": "connect", "port": port})
            if answer.failure:
                return reply_of(answer)
            if answer.tunnel is not None:
                self._heard = self.usage
                stream = carried(answer.tunnel, self._carry)
                stream.settimeout(self._limits.wall)
                return stream
            if time.monotonic() >= until:
                detail = f"nothing listens on port {port} after {patience:g} s"
                self._find_cause(since, patience)
                return CallReply(failure="timeout", detail=detail, usage=answer.usage)
            time.sleep(POLL)

    def _carry(self, request: dict[str, Any], body: bytes) -> SupervisorAnswer:
        answer = self._ask(request, body)
        if answer.parts[0]:
            self._heard = self.usage
        if answer.failure:
            self._ended = self._ended or SupervisorAnswer(failure=answer.failure, detail=answer.detail, usage=NOTHING)
        return answer

    def pack(self, most: int) -> tuple[CallReply, bytes]:
        """A tar archive of the candidate's whole folder, of `most` bytes; ends what runs in the session."""
        answer = self._folder(most)
        return reply_of(answer), archive_of(answer.entries, answer.parts[1]) if not answer.failure else b""

    def salvage(self, most: int, without: Sequence[str]) -> tuple[CallReply, Sequence[FolderEntry], bytes]:
        """End the session, also after a breach; return its folder's entries and contents up to `most` bytes."""
        answer = self._folder(most, without=list(without), lenient=True)
        return reply_of(answer), answer.entries, b"" if answer.failure else answer.parts[1]

    def _folder(self, most: int, without: Sequence[str] = (), *, lenient: bool = False) -> SupervisorAnswer:
        request = {"do": "pack", "most": most, "without": without, "lenient": lenient}
        fits: Callable[[SupervisorAnswer], bool] = lambda answer: len(answer.parts) == 2 - bool(answer.failure)  # noqa: E731
        return self._ask(request, longest=STARTUP, most=most, fits=fits, after_end=lenient)

    def explain(self, patience: float) -> CallReply:
        """Return the limit that a server broke; it has `patience` seconds to end (0: it was silent too long)."""
        if not patience:
            self._find_cause(self._heard, self.usage.wall - self._heard.wall)
        return reply_of(self._ask({"do": "explain", "wait": patience}))

    def failure(self) -> CallReply | None:
        """Why the session is over, None while it goes on."""
        return reply_of(self._ended) if self._ended else None

    def output(self) -> tuple[bytes, bytes]:
        """Return the capped output of call processes. Raises SandboxLostError even if the evaluator hid a loss."""
        if self._loss:
            raise self._loss
        return bytes(self._stdout), bytes(self._stderr)

    def close(self) -> None:
        """End everything in the session, and have its traces removed."""
        with self._lock:
            if self._ended is not CLOSED or self._lost:
                self._ended, lost, self._lost = CLOSED, self._lost, False
                self._release(not lost)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _ask(
        self,
        request: dict[str, Any],
        body: bytes = b"",
        *,
        wall: float | None = None,
        cpu: float | None = None,
        longest: float | None = None,
        most: int = 0,
        fits: Callable[[SupervisorAnswer], bool] = lambda answer: len(answer.parts) == 1,
        after_end: bool = False,
    ) -> SupervisorAnswer:
        """Send a request; return its answer, of parts that `fits` takes, within `longest` seconds (default: `wall`).

        `after_end` may follow the session's end. Raises SandboxLostError: the sandbox went away, not by the program.
        """
        wall, limits = wall or self._limits.wall, self._limits
        with self._lock:
            if self._loss:
                raise self._loss
            if self._ended and (self._ended is CLOSED or self._lost or not after_end):
                return self._ended
            if self.usage.wall > limits.total and not after_end:
                self._find_cause(NOTHING, self.usage.wall)
                return SupervisorAnswer(failure="timeout", detail=f"took {limits.total:g} s in all", usage=NOTHING)
            began = time.monotonic()
            most = max(most, limits.reply) + 2 * (limits.output + MARKER)
            message = {**request, "wall": wall, "cpu": cpu or limits.cpu}
            answer = self._exchange(message, body, began + (longest or wall) + self._patience, most, fits)
            self._patience = GRACE
            used, since = self.usage, self._answered if request["do"] == "exchange" else began
            self._answered = time.monotonic()
            self.usage = ResourceUsage(
                wall=used.wall + self._answered - since,
                cpu=used.cpu + sum(each.cpu for each in answer.usages),
                memory=max(used.memory, *(each.memory for each in answer.usages)),
                waited=used.waited + sum(each.waited for each in answer.usages),
            )
            self._compare(answer, used, wall, cpu or limits.cpu)
            return answer

    def _compare(self, answer: SupervisorAnswer, before: ResourceUsage, wall: float, cpu: float) -> None:
        for used in answer.usages:
            share = max(used.wall / wall, used.cpu / cpu)
            if share > self.largest.share:
                self.largest = LargestRequest(wall=used.wall, cpu=used.cpu, share=share)
        if answer.failure == "timeout" and used.cpu < cpu:
            self._find_cause(before, self.usage.wall - before.wall)
            if self.usage.wall >= self._limits.total:
                self._find_cause(NOTHING, self.usage.wall)

    def _find_cause(self, since: ResourceUsage, wall: float) -> None:
        waited, cpu = self.usage.waited - since.waited, self.usage.cpu - since.cpu
        if wall and waited >= STARVED * wall and wall - waited - cpu <= ASLEEP * wall:
            self.starved = f"{waited:.2g} of {wall:.2g} s of it waiting for a core that other programs had"

    def _exchange(
        self,
        message: dict[str, Any],
        body: bytes,
        deadline: float,
        most: int | None,
        fits: Callable[[SupervisorAnswer], bool] = lambda answer: True,
    ) -> SupervisorAnswer:
        """Send a message and take its answer; `most` is None where there is none, as to `open`."""
        try:
            self._jail.wire.send(message, body, deadline=deadline)
            if most is None:
                return SupervisorAnswer(usage=NOTHING)
            answer = checked(*self._jail.wire.receive(most, deadline=deadline))
            if not fits(answer):
                raise ValueError(f"expected other parts of an answer to {message['do']}, got {len(answer.parts)}")
            return answer
        except TimeoutError:
            failure, sentence = self._blamed(lambda: ("timeout", self._jail.silence()))
        except ValueError as error:
            failure, sentence = "crashed", f"the program brought its sandbox down: {error}"
        except LostError:
            failure, sentence = self._blamed(self._jail.autopsy)
        self._lost = True
        self._ended = SupervisorAnswer(failure=failure, detail=sentence, usage=NOTHING)
        self._jail.kill()
        return self._ended

    def _blamed(self, look: Callable[[], tuple[str, str]]) -> tuple[str, str]:
        try:
            return look()
        except SandboxLostError as error:
            self._lost = True
            self._ended = CLOSED
            self._loss = error
            self._jail.kill()
            raise


def _in_pieces(pieces: Sequence[bytes | memoryview]) -> bytes:
    return b"".join(part for piece in pieces for part in (LENGTH.pack(len(piece)), piece))


def _called(answer: SupervisorAnswer, share: Share | SupervisorAnswer, value: bytes) -> CallReply:
    """The reply of one call, which ended as the answer says."""
    failure = cast(Any, answer.failure)
    return CallReply(
        value=value,
        failure=failure,
        detail=answer.detail,
        usage=share.usage,
        phases=share.phases,
        binary=share.binary,
    )


Ask = Callable[[dict[str, Any], bytes], SupervisorAnswer]  # sends a request to the supervisor and takes its answer


def carried(tunnel: int, ask: Ask) -> socket.socket:
    """A connected socket; a thread carries its bytes through the supervisor's tunnel of this number, and back."""
    ours, theirs = socket.socketpair()
    threading.Thread(target=_carry_bytes, args=(tunnel, ask, ours), daemon=True).start()
    return theirs


def _carry_bytes(tunnel: int, ask: Ask, ours: socket.socket) -> None:
    """Until both ends are through, in lock step; one that speaks is likely to get an answer, so it is waited for."""
    reading, ended, full, wait = True, False, False, 0.0
    with ours, contextlib.suppress(OSError, SandboxLostError):  # of a loss, the session tells at its end
        while not ended:
            ready, _, _ = select.select([ours] if reading and not full else [], [], [], 0 if wait else POLL)
            data = ours.recv(CHUNK) if ready else b""
            wait = SOON if data else wait
            reading = reading and not (ready and not data)
            request = {"do": "exchange", "tunnel": tunnel, "wait": wait, "last": not reading}
            answer = ask(request, data)
            ours.sendall(answer.parts[0])
            ended, full = answer.ended or bool(answer.failure), answer.full
            wait = SOON if answer.parts[0] else 2 * wait if wait < POLL else 0.0


class Sandbox(Protocol):
    """A provider of sessions; `timing`: `counted` by the kernel, or `sampled`, which misses what children use."""

    name: str
    timing: Literal["counted", "sampled"]

    def image(self) -> str:
        """A digest of what programs find inside: interpreter, libraries, supervisor."""

    def open(self, files: bytes | Files, limits: Limits, preload: Sequence[str] = (), *, seed: int = 0) -> Session:
        """Start a session on `files` (bytes: a whole tar archive) after importing `preload`. Raises SandboxError."""

    def close(self) -> None:
        """End the warm workers; sessions must be closed by then. The provider can be used again."""
