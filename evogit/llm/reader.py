"""The process that reads what programs and endpoints send, seen from the engine.

JSON of a few megabytes takes Python seconds in which nothing else runs, so that the engine reads only what is short
(`INLINE`) by itself. Both ways go a line of JSON, which ends with the number of bytes that follow it, and these bytes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from evogit.llm import TokenUsage
from evogit.llm.gateway.reading import LONGEST_READING, UnreadableError, head
from evogit.llm.replies import UNREADABLE, LostAttemptError, StreamPiece, read_reply
from evogit.subprocesses import DEVNULL, PIPE, leash, let_go, python, start_beside

INLINE = 32_768  # bytes that are read by the engine itself; the worst JSON of so many takes 2 ms
LINE = 65_536  # bytes of what is told beside a content at most
PIECE = 65_536  # bytes that are handed over at once


class ReaderProcess:
    """One process, begun when it is first needed; it reads one thing at a time. Close it in the loop that used it."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None

    async def ask(self, asked: Mapping[str, Any], content: bytes | bytearray) -> tuple[dict[str, Any], bytes]:
        """Have `reader_main` read. Raises UnreadableError: it takes too much, or is not what it should be."""
        async with self._turn:
            told: dict[str, Any] | None = None
            try:
                async with asyncio.timeout(LONGEST_READING):
                    told, found = await self._exchange(asked, content)
            except (TimeoutError, OSError, EOFError, ValueError):
                raise UnreadableError(413, "expected what can be read in little time and memory") from None
            finally:
                if told is None:  # also if whoever asked went away, as the answer would be taken for the next one's
                    await self.close()
        if "status" in told:
            raise UnreadableError(told["status"], told["message"])
        return told, found

    async def reply(self, body: str, prompt: int) -> tuple[str, TokenUsage]:
        """Return the result of `read_reply`. Raises LostAttemptError: there is no usable reply."""
        if len(body) <= INLINE:
            return read_reply(body, prompt)
        try:
            told, content = await self.ask({"of": "reply", "prompt": prompt}, body.encode(errors="replace"))
        except UnreadableError as error:
            usage = TokenUsage(prompt=prompt, completion=len(body) // 4, estimated=True)
            raise LostAttemptError(str(error), usage, again=True) from None
        usage = TokenUsage(**told["usage"])
        if told["lost"]:
            raise LostAttemptError(told["lost"], usage, again=told["again"], fault=told["fault"])
        return content.decode(), usage

    async def piece(self, event: bytes) -> StreamPiece:
        """What `piece_of` says of a long event."""
        try:
            told, content = await self.ask({"of": "piece"}, event)
        except UnreadableError:
            return UNREADABLE
        usage = told.pop("usage")
        return StreamPiece(**told, text=content.decode(), usage=usage and TokenUsage(**usage))

    async def plain(self, text: str) -> str:
        """JSON as `plain_json` spells it; what is none as it is."""
        with suppress(UnreadableError):
            _, content = await self.ask({"of": "plain"}, text.encode(errors="replace"))
            return content.decode()
        return text

    async def _exchange(self, asked: Mapping[str, Any], content: bytes | bytearray) -> tuple[dict[str, Any], bytes]:
        if self._process is None:
            command = (*leash(), *python("-m", "evogit.llm.reader_main"))
            self._process = await start_beside(command, env={}, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=LINE)
        sending, coming = self._process.stdin, self._process.stdout
        assert sending
        assert coming
        sending.write(head(asked, len(content)))
        for at in range(0, len(content), PIECE):  # asyncio copies what the pipe has no room for
            sending.write(content[at : at + PIECE])
            await sending.drain()
        told = json.loads(await coming.readline())
        return told, await coming.readexactly(told.pop("bytes"))

    async def close(self) -> None:
        """End the process; another one begins when it is needed."""
        process, self._process = self._process, None
        if process:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            let_go(process)
