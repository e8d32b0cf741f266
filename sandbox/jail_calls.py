"""The half of a call that runs in the program's own process.

The supervisor holds the clocks: it is told when the arguments are there and when the function has returned, and gives
the word to go on. What is told here is never believed: all CPU is counted outside, whatever it was used for.
"""

import errno
import functools
import importlib
import json
import os
import random
import sys

from jail_ahead import get_ready
from jail_bytes import LENGTH, pieces, read_exactly, write_all
from jail_values import SMALL, encoded, understood

KINDS = b"vbrmdjpf"
VALUE, BINARY, RAISED, NO_MEMORY, NO_DISK, NO_JSON, READY, FINISHED = KINDS
READY_FRAME, FINISHED_FRAME = (LENGTH.pack(1) + bytes((kind,)) for kind in (READY, FINISHED))


def answer_calls(into, reply, seed):
    """The body of a process that imports the candidate's code and answers calls until its pipe ends."""
    random.seed(seed)
    if numpy_random := sys.modules.get("numpy.random"):
        numpy_random.seed(seed)
    sys.modules["__main__"] = type(sys)("__main__")
    sys.argv = [""]
    answering = Answering(into, reply)
    while header := read_exactly(into, LENGTH.size):
        order, *given = pieces(read_exactly(into, LENGTH.unpack(header)[0]))
        answering.tell(*answering.result(understood_order(bytes(order)), given))
    os._exit(0)


@functools.lru_cache(maxsize=8)
def understood_order(text):
    """What is asked; the same again and again, mostly."""
    return json.loads(text)


class Answering:
    """Answers calls one after another; keeps the values that calls have in common."""

    def __init__(self, into, reply):
        self.into = into
        self.reply = reply
        self.held = {}
        self.ahead = None

    def result(self, asked, given):
        """Kind and content of the reply; whatever the candidate's code does in here happens to its own process only."""
        try:
            args, kwargs = self.arguments(asked, given)
            target = asked["target"]
            if self.ahead is None:
                self.ahead = get_ready(target)
            if asked["wait"]:
                self.wait(READY_FRAME)
            value = self.target_of(target)(*args, **kwargs)
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException as error:  # noqa: BLE001 - untrusted code may raise anything, SystemExit included
            return kind_of(error), story_of(error).encode(errors="replace")
        if asked["large"] or type(value) not in SMALL:  # to let go of large arguments takes time, too
            self.wait(FINISHED_FRAME)
        if self.ahead.specs:
            self.ahead.forget()
        try:
            content, binary = encoded(value)
        except (TypeError, ValueError, RecursionError) as error:
            return NO_JSON, str(error).encode(errors="replace")
        except MemoryError:
            return NO_MEMORY, b""
        return BINARY if binary else VALUE, content

    def arguments(self, asked, given):
        """Positional and named arguments: JSON, but for those given as pieces, and those that calls have in common."""
        text, *contents = given
        found = json.loads(bytes(text))
        args, kwargs = found.get("args", []), found.get("kwargs", {})
        if not (asked["given"] or asked["held"]):
            return args, kwargs
        for (number, about), content in zip(asked["new"], contents[len(asked["given"]) :], strict=True):
            self.held[number] = understood(about, content)
        for (place, about), content in zip(asked["given"], contents, strict=False):
            put(args, kwargs, place, understood(about, content))
        for place, number in asked["held"]:
            put(args, kwargs, place, self.held[number])
        return args, kwargs

    def target_of(self, name):
        """The function that `module:function` names."""
        module, _, path = name.partition(":")
        self.ahead.load(module)
        found = sys.modules.get(module) or importlib.import_module(module)
        for attribute in path.split("."):
            found = getattr(found, attribute)
        return found

    def wait(self, frame):
        """Say how far we are, and wait for the word."""
        os.write(self.reply, frame)
        os.read(self.into, 1)

    def tell(self, kind, content):
        """Send a reply."""
        write_all(self.reply, LENGTH.pack(len(content) + 1) + bytes((kind,)) + content)


def put(args, kwargs, place, value):
    """Put an argument where it belongs: at a number, or under a name."""
    if isinstance(place, int):
        args[place] = value
    else:
        kwargs[place] = value


def kind_of(error):
    """What sort of failure an exception is."""
    if isinstance(error, MemoryError):
        return NO_MEMORY
    return NO_DISK if isinstance(error, OSError) and error.errno == errno.ENOSPC else RAISED


def story_of(error):
    """The exception and where it was raised; the whole traceback goes to stderr. Nothing is imported or opened."""
    sys.__excepthook__(type(error), error, error.__traceback__)
    sys.stderr.flush()
    places, trace = [], error.__traceback__
    while trace:
        code = trace.tb_frame.f_code
        places.append(f"{os.path.relpath(code.co_filename)}, line {trace.tb_lineno}, in {code.co_name}")
        trace = trace.tb_next
    return f"{type(error).__name__}: {str(error)[:1000]}\n" + "\n".join(places[-3:])
