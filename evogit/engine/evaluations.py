"""Has candidates evaluated and journals the results; what another run here evaluated is not evaluated twice."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Coroutine, Iterator, MutableMapping, Sequence
from functools import cached_property
from typing import Any, Protocol, cast

from msgspec.structs import replace

from evogit.core import HOLDOUT, BaseFiles, Evaluation, EvaluatorError, Evidence, Files, Judged
from evogit.credentials import Redactor
from evogit.engine.evaluation_index import EvaluationIndex
from evogit.engine.move_order import together
from evogit.evaluation.evidence import muted
from evogit.evaluation.seed_files import packed_seed
from evogit.events import Entry, Evaluated
from evogit.history.context import RunContext, redactor
from evogit.history.paired_scores import beside
from evogit.history.state import ROUNDING, restored
from evogit.panel import Panel
from evogit.repository.evidence import evidence_of, files_of, redacted, redacted_evaluation
from evogit.sandbox import Completed

FAULTS = 3
"""Different candidates in a row on which the evaluator failed, after which a run stops."""

AGAIN_AFTER = (0.1, 1.0)
"""Seconds after which a candidate on which the evaluator failed is tried again, for what may have passed by then."""


SEED_FOLDER = ".seed"
"""Where a command that an agent runs has the seed's files."""


class EvaluationBackend(Protocol):
    """Who evaluates trees: an `Evaluator` on this machine, or what a library user derives from this."""

    digest: str
    provider: str
    image: str

    @property
    def runner(self) -> Runner | None:
        """What runs commands where candidates run; None where nothing does."""
        return None

    @property
    def measures(self) -> bool:
        """True if `measure` can be used: if a command of the task measures, on this machine."""
        return False

    @property
    def inputs(self) -> str:
        """The hash of a secret that inputs are drawn with, which evaluations depend on; empty without one."""
        return ""

    @property
    def doubted(self) -> MutableMapping[tuple[str, str, int], str]:
        """What it said (of a tree, on a split, as which repeat) and is not to be believed any more, with the reason."""
        return {}

    @property
    def shares(self) -> bool:
        """Return whether other runs of this clone may take its evaluations over: not those of other machines."""
        return True

    @property
    def jobs(self) -> int | None:
        """How many candidates it evaluates at a time; None where nobody knows."""
        return None

    @property
    def looks_again(self) -> bool:
        """Whether a new best is evaluated once more at the end, beyond all limits, to see that scores are exact."""
        return True

    @property
    def judged(self) -> Judged:
        """Where scores come from."""
        ...

    def key(self, tree: str, split: str, repeat: int = 0, *, base: str = "") -> str:
        """Identifies everything that an evaluation's result depends on; `base` is the id of the seed's files."""
        ...

    async def evaluate(self, tree: str, files: Files, *, split: str, repeat: int = 0) -> tuple[Evaluation, Evidence]:
        """Evaluate the tree with these `files`, changes to the seed, which is their base."""
        ...

    async def measure(self, files: Files, *, split: str, tests: bool) -> tuple[Evaluation, Evidence]:
        """Evaluate once for a measurement that is no score, without the tests unless wanted."""
        raise EvaluatorError(f"{type(self).__name__} has nothing to measure with")  # callers look at `measures`


class Runner(Protocol):
    """Runs commands where candidates run."""

    async def run(self, files: Files, command: Sequence[str], *, wall: float, laid: bool = False) -> Completed:
        """Run a command on these files where candidates run, for `wall` seconds at most; see `Evaluator.run`."""
        ...


Result = tuple[Evaluation, Evidence | str]
"""An evaluation and its evidence, or the id of the evidence tree where that exists already."""


class Evaluations:
    """Has candidates of one run evaluated by `backend`; what people added only within the `limit` of the run.

    A `panel` compares those that are valid with others before they are ranked. What an engine has that is at work
    `elsewhere` is left to it, but for the seed, which all wait for.

    Attributes:
        ended: how many evaluations ended, however.
    """

    def __init__(
        self,
        context: RunContext,
        backend: EvaluationBackend,
        limit: int | None = None,
        panel: Panel | None = None,
        elsewhere: Callable[[str], bool] = lambda engine: False,
    ) -> None:
        self._limit = limit
        self._panel = panel
        self._elsewhere = elsewhere
        self._repository = context.repository
        self._journal = context.journal
        self._history = context.history
        self._task = context.task
        self.backend = backend
        self._engine = context.engine
        self._broke: set[str] = set()
        self._taken: set[str] = set()
        self._doubted: set[tuple[str, str, int]] = set()
        self._evaluating: dict[str, asyncio.Task[Result | None]] = {}
        self._seeds: dict[bool, asyncio.Task[BaseFiles]] = {}
        self._under_way = 0
        self.ended = 0
        self._index = EvaluationIndex(self._repository, self._history.run)

    async def evaluate(self, commit: str, split: str | None = None, repeat: int = 0) -> Result | None:
        """Evaluate a candidate on `split` (default: the run's).

        An error of the evaluator is journalled and tried again. None when the candidate is set aside, as that did not
        help, when the machine was too busy to measure it, and when a person prunes it before it is evaluated.

        Raises:
            EvaluatorError: the evaluator fails on the seed, or on different candidates in a row.
        """
        evaluating = asyncio.create_task(self._tried(commit, split or self._history.split, repeat))
        self._evaluating[commit] = evaluating
        try:
            return await evaluating
        except asyncio.CancelledError:
            if cast(asyncio.Task[None], asyncio.current_task()).cancelling():
                raise
            return None
        finally:
            if self._evaluating.get(commit) is evaluating:  # else it is evaluated again already
                del self._evaluating[commit]

    def give_up_pruned(self) -> None:
        """Let what people pruned meanwhile free its slot, or the place in the queue; it comes back by an undo."""
        for commit in self._evaluating.keys() & self._history.pruned:
            if self._evaluating[commit].cancelling():  # it is being cleaned up, which a second time would break off
                continue
            self._evaluating[commit].cancel()

    async def _tried(self, commit: str, split: str, repeat: int) -> Result | None:
        tree = self._history.phylogeny[commit].tree
        files = await self._files(tree)
        key = self.backend.key(tree, split, repeat, base=files.base.id if files.base else "")
        if not self._history.scores.paired and (known := self._index.find(key)):
            return replace(self._redacted(known.evaluation), cached=True), known.evidence
        is_seed = commit == self._history.seed
        for wait in (*((0.0,) * len(AGAIN_AFTER) if is_seed else AGAIN_AFTER), None):
            evaluation, evidence = await self._told(tree, files, split, repeat)
            if evaluation.counts:
                self._broke.clear()
                return evaluation, evidence
            self.record(commit, (evaluation, evidence))
            if evaluation.status == "not-measured":
                if is_seed and not self._history.judged(commit):
                    raise EvaluatorError(f"the seed cannot be measured now: {evaluation.reason}; try again later")
                return None
            self._broke.add(commit)
            if len(self._broke) >= FAULTS:
                raise self._broken(f"on {FAULTS} different candidates in a row", evaluation, split)
            if wait is not None:
                await asyncio.sleep(wait)
        if is_seed:
            raise self._broken(f"{1 + len(AGAIN_AFTER)} times in a row on the seed", evaluation, split)
        return None

    def _broken(self, how: str, evaluation: Evaluation, split: str) -> EvaluatorError:
        listed = self._task.splits
        odd = "" if split in listed else f"{self._task.name} lists {', '.join(listed)}, is {split!r} misspelt? "
        return EvaluatorError(
            f"the evaluator failed {how}: {evaluation.reason}; {odd}"
            f"fix it, try it with `evogit check {self._task.name}`, then run again"
        )

    async def try_out(self, tree: str) -> tuple[Evaluation, Evidence]:
        """Evaluate a tree on the run's split; nothing is journalled. What a known candidate was told is told again."""
        commit = self._history.trees.get(tree, "")
        if (known := self._history.evaluation(commit, repeat=0)) and known.counts:
            return known, redacted(self.evidence(commit), self._redactor)
        return await self._told(tree, await self._files(tree), self._history.split)

    async def _told(self, tree: str, files: Files, split: str, repeat: int = 0) -> tuple[Evaluation, Evidence]:
        """Evaluate; nothing that is kept of it has credentials, which programs can read in the seed's files.

        Once the holdout was shown to anybody here, agents are told no words of programs.

        What programs find of it in the machine, and whoever sees it first, is looked at behind the evaluation.
        """
        if self._is_hidden(split):
            self._repository.holdouts.show(self._task.name)
        self._under_way += 1
        try:
            evaluation, evidence = await self.backend.evaluate(tree, files, split=split, repeat=repeat)
        finally:
            self._under_way -= 1
            self.ended += 1
        return self._shown(evaluation, evidence, split)

    async def measure(self, tree: str, *, tests: bool) -> tuple[Evaluation, Evidence]:
        """Measure a tree once on the run's split; nothing is journalled, and nothing that is kept has credentials."""
        split = self._history.split
        evaluation, evidence = await self.backend.measure(await self._files(tree), split=split, tests=tests)
        return self._shown(evaluation, evidence, split)

    def _shown(self, evaluation: Evaluation, evidence: Evidence, split: str) -> tuple[Evaluation, Evidence]:
        evaluation, evidence = self._redacted(evaluation), redacted(evidence, self._redactor)
        if split == self._history.split and self._holdout_spoke:
            return muted(evaluation, evidence, self._task.metric_names)
        return evaluation, evidence

    def _redacted(self, evaluation: Evaluation) -> Evaluation:
        return redacted_evaluation(evaluation, self._redactor, {*self._task.metric_names, *self._task.splits})

    @cached_property
    def _redactor(self) -> Redactor:
        return redactor(self._task, self._repository, self._history)

    def _is_hidden(self, split: str) -> bool:
        return split == HOLDOUT != self._history.split

    @property
    def _holdout_spoke(self) -> bool:
        return self._is_hidden(HOLDOUT) and self._repository.holdouts.shown(self._task.name)

    @property
    def room(self) -> int | None:
        """How many more could be evaluated at once; below 0, how many wait; None where nobody knows."""
        return None if self.backend.jobs is None else self.backend.jobs - self._under_way

    async def differs_again(self, commit: str) -> str:
        """Evaluate a valid candidate once more and say what is otherwise, in a sentence; empty where nothing is.

        What is otherwise is journalled: scores are noisy from then on.
        """
        history, tree = self._history, self._history.phylogeny[commit].tree
        then, name = history.fitness(commit), history.metric.name
        repeat = 1 + history.scores.latest(commit)
        now, evidence = await self._told(tree, await self._files(tree), history.split, repeat)
        value = now.metrics.get(name, math.nan)
        same = now.ok and then is not None and math.isclose(then, value, rel_tol=ROUNDING)
        if then is None or not now.counts or now.starved or same:
            return ""
        self.record(commit, (now, evidence))
        if not now.ok:
            return f"{commit[:7]} was ok and is {now.status} now: {now.reason}"
        return f"{name} of {commit[:7]} was {then:.10g}, and {value:.10g} when evaluated once more"

    def evidence(self, commit: str) -> Evidence:
        """What was kept of a candidate's evaluation; nothing where it is gone."""
        return evidence_of(self._repository.trees.kept(self._history.evidence.get(commit)))

    @property
    def runs(self) -> bool:
        """Whether commands can be run, and what they print be told."""
        return self.backend.runner is not None and not self._holdout_spoke

    async def run(self, tree: str, command: Sequence[str], *, wall: float, laid: bool = False) -> Completed:
        """Run a command on what agents may see of a tree, for `wall` seconds at most, as candidates are run.

        `laid`: on all that evaluations have; the caller keeps what it quotes of withheld files from agents.
        """
        assert self.backend.runner  # whoever asks looks at `runs`
        files = await self._files(tree, shown=not laid)
        done = await self.backend.runner.run(files, command, wall=wall, laid=laid)
        if self._holdout_spoke:
            return replace(done, stdout=b"", stderr=b"", files={})
        return replace(done, stdout=self._redactor.data(done.stdout), stderr=self._redactor.data(done.stderr))

    def with_seed(self, tree: str) -> str:
        """Return the tree with the seed's editable files in SEED_FOLDER, unless it has something there of its own."""
        if any(f"{entry.path}/".startswith(f"{SEED_FOLDER}/") for entry in self._repository.trees.entries(tree)):
            return tree
        seed = self._history.phylogeny[self._history.seed or ""].tree
        entries = [entry for entry in self._repository.trees.entries(seed) if entry.is_file]
        shown = [entry for entry in entries if self._task.is_editable(entry.path) and self._task.is_visible(entry.path)]
        beside = {f"{SEED_FOLDER}/{entry.path}": (entry.mode, entry.blob) for entry in shown}
        return self._repository.trees.with_entries(tree, beside)

    async def settle(self, commit: str, result: Result) -> None:
        """Have a valid candidate compared, where a panel does that, and journal the evaluation.

        One of what is pruned, or was meanwhile, is dropped where its place in the budget is taken by now.
        """
        evaluation, _ = result
        known = self._history.judged(commit, evaluation.split, evaluation.repeat)
        if self._panel and evaluation.ok and not known:
            await self._panel.compare(commit)
        self.record(commit, result, unless=lambda: commit in self._history.pruned or commit in self._beyond())

    def record(self, commit: str, result: Result, unless: Callable[[], bool] = lambda: False) -> None:
        """Keep the evidence and journal the evaluation, unless another engine did so meanwhile."""
        evaluation, evidence = result
        files = evidence if isinstance(evidence, str) else files_of(evidence)
        kept = self._journal.keep(files, commit) if files else ""
        entry = self._journal.append(
            Evaluated(candidate=commit, evaluation=evaluation, evidence=kept),
            unless=lambda: self._history.judged(commit, evaluation.split, evaluation.repeat) or unless(),
        )
        self._note(entry)

    def _note(self, entry: Entry | None) -> None:
        """Let other runs of this clone find what was journalled, if they may use it."""
        if entry and isinstance(entry.event, Evaluated) and self.backend.shares:
            evaluation = entry.event.evaluation
            if evaluation.counts and evaluation.status != "flaky":
                self._index.add(evaluation.key, entry.id)

    async def finish(
        self, commit: str, split: str | None = None, repeat: int = 0, reference: str | None = None
    ) -> bool:
        """Evaluate and journal a candidate that no other task is busy with; False where that was not possible.

        Side by side with a `reference` if any: which of the two is first changes from one repeat to the next, so that a
        drift favours neither.
        """
        other = await self._again(reference, repeat) if reference and repeat % 2 else None
        result = await self.evaluate(commit, split, repeat)
        if result and reference:
            other = other or await self._again(reference, repeat)
            result = beside(result[0], reference, other), result[1]
        if result:
            await self.settle(commit, result)
        return result is not None

    async def _again(self, commit: str, repeat: int) -> Evaluation:
        """Evaluate a candidate now; nothing is journalled."""
        tree = self._history.phylogeny[commit].tree
        return (await self._told(tree, await self._files(tree), self._history.split, repeat))[0]

    async def take_over(self) -> None:
        """Evaluate what waits for nobody else: of engines that are gone, of people, of workers that lied; our seed."""
        left = self._left()
        self._taken.update(left)
        await together([*(self._take(commit) for commit in left), *self._corrections()])

    def _corrections(self) -> Iterator[Coroutine[Any, Any, None]]:
        """What to evaluate again, as a worker that had evaluated it is not believed any more."""
        for asked in self.backend.doubted.keys() - self._doubted:
            tree, split, repeat = asked
            commit = self._history.trees.get(tree)
            if commit and self._history.judged(commit, split, repeat):
                self._doubted.add(asked)
                yield self._correct(commit, split, repeat)

    async def _correct(self, commit: str, split: str, repeat: int) -> None:
        tree = self._history.phylogeny[commit].tree
        evaluation, evidence = await self._told(tree, await self._files(tree), split, repeat)
        if evaluation.counts:
            why = self.backend.doubted.pop((tree, split, repeat))
            kept = self._journal.keep(files_of(evidence), commit)
            event = Evaluated(candidate=commit, evaluation=evaluation, evidence=kept, instead=why)
            self._note(self._journal.append(event))

    async def _take(self, commit: str) -> None:
        try:
            await self.finish(commit)
        finally:
            self._taken.discard(commit)

    def _left(self) -> list[str]:
        """What is ours to evaluate; of what people began or brought back no more than the limit has room for."""
        history, me = self._history, self._engine
        busy = self._taken | self._evaluating.keys()
        free = {commit: candidate for commit, candidate in history.pending.items() if commit not in busy}
        if not free:
            return []
        beyond, back = self._beyond(busy), restored(history.decisions, history.phylogeny)
        others = (
            self._repository.engines(history.run).alive() if any(each.engine != me for each in free.values()) else []
        )

        def is_ours(commit: str) -> bool:
            candidate = free[commit]
            if candidate.engine == me:
                return candidate.operator == "seed" or commit in back
            return candidate.engine not in others and (
                candidate.operator == "seed" or not self._elsewhere(candidate.engine)
            )

        return [commit for commit in free if commit not in beyond and is_ours(commit)]

    def _beyond(self, busy: Collection[str] = ()) -> list[str]:
        """What waits for a place in the limit, as no task is `busy` with it, and has none.

        All that people began or brought back waits, in the order in which it came; anything else got its place when it
        was proposed.
        """
        if self._limit is None:
            return []
        history, pending = self._history, self._history.pending
        back = restored(history.decisions, history.phylogeny)
        new = [each for each in pending if each not in busy and history.former(each) is None]
        waiting = [each for each in new if each in back or not pending[each].engine or pending[each].trial]
        room = self._limit - history.counts.evaluated - (len(pending) - len(waiting))
        return waiting[max(room, 0) :]

    async def _files(self, tree: str, *, shown: bool = False) -> Files:
        """The changes from the seed to a tree; the first caller has the seed packed.

        `shown` leaves out what is evaluated with, but no agent is shown.
        """
        seed = self._history.phylogeny[self._history.seed or ""].tree
        apart = shown and (self._task.command is not None or bool(self._task.secret))
        if apart not in self._seeds:
            wanted = self._task.is_visible if apart else None
            self._seeds[apart] = asyncio.create_task(packed_seed(self._repository, seed, self._task, wanted))
        changed, removed = self._repository.trees.changes(seed, tree, self._task.is_visible)
        return Files(changed, removed, await asyncio.shield(self._seeds[apart]))  # others need it, whoever is given up
