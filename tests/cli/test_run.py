"""`evogit run` and `evogit demo` from end to end: real engines, sandboxes, signals and a real terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from evogit.cli.watch import STOPPING
from evogit.repository import Repository
from evogit.review import open_run
from tests.clock import PATIENCE
from tests.conftest import write_task
from tests.plain_git import git

from .conftest import EVOGIT, Cli, Forked, Small, Story, environment


@pytest.fixture
def task(cli: Cli, tmp_path: Path) -> Path:
    """A new task, as `evogit new` writes it."""
    cli("new", "sine")
    return tmp_path / "sine"


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """An engine in the background."""
    return subprocess.Popen(
        [EVOGIT, *arguments],
        cwd=cwd,
        env=environment(cwd),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(engine: subprocess.Popen[str], event: str, number: int) -> None:
    """Read its progress until that many events were told."""
    wait_for_lines(engine, rf"  {event}\b", number)


def wait_for_lines(engine: subprocess.Popen[str], words: str, number: int = 1) -> None:
    """Read what it says until that many lines had what a regular expression describes."""
    assert engine.stderr
    seen = 0
    for line in engine.stderr:
        seen += bool(re.search(words, line))
        if seen == number:
            return
    raise AssertionError("it ended before")


@pytest.mark.slow
def test_run_reaches_its_budget_and_goes_on_where_it_stopped(script: Cli, cli: Cli, task: Path, tmp_path: Path) -> None:
    first = script("run", "sine", "--evaluations", "6", "--json")
    assert (first.code, first.json["evaluated"], first.json["stopped_because"]) == (0, 6, "evaluations")
    assert first.json["seed"]["holdout"].keys() == {"worst_error"}
    assert len(re.findall(r"^\d\d:\d\d:\d\d  evaluated ", first.err, re.MULTILINE)) >= 6
    folder = tmp_path / "evogit-sine"
    again = script("run", task, "--evaluations", "9", cwd=folder)
    assert again.code == 0
    assert "9 evaluated" in again.out
    assert "evogit graph" in again.out
    assert len(cli("log", "--json", cwd=folder).lines) == 9
    assert "`run FOLDER` or --task FOLDER" in cli("run", "--evaluations", "9", cwd=folder).err
    assert script("run", task, "--name", "two", "--evaluations", "2", cwd=folder).code == 0
    assert cli("status", "--name", "two", "--json", cwd=folder).json["evaluated"] == 2
    assert not (folder / "evogit-sine").exists()
    assert sorted(path.name for path in tmp_path.glob("[!.]*")) == ["evogit-sine", "sine"]


def test_without_a_terminal_a_run_needs_a_limit(cli: Cli, task: Path, tmp_path: Path) -> None:
    done = cli("run", "sine")
    assert done.code == 2
    assert {"--evaluations", "--calls", "--dollars", "--minutes"} <= set(done.err.replace(",", "").split())
    assert cli("run", "sine", "--evaluations", "0").code == 2
    assert not (tmp_path / "evogit-sine").exists()


@pytest.mark.slow
def test_a_changed_task_is_refused_with_the_ways_on(cli: Cli, task: Path) -> None:
    cli("run", "sine", "--evaluations", "1")
    evaluator = task / "evaluator" / "evaluate.py"
    evaluator.write_text(evaluator.read_text() + "\n# changed\n")
    done = cli("run", "sine", "--evaluations", "2")
    assert done.code == 4
    assert "--name" in done.err
    assert "(evaluator/evaluate.py)" in done.err
    assert cli("rescore", "sine").code == 4
    looked = cli("rescore", "sine", "--dry-run", "--json")
    assert (looked.code, looked.json["candidates"][0]["now"]) == (0, None)
    done = cli("rescore", "sine", "--yes", "--json")
    assert (done.code, done.json["candidates"][0]["now"]["status"]) == (0, "ok")
    assert "nothing changed" in cli("rescore", "sine").err
    assert cli("run", "sine", "--evaluations", "2", "--json").json["evaluated"] == 2


@pytest.mark.slow
def test_run_without_a_task_takes_the_repositorys_own(cli: Cli, task: Path) -> None:
    (task / "task.toml").rename(task / "evogit.toml")
    config = task / "evogit.toml"
    config.write_text(config.read_text().replace('["solution.py"]', '["seed/solution.py"]'))
    evaluator = task / "evaluator" / "evaluate.py"
    evaluator.write_text(evaluator.read_text().replace("solution:sines", "seed.solution:sines"))
    git = ["git", "-C", str(task), "-c", "user.name=x", "-c", "user.email=x@x.invalid"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "mine"]):
        subprocess.run([*git, *command], check=True)
    done = cli("run", "--evaluations", "3", "--json", cwd=task)
    assert done.json["evaluated"] == 3
    assert done.json["agents"][0]["ref"] == "refs/evogit/sine/agents/a1"
    assert not subprocess.run([*git, "status", "--porcelain"], capture_output=True, check=True).stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_cleanly_and_the_run_goes_on(cli: Cli, task: Path, tmp_path: Path, number: int) -> None:
    engine = start("run", "sine", "--evaluations", "9000", "--json", cwd=tmp_path)
    wait_for(engine, "evaluated", 8)
    engine.send_signal(number)
    out, err = engine.communicate(timeout=PATIENCE)
    assert engine.returncode == 130, err
    assert '"stopped_because": "interrupted"' in out
    before = cli("-C", "evogit-sine", "log", "--json").lines
    assert 8 <= len(before) < 9000
    more = len(before) + 8
    done = cli("run", "sine", "--evaluations", str(more), "--json").json
    assert (done["evaluated"], done["stopped_because"]) == (more, "evaluations")
    after = {line["commit"]: line["metrics"] for line in cli("-C", "evogit-sine", "log", "--json").lines}
    assert all(after[line["commit"]] == line["metrics"] for line in before)


HOLD = """

evaluate_now = evaluate


def evaluate(program, split):
    import time
    from pathlib import Path

    while program.run(["cat", "solution.py"]).stdout != Path({seed!r}).read_text() and Path({held!r}).exists():
        time.sleep(0.05)
    yield from evaluate_now(program, split)
"""
"""What makes an evaluator hold up all but the seed."""


@pytest.mark.slow
def test_a_second_interrupt_ends_it_at_once_and_nothing_is_lost(cli: Cli, task: Path, tmp_path: Path) -> None:
    held, evaluator = tmp_path / "held", task / "evaluator" / "evaluate.py"
    evaluator.write_text(evaluator.read_text() + HOLD.format(seed=str(task / "seed" / "solution.py"), held=str(held)))
    held.touch()
    engine = start("run", "sine", "--evaluations", "40", cwd=tmp_path)
    wait_for(engine, "proposed", 3)  # the seed is one
    engine.send_signal(signal.SIGINT)
    wait_for_lines(engine, re.escape(STOPPING))
    engine.send_signal(signal.SIGINT)
    out, err = engine.communicate(timeout=PATIENCE)
    assert (engine.returncode, out) == (130, ""), err
    left = cli("-C", "evogit-sine", "status", "--json").json
    assert (left["evaluated"], left["stopped_because"]) == (1, None)  # it waited for nothing
    assert left["pending"] >= 2
    held.unlink()
    assert cli("run", "sine", "--evaluations", "2", "--json").json["evaluated"] == 1 + left["pending"]


@pytest.mark.slow
def test_a_closed_terminal_hangs_up_twice_and_is_a_clean_stop(cli: Cli, task: Path, tmp_path: Path) -> None:
    engine = start("run", "sine", "--evaluations", "9000", cwd=tmp_path)
    wait_for(engine, "evaluated", 8)
    engine.send_signal(signal.SIGHUP)  # the kernel tells the foreground group
    wait_for_lines(engine, re.escape(STOPPING))
    engine.send_signal(signal.SIGHUP)  # the shell its jobs
    _, err = engine.communicate(timeout=PATIENCE)
    assert engine.returncode == 130, err
    assert cli("-C", "evogit-sine", "status", "--json").json["stopped_because"] == "interrupted"


@pytest.mark.slow
def test_a_second_engine_is_refused_until_it_joins(cli: Cli, task: Path, tmp_path: Path) -> None:
    seed = task / "seed" / "solution.py"
    seed.write_text(seed.read_text() + "\n\nimport time\ntime.sleep(0.2)\n")  # or the first does all there is to do
    command = ("run", "sine", "--agents", "4", "--minutes", "1")
    engine = Forked(command, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE)
    wait_for(engine, "evaluated", 2)
    try:
        refused = cli("run", "sine", "--evaluations", "50")
        more = cli("-C", "evogit-sine", "status", "--json").json["evaluated"] + 16
        joined = cli("run", "sine", "--evaluations", str(more), "--join", "--agents", "2", "--json")
        watched = cli("-C", "evogit-sine", "status")
    finally:
        engine.send_signal(signal.SIGINT)
        engine.communicate(timeout=PATIENCE)
    assert refused.code == 4
    assert "--join" in refused.err
    assert joined.code == 0
    assert {"a1", "a5", "a6"} <= {agent["name"] for agent in joined.json["agents"]}
    assert "running: 1 engine" in watched.out


class Screen:
    """A command on a terminal, and everything that it wrote there."""

    def __init__(self, *arguments: str | Path, cwd: Path, size: tuple[int, int] = (24, 80), **env: str) -> None:
        """Start it, in a fork of this process."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.process = Forked(
            arguments,
            cwd=cwd,
            env=environment(cwd, TERM="xterm-256color", **env),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._ours = ours
        self.text = ""

    def _read(self) -> Iterator[str]:
        while True:
            try:
                yield os.read(self._ours, 65536).decode(errors="replace")
            except OSError:  # its end is closed
                return

    def until(self, words: str) -> None:
        """Read until these words were written."""
        for text in self._read():
            self.text += text
            if words in self.text:
                return
        raise AssertionError(f"never saw {words!r} in:\n{self.text}")

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def interrupt(self) -> None:
        """Ctrl-C, and again: one that comes between a question and the wait for its answer is heard with the next."""
        while self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=2)

    def end(self) -> int:
        """Read the rest; the exit code."""
        self.text += "".join(self._read())
        os.close(self._ours)
        return self.process.wait(timeout=PATIENCE)


@pytest.mark.slow
def test_on_a_terminal_a_run_is_drawn_in_place_and_cleared(task: Path, tmp_path: Path) -> None:
    screen = Screen("run", "sine", "--evaluations", "8", cwd=tmp_path)
    screen.until("of 8 evaluations")
    assert screen.end() == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.text)
    assert "8 of 8" in plain or "evaluating" in plain
    assert " evaluated  " not in plain  # no line per event here
    assert max(len(line.rstrip()) for line in re.split(r"[\r\n]+", plain)) <= 80
    assert screen.text.count("\x1b[?25l") == screen.text.count("\x1b[?25h")  # the cursor is back


def test_a_decision_asks_on_a_terminal(cli: Cli, small: Small, tmp_path: Path) -> None:
    for answer, code, decided in (("n\n", 4, 0), ("y\n", 0, 1)):
        screen = Screen("-C", "repo", "prune", small.dead, "-m", "no", cwd=tmp_path)
        screen.until("Apply this?")
        screen.press(answer)
        assert screen.end() == code
        assert len(cli("-C", "repo", "log", "--decisions", "--json").lines) == decided


@pytest.mark.slow
def test_long_output_is_paged_on_a_terminal_and_short_output_is_not(tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    seed = story.add(1.0)
    for _ in range(29):
        story.add(0.5, seed)
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\nwc -l >paged\n")
    pager.chmod(0o755)
    assert Screen("-C", "repo", "log", "-n", "5", cwd=tmp_path, GIT_PAGER="./pager").end() == 0
    assert not (tmp_path / "paged").exists()
    assert Screen("-C", "repo", "log", cwd=tmp_path, GIT_PAGER="./pager").end() == 0
    assert (tmp_path / "paged").read_text().strip() == "30"


@pytest.mark.slow
def test_the_demo_works_twice_and_ends_with_everything_promised(cli: Cli, tmp_path: Path) -> None:
    engine = start("demo", "--minutes", "60", cwd=tmp_path)
    wait_for(engine, "evaluated .* ← best", 2)  # the seed is one
    engine.send_signal(signal.SIGINT)
    out, err = engine.communicate(timeout=PATIENCE)
    assert engine.returncode == 130, err
    for part in ("demo", "sum_radii", "holdout", "of the gap", "candidates", "diff seed best", "export best DIR"):
        assert part in out
    again = cli("demo", "--minutes", "0.02")
    assert (again.code, "demo-2" in again.out) == (0, True), again.err
    assert cli("-C", "evogit-demo", "graph", "--name", "demo-2").code == 0
    found = cli("-C", "evogit-demo", "status", "--name", "demo", "--json").json
    assert found["gap_closed"] > 0


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("", "no selector ''; available:\n  elitist"),
        ("weighted:\x1b[31m=3", "no option '\\x1b[31m'"),
        ("map-elites:worst=0..1/5", 'did you mean "worst_error"?'),
    ],
)
def test_a_wrong_selector_is_refused_before_anything_is_made(
    cli: Cli, task: Path, tmp_path: Path, selector: str, said: str
) -> None:
    refused = cli("run", "sine", "--evaluations", "3", "--selector", selector)
    assert refused.code == 2
    assert said in refused.err
    assert "\x1b" not in refused.err
    assert not (tmp_path / "evogit-sine").exists()


@pytest.mark.slow
def test_a_run_goes_on_with_the_selector_of_its_last_start(cli: Cli, task: Path, tmp_path: Path) -> None:
    mine = "from evogit.selection.weighted import Weighted\nclass Mine(Weighted): pass\n"
    (tmp_path / "mine.py").write_text(mine)
    assert cli("run", "sine", "--evaluations", "1", "--selector", "mine.py:Mine").code == 0
    assert cli("run", "sine", "--evaluations", "2", "--json").json["settings"]["selector"] == f"{tmp_path}/mine.py:Mine"
    folder = ("-C", "evogit-sine")
    assert "mine.py:Mine" in cli(*folder, "status").out
    assert "mine.py:Mine" in cli(*folder, "report").out
    (tmp_path / "mine.py").unlink()
    gone = cli("run", "sine", "--evaluations", "3")
    assert "the run's last start had this selector; name another with --selector" in gone.err
    back = cli("run", "sine", "--evaluations", "3", "--selector", "elitist", "--json")
    assert back.json["settings"]["selector"] == "elitist"
    assert "mine.py" not in cli(*folder, "status").out


@pytest.mark.slow
def test_a_replay_makes_the_same_candidates_without_the_model(cli: Cli, tmp_path: Path) -> None:
    cli("new", "sine")
    replies = tmp_path / "replies.txt"
    replies.write_text("".join(f"%%\nTITLE: t\n<<<<<<< WRITE program.py\nN = {n}\n>>>>>>> END\n" for n in range(4)))
    command = ["run", "sine", "--model", f"script:{replies}", "--agents", "2", "--deterministic", "--proposals", "5"]
    assert cli(*command, "-C", "recorded", "--record", "recording").code == 0
    replies.unlink()
    replayed = cli(*command, "-C", "replayed", "--replay", "recording")
    assert replayed.code == 0, replayed.err
    assert heads(tmp_path / "recorded") == heads(tmp_path / "replayed") != ""


def heads(place: Path) -> str:
    command = ["git", "-C", str(place), "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_a_fork_goes_on_in_its_own_way_and_repeats(cli: Cli, tmp_path: Path) -> None:
    task, path = write_task(tmp_path / "tiny"), tmp_path / "r"
    run = ("-C", path, "run", task, "--deterministic", "--sandbox", "none", "--agents", "2", "-j", "1")
    assert cli(*run, "--name", "old", "--evaluations", "10").code == 0
    before = git(path, "for-each-ref", "refs/evogit/old", "refs/heads/evogit/old")
    fork = (*run, "--at", "old:@6", "--seed", "6", "--evaluations", "9", "--selector", "weighted")
    refused = cli(*fork, "--name", "one", "--split", "smoke")
    assert (refused.code, "evaluates on the split 'train'" in refused.err) == (4, True), refused.err
    for name in ("one", "two"):
        done = cli(*fork, "--name", name)
        assert done.code == 0, done.err
    histories = {name: open_run(Repository.open(path), name).history for name in ("old", "one", "two")}
    ids = {name: [each.commit for each in history.phylogeny] for name, history in histories.items()}
    assert ids["one"] == ids["two"] != ids["old"][:9]
    assert ids["one"][:6] == ids["old"][:6]
    assert histories["one"].counts.evaluated == 9
    assert git(path, "for-each-ref", "refs/evogit/old", "refs/heads/evogit/old") == before
    assert cli("-C", path, "status", "--name", "one", "--json").json["forked"]["run"] == "old"
    assert "forked from old at" in cli("-C", path, "status", "--name", "one").out
    for gone in ("old", "two"):
        assert cli("-C", path, "clean", gone, "--all", "--yes").code == 0
    git(path, "-c", "gc.reflogExpire=now", "gc", "-q", "--prune=now")
    git(path, "fsck", "--strict")
    more = cli(*run, "--name", "one", "--evaluations", "10")
    assert more.code == 0, more.err
    assert "10 evaluated" in cli("-C", path, "status").out


def test_a_run_that_mutators_cannot_make_leaves_no_repository(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    assert cli("run", "tsp_cpp", "--evaluations", "3", cwd=folder).code == 2
    assert list(folder.iterdir()) == []
