"""Evaluates candidates with a task's trusted evaluator: stages and gates, checked cases, one number per metric."""

from __future__ import annotations

import inspect
import math
import resource
import signal
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from numbers import Real
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from msgspec.structs import replace

from evogit.config import Task
from evogit.config.values import ALL, SEED
from evogit.core import (
    BaseFiles,
    ConfigError,
    Cost,
    Evaluation,
    EvaluatorError,
    Evidence,
    Files,
    Metric,
    SandboxError,
    SandboxLostError,
    Status,
)
from evogit.evaluation.command import CommandEvaluator
from evogit.evaluation.frames import PATIENCE
from evogit.evaluation.inputs import Drawn, generator
from evogit.evaluation.prepare import layer
from evogit.evaluation.program import CandidateFailedError, Case, Invalid, Program, connection_failures
from evogit.evaluation.told_failures import failure_in
from evogit.sandbox import Completed
from evogit.sandbox.answers import NOTHING
from evogit.sandbox.archive import entries_of, pack
from evogit.sandbox.providers import provider
from evogit.sandbox.session import Sandbox, Session
from evogit.text import ends

T = TypeVar("T")
LONGEST_REASON = 1000
"""Characters of a reason; it may quote the candidate."""
LONGEST_NAME = 60
"""Characters of the name of a number beside the metrics; it is not cut, as a part of a credential is not redacted."""
MAX_OWN_BYTES = 4 << 30
"""Bytes that an evaluation may take beyond what its evaluator had before; more is a `MemoryError`."""
MAX_ANSWER_BYTES = 2_000
"""Bytes of what a candidate answered in one case, and of what it printed there, that agents are told."""
LAST_CALLS = 20
"""Calls of a traceback that are kept."""
ATTEMPTS = 5
"""Times in a row that one evaluation is begun, when the sandbox is lost under it, before it is an error."""


def load(task: Task) -> ModuleType:
    """Import the module that defines `evaluate`, or raise ConfigError; it can import modules of its folder."""
    sys.dont_write_bytecode = True  # the folder is the user's
    sys.path.insert(0, str(task.evaluator.parent))
    name = "evaluator_of_the_task"
    loader = SourceFileLoader(name, str(task.evaluator))
    spec = spec_from_loader(name, loader)
    assert spec  # a loader gives a spec
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses look their module up
    loader.exec_module(module)
    if not callable(getattr(module, "evaluate", None)):
        raise ConfigError(f"{task.evaluator}: there is no function evaluate(program, split); define it")
    return module


def wanted(evaluate: Callable[..., object]) -> set[str]:
    """Return which of `seed` and `rng` follow `program` and `split`. Raises ConfigError for other parameters."""
    first, extra = (names := list(inspect.signature(evaluate).parameters))[:2], set(names[2:])
    if first != ["program", "split"] or extra - {"seed", "rng"}:
        raise ConfigError(f"expected evaluate(program, split) with seed and rng if needed, got ({', '.join(names)})")
    return extra


def aggregate(metric: Metric, values: list[float]) -> float:
    """Aggregate all cases. Raises EvaluatorError for an overflow, or a geometric mean of values below or at 0."""
    if metric.aggregate == "geometric" and min(values) <= 0:
        raise EvaluatorError(f"{metric.name}: a geometric mean needs positive values, got {min(values):g}")
    ways: dict[str, Callable[[list[float]], float]] = {
        "mean": statistics.fmean,
        "sum": math.fsum,
        "min": min,
        "max": max,
        "geometric": statistics.geometric_mean,
    }
    try:
        return ways[metric.aggregate](values)
    except OverflowError:
        raise EvaluatorError(f"{metric.name}: the {metric.aggregate} of the cases is too large for a number") from None


class Scorer:
    """Drives one task's evaluator over one candidate after the other."""

    def __init__(
        self,
        task: Task,
        sandbox: Sandbox,
        tell: Callable[[Mapping[str, Any]], None],
        private: Sequence[Path] = (),
    ) -> None:
        """Load the evaluator, or raise ConfigError; `tell` takes each case, and that all begins again."""
        self.task = task
        self._sandbox = sandbox
        self._tell = tell
        self._private = private
        self._evaluate: Callable[..., object]
        self._prepare: Callable[..., object] | None = None
        self._lay: Callable[[Files, str], Files] | None = None
        self._command: CommandEvaluator | None = None
        if task.command:
            self._command = evaluator = CommandEvaluator(task, task.command)
            self._evaluate = evaluator.validate if task.pairwise else evaluator.evaluate
            self._prepare = evaluator.prepare if task.command.prepare else None
            self._lay = evaluator.lay
        else:
            module = load(task)
            self._evaluate = module.evaluate
            self._prepare = getattr(module, "prepare", None)
        self._layers: dict[str, BaseFiles] = {}
        self._ignored = task.ignored_failures
        self._wanted = wanted(self._evaluate)
        self._public = False
        self._printed = 0

    @property
    def needs_seed(self) -> bool:
        """Whether the evaluator compares the candidate with the seed."""
        return "seed" in self._wanted

    @property
    def draws(self) -> bool:
        """Whether the evaluator draws inputs."""
        return "rng" in self._wanted

    @property
    def builds_on_seed(self) -> bool:
        """Whether evaluations depend on the seed in any way."""
        return self.needs_seed or self._prepare is not None or self._lay is not None

    def evaluate(
        self, split: str, repeat: int, files: Files, drawn: Drawn, *, skip_tests: bool = False
    ) -> tuple[Evaluation, Evidence]:
        """Evaluate one candidate, again if the sandbox is lost; `drawn` are the seeds of `rng`.

        It is `starved` if a request that waited for a core ran out of wall clock, even if the evaluator handled that.

        Raises:
            SandboxError: when the sandbox itself fails, or is lost again and again.
        """
        if self._command:
            self._command.skips_tests = skip_tests
        return self._kept(lambda: self._score(split, repeat, files, drawn))

    def run(self, files: Files, command: Sequence[str], wall: float, laid: bool = False) -> Completed:
        """Run a command on these files, prepared as candidates are. Raises SandboxError when the sandbox fails.

        `laid`: with the evaluator's files laid over them, as evaluations have them.
        """
        limits = self.task.limits

        def act() -> Completed:
            try:
                ready = self.laid(files) if laid else self._on_layer(files)
            except (ConfigError, EvaluatorError, CandidateFailedError) as error:
                message = str(error).encode(errors="replace")
                return Completed(code=126, signal=None, stdout=b"", stderr=message, breach=None, usage=NOTHING)
            with self._sandbox.open(ready, limits, self.task.preload) as session:
                return session.run(command, wall=min(wall, limits.wall))

        return self._kept(act)

    def _kept(self, act: Callable[[], T]) -> T:
        """Repeat an act whose sandbox is lost under it."""
        for _ in range(ATTEMPTS):
            try:
                return act()
            except SandboxLostError as error:
                loss = error
                self._tell({"again": str(error)})
        raise SandboxError(f"the sandbox was lost {ATTEMPTS} times in a row under one candidate; the last time: {loss}")

    def _score(self, split: str, repeat: int, files: Files, drawn: Drawn) -> tuple[Evaluation, Evidence]:
        begun = time.perf_counter()
        try:
            files = self.laid(files, split)
        except (ConfigError, EvaluatorError) as error:
            return _failed("evaluator-error", str(error)), Evidence(log=str(error))
        except CandidateFailedError as failure:
            return _failed(failure.status, failure.reason), Evidence(log=failure.log)
        seed, log = generator({}, self.task.name, split, repeat).getrandbits(32), ""  # the program sees it
        stages: dict[str, dict[str, float]] = {}
        self._public, self._printed = True, 0
        with within_own_limits(self.task.limits.total), ExitStack() as stack:
            sides = [files, Files(pack({}), (), files.base)] if self.needs_seed else [files]
            limits = self.task.limits
            sessions: list[Session] = []

            def opened(files: Files) -> Session:
                sessions.append(self._sandbox.open(files, limits, self.task.preload, seed=seed))
                return sessions[-1]

            opens = [partial(opened, each) for each in sides]
            programs = [Program(stack.enter_context(another()), another, total=limits.total) for another in opens]
            try:
                evaluation = Evaluation(status="ok", metrics=self._cascade(stages, programs, split, repeat, drawn))
            except CandidateFailedError as failure:
                evaluation, log = _failed(failure.status, failure.reason), failure.log
            except EvaluatorError as error:
                evaluation = _failed("evaluator-error", str(error))
            except MemoryError:
                evaluation = _failed("out-of-memory", "the evaluator ran out of memory on what it said")
                log = traceback.format_exc(limit=-LAST_CALLS)
            except RecursionError as error:
                nested = f"the evaluator could not follow what it said, as it is nested too deep: {error}"
                evaluation, log = _failed("invalid", nested), traceback.format_exc(limit=-LAST_CALLS)
            except connection_failures() as error:
                blamed = next(filter(None, (program.broken_off(error) for program in programs)), None)
                if not blamed:
                    raise
                evaluation = _failed(blamed.status, blamed.reason)
            finally:  # a loss that the evaluator took for the candidate's failure, or hid, comes out here
                (stdout, stderr), *_ = [program.output() for program in programs]
            if starved := next((each.starved for each in sessions if each.starved), ""):
                reason = ", ".join(filter(None, [evaluation.reason or "a call timed out", starved]))
                evaluation = replace(evaluation, reason=reason, starved=True)
        cost = replace(_cost_of(programs), wall=time.perf_counter() - begun)
        return replace(evaluation, stages=stages, cost=cost), Evidence(stdout=stdout, stderr=stderr, log=log)

    def laid(self, files: Files, split: str = "train") -> Files:
        """Lay hidden files over a candidate's, on what was prepared.

        Raises CandidateFailedError or EvaluatorError.
        """
        if SEED in self.task.ignored_failures:
            is_seed = isinstance(files, Files) and not files.removed and not entries_of(files.changed)[0]
            self._ignored = (*self.task.ignored_failures, ALL) if is_seed else self.task.ignored_failures
        return self._on_layer(self._lay(files, split) if self._lay else files)

    def _on_layer(self, files: Files) -> Files:
        if not self._prepare:
            return files
        if not files.base:
            raise EvaluatorError("prepare() needs the seed's files, got a candidate without them")
        if files.base.id not in self._layers:
            apart = replace(self.task.environment, exclusive=False)  # nothing is measured
            with closing(provider(self._sandbox.name, apart, self._private)) as sandbox:
                self._layers[files.base.id] = layer(self.task, self._prepare, files.base, sandbox)
        return replace(files, base=self._layers[files.base.id])

    def _cascade(
        self, stages: dict[str, dict[str, float]], programs: list[Program], split: str, repeat: int, drawn: Drawn
    ) -> dict[str, float]:
        """The metrics on `split`, if the gates before it let the candidate pass; theirs are added to `stages`."""
        for stage in self.task.stages(split):
            metrics = self._metrics(self._cases(programs, stage, repeat, drawn))
            stages[stage] = metrics
            gate = self.task.gates.get(stage)
            if gate and not gate.passes(metrics):
                raise CandidateFailedError("gated", f"gate {stage}: {gate}, got {metrics[gate.metric]:g}")
        return self._metrics(self._cases(programs, split, repeat, drawn, shown=True))

    def _metrics(self, cases: Iterator[Mapping[str, float]]) -> dict[str, float]:
        rows = list(cases)
        return {metric.name: aggregate(metric, [row[metric.name] for row in rows]) for metric in self.task.metrics}

    def _cases(
        self, programs: list[Program], split: str, repeat: int, drawn: Drawn, *, shown: bool = False
    ) -> Iterator[Mapping[str, float]]:
        """The metrics of each case; those of the evaluated split are `shown` to the engine at once."""
        given: dict[str, Any] = {"seed": programs[-1], "rng": generator(drawn, self.task.name, split, repeat)}
        names = set[str]()
        for case in _iterate(self._evaluate(programs[0], split, **{name: given[name] for name in self._wanted})):
            metrics = self._checked(case)
            if case.name in names:
                raise EvaluatorError(f'two cases are called "{case.name}"; give each its own name')
            names.add(case.name)
            title = case.name if shown else f"{split}: {case.name}"
            numbers = {name: value for name, value in case.beside.items() if isinstance(value, Real)}
            short = {name: float(value) for name, value in numbers.items() if len(name) <= LONGEST_NAME}
            finite = {name: value for name, value in short.items() if math.isfinite(value)}
            told = {**finite, **metrics} if shown else None
            self._public = self._public and self.task.is_public(case.name, split)
            answers = self._answers(case, programs[0]) if self._public and shown else []
            self._tell({"case": title, "metrics": told, "feedback": "\n".join(filter(None, [case.feedback, *answers]))})
            yield metrics
        if not names:
            raise EvaluatorError(f'expected at least one Case for split "{split}", got none; yield one from evaluate()')

    def _answers(self, case: Case, program: Program) -> list[str]:
        """Return what the candidate answered and printed for a case.

        Only while all cases up to this one are public: a program may keep what it was given, and say it later.
        """
        printed = program.output()[0].decode(errors="replace")
        texts = {"answered": case.answered, "printed": printed[self._printed :].strip()}
        self._printed = len(printed)
        return [f"{name}: {ends(text, MAX_ANSWER_BYTES)}" for name, text in texts.items() if text]

    def _checked(self, case: Case) -> dict[str, float]:
        if not isinstance(case.name, str) or not isinstance(case.feedback, str):
            raise EvaluatorError(
                f"expected a name and a feedback of text, got {case.name!r:.80}, {case.feedback!r:.80}"
            )
        declared = self.task.metric_names
        if case.metrics.keys() != declared:
            got = ", ".join(sorted(case.metrics)) or "none"
            raise EvaluatorError(f'case "{case.name}": expected metrics {", ".join(sorted(declared))}, got {got}')
        if case.beside and (told := failure_in(case.beside, self._ignored, declared)):
            raise Invalid(f'a failure is told beside case "{case.name}": {told}')
        return {name: _number(case.name, name, value) for name, value in case.metrics.items()}


@contextmanager
def within_own_limits(total: float) -> Iterator[None]:
    """Limit one evaluation to `total` seconds of this process's CPU, and its memory; the kernel ends the process.

    A Python handler would wait for a call into C, such as one that makes a set, to end.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    mapped = int(Path("/proc/self/status").read_text().partition("\nVmData:")[2].split()[0]) << 10
    with suppress(ValueError, OSError):  # a lower limit holds already
        resource.setrlimit(resource.RLIMIT_DATA, (mapped + MAX_OWN_BYTES, hard))
    signal.setitimer(signal.ITIMER_PROF, total)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * total)
    try:
        yield
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _cost_of(programs: Sequence[Program]) -> Cost:
    """Return the cost of the candidate, the first, with that of the seed, whose nearness to limits does not count."""
    own, *others = (program.cost for program in programs)
    for other in others:
        own += replace(other, call_share=0.0)
    return replace(
        own,
        waited=round(own.waited, 3),
        call_wall=round(own.call_wall, 4),
        call_cpu=round(own.call_cpu, 6),
        call_share=round(own.call_share, 3),
    )


def _failed(status: Status, reason: str) -> Evaluation:
    return Evaluation(status=status, reason=" ".join(reason.split())[:LONGEST_REASON])


def _iterate(cases: object) -> Iterator[Case]:
    if not isinstance(cases, Iterable):
        raise EvaluatorError(f"expected evaluate() to yield cases, got {cases!r:.80}; write `yield Case(...)`")
    for case in cases:
        if not isinstance(case, Case):
            raise EvaluatorError(f"expected evaluate() to yield Case(...), got {case!r:.80}")
        yield case


def _number(case: str, name: str, value: object) -> float:
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):  # an integer beyond all floats
            number = float(value)
    if not math.isfinite(number):
        shown = f"an integer of {value.bit_length()} bits" if type(value) is int else f"{value!r:.80}"
        raise EvaluatorError(f'case "{case}": expected {name} to be a finite number, got {shown}')
    return number
