"""The `evaluate` of a program in a container: its files as they are, as often as its move has room for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from evogit.agents import Background, Brief, NoUsableChangeError, Proposal
from evogit.agents.briefs.digest import unjudged
from evogit.agents.editing.tools import judged
from evogit.agents.programs.read_back import Member, read_members
from evogit.core import EvoGitError
from evogit.text import one_line

MOST = 64 << 20  # bytes of workspaces that wait to be evaluated; so much may be one alone
ROOM = 4000  # tokens of an answer

MOST_UNFIT = 30
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
                code, text = await self._review(bytes(packed)) if fits else (REFUSED, TOO_MUCH)
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

    async def _review(self, packed: bytes) -> tuple[int, str]:
        if self._over:
            return REFUSED, "The session is over."
        if self._unfit >= MOST_UNFIT:
            return REFUSED, "Nothing more is evaluated in this session, as too often nothing could be."
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
        try:
            title = f"draft {len(self.done) + 1}"
            proposal = await self._read(packed, title)
            evaluation, evidence = await self._workshop.evaluate(proposal)
        except NoUsableChangeError as error:
            self._unfit += 1
            return REFUSED, f"Not judged: {one_line(str(error), 1000)}"
        except EvoGitError as error:
            self._over = True
            self.failure = error
            return REFUSED, "Nothing can be evaluated any more: EvoGit itself failed."
        left = f"Evaluations left: {self._workshop.evaluations} of {self._granted}."
        if not evaluation.counts:
            return REFUSED, f"These files are {unjudged(evaluation)}. {left}"
        self.done.append(evaluation.status)
        told = judged(self._background, evaluation, evidence, ROOM)
        return VALID if evaluation.ok else INVALID, f"{told}\n\n{left}"

    async def _read(self, packed: bytes, title: str) -> Proposal:
        """What the files propose; the longer it takes to see that it is nothing, the fewer such tries are left."""
        async with self._reading:
            began = time.monotonic()
            try:
                return await asyncio.to_thread(lambda: self._draft(read_members(packed), title))
            except NoUsableChangeError:
                self._unfit += int(time.monotonic() - began)
                raise
