"""The agent that asks a model once: a brief goes out, edits of several files come back, all of which must fit.

Where not all code fits into the brief, the model may ask once for more of it before it answers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from evogit.agents import Background, Brief, NoUsableChangeError, Proposal
from evogit.agents.briefs import briefing
from evogit.agents.briefs.briefing import direction
from evogit.agents.editing.blocks import EditError
from evogit.agents.editing.calls import ReadLines, only_reads, read
from evogit.agents.editing.draft import Draft, proposal_of
from evogit.agents.editing.reply import EditReply, parse, reason_of
from evogit.agents.model_agent import ModelAgent
from evogit.llm import Account, Message, Model, ModelError, Question, RunEndsError, SpendingLimitError, estimate_tokens
from evogit.repository.evidence import PROMPT, REPLY, numbered
from evogit.text import cut, lines_of, one_line

KEPT = 50_000  # tokens of a reply that are kept as evidence
MOST_READ, LEAST_READ = 4_000, 100  # tokens of all that a model asked to READ, and of one file of it even then

ENOUGH = "Answer now with your change, as you were told; nothing more can be read."
"""What a model is told once it has read."""


class Editor(ModelAgent):
    """Asks a model, of several the one that gains most for its money; an unusable reply gets one try to repair it."""

    kind = "editor"

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Have the model change the brief's parent."""
        if brief.background is None or brief.account is None:
            raise NoUsableChangeError("expected a brief with a background and an account, which an editor needs")
        model = self._chosen(brief, rng)
        background = brief.background()
        if brief.claims and (place := direction(brief, background)):
            brief.claims.make(place)
        talk = _Talk(model, brief, background, brief.account)
        reply = await talk.ask()
        if reads := only_reads(reply):
            reply = await talk.show(reply, reads)
        try:
            return talk.proposal(reply)
        except EditError as error:
            reply = await talk.repair(reply, error)
        try:
            return talk.proposal(reply)
        except EditError as error:
            raise NoUsableChangeError(str(error), talk.evidence) from error


class _Talk:
    """One move: questions, replies, and what is kept of them."""

    def __init__(self, model: Model, brief: Brief, background: Background, account: Account) -> None:
        self._model = model
        self._brief = brief
        self._background = background
        self._account = account
        self._written = briefing.write(brief, background, model.context)
        self._longest = model.context // 8
        self._asked = 0
        self._said = self._written.messages
        self.evidence: dict[str, bytes] = {}

    async def ask(self, *more: Message) -> str:
        """The reply to the brief and all that was said since, at last `more`."""
        self._said += more
        new = more or self._said
        self._keep(PROMPT, "\n\n".join(message.content for message in new if message.role != "assistant"))
        question = Question(messages=self._said, move=self._brief.move, attempt=self._asked)
        try:
            reply = await self._model.ask(question, self._account)
        except (ModelError, RunEndsError, SpendingLimitError) as error:
            raise NoUsableChangeError(str(error), self.evidence) from error
        self._keep(REPLY, cut(reply, KEPT))
        self._asked += 1
        return reply

    async def show(self, reply: str, reads: Sequence[ReadLines]) -> str:
        """Another reply, once the model has seen what it asked to READ; what cannot be read is told instead."""
        parts, room = list[str](), min(MOST_READ, self._longest)
        for call in reads:
            try:
                content = self._brief.files.get(call.path)
                text = lines_of(self._background.read(call.path) if content is None else content)
                if text is None:
                    parts.append(f"{one_line(call.path, 300)} is not UTF-8 text.")
                else:
                    parts.append(read(call, text, max(room, LEAST_READ)))
            except KeyError:
                parts.append(f"There is no file {one_line(call.path, 300)!r}.")
            except EditError as error:
                parts.append(f"READ could not be done: {error}.")
            room -= estimate_tokens(parts[-1])
        return await self.ask(
            Message("assistant", cut(reply, self._longest)), Message("user", "\n\n".join([*parts, ENOUGH]))
        )

    async def repair(self, reply: str, error: EditError) -> str:
        """Another reply, once the model knows what was wrong with the first one."""
        wrong = briefing.repair(str(error), error.hint, self._background)
        try:
            return await self.ask(Message("assistant", cut(reply, self._longest)), Message("user", wrong))
        except NoUsableChangeError as failed:
            raise NoUsableChangeError(f"{error}; asked again: {failed}", self.evidence) from failed

    def _keep(self, name: str, text: str) -> None:
        self.evidence[numbered(name, self._asked + 1)] = text.encode(errors="replace")

    def proposal(self, reply: str) -> Proposal:
        """The change that a reply describes. Raises EditError: it cannot be carried out as a whole."""
        read: EditReply = parse(reply)
        draft = Draft(self._brief.files, self._background.refusal)
        draft.take(read.blocks)
        proposal = Proposal(
            changes=draft.changes,
            title=read.title,
            reason=reason_of(reply),
            model=self._model.name,
            shown=self._written.shown,
            evidence=self.evidence,
        )
        return proposal_of(draft, self._brief, self._background, proposal)
