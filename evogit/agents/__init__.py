"""Agents turn a brief into a proposal; this is all that the loop knows of them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from evogit.core import Candidate, EvoGitError

Files = Mapping[str, bytes]
"""Path relative to the root of the tree, with forward slashes -> content."""


class NoUsableChangeError(EvoGitError):
    """The agent has nothing to propose this time; the message is the reason that is journalled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What an agent is told before it proposes a change.

    `files` are the editable files of the parent. `donor` and `donor_files` are another good candidate, from which
    code may be taken; both are empty when there is none.
    """

    goal: str
    parent: Candidate
    files: Files
    donor: Candidate | None = None
    donor_files: Files = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A change to the parent's files: path -> new content, or None to delete it.

    `used_donor` says that code of the donor went in, which makes it the second parent of the child.
    """

    changes: Mapping[str, bytes | None]
    title: str
    strategy: str = ""
    used_donor: bool = False


class Agent(Protocol):
    """One member of the population of authors. Every random choice comes from the generator that is passed in."""

    kind: str

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Propose a change to the brief's parent.

        Raises:
            NoUsableChangeError: when there is nothing usable to propose; the agent goes on with its next move.
        """
        ...
