"""The agents of a run that a Python program asks for, with the models that they ask."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from evogit.agents import Agent
from evogit.agents.population import Models, ProgramAgents, check_kind, no_models, no_programs
from evogit.agents.programs.presets import PRESETS
from evogit.agents.programs.registry import Programs, define
from evogit.config.run_settings import AgentSpec, Settings
from evogit.config.user_settings import load_user_settings
from evogit.core import UsageError
from evogit.engine.desk import Desk
from evogit.library.ask_and_tell import ASK, AskingAgent

AgentLike = str | AgentSpec | Agent
"""`KIND[@MODEL][:N]` or `FILE.py:Name[:N]` as for `evogit run --agent`, `ask[:N]`, or an instance of your own class."""

EDITORS = 4  # agents that ask a model, where nobody says how many


class Population(Struct, frozen=True, kw_only=True):
    """Agents, as settings tell of them, and what makes them or, of a program's own, they themselves."""

    specs: tuple[AgentSpec, ...]
    agents: tuple[Agent | AgentSpec, ...] = ()
    """Instances of the caller, in their place among the names of others; none: all are names."""
    models: Models = no_models
    programs: ProgramAgents = no_programs
    secrets: tuple[str, ...] = ()
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()
    desk: Desk | None = None
    """Where agents that ask leave their questions."""
    paid: tuple[str, ...] = ()
    """Models that cost money, as far as is known."""

    @classmethod
    def of(
        cls, given: AgentLike | Sequence[AgentLike], model: str, sandbox: str, private: Sequence[Path]
    ) -> Population:
        """Find the agents and open their models.

        Raises:
            ConfigError: the user's settings are wrong.
            CredentialError: a key cannot be had.
            UsageError: there is no such agent.
        """
        alone = isinstance(given, str | AgentSpec) or hasattr(given, "propose")
        asked = cast(list[AgentLike], [given] if alone else list(cast(Sequence[AgentLike], given)))
        own = [each for each in asked if not isinstance(each, str | AgentSpec)]
        if odd := [each for each in own if isinstance(each, type) or not isinstance(getattr(each, "kind", None), str)]:
            raise UsageError(
                f"expected names of agents, or instances of classes derived from Agent, got {odd[0]!r:.100}"
            )
        members = [AgentSpec.parse(each) if isinstance(each, str) else each for each in asked]
        named = tuple(each for each in members if isinstance(each, AgentSpec))
        if model and not (named or own):
            named = (AgentSpec("editor", model, EDITORS),)
        if any(spec.kind == ASK for spec in named):
            return cls._asking(members)
        if not own:
            return cls._opened(named or Settings().population, model, sandbox, private)
        if model and not any(spec.kind != "mutator" for spec in named):
            raise UsageError(f"expected agents that ask a model beside model={model!r}, such as 'editor:2'")
        others = cls._opened(named, model, sandbox, private)
        specs = iter(others.specs)
        agents = tuple(next(specs) if isinstance(each, AgentSpec) else each for each in members)
        kinds = tuple(each if isinstance(each, AgentSpec) else AgentSpec(each.kind) for each in agents)
        return replace(others, specs=kinds, agents=agents)

    @classmethod
    def _asking(cls, members: Sequence[Agent | AgentSpec]) -> Population:
        specs = [each for each in members if isinstance(each, AgentSpec)]
        if len(specs) < len(members) or any(spec.kind != ASK for spec in specs):
            raise UsageError(f'expected agents that all ask, such as "{ASK}:2", got {", ".join(map(str, members))}')
        desk = Desk()
        agents = tuple(AskingAgent(desk) for spec in specs for _ in range(spec.count))
        return cls(specs=tuple(specs), agents=agents, desk=desk)

    @classmethod
    def _opened(cls, given: tuple[AgentSpec, ...], model: str, sandbox: str, private: Sequence[Path]) -> Population:
        if all(spec.kind == "mutator" and not spec.model for spec in given):
            return cls(specs=given)
        from evogit.llm.registry import open_models  # the client for models takes a second to import

        user = load_user_settings(os.environ)
        specs = tuple(_named(spec, model or user.model, user.commands) for spec in given)
        models = open_models(user)
        programs = Programs(models, user.commands, sandbox, private)
        names = dict.fromkeys(name for spec in specs if spec.asks for name in spec.models)
        opened = [models.get(name) for name in names]
        return cls(  # keys stay in the environment, which is the caller's; no sandbox is given it
            specs=specs,
            models=models.get,
            programs=programs.make_agents,
            secrets=models.secrets,
            closing=(models.close,),
            paid=tuple(each.name for each in opened if each.price is None or not each.price.free),
        )

    def name_if_paid(self, model: str) -> str:
        """Return the name of a model that costs money, as far as is known; empty for any other."""
        price = self.models(model).price
        return "" if price is not None and price.free else model

    def check(self, settings: Settings, panel: Sequence[str] = ()) -> None:
        """Refuse what would never end, and models that cost money without a limit, as nobody is asked here.

        Those of the task's `panel` count, too.

        Raises:
            UsageError: there is no limit.
        """
        if not any(settings.ends.values()) and settings.target is None:
            raise UsageError(
                f"expected a limit, as the run would never end: {', '.join(settings.ends)}; such as evaluations=200"
            )
        paid = ", ".join(filter(None, dict.fromkeys([*self.paid, *map(self.name_if_paid, panel)])))
        if paid and not any(settings.ceilings.values()):
            raise UsageError(
                f"{paid} may cost money: expected a limit, such as dollars=5, tokens=2_000_000 or proposals=200"
            )


def _named(spec: AgentSpec, model: str, commands: Any) -> AgentSpec:
    check_kind(spec, (*PRESETS, *commands))
    program = define(spec.kind, commands)
    asks = program.metered if program else spec.asks
    if asks and not spec.model:
        if not model:
            raise UsageError(f'expected a model for {spec}: model="NAME", or "{spec.kind}@NAME"')
        return replace(spec, model=model)
    return spec
