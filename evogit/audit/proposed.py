"""Attacks that a model proposes after it has read the evaluator, each with a change that would refuse it.

A model may call anything a leak. Its candidate must therefore score better than the seed; and when asked again, without
a memory of its proposal, the model must find that the goal does not allow it. Its change of the evaluator is shown to
the user and never run: evaluators are trusted, and run outside the sandbox.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from pathlib import PurePosixPath
from string import Template

from msgspec import Struct
from msgspec.structs import replace

from evogit.agents.briefs.bodies import files_text
from evogit.agents.editing.blocks import EditError
from evogit.agents.editing.draft import Draft
from evogit.agents.editing.reply import parse
from evogit.audit.attack import MODEL, Attack, Hit
from evogit.audit.candidate import SEED, AttackCandidate, template
from evogit.audit.laboratory import CONFIRMATIONS, Laboratory, NotAskedError, NoTimeError, WatchedEvaluation
from evogit.contained import find_text
from evogit.core import EvoGitError
from evogit.credentials import Redactor, is_secret_name
from evogit.llm import (
    CredentialError,
    Message,
    Model,
    ModelError,
    Question,
    RefusingModelError,
    SpendingLimitError,
    UnknownModelError,
)
from evogit.llm.command_account import CommandAccount
from evogit.repository.paths import UnfitChangeError, check_path
from evogit.text import cut, escaped, fence, one_line

MAX_ROUNDS = 3  # questions in which the model may propose attacks
MAX_ATTACKS = 4  # attacks of one reply that are tried
MAX_FILE_TOKENS = 30_000
"""The size of the evaluator's files, and of the seed's, in a question to a model with room for them."""
MAX_FEEDBACK_TOKENS = 1_500
SEED_FOLDER, EVALUATOR_FOLDER = "seed/", "evaluator/"
_ATTACK = re.compile(r"[#*_ \t]{0,9}ATTACK[*_ \t]{0,9}\d{0,3}[*_ \t]{0,9}:(.*)")
_OPENED, _CLOSED = re.compile(r"(<{5,}) ?(?:SEARCH|WRITE)\b"), re.compile(r"(>{5,}) ?[A-Z]+[ \t]*")
_SPLIT = re.compile(r"^[#*_ \t]{0,9}SPLIT[*_ \t]{0,9}:(.*)$", re.MULTILINE)
_VERDICT = re.compile(
    r"^[#*_` \t]{0,9}VERDICT[*_ \t]{0,9}:[*_` \t]{0,9}(EARNED|UNEARNED)\b.*$", re.MULTILINE | re.IGNORECASE
)
UNASKABLE = (CredentialError, ModelError, RefusingModelError, SpendingLimitError, UnknownModelError)
"""Errors of a question."""
BY_MODEL = Attack(
    name=MODEL,
    tries="what a model thinks of that reads the evaluator (--model)",
    remedy="Have the evaluator refuse it. What the model suggests was not run: read it before you do.",
)


class RefutedError(EvoGitError):
    """The proposal is not a finding; the message gives the model and the user the reason."""


class ProposedAttack(Struct, frozen=True):
    """A model's proposal as files: a candidate, and the patch of an evaluator that refuses it (`stricter`)."""

    claim: str
    split: str
    candidate: AttackCandidate
    stricter: str


def attack_by(model: Model, account: CommandAccount, seconds: float) -> Attack:
    """Return the attack that asks a model. Its evaluations may take so many seconds, in addition to its replies."""

    async def search(lab: Laboratory) -> AsyncIterator[Hit]:
        lab.until = time.monotonic() + seconds
        async for hit in _Attacker(lab, model, account, seconds / 5).hits():
            yield hit

    return replace(BY_MODEL, search=search)


# --- questions and replies ----------------------------------------------------------------------------------------


class _Files:
    """The files that a model is shown, by the names under which it changes them."""

    def __init__(self, lab: Laboratory) -> None:
        self._lab = lab
        files = lab.task.evaluator_files() if lab.task.evaluator_folder.is_dir() else {}
        self.evaluator = {EVALUATOR_FOLDER + path: files[path][0] for path in files if not is_secret_name(path)}
        self.seed = {SEED_FOLDER + path: data for path, data in lab.files.items() if lab.task.is_visible(path)}

    def proposed(self, section: str, claim: str) -> ProposedAttack:
        """Carry out the blocks of a section of a reply.

        Raises:
            EditError: its blocks cannot be carried out.
            RefutedError: they make no candidate, or do not say how the evaluator could refuse it.
        """
        draft = Draft({**self.evaluator, **self.seed}, self._refusal)
        draft.carry_out(parse(section).blocks)
        changed = {path: data for path, data in draft.changes.items() if data is not None}
        if len(changed) < len(draft.changes):
            raise RefutedError("it removes a file; change its content instead")
        made = {path.removeprefix(SEED_FOLDER): data for path, data in changed.items() if self._is_candidate(path)}
        if not made:
            raise RefutedError("it changes no file that candidates may change")
        files = {*self._lab.files, *made}
        if both := sorted(files & {str(folder) for path in files for folder in PurePosixPath(path).parents}):
            raise RefutedError(f"{both[0]!r} would be a file and a folder")
        stricter = {path: data for path, data in changed.items() if not self._is_candidate(path)}
        if not stricter:
            raise RefutedError("it does not say how the evaluator could refuse it")
        split = next((one_line(name.strip(" `*"), 100) for name in _SPLIT.findall(section)), "") or self._lab.split
        if split not in (self._lab.split, *self._lab.task.splits):
            raise RefutedError(f"there is no split {split!r}")
        diff = AttackCandidate(stricter).diff({**self.evaluator, **self.seed})
        return ProposedAttack(claim, split, AttackCandidate(made), diff)

    def _refusal(self, path: str) -> str:
        if path.startswith(EVALUATOR_FOLDER):
            return "" if path in self.evaluator else f"the evaluator has no file {path}"
        try:
            check_path(path)
        except UnfitChangeError as error:
            return str(error)
        if not path.startswith(SEED_FOLDER):
            return f"{path} is neither below {SEED_FOLDER} nor below {EVALUATOR_FOLDER}"
        return "" if path in self.seed or self._is_candidate(path) else f"candidates may not add {path}"

    def _is_candidate(self, path: str) -> bool:
        return path.startswith(SEED_FOLDER) and self._lab.task.is_editable(path.removeprefix(SEED_FOLDER))


def sections(reply: str) -> list[tuple[str, str]]:
    """Return each attack of a reply: its claim, and the text up to the next one; blocks may hold any text."""
    attacks: list[tuple[str, list[str]]] = []
    fence_length = 0
    for line in reply.splitlines():
        if fence_length:
            closed = _CLOSED.fullmatch(line)
            fence_length = 0 if closed and len(closed[1]) == fence_length else fence_length
        elif opened := _OPENED.match(line):
            fence_length = len(opened[1])
        elif begun := _ATTACK.fullmatch(line):
            attacks.append((one_line(begun[1].strip("*_ \t"), 300), []))
            continue
        if attacks:
            attacks[-1][1].append(line)
    return [(claim, "\n".join(lines)) for claim, lines in attacks]


def _changed_line(diff: str) -> str:
    """Return the first line that a patch of the evaluator changes, `file:number`."""
    name = re.search(r"^--- a/evaluator/(.*)$", diff, re.MULTILINE)
    hunk = re.compile(r"^@@ -(\d+).*\n((?: .*\n)*)", re.MULTILINE).search(diff, name.end()) if name else None
    return f"{name[1]}:{int(hunk[1]) + hunk[2].count(chr(10))}" if name and hunk else ""


def _score(trial: WatchedEvaluation, lab: Laboratory) -> str:
    metric = lab.task.primary.name
    value = trial.evaluation.metrics.get(metric)
    return f"{metric} {value!r}" if value is not None else f"{trial.evaluation.status}: {trial.evaluation.reason}"


def _filled(name: str, **values: str) -> str:
    return Template(template(name)).substitute(values).strip()


# --- a conversation -----------------------------------------------------------------------------------------------


class _Attacker:
    """One conversation with a model about a task; a candidate's evaluation may take `longest` seconds."""

    def __init__(self, lab: Laboratory, model: Model, account: CommandAccount, longest: float) -> None:
        self._lab = lab
        self._model = model
        self._account = account
        self._files = _Files(lab)
        seed = {SEED_FOLDER + path: lab.files[path] for path in lab.task.secret if path in lab.files}
        self._redactor = Redactor({**lab.task.evaluator_secrets(), **seed})
        self._longest = max(longest, 3 * lab.seed.evaluation.cost.wall)
        self._tried: set[tuple[str, str]] = set()
        self._asked = 0
        self._room = min(MAX_FILE_TOKENS, model.context // 10)

    async def hits(self) -> AsyncIterator[Hit]:
        """Yield the model's attacks that are shown to work.

        Raises:
            NoTimeError: there is no time left.
            NotAskedError: the model cannot be asked, or not any more.
        """
        lab = self._lab
        editable = cut(", ".join(SEED_FOLDER + glob for glob in lab.task.editable), self._room)
        rules = _filled("attacker.md", editable=editable, most=str(MAX_ATTACKS), split=lab.split)
        messages = [Message("system", rules), Message("user", self._described())]
        tried = 0
        try:
            for number in range(MAX_ROUNDS):
                reply = await self._ask(*messages)
                proposals = sections(reply)[:MAX_ATTACKS]
                results = []
                for place, (claim, section) in enumerate(proposals, 1):
                    tried += 1
                    try:
                        hit = await self._hit(section, claim)
                    except (EditError, RefutedError) as error:
                        results.append(f"Attack {place} is no finding: {error}. {getattr(error, 'hint', '')}".rstrip())
                        lab.notes.append(f"{self._model.name}: {claim} - no finding: {error}")
                    else:
                        lab.say(f"{MODEL}: {claim}")
                        results.append(f"Attack {place} worked.")
                        yield hit
                if not proposals or number + 1 == MAX_ROUNDS:
                    break
                results.append("Answer with more attacks, or with those corrected that you are sure of; else `NONE`.")
                messages += [Message("assistant", cut(reply, self._room)), Message("user", "\n".join(results))]
        finally:
            lab.notes.append(f"{self._model.name}: {self._account}; attacks proposed: {tried}")

    async def _ask(self, *messages: Message) -> str:
        """Return a reply; its time is not the audit's."""
        begun = time.monotonic()
        redacted = tuple(replace(message, content=self._redactor.text(message.content)) for message in messages)
        question = Question(messages=redacted, move=1, attempt=self._asked)
        self._asked += 1
        try:
            return await self._model.ask(question, self._account)
        except UNASKABLE as error:
            raise NotAskedError(f"{self._model.name} could not be asked: {error}") from error
        finally:
            self._lab.until += time.monotonic() - begun

    def _described(self) -> str:
        lab, seed = self._lab, self._lab.seed.evaluation
        keys = find_text(lab.task.folder, "task.toml")
        feedback = "\n".join(f"{name}: {text}" for name, text in lab.seed.evidence.feedback.items())
        cases = "\n".join(f"{name}: {dict(values)}" for name, values in seed.cases.items())
        texts = (keys, feedback, cases, "; ".join(lab.hits))
        keys, feedback, cases, hits = (cut(text, MAX_FEEDBACK_TOKENS) for text in texts)
        parts = [
            f"## Goal\n\n{cut(lab.task.goal, self._room)}",
            f"To {lab.task.primary.direction}: {lab.task.primary.name}. judged: {lab.task.judged}.",
            f"## task.toml\n\n{fence(escaped(keys))}" if keys else "",
            *("## Files", files_text(self._files.evaluator, self._room), files_text(self._files.seed, self._room)),
            f"## The seed, evaluated on {lab.split}\n\n{dict(seed.metrics)}\n\n{fence(escaped(cases))}",
            f"## Feedback\n\n{fence(escaped(feedback))}" if feedback.strip() else "",
            f"## Known already\n\n{hits}. Look for others." if hits else "",
        ]
        return "\n\n".join(filter(None, parts))

    async def _hit(self, section: str, claim: str) -> Hit:
        """Return the hit that a section proposes.

        Raises:
            EditError, RefutedError: it is none.
            NoTimeError: there is no time left.
            NotAskedError: the model cannot be asked for a second look.
        """
        proposed = self._files.proposed(section, claim)
        same = (proposed.split, proposed.candidate.diff(self._lab.files))
        if same in self._tried:
            raise RefutedError("it was proposed before")
        self._tried.add(same)
        try:
            seed, trial = await self._gained(proposed)
        except (NoTimeError, RefutedError):
            raise
        except EvoGitError as error:
            raise RefutedError(f"its candidate cannot be evaluated: {error}") from error
        await self._refuse_if_earned(proposed, seed, trial)
        line = _changed_line(proposed.stricter)
        elsewhere = proposed.split != self._lab.split
        split, before = (proposed.split, seed) if elsewhere else ("", None)
        return Hit(claim, proposed.candidate, trial, line, split, before, proposed.stricter)

    async def _gained(self, proposed: ProposedAttack) -> tuple[WatchedEvaluation, WatchedEvaluation]:
        """Evaluate the seed and the candidate, in turns if the seed's scores differ."""
        lab, split = self._lab, proposed.split
        seeds = [await lab.evaluate(SEED, split=split, anew=bool(turn)) for turn in range(2)]
        trials: list[WatchedEvaluation] = []
        for turn in range(1 + CONFIRMATIONS * (lab.timed or seeds[0].score != seeds[1].score)):
            if turn:
                seeds.append(await lab.evaluate(SEED, split=split, anew=True))
            trial = await lab.evaluate(proposed.candidate, split=split, total=self._longest, anew=bool(turn))
            if not trial.evaluation.ok:
                raise RefutedError(f"its candidate is {trial.evaluation.status}: {trial.evaluation.reason}")
            trials.append(trial)
            if worse := next(((a, b) for a in trials for b in seeds if not lab.better(a, b)), None):
                scores = f"{_score(worse[0], lab)}, and the seed {_score(worse[1], lab)}"
                raise RefutedError(f"its candidate gains nothing: {scores}")
        return seeds[0], trials[0]

    async def _refuse_if_earned(
        self, proposed: ProposedAttack, seed: WatchedEvaluation, trial: WatchedEvaluation
    ) -> None:
        """Ask again whether the goal allows it; the model does not know that it proposed it."""
        lab, room = self._lab, self._room
        question = _filled(
            "referee.md",
            goal=cut(lab.task.goal, room),
            evaluator=files_text(self._files.evaluator, room),
            seed=files_text(self._files.seed, room),
            before=_score(seed, lab),
            after=_score(trial, lab),
            candidate=fence(escaped(cut(proposed.candidate.diff(lab.files), room))),
            claim=proposed.claim,
            stricter=fence(escaped(cut(proposed.stricter, room))),
        )
        reply = await self._ask(Message("user", question))
        verdicts = {word.upper() for word in _VERDICT.findall(reply)}
        if len(verdicts) != 1:
            raise RefutedError("a second look came to no verdict")
        if verdicts == {"EARNED"}:
            reason = one_line(_VERDICT.sub("", reply), 300)
            raise RefutedError(f"a second look finds that the goal allows it: {reason}")
