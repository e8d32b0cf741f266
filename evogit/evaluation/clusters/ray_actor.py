"""What Ray places on a node: it runs a worker there, and passes on what goes in and out of it."""

from __future__ import annotations

import os

from evogit.evaluation.lines import PIECE
from evogit.subprocesses import PIPE, python, start_beside

WORKER = python("-c", "from evogit.evaluation.worker_main import main; main()")


class RayActor:
    """A worker on a node. Its calls come in order, and each waits until the worker has taken or given something."""

    async def start(self) -> None:
        """Start the worker, which ends with this process: its stdin does."""
        self._process = await start_beside(WORKER, env=os.environ, session=False, stdin=PIPE, stdout=PIPE)

    async def put(self, data: bytes) -> None:
        """Pass something on to the worker; nothing: no more comes."""
        assert self._process.stdin  # it is a pipe
        if data:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        else:
            self._process.stdin.close()

    async def get(self) -> bytes:
        """What the worker says next."""
        assert self._process.stdout  # it is a pipe
        return await self._process.stdout.read(PIECE)
