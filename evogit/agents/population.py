"""The population of authors: the agents that `--agent KIND[@MODEL][:N][+ROLE.md]` names."""

from __future__ import annotations

import asyncio
import inspect
import random
import re
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeGuard

from msgspec.structs import replace

from evogit.agents import Agent, Brief, NoUsableChangeError, Proposal
from evogit.agents.coder import Coder
from evogit.agents.editor import Editor, PlainLoop
from evogit.agents.model_agent import ModelAgent
from evogit.agents.mutation.mutator import Mutator
from evogit.config.custom_classes import is_own, load
from evogit.config.run_settings import KINDS, AgentSpec
from evogit.core import ConfigError, UsageError
from evogit.history.counts import EXTENDED, MIRRORED
from evogit.llm import Model, ModelError, RunEndsError, SpendingLimitError
from evogit.repository import EXECUTABLE, FILE
from evogit.repository.evidence import failure
from evogit.text import one_line

Models = Callable[[str], Model]
"""Finds the model that a name stands for; an empty one stands for the person's usual model."""

ProgramAgents = Callable[[AsyncExitStack, AgentSpec], Sequence[Agent]]
"""Makes agents of a coding program, which live until the stack is left."""


ASKING: Mapping[str, type[ModelAgent]] = {kind.kind: kind for kind in (Editor, Coder, PlainLoop)}
"""Kinds of agents that ask a model through EvoGit."""


def check_kind(spec: AgentSpec, programs: Collection[str] = ()) -> None:
    """Refuse agents that cannot be made. Raises ConfigError: an own class is wrong; UsageError: no such kind."""
    if is_own(spec.kind):
        OwnAgent(spec.kind)
    elif spec.kind not in KINDS and spec.kind not in programs:
        known = ", ".join((*KINDS, *programs))
        raise UsageError(f"expected agents of a kind {known} or FILE.py:Name, got {str(spec)!r}")


def no_models(name: str) -> Model:
    """For runs that were given no way to reach a model. Raises UsageError: always."""
    raise UsageError(f"expected a run with models to have {name!r}; pass `models` to Run")


def no_programs(stack: AsyncExitStack, spec: AgentSpec) -> Sequence[Agent]:
    """For runs that were given no way to use a coding program. Raises UsageError: always."""
    raise UsageError(f"expected a run with coding programs to have {spec.kind!r}; pass `programs` to Run")


def populate(
    stack: AsyncExitStack, specs: Sequence[AgentSpec | Agent], models: Models, programs: ProgramAgents = no_programs
) -> list[Agent]:
    """Make agents that live as long as `stack`, but for those that are instances already.

    Raises:
        ConfigError, SandboxError, UsageError: one cannot be made.
    """
    agents: list[Agent] = []
    for spec in specs:
        if not isinstance(spec, AgentSpec):
            agents.append(spec)
            continue
        count, made = range(spec.count), list[Agent]()
        if spec.kind == "mutator":
            made += [Mutator() for _ in count]
        elif spec.kind in ASKING:
            asked = [models(name) for name in spec.models]
            made += [ASKING[spec.kind](*asked) for _ in count]
        elif is_own(spec.kind):
            made += [OwnAgent(spec.kind) for _ in count]
        else:
            made += programs(stack, spec)
        for agent in made:
            agent.role = spec.words
        agents += made
    return agents


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
        """Return the proposal of the user's agent; its name is the strategy if it gives none."""
        try:
            proposal = await self._agent.propose(brief, rng)
        except LOST as error:
            told = getattr(error, "evidence", {})
            raise NoUsableChangeError(one_line(str(error), REASON), told if _is_evidence(told) else {}) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # the engine ends this agent, not something it waited for
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
        """Return the line of the user's file that failed, if any."""
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == self._file]
        return f", line {lines[-1]}" if lines else ""


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {one_line(str(error), REASON)}".rstrip(": ")


def _odd(proposal: object) -> str:
    """Return the problem of a proposal; empty if it can be carried out."""
    if not isinstance(proposal, Proposal):
        return f"with its changes, got {proposal!r:.200}"
    is_changes = _is_mapping(proposal.changes, lambda content: isinstance(content, bytes | None))
    is_modes = _is_mapping(proposal.modes, lambda mode: mode in (FILE, EXECUTABLE))
    wrong = [
        f"whose {name} {should}, got {getattr(proposal, name)!r:.200}"
        for name, should, holds in (
            ("changes", "are path -> bytes, or None to delete it", is_changes),
            ("title", "is a text", isinstance(proposal.title, str)),
            ("strategy", "is a word or some joined by +", _is_name(proposal.strategy)),
            ("strategy", "is none of the engine's", proposal.strategy not in (EXTENDED, MIRRORED)),
            ("modes", f"are path -> 0o{FILE:o} or 0o{EXECUTABLE:o}", is_modes),
            ("model", "is a name", _is_name(proposal.model)),
            ("evidence", "is bytes by names of files such as notes.md", _is_evidence(proposal.evidence)),
        )
        if not holds
    ]
    return wrong[0] if wrong else ""


def _is_name(found: object) -> bool:
    return isinstance(found, str) and found.isprintable() and len(found) <= LONGEST_NAME


def _is_evidence(value: object) -> bool:
    names = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
    return _is_mapping(value, lambda content: isinstance(content, bytes)) and all(map(names.fullmatch, value))


def _is_mapping(value: object, fits: Callable[[object], bool]) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a value maps texts to values that fit."""
    return isinstance(value, Mapping) and all(isinstance(key, str) and fits(each) for key, each in value.items())
