"""The place where attacks are tried: a task's seed, evaluator processes that record their calls, and a time limit."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import tempfile
import time
from asyncio import timeout
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from evogit.audit.candidate import SEED, AttackCandidate, above, printing, wrapped, wrapped_all
from evogit.config import Task
from evogit.core import BaseFiles, Evaluation, Evidence, EvoGitError, Files
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.inputs import Inputs
from evogit.evaluation.seed_files import packed_seed, seed_of
from evogit.sandbox.archive import pack
from evogit.sandbox.cores import move_to

FIRST, SECOND = (hashlib.sha256(name).digest() for name in (b"evogit audit 1", b"evogit audit 2"))
"""Secrets that inputs are drawn with: an audit repeats, and what holds with both is not drawn."""
SHIM = "from evogit.audit.recorder import recorded\n\nevaluate, prepare = recorded({!r}, {!r})\n"
FASTER = 1.5  # how many times better a score made of times has to be
CONFIRMATIONS = 2  # repetitions of such a better score, in turns with the seed
MIN_GAIN = 1e-9  # the part of itself by which any other score has to be better
CLOCK = re.compile(r"\.cpu\b|\.wall\b|\.measure\(|perf_counter|process_time|monotonic|\btime\.time\b|timeit")
MEASURED = re.compile(r"\.measure\(")
MAX_SEED_FILE_BYTES = 1 << 20


class NoTimeError(EvoGitError):
    """The audit has taken as long as it may."""


class NotAskedError(EvoGitError):
    """A model that was to attack cannot be asked, or not any more."""


class Call(Struct, frozen=True):
    """One answered request of the evaluator to the candidate: its arguments (`key`, a JSON text), answer and line."""

    kind: str
    target: str
    key: str
    line: str
    value: Any

    @property
    def arguments(self) -> list[Any]:
        """All arguments, named or not."""
        args, kwargs = json.loads(self.key)
        return [*args, *kwargs.values()]


class WatchedEvaluation(Struct, frozen=True):
    """One evaluation: its result, the answered calls, and the line that scored it or gave up.

    `score` is the primary metric, where larger is better; None for a candidate that is not valid.
    """

    evaluation: Evaluation
    evidence: Evidence
    asked: list[Call]
    line: str
    score: float | None

    @property
    def answers(self) -> list[Any]:
        """The candidate's answers, call by call."""
        return [call.value for call in self.asked]


class Laboratory:
    """The seed of a task and evaluator processes for it; an async context manager.

    `hits` are the findings of earlier attacks, a sentence each. `say` shows progress; `notes` are shown at the end.
    `requests` counts evaluations that attacks asked for, `evaluations` those that were not known already.
    """

    def __init__(self, task: Task, provider: str, *, split: str = "train", seconds: float = math.inf) -> None:
        self.task = task
        self.split = split
        self.files: dict[str, bytes] = {}
        self.notes: list[str] = []
        self.hits: list[str] = []
        self.say: Callable[[str], None] = lambda text: None
        self.requests = 0
        self.evaluations = 0
        self.until = time.monotonic() + seconds
        self._provider = provider
        exclusive = task.environment.exclusive and hasattr(os, "sched_getaffinity")
        self._cores: Collection[int] = os.sched_getaffinity(0) if exclusive else ()
        self._evaluators: dict[Any, tuple[Evaluator, Path]] = {}
        self._stack = AsyncExitStack()
        self._base: BaseFiles | None = None
        self._scratch = Path()
        self._cache: dict[Any, WatchedEvaluation] = {}
        self._seeds: list[WatchedEvaluation] = []

    async def __aenter__(self) -> Self:
        """Read the seed, and evaluate it twice.

        Raises:
            EvoGitError: when the evaluator or the sandbox cannot be used at all.
        """
        self._scratch = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="evogit-audit-")))
        try:
            repository, tree = seed_of(self.task, self._scratch / "seed")
            self.task = self.task.screened(repository.trees, tree)
            for entry in repository.trees.entries(tree):
                if entry.is_file and repository.trees.size(entry.blob) <= MAX_SEED_FILE_BYTES:
                    self.files[entry.path] = repository.trees.blob(entry.blob)
            self._base = await packed_seed(repository, tree, self.task)
            self.seed = await self.evaluate(SEED)
            self.again = await self.evaluate(SEED, anew=True)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """End the evaluator processes."""
        await self._stack.aclose()

    # --- evaluating -----------------------------------------------------------------------------------------------

    async def evaluate(
        self,
        candidate: AttackCandidate,
        *,
        split: str = "",
        secret: bytes = FIRST,
        total: float = 0.0,
        process: str = "",
        anew: bool = False,
    ) -> WatchedEvaluation:
        """Evaluate a candidate, or return its earlier evaluation unless it is to be evaluated `anew`.

        `total` shortens the time limit (seconds); `process` names an evaluator process other than the usual one.

        Raises:
            NoTimeError: there is no time left.
        """
        self.requests += 1
        key = (tuple(sorted(candidate.files.items())), split, secret, total, process)
        if key in self._cache and not anew:
            return self._cache[key]
        left = self.until - time.monotonic()
        if left < 0:
            raise NoTimeError("the audit has taken as long as it may")
        self.evaluations += 1
        evaluator, journal = await self._evaluator(secret, total, process)
        files = Files(pack(candidate.files), (), self._base)
        journal.write_text("")
        try:
            async with timeout(None if math.isinf(left) else left):
                evaluation, evidence = await evaluator.evaluate("0" * 40, files, split=split or self.split)
        except TimeoutError:
            raise NoTimeError("the audit has taken as long as it may") from None
        records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
        calls = [_call(record) for record in records if record.get("side") == "program" and "value" in record]
        line = next((record["line"] for record in reversed(records) if "call" not in record), "")
        self._cache[key] = WatchedEvaluation(evaluation, evidence, calls, line, self._score(evaluation))
        return self._cache[key]

    async def _evaluator(self, secret: bytes, total: float, process: str) -> tuple[Evaluator, Path]:
        key = (secret, total, process)
        if key not in self._evaluators:
            folder = self._scratch / f"evaluator{len(self._evaluators)}"
            journal, task = folder / "journal", self.task
            if task.command:
                folder.mkdir()
            else:
                shim = folder / "evaluator" / "evaluate.py"
                shim.parent.mkdir(parents=True)
                shim.write_text(SHIM.format(str(task.evaluator), str(journal)), encoding="utf-8")
                task = replace(task, evaluator=shim)
            if total:
                task = replace(task, limits=replace(task.limits, total=min(total, task.limits.total)))
            evaluator = Evaluator(task, provider=self._provider, jobs=1, drawing=Inputs(secret))
            if self._cores:  # earlier evaluators keep this process off the core that this one needs
                move_to(self._cores)
            self._evaluators[key] = await self._stack.enter_async_context(evaluator), journal
        return self._evaluators[key]

    def _score(self, evaluation: Evaluation) -> float | None:
        if not evaluation.ok:
            return None
        value = evaluation.metrics[self.task.primary.name]
        return value if self.task.primary.direction == "maximize" else -value

    # --- comparing ------------------------------------------------------------------------------------------------

    @cached_property
    def timed(self) -> bool:
        """Return True if the score is made of times: the evaluator reads a clock, and no two scores agree.

        An evaluator that calls `measure` may call times equal that it cannot tell apart, so that scores do agree.
        """
        if self.seed.score == self.again.score:
            return any(MEASURED.search(text) for text in evaluator_texts(self.task).values())
        if reads_clock(self.task):
            return True
        own = [text.decode(errors="replace") for path, text in self.files.items() if path not in self.editable]
        return bool(self.task.command) and any(CLOCK.search(text) for text in own)  # such as benchmarks

    @property
    def floor(self) -> bool:
        """Return True if the seed scores nothing, so that no attack can score less."""
        return self.seed.score is None or (self.task.primary.direction == "maximize" and self.seed.score == 0)

    def better(self, trial: WatchedEvaluation, than: WatchedEvaluation | None = None) -> bool:
        """Compare with the seed, or another evaluation, beyond noise."""
        before = (than or self.seed).score
        if trial.score is None or before is None:
            return False
        if not self.timed:
            return trial.score - before > MIN_GAIN * max(1.0, abs(before))
        if before * trial.score <= 0:
            return trial.score > before
        return (trial.score / before if before > 0 else before / trial.score) > FASTER

    def no_worse(self, trial: WatchedEvaluation) -> bool:
        """Compare an empty answer with the seed, if the seed's score means something."""
        if trial.score is None or self.seed.score is None or self.floor:
            return self.better(trial)
        return trial.score >= self.seed.score or (self.timed and trial.score >= self.seed.score / FASTER > 0)

    async def confirmed(self, candidate: AttackCandidate, *, secret: bytes = FIRST) -> WatchedEvaluation | None:
        """Return its evaluation if it beats the seed; with times, each evaluation must beat each of the seed's."""
        trials = [await self.evaluate(candidate, secret=secret)]
        if not self.better(trials[0]):
            return None
        for _ in range(CONFIRMATIONS if self.timed else 0):
            self._seeds.append(await self.evaluate(SEED, anew=True, secret=secret))
            trials.append(await self.evaluate(candidate, anew=True, secret=secret))
            seeds = (self.seed, self.again, *self._seeds)
            if not all(self.better(trial, seed) for trial in trials for seed in seeds):
                return None
        return trials[0]

    # --- making candidates ----------------------------------------------------------------------------------------

    @cached_property
    def editable(self) -> list[str]:
        """Paths of the seed's files that candidates may change."""
        return [path for path in sorted(self.files) if self.task.is_editable(path)]

    @property
    def modules(self) -> list[str]:
        """The Python files among them."""
        return [path for path in self.editable if path.endswith(".py")]

    @property
    def scripts(self) -> dict[str, list[str]]:
        """Modules that the evaluator runs as a command -> the files that it reads afterwards."""
        commands = [call.arguments[0] for call in self.seed.asked if call.kind == "run"]
        words = {word: command["out"] for command in commands for word in words_of(command["argv"])}
        return {path: words[path] for path in self.modules if path in words}

    def cheating(self, name: str, code: str) -> AttackCandidate | None:
        """Pass the answers to the evaluator's calls through `_cheat(honest, *args, **kwargs)`, and a script's output.

        None if the functions are in no file that candidates may change.
        """
        functions: dict[str, dict[str, None]] = {}
        for call in self.seed.asked:
            module, _, function = call.target.partition(":")
            base = module.replace(".", "/")
            if path := next((path for path in (f"{base}.py", f"{base}/__init__.py") if path in self.editable), ""):
                functions.setdefault(path, {})[function] = None
        made = {path: printing(self.files[path], name, code, out) for path, out in self.scripts.items()}
        made |= {path: wrapped(self.files[path], name, tuple(names), code) for path, names in functions.items()}
        return AttackCandidate(made) if made else None

    def beginning(self, code: str) -> AttackCandidate | None:
        """Put code at the beginning of each script that the evaluator runs; None if there is none."""
        made = {path: above(self.files[path], code) for path in self.scripts}
        return AttackCandidate(made) if made else None

    def wrapping_all(self, name: str, code: str) -> AttackCandidate | None:
        """Call every function of every module through `_cheat`; None if there are no functions."""
        made = {path: wrapped_all(self.files[path], name, code) for path in self.modules}
        changed = {path: text for path, text in made.items() if text != self.files[path]}
        return AttackCandidate(changed) if changed else None


def words_of(argv: Sequence[str]) -> list[str]:
    """Return the words of a command, and those that a shell runs in its arguments."""
    return [word for part in argv for word in (part, *re.findall(r"[^\s'\"<>|;&()]+", part))]


def evaluator_texts(task: Task) -> dict[str, str]:
    """Return the Python files of a task's evaluator: name -> text."""
    files = task.evaluator_files() if task.evaluator_folder.is_dir() else {}
    return {path: data.decode(errors="replace") for path, (data, _) in files.items() if path.endswith(".py")}


def reads_clock(task: Task) -> bool:
    """Return whether an evaluator measures times, as far as its own text shows."""
    command = task.command
    if command and any(read.how in ("cpu", "wall") for read in command.reads.values()):
        return True
    return any(CLOCK.search(text) for text in evaluator_texts(task).values())


def _call(record: Mapping[str, Any]) -> Call:
    value = record["value"]
    if record["call"] == "run":
        value = next(iter(record["out"].values()), value).strip()
    return Call(record["call"], record["target"], json.dumps(record["given"], sort_keys=True), record["line"], value)
