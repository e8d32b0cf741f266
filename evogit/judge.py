"""The warm process that runs a task's trusted evaluator: `python -m evogit.judge`, one per slot of the engine.

It speaks in frames over the pipes it was started with: a length-prefixed JSON header and a binary body. First comes
the task, then one request per evaluation, with a base in between when the candidates' one is new; every case goes
back as it is yielded, then the result. An exception of the evaluator ends the process: its traceback is on stderr, and
the engine starts another one.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import os
import random
import signal
import statistics
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, nullcontext
from dataclasses import asdict, dataclass, field, replace
from numbers import Real
from typing import Any, BinaryIO

from pydantic import TypeAdapter

from evogit.config import Task
from evogit.core import Cost, EvaluatorError, EvoGitError, Metric, SandboxError, SandboxLostError
from evogit.evaluator_file import load, wanted
from evogit.layers import Prepare, layer
from evogit.program import CandidateFailedError, Case, Program
from evogit.sandbox import Base, Files, Sandbox
from evogit.sandbox.archive import pack
from evogit.sandbox.cores import exclusive_core, kept_free, turn
from evogit.sandbox.providers import provider

PREFIX = struct.Struct(">IQ")
"""Lengths of header and body, before each frame."""

LONGEST_REASON = 1000
"""Characters of a reason; it may quote the candidate."""

ATTEMPTS = 5
"""Times in a row that one evaluation is begun, when the sandbox is lost under it, before it is an error."""

_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)


def frame(header: Mapping[str, Any], body: bytes = b"") -> bytes:
    """One message, as it goes over the pipe in either direction."""
    text = json.dumps(header, allow_nan=False).encode()
    return PREFIX.pack(len(text), len(body)) + text + body


def rng_for(task: str, split: str, repeat: int) -> random.Random:
    """The generator that evaluators get: the same for all candidates, another one for each repeat."""
    seed = hashlib.sha256(f"{task}\0{split}\0{repeat}".encode()).digest()
    return random.Random(seed)


def aggregate(metric: Metric, values: list[float]) -> float:
    """One number from the values of all cases.

    Raises:
        EvaluatorError: for a geometric mean of values that are not positive, and for an overflow.
    """
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


@dataclass(kw_only=True)
class Verdict:
    """What the engine is told at the end; the cases are on their way already."""

    status: str = "ok"
    reason: str = ""
    log: str = ""
    metrics: dict[str, float] = field(default_factory=dict)
    stages: dict[str, dict[str, float]] = field(default_factory=dict)
    cost: Cost = field(default_factory=Cost)

    def fail(self, status: str, reason: str, log: str = "") -> None:
        """Turn into a failure for one reason."""
        self.status, self.reason, self.log = status, " ".join(reason.split())[:LONGEST_REASON], log


class Judge:
    """Drives one task's evaluator over one candidate after the other."""

    def __init__(self, task: Task, sandbox: Sandbox, send: Callable[[bytes], None]) -> None:
        self.task = task
        self._sandbox = sandbox
        self._send = send
        module = load(task)
        self._evaluate: Callable[..., object] = module.evaluate
        self._prepare: Prepare | None = getattr(module, "prepare", None)
        self._layers: dict[str, Base] = {}
        self._wanted = wanted(self._evaluate)

    @property
    def needs_seed(self) -> bool:
        """Whether the evaluator compares the candidate with the seed."""
        return "seed" in self._wanted

    @property
    def builds_on_seed(self) -> bool:
        """Whether verdicts depend on the seed in any way."""
        return self.needs_seed or self._prepare is not None

    def judge(self, split: str, repeat: int, files: Files) -> tuple[Verdict, bytes, bytes]:
        """Evaluate one candidate; also gives its stdout and stderr. When the sandbox is lost it starts over.

        Raises:
            SandboxError: when the sandbox itself fails, or is lost again and again.
        """
        for _ in range(ATTEMPTS):
            try:
                return self._judge(split, repeat, files)
            except SandboxLostError as error:
                loss = error
                self._send(frame({"again": str(error)}))
        raise SandboxError(f"the sandbox was lost {ATTEMPTS} times in a row under one candidate; the last time: {loss}")

    def _judge(self, split: str, repeat: int, files: Files) -> tuple[Verdict, bytes, bytes]:
        verdict, begun = Verdict(), time.perf_counter()
        try:
            files = self._on_layer(files)
        except EvaluatorError as error:
            verdict.fail("evaluator-error", str(error), str(error))
            return verdict, b"", b""
        with ExitStack() as stack:
            sessions = [
                stack.enter_context(self._sandbox.open(each, self.task.limits, self.task.preload))
                for each in ([files, Files(pack({}), (), files.base)] if self.needs_seed else [files])
            ]
            programs = [Program(session) for session in sessions]
            try:
                self._cascade(verdict, programs, split, repeat)
            except CandidateFailedError as failure:
                verdict.fail(failure.status, failure.reason, failure.log)
            except EvaluatorError as error:
                verdict.fail("evaluator-error", str(error))
            finally:  # a loss that the evaluator took for the candidate's failure, or hid, comes out here
                (stdout, stderr), *_ = [session.output() for session in sessions]
        cpu = sum(program.cost.cpu for program in programs)
        memory = max(program.cost.memory for program in programs)
        verdict.cost = Cost(wall=time.perf_counter() - begun, cpu=cpu, memory=memory)
        return verdict, stdout, stderr

    def _on_layer(self, files: Files) -> Files:
        """The files on what `prepare` made of their base, if the task has one."""
        if not self._prepare:
            return files
        if not files.base:
            raise EvaluatorError("prepare() needs the seed's files, got a candidate without them")
        if files.base.id not in self._layers:
            apart = replace(self.task.environment, exclusive=False)  # nothing is measured
            with closing(provider(self._sandbox.name, apart)) as sandbox:
                self._layers = {files.base.id: layer(self.task, self._prepare, files.base, sandbox)}
        return replace(files, base=self._layers[files.base.id])

    def _cascade(self, verdict: Verdict, programs: list[Program], split: str, repeat: int) -> None:
        for stage in self.task.stages(split):
            metrics = self._metrics(self._cases(programs, stage, repeat))
            verdict.stages[stage] = metrics
            gate = self.task.gates.get(stage)
            if gate and not gate.passes(metrics):
                raise CandidateFailedError("gated", f"gate {stage}: {gate}, got {metrics[gate.metric]:g}")
        verdict.metrics = self._metrics(self._cases(programs, split, repeat, shown=True))

    def _metrics(self, cases: Iterator[Mapping[str, float]]) -> dict[str, float]:
        rows = list(cases)
        return {metric.name: aggregate(metric, [row[metric.name] for row in rows]) for metric in self.task.metrics}

    def _cases(
        self, programs: list[Program], split: str, repeat: int, *, shown: bool = False
    ) -> Iterator[Mapping[str, float]]:
        """The metrics of each case; those of the judged split are `shown` to the engine at once."""
        given: dict[str, Any] = {"seed": programs[-1], "rng": rng_for(self.task.name, split, repeat)}
        names = set[str]()
        for case in _iterate(self._evaluate(programs[0], split, **{name: given[name] for name in self._wanted})):
            metrics = self._checked(case)
            if case.name in names:
                raise EvaluatorError(f'two cases are called "{case.name}"; give each its own name')
            names.add(case.name)
            title = case.name if shown else f"{split}: {case.name}"
            self._send(frame({"case": title, "metrics": metrics if shown else None, "feedback": case.feedback}))
            yield metrics
        if not names:
            raise EvaluatorError(f'expected at least one Case for split "{split}", got none; yield one from evaluate()')

    def _checked(self, case: Case) -> dict[str, float]:
        if not isinstance(case.name, str) or not isinstance(case.feedback, str):
            raise EvaluatorError(
                f"expected a name and a feedback of text, got {case.name!r:.80}, {case.feedback!r:.80}"
            )
        declared = {metric.name for metric in self.task.metrics}
        if case.metrics.keys() != declared:
            got = ", ".join(sorted(case.metrics)) or "none"
            raise EvaluatorError(f'case "{case.name}": expected metrics {", ".join(sorted(declared))}, got {got}')
        return {name: _number(case.name, name, value) for name, value in case.metrics.items()}


def _iterate(cases: object) -> Iterator[Case]:
    if not isinstance(cases, Iterable):
        raise EvaluatorError(f"expected evaluate() to yield cases, got {cases!r:.80}; write `yield Case(...)`")
    for case in cases:
        if not isinstance(case, Case):
            raise EvaluatorError(f"expected evaluate() to yield Case(...), got {case!r:.80}")
        yield case


def _number(case: str, name: str, value: object) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise EvaluatorError(f'case "{case}": expected {name} to be a finite number, got {value!r:.80}')
    return float(value)


# --- the process ------------------------------------------------------------------------------------------------


def main() -> None:
    """Serve the engine whose process id is the first argument, until it closes our stdin or dies."""
    _die_with(int(sys.argv[1]))
    requests, replies = _claim_pipes()

    def send(message: bytes) -> None:
        replies.write(message)
        replies.flush()

    with ExitStack() as stack:
        try:
            judge = _greet(requests, send, stack)
        except EvoGitError as error:
            send(_failure(error))
        else:
            _serve(judge, requests, send)


def _greet(requests: BinaryIO, send: Callable[[bytes], None], stack: ExitStack) -> Judge:
    header, _ = _receive(requests) or ({}, b"")
    task = TypeAdapter(Task).validate_python(header["task"])
    if task.evaluator_digest != header["digest"]:
        raise EvaluatorError(f"{task.evaluator.parent} changed since the run started; stop it and start it again")
    if task.environment.exclusive:  # the engine keeps off the core that the provider is to find
        os.sched_setaffinity(0, header["cores"])
    sandbox = provider(header["provider"], replace(task.environment, network=False))
    stack.callback(sandbox.close)
    if task.environment.exclusive:
        stack.enter_context(kept_free(exclusive_core()))
    judge = Judge(task, sandbox, send)
    seed = {"needs_seed": judge.needs_seed, "builds_on_seed": judge.builds_on_seed}
    send(frame({"provider": sandbox.name, "image": sandbox.image(), **seed}))
    return judge


def _serve(judge: Judge, requests: BinaryIO, send: Callable[[bytes], None]) -> None:
    base: Base | None = None
    while message := _receive(requests):
        request, body = message
        if "base" in request:
            base = Base(request["base"], body)
        else:
            files = Files(body, tuple(request["removed"]), base if request["based"] else None)
            send(_answer(judge, request["split"], request["repeat"], files))


def _answer(judge: Judge, split: str, repeat: int, files: Files) -> bytes:
    try:
        with turn() if judge.task.environment.exclusive else nullcontext():
            verdict, stdout, stderr = judge.judge(split, repeat, files)
    except SandboxError as error:
        return _failure(error)
    return frame({"verdict": asdict(verdict), "stdout": len(stdout)}, stdout + stderr)


def _failure(error: EvoGitError) -> bytes:
    return frame({"error": type(error).__name__, "message": str(error)})


def _receive(pipe: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    prefix = pipe.read(PREFIX.size)
    if len(prefix) < PREFIX.size:
        return None
    header, body = PREFIX.unpack(prefix)
    return json.loads(pipe.read(header)), pipe.read(body)


def _claim_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Keep stdin and stdout for the engine alone: what the evaluator prints goes to stderr."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies


def _die_with(engine: int) -> None:
    """Be killed with the engine, even in the middle of an evaluation (Linux; elsewhere stdin ends it in between)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != engine:
        sys.exit(0)


if __name__ == "__main__":
    main()
