"""What the page costs in runs of many candidates, in a headless Chromium beside its frame of a blank page.

Run: `python benchmarks/page.py [--candidates 10000 100000] [--folder DIR] [--json FILE] [--deltas 300]`. Makes a run of
each size as `reading.py` does, serves it with `evogit serve`, and prints for each:

- ready: seconds from asking for the page until it can be used.
- frame, worst: median and longest interval between two frames while the graph is panned about, in milliseconds.
- all: the same median while all candidates are shown, dead ends as well.
- payload: megabytes that come over the wire at the start. Server: its memory at the peak, in megabytes, and at the end
  what of it is its own, not files that are mapped.
- event: median and longest time from an entry in the journal to the changed page, in milliseconds.
- heap: megabytes of JavaScript's memory at the start, and after so many deltas.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright
from reading import made

from evogit.core import Proposed
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.review import open_run

EVENTS = 20
"""Entries of which the delay is measured."""

FRAMES = """async (pan) => {
  const spans = [];
  let last = await new Promise(requestAnimationFrame);
  for (let k = 0; k < 120; k += 1) {
    if (pan) dispatchEvent(new KeyboardEvent("keydown", { key: k % 20 < 10 ? "ArrowLeft" : "ArrowRight" }));
    const now = await new Promise(requestAnimationFrame);
    spans.push(now - last);
    last = now;
  }
  return spans;
}"""

HEAR = """() => {
  window.heard = [];
  const facts = document.getElementById("facts");
  new MutationObserver(() => window.heard.push(Date.now())).observe(facts, { childList: true });
}"""


@contextmanager
def served(repository: Path) -> Iterator[tuple[str, int]]:
    """The page's address and the server's process while it is served."""
    program = "from evogit.cli import main; main()"
    command = [sys.executable, "-c", program, "-C", str(repository), "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["url"], server.pid
        finally:
            server.terminate()


def memory(process: int, what: str) -> float:
    """One figure of a process's memory, as the kernel names it, in megabytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(what))


def heap(session: CDPSession) -> float:
    """JavaScript's memory after its garbage was collected, in megabytes."""
    session.send("HeapProfiler.collectGarbage")
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(each["value"] for each in metrics if each["name"] == "JSHeapUsedSize") / 1e6


def frames(page: Page, pan: bool) -> list[float]:
    """Milliseconds between frames."""
    return list(page.evaluate(FRAMES, pan))


def propose(run: StoredRun, number: int) -> None:
    """Journal one more candidate of the run, bred from the best."""
    best = run.history.phylogeny[str(run.history.best)]
    made = {"candidate": f"{random.Random(number).getrandbits(160):040x}", "tree": best.tree, "parents": (best.commit,)}
    run.journal.append(Proposed(engine="host-1", move=number, agent="a1", operator="mutation", title="step", **made))


def delays(page: Page, run: StoredRun, amount: int) -> list[float]:
    """Milliseconds from writing an entry until the page has it."""
    page.evaluate(HEAR)
    found = []
    for number in range(len(run.history.phylogeny), len(run.history.phylogeny) + amount):
        time.sleep(0.3 if amount == EVENTS else 0)
        page.evaluate("window.heard.splice(0)")
        begun = 1000 * time.time()
        propose(run, number)
        if amount == EVENTS:
            page.wait_for_selector("body")  # lets the page run
            while not (heard := page.evaluate("window.heard.splice(0)")):
                time.sleep(0.01)
            found.append(heard[0] - begun)
    return found


def measured(browser: Browser, repository: Path, deltas: int) -> dict[str, float]:
    """All figures of one run."""
    with served(repository) as (url, process):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        sizes: list[float] = []
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Performance.enable")
        session.on("Network.loadingFinished", lambda told: sizes.append(told["encodedDataLength"] / 1e6))
        blank = frames(page, pan=False)
        page.goto(url)  # the server reads the run, once
        page.wait_for_selector("body[data-ready]", timeout=120_000)
        first = sizes[:]
        page.goto("about:blank")
        begun = time.perf_counter()
        page.goto(url.split("?")[0])
        page.wait_for_selector("body[data-ready]", timeout=120_000)
        ready = time.perf_counter() - begun
        page.wait_for_timeout(1500)
        panned = frames(page, pan=True)
        told: dict[str, float] = {"blank": statistics.median(blank), "ready": ready}
        told |= {"frame": statistics.median(panned), "worst": max(panned), "payload": max(first)}
        page.evaluate("location.hash = 'all=1'")
        page.wait_for_timeout(1500)
        told["all"] = statistics.median(frames(page, pan=True))
        run = open_run(Repository.open(repository))
        late = delays(page, run, EVENTS)
        told |= {"event": statistics.median(late), "latest": max(late), "heap": heap(session)}
        delays(page, run, deltas)
        page.wait_for_timeout(3000)
        told |= {"grown": heap(session), "server": memory(process, "VmHWM"), "own": memory(process, "RssAnon")}
        page.close()
        return told


def main() -> None:
    """Make the runs, measure, print a table, and write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--deltas", type=int, default=300)
    options = parser.parse_args()
    found: dict[int, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as passing, sync_playwright() as playwright:
        folder = options.folder or Path(passing)
        folder.mkdir(exist_ok=True)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for size in options.candidates:
            copy = Path(passing) / "served"
            shutil.rmtree(copy, ignore_errors=True)
            open_run(Repository.open(made(folder, size)))  # as any command did before: it leaves a snapshot
            shutil.copytree(made(folder, size), copy)
            found[size] = measured(browser, copy, options.deltas)
    print(f"{'':10}" + "".join(f"{size:>12,}" for size in found))
    for name in next(iter(found.values())):
        print(f"{name:10}" + "".join(f"{each[name]:>12.2f}" for each in found.values()))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
