"""Programs that work where the clock of a call does not run: while arguments are read, and while values are written.

Each does the same work as the honest one and gives the right answer, so that what it saves would be stolen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from evogit.evaluation.program import Called, Program
from evogit.sandbox import Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.session import Sandbox
from tests.hostile.conftest import ONE_KERNEL

SPIN = """\
def spin(rows):
    found = 0
    for turn in range(16 if rows else 0):
        for row in rows:
            for each in row:
                found = (found * 31 + each) % 1000003
    return found
"""
ROWS = [list(range(row, row + 100)) for row in range(100)]
HONEST = {"program.py": SPIN + "def work(rows):\n    return [spin(rows)]\n"}

AT_IMPORT = """\
import sys
def rows_of(frame):
    while frame and type(frame.f_locals.get("args")) is not list:
        frame = frame.f_back
    return frame.f_locals["args"][0] if frame else None
found = rows_of(sys._getframe())
known = spin(found) if found else None
def work(rows):
    return [spin(rows) if known is None else known]
"""
ANNOUNCES = """\
import os, struct, sys
def work(rows):
    me = sys._getframe(1).f_locals["self"]
    os.write(me.reply, struct.pack(">I", 1) + b"f")
    os.read(me.into, 1)
    me.wait = lambda frame: None
    return [spin(rows)]
"""
READS_LONG = """\
import jail_calls
read = jail_calls.Answering.arguments
def longer(self, asked, given):
    args, kwargs = read(self, asked, given)
    return [spin(args[0])], kwargs
jail_calls.Answering.arguments = longer
def work(rows):
    return [rows if type(rows) is int else spin(rows)]
"""
WRITES_LONG = """\
import jail_calls
write = jail_calls.encoded
jail_calls.encoded = lambda value: write([spin(value[0])])
def work(rows):
    return [rows]
"""
LAZY_ITEMS = """\
class Lazy(dict):
    def items(self):
        return {"0": spin(self.rows)}.items()
def work(rows):
    lazy = Lazy(a=1)
    lazy.rows = rows
    return lazy
"""
LAZY_BYTES = """\
class Lazy(bytearray):
    def __bytes__(self):
        return b"%d" % spin(self.rows)
def work(rows):
    lazy = Lazy(b"1")
    lazy.rows = rows
    return lazy
"""
LAST_WORDS = """\
import jail_calls
class Last:
    def __del__(self):
        self.into.append(spin(self.rows))
write = jail_calls.encoded
def late(value):
    kept.clear()
    return write(value)
jail_calls.encoded = late
kept = []
def work(rows):
    answer, last = [], Last()
    last.rows, last.into = rows, answer
    kept.append(last)
    return answer
"""
THREAD = """\
import jail_calls, threading
write = jail_calls.encoded
def late(value):
    threads.pop().join()
    return write(value)
jail_calls.encoded = late
threads = []
def work(rows):
    answer = []
    threads.append(threading.Thread(target=lambda: answer.append(spin(rows))))
    threads[0].start()
    return answer
"""
CHILD = """\
import jail_calls, os
write = jail_calls.encoded
def late(value):
    data = os.read(value[0], 100)
    os.waitpid(value[1], 0)
    return write([int(data)])
jail_calls.encoded = late
def work(rows):
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(into, b"%d" % spin(rows))
        os._exit(0)
    return [out, child]
"""
TIMER = """\
import jail_calls, signal, time
write = jail_calls.encoded
def late(value):
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    while not value:
        time.sleep(0.001)
    return write(value)
jail_calls.encoded = late
def work(rows):
    answer = []
    signal.signal(signal.SIGALRM, lambda *_: answer.append(spin(rows)))
    return answer
"""
READY_EARLY = """\
import jail_calls, os, struct
def result(self, asked, given, usual=jail_calls.Answering.result):
    os.write(self.reply, struct.pack(">I", 1) + b"p")
    os.read(self.into, 1)
    return usual(self, {**asked, "wait": False}, given)
jail_calls.Answering.result = result
def work(rows):
    return [spin(rows)]
"""
FLUSHES = """\
import sys
class Out:
    def flush(self):
        while todo:
            rows, answer = todo.pop()
            answer.append(spin(rows))
    def write(self, text):
        pass
sys.stdout, todo = Out(), []
def work(rows):
    answer = []
    todo.append((rows, answer))
    return answer
"""
BETWEEN = """\
import jail_calls
def arguments(self, asked, given, usual=jail_calls.Answering.arguments):
    args, kwargs = usual(self, asked, given)
    args[0] and known.append(spin(args[0]))
    return args, kwargs
jail_calls.Answering.arguments = arguments
known = []
def work(rows):
    return [known[-1] if known else spin(rows)]
"""
PADS = """\
import jail_calls
write = jail_calls.encoded
def long(value):
    text, binary = write([spin(value[0])])
    return text[:-1] + b" " * 4_000_000 + b"]", binary
jail_calls.encoded = long
def work(rows):
    return [rows]
"""
SHADOWS = "import heapq\ndef work(rows):\n    return [heapq.known]\n"
CHEATS = {
    "at import": AT_IMPORT,
    "announces the end and works on": ANNOUNCES,
    "reads for long": READS_LONG,
    "writes for long": WRITES_LONG,
    "items that are made when written": LAZY_ITEMS,
    "bytes that are made when written": LAZY_BYTES,
    "last words of an object": LAST_WORDS,
    "a thread that goes on": THREAD,
    "a child that goes on": CHILD,
    "a timer": TIMER,
    "ready before it is": READY_EARLY,
    "output that works when flushed": FLUSHES,
    "knows what it read": BETWEEN,
    "a reply that is mostly space": PADS,
}
WAYS: dict[str, Callable[[Program], Called]] = {
    "clean": lambda program: program.measure("program:work", [ROWS]),
    "warmed up": lambda program: program.measure("program:work", [ROWS], warmup=[[]]),
    "put": lambda program: program.measure("program:work", [program.put(ROWS)], warmup=[[]]),
}


@contextmanager
def opened(sandbox: Sandbox, files: dict[str, str]) -> Iterator[Program]:
    """A program that can be measured."""
    packed = pack({name: text.encode() for name, text in files.items()})
    with closing(sandbox.open(packed, Limits())) as session:
        yield Program(session, lambda: sandbox.open(packed, Limits()))


def answer_of(called: Called) -> int:
    """The number in a value."""
    value = called.value
    return int(value if isinstance(value, bytes) else next(iter(value.values() if isinstance(value, dict) else value)))


@pytest.fixture(scope="module", params=ONE_KERNEL)
def sandbox(request: pytest.FixtureRequest, providers: Callable[[str], Sandbox]) -> Sandbox:
    return providers(request.param)


@pytest.fixture(scope="module")
def honest(sandbox: Sandbox) -> dict[str, Called]:
    """What the honest program takes in each way, at least."""
    with opened(sandbox, HONEST) as program:
        return {
            name: min((way(program) for _ in range(2)), key=lambda called: called.cpu) for name, way in WAYS.items()
        }


@pytest.mark.parametrize("cheat", list(CHEATS))
def test_work_outside_the_clock_is_charged(request, sandbox: Sandbox, honest: dict[str, Called], cheat: str) -> None:
    """In each way in bubblewrap; the same supervisor in Docker is asked in one."""
    with opened(sandbox, {"program.py": SPIN + CHEATS[cheat]}) as program:
        for way in WAYS if "bubblewrap" in request.node.callspec.id else ["clean"]:
            found, earned = WAYS[way](program), honest[way]
            assert (way, answer_of(found)) == (way, answer_of(earned))
            assert min(found.cpu, found.wall) > 0.3 * earned.cpu, way  # what is hidden leaves a hundredth


def test_a_module_with_the_name_of_a_librarys_does_not_run_before_the_clock(
    sandbox: Sandbox, honest: dict[str, Called]
) -> None:
    for name in ("heapq", "numpy"):
        files = {"program.py": SHADOWS.replace("heapq", name), f"{name}.py": SPIN + AT_IMPORT.partition("def work")[0]}
        with opened(sandbox, files) as program:
            found, earned = WAYS["clean"](program), honest["clean"]
        assert found.value == earned.value
        assert found.cpu > 0.3 * earned.cpu
