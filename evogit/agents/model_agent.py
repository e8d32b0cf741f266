"""What agents that ask models have in common: a choice among models, and a look back when nothing helps."""

from __future__ import annotations

import random

from evogit.agents import Advice, Agent, Brief, NoUsableChangeError
from evogit.agents.bandit import choose
from evogit.agents.briefs import briefing
from evogit.llm import Message, Model, ModelError, Question, RunEndsError, SpendingLimitError
from evogit.repository.evidence import PROMPT, REPLY, kept_text, numbered
from evogit.text import cut

LONGEST = 300  # tokens of a tactic; what a model says beyond is cut off


class ModelAgent(Agent):
    """Asks a model, of several the one that gains most for its money."""

    def __init__(self, *models: Model) -> None:
        self._models = {model.name: model for model in models}

    def _chosen(self, brief: Brief, rng: random.Random) -> Model:
        return self._models[choose(list(self._models), brief.merits, rng)]

    async def advise(self, brief: Brief, rng: random.Random) -> Advice:
        """Have a model say what to try, after a look at the brief.

        Raises ConfigError: a template of the task is wrong; CredentialError: the model can never be asked;
        NoUsableChangeError: it cannot be asked now, or says nothing.
        """
        if brief.background is None or brief.account is None:
            raise NoUsableChangeError("expected a brief with a background and an account, which advice needs")
        model, background = self._chosen(brief, rng), brief.background()
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
