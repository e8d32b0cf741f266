"""What a model says after the search moved on: changes to a parent that was overtaken, and advice after a plateau."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import cast

import pytest

from evogit.agents import Agent, Brief, NoUsableChangeError, Proposal, Workshop
from evogit.agents.briefs import briefing
from evogit.agents.coder import Coder
from evogit.agents.editor import Editor
from evogit.breeding.breeder import Bred, Breeder
from evogit.events import Duplicate, Tactic
from evogit.llm import ModelError
from evogit.selection import Move
from evogit.testing import ScriptedAgent
from tests.agents.conftest import Lab, Parrot

BEFORE = b"def a():\n    return 1\n\n\ndef b():\n    return 1\n"
MEANWHILE = BEFORE.replace(b"a():\n    return 1", b"a():\n    # better\n    return 2")


async def overtaken(lab: Lab, content: bytes, *, rebase: bool = True) -> tuple[Bred, str, str]:
    """What an agent makes of a parent that a better child overtakes meanwhile, that parent, and that child."""
    parent = lab.add({"main.py": BEFORE}, lab.seed(), evaluation=2.0)
    found = list[str]()

    def think(brief: Brief, rng: random.Random) -> dict[str, bytes | None]:
        found.append(lab.add({"main.py": MEANWHILE}, parent, evaluation=3.0))
        return {"main.py": content}

    move = Move(operator="mutation", parents=(parent,), rebase=rebase)
    return await lab.breeder.breed(ScriptedAgent(think), move, random.Random(1)), parent, found[0]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (BEFORE.replace(b"b():\n    return 1", b"b():\n    return 5"), MEANWHILE.replace(b"return 1", b"return 5")),
        (
            b"def a():\n    # as is\n    return 1\n\n\ndef b():\n    return 5\n",
            MEANWHILE.replace(b"return 1", b"return 5"),
        ),
        (
            b"def a():\n    return 7\n\n\ndef b():\n    return 5\n",
            b"def a():\n    return 7\n\n\ndef b():\n    return 5\n",
        ),
    ],
    ids=["other lines", "comments beside", "all of it"],
)
async def test_a_change_lands_on_the_best_that_came_meanwhile(lab: Lab, content: bytes, expected: bytes) -> None:
    bred, parent, best = await overtaken(lab, content)
    assert lab.files(bred.tree)["main.py"] == expected
    on_best = b"better" in expected
    assert (bred.parents, bred.rebased_from) == (((best,), parent) if on_best else ((parent,), ""))


async def test_where_the_selector_wants_that_parent_the_change_stays_on_it(lab: Lab) -> None:
    bred, parent, _ = await overtaken(lab, BEFORE + b"C = 1\n", rebase=False)
    assert (bred.parents, bred.rebased_from) == ((parent,), "")


@pytest.mark.parametrize("agents", [0, 1, 9], ids=["free", "deterministic", "of which the move may not know"])
async def test_what_is_there_already_is_put_where_it_is_new(lab: Lab, agents: int) -> None:
    parent = lab.add({"main.py": BEFORE}, lab.seed(), evaluation=2.0)
    fives = BEFORE.replace(b"b():\n    return 1", b"b():\n    return 5")
    made = lab.add({"main.py": fives}, parent, evaluation=1.0)
    better = lab.add({"main.py": MEANWHILE}, parent, evaluation=1.5)
    move = Move(operator="mutation", parents=(parent,), spares=(parent, made, better))
    breeder = Breeder(lab.repository, lab.task, lab.history, deterministic_agents=agents)
    bred = await breeder.breed(ScriptedAgent(lambda brief, rng: {"main.py": fives}), move, random.Random(1), number=9)
    if agents == 9:
        assert (bred.tree, bred.parents) == (lab.repository.tree_of(made), (parent,))
    else:
        assert lab.files(bred.tree)["main.py"] == MEANWHILE.replace(b"return 1", b"return 5")
        assert (bred.parents, bred.rebased_from) == ((better,), parent)


async def test_a_brief_tells_of_changes_that_went_elsewhere_and_of_duplicates(lab: Lab) -> None:
    seed = lab.seed()
    best = lab.add({"main.py": b"VALUE = 2\n"}, seed, evaluation=2.0)
    went = lab.commit({"main.py": b"VALUE = 3\n"}, best)
    lab.propose(best, candidate=went, tree=lab.repository.tree_of(went), rebased_from=seed, title="went away")
    lab.evaluate(went, 1.0)
    lab.append(Duplicate(engine="e", move=9, agent="a1", first=best, parents=(seed,), title="two again"))
    brief = lab.brief(seed)
    assert brief.background
    background = brief.background()
    assert {idea.title: idea.score for idea in background.ideas} == {"step": 2.0, "went away": 1.0, "two again": 2.0}


async def test_a_call_that_begins_afresh_sees_the_goal_and_the_seed_and_no_code_of_anything_better(lab: Lab) -> None:
    seed = lab.seed()
    best = lab.add({"main.py": b"CLEVER = 2\n"}, seed, evaluation=2.0)
    other = lab.add({"main.py": b"PLAIN = 3\n"}, seed, evaluation=1.5)

    def text(commit: str, *, afresh: bool = False) -> str:
        brief = lab.breeder.brief(lab.history.phylogeny[commit], None, afresh=afresh)
        assert brief.background
        return briefing.write(brief, brief.background(), 10_000).text

    assert "CLEVER" not in text(seed, afresh=True)
    assert "step" in text(seed, afresh=True), "the idea is named"
    assert "CLEVER" in text(seed)
    assert "CLEVER" in text(other)
    assert "CLEVER" in text(best)


async def test_a_call_that_begins_afresh_sees_no_code_of_other_families_while_the_run_stands_still(lab: Lab) -> None:
    seed = lab.seed()
    lab.idea(3.0, seed, title="sort once", family="sorting")
    for way in ("up", "down", "left", "right", "back"):
        lab.idea(2.0, seed, title=f"walk {way}", family="walks")

    def brief(*, afresh: bool) -> briefing.Written:
        made = lab.breeder.brief(lab.history.phylogeny[seed], None, afresh=afresh)
        assert made.background
        return briefing.write(made, made.background(), 10_000)

    assert "VALUE = 'idea" in brief(afresh=False).text
    assert "VALUE = 'idea" not in brief(afresh=True).text
    assert not brief(afresh=True).shown
    assert "sort once" in brief(afresh=True).text, "the idea is named"


@pytest.mark.parametrize("kind", [Editor, Coder])
async def test_a_model_looks_back_once_and_later_briefs_have_what_it_says(
    lab: Lab, kind: type[Editor] | type[Coder]
) -> None:
    seed = lab.seed()
    model = Parrot("Tuning was tried in vain.\nSort first.")
    agent: Agent = kind(model)
    advice = await lab.breeder.advise(
        agent, Move(operator="mutation", parents=(seed,)), random.Random(1), account=lab.wallet
    )
    assert (advice.model, lab.wallet.paid) == ("parrot", 1)
    assert "Do not change anything now" in model.asked[0].messages[-1].content
    entry = lab.append(Tactic(engine="e", move=9, agent="a1", best=seed, text=advice.text))
    brief = lab.breeder.brief(lab.history.phylogeny[seed], None, tactic=entry)
    assert brief.background
    assert "Sort first." in briefing.write(brief, brief.background(), 10_000).text
    assert "Sort first." not in briefing.write(lab.brief(seed), lab.brief(seed).background(), 10_000).text  # type: ignore[misc]


async def test_a_model_that_says_nothing_gives_no_advice(lab: Lab) -> None:
    move = Move(operator="mutation", parents=(lab.seed(),))
    for reply in ("  \n", ModelError("down")):
        with pytest.raises(NoUsableChangeError, match="empty|down"):
            await lab.breeder.advise(Editor(Parrot(reply)), move, random.Random(1), account=lab.wallet)


ADDED = b"def helper():\n    return 3\n\n\n"
ATOP, BETWEEN = ADDED + BEFORE, BEFORE.replace(b"def b", ADDED + b"def b")


async def test_what_both_sides_added_in_different_places_is_not_there_twice(lab: Lab) -> None:
    parent = lab.add({"main.py": BEFORE}, lab.seed(), evaluation=2.0)
    other = lab.add({"main.py": ATOP}, parent, evaluation=2.5)

    def think(brief: Brief, rng: random.Random) -> dict[str, bytes | None]:
        lab.add({"main.py": BETWEEN}, parent, evaluation=3.0)
        return {"main.py": ATOP + b"C = 1\n"}

    move = Move(operator="mutation", parents=(parent,), rebase=True)
    bred = await lab.breeder.breed(ScriptedAgent(think), move, random.Random(1))
    assert (bred.parents, bred.rebased_from) == ((parent,), "")
    best = lab.history.best
    assert best
    merge = Move(operator="merge", parents=(best, other))
    with pytest.raises(NoUsableChangeError, match=r"the merge of main.py defines helper twice"):
        await lab.breeder.breed(ScriptedAgent(think), merge, random.Random(1))


async def test_drafts_that_were_evaluated_count_for_the_tactic_they_were_made_by(lab: Lab) -> None:
    seed = lab.seed()
    tactic = lab.append(Tactic(engine="e", move=9, agent="a1", best=seed, text="Sort first."))
    made: list[Bred] = []

    def workshop(make: Callable[[Proposal], Bred]) -> Workshop:
        made.append(make(Proposal(changes={"main.py": b"VALUE = 3\n"}, title="a draft")))
        return cast(Workshop, None)  # this agent tries nothing by itself

    move = Move(operator="mutation", parents=(seed,), tactic=tactic)
    agent = ScriptedAgent(lambda brief, rng: {"main.py": b"VALUE = 4\n"})
    bred = await lab.breeder.breed(agent, move, random.Random(1), workshop=workshop)
    assert [each.tactic for each in (*made, bred)] == [tactic, tactic]


TABLE = b"".join(b"ROW_%d = %d\n" % (number, number) for number in range(20))


@pytest.mark.parametrize(
    ("rows", "is_put"), [(range(12, 20), True), (range(3, 20), False)], ids=["lines", "most of it"]
)
async def test_a_file_that_is_written_anew_is_not_put_on_another_version_of_it(
    lab: Lab, rows: range, is_put: bool
) -> None:
    parent = lab.add({"main.py": TABLE}, lab.seed(), evaluation=2.0)
    meanwhile, changed = TABLE.replace(b"ROW_0 = 0", b"ROW_0 = 7"), TABLE
    for row in rows:
        changed = changed.replace(b"ROW_%d = %d\n" % (row, row), b"LINE_%d = %d\n" % (row, row))
    found = list[str]()

    def think(brief: Brief, rng: random.Random) -> dict[str, bytes | None]:
        found.append(lab.add({"main.py": meanwhile}, parent, evaluation=3.0))
        return {"main.py": changed}

    move = Move(operator="mutation", parents=(parent,), rebase=True)
    bred = await lab.breeder.breed(ScriptedAgent(think), move, random.Random(1))
    assert bred.parents == ((found[0],) if is_put else (parent,))
    assert (b"ROW_0 = 7" in lab.files(bred.tree)["main.py"]) == is_put
