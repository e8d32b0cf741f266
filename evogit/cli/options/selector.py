"""Which selector a resumed run uses."""

from __future__ import annotations

import click

from evogit.config import Task
from evogit.config.run_settings import DEFAULT_SELECTOR
from evogit.core import ConfigError, UsageError
from evogit.history import History
from evogit.review import last_start
from evogit.selection.descriptors import traits_of
from evogit.selection.registry import open_selector, overview


def list_selectors(context: click.Context, option: click.Parameter, asked: str | None) -> str | None:
    """List all selectors where `help` is asked for."""
    if asked == "help":
        click.echo(f"Selectors for --selector NAME:\n{overview()}")
        context.exit()
    return asked


def selector_before(asked: str | None, task: Task, history: History) -> str:
    """The selector that a person asks for, else that of the run's last start; checked before anything is made.

    Raises:
        ConfigError: a person's own file is wrong.
        UsageError: there is no such selector or option.
    """
    chosen = str(last_start(history).get("selector", DEFAULT_SELECTOR)) if asked is None else asked
    try:
        open_selector(chosen, traits_of(task))
    except (ConfigError, UsageError) as error:
        if asked is not None:
            raise
        raise UsageError(f"{error}\nthe run's last start had this selector; name another with --selector") from error
    return chosen
