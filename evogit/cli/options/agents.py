"""The agents of a run and what they may cost: the options, and what they mean when a run is resumed."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from evogit.agents.population import check_kind
from evogit.agents.programs.presets import PRESETS
from evogit.agents.programs.registry import Programs, define
from evogit.cli.options.shared import Command, OutputPath
from evogit.config.custom_classes import check_located, is_own, located
from evogit.config.run_settings import CALLS, AgentSpec, RunLimits, Settings, Total
from evogit.config.user_settings import UserSettings, load_user_settings, settings_file
from evogit.core import ConfigError, UsageError
from evogit.history import History
from evogit.llm import Model
from evogit.llm.registry import OpenModels, open_models
from evogit.review import EarlierStarts, used

MUTATORS, EDITORS, CODERS = min(max(2, os.cpu_count() or 1), 8), 4, 2
"""Agents of a run when no number is given. Mutators need no time to think and only wait for evaluations: with more than
are evaluated at a time each learns of the others' results later; models take longer than most evaluations."""

DOLLARS, TOKENS, PROPOSALS = 5.0, 2_000_000, 200
"""What a run may use of models that cost money, by default: dollars where all prices are known."""

FILE = click.Path(path_type=Path, dir_okay=False)


class AgentOptions(Struct, frozen=True, kw_only=True):
    """What a person said about agents and models."""

    agent: tuple[AgentSpec, ...] = ()
    agents: int | None = None
    model: str = ""
    record: Path | None = None
    replay: Path | None = None
    yes: bool = False


def with_agents(command: Command) -> Command:
    """Give a command the options on agents and models, as one `asked`; limits stay options of their own."""

    @click.option(
        "--agent", multiple=True, metavar="KIND[@MODEL][:N][+ROLE.md]", help="Agents, or FILE.py:Name; repeatable."
    )
    @click.option(
        "--agents", type=int, metavar="N", help=f"Mutators ({MUTATORS}), editors ({EDITORS}), coders ({CODERS})."
    )
    @click.option("--model", metavar="NAME", help="Model of all agents: editors, or in a repository coders.")
    @click.option("--dollars", type=float, metavar="D", help="Stop when models have cost this much, in all.")
    @click.option("--tokens", type=int, metavar="N", help="Stop when models have read and written this many, in all.")
    @click.option("--calls", type=int, metavar="N", help="Stop when models were called so often, in all.")
    @click.option("--yes", is_flag=True, help="Agree to what models cost and are sent, without being asked.")
    @click.option("--record", type=OutputPath(dir_okay=False), metavar="FILE", help="Record questions and replies.")
    @click.option("--replay", type=FILE, metavar="FILE", help="Take replies from a recording; no model is asked.")
    @functools.wraps(command)
    def wrapped(agent: tuple[str, ...], agents: int | None, model: str | None, **rest: Any) -> Any:
        if model is not None and not model.strip():
            raise UsageError(f"expected the name of a model after --model, got {model!r}")
        parsed = map(AgentSpec.parse, agent)
        specs = tuple(replace(spec, kind=located(spec.kind)) for spec in parsed)
        if specs and agents is not None:
            raise UsageError("expected --agent KIND[@MODEL][:N] with its own N, or --agents N, got both")
        more = {name: rest.pop(name) for name in ("record", "replay", "yes")}
        return command(asked=AgentOptions(agent=specs, agents=agents, model=model or "", **more), **rest)

    return wrapped


class AgentSetup(Struct, frozen=True, kw_only=True):
    """The agents of a run: settings with the limits that hold, and the models that are `asking` an endpoint."""

    settings: Settings
    models: OpenModels
    programs: Programs
    asking: tuple[Model, ...]
    added: Mapping[Total, float]
    """The limits that were not given now: from before, or defaults."""
    before: EarlierStarts
    durable: bool = False
    """Whether what is written must survive a power loss."""

    @property
    def reached(self) -> list[str]:
        """Names of the models to which texts are sent: neither scripts nor recordings."""
        return [model.name for model in self.asking if self.models.endpoint(model.name)]

    @property
    def will_end(self) -> bool:
        """Whether there is a limit; one on dollars is none for models that are free."""
        free = not any(map(costs, self.asking))
        limits = replace(self.settings, dollars=None) if free else self.settings
        return any(limit is not None for limit in limits.ends.values())


def resolve_agents(
    asked: AgentOptions,
    settings: Settings,
    history: History,
    before: EarlierStarts | None = None,
    panel: Sequence[str] = (),
    private: Sequence[Path] = (),
    asking_kind: str = "editor",
    variables: Collection[str] = (),
) -> AgentSetup:
    """Find the agents and open their models and those of the task's `panel`, before anything is written.

    Agents and limits that are not asked for are those `before`; with a model alone they are of the `asking_kind`.
    Coding programs cannot read `private` folders. `variables` of the environment are kept for evaluators.
    Raise ConfigError if the user's settings are wrong; CredentialError if a key cannot be had; UsageError if what was
    asked for makes no sense together.
    """
    user, before = load_user_settings(os.environ), before or EarlierStarts()
    specs = population(asked, before, user, panel, asking_kind)
    models = open_models(user, record=asked.record, replay=asked.replay)
    programs = Programs(models, user.commands, settings.sandbox, private)
    if employed := [spec for spec in specs if programs.find(spec.kind)]:
        _check_programs(asked, settings, employed)
    names = [*(name for spec in specs if spec.asks for name in spec.models), *panel]
    sure = {*(spec.model for spec in specs), *panel}
    asking = tuple(models.get(name, optional_in_recording=name not in sure) for name in dict.fromkeys(names))
    for spec in employed:
        for name in filter(None, spec.models):
            models.endpoint_of(name)
    models.forget_keys(variables)
    limited = with_ceilings(replace(settings, population=specs, panel=tuple(panel)), history, before, asking)
    given = settings.ceilings
    added = {name: limit for name, limit in limited.ceilings.items() if limit is not None and given[name] is None}
    return AgentSetup(
        settings=limited,
        models=models,
        programs=programs,
        asking=asking,
        added=added,
        before=before,
        durable=user.durability == "fsync",
    )


def population(
    asked: AgentOptions,
    earlier: EarlierStarts,
    user: UserSettings,
    panel: Sequence[str] = (),
    asking_kind: str = "editor",
) -> tuple[AgentSpec, ...]:
    """Return the agents asked for, else those of before, else of the settings. Raise ConfigError or UsageError."""
    specs = asked.agent or _by_number(asked, asking_kind) or _as_before(earlier.last) or _by_settings(user)
    if asked.model and not any(_asks(spec, user) and not spec.model for spec in asked.agent or [AgentSpec("editor")]):
        raise UsageError(f"--model {asked.model} is for agents that name no model, and every agent given names one")
    before = not asked.agent and specs == _as_before(earlier.last)
    for spec in specs if before else ():
        check_located(spec.kind)
    named = tuple(_named(spec, asked.model or user.model, user, before=before) for spec in specs)
    for spec in named:
        if _asks(spec, user) and not spec.model:
            raise UsageError(
                f'expected a model for {spec}: --model NAME, {spec.kind}@NAME, or model = "NAME" in settings'
            )
        if spec.model and not _asks(spec, user):
            raise UsageError(f"expected no model for {spec.kind} agents, which ask none here, got {spec}")
    if (asked.record or asked.replay) and not (panel or any(spec.asks for spec in named)):
        raise UsageError("--record and --replay are for agents that ask models: --model NAME")
    return named


def _asks(spec: AgentSpec, user: UserSettings) -> bool:
    """Whether agents ask a model through EvoGit, which need not be named yet."""
    program = define(spec.kind, user.commands)
    return program.metered if program else spec.kind in CALLS


def _named(spec: AgentSpec, model: str, user: UserSettings, *, before: bool) -> AgentSpec:
    """Agents of a kind that there is, with the model that they ask; `before`: those of the run's last start."""
    try:
        check_kind(spec, (*PRESETS, *user.commands))
        return replace(spec, model=spec.model or model) if _asks(spec, user) else spec
    except (ConfigError, UsageError) as error:
        if not before:
            raise
        raise UsageError(f"{error}\nthe run's last start had this agent; name others with --agent") from error


def _check_programs(asked: AgentOptions, settings: Settings, specs: Sequence[AgentSpec]) -> None:
    """Refuse coding programs where what they do could not be repeated, or not be contained. Raise UsageError."""
    names = ", ".join(dict.fromkeys(spec.kind for spec in specs))
    from evogit.sandbox.providers import isolates

    if not isolates(settings.sandbox):
        raise UsageError(f"expected a sandbox for {names}, as such a program runs what a model says: --sandbox auto")
    if settings.deterministic or asked.record or asked.replay:
        raise UsageError(
            f"expected agents whose work can be repeated for --deterministic, --record and --replay, got {names}: "
            "what such programs ask a model depends on the clock"
        )


def _by_number(asked: AgentOptions, kind: str) -> tuple[AgentSpec, ...]:
    if asked.agents is not None and asked.agents < 1:
        raise UsageError(f"expected --agents above 0, got {asked.agents}")
    if asked.model:
        usual = EDITORS if kind == "editor" else CODERS
        return (AgentSpec(kind, asked.model, usual if asked.agents is None else asked.agents),)
    return (AgentSpec("mutator", count=asked.agents),) if asked.agents is not None else ()


def _as_before(settings: Mapping[str, Any]) -> tuple[AgentSpec, ...]:
    return tuple(AgentSpec.of(spec) for spec in settings.get("population", ()))


def _by_settings(user: UserSettings) -> tuple[AgentSpec, ...]:
    """Return the agents of the settings; a user's own file lies beside the settings, or where it says."""
    specs = []
    for spec in user.agents:
        kind = spec.kind
        if is_own(kind):
            file, _, name = kind.rpartition(":")
            kind = f"{settings_file(os.environ).parent.absolute() / Path(file).expanduser()}:{name}"
        specs.append(replace(spec, kind=kind))
    return tuple(specs) or (AgentSpec("mutator", count=MUTATORS),)


def costs(model: Model) -> bool:
    """Whether calls cost money, as far as is known."""
    return model.price is None or not model.price.free


def with_ceilings(settings: Settings, history: History, earlier: EarlierStarts, models: Sequence[Model]) -> Settings:
    """Add the limits of before, else defaults if a model costs money. Raise UsageError if one cannot be kept."""
    if not models:
        if any(limit is not None for limit in settings.asking):
            raise UsageError("--dollars, --tokens and --calls limit models, and no agent asks one: --model NAME")
        return settings
    unpriced = [model.name for model in models if model.price is None]
    if unpriced and settings.dollars is not None:
        raise UsageError(
            f"expected a known price of {unpriced[0]} to keep --dollars; say [models.NAME] "
            "price = {input = ..., output = ...} in your settings, or limit it with --tokens"
        )
    before = RunLimits.of(earlier.asking)
    settings = replace(
        settings,
        dollars=before.dollars if settings.dollars is None and not unpriced else settings.dollars,
        tokens=before.tokens if settings.tokens is None else settings.tokens,
        calls=before.calls if settings.calls is None else settings.calls,
        proposals=before.proposals if settings.proposals is None else settings.proposals,
    )
    if not any(map(costs, models)) or any(limit is not None for limit in settings.ceilings.values()):
        return settings
    if not unpriced:
        return replace(settings, dollars=DOLLARS + used(history, "dollars"))
    tokens, proposals = TOKENS + used(history, "tokens"), PROPOSALS + used(history, "proposals")
    return replace(settings, tokens=int(tokens), proposals=int(proposals))
