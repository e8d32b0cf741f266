"""The host against a supervisor that has been taken over."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from evogit.content import content
from evogit.core import SandboxError
from evogit.sandbox import Limits
from evogit.sandbox.answers import checked, clean
from evogit.sandbox.archive import archive_of
from evogit.sandbox.docker.worker import COMPLAINT, HEAD, AttachedWire
from evogit.sandbox.interpreter import MODULES
from evogit.sandbox.session import Session
from evogit.sandbox.wire import FRAME, LostError, Wire
from tests.clock import PATIENCE

USED = {"wall": 1, "cpu": 1.5, "memory": 7, "waited": 0.5}


@pytest.fixture
def ends() -> Iterator[tuple[Wire, int, int]]:
    requests, into = os.pipe()
    out, replies = os.pipe()
    yield Wire(into, out), requests, replies
    for fd in (requests, into, out, replies):
        os.close(fd)


def soon() -> float:
    return time.monotonic() + 0.05


def late() -> float:
    return time.monotonic() + PATIENCE


def test_frames_come_through(ends):
    wire, requests, replies = ends
    os.write(replies, FRAME.pack(9, 3) + b'{"a": 10}' + b"xyz")
    assert wire.receive(3, deadline=late()) == ({"a": 10}, b"xyz")
    wire.send({"do": "call"}, b"body", deadline=late())
    assert os.read(requests, 100) == FRAME.pack(14, 4) + b'{"do": "call"}body'


@pytest.mark.parametrize(
    "data",
    [
        FRAME.pack(2**32 - 1, 0),
        FRAME.pack(2, 2**32 - 1) + b"{}",
        FRAME.pack(2, 0) + b"[]",
        FRAME.pack(3, 0) + b"NaN",
        FRAME.pack(14, 0) + b'{"a":1,"a":2 }',
    ],
)
def test_no_frame_is_refused(ends, data):
    wire, _, replies = ends
    os.write(replies, data)
    with pytest.raises(ValueError, match=r"expected|it "):
        wire.receive(100, deadline=late())


def test_silence_ends_at_the_deadline_and_the_end_of_the_pipe_is_told(ends):
    wire, _, replies = ends
    out, gone = os.pipe()
    os.close(gone)
    with pytest.raises(LostError):
        Wire(os.dup(out), out).receive(3, deadline=late())
    os.close(out)
    os.write(replies, FRAME.pack(9, 3) + b'{"a"')
    with pytest.raises(TimeoutError):
        wire.receive(3, deadline=soon())
    with pytest.raises(TimeoutError):
        wire.send({}, bytes(10**6), deadline=soon())


@pytest.mark.parametrize(
    "header",
    [
        {},
        {**USED, "sizes": "x"},
        {**USED, "sizes": [True, 2]},
        {**USED, "sizes": [-1, 4]},
        {**USED, "sizes": [2]},
        {**USED, "sizes": [1, 2], "cpu": "0"},
        {**USED, "sizes": [1, 2], "wall": -1},
        {**USED, "sizes": [1, 2], "failure": "ok"},
        {**USED, "sizes": [1, 2], "detail": 3},
        {**USED, "sizes": [1, 2], "code": True},
        {**USED, "sizes": [1, 2], "out": [3]},
        {**USED, "sizes": [1, 2], "out": 7},
        {**USED, "sizes": [1, 2], "cpu": 10**400},
        {**USED, "sizes": [1, 2], "memory": 1e300},
        {**USED, "sizes": [3], "listed": True},
    ],
)
def test_answer_that_breaks_the_protocol_is_refused(header):
    with pytest.raises(ValueError, match="expected"):
        checked(header, b"abc")


@pytest.mark.parametrize(
    "entries",
    [
        {},
        [["a", "file", 2, 0]],
        [["a", "file", -1, 0], ["b", "file", 2, 0]],
        [["a", "socket", 1, 0]],
        [["a", "file", 1, -1]],
        [["a", "file", 1, 10**100]],
        [["a", "file", 1]],
    ],
)
def test_list_of_files_that_does_not_fit_its_contents_is_refused(entries):
    text = json.dumps(entries).encode()
    with pytest.raises(ValueError, match="expected"):
        checked({**USED, "sizes": [len(text), 1], "listed": True}, text + b"x")


@pytest.mark.parametrize("path", ["../a", "/a", "a/../../b"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_packed_paths_stay_inside(path, kind):
    with pytest.raises(SandboxError, match="relative to the candidate's folder"):
        archive_of([(path, kind, 0, 0)], b"")


class Taken:
    """A supervisor that answers what it likes."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.killed = False

    def kill(self) -> None:
        self.killed = True

    def complaint(self) -> str:
        return ""

    def autopsy(self) -> tuple[str, str]:
        return "crashed", "gone"

    def silence(self) -> str:
        return "silent"


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda session: session.call("m:f", b"{}"), {"sizes": []}),
        (lambda session: session.call("m:f", b"{}"), {"sizes": [0, 0, 0, 0]}),
        (lambda session: list(session.stream("m:f", [b"1"]))[-1], {"sizes": [0, 0]}),
        (lambda session: list(session.stream("m:f", [b"1"]))[-1], {"sizes": [0, 0, 0]}),
        (lambda session: list(session.stream("m:f", [b"1"]))[-1], {"sizes": [0] * 4, "shares": [[0, 0, 0]] * 2}),
        (lambda session: list(session.stream("m:f", [b"1"] * 2))[-1], {"sizes": [0] * 3, "shares": [[0, 0, 0]]}),
        (lambda session: session.start(["true"]), {"sizes": []}),
        (lambda session: session.pack(9)[0], {"sizes": [0]}),
    ],
)
def test_answer_to_another_question_is_the_end_of_the_sandbox(ends, ask, answer):
    wire, _, replies = ends
    taken, released = Taken(wire), []
    session = Session(taken, Limits(), released.append, ({"do": "open"}, b""))
    header = json.dumps({**USED, **answer}).encode()
    os.write(replies, FRAME.pack(len(header), 0) + header)
    assert ask(session).failure == "crashed"
    session.close()
    assert (taken.killed, released) == (True, [False])


def test_answer_is_taken_apart_into_short_and_harmless_text():
    answer = checked({**USED, "sizes": [1, 2], "failure": "timeout", "detail": "late\x1b"}, b"abc")
    assert answer.parts == (b"a", b"bc")
    assert answer.detail == "late\N{REPLACEMENT CHARACTER}"
    assert (answer.usage.wall, answer.usage.cpu, answer.usage.memory) == (1, 1.5, 7)
    assert clean("a\nb\x1b[31m\u202e") == "a\nb\ufffd[31m\ufffd"
    assert len(clean("x" * 10**6)) == 4000


# --- the stream of a container ------------------------------------------------------------------------------------


@pytest.fixture
def attached() -> Iterator[tuple[AttachedWire, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield AttachedWire(ours.fileno()), theirs


def mixed(*pieces: tuple[int, bytes]) -> bytes:
    """As the daemon sends output: 1 is stdout, 2 is stderr."""
    return b"".join(HEAD.pack(stream, len(data)) + data for stream, data in pieces)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 1000])
def test_frames_come_through_however_the_daemon_cuts_them(attached, size):
    wire, theirs = attached
    frame = FRAME.pack(9, 5) + b'{"a": 10}' + b"hello"
    stream = mixed((1, frame[:3]), (2, b"oh "), (1, b""), (1, frame[3:12]), (2, b"dear"), (1, frame[12:] + frame))
    threading.Thread(target=lambda: [theirs.send(stream[at : at + size]) for at in range(0, len(stream), size)]).start()
    for _ in range(2):
        assert wire.receive(5, deadline=late()) == ({"a": 10}, b"hello")
    assert wire.complaint == b"oh dear"


@pytest.mark.slow
def test_a_container_that_only_complains_is_heard_no_longer_than_until_the_deadline(attached):
    wire, theirs = attached
    theirs.settimeout(0.5)

    def flood() -> None:
        with contextlib.suppress(OSError):  # until nobody reads any more
            while True:
                theirs.sendall(mixed((2, bytes(60_000))))

    thread = threading.Thread(target=flood)
    thread.start()
    with pytest.raises(TimeoutError):
        wire.receive(5, deadline=soon())
    assert len(wire.complaint) <= 2 * COMPLAINT
    thread.join()


def test_a_container_that_is_gone_is_told_when_it_is_read_from_and_written_to(attached):
    wire, theirs = attached
    theirs.close()
    with pytest.raises(LostError):
        wire.receive(5, deadline=late())
    with pytest.raises(LostError):
        wire.send({}, bytes(1 << 20), deadline=late())


def test_each_part_of_the_supervisor_comes_after_those_that_it_imports() -> None:
    """As it is sent to sandboxes that bring their own Python, where there is nothing to import from."""
    for number, part in enumerate(MODULES):
        text = (content("sandbox") / f"jail_{part}.py").read_text()
        assert set(re.findall(r"^from jail_(\w+) import", text, re.MULTILINE)) <= {*MODULES[:number]}, part
