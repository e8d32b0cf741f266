"""The coding programs that a run may use: presets, a person's own, and the sandboxes that they work in."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from evogit.agents.programs.presets import KEY, PRESETS, Preset
from evogit.config.run_settings import KINDS, AgentSpec
from evogit.config.user_settings import CommandTable
from evogit.core import ConfigError, SandboxError, UsageError
from evogit.llm.registry import OpenModels
from evogit.sandbox import Environment, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.packages import DEBIAN
from evogit.sandbox.providers import isolates, kinds, likely, provider
from evogit.sandbox.session import Sandbox

if TYPE_CHECKING:
    from evogit.agents.programs.agent import ProgramAgent

GIT = f"{DEBIAN}git"  # what every workspace needs; on the host's own system, which bubblewrap shows, it is there

LOOK = 'PATH="${0:-$PATH}:/usr/local/bin"; for each; do command -v "$each" >&2 || echo "$each"; done'
"""For the shell: where programs are looked for, empty for as usual, and their names; prints those not found."""

_NO_NETWORK = (
    "expected a network of its own for {name}, which bubblewrap cannot make: with the host's it reaches servers on "
    'this machine and sockets of your desktop; use --sandbox docker, or allow it with network = "host" in the settings'
)

MOST_LOGIN = 1 << 20  # bytes of a file of a login


class ProgramDefinition(Struct, frozen=True, kw_only=True):
    """A coding program as this person has it: its preset with what their settings say."""

    preset: Preset
    table: CommandTable

    @property
    def metered(self) -> bool:
        """Whether it asks models through EvoGit; else it has a login and a network, and its costs are not counted."""
        return self.table.auth == "gateway"

    @property
    def environment(self) -> Environment:
        """Of its sandbox; nothing of a session is there in the next one."""
        table = self.table
        return Environment(
            image=table.image,
            packages=table.packages or self.preset.packages,
            setup=table.setup,
            isolation="fresh",
            network=not self.metered,
        )


def define(name: str, commands: Mapping[str, CommandTable]) -> ProgramDefinition | None:
    """Return the program of this name, None if there is none. Raises ConfigError: its settings are wrong."""
    table = commands.get(name, CommandTable())
    if name not in commands and name not in PRESETS:
        return None
    where = f"[commands.{name}] of your settings"
    if name in KINDS:
        raise ConfigError(f"{where}: expected another name, as {name} is an agent of EvoGit's own")
    if table.preset and table.preset not in PRESETS:
        raise ConfigError(f"{where}: expected preset to be one of {', '.join(PRESETS)}, got {table.preset!r}")
    base = PRESETS.get(table.preset or name) or Preset(name=name, argv=())
    kept = base if table.auth == "gateway" else _without_gateway(base)
    argv = table.argv or kept.argv
    if not argv:
        raise ConfigError(f'{where}: expected argv = ["PROGRAM", ...], as there is no preset {name!r}')
    preset = replace(
        kept,
        name=name,
        argv=argv,
        env={**kept.env, **table.env},
        files={**kept.files, **table.files},
        junk=(*base.junk, *table.junk),
        login=table.login or base.login,
        memory=table.memory or base.memory,
    )
    if table.auth == "mount" and not preset.login:
        raise ConfigError(f'{where}: expected login = [PATH, ...] below your home for auth = "mount"')
    return ProgramDefinition(preset=preset, table=table)


def _without_gateway(preset: Preset) -> Preset:
    """The preset for a program that goes to its maker by itself, and asks what model it likes."""
    argv = [
        word
        for word, after in pairwise((*preset.argv, ""))
        if "{model}" not in word and not ("{model}" in after and word.startswith("-"))
    ]
    env = {name: value for name, value in preset.env.items() if "{url}" not in value and value != KEY}
    env = {name: value for name, value in env.items() if "{model}" not in value}
    return replace(
        preset,
        argv=tuple(argv),
        env=env,
        files={path: text for path, text in preset.files.items() if "{url}" not in text},
    )


class Programs:
    """Makes agents of coding programs for one engine."""

    def __init__(
        self,
        models: OpenModels,
        commands: Mapping[str, CommandTable],
        sandbox: str = "auto",
        private: Sequence[Path] = (),
    ) -> None:
        """Make agents in sandboxes of a provider, from which nobody can read `private` folders or where we are."""
        self._private = (Path.cwd(), *private)
        self._models = models
        self._commands = commands
        self._provider = sandbox
        self._reading = asyncio.Lock()

    def find(self, kind: str) -> ProgramDefinition | None:
        """Return the program of this name, None if there is none. Raises ConfigError: its settings are wrong."""
        return define(kind, self._commands)

    def check(self, kind: str) -> bool:
        """Prepare a program for which nothing has to be installed, which takes no time; whether it was one."""
        found = self.find(kind)
        wanted = found.environment if found else Environment()
        if not found or wanted.packages or wanted.setup or wanted.image:
            return False
        if (place := likely(self._provider)) and place.needs_image:
            return False
        self.prepare(kind)
        return True

    def prepare(self, kind: str) -> None:
        """Install what a program needs, find its login. Raises SandboxError: it lacks some; UsageError: no login."""
        if found := self.find(kind):
            _with_login(found)
            sandbox = self._sandbox(found)
            try:
                _look(found.preset, sandbox)
            finally:
                sandbox.close()

    def make_agents(self, stack: AsyncExitStack, spec: AgentSpec) -> list[ProgramAgent]:
        """Agents that live until `stack` is left, each with a sandbox of its own."""
        from evogit.agents.programs.agent import (  # with the client for models, which takes a second to import
            ProgramAgent,
            ProgramBounds,
        )
        from evogit.llm.gateway.gateway import Gateway

        found = self.find(spec.kind)
        assert found
        table = found.table
        bounds = ProgramBounds(
            seconds=table.minutes * 60, tokens=table.tokens, evaluations=table.evaluations, disk=table.disk
        )
        gateway, models = Gateway(self._models) if found.metered else None, spec.models if spec.model else ()
        if gateway:
            stack.push_async_callback(gateway.close)
        preset, agents = _with_login(found), []
        for _ in range(spec.count):
            sandbox = self._sandbox(found)
            stack.callback(sandbox.close)
            agents.append(ProgramAgent(preset, sandbox, gateway, models, bounds, self._reading))
        return agents

    def _sandbox(self, program: ProgramDefinition) -> Sandbox:
        """One of the engine's provider."""
        if not isolates(self._provider):
            raise UsageError(
                f"expected a sandbox for {program.preset.name}, which runs what a model says; "
                "use --sandbox auto, or other agents"
            )
        wanted = program.environment
        sandbox = provider(self._provider, wanted, self._private)
        if not kinds()[sandbox.name].needs_image:
            if wanted.network and program.table.network != "host":
                sandbox.close()
                raise UsageError(_NO_NETWORK.format(name=program.preset.name))
            return sandbox
        if wanted.image:
            return sandbox
        sandbox.close()
        return provider(sandbox.name, replace(wanted, packages=(*wanted.packages, GIT)))


def _look(preset: Preset, sandbox: Sandbox) -> None:
    """Look for the program and what it needs inside the sandbox. Raises SandboxError: something is missing."""
    place, path = preset.argv[0], preset.env.get("PATH", "")
    own = "{" in place + path or ("/" in place and not place.startswith("/"))  # one that a session brings along
    needed = ["python3", "git", *([] if own else [place])]
    with sandbox.open(pack({}), Limits()) as session:
        done = session.run(["sh", "-c", LOOK, path if "{" not in path else "", *needed])
    if missing := done.stdout.decode(errors="replace").split():
        how = preset.needs or "install it for all users, or in Docker name an image, packages or setup that have it"
        raise SandboxError(
            f"the sandbox {sandbox.name} has no {' and no '.join(missing)}, which {preset.name} needs; {how}"
        )


def _with_login(program: ProgramDefinition) -> Preset:
    """Return the preset, unless metered with a copy of the login. Raises UsageError: there is none, or it is large."""
    preset, home, files = program.preset, Path.home(), dict[str, str]()
    if program.metered:
        return preset
    places = [home / path for path in preset.login]
    for file in (file for place in places for file in ([place] if place.is_file() else sorted(place.rglob("*")))):
        if file.is_file():
            if file.stat().st_size > MOST_LOGIN:
                raise UsageError(f"expected a login of files of at most {MOST_LOGIN:,} bytes, got {file}; name others")
            files[str(file.relative_to(home))] = file.read_text("utf-8", "surrogateescape")
    if not files:
        names = ", ".join(preset.login)
        raise UsageError(f"expected the login of {preset.name} at {names} below {home}: log in there first")
    return replace(preset, files={**preset.files, **files})
