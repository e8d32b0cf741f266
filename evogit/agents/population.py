"""The population of authors: the agents that `--agent KIND[@MODEL][:N]` names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from functools import partial

from evogit.agents import Agent
from evogit.agents.coder import Coder
from evogit.agents.custom_agent import OwnAgent
from evogit.agents.editor import Editor
from evogit.agents.mutation.mutator import Mutator
from evogit.config.custom_classes import is_own
from evogit.config.run_settings import KINDS, AgentSpec
from evogit.core import UsageError
from evogit.llm import Model

Models = Callable[[str], Model]
"""Finds the model that a name stands for; an empty one stands for the person's usual model."""

ProgramAgents = Callable[[AsyncExitStack, AgentSpec], Sequence[Agent]]
"""Makes agents of a coding program, which live until the stack is left."""


def check_kind(spec: AgentSpec, programs: Collection[str] = ()) -> None:
    """Refuse agents that cannot be made, before a run begins; `programs` are the coding programs that can be.

    Raises ConfigError: a person's own class is wrong; UsageError: there is no such kind of agent, or the file or
    class is not there.
    """
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
    stack: AsyncExitStack,
    specs: Sequence[AgentSpec],
    models: Models,
    programs: ProgramAgents = no_programs,
) -> list[Agent]:
    """Make the agents, which live until `stack` is left.

    Raises ConfigError: a person's own class is wrong; SandboxError: a coding program cannot have its sandbox;
    UsageError: an agent's kind or model is not known.
    """
    makers: dict[str, Callable[[AsyncExitStack, AgentSpec], Sequence[Agent]]] = {
        "mutator": _mutators,
        "editor": partial(_asking, Editor, models),
        "coder": partial(_asking, Coder, models),
    }
    agents: list[Agent] = []
    for spec in specs:
        agents += makers.get(spec.kind, _own if is_own(spec.kind) else programs)(stack, spec)
    return agents


def _mutators(stack: AsyncExitStack, spec: AgentSpec) -> list[Agent]:
    return [Mutator() for _ in range(spec.count)]


def _asking(kind: type[Editor | Coder], models: Models, stack: AsyncExitStack, spec: AgentSpec) -> list[Agent]:
    asked = [models(name) for name in spec.models]
    return [kind(*asked) for _ in range(spec.count)]


def _own(stack: AsyncExitStack, spec: AgentSpec) -> list[Agent]:
    return [OwnAgent(spec.kind) for _ in range(spec.count)]
