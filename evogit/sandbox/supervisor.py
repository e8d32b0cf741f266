"""The supervisor as one program text, for sandboxes that bring their own Python: it is sent to their standard input."""

from __future__ import annotations

import json
from pathlib import Path

from evogit.content import content

MODULES = (
    "bytes", "files", "meter", "cgroup", "waits", "kernel", "values", "ahead", "calls", "program", "words", "places",
    "tunnel", "keeper", "session", "main",
)  # fmt: skip
"""Files of the supervisor, `jail_*.py`, each after those that it imports."""
NAMES = tuple(f"jail_{part}" for part in MODULES)
BOOTSTRAP = """\
import os, sys
def read(size):
    data = b""
    while len(data) < size and (piece := os.read(0, size - len(data))): data += piece
    return data
exec(compile(read(int.from_bytes(read(4), "big")), "supervisor", "exec"), {"__name__": "supervisor"})
"""
"""What the sandbox's `python3 -c` runs, with the arguments of jail_main.py: it reads the rest from its input."""
LOADER = """
import sys
for name, text in sources.items():
    module = sys.modules[name] = type(sys)(name)
    exec(compile(text, name + ".py", "exec"), module.__dict__)
sys.modules["jail_main"].main()
"""


def program(folder: Path) -> bytes:
    """What a sandbox reads after `BOOTSTRAP` has started: the length (four bytes, big-endian) and the whole program."""
    sources = {name: (folder / f"{name}.py").read_text() for name in NAMES}
    text = f"sources = {json.dumps(sources)}\n{LOADER}".encode()
    return len(text).to_bytes(4, "big") + text


def helper(name: str) -> str:
    """The text of a program that is sent into a sandbox beside the supervisor, such as `porter.py`."""
    return (content("sandbox") / name).read_text(encoding="utf-8")
