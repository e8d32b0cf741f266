"""The program that waits for workers of jobs which a person submits, and writes the text for `sbatch`."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from evogit.evaluation.clusters.shared_folder import shared_folder
from evogit.evaluation.clusters.switchboard import Switchboard
from evogit.evaluation.clusters.worker_lines import Far, Say, serve
from evogit.subprocesses import python

TEXT = """\
#!/bin/sh
#SBATCH --job-name=evogit
#SBATCH --cpus-per-task={cpus}
#SBATCH --mem={megabytes}M{more}
#SBATCH --no-requeue
#SBATCH --output={folder}/%j.log
exec {command}
"""


def text(needs: dict[str, Any], call_file: Path) -> str:
    """A job that works for the run with this file."""
    more = f"\n#SBATCH --gpus={needs['gpus']}" if needs["gpus"] else ""
    more += "\n#SBATCH --exclusive" if needs["exclusive"] else ""
    command = shlex.join(python("-m", "evogit.evaluation.clusters.calling", str(call_file)))
    size = -(-needs["memory"] // (1 << 20))
    return TEXT.format(cpus=needs["cpus"], megabytes=size, more=more, folder=call_file.parent, command=command)


async def main(needs: dict[str, Any]) -> None:
    """Join whoever calls with a line of the run on stdin."""
    switchboard, numbers = Switchboard(), count(1)
    with shared_folder() as folder:
        async with switchboard.opened(folder) as call_file:
            job = folder / "worker.sh"
            job.write_text(text(needs, call_file))

            @asynccontextmanager
            async def bring(say: Say) -> AsyncIterator[Far]:
                say(f"waiting for a job of yours, `sbatch {job}`, with the options that you need")
                async with switchboard.awaited(next(numbers)) as coming:
                    yield await coming

            await serve(bring)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[2])))
