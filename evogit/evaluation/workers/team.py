"""Spreads the evaluations of a run over this machine and remote workers, whichever is free."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Self

from msgspec.structs import replace

from evogit.config.run_settings import WorkerSpec
from evogit.core import Evaluation, EvaluatorError, Evidence, Files
from evogit.evaluation.evaluator import EvaluationPlace, Evaluator
from evogit.evaluation.evidence import thinned
from evogit.evaluation.workers import WorkerLostError, WorkerRefusedError
from evogit.evaluation.workers.ray_worker import ray_command
from evogit.evaluation.workers.remote_worker import Life, RemoteWorker, greeting, longest_evaluation
from evogit.evaluation.workers.verification import Asked, Result, WorkerVerification
from evogit.sandbox import AUTO
from evogit.sandbox.providers import isolating

LOSSES = 20
"""Workers that may be lost over one evaluation, which then is done here, or counts as the evaluator's failure."""

PATIENCE, LEAST_PATIENCE = 10, 60.0
"""Times the longest evaluation so far, and at least so many seconds, that a worker is waited for at first."""

logger = logging.getLogger(__name__)

Seat = tuple[RemoteWorker, Life | None] | None
"""Where one evaluation can go: to this life of a worker (None: it is left out), or None: to this machine."""


class Team:
    """Evaluates on `jobs` places of this machine and on workers; an async context manager around an entered `local`.

    What a lost worker had is evaluated elsewhere. One that is late gets no more until it answers. `asked` is the run's
    sandbox. Measured times come from one kind of machine: this one, or with no `jobs` that of the first worker. With
    `verify`, some answers of workers are evaluated again here.
    """

    shares = False
    looks_again = True
    measures = False  # sides of a pair must be on one machine

    def __init__(
        self,
        local: Evaluator,
        specs: Sequence[WorkerSpec],
        *,
        asked: str,
        jobs: int,
        verify: WorkerVerification | None = None,
        show: Callable[[str, str], None] = lambda name, doing: None,
    ) -> None:
        self._local = local
        self._verification = verify
        self._asked = asked
        self._place: EvaluationPlace | None = local.place if jobs else None
        self._jobs = jobs
        self._free: asyncio.Queue[Seat] = asyncio.Queue()
        self._keeping: list[asyncio.Task[None]] = []
        self._places: list[tuple[Life, int]] = []
        self._aside: defaultdict[Life, int] = defaultdict(int)
        self._longest = 0.0
        for _ in range(jobs):
            self._free.put_nowait(None)
        self._workers = [
            RemoteWorker(
                name,
                argv,
                local.task,
                greeting(local.task, provider=asked, jobs=jobs),
                offered=self._take_on,
                freed=self._take_back,
                tell=lambda said: logger.warning("%s", said),
                show=show,
            )
            for name, argv, jobs in self._starts(_named_apart(specs))
        ]
        self.digest = local.digest
        self.provider = local.provider
        self.image = local.image
        self.judged = local.judged
        self.inputs = local.inputs
        self.runner = local
        self.doubted: dict[Asked, str] = verify.doubted if verify else {}
        """Return the answers that are no longer believed, with the reason, to be evaluated again."""

    def _starts(self, specs: Iterable[WorkerSpec]) -> Iterator[tuple[str, Sequence[str], int | None]]:
        for spec in specs:
            if spec.ray is None:
                yield spec.name, spec.argv, spec.jobs
                continue
            argv = ray_command(spec.ray, self._local.task)
            for number in range(1, (spec.jobs or 1) + 1):
                yield f"{spec.name} #{number}", argv, 1

    @property
    def jobs(self) -> int:
        """The number of candidates evaluated at a time, here and by the workers that are there now."""
        return self._jobs + sum(places for life, places in self._places if not life.over)

    def workers(self) -> list[dict[str, Any]]:
        """What each worker does, how much it did, and how often it was gone."""
        return [
            {"name": each.name, "doing": each.doing, "evaluated": each.evaluated, "gone": each.lost}
            for each in self._workers
        ]

    def key(self, tree: str, split: str, repeat: int = 0, *, base: str = "") -> str:
        """Identifies everything that an evaluation's result depends on."""
        return self._local.key(tree, split, repeat, base=base, place=self._place)

    async def __aenter__(self) -> Self:
        """Start the workers. Raises EvaluatorError if all are left out, and there is no place here."""
        self._keeping = [asyncio.create_task(self._keep(worker)) for worker in self._workers]
        if not self._jobs:
            try:
                self._free.put_nowait(await self._seat())
            except BaseException:
                await self.__aexit__()
                raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """End the workers."""
        for keeping in self._keeping:
            keeping.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)

    async def evaluate(self, tree: str, files: Files, *, split: str, repeat: int = 0) -> tuple[Evaluation, Evidence]:
        """Evaluate at a free place, and elsewhere if that goes away. Raises EvaluatorError if there is none."""
        self._local.check_base(files)
        patience = 0.0
        for _ in range(LOSSES):
            seat, begun = await self._seat(), time.monotonic()
            if seat is None:
                try:
                    return await self._local.evaluate(tree, files, split=split, repeat=repeat)
                finally:
                    self._longest = max(self._longest, time.monotonic() - begun)
                    self._free.put_nowait(None)
            worker, life = seat
            usual = PATIENCE * (self._longest or self._local.task.limits.total)  # the limit until one was evaluated
            patience = max(2 * patience, min(max(LEAST_PATIENCE, usual), longest_evaluation(self._local.task)))
            try:
                drawn = self._local.drawn(split, repeat)
                evaluation, evidence = await worker.evaluate(life, tree, files, split, repeat, drawn, patience=patience)
            except WorkerLostError as error:
                lost = f"{LOSSES} times in a row the worker that evaluated it was gone, {worker.name} last: {error}"
            else:
                if not self._jobs:  # nothing else tells what is usual
                    self._longest = max(self._longest, time.monotonic() - begun)
                evaluation = self._local.labelled(evaluation, tree, files, split, repeat, self._place_of(life))
                return await self._believed(worker, (evaluation, thinned(evidence)), tree, files, split, repeat)
        if self._jobs:  # workers may be to blame
            return await self._local.evaluate(tree, files, split=split, repeat=repeat)
        failed = Evaluation(status="evaluator-error", reason=lost)
        return self._local.labelled(failed, tree, files, split, repeat, self._place or self._local.place), Evidence()

    async def measure(self, files: Files, *, split: str, tests: bool) -> tuple[Evaluation, Evidence]:
        """Raise EvaluatorError: callers look at `measures`."""
        raise EvaluatorError("remote workers evaluate, and measure nothing side by side")

    async def _believed(
        self, worker: RemoteWorker, said: Result, tree: str, files: Files, split: str, repeat: int
    ) -> Result:
        """Return the result of a worker, or of this machine if it was verified or the evaluator failed."""
        again = partial(self._local.evaluate, tree, files, split=split, repeat=repeat)
        if self._verification is None:
            if said[0].counts or not self._jobs:
                return said
            logger.warning("%s on the worker %s: it is tried on this machine", said[0].status, worker.name)
            return await again()
        believed, why = await self._verification.of(worker.name, (tree, split, repeat), said, again)
        if why:
            worker.leave_out(f"{why}; what it said unverified is evaluated again")
        return believed

    def _take_back(self, worker: RemoteWorker, life: Life) -> None:
        """Free a place of a worker, and those set aside while it was late."""
        for _ in range(1 + (0 if life.is_late else self._aside.pop(life, 0))):
            self._free.put_nowait((worker, life))

    async def _keep(self, worker: RemoteWorker) -> None:
        await worker.keep()
        self._free.put_nowait((worker, None))  # so that evaluations that wait for it alone end

    async def _seat(self) -> tuple[RemoteWorker, Life] | None:
        """Return a free place: a life of a worker, or None for here. Raises EvaluatorError if there will be none."""
        while True:
            seat = await self._free.get()
            if seat is None:
                return None
            worker, life = seat
            if life and life.is_late:
                self._aside[life] += 1
                continue
            if life and not life.over:
                return worker, life
            if not self._jobs and all(each.refused for each in self._workers):
                self._free.put_nowait(seat)  # for others who wait
                why = "; ".join(f"{each.name}: {each.refused}" for each in self._workers)
                raise EvaluatorError(f"no worker is left, and --jobs 0 evaluates nothing here: {why}")

    def _take_on(self, worker: RemoteWorker, life: Life) -> None:
        """Use a worker that is ready. Raises WorkerRefusedError if its offer is not what was asked for."""
        place = self._place_of(life)
        if place.provider not in (isolating() if self._asked == AUTO else (self._asked,)):
            raise WorkerRefusedError(f"it has the sandbox {place.provider!r}, and --sandbox is {self._asked}")
        if self._verification and place.machine != self._local.place.machine:
            raise WorkerRefusedError(
                f"it is another kind of machine ({place.machine}) than this one ({self._local.place.machine}), so that "
                "the times that it measures cannot be verified here"
            )
        if lacks := life.offer.room.lacks(self._local.task):
            raise WorkerRefusedError(f"one evaluation takes {lacks}")
        if self._place and place.machine != self._place.machine:
            raise WorkerRefusedError(
                f"it is another kind of machine ({place.machine}) than what measures this task "
                f"({self._place.machine}), and exclusive = true compares times"
            )
        if not self._place:
            self._place = place
            self.provider = place.provider
            self.image = place.image
        places = min(life.offer.jobs, life.offer.room.places(self._local.task))
        self._places = [(each, places) for each, places in self._places if not each.over]
        self._places.append((life, places))
        for _ in range(places):
            self._free.put_nowait((worker, life))

    def _place_of(self, life: Life) -> EvaluationPlace:
        offer = life.offer
        machine = offer.machine if self._local.task.environment.exclusive else ""
        return EvaluationPlace(offer.provider, offer.image, machine)


def _named_apart(specs: Sequence[WorkerSpec]) -> Iterator[WorkerSpec]:
    names, numbers = Counter(spec.label for spec in specs), Counter[str]()
    for spec in specs:
        numbers[spec.label] += 1
        number = f" #{numbers[spec.label]}" if names[spec.label] > 1 else ""
        yield replace(spec, label=f"{spec.label or spec.command}{number}")
