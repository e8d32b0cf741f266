"""Coding programs before a run begins: consent to those whose use is not counted, and installation."""

from __future__ import annotations

from collections.abc import Sequence

import click

from evogit.cli.options.agents import AgentSetup
from evogit.cli.terminal import Terminal
from evogit.core import RefusedError


def confirm_logins(terminal: Terminal, setup: AgentSetup, *, yes: bool) -> tuple[str, ...]:
    """Show which programs get a login and a network, and ask unless that was agreed to; returns what is agreed.

    Raises:
        RefusedError: the answer is no, or there is no terminal to give one.
    """
    found = {spec.kind: setup.programs.find(spec.kind) for spec in setup.settings.population}
    mounted = {kind: program for kind, program in found.items() if program and not program.metered}
    agreed = tuple(f"{kind} with your login and a network" for kind in sorted(mounted))
    for kind, program in mounted.items():
        terminal.note(
            f'{kind} works with copies of {", ".join(program.preset.login)} and a network (auth = "mount"): its '
            "costs are neither counted nor limited, and what it runs can use that login and send the code anywhere",
            "yellow",
        )
    if yes or set(agreed) <= set(setup.before.agreed):
        return agreed
    if not terminal.interactive:
        raise RefusedError("there is no terminal to ask on; add --yes to allow it")
    if not click.confirm("Allow this?", err=True):
        raise RefusedError("nothing was sent and nothing was changed")
    return agreed


def check_programs(setup: AgentSetup) -> list[str]:
    """Look for programs that need not be installed, before anybody agrees to anything; the kinds that are left.

    Raises:
        SandboxError: one is not there.
        UsageError: there is no login.
    """
    kinds = dict.fromkeys(spec.kind for spec in setup.settings.population)
    return [kind for kind in kinds if setup.programs.find(kind) and not setup.programs.check(kind)]


def prepare(terminal: Terminal, setup: AgentSetup, kinds: Sequence[str]) -> None:
    """Have what programs of these kinds need installed; the first time that takes a while.

    Raises:
        SandboxError: it cannot be had, or is not there.
        UsageError: there is no login.
    """
    found = {kind: program for kind in kinds if (program := setup.programs.find(kind))}
    for kind, program in found.items():
        if wanted := (*program.environment.packages, *program.environment.setup):
            terminal.note(f"preparing {kind}; the first time {', '.join(wanted)} is installed, which may take minutes")
        setup.programs.prepare(kind)
