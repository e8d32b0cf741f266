"""Judging with real evaluator processes and real bubblewrap sessions, on tiny tasks."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from evogit.config import load_task
from evogit.core import BaseFiles, ConfigError, Evaluation, EvaluatorError, Evidence, Files, UsageError
from evogit.evaluation import evaluator as evaluators
from evogit.evaluation.evaluator import Evaluator
from evogit.sandbox.archive import pack
from tests.clock import PATIENCE, until, wait_until

TOML = """\
name = "tiny"
goal = "Make it bigger."
editable = ["answer.py"]

[metrics.score]
direction = "maximize"

[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
splits = ["smoke", "train", "holdout"]
gate.smoke = "score > 0"

[sandbox]
timeout = "60s"
cpu = "500ms"
memory = "128m"
"""

ANSWERS = '''\
"""Adds up what the candidate answers; an answer over 100 is invalid."""
from evogit import Case, Invalid

FIRST = {"smoke": 0, "lite": 20, "train": 10, "holdout": 30}

def evaluate(program, split):
    print("judging", split)
    for n in (FIRST[split], FIRST[split] + 1):
        value = program.call("answer:answer", [n], returns=int).value
        if value > 100:
            raise Invalid(f"{value} is over 100", log="a longer story")
        yield Case(f"n={n}", feedback=f"you said {value}", score=value)
'''

GOOD = "def answer(n): return n + 1\n"


def tar(files: Mapping[str, str]) -> bytes:
    return pack({name: text.encode() for name, text in files.items()})


SEED = BaseFiles("seed", tar({"answer.py": GOOD}))


def write(root: Path, evaluate: str, toml: str = TOML) -> Path:
    for name, text in {"task.toml": toml, "evaluator/evaluate.py": evaluate, "seed/answer.py": GOOD}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def open_evaluator(root: Path, evaluate: str, *, toml: str = TOML, jobs: int = 1) -> Evaluator:
    return Evaluator(load_task(write(root, evaluate, toml)), provider="bubblewrap", jobs=jobs)


async def judge(evaluator: Evaluator, source: str = GOOD, split: str = "train") -> tuple[Evaluation, Evidence]:
    return await evaluator.evaluate("0" * 40, Files(tar({"answer.py": source}), (), SEED), split=split)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def answers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Evaluator]:
    async with open_evaluator(tmp_path_factory.mktemp("answers"), ANSWERS) as evaluator:
        yield evaluator


pytestmark = pytest.mark.asyncio(loop_scope="module")


# --- candidates -------------------------------------------------------------------------------------------------


async def test_a_good_candidate_gets_its_metrics_and_leaves_evidence(answers: Evaluator) -> None:
    files = tar({"answer.py": "import sys\nprint('hello')\nprint('oh', file=sys.stderr)\n" + GOOD})
    evaluation, evidence = await answers.evaluate("1" * 40, files, split="train")
    assert (evaluation.status, evaluation.metrics, evaluation.stages) == (
        "ok",
        {"score": 11.5},
        {"smoke": {"score": 1.5}},
    )
    assert evaluation.cases == {"n=10": {"score": 11}, "n=11": {"score": 12}}
    assert evaluation.cost.wall > 0 < evaluation.cost.cpu
    assert (evaluation.evaluator, evaluation.image) == (answers.digest, answers.image)
    assert evaluation.key == answers.key("1" * 40, "train")
    assert (evidence.stdout, evidence.stderr) == (b"hello\n", b"oh\n")
    assert evidence.feedback == {
        "smoke: n=0": "you said 1", "smoke: n=1": "you said 2", "n=10": "you said 11", "n=11": "you said 12"
    }  # fmt: skip
    assert evidence.log == "judging smoke\njudging train\n"


async def test_the_log_of_an_evaluation_has_nothing_of_the_last_one(answers: Evaluator) -> None:
    logs = [(await judge(answers))[1].log for _ in range(3)]
    assert logs == ["judging smoke\njudging train\n"] * 3


@pytest.mark.parametrize(
    ("source", "status", "reason"),
    [
        ("def answer(n): return 1000 if n == 11 else 7", "invalid", "1000 is over 100"),
        ("def answer(n): return -1", "gated", "gate smoke: score > 0, got -1"),
        ("def answer(n): return 1 // (n - 10)", "gated", "gate smoke: score > 0, got -1"),
        ("def answer(n): return n + 1 if n < 11 else 1 // 0", "crashed", "raised ZeroDivisionError"),
        ("def answer(n):", "crashed", "raised IndentationError"),
        ("import os\ndef answer(n): os._exit(0)", "crashed", "in call 1"),
        ("def answer(n):\n while True: pass", "timeout", r"0\.5.* in call 1"),
        ("def answer(n): return len(bytes([1]) * 2**30)", "out-of-memory", "memory"),
        ("def answer(n): print('x' * 2 * 10**6); return 1", "output-limit", "in call 1"),
        (
            "def answer(n): return True",
            "invalid",
            "the value returned in call 1 does not fit: value: .*integer, got True",
        ),
        ("def answer(n): return 1.5", "invalid", "does not fit: value: .*integer, got 1.5"),
        ("def answer(n): return [1]", "invalid", r"does not fit: value: .*integer, got \[1\]"),
        ("def answer(n): return float('nan')", "invalid", "in call 1"),
        ("def answer(n): return object()", "invalid", "in call 1"),
        ("print('{\"value\": 99}')\nraise SystemExit(0)", "crashed", "raised SystemExit"),
    ],
)
async def test_a_failure_of_the_candidate_has_a_status_and_a_sentence(
    answers: Evaluator, source: str, status: str, reason: str
) -> None:
    evaluation, _ = await judge(answers, source)
    assert (evaluation.status, evaluation.metrics) == (status, {})
    assert re.search(reason, evaluation.reason), evaluation.reason
    assert "\n" not in evaluation.reason
    assert (await judge(answers))[0].ok


async def test_cases_before_a_failure_stay(answers: Evaluator) -> None:
    evaluation, evidence = await judge(answers, "def answer(n): return 1000 if n == 11 else 7")
    assert evaluation.cases == {"n=10": {"score": 7}}
    assert evidence.log.startswith("a longer story\n")


async def test_lite_takes_the_place_of_train_and_the_holdout_runs_alone(answers: Evaluator) -> None:
    lite, _ = await judge(answers, split="lite")
    assert (lite.split, lite.metrics, list(lite.stages)) == ("lite", {"score": 21.5}, ["smoke"])
    holdout, _ = await judge(answers, split="holdout")
    assert (holdout.split, holdout.metrics, holdout.stages) == ("holdout", {"score": 31.5}, {})


async def test_a_key_stands_for_everything_that_a_result_depends_on(answers: Evaluator) -> None:
    keys = [
        answers.key("a", "train"),
        answers.key("b", "train"),
        answers.key("a", "lite"),
        answers.key("a", "train", 1),
    ]
    assert len(set(keys)) == 4
    assert keys[0] == answers.key("a", "train")
    assert (answers.provider, answers.judged, answers.needs_seed) == ("bubblewrap", "outside", False)


@pytest.mark.parametrize(
    ("what", "values", "matters"),
    [
        ("environment", {"cpus": 2.0}, True),
        ("environment", {"packages": ("numpy",)}, True),
        ("environment", {"exclusive": True}, True),
        ("environment", {"isolation": "fresh"}, False),
        ("limits", {"memory": 1 << 30}, True),
        ("", {"withheld": ("answer.py",)}, True),
        ("", {"preload": ("json",)}, True),
        ("", {"goal": "Make it smaller."}, False),
    ],
)
async def test_a_key_stands_for_the_task_where_it_matters(
    answers: Evaluator, what: str, values: Mapping[str, Any], matters: bool
) -> None:
    task = answers.task
    changed = replace(task, **({what: replace(getattr(task, what), **values)} if what else values))
    one, other = (Evaluator(each, provider="bubblewrap", jobs=1) for each in (task, changed))
    assert (one.key("a", "train") != other.key("a", "train")) == matters


@pytest.mark.slow
async def test_a_key_stands_for_the_seed_where_it_counts(answers: Evaluator, able: Evaluator, tmp_path: Path) -> None:
    assert answers.key("a", "train", base="one") == answers.key("a", "train", base="other")
    async with open_evaluator(tmp_path, ANSWERS + "\n\ndef prepare(program): pass\n") as preparing:
        assert preparing.key("a", "train", base="one") != preparing.key("a", "train", base="other")
    assert able.key("a", "draw", base="one") != able.key("a", "draw", base="other")
    assert (await judge(able, split="smoke"))[0].key == able.key("0" * 40, "smoke", base=SEED.id)


# --- what an evaluator can do -----------------------------------------------------------------------------------

ABLE = """\
import os
from evogit import Case
from helper import order

def evaluate(program, split, seed, rng):
    yield Case(split, feedback=globals()[split](program, seed, rng), score=1)

def draw(program, seed, rng):
    return str(rng.random())

def smoke(program, seed, rng):
    return ""

def pair(program, seed, rng):
    return str([p.call("answer:answer", [1]).value for p in (seed, program)])

def stream(program, seed, rng):
    log = []
    for reply in program.stream("answer:answer", order(log), returns=int):
        log.append(f"got {reply.value}")
    return " ".join(log)

def state(program, seed, rng):
    calls = [program.call("answer:count", fresh=fresh).value for fresh in (False, False, True)]
    return str(calls)

def run(program, seed, rng):
    done = program.run(["sh", "-c", "cat given; cat; echo made > made; echo oops >&2; exit 3"],
                       stdin=b"typed ", files={"given": b"given "}, out=["made", "missing"])
    return f"{done.code} {done.signal} {done.breach} {done.stdout!r} {done.stderr!r} {dict(done.files)}"

def tree(program, seed, rng):
    show = ["find", ".", "-mindepth", "1", "-printf", "%y %m %P %l\\n"]
    return "\\n".join(sorted((p.run(show).stdout + p.run(["cat", "kept"]).stdout).strip() for p in (program, seed)))

def tuples(program, seed, rng):
    return str(program.call("answer:pairs", returns=list[tuple[float, float]]).value)

def environment(program, seed, rng):
    return " ".join(sorted(os.environ))
"""

HELPER = """\
def order(log):
    for n in range(3):
        log.append(f"sent {n}")
        yield n
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def able(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Evaluator]:
    root = tmp_path_factory.mktemp("able")
    write(root, ABLE)
    (root / "evaluator" / "helper.py").write_text(HELPER)
    os.environ["EVOGIT_TEST_SECRET"] = "s3cret"
    async with open_evaluator(root, ABLE) as evaluator:
        del os.environ["EVOGIT_TEST_SECRET"]
        yield evaluator
    assert not list(root.rglob("__pycache__"))


@pytest.mark.parametrize(
    ("split", "source", "feedback"),
    [
        ("pair", "def answer(n): return 10 * n", "[2, 10]"),
        ("stream", "def answer(n): return n", "sent 0 got 0 sent 1 got 1 sent 2 got 2"),
        ("state", "N = []\ndef count(): N.append(1); return len(N)", "[1, 2, 1]"),
        ("run", "", "3 None None 'given typed ' 'oops\\n' {'made': b'made\\n'}"),
        ("tuples", "def pairs(): return [[1, 2.5]]", "[(1.0, 2.5)]"),
    ],
)
async def test_an_evaluator_can(able: Evaluator, split: str, source: str, feedback: str) -> None:
    evaluation, evidence = await judge(able, source, split)
    assert evaluation.reason == ""
    assert evidence.feedback[split] == feedback


def tree_of(files: Mapping[str, tuple[str, int, str]]) -> bytes:
    """A tar archive of path -> kind, mode, and content or target."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, (kind, mode, text) in files.items():
            member = tarfile.TarInfo(name)
            member.mode = mode
            member.type = tarfile.SYMTYPE if kind == "l" else tarfile.REGTYPE
            member.linkname, member.size = (text, 0) if kind == "l" else ("", len(text))
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


@pytest.mark.slow
async def test_a_candidate_has_its_changes_and_the_seed_has_none(able: Evaluator) -> None:
    async def listed(files: Files) -> list[str]:
        evaluation, evidence = await able.evaluate("0" * 40, files, split="tree")
        assert evaluation.reason == ""
        return sorted(line for line in evidence.feedback["tree"].splitlines() if "__pycache__" not in line)

    seed = tree_of(
        {
            "kept": ("f", 0o644, "old"),
            "gone/a": ("f", 0o644, ""),
            "link": ("l", 0, "kept"),
            "file": ("f", 0o644, ""),
            "folder/b": ("f", 0o644, ""),
            "runs": ("f", 0o755, ""),
        }
    )
    changed = tree_of(
        {
            "kept": ("f", 0o644, "new"),
            "link": ("f", 0o644, ""),
            "file": ("l", 0, "kept"),
            "folder": ("f", 0o755, ""),
            "runs/b": ("f", 0o644, ""),
            "made/deep/c": ("f", 0o644, ""),
        }
    )
    base = BaseFiles("tree", seed)
    original = ["d 755 folder ", "d 755 gone ", "f 644 file ", "f 644 folder/b ", "f 644 gone/a ", "f 644 kept "]
    original += ["f 755 runs ", "l 777 link kept", "old"]
    mine = ["d 755 made ", "d 755 made/deep ", "d 755 runs ", "f 644 kept ", "f 644 link ", "f 644 made/deep/c "]
    mine += ["f 644 runs/b ", "f 755 folder ", "l 777 file kept", "new"]
    removed = ("gone/a", "link", "file", "folder/b", "runs")
    nothing, everything = Files(tar({}), (), base), Files(changed, removed, base)
    for _ in range(2):
        assert await listed(nothing) == sorted([*original, *original]), "what another candidate did is not seen"
        assert await listed(everything) == sorted([*mine, *original])
    other = BaseFiles("another", tar({"kept": "other"}))
    assert await listed(Files(tar({}), (), other)) == ["f 644 kept "] * 2 + ["other"] * 2


async def test_the_evaluator_has_no_secret_in_its_environment(able: Evaluator) -> None:
    names = set((await judge(able, split="environment"))[1].feedback["environment"].split())
    places = {"PATH", "LANG", "HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"}
    docker = {"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"}
    assert "PATH" in names <= places | docker | {"PYTHONHASHSEED", "LC_CTYPE"}


async def test_an_evaluator_gets_what_the_task_names_of_the_environment_and_candidates_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml = TOML.replace('kind = "python"', 'kind = "python"\nenvironment = ["JUDGE_KEY"]')
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    with pytest.raises(ConfigError, match="JUDGE_KEY"):
        async with open_evaluator(tmp_path, KEYED, toml=toml) as evaluator:
            await judge(evaluator)
    monkeypatch.setenv("JUDGE_KEY", "key-of-the-judge")
    async with open_evaluator(tmp_path, KEYED, toml=toml) as evaluator:
        assert (await judge(evaluator))[1].feedback["all"] == "key-of-the-judge False"
        assert evaluator.task.evaluator_secrets()["JUDGE_KEY.env"] == b"JUDGE_KEY=key-of-the-judge"


KEYED = """\
import os
from evogit import Case
def evaluate(program, split):
    seen = "JUDGE_KEY" in program.run(["env"]).stdout
    yield Case("all", feedback=f"{os.environ['JUDGE_KEY']} {seen}", score=1)
"""


@pytest.mark.parametrize("repeats", [0, 1])
async def test_all_candidates_meet_the_same_randomness_and_repeats_another_where_there_are_any(
    able: Evaluator, repeats: int
) -> None:
    """A task without repeats has one draw, so that a score which comes out otherwise is noise."""
    task, able.task = able.task, replace(able.task, repeats=repeats)
    draws = [
        (await able.evaluate("0" * 40, Files(tar({"answer.py": source}), (), SEED), split="draw", repeat=repeat))[1]
        for source, repeat in [("A = 1", 0), ("B = 2", 0), ("A = 1", 1)]
    ]
    able.task = task
    first, second, repeated = [evidence.feedback["draw"] for evidence in draws]
    assert first == second
    assert (first == repeated) == (repeats == 0)


async def test_an_evaluator_that_needs_the_seed_says_so(able: Evaluator) -> None:
    assert able.needs_seed
    with pytest.raises(UsageError, match="whose base is the seed"):
        await able.evaluate("0" * 40, tar({"answer.py": GOOD}), split="pair")


# --- when the evaluator is wrong --------------------------------------------------------------------------------

BROKEN = """\
import os, signal
from evogit import Case

def evaluate(program, split):
    if split == "raises":
        yield Case("a", score=1)
        raise KeyError("the instance")
    if split == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    if split == "exits":
        os._exit(3)
    cases = {
        "nothing": [], "smoke": [Case("a", score=1)], "train": [Case("a", score=2)], "no-case": [1],
        "wrong-name": [Case("a", scroe=1)], "nan": [Case("a", score=float("nan"))], "bool": [Case("a", score=True)],
        "huge": [Case("a", score=10**400)], "endless": [Case("a", score=1 << 200_000)],
        "text": [Case("a", score="1")], "twice": [Case("a", score=1)] * 2,
        "feedback": [Case("a", feedback=b"x", score=1)],
    }
    yield from cases[split]
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def broken(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Evaluator]:
    async with open_evaluator(tmp_path_factory.mktemp("broken"), BROKEN) as evaluator:
        yield evaluator


@pytest.mark.slow
@pytest.mark.parametrize(
    ("split", "reason"),
    [
        ("raises", "the evaluator ended with KeyError: 'the instance'"),
        ("dies", "the evaluator was killed by SIGSEGV"),
        ("exits", "the evaluator ended with exit code 3"),
        ("nothing", 'expected at least one Case for split "nothing", got none'),
        ("no-case", r"expected evaluate\(\) to yield Case\(...\), got 1"),
        ("wrong-name", 'case "a": expected metrics score, got scroe'),
        ("nan", 'case "a": expected score to be a finite number, got nan'),
        ("bool", 'case "a": expected score to be a finite number, got True'),
        ("huge", 'case "a": expected score to be a finite number, got an integer of 1329 bits'),
        ("endless", 'case "a": expected score to be a finite number, got an integer of 200001 bits'),
        ("text", "expected score to be a finite number, got '1'"),
        ("feedback", "expected a name and a feedback of text, got 'a', b'x'"),
        ("twice", 'two cases are called "a"'),
    ],
)
async def test_a_fault_of_the_evaluator_is_its_own_and_the_next_evaluation_works(
    broken: Evaluator, split: str, reason: str
) -> None:
    evaluation, _ = await judge(broken, split=split)
    assert (evaluation.status, evaluation.counts, evaluation.metrics) == ("evaluator-error", False, {})
    assert re.search(reason, evaluation.reason), evaluation.reason
    assert (await judge(broken))[0].metrics == {"score": 2}


async def test_the_log_has_the_evaluators_traceback(broken: Evaluator) -> None:
    evaluation, evidence = await judge(broken, split="raises")
    assert evaluation.cases == {"a": {"score": 1}}
    assert 'raise KeyError("the instance")' in evidence.log


@pytest.mark.parametrize(
    ("evaluate", "error", "sentence"),
    [
        ("def evalaute(program, split): ...", ConfigError, "there is no function evaluate"),
        ("def evaluate(program, split, sede): ...", ConfigError, r"with seed and rng if needed, got .*sede"),
        ("import no_such_module", EvaluatorError, "No module named 'no_such_module'"),
    ],
)
async def test_a_file_that_cannot_judge_is_refused_before_the_first_candidate(
    tmp_path: Path, evaluate: str, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        async with open_evaluator(tmp_path, evaluate):
            pass


async def test_an_unknown_sandbox_is_refused(tmp_path: Path) -> None:
    task = load_task(write(tmp_path, ANSWERS))
    with pytest.raises(UsageError, match="got 'bubblewarp'"):
        async with Evaluator(task, provider="bubblewarp", jobs=1):
            pass


async def test_an_evaluator_that_changes_during_a_run_is_not_used(tmp_path: Path) -> None:
    async with open_evaluator(tmp_path, BROKEN) as evaluator:
        write(tmp_path, BROKEN + "\n# changed")
        assert (await judge(evaluator, split="dies"))[0].status == "evaluator-error"
        with pytest.raises(EvaluatorError, match="changed since the run started"):
            await judge(evaluator)


# --- many at a time, and endings --------------------------------------------------------------------------------

MEETING = """\
import time
from pathlib import Path
from evogit import Case

def evaluate(program, split):
    if split == "train":
        name = program.call("answer:name").value
        here = Path(__file__).parent.parent / "meeting"
        (here / name).touch()
        while len(list(here.iterdir())) < 2:
            time.sleep(0.01)
    yield Case("a", score=1)
    if split == "wait":
        program.run(["sleep", "60"], timeout="60s")
"""


@pytest.mark.slow
async def test_jobs_run_at_the_same_time(tmp_path: Path) -> None:
    (tmp_path / "meeting").mkdir()
    async with open_evaluator(tmp_path, MEETING, jobs=2) as evaluator:
        both = [judge(evaluator, f"def name(): return {name!r}") for name in ("one", "two")]
        results = await asyncio.wait_for(asyncio.gather(*both), timeout=PATIENCE)
    assert [evaluation.status for evaluation, _ in results] == ["ok", "ok"]


WHO = "import os\nfrom evogit import Case\n\ndef evaluate(program, split):\n    yield Case('a', score=os.getpid())\n"


async def test_what_is_over_sooner_than_a_process_starts_waits_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluators, "WORTH_A_START", PATIENCE)
    async with open_evaluator(tmp_path, WHO, jobs=4) as four:
        results = await asyncio.gather(*(judge(four) for _ in range(6)))
    assert len({evaluation.metrics["score"] for evaluation, _ in results}) == 1


def descendants(pid: int) -> set[int]:
    children = set[int]()
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            children |= {int(child) for child in listing.read_text().split()}
    return children.union(*map(descendants, children))


def forked() -> set[int]:
    """What is below us but what evaluators are forked from, which stays."""
    below = descendants(os.getpid())
    servers = {pid for pid in below if parent(pid) == os.getpid() and b"evaluator_main" in told(pid, "cmdline")}
    return below - servers


def parent(pid: int) -> int:
    fields = told(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if fields else 0


def told(pid: int, file: str) -> bytes:
    """What the system tells of a process, nothing where it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{file}").read_bytes()
    return b""


def are_gone(pids: set[int]) -> bool:
    """Whether all processes end in time; a zombie that nobody reaps has ended."""

    def lives(pid: int) -> bool:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        return False

    wait_until(lambda: not any(map(lives, pids)))
    return True


async def test_cancelling_ends_the_evaluation_and_frees_the_slot(tmp_path: Path) -> None:
    before = forked()
    async with open_evaluator(tmp_path, MEETING) as evaluator:
        task = asyncio.create_task(judge(evaluator, split="wait"))
        await until(lambda: len(forked() - before) >= 3, "the start of the command")
        processes = forked() - before
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert are_gone(processes)
        assert (await judge(evaluator, split="holdout"))[0].ok


async def test_a_judge_can_be_given_up_at_any_moment_of_its_start(tmp_path: Path) -> None:
    before = forked()

    async def enter() -> None:
        async with open_evaluator(tmp_path, MEETING):
            pass

    for moment in range(12):
        task = asyncio.create_task(enter())
        for _ in range(moment):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE)
        assert task.cancelled(), moment
    assert are_gone(forked() - before)


async def test_evaluations_go_on_when_what_evaluators_are_forked_from_is_killed(tmp_path: Path) -> None:
    async with open_evaluator(tmp_path / "a", WHO) as evaluator:
        first = int((await judge(evaluator))[0].metrics["score"])
        os.kill(parent(first), signal.SIGKILL)
        async with open_evaluator(tmp_path / "b", WHO) as other:
            assert (await judge(other))[0].ok
        assert are_gone({first})
        assert (await judge(evaluator))[0].metrics["score"] != first


async def test_an_evaluation_that_its_loop_gives_up_ends(tmp_path: Path) -> None:
    before, begun = forked(), list[set[int]]()

    async def leave_it() -> None:
        async def evaluate() -> None:
            async with open_evaluator(tmp_path, MEETING) as evaluator:
                await judge(evaluator, split="wait")

        task = asyncio.create_task(evaluate())
        while not (begun and len(begun[-1]) >= 2):
            await asyncio.sleep(0.01)
            begun.append(forked() - before)
        assert not task.done()

    await asyncio.to_thread(asyncio.run, leave_it())
    assert are_gone(begun[-1])


HAS = """\
import os, resource
from evogit import Case

def evaluate(program, split):
    umask = open("/proc/self/status").read().partition("Umask:")[2].split()[0]
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    yield Case("a", feedback=f"{sorted(os.sched_getaffinity(0))} {umask} {files} {os.environ.get('LANG')}", score=1)
"""


async def test_an_evaluator_has_what_the_engine_has_when_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: Evaluator
) -> None:
    assert (await judge(answers))[0].ok  # so that what evaluators are forked from is there already
    monkeypatch.setenv("LANG", "en_GB.UTF-8")
    with contextlib.ExitStack() as stack:
        cores, (soft, hard) = os.sched_getaffinity(0), resource.getrlimit(resource.RLIMIT_NOFILE)
        stack.callback(os.sched_setaffinity, 0, cores)
        os.sched_setaffinity(0, [max(cores)])
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
        stack.callback(socket.setdefaulttimeout, socket.getdefaulttimeout())
        socket.setdefaulttimeout(60)
        stack.callback(os.umask, os.umask(0o027))
        async with open_evaluator(tmp_path, HAS) as evaluator:
            _, evidence = await judge(evaluator)
    assert evidence.feedback["a"] == f"[{max(cores)}] 0027 {soft - 1} en_GB.UTF-8"


ENGINE = """\
import asyncio, os, sys
from pathlib import Path
from evogit.config import load_task
from evogit.evaluation.evaluator import Evaluator

async def main():
    files = Path(sys.argv[2]).read_bytes()
    async with Evaluator(load_task(Path(sys.argv[1])), provider=sys.argv[3], jobs=2) as evaluator:
        child = os.fork()  # it has copies of all descriptors, and stays
        if not child:
            sys.stdin.read()
            os._exit(0)
        print(child, flush=True)
        two = [evaluator.evaluate("0" * 40, files, split="wait") for _ in range(2)]
        await asyncio.gather(*two)

asyncio.run(main())
"""


@pytest.mark.parametrize("provider", ["bubblewrap", pytest.param("none", marks=pytest.mark.slow)])
@pytest.mark.slow
async def test_nothing_survives_when_the_engine_is_killed(tmp_path: Path, provider: str) -> None:
    write(tmp_path, MEETING)
    (tmp_path / "files.tar").write_bytes(tar({"answer.py": GOOD}))
    argv = [sys.executable, "-c", ENGINE, str(tmp_path), str(tmp_path / "files.tar"), provider]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, env=environment, start_new_session=True) as engine:
        assert engine.stdout
        child = engine.stdout.readline()
        wait_until(lambda: len(descendants(engine.pid)) >= 6, "the start of the commands")
        processes = descendants(engine.pid) - {int(child)}
        engine.send_signal(signal.SIGKILL)
        assert are_gone(processes)


# --- the guide --------------------------------------------------------------------------------------------------


async def test_the_example_in_the_guide_works(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()
    for name, text in re.findall(r"^```\w+ (\S+)\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    task = load_task(tmp_path)
    files = tar({path: data.decode() for path, (data, _) in task.seed_files().items()})
    async with Evaluator(task, provider="bubblewrap", jobs=1) as evaluator:
        evaluation, _ = await evaluator.evaluate("0" * 40, files, split="train")
    assert evaluation.metrics == {"coins": task.primary.baseline}
