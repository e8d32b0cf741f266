"""Engines of several hosts over one bare repository: what is left when one dies and one is cut off.

Each host is a clone with an engine of its own; what evaluates sleeps, so that the machine's cores do not matter. Four
engines work: the second is killed after a quarter of the time, the third has no server from a third on, while people
decide on both sides. A person on the fourth stops all. Every clone is asked what it holds: the candidates, evaluations
and decisions of the run as one hash, before and after the killed host comes back.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from evogit.events import Decision, Entry, Evaluated, Proposed
from evogit.repository import Repository
from evogit.repository.run_keys import RunKeys
from evogit.trust import Claim, Trust

RUN = "sleeping"
MAIN = "from evogit.cli import main; main()"
FAST = "from evogit.cli.options import run; "
COMMAND = [sys.executable, "-c", MAIN]
NAMES = ("alpha", "beta", "gamma", "delta")

LONG = 3600.0
"""Seconds that no campaign takes: a person ends it."""

TASK = """
name = "sleeping"
goal = "Find good numbers."
editable = ["program.py"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
"""

EVALUATE = """
import time
from evogit import Case

def evaluate(program, split):
    time.sleep({seconds})
    yield Case("one", score=-abs(program.call("program:value", [], returns=float).value - 1000))
"""

PROGRAM = "A = 1.5\nB = 2.5\nC = 3.5\n\n\ndef value():\n    return A * B + C * A + B * B\n"


Ask = Callable[[Sequence[str | Path], Mapping[str, str]], str]
"""Runs a command of `evogit`, with these environment variables: what it prints."""


@dataclass
class Host:
    """A clone with an engine; its way to the server is a link that can be cut."""

    name: str
    folder: Path
    server: Path
    every: float
    forked: Ask | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def line(self) -> Path:
        """The server as this host knows it."""
        return self.folder.with_name(f"{self.name}-to-server")

    def command(self, *arguments: str | Path) -> str:
        """What one command says here."""
        words = ["-C", self.folder, *arguments]
        if self.forked:
            return self.forked(words, self._environment)
        done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, env=self._environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def _environment(self) -> dict[str, str]:
        self.trust.add(Claim("tree", str(self.folder.parent.resolve())))
        return {**os.environ, "XDG_STATE_HOME": str(self.folder.with_name("state"))}

    @property
    def trust(self) -> Trust:
        """The records of the user of these hosts."""
        return Trust(self.folder.with_name("state") / "evogit" / "trust")

    def begin(self, task: Path, seconds: float, key: bytes = b"") -> None:
        """Start its engine, for so many seconds, as one that has the run's key."""
        if key:
            RunKeys(Repository.create(self.folder).common, self.trust).keep(RUN, key)
        self.join()
        about = ("--agent", "mutator:2", "-j", "1", "--sandbox", "none", "--minutes", f"{seconds / 60}")
        command = ["run", task, *about, "--remote", self.line, "--host", self.name]
        with self.folder.with_name(f"{self.name}.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", f"{FAST}run.SYNC_EVERY_S = {self.every}; {MAIN}", "-C", self.folder, *command],
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                env=self._environment,
            )

    def join(self) -> None:
        """Have a way to the server."""
        self.line.symlink_to(self.server)

    def cut_off(self) -> None:
        """Have none."""
        self.line.unlink()

    def kill(self) -> None:
        """End the engine with all that it has started, as a power cut would."""
        assert self.process
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def works(self) -> bool:
        """Whether its engine is at work."""
        return self.process is not None and self.process.poll() is None

    @property
    def pushed(self) -> str:
        """The last entry of its journal that the server has; empty while it has none."""
        asked = ["git", "-C", self.server, "rev-parse", "-q", "--verify", f"refs/evogit/{RUN}/journal/{self.name}"]
        return subprocess.run(asked, capture_output=True, text=True).stdout.strip()

    @property
    def entries(self) -> list[Entry]:
        """Every entry of the run that this clone has, in the order of the run."""
        found = list[Entry]()
        Repository.open(self.folder).journal(RUN, found.append)
        return found

    def tip(self, host: str) -> str | None:
        """The last entry of a host's journal, as this clone has it."""
        return Repository.open(self.folder).target(f"refs/evogit/{RUN}/journal/{host}")

    def holds(self) -> str:
        """A hash of the candidates, evaluations and decisions that this clone holds."""
        told = [
            to_builtins(each.event) for each in self.entries if isinstance(each.event, Proposed | Evaluated | Decision)
        ]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def write_task(folder: Path, seconds: float) -> Path:
    """A task whose evaluations take so long."""
    for part in ("seed", "evaluator"):
        (folder / part).mkdir(parents=True)
    (folder / "task.toml").write_text(TASK)
    (folder / "seed" / "program.py").write_text(PROGRAM)
    (folder / "evaluator" / "evaluate.py").write_text(EVALUATE.format(seconds=seconds))
    return folder


@contextmanager
def at_work(
    folder: Path, engines: int, seconds: float, *, every: float, evaluation: float, forked: Ask | None = None
) -> Iterator[list[Host]]:
    """So many engines at work on one run; the others come once the first one has begun it. None is left at the end."""
    server, task = folder / "server.git", write_task(folder / "task", evaluation)
    subprocess.run(["git", "init", "-q", "--bare", server], check=True)
    first, *others = hosts = [Host(name, folder / name, server, every, forked) for name in NAMES[:engines]]
    try:
        first.begin(task, seconds)
        wait_for([first])
        key = RunKeys(Repository.open(first.folder).common, first.trust).find(RUN)
        for host in others:
            host.begin(task, seconds, key)
        wait_for(others)
        yield hosts
    finally:
        for host in hosts:
            if host.works:
                host.kill()


def wait_for(hosts: list[Host]) -> None:
    """Wait until the server has something of each of these hosts."""
    for host in hosts:
        while not host.pushed:
            assert host.works, host.folder.with_name(f"{host.name}.log").read_text()
            time.sleep(0.1)


def finish(hosts: list[Host]) -> None:
    """Wait until every engine has ended."""
    for host in hosts:
        assert host.process
        code = host.process.wait()
        assert code in (0, -signal.SIGKILL), host.folder.with_name(f"{host.name}.log").read_text()


def campaign(
    folder: Path, seconds: float, cut: float, *, every: float, evaluation: float, forked: Ask | None = None
) -> dict[str, Any]:
    """Four engines, one of which dies and one is cut off; what each holds at the end.

    A test has commands that look or decide run `forked` from it, as it has imported what they need.
    """
    with at_work(folder, 4, LONG, every=every, evaluation=evaluation, forked=forked) as hosts:
        alpha, beta, gamma, delta = hosts
        time.sleep(seconds / 4)
        beta.kill()
        dead = beta.tip("beta")
        time.sleep(seconds / 12)
        gamma.cut_off()
        gamma.command("guide", "said while gamma was cut off", "--yes")
        alpha.command("promote", "best", "-m", "said meanwhile on alpha", "--yes")
        time.sleep(cut)
        gamma.join()
        time.sleep(seconds * 2 / 3 - cut)
        delta.command("stop")  # which reaches all, as every decision does
        finish(hosts)
    living = [host for host in hosts if host is not beta]
    pushed = beta.pushed  # by now: what the server had begun to take went on when beta was dead
    for host in [*living, *living]:
        host.command("sync", host.line)
    found = {"living": [host.holds() for host in living], "beta": [host.tip("beta") for host in living]}
    for host in [beta, *living]:
        host.command("sync", host.line)
    names = [each.host for each in alpha.entries if isinstance(each.event, Evaluated)]
    return {
        **found,
        "pushed": pushed,
        "died_with": dead,
        "all": [host.holds() for host in hosts],
        "evaluations": {host.name: names.count(host.name) for host in hosts},
        "decisions": sum(isinstance(each.event, Decision) for each in alpha.entries),
        "halts": json.loads(gamma.command("report", "--json"))["interruptions"],
    }
