"""Written histories whose truth is known: `blame`, the steps of a landing and its message name it, and nothing else."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from evogit.breeding.crossings import Crossings
from evogit.core import Evaluation
from evogit.review.blaming import blame, contained_steps
from evogit.review.landing import SplitTrial, prepare
from evogit.review.landing_text import describe
from evogit.review.reporting import report_record
from evogit.selection.merge_strategies import FUNCTION
from tests.own import FILES, Own

PATH = "src/main.py"
SEED = FILES[PATH]
SUMS = "\n\ndef sums(terms):\n    whole = sorted(terms)\n    return sum(whole, start=0)\n"
CLIMB = "\n\ndef climb(start):\n    near = start + 1\n    return max(near, start)\n"
DESCEND = "\n\ndef descend(start):\n    near = start - 1\n    return min(near, start)\n"
USES_SUMS = SEED.replace("return VALUE", "return sums([VALUE, 1])") + SUMS
USES_CLIMB = SEED.replace("return VALUE", "return climb(VALUE)") + CLIMB
USES_DESCENT = SEED.replace("return VALUE", "return descend(VALUE)") + DESCEND


class Told:
    """A history that is written step by step: `step` adds one by a name, which is its title."""

    def __init__(self, own: Own) -> None:
        self.own = own
        self.ids = {"seed": own.seed}

    def step(self, name: str, text: str, *parents: str, value: float | str = 2.0, **known: object) -> None:
        ids = tuple(self.ids[parent] for parent in parents or ("seed",))
        for key in ("shown", "inspirations"):
            if key in known:
                known[key] = tuple(self.ids[each] for each in known[key])  # type: ignore[attr-defined]
        if "rebased_from" in known:
            known["rebased_from"] = self.ids[str(known["rebased_from"])]
        known = {"operator": "merge" if ids[1:] else "mutation", **known}
        self.ids[name] = self.own.add_files({PATH: text.encode()}, *ids, value=value, title=name, **known)  # type: ignore[arg-type]

    def merge(self, name: str, first: str, second: str, value: float = 3.0) -> None:
        crossings = Crossings(self.own.repository, self.own.history, lambda path: True)
        merged = crossings.cross("merge", (self.ids[first], self.ids[second]), FUNCTION, random.Random(0))
        text = self.own.repository.trees.files(merged.tree, PATH.__eq__)[PATH].decode()
        self.step(name, text, first, second, value=value, strategy=FUNCTION)


def a_line(told: Told) -> dict[str, str]:
    told.step("sums", USES_SUMS)
    told.step("best", USES_SUMS.replace("sorted(terms)", "list(terms)"), "sums", value=3.0)
    return {"return sums([VALUE, 1])": "sums", "whole = list(terms)": "best"}


def an_invalid_step(told: Told) -> dict[str, str]:
    told.step("broken", USES_SUMS + "raise ValueError\n", value="invalid")
    told.step("best", USES_SUMS, "broken", value=3.0)
    return {"return sums([VALUE, 1])": "best", "whole = sorted(terms)": "best"}


def lines_of_an_invalid_inspiration(told: Told) -> dict[str, str]:
    told.step("broken", USES_SUMS, value="crashed")
    told.step("best", SEED.replace("VALUE = 1", "VALUE = 3") + SUMS, shown=["broken"], inspirations=["broken"])
    return {"VALUE = 3": "best", "whole = sorted(terms)": "best"}


def lines_of_a_valid_inspiration(told: Told) -> dict[str, str]:
    told.step("sums", USES_SUMS)
    told.step("best", USES_SUMS.replace("VALUE = 1", "VALUE = 3"), value=3.0, shown=["sums"], inspirations=["sums"])
    return {"VALUE = 3": "best", "whole = sorted(terms)": "sums"}


def an_invalid_step_between_valid_ones(told: Told) -> dict[str, str]:
    told.step("sums", USES_SUMS)
    told.step("broken", USES_SUMS.replace("VALUE = 1", "VALUE = 5"), "sums", value="timeout")
    told.step("repaired", USES_SUMS.replace("VALUE = 1", "VALUE = 5") + "LIMIT = VALUE\n", "broken")
    told.step("best", USES_SUMS.replace("VALUE = 1", "VALUE = 5") + "LIMIT = VALUE + 1\n", "repaired", value=4.0)
    return {"VALUE = 5": "repaired", "whole = sorted(terms)": "sums", "LIMIT = VALUE + 1": "best"}


def tunings(told: Told) -> dict[str, str]:
    told.step("sums", USES_SUMS)
    told.step("up", USES_SUMS.replace("start=0", "start=8"), "sums", strategy="number@1")
    told.step("best", USES_SUMS.replace("start=0", "start=9"), "up", strategy="number@0.1", value=3.0)
    return {"return sums([VALUE, 1])": "sums", "return sum(whole, start=9)": "best"}


def a_clean_merge(told: Told) -> dict[str, str]:
    told.step("three", SEED.replace("VALUE = 1", "VALUE = 3"))
    told.step("sums", USES_SUMS)
    told.merge("best", "three", "sums")
    return {"VALUE = 3": "three", "return sums([VALUE, 1])": "sums"}


def a_merge_of_two_ideas_of_which_one_works(told: Told) -> dict[str, str]:
    told.step("climb", USES_CLIMB, value=2.9)
    told.step("descend", USES_DESCENT, value=2.0)
    told.merge("merged", "climb", "descend")
    merged = told.own.history.phylogeny[told.ids["merged"]].tree
    text = told.own.repository.trees.files(merged, PATH.__eq__)[PATH].decode()
    assert "descend" not in text  # what nothing names any more is dropped before it is evaluated
    told.step("best", text.replace("start + 1", "start + 2"), "merged", value=4.0)
    return {"return climb(VALUE)": "climb", "near = start + 2": "best"}


def a_merge_whose_sides_name_each_other(told: Told) -> dict[str, str]:
    told.step("climb", USES_CLIMB, value=2.9)
    told.step("descend", USES_DESCENT + "\n\nWAYS = [descend]\n", value=2.0)
    told.step("ways", USES_CLIMB + DESCEND + "\n\nWAYS = [descend(0), climb(0)]\n", "climb", "descend", value=3.0)
    return {"return climb(VALUE)": "climb", "near = start - 1": "descend", "WAYS = [descend(0), climb(0)]": "ways"}


def an_old_merge_that_kept_dead_code(told: Told) -> dict[str, str]:
    told.step("climb", USES_CLIMB, value=2.9)
    told.step("descend", USES_DESCENT, value=2.0)
    told.step("merge", USES_CLIMB + DESCEND, "climb", "descend", value=3.0)
    return {"return climb(VALUE)": "climb", "near = start + 1": "climb"}


def a_rebased_change(told: Told) -> dict[str, str]:
    told.step("three", SEED.replace("VALUE = 1", "VALUE = 3"))
    told.step("best", USES_SUMS.replace("VALUE = 1", "VALUE = 3"), "three", value=3.0, rebased_from="seed")
    return {"VALUE = 3": "three", "return sums([VALUE, 1])": "best"}


def an_invalid_step_that_only_removed(told: Told) -> dict[str, str]:
    told.step("sums", USES_SUMS)
    told.step("broken", USES_SUMS.replace("    whole = sorted(terms)\n", ""), "sums", value="crashed")
    mended = USES_SUMS.replace("    whole = sorted(terms)\n", "").replace("sum(whole", "sum(terms")
    told.step("best", mended, "broken", value=3.0)
    return {"return sums([VALUE, 1])": "sums", "return sum(terms, start=0)": "best"}


HISTORIES: list[Callable[[Told], dict[str, str]]] = [
    a_line,
    an_invalid_step,
    lines_of_an_invalid_inspiration,
    lines_of_a_valid_inspiration,
    an_invalid_step_between_valid_ones,
    tunings,
    a_clean_merge,
    a_merge_of_two_ideas_of_which_one_works,
    a_merge_whose_sides_name_each_other,
    an_old_merge_that_kept_dead_code,
    a_rebased_change,
    an_invalid_step_that_only_removed,
]


@pytest.mark.parametrize("write", HISTORIES, ids=lambda write: write.__name__.replace("_", " "))
def test_the_author_of_each_reached_line_is_named_and_nobody_else(
    own: Own, write: Callable[[Told], dict[str, str]]
) -> None:
    told = Told(own)
    truth = write(told)
    names = {commit: name for name, commit in told.ids.items()}
    best = own.history.phylogeny[own.history.best or ""]
    lines = [line for line in blame(own.repository, own.history, best.commit, PATH) if line.reached]
    authors = {line.text.strip(): names[line.commit] for line in lines}
    assert {text: authors[text] for text in truth} == truth
    wrote = {*truth.values()}
    assert {names[line.commit] for line in lines} - {"seed"} == wrote

    steps = contained_steps(own.repository, own.history, best, {own.seed})
    assert {names[step.candidate.commit] for step in steps} == wrote
    plan = asyncio.run(prepare(own.repository, own.history, best, None, squash=True))
    measured = (Evaluation(status="ok", metrics={"score": value}) for value in (1.0, 3.0))
    trial = SplitTrial(split="train", before=next(measured), after=next(measured))
    said = describe(own.repository, own.history, plan, [trial], "", "")
    titles = {step.title for step in said.steps}
    assert titles == wrote
    message = said.message(squash=True)
    assert not [name for name in {*told.ids} - wrote - {"seed"} if f"- {name}" in message]

    valid = {commit for commit in names if own.history.fitness(commit) is not None}
    assert {step["commit"] for step in report_record(own.repository, own.history)["steps"]} <= valid
