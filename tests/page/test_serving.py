"""The server of the page over its life: what it prints, restarts under open tabs, runs that vanish."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from evogit.cli.commands.serve import write_passage
from evogit.repository.state_folder import StateFolder
from evogit.testing import RecordedRun
from tests.cli.conftest import Cli, cli  # noqa: F401
from tests.clock import wait_until
from tests.page.conftest import window, write_run
from tests.page.guarding import RUN, everything, read_answer, serving, small_run

ABOUT = f"/api/runs/{RUN}"


@pytest.mark.slow
def test_who_starts_the_server_reads_the_address_while_it_is_at_work_and_can_connect_at_once(tmp_path: Path) -> None:
    with serving(small_run(tmp_path / "own")) as served:
        served.connect().close()
        assert served.process.poll() is None


def add(folder: Path, title: str) -> None:
    run = RecordedRun(folder, RUN)
    run.add_files({"program.py": title.encode()}, run.history.seed or "", value=0.2, title=title)


@pytest.mark.slow
def test_a_tab_of_yesterday_says_so_and_goes_on_when_the_new_address_is_opened(
    browser: Browser, tmp_path: Path
) -> None:
    context = window(browser)
    old, new = context.new_page(), context.new_page()
    with serving(small_run(tmp_path / "own")) as served:
        old.goto(served.url)
        expect(old.locator("#facts")).to_contain_text("6 candidates")
    expect(old.locator("#state")).to_contain_text("disconnected")
    with serving(tmp_path / "own", "--port", str(served.port)) as today:
        old.get_by_role("tab", name="Told").click()
        expect(old.locator("#panel")).to_contain_text("open the address that")
        new.goto(today.url)
        expect(new.locator("#facts")).to_contain_text("6 candidates")
        expect(old.locator("#state")).not_to_contain_text("disconnected")
        add(tmp_path / "own", "of today")
        for page in (old, new):  # the old tab has the stream, the new one listens to it
            expect(page.locator("#facts")).to_contain_text("7 candidates")
    context.close()


@pytest.mark.slow
def test_a_run_that_was_removed_is_gone_and_one_of_its_name_is_another(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    with serving(small_run(tmp_path / "own")) as served, served.connect() as stream:
        stream.sendall(served.request(f"{ABOUT}/events?after={served.ask(ABOUT).json['position']}"))
        assert read_answer(stream).status == 200
        assert cli("clean", RUN, "--all", "--yes", "-C", tmp_path / "own").code == 0
        assert b"event: reload" in everything(stream)
        assert served.ask(ABOUT).status == 404
        assert served.ask(f"{ABOUT}/events").status == 404
        assert served.ask("/api/runs").json["runs"] == []
        RecordedRun(tmp_path / "own", RUN).add_files({"program.py": b"1"}, value=1.0, title="anew")
        assert served.ask(ABOUT).json["candidates"]["amount"] == 1


@pytest.mark.slow
def test_a_run_that_is_not_there_does_not_take_the_place_of_the_one_that_is_shown(
    browser: Browser, tmp_path: Path
) -> None:
    with serving(small_run(tmp_path / "own")) as served:
        page: Page = window(browser).new_page()
        page.goto(served.url)
        page.wait_for_selector("body[data-ready]")
        page.evaluate("location.hash = 'run=nowhere'")
        expect(page.locator("#hint")).to_contain_text("nowhere")
        page.evaluate("location.hash = 'select=best'")
        page.get_by_role("button", name="Note", exact=True).click()
        expect(page.locator("dialog .plan")).to_contain_text("step 3")
        page.close()


@pytest.mark.slow
def test_the_browser_is_started_without_the_key_in_its_command_line(tmp_path: Path) -> None:
    """Everybody on a machine sees the words of every process."""
    (tmp_path / "opener").write_text(f'echo "$1" >{tmp_path}/told\n')
    with serving(small_run(tmp_path / "own"), "--open", BROWSER=f"sh {tmp_path}/opener %s") as served:
        wait_until(lambda: (tmp_path / "told").exists() and (tmp_path / "told").read_text())
        file = Path((tmp_path / "told").read_text().strip().removeprefix("file://"))
        assert served.url in file.read_text()
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_a_file_leads_to_the_page(browser: Browser, tmp_path: Path) -> None:
    with serving(small_run(tmp_path / "own")) as served:
        write_passage(StateFolder(tmp_path), served.url)
        page = window(browser).new_page()
        page.goto((tmp_path / "evogit" / "page.html").as_uri())
        expect(page.locator("#facts")).to_contain_text("6 candidates")
        assert served.token not in page.url
        page.close()


@pytest.mark.slow
def test_a_page_whose_files_are_dropped_on_their_way_begins_again(browser: Browser, tmp_path: Path) -> None:
    """As Chromium does with all of them when a network of the machine comes or goes."""
    with serving(small_run(tmp_path / "own")) as served:
        page = window(browser).new_page()
        for file, times in {"enter.js": 1, "main.js": 1, "layout.js": 1, "style.css": 3}.items():
            page.route(f"**/{file}", lambda route: route.abort(), times=times)
        page.add_init_script("const wait = setTimeout; window.setTimeout = (act, pause) => wait(act, 5 * pause)")
        page.goto(served.url)
        page.wait_for_selector("body[data-ready]")
        assert page.evaluate("document.styleSheets[0]?.cssRules.length"), "it is ready once all its files are there"
        page.close()


@pytest.mark.slow
def test_tabs_out_of_sight_hold_no_connection_and_are_told_what_they_missed(browser: Browser, tmp_path: Path) -> None:
    """A browser has six for a server: six tabs of six runs would hang."""
    with serving(small_run(tmp_path / "own")) as served:
        for number in range(6):
            write_run(tmp_path / "own", f"more-{number}")
        context = window(browser)
        tabs = [context.new_page() for _ in range(7)]
        tabs[0].goto(served.url)
        expect(tabs[0].locator("#facts")).to_contain_text("6 candidates")
        for number, tab in enumerate(tabs):
            tab.add_init_script("Object.defineProperty(document, 'hidden', { get: () => window.away ?? false })")
            tab.goto(f"{served.origin}/?#run={RUN if number == 6 else f'more-{number}'}")
            expect(tab.locator("#facts")).to_contain_text("6 candidates")
            tab.evaluate("window.away = true; document.dispatchEvent(new Event('visibilitychange'))")
        add(tmp_path / "own", "unseen")
        tabs[6].evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
        expect(tabs[6].locator("#facts")).to_contain_text("7 candidates")
        context.close()
