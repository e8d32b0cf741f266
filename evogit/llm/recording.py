"""Records what models answered, and answers the same again without them: offline, without a key, at no cost.

A recording is a text file with a JSON object a line, one for every question that was answered or given up: `key` (the
sha256 of model and messages, without what was measured), `model`, `move`, `attempt`, `price` (dollars for a million
tokens: prompt, cached, completion; null when unknown), `written` and `long` of the price where it has them, `context`,
`charges` (what every attempt used, and why it failed), and `reply` or `error`, with `limit` if what was left of that
did not pay for the question.

Between them are lines on the order of moves: `turn` (`begin`, `plan`, `propose`, `apply`), `start` (which start of an
engine), `move`, `place` (of the agent that plans, from 0), and for `begin` the `task` (its digest) and the number of
`agents`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import stat
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import DecodeError, Struct, ValidationError, to_builtins
from msgspec import json as json_lines
from msgspec.structs import asdict, replace

from evogit.core import UsageError
from evogit.llm import (
    Account,
    Limit,
    Model,
    ModelError,
    Price,
    Question,
    RefusingModelError,
    Reservation,
    SpendingLimitError,
    TokenUsage,
)
from evogit.llm.gateway.events import redacted
from evogit.llm.script import charge_known
from evogit.llm.thoughts import without_thoughts


class _Listener:
    """An account that remembers the charges that it passes on."""

    def __init__(self, account: Account) -> None:
        self.check = account.check
        self.reserve = account.reserve
        self.pause = account.pause
        self.wait_out = account.wait_out
        self.exhaust = account.exhaust
        self.charges: list[dict[str, Any]] = []
        self._charge = account.charge

    def charge(
        self, model: Model, usage: TokenUsage, failure: str = "", reservation: Reservation | None = None
    ) -> None:
        self.charges.append({**asdict(usage), "failure": failure})
        self._charge(model, usage, failure, reservation)


class Recorder:
    """Writes to a recording, after what it holds already. `secrets` may grow; none of them is written."""

    def __init__(self, file: Path, secrets: Sequence[str]) -> None:
        self._file = file
        self._secrets = secrets
        self._line(b"")  # finds out now if it cannot be written

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one line."""
        self._line(redacted(json.dumps(record), self._secrets).encode() + b"\n")

    def _line(self, line: bytes) -> None:
        """A single write, so that lines of several engines never mix; it begins after a line that was cut off."""
        try:
            descriptor = os.open(self._file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                size = os.fstat(descriptor).st_size
                whole = not size or os.pread(descriptor, 1, size - 1) == b"\n"
                os.write(descriptor, line if whole else b"\n" + line)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise UsageError(f"cannot write the recording {self._file}: {error.strerror}") from error


MAX_MISSES = 3  # questions, if a recording has no answer to any: it is of another run
NOTHING = Price(prompt=0, cached=0, completion=0)  # what a model costs of which nothing was recorded


class RecordedTurn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line on the order of moves."""

    turn: Literal["begin", "plan", "propose", "apply"]
    start: str
    move: int = 0
    place: int = 0
    task: str = ""
    agents: int = 0


class MoveOrder:
    """The order of the moves of a run: written by its `recorder`, or read and, once that is `followed`, repeated."""

    def __init__(self, turns: Sequence[RecordedTurn] = (), recorder: Recorder | None = None) -> None:
        self._turns = turns
        self._recorder = recorder
        self._start = os.urandom(4).hex()
        self.followed = False

    def note(self, turn: RecordedTurn) -> None:
        """Write one more turn of this start."""
        if self._recorder:
            self._recorder.write(to_builtins(replace(turn, start=self._start)))

    def begin(self, task: str, agents: int, first: int) -> list[RecordedTurn]:
        """Return the turns to repeat from the move `first` on; [] if none are recorded of this task and crew.

        Of a move that was planned and came to nothing, as all that was left to do was in flight, there are none.
        """
        self.note(RecordedTurn(turn="begin", start="", task=task, agents=agents))
        starts = [each.start for each in self._turns]
        runs = [start for start, before in zip(starts, [None, *starts], strict=False) if start != before]
        begun = [each for each in self._turns if each.turn == "begin"]
        if len(runs) > len(set(runs)) or any((each.task, each.agents) != (task, agents) for each in begun):
            return []  # engines worked side by side, or on something else
        made = {(each.start, each.move) for each in self._turns if each.turn == "propose"}
        turns = [each for each in self._turns if (each.start, each.move) in made and each.move >= first]
        self.followed = bool(turns)
        return turns


class RecordedModel:
    """Asks another model and records what came of it."""

    def __init__(self, model: Model, recorder: Recorder) -> None:
        self._model = model
        self._recorder = recorder
        self.name = model.name
        self.price = model.price
        self.context = model.context

    async def ask(self, question: Question, account: Account) -> str:
        """Ask; a question that ends the run or is broken off is not recorded, but for one that is too dear."""
        listener = _Listener(account)
        try:
            reply = await self._model.ask(question, listener)
        except ModelError as error:
            self._record(question, listener, error=str(error))
            raise
        except SpendingLimitError as error:
            if error.limit:
                self._record(question, listener, error=str(error), limit=error.limit)
            raise
        self._record(question, listener, reply=reply)
        return reply

    def _record(self, question: Question, listener: _Listener, **outcome: str) -> None:
        price = self.price
        self._recorder.write(
            {
                "key": question_key(self.name, question),
                "model": self.name,
                "move": question.move,
                "attempt": question.attempt,
                "price": [price.prompt, price.cached, price.completion] if price else None,
                "written": price.written if price else None,
                "long": price.long if price else None,
                "context": self.context,
                "charges": listener.charges,
                **outcome,
            }
        )


class RecordedCharge(TokenUsage, frozen=True, kw_only=True):
    """One attempt; older recordings do not have all fields."""

    failure: str

    @property
    def usage(self) -> TokenUsage:
        """The tokens alone."""
        return TokenUsage(**{name: getattr(self, name) for name in TokenUsage.__struct_fields__})


class RecordedCall(Struct, frozen=True, kw_only=True):
    """One line of a recording."""

    key: str
    model: str
    move: int
    attempt: int
    price: tuple[float, float, float] | None  # dollars for a million tokens: prompt, cached, completion
    written: float | None = None
    long: int | None = None
    context: int
    charges: tuple[RecordedCharge, ...]
    reply: str | None = None
    error: str = ""
    limit: Limit | None = None  # what was left of it did not pay for the question


class ReplayedModel:
    """Answers from a recording, charged as then, by move and attempt if there are several of a question."""

    def __init__(self, name: str, records: Sequence[RecordedCall], order: MoveOrder | None = None) -> None:
        self.name = name
        self._order = order or MoveOrder()
        self._missed = 0
        self._is_its_own = False  # it is, once it has an answer
        self._records = list(records)
        self._keys = {record.key for record in records}
        first = records[0] if records else None
        self.price: Price | None = NOTHING
        self.context = 100_000
        if first:
            prices = dict(zip(("prompt", "cached", "completion"), first.price, strict=True)) if first.price else None
            self.price = None if prices is None else Price(**prices, written=first.written, long=first.long)
            self.context = max(first.context, 1)

    async def ask(self, question: Question, account: Account) -> str:
        """Return the recorded reply.

        If the order of moves is followed, it is that of the same move, though times and ids in the question differ.
        """
        account.check()
        record = self._find(question)
        self._records.remove(record)
        await asyncio.sleep(0)
        for charge in record.charges:
            await charge_known(account, self, charge.usage, charge.failure)
        if record.limit:
            account.exhaust(record.limit)
            raise SpendingLimitError(record.error, record.limit)
        if record.reply is None:
            raise ModelError(record.error)
        return without_thoughts(record.reply)

    def _find(self, question: Question) -> RecordedCall:
        key, here = question_key(self.name, question), (question.move, question.attempt)
        moves = [each for each in self._records if (each.move, each.attempt) == here]
        same = [each for each in self._records if each.key == key]
        matches = [*(each for each in moves if each.key == key), *(moves if self._order.followed else same)]
        if matches:
            self._is_its_own = True
            return matches[0]
        self._missed += 1
        begins = question.messages[-1].content[:60] if question.messages else ""
        often = " so often" if key in self._keys else ""
        missing = f"the recording does not have this question{often}: {key[:12]}, {begins!r}..."
        if self._keys and self._missed >= MAX_MISSES and not self._is_its_own:
            raise RefusingModelError(f"{missing}; it is of another run")
        raise ModelError(missing)


def question_key(model: str, question: Question) -> str:
    """Identify a question to a model (sha256, hex), without what was measured, such as times of tests."""
    messages = [
        [each.role, None if each.measured else each.content.replace(each.varying, "") if each.varying else each.content]
        for each in question.messages
    ]
    return hashlib.sha256(json.dumps([model, messages]).encode()).hexdigest()


def read_recording(file: Path) -> tuple[dict[str, list[RecordedCall]], list[RecordedTurn]]:
    """Return model -> its whole records, and the turns. Raises UsageError: it cannot be read or is no recording."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise UsageError(f"expected a file as the recording, got {file}, which is none")
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the recording {file}: {error}") from error
    records: dict[str, list[RecordedCall]] = defaultdict(list)
    turns = list[RecordedTurn]()
    for number, line in enumerate(lines, 1):
        try:
            if line.startswith('{"turn"'):
                turns.append(json_lines.decode(line, type=RecordedTurn))
                continue
            record = json_lines.decode(line, type=RecordedCall)
        except (ValidationError, RecursionError) as error:
            raise UsageError(f"{file}, line {number}: expected a record of --record, got {error!r}") from None
        except DecodeError:
            continue
        records[record.model].append(record)
    if not records:
        raise UsageError(f"expected a recording that `evogit run --record` made, found no record in {file}")
    return dict(records), turns
