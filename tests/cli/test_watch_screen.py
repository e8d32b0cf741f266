"""The lines and keys of `watch` and `run`, without a terminal."""

from __future__ import annotations

import random
import time

import pytest

from evogit.cli.commands.watch import Browser
from evogit.cli.lines.view import View
from evogit.cli.locate_run import Place
from evogit.cli.screen import Now, agent_lines, best_values, facts
from evogit.cli.terminal import PLAIN, PRETTY, Glyphs
from evogit.cli.text import escape
from evogit.config.run_settings import RunLimits, Settings
from evogit.core import Metric
from evogit.events import Reserved, Spent
from evogit.history import History
from evogit.review import last_settings
from evogit.review.forecast import Pace
from evogit.testing import RecordedHistory

from .conftest import Small, Story

HOSTILE = "\x1b]0;owned\x07\x1b[31m \u202eevil\u2066 \r\nsecond\tline 漢字" + "x" * 300

STOPPED = Now(time=60.0)


def view(history: History, glyphs: Glyphs = PRETTY, width: int = 80) -> View:
    return View(history, glyphs, time.time(), width)


def lines_of(history: History, now: Now = STOPPED, width: int = 120) -> list[str]:
    return [line.plain for line in facts(view(history), last_settings(history), now, width)]


class Screen:
    """A browser of a run, and its latest frame."""

    def __init__(self, story: Story, glyphs: Glyphs = PRETTY) -> None:
        self._story = story
        self._glyphs = glyphs
        self.browser = Browser(Place.of(story.stored), Settings())
        self.lines = self.draw()

    def draw(self, width: int = 80, height: int = 24, now: Now = STOPPED) -> list[str]:
        self.browser.read(view(self._story.history, self._glyphs, width))
        return [line.plain for line in self.browser.draw(now, width, height)]

    def press(self, *keys: str) -> list[str]:
        for key in keys:
            assert self.browser.press(key)
            self.lines = self.draw()
        return self.lines


def test_the_facts_tell_state_best_counts_and_agents() -> None:
    told = RecordedHistory(agents=("a1", "a2"))
    seed = told.add(1.0)
    told.add(2.0, seed)
    head, best, done, budget = lines_of(told.history)
    assert "not running" in head
    assert "2.0000" in best
    assert "+1.0000 over the seed" in best
    assert "2 evaluated" in done
    agents = {"a1": "evaluating 1234567", "a2": "asking big\x1b[31m"}
    now = Now(time=60.0, agents=agents, began=20.0)
    head, *_ = lines_of(told.history, now)
    assert "running" in head
    assert head.endswith("0:40")
    shown = [line.plain for line in agent_lines(view(told.history), now, 9)]
    assert shown == ["a1      evaluating 1234567", r"a2      asking big\x1b[31m"]
    assert len(list(agent_lines(view(told.history), now, 1))) == 1


def test_the_best_value_after_each_evaluation_is_sampled() -> None:
    told = RecordedHistory(metrics=(Metric(name="m", direction="minimize", primary=True),))
    seed = told.add(3.0)
    told.add(4.0, seed)
    told.add(1.0, seed)
    told.add(2.0, seed)
    assert best_values(told.history, 40) == [3.0, 3.0, 1.0, 1.0]
    assert best_values(told.history, 2) == [3.0, 1.0]
    assert best_values(History("r"), 40) == []


def test_a_run_that_has_barely_begun_has_facts() -> None:
    assert "not started" in lines_of(History("r"))[2]
    begun = lines_of(RecordedHistory().history, Now(time=1.0, agents={"a1": "at work"}, began=0.0))
    assert "evaluating the seed" in begun[1]
    assert "judged: inside" in lines_of(RecordedHistory(judged="inside").history)[0]


def test_a_run_that_continues_as_it_does_reaches_its_limit_when_the_forecast_says() -> None:
    told = RecordedHistory()
    pace = Pace(told.history)
    seed = told.add(1.0)
    assert pace.forecast(RunLimits(evaluations=100), 0.0, 1.0) is None
    for number in range(1, 20):
        told.time = 2 * number
        told.add(1.0 + number, seed)
    forecast = pace.forecast(RunLimits(evaluations=100, minutes=60), 0.0, 38.0)
    assert forecast is not None
    assert forecast.limit == "evaluations"
    assert forecast.seconds == pytest.approx(160.0)
    late = pace.forecast(RunLimits(evaluations=100, minutes=1), 0.0, 38.0)
    assert late is not None
    assert (late.limit, late.seconds) == ("minutes", 22.0)
    assert pace.forecast(RunLimits(), 0.0, 38.0) is None


def test_money_spent_and_money_to_come_stand_in_the_budget() -> None:
    told = RecordedHistory(settings={"evaluations": 20, "dollars": 5.0})
    pace = Pace(told.history)
    seed = told.add(1.0)
    for number in range(10):
        told.time = 10 * number
        told.append(Spent(engine="e", move=number, agent="a1", model="big", prompt=10, completion=5, dollars=0.2))
        told.add(1.0 + number, seed)
    forecast = pace.forecast(RunLimits(evaluations=20, dollars=5.0), 0.0, 90.0)
    line = lines_of(told.history, Now(time=90.0, agents={}, began=0.0))[3]
    told.append(Reserved(engine="e", move=10, agent="a1", model="big", prompt=10, completion=900, dollars=4.0))
    assert pace.per_second("dollars", 90.0) == pytest.approx(2 / 90)  # what is set aside is not spent yet
    assert forecast is not None
    assert forecast.dollars == pytest.approx(3.8)
    assert "11 of 20 evaluations, $2.00 of $5.00, ends in 1:21 (evaluations, $3.80 by then)" in line


@pytest.mark.parametrize("glyphs", [PRETTY, PLAIN])
def test_a_frame_fits_any_size_and_nothing_in_it_is_obeyed(glyphs: Glyphs, small: Small) -> None:
    chance, story = random.Random(1), Story(small.folder)
    for number in range(10):
        story.add(2.0 + number, small.merge, title=HOSTILE, agent=chance.choice(("a1", "a2")), adopt=True)
    screen = Screen(story, glyphs)
    now = Now(time=1.0, agents={HOSTILE: HOSTILE}, began=0.0)
    for key in ("b", "enter"):
        screen.press(key)
        for width in (1, 7, 20, 79, 80, 140):
            for height in (1, 2, 4, 8, 16, 24, 60):
                screen.browser.read(view(story.history, glyphs, width))
                lines = screen.browser.draw(now, width, height)
                assert len(lines) == height
                assert all(line.cell_len <= width and escape(line.plain) == line.plain for line in lines)
    if glyphs is PLAIN:
        screen.press("q")
        assert all(line.isascii() for line in screen.lines if "漢" not in line)


def test_keys_move_through_the_lineage(small: Small) -> None:
    screen = Screen(Story(small.folder))
    best, last = small.merge, small.seed
    screen.press("end")
    assert screen.browser.selected == last
    screen.press("up", "down", "down")
    assert screen.browser.selected == last
    screen.press("page-up")
    assert screen.browser.selected != last
    screen.press("end", "b")
    assert screen.browser.selected == best
    screen.press("end", "escape")
    assert screen.browser.selected == best
    assert not screen.browser.press("q")


def test_the_selected_candidate_stays_on_its_line_while_the_lineage_grows(small: Small) -> None:
    story = Story(small.folder)
    screen = Screen(story)
    chosen = screen.press("down", "down") and screen.browser.selected
    for number in range(30):
        story.add(3.0 + number, story.history.best or "", adopt=True)
    grown = screen.draw()
    screen.press("down", "up")
    assert screen.browser.selected == chosen
    assert [line for line in grown if line.startswith("> ") and str(chosen)[:7] in line]


def test_a_candidate_and_its_change_are_opened_and_scrolled(small: Small) -> None:
    screen = Screen(Story(small.folder))
    while screen.browser.selected != small.left:
        screen.press("down")
    assert any("corner circles first" in line for line in screen.press("enter"))
    assert any(line == "+VALUE = 3" for line in screen.press("d"))
    screen.press("n")
    assert screen.browser.selected != small.left
    screen.press("N")
    assert screen.browser.selected == small.left
    assert f"◆ {small.seed[:7]}  Seed" in screen.press("D")[1]
    assert small.left[:7] in screen.press("x")[-1]
    assert any(line.startswith("> ") for line in screen.press("q"))


def test_the_lineage_has_merges_as_second_edges_and_a_mark_for_the_selected(small: Small) -> None:
    screen = Screen(Story(small.folder))
    top = next(at for at, line in enumerate(screen.lines) if line.startswith("> "))
    assert small.merge[:7] in screen.lines[top]
    assert "★─╮" in screen.lines[top]
