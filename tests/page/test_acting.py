"""What a person decides on the page, faster than the server answers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.conftest import window
from tests.page.guarding import Served, serving, small_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(small_run(tmp_path_factory.mktemp("acting") / "own")) as server:
        yield server


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    opened = window(browser).new_page()
    opened.goto(served.url)
    opened.wait_for_selector("body[data-ready]")
    opened.goto(f"{served.origin}/#select=best")
    expect(opened.locator("#details h2")).to_contain_text("best")
    yield opened
    opened.close()


HOLD = """() => {
  const ask = window.fetch;
  window.fetch = async (path, options) => {
    if (String(path).endsWith("/plan") && !window.release) await new Promise((go) => (window.release = go));
    return ask(path, options);
  };
}"""
"""Keeps the first question for a plan on its way until `release` is called."""

CANCEL_AND_NOTE = """() => {
  for (const key of ["Escape", "n"])
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
}"""
"""Both keys before the browser paints, as on a busy machine."""


def test_a_plan_that_comes_late_is_not_shown_for_another_decision(page: Page) -> None:
    page.evaluate(HOLD)
    page.keyboard.press("X")
    page.wait_for_function("() => Boolean(window.release)")
    page.evaluate(CANCEL_AND_NOTE)
    expect(page.locator("dialog[open] .plan")).to_contain_text("note ")
    with page.expect_response("**/plan"):
        page.evaluate("window.release()")
    page.wait_for_timeout(100)
    expect(page.locator("dialog[open] .plan")).to_contain_text("note ")
    expect(page.locator("dialog[open] .plan")).not_to_contain_text("prune")


def test_pressing_twice_decides_once(page: Page, served: Served) -> None:
    before = len(served.decisions())
    page.keyboard.press("n")
    expect(page.locator("dialog li").first).to_be_visible()
    page.keyboard.type("said once")
    for _ in range(3):
        page.keyboard.press("Control+Enter")
    expect(page.locator(".toast").first).to_be_visible()
    page.wait_for_timeout(100)
    assert len(served.decisions()) == before + 1


def test_nothing_is_decided_before_its_plan_is_there(page: Page, served: Served) -> None:
    before = len(served.decisions())
    page.evaluate(HOLD)
    page.keyboard.press("n")
    expect(page.get_by_role("dialog", name="Note")).to_be_visible()
    page.keyboard.type("too early")
    page.keyboard.press("Control+Enter")
    page.wait_for_timeout(100)
    expect(page.get_by_role("dialog", name="Note")).to_be_visible()
    assert len(served.decisions()) == before


LOSE = """() => {
  const ask = window.fetch;
  window.fetch = async (path, options) => {
    const answer = await ask(path, options);
    if (!String(path).endsWith("/decide") || window.lost) return answer;
    window.lost = true;
    throw new TypeError("network changed");
  };
}"""
"""Loses the answer to the first decision, as a browser does when a network of the machine comes or goes."""


def test_a_decision_whose_answer_was_lost_is_made_once_and_told(page: Page, served: Served) -> None:
    before = len(served.decisions())
    page.evaluate(LOSE)
    page.keyboard.press("n")
    expect(page.locator("dialog li").first).to_be_visible()
    page.keyboard.type("lost on its way")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".toast").first).to_contain_text("Done: note")
    assert len(served.decisions()) == before + 1


def test_what_is_sent_twice_is_decided_once(served: Served) -> None:
    note = {"kind": "note", "index": 1, "reason": "sent twice", "key": "of the page"}
    note["digest"] = served.decide(told=note).json["digest"]
    answers = [served.decide("decide", note) for _ in range(2)]
    assert answers[0].json == answers[1].json
    assert [each.event.reason for each in served.decisions()].count("sent twice") == 1
    assert served.decide("decide", {**note, "key": "another"}).json["decision"] != answers[0].json["decision"]


def test_what_is_asked_about_a_run_goes_when_another_is_shown(page: Page, served: Served) -> None:
    small_run(served.folder, "other")
    page.keyboard.press("G")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.evaluate("location.hash = 'run=other'")
    expect(page).to_have_title(re.compile("other"))
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_words_that_all_objects_have_are_no_names(page: Page, served: Served) -> None:
    for state in (
        "filter=constructor",
        "filter=constructor:x",
        "filter=valueOf%3E1",
        "x=constructor&y=__proto__&colour=toString",
    ):
        page.evaluate("(state) => { location.hash = state }", state)
        expect(page.locator("#facts")).to_contain_text("6 candidates")
        expect(page.locator("#hint")).not_to_contain_text("not a function")
    page.evaluate("location.hash = 'filter=constructor'")
    expect(page.locator("#legend")).to_contain_text("0 candidates of 6")
