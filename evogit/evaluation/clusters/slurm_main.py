"""The program that submits workers to Slurm as jobs, which call it when they run; nothing else imports submitit."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import submitit

from evogit.evaluation.clusters.calling import call
from evogit.evaluation.clusters.shared_folder import shared_folder
from evogit.evaluation.clusters.switchboard import CalledFar, Switchboard
from evogit.evaluation.clusters.worker_lines import ClusterError, Far, Say, serve
from evogit.subprocesses import QUERY_SECONDS, TooLongError, run_child

LOOK = 3.0
"""Seconds between two looks at the queue while a job has not called yet."""


def submitter(folder: Path, partition: str, needs: dict[str, Any]) -> submitit.SlurmExecutor:
    """What submits jobs with these needs. Their time is the partition's own, or what SBATCH_TIMELIMIT says."""
    executor = submitit.SlurmExecutor(folder)
    executor.update_parameters(
        job_name="evogit",
        partition=partition or None,
        time=None,
        cpus_per_task=needs["cpus"],
        mem=f"{-(-needs['memory'] // (1 << 20))}M",
        gpus_per_node=needs["gpus"] or None,
        exclusive=needs["exclusive"] or None,
        additional_parameters={"no_requeue": True},
        use_srun=False,
    )
    return executor


class Queue:
    """Submits jobs, and tells when one has left the queue."""

    def __init__(self, executor: submitit.SlurmExecutor, call_file: Path) -> None:
        self._executor = executor
        self._call_file = call_file
        self._submitting = asyncio.Lock()

    async def submit(self, number: int) -> Any:
        """A new job, which calls as this number.

        Raises:
            ClusterError: Slurm does not take it.
        """
        try:
            async with self._submitting:
                return await asyncio.to_thread(self._executor.submit, call, str(self._call_file), number)
        except (OSError, submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
            raise ClusterError(f"Slurm does not take the job: {_last(str(error))}") from error

    async def gone(self, job: Any) -> str:
        """Wait until a job is no longer in the queue; what it said last."""
        while await asyncio.to_thread(_is_queued, job.job_id):
            await asyncio.sleep(LOOK)
        return _last(await asyncio.to_thread(job.stderr) or "")


def _is_queued(job: str) -> bool:
    """Whether Slurm still has a job, or does not answer for now."""
    try:
        told = run_child(["squeue", "--noheader", "--jobs", job], seconds=QUERY_SECONDS, env=os.environ)
    except TooLongError:
        return True
    return bool(told.stdout.strip()) if told.returncode == 0 else b"Invalid job id" not in told.stderr


def _last(said: str) -> str:
    return said.strip().rpartition("\n")[2]


async def _first_call(queue: Queue, job: Any, coming: asyncio.Future[CalledFar]) -> CalledFar:
    """The worker of a job.

    Raises:
        ClusterError: the job ended before it called.
    """
    gone = asyncio.create_task(queue.gone(job))
    both: list[asyncio.Future[Any]] = [gone, coming]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            return coming.result()
        raise ClusterError(f"job {job.job_id} ended before it called: {gone.result() or 'it said nothing'}")
    finally:
        gone.cancel()


async def main(partition: str, needs: dict[str, Any]) -> None:
    """Submit a job for each line of the run on stdin."""
    switchboard, numbers = Switchboard(), count(1)
    with shared_folder() as folder:
        async with switchboard.opened(folder) as call_file:
            queue = Queue(submitter(folder / "jobs", partition, needs), call_file)

            @asynccontextmanager
            async def bring(say: Say) -> AsyncIterator[Far]:
                number = next(numbers)
                async with switchboard.awaited(number) as coming:
                    job = await queue.submit(number)
                    try:
                        say(f"job {job.job_id} is in the queue{f' of {partition}' * bool(partition)}")
                        yield await _first_call(queue, job, coming)
                    finally:
                        await asyncio.to_thread(job.cancel, check=False)

            await serve(bring)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
