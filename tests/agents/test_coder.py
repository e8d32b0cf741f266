"""What a coder makes of a model's replies: in a real repository, and with real sandboxes where something runs."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evogit.agents import NoUsableChangeError
from evogit.agents.coder import Coder, CoderBounds
from evogit.agents.editing.blocks import EditError
from evogit.agents.editing.calls import Edits, Evaluate, Finish, Grep, Keep, List, ReadLines, RunCommand, read_calls
from evogit.config import Task
from evogit.config.run_settings import AgentSpec, Settings
from evogit.config.user_settings import UserSettings
from evogit.events import Entry, Evaluated, FailedProposal, Proposed, Spent
from evogit.history import History
from evogit.llm import ModelError, SpendingLimitError
from evogit.llm.registry import OpenModels
from evogit.llm.thoughts import NO_ANSWER
from evogit.repository import Repository
from evogit.run import Run as Engine
from evogit.selection import Move
from tests.clock import assert_grows_linearly

from .conftest import Lab, Parrot

EDIT = "<<<<<<< SEARCH main.py\nVALUE = 1\n=======\nVALUE = 2\n>>>>>>> REPLACE\n"
FINISH = "<<<<<<< FINISH raise the value\n"
WRONG = EDIT.replace("VALUE = 1", "VALUE  = 1")
BABBLE = "As a language model I would rather talk."


def answers(model: Parrot) -> list[str]:
    """What the model was told after each reply but the last."""
    return [question.messages[-1].content for question in model.asked[1:]]


async def refusal(lab: Lab, *replies: str | Exception, **bounds: Any) -> NoUsableChangeError:
    with pytest.raises(NoUsableChangeError) as caught:
        await lab.breed(Coder(Parrot(*replies), bounds=CoderBounds(**bounds)), lab.seed())
    return caught.value


# --- replies ------------------------------------------------------------------------------------------------------


def test_a_reply_is_read_call_by_call() -> None:
    said = (
        "I look.\nTITLE: a title\n<<<<<<< LIST ./\n<<<<<<< LIST src\n```\n<<<<<<< READ ./a b.py 3-7\n```\n"
        "<<<<<<< READ a.py 4\n>>>>>>> END\n<<<<<<< READ a.py 9-, L12-L14\n<<<<<<< GREP x = 1\n<<<<<<< RUN ls -l\n"
        f"<<<<<<< RUN\na\nb\n>>>>>>> END\n{EDIT}<<<<<<< DELETE b.py\n<<<<<<< EVALUATE\n<<<<<<< FINISH TITLE: done\n"
    )
    asked = read_calls(said)
    kinds = [call for call in asked.calls if not isinstance(call, Edits)]
    reads = [ReadLines("a b.py", 3, 7), ReadLines("a.py", 4, 4), ReadLines("a.py", 9), ReadLines("a.py", 12, 14)]
    runs = [RunCommand("ls -l"), RunCommand("a\nb")]
    assert kinds == [List(""), List("src"), *reads, Grep("x = 1"), *runs, Evaluate(), Finish("done")]
    assert [len(call.blocks) for call in asked.calls if isinstance(call, Edits)] == [2]
    assert asked.title == "a title"


def test_a_step_and_the_last_words_may_name_their_family() -> None:
    asked = read_calls(
        f"FAMILY: Sorting\nDIFFERS: by rows\n{EDIT}<<<<<<< KEEP [Hash table] look up\n<<<<<<< FINISH [x]\n"
    )
    assert asked.calls[1:] == (Keep("look up", "hash-table"), Finish("[x]"))
    assert (asked.family, asked.differs) == ("sorting", "by rows")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", "no block"),
        (BABBLE, "no block"),
        ("<<<<<<< RUN\nls", "not closed"),
        ("<<<<<<< RUN\n\n>>>>>>> END", "expected a command"),
        (f"<<<<<<< RUN {'x' * 30_000}", "expected a command of 20,000"),
        ("<<<<<<< READ", "names no file"),
        ("<<<<<<< GREP", "names no text"),
        ("<<<<<<< LIST\n" * 60, "more than 50 blocks"),
        ("<<<<<<< READ a\0", "NUL"),
        (">>>>>>> END", "not open"),
        (f"<<<<<<< WRITE a.py\n{FINISH}", "beginning of another"),
    ],
)
def test_what_cannot_be_read_is_named(said: str, reason: str) -> None:
    with pytest.raises(EditError, match=reason):
        read_calls(said)


@pytest.mark.parametrize(("start", "again", "end"), [("<<<<<<< READ a", " ", "b"), ("", "<<<<<<< ", ""), ("", "`", "")])
def test_long_replies_are_read_in_a_time_like_their_length(start: str, again: str, end: str) -> None:
    def read(size: int) -> None:
        with contextlib.suppress(EditError):
            read_calls(start + again * size + end)

    assert_grows_linearly(read, 10_000)


# --- sessions -----------------------------------------------------------------------------------------------------


async def test_a_session_becomes_a_tree_with_its_title_model_and_transcript(lab: Lab) -> None:
    look = "PLAN: look around\n<<<<<<< LIST\n<<<<<<< READ main.py\n<<<<<<< GREP VALUE\n"
    model = Parrot(look, f"It is too low.\n{EDIT}", f"Good, this works.\n{FINISH}")
    bred = await lab.breed(Coder(model), lab.seed())
    assert bred.reason == "It is too low."
    assert lab.files(bred.tree)["main.py"] == b"VALUE = 2\n"
    assert (bred.title, bred.model, bred.strategy, bred.operator) == ("raise the value", "parrot", "edit", "mutation")
    first, second = answers(model)
    assert "main.py 10," in first
    assert "main.py, lines 1-1 of 1:\n```\nVALUE = 1\n```" in first
    assert "main.py:1: VALUE = 1" in first
    assert "The draft changes nothing yet. Turns left: 99." in first
    assert "Edited main.py." in second
    assert "The draft changes main.py. Turns left: 98." in second
    assert set(bred.evidence) == {"prompt.md", "transcript.md"}
    assert bred.evidence["transcript.md"].decode().count("# assistant") == 3
    rules = model.asked[0].messages[0].content
    assert "## What counts as cheating" in rules
    assert "## How to answer" not in rules
    assert "$" not in rules


async def test_messages_are_only_appended_and_numbered(lab: Lab) -> None:
    model = Parrot("<<<<<<< LIST\n", BABBLE, EDIT, FINISH)
    await lab.breed(Coder(model), lab.seed())
    assert [question.attempt for question in model.asked] == [0, 1, 2, 3]
    for one, next_one in zip(model.asked, model.asked[1:], strict=False):
        assert next_one.messages[: len(one.messages)] == one.messages
        assert [message.role for message in next_one.messages[len(one.messages) :]] == ["assistant", "user"]


async def test_nothing_of_what_is_withheld_is_shown(lab: Lab) -> None:
    model = Parrot(
        "<<<<<<< READ judge/secret.py\n<<<<<<< GREP ANSWER\n<<<<<<< LIST\n<<<<<<< LIST judge\n", EDIT, FINISH
    )
    await lab.breed(Coder(model), lab.seed())
    assert "there is no file 'judge/secret.py'" in answers(model)[0]
    assert "is in 0 lines" in answers(model)[0]
    assert not any("42" in message.content for question in model.asked for message in question.messages[2:])


async def test_the_draft_is_what_is_seen(lab: Lab) -> None:
    look = "<<<<<<< READ main.py\n<<<<<<< READ src/new.py\n<<<<<<< READ README.md\n<<<<<<< LIST\n"
    model = Parrot(
        f"{EDIT}<<<<<<< RENAME run.sh => src/go.sh\n<<<<<<< WRITE src/new.py\nx\n>>>>>>> END\n{look}", FINISH
    )
    await lab.breed(Coder(model), lab.seed())
    told = answers(model)[0]
    assert "VALUE = 2" in told
    assert "new.py 2\n" in told
    assert "go.sh 17," in told
    assert "run.sh " not in told
    assert "# Readme" in told  # which may be edited, but was not


REFUSED = [
    ("<<<<<<< WRITE ../outside.py\nx\n>>>>>>> END", "expected a relative path"),
    ("<<<<<<< WRITE /etc/passwd.py\nx\n>>>>>>> END", "expected a relative path"),
    ("<<<<<<< WRITE .git/hooks/x.py\nx\n>>>>>>> END", "reach into a .git folder"),
    ("<<<<<<< WRITE Makefile\nx\n>>>>>>> END", "expected changes to *.py"),
    ("<<<<<<< WRITE judge/secret.py\nx\n>>>>>>> END", "expected changes to *.py"),
    ("<<<<<<< RENAME main.py => Makefile", "expected changes to"),
    (WRONG, "does not match 'main.py'"),
    ("<<<<<<< READ ../../etc/passwd", "there is no file '../../etc/passwd'"),
    ("<<<<<<< READ main.py 7-9", "has 1 lines"),
    ("<<<<<<< LIST nowhere", "there is no file in 'nowhere'"),
    ("<<<<<<< RUN ls", "nothing can be tried here"),
    ("<<<<<<< EVALUATE", "nothing can be tried here"),
    ("<<<<<<< WRITE main.py\n\ud800\n>>>>>>> END", "not valid Unicode"),
    (FINISH, "the draft changes nothing"),
    (BABBLE, "the reply holds no block"),
    (NO_ANSWER, "nothing but thoughts"),
    ("<<<<<<< SEARCH main.py\nVALUE = 1\n", "not closed"),
]


async def test_what_cannot_be_done_is_answered_and_the_session_goes_on(lab: Lab) -> None:
    replies = [reply for block, _ in REFUSED for reply in (block, "<<<<<<< LIST\n")]
    model = Parrot(*replies, EDIT + FINISH)
    bred = await lab.breed(Coder(model, bounds=CoderBounds(turns=50)), lab.seed())
    told = zip(REFUSED, answers(model)[::2], strict=True)
    assert [reason for (_, reason), answer in told if reason not in answer] == []
    assert lab.repository.changed_paths(lab.repository.tree_of(lab.seed()), bred.tree) == ["main.py"]


async def test_edits_before_one_that_cannot_be_stay_and_what_is_behind_it_waits(lab: Lab) -> None:
    model = Parrot(f"{EDIT}{WRONG}{FINISH}", "<<<<<<< READ main.py\n", FINISH)
    bred = await lab.breed(Coder(model), lab.seed())
    assert "Nothing behind it was done." in answers(model)[0]
    assert "VALUE = 2" in answers(model)[1]
    assert lab.files(bred.tree)["main.py"] == b"VALUE = 2\n"


async def test_replies_of_no_use_end_the_session_only_when_there_are_several_in_a_row(lab: Lab) -> None:
    error = await refusal(lab, BABBLE, WRONG, BABBLE, "<<<<<<< LIST\n", BABBLE, FINISH, WRONG, BABBLE, EDIT + FINISH)
    assert "4 replies in a row were unusable" in str(error)
    assert "the draft changes nothing" in str(error)
    assert error.evidence["transcript.md"].decode().count("# assistant") == 8


@pytest.mark.parametrize(
    ("replies", "bounds"),
    [
        ([EDIT, *["<<<<<<< LIST\n"] * 9], {"turns": 3}),
        ([EDIT, *["<<<<<<< LIST\n"] * 9], {"tokens": 2}),
        ([EDIT, ModelError("nothing came")], {}),
        ([EDIT, SpendingLimitError("the limit on dollars is reached")], {}),
        ([EDIT, BABBLE, BABBLE, BABBLE, BABBLE], {}),
        ([EDIT, "x" * 1_000_000, "y" * 1_000_000, "z" * 1_000_000, "\ud800" * 1_000_000], {}),
    ],
)
async def test_a_draft_is_proposed_whatever_ends_the_session(
    lab: Lab, replies: list[str | Exception], bounds: dict[str, Any]
) -> None:
    model = Parrot(*replies)
    bred = await lab.breed(Coder(model, bounds=CoderBounds(**bounds)), lab.seed())
    assert lab.files(bred.tree)["main.py"] == b"VALUE = 2\n"
    assert bred.title == "edit main.py"
    assert "The session ended" in bred.evidence["transcript.md"].decode()
    assert all(len(message.content) < 60_000 for question in model.asked for message in question.messages)


async def test_a_conversation_that_is_too_long_ends(lab: Lab) -> None:
    seed = lab.add({"main.py": b"VALUE = 1\n", "src/big.py": b"x = 1  # and so on and on\n" * 5_000})
    model = Parrot(EDIT, *["<<<<<<< READ src/big.py\n"] * 18)
    model.context = 20_000
    bred = await lab.breed(Coder(model), seed)
    assert "more than the 20,000 tokens of a question" in bred.evidence["transcript.md"].decode()
    assert "READ src/big.py 286-5000 shows the rest" in answers(model)[1]


async def test_binary_and_fenced_files_stay_data(lab: Lab) -> None:
    seed = lab.add({"main.py": b"VALUE = 1\n", "src/x.md": b"```\n````\n<<<<<<< RUN ls\n", "src/b.py": b"\0\xff"})
    model = Parrot("<<<<<<< READ src/x.md\n<<<<<<< READ src/b.py\n", EDIT + FINISH)
    await lab.breed(Coder(model), seed)
    assert "`````\n```\n````\n<<<<<<< RUN ls\n`````" in answers(model)[0]
    assert "'src/b.py' is not UTF-8 text" in answers(model)[0]


async def test_a_coder_settles_what_is_in_conflict(lab: Lab) -> None:
    three = b"a = 1\nb = 1\nc = 1\n"
    seed = lab.add({"main.py": three}, evaluation=1.0)
    ours, theirs = (
        lab.add({"main.py": three.replace(b"b = 1", b)}, seed, evaluation=2.0) for b in (b"b = 2", b"b = 3")
    )
    lazy = "<<<<<<< SEARCH main.py\na = 1\n=======\na = 2\n>>>>>>> REPLACE\n" + FINISH
    model = Parrot(lazy, "<<<<<<< WRITE main.py\nb = 5\n>>>>>>> END\n" + FINISH)
    move = Move(operator="merge", parents=(ours, theirs), strategy="model")
    bred = await lab.breeder.breed(Coder(model), move, random.Random(1), number=7, account=lab.wallet)
    assert "markers of conflicts are left in 'main.py'" in answers(model)[0]
    assert lab.files(bred.tree)["main.py"] == b"b = 5\n"
    assert (bred.operator, len(bred.parents)) == ("merge", 2)


# --- with a sandbox -------------------------------------------------------------------------------------------------

CHEAT = """\
<<<<<<< RUN
ls -A / ; ls -A; cat .git/config /etc/shadow; echo "$HOME"; ln -s /etc/passwd extra; id -u
>>>>>>> END
<<<<<<< RUN python3 -c "import socket; socket.create_connection(('192.0.2.1', 9), 1)"
<<<<<<< RUN :(){ :|:& };: ; sleep 9
<<<<<<< RUN head -c 1000000000 /dev/zero > big
<<<<<<< RUN yes
<<<<<<< RUN kill -9 -1; kill -9 $PPID
<<<<<<< RUN printf '\\033[2J\\000\\377````'
"""


def tried(value: float, *more: str) -> str:
    body = f"def value(x):\n    return {value}\n"
    return f"<<<<<<< WRITE program.py\n{body}>>>>>>> END\n" + "".join(f"<<<<<<< {each}\n" for each in more)


class Stopper:
    """Stops an engine as soon as a model has answered."""

    engine: Engine

    def entry(self, entry: Entry) -> None:
        if isinstance(entry.event, Spent):
            self.engine.stop("interrupted")

    def activity(self, agent: str, doing: str) -> None:
        """Of no interest."""


def coders(folder: Path, task: Task, name: str, script: str, observer: Stopper | None = None, **options: Any) -> Engine:
    """An engine with coders that answer from a script."""
    (folder / f"{name}.txt").write_text(script)
    options.setdefault("deterministic", True)
    spec = AgentSpec("coder", "m", options.pop("count", 1))
    settings = Settings(population=(spec,), sandbox="bubblewrap", jobs=1, **options)
    models = OpenModels(UserSettings(), random.Random(1))
    model = models.get(f"script:{folder / name}.txt")
    return Engine(Repository.create(folder / name), task, "r", settings, observer, models=lambda _: model)


def story(engine: Engine) -> tuple[History, list[Any]]:
    events: list[Any] = []
    engine.repository.journal("r", lambda entry: events.append(entry.event))
    return engine.history, events


@pytest.mark.slow
async def test_what_a_coder_has_judged_is_a_candidate_and_counts(task: Task, tmp_path: Path) -> None:
    script = tried(1.0, "RUN cat program.py; date +%N", "EVALUATE", "EVALUATE") + "%%\n"
    script += tried(19.0, "EVALUATE") + "%%\n" + tried(20.0, "EVALUATE", "EVALUATE", "FINISH done") + "%%\n"
    engine = coders(tmp_path, task, "one", script, evaluations=3, proposals=8)
    await engine.evolve()
    history, events = story(engine)
    proposed = [event for event in events if isinstance(event, Proposed)][1:]
    judged = [event for event in events if isinstance(event, Evaluated) and event.evaluation.split == "train"]
    assert (history.counts.evaluated, len(judged), len(proposed)) == (3, 3, 2)
    assert [history.fitness(event.candidate) for event in proposed] == [-19.0, 0.0]
    assert all(event.parents == (history.seed,) and event.move == 1 for event in proposed)
    trees = engine.repository.trees
    talk = trees.files(proposed[0].evidence, lambda path: True)["transcript.md"].decode()
    assert "return 1.0" in talk
    assert "score (maximize it, the primary metric): this candidate -19, the seed" in talk
    assert "EVALUATE could not be done: no evaluation is left for you." in talk


@pytest.mark.slow
async def test_a_stop_ends_a_session_before_the_next_command_and_keeps_the_draft(task: Task, tmp_path: Path) -> None:
    script = tried(20.0, *["RUN sleep 4"] * 19) + f"%%\n{BABBLE}"
    stopper = Stopper()
    engine = stopper.engine = coders(tmp_path, task, "one", script, stopper, evaluations=9, deterministic=False)
    await engine.evolve()
    _, events = story(engine)
    assert [event.title for event in events if isinstance(event, Proposed)][1:] == ["edit program.py"]
    assert sum(isinstance(event, Spent) for event in events) == 1


@pytest.mark.slow
async def test_commands_that_misbehave_do_no_harm_and_end_no_session(task: Task, tmp_path: Path) -> None:
    engine = coders(tmp_path, task, "one", f"{CHEAT}%%\n{tried(20.0, 'FINISH done')}", evaluations=2, proposals=1)
    await engine.evolve()
    history, events = story(engine)
    proposed = [event for event in events if isinstance(event, Proposed)][1:]
    assert [event.title for event in proposed] == ["done"]
    files = engine.repository.trees.files(proposed[0].tree, lambda path: True)
    assert set(files) == {"program.py"}
    assert history.fitness(proposed[0].candidate) == 0.0
    talk = engine.repository.trees.files(proposed[0].evidence, lambda path: True)["transcript.md"].decode()
    assert talk.count("The command ended") == 7
    assert "OSError" in talk or "Network is unreachable" in talk
    assert "root:" not in talk
    assert "\x1b" not in talk
    assert "\0" not in talk
    assert not any(isinstance(event, FailedProposal) for event in events)


COMMAND = """\
name = "tiny"
goal = "More."
editable = ["program.py"]
withheld = ["secret.txt"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "command"
command = "cat made.txt secret.txt && python3 program.py"
prepare = "echo prepared > made.txt"
profile = "echo hot: line $(wc -l < program.py); date +%N; cat secret.txt; echo rest: 5"
[evaluator.read]
score = "json"
"""


@pytest.mark.slow
async def test_commands_find_what_was_prepared_but_not_what_is_withheld(
    tmp_path: Path, tiny: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    task = tiny(toml=COMMAND, program="print('{\"score\": 1}')\n")
    (tmp_path / "tasks/tiny/seed/secret.txt").write_text("hush, hush, hush\n")
    better = "<<<<<<< WRITE program.py\nprint('{\"score\": 7}')\n>>>>>>> END\n<<<<<<< EVALUATE\n<<<<<<< FINISH done\n"
    script = f"<<<<<<< RUN cat made.txt secret.txt; echo x > made.txt; ls -A; cat .git\n<<<<<<< LIST\n%%\n{better}"
    engine = coders(tmp_path, task, "one", script, evaluations=3, proposals=2, deterministic=False)
    await engine.evolve()
    history, events = story(engine)
    _, proposed, *further = [event for event in events if isinstance(event, Proposed)]
    assert history.fitness(proposed.candidate) == 7.0
    assert {event.strategy for event in further} <= {"extend_number"}
    kept = engine.repository.trees.files(proposed.evidence, lambda path: True)
    talk, prompt = kept["transcript.md"].decode(), kept["prompt.md"].decode()
    assert "prepared\n.evogit-home\n.seed\nmade.txt\nprogram.py\n" in talk
    assert "secret.txt: No such file" in talk
    assert "this candidate 7, the seed 1" in talk
    hot = [line for line in prompt.splitlines() if line.startswith("hot: line")]
    assert hot == ["hot: line 1"]
    assert "rest: 5" in prompt
    assert "hush" not in prompt.partition("## Where the time goes")[2].partition("\n## ")[0], (
        "the profile sees what is withheld, and agents are not shown what it quotes"
    )
    assert (
        talk.count("hush, hush, hush") == talk.count("prepared") - 1
    )  # the command that evaluates is shown it, and shows it


@pytest.mark.slow
async def test_a_replay_makes_the_same_candidates_whatever_commands_print(
    tmp_path: Path, tiny: Callable[..., Task]
) -> None:
    turns = [tried(n, "RUN date +%N%N; cat /proc/uptime", "EVALUATE") for n in (3.0, 5.0, 7.0, 11.0)]
    script = "%%\n".join([*turns, tried(13.0, "FINISH one"), BABBLE, tried(17.0, "FINISH two")])
    (tmp_path / "script.txt").write_text(script)
    name, recording = f"script:{tmp_path / 'script.txt'}", tmp_path / "recording"
    made = []
    for place, kept in (("a", {"record": recording}), ("b", {"replay": recording})):
        models = OpenModels(UserSettings(), random.Random(1), **kept)  # type: ignore[arg-type]
        options: dict[str, Any] = {"deterministic": True, "evaluations": 9, "proposals": 9, "seed": 3, "jobs": 1}
        settings = Settings(population=(AgentSpec("coder", name, 2),), sandbox="bubblewrap", **options)
        task = tiny(place)
        engine = Engine(Repository.create(tmp_path / place), task, "r", settings, models=models.get)
        await engine.evolve()
        history, events = story(engine)
        spent = sum(event.prompt + event.completion for event in events if isinstance(event, Spent))
        made.append(([each.commit for each in history.phylogeny], history.counts.evaluated, spent > 0))
    assert made[0] == made[1]
    assert made[0][1] > 5
