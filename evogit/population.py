"""The population of authors: the agents that `--agent KIND[@MODEL][:N]` names."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AsyncExitStack
from functools import partial

from evogit.agents import Agent
from evogit.agents.coder import Coder
from evogit.agents.editor import Editor
from evogit.agents.mutator import Mutator, mutator_pool
from evogit.core import UsageError
from evogit.llm import Model
from evogit.settings import AgentSpec

KINDS = ("mutator", "editor", "coder")
"""Kinds of agents that come along."""

Models = Callable[[str], Model]
"""Finds the model that a name stands for; an empty one stands for the person's usual model."""


def no_models(name: str) -> Model:
    """For runs that were given no way to reach a model.

    Raises:
        UsageError: always.
    """
    raise UsageError(f"expected a run with models to have {name!r}; pass `models` to Run")


def populate(
    stack: AsyncExitStack, specs: Sequence[AgentSpec], models: Models, pool: Executor | None = None
) -> list[Agent]:
    """Make the agents, which live until `stack` is left; mutators think in `pool`, or in processes of their own.

    Raises:
        UsageError: an agent's kind or model is not known.
    """
    makers: dict[str, Callable[[AsyncExitStack, AgentSpec, Models], list[Agent]]]
    makers = {"mutator": partial(_mutators, pool), "editor": _editors, "coder": _coders}
    agents: list[Agent] = []
    for spec in specs:
        if spec.kind not in makers:
            raise UsageError(f"expected an agent of a kind {', '.join(KINDS)}, got {str(spec)!r}")
        agents += makers[spec.kind](stack, spec, models)
    return agents


def _mutators(pool: Executor | None, stack: AsyncExitStack, spec: AgentSpec, models: Models) -> list[Agent]:
    thinking = pool or stack.enter_context(mutator_pool(min(spec.count, os.cpu_count() or 1)))
    return [Mutator(thinking) for _ in range(spec.count)]


def _editors(stack: AsyncExitStack, spec: AgentSpec, models: Models) -> list[Agent]:
    model = models(spec.model)
    return [Editor(model) for _ in range(spec.count)]


def _coders(stack: AsyncExitStack, spec: AgentSpec, models: Models) -> list[Agent]:
    model = models(spec.model)
    return [Coder(model) for _ in range(spec.count)]
