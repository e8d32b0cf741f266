"""Attacks that a model proposes after it has read the evaluator, each with what would make the evaluator refuse it.

A model may say of anything that it is a leak, so that is not enough: its candidate must score better than the seed, and
asked anew, without a memory of having proposed it, the model must find that the goal does not allow it. Its change of
the evaluator is shown to a person and never run: evaluators are trusted, and run outside the sandbox.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path, PurePosixPath
from string import Template

from msgspec import Struct
from msgspec.structs import asdict, replace

from evogit.agents.editing.blocks import EditError
from evogit.agents.editing.draft import Draft
from evogit.agents.editing.reply import parse
from evogit.audit.attack import Attack, AttackKind, Hit
from evogit.audit.auditing import MODEL
from evogit.audit.candidate import AttackCandidate
from evogit.audit.laboratory import CONFIRMED, Laboratory, NotAskedError, NoTimeError, WatchedEvaluation
from evogit.audit.spending import AuditAccount
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
    estimate_tokens,
)
from evogit.repository.paths import UnfitChangeError, check_path
from evogit.text import cut, escaped, fence, one_line

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
_ATTACK = re.compile(r"[#*_ \t]{0,9}ATTACK[*_ \t]{0,9}\d{0,3}[*_ \t]{0,9}:(.*)")
_OPENED, _CLOSED = re.compile(r"(<{5,}) ?(?:SEARCH|WRITE)\b"), re.compile(r"(>{5,}) ?[A-Z]+[ \t]*")
_SPLIT = re.compile(r"^[#*_ \t]{0,9}SPLIT[*_ \t]{0,9}:(.*)$", re.MULTILINE)
_VERDICT = re.compile(
    r"^[#*_` \t]{0,9}VERDICT[*_ \t]{0,9}:[*_` \t]{0,9}(EARNED|UNEARNED)\b.*$", re.MULTILINE | re.IGNORECASE
)
UNASKABLE = (CredentialError, ModelError, RefusingModelError, SpendingLimitError, UnknownModelError)
"""Errors of a question."""


class RefutedError(EvoGitError):
    """What was proposed is no finding; the message says why, for the model and for a person."""


class ProposedAttack(Struct, frozen=True):
    """What a model says, made into files: a candidate, and an evaluator that refuses it.

    `stricter` is the patch of the evaluator.
    """

    claim: str
    split: str
    candidate: AttackCandidate
    stricter: str


BY_MODEL = AttackKind(
    name=MODEL,
    family=MODEL,
    tries="what a model thinks of that reads the evaluator (--model)",
    remedy="Have the evaluator refuse it. What the model suggests was not run: read it before you do.",
)


def attack_by(model: Model, account: AuditAccount, seconds: float) -> Attack:
    """The attack that asks a model. Its evaluations may take so many seconds, beside the time of its replies."""

    async def search(lab: Laboratory) -> AsyncIterator[Hit]:
        lab.until = time.monotonic() + seconds
        async for hit in _Attacker(lab, model, account, seconds / 5).hits():
            yield hit

    return Attack(**asdict(BY_MODEL), search=search)


# --- what a model is shown, and says ------------------------------------------------------------------------------


class _Files:
    """The files that a model is shown, by the names under which it changes them."""

    def __init__(self, lab: Laboratory) -> None:
        self._lab = lab
        folder = lab.task.evaluator_folder
        own = lab.task.evaluator_files() if folder.is_dir() else {}
        kept = (path for path in own if not is_secret_name(path))
        self.evaluator = {EVALUATOR + path: own[path][0] for path in kept}
        self.seed = {SEED + path: data for path, data in lab.files.items() if lab.task.is_visible(path)}

    def proposed(self, section: str, claim: str) -> ProposedAttack:
        """What a section of a reply says.

        Raises:
            EditError: its blocks cannot be carried out.
            RefutedError: they make no candidate, or do not say how the evaluator could refuse it.
        """
        draft = Draft({**self.evaluator, **self.seed}, self._refusal)
        draft.carry_out(parse(section).blocks)
        changed = {path: data for path, data in draft.changes.items() if data is not None}
        if len(changed) < len(draft.changes):
            raise RefutedError("it removes a file; change its content instead")
        made = {path.removeprefix(SEED): data for path, data in changed.items() if self._is_candidate(path)}
        if not made:
            raise RefutedError("it changes no file that candidates may change")
        files = {*self._lab.files, *made}
        if both := sorted(files & {str(folder) for path in files for folder in PurePosixPath(path).parents}):
            raise RefutedError(f"{both[0]!r} would be a file and a folder")
        stricter = {path: data for path, data in changed.items() if not self._is_candidate(path)}
        if not stricter:
            raise RefutedError("it does not say how the evaluator could refuse it")
        split = next((one_line(said.strip(" `*"), 100) for said in _SPLIT.findall(section)), "") or self._lab.split
        if split not in (self._lab.split, *self._lab.task.splits):
            raise RefutedError(f"there is no split {split!r}")
        diff = AttackCandidate(stricter).diff({**self.evaluator, **self.seed})
        return ProposedAttack(claim, split, AttackCandidate(made), diff)

    def _refusal(self, path: str) -> str:
        if path.startswith(EVALUATOR):
            return "" if path in self.evaluator else f"the evaluator has no file {path}"
        try:
            check_path(path)
        except UnfitChangeError as error:
            return str(error)
        if not path.startswith(SEED):
            return f"{path} is neither below {SEED} nor below {EVALUATOR}"
        return "" if path in self.seed or self._is_candidate(path) else f"candidates may not add {path}"

    def _is_candidate(self, path: str) -> bool:
        return path.startswith(SEED) and self._lab.task.is_editable(path.removeprefix(SEED))


def _text(data: bytes) -> str:
    """What a file says; nothing where it is no text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ""


def sections(reply: str) -> list[tuple[str, str]]:
    """Each attack of a reply: what it claims, and the text up to the next one; blocks may hold any text."""
    found: list[tuple[str, list[str]]] = []
    within = 0
    for line in reply.splitlines():
        if within:
            closed = _CLOSED.fullmatch(line)
            within = 0 if closed and len(closed[1]) == within else within
        elif opened := _OPENED.match(line):
            within = len(opened[1])
        elif begun := _ATTACK.fullmatch(line):
            found.append((one_line(begun[1].strip("*_ \t"), 300), []))
            continue
        if found:
            found[-1][1].append(line)
    return [(claim, "\n".join(lines)) for claim, lines in found]


def _changed_line(diff: str) -> str:
    """The first line that a patch of the evaluator changes, `file:number`."""
    name = re.search(r"^--- a/evaluator/(.*)$", diff, re.MULTILINE)
    hunk = re.compile(r"^@@ -(\d+)", re.MULTILINE).search(diff, name.end()) if name else None
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

    def __init__(self, lab: Laboratory, model: Model, account: AuditAccount, longest: float) -> None:
        self._lab = lab
        self._model = model
        self._account = account
        self._files = _Files(lab)
        seed = {SEED + path: lab.files[path] for path in lab.task.secret if path in lab.files}
        self._redactor = Redactor({**lab.task.evaluator_secrets(), **seed})
        self._longest = max(longest, 3 * lab.seed.evaluation.cost.wall)
        self._tried: set[tuple[str, str]] = set()
        self._asked = 0
        self._room = min(SHOWN, model.context // 10)

    async def hits(self) -> AsyncIterator[Hit]:
        """What the model found, each once it has been shown to be so.

        Raises:
            NoTimeError: there is no time left.
            NotAskedError: it cannot be asked, or not any more.
        """
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
                        hit = await self._found(section, claim)
                    except (EditError, RefutedError) as error:
                        told.append(f"Attack {place} is no finding: {error}. {getattr(error, 'hint', '')}".rstrip())
                        self._lab.notes.append(f"{self._model.name}: {claim} - no finding: {error}")
                    else:
                        self._lab.say(f"{MODEL}: {claim}")
                        told.append(f"Attack {place} worked.")
                        yield hit
                if not proposed or number + 1 == ROUNDS:
                    break
                told.append("Answer with further attacks, or with those mended that you are sure of; else with `NONE`.")
                said += [Message("assistant", cut(reply, self._room)), Message("user", "\n".join(told))]
        finally:
            self._lab.notes.append(f"{self._model.name}: {self._account}; attacks proposed: {tried}")

    async def _ask(self, *messages: Message) -> str:
        """A reply; the time that it takes is not the audit's."""
        begun = time.monotonic()
        told = tuple(replace(message, content=self._redactor.text(message.content)) for message in messages)
        question = Question(messages=told, move=1, attempt=self._asked)
        self._asked += 1
        try:
            return await self._model.ask(question, self._account)
        except UNASKABLE as error:
            raise NotAskedError(f"{self._model.name} could not be asked: {error}") from error
        finally:
            self._lab.until += time.monotonic() - begun

    def _rules(self) -> str:
        editable = cut(", ".join(SEED + glob for glob in self._lab.task.editable), self._room)
        return _filled("attacker.md", editable=editable, most=str(MOST), split=self._lab.split)

    def _described(self) -> str:
        lab, seed = self._lab, self._lab.seed.evaluation
        keys = find_text(lab.task.folder, "task.toml")
        feedback = "\n".join(f"{name}: {text}" for name, text in lab.seed.evidence.feedback.items())
        cases = "\n".join(f"{name}: {dict(values)}" for name, values in seed.cases.items())
        parts = [
            f"## Goal\n\n{cut(lab.task.goal, self._room)}",
            f"To {lab.task.primary.direction}: {lab.task.primary.name}. judged: {lab.task.judged}.",
            f"## task.toml\n\n{fence(escaped(cut(keys, FEEDBACK)))}" if keys else "",
            *("## Files", _shown(self._files.evaluator, self._room), _shown(self._files.seed, self._room)),
            f"## The seed, evaluated on {lab.split}\n\n{dict(seed.metrics)}\n\n{fence(escaped(cut(cases, FEEDBACK)))}",
            f"## Feedback\n\n{fence(escaped(cut(feedback, FEEDBACK)))}" if feedback.strip() else "",
            f"## Known already\n\n{cut('; '.join(lab.found), FEEDBACK)}. Look for others." if lab.found else "",
        ]
        return "\n\n".join(filter(None, parts))

    # --- showing that it is so ------------------------------------------------------------------------------------

    async def _found(self, section: str, claim: str) -> Hit:
        """The hit, if what a section proposes is one.

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
        """The seed and the candidate as they are evaluated: in turns, where the seed's scores differ."""
        lab, split = self._lab, proposed.split
        seeds = [await lab.evaluate(AttackCandidate({}), split=split, anew=bool(turn)) for turn in range(2)]
        trials = [await lab.evaluate(proposed.candidate, split=split, total=self._longest)]
        self._refuse_unless_better(trials, seeds)
        for _ in range(CONFIRMED if lab.timed or seeds[0].score != seeds[1].score else 0):
            seeds.append(await lab.evaluate(AttackCandidate({}), split=split, anew=True))
            trials.append(await lab.evaluate(proposed.candidate, split=split, total=self._longest, anew=True))
            self._refuse_unless_better(trials, seeds)
        return seeds[0], trials[0]

    def _refuse_unless_better(self, trials: list[WatchedEvaluation], seeds: list[WatchedEvaluation]) -> None:
        """Refute a candidate of which one score is not better than each of the seed."""
        for trial in trials:
            if not trial.evaluation.ok:
                raise RefutedError(f"its candidate is {trial.evaluation.status}: {trial.evaluation.reason}")
            if behind := [seed for seed in seeds if not self._lab.better(trial, seed)]:
                scores = f"{_score(trial, self._lab)}, and the seed {_score(behind[0], self._lab)}"
                raise RefutedError(f"its candidate gains nothing: {scores}")

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
                    goal=cut(lab.task.goal, room),
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
        said = {word.upper() for word in _VERDICT.findall(verdict)}
        if len(said) != 1:
            raise RefutedError("a second look came to no verdict")
        if said == {"EARNED"}:
            reason = one_line(_VERDICT.sub("", verdict), 300)
            raise RefutedError(f"a second look finds that the goal allows it: {reason}")


def _shown(files: Mapping[str, bytes], room: int) -> str:
    """The files as text, each under its name, as far as they fit into so many tokens; then how many more there are."""
    parts = list[str]()
    for path, data in files.items():
        text = cut(_text(data), room)
        part = f"File {one_line(path, 300)}:\n{fence(escaped(text)) if text else '(no text)'}"
        room -= estimate_tokens(part)
        if room < 0 and parts:
            return "\n\n".join([*parts, f"And {len(files) - len(parts)} more files."])
        parts.append(part)
    return "\n\n".join(parts)


def _score(trial: WatchedEvaluation, lab: Laboratory) -> str:
    metric = lab.task.primary.name
    value = trial.evaluation.metrics.get(metric)
    return f"{metric} {value!r}" if value is not None else f"{trial.evaluation.status}: {trial.evaluation.reason}"


def _filled(name: str, **values: str) -> str:
    return Template((_TEMPLATES / name).read_text(encoding="utf-8")).substitute(values).strip()
