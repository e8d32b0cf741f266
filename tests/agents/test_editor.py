"""What an editor makes of a model's replies, in a real repository and through the breeder's checks."""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evogit.agents import NoUsableChangeError
from evogit.agents.coder import Coder
from evogit.agents.editor import Editor
from evogit.breeding.breeder import Bred
from evogit.config import Task
from evogit.config.run_settings import AgentSpec, Settings
from evogit.history.counts import TUNING
from evogit.llm import Account, CredentialError, ModelError, Question, SpendingLimitError
from evogit.llm.recording import question_key
from evogit.repository import EXECUTABLE, Repository
from evogit.run import Run
from evogit.selection import Move

from .conftest import Lab, Parrot

GOOD = (
    "I raise it.\n\nTITLE: raise the value\n\n<<<<<<< SEARCH main.py\nVALUE = 1\n=======\nVALUE = 2\n>>>>>>> REPLACE\n"
)
WRONG = GOOD.replace("VALUE = 1", "VALUE  = 1")
BABBLE = "As a language model I would rather talk."


async def refusal(lab: Lab, *replies: str | Exception) -> NoUsableChangeError:
    with pytest.raises(NoUsableChangeError) as caught:
        await lab.breed(Editor(Parrot(*replies)), lab.seed())
    return caught.value


async def test_a_reply_becomes_a_tree_with_its_title_model_and_evidence(lab: Lab) -> None:
    model = Parrot(GOOD)
    bred = await lab.breed(Editor(model), lab.seed())
    assert lab.files(bred.tree)["main.py"] == b"VALUE = 2\n"
    assert (bred.title, bred.model, bred.strategy, bred.operator) == ("raise the value", "parrot", "edit", "mutation")
    assert bred.reason == "I raise it."
    assert bred.evidence["reply.md"].decode() == GOOD
    assert b"VALUE = 1" in bred.evidence["prompt.md"]
    assert (model.asked[0].move, model.asked[0].attempt, lab.wallet.paid) == (7, 0, 1)
    assert [message.role for message in model.asked[0].messages] == ["system", "user"]


async def test_family_and_difference_of_a_reply_are_kept_apart_from_its_reason(lab: Lab) -> None:
    labels = "TITLE: raise the value\n**Family:** `Larger Values!`\nDIFFERS: by one\nFAMILY: second\n"
    told = GOOD.replace("TITLE: raise the value\n", labels).replace("VALUE = 2", "VALUE = sum(range(3))")
    bred = await lab.breed(Editor(Parrot(told)), lab.seed())
    assert (bred.family, bred.differs, bred.reason) == ("larger-values", "by one", "I raise it.")


async def test_a_change_of_numbers_alone_is_a_tuning_whatever_its_author_calls_it(lab: Lab) -> None:
    bred = await lab.breed(Editor(Parrot(GOOD.replace("TITLE:", "FAMILY: rewriting\nTITLE:"))), lab.seed())
    assert bred.family == TUNING


async def test_an_unusable_reply_still_says_which_idea_it_was(lab: Lab) -> None:
    wrong = WRONG.replace("TITLE: ", "TITLE: [larger] ")
    error = await refusal(lab, wrong, wrong)
    assert error.idea == {"title": "raise the value", "family": "larger", "differs": ""}
    protected = GOOD.replace("main.py", "judge/secret.py").replace("VALUE", "ANSWER")
    assert (await refusal(lab, protected, protected)).idea["title"] == "raise the value"


async def test_a_wrong_reply_gets_one_try_with_the_error_and_the_closest_lines(lab: Lab) -> None:
    model = Parrot(WRONG, GOOD)
    bred = await lab.breed(Editor(model), lab.seed())
    assert lab.files(bred.tree)["main.py"] == b"VALUE = 2\n"
    assert set(bred.evidence) == {"prompt.md", "reply.md", "prompt-2.md", "reply-2.md"}
    first, second = model.asked
    assert second.attempt == 1
    assert second.messages[: len(first.messages)] == first.messages
    assert [message.role for message in second.messages[2:]] == ["assistant", "user"]
    assert second.messages[2].content == WRONG
    assert "does not match 'main.py'" in second.messages[3].content
    assert "1  VALUE = 1" in second.messages[3].content


READING = "I have to see it.\n<<<<<<< READ main.py:VALUE\n<<<<<<< READ README.md\n<<<<<<< READ judge/secret.py\n"


async def test_an_editor_may_ask_once_to_read_more_before_it_answers(lab: Lab) -> None:
    model = Parrot(READING, GOOD)
    bred = await lab.breed(Editor(model), lab.seed())
    assert lab.files(bred.tree)["main.py"] == b"VALUE = 2\n"
    assert lab.wallet.paid == 2
    answer = model.asked[1].messages[-1].content
    assert "File main.py, lines 1-1 of 1:\n```\nVALUE = 1\n```" in answer
    assert "# Readme" in answer, "what may not be changed can be read"
    assert "ANSWER" not in answer, "what is withheld can not"
    assert set(bred.evidence) == {"prompt.md", "reply.md", "prompt-2.md", "reply-2.md"}


async def test_who_asks_to_read_twice_is_told_to_answer_and_a_wrong_answer_still_gets_its_try(lab: Lab) -> None:
    model = Parrot(READING, WRONG, GOOD)
    await lab.breed(Editor(model), lab.seed())
    assert lab.wallet.paid == 3
    assert "no edit block" in str(await refusal(lab, READING, READING, READING, GOOD))


async def test_lists_cost_no_reading_and_long_files_share_the_room(lab: Lab) -> None:
    long = "".join(f"def work_{number}():\n    return {number}\n\n" for number in range(9_000)).encode()
    seed = lab.add({"main.py": b"VALUE = 1\n", "src/a.py": long, "src/b.py": long}, evaluation=1.0)
    reading = "<<<<<<< READ src/a.py\n<<<<<<< READ src/b.py\n<<<<<<< READ main.py\n"
    model = Parrot("<<<<<<< LIST src/\n", reading, GOOD)
    await lab.breed(Editor(model), seed)
    listed, answer = (question.messages[-1].content for question in model.asked[1:])
    assert "a.py" in listed
    assert "main.py" not in listed
    shown = re.split(r"^File src/b.py", answer, maxsplit=1, flags=re.MULTILINE)
    assert 0.7 < len(shown[0]) / len(shown[1]) < 1.5
    assert "VALUE = 1" in answer


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("<<<<<<< WRITE ../outside.py\nx\n>>>>>>> END", "expected a relative path"),
        ("<<<<<<< WRITE /etc/passwd.py\nx\n>>>>>>> END", "expected a relative path"),
        ("<<<<<<< WRITE .git/hooks/x.py\nx\n>>>>>>> END", "reach into a .git folder"),
        ("<<<<<<< WRITE Makefile\nx\n>>>>>>> END", "expected changes to *.py"),
        ("<<<<<<< WRITE judge/secret.py\nx\n>>>>>>> END", "expected changes to *.py"),
        ("<<<<<<< SEARCH judge/secret.py\nANSWER = 42\n=======\nANSWER = 1\n>>>>>>> REPLACE", "expected changes to"),
        ("<<<<<<< DELETE AGENTS.md", "got 'AGENTS.md'"),
        ("<<<<<<< WRITE src/agents.md\nObey me.\n>>>>>>> END", "got 'src/agents.md'"),
        ("<<<<<<< RENAME main.py => Makefile", "expected changes to"),
    ],
)
async def test_nothing_is_changed_outside_of_what_may_change(lab: Lab, block: str, reason: str) -> None:
    assert reason in str(await refusal(lab, block, f"{GOOD}\n{block}"))


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ([ModelError("nothing came")], "nothing came"),
        ([BABBLE, ModelError("nothing came")], "the reply holds no edit block; asked again: nothing came"),
        ([BABBLE, SpendingLimitError("the limit on dollars is reached")], "the limit on dollars is reached"),
    ],
)
async def test_a_model_that_fails_costs_one_move_and_leaves_its_traces(
    lab: Lab, replies: list[str | Exception], reason: str
) -> None:
    error = await refusal(lab, *replies)
    assert reason in str(error)
    assert "prompt.md" in error.evidence


@pytest.mark.parametrize("kind", [Editor, Coder])
async def test_a_key_that_is_refused_ends_more_than_the_move(lab: Lab, kind: type[Editor | Coder]) -> None:
    with pytest.raises(CredentialError):
        await lab.breed(kind(Parrot("<<<<<<< READ main.py\n", CredentialError("no key"))), lab.seed())


async def test_programs_stay_programs_under_another_name_and_new_ones_become_some(lab: Lab) -> None:
    reply = (
        "<<<<<<< RENAME run.sh => src/start.sh\n<<<<<<< WRITE src/tool.py\n#!/usr/bin/env python3\n>>>>>>> END\n"
        "<<<<<<< RENAME main.py => src/main.py\n"
    )
    bred = await lab.breed(Editor(Parrot(reply)), lab.seed())
    modes = {entry.path: entry.mode for entry in lab.repository.trees.entries(bred.tree)}
    programs = {path for path, mode in modes.items() if mode == EXECUTABLE}
    assert programs == {"src/start.sh", "src/tool.py"}
    assert bred.strategy == "new+rename"
    assert "main.py" not in modes


async def test_a_donor_whose_change_was_shown_is_told(lab: Lab) -> None:
    seed = lab.seed()
    parent = lab.add({"main.py": b"VALUE = 3\n"}, seed, evaluation=3.0)
    donor = lab.add({"run.sh": b"#!/bin/sh\necho 9\n"}, seed, title="shout", evaluation=2.0)
    model = Parrot(GOOD.replace("= 1", "= 3"), GOOD.replace("= 1", "= 3"))
    bred = await lab.breed(Editor(model), parent, donor)
    assert (bred.shown, bred.inspirations, bred.parents) == ((donor,), (), (parent,))
    assert "+echo 9" in model.asked[0].messages[1].content
    assert (await lab.breed(Editor(model), parent, seed)).shown == ()


async def test_a_reply_of_a_megabyte_is_cut_where_it_is_shown_and_kept(lab: Lab) -> None:
    model = Parrot("x" * 1_000_000, GOOD)
    bred = await lab.breed(Editor(model), lab.seed())
    assert len(bred.evidence["reply.md"]) < 250_000
    assert sum(len(message.content) for message in model.asked[1].messages) < 100_000


class Slow(Parrot):
    """Takes its time, as it comes, and adds a line of its own number."""

    async def ask(self, question: Question, account: Account) -> str:
        self.asked.append(question)
        await asyncio.sleep(os.urandom(1)[0] / 1000)
        if question.move % 4 == 0:
            return BABBLE
        return f"TITLE: note {question.move}\n<<<<<<< WRITE extra/n{question.move}.py\n# x\n>>>>>>> END\n"


@pytest.mark.slow
async def test_editors_of_a_deterministic_run_are_asked_the_same_again(
    tmp_path: Path, tiny: Callable[..., Task]
) -> None:
    asked = []
    for name in ("one", "two"):
        model = Slow()
        options: dict[str, Any] = {"deterministic": True, "evaluations": 9, "seed": 3}
        settings = Settings(population=(AgentSpec("editor", "slow", 3),), **options)
        repository = Repository.create(tmp_path / name)
        run = Run(repository, tiny(name), "r", settings, models=lambda _, model=model: model)  # type: ignore[misc]
        await run.evolve()
        assert any("note" in each.messages[1].content for each in model.asked)
        asked.append({(each.move, each.attempt): question_key("slow", each) for each in model.asked})
    both = asked[0].keys() & asked[1].keys()
    assert len(both) > 9
    assert [key for key in sorted(both) if asked[0][key] != asked[1][key]] == []


# --- conflicts ----------------------------------------------------------------------------------------------------

THREE = b"a = 1\nb = 1\nc = 1\n"

SETTLED = """TITLE: take the sum

<<<<<<< SEARCH main.py
<<<<<<<< ours
b = 2
|||||||| base
b = 1
========
b = 3
>>>>>>>> theirs
=======
b = 5
>>>>>>> REPLACE
"""


async def settle(lab: Lab, model: Parrot, operator: Any = "merge") -> Bred:
    seed = lab.add({"main.py": THREE, "data.md": b"\0"}, evaluation=1.0)
    ours = lab.add({"main.py": THREE.replace(b"b = 1", b"b = 2"), "data.md": b"\0ours"}, seed, evaluation=3.0)
    theirs = lab.add({"main.py": THREE.replace(b"b = 1", b"b = 3"), "data.md": b"\0theirs"}, seed, evaluation=2.0)
    move = Move(operator=operator, parents=(ours, theirs), strategy="model")
    return await lab.breeder.breed(Editor(model), move, random.Random(1), number=7, account=lab.wallet)


@pytest.mark.parametrize("operator", ["merge", "graft"])
async def test_a_model_settles_what_is_in_conflict(lab: Lab, operator: str) -> None:
    model = Parrot(SETTLED)
    bred = await settle(lab, model, operator)
    assert lab.files(bred.tree) == {"main.py": THREE.replace(b"b = 1", b"b = 5"), "data.md": b"\0ours"}
    assert (bred.operator, bred.strategy, bred.model, bred.conflicts) == (operator, "model", "parrot", 2)
    assert len(bred.parents) == 2
    asked = model.asked[0].messages[1].content
    assert "## Conflicts to settle" in asked
    assert "- main.py: `<<<<<<<< ours`" in asked
    assert "|||||||| base\nb = 1\n" in asked
    assert set(bred.evidence) == {"prompt.md", "reply.md"}


async def test_a_conflict_left_open_gets_one_try_and_then_nothing(lab: Lab) -> None:
    lazy = "TITLE: x\n\n<<<<<<< SEARCH main.py\na = 1\n=======\na = 2\n>>>>>>> REPLACE\n"
    with pytest.raises(NoUsableChangeError, match="markers of conflicts are left") as caught:
        await settle(lab, Parrot(lazy, lazy))
    assert "reply-2.md" in caught.value.evidence
    model = Parrot(lazy, SETTLED)
    assert lab.files((await settle(lab, model)).tree)["main.py"] == THREE.replace(b"b = 1", b"b = 5")
    assert "markers of conflicts are left in 'main.py'" in model.asked[1].messages[3].content
