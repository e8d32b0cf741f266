"""The `measure`, `keep`, `profile` and `evaluate` of a program in a container, of its files as they are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from evogit.agents import Background, Brief, NoUsableChangeError, Proposal
from evogit.agents.briefs.digest import unjudged
from evogit.agents.editing.calls import MAX_PAIRS, PAIRS
from evogit.agents.editing.tools import judged, judgement, measurement_text
from evogit.agents.programs.read_back import Member, read_members
from evogit.core import EvoGitError
from evogit.text import one_line

MOST = 64 << 20  # bytes of workspaces that wait to be evaluated; so much may be one alone
ROOM_TOKENS = 4000  # of an answer

MAX_MEASURE_S = 120.0
"""Seconds after which a measurement begins no further pair: a session may end meanwhile."""

MAX_UNFIT = 30
"""Times that what is there cannot be evaluated, which costs no evaluation, but time of ours: a second is one more."""

TOO_MUCH = f"""\
Not judged: the workspace, with others that wait, has more than {MOST >> 20} MiB. Remove what does not belong to the
code, and have one evaluated after the other."""

VALID, INVALID, REFUSED = range(3)  # what the answer begins with: the exit code of `evaluate`


WorkspaceDraft = Callable[[Iterable[Member], str], Proposal]
"""Makes a proposal of the files of a workspace and a commit's message; NoUsableChangeError if nothing counts."""


class EvaluateServer:
    """Serves the connections of one session; `done` tells what came of each evaluation."""

    def __init__(self, brief: Brief, background: Background, draft: WorkspaceDraft, reading: asyncio.Lock) -> None:
        assert brief.workshop
        self._reading = reading
        self._workshop = brief.workshop
        self._background = background
        self._draft = draft
        self._granted = self._workshop.evaluations
        self._one = asyncio.Lock()
        self._over = False
        self._waiting = 0
        self._unfit = 0
        self.done: list[str] = []
        self.refused = 0  # how often nothing was evaluated
        self.failure: EvoGitError | None = None  # failures that cannot be handled here

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Evaluate what is sent, one after the other, and answer."""
        packed, fits = bytearray(), True
        try:
            while data := await reader.read(1 << 16):  # to its end in any case: who still sends hears no answer
                if fits and self._waiting + len(data) > MOST:
                    self._waiting -= len(packed)
                    fits, packed = False, bytearray()
                if fits:
                    self._waiting += len(data)
                    packed += data
            async with self._one:
                code, text = await self._answer(bytes(packed)) if fits else (REFUSED, TOO_MUCH)
                self.refused += code == REFUSED
        finally:
            self._waiting -= len(packed)
        writer.write(bytes([code]) + text.encode(errors="replace"))
        await writer.drain()

    async def close(self) -> None:
        """Evaluate nothing more, once what has begun is evaluated."""
        self._over = True
        async with self._one:
            pass

    async def _answer(self, request: bytes) -> tuple[int, str]:
        """Do what a request asks for: a line with a word and its argument, then the packed workspace."""
        line, _, packed = request.partition(b"\n")
        name, _, argument = line.decode(errors="replace").partition(" ")
        if self._over:
            return REFUSED, "The session is over."
        if self._unfit >= MAX_UNFIT:
            return REFUSED, "Nothing more is looked at in this session, as too often nothing could be."
        try:
            actions = {"measure": self._measure, "keep": self._keep, "profile": self._profile}
            code, text = await actions.get(name, self._evaluate)(packed, argument)
            news = "\n".join(judgement(self._background, *each) for each in self._workshop.judgements())
            return code, f"{text}\n\n{news}".strip()
        except NoUsableChangeError as error:
            self._unfit += 1
            return REFUSED, f"Nothing was done: {one_line(str(error), 1000)}"
        except EvoGitError as error:
            self._over = True
            self.failure = error
            return REFUSED, "Nothing can be evaluated any more: EvoGit itself failed."

    async def _measure(self, packed: bytes, argument: str) -> tuple[int, str]:
        if not self._workshop.measures:
            return REFUSED, "Nothing can be measured side by side here; run `evaluate` instead."
        pairs = min(max(int(argument), 2), MAX_PAIRS) if argument.isdecimal() and len(argument) < 9 else PAIRS
        proposal = await self._read(packed, "draft")
        measurement = await self._workshop.measure(proposal, pairs, seconds=MAX_MEASURE_S, check=self._check)
        text = measurement_text(self._background, measurement, len(self._workshop.kept), ROOM_TOKENS)
        return VALID if measurement.values else INVALID, text

    def _check(self) -> None:
        if self._over:
            raise NoUsableChangeError("the session is over")

    async def _keep(self, packed: bytes, argument: str) -> tuple[int, str]:
        if not self._workshop.keeps:
            return REFUSED, "This run keeps no steps apart; what is in the workspace at the end is proposed."
        commit = self._workshop.keep(await self._read(packed, argument))
        count = len(self._workshop.kept)
        return VALID, f"Kept as step {count}, candidate {commit[:7]}, which is evaluated while you go on."

    async def _profile(self, packed: bytes, argument: str) -> tuple[int, str]:
        profile = await self._workshop.profile(await self._read(packed, "draft"))
        return (VALID, profile) if profile else (REFUSED, "There is no profile: the task has no such command.")

    async def _evaluate(self, packed: bytes, argument: str) -> tuple[int, str]:
        if not self._workshop.evaluations and self._granted:
            return REFUSED, (
                f"No evaluation is left of the {self._granted} of this session. Finish: what is in the workspace then "
                "is evaluated anyway."
            )
        if not self._granted:
            return (
                REFUSED,
                "This session has no evaluations: what is left of the run's limits is for what you finish with.",
            )
        evaluation, evidence = await self._workshop.evaluate(await self._read(packed, f"draft {len(self.done) + 1}"))
        left = f"Evaluations left: {self._workshop.evaluations} of {self._granted}."
        if not evaluation.counts:
            return REFUSED, f"These files are {unjudged(evaluation)}. {left}"
        self.done.append(evaluation.status)
        text = judged(self._background, evaluation, evidence, ROOM_TOKENS)
        return VALID if evaluation.ok else INVALID, f"{text}\n\n{left}"

    async def _read(self, packed: bytes, title: str) -> Proposal:
        """What the files propose; the longer it takes to see that it is nothing, the fewer such tries are left."""
        async with self._reading:
            began = time.monotonic()
            try:
                return await asyncio.to_thread(lambda: self._draft(read_members(packed), title))
            except NoUsableChangeError:
                self._unfit += int(time.monotonic() - began)
                raise
