"""Names of the last release: they work until the next one, and print the new name on stderr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource

Command = Callable[..., Any]

UNTIL = "the old name goes in the next release"

COMMANDS: dict[str, tuple[str, ...]] = {
    "best": ("status", "--best"),
    "runs": ("status", "--all"),
    "brief": ("show", "--brief"),
    "decisions": ("log", "--decisions"),
    "graft": ("merge", "--step"),
    "drop": ("merge", "--without"),
    "eval": ("check", "--uncommitted"),
    "fsck": ("doctor", "runs"),
    "sandbox build": ("doctor", "build"),
    "sandbox check": ("doctor", "sandbox"),
    "sandbox clean": ("clean",),
    "sandbox": ("doctor",),
    "gc": ("clean", "--evidence", "failed"),
    "rm": ("clean", "--all"),
    "attach": ("watch",),
    "plot": ("export", "--figure"),
}
"""An old command -> the beginning of the new command line. Options that are hidden are left out of the message."""

OPTIONS: dict[tuple[str, str], str] = {
    ("check", "--any"): "--force",
    ("report", "--until"): "--target",
    ("judge", "--pairs"): "-n",
    ("bench", "--methods"): "--method",
    ("bench", "--out"): "--output",
    ("bench", "--seeds"): "-n",
    ("audit", "--out"): "--output",
    ("judge", "--status"): "--list",
    ("prune", "--subtree"): "--all",
}
"""A command as it is called now, and an old option of it -> the new option."""


def renamed_command(args: Sequence[str]) -> tuple[list[str], str]:
    """Return the arguments with the command's new name, and a sentence that says it; empty where nothing changed."""
    for words in (2, 1):
        old = " ".join(args[:words])
        if new := COMMANDS.get(old):
            shown = " ".join(word for word in new if word not in HIDDEN)
            return [
                *new,
                *args[words:],
            ], f"`evogit {old}` is now `evogit {shown}`; the old name goes in the next release"
    return list(args), ""


HIDDEN = {"--best"}
"""Options that only keep an old command's output."""


def renamed_options(command: str, args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command's arguments with the new names of its options, and a sentence for each that is old."""
    result, notes = list(args), []
    for index, word in enumerate(args):
        if word == "--":
            break
        name, sign, value = word.partition("=")
        if new := OPTIONS.get((command, name)):
            result[index] = new + (sign if new.startswith("--") else "") + value
            notes.append(f"{name} is now {new}; {UNTIL}")
    return result, notes


def retired_option(*names: str, instead: str, **attributes: Any) -> Callable[[Command], Command]:
    """A hidden option of the last release, which still works; `instead` says what to use or what is fixed now."""

    def note(context: click.Context, option: click.Parameter, value: Any) -> Any:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and not context.resilient_parsing:
            click.echo(f"{option.opts[0]} goes in the next release: {instead}", err=True)
        return value

    return click.option(*names, hidden=True, callback=note, **attributes)
