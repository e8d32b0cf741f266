"""What the author of a task writes against: the candidate as a `Program`, and its results `Case` and `Invalid`.

All of it runs inside the trusted evaluator process; the candidate itself runs in the sandbox session behind it.
"""

from __future__ import annotations

import math
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from evogit.config.values import seconds
from evogit.core import Cost, EvoGitError, SandboxLostError, Status
from evogit.evaluation.arguments import Arguments, Put, arguments, charge, put, writing
from evogit.evaluation.binary_values import Array, checked, checked_items, read
from evogit.sandbox import Breach, CallReply
from evogit.sandbox.values import MisfitError, dump, parse

if TYPE_CHECKING:  # which authors of tasks need not wait for
    from evogit.sandbox.session import Session

ENDING = 1.0
"""Seconds that a server has to end after it has ended a stream, so that why it did is known."""
MOST_PRINTED = 64 * 1024
"""Bytes of stdout and of stderr that are kept of lives that began anew."""
Check = Callable[[Any, bytes | None], Any]
"""What a value that was read, or its JSON text if it has one, stands for, if it fits a type; else a `MisfitError`."""


class Case:
    """One evaluated case: its name, its metrics by their names in task.toml, and a text for the next brief.

    `beside` are other numbers, by which nothing is ranked: they are kept and shown with the case.
    """

    def __init__(self, name: str, feedback: str = "", **metrics: float) -> None:
        self.name = name
        self.feedback = feedback
        self.metrics = metrics
        self.beside: Mapping[str, float] = {}
        self.answered = ""

    def answer(self, value: Any) -> Case:
        """Keep what the candidate answered; agents are shown it of cases that the task declares public."""
        self.answered = value if isinstance(value, str) else repr(value)
        return self

    def __repr__(self) -> str:
        return f"Case({self.name!r}, {', '.join(f'{name}={value!r}' for name, value in self.metrics.items())})"


class CandidateFailedError(EvoGitError):
    """The candidate, not the evaluator, failed; the evaluator need not catch it.

    `reason` is one sentence for the next brief, `log` whatever is longer.
    """

    def __init__(self, status: Status, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.log = log


class Invalid(CandidateFailedError):
    """Raised by an evaluator: the candidate breaks the rules of the task."""

    def __init__(self, reason: str, log: str = "") -> None:
        super().__init__("invalid", reason, log)


class Called(Struct, frozen=True):
    """What a call returned, and the seconds of CPU and wall clock that it took without transport of values.

    `transport` are the seconds of CPU that were taken for transport, but in which the candidate could have worked.
    """

    value: Any
    cpu: float
    wall: float
    transport: float = 0.0


class Ran(Struct, frozen=True):
    """How a command ended: `code` is None when a `signal` or a `breach` of a limit ended it.

    `cpu` and `wall` are in seconds, `memory` is its peak in bytes, `files` those asked for with `out`; `detail` is a
    sentence about the breach.
    """

    code: int | None
    signal: int | None
    stdout: str
    stderr: str
    cpu: float
    wall: float
    memory: int
    breach: Breach | None
    files: Mapping[str, bytes]
    detail: str = ""


def connection_failures() -> tuple[type[Exception], ...]:
    """What a client of a candidate's server may raise; of `http.client` only where that is loaded, as it takes long."""
    http = sys.modules.get("http.client")
    return (OSError, http.HTTPException) if http else (OSError,)


class Program:
    """The candidate, as the evaluator drives it: one life, from the first call to the end of the evaluation."""

    def __init__(
        self, session: Session, another: Callable[[], Session] | None = None, *, total: float = math.inf
    ) -> None:
        """Drive the candidate in a session; `another` opens one on the same files, until `total` seconds are used."""
        self._session = session
        self._another = another
        self._total = total
        self._calls = 0
        self._connected = False
        self._earlier = Cost()
        self._printed = b"", b""
        self._loss: SandboxLostError | None = None

    @property
    def cost(self) -> Cost:
        """What all requests used so far, those of other lives included."""
        used, largest = self._session.usage, self._session.largest
        return self._earlier + Cost(
            wall=used.wall,
            cpu=used.cpu,
            memory=used.memory,
            waited=used.waited,
            call_wall=largest.wall,
            call_cpu=largest.cpu,
            call_share=largest.share,
        )

    def output(self) -> tuple[bytes, bytes]:
        """Return the capped output of all lives. Raises SandboxLostError even if the evaluator hid a loss."""
        if self._loss:
            raise self._loss
        stdout, stderr = self._session.output()
        return stdout + self._printed[0], stderr + self._printed[1]

    @contextmanager
    def anew(self) -> Iterator[Program]:
        """Yield the candidate in a fresh session. Raises CandidateFailedError after `sandbox.total` seconds."""
        if self._another is None:
            raise ValueError("prepare() has one session; call anew() in evaluate()")
        if self.cost.wall > self._total:
            raise CandidateFailedError("timeout", f"took {self._total:g} s in all")
        with self._another() as session:
            life = Program(session, self._another, total=self._total - self.cost.wall)
            try:
                yield life
            except connection_failures() as error:
                if blamed := life.broken_off(error):
                    raise blamed from error
                raise
            finally:
                self._take_in(life)

    def _take_in(self, life: Program) -> None:
        self._earlier += life.cost
        try:
            printed = life.output()
        except SandboxLostError as loss:
            self._loss = loss
            raise
        kept = [(before + new)[:MOST_PRINTED] for before, new in zip(self._printed, printed, strict=True)]
        self._printed = kept[0], kept[1]

    def put(self, value: Any) -> Put:
        """Make an input that is sent once to each life; changes in it stay. Raises ValueError if unsendable."""
        return put(value)

    def measure(
        self,
        target: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        warmup: Sequence[Any] | None = None,
        timeout: float | str | None = None,
        cpu: float | str | None = None,
        returns: Any = None,
    ) -> Called:
        """Call `module:function` in a session of its own: for a score that is a time.

        What an earlier call kept in memory, in a file or in a process is no help. `warmup` are the arguments of a call
        before it, which imports and is not measured; give others than `args`.

        Raises:
            CandidateFailedError: as `call` does.
            ValueError: when the arguments are not JSON.
        """
        with self.anew() as life:
            if warmup is not None:
                life.call(target, warmup, kwargs, timeout=timeout, cpu=cpu)
            return life.call(target, args, kwargs, timeout=timeout, cpu=cpu, returns=returns)

    def call(
        self,
        target: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        timeout: float | str | None = None,
        cpu: float | str | None = None,
        returns: Any = None,
        fresh: bool = False,
    ) -> Called:
        """Call `module:function` of the candidate and check that the value fits the type `returns`.

        The candidate's process stays up between calls, so its state does; `fresh` starts another one, which finds the
        files that it wrote. `timeout` and `cpu` take the place of the task's limits. Without `returns`, any JSON value
        is accepted.

        Raises:
            CandidateFailedError: when it crashes, breaks a limit or returns something else.
            ValueError: when the arguments are not JSON.
        """
        given = arguments(args, kwargs)
        reply = self._session.call(
            target,
            given.text,
            pieces=given.pieces,
            held=given.held,
            wall=_limit(timeout),
            cpu=_limit(cpu),
            fresh=fresh,
        )
        return self._called(reply, _check(returns), given)

    def stream(
        self, target: str, items: Iterable[Any], *, timeout: float | str | None = None, returns: Any = None
    ) -> Iterator[Called]:
        """Call `target` once per item; an item leaves after the last reply was taken. Raises as `call` does."""
        fits = _check(returns)
        known = isinstance(items, list | tuple)
        texts = [dump(item) for item in items] if known else map(dump, items)
        for reply in self._session.stream(target, texts, wall=_limit(timeout)):
            yield self._called(reply, fits, None)

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        files: Mapping[str, bytes] | None = None,
        out: Sequence[str] = (),
        timeout: float | str | None = None,
    ) -> Ran:
        """Run a command in the candidate's folder, after writing `files` into it; how it ended is for you to judge."""
        done = self._session.run(argv, stdin=stdin, files=files, out=out, wall=_limit(timeout))
        return Ran(
            code=done.code,
            signal=done.signal,
            stdout=done.stdout.decode(errors="replace"),
            stderr=done.stderr.decode(errors="replace"),
            cpu=done.usage.cpu,
            wall=done.usage.wall,
            memory=done.usage.memory,
            breach=done.breach,
            files=done.files,
            detail=done.detail,
        )

    def start(self, argv: Sequence[str]) -> None:
        """Start a command, such as a server, that runs until the evaluation ends. Raises CandidateFailedError."""
        self._done(self._session.start(argv))

    def connect(self, port: int, *, timeout: float | str = 10.0) -> socket.socket:
        """A byte stream to a port of the candidate's loopback interface, for a client of yours; it has no network else.

        Waits for something to listen there for at most `timeout`; the stream's own timeout is that of a request. What
        a client raises as an `OSError` or an `http.client.HTTPException` need not be caught: it is the candidate's
        failure.

        Raises:
            CandidateFailedError: when nothing does, or the candidate has broken a limit.
        """
        stream = self._session.connect(port, patience=seconds(timeout))
        if isinstance(stream, CallReply):
            self._done(stream)
        assert isinstance(stream, socket.socket)
        self._connected = True
        return stream

    def broken_off(self, error: Exception) -> CandidateFailedError | None:
        """What it means that a client of the evaluator's raised this error; None when none speaks to this candidate."""
        if not self._connected:
            return None
        late = isinstance(error, TimeoutError)
        broke = self._session.explain(0.0 if late else ENDING)
        if broke.failure:
            return CandidateFailedError(broke.failure, broke.detail)
        said = " ".join(f"{type(error).__name__}: {error}".split())
        status: Status = "timeout" if late else "crashed"
        return CandidateFailedError(status, f"the candidate's server did not do its part: {said}")

    def _done(self, reply: CallReply) -> None:
        if reply.failure:
            sentence, _, rest = reply.detail.partition("\n")
            raise CandidateFailedError(reply.failure, sentence, rest)

    def _called(self, reply: CallReply, fits: Check, given: Arguments | None) -> Called:
        self._calls += 1
        self._done(reply)
        value, plain, size = _value(reply, fits, self._calls)
        charged = charge(reply, lambda: given.reading() if given else 0.0, lambda: writing(plain, size))
        return Called(value, charged.cpu, charged.wall, charged.transport)


def _limit(value: float | str | None) -> float | None:
    return None if value is None else seconds(value)


def _check(returns: Any) -> Check:
    """A check of what came back; binary values are checked by `Array`, `bytes`, or a tuple of these and None."""
    if returns is None:
        return lambda value, raw: value
    if returns is bytes or isinstance(returns, Array):
        return lambda value, raw: checked(value, returns)
    if isinstance(returns, tuple):
        return lambda value, raw: checked_items(value, returns)
    from evogit.evaluation.return_types import check  # pydantic takes 0.1 s to import

    fits = check(returns)

    def fits_json(_value: Any, raw: bytes | None) -> Any:
        if raw is None:
            raise MisfitError("expected what JSON can say, got a binary value")
        return fits(raw)

    return fits_json


def _value(reply: CallReply, fits: Check, call: int) -> tuple[Any, Any, int]:
    """The value as the evaluator gets it, what of it was written as JSON, and how many bytes were not."""
    try:
        if reply.binary:
            value, plain, size = read(reply.value)
            return fits(value, None), plain, size
        value = parse(reply.value)
        return fits(value, reply.value), value, 0
    except MisfitError as misfit:
        raise Invalid(f"the value returned in call {call} does not fit: {misfit}") from None
    except ValueError as error:
        raise Invalid(f"the value returned in call {call} cannot be read: {error}") from None
