from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from evogit.core import Metric, Status
from evogit.testing import RecordedRun
from tests.cli.conftest import EVOGIT, environment
from tests.clock import PATIENCE

Evaluate = Callable[..., Any]


@pytest.fixture(scope="session")
def javascript() -> Evaluate:
    """Runs an expression over the page's own modules and some told values, and gives back what it is worth."""
    quickjs = pytest.importorskip("quickjs")
    from evogit.page.assets import script

    context = quickjs.Context()
    context.set_max_stack_size(16 << 20)
    context.eval(script("run.js", "table.js", "filter.js", "picture.js", "format.js"))

    def evaluate(expression: str, **told: Any) -> Any:
        for name, value in told.items():
            context.set(name, json.dumps(value))
        values = "".join(f"const {name}_ = JSON.parse({name});" for name in told)
        return json.loads(context.eval(f"{{{values} JSON.stringify({expression})}}"))

    return evaluate


@dataclass(frozen=True)
class Served:
    """A repository with a written run `toy`, and a real server of its page."""

    folder: Path
    url: str
    ids: Mapping[str, str]

    @property
    def origin(self) -> str:
        return self.url.split("/?")[0]


def write_run(folder: Path, name: str = "toy") -> dict[str, str]:
    """A small run with a merge, a failure and a holdout; ids of its candidates."""
    metric = Metric(name="score", direction="maximize", primary=True, best_known=3.0)
    run = RecordedRun(folder, name, metrics=(metric,), agents=("a1", "a2"))
    ids: dict[str, str] = {}

    def add(what: str, value: float | Status, text: str, *parents: str, **about: Any) -> None:
        session = json.dumps({"program": "aider", "model": "m", "seconds": 2.5, "end": "finished"}).encode()
        talk = {"transcript.md": b"# assistant\n\nI look\n\n# user\n\nx = 1\n", "session.json": session}
        evidence = ({"prompt.md": f"told of {what}".encode(), "reply.md": b"said", **talk}, {"stdout": b"printed\n"})
        files = {f"{what[0]}.py": f"{text}\n".encode()}
        above = [ids[parent] for parent in parents]
        ids[what] = run.add_files(files, *above, value=value, title=f"{what} step", evidence=evidence, **about)

    add("seed", 1.0, "x = 1")
    add("left", 1.5, "x = 2", "seed")
    add("right", 1.25, "y = 3", "seed", agent="a2")
    add("failed", "crashed", "boom", "right", agent="a2")
    add("merge", 2.5, "z = 4", "left", "right")
    add("late", 2.0, "z = 5", "merge")
    run.evaluate(ids["merge"], 2.25, split="holdout")
    run.adopt(ids["merge"])
    return ids


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[str]:
    """A real `evogit serve` of a repository; its address with the key."""
    command = [EVOGIT, "serve", "--port", "0", "--json", "--repo", folder, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(folder)) as server:
        try:
            assert server.stdout is not None
            yield json.loads(server.stdout.readline())["url"]
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One repository and server for the tests of a module; who writes takes a run of their own."""
    folder = tmp_path_factory.mktemp("page") / "repository"
    ids = write_run(folder)
    with serving(folder) as url:
        yield Served(folder, url, ids)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium without a screen; for a module, as no other loop can run in this process meanwhile."""
    expect.set_options(timeout=1000 * PATIENCE)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield chromium
        chromium.close()


def window(browser: Browser, **options: Any) -> BrowserContext:
    """A window that shares nothing with others, and waits as long as other tests do."""
    context = browser.new_context(**options)
    context.set_default_timeout(1000 * PATIENCE)
    return context
