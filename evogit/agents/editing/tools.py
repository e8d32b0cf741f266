"""Where a model with tools works: one draft, and what it may do with it; every answer is a text of bounded length.

What it asks for that cannot be done is an `EditError`, an answer like any other. All that was read, printed or
evaluated stands between fences.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from evogit.agents import Background, Brief, Measurement, NoUsableChangeError, Proposal, Workshop
from evogit.agents.briefs import digest
from evogit.agents.briefs.excerpt import listing
from evogit.agents.editing.blocks import Block, EditError
from evogit.agents.editing.calls import (
    Call,
    Edits,
    Evaluate,
    Finish,
    Grep,
    Keep,
    List,
    Measure,
    Profile,
    ReadLines,
    Revert,
    RunCommand,
    ToolCalls,
    read,
)
from evogit.agents.editing.draft import Draft, proposal_of
from evogit.core import Evaluation, Evidence
from evogit.llm import Account, estimate_tokens
from evogit.text import cut, escaped, fence, lines_of, one_line

MOST_SEARCHED, MOST_READ = 8_000_000, 2_000_000
"""Bytes of files that are searched for a text, and of one that is shown: others wait meanwhile."""

MOST_FOUND = 100  # lines in which a text was found that are shown, each of 300 characters at most
LONGEST_RUN = 120.0  # seconds of wall clock for a command, where the task does not allow less


class ToolResults(Struct, frozen=True):
    """What came of a reply; `done` of its calls could be carried out. What is `measured` may come out otherwise."""

    text: str
    done: int
    measured: bool


@dataclass(slots=True)
class ToolSession:
    """Carries out what a model asks for. `room` is how many tokens an answer may have; `shown` is of its brief."""

    brief: Brief
    background: Background
    account: Account
    model: str
    evidence: dict[str, bytes]
    room: int
    shown: tuple[str, ...] = ()
    title: str = ""
    family: str = ""
    differs: str = ""
    reason: str = ""
    finished: bool = False
    draft: Draft = field(init=False)
    kept: Draft = field(init=False)
    """The draft as it was when its last step was kept, or at the beginning."""

    def __post_init__(self) -> None:
        self.draft = Draft(self.brief.files, self.background.refusal)
        self.kept = self.draft.twin()

    async def answer(self, asked: ToolCalls, deadline: float, reason: str = "") -> ToolResults:
        """Do what a reply asks for, call by call; after the `deadline` (of `time.monotonic`) nothing is run.

        `reason` is what the reply says for its edits: a step that it keeps before them has an earlier reply's.

        Raises EvoGitError: the sandbox or evaluator fails; RunEndsError, SpendingLimitError: results would not be read.
        """
        self.title = asked.title or self.title
        self.family = asked.family or self.family
        self.differs = asked.differs or self.differs
        parts, done, measured = list[str](), 0, False
        for number, call in enumerate(asked.calls):
            room = self.room - sum(map(estimate_tokens, parts))
            if isinstance(call, Edits) or (isinstance(call, Finish) and not self.reason):
                self.reason = reason or self.reason
            try:
                await asyncio.sleep(0)
                parts.append(await self._do(call, max(room, self.room // 20), deadline - time.monotonic()))
                done += 1
                if self.finished:
                    break
                measured |= isinstance(call, RunCommand | Evaluate | Measure | Profile)
            except (EditError, NoUsableChangeError) as error:
                hint = f"\n{error.hint}" if isinstance(error, EditError) and error.hint else ""
                name = "The edit" if isinstance(call, Edits) else type(call).__name__.upper()
                parts.append(f"{name} could not be done: {one_line(str(error), 1000)}.{hint}")
                if isinstance(call, Edits):
                    left = len(asked.calls) - number - 1
                    parts += ["Nothing behind it was done."] if left else []
                    break
        return ToolResults("\n\n".join(parts), done, measured)

    def proposal(self) -> Proposal:
        """The draft as it is now. Raises EditError: it changes nothing, or leaves a conflict open."""
        changes = self.draft.changes
        if not changes:
            raise EditError("the draft changes nothing")
        made = Proposal(
            changes=changes,
            title=self.title or f"edit {one_line(min(changes), 60)}",
            family=self.family,
            differs=self.differs,
            reason=self.reason,
            model=self.model,
            shown=self.shown,
            evidence=self.evidence,
        )
        return proposal_of(self.draft, self.brief, self.background, made)

    @property
    def state(self) -> str:
        """Return what the draft changes since the last step that was kept, in a sentence."""
        now, kept = self.draft.changes, self.kept.changes
        paths = sorted(path for path in now | kept if now.get(path, ...) != kept.get(path, ...))
        named = ", ".join(one_line(path, 100) for path in paths[:10]) + (" and more" if paths[10:] else "")
        steps = len(self.brief.workshop.kept) if self.brief.workshop else 0
        since = f" since step {steps}" if steps else ""
        return f"The draft changes {named}{since}." if paths else f"The draft changes nothing{since or ' yet'}."

    def judgements(self) -> str:
        """Return how the kept steps did whose evaluations ended since the last call, a line each."""
        workshop = self.brief.workshop
        return "\n".join(judgement(self.background, *each) for each in (workshop.judgements() if workshop else ()))

    async def _do(self, call: Call, room: int, seconds: float) -> str:
        if isinstance(call, RunCommand | Evaluate | Measure | Profile | Keep):
            self.account.check()
            if seconds <= 0:
                raise EditError("your time is over", "FINISH now.")
        match call:
            case Edits():
                return self._edit(call.blocks)
            case List():
                folder, sizes = call.folder.rstrip("/"), self._sizes()
                sizes = {path: size for path, size in sizes.items() if not folder or path.startswith(f"{folder}/")}
                if not sizes:
                    raise EditError(f"there is no file in {one_line(call.folder, 100)!r}")
                return f"{len(sizes):,} files with their bytes:\n{listing(sizes, room)}"
            case ReadLines():
                return read(call, self._text(call.path), room)
            case Grep():
                found = list(itertools.islice(self._found(call.text), MOST_FOUND + 1))
                shown, more = found[:MOST_FOUND], " and more" * (len(found) > MOST_FOUND)
                about = f"{call.text[:100]!r} is in {len(shown)} lines{more}"
                return f"{about}:\n{fence(cut(chr(10).join(shown), room))}"
            case RunCommand():
                return await self._run(call, room, seconds)
            case Profile():
                profile = await self._workshop().profile(self._tried())
                if not profile:
                    raise EditError("there is no profile: the task has no such command, or it failed")
                return f"Where the time of the draft goes:\n{fence(cut(profile, room))}"
            case Measure():
                return await self._measure(call.pairs, room, seconds)
            case Keep():
                return self._keep(call)
            case Revert():
                self.draft = self.kept.twin()
                return "The draft is as the last step that was kept, or as the candidate that you began with."
            case Evaluate():
                return await self._evaluate(room)
            case Finish():
                proposal = self.proposal()
                if self.brief.workshop:
                    self.brief.workshop.check(proposal)
                self.title = call.title or self.title
                self.family = call.family or self.family
                self.finished = True
                return "Proposed."

    def _edit(self, blocks: Sequence[Block]) -> str:
        """Carry out blocks; those before one that cannot be stay, as a model would only have to repeat them."""
        twin = self.draft.twin()
        try:
            twin.carry_out(blocks)
        except EditError as error:
            done = blocks[: twin.carried_out]
            if done:
                self._edit(done)
                why = f"block {len(done) + 1} of {len(blocks)}: {error}; the blocks before it are in the draft"
                raise EditError(why, error.hint) from error
            raise
        self.draft = twin.twin()  # which finds out what is no text before it takes its place
        return f"Edited {', '.join(dict.fromkeys(one_line(block.path, 100) for block in blocks))}."

    async def _run(self, call: RunCommand, room: int, seconds: float) -> str:
        workshop = self._workshop()
        if not workshop.runs:
            raise EditError("no commands can be run here")
        done = await workshop.run(self._tried(), call.command, wall=min(max(seconds, 1.0), LONGEST_RUN))
        if done.code is not None:
            how = f"with exit code {done.code}"
        else:
            how = f"by signal {done.signal}" if done.signal else "abnormally"
        why = f": {one_line(done.detail, 300)}" if done.detail else ""
        lines = [f"The command ended {how}{why}; {done.usage.wall:.2f} s, {done.usage.cpu:.2f} s of CPU."]
        outputs = {"stdout": done.stdout.decode(errors="replace"), "stderr": done.stderr.decode(errors="replace")}
        texts = {name: text for name, text in outputs.items() if text.strip()}
        lines += [f"{name}:\n{digest.output(text, room // len(texts))}" for name, text in texts.items()]
        return "\n".join(lines if texts else [*lines, "It printed nothing."])

    def _tried(self) -> Proposal:
        """Return the draft; where it changes nothing, the parent itself."""
        return self.proposal() if self.draft.changes else Proposal(changes={}, title="")

    async def _measure(self, pairs: int, room: int, seconds: float) -> str:
        workshop = self._workshop()
        if not workshop.measures:
            raise EditError("nothing can be measured side by side here", "EVALUATE instead.")
        measurement = await workshop.measure(self._tried(), pairs, seconds=seconds, check=self.account.check)
        return measurement_text(self.background, measurement, len(workshop.kept), room)

    def _keep(self, call: Keep) -> str:
        workshop = self._workshop()
        self.title = call.title or self.title
        self.family = call.family or self.family
        proposal = self.proposal()
        if not workshop.keeps:
            workshop.check(proposal)
            self.kept = self.draft.twin()
            return "Kept: REVERT goes back to it. All that is in the draft at the end is proposed as one change."
        commit = workshop.keep(proposal)
        self.kept = self.draft.twin()
        self.title = self.family = self.differs = self.reason = ""
        return f"Kept as step {len(workshop.kept)}, candidate {commit[:7]}, which is evaluated while you go on."

    async def _evaluate(self, room: int) -> str:
        workshop = self._workshop()
        if not workshop.evaluations:
            raise EditError("no evaluation is left for you", "Go on without, or FINISH.")
        evaluation, evidence = await workshop.evaluate(self.proposal())
        left = f"Evaluations left: {workshop.evaluations}."
        if not evaluation.counts:
            return f"The draft is {digest.unjudged(evaluation)}. {left}"
        return f"{judged(self.background, evaluation, evidence, room)}\n{left}"

    def _workshop(self) -> Workshop:
        if self.brief.workshop is None:
            raise EditError("nothing can be tried here")
        return self.brief.workshop

    def _sizes(self) -> dict[str, int]:
        """Path -> bytes of every file of the draft that the model may see."""
        changed = self.draft.changes
        sizes = {path: size for path, size in self.background.sizes.items() if path not in changed}
        return sizes | {path: len(content) for path, content in changed.items() if content is not None}

    def _content(self, path: str) -> bytes:
        content = self.draft.content(path)
        if content is None and path not in self.draft.changes and path in self.background.sizes:
            content = self.background.read(path)
        if content is None:
            raise EditError(f"there is no file {one_line(path, 300)!r}", "LIST tells which there are.")
        return content

    def _text(self, path: str) -> str:
        if (size := self.background.sizes.get(path, 0)) > MOST_READ:
            raise EditError(f"{one_line(path, 300)!r} has {size:,} bytes", "RUN sed or grep to see some of it.")
        text = lines_of(self._content(path))
        if text is None:
            raise EditError(f"{one_line(path, 300)!r} is not UTF-8 text")
        return text

    def _found(self, text: str) -> Iterator[str]:
        """`path:line: content` of every line with this text."""
        left = MOST_SEARCHED
        for path, size in sorted(self._sizes().items()):
            if (left := left - size) < 0:
                yield "[... the files behind this one are too many to search; RUN grep]"
                return
            content = self._content(path)
            if text.encode(errors="replace") not in content:
                continue
            for number, line in enumerate((lines_of(content) or "").split("\n"), 1):
                if text in line:
                    yield f"{one_line(path, 300)}:{number}: {escaped(line[:300])}"


def judgement(background: Background, commit: str, evaluation: Evaluation | None) -> str:
    """Return how the evaluation of a kept step ended, in a line."""
    if evaluation is None:
        return f"Your step {commit[:7]} was given up: it was pruned, or cannot be evaluated. FINISH now."
    if not evaluation.ok:
        return f"Your step {commit[:7]} is not valid ({one_line(evaluation.reason, 500)}): mend it, or take it back."
    name = background.metrics[0].name
    return f"Your step {commit[:7]} was evaluated: valid, {name} {evaluation.metrics.get(name, math.nan):.6g}."


def measurement_text(background: Background, measurement: Measurement, steps: int, room: int) -> str:
    """Return what a measurement says: values, ratios with their intervals, and whether the draft is better."""
    if not measurement.values:
        return judged(background, measurement.evaluation, measurement.evidence, room)
    metric, parent = background.metrics[0], f"step {steps}" if steps else "the candidate you began with"
    names = {"seed": "seed", "parent": parent, "draft": "draft"}
    lines = [f"The draft passes the tests. {metric.name}, measured in turns (the median, then a value of each pair):"]
    lines += [
        f"- {names[side]}: {statistics.median(row):.5g} ({', '.join(f'{value:.4g}' for value in row)})"
        for side, row in measurement.values.items()
        if side != "seed" or row != measurement.values["parent"]
    ]
    if not (measured := measurement.measured):
        return "\n".join(lines)
    low, high = (measured.parent * math.exp(side * measured.margin) for side in (-1, 1))
    better = high < 1 if metric.sign < 0 else low > 1
    worse = low > 1 if metric.sign < 0 else high < 1
    verdict = "better" if better else "worse" if worse else "within the noise; more pairs tell more"
    extreme = min if metric.sign < 0 else max
    best = extreme(measurement.values["draft"]) / extreme(measurement.values["parent"])
    lines.append(f"Draft / {parent}: {measured.parent:.3f} ({low:.3f} to {high:.3f}, 95 %): {verdict}.")
    lines.append(f"That is the mean of the pairs' ratios; the ratio of the best values is {best:.3f}.")
    lines.append(f"Draft / seed: {measured.seed:.3f}. It took {measured.seconds:.1f} s.")
    return "\n".join(lines)


def judged(background: Background, evaluation: Evaluation, evidence: Evidence, room: int) -> str:
    """What came of an evaluation, as a brief would tell of a parent's."""
    output = "" if evaluation.ok or evidence.unshown else evidence.stderr.decode(errors="replace")
    log = "" if evidence.unshown else evidence.log
    known = replace(background, evaluation=evaluation, feedback=evidence.feedback, log=log)
    sections: list[tuple[str, Callable[[], str]]] = [
        ("Scores of the draft (this candidate)", lambda: digest.scores(known)),
        ("Cases, the worst first", lambda: digest.cases(known)),
        ("What the evaluator said of cases", lambda: digest.feedback(known, room // 4)),
        ("What the evaluator said", lambda: digest.output(log, room // 4)),
        ("What the draft wrote to stderr", lambda: digest.output(output, room // 4)),
    ]
    told = ((heading, text()) for heading, text in sections)
    parts = [f"{heading}:\n{text}" for heading, text in told if text.strip()]
    return "\n\n".join(["The draft is valid.", *parts] if evaluation.ok else parts)
