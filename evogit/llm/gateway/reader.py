"""The process that reads what programs send: `python -m evogit.llm.gateway.reader`, one for each gateway.

Both ways go a line of JSON, which ends with the number of bytes that follow it, and these bytes.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, fields, replace
from typing import Any, BinaryIO

from evogit.llm.gateway.reading import Asked, UnreadableError, count_tokens, read_request

LONGEST_READING = 20.0
"""Seconds in which a request must be read; what takes longer is made to."""

MOST_MEMORY = 2 << 30
"""Bytes of address space of the process; eight megabytes of empty lists take 300."""

LINE = 1 << 20
"""Bytes of what is told of a request at most."""

_FIELDS = [each.name for each in fields(Asked) if each.name != "content"]


class Reader:
    """The engine's side. One request is read at a time."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None

    async def read(self, path: str, models: Mapping[str, str], body: bytes) -> Asked:
        """What `read_request` says.

        Raises:
            UnreadableError: it is not passed on.
        """
        told, content = await self._ask({"path": path, "models": dict(models)}, body)
        return replace(Asked(**{name: told[name] for name in _FIELDS}), content=content)

    async def count(self, body: bytes) -> int:
        """What `count_tokens` says.

        Raises:
            UnreadableError: it is not a JSON object.
        """
        told, _ = await self._ask({}, body)
        return int(told["tokens"])

    async def _ask(self, asked: Mapping[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        async with self._turn:
            told: dict[str, Any] | None = None
            try:
                async with asyncio.timeout(LONGEST_READING):
                    told, content = await self._exchange(asked, body)
            except (TimeoutError, OSError, EOFError, ValueError):
                raise UnreadableError(413, "expected a request that can be read in little time and memory") from None
            finally:
                if told is None:  # also if the program went away, as the answer would be taken for that of the next one
                    await self._end()
        if "status" in told:
            raise UnreadableError(told["status"], told["message"])
        return told, content

    async def _exchange(self, asked: Mapping[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        self._process = self._process or await self._start()
        sending, coming = self._process.stdin, self._process.stdout
        assert sending
        assert coming
        sending.write(_head(asked, len(body)))
        sending.write(body)
        await sending.drain()
        told = json.loads(await coming.readline())
        return told, await coming.readexactly(told["bytes"])

    async def _start(self) -> asyncio.subprocess.Process:
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        command = (sys.executable, "-I", "-m", "evogit.llm.gateway.reader")
        return await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=nothing, env={}, limit=LINE, start_new_session=True
        )

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def close(self) -> None:
        """End the process."""
        await self._end()


def _head(told: Mapping[str, Any], size: int) -> bytes:
    return json.dumps({**told, "bytes": size}).encode() + b"\n"


def serve(coming: BinaryIO, going: BinaryIO) -> None:
    """The process's side: read requests until there are none."""
    while line := coming.readline():
        asked = json.loads(line)
        told, content = _answer(asked, coming.read(asked["bytes"]))
        going.write(_head(told, len(content)))
        going.write(content)
        going.flush()


def _answer(asked: Mapping[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        if "path" not in asked:
            return {"tokens": count_tokens(body)}, b""
        found = read_request(asked["path"], asked["models"], body)
    except UnreadableError as error:
        return {"status": error.status, "message": str(error)}, b""
    except RecursionError:
        return {"status": 400, "message": "expected JSON that is not nested as deeply"}, b""
    except MemoryError:
        return {"status": 413, "message": "expected a request that can be read in little memory"}, b""
    told = asdict(replace(found, content=b""))
    del told["content"]
    return told, found.content


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    serve(sys.stdin.buffer, sys.stdout.buffer)
