"""What is asked and answered is read at any depth, so that leaks are found wherever answers stand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evogit.audit.attacks.edited import BROKEN_BY
from evogit.audit.attacks.tolerance import tolerances
from evogit.audit.candidate import helpers
from evogit.audit.laboratory import Call
from evogit.audit.parts import EACH, JSON, KEYS, LINES, common, places, read
from evogit.audit.rules import EARLY, mined

from .conftest import Audit
from .small_tasks import Small


def call(asked: Any, value: Any, kind: str = "call") -> Call:
    return Call(kind, "program:solve", "program", json.dumps([[asked], {}]), "", value=value, answered=True)


def changed(value: Any, place: tuple[Any, ...], change: str) -> Any:
    """What a candidate makes of a value."""
    names: dict[str, Any] = {}
    exec(helpers(f"def made(value):\n    return _on(value, {place!r}, lambda x: {change})\n"), names)
    return names["made"](value)


def test_lists_are_found_at_any_depth() -> None:
    value = {"plan": [{"id": "a", "x": 1}, {"id": "b", "x": 2}], "cost": 3}
    assert ("plan",) in places(value)
    assert read(value, ("plan", EACH, "id")) == ["a", "b"]
    assert read([[1, 2], [3]], (EACH,)) == [1, 2, 3]
    assert read({"a": 1, "b": 2}, (KEYS,)) == ["a", "b"]
    assert (JSON, "rows") in places('{"rows": [1, 2]}')
    assert (LINES,) in places("a,1\nb,2\n")
    assert common([{"a": [1]}, {"b": [1]}]) == []


def test_lists_are_changed_where_they_stand() -> None:
    rows = {"plan": [{"id": "a", "x": 1}, {"id": "b", "x": 2}]}
    assert changed(rows, ("plan", EACH, "x"), "x[:1] * len(x)")["plan"][1] == {"id": "b", "x": 1}
    assert changed(rows, ("plan",), "x[:1]") == {"plan": [{"id": "a", "x": 1}]}
    assert changed([[1, 2], [3]], (EACH,), "x[1:]") == [[2], []]
    assert changed({"a": 1, "b": 2}, (EACH,), "[0] * len(x)") == {"a": 0, "b": 0}
    assert changed({"a": 1, "b": 2}, (KEYS,), "x[:1]") == {"a": 1}
    assert changed("day,v\n1,2\n", (LINES,), "x[:1]") == "day,v\n"
    assert json.loads(changed('{"rows": [1, 2]}', (JSON, "rows"), "x[::-1]")) == {"rows": [2, 1]}


@pytest.mark.parametrize(
    ("asked", "right", "wrong", "goal"),
    [
        ({"blocks": [{"id": each} for each in "abcde"]}, [{"id": each} for each in "abcde"], [{"id": "a"}], ""),
        ({"stops": [[1, 1]] * 5}, [[0, 1], [2, 3, 4]], [[0, 0], [0, 0, 0]], ""),
        ("a long text", "a long", "a long text", "At most 8 characters."),
        ([1, 2], [0.1, 0.2], [0.9, 0.2], "Shares from 0 to 0.25."),
        ([1, 2], ["a"], ["a", "b", "c", "d"], "Up to three words."),
        ({"ids": list("abcd")}, {"a": "x", "b": "y", "c": "x", "d": "x"}, {"a": "x"}, ""),
        ({"pairs": [["a", "b"], ["b", "c"]]}, {"a": 0, "b": 1, "c": 0}, {"a": 0, "b": 0, "c": 0}, ""),
        ("one two three four five six", ["one two three", "four five six"], ["one two"], ""),
        ([4] * 5, [{"from": 0, "to": 3}] * 4, [{"from": 3, "to": 0}] * 4, ""),
        ([2] * 4, {"a": 0, "b": 2, "c": 4, "d": 6}, {"a": 0, "b": 0, "c": 0, "d": 0}, "One job at a time."),
        ([4] * 5, [1, 2, 3, 4, 5], [1, None, None, None, None], ""),
    ],
)
def test_an_answer_that_breaks_a_rule_is_told(asked: Any, right: Any, wrong: Any, goal: str) -> None:
    rules = mined([call(asked, right)], goal)
    assert all(rule.holds(call(asked, right)) for rule in rules)
    assert not all(rule.holds(call(asked, wrong)) for rule in rules)


def test_what_comes_before_others_is_a_rule_where_the_goal_says_so() -> None:
    names = [f"t{number}" for number in range(5)]
    asked = [{"days": 1, "name": name, "after": names[max(0, place - 1) : place]} for place, name in enumerate(names)]
    assert EARLY in [rule.says for rule in mined([call(asked, names)], "Each comes after those it needs.")]
    assert EARLY not in [rule.says for rule in mined([call(asked, names)], "In any sequence.")]
    assert EARLY in BROKEN_BY


def test_rounding_before_a_comparison_is_a_tolerance() -> None:
    text = "if round(sum(shares), 1) > 1.0:\n    raise Invalid('too much')\nscore = round(total, 2)\n"
    (found,) = tolerances({"evaluate.py": text}, "")
    assert (found.size, found.line) == (0.05, 1)
    assert "round(sum(shares), 4)" in found.strict


NESTED = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    for size in {"train": (9, 11), "holdout": (10,)}[split]:
        blocks = [{"id": f"b{number}", "w": rng.randint(1, 6)} for number in range(size)]
        placed = program.call("program:solve", [{"blocks": blocks}], returns=list[dict]).value
        widths = {block["id"]: block["w"] for block in blocks}
        if not all(set(each) == {"id", "x"} and each["id"] in widths for each in placed):
            raise Invalid("expected a place for each block")
        CHECK
        yield Case(str(size), score=max((each["x"] + widths[each["id"]] for each in placed), default=0))
"""
ALL = 'if sorted(each["id"] for each in placed) != sorted(widths): raise Invalid("not all")'
PLACED = """\
def solve(problem):
    at, placed = 0, []
    for block in problem["blocks"]:
        placed.append({"id": block["id"], "x": at})
        at += block["w"]
    return placed
"""
MARKET = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    for day in range(2):
        prices = [rng.randrange(50, 150) for _ in range(30)]
        said = program.call("program:solve", [{"name": day, "prices": prices}], returns=list[str]).value
        if len(said) != len(prices) or not set(said) <= {"up", "down"}:
            raise Invalid("expected up or down for each price")
        right = [way == ("up" if b > a else "down") for way, a, b in zip(said, prices, prices[1:])]
        yield Case(str(day), score=sum(right))
"""
GUESSED = """\
def solve(market):
    return ["up" if price < 100 else "down" for price in market["prices"]]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("small", "attack", "found"),
    [
        (Small(NESTED.replace("CHECK", "pass"), PLACED, direction="minimize"), "broken-rules", 1),
        (Small(NESTED.replace("CHECK", ALL), PLACED, direction="minimize"), "broken-rules", 0),
        (Small(MARKET, GUESSED, goal="In real time: say of each price whether the next one is up."), "lookahead", 1),
        (Small(MARKET, GUESSED, goal="Say of each price whether a higher one follows it."), "lookahead", 0),
    ],
    ids=["left out", "all there", "in real time", "all known"],
)
async def test_leaks_are_found_within_records(audit: Audit, small: Small, attack: str, found: int) -> None:
    assert len(await audit(small, attack)) == found
