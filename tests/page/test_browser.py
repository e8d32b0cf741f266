"""The page in a real browser, served by the real command: what people do with it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from evogit import Brief, Run, Settings, Task
from evogit.repository import Repository
from evogit.review import open_run
from evogit.testing import InMemoryBackend, RecordedRun, ScriptedAgent, add_note
from tests.cli.conftest import EVOGIT, environment
from tests.clock import wait_until
from tests.page.conftest import Served, window, write_run

pytestmark = pytest.mark.slow


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    """A page of its own in the browser; nothing may be asked of anybody but the server, nothing may go wrong."""
    context = window(browser, viewport={"width": 1280, "height": 800})
    opened = context.new_page()
    wrong: list[str] = []
    asked: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(served.url)
    opened.wait_for_selector("body[data-ready]")
    yield opened
    context.close()
    assert wrong == []
    assert [url for url in asked if not url.startswith((f"{served.origin}/", "data:"))] == []


def show(page: Page, served: Served, **state: str) -> None:
    """Go to an address of the page; until the run is read it shows the one before."""
    page.goto(f"{served.origin}/#" + "&".join(f"{name}={value}" for name, value in state.items()))
    expect(page).to_have_title(re.compile(f"(^|· ){state['run']} · "))


def test_a_person_looks_at_candidates_and_compares_them(page: Page, served: Served) -> None:
    details = page.locator("#details")
    expect(page.locator("#facts")).to_contain_text("2.5000")
    expect(details).to_contain_text("merge step")
    expect(details).to_contain_text("merged with")
    expect(details.locator("table")).to_contain_text("2.2500")  # what it has on the holdout
    page.get_by_role("row", name=re.compile("failed step")).click()
    expect(details).to_contain_text("crashed")
    page.get_by_role("tab", name="Diff").click()
    expect(details).to_contain_text("boom")
    page.get_by_role("tab", name="Told").click()
    expect(details).to_contain_text("told of failed")
    page.get_by_role("tab", name="Said").click()
    expect(details).to_contain_text("said")
    expect(details).to_contain_text("aider on m, 2.5 s")
    expect(details.locator("summary", has_text="1 answered")).to_be_visible()  # of a session, turn by turn
    page.get_by_role("tab", name="Evaluation").click()
    expect(details).to_contain_text("printed")
    page.get_by_role("button", name="Pin", exact=True).click()
    page.get_by_role("row", name=re.compile("left step")).click()
    page.get_by_role("tab", name="Diff").click()
    page.get_by_label("Compare with").select_option("pinned")
    expect(details).to_contain_text("x = 2")
    assert "pin=" in page.url
    page.get_by_label("Filter candidates").fill("score>1.2 agent:a2")
    expect(page.locator("#table .rows .row")).to_have_count(1)
    page.get_by_label("Filter candidates").fill("colour:red")
    expect(page.locator("#hint")).to_contain_text("expected one of")
    page.goto(f"{served.origin}/#run=nobody")
    expect(page.locator("#hint")).to_contain_text("expected a run of this repository")
    again = page.context.new_page()  # a link shows the same to somebody else
    again.goto(f"{served.origin}/#filter=agent%3Aa2")
    expect(again.locator("#table .rows .row")).to_have_count(2)


def test_a_filter_chooses_its_only_candidate_and_no_choice_of_the_toolbar_moves_the_graph(page: Page) -> None:
    top = "document.getElementById('canvas').getBoundingClientRect().top"
    before = page.evaluate(top)
    for label, options in (("height", 2), ("against", 3), ("colour", 7)):
        for number in range(options):
            page.locator("#bar").get_by_label(label).select_option(index=number)
            assert page.evaluate(top) == before
    box = page.get_by_label("Filter candidates")
    box.fill("strategy:fitter")
    box.press("Enter")
    expect(page.locator("#details h2")).to_contain_text("best")
    box.fill("failed")
    box.press("Enter")
    expect(page.locator("#details")).to_contain_text("failed step")


def test_a_candidate_that_is_chosen_on_a_phone_comes_into_view(browser: Browser, served: Served) -> None:
    context = window(browser, viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    page.goto(served.url)
    page.wait_for_selector("body[data-ready]")
    expect(page.locator("#details")).not_to_be_in_viewport(ratio=0.1)
    page.locator("#table .rows .row").first.tap()
    expect(page.locator("#details h2")).to_be_in_viewport()
    context.close()


POINT = """(text) => {
  const canvas = document.getElementById("canvas");
  const { left, top, width, height } = canvas.getBoundingClientRect();
  for (let clientY = top; clientY < top + height; clientY += 4)
    for (let clientX = left; clientX < left + width; clientX += 4) {
      canvas.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY }));
      const tip = document.getElementById("tip");
      if (!tip.hidden && tip.textContent.includes(text)) return { x: clientX, y: clientY };
    }
}"""
"""Where on the graph the pointer is told a text."""


def test_the_graph_unfolds_where_it_counts_and_the_address_keeps_order_and_colours(page: Page, served: Served) -> None:
    legend = page.locator("#legend")
    expect(legend).to_contain_text("4 of 6 candidates")
    for told, shown in (("show its 1 dead end", "5 of 6"), ("fold its dead ends", "4 of 6")):
        place = page.evaluate(POINT, told)
        page.mouse.dblclick(place["x"], place["y"])  # as who clicks twice means it once
        expect(legend).to_contain_text(f"{shown} candidates")
        page.wait_for_timeout(600)  # longer than a double-click
    legend.get_by_role("button", name="merge").click()
    expect(page.get_by_label("Filter candidates")).to_have_value("operator:merge")
    expect(legend).to_contain_text("1 candidate of 6")
    legend.get_by_role("button", name="merge").click()
    expect(page.get_by_label("Filter candidates")).to_have_value("")
    page.get_by_label("colour").select_option("file")
    expect(legend).to_contain_text("m.py")
    page.locator("#table").get_by_role("button", name="score").click()
    page.reload()
    expect(page.locator("#table .rows .row").first).to_contain_text("merge step")
    expect(legend).to_contain_text("m.py")
    page.locator("#table").get_by_role("button", name="score").click()
    expect(page.locator("#table .rows .row").last).to_contain_text("merge step")
    page.get_by_role("button", name="Save").click()
    with page.expect_download():
        page.get_by_role("button", name="SVG").click()
    expect(page.locator(".toast")).to_contain_text("Saved as toy-graph.svg")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_deciding_shows_what_it_changes_asks_why_and_can_be_undone(page: Page, served: Served) -> None:
    ids = write_run(served.folder, "deciding")
    show(page, served, run="deciding", select=ids["left"][:7])
    page.get_by_role("button", name="Promote").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".plan li").first).to_contain_text("promote")
    dialog.get_by_role("button", name="Promote").click()
    expect(dialog).to_contain_text("Say why")
    dialog.get_by_label("Why").fill("it is simpler")
    dialog.get_by_role("button", name="Promote").click()
    expect(page.locator("#details h2")).to_contain_text("promoted")
    assert ids["left"] in history(served, "deciding").promoted
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("dialog").get_by_role("button", name="Undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#details h2")).not_to_contain_text("promoted")
    assert not history(served, "deciding").promoted
    with Repository.open(served.folder).engines("deciding").enter(join=False):
        expect(page.locator("#state")).to_contain_text("live")
    expect(page.locator("#state")).to_contain_text("at rest")  # without an entry in the journal
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#state")).to_contain_text("paused")
    RecordedRun(served.folder, "deciding").add(9.0, ids["late"])
    page.wait_for_timeout(1000)
    expect(page.locator("#facts")).to_contain_text("6 candidates")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#facts")).to_contain_text("7 candidates")


def test_the_panel_follows_the_best_until_a_candidate_is_chosen(page: Page, served: Served) -> None:
    ids = write_run(served.folder, "following")
    show(page, served, run="following")
    heading = page.locator("#details h2")
    first = RecordedRun(served.folder, "following").add(9.0, ids["late"])
    expect(heading).to_contain_text(first[:7])
    show(page, served, run="following", select=first[:7])
    RecordedRun(served.folder, "following").add(11.0, ids["late"])
    expect(page.locator("#facts")).to_contain_text("8 candidates")
    expect(heading).to_contain_text(first[:7])


def test_a_plan_that_is_out_of_date_is_refused_and_drawn_anew(page: Page, served: Served) -> None:
    ids = write_run(served.folder, "stale")
    show(page, served, run="stale", select=ids["right"][:7])
    page.get_by_role("button", name="Prune").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".plan li").first).to_contain_text("prune")
    with page.expect_response("**/plan"):
        dialog.get_by_label("also everything").check()
    expect(dialog.get_by_role("button", name="Prune")).to_be_enabled()  # by the new plan
    RecordedRun(served.folder, "stale").add(1.1, ids["right"])  # one more that it would prune
    dialog.get_by_label("Why").fill("a dead end")
    dialog.get_by_role("button", name="Prune").click()
    expect(dialog).to_contain_text("Something changed meanwhile")
    assert not history(served, "stale").pruned
    dialog.get_by_role("button", name="Prune").click()
    expect(dialog).to_have_count(0)
    assert ids["failed"] in history(served, "stale").pruned


def history(served: Served, name: str) -> Any:
    """What the journal tells by now."""
    return open_run(Repository.open(served.folder), name).history


def test_a_promotion_on_the_page_changes_what_a_running_engine_breeds_from(
    page: Page, served: Served, tiny: Callable[..., Task], tmp_path: Path
) -> None:
    agent = ScriptedAgent(add_note)
    task = tiny()
    backend = InMemoryBackend(task, lambda asked: 1.0 + asked.number % 7, pause=0.02)
    limits = Settings(proposals=100_000, evaluations=100_000, selector="elitist")
    run = Run(Repository.open(served.folder), task, "alive", limits, agents=[agent], backend=backend)
    engine = threading.Thread(target=asyncio.run, args=(run.evolve(),))
    engine.start()
    try:
        wait_until(lambda: "alive" in Repository.open(served.folder).runs())
        show(page, served, run="alive", select="seed")
        expect(page.locator("#state")).to_contain_text("live")
        table = page.locator("#table [role=table]")
        wait_until(lambda: int(table.get_attribute("aria-rowcount") or 0) > 20)
        seed = str(history(served, "alive").seed)
        chosen = parents(agent.briefs, seed)
        decide(page, "Promote", "start again from here")
        wait_until(lambda: parents(agent.briefs, seed) > chosen + 2)
    finally:
        subprocess.run(
            [EVOGIT, "stop", "--name", "alive", "--repo", served.folder],
            env=environment(tmp_path),
            check=True,
            capture_output=True,
        )
        engine.join()
    expect(page.locator("#state")).to_contain_text("at rest")


def parents(briefs: list[Brief], commit: str) -> int:
    """How often agents were given this parent."""
    return sum(brief.parent.commit == commit for brief in list(briefs))


def decide(page: Page, button: str, reason: str) -> None:
    """What a person does to decide about the selected candidate."""
    page.get_by_role("button", name=button, exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Why").fill(reason)
    dialog.get_by_role("button", name=button, exact=True).click()
    expect(dialog).to_have_count(0)


def test_the_file_opens_from_disk_asks_nobody_and_has_everything(
    browser: Browser, served: Served, tmp_path: Path
) -> None:
    file = tmp_path / "run.html"
    export(served, file, tmp_path)
    context = window(browser, offline=True)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector("body[data-ready]")
    expect(page.locator("#details")).to_contain_text("merge step")
    for tab, text in (("Diff", "z = 4"), ("Evaluation", "printed"), ("Told", "told of merge"), ("Said", "said")):
        page.get_by_role("tab", name=tab).click()
        expect(page.locator("#details")).to_contain_text(text)
    page.get_by_role("link", name="Run").click()
    expect(page.locator("#page")).to_contain_text("2.5000")
    assert page.get_by_role("button", name="Promote").count() == 0
    assert [url for url in asked if not url.startswith("data:")] == [file.as_uri()]
    export(served, file, tmp_path, "--redact")
    page.goto(file.as_uri() + "#tab=told")
    page.reload()
    expect(page.locator("#details")).to_contain_text("merge step")
    assert "told of merge" not in page.content()
    context.close()


def export(served: Served, file: Path, home: Path, *options: str) -> None:
    """Write the run as one file."""
    command = [EVOGIT, "export", file, "--name", "toy", "--repo", served.folder, *options]
    subprocess.run(command, env=environment(home), check=True, capture_output=True)


def test_the_keyboard_is_enough_and_dark_mode_is_dark(page: Page, served: Served) -> None:
    ids = write_run(served.folder, "keys")
    show(page, served, run="keys")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("promote it")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("s")
    expect(page.locator("#details")).to_contain_text("seed step")
    page.keyboard.press("l")
    expect(page.locator("#details")).to_contain_text("left step")
    page.keyboard.press("d")
    expect(page.get_by_role("tab", name="Diff")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("P")
    expect(page.locator("dialog li").first).to_be_visible()  # nothing is decided before its plan was there to be read
    page.keyboard.type("by hand")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#details h2")).to_contain_text("promoted")
    assert history(served, "keys").promoted == {ids["left"]}
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.keyboard.press("r")
    expect(page.locator("#page")).to_contain_text("a2")
    page.keyboard.press("c")
    expect(page.locator("#page")).to_contain_text("toy")
