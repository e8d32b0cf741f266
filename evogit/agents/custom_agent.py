"""A person's own agent, from a file of theirs: what goes wrong in it costs the move and is said in a sentence."""

from __future__ import annotations

import asyncio
import inspect
import random
import re
import traceback
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from evogit.agents import Agent, Brief, NoUsableChangeError, Proposal
from evogit.config.custom_classes import load
from evogit.core import ConfigError, UsageError
from evogit.history.counts import EXTENDED, MIRRORED
from evogit.llm import ModelError, RunEndsError, SpendingLimitError
from evogit.repository import EXECUTABLE, FILE
from evogit.repository.evidence import failure
from evogit.text import one_line

LOST = (NoUsableChangeError, ModelError, RunEndsError, SpendingLimitError)
"""Errors with which an agent says itself that a move came to nothing."""

REASON = 300  # characters of what went wrong that are told; all of it is kept as evidence
LONGEST_NAME = 100  # characters of the name of a strategy or a model


class OwnAgent(Agent):
    """The agent that `FILE.py:Name` names, its class called without arguments, once for each agent.

    Such a file needs no more than this:

        from evogit import Brief, NoUsableChangeError, Proposal

        class Doubler:
            async def propose(self, brief: Brief, rng) -> Proposal:
                path = rng.choice(sorted(brief.files))
                lines = brief.files[path].splitlines(keepends=True)
                if not lines:
                    raise NoUsableChangeError(f"{path} is empty")
                at = rng.randrange(len(lines))
                lines.insert(at, lines[at])
                return Proposal(changes={path: b"".join(lines)}, title=f"double line {at + 1} of {path}")
    """

    def __init__(self, text: str) -> None:
        self.kind = text
        self._file = str(Path(text.rpartition(":")[0]).resolve())
        self._name = text.rpartition(":")[2]
        made = load(text)
        try:
            self._agent: Agent = made()
        except (Exception, SystemExit) as error:
            raise ConfigError(f"the agent {text} cannot be made{self._place(error)}: {_said(error)}") from error
        if not inspect.iscoroutinefunction(getattr(self._agent, "propose", None)):
            raise UsageError(f"expected {text} to be an agent with `async def propose(self, brief, rng)`")

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """What the person's agent proposes, if it can be read; without a strategy its own name is one.

        Raises NoUsableChangeError: it has nothing to propose, it fails, or what it returns is not a proposal.
        """
        try:
            proposal = await self._agent.propose(brief, rng)
        except LOST as error:
            told = getattr(error, "evidence", {})
            raise NoUsableChangeError(_line(error), told if _is_evidence(told) else {}) from error
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                raise
            raise self._lost(error) from error
        except (Exception, SystemExit) as error:
            raise self._lost(error) from error
        if odd := _odd(proposal):
            raise NoUsableChangeError(f"expected propose of {self.kind} to return a Proposal {odd}")
        return replace(proposal, strategy=proposal.strategy or self._name)

    def _lost(self, error: BaseException) -> NoUsableChangeError:
        """The move is lost, by a fault in the person's file."""
        return NoUsableChangeError(f"the agent {self.kind} failed{self._place(error)}: {_said(error)}", failure(error))

    def _place(self, error: BaseException) -> str:
        """Which line of the person's file failed, as far as one did."""
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == self._file]
        return f", line {lines[-1]}" if lines else ""


def _is_being_cancelled() -> bool:
    """Whether the engine ends this agent, and not something that the agent itself waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _line(error: BaseException) -> str:
    return one_line(str(error), REASON)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {_line(error)}".rstrip(": ")


def _odd(proposal: object) -> str:
    """What is wrong with a proposal, with what came; empty where it can be carried out."""
    if not isinstance(proposal, Proposal):
        return f"with its changes, got {proposal!r:.200}"
    wrong = [
        f"whose {name} {should}, got {getattr(proposal, name)!r:.200}"
        for name, should, holds in (
            ("changes", "are path -> bytes, or None to delete it", _is_changes(proposal.changes)),
            ("title", "is a text", isinstance(proposal.title, str)),
            ("strategy", "is a word or some joined by +", _is_name(proposal.strategy)),
            ("strategy", "is none of the engine's", proposal.strategy not in (EXTENDED, MIRRORED)),
            ("modes", f"are path -> 0o{FILE:o} or 0o{EXECUTABLE:o}", _is_modes(proposal.modes)),
            ("model", "is a name", _is_name(proposal.model)),
            ("evidence", "is bytes by names of files such as notes.md", _is_evidence(proposal.evidence)),
        )
        if not holds
    ]
    return wrong[0] if wrong else ""


def _is_changes(found: object) -> bool:
    return isinstance(found, Mapping) and all(
        isinstance(path, str) and (content is None or isinstance(content, bytes)) for path, content in found.items()
    )


def _is_name(found: object) -> bool:
    return isinstance(found, str) and found.isprintable() and len(found) <= LONGEST_NAME


def _is_modes(found: object) -> bool:
    return isinstance(found, Mapping) and all(
        isinstance(path, str) and mode in (FILE, EXECUTABLE) for path, mode in found.items()
    )


def _is_evidence(found: object) -> bool:
    return isinstance(found, Mapping) and all(
        isinstance(name, str) and re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,99}", name) and isinstance(content, bytes)
        for name, content in found.items()
    )
