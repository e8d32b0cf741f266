"""A scripted agent that builds what it was told last: the file of the finished board that the guidance names."""

from __future__ import annotations

import random
from pathlib import Path

from evogit import Agent, Brief, NoUsableChangeError, Proposal

FINISHED = Path(__file__).parent


class Builder(Agent):
    """Does one stage after the other, and nothing that nobody asked for."""

    kind = "builder"
    pauses = False

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """The named file as it is in the finished board."""
        told = brief.background().guidance if brief.background else ()
        for path in brief.files:
            finished = (FINISHED / path).read_bytes()
            if told and path in told[-1] and brief.files[path] != finished:
                return Proposal(changes={path: finished}, title=f"build {path}")
        raise NoUsableChangeError("nobody said what comes next")
