"""The program that has Ray place workers; nothing else imports Ray."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import ray
from ray.exceptions import RayError

from evogit.evaluation.clusters.ray_actor import RayActor
from evogit.evaluation.clusters.worker_lines import ClusterError, Far, Say, serve


class _RayFar:
    """A worker behind an actor."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def get(self) -> bytes:
        return bytes(await _done(self._actor.get.remote()))

    async def put(self, data: bytes) -> None:
        await _done(self._actor.put.remote(data))


async def _done(reference: Any) -> Any:
    """What a call gave.

    Raises:
        ClusterError: the actor, its node or its worker is gone.
    """
    try:
        return await reference
    except RayError as error:
        raise ClusterError(str(error).strip().rpartition("\n")[2]) from error


def main(where: str, needs: dict[str, Any]) -> None:
    """Place workers for the run on stdin, each where its needs are met."""
    try:
        ray.init(address=where or None, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        sys.exit(f"Ray does not answer at {where or 'its usual address'}: {str(error).strip().partition(chr(10))[0]}")
    place = ray.remote(RayActor).options(
        num_cpus=needs["cpus"], memory=needs["memory"], num_gpus=needs["gpus"], max_restarts=0
    )

    @asynccontextmanager
    async def bring(say: Say) -> AsyncIterator[Far]:
        actor = place.remote()
        try:
            await _done(actor.start.remote())  # once there is room
            yield _RayFar(actor)
        finally:
            ray.kill(actor)

    asyncio.run(serve(bring))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
