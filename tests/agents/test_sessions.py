"""Sessions of several steps: measured beside parent and seed, kept as candidates, with notes for the next session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evogit.config import Task
from evogit.config.run_settings import AgentSpec, Settings
from evogit.events import Evaluated, Proposed, SessionEnded
from evogit.llm import Account, Question
from evogit.repository import Repository
from evogit.testing import RecordedHistory
from tests.agents.conftest import Parrot
from tests.agents.test_coder import Engine, coders, story

SPINNING = """\
name = "tiny"
goal = "Fewer steps."
editable = ["program.py"]
[metrics.steps]
direction = "minimize"
[evaluator]
kind = "command"
command = "python3 program.py"
tests = "grep -q right program.py && echo >> ran.txt"
profile = "echo hot: loop; wc -l program.py"
[evaluator.read]
steps = "json"
"""


def edit(steps: int, *more: str, note: str = "right") -> str:
    body = f"# {note}\nprint('{{\"steps\": {steps}}}')\n"
    return f"<<<<<<< WRITE program.py\n{body}>>>>>>> END\n" + "".join(f"<<<<<<< {line}\n" for line in more)


async def evolved(
    tmp_path: Path, tiny: Callable[..., Task], *replies: str, **options: Any
) -> tuple[Any, list[Any], Any]:
    options.setdefault("deterministic", False)
    task = tiny(toml=SPINNING, program="# right\nprint('{\"steps\": 100}')\n")
    engine = coders(tmp_path, task, "one", "%%\n".join(replies), **options)
    await engine.evolve()
    history, events = story(engine)
    return history, events, engine.repository


def transcript(repository: Any, history: Any, events: list[Any]) -> str:
    """The talk as the evidence of the last proposal that has one."""
    kept = [event.evidence for event in events if isinstance(event, Proposed) and event.evidence]
    return str(repository.trees.files(kept[-1], lambda path: True)["transcript.md"].decode())


@pytest.mark.slow
async def test_a_command_can_compare_the_draft_with_the_seed(tmp_path: Path, tiny: Callable[..., Task]) -> None:
    reply = edit(80, "RUN sh -c 'python3 .seed/program.py; python3 program.py'", "FINISH drop twenty")
    history, events, repository = await evolved(tmp_path, tiny, reply, evaluations=3, proposals=1)
    assert '{"steps": 100}\n{"steps": 80}' in transcript(repository, history, events)
    best = history.phylogeny[history.best].tree
    assert [entry.path for entry in repository.trees.entries(best)] == ["program.py"]


@pytest.mark.slow
@pytest.mark.parametrize("own", [".seed", ".seed/program.py"])
async def test_a_command_finds_what_the_repository_itself_has_where_the_seed_would_be(
    tmp_path: Path, tiny: Callable[..., Task], own: str
) -> None:
    toml = SPINNING.replace("editable = [", f'editable = ["{own}", ')
    task = tiny(toml=toml, program="# right\nprint('{\"steps\": 100}')\n")
    assert task.seed
    (task.seed / own).parent.mkdir(exist_ok=True)
    (task.seed / own).write_text("own words\n")
    engine = coders(tmp_path, task, "one", edit(80, f"RUN cat {own}", "FINISH drop twenty"), evaluations=3, proposals=1)
    await engine.evolve()
    assert "own words" in transcript(engine.repository, *story(engine))


@pytest.mark.slow
async def test_steps_that_a_session_keeps_are_candidates_one_after_the_other(
    tmp_path: Path, tiny: Callable[..., Task]
) -> None:
    history, events, repository = await evolved(
        tmp_path,
        tiny,
        "<<<<<<< PROFILE\n" + edit(80, "MEASURE", "KEEP drop twenty"),
        edit(90, "MEASURE", "REVERT") + edit(60, "MEASURE 2", "KEEP drop twenty more"),
        edit(50, "FINISH drop ten"),
        evaluations=9,
        proposals=1,
    )
    proposed = [event for event in events if isinstance(event, Proposed)][1:4]
    assert [event.title for event in proposed] == ["drop twenty", "drop twenty more", "drop ten"]
    assert [event.parents[0] for event in proposed] == [history.seed, *(event.candidate for event in proposed[:2])]
    assert {event.move for event in proposed} == {1}
    assert [history.fitness(event.candidate) for event in proposed] == [80, 60, 50]
    assert [(event.measured.parent, event.measured.seed, event.measured.pairs) for event in proposed[:2]] == [
        (pytest.approx(0.8), pytest.approx(0.8), 3),
        (pytest.approx(0.75), pytest.approx(0.6), 2),
    ]
    assert proposed[2].measured is None
    assert history.counts.charged == 1
    talk = transcript(repository, history, events)
    assert "hot: loop" in talk
    assert "Draft / step 1: 1.125 (1.125 to 1.125, 95 %): worse." in talk


@pytest.mark.slow
async def test_what_a_session_measures_is_no_evaluation_and_tests_fail_in_it(
    tmp_path: Path, tiny: Callable[..., Task]
) -> None:
    history, events, repository = await evolved(
        tmp_path,
        tiny,
        edit(1, "MEASURE", note="wrong") + edit(70, "MEASURE", "MEASURE", "FINISH thirty less"),
        evaluations=2,
    )
    assert [event.evaluation.metrics for event in events if isinstance(event, Evaluated)] == [
        {"steps": 100},
        {"steps": 70},
    ]
    assert "the tests ended with exit code 1" in transcript(repository, history, events)


@pytest.mark.slow
async def test_a_step_that_fails_when_it_is_evaluated_is_told_while_the_session_goes_on(
    tmp_path: Path, tiny: Callable[..., Task]
) -> None:
    wait = "<<<<<<< RUN sleep 1\n"
    history, events, repository = await evolved(
        tmp_path,
        tiny,
        edit(10, "KEEP too good", note="wrong"),
        wait,
        wait,
        edit(60, "FINISH mended"),
        evaluations=9,
        proposals=1,
    )
    first, second = [event for event in events if isinstance(event, Proposed)][1:3]
    assert history.fitness(first.candidate) is None
    assert (second.parents, history.fitness(second.candidate)) == ((first.candidate,), 60)
    assert f"{first.candidate[:7]} is not valid" in transcript(repository, history, events)


@pytest.mark.slow
async def test_the_next_session_begins_with_the_notes_of_the_last(tmp_path: Path, tiny: Callable[..., Task]) -> None:
    history, events, repository = await evolved(
        tmp_path,
        tiny,
        edit(80, "KEEP drop twenty"),
        "Tried loops, 20 less. Next: unroll the rest.\n<<<<<<< FINISH\n" + edit(70, "FINISH drop ten"),
        evaluations=9,
        proposals=2,
    )
    ended = next(event for event in events if isinstance(event, SessionEnded))
    steps = [event for event in events if isinstance(event, Proposed)][1:]
    assert (ended.candidate, ended.kept, ended.text) == (
        steps[0].candidate,
        1,
        "Tried loops, 20 less. Next: unroll the rest.",
    )
    assert len(steps) == 2, "a session that ends as it kept its last step proposes nothing more"
    prompt = repository.trees.files(steps[1].evidence, lambda path: True)["prompt.md"].decode()
    assert "unroll the rest" in prompt


@pytest.mark.slow
async def test_no_more_steps_are_kept_than_the_run_has_evaluations(tmp_path: Path, tiny: Callable[..., Task]) -> None:
    history, _, _ = await evolved(
        tmp_path, tiny, *(edit(steps, f"KEEP {steps}") for steps in (90, 80, 70, 60)), evaluations=3
    )
    assert history.counts.evaluated == 3


@pytest.mark.slow
async def test_a_deterministic_run_proposes_all_steps_as_one(tmp_path: Path, tiny: Callable[..., Task]) -> None:
    _, events, _ = await evolved(
        tmp_path,
        tiny,
        edit(90, "KEEP ten"),
        edit(95, "REVERT", "FINISH ten"),
        evaluations=2,
        proposals=1,
        deterministic=True,
    )
    assert [event.title for event in events if isinstance(event, Proposed)][1:] == ["ten"]


TWO_FILES = SPINNING.replace('editable = ["program.py"]', 'editable = ["program.py", "other.py"]').replace(
    'command = "python3 program.py"', 'command = "cat program.py other.py | python3"'
)


@pytest.mark.slow
async def test_steps_of_two_sessions_on_different_files_are_merged_while_both_go_on(
    tmp_path: Path, tiny: Callable[..., Task]
) -> None:
    """The score is the sum of a number in each of two files, and each of two coders halves one of them."""
    task = tiny(toml=TWO_FILES, program="# right\na = 100\n")
    (tmp_path / "tasks/tiny/seed/other.py").write_text("b = 100\nprint('{\"steps\": %d}' % (a + b))\n")
    wait, end = "<<<<<<< RUN sleep 1\n", "Done.\n<<<<<<< FINISH\n"
    mine = "<<<<<<< WRITE program.py\n# right\na = 50\n>>>>>>> END\n<<<<<<< KEEP halve a\n"
    other = "<<<<<<< SEARCH other.py\nb = 100\n=======\nb = 60\n>>>>>>> REPLACE\n<<<<<<< KEEP cut b\n"
    talks = {1: [mine, *[wait] * 4, end], 2: [wait, other, *[wait] * 4, end]}

    class ByMove(Parrot):
        async def ask(self, question: Question, account: Account) -> str:
            return talks[question.move][question.attempt]

    settings = Settings(
        population=(AgentSpec("coder", "m", 2),), sandbox="bubblewrap", jobs=1, evaluations=9, proposals=2
    )
    model = ByMove()
    engine = Engine(Repository.create(tmp_path / "one"), task, "r", settings, None, models=lambda _: model)
    await engine.evolve()
    history, events = story(engine)
    merges = [event for event in events if isinstance(event, Proposed) and event.operator == "merge"]
    assert [history.fitness(event.candidate) for event in merges] == [110]
    assert merges[0].move in (1, 2)
    assert history.best == merges[0].candidate
    assert history.counts.charged == 2, "two sessions; the merge asked nobody"


@pytest.mark.slow
async def test_a_step_that_is_kept_twice_costs_nothing_and_the_session_goes_on(
    tmp_path: Path, tiny: Callable[..., Task]
) -> None:
    replies = edit(80, "KEEP one", "KEEP two"), edit(70, "FINISH last")
    history, events, _ = await evolved(tmp_path, tiny, *replies, evaluations=9, proposals=1)
    assert [event.title for event in events if isinstance(event, Proposed)][1:3] == ["one", "last"]
    assert (history.counts.duplicates, history.counts.charged) == (0, 1)


@pytest.mark.slow
async def test_a_draft_that_was_evaluated_and_then_kept_is_one_candidate_and_one_evaluation(
    tmp_path: Path, tiny: Callable[..., Task]
) -> None:
    replies = edit(80, "EVALUATE", "KEEP twenty", "EVALUATE"), edit(70, "FINISH ten")
    history, events, _ = await evolved(tmp_path, tiny, *replies, evaluations=3, proposals=1)
    steps = [event for event in events if isinstance(event, Proposed)][1:]
    assert [(event.title, history.fitness(event.candidate)) for event in steps] == [("twenty", 80), ("ten", 70)]
    assert (history.counts.evaluated, history.counts.charged) == (3, 1)


def test_a_session_that_is_killed_after_a_step_counts_as_one_proposal() -> None:
    run = RecordedHistory()
    seed = run.add(1.0)
    first = run.propose(seed, kept=True, move=1)
    run.propose(first, kept=True, move=1)
    assert run.history.counts.charged == 1
