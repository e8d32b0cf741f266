"""How agents that ask models look back when nothing helps: one question, of which a short text comes."""

from __future__ import annotations

from evogit.agents import Advice, Brief, NoUsableChangeError
from evogit.agents.briefs import briefing
from evogit.llm import Message, Model, ModelError, Question, RunEndsError, SpendingLimitError
from evogit.repository.evidence import PROMPT, REPLY, kept_text, numbered
from evogit.text import cut

LONGEST = 300
"""Tokens of a tactic; what a model says beyond is cut off."""


async def advice_of(model: Model, brief: Brief) -> Advice:
    """What a model advises after a look at a brief.

    Raises:
        ConfigError: a template of the task is wrong.
        CredentialError: the model can never be asked.
        NoUsableChangeError: it cannot be asked now, or says nothing.
    """
    if brief.background is None or brief.account is None:
        raise NoUsableChangeError("expected a brief with a background and an account, which advice needs")
    background = brief.background()
    messages = (
        *briefing.write(brief, background, model.context).messages,
        Message("user", briefing.look_back(background)),
    )
    evidence = {numbered(PROMPT): kept_text("\n\n".join(message.content for message in messages))}
    try:
        reply = await model.ask(Question(messages=messages, move=brief.move), brief.account)
    except (ModelError, RunEndsError, SpendingLimitError) as error:
        raise NoUsableChangeError(str(error), evidence) from error
    evidence[numbered(REPLY)] = kept_text(reply)
    if not reply.strip():
        raise NoUsableChangeError("the reply is empty", evidence)
    return Advice(text=cut(reply.strip(), LONGEST), model=model.name, evidence=evidence)
