"""Where attacks are tried: a task's seed, evaluator processes that note what they ask, and the time that is left."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from msgspec import Struct, field
from msgspec.structs import replace

from evogit.audit.candidate import AttackCandidate, above, printing, wrapped, wrapped_all
from evogit.config import Task
from evogit.core import BaseFiles, Evaluation, Evidence, EvoGitError, Files
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.inputs import Inputs
from evogit.evaluation.seed_files import packed_seed, seed_of
from evogit.sandbox.archive import pack
from evogit.sandbox.cores import move_to

FIRST, SECOND = (hashlib.sha256(name).digest() for name in (b"evogit audit 1", b"evogit audit 2"))
"""Secrets that inputs are drawn with: an audit repeats, and what holds with both is not drawn."""
SHIM = "from evogit.audit.recorder import recorded\n\nevaluate, prepare = recorded({!r}, {!r}, {!r})\n"
FASTER = 1.5
"""How many times better a score made of times has to be."""
CONFIRMED = 2
"""How often that is looked at again, in turns with the seed."""
LEAST = 1e-9
"""By what part of itself any other score has to be better."""
CLOCK = re.compile(r"\.cpu\b|\.wall\b|\.measure\(|perf_counter|process_time|monotonic|\btime\.time\b|timeit")
MEASURED = re.compile(r"\.measure\(")
SLOW = 1.0
"""CPU seconds of the seed from which on its answers are written into candidates."""
LARGEST = 1 << 20
"""Bytes of a file of the seed that is looked into."""


class NoTimeError(EvoGitError):
    """The audit has taken as long as it may."""


class NotAskedError(EvoGitError):
    """A model that was to attack cannot be asked, or not any more."""


class Call(Struct, frozen=True):
    """One request of the evaluator to a program: what it was given (`key`, a JSON text), what came back, from where."""

    kind: str
    target: str
    side: str
    key: str
    line: str
    typed: bool = False
    value: Any = None
    answered: bool = False
    wall: float = 0.0

    @property
    def given(self) -> Any:
        """The arguments: `[args, kwargs]`."""
        return json.loads(self.key)

    @property
    def arguments(self) -> list[Any]:
        """All of them, whether they were named or not."""
        args, kwargs = self.given
        return [*args, *kwargs.values()]


class WatchedEvaluation(Struct, frozen=True):
    """One evaluation: what came out of it, and what the evaluator asked; `cases` and `end` are its notes."""

    evaluation: Evaluation
    evidence: Evidence
    calls: Sequence[Call] = ()
    cases: Sequence[Mapping[str, Any]] = ()
    end: Mapping[str, Any] = field(default_factory=dict)
    score: float | None = None

    @property
    def asked(self) -> list[Call]:
        """The calls of the candidate that were answered."""
        return [call for call in self.calls if call.side == "program" and call.answered]

    @property
    def line(self) -> str:
        """Where the evaluator scored it, or gave up."""
        return str(self.end.get("line") or (self.cases[-1]["line"] if self.cases else ""))


class Laboratory:
    """The seed of a task and evaluator processes for it; an async context manager.

    `found` are what earlier attacks found, a sentence each; `say` tells a person at once; `notes` are told at the end.
    """

    def __init__(self, task: Task, provider: str, *, split: str = "train", seconds: float = math.inf) -> None:
        self.task = task
        self.split = split
        self.files: dict[str, bytes] = {}
        self.notes: list[str] = []
        self.found: list[str] = []
        self.say: Callable[[str], None] = lambda text: None
        self.tried = 0
        self.timing = ""
        self._provider = provider
        exclusive = task.environment.exclusive and hasattr(os, "sched_getaffinity")
        self._cores: Collection[int] = os.sched_getaffinity(0) if exclusive else ()
        self.until = time.monotonic() + seconds
        self._evaluators: dict[tuple[bytes, str], tuple[Evaluator, Path]] = {}
        self._stack = AsyncExitStack()
        self._base: BaseFiles | None = None
        self._scratch = Path()
        self._known: dict[Any, WatchedEvaluation] = {}
        self._seeds: list[WatchedEvaluation] = []
        self._fresh: list[WatchedEvaluation] = []

    async def __aenter__(self) -> Self:
        """Read the seed, and evaluate it.

        Raises:
            EvoGitError: when the evaluator or the sandbox cannot be used at all.
        """
        self._scratch = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="evogit-audit-")))
        try:
            repository, tree = seed_of(self.task, self._scratch / "seed")
            self.task = self.task.screened(repository.trees, tree)
            for entry in repository.trees.entries(tree):
                if entry.is_file and repository.trees.size(entry.blob) <= LARGEST:
                    self.files[entry.path] = repository.trees.blob(entry.blob)
            self._base = await packed_seed(repository, tree, self.task)
            self.seed = await self.evaluate(AttackCandidate({}))
            self.again = await self.evaluate(AttackCandidate({}), anew=True)
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
        split: str | None = None,
        secret: bytes = FIRST,
        edits: Mapping[str, str] | None = None,
        total: float = 0.0,
        anew: bool = False,
    ) -> WatchedEvaluation:
        """Evaluate a candidate; the evaluator's files may have other texts (`edits`), and less time in all (seconds).

        What was evaluated is known, unless it is to be evaluated `anew`.

        Raises:
            NoTimeError: there is no time left.
        """
        asked = (tuple(sorted(candidate.files.items())), split, secret, json.dumps(edits, sort_keys=True), total)
        if asked in self._known and not anew:
            return self._known[asked]
        trial = self._known[asked] = await self._evaluate(candidate, split or self.split, secret, edits or {}, total)
        return trial

    async def _evaluate(
        self, candidate: AttackCandidate, split: str, secret: bytes, edits: Mapping[str, str], total: float
    ) -> WatchedEvaluation:
        if time.monotonic() > self.until:
            raise NoTimeError("the audit has taken as long as it may")
        self.tried += 1
        evaluator, journal = await self._evaluator(secret, edits, total)
        return await self._hear(evaluator, journal, candidate, split)

    async def elsewhere(self, count: int) -> list[WatchedEvaluation]:
        """The seed, evaluated so often in an evaluator process of its own."""
        evaluator, journal = await self._evaluator(FIRST, {}, 0.0, f"process {len(self._evaluators)}")
        return [await self._hear(evaluator, journal, AttackCandidate({}), self.split) for _ in range(count)]

    async def fresh(self) -> list[WatchedEvaluation]:
        """The seed, evaluated twice in an evaluator process of its own; the same ones each time."""
        self._fresh = self._fresh or await self.elsewhere(2)
        return self._fresh

    async def _hear(
        self, evaluator: Evaluator, journal: Path, candidate: AttackCandidate, split: str
    ) -> WatchedEvaluation:
        files = Files(pack(candidate.files), (), self._base)
        journal.write_text("")
        left = None if math.isinf(self.until) else max(0.0, self.until - time.monotonic())
        try:
            async with asyncio.timeout(left):
                evaluation, evidence = await evaluator.evaluate("0" * 40, files, split=split)
        except TimeoutError:
            raise NoTimeError("the audit has taken as long as it may") from None
        records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
        return WatchedEvaluation(
            evaluation,
            evidence,
            [_call(record) for record in records if "call" in record],
            [record for record in records if "case" in record],
            next((record for record in records if "failed" in record or "error" in record), {}),
            self.score(evaluation),
        )

    async def _evaluator(
        self, secret: bytes, edits: Mapping[str, str], total: float, process: str = ""
    ) -> tuple[Evaluator, Path]:
        key = (secret, json.dumps([edits, total, process], sort_keys=True))
        if key not in self._evaluators:
            folder = self._scratch / f"evaluator{len(self._evaluators)}"
            folder.mkdir()
            journal, task = folder / "journal", self.task
            if task.command and edits:
                task = replace(task, folder=self._copied(folder, edits))
            if not task.command:
                shim = folder / "evaluator" / "evaluate.py"
                shim.parent.mkdir()
                shim.write_text(SHIM.format(str(task.evaluator), str(journal), dict(edits)), encoding="utf-8")
                task = replace(task, evaluator=shim)
            if total:
                task = replace(task, limits=replace(task.limits, total=min(total, task.limits.total)))
            evaluator = Evaluator(task, provider=self._provider, jobs=1, drawing=Inputs(secret))
            if self._cores:  # those before keep this process off the core that this one is to find
                move_to(self._cores)
            self._evaluators[key] = await self._stack.enter_async_context(evaluator), journal
            self.timing = evaluator.timing
        return self._evaluators[key]

    def _copied(self, folder: Path, edits: Mapping[str, str]) -> Path:
        """A folder with a command's own files, of which some have other texts."""
        assert self.task.command  # the caller has seen to that
        for path, (data, mode) in self.task.evaluator_files().items():
            file = folder / self.task.command.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(edits[path].encode() if path in edits else data)
            file.chmod(mode & 0o777)
        return folder

    def score(self, evaluation: Evaluation) -> float | None:
        """The primary metric, larger is better; None for a candidate that is not valid."""
        if not evaluation.ok:
            return None
        value = evaluation.metrics[self.task.primary.name]
        return value if self.task.primary.direction == "maximize" else -value

    # --- comparing ------------------------------------------------------------------------------------------------

    @cached_property
    def timed(self) -> bool:
        """Whether the score is made of times: the evaluator's text speaks of them, and no two of its scores agree.

        An evaluator that calls `measure` may call times equal that it cannot tell apart, so that scores do agree.
        """
        if self.seed.score == self.again.score:
            return any(MEASURED.search(text) for text in self.evaluator_texts().values())
        if speaks_of_time(self.task):
            return True
        own = [text.decode(errors="replace") for path, text in self.files.items() if path not in self.editable]
        return bool(self.task.command) and any(CLOCK.search(text) for text in own)  # such as benchmarks

    @property
    def floor(self) -> bool:
        """Whether the seed's score is one that nobody would be proud of: the attacks cannot be told from it."""
        return self.seed.score is None or (self.task.primary.direction == "maximize" and self.seed.score == 0)

    def better(self, trial: WatchedEvaluation, than: WatchedEvaluation | None = None) -> bool:
        """Whether it scores better than the seed, beyond noise."""
        before = (than or self.seed).score
        if trial.score is None or before is None:
            return False
        if not self.timed:
            return trial.score - before > LEAST * max(1.0, abs(before))
        if before * trial.score <= 0:
            return trial.score > before
        ratio = trial.score / before if before > 0 else before / trial.score
        return ratio > FASTER

    def ideal(self, trial: WatchedEvaluation) -> bool:
        """Whether no score could be better, or none that is known is as good, while the seed's is not."""
        if trial.score is None or not self.better(trial):
            return False
        metric = self.task.primary
        if metric.best_known is not None:
            known = metric.best_known if metric.direction == "maximize" else -metric.best_known
            return trial.score > known or math.isclose(trial.score, known, rel_tol=1e-9)
        if metric.direction == "minimize":
            return trial.score >= 0
        values = [each[metric.name] for each in trial.evaluation.cases.values()]
        own = max(each[metric.name] for each in self.seed.evaluation.cases.values())
        most = [most for most in (0.0, 1.0, 100.0) if own <= most]  # what the seed exceeds is no bound
        return not self.timed and any(all(math.isclose(value, each) for value in values) for each in most)

    async def confirmed(self, candidate: AttackCandidate, **options: Any) -> WatchedEvaluation | None:
        """Its trial, if it is better than the seed; with times, each time and than each of the seed."""
        trial = await self.evaluate(candidate, **options)
        if not self.better(trial):
            return None
        trials = [trial]
        for _ in range(CONFIRMED if self.timed else 0):
            self._seeds.append(await self.evaluate(AttackCandidate({}), anew=True, **options))
            trials.append(await self.evaluate(candidate, anew=True, **options))
            worst = min(trials, key=lambda each: -math.inf if each.score is None else each.score)
            if not all(self.better(worst, seed) for seed in (self.seed, self.again, *self._seeds)):
                return None
        return trial

    # --- making candidates ----------------------------------------------------------------------------------------

    @cached_property
    def editable(self) -> list[str]:
        """Paths of the seed's files that candidates may change."""
        return [path for path in sorted(self.files) if self.task.is_editable(path)]

    @property
    def modules(self) -> list[str]:
        """Those of them that are Python."""
        return [path for path in self.editable if path.endswith(".py")]

    @cached_property
    def answered(self) -> list[Call]:
        """The calls of the function that answers, where others are only told something."""
        sizes: dict[str, int] = {}
        for call in self.seed.asked:
            size = 0 if call.value is None else len(json.dumps(call.value))
            sizes[call.target] = sizes.get(call.target, 0) + size
        main = max(sizes, key=sizes.__getitem__, default="")
        return [call for call in self.seed.asked if call.target == main]

    def cheating(self, name: str, cheat: str, *, answers: bool = False) -> AttackCandidate | None:
        """The seed whose answers go through `_cheat(honest, *args, **kwargs)`; None where none of its files says them.

        What evaluators call (`module:function`) is wrapped, or with `answers` the function that answers alone; what
        they run as a script prints another text.
        """
        functions: dict[str, dict[str, None]] = {}
        scripts: dict[str, list[str]] = {}
        for call in self.answered if answers else self.seed.asked:
            if call.kind == "run":
                asked = call.arguments[0]
                scripts |= {word: asked["out"] for word in words_of(asked["argv"]) if word in self.modules}
            elif path := self._module(call.target):
                functions.setdefault(path, {})[call.target.partition(":")[2]] = None
        known = self._answers()
        made = {path: wrapped(self.files[path], name, tuple(each), cheat, known) for path, each in functions.items()}
        scripts = {path: out for path, out in scripts.items() if path not in made}
        made |= {path: printing(self.files[path], name, cheat, out) for path, out in scripts.items()}
        return AttackCandidate(made) if made else None

    def beginning(self, code: str) -> AttackCandidate:
        """The seed of which all that is run as a script begins with this code."""
        runs = [call.arguments[0]["argv"] for call in self.seed.asked if call.kind == "run"]
        words = {word for argv in runs for word in words_of(argv)}
        return AttackCandidate({path: above(self.files[path], code) for path in self.modules if path in words})

    def _answers(self) -> str:
        """What a slow seed answers, so that it need not think again, as JSON; empty where it is quick."""
        known = {call.key: call.value for call in self.seed.asked}
        unique = all(known[call.key] == call.value for call in self.seed.asked)
        if self.timed or self.seed.evaluation.cost.cpu < SLOW or not unique:
            return ""
        text = json.dumps(known)
        return text if len(text) < LARGEST else ""

    def wrapping_all(self, name: str, cheat: str) -> AttackCandidate:
        """The seed with every function of every module called through `_cheat(honest, *args, **kwargs)`."""
        made = {path: wrapped_all(self.files[path], name, cheat) for path in self.modules}
        return AttackCandidate({path: text for path, text in made.items() if text != self.files[path]})

    def _module(self, target: str) -> str:
        base = target.partition(":")[0].replace(".", "/")
        return next((path for path in (f"{base}.py", f"{base}/__init__.py") if path in self.editable), "")

    def evaluator_texts(self) -> dict[str, str]:
        """The Python files of the evaluator's folder: name -> text."""
        return evaluator_texts(self.task)


def words_of(argv: Sequence[str]) -> list[str]:
    """The words of a command, and those of what it has a shell run."""
    return [word for part in argv for word in (part, *re.findall(r"[^\s'\"<>|;&()]+", part))]


def evaluator_texts(task: Task) -> dict[str, str]:
    """The Python files of a task's evaluator: name -> text."""
    files = task.evaluator_files() if task.evaluator_folder.is_dir() else {}
    return {path: data.decode(errors="replace") for path, (data, _) in files.items() if path.endswith(".py")}


def speaks_of_time(task: Task) -> bool:
    """Whether an evaluator measures times, as far as its own text tells."""
    command = task.command
    if command and any(read.how in ("cpu", "wall") for read in command.reads.values()):
        return True
    return any(CLOCK.search(text) for text in evaluator_texts(task).values())


def _call(record: Mapping[str, Any]) -> Call:
    answered = "value" in record
    value = record.get("value")
    if record["call"] == "run" and answered:
        value = read_printed(next(iter(record["out"].values()), str(value)))
    key = json.dumps([record["args"], record["kwargs"]], sort_keys=True)
    side, line, typed = record["side"], record["line"], record["typed"]
    wall = record.get("wall", 0.0)
    return Call(record["call"], record["target"], side, key, line, typed, value, answered, wall)


def read_printed(text: str) -> Any:
    """What a program printed: JSON, numbers, or text."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [float(word) if set(word) & set(".en") else int(word) for word in text.split()]
    except ValueError:
        return text
