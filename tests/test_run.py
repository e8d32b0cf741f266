from __future__ import annotations

import asyncio
import math
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evogit.agents import Brief, NoUsableChangeError, Proposal
from evogit.agents.mutation.mutator import Mutator
from evogit.config import Task, load_repository_task
from evogit.config.run_settings import AgentSpec
from evogit.core import ConfigError, EvaluatorError, EvoGitError, RefusedError, SandboxError, UsageError
from evogit.events import Entry, FailedProposal, Stopped
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.llm import Account, Price, Question
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.testing import InMemoryBackend, ScriptedAgent
from tests.conftest import MakeTask
from tests.plain_git import git


def evolve(path: Path, task: Task, *, name: str = "r", **options: Any) -> tuple[Stopped, History]:
    """A run on the repository at `path`, created where there is none; keywords are settings or parts of `Run`."""
    parts = {key: options.pop(key) for key in ("agents_given", "observer", "backend") if key in options}
    repository = Repository.open(path) if path.exists() else Repository.create(path)
    run = Run(
        repository,
        task,
        name,
        Settings(**options),
        parts.get("observer"),
        agents=parts.get("agents_given", ()),
        backend=parts.get("backend"),
    )
    return asyncio.run(run.evolve()), run.history


def test_a_run_improves_ends_at_its_budget_and_shows_in_plain_git(path: Path, task: Task) -> None:
    stopped, history = evolve(path, task, evaluations=40, seed=1)
    assert stopped.reason == "evaluations"
    assert history.counts.evaluated == 40
    assert history.best is not None
    assert history.fitter(history.best, history.seed or "")
    assert history.evaluation(history.best, "holdout") is not None
    assert git(path, "fsck", "--strict", "--no-dangling") == ""
    assert git(path, "status", "--porcelain") == ""
    log = git(path, "log", "--graph", "--notes=evogit/*", "--branches=evogit/*")
    for word in ("Evogit-Agent: a", "Evogit-Operator: mutation", "ok on train", "score "):
        assert word in log
    assert git(path, "rev-parse", "evogit/r/best").strip() == history.best
    for agent, head in history.heads.items():
        assert git(path, "rev-parse", f"evogit/r/{agent}").strip() == head


@pytest.mark.slow
def test_a_finished_run_goes_on_when_it_gets_more_budget(path: Path, task: Task) -> None:
    backend = InMemoryBackend(task)
    _, first = evolve(path, task, evaluations=10, backend=backend)
    _, second = evolve(path, task, evaluations=15, backend=backend)
    assert second.counts.evaluated == 15
    assert {candidate.commit for candidate in first.phylogeny} < {candidate.commit for candidate in second.phylogeny}
    stopped, third = evolve(path, task, evaluations=15, backend=backend)
    assert (stopped.reason, third.counts.evaluated) == ("evaluations", 15)


@pytest.mark.slow
@pytest.mark.parametrize("agents", [1, 4])
def test_deterministic_runs_agree_in_every_id(tmp_path: Path, tiny: MakeTask, agents: int) -> None:
    slow = "import os\nfrom evogit import Case\n" + (
        "def evaluate(program, split):\n"
        "    import time\n"
        "    time.sleep(os.urandom(1)[0] / 5000)\n"
        "    yield Case('x', score=-abs(program.call('program:value', args=[1], returns=float).value - 20))\n"
    )
    task = tiny(evaluate=slow)
    ids = []
    for name in ("one", "two"):
        population = (AgentSpec("mutator", count=agents),)
        _, history = evolve(tmp_path / name, task, evaluations=24, population=population, deterministic=True, seed=7)
        ids.append([candidate.commit for candidate in history.phylogeny])
        assert history.counts.evaluated == 24
    assert ids[0] == ids[1]


class Counting:
    """A model whose reply depends on how many questions came before, and which takes as long as it likes."""

    name = "counting"
    price = Price(prompt=0, cached=0, completion=0)
    context = 100_000

    def __init__(self) -> None:
        self._asked = 0

    async def ask(self, question: Question, account: Account) -> str:
        self._asked += 1
        number = self._asked
        await asyncio.sleep(os.urandom(1)[0] / 10_000)
        if question.attempt == 0:
            return "I do not know."  # so that it is asked again, whoever asks meanwhile
        return f"TITLE: {number}\n<<<<<<< WRITE program.py\ndef value(x):\n    return {number}.0\n>>>>>>> END\n"


def test_a_deterministic_run_asks_in_the_order_of_moves(task: Task, tmp_path: Path) -> None:
    ids = []
    for name in ("one", "two"):
        population, model = (AgentSpec("editor", "m", count=3),), Counting()
        settings = Settings(evaluations=7, population=population, deterministic=True, seed=7)
        repository, backend = Repository.create(tmp_path / name), InMemoryBackend(task)
        run = Run(repository, task, "r", settings, models=lambda _, model=model: model, backend=backend)
        asyncio.run(run.evolve())
        ids.append([candidate.commit for candidate in run.history.phylogeny])
    assert len(ids[0]) > 4
    assert ids[0] == ids[1]


@pytest.mark.slow
def test_another_seed_gives_another_run(task: Task, tmp_path: Path) -> None:
    options = {"evaluations": 6, "deterministic": True, "backend": InMemoryBackend(task)}
    runs = [evolve(tmp_path / str(seed), task, seed=seed, **options)[1] for seed in (1, 2)]
    assert [c.commit for c in runs[0].phylogeny][1:] != [c.commit for c in runs[1].phylogeny][1:]


@pytest.mark.slow
def test_limits(task: Task, tmp_path: Path) -> None:
    backend = InMemoryBackend(task, lambda asked: float(asked.number), pause=0.05)
    stopped, history = evolve(tmp_path / "a", task, proposals=7, backend=backend)
    assert (stopped.reason, history.counts.charged) == ("proposals", 7)
    target = backend.asked[-1].number + 5.0
    stopped, history = evolve(tmp_path / "b", task, target=target, evaluations=400, backend=backend)
    assert stopped.reason == "target"
    assert target <= (history.fitness(history.best or "") or 0) < target + 20
    stopped, _ = evolve(tmp_path / "c", task, minutes=0.02, backend=backend)
    assert stopped.reason == "minutes"


@pytest.mark.slow
def test_agents_that_only_repeat_themselves_exhaust_the_run(task: Task, path: Path) -> None:
    same = ScriptedAgent(lambda brief, rng: {"program.py": b"def value(x):\n    return 1.0\n"})
    stopped, history = evolve(path, task, agents_given=[same], backend=InMemoryBackend(task))
    assert stopped.reason == "exhausted"
    assert (history.counts.evaluated, history.counts.duplicates) == (2, 200)


def test_unusable_proposals_make_no_commit_and_are_journalled(task: Task, path: Path) -> None:
    unusable: dict[str, dict[str, bytes | None]] = {
        "expected changes to program.py": {"evaluator/evaluate.py": b""},
        "expected changes to": {"extra/../../x": b""},
        ".git": {"extra/.git/hooks/x": b""},
        "no such file": {"extra/none.py": None},
    }
    thoughts = [Proposal(changes=changes, title="x") for changes in unusable.values()]
    author = ScriptedAgent(lambda brief, rng: thoughts.pop(0))
    stopped, history = evolve(path, task, agents_given=[author], proposals=5, backend=InMemoryBackend(task))
    assert (stopped.reason, history.counts.failed_proposals, len(history.phylogeny)) == ("proposals", 5, 1)
    seen: list[Entry] = []
    Repository.open(path).journal("r", seen.append)
    failures = [entry.event.reason for entry in seen if isinstance(entry.event, FailedProposal)]
    expected = [*unusable, "the agent itself failed: IndexError"]
    assert all(reason in failure for reason, failure in zip(expected, failures, strict=True))


def test_one_failing_agent_does_not_stop_the_others(task: Task, path: Path) -> None:
    def nothing(brief: Brief, rng: object) -> Proposal:
        raise NoUsableChangeError("no idea")

    agents = [ScriptedAgent(nothing), ScriptedAgent()]
    stopped, history = evolve(path, task, agents_given=agents, evaluations=8, backend=InMemoryBackend(task))
    assert (stopped.reason, history.counts.evaluated) == ("evaluations", 8)


def test_a_hostile_title_does_not_forge_provenance(task: Task, path: Path) -> None:
    title = "ok\n\nEvogit-Agent: a9\x1b[31m"
    author = ScriptedAgent(lambda brief, rng: Proposal(changes={"extra/n": b"1"}, title=title))
    evolve(path, task, agents_given=[author], evaluations=2, backend=InMemoryBackend(task))
    trailers = git(path, "log", "-1", "--format=%(trailers:key=Evogit-Agent,valueonly)", "evogit/r/a1")
    assert trailers.strip() == "a1"


@pytest.mark.slow
def test_an_evaluator_that_fails_stops_the_run_and_nothing_counts(path: Path, tmp_path: Path, tiny: MakeTask) -> None:
    broken = tiny(evaluate="def evaluate(program, split):\n    raise KeyError('oops')\n    yield\n")
    with pytest.raises(EvaluatorError, match="3 times in a row.*oops"):
        evolve(path, broken, evaluations=5)
    with pytest.raises(EvaluatorError, match="tiny lists .*train.*, is 'trian' misspelt"):
        evolve(tmp_path / "odd", broken, evaluations=5, split="trian")
    history = StoredRun.open(Repository.open(path), "r").history
    assert history.counts.evaluated == 0
    assert history.stopped is not None
    assert history.stopped.reason == "error"


@pytest.mark.slow
def test_a_sandbox_that_is_not_there_leaves_nothing_behind(
    task: Task, path: Path, tmp_path: Path, tiny: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(SandboxError, match="Docker.*nobody.sock"):
        evolve(path, task, sandbox="docker", evaluations=3)
    assert Repository.open(path).runs() == []
    _, history = evolve(path, tiny("again"), sandbox="bubblewrap", evaluations=3)
    assert history.counts.evaluated == 3


def test_measured_times_are_not_deterministic(task: Task, path: Path) -> None:
    timed = replace(task, environment=replace(task.environment, exclusive=True))
    with pytest.raises(UsageError, match="deterministic cannot go with exclusive = true"):
        evolve(path, timed, deterministic=True, evaluations=3)
    assert Repository.open(path).runs() == []


def test_a_seed_that_fails_is_said_at_once(path: Path, tiny: MakeTask) -> None:
    with pytest.raises(EvoGitError, match="the seed of .* itself fails .crashed.*evogit check"):
        evolve(path, tiny(program="def value(x):\n    raise ValueError\n"), evaluations=5)


@pytest.mark.slow
def test_a_changed_task_or_split_is_never_mixed_in(task: Task, path: Path) -> None:
    evolve(path, task, evaluations=2)
    (task.folder / "evaluator" / "evaluate.py").write_text("def evaluate(program, split):\n    yield\n")
    from evogit.config import load_task

    with pytest.raises(RefusedError, match="the evaluator changed.*--name"):
        evolve(path, load_task(task.folder), evaluations=3)
    with pytest.raises(RefusedError, match="split"):
        evolve(path, task, evaluations=3, split="lite")


@pytest.mark.slow
def test_equal_candidates_of_another_run_are_not_judged_again(task: Task, path: Path) -> None:
    evolve(path, task, name="first", evaluations=8, deterministic=True)
    _, again = evolve(path, task, name="second", evaluations=8, deterministic=True)
    assert again.counts.cached == 8
    assert again.counts.evaluated == 8
    assert again.best is not None
    assert again.fitness(again.best) is not None


@pytest.mark.slow
def test_lite_takes_the_place_of_train(task: Task, path: Path) -> None:
    _, history = evolve(path, task, evaluations=3, split="lite")
    assert history.evaluation(history.seed or "", "lite") is not None
    judged = history.evaluation(history.seed or "")
    assert judged is not None
    assert list(judged.cases) == ["x=1"]


def test_settings_that_make_no_sense_are_refused() -> None:
    alone = (
        {"population": (AgentSpec("mutator", count=0),)},
        {"evaluations": -1},
        {"minutes": 0},
        {"minutes": math.inf},
        {"target": math.nan},
    )
    for wrong in (*alone, {"deterministic": True, "minutes": 1}):
        with pytest.raises(UsageError):
            Settings(**wrong)  # type: ignore[arg-type]


OWN = """\
name = "own"
goal = "Bring value(x) to 20."
editable = ["src/**"]
withheld = [".evogit/**"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "python"
file = ".evogit/evaluate.py"
splits = ["train"]
"""

OWN_EVALUATE = """\
from evogit import Case

def evaluate(program, split):
    assert program.run(["test", "-e", ".evogit"]).code == 1, "the judge is in the candidate's reach"
    yield Case("x", score=-abs(program.call("src.program:value", args=[1], returns=float).value - 20))
"""


def own_repository(path: Path, program: Path, toml: str = OWN) -> Path:
    """A person's repository with a judge in it and one commit."""
    (path / "src").mkdir(parents=True)
    (path / ".evogit").mkdir()
    (path / "src" / "program.py").write_text(program.read_text())
    (path / ".evogit" / "evaluate.py").write_text(OWN_EVALUATE)
    (path / "evogit.toml").write_text(toml)
    git(path.parent, "init", "-q", "-b", "main", str(path))
    git(path, "config", "user.name", "Ada")
    git(path, "config", "user.email", "ada@example.org")
    git(path, "add", ".")
    git(path, "commit", "-q", "-m", "mine")
    return path


def test_a_repository_with_nothing_to_edit_is_refused_before_anything_is_recorded(task: Task, tmp_path: Path) -> None:
    program = task.folder / "seed" / "program.py"
    path = own_repository(tmp_path / "own", program, OWN.replace("src/**", "lib/**"))
    with pytest.raises(ConfigError, match=r"no file of the commit at HEAD matches lib/\*\*"):
        evolve(path, load_repository_task(path), evaluations=2)
    assert Repository.open(path).runs() == []


@pytest.mark.slow
def test_a_persons_own_repository_is_left_as_it_was(task: Task, tmp_path: Path) -> None:
    path = own_repository(tmp_path / "own", task.folder / "seed" / "program.py")
    (path / "src" / "uncommitted.py").write_text("x = 1\n")
    before = everything(path)
    _, history = evolve(path, load_repository_task(path), evaluations=8)
    assert everything(path) == before
    assert history.seed == git(path, "rev-parse", "HEAD").strip()
    assert git(path, "branch", "-a", "--format=%(refname)").split() == ["refs/heads/evogit/r/best", "refs/heads/main"]
    assert git(path, "ls-tree", "-r", "--name-only", history.best or "").split() == [
        ".evogit/evaluate.py",
        "evogit.toml",
        "src/program.py",
    ]


def everything(path: Path) -> dict[str, bytes]:
    """Every file of checkout and Git directory but objects, our refs and our own folder."""
    refs = ("refs/evogit/", "refs/heads/evogit/", "refs/notes/evogit/")
    ours = ("objects/", "evogit/", *refs, *(f"logs/{ref}" for ref in refs))
    found = {}
    for file in path.rglob("*"):
        name = file.relative_to(path).as_posix()
        if file.is_file() and not name.removeprefix(".git/").startswith(ours if name.startswith(".git/") else ()):
            found[name] = file.read_bytes()
    return found


@pytest.mark.slow
def test_a_mutator_without_anything_to_edit_ends_the_run_soon(path: Path, tiny: MakeTask) -> None:
    judge = "from evogit import Case\n\n\ndef evaluate(program, split):\n    yield Case('x', score=1.0)\n"
    task, mutator = tiny(program="pass\n", evaluate=judge), Mutator()

    stopped, history = evolve(path, task, agents_given=[mutator], minutes=1, sandbox="none", jobs=1)

    assert (stopped.reason, history.counts.evaluated) == ("exhausted", 1)  # with pauses that took a quarter of an hour
