"""Who reads the page with a screen reader, by keyboard or with weak eyes: what axe-core finds, in light and in dark."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.conftest import window, write_run
from tests.page.guarding import Served, serving

pytestmark = pytest.mark.slow

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")

LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
ALL = {"runOnly": LEVELS, "resultTypes": ["violations"]}
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast"]}, "resultTypes": ["violations"]}
"""All that is otherwise in the dark."""

STATES = {
    "the graph, with a candidate": "select=best",
    "lanes": "view=lanes&select=best&pin=seed",
    "nothing selected": "select=",
    "a filter": "filter=failed",
    "a filter that is wrong": "filter=score%3Ex",
    "the difference": "select=best&tab=diff",
    "its evaluation": "select=best&tab=evaluation",
    "said": "select=best&tab=said",
    "the run": "page=run",
}

ON_PHONES = {name: STATES[name] for name in ("the run", "the difference", "the graph, with a candidate")}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("accessible") / "own"
    write_run(folder)
    write_run(folder, "other")
    with serving(folder) as server:
        yield server


def go(page: Page, state: str) -> bool:
    """Have the page show something, all of it."""
    page.evaluate("(state) => { location.hash = state }", state)
    page.wait_for_timeout(50)
    expect(page.locator("#panel > .empty, #page > .empty", has_text="…")).to_have_count(0)
    return True


def found(page: Page, rules: Any) -> list[str]:
    """What is serious, with where it is."""
    told: dict[str, Any] = page.evaluate("(rules) => axe.run(document, rules)", rules)
    return [
        f"{each['impact']} {each['id']}: {each['help']}: {[node['target'] for node in each['nodes']][:5]}"
        for each in told["violations"]
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_is_wrong_for_who_cannot_see_or_point(browser: Browser, served: Served, scheme: Any) -> None:
    context = window(browser, color_scheme=scheme, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(served.url)
    page.wait_for_selector("body[data-ready]")
    page.evaluate(AXE)
    rules = ALL if scheme == "light" else COLOURS
    wrong = {name: found(page, rules) for name, state in STATES.items() if go(page, state)}
    page.set_viewport_size({"width": 390, "height": 800})
    wrong |= {f"{name}, on a phone": found(page, rules) for name, state in ON_PHONES.items() if go(page, state)}
    for key, name in (("?", "the keys"), ("P", "a plan")):
        page.keyboard.press(key)
        page.wait_for_selector("dialog")
        wrong[name] = found(page, rules)
        page.keyboard.press("Escape")
    context.close()
    assert {name: each for name, each in wrong.items() if each} == {}
