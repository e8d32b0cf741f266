"""`--workers ray`: a command that has Ray place one worker on a node, and passes its stdin and stdout on to it.

One such process per worker: nothing of Ray runs in the engine.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import threading
import time
from importlib.util import find_spec
from typing import Any

from evogit.config import Task
from evogit.core import UsageError
from evogit.subprocesses import PIPE, python, start_beside

START = "from evogit.evaluation.workers.ray_worker import main; main()"
WORKER = python("-c", "from evogit.evaluation.workers.main import main; main()")

OVERHEAD = 1 << 30
"""Bytes that an evaluation takes beyond its candidate: the worker, the evaluator, EvoGit's part of the sandbox."""

PIECE = 64 * 1024

PATIENCE = 5.0
"""Seconds for a worker to end once its run is gone."""


def ray_command(address: str, task: Task) -> tuple[str, ...]:
    """Return the command line of a worker placed where the task has room. Raises UsageError without Ray."""
    if not find_spec("ray"):
        raise UsageError("--workers ray needs EvoGit's extra of that name: pip install 'evogit[ray]'")
    wanted, limits = task.environment, task.limits
    needs = {
        "num_cpus": math.ceil(wanted.cpus) + wanted.exclusive,  # one core is kept for all but the candidate
        "memory": limits.memory + limits.disk + OVERHEAD,
        "num_gpus": wanted.gpus,
    }
    return python("-c", START, address, json.dumps(needs))


class RayActor:
    """A worker on a node. Each call waits until the worker has taken or given something."""

    async def start(self) -> None:
        """Start the worker, which ends with this process: its stdin does."""
        self._process = await start_beside(WORKER, env=os.environ, session=False, stdin=PIPE, stdout=PIPE)

    async def put(self, data: bytes) -> None:
        """Write to the worker's stdin; no data closes it."""
        assert self._process.stdin  # it is a pipe
        if data:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        else:
            self._process.stdin.close()

    async def get(self) -> bytes:
        """Return the worker's next output; empty at its end."""
        assert self._process.stdout  # it is a pipe
        return await self._process.stdout.read(PIECE)


def main() -> None:
    """Place a worker, and join it with our stdin and stdout until either side ends."""
    import ray
    from ray.exceptions import RayError

    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what Ray prints is no reply
    address, needs = sys.argv[1], json.loads(sys.argv[2])
    try:
        ray.init(address=address or None, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        sys.exit(f"Ray does not answer at {address or 'its usual address'}: {str(error).strip().partition(chr(10))[0]}")
    actor = ray.remote(RayActor).options(max_restarts=0, **needs).remote()
    starting = actor.start.remote()
    threading.Thread(target=_feed, args=(ray, actor), daemon=True).start()
    try:
        ray.get(starting)  # once there is room
        while data := ray.get(actor.get.remote()):
            replies.write(data)
            replies.flush()
    except RayError as error:
        sys.exit(str(error).strip().rpartition("\n")[2])
    finally:
        ray.kill(actor)


def _feed(ray: Any, actor: Any) -> None:
    """Pass our stdin on to the worker; once it ends, end this process, and with it all that Ray placed for it."""
    while data := os.read(0, PIECE):
        ray.wait([actor.put.remote(data)])
    ray.wait([actor.put.remote(b"")], timeout=PATIENCE)
    time.sleep(PATIENCE)
    os._exit(0)
