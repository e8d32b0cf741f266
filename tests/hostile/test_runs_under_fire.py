"""Whole runs under attack: hostile coding programs beside an honest agent, a person's signals, and what is left."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import EVOGIT, Cli, cli, environment  # noqa: F401
from tests.clock import PATIENCE, wait_until
from tests.conftest import TOML, write_task
from tests.openai_server import Server, reply, serve

from .arsonists import BEGIN, PROGRAMS

pytestmark = pytest.mark.slow

MARK = "EVOGIT_UNDER_FIRE"
"""In the environment of an engine, and of all that it starts itself; what runs in a sandbox ends with that."""


@dataclass
class Fire:
    """A task, a model's endpoint, and settings with hostile programs as agents beside a mutator."""

    cli: Cli
    folder: Path
    server: Server

    def prepare(self, *programs: str) -> list[str]:
        """The options of a run with these programs as agents."""
        toml = (
            TOML.replace('["program.py", "extra/**"]', '["**"]')
            .replace('"60s"', '"2s"')
            .replace('novelty = "tree"\n', "")
        )
        write_task(self.folder / "sine", toml=toml)
        texts = [f'[models.m]\nbase_url = "{self.server.url}"\nkey_env = "KEY"\nprice = {{ input = 0, output = 0 }}\n']
        for number, program in enumerate(programs):
            script = (BEGIN + PROGRAMS[program]).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
            texts.append(
                f'[commands.tool_{number}]\nargv = ["python3", "{{home}}/tool.py"]\nminutes = 0.5\n'
                f'[commands.tool_{number}.files]\n"tool.py" = """{script}"""\n'
            )
        (self.folder / "settings.toml").write_text("\n".join(texts))
        agents = [option for number in range(len(programs)) for option in ("--agent", f"tool_{number}@m")]
        return [*agents, "--agent", "mutator"]

    @property
    def env(self) -> dict[str, str]:
        mark = {MARK: str(self.folder), "EVOGIT_SETTINGS": str(self.folder / "settings.toml"), "KEY": "sk-x"}
        return environment(self.folder, **mark)

    def begin(self, *options: str) -> subprocess.Popen[bytes]:
        """An engine in the background."""
        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("wb") as err:
            command = [EVOGIT, "run", self.folder / "sine", "-C", self.folder / "runs", "--yes", *options]
            return subprocess.Popen(
                command, env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )

    def told(self) -> str:
        """What the engine said until now."""
        return (self.folder / "err").read_text(errors="replace")

    def proposed(self) -> list[str]:
        """The agent of each candidate until now, in their order."""
        return re.findall(r"^\S+  proposed +\w+  (a\d+):", self.told(), re.MULTILINE)

    def children(self) -> list[str]:
        """What is left of an engine: processes with its mark."""
        mark, found = f"{MARK}={self.folder}".encode(), list[str]()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:
                continue
        return found

    def check_what_is_left(self) -> None:
        """The repository is sound, and nothing runs."""
        wait_until(lambda: not self.children(), f"the end of {self.children()}")
        checked = subprocess.run(["git", "-C", self.folder / "runs", "fsck", "--full"], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr

    def check_commands(self) -> None:
        """All commands that look at the run can do so, and say nothing that harms a terminal."""
        texts = [(self.folder / name).read_text(errors="surrogateescape") for name in ("out", "err")]
        best = self.cli("best", "--json", "-C", "runs").json["commit"]
        last = self.cli("log", "--json", "-C", "runs").lines[-1]["commit"]
        looks = [["status"], ["log"], ["show", best], ["show", last], ["diff"], ["diff", best, last], ["report"]]
        looks += [["graph"], ["land", "best", "--preview"], ["export", best, str(self.folder / "exported")]]
        for look in looks:
            done = self.cli(*look, "-C", "runs")
            assert done.code in (0, 1, 2), (look, done.err)
            texts += [done.out, done.err]
        for text in texts:
            assert not re.search(r"^Traceback", text, re.M), text[-3000:]  # an agent's own is shown indented
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text), ascii(text)


@pytest.fixture
def fire(cli: Cli, tmp_path: Path) -> Iterator[Fire]:  # noqa: F811
    with serve([reply("C = 12.0")]) as server:
        yield Fire(cli, tmp_path, server)


GROUPS = {
    "texts": (
        *("digits", "more digits", "long lines", "zeros", "rows of long lines", "markers"),
        *("its git", "ignoring", "much to ignore", "attributes", "instructions", "devices"),
    ),
    "files and talk": (
        *("many files", "very many files", "renames", "file or folder", "twins", "odd names", "deep"),
        *("output", "small output", "tries", "says", "hangs", "gateway"),
    ),
    "python": (
        *("python one_line", "python semicolons", "python finally", "python f_strings", "python file decorators"),
        *("many modules", "many numbers", "python file literal", "python file branches", "python file definitions"),
    ),
}


def stop(fire: Fire, engine: subprocess.Popen[bytes]) -> None:
    done = fire.cli("stop", "-C", "runs")
    assert done.code == 0, done.err
    assert engine.wait(PATIENCE) == 0, fire.told()[-3000:]


def end(*numbers: int) -> Callable[[Fire, subprocess.Popen[bytes]], None]:
    def signals(fire: Fire, engine: subprocess.Popen[bytes]) -> None:
        for number in numbers:
            engine.send_signal(number)
        assert engine.wait(PATIENCE)

    return signals


WAYS = {
    "texts": end(signal.SIGINT, signal.SIGINT),
    "files and talk": stop,
    "python": end(signal.SIGKILL),
}


@pytest.mark.parametrize("group", GROUPS)
def test_honest_agents_go_on_beside_hostile_ones_until_a_person_ends_the_sound_run(fire: Fire, group: str) -> None:
    honest = f"a{len(GROUPS[group]) + 1}"
    engine = fire.begin(*fire.prepare(*GROUPS[group]), "--proposals", "100000", "--seed", "1")

    def burns() -> bool:
        """Four hostile programs have proposed, and the honest agent goes on after the first of them."""
        assert engine.poll() is None, fire.told()[-3000:]
        who = fire.proposed()
        others = [agent for agent in who if agent != honest]
        return len({*others}) >= 4 and who[who.index(others[0]) :].count(honest) > 1

    try:
        wait_until(burns, "candidates of hostile programs, and of the honest agent beside them", every=0.1)
        WAYS[group](fire, engine)
    finally:
        engine.kill()
        engine.wait()
    fire.check_what_is_left()
    fire.check_commands()
