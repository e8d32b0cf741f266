"""The drafts of an agent in one move: those that were evaluated, and steps that it kept, become candidates."""

from __future__ import annotations

import asyncio
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from evogit.agents import Agent, Measurement, NoUsableChangeError, Proposal, SessionNotes
from evogit.breeding.breeder import Bred
from evogit.core import Evaluation, Evidence
from evogit.engine.evaluations import Evaluations, Result
from evogit.engine.profiles import Profiles
from evogit.engine.quota import Quota
from evogit.events import FailedProposal, Measured
from evogit.history import History
from evogit.sandbox import Completed
from evogit.stats.estimates import LEVEL, student

Outcome = tuple[Bred | FailedProposal, Result | None]
"""What is to be journalled of a move, and its evaluation where that is known already."""


@dataclass(slots=True)
class Drafts:
    """The drafts of one move; `left` of the `granted` evaluations that were counted for it beforehand.

    Steps that are kept are journalled and evaluated at once by `keep_step`, so that others can build on them, and an
    engine that is killed loses nothing of them; where it is None, as in deterministic runs, steps are not kept apart.
    Drafts that were evaluated are journalled when the move proposes.
    """

    evaluations: Evaluations
    history: History
    profiles: Profiles
    granted: int
    left: int
    keep_step: Callable[[Drafts, Bred], str] | None = None
    steps: list[Bred] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    judging: list[asyncio.Task[None]] = field(default_factory=list)
    judged: list[tuple[str, Evaluation | None]] = field(default_factory=list)
    measured: dict[tuple[str, str], Measured] = field(default_factory=dict)
    """(Tree, parent) -> the measurement in turns with that parent."""
    measurements: int = 0
    notes: SessionNotes | None = None
    _evaluated: dict[str, tuple[Bred, Evaluation, Evidence]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        agent: Agent,
        evaluations: Evaluations,
        history: History,
        profiles: Profiles,
        quota: Quota,
        keep_step: Callable[[Drafts, Bred], str] | None,
    ) -> Drafts:
        """Those of the move that was reserved last, as many as the agent wants and every limit has room for."""
        granted = quota.more(agent.trials) if agent.trials else 0
        return cls(evaluations, history, profiles, granted, granted, keep_step)

    def workshop(self, make: Callable[[Proposal], Bred]) -> MoveWorkshop:
        """Open the place where the agent tries drafts, of which `make` makes trees if they could be candidates."""
        return MoveWorkshop(self, make)

    def after_steps(self, bred: Bred) -> Bred:
        """Return a draft as the child of the last step that was kept."""
        return replace(bred, parents=(self.kept[-1], *bred.parents[1:])) if self.kept else bred

    async def evaluate(self, bred: Bred) -> tuple[Evaluation, Evidence]:
        """Have a draft evaluated; one that was evaluated in this move before is not again, and costs nothing.

        Raises:
            NoUsableChangeError: no evaluation is left.
        """
        if earlier := self._evaluated.get(bred.tree):
            return earlier[1:]
        if any(step.tree == bred.tree for step in self.steps):
            if self.history.trees[bred.tree] in self.history.pending:
                raise NoUsableChangeError("it was kept, so its evaluation is under way; a later answer has the outcome")
            return await self.evaluations.try_out(bred.tree)
        if self.left < 1:
            raise NoUsableChangeError("no evaluation is left")
        self.left -= 1
        evaluation, evidence = await self.evaluations.try_out(bred.tree)
        if evaluation.counts:
            self._evaluated[bred.tree] = bred, evaluation, evidence
        return evaluation, evidence

    def evaluated(self, tree: str) -> Result | None:
        """Return the result of a draft that was evaluated in this move; None if it was not."""
        draft = self._evaluated.get(tree)
        return draft[1:] if draft else None

    async def measure(self, bred: Bred, pairs: int, seconds: float, check: Callable[[], None]) -> Measurement:
        """Run the tests once, then measure the draft, its parent and the seed in turns, `pairs` times each.

        After so many `seconds` no further pair is begun; `check` raises what ends the session, before each run.

        Raises:
            NoUsableChangeError: there is nothing to compare, or one of them cannot be measured.
        """
        began, graph = time.monotonic(), self.history.phylogeny
        trees = {"draft": bred.tree, "parent": graph[bred.parents[0]].tree, "seed": graph[self.history.seed or ""].tree}
        if trees["draft"] == trees["parent"]:
            raise NoUsableChangeError("the draft does not differ from its parent")
        self.measurements += 1
        evaluation, evidence = await self.evaluations.measure(bred.tree, tests=True)
        if not evaluation.ok:
            return Measurement(evaluation=evaluation, evidence=evidence)
        name = self.history.metric.name
        values: dict[str, list[float]] = {tree: [] for tree in trees.values()}
        values[bred.tree].append(evaluation.metrics[name])
        order = list(values)
        for pair in range(pairs):
            if pair and time.monotonic() - began > seconds:
                break
            for tree in order if pair % 2 == 0 else order[::-1]:  # a drift favours none
                if len(values[tree]) <= pair:
                    check()
                    once, _ = await self.evaluations.measure(tree, tests=False)
                    if not once.ok:
                        raise NoUsableChangeError(f"a run of the measurement failed: {once.reason or once.status}")
                    values[tree].append(once.metrics[name])
        by_name = {label: values[tree] for label, tree in trees.items()}
        measured = compared(by_name, time.monotonic() - began)
        if measured:
            self.measured[bred.tree, bred.parents[0]] = measured
        return Measurement(evaluation=evaluation, evidence=evidence, values=by_name, measured=measured)

    def with_last(self, last: Bred | FailedProposal) -> list[Outcome]:
        """Return all that is still to be journalled of the move, in order; `last` is its end.

        Where that is a draft that was evaluated or kept, or nothing usable after others were, it adds nothing.
        """
        if isinstance(last, Bred):
            last = self.after_steps(last)
            measured = self.measured.get((last.tree, last.parents[0]))
            last = replace(last, kept=bool(self.kept), measured=measured)
            if last.tree in self._evaluated:
                self._evaluated[last.tree] = last, *self._evaluated[last.tree][1:]
        made = {step.tree for step in self.steps}
        tried: list[Outcome] = [
            (bred, (evaluation, evidence))
            for bred, evaluation, evidence in self._evaluated.values()
            if bred.tree not in made
        ]
        if (tried or made) and (isinstance(last, FailedProposal) or last.tree in {*self._evaluated, *made}):
            return tried
        return [*tried, (last, None)]


MAX_LOG_RATIO = 20.0
"""Logarithm of a ratio beyond which two values are nothing that was measured alike."""


def compared(values: dict[str, list[float]], seconds: float) -> Measured | None:
    """Return the ratios of a draft to its parent and the seed; None unless all values are positive and comparable.

    They are geometric means of the pairs' ratios; the margin is half of the 95 % interval by Student's t.
    """
    if min(map(min, values.values())) <= 0:
        return None
    logs = {name: [math.log(value) for value in row] for name, row in values.items()}
    steps = [draft - parent for draft, parent in zip(logs["draft"], logs["parent"], strict=True)]
    gains = [draft - seed for draft, seed in zip(logs["draft"], logs["seed"], strict=True)]
    if max(map(abs, steps + gains)) > MAX_LOG_RATIO:
        return None
    pairs = len(steps)
    margin = student(LEVEL, pairs - 1) * statistics.stdev(steps) / math.sqrt(pairs) if pairs > 1 else 0.0
    return Measured(
        pairs=pairs,
        parent=math.exp(statistics.fmean(steps)),
        margin=margin,
        seed=math.exp(statistics.fmean(gains)),
        seconds=round(seconds, 1),
    )


class MoveWorkshop(Struct, frozen=True):
    """The `agents.Workshop` of one brief."""

    drafts: Drafts
    make: Callable[[Proposal], Bred]

    @property
    def evaluations(self) -> int:
        """How many evaluations are left for this move."""
        return self.drafts.left

    @property
    def runs(self) -> bool:
        """Whether commands can be run."""
        return self.drafts.evaluations.runs

    @property
    def measures(self) -> bool:
        """True if drafts can be measured in turns with their parents."""
        return self.drafts.evaluations.backend.measures

    @property
    def keeps(self) -> bool:
        """True if steps can be kept."""
        return self.drafts.keep_step is not None

    @property
    def kept(self) -> Sequence[str]:
        """The steps that were kept."""
        return self.drafts.kept

    def check(self, draft: Proposal) -> None:
        """Refuse what no candidate could be."""
        self.make(draft)

    async def run(self, draft: Proposal, command: str, *, wall: float) -> Completed:
        """Run a shell command on what agents may see of the draft, with the seed's files beside it."""
        evaluations, shell = self.drafts.evaluations, f"export PYTHONUNBUFFERED=1\n{command}"  # it may be killed
        return await evaluations.run(evaluations.with_seed(self.make(draft).tree), ["sh", "-c", shell], wall=wall)

    async def profile(self, draft: Proposal) -> str:
        """Return where the draft spends its time."""
        return await self.drafts.profiles.of(self.make(draft).tree)

    async def evaluate(self, draft: Proposal) -> tuple[Evaluation, Evidence]:
        """Have the draft evaluated."""
        return await self.drafts.evaluate(self.drafts.after_steps(self.make(draft)))

    async def measure(self, draft: Proposal, pairs: int, *, seconds: float, check: Callable[[], None]) -> Measurement:
        """Measure the draft beside the last step that was kept, and the seed."""
        return await self.drafts.measure(self.drafts.after_steps(self.make(draft)), pairs, seconds, check)

    def keep(self, draft: Proposal) -> str:
        """Make the draft a candidate, which is evaluated while the session goes on."""
        drafts = self.drafts
        assert drafts.keep_step  # whoever keeps looks at `keeps`
        bred = drafts.after_steps(self.make(draft))
        if len(bred.parents) > 1:
            raise NoUsableChangeError("a merge is one step, which is proposed at the end")
        bred = replace(bred, kept=True, measured=drafts.measured.get((bred.tree, bred.parents[0])))
        commit = drafts.keep_step(drafts, bred)
        drafts.steps.append(bred)
        drafts.kept.append(commit)
        return commit

    def judgements(self) -> Sequence[tuple[str, Evaluation | None]]:
        """Return the outcomes of kept steps since the last call; raise what ended an evaluation."""
        for judging in self.drafts.judging:
            if judging.done() and not judging.cancelled():
                judging.result()
        new, self.drafts.judged[:] = list(self.drafts.judged), []
        return new

    def close(self, ended: SessionNotes) -> None:
        """Hold the notes until the move ends."""
        self.drafts.notes = ended
