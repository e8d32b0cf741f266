"""Judges a running web application by what it answers, and its code by what a reader would say of it."""

import random
from collections.abc import Iterator

from behaviours import HIDDEN, VISIBLE, word
from client import Client
from lint import complaints

from evogit import Case

PORTS = 8001, 8002
QUICK = ("1-create", "1-created-201", "1-list", "4-page-shows")
SPLITS = {"lite": {name: VISIBLE[name] for name in QUICK}, "train": VISIBLE, "holdout": HIDDEN}


def evaluate(program, split: str, rng: random.Random) -> Iterator[Case]:
    told = linted(program)
    for port in PORTS:
        program.start(["python3", "app.py", str(port)])
    servers = [Client(program, port) for port in PORTS]
    for server in servers:
        server.get("/")
    for name, behaves in SPLITS[split].items():
        passed = behaves(servers[0], servers[1], word(rng))
        feedback = ["as asked" if passed else "not as asked", *told[:10]]
        yield Case(name, feedback="\n".join(feedback), passed=int(passed), lint=len(told))


def linted(program) -> list[str]:
    """What lint says of the code, before any of it runs."""
    found = program.run(["find", ".", "-name", "*.py", "-type", "f"]).stdout.split("\n")
    paths = sorted(path.removeprefix("./") for path in found if path)
    files = program.run(["true"], out=paths).files
    return [each for path in paths for each in complaints(path, files.get(path, b""))]
