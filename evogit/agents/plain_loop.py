"""The control for agents that ask models: a loop that shows the best program and its score, and remembers nothing."""

from __future__ import annotations

import random

from evogit.agents import Brief, NoUsableChangeError, Proposal
from evogit.agents.briefs.briefing import write_plain
from evogit.agents.editing.blocks import EditError
from evogit.agents.editor import Talk
from evogit.agents.model_agent import ModelAgent


class PlainLoop(ModelAgent):
    """Asks a model once, in a fresh context; it answers as an editor does, and an unusable reply is a lost call."""

    kind = "plain-loop"

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Have the model change the brief's parent."""
        if brief.background is None or brief.account is None:
            raise NoUsableChangeError("expected a brief with a background and an account, which a plain loop needs")
        if brief.conflicts:
            raise NoUsableChangeError("expected a program to change, as a plain loop settles no merges")
        talk = Talk(self._chosen(brief, rng), brief, brief.background(), brief.account, write_plain)
        reply = await talk.ask()
        try:
            return talk.proposal(reply)
        except EditError as error:
            raise NoUsableChangeError(str(error), talk.evidence) from error
