"""Candidates, agents and models that attack who looks at them: on the page, in its file, in figures, in terminals."""

from __future__ import annotations

import csv
import json
import re
import shutil
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.dom import minidom

import pytest
from playwright.sync_api import Browser, Page, expect

from evogit.text import is_seen
from tests.cli.conftest import Cli, Forked, cli, environment  # noqa: F401
from tests.page.conftest import window
from tests.page.guarding import Served, serving
from tests.page.hostile import MEGABYTE, write_hostile_run

pytestmark = pytest.mark.slow

WATCH = """
window.wrong = [];
window.ran = (what) => window.wrong.push(`ran ${what}`);
addEventListener("securitypolicyviolation", (event) => window.wrong.push(`refused ${event.blockedURI}`));
"""
"""Before anything of the page: what would be called by what is injected, and what the browser refuses."""

TEXTS = """() => {
  const texts = [document.title];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode())
    if (!walker.currentNode.parentElement.closest("script, style")) texts.push(walker.currentNode.data);
  for (const each of document.querySelectorAll("*"))
    for (const { value } of each.attributes) texts.push(value);
  return texts;
}"""

BROWSER = "not an origin"
"""The initiator, in the log, of what the browser asks of its own accord or because somebody typed an address."""

WAITING = re.compile("^…$")

OWN = {"SCRIPT": 2, "LINK": 2, "META": 4, "STYLE": 1}
"""Elements of the page that load or run something; nothing else may."""

LOADING = "script, link, meta, style, img, svg, iframe, object, embed, base, form, audio, video, a[href^='javascript']"

STATES = (
    *(
        f"select={which}&tab={tab}"
        for which in ("best", "seed")
        for tab in ("summary", "diff", "evaluation", "told", "said")
    ),
    *(
        "view=lanes",
        "view=clade&all=1",
        "colour=model&all=1",
        "colour=operator",
        "page=run",
        "page=graph",
    ),
    *(
        "filter=%3Cscript%3Eran(9)%3C%2Fscript%3E",
        "filter=agent%3A%22%27%3E&all=1",
        "with=%3Cimg%20src%3Dx%3E&page=compare",  # a page that older links name
    ),
    *("run=%3Csvg%20onload%3Dran(9)%3E", "tab=constructor&x=constructor&y=toString&colour=__proto__&view=valueOf"),
)


class Home:
    """Where the attacks would report to: a port that counts who comes."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setblocking(False)
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def visitors(self) -> int:
        for found in range(100):
            try:
                self._listening.accept()[0].close()
            except BlockingIOError:
                return found
        return 100

    def close(self) -> None:
        self._listening.close()


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    found = Home()
    yield found
    found.close()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, home: Home) -> Path:
    """A repository with the run."""
    folder = tmp_path_factory.mktemp("hostile") / "own"
    write_hostile_run(folder, home.address)
    return folder


@contextmanager
def logged(browser: Browser, file: Path) -> Iterator[Browser]:
    """A browser that writes down all that it does on the network."""
    words = ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    words += ["--disable-background-networking", f"--log-net-log={file}", "--net-log-capture-mode=Everything"]
    with browser.browser_type.launch(executable_path=shutil.which("chromium"), args=words) as found:
        yield found


def connections(file: Path) -> set[str]:
    """Whom the browser connected to, and what the page asked for or had looked up, by the browser's own log."""
    log = json.loads(file.read_text())
    kinds = {number: name for name, number in log["constants"]["logEventTypes"].items()}
    found = set()
    for event in log["events"]:
        kind, told = kinds[event["type"]], event.get("params", {})
        if kind == "TCP_CONNECT_ATTEMPT" and "address" in told:
            found.add(told["address"])
        if kind == "URL_REQUEST_START_JOB" and told.get("initiator", BROWSER) != BROWSER:
            found.add("/".join(told["url"].split("/")[:3]))
        if kind == "HOST_RESOLVER_MANAGER_REQUEST" and told.get("is_speculative"):
            found.add(f"a look for {told['host']}")
    return {each for each in found if not each.startswith(("data:", "blob:", "file:"))}


def look_at(page: Page, what: str) -> None:
    """Check that nothing ran, nothing was injected, and all that is shown can be seen."""
    assert page.evaluate("window.wrong") == [], what
    found = Counter(page.evaluate(f"[...document.querySelectorAll({LOADING!r})].map((each) => each.tagName)"))
    assert all(found[tag] <= OWN.get(tag, 0) for tag in found), (what, found)
    texts = page.evaluate(TEXTS)
    assert sum(map(len, texts)) < 2 * MEGABYTE
    for text in texts:
        unseen = {char for at, char in enumerate(text) if char not in "\r\n\t" and not is_seen(text, at)}
        assert not unseen, (what, ascii(unseen), ascii(text[:200]))


def settle(page: Page) -> None:
    page.wait_for_selector("body[data-ready]")
    expect(page.locator("#panel > .empty, #page > .empty", has_text=WAITING)).to_have_count(0)


@contextmanager
def opened(browser: Browser, **options: Any) -> Iterator[Page]:
    context = window(browser, **options)
    context.add_init_script(WATCH)
    page = context.new_page()
    wrong: list[str] = []
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("popup", lambda _: wrong.append("a window"))
    yield page
    assert wrong == []
    context.close()


def visit(page: Page, served: Served) -> None:
    """Everything that the page shows of the run, and what it says before and after a decision."""
    page.goto(served.url)
    settle(page)
    for state in STATES:
        page.goto(f"{served.origin}/#{state}")
        settle(page)
        look_at(page, state)
    page.goto(f"{served.origin}/#select=best&pin=seed")
    settle(page)
    for name in ("Note", "Merge with pinned", "Land …"):
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.locator("dialog .plan")).not_to_have_text("…")
        look_at(page, name)
        page.keyboard.press("Escape")
    page.get_by_role("button", name="Note", exact=True).click()
    page.get_by_role("textbox", name="Why").fill("<img src=x onerror=ran(8)>\u202e")
    page.locator("dialog").get_by_role("button", name="Note").click()
    page.wait_for_selector(".toast")
    look_at(page, "what was decided")
    canvas = page.locator("#canvas").bounding_box()
    assert canvas
    for step in range(12):
        page.mouse.move(canvas["x"] + canvas["width"] * step / 12, canvas["y"] + canvas["height"] / 2)
    look_at(page, "under the mouse")


def test_nothing_of_a_hostile_run_is_run_fetched_or_hidden_on_the_page(
    browser: Browser, hostile: Path, home: Home, tmp_path: Path
) -> None:
    with serving(hostile) as served:
        with logged(browser, tmp_path / "net.json") as chromium, opened(chromium) as page:
            visit(page, served)
        found = connections(tmp_path / "net.json")
    assert found == {f"127.0.0.1:{served.port}", served.origin}
    assert not home.visitors()


def export(folder: Path, file: Path, *words: str) -> Path:
    Forked([*words, "-C", folder, "-o", file], cwd=folder, env=environment(folder.parent)).wait()
    return file


def test_nothing_of_a_hostile_run_is_run_fetched_or_hidden_in_its_file(
    browser: Browser, hostile: Path, home: Home, tmp_path: Path
) -> None:
    file = export(hostile, tmp_path / "run.html", "export")
    assert file.stat().st_size < 2 * MEGABYTE
    with logged(browser, tmp_path / "net.json") as chromium, opened(chromium) as page:
        for state in STATES:
            if not state.startswith(("run=", "with=")):
                page.goto(f"{file.as_uri()}#{state}")
                settle(page)
                look_at(page, state)
    assert connections(tmp_path / "net.json") == set()
    assert not home.visitors()


TEXTUAL = (
    *(
        ["log"],
        ["show", "best"],
        ["show", "seed"],
        ["report"],
        ["graph"],
        ["graph", "--all"],
        ["status"],
        ["diff", "best"],
    ),
    *(
        ["decisions"],
        ["best"],
        ["log", "--json"],
        ["show", "best", "--json"],
        ["report", "--json"],
        ["graph", "--json"],
    ),
    ["show", "--move", "5"],
    ["show", "best", "--file", "reply.md"],
)


def test_terminals_and_files_get_no_character_that_cannot_be_seen(cli: Cli, hostile: Path) -> None:  # noqa: F811
    for words in TEXTUAL:
        done = cli(*words, "-C", hostile)
        assert done.code == 0, (words, done.err)
        for text in (done.out, done.err):
            unseen = {char for at, char in enumerate(text) if char not in "\r\n\t" and not is_seen(text, at)}
            assert not unseen, (words, ascii(unseen))


def test_a_program_that_prints_a_megabyte_in_one_line_fills_no_terminal(cli: Cli, hostile: Path) -> None:  # noqa: F811
    assert max(map(len, cli("show", "best", "-C", hostile).out.splitlines())) < 10_000


def test_files_for_other_programs_are_what_they_say(cli: Cli, hostile: Path, tmp_path: Path) -> None:  # noqa: F811
    assert cli("export", tmp_path / "run.csv", "-C", hostile).code == 0
    assert cli("export", "--figure", "lineage", tmp_path / "lineage.svg", "-C", hostile).code == 0
    tags = {each.tagName for each in minidom.parse(str(tmp_path / "lineage.svg")).getElementsByTagName("*")}
    assert not tags & {"script", "a", "image", "foreignObject"}
    rows = list(csv.reader((tmp_path / "run.csv").read_text().splitlines()))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(rows) == 6
    assert not any(cell.startswith(("=", "@")) for row in rows for cell in row)
    assert len(cli("graph", "--all", "--json", "-C", hostile).json["candidates"]) == 5
