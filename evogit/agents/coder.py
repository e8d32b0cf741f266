"""The agent with tools: it looks around, tries its draft in the sandbox, has it evaluated, and proposes it at the end.

Its tools are blocks of plain text, so that every endpoint, script and recording serves. Messages are only ever
appended, so that prompt caches hit. Whatever ends a session, a draft that changes something is proposed.
"""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass, field

from msgspec import Struct

from evogit.agents import Background, Brief, NoUsableChangeError, Proposal
from evogit.agents.briefs import briefing
from evogit.agents.briefs.digest import listed
from evogit.agents.editing.blocks import EditError
from evogit.agents.editing.calls import Edits, read_calls
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

ANSWER_SHARE, REPLY_SHARE = 0.1, 0.125
"""Share of what a question may have that an answer takes at most, and a reply where it is shown again."""


class CoderBounds(Struct, frozen=True, kw_only=True):
    """What one session may take: replies, tokens read and written in all, seconds, replies of no use in a row."""

    turns: int = TURNS
    tokens: int = 1_000_000
    seconds: float = 1800.0
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
    return briefing.write(brief, background, context // 2, {"turns": str(turns), "evaluations": str(left)})


class _EndedError(Exception):
    """The session is over; the message says why."""


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
            self._say(Message("user", f"The session ended: {ended}."))
            try:
                return tools.proposal()
            except EditError as error:
                raise NoUsableChangeError(f"{one_line(str(ended), 500)}; {error}", self.evidence) from error
        return tools.proposal()

    async def _converse(self, tools: ToolSession) -> None:
        deadline, useless = time.monotonic() + self.bounds.seconds, 0
        for turn in range(self.bounds.turns):
            if time.monotonic() > deadline:
                raise _EndedError(f"the session took more than {self.bounds.seconds:g} s")
            reply = await self._ask(turn)
            answer = await self._answered(tools, reply, deadline)
            useless = 0 if answer.done else useless + 1
            text = f"{answer.text}\n\n{tools.state} Turns left: {self.bounds.turns - turn - 1}."
            news = self._news(reply)
            self._say(Message("user", text + news, answer.measured or bool(news)))
            if tools.finished:
                return
            if useless >= self.bounds.useless:
                raise _EndedError(f"{useless} replies in a row were unusable; the last one: {answer.text}")
        raise _EndedError(f"the session took {self.bounds.turns} turns")

    async def _ask(self, turn: int) -> str:
        size = sum(estimate_tokens(message.content) for message in self.messages)
        if size > self.model.context:
            raise _EndedError(f"the conversation has more than the {self.model.context:,} tokens of a question")
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
        if any(isinstance(call, Edits) for call in asked.calls) or not tools.reason:
            tools.reason = reason_of(reply) or tools.reason
        try:
            return await tools.answer(asked, deadline)
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
