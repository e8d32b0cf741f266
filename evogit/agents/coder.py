"""The agent with tools: it looks around, profiles, edits, measures, keeps what gains, and goes on while it does.

Its tools are blocks of plain text, so that every endpoint, script and recording serves. Messages are only ever
appended, so that prompt caches hit. Whatever ends a session, a draft that changes something is proposed, and its notes
are there for the next one.
"""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass, field

from msgspec import Struct

from evogit.agents import Background, Brief, NoUsableChangeError, Proposal, SessionNotes
from evogit.agents.briefs import briefing
from evogit.agents.briefs.digest import listed
from evogit.agents.editing.blocks import EditError
from evogit.agents.editing.calls import read_calls
from evogit.agents.editing.reply import reason_of
from evogit.agents.editing.tools import ToolResults, ToolSession
from evogit.agents.model_agent import ModelAgent, SessionAllowance
from evogit.config.run_settings import TURNS
from evogit.llm import Account, Message, Model, ModelError, Question, RunEndsError, SpendingLimitError, estimate_tokens
from evogit.repository.evidence import PROMPT, TRANSCRIPT, kept_text, numbered
from evogit.text import cut, one_line

TRIALS = 3  # evaluations in a session, beside that of what is proposed
KEPT = 200_000  # tokens of a session that are kept as evidence
MOST_HEARD = 12  # plans of others that a session is told of beside those in its brief
MIN_TURNS_FOR_NOTES = 5  # replies from which on a session that is broken off is asked for its notes
MAX_NOTES_TOKENS = 600

ASK_FOR_NOTES = """The session ends now: {why}. Write no blocks. For whoever goes on from here, in at most 200 words:
what you tried and what came of it, with numbers; what you would try next, the best first; what is not worth a try."""

ANSWER_SHARE, REPLY_SHARE = 0.1, 0.125
"""Share of what a question may have that an answer takes at most, and a reply where it is shown again."""


class CoderBounds(Struct, frozen=True, kw_only=True):
    """What one session may take: replies, tokens read and written in all, seconds, replies of no use in a row."""

    turns: int = TURNS
    tokens: int = 4_000_000
    seconds: float = 3600.0
    useless: int = 4


class Coder(ModelAgent):
    """Has a model, chosen as an editor's is, work on a draft; `trials` of it may be evaluated before it is proposed."""

    kind = "coder"

    def __init__(self, *models: Model, bounds: CoderBounds | None = None, trials: int = TRIALS) -> None:
        super().__init__(*models)
        self._bounds = bounds or CoderBounds()
        self.trials = trials

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Have the model change the brief's parent."""
        if brief.background is None or brief.account is None:
            raise NoUsableChangeError("expected a brief with a background and an account, which a coder needs")
        account = SessionAllowance(brief.account, self._bounds.tokens)
        model = self._chosen(brief, rng)
        return await _Session(model, self._bounds, brief, brief.background(), account).work()


def write(brief: Brief, background: Background, context: int, turns: int = TURNS) -> briefing.Written:
    """Return the coder's first message, in half of the room of a question; the rest is for its calls."""
    left = brief.workshop.evaluations if brief.workshop else TRIALS
    values = {"turns": str(turns), "evaluations": str(left), "room": f"{int(ANSWER_SHARE * context):,}"}
    return briefing.write(brief, background, context // 2, values)


class _EndedError(Exception):
    """The session is over; the message says why, `speaks` whether its model can still be asked for its notes."""

    def __init__(self, why: str, *, speaks: bool = False) -> None:
        super().__init__(why)
        self.speaks = speaks


@dataclass(slots=True)
class _Session:
    """One move: the conversation, the draft, and what is kept of them."""

    model: Model
    bounds: CoderBounds
    brief: Brief
    background: Background
    account: Account
    messages: list[Message] = field(default_factory=list)
    evidence: dict[str, bytes] = field(default_factory=dict)
    heard: set[str] = field(default_factory=set)

    async def work(self) -> Proposal:
        """Go on until the draft is finished or a bound is reached."""
        written = write(self.brief, self.background, self.model.context, self.bounds.turns)
        self.messages += written.messages
        self.evidence[numbered(PROMPT)] = kept_text(f"{written.rules}\n\n{written.text}")
        room = int(ANSWER_SHARE * self.model.context)
        about = (self.brief, self.background, self.account, self.model.name, self.evidence)
        tools = ToolSession(*about, room, written.shown)
        try:
            await self._converse(tools)
        except _EndedError as ended:
            await self._ask_for_notes(ended)
            try:
                return tools.proposal()
            except EditError as error:
                raise NoUsableChangeError(f"{one_line(str(ended), 500)}; {error}", self.evidence) from error
        return tools.proposal()

    async def _converse(self, tools: ToolSession) -> None:
        deadline, useless = time.monotonic() + self.bounds.seconds, 0
        for turn in range(self.bounds.turns):
            if time.monotonic() > deadline:
                raise _EndedError(f"the session took more than {self.bounds.seconds:g} s", speaks=True)
            reply = await self._ask(turn)
            answer = await self._answered(tools, reply, deadline)
            useless = 0 if answer.done else useless + 1
            text = f"{answer.text}\n\n{tools.state} Turns left: {self.bounds.turns - turn - 1}."
            news = self._news(reply)
            if judgements := tools.judgements():
                news += f"\n\n{judgements}"
            self._say(Message("user", text + news, answer.measured or bool(news)))
            if tools.finished:
                return self._note(reason_of(reply))
            if useless >= self.bounds.useless:
                raise _EndedError(f"{useless} replies in a row were unusable; the last one: {answer.text}")
        raise _EndedError(f"the session took {self.bounds.turns} turns", speaks=True)

    async def _ask_for_notes(self, ended: _EndedError) -> None:
        """Ask a session that is broken off for its notes, unless it has hardly begun or cannot be asked."""
        replies = sum(message.role == "assistant" for message in self.messages)
        broken_off = f"The session ended: {ended}."
        if not (ended.speaks and self.brief.workshop and replies >= MIN_TURNS_FOR_NOTES):
            self._say(Message("user", broken_off))
            return self._note(broken_off if self.brief.workshop and self.brief.workshop.kept else "")
        if self._size > self.model.context - MAX_NOTES_TOKENS:  # the last answer, which nothing was made of yet
            self.messages[-1] = Message("user", "These results are left out, as the conversation is full.")
        self._say(Message("user", ASK_FOR_NOTES.format(why=ended)))
        question = Question(messages=tuple(self.messages), move=self.brief.move, attempt=replies)
        try:
            reply = await self.model.ask(question, self.account)
        except (ModelError, RunEndsError, SpendingLimitError):
            return self._note(broken_off)
        self._say(Message("assistant", cut(reply, MAX_NOTES_TOKENS)))
        return self._note(reply)

    @property
    def _size(self) -> int:
        """The tokens of the conversation, about."""
        return sum(estimate_tokens(message.content) for message in self.messages)

    def _note(self, text: str) -> None:
        if self.brief.workshop and (text.strip() or self.brief.workshop.kept):
            notes = cut(text.strip(), MAX_NOTES_TOKENS)
            self.brief.workshop.close(SessionNotes(text=notes, model=self.model.name, evidence=self.evidence))

    async def _ask(self, turn: int) -> str:
        if self._size > self.model.context - MAX_NOTES_TOKENS:
            full = f"the conversation has more than the {self.model.context:,} tokens of a question"
            raise _EndedError(full, speaks=True)
        question = Question(messages=tuple(self.messages), move=self.brief.move, attempt=turn)
        try:
            reply = await self.model.ask(question, self.account)
        except (ModelError, RunEndsError, SpendingLimitError) as error:
            raise _EndedError(str(error)) from error
        self._say(Message("assistant", cut(reply, int(REPLY_SHARE * self.model.context))))
        return reply

    async def _answered(self, tools: ToolSession, reply: str, deadline: float) -> ToolResults:
        try:
            asked = read_calls(reply)
        except EditError as error:
            return ToolResults(f"Nothing was done: {one_line(str(error), 1000)}.\n{error.hint}", 0, measured=False)
        try:
            return await tools.answer(asked, deadline, reason_of(reply))
        except (RunEndsError, SpendingLimitError) as error:
            raise _EndedError(str(error)) from error

    def _news(self, reply: str) -> str:
        """Tell others what the reply says it will try; what others have said since the brief, and was not told yet."""
        claims = self.brief.claims
        if claims is None:
            return ""
        before = re.split(r"^<{7}", reply, maxsplit=1, flags=re.MULTILINE)[0]
        if plan := re.search(r"^[#*_ ]{0,9}PLAN[*_ ]{0,9}:[*_ ]{0,9}(.+)", before, re.MULTILINE):
            claims.make(plan[1])
        new = [said for said in claims.others() if said not in self.heard and said not in self.background.others]
        new = new[: MOST_HEARD - len(self.heard)]
        self.heard.update(new)
        return f"\n\nOthers are trying now, so do something else:\n{listed(new, self.model.context)}" if new else ""

    def _say(self, message: Message) -> None:
        self.messages.append(message)
        said = "".join(f"# {each.role}\n\n{each.content}\n\n" for each in self.messages[2:])
        self.evidence[numbered(TRANSCRIPT)] = kept_text(cut(said, KEPT))
