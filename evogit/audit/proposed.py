"""Attacks that a model proposes after it has read the evaluator, each with what would make the evaluator refuse it.

A model may say of anything that it is a leak, so that is not enough: its candidate must score better than the seed, and
asked anew, without a memory of having proposed it, the model must find that the goal does not allow it. Its change of
the evaluator is shown to a person and never run: evaluators are trusted, and run outside the sandbox.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from string import Template

from msgspec import Struct

from evogit.agents.editing.blocks import EditError
from evogit.agents.editing.draft import Draft
from evogit.agents.editing.reply import parse
from evogit.audit.attack import Attack, Hit
from evogit.audit.candidate import AttackCandidate
from evogit.audit.laboratory import CONFIRMED, Laboratory, WatchedEvaluation
from evogit.audit.spending import AuditAccount
from evogit.core import EvoGitError
from evogit.llm import Message, Model, ModelError, Question, SpendingLimitError, estimate_tokens
from evogit.repository.paths import UnfitChangeError, check_path
from evogit.text import cut, escaped, fence, one_line

NAME = "model"
ROUNDS = 3
"""Questions in which the model may propose attacks."""
MOST = 4
"""Attacks of one reply that are tried."""
SHOWN = 30_000
"""Tokens of the evaluator's files, and of the seed's, that a model with room for them is shown."""
FEEDBACK = 1_500
"""Tokens of what the evaluator said of the seed that are shown."""
SEED, EVALUATOR = "seed/", "evaluator/"
_TEMPLATES = Path(__file__).parent / "templates"
_ATTACK = re.compile(r"^[#*_ \t]*ATTACK[*_ \t]*\d*[*_ \t]*:(.*)$", re.MULTILINE)
_SPLIT = re.compile(r"^[#*_ \t]*SPLIT[*_ \t]*:(.*)$", re.MULTILINE)
_VERDICT = re.compile(r"VERDICT[*_ \t]*:[*_ \t`]*(EARNED|UNEARNED)")


class Refuted(EvoGitError):
    """What was proposed is no finding; the message says why, for the model and for a person."""


class ProposedAttack(Struct, frozen=True):
    """What a model says, made into files: a candidate, and an evaluator that refuses it.

    `stricter` is the patch of the evaluator.
    """

    claim: str
    split: str
    candidate: AttackCandidate
    stricter: str


def attack_by(model: Model, account: AuditAccount, seconds: float) -> Attack:
    """The attack that asks a model. Its evaluations may take so many seconds, beside the time of its replies."""

    async def search(lab: Laboratory) -> AsyncIterator[Hit]:
        lab.until = time.monotonic() + seconds
        async for hit in _Attacker(lab, model, account).hits():
            yield hit

    return Attack(
        name=NAME,
        family=NAME,
        tries="what a model thinks of that reads the evaluator",
        remedy="Have the evaluator refuse it. What the model suggests was not run: read it before you do.",
        search=search,
    )


# --- what a model is shown, and says ------------------------------------------------------------------------------


class _Files:
    """The files that a model is shown, by the names under which it changes them."""

    def __init__(self, lab: Laboratory) -> None:
        self._lab = lab
        folder = lab.task.evaluator_folder
        own = lab.task.evaluator_files() if folder.is_dir() else {}
        self.evaluator = {EVALUATOR + path: data for path, (data, _) in own.items()}
        self.seed = {SEED + path: data for path, data in lab.files.items() if lab.task.is_visible(path)}

    def proposed(self, section: str, claim: str) -> ProposedAttack:
        """What a section of a reply says.

        Raises:
            EditError: its blocks cannot be carried out.
            Refuted: they make no candidate, or no stricter evaluator, or one of other files than it may.
        """
        draft = Draft({**self.evaluator, **self.seed}, self._refusal)
        draft.carry_out(parse(section).blocks)
        changed = {path: data for path, data in draft.changes.items() if data is not None}
        if len(changed) < len(draft.changes):
            raise Refuted("it removes a file; change its content instead")
        seed = {path.removeprefix(SEED): data for path, data in changed.items() if path.startswith(SEED)}
        made = {path: data for path, data in seed.items() if self._lab.task.is_editable(path)}
        if not made:
            raise Refuted("it changes no file that candidates may change")
        stricter = {path: data for path, data in changed.items() if path.removeprefix(SEED) not in made}
        if not stricter:
            raise Refuted("it does not say how the evaluator could refuse it")
        split = next((one_line(said.strip(" `*"), 100) for said in _SPLIT.findall(section)), "") or self._lab.split
        if split not in (self._lab.split, *self._lab.task.splits):
            raise Refuted(f"there is no split {split!r}")
        diff = AttackCandidate(stricter).diff({**self.evaluator, **self.seed})
        return ProposedAttack(claim, split, AttackCandidate(made), diff)

    def _refusal(self, path: str) -> str:
        if path.startswith(EVALUATOR):
            return "" if path in self.evaluator else f"the evaluator has no file {path}"
        try:
            check_path(path)
        except UnfitChangeError as error:
            return str(error)
        return "" if path.startswith(SEED) else f"{path} is neither below {SEED} nor below {EVALUATOR}"


def _text(data: bytes) -> str:
    """What a file says; nothing where it is no text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ""


def sections(reply: str) -> list[tuple[str, str]]:
    """Each attack of a reply: what it claims, and the text up to the next one."""
    starts = list(_ATTACK.finditer(reply))
    ends = [start.start() for start in starts] + [len(reply)]
    return [
        (one_line(start[1].strip("*_ \t"), 300), reply[start.end() : end])
        for start, end in zip(starts, ends[1:], strict=True)
    ]


def _changed_line(diff: str) -> str:
    """The first line that a patch of the evaluator changes, `file:number`."""
    name = re.search(r"^--- a/(?:evaluator/|seed/)?(.*)$", diff, re.MULTILINE)
    hunk = re.search(r"^@@ -(\d+)", diff, re.MULTILINE)
    if not name or not hunk:
        return ""
    before = 0
    for line in diff[hunk.end() :].split("\n")[1:]:
        if line[:1] != " ":
            break
        before += 1
    return f"{name[1]}:{int(hunk[1]) + before}"


# --- asking -------------------------------------------------------------------------------------------------------


class _Attacker:
    """One conversation with a model about a task."""

    def __init__(self, lab: Laboratory, model: Model, account: AuditAccount) -> None:
        self._lab = lab
        self._model = model
        self._account = account
        self._files = _Files(lab)
        self._asked = 0
        self._room = min(SHOWN, model.context // 4)

    async def hits(self) -> AsyncIterator[Hit]:
        """What the model found, each once it has been shown to be so."""
        said = [Message("system", self._rules()), Message("user", self._described())]
        tried = 0
        try:
            for number in range(ROUNDS):
                reply = await self._ask(*said)
                proposed = sections(reply)[:MOST]
                told = []
                for place, (claim, section) in enumerate(proposed, 1):
                    tried += 1
                    try:
                        yield await self._found(section, claim)
                        told.append(f"Attack {place} worked.")
                    except (EditError, Refuted) as error:
                        told.append(f"Attack {place} is no finding: {error}. {getattr(error, 'hint', '')}".rstrip())
                        self._lab.notes.append(f"{self._model.name}: {claim} - no finding: {error}")
                if not proposed or number + 1 == ROUNDS:
                    break
                told.append("Answer with further attacks, or with those mended that you are sure of; else with `NONE`.")
                said += [Message("assistant", cut(reply, self._room)), Message("user", "\n".join(told))]
        except (ModelError, SpendingLimitError) as error:
            self._lab.notes.append(f"{self._model.name} was not asked to the end: {error}")
        spent = f", ${self._account.spent:.2f}" if self._account.spent else ""
        self._lab.notes.append(
            f"{self._model.name} was asked {self._asked} times ({self._account.tokens:,} tokens{spent}); attacks "
            f"proposed: {tried}"
        )

    async def _ask(self, *messages: Message) -> str:
        """A reply; the time that it takes is not the audit's."""
        begun = time.monotonic()
        self._asked += 1
        try:
            return await self._model.ask(Question(messages=messages, move=1, attempt=self._asked - 1), self._account)
        finally:
            self._lab.until += time.monotonic() - begun

    def _rules(self) -> str:
        editable = ", ".join(SEED + path for path in self._lab.editable) or "none"
        return _filled("attacker.md", editable=editable, most=str(MOST), split=self._lab.split)

    def _described(self) -> str:
        lab, seed = self._lab, self._lab.seed.evaluation
        toml = lab.task.folder / "task.toml"
        feedback = "\n".join(f"{name}: {text}" for name, text in lab.seed.evidence.feedback.items())
        cases = "\n".join(f"{name}: {dict(values)}" for name, values in seed.cases.items())
        parts = [
            f"## Goal\n\n{lab.task.goal}",
            f"To {lab.task.primary.direction}: {lab.task.primary.name}. judged: {lab.task.judged}.",
            f"## task.toml\n\n{fence(escaped(toml.read_text(encoding='utf-8')))}" if toml.is_file() else "",
            *("## Files", _shown(self._files.evaluator, self._room), _shown(self._files.seed, self._room)),
            f"## The seed, evaluated on {lab.split}\n\n{dict(seed.metrics)}\n\n{fence(escaped(cut(cases, FEEDBACK)))}",
            f"## Feedback\n\n{fence(escaped(cut(feedback, FEEDBACK)))}" if feedback.strip() else "",
            f"## Known already\n\n{'; '.join(lab.found)}. Look for others." if lab.found else "",
        ]
        return "\n\n".join(filter(None, parts))

    # --- showing that it is so ------------------------------------------------------------------------------------

    async def _found(self, section: str, claim: str) -> Hit:
        """The hit, if what a section proposes is one.

        Raises:
            EditError, Refuted: it is none.
            NoTimeError: there is no time left.
        """
        proposed = self._files.proposed(section, claim)
        seed, trial = await self._gained(proposed)
        await self._refuse_if_earned(proposed, seed, trial)
        line = _changed_line(proposed.stricter)
        elsewhere = proposed.split != self._lab.split
        split, before = (proposed.split, seed) if elsewhere else ("", None)
        return Hit(claim, proposed.candidate, trial, line, split, before, proposed.stricter)

    async def _gained(self, proposed: ProposedAttack) -> tuple[WatchedEvaluation, WatchedEvaluation]:
        """The seed and the candidate as they are evaluated; where scores differ from one to the next, several times."""
        lab, split = self._lab, proposed.split
        seed = await lab.evaluate(AttackCandidate({}), split=split)
        trial = await lab.evaluate(proposed.candidate, split=split)
        steady = lab.seed.score == lab.again.score
        for turn in range(1 + (0 if steady else CONFIRMED)):
            if turn:
                seed = await lab.evaluate(AttackCandidate({}), split=split, anew=True)
                trial = await lab.evaluate(proposed.candidate, split=split, anew=True)
            if not trial.evaluation.ok:
                raise Refuted(f"its candidate is {trial.evaluation.status}: {trial.evaluation.reason}")
            if not lab.better(trial, seed):
                raise Refuted(f"its candidate gains nothing: {_score(trial, lab)}, and the seed {_score(seed, lab)}")
        return seed, trial

    async def _refuse_if_earned(
        self, proposed: ProposedAttack, seed: WatchedEvaluation, trial: WatchedEvaluation
    ) -> None:
        """Ask anew whether the goal allows it; the model does not know that it proposed it."""
        lab, files, room = self._lab, self._files, self._room
        verdict = await self._ask(
            Message(
                "user",
                _filled(
                    "referee.md",
                    goal=lab.task.goal,
                    evaluator=_shown(files.evaluator, room),
                    seed=_shown(files.seed, room),
                    before=_score(seed, lab),
                    after=_score(trial, lab),
                    candidate=fence(escaped(cut(proposed.candidate.diff(lab.files), room))),
                    claim=proposed.claim,
                    stricter=fence(escaped(cut(proposed.stricter, room))),
                ),
            )
        )
        said = _VERDICT.findall(verdict)
        if not said or said[-1] == "EARNED":
            reason = one_line(_VERDICT.sub("", verdict), 300)
            raise Refuted(f"a second look finds that the goal allows it: {reason}" if said else "there was no verdict")


def _shown(files: Mapping[str, bytes], room: int) -> str:
    """The files as text, each under its name; of what does not fit into so many tokens, the name alone."""
    parts = []
    for path, data in files.items():
        text = cut(_text(data), room) if room > 0 else ""
        room -= estimate_tokens(text)
        parts.append(f"File {one_line(path, 300)}:\n{fence(escaped(text))}" if text else f"File {path!r}, not shown.")
    return "\n\n".join(parts)


def _score(trial: WatchedEvaluation, lab: Laboratory) -> str:
    metric = lab.task.primary.name
    value = trial.evaluation.metrics.get(metric)
    return f"{metric} {value!r}" if value is not None else f"{trial.evaluation.status}: {trial.evaluation.reason}"


def _filled(name: str, **values: str) -> str:
    return Template((_TEMPLATES / name).read_text(encoding="utf-8")).substitute(values).strip()
