from __future__ import annotations

import asyncio
import functools
import inspect
import os
import random
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import evogit
from evogit.core import EvoGitError, RefusedError, RepositoryError, UsageError
from evogit.engine import stop_request
from evogit.events import Evaluated, Proposed, RunStarted, Stopped
from evogit.testing import ScriptedAgent
from tests.clock import PATIENCE
from tests.plain_git import git


def score(file: Path) -> float:
    return -abs(float(runpy.run_path(str(file))["value"](2)) - 20)


def length(path: Path) -> float:
    return float(len(path.read_text()))


def test_a_seed_and_a_function_are_enough(here: Path) -> None:
    result = evogit.evolve("program.py", evaluate=score, evaluations=30)
    assert result.evaluations == 30
    assert result.best.score is not None
    assert result.best.score > score(here / "program.py")
    assert result.stopped == "evaluations"
    assert git(here / "evogit-program", "rev-parse", "evogit/program/best").strip() == result.best.id


def test_it_says_that_nothing_protects_the_score(caplog: pytest.LogCaptureFixture) -> None:
    result = evogit.evolve("program.py", evaluate=length, evaluations=2)
    assert result.judged == "inside"
    assert all(each.evaluation and each.evaluation.judged == "inside" for each in result)
    assert "nothing protects the score" in caplog.text
    assert "judged: inside" in str(result)
    assert "judged: inside" in result._repr_html_()


def test_the_function_is_called_as_often_as_asked_for() -> None:
    calls: list[Path] = []

    def counted(path: Path) -> float:
        calls.append(path)
        return float(len(path.read_text()))

    evogit.evolve("program.py", evaluate=counted, evaluations=7)
    assert len(calls) == 7
    assert {path.name for path in calls} == {"program.py"}
    assert not any(path.exists() for path in calls)


def test_the_same_call_goes_on_where_it_ended() -> None:
    first = evogit.evolve("program.py", evaluate=length, evaluations=4)
    again = evogit.evolve("program.py", evaluate=length, evaluations=6)
    assert [each.id for each in again][:4] == [each.id for each in first]
    assert again.evaluations == 6


def test_another_function_begins_another_run(here: Path) -> None:
    first = evogit.evolve("program.py", evaluate=length, evaluations=2)
    second = evogit.evolve("program.py", evaluate=score, evaluations=2)
    assert (first.name, second.name) == ("program", "program-2")
    (here / "program.py").write_text("A = 1.0\n")
    assert evogit.evolve("program.py", evaluate=length, evaluations=2).name == "program-3"
    with pytest.raises(RefusedError, match="begun with another seed"):
        evogit.evolve("program.py", evaluate=length, evaluations=3, name="program")


def test_failures_are_those_of_candidates_with_a_traceback() -> None:
    def picky(path: Path) -> float:
        text = path.read_text()
        if "# " in text:
            raise ValueError(f"a note in {len(text)} characters")
        return 1.0

    result = evogit.evolve("program.py", evaluate=picky, evaluations=4, agents=ScriptedAgent())
    failed = [each for each in result if each.status != "ok"]
    assert len(failed) == 3
    assert failed[0].status == "crashed"
    assert failed[0].failure.startswith("ValueError: a note in")
    trace = failed[0].evidence["stderr"].decode()
    assert 'raise ValueError(f"a note' in trace
    assert "function_backend" not in trace


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (SystemExit(3), "crashed", "SystemExit: 3"),
        (KeyboardInterrupt(), "crashed", "KeyboardInterrupt"),
        (asyncio.CancelledError(), "crashed", "CancelledError"),
        (evogit.Invalid("circles overlap"), "invalid", "circles overlap"),
        (TimeoutError("too slow"), "crashed", "TimeoutError: too slow"),
    ],
)
def test_whatever_it_raises_ends_no_run(raised: BaseException, status: str, said: str) -> None:
    def failing(path: Path) -> float:
        if "# " in path.read_text():
            raise raised
        return 1.0

    result = evogit.evolve("program.py", evaluate=failing, evaluations=2, agents=ScriptedAgent())
    (failed,) = [each for each in result if each.status != "ok"]
    assert failed.status == status
    assert said in failed.failure


def test_a_seed_that_fails_is_told_with_its_own_error_and_begins_anew_once_mended() -> None:
    broken = True

    def sometimes(path: Path) -> float:
        if broken:
            raise LookupError("no data")
        return 1.0

    with pytest.raises(EvoGitError, match=r"itself fails \(crashed: LookupError: no data.*evaluate=") as caught:
        evogit.evolve("program.py", evaluate=sometimes, evaluations=2)
    assert isinstance(caught.value.__cause__, LookupError)
    broken = False
    assert evogit.evolve("program.py", evaluate=sometimes, evaluations=2).name == "program"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (None, "returned None; expected a number"),
        ("0.5", "returned a str"),
        ({"loss": 1.0}, 'metrics={"loss": "maximize"}'),
        ({"score": "high"}, "returned score: a str"),
        ({}, "returned nothing without score"),
        (float("nan"), "score is nan"),
    ],
)
def test_what_is_no_score_says_what_was_expected(told: object, said: str) -> None:
    with pytest.raises(EvoGitError) as caught:
        evogit.evolve("program.py", evaluate=lambda path: told, evaluations=2)
    assert said in str(caught.value)


def test_a_dict_has_several_numbers_and_a_text_for_agents() -> None:
    def measured(path: Path) -> dict[str, object]:
        text = path.read_text()
        return {"size": len(text), "lines": text.count("\n"), "feedback": "shorter is better"}

    result = evogit.evolve(
        "program.py",
        evaluate=measured,
        evaluations=3,
        metrics={"size": "minimize"},
        agents=ScriptedAgent(lambda brief, rng: {"program.py": next(iter(brief.files.values()))[:-1]}),
    )
    assert result.best.metrics.keys() == {"size", "lines"}
    assert result.best.score == min(each.metrics["size"] for each in result)
    assert b"shorter is better" in result.best.evidence["feedback.json"]


def test_seeds_are_files_folders_texts_and_dicts(here: Path) -> None:
    def files(folder: Path) -> float:
        return float(len(list(folder.rglob("*.py"))))

    def text(path: Path) -> float:
        return float(path.read_text().count("\n"))

    (here / "app" / "lib").mkdir(parents=True)
    (here / "app" / "main.py").write_text("X = 1\n")
    (here / "app" / "lib" / "a.py").write_text("Y = 1\n")
    (here / "app" / ".hidden").write_text("no")
    folder = evogit.evolve("app", evaluate=files, evaluations=2)
    assert (folder.name, folder.best.score) == ("app", 2.0)
    assert set(folder.seed.files) == {"main.py", "lib/a.py"}
    given = evogit.evolve({"a.py": "X = 1\n", "b.py": b"Y = 2\n"}, evaluate=files, evaluations=2, repository="dict")
    assert given.seed.score == 2.0
    brief = ScriptedAgent(lambda brief, rng: {"text.txt": b"Say hello.\n"})
    prose = evogit.evolve("Say hello.\nBe brief.\n", evaluate=text, evaluations=2, agents=brief)
    assert prose.seed.files.keys() == {"text.txt"}
    (here / "Größe 2.py").write_text("X = 1\n")
    assert evogit.evolve("Größe 2.py", evaluate=text, evaluations=2).name == "groe_2"
    assert evogit.evolve("x = 1\ny = 2\n", evaluate=text, evaluations=2).seed.text == "x = 1\ny = 2\n"
    (here / "windows.py").write_text("X = 1\r\n", encoding="utf-8-sig")
    windows = evogit.evolve("windows.py", evaluate=lambda path: runpy.run_path(str(path))["X"], evaluations=8)
    assert windows.best.score > 1
    assert windows.best.text.startswith("\ufeffX = ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"task": "program.py", "evaluate": length}, "expected a limit"),
        ({"task": "nothing.py", "evaluate": length, "evaluations": 2}, "there is no such file"),
        ({"task": "", "evaluate": length, "evaluations": 2}, "there is no such file"),
        ({"task": "x = 1\ny = 2\n", "evaluations": 2}, "expected evaluate="),
        ({"task": "program.py", "evaluate": "length", "evaluations": 2}, "expected a function"),
        ({"task": "program.py", "evaluate": length, "evaluations": 2, "agents": "robot"}, "kind mutator"),
        ({"task": "program.py", "evaluate": length, "evaluations": 2, "metrics": {"a": "up"}}, "'a': 'up'"),
        ({"task": "program.py", "evaluate": length, "evaluations": 2, "metrics": {"": "maximize"}}, "'': 'maximize'"),
        ({"task": "program.py", "evaluate": length, "evaluations": 2, "metrics": 3}, "got 3"),
        ({"task": "program.py", "evaluate": length, "evaluations": 2, "metrics": "loss:minimize"}, "'loss:minimize'"),
        ({"task": "program.py", "evaluate": length, "evaluations": 2, "selector": object()}, "next_move and adopts"),
        ({"task": "program.py", "evaluate": length, "evaluations": 2, "agents": ScriptedAgent}, "instances of classes"),
        ({"task": "program.py", "evaluate": length, "evaluations": 2, "agents": [length]}, "got <function length"),
        ({"task": "program.py", "evaluate": length, "evaluations": 2, "editable": ["*.txt"]}, "a file of the seed"),
        ({"task": "program.py", "evaluate": length, "evaluations": 2, "timeout": 0}, "timeout= above 0"),
        ({"task": "program.py", "evaluate": length, "evaluations": 2, "timeout": "1"}, "above 0 seconds, got '1'"),
        ({"task": "program.py", "evaluate": length, "evaluations": "2"}, "evaluations above 0, got '2'"),
        ({"task": "program.py", "evaluate": length, "evaluations": 2, "name": "n" * 300}, "at most 100 letters"),
        ({"task": "x = 1\ny = '\udcff'\n", "evaluate": length, "evaluations": 2}, "that UTF-8 can hold"),
        ({"task": "program.py", "evaluate": length, "evaluations": 2, "jobs": 0}, "above 0"),
        ({"task": "program.py", "evaluate": length, "evaluations": 2, "repeats": -1}, "repeats= of 0"),
        ({"task": "nothing", "evaluations": 2}, "no task nothing"),
    ],
)
def test_wrong_arguments_are_told(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(EvoGitError) as caught:
        evogit.evolve(**arguments)
    assert said in str(caught.value)
    assert not Path("evogit-program/.git/refs/evogit").exists()


def test_functions_that_differ_in_what_they_were_given_are_others() -> None:
    def long(path: Path) -> float:
        return 1.0

    def short(path: Path) -> float:
        return 2.0

    def weighted(path: Path, weight: float) -> float:
        return weight

    functions = (
        *(functools.partial(weighted, weight=weight) for weight in (1.0, 2.0)),
        *(lambda path, weight=weight: weight for weight in (1.0, 2.0)),
        lambda path: long(path),
        lambda path: short(path),
    )
    scores = [evogit.evolve("program.py", each, evaluations=1).seed.score for each in functions]
    assert scores == [1.0, 2.0] * 3


def test_coroutine_functions_are_awaited() -> None:
    async def slowly(path: Path) -> float:
        await asyncio.sleep(0)
        if "# " in path.read_text():
            raise ValueError("a note")
        return 1.0

    result = evogit.evolve("program.py", evaluate=slowly, evaluations=3, agents=ScriptedAgent())
    assert [each.status for each in result] == ["ok", "crashed", "crashed"]
    assert evogit.evolve("program.py", evaluate=lambda path: slowly(path), evaluations=1).best.score == 1.0


def test_several_are_evaluated_at_a_time_if_asked_for() -> None:
    busy, most, together = [0], [0], threading.Event()
    seed = Path("program.py").read_text()

    def counted(path: Path, pause: Callable[[], object]) -> float:
        busy[0] += 1
        most[0] = max(most[0], busy[0])
        if most[0] > 1:
            together.set()
        pause()
        busy[0] -= 1
        return float(len(path.read_text()))

    def company(path: Path) -> float:
        return counted(path, lambda: path.read_text() == seed or together.wait(PATIENCE))

    evogit.evolve(
        "program.py", evaluate=lambda path: counted(path, lambda: time.sleep(0.02)), evaluations=5, agents="mutator:3"
    )
    assert most[0] == 1
    evogit.evolve("program.py", evaluate=company, evaluations=9, agents="mutator:3", jobs=3)
    assert most[0] > 1


@pytest.mark.slow  # a limit that a quick call keeps on a busy machine, too
def test_an_endless_candidate_is_a_timeout_and_its_thread_ends() -> None:
    def endless(path: Path) -> float:
        text = path.read_text()
        while "# " in text:
            pass
        return 1.0

    result = evogit.evolve("program.py", evaluate=endless, evaluations=2, agents=ScriptedAgent(), timeout=2)
    assert [each.status for each in result] == ["ok", "timeout"]
    assert "timeout= allows more" in result.candidates[1].failure
    for thread in threading.enumerate():
        if thread.name == "evogit-evaluate":
            thread.join()


def test_runs_may_begin_together_in_a_new_repository() -> None:
    def begin(name: str) -> int:
        return evogit.evolve("program.py", length, evaluations=2, name=name, repository="study").evaluations

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(begin, ("a", "b", "c", "d"))) == [2] * 4


def test_a_place_where_no_repository_can_be_is_an_error_of_ours() -> None:
    with pytest.raises(RepositoryError, match="cannot create a repository at /proc/x"):
        evogit.evolve("program.py", length, evaluations=2, repository="/proc/x")


def test_deterministic_runs_agree_in_every_id() -> None:
    one, two = (
        evogit.evolve("program.py", evaluate=length, evaluations=8, deterministic=True, seed=3, repository=name)
        for name in ("one", "two")
    )
    assert [each.id for each in one] == [each.id for each in two]


def test_evolve_takes_what_prepare_takes() -> None:
    assert inspect.signature(evogit.evolve).parameters == inspect.signature(evogit.prepare).parameters
    assert "evaluate: called with the path" in (evogit.evolve.__doc__ or "")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [({"n_trials": 3}, "evaluations"), ({"direction": "minimize"}, "metrics="), ({"modell": "m"}, "model"), ({}, "")],
)
def test_an_argument_that_there_is_not_names_the_one_that_was_meant(arguments: dict[str, Any], meant: str) -> None:
    with pytest.raises(TypeError) as caught:
        evogit.evolve(**{"seed": "program.py", "evaluate": length, **arguments})
    assert "prepare" not in str(caught.value)
    assert meant in str(caught.value)


class Scripted(evogit.Agent):
    kind = "scripted"

    async def propose(self, brief: evogit.Brief, rng: random.Random) -> evogit.Proposal:
        return evogit.Proposal(changes={"program.py": brief.files["program.py"] + b"# mine\n"}, title="mine")


class Climber:
    moves = 0

    def next_move(self, history: evogit.History, agent: str, rng: random.Random) -> evogit.Move:
        self.moves += 1
        return evogit.Move(operator="mutation", parents=(history.head(agent),))

    def adopts(self, history: evogit.History, agent: str, child: str) -> bool:
        return not history.fitter(history.head(agent), child)


def test_agents_and_a_selector_of_the_caller_work_beside_those_that_are_named() -> None:
    climber = Climber()
    agents: list[Any] = ["mutator:2", Scripted()]
    result = evogit.evolve("program.py", evaluate=length, evaluations=12, agents=agents, selector=climber)
    assert {each.agent for each in result if each.title == "mine"} == {"a3"}
    assert {"a1", "a2"} < {each.agent for each in result}
    assert climber.moves >= 11
    assert (
        evogit.evolve("program.py", evaluate=length, evaluations=14, agents=agents, selector=climber).evaluations == 14
    )


REPLIES = """\
TITLE: a larger A
<<<<<<< WRITE program.py
A = 5.0
>>>>>>> END
"""


def test_models_write_what_runs_here_and_that_is_told(here: Path, caplog: pytest.LogCaptureFixture) -> None:
    (here / "replies.txt").write_text(REPLIES)
    told = lambda path: {"score": float("5.0" in path.read_text()), "feedback": "5.0 is missing"}  # noqa: E731
    result = evogit.evolve("program.py", told, goal="Have a 5.0.", model="script:replies.txt", evaluations=2)
    assert (result.best.title, result.best.text) == ("a larger A", "A = 5.0\n")
    prompt = result.best.evidence["prompt.md"].decode()
    assert "Have a 5.0." in prompt
    assert "5.0 is missing" in prompt
    assert "with your rights" in caplog.text


def test_models_that_may_cost_money_need_a_limit_and_keys_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test-alone")
    with pytest.raises(UsageError, match="some-model may cost money"):
        evogit.prepare("program.py", length, model="some-model", evaluations=2)
    run = evogit.prepare("program.py", length, model="some-model", evaluations=2, dollars=1)
    assert [str(spec) for spec in run.settings.population] == ["editor@some-model:4"]
    assert run.secrets == ("sk-of-this-test-alone",)
    assert os.environ["OPENAI_API_KEY"] == "sk-of-this-test-alone"


JUDGED = """
name = "judged"
goal = "Be short."
editable = ["text.md"]
[evaluator]
kind = "judge"
criteria = "Shorter is better."
panel = ["some-model"]
"""


def test_a_panel_that_the_task_names_needs_a_limit_too(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test-alone")
    folder = here / "judged"
    (folder / "seed").mkdir(parents=True)
    (folder / "seed" / "text.md").write_text("Long.\n")
    (folder / "task.toml").write_text(JUDGED)
    (here / "replies.txt").write_text(REPLIES)
    agents = ["editor@script:replies.txt"]
    with pytest.raises(UsageError, match="some-model may cost money"):
        evogit.prepare("judged", agents=agents, evaluations=2)
    assert evogit.prepare("judged", agents=agents, evaluations=2, dollars=1)


# --- events -------------------------------------------------------------------------------------------------------


def test_events_come_one_by_one_and_the_run_waits_for_each() -> None:
    run = evogit.prepare("program.py", evaluate=length, evaluations=4)
    seen, counted = [], []
    for event in run:
        seen.append(event)
        if isinstance(event, Evaluated):
            counted.append(run.history.counts.evaluated)
    assert isinstance(seen[0], RunStarted)
    assert isinstance(seen[-1], Stopped)
    assert sum(isinstance(each, Proposed) for each in seen) == 4
    assert counted == [1, 2, 3, 4]


def test_a_run_is_for_one_start() -> None:
    run = evogit.prepare("program.py", evaluate=length, evaluations=2)
    assert list(run)
    with pytest.raises(UsageError, match="for one start"):
        list(run)


def test_who_leaves_the_loop_has_the_run_stopped() -> None:
    run = evogit.prepare("program.py", evaluate=length, evaluations=1000)
    for _ in run:
        if run.history.counts.evaluated == 3:
            break
    assert run.history.stopped is not None
    assert run.history.stopped.reason == "interrupted"
    assert run.history.counts.evaluated < 10
    assert evogit.read("evogit-program").stopped == "interrupted"


def test_events_come_in_a_running_loop_and_so_does_a_result() -> None:
    async def main() -> list[object]:
        run = evogit.prepare("program.py", evaluate=length, evaluations=3)
        seen: list[object] = [event async for event in run]
        seen.append(evogit.evolve("program.py", evaluate=length, evaluations=4))  # as in a notebook's cell
        async for _ in evogit.prepare("program.py", evaluate=length, evaluations=1000):
            break
        return seen

    *events, result = asyncio.run(main())
    assert isinstance(events[-1], Stopped)
    assert isinstance(result, evogit.Result)
    assert result.evaluations == 4


INTERRUPTED = """
import evogit, time
def slowly(path):
    print("called", flush=True)
    time.sleep(0.05)
    return 1.0
result = evogit.evolve("program.py", evaluate=slowly, evaluations=10_000)
print("ended", result.stopped)
"""


@pytest.mark.slow
def test_ctrl_c_ends_a_script_cleanly_with_its_result(here: Path) -> None:
    (here / "script.py").write_text(INTERRUPTED)
    script = subprocess.Popen(
        [sys.executable, "script.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert script.stdout
    script.stdout.readline()
    script.send_signal(signal.SIGINT)
    out, err = script.communicate()
    assert out.endswith("ended interrupted\n")
    assert "Ctrl-C again stops at once" in err
    assert "Traceback" not in err


STUCK = """
import os, signal, sys, time
import evogit

def stuck(path):
    print("called", flush=True)
    time.sleep(1000)

def again(frame, event, arg):
    if event == "exception" and arg[0] is KeyboardInterrupt:
        interrupted.append(frame)
    if interrupted and event == "return" and frame.f_code.co_name == "__enter__":
        sys.settrace(None)
        os.kill(os.getpid(), signal.SIGINT)
    return again

interrupted = []
sys.settrace(again)
evogit.evolve("program.py", evaluate=stuck, evaluations=10)
"""


@pytest.mark.slow
def test_a_second_ctrl_c_ends_it_at_once_even_where_a_lock_was_just_taken(here: Path) -> None:
    (here / "script.py").write_text(STUCK)
    script = subprocess.Popen([sys.executable, "script.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert script.stdout
    script.stdout.readline()
    script.send_signal(signal.SIGINT)
    _, err = script.communicate()
    assert err.rstrip().endswith("KeyboardInterrupt")


ASKING = """
import os, signal, sys
import evogit

def interrupt(frame, event, arg):
    if event == "return" and frame.f_code.co_name == "__enter__":
        sys.settrace(None)
        os.kill(os.getpid(), signal.SIGINT)
    return interrupt

run = evogit.prepare("program.py", evaluate="ask", evaluations=3)
question = run.ask()
while question:
    run.tell(question, 1.0)
    sys.settrace(interrupt)
    try:
        question = run.ask()
    except KeyboardInterrupt:
        question = run.ask()
    sys.settrace(None)
"""


@pytest.mark.slow
def test_who_asks_is_heard_after_a_ctrl_c_even_where_a_lock_was_just_taken(here: Path) -> None:
    (here / "script.py").write_text(ASKING)
    script = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, timeout=PATIENCE)
    assert script.returncode == 0, script.stderr


def test_a_task_of_the_gallery_is_told_that_it_has_an_evaluator() -> None:
    with pytest.raises(UsageError, match="an evaluator of its own"):
        evogit.evolve(evogit.find_task("circle_packing"), evaluate=length, evaluations=2)


def test_a_function_that_looks_at_no_candidate_is_told_so() -> None:
    result = evogit.evolve("program.py", evaluate=lambda path: 1.0, evaluations=8)
    assert "does evaluate look at its path?" in str(result)
    assert "does evaluate look" not in str(evogit.evolve("program.py", evaluate=length, evaluations=8))


def test_a_run_in_which_nothing_can_be_changed_says_why() -> None:
    told = str(evogit.evolve({"program.py": "def f(:\n"}, evaluate=lambda path: 1.0, evaluations=8))
    assert "200 moves in a row made nothing new" in told
    assert "that parses" in told


def test_a_candidate_that_fails_is_told_with_its_own_line(here: Path) -> None:
    (here / "program.py").write_text("import json\n\nX = json.loads('[1]')\n")
    broken = ScriptedAgent(lambda brief, rng: {"program.py": b"import json\n\nX = json.loads('[1')\n"})
    result = evogit.evolve("program.py", lambda path: len(runpy.run_path(str(path))["X"]), evaluations=2, agents=broken)
    assert result.candidates[1].failure.endswith("(program.py, line 3)")


def test_a_terminal_is_told_each_new_best(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    result = evogit.evolve("program.py", evaluate=length, evaluations=12)
    said = capsys.readouterr().err
    assert all(each.id[:7] in said for each in result.records)
    assert f"of 12: score {result.best.score:.6g}" in said


# --- isolated -----------------------------------------------------------------------------------------------------


def grow(brief: evogit.Brief, rng: object) -> dict[str, bytes]:
    return {"program.py": brief.files["program.py"] + b"# x\n"}


def noted(path: Path) -> int:
    return path.read_text().count("# x")


@pytest.mark.parametrize(
    ("ending", "status", "said"),
    [
        (lambda: os._exit(7), "crashed", "ended with exit code 7"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "crashed", "ended by SIGKILL"),
        pytest.param(lambda: time.sleep(1000), "timeout", "more than 3 s", marks=pytest.mark.slow),
        pytest.param(lambda: subprocess.run(["sleep", "1000"]), "timeout", "more than 3 s", marks=pytest.mark.slow),
        (lambda: int("no"), "crashed", "ValueError: invalid literal"),
    ],
)
def test_what_crashes_or_hangs_in_a_process_of_its_own_is_one_failure(ending: Any, status: str, said: str) -> None:
    def fatal(path: Path) -> float:
        if noted(path) == 1:
            ending()
        return 1.0

    result = evogit.evolve(
        "program.py",
        fatal,
        evaluations=3,
        isolated=True,
        timeout=3 if status == "timeout" else 100,
        agents=ScriptedAgent(grow),
        jobs=1,
    )
    assert [each.status for each in result][:2] == ["ok", status]
    assert said in result.candidates[1].failure


def test_isolated_calls_leave_nothing_behind_but_their_answers() -> None:
    calls: list[Path] = []

    def counted(path: Path) -> dict[str, object]:
        calls.append(path)
        return {"score": len(path.read_text()), "more": 2, "feedback": "x" * 100_000}

    result = evogit.evolve("program.py", counted, evaluations=6, isolated=True, jobs=2)
    assert calls == []
    assert result.best.metrics["more"] == 2.0
    assert b"x" * 100_000 in result.best.evidence["feedback.json"]
    with pytest.raises(UsageError, match="expected a plain function"):
        evogit.evolve("program.py", asyncio.sleep, evaluations=2, isolated=True)


def test_another_thread_may_stop_a_run_that_waits_for_an_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_request, "ALL", 0.1)
    waits = threading.Event()

    async def endless(path: Path) -> float:
        if path.read_text() == Path("program.py").read_text():
            return 1.0
        waits.set()
        await asyncio.Event().wait()
        return 2.0

    run = evogit.prepare("program.py", endless, evaluations=9, timeout=3600)
    stopping = threading.Thread(target=lambda: waits.wait() and run.stop())
    stopping.start()
    assert run.evolve_here().reason == "interrupted"
    stopping.join()
    assert evogit.read(run).evaluations == 1


class First:
    """The simplest selector: everything descends from the seed."""

    def next_move(self, history: Any, agent: str, rng: Any) -> Any:
        return evogit.Move(operator="mutation", parents=(history.seed,))

    def adopts(self, history: Any, agent: str, child: str) -> bool:
        return False


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"n_trials": 3}, TypeError),
        ({"metrics": "seconds:minimize"}, UsageError),
        ({"selector": 123}, UsageError),
        ({"selector": First}, UsageError),
    ],
)
def test_an_argument_that_would_be_misread_is_refused(wrong: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        evogit.evolve("program.py", evaluate=length, evaluations=2, **wrong)
