"""People beside a running engine: guide, prune, stop, and what an engine tells them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evogit.cli.hooks import RunEnd
from evogit.cli.terminal import Terminal
from evogit.events import Decision, Entry, Proposed
from evogit.history import History
from evogit.repository import Repository
from evogit.review import open_run
from tests.clock import PATIENCE, wait_until
from tests.conftest import EVALUATE, write_task

from .conftest import Cli, Forked, Small, environment

SLOW = EVALUATE.replace("    for x", "    time.sleep(0.1)\n    for x")


def test_guidance_adds_up_and_can_be_taken_back(cli: Cli, small: Small) -> None:
    assert "no guidance yet" in cli("-C", "repo", "guide").out
    first = cli("-C", "repo", "guide", "keep it in one file", "-y")
    assert "joins every later brief" in first.err
    said = cli("-C", "repo", "guide", "look at\x1b[2J the inner loop", "-y", "--json").json
    assert (said["kind"], said["reason"], said["candidates"]) == ("guide", "look at the inner loop", [])
    history = open_run(Repository.open(small.folder)).history
    assert history.guidance == ["keep it in one file", "look at the inner loop"]
    assert [line["reason"] for line in cli("-C", "repo", "guide", "--json").lines] == history.guidance
    assert "guide  keep it in one file" in cli("-C", "repo", "guide", "keep it\nin one file", "--dry-run").err
    assert cli("-C", "repo", "undo", "-y").code == 0
    assert [line["reason"] for line in cli("-C", "repo", "guide", "--json").lines] == history.guidance[:1]
    assert "keep it in one file" in cli("-C", "repo", "log", "--decisions").out


def test_stop_needs_an_engine_and_cannot_be_undone(cli: Cli, small: Small) -> None:
    done = cli("-C", "repo", "stop")
    assert done.code == 4
    assert "no engine" in done.err
    repository = Repository.open(small.folder)
    run = open_run(repository)
    with repository.engines("toy").enter(join=False):
        entry = run.journal.append(Decision(kind="stop", by="Ada"))
    assert entry
    assert "cannot be undone" in cli("-C", "repo", "undo", entry.id, "-y").err
    assert "no decision to undo" in cli("-C", "repo", "undo", "-y").err
    assert "stop" in cli("-C", "repo", "log", "--decisions").out


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `evogit run` on a small task whose evaluations take a tenth of a second; killed at the end if it runs."""
    started: list[subprocess.Popen[str]] = []
    write_task(tmp_path / "task", evaluate=SLOW)

    def start(*options: str) -> subprocess.Popen[str]:
        started.append(
            Forked(
                ("run", "task", "--evaluations", "100000", "--sandbox", "none", *options),
                cwd=tmp_path,
                env=environment(tmp_path),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


class Eyes:
    """Reads the journal of the run beside its engine."""

    def __init__(self, folder: Path) -> None:
        wait_until(lambda: (folder / ".git/evogit").exists() and Repository.open(folder).runs())
        self.entries: list[Entry] = []
        self.history = History("tiny")
        self.repository = Repository.open(folder)
        self._journal = self.repository.journal("tiny", self._take)

    def _take(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.history.apply(entry)

    def wait(self, seen: Callable[[History], bool]) -> None:
        def happened() -> bool:
            self._journal.refresh()
            return seen(self.history)

        wait_until(happened)


@pytest.mark.slow
def test_an_engine_takes_in_a_prune_and_a_stop_soon(
    engine: Callable[..., subprocess.Popen[str]], cli: Cli, tmp_path: Path
) -> None:
    running = engine("--json")
    eyes = Eyes(tmp_path / "evogit-tiny")
    branch = "refs/heads/evogit/tiny/best"

    def prune() -> None:
        """Prune the best; its branch goes on, and nothing is bred from it for a while."""
        eyes.wait(lambda history: history.best not in (None, history.seed) and history.counts.evaluated > 5)
        pruned = cli("-C", "evogit-tiny", "prune", "best", "-m", "cheats", "-y", "--json").json
        (gone,) = pruned["candidates"]
        eyes.wait(lambda history: gone in history.pruned)
        eyes.wait(lambda history: eyes.repository.target(branch) == history.best)
        proposed = eyes.history.counts.proposed
        eyes.wait(lambda history: history.counts.proposed > proposed + 10)
        decided = next(entry.seq for entry in eyes.entries if entry.id == pruned["decision"])
        later = [entry.event for entry in eyes.entries if entry.seq > decided and isinstance(entry.event, Proposed)]
        assert len(later) >= 10
        assert not [event for event in later if gone in event.parents]

    prune()
    done = cli("-C", "evogit-tiny", "stop", "--json")
    assert (done.code, done.json["at_work"], len(done.json["asked"])) == (0, [], 1)
    out, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, err
    assert '"stopped_because": "asked"' in out


def test_the_command_of_the_end_gets_no_key(small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "sk-secret-key")
    repository, terminal = Repository.open(small.folder), Terminal("never", json=False)
    with RunEnd(f"echo $EVOGIT_RUN $THE_KEY > {tmp_path}/told", repository, "toy", terminal, ["sk-secret-key"]):
        pass
    assert (tmp_path / "told").read_text() == "toy\n"


@pytest.mark.slow
def test_a_run_that_brought_nothing_says_so_when_asked(cli: Cli, tmp_path: Path) -> None:
    write_task(tmp_path / "task", evaluate=EVALUATE.replace("-abs(y - 20)", "0.0"))
    options = ["--evaluations", "3", "--sandbox", "none"]
    assert cli("run", "task", *options, "--exit-code").code == 5
    assert cli("run", "task", *options).code == 0
