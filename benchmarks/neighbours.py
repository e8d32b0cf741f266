"""What neighbours do to a program in Docker: its CPU seconds beside three hogs, against those of it alone, in turns.

Run on a quiet machine: `python benchmarks/neighbours.py [--turns N] [--json FILE]`. Needs a Docker daemon. Each turn is
compared with the one beside it, since what else a machine does comes and goes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from evogit.sandbox import Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.providers import provider
from evogit.sandbox.session import Sandbox

HOGS = ("cpu", "memory", "forks")
PROGRAMS = pack(
    {
        "m.py": b"""
import os, time
def cpu():
    while True: pass
def memory():
    kept = []
    while True: kept.append(bytearray(b"x" * 1_000_000))
def forks():
    while True:
        try: os.fork()
        except OSError: pass
def honest():
    total = 0
    for number in range(3_000_000): total += number * number % 7
    return total
"""
    }
)
EXPECTED = sum(number * number % 7 for number in range(3_000_000))
LIMITS = Limits(wall=60, cpu=60, memory=200 << 20)


def turns(number: int) -> Iterator[tuple[float, float]]:
    """CPU seconds of an honest program alone, and beside hogs in three other workers.

    Raises:
        AssertionError: its result was another one.
    """
    sandboxes = [provider("docker") for _ in range(1 + len(HOGS))]
    with ExitStack() as stack:
        for sandbox in sandboxes:
            stack.callback(sandbox.close)
            sandbox.open(PROGRAMS, LIMITS).close()
        for _ in range(number):
            alone, ended = honest(sandboxes[0]), threading.Event()
            threads = [
                threading.Thread(target=bother, args=(sandbox, hog, ended))
                for sandbox, hog in zip(sandboxes[1:], HOGS, strict=True)
            ]
            for thread in threads:
                thread.start()
            try:
                yield alone, honest(sandboxes[0])
            finally:
                ended.set()
                for thread in threads:
                    thread.join()


def honest(sandbox: Sandbox) -> float:
    """CPU seconds of one call."""
    time.sleep(0.2)
    with sandbox.open(PROGRAMS, LIMITS) as session:
        session.call("m:honest", b"{}")  # an idle core takes a moment to be as quick as one that hogs kept busy
        reply = session.call("m:honest", b"{}")
        assert json.loads(reply.value) == EXPECTED
        return reply.usage.cpu


def bother(sandbox: Sandbox, hog: str, ended: threading.Event) -> None:
    """Keep a worker busy with a hog, which is killed each second."""
    while not ended.is_set():
        with sandbox.open(PROGRAMS, LIMITS) as session:
            session.call(f"m:{hog}", b"{}", wall=1.0)


def main() -> None:
    """Print the medians and the ratio, and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the line of JSON to a file, too")
    asked = parser.parse_args()
    found = list(turns(asked.turns))
    medians = [statistics.median(each) for each in zip(*found, strict=True)]
    ratio = statistics.median(beside / alone for alone, beside in found)
    print(f"CPU seconds, medians of {len(found)} turns on {os.cpu_count()} cores:")
    print(f"{medians[0]:.3f} alone, {medians[1]:.3f} beside {', '.join(HOGS)}; ratio, turn by turn, {ratio:.3f}")
    line = json.dumps({"alone": [each[0] for each in found], "beside": [each[1] for each in found], "ratio": ratio})
    print(line)
    if asked.json:
        asked.json.write_text(line + "\n")


if __name__ == "__main__":
    main()
