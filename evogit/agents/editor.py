"""The agent that asks a model once: a brief goes out, edits of several files come back, all of which must fit.

Where not all code fits into the brief, the model may ask once for more of it before it answers. `PlainLoop` is the
control: the same reply, asked for with nothing but the best program, its score and the last failure.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress

from evogit.agents import Background, Brief, NoUsableChangeError, Proposal
from evogit.agents.briefs import briefing
from evogit.agents.briefs.bodies import Mentions, part_of
from evogit.agents.briefs.briefing import READ_SHARE, Written, direction
from evogit.agents.briefs.excerpt import MAX_LIST_TOKENS, listing
from evogit.agents.editing.blocks import EditError
from evogit.agents.editing.calls import List, ReadLines, only_reads, read
from evogit.agents.editing.draft import Draft, proposal_of
from evogit.agents.editing.reply import EditReply, idea_in, parse, reason_of
from evogit.agents.model_agent import ModelAgent
from evogit.llm import Account, Message, Model, ModelError, Question, RunEndsError, SpendingLimitError, estimate_tokens
from evogit.repository.evidence import PROMPT, REPLY, numbered
from evogit.text import cut, lines_of, one_line

KEPT = 50_000  # tokens of a reply that are kept as evidence
MIN_READ_TOKENS = 100  # of each place that a model asked to READ
MAX_LISTS = 2  # replies that only LIST, before the one that may READ

ENOUGH = "Answer now with your change, as you were told; nothing more can be read."
"""What a model is told once it has read."""


WriteBrief = Callable[[Brief, Background, int], Written]


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
        talk = Talk(model, brief, background, brief.account)
        reply = await talk.ask()
        for turn in range(MAX_LISTS + 1):
            if not (looks := only_reads(reply)):
                break
            reads = any(isinstance(look, ReadLines) for look in looks)
            reply = await talk.show(reply, looks, last=reads or turn == MAX_LISTS)
            if reads:
                break
        try:
            return talk.proposal(reply)
        except EditError as error:
            reply = await talk.repair(reply, error)
        try:
            return talk.proposal(reply)
        except EditError as error:
            raise NoUsableChangeError(str(error), talk.evidence, idea_in(reply)) from error


class PlainLoop(ModelAgent):
    """Asks a model once, in a fresh context; it answers as an editor does, and an unusable reply is a lost call."""

    kind = "plain-loop"

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Have the model change the brief's parent."""
        if brief.background is None or brief.account is None or brief.conflicts:
            raise NoUsableChangeError("expected a brief with a background, an account and no merge to settle")
        talk = Talk(self._chosen(brief, rng), brief, brief.background(), brief.account, briefing.write_plain)
        reply = await talk.ask()
        try:
            return talk.proposal(reply)
        except EditError as error:
            raise NoUsableChangeError(str(error), talk.evidence) from error


class Talk:
    """One move: questions, replies, and what is kept of them."""

    def __init__(
        self, model: Model, brief: Brief, background: Background, account: Account, write: WriteBrief = briefing.write
    ) -> None:
        self._model = model
        self._brief = brief
        self._background = background
        self._account = account
        self._written = write(brief, background, model.context)
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

    async def show(self, reply: str, looks: Sequence[ReadLines | List], *, last: bool) -> str:
        """Another reply, once the model has seen what it asked for; what cannot be shown is told instead."""
        texts = {look: self._text(look) for look in looks if isinstance(look, ReadLines)}
        shares, room = dict[ReadLines | List, int](), int(READ_SHARE * self._model.context)
        smallest = sorted(texts, key=lambda look: len(self._read(look, texts[look], room)))
        for done, look in enumerate(smallest):  # what a short one leaves the others may have
            shares[look] = max(room // (len(smallest) - done), MIN_READ_TOKENS)
            room -= estimate_tokens(self._read(look, texts[look], shares[look]))
        parts = [
            self._read(look, texts[look], shares[look]) if isinstance(look, ReadLines) else self._list(look.folder)
            for look in dict.fromkeys(looks)
        ]
        said = "\n\n".join([*parts, ENOUGH if last else "Answer, or READ now."])
        return await self.ask(Message("assistant", cut(reply, self._longest)), Message("user", said))

    def _text(self, look: ReadLines) -> str | None:
        """The text to READ; None for a file that is not there, or no text."""
        with suppress(KeyError):
            content = self._brief.files.get(look.path)
            return lines_of(self._background.read(look.path) if content is None else content)
        return None

    def _read(self, look: ReadLines, text: str | None, room: int) -> str:
        """Return the requested lines; of a whole file that does not fit, what the brief mentions and a map."""
        if text is None:
            return f"There is no text file {one_line(look.path, 300)!r}."
        if look == ReadLines(look.path) and estimate_tokens(text) > room:
            mentions = Mentions().take([self._background.profile, self._brief.goal])
            return part_of(look.path, text, mentions, room, 1.0)
        try:
            return read(look, text, room)
        except EditError as error:
            return f"READ could not be done: {error}."

    def _list(self, folder: str) -> str:
        inside = {path: size for path, size in self._background.sizes.items() if path.startswith(folder)}
        return listing(inside, MAX_LIST_TOKENS) or f"There is no file in {one_line(folder, 100)!r}."

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
            family=read.family,
            differs=read.differs,
            reason=reason_of(reply),
            model=self._model.name,
            shown=self._written.shown,
            evidence=self.evidence,
        )
        return proposal_of(draft, self._brief, self._background, proposal)
