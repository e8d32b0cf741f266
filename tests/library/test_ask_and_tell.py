from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest

import evogit
from evogit import ToEvaluate, ToPropose
from evogit.core import UsageError
from evogit.engine.desk import Desk, OpenQuestion


def test_a_program_asks_what_to_evaluate_and_tells_what_it_is_worth() -> None:
    run = evogit.prepare("program.py", evaluate="ask", evaluations=6)
    told = []
    while question := run.ask():
        assert isinstance(question, ToEvaluate)
        assert question.path.name == "program.py"
        told.append(float(len(question.text)))
        run.tell(question, told[-1])
        if len(told) == 1:
            first = question
    result = evogit.read(run)
    assert sorted(told) == sorted(each.score or 0.0 for each in result)
    assert len(told) == result.evaluations == 6
    assert not first.path.exists()
    assert run.ask() is None
    again = evogit.prepare("program.py", evaluate="ask", evaluations=7)
    while question := again.ask():
        again.tell(question, {"score": 1.0, "other": 2.0})
    assert len(evogit.read(again)) == 7


def test_a_program_asks_for_a_parent_and_tells_what_it_proposes() -> None:
    run = evogit.prepare("program.py", evaluate=lambda path: len(path.read_text()), agents="ask", evaluations=4)
    number = 0
    while question := run.ask():
        assert isinstance(question, ToPropose)
        assert question.brief.goal.startswith("Maximize score.")
        number += 1
        run.tell(question, question.text + f"# {number}\n" if number != 2 else ValueError("nothing came to mind"))
    result = evogit.read(run)
    assert (number, result.evaluations, result.history.counts.failed_proposals) == (4, 4, 1)
    assert result.best.text.endswith("# 1\n# 3\n# 4\n")
    assert "nothing came to mind" in result.history.failures[0].reason


def test_both_may_be_asked_for_and_several_at_a_time() -> None:
    run = evogit.prepare("program.py", evaluate="ask", agents="ask:2", evaluations=5)
    open_at_once, proposed = [0], 0
    waiting: list[ToEvaluate | ToPropose] = []
    while True:
        try:
            question = run.ask()
        except UsageError:
            question = waiting.pop(0)
            if isinstance(question, ToPropose):
                proposed += 1
                run.tell(question, {"program.py": question.text + f"# {proposed}\n"})
            else:
                run.tell(question, float(len(question.text)))
            continue
        if question is None:
            break
        assert isinstance(question, ToEvaluate | ToPropose)
        waiting.append(question)
        open_at_once.append(len(waiting))
    assert max(open_at_once) == 2
    assert evogit.read(run).evaluations == 5


def test_as_many_are_asked_at_a_time_as_there_are_agents_and_no_more_are_waited_for() -> None:
    run = evogit.prepare("program.py", evaluate="ask", agents="mutator:5", evaluations=6)
    seed = run.ask()
    assert seed
    run.tell(seed, 1.0)
    waiting = [run.ask() for _ in range(5)]
    with pytest.raises(UsageError, match=r"tell\(\) first: 5 questions"):
        run.ask()
    for each in waiting:
        assert isinstance(each, ToEvaluate)
        run.tell(each, 2.0)
    assert run.ask() is None
    with pytest.raises(UsageError, match="no jobs="):
        evogit.prepare("program.py", evaluate="ask", evaluations=10, jobs=1)


def test_what_is_no_answer_leaves_the_question_open() -> None:
    run = evogit.prepare("program.py", evaluate="ask", evaluations=1)
    question = run.ask()
    assert question
    with pytest.raises(UsageError, match=r"tell\(\) first: 1 question"):
        run.ask()
    for nonsense in (None, "1.0", {"size": 1.0}):
        with pytest.raises(UsageError, match="you told .* expected a number|you told .* without score"):
            run.tell(question, nonsense)
    with pytest.raises(evogit.EvoGitError, match="a Run goes on until"):
        evogit.prepare("program.py", evaluate="ask", evaluations=1).ask()
    with pytest.raises(UsageError, match=r"what ask\(\) gave"):
        run.tell(1.0, 2.0)  # type: ignore[arg-type]
    run.tell(question, 1.0)
    with pytest.raises(UsageError):
        run.tell(question, 2.0)
    assert run.ask() is None


def test_failures_are_told_as_such() -> None:
    run = evogit.prepare("program.py", evaluate="ask", evaluations=4)
    answers = [1.0, ValueError("no"), evogit.Invalid("too wide"), math.nan]
    while question := run.ask():
        run.tell(question, answers.pop(0))
    assert [each.status for each in evogit.read(run)] == ["ok", "crashed", "invalid", "invalid"]


def test_a_run_that_asks_nothing_says_so(here: Path) -> None:
    run = evogit.prepare("program.py", evaluate=lambda path: 1.0, evaluations=2)
    with pytest.raises(UsageError, match="asks nothing"):
        run.ask()
    with pytest.raises(UsageError, match="that all ask"):
        evogit.prepare("program.py", evaluate=lambda path: 1.0, evaluations=2, agents=["ask", "mutator"])


def test_an_error_of_the_run_is_told_to_who_asks() -> None:
    run = evogit.prepare("program.py", evaluate="ask", evaluations=2)
    question = run.ask()
    assert question
    run.tell(question, ValueError("no"))
    with pytest.raises(evogit.EvoGitError, match="the seed of program itself fails"):
        run.ask()


async def test_a_question_that_nobody_has_taken_yet_is_not_held_against_who_asks_for_it() -> None:
    desk, question = Desk(), OpenQuestion(reads=str)
    answered = asyncio.create_task(desk.answer(question))
    await asyncio.sleep(0)
    assert desk.unanswered == 0
    assert (desk.take(0), desk.unanswered) == (question, 1)
    desk.tell(question, 3)
    assert (await answered, desk.unanswered) == ("3", 0)
