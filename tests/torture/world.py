"""A run in a world that falls apart: real engines, workers behind shells, sandboxes, and an endpoint that counts."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import evogit.llm.endpoint  # noqa: F401  imported once, for all engines that are forked from here
from evogit.engine.account import LOST
from evogit.events import Entry, Evaluated, Event, Spent
from evogit.history import History
from evogit.repository import Journal, Repository
from evogit.sandbox import cgroups
from tests.cli.conftest import EVOGIT, Forked, environment
from tests.clock import PATIENCE, wait_until
from tests.conftest import EVALUATE, PROGRAM, write_task
from tests.openai_server import Behaviour, Request, Server, reply
from tests.sandbox.own_daemon import OwnDaemon

TRANSPORT = f"sh -c {shlex.quote(f'{shlex.quote(str(EVOGIT))} worker; exit $?')}"
"""A shell that stays, as ssh would, with a worker below it."""

SECONDS = 0.2  # of an evaluation

KINDS = {"worker": "/evogit\0worker\0", "transport": "sh\0-c\0", "evaluator": "evaluator_main", "sandbox": "bwrap\0"}
"""What may be killed beside the engine and Docker, by what its command line has."""

DAEMON = "dockerd"  # what may be killed of Docker; it is started again

SETTINGS = """\
[models.m]
base_url = "{url}"
key_env = "KEY"
price = {{ input = 2.0, output = 10.0 }}
pause = "10ms"
"""

ENDLESS = ("--evaluations", "1000000")


class World:
    """One run of a task in a folder; whatever its processes leave is there, or has their names."""

    def __init__(self, folder: Path, *options: str, daemon: OwnDaemon | None = None) -> None:
        self.folder = folder
        self.repository = folder / "runs"
        self.daemon = daemon
        self.server = Server()
        self._options = options
        self._asked = 0
        self._engines: list[subprocess.Popen[str]] = []
        self._entries: list[Entry] = []
        self._journal: Journal | None = None
        self._seen = set[int]()
        for name in ("tmp", "cache"):
            (folder / name).mkdir(parents=True)
        slow = EVALUATE.replace("    for x", f"    time.sleep({SECONDS} * (split == 'train'))\n    for x")
        write_task(folder / "tiny", evaluate=slow)

    def propose(self, request: Request) -> Behaviour:
        """Another program each time; no two replies have as many tokens."""
        self._asked += 1
        text = PROGRAM.replace("1.0", f"{self._asked}.5")
        said = f"TITLE: Try {self._asked}\n\n<<<<<<< WRITE program.py\n{text}\n>>>>>>> END\n"
        return reply(said, prompt=1000 + self._asked, completion=200 + self._asked, latency=0.1)

    # --- engines --------------------------------------------------------------------------------------------------

    @property
    def env(self) -> dict[str, str]:
        """Of everything that belongs to this world."""
        settings = self.folder / "settings.toml"
        settings.write_text(SETTINGS.format(url=self.server.url))
        own = {"TMPDIR": str(self.folder / "tmp"), "XDG_CACHE_HOME": str(self.folder / "cache")}
        if self.daemon:
            own["DOCKER_HOST"] = f"unix://{self.daemon.socket}"
        return environment(self.folder, EVOGIT_SETTINGS=str(settings), KEY="sk-x", **own)

    def begin(self, *options: str, **env: str) -> subprocess.Popen[str]:
        """Start an engine; one with an environment of its own as a new interpreter."""
        command = ["run", "tiny", "-C", str(self.repository), "--yes", *self._options, *options]
        with (self.folder / "said").open("w") as said:
            if env:
                env = {**self.env, **env}
                engine = subprocess.Popen([EVOGIT, *command], cwd=self.folder, env=env, stderr=said, text=True)
            else:
                engine = Forked(command, cwd=self.folder, env=self.env, stderr=said)
        self._engines.append(engine)
        return engine

    def end(self) -> None:
        """Kill what is left when a test failed."""
        for engine in self._engines:
            engine.kill()
            engine.wait()
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def said(self) -> str:
        """What the latest engine said."""
        return (self.folder / "said").read_text()[-3000:]

    def call(self, *arguments: str) -> tuple[int, str]:
        """Run a command to its end; its exit code and what it printed."""
        child = Forked(
            [*arguments, "-C", str(self.repository)],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        out, _ = child.communicate(timeout=PATIENCE)
        return child.returncode, out

    # --- what the journal has -------------------------------------------------------------------------------------

    def events(self) -> list[Event]:
        """All that was journalled, as somebody sees it who looks on."""
        if self._journal:
            self._journal.refresh()
        elif (self.repository / ".git" / "evogit" / "created").exists():
            self._journal = Repository.open(self.repository).journal("tiny", self._entries.append)
        return [entry.event for entry in self._entries]

    def evaluated(self) -> int:
        """Evaluations that count."""
        return sum(isinstance(event, Evaluated) and event.evaluation.counts for event in self.events())

    def work(self, engine: subprocess.Popen[str], evaluations: int = 2) -> None:
        """Wait until so many more are evaluated, by an engine that does not end."""
        seen = self.evaluated()
        wait_until(lambda: self.evaluated() >= seen + evaluations or engine.poll() is not None, "an evaluation")
        assert engine.poll() is None, self.said()

    # --- killing --------------------------------------------------------------------------------------------------

    def processes(self) -> dict[int, str]:
        """All that belong to this world but the engine, with their command lines."""
        mark, found = f"TMPDIR={self.folder}/tmp\0".encode(), dict[int, str]()
        for process in sorted(map(int, filter(str.isdigit, os.listdir("/proc")))):  # noqa: PTH208  parents first, mostly
            with suppress(OSError):
                told = Path(f"/proc/{process}")
                parent = int((told / "stat").read_text().rpartition(")")[2].split()[1])
                if parent in found or mark in (told / "environ").read_bytes():
                    found[process] = (told / "cmdline").read_bytes().decode(errors="replace")
        self._seen |= found.keys()
        return found

    def storm(self, kills: int, kinds: Sequence[str], rng: random.Random) -> Counter[str]:
        """An engine that has so many processes killed, each soon after something was evaluated; how many of each kind.

        One that is killed, or ends, is followed by another one, and the last one is killed.
        """
        engine, done = self.begin(*ENDLESS), Counter[str]()
        while done.total() < kills:
            seen = self.evaluated()
            wait_until(lambda: self.evaluated() > seen or engine.poll() is not None, self.said())  # noqa: B023
            time.sleep(rng.uniform(0, 2 * SECONDS))
            kind = rng.choice(kinds)
            if kind == DAEMON and self.daemon:
                self.daemon.end(rng.choice((signal.SIGKILL, signal.SIGTERM)))
                time.sleep(rng.uniform(0, 2))
                self.daemon.start()
                done[kind] += 1
            elif engine.poll() is None and (found := [engine.pid] if kind == "engine" else self._living(kind)):
                with suppress(ProcessLookupError):
                    os.kill(rng.choice(found), signal.SIGKILL)
                    done[kind] += 1
            if kind == "engine" or engine.poll() is not None:
                engine.wait()
                engine = self.begin(*ENDLESS)
        engine.kill()
        engine.wait()
        return done

    def _living(self, kind: str) -> list[int]:
        """The processes of a kind."""
        living = self.processes()
        return [each for each in living if KINDS[kind] in living[each]]

    # --- afterwards -----------------------------------------------------------------------------------------------

    def finish(self, more: int = 4) -> History:
        """Have another engine do some more, and check that nothing is lost, counted twice, damaged or left behind."""
        before = self.events()
        for left in (self.folder / "tmp").iterdir():
            os.utime(left, (0, 0))  # it is old enough to be nobody's
        engine = self.begin("--evaluations", str(len(_counted(before)) + more))
        assert engine.wait(PATIENCE) == 0, self.said()
        return self.check(before)

    def check(self, before: Sequence[Event]) -> History:
        """Nothing that was journalled before is lost, nothing is counted twice, damaged or left behind."""
        history, events = self._afresh()
        assert events[: len(before)] == list(before), "what was journalled stays"
        times = Counter(_counted(events))
        assert set(times.values()) == {1}, "each once"
        assert not history.pending
        self._check_money(history, events)
        git = ["git", "-C", str(self.repository), "fsck", "--strict", "--no-dangling"]
        fsck = subprocess.run(git, capture_output=True, text=True)
        assert (fsck.returncode, fsck.stdout + fsck.stderr) == (0, "")
        code, said = self.call("doctor", "runs")
        assert code == 0, said
        wait_until(lambda: not self.processes(), f"the end of {self.processes()}")
        assert not list((self.folder / "tmp").iterdir())
        assert not list((self.repository / ".git").rglob("*.lock"))
        wait_until(lambda: not self._groups(), f"the end of {self._groups()}")
        return history

    def _afresh(self) -> tuple[History, list[Event]]:
        """What the journal adds up to for one who reads it now."""
        history, entries = History("tiny"), list[Entry]()
        Repository.open(self.repository).journal("tiny", entries.append)
        for entry in entries:
            history.apply(entry)
        return history, [entry.event for entry in entries]

    def _check_money(self, history: History, events: Sequence[Event]) -> None:
        """Each reply is charged once, as the endpoint counts it, or at most once what its engine had set aside."""
        spent = [event for event in events if isinstance(event, Spent)]
        lost = [event for event in spent if event.failure == LOST]
        known = Counter((event.prompt, event.completion) for event in spent if event not in lost)
        usages = [json.loads(behaviour.body)["usage"] for behaviour in self.server.answered]
        sent = Counter((usage["prompt_tokens"], usage["completion_tokens"]) for usage in usages)
        assert known <= sent
        assert (sent - known).total() <= len(lost)
        assert not history.reserved
        billed = sum(prompt * 2 + completion * 10 for prompt, completion in known)
        assert history.spent.picodollars - sum(round(1e12 * (event.dollars or 0)) for event in lost) == billed * 10**6
        dearest = max((prompt * 2 + completion * 10 for prompt, completion in sent), default=0)
        assert all((event.dollars or 0) * 1e6 >= dearest for event in lost)

    def _groups(self) -> list[Path]:
        """Control groups of processes that were of this world; a number may be another process's by now."""
        cgroups.groups()  # whoever asks sweeps away what the killed left
        ended = {str(process) for process in self._seen if not Path(f"/proc/{process}").exists()}
        found = [group for group in cgroups.ROOT.glob("*/evogit-*-*")] + list(cgroups.ROOT.glob("evogit-*-*"))
        return [group for group in found if group.name.split("-")[1] in ended]


def _counted(events: Sequence[Event]) -> list[tuple[str, str, int]]:
    """What was evaluated, in the order of the journal."""
    return [
        (event.candidate, event.evaluation.split, event.evaluation.repeat)
        for event in events
        if isinstance(event, Evaluated) and event.evaluation.counts
    ]
