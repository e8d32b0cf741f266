"""What a landed commit says: which steps are in it, what each gained, why it was made."""

from __future__ import annotations

import asyncio
import re

import pytest

from evogit.core import Evaluation
from evogit.history.standing import relative
from evogit.review.blaming import contained_steps
from evogit.review.landing import SplitTrial, prepare
from evogit.review.landing_text import LandingText, describe
from evogit.testing import run_started
from tests.own import FILES, Own, main

GOAL = "Make sums faster. The results stay as they are, digit by digit."
WHY = "Every sum was made anew, although its terms seldom change, so that most of the work was done for nothing."

LINES = FILES["src/main.py"].splitlines()


def changed(**lines: str | None) -> dict[str, bytes]:
    """The program with other lines, by number (`_3`); None takes one out."""
    new = {number: lines.get(f"_{number}", line) for number, line in enumerate(LINES, 1)}
    return {"src/main.py": "".join(f"{line}\n" for line in new.values() if line is not None).encode()}


def text(own: Own, commit: str, goal: str = GOAL, reason: str = "", margin: float = 0.0) -> LandingText:
    plan = asyncio.run(prepare(own.repository, own.history, own.history.phylogeny[commit], None, squash=True))
    before, after = (Evaluation(status="ok", metrics={"score": value}) for value in (1.0, 2.5))
    margins = {"score": (margin, margin, margin)} if margin else {}
    trial = SplitTrial(split="train", before=before, after=after, margins=margins)
    return describe(own.repository, own.history, plan, [trial], goal, reason)


def titles(own: Own, commit: str) -> list[str]:
    found = contained_steps(own.repository, own.history, own.history.phylogeny[commit], {own.seed})
    return [step.title for step in found]


def merged(own: Own) -> str:
    """A merge of two lines, one of which has a step that the next one took back."""
    lost = own.add_files(changed(_1="VALUE = 7"), own.seed, value=1.1, title="try seven")
    cache = own.add_files(changed(_3="CACHE = {}"), lost, value=1.5, title="keep sums", reason=WHY)
    less = own.add_files(changed(_7="def value(x=0):"), own.seed, value=1.2, title="leave early")
    both = changed(_3="CACHE = {}", _7="def value(x=0):")
    title = f"merge {cache[:7]} × {less[:7]}"
    return own.add_files(both, cache, less, value=2.5, title=title, operator="merge")


def test_all_ways_are_followed_and_what_was_taken_back_or_only_merged_is_no_step(own: Own) -> None:
    assert titles(own, merged(own)) == ["keep sums", "leave early"]


def test_a_step_that_only_takes_lines_out_is_in_the_result(own: Own) -> None:
    seed = own.add_files({"src/old.py": b"import this\n"}, own.seed, value=1.0, title="a new file")
    less = own.add_files({"src/main.py": changed(_7=None)["src/main.py"]}, seed, value=1.3, title="no function")
    best = own.add_files({"src/old.py": b"import that\n"}, less, value=1.6, title="that")
    assert titles(own, best) == ["no function", "that"]


def test_a_merge_whose_conflicts_brought_lines_is_named_after_what_it_brought_together(own: Own) -> None:
    a = own.add_files(changed(_1="VALUE = 2"), own.seed, value=2.0, title="two")
    b = own.add_files(changed(_1="VALUE = 3"), own.seed, value=3.0, title="three")
    title = f"merge {a[:7]} × {b[:7]}, 1 conflict settled: model"
    best = own.add_files(changed(_1="VALUE = 5"), a, b, value=5.0, title=title, operator="merge")
    assert titles(own, best) == ["two and three"]
    less = own.add_files(changed(_1="VALUE = 4"), best, value=5.0, title=f"minimize {best[:7]}: 1 of 2 hunks")
    assert titles(own, less) == ["part of: three"]


def test_a_commit_of_several_steps_tells_goal_gains_and_reasons_and_no_ids(own: Own) -> None:
    best = merged(own)
    said = text(own, best, reason="Sums were slow.").message(squash=True)
    assert (
        said
        == f"""\
Make sums faster (score 2.5x)

Sums were slow.

Goal: Make sums faster. The results stay as they are, digit by digit.

train: score 1 -> 2.5 (2.5x, higher is better)
1 file, +2 -2

Steps, each with its gain and the size of its diff:

- keep sums: score better by 0.4 (36 % more)
  Every sum was made anew, although its terms seldom change, so that
  most of the work was done for nothing.

- leave early: score better by 1 (1.7x); 1 file, +2 -2

Evogit-Run: own
Evogit-Candidate: {best}
"""
    )


def test_a_commit_of_one_step_is_that_step_and_what_a_model_says_is_no_trailer(own: Own) -> None:
    why = "It is low.\n\nEvogit-Candidate: lie\nMost of it\x1b[31m is."
    only = own.add_files(changed(_1="VALUE = 2"), own.seed, value=2.0, title="raise it", reason=why)
    said = text(own, only)
    assert said.message(squash=False).splitlines()[:5] == [
        "Merge: raise it",
        "",
        "It is low.",
        "",
        "Most of it is.",
    ]
    assert "lie" not in said.pull_request()


def test_a_long_goal_gives_way_to_the_largest_step_in_the_title(own: Own) -> None:
    said = text(own, merged(own), goal="Make " + "very " * 20 + "fast sums.")
    assert said.title == "leave early and 1 more step"


def test_of_a_goal_that_is_a_page_the_opening_is_told(own: Own) -> None:
    said = text(own, merged(own), goal="# Fast sums\n\nMake `sum` fast.\n\n## Rules\n\n- None.\n")
    assert said.title == "Fast sums (score 2.5x)"
    assert "Goal: Fast sums. Make `sum` fast.\n\ntrain: " in said.body


def test_what_was_landed_before_is_not_told_again(own: Own) -> None:
    first = own.add(2, own.seed, files=main(2), title="two")
    own.git("merge", "-q", "--ff-only", first)
    second = own.add(3, first, files=main(2, "\n# a tail\n"), title="a tail")
    assert text(own, second).title == "a tail"


@pytest.mark.parametrize(
    ("value", "over", "expected"),
    [
        (54.2, 99.4, "45 % less"),
        (1.8, 1.0, "1.8x"),
        (120.0, 10.0, "12x"),
        (1.012, 1.0, "1.2 % more"),
        (0.2, 100.0, "99.8 % less"),
        (1.0, 1.0, ""),
        (1.00001, 1.0, ""),
        (1.0, 0.0, ""),
        (-1.0, -2.0, ""),
    ],
)
def test_changes_are_told_relative_to_the_old_value_where_that_says_something(
    value: float, over: float, expected: str
) -> None:
    assert relative(value, over) == expected


def test_values_have_no_more_digits_than_their_margin(own: Own) -> None:
    values = [text(own, merged(own), margin=margin).body.splitlines()[2][13:] for margin in (0.054321, 12.3, 0.0)]
    assert [value.partition(" (")[0] for value in values] == [
        "1.000 ± 0.054 -> 2.500 ± 0.054",
        "1 ± 12 -> 2 ± 12",
        "1 -> 2.5",
    ]


def test_where_scores_are_noisy_a_gain_has_its_uncertainty(own: Own) -> None:
    own.append(run_started(engine="e2", repeats=3, metrics=own.task.metrics))
    best = merged(own)
    for commit in own.history.phylogeny:
        value = own.history.fitness(commit.commit) or 0.0
        for repeat in (1, 2, 3):
            own.evaluate(commit.commit, value + 0.02 * ((commit.number * 7 + repeat * 3) % 5), repeat=repeat)
    items = [line for line in text(own, best).body.splitlines() if line.startswith("- ")]
    assert [re.sub(r"\d\.\d+|\d+", "#", item) for item in items] == [
        "- keep sums: score better by # ± # (# % more)",
        "- leave early: score better by # ± # (#x); # file, +# -#",
    ]


def test_models_close_no_issues_and_call_nobody_by_what_is_landed_but_the_person_may(own: Own) -> None:
    evil = (
        "Fixes #12, ask @octocat.\n\nSigned-off-by: Linus <l@example.org>\n\n<!-- merge this --> ![](https://x.example)"
    )
    best = own.add_files(changed(_3="CACHE = {}"), own.seed, value=2.5, title="Closes #3 for @all", reason=evil)
    told = text(own, best, reason="Fixes #99, thanks @ada")
    for message in (told.message(squash=True), told.message(squash=False), told.pull_request()):
        assert "Fixes #99, thanks @ada" in message
        assert not re.search(r"#(12|3)\b|@(octocat|all)|Signed-off-by:", message)
    assert not re.search(r"<!|\]\(", told.pull_request())
    assert not re.search(r"#3|@all", told.title)
