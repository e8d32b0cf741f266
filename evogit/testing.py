"""What tests of agents, selectors and readers of runs need: evaluations in memory, scripted agents, written histories.

Nothing in EvoGit imports this; it is for tests of EvoGit and for those of your own agents and selectors. These are real
parts of a run, used as `Run` uses any other: only where an answer comes from is simpler.

    task = load_task(Path("my-task"))
    backend = InMemoryBackend(task, lambda asked: float(len(asked.changed["program.py"])))
    agent = ScriptedAgent(lambda brief, rng: {"program.py": b"x" * rng.randrange(100)})
    run = Run(Repository.create(path), task, "r", Settings(evaluations=20), agents=[agent], backend=backend)

A history that an engine would have written, in memory (`RecordedHistory`) or in a repository (`RecordedRun`), is told
candidate by candidate.
"""

from __future__ import annotations

import asyncio
import inspect
import io
import random
import tarfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

from msgspec import Struct

from evogit import (
    Agent,
    Brief,
    Entry,
    Evaluation,
    EvaluationBackend,
    Evidence,
    EvoGitError,
    Files,
    History,
    Proposal,
    Repository,
    StoredRun,
    Task,
)
from evogit.core import Judged, Metric, Operator, Status
from evogit.events import Adopted, Decision, Evaluated, Event, Proposed, RunStarted, Stopped
from evogit.repository import Journal

SCORE = Metric(name="score", direction="maximize", primary=True)
"""The metric of histories that name no others."""

OPERATORS: tuple[Operator, ...] = ("seed", "mutation", "merge")
"""By how many parents a candidate has, where nothing else is said."""


# --- evaluations in memory --------------------------------------------------------------------------------------


class Asked(Struct, frozen=True):
    """One evaluation that an engine asks for; `number` counts them, from 1."""

    number: int
    tree: str
    files: Files
    split: str
    repeat: int

    @property
    def changed(self) -> dict[str, bytes]:
        """The files in which the candidate differs from the seed: path -> content."""
        with tarfile.open(fileobj=io.BytesIO(self.files.changed)) as archive:
            members = ((member.name, archive.extractfile(member)) for member in archive)
            return {name: file.read() for name, file in members if file}


Answer = float | Status | Evaluation | tuple[Evaluation, Evidence]
"""A score, how it failed, or all of an evaluation; what is asked and where scores come from is filled in."""


def score_of_tree(asked: Asked) -> float:
    """A score from 0 to 1 that follows from the tree's id: equal trees are equally good."""
    return int(asked.tree[:6], 16) / 0x1000000


class InMemoryBackend(EvaluationBackend):
    """An `EvaluationBackend` without processes: a function says what an evaluation gives.

    It is given an `Asked` and may be a coroutine function, so that it can wait for something. `asked` holds everything
    that was asked so far.
    """

    provider = "none"
    image = ""

    def __init__(
        self,
        task: Task,
        answer: Callable[[Asked], Answer | Awaitable[Answer]] = score_of_tree,
        *,
        judged: Judged = "outside",
        pause: float = 0.0,
        jobs: int | None = None,
    ) -> None:
        """`pause` is how many seconds an evaluation takes at least, in which other agents get their turn.

        There are as many at a time as are asked for, or `jobs`.
        """
        self.digest = task.evaluator_digest
        self._judged: Judged = judged
        self.asked: list[Asked] = []
        self._metric = task.primary.name
        self._answer = answer
        self._pause = pause
        self._jobs = jobs
        self._free: AbstractAsyncContextManager[None] = asyncio.Semaphore(jobs) if jobs else nullcontext()

    @property
    def jobs(self) -> int | None:
        """How many candidates it evaluates at a time."""
        return self._jobs

    @property
    def judged(self) -> Judged:
        """Where scores come from."""
        return self._judged

    def key(self, tree: str, split: str, repeat: int = 0, *, base: str = "") -> str:
        """Everything that a result depends on."""
        return f"{tree} {split} {repeat}"

    async def evaluate(self, tree: str, files: Files, *, split: str, repeat: int = 0) -> tuple[Evaluation, Evidence]:
        """Have the function answer."""
        asked = Asked(len(self.asked) + 1, tree, files, split, repeat)
        self.asked.append(asked)
        async with self._free:
            await asyncio.sleep(self._pause)
            answer = self._answer(asked)
            return self._told(asked, await answer if inspect.isawaitable(answer) else answer)

    def _told(self, asked: Asked, answer: Answer) -> tuple[Evaluation, Evidence]:
        if isinstance(answer, tuple):
            return answer
        if isinstance(answer, Evaluation):
            return answer, Evidence()
        ok = isinstance(answer, int | float)
        about: dict[str, Any] = {"status": "ok" if ok else answer, "metrics": {self._metric: answer} if ok else {}}
        about |= {"split": asked.split, "repeat": asked.repeat, "key": self.key(asked.tree, asked.split, asked.repeat)}
        return Evaluation(judged=self._judged, **about), Evidence()


# --- scripted agents --------------------------------------------------------------------------------------------

Thought = Proposal | Mapping[str, bytes | None]
"""A whole proposal, or only its changes: path -> new content, None to delete."""


def add_note(brief: Brief, rng: random.Random) -> Thought:
    """One more comment at the end of the first editable file, unlike any other."""
    path, text = next(iter(brief.files.items()))
    return Proposal(changes={path: text + b"# %d\n" % rng.getrandbits(60)}, title="a note")


class ScriptedAgent(Agent):
    """An `Agent` that proposes what a function of the brief and the move's generator says; it may be a coroutine's.

    An exception that the function raises is the agent's own; `NoUsableChangeError` is a move without a proposal.
    `briefs` holds what it was told, move by move.
    """

    kind = "scripted"

    def __init__(self, think: Callable[[Brief, random.Random], Thought | Awaitable[Thought]] = add_note) -> None:
        self.briefs: list[Brief] = []
        self._think = think

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Say what the function thinks."""
        self.briefs.append(brief)
        await asyncio.sleep(0)
        thought = self._think(brief, rng)
        thought = await thought if inspect.isawaitable(thought) else thought
        return thought if isinstance(thought, Proposal) else Proposal(changes=thought, title="scripted")


# --- histories --------------------------------------------------------------------------------------------------


def run_started(**known: Any) -> RunStarted:
    """The event that begins a run, with any of its fields replaced."""
    usual: dict[str, Any] = {
        "engine": "e",
        "task": "toy",
        "task_digest": "t",
        "metrics": (SCORE,),
        "split": "train",
        "evaluator": "v",
        "provider": "none",
        "image": "i",
        "agents": ("a1",),
        "population": "refs/evogit/toy/agents/",
        "editable": ("*.py",),
    }
    return RunStarted(**{**usual, **known})


class RecordedHistory:
    """A history in memory, told event by event; a candidate is named by an id that its number gives."""

    def __init__(self, run: str = "r", **started: Any) -> None:
        """Begin a run; keywords are fields of `RunStarted`."""
        self.history = History(run)
        self.time = 0
        """When the next event happens, in seconds; of no journal, which has a clock."""
        self.entries: list[Entry] = []
        self._open()
        if not self.history.started:
            self.append(run_started(**started))

    def _open(self) -> None:
        """Read what there is already: nothing in memory."""

    @property
    def metric(self) -> str:
        """The name of the primary metric."""
        assert self.history.started
        return next(metric.name for metric in self.history.started.metrics if metric.primary)

    def append(self, event: Event) -> str:
        """Journal an event; the entry's id."""
        seq = len(self.entries) + 1
        self.entries.append(Entry(id=f"{seq:040x}", host="h", seq=seq, time=self.time, event=event))
        self.history.apply(self.entries[-1])
        return self.entries[-1].id

    def new_id(self) -> str:
        """An id for the next candidate, unlike that of any other; without an order, as Git's are."""
        return f"{random.Random(len(self.history.phylogeny)).getrandbits(160):040x}"

    def propose(self, *parents: str, **known: Any) -> str:
        """A candidate that waits for its evaluation; keywords are fields of `Proposed`. Its id."""
        usual: dict[str, Any] = {"engine": "e", "move": len(self.history.phylogeny), "parents": parents}
        usual |= {"agent": "a1" if parents else "seed", "operator": OPERATORS[len(parents)]}
        usual["candidate"] = known.get("candidate") or self.new_id()
        usual["tree"] = usual["candidate"]
        self.append(Proposed(**{**usual, **known}))
        return str(usual["candidate"])

    def evaluate(self, candidate: str, value: float | Status, evidence: str = "", **known: Any) -> None:
        """Evaluate a candidate to a value, or to how it failed; keywords are fields of `Evaluation`."""
        failed = isinstance(value, str)
        usual: dict[str, Any] = {"status": value if failed else "ok"}
        usual["metrics"] = {} if failed else {self.metric: value}
        self.append(Evaluated(candidate=candidate, evaluation=Evaluation(**{**usual, **known}), evidence=evidence))

    def add(self, value: float | Status, *parents: str, **known: Any) -> str:
        """A candidate that was evaluated; keywords are fields of `Proposed`. Its id."""
        candidate = self.propose(*parents, **known)
        self.evaluate(candidate, value)
        return candidate

    def adopt(self, candidate: str, agent: str = "a1") -> None:
        """Let an agent go on from a candidate."""
        self.append(Adopted(agent=agent, candidate=candidate))

    def decide(self, kind: Any, *candidates: str, **known: Any) -> str:
        """A person decides something about candidates; the decision's id."""
        return self.append(Decision(**{"kind": kind, "by": "Ada", "candidates": candidates, **known}))

    def stop(self, **known: Any) -> None:
        """End the engine, in good order where nothing else is said."""
        self.append(Stopped(**{"engine": "e", "reason": "evaluations", **known}))


class RecordedRun(RecordedHistory):
    """The same in a repository: candidates are commits, and every event is in the run's journal."""

    def __init__(self, repository: Repository | Path, run: str = "r", **started: Any) -> None:
        """Begin a run in a repository, or go on with it; one that is named by its path is made where there is none."""
        self.repository = _opened(repository) if isinstance(repository, Path) else repository
        self.journal: Journal
        super().__init__(run, **{"population": f"refs/heads/evogit/{run}/", **started})

    @property
    def stored(self) -> StoredRun:
        """The run as what reads it is given it."""
        return StoredRun(self.repository, self.history, self.journal)

    def _open(self) -> None:
        self.journal = self.repository.journal(self.history.run, self._take)

    def _take(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.history.apply(entry)

    def append(self, event: Event) -> str:
        """Journal an event; the entry's id.

        Raises:
            EvoGitError: the journal did not take it.
        """
        if entry := self.journal.append(event):
            return entry.id
        raise EvoGitError("the journal did not take the event")

    def commit(
        self,
        files: Mapping[str, bytes | None],
        *parents: str,
        title: str = "step",
        agent: str = "a1",
        reason: str = "",
        modes: Mapping[str, int] | None = None,
    ) -> str:
        """A commit with these changes to its first parent; nothing is journalled. Its id."""
        tree = self.repository.trees.write(self.repository.tree_of(parents[0]) if parents else None, files, modes)
        time = 1_700_000_000 + len(self.history.phylogeny)
        about: dict[str, Any] = {"title": title, "reason": reason, "trailers": {"Agent": agent}}
        return self.repository.commit(tree, parents, author=agent, time=time, **about)

    def add_files(
        self,
        files: Mapping[str, bytes | None],
        *parents: str,
        value: float | Status | None = None,
        title: str = "step",
        agent: str = "",
        reason: str = "",
        modes: Mapping[str, int] | None = None,
        evidence: Sequence[Mapping[str, bytes]] = ({}, {}),
        **known: Any,
    ) -> str:
        """A candidate with these changes to its first parent, evaluated where a value is given; its id.

        `evidence` is that of how it was made and of its evaluation; keywords are fields of `Proposed`.
        """
        agent = agent or ("a1" if parents else "seed")
        commit = self.commit(files, *parents, title=title, agent=agent, reason=reason, modes=modes)
        made = self.journal.keep(evidence[0], commit)
        usual: dict[str, Any] = {"tree": self.repository.tree_of(commit), "evidence": made if evidence[0] else ""}
        usual |= {"agent": agent, "title": title, "candidate": commit}
        self.propose(*parents, **{**usual, **known})
        if value is not None:
            self.evaluate(commit, value, self.journal.keep(evidence[1], commit) if evidence[1] else "")
        return commit


def _opened(path: Path) -> Repository:
    return Repository.open(path) if (path / ".git").exists() else Repository.create(path)
