from __future__ import annotations

import pytest

from evogit.bench.methods import CONTROLS, KNOWN, Method, is_control, methods, parse
from evogit.config.run_settings import AgentSpec
from evogit.core import ConfigError, UsageError
from evogit.selection.registry import open_selector

pytestmark = pytest.mark.slow

FOUR = (AgentSpec("mutator", count=4),)


def test_every_known_method_has_a_selector_that_opens() -> None:
    for method in methods(KNOWN, [], []):
        assert open_selector(method.selector)
    assert [each.name for each in CONTROLS if not is_control(each.name)] == []


def test_one_agent_alone_is_the_sequential_one() -> None:
    assert KNOWN["sequential"].population(FOUR) == (AgentSpec("mutator"),)
    assert KNOWN["evolve"].population(FOUR) == FOUR
    assert Method(name="m", agents=(AgentSpec("editor", "x"),)).population(FOUR) == (AgentSpec("editor", "x"),)


def test_a_method_of_ones_own() -> None:
    assert parse("calm=weighted:pressure=2") == Method(name="calm", selector="weighted:pressure=2")
    two = parse("two=--agent editor@a --agent editor@b:2")
    assert two.agents == (AgentSpec("editor", "a"), AgentSpec("editor", "b", 2))
    both = parse("both=best-of-n --agent mutator:2")
    assert (both.selector, both.agents) == ("best-of-n", (AgentSpec("mutator", count=2),))


@pytest.mark.parametrize("text", ["", "=x", "name", "name=", "n=--agent", "n=--seed 3", "n=a b", "n='", "n=--agent ''"])
def test_what_is_no_method_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        parse(text)


def test_names_that_are_wrong_or_stand_for_two() -> None:
    with pytest.raises(UsageError, match="no method 'evlove'; .*evolve"):
        methods(["evlove"], [], [])
    with pytest.raises(UsageError, match="twice"):
        methods(["evolve"], ["elitist"], ["evolve=weighted"])
    with pytest.raises(UsageError, match="twice"):
        methods([], [], ["a b=elitist", "a/b=elitist"])
    with pytest.raises((ConfigError, UsageError)):
        methods([], ["nonsense"], [])
    with pytest.raises(UsageError, match="at least one method"):
        methods([], [], [])
    assert methods([], ["weighted:archive=3"], [])[0].file_name == "weighted_archive=3"
