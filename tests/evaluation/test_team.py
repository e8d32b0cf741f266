"""Remote workers: real ones behind `sh -c`, and scripts that die, lie and flood in their place."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shlex
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from evogit.config import load_task
from evogit.config.run_settings import Settings, WorkerSpec
from evogit.core import BaseFiles, EvaluatorError, Files, UsageError
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.machine import Capacity, machine
from evogit.evaluation.workers import main as worker_main
from evogit.evaluation.workers import own_version
from evogit.evaluation.workers.remote_worker import greeting
from evogit.evaluation.workers.team import Team
from evogit.sandbox.archive import pack
from tests.clock import until
from tests.conftest import EVALUATE, PROGRAM, MakeTask, write_task

pytestmark = pytest.mark.asyncio(loop_scope="module")

REAL = shlex.join([sys.executable, "-c", "from evogit.cli import main; main()", "worker"])
SEED = BaseFiles(
    hashlib.sha256(pack({"program.py": PROGRAM.encode()})).hexdigest(), pack({"program.py": PROGRAM.encode()})
)
FILES = Files(pack({}), (), SEED)

SCRIPT = """
import json, os, struct, sys, time
PREFIX = struct.Struct(">IQ")
def say(header, body=b"", size=None):
    text = json.dumps(header).encode()
    os.write(1, PREFIX.pack(len(text), len(body) if size is None else size) + text + body + b"\\n")
def hear():
    while True:
        header, body = PREFIX.unpack(sys.stdin.buffer.read(PREFIX.size))
        told, content = json.loads(sys.stdin.buffer.read(header)), sys.stdin.buffer.read(body + 1)
        if "alive" not in told:
            return told
OK = {"status": "ok", "metrics": {"score": 1.0}, "cases": {}, "stages": {}, "reason": "",
      "cost": {"wall": 1, "cpu": 1, "memory": 1}, "starved": False}
def evaluation(number, **other):
    say({"answer": number, "evaluation": {**OK, **other}, "feedback": {}, "log": "", "stdout": 0})
version, provider, machine, room = sys.argv[1:5]
os.write(1, b"\\nevogit worker, protocol 1\\n")
say({"evogit": version})
hear()
say({"ready": {"provider": provider, "image": "other", "machine": machine, "jobs": 1024,
               "room": json.loads(room)}})
number = hear()["evaluate"]
"""
"""A worker that has been asked for its first evaluation, and offers too much; what it then does is added."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def local(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Evaluator]:
    task = load_task(write_task(tmp_path_factory.mktemp("tiny") / "tiny", evaluate=EVALUATE))
    async with Evaluator(task, provider="none", jobs=2) as evaluator:
        yield evaluator


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where workers of this test keep what they have."""
    for name, variable in (("cache", "XDG_CACHE_HOME"), ("tmp", "TMPDIR")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    return tmp_path


@pytest_asyncio.fixture(loop_scope="module")
async def own(folder: Path) -> AsyncIterator[Evaluator]:
    """One whose processes start within this test, and so in its folder."""
    task = load_task(write_task(folder / "tiny", evaluate=EVALUATE))
    async with Evaluator(task, provider="none", jobs=1) as evaluator:
        yield evaluator


ROOM = {"cpus": 2, "memory": 4 << 30, "gpus": 0}


def script(
    folder: Path,
    does: str,
    *,
    version: str = "",
    provider: str = "none",
    kind: str = "",
    room: Mapping[str, int] = ROOM,
) -> WorkerSpec:
    file = folder / f"worker-{hashlib.sha256(does.encode()).hexdigest()[:6]}.py"
    file.write_text(SCRIPT + does)
    words = [sys.executable, "-S", str(file), version or own_version(), provider, kind or machine()]
    words.append(json.dumps(dict(room)))
    return WorkerSpec(shlex.join(words), 1, "other")


def team(local: Evaluator, specs: Sequence[WorkerSpec], jobs: int = 0) -> Team:
    return Team(local, specs, asked="none", jobs=jobs)


# --- real workers -------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_worker_says_what_this_machine_says(local: Evaluator, folder: Path) -> None:
    here, _ = await local.evaluate("a" * 40, FILES, split="train")
    async with team(local, [WorkerSpec(f"sh -c {shlex.quote(REAL)}", 1)]) as there:
        evaluation, _ = await there.evaluate("a" * 40, FILES, split="train")
        assert there.key("a" * 40, "train", base=SEED.id) == evaluation.key
        giving_up = asyncio.create_task(there.evaluate("b" * 40, FILES, split="train"))
        await asyncio.sleep(0.01)
        giving_up.cancel()
        again, _ = await there.evaluate("c" * 40, FILES, split="holdout")
    assert replace(evaluation, cost=here.cost) == here
    assert again.ok, "the one place was free again"
    assert not list((folder / "tmp").glob("evogit-worker-*")), "nothing is left behind"


@pytest.mark.slow
async def test_the_files_of_a_commands_evaluator_travel(folder: Path) -> None:
    toml = """\
name = "tiny"
goal = "More."
editable = ["program.py"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "command"
command = "python3 tests/measure.py"
folder = "tests"
[evaluator.read]
score = "regex:score: (.*)"
"""
    task_folder = folder / "task"
    write_task(task_folder, toml=toml)
    (task_folder / "tests").mkdir()
    (task_folder / "tests" / "measure.py").write_text("print('score: 7')\n")
    local = Evaluator(load_task(task_folder), provider="none", jobs=1)
    async with local, team(local, [WorkerSpec(REAL, 1)]) as there:
        evaluation, _ = await there.evaluate("a" * 40, FILES, split="train")
    assert (evaluation.status, evaluation.metrics) == ("ok", {"score": 7.0}), evaluation.reason


# --- workers that cannot be used ------------------------------------------------------------------------------------

HOSTILE = {
    "answers for others": ("evaluation(number + 1)", "it answered what it was not asked"),
    "drops what it was asked": ("say({'dropped': number})", "it dropped what it was asked for"),
    "sends 10 GB": ("say({'answer': number}, size=10 << 30)", "more than is allowed"),
    "says no JSON": ("os.write(1, PREFIX.pack(9, 0) + b'[' * 9)", "no message"),
    "nests deeply": ("os.write(1, PREFIX.pack(10**6, 0) + b'[' * 10**6)", "no message"),
    "has other metrics": ("evaluation(number, metrics={'other': 1})", "no evaluation"),
    "is infinitely good": ("evaluation(number, metrics={'score': float('inf')})", "no evaluation"),
    "knows another status": ("evaluation(number, status='best')", "no evaluation"),
    "ended before it began": ("evaluation(number, cost={**OK['cost'], 'wall': -1e300})", "no evaluation"),
    "took for ever": ("evaluation(number, cost={**OK['cost'], 'cpu': 1e300})", "no evaluation"),
    "used less than nothing": ("evaluation(number, cost={**OK['cost'], 'memory': -5})", "no evaluation"),
    "used all memory": ("evaluation(number, cost={**OK['cost'], 'memory': 10**40})", "no evaluation"),
    "has very many cases": ("evaluation(number, cases={str(n): {} for n in range(200000)})", "no evaluation"),
    "has very many numbers": ("evaluation(number, cases={'x': {str(n): 1 for n in range(200000)}})", "no evaluation"),
    "asks for another's files": ("say({'need': '/etc/passwd'})", "it asked for files that it was not to have"),
    "asks again and again": (
        f"say({{'need': '{SEED.id}'}}); say({{'need': '{SEED.id}'}})",
        "it asked for files that it was not to have, or again",
    ),
    "floods": ("while True: say({'alive': True})", "it floods the run"),
}


@pytest.mark.parametrize(("does", "why"), HOSTILE.values(), ids=HOSTILE)
async def test_a_worker_that_breaks_the_rules_is_left_out(local: Evaluator, folder: Path, does: str, why: str) -> None:
    told: list[str] = []
    spec = script(folder, f"{does}\nsys.stdin.buffer.read()")
    async with Team(local, [spec], asked="none", jobs=0, show=lambda _, doing: told.append(doing)) as there:
        assert there.jobs == 1
        with pytest.raises(EvaluatorError, match=f"no worker is left.*{why}"):
            await there.evaluate("a" * 40, FILES, split="train")
        assert there.jobs == 0
    assert why in told[-1]


async def test_words_of_a_worker_can_be_written(local: Evaluator, folder: Path) -> None:
    does = r"""say({"answer": number, "evaluation": {**OK, "cases": {"\ud800": {}}, "reason": "a\ud800b"},
     "feedback": {"\ud800": "\ud800"}, "log": "\ud800", "stdout": 0})
sys.stdin.buffer.read()"""
    async with team(local, [script(folder, does)]) as there:
        evaluation, evidence = await there.evaluate("a" * 40, FILES, split="train")
    texts = [evaluation.reason, *evaluation.cases, *evidence.feedback, *evidence.feedback.values(), evidence.log]
    assert "".join(texts).encode() == b"a?b????"


@pytest.mark.parametrize(
    ("about", "asked", "why"),
    [
        ({"version": "0.0.1"}, "none", "it has EvoGit 0.0.1, and this is .*; install the same"),
        ({"provider": "bubblewrap"}, "none", "it has the sandbox 'bubblewrap', and --sandbox is none"),
        ({}, "auto", "it has the sandbox 'none', and --sandbox is auto"),
    ],
)
async def test_a_worker_that_does_not_fit_is_refused(
    local: Evaluator, folder: Path, about: dict[str, str], asked: str, why: str
) -> None:
    with pytest.raises(EvaluatorError, match=why):
        async with Team(local, [script(folder, "", **about)], asked=asked, jobs=0):
            pass


@pytest.mark.parametrize(
    ("room", "why"),
    [
        ({"cpus": 1}, "takes 2 cores, and it has 1"),
        ({"memory": 64 << 20}, "takes 512 MB of memory, and it has 64"),
        ({"gpus": 1}, "takes 2 GPUs, and it has 1"),
    ],
)
async def test_a_worker_without_room_is_refused(folder: Path, tiny: MakeTask, room: dict[str, int], why: str) -> None:
    task = tiny()
    large = replace(task, environment=replace(task.environment, cpus=1.5, gpus=2))
    local = Evaluator(large, provider="none", jobs=1)
    with pytest.raises(EvaluatorError, match=f"one evaluation {why}"):
        async with team(local, [script(folder, "", room={**ROOM, "gpus": 2, **room})]):
            pass


async def test_places_are_what_memory_and_gpus_are_enough_for(tiny: MakeTask) -> None:
    task, room = tiny(), Capacity(cpus=8, memory=4 << 30, gpus=5)
    assert room.places(task) == 8, "512 MB each"
    assert room.places(replace(task, environment=replace(task.environment, gpus=2))) == 2


async def test_times_of_another_kind_of_machine_are_not_compared(folder: Path, tiny: MakeTask) -> None:
    task = tiny()
    timed = Evaluator(replace(task, environment=replace(task.environment, exclusive=True)), provider="none", jobs=1)
    assert timed.key("a", "train") != timed.key("a", "train", place=replace(timed.place, machine="x86_64 Other"))
    other = Team(timed, [script(folder, "", kind="x86_64 Other")], asked="none", jobs=1)
    said: list[str] = []
    other._workers[0]._tell = said.append
    async with other:
        await until(lambda: said, "that it is left out")
    assert "another kind of machine (x86_64 Other)" in said[0]


@pytest.mark.slow
@pytest.mark.parametrize("does", ["os.abort()", "say({'failed': number, 'error': 'the daemon is gone'})"])
async def test_what_a_dying_worker_had_is_evaluated_elsewhere(local: Evaluator, folder: Path, does: str) -> None:
    async with team(local, [script(folder, does)], jobs=1) as both:
        evaluations = [both.evaluate(str(n) * 40, FILES, split="train") for n in range(4)]
        done = await asyncio.gather(*evaluations)
    assert [evaluation.image for evaluation, _ in done] == [local.image] * 4


FAILS = "while True:\n    evaluation(number, status='evaluator-error', metrics={})\n    number = hear()['evaluate']"


@pytest.mark.parametrize(("does", "counted"), [(FAILS, "evaluated"), ("os.abort()", "gone")])
async def test_what_a_worker_fails_on_or_dies_of_is_evaluated_here(
    own: Evaluator, folder: Path, monkeypatch: pytest.MonkeyPatch, does: str, counted: str
) -> None:
    monkeypatch.setattr("evogit.evaluation.workers.team.LOSSES", 1)
    async with team(own, [script(folder, does)], jobs=1) as both:
        await until(lambda: both.jobs == 2, "that the worker is there")
        done = await asyncio.gather(*(both.evaluate(str(n) * 40, FILES, split="train") for n in range(4)))
        assert both.workers()[0][counted]
    assert all(evaluation.ok for evaluation, _ in done)


async def test_what_a_worker_keeps_is_evaluated_elsewhere(
    own: Evaluator, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evogit.evaluation.workers.team.LEAST_PATIENCE", 0.2)
    monkeypatch.setattr("evogit.evaluation.workers.team.PATIENCE", 0)
    asked = folder / "asked"
    does = f"while True:\n    open({str(asked)!r}, 'a').write('x')\n    number = hear()['evaluate']"
    async with team(own, [script(folder, does)], jobs=1) as both:
        await until(lambda: both.jobs == 2, "that the worker is there")
        done = await asyncio.gather(*(both.evaluate(str(n) * 40, FILES, split="train") for n in range(6)))
    assert [evaluation.image for evaluation, _ in done] == [own.image] * 6
    assert asked.read_text() == "x", "it gets no more until it answers"


async def test_a_slow_worker_gets_more_once_it_answers(
    local: Evaluator, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evogit.evaluation.workers.team.LEAST_PATIENCE", 0.2)
    monkeypatch.setattr("evogit.evaluation.workers.team.PATIENCE", 0)
    does = "time.sleep(1)\nwhile True:\n    evaluation(number)\n    number = hear()['evaluate']"
    async with team(local, [script(folder, does)]) as there:
        evaluation, _ = await there.evaluate("a" * 40, FILES, split="train")
        assert there.workers()[0]["evaluated"] > 1
    assert evaluation.ok


async def test_a_candidate_that_takes_every_worker_with_it_is_given_up(
    local: Evaluator, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evogit.evaluation.workers.team.LOSSES", 2)
    async with team(local, [script(folder, "os.abort()")]) as there:
        evaluation, _ = await there.evaluate("a" * 40, FILES, split="train")
    assert evaluation.status == "evaluator-error"
    assert "2 times in a row the worker that evaluated it was gone, other last: it ended" in evaluation.reason


async def test_a_command_that_never_works_is_left_out(local: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evogit.evaluation.workers.remote_worker.FIRST_PAUSE", 0.001)
    with pytest.raises(EvaluatorError, match=r"it ended before it spoke \(no such host\), 5 times in a row"):
        async with team(local, [WorkerSpec("sh -c 'echo no such host; exit 255'", label="gpu")]):
            pass
    with pytest.raises(EvaluatorError, match="nowhere/at-all: No such file"):
        async with team(local, [WorkerSpec("/nowhere/at-all worker", label="gpu")]):
            pass


# --- what a person says ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("ssh gpu1 evogit worker:4", WorkerSpec("ssh gpu1 evogit worker", 4, "ssh gpu1 evogit worker")),
        ("sh -c 'evogit worker'", WorkerSpec("sh -c 'evogit worker'", None, "sh -c 'evogit worker'")),
        ("gpu", WorkerSpec("ssh gpu1 evogit worker", 2, "gpu")),
        ("gpu:8", WorkerSpec("ssh gpu1 evogit worker", 8, "gpu")),
    ],
)
async def test_workers_are_commands_or_names(text: str, spec: WorkerSpec) -> None:
    assert WorkerSpec.parse(text, {"gpu": WorkerSpec("ssh gpu1 evogit worker", 2, "gpu")}) == spec


@pytest.mark.parametrize("text", ["", ":4", "ssh gpu1 evogit worker:0", "sh -c 'open"])
async def test_what_is_no_command_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--workers"):
        WorkerSpec.parse(text)


async def test_no_places_here_need_workers() -> None:
    assert Settings(jobs=0, workers=(WorkerSpec("ssh gpu1 evogit worker"),)).jobs == 0
    with pytest.raises(UsageError, match="jobs above 0, or 0 with workers"):
        Settings(jobs=0)


@pytest.mark.parametrize("path", ["../out.py", "/OUT/out.py", "a/../../out.py"])
async def test_a_run_writes_no_files_beside_those_of_its_task_on_a_worker(tmp_path: Path, path: str) -> None:
    task = load_task(write_task(tmp_path / "task"))
    header, body = greeting(task, provider="none", jobs=1)
    folder, out = tmp_path / "worker" / "own", tmp_path / "worker" / "out"
    folder.mkdir(parents=True)
    changed = {**header, "files": [*header["files"], [path.replace("/OUT", str(out)), 0o644, 0]]}
    assert worker_main.unpacked(header, body, folder).evaluator.is_file()
    with pytest.raises(EvaluatorError, match="out.py"):
        worker_main.unpacked(changed, body, folder)
    assert not list(tmp_path.rglob("out.py"))
