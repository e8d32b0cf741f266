"""What `watch` draws and what its keys do, without a terminal."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from evogit.cli.lines.view import StillView
from evogit.cli.locate_run import Place
from evogit.cli.screen.canvas import Canvas
from evogit.cli.screen.frame import draw
from evogit.cli.screen.key_actions import CHANGED, obey, planned_anew
from evogit.cli.screen.keys import Keys
from evogit.cli.screen.picture import AXES, Now, Picture
from evogit.cli.screen.state import Order, State, press
from evogit.cli.terminal import PLAIN, PRETTY, Glyphs
from evogit.cli.text import escape
from evogit.config.run_settings import RunLimits
from evogit.core import Metric, Reserved, Spent
from evogit.history import History
from evogit.review.followed_run import Pace
from evogit.testing import RecordedHistory

from .conftest import Small, Story

HOSTILE = "\x1b]0;owned\x07\x1b[31m \u202eevil\u2066 \r\nsecond\tline 漢字" + "x" * 300


def picture(history: History, glyphs: Glyphs = PRETTY, **known: Any) -> Picture:
    return Picture(view=StillView(history, glyphs, time.time(), 80), **known)


def screen(
    shown: Picture, state: State | None = None, width: int = 80, height: int = 24, now: Now | None = None
) -> list[str]:
    return [line.plain for line in draw(shown, now or Now(time=60.0), state or State(), width, height).lines()]


@pytest.fixture
def story() -> RecordedHistory:
    """Two lines of descent that a merge brings together; the merge is the best."""
    told = RecordedHistory(agents=("a1", "a2"))
    seed = told.add(1.0, title="the seed")
    left = told.add(1.5, seed, title="to the left")
    right = told.add(1.6, seed, title="to the right", agent="a2")
    best = told.add(2.0, left, right, title="both")
    told.adopt(best)
    told.adopt(right, "a2")
    return told


# --- frames -------------------------------------------------------------------------------------------------------


def test_a_frame_shows_the_lineage_with_merges_as_second_edges(story: RecordedHistory) -> None:
    lines = screen(picture(story.history))
    top = next(at for at, line in enumerate(lines) if "both" in line)
    assert [line[:6].rstrip() for line in lines[top : top + 4]] == [">★─╮", " │ ●", " ● │", " ◆─╯"]
    assert "stopped" not in lines[0]
    assert "best 2.0000 +1.0000 over the seed" in lines[0]
    assert "4 evaluations, 0 failed" in lines[1]
    assert any("no engine is at work" in line for line in lines)


def test_agents_at_work_and_what_the_run_comes_to_are_told(story: RecordedHistory) -> None:
    agents = {"a1": "evaluating 1234567", "a2": "asking big\x1b[31m"}
    lines = screen(picture(story.history), now=Now(time=60.0, agents=agents, began=20.0, per_second=0.5))
    assert "running" in lines[0]
    assert lines[0].endswith("0:40")
    assert "30.0/min" in lines[1]
    assert any(line.endswith("a1  evaluating 1234567") for line in lines)
    assert any(line.endswith(r"a2  asking big\x1b[31m") for line in lines)


@pytest.mark.parametrize("glyphs", [PRETTY, PLAIN])
def test_a_frame_fits_whatever_the_size_and_nothing_in_it_is_obeyed(glyphs: Glyphs) -> None:
    chance = random.Random(1)
    told = RecordedHistory(run="r", agents=("a1", "a2"))
    known = [told.add(1.0, title="seed")]
    for number in range(30):
        parents = chance.sample(known, min(len(known), chance.choice((1, 1, 2))))
        value = chance.choice((number / 10, number / 10, "crashed"))
        known.append(told.add(value, *parents, title=HOSTILE, agent=chance.choice(("a1", "a2"))))  # type: ignore[arg-type]
        told.adopt(known[-1], chance.choice(("a1", "a2")))
    told.decide("note", known[3], reason=HOSTILE)
    now = Now(time=1.0, agents={HOSTILE: HOSTILE}, began=0.0)
    shown = picture(told.history, glyphs, latest=told.entries)
    states = [State(), State(drawn="map"), State(drawn="map", axis="score"), State(selected=known[3])]
    for width in (1, 2, 7, 20, 45, 79, 80, 81, 109, 110, 140, 240):
        for height in (1, 2, 3, 4, 6, 8, 12, 16, 23, 24, 25, 60):
            frame = draw(shown, now, chance.choice(states), width, height)
            assert len(frame.pieces) == height
            for line in frame.lines():
                assert line.cell_len <= width
                assert escape(line.plain) == line.plain
                assert "\t" not in line.plain


def test_without_colours_the_selected_candidate_has_a_mark_of_its_own(story: RecordedHistory) -> None:
    first = story.history.seed
    lines = screen(picture(story.history), State(selected=first))
    assert [line[:3] for line in lines if line.startswith(">")] == [">◆─"]
    on_map = screen(picture(story.history), State(selected=first, drawn="map"))
    assert any("[◆]" in line for line in on_map)


def test_ascii_is_enough(story: RecordedHistory) -> None:
    for state in (State(), State(drawn="map")):
        assert "".join(screen(picture(story.history, PLAIN), state, 140, 40)).isascii()


def test_a_wide_screen_has_the_selected_candidate_and_what_happened_beside_the_graph(story: RecordedHistory) -> None:
    lines = screen(picture(story.history, latest=story.entries), State(), 140, 40)
    beside = [line[94:].strip() for line in lines]
    assert "both" in beside
    assert any(line.startswith("adopted") for line in beside)


def test_what_a_person_should_know_before_trusting_a_score_is_in_sight() -> None:
    told = RecordedHistory(judged="inside")
    told.evaluate(told.add(1.0), 0.9, split="holdout")
    lines = screen(picture(told.history), width=140, height=40)
    assert "judged: inside" in lines[0]
    assert any(line.endswith("holdout  0.9000") for line in lines)


def test_the_curve_rises_to_the_best_and_falls_where_less_is_better() -> None:
    for direction, ends in (("maximize", ("3.0000", "1.0000")), ("minimize", ("1.0000", "3.0000"))):
        told = RecordedHistory(metrics=(Metric(name="m", direction=direction, primary=True),))  # type: ignore[arg-type]
        first, then = (1.0, 3.0) if direction == "maximize" else (3.0, 1.0)
        told.add(then, told.add(first))
        lines = screen(picture(told.history, steps=told.history.course.steps))[3:9]
        assert tuple(line[:6] for line in lines if line[:1] in "13") == ends


def test_a_run_that_has_barely_begun_is_drawn_too() -> None:
    empty = picture(History("r"))
    assert "not started" in screen(empty)[1]
    assert pressed(["j", "v", "l", "b", "e"], State(), empty)[0].selected is None
    begun = picture(RecordedHistory().history)
    told = screen(begun, State(drawn="map"), now=Now(time=1.0, agents={"a1": "at work"}, began=0.0))
    assert "evaluating the seed" in "\n".join(told)
    assert press("enter", State(), begun, 10)[0].message.plain == "there is no candidate yet"


def test_where_values_shift_with_each_verdict_no_curve_is_drawn() -> None:
    told = RecordedHistory(judged="pairs")
    told.add(0.0)
    assert any("each verdict moves all values" in line for line in screen(picture(told.history)))


# --- keys ---------------------------------------------------------------------------------------------------------


def test_keys_are_told_apart_in_whatever_pieces_they_come() -> None:
    typed = "j\x1b[A\x1bOB\x1b[5~\x1b[1;5C\r\x7fé\x1b[200~x\ny\x1b[201~q".encode()
    expected = ["j", "up", "down", "page-up", "right", "enter", "backspace", "é", "paste:x\ny", "q"]
    assert Keys().feed(typed) == expected
    keys = Keys()
    assert [name for byte in typed for name in keys.feed(bytes([byte]))] == expected


def test_an_escape_by_itself_is_a_key_once_nothing_follows() -> None:
    keys = Keys()
    assert keys.feed(b"\x1b") == []
    assert keys.waiting
    assert keys.flush() == ["escape"]
    assert not keys.waiting


def pressed(keys: list[str], state: State, shown: Picture, height: int = 10) -> tuple[State, Order | None]:
    order = None
    for key in keys:
        state, order = press(key, state, shown, height)
    return state, order


def test_keys_move_through_the_graph_and_over_the_map(story: RecordedHistory) -> None:
    shown = picture(story.history)
    commits = [row.candidate.commit for row in shown.rows]
    assert pressed(["j"], State(), shown)[0].selected == commits[1]
    assert pressed(["down", "down", "k"], State(), shown)[0].selected == commits[1]
    assert pressed(["G"], State(), shown)[0].selected == commits[-1]
    assert pressed(["G", "page-up"], State(), shown)[0].selected == commits[0]
    assert pressed(["G", "escape"], State(), shown)[0].selected is None
    for axis in AXES:
        on_map = State(drawn="map", axis=axis)
        assert pressed(["left"] * 5 + ["down"] * 5, on_map, shown)[0].selected == story.history.seed


def test_the_selected_row_stays_on_its_line_while_the_graph_grows(story: RecordedHistory) -> None:
    shown, height = picture(story.history), 3
    state, _ = pressed(["j", "j"], State(), shown, height)
    chosen, line = state.selected, shown.number[state.selected or ""] - state.top(shown, height)
    for number in range(5):
        story.adopt(story.add(3.0 + number, story.history.best or ""))
    grown = picture(story.history, kept=chosen)
    assert grown.number[chosen or ""] > shown.number[chosen or ""]
    assert state.chosen(grown) == chosen
    assert grown.number[chosen or ""] - state.top(grown, height) == line


def test_a_text_pasted_by_mistake_presses_no_keys(story: RecordedHistory) -> None:
    assert press("paste:xq\n", State(), picture(story.history), 10) == (State(), None)


def test_dead_ends_unfold_below_the_selected_candidate(small: Small) -> None:
    story = Story(small.folder)
    shown = picture(story.history)
    assert small.dead not in shown.number
    state, _ = pressed(["e"], State(selected=small.step), shown)
    assert small.dead in picture(story.history, unfolded=state.unfolded).number


# --- decisions ----------------------------------------------------------------------------------------------------


def decided(keys: list[str], state: State, story: Story) -> State:
    """What becomes of a state when keys are pressed, as the loop has it."""
    for key in keys:
        shown = picture(story.history, kept=state.selected)
        state, order = press(key, state, shown, 10)
        if order:
            state = obey(order, state, Place.of(story.stored), shown.view)
    return state


def test_a_decision_is_planned_then_a_reason_is_asked_for_then_it_is_made_and_undone(small: Small) -> None:
    story = Story(small.folder)
    state = decided(["p"], State(selected=small.left), story)
    assert state.asking is not None
    assert "  1 candidate: favoured as a parent" in [line.plain for line in state.asking.plan]
    state = decided(["enter"], state, story)
    assert state.asking is not None
    assert "a reason is needed" in state.asking.about
    assert not story.history.promoted
    state = decided([*"neat?", "backspace", "enter"], state, story)
    assert state.asking is None
    assert story.history.promoted == {small.left}
    assert story.history.decisions[-1].event.reason == "neat"  # type: ignore[union-attr]
    state = decided(["u", "enter"], state, story)
    assert "undone" in state.message.plain
    assert not story.history.promoted


def test_a_subtree_is_pruned_and_escape_prunes_nothing(small: Small) -> None:
    story = Story(small.folder)
    assert decided(["x", *"no", "escape"], State(selected=small.step), story).message.plain == "nothing was changed"
    assert not story.history.pruned
    decided(["X", *"no", "enter"], State(selected=small.step), story)
    assert {small.step, small.left, small.merge} <= story.history.pruned


def test_a_plan_that_is_another_one_by_now_is_shown_again_before_anything_is_done(small: Small) -> None:
    story = Story(small.folder)
    state = decided(["x", *"why"], State(selected=small.left), story)
    other = Story(small.folder)
    other.decide("prune", small.merge, reason="meanwhile")
    state = decided(["enter"], state, story)
    assert state.asking is not None
    assert state.asking.about == CHANGED
    assert any("the best becomes" in line.plain for line in state.asking.plan)
    assert small.left not in story.history.pruned
    decided(["enter"], state, story)
    assert small.left in story.history.pruned


def test_a_plan_is_kept_up_to_date_while_a_reason_is_typed(small: Small) -> None:
    story = Story(small.folder)
    state = decided(["X", *"why"], State(selected=small.step), story)
    story.add(1.1, small.dead)
    place, view = Place.of(story.stored), picture(story.history).view
    state = planned_anew(state, place, view)
    assert state.asking is not None
    assert "  6 candidates: no longer a parent" in [line.plain for line in state.asking.plan]
    story.add(1.1, small.dead)  # one more of the same is no other plan
    assert decided(["enter"], state, story).message.plain.startswith("prune")
    asking = decided(["p"], State(selected=small.fail), story)
    assert "no valid evaluation" in asking.message.plain
    asking = decided(["u"], State(), story)
    story.decide("undo", undoes=story.history.decisions[-1].id)
    assert "undone already" in planned_anew(asking, place, view).message.plain


def test_what_cannot_be_decided_is_said(small: Small) -> None:
    story = Story(small.folder)
    assert "the seed" in decided(["x"], State(selected=small.seed), story).message.plain
    assert "no decision to undo" in decided(["u"], State(), story).message.plain


def test_a_candidate_and_its_change_are_read_and_scrolled(small: Small) -> None:
    story = Story(small.folder)
    state = decided(["enter"], State(selected=small.left), story)
    assert state.reading is not None
    assert any("corner circles first" in line.plain for line in state.reading.lines)
    state = decided(["d", "j"], state, story)
    assert state.reading is not None
    assert any(line.plain == "+VALUE = 3" for line in state.reading.lines)
    assert state.reading.top == 1
    assert decided(["q"], state, story).reading is None
    state = decided(["n"], state, story)
    assert state.reading is not None
    assert (state.reading.commit, state.reading.what, state.selected) == (small.step, "diff", small.step)
    state = decided(["N", "D"], state, story)
    assert state.reading is not None
    assert f"◆ {small.seed[:7]}  Seed" in state.reading.lines[0].plain
    state = decided(["p", *"as read", "enter"], state, story)
    assert story.history.promoted == {small.left}
    assert "done" in "\n".join(screen(picture(story.history), state))


# --- what is computed ---------------------------------------------------------------------------------------------


def test_a_run_that_goes_on_as_it_does_reaches_its_limit_when_the_forecast_says() -> None:
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


def test_money_spent_and_money_to_come_stand_in_the_second_line() -> None:
    told = RecordedHistory(settings={"evaluations": 20, "dollars": 5.0})
    pace = Pace(told.history)
    seed = told.add(1.0)
    for number in range(10):
        told.time = 10 * number
        told.append(Spent(engine="e", move=number, agent="a1", model="big", prompt=10, completion=5, dollars=0.2))
        told.add(1.0 + number, seed)
    forecast = pace.forecast(RunLimits(evaluations=20, dollars=5.0), 0.0, 90.0)
    told.append(Reserved(engine="e", move=10, agent="a1", model="big", prompt=10, completion=900, dollars=4.0))
    assert pace.per_second("dollars", 90.0) == pytest.approx(2 / 90)  # what is set aside is not spent yet
    told.append(Spent(engine="e", move=10, agent="a1", model="big", reserved=told.entries[-1].id, failure="down"))
    assert forecast is not None
    assert forecast.dollars == pytest.approx(3.8)
    now = Now(time=90.0, agents={}, began=0.0, forecast=forecast, per_second=0.1)
    line = screen(picture(told.history), width=140, now=now)[1]
    assert "11 evaluations, 0 failed · 6.0/min · 11 of 20 evaluations · $2.00 of $5.00 · ends in 1:21" in line
    assert line.endswith("(evaluations, $3.80 by then)")


def test_lines_of_dots_are_drawn_from_end_to_end_and_marks_are_on_top() -> None:
    canvas = Canvas(3, 2)
    canvas.line((0, 0), (5, 7))
    assert [line.plain for line in canvas.lines()] == ["\u2831\u2840 ", " \u2808\u2886"]
    canvas.mark(1, 1, "x")
    canvas.dot(99, 99)
    assert [line.plain for line in canvas.lines()] == ["\u2831\u2840 ", " x\u2886"]
