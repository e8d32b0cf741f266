"""An engineer's night in a quarter of an hour: what goes wrong, and what EvoGit says of it in the morning.

Run as root: `python benchmarks/night.py [--scale 40] [--keep FOLDER]`. The clock is scaled: an hour of the endpoint's
takes `3600 / scale` seconds, and so does every time-out and pause of EvoGit's own (`Scaled`); nothing else of it is
changed. The endpoint, the network, the disk (a small tmpfs) and the terminal are real ones, which fail as planned:

1. the ssh session is lost: the terminal of a detached run is closed, with SIGHUP for all that it ran
2. the endpoint is down for an hour: its port is closed
3. a usage limit: for an hour it answers 429 and says when to come again
4. the laptop sleeps for an hour: SIGSTOP for every process of the run, then SIGCONT
5. the disk is full for half an hour
6. the endpoint answers 500 for half an hour
7. somebody commits to the branch from which the run began

Printed is a table with the truth beside what `evogit report` says.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.openai_server import Behaviour, Request, Server, refusal, reply, serve  # noqa: E402
from tests.plain_git import git  # noqa: E402

HOUR = 3600.0
DISK = 96 << 20
"""Bytes of the disk that the repository is on."""
PRICE = {"input": 2.0, "output": 10.0}
"""Dollars for a million tokens."""
LATENCY = (1.0, 2.0, 3.0)
"""Seconds that a reply takes, in turn; they are not scaled."""
CALM = 35.0
"""Seconds between two disasters; they are not scaled either."""
SLACK = 12.0
"""Seconds by which what is told may differ from the truth: a reply that is on its way, and the longest pause."""
LASTED = re.compile(r"\d\d:\d\d:\d\d +\d\d:\d\d:\d\d +(\d+):(\d\d) ")
"""What a row of the report has that says from when to when, and how long."""

PROGRAM = "def value():\n    return {}\n"

EVALUATE = """\
from evogit import Case


def evaluate(program, split):
    yield Case("value", score=float(program.call("app:value", returns=int).value))
"""

TOML = """\
name = "night"
goal = "Return more."
editable = ["app.py"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "python"
file = ".evogit/evaluate.py"
"""

SETTINGS = """\
[models.big]
base_url = "{url}"
key_env = "NIGHT_KEY"
price = {{ input = {input}, output = {output} }}
total = "{total:.3f}s"
"""


# --- the scaled clock ---------------------------------------------------------------------------------------------


def evogit(scale: float) -> None:
    """EvoGit in this process, with its pauses and bounds on time shortened as the night is."""
    from evogit.cli import main
    from evogit.llm import endpoint, replies

    endpoint.Patience.pause /= scale
    endpoint.Patience.connect /= scale
    endpoint.LONGEST_PAUSE /= scale
    endpoint.LONGEST_OUTAGE_PAUSE /= scale
    replies.LONGEST_WAIT /= scale
    sys.argv = ["evogit", *sys.argv[3:]]
    main()


# --- the endpoint -------------------------------------------------------------------------------------------------


class Endpoint:
    """Proposes one value after the other, each better than the last; what it charges is what it sent to its end."""

    def __init__(self) -> None:
        self.asked = 0
        self.answered: list[tuple[int, int]] = []
        """Tokens of prompts and completions."""
        self.begun = 0
        """Replies that it began, whether they came to their end or not."""
        self.sent: list[int] = []
        """The values that were proposed in them."""
        self.refuse: Callable[[], Behaviour] | None = None
        self._serving: contextlib.ExitStack | None = None
        self._server: Server | None = None
        self.port = 0

    def up(self) -> None:
        """Begin to serve, on the same port as before."""
        self._serving = contextlib.ExitStack()
        self._server = self._serving.enter_context(serve([self._reply], port=self.port))
        self.port = int(self._server.url.split(":")[2].split("/")[0])

    def down(self) -> None:
        """Close the port and every connection."""
        assert self._serving
        self._serving.close()
        self._count()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/v1"

    def dollars(self) -> float:
        """What it charges for all that it sent."""
        return sum(prompt * PRICE["input"] + done * PRICE["output"] for prompt, done in self.answered) / 1e6

    def _reply(self, request: Request) -> Behaviour:
        self.asked += 1
        if self.refuse:
            return self.refuse()
        self.begun += 1
        text = PROGRAM.format(self.asked).strip()
        said = f"A larger value is better.\n\nTITLE: Return {self.asked}\n\n<<<<<<< WRITE app.py\n{text}\n>>>>>>> END\n"
        return reply(
            said,
            prompt=3000 + 7 * self.asked,
            completion=400 + 3 * self.asked,
            latency=LATENCY[self.asked % len(LATENCY)],
        )

    def _count(self) -> None:
        assert self._server
        for behaviour in self._server.answered:
            if behaviour.status == 200:
                body = json.loads(behaviour.body)
                usage, text = body["usage"], body["choices"][0]["message"]["content"]
                self.answered.append((usage["prompt_tokens"], usage["completion_tokens"]))
                self.sent.append(int(text.partition("TITLE: Return ")[2].split()[0]))


# --- the night ----------------------------------------------------------------------------------------------------


@dataclass
class Trouble:
    """What happened, in truth: from when to when."""

    what: str
    began: float
    ended: float
    told: re.Pattern[str]
    """What a line of the report has that tells it."""


@dataclass
class Night:
    """One night: a person's repository on a disk of its own, an endpoint, and a run."""

    folder: Path
    scale: float
    endpoint: Endpoint = field(default_factory=Endpoint)
    troubles: list[Trouble] = field(default_factory=list)

    @property
    def clone(self) -> Path:
        """Where the person works."""
        return self.folder / "disk" / "clone"

    def seconds(self, hours: float) -> float:
        """What so many hours take."""
        return hours * HOUR / self.scale

    def prepare(self) -> None:
        """A small disk with a repository on it, and settings of the endpoint's."""
        disk = self.folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(disk)], check=True)
        self.endpoint.up()
        files = {
            "disk/clone/app.py": PROGRAM.format(0),
            "disk/clone/evogit.toml": TOML,
            "disk/clone/.evogit/evaluate.py": EVALUATE,
            "settings.toml": SETTINGS.format(url=self.endpoint.url, **PRICE, total=600 / self.scale),
        }
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        git(self.clone, "init", "-q", "-b", "main")
        git(self.clone, "config", "user.name", "Ada")
        git(self.clone, "config", "user.email", "ada@example.org")
        git(self.clone, "add", "-A")
        git(self.clone, "commit", "-qm", "as it was")

    @property
    def environment(self) -> dict[str, str]:
        """What a person's shell has."""
        own = {"HOME": str(self.folder), "PYTHONPATH": str(ROOT), "EVOGIT_SETTINGS": str(self.folder / "settings.toml")}
        return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm", "NIGHT_KEY": "sk-night-0123456", **own}

    def command(self, *arguments: str) -> list[str]:
        """EvoGit with a scaled clock."""
        return [sys.executable, __file__, "--as-evogit", f"{self.scale:g}", *arguments]

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run EvoGit to its end."""
        return subprocess.run(
            self.command(*arguments), cwd=self.clone, env=self.environment, capture_output=True, text=True, check=False
        )

    @contextlib.contextmanager
    def trouble(self, what: str, told: str) -> Iterator[None]:
        """Have something go wrong, then let the run breathe."""
        began = time.time()
        say(f"{what} ...")
        try:
            yield
        finally:
            self.troubles.append(Trouble(what, began, time.time(), re.compile(told)))
            say(f"{what}: over after {time.time() - began:.0f} s")
        time.sleep(CALM)

    # --- what goes wrong ---

    def begin_over_ssh(self) -> int:
        """Start a detached run on a terminal, then lose the terminal; the engine's process."""
        ours, theirs = pty.openpty()
        words = self.command("run", "--model", "big", "--agents", "2", "--detach", "--yes", "--minutes", "60")
        words += ["--dollars", "20", "--sandbox", "bubblewrap", "--json"]
        shell = subprocess.Popen(
            ["bash", "-ic", f"{' '.join(words)} > {self.folder}/said; sleep 999"],
            cwd=self.clone,
            env=self.environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        drain = threading.Thread(target=_drain, args=(ours,), daemon=True)
        drain.start()
        while not (said := (self.folder / "said")).exists() or not said.read_text().endswith("\n"):
            time.sleep(0.1)
            assert shell.poll() is None, "the run did not begin"
        engine = int(json.loads(said.read_text())["pid"])
        time.sleep(CALM)
        with self.trouble("the ssh session is lost", r"in the background"):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGHUP)
            shell.wait()
            os.close(ours)
        return engine

    def endpoint_down(self) -> None:
        """Nothing listens for an hour."""
        with self.trouble("the endpoint is down", r"big did not answer.*connection"):
            self.endpoint.down()
            time.sleep(self.seconds(1))
            self.endpoint.up()

    def usage_limit(self) -> None:
        """The endpoint says when to come again."""
        until = time.time() + self.seconds(1)

        def refuse() -> Behaviour:
            left = max(until - time.time(), 0.0)
            said = "usage limit reached; it resets in {:.0f} minutes"
            return refusal(429, said.format(left * self.scale / 60), retry_after=f"{left:.2f}")

        with self.trouble("a usage limit", r"big did not answer.*429.*usage limit"):
            self.endpoint.refuse = refuse
            time.sleep(self.seconds(1))
            self.endpoint.refuse = None

    def out_of_order(self) -> None:
        """The endpoint answers, but only that it cannot."""
        with self.trouble("the endpoint answers 500", r"big did not answer.*500"):
            self.endpoint.refuse = lambda: refusal(500, "internal error")
            time.sleep(self.seconds(0.5))
            self.endpoint.refuse = None

    def sleep(self, engine: int) -> None:
        """Every process of the run stands still for an hour."""
        with self.trouble("the laptop sleeps", r"the machine slept"):
            for number, wait in ((signal.SIGSTOP, self.seconds(1)), (signal.SIGCONT, 0.0)):
                for process in family(engine):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, number)
                time.sleep(wait)

    def full_disk(self) -> None:
        """Something else takes all of the disk, and lets go of it half an hour later."""
        hog = self.folder / "disk" / "hog"
        with self.trouble("the disk is full", r"the disk was full"):
            until = time.time() + self.seconds(0.5)
            with hog.open("wb", buffering=0) as file:
                while time.time() < until:
                    with contextlib.suppress(OSError):
                        while file.write(bytes(4096)):
                            pass
                    time.sleep(0.2)
            hog.unlink()

    def moved_main(self) -> None:
        """Somebody commits to the branch that the run began from."""
        with self.trouble("main moves on", r"main has 1 commit more"):
            (self.clone / "README.md").write_text("Returns a value.\n")
            git(self.clone, "add", "README.md")
            git(self.clone, "commit", "-qm", "Say what it does")

    def pass_by(self) -> None:
        """All of it, one after the other."""
        engine = self.begin_over_ssh()
        self.endpoint_down()
        self.usage_limit()
        self.sleep(engine)
        self.full_disk()
        self.out_of_order()
        self.moved_main()


def family(engine: int) -> list[int]:
    """A process and all below it, children last."""
    parents: dict[int, int] = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(each.parent.name)] = int(each.read_text().rpartition(")")[2].split()[1])
    found = [engine]
    for process in found:
        found += [each for each, parent in parents.items() if parent == process]
    return found


def _drain(terminal: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(terminal, 4096):
            pass


def say(text: str) -> None:
    """Tell whoever waits."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


# --- the morning --------------------------------------------------------------------------------------------------


def clock(when: float) -> str:
    """The time of day."""
    return time.strftime("%H:%M:%S", time.localtime(when))


def _is_told(lines: list[str], trouble: Trouble) -> bool:
    """Whether the report has it, and as long as it took."""
    told = sum(60 * int(minutes) + int(rest) for line in lines for minutes, rest in LASTED.findall(line))
    return bool(lines) and abs(told - (trouble.ended - trouble.began)) <= SLACK


@dataclass
class Morning:
    """What a person finds, against the truth."""

    night: Night
    rows: list[tuple[str, str, str, bool]] = field(default_factory=list)

    def look(self) -> None:
        """End the run, and compare."""
        night = self.night
        stopped = night.call("stop")
        night.endpoint.down()
        self.report = night.call("report")
        self.record = json.loads(night.call("report", "--json").stdout)
        told = self.report.stdout.splitlines()
        for trouble in night.troubles:
            lines = [line.strip() for line in told if trouble.told.search(line)]
            truth = f"{clock(trouble.began)} to {clock(trouble.ended)}"
            self.rows.append((trouble.what, truth, " / ".join(lines) or "nothing", _is_told(lines, trouble)))
        self._add("the run in the morning", "at work until `evogit stop`", self._how_it_ended(stopped.returncode))
        self._lost()
        self._bill()
        self._land()

    def _add(self, what: str, truth: str, told: tuple[str, bool]) -> None:
        self.rows.append((what, truth, *told))

    def _how_it_ended(self, code: int) -> tuple[str, bool]:
        because = self.record["stopped_because"]
        return f"stop ended with {code}; stopped because: {because}", (code, because) == (0, "asked")

    def _lost(self) -> None:
        sent = set(self.night.endpoint.sent)
        log = self.night.call("log", "--json", "--all").stdout
        texts = git(self.night.clone, "log", "--format=%s", "--glob=refs/evogit/night/keep/*")
        known = {int(found) for found in re.findall(r"Return (\d+)", texts + log)}
        missing = sorted(sent - known)
        self._add("replies that were paid", f"{len(sent)} sent", (f"{len(sent & known)} are candidates", not missing))
        if missing:
            say(f"not found: {missing}")
        charged, failed = self.record["charged"], self.record["failed_proposals"]
        said = f"{charged} count against --proposals; {failed} failed"
        self._add("proposals burnt", f"{len(self.night.endpoint.sent)} replies", (said, charged <= len(sent)))
        fsck = subprocess.run(
            ["git", "fsck", "--strict", "--no-dangling"], cwd=self.night.clone, capture_output=True, check=False
        ).returncode
        doctor = self.night.call("doctor").returncode
        self._add("the repository", "whole", (f"git fsck: {fsck}, doctor: {doctor}", not fsck and not doctor))

    def _bill(self) -> None:
        truth = self.night.endpoint
        spent = self.record["spending"]
        counted = spent["dollars"] - spent["broken_dollars"]
        same = abs(counted - truth.dollars()) < 1e-9
        self._add("the bill", f"${truth.dollars():.6f}", (f"${counted:.6f} for replies", same))
        broken, cut = spent["broken"], truth.begun - len(truth.sent)
        said = f"{broken} calls broke off, ${spent['broken_dollars']:.2f} at most"
        self._add("replies cut by the outage", f"{cut}, not billed", (said, broken == cut))

    def _land(self) -> None:
        landed = self.night.call("land", "best", "--squash", "--yes", "--json")
        best = max(self.night.endpoint.sent)
        if landed.returncode:
            say(landed.stderr)
            self._add("landed on the moved main", f"{best}", (f"land ended with {landed.returncode}", False))
            return
        for command in json.loads(landed.stdout)["commands"]:
            subprocess.run(command, shell=True, cwd=self.night.clone, capture_output=True, check=True)
        text = (self.night.clone / "app.py").read_text()
        kept = (self.night.clone / "README.md").exists()
        said = f"app.py returns {text.split()[-1]}, README.md is {'there' if kept else 'gone'}"
        whole = kept and text.strip() == PROGRAM.format(best).strip()
        self._add("landed on the moved main", f"the best reply: {best}", (said, whole))

    def table(self) -> str:
        """All rows."""
        width = [max(len(row[at]) for row in self.rows) for at in range(2)]
        lines = [f"{'':4}{'what':<{width[0]}}  {'truth':<{width[1]}}  EvoGit says"]
        for what, truth, told, good in self.rows:
            lines.append(f"{'ok' if good else 'BAD':<4}{what:<{width[0]}}  {truth:<{width[1]}}  {told}")
        return "\n".join(lines)


def main() -> None:
    """Pass a night, and print what came of it."""
    if sys.argv[1:2] == ["--as-evogit"]:
        evogit(float(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=40.0, help="how much faster time passes (default: 40)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what the report and the log said there")
    asked = parser.parse_args()
    if "NIGHT_UNSHARED" not in os.environ:  # so that nobody else sees the small disk, and it goes with us
        os.environ["NIGHT_UNSHARED"] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    began = time.time()
    with tempfile.TemporaryDirectory(prefix="night-") as name:
        night = Night(Path(name), asked.scale)
        night.prepare()
        morning = Morning(night)
        try:
            night.pass_by()
            morning.look()
        finally:
            if asked.keep:
                asked.keep.mkdir(parents=True, exist_ok=True)
                for file in night.clone.glob(".git/evogit/logs/*"):
                    shutil.copy(file, asked.keep)
            subprocess.run(["umount", "-l", str(night.folder / "disk")], check=False)
        if asked.keep:
            (asked.keep / "report.txt").write_text(morning.report.stdout)
    print(f"a night of {(time.time() - began) * asked.scale / HOUR:.1f} h in {(time.time() - began) / 60:.1f} min\n")
    print(morning.table())
    sys.exit(0 if all(row[3] for row in morning.rows) else 1)


if __name__ == "__main__":
    main()
