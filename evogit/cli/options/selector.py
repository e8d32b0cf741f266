"""Which selector a resumed run uses."""

from __future__ import annotations

import click

from evogit.config import Task
from evogit.config.custom_classes import check_located, located
from evogit.config.run_settings import DEFAULT_SELECTOR
from evogit.core import ConfigError, UsageError
from evogit.review import EarlierStarts
from evogit.selection.descriptors import traits_of
from evogit.selection.registry import open_selector, overview


def list_selectors(context: click.Context, option: click.Parameter, asked: str | None) -> str | None:
    """List all selectors where `help` is asked for."""
    if asked == "help":
        click.echo(f"Selectors for --selector NAME:\n{overview()}")
        context.exit()
    return asked


def selector_before(asked: str | None, task: Task, earlier: EarlierStarts) -> str:
    """Return the selector asked for, else that of the run's last start; it is checked before anything is made.

    Raises:
        ConfigError: a person's own file is wrong.
        UsageError: there is no such selector or option.
    """
    chosen = str(earlier.last.get("selector", DEFAULT_SELECTOR)) if asked is None else located(asked)
    if asked is None:
        check_located(chosen)
    try:
        open_selector(chosen, traits_of(task))
    except (ConfigError, UsageError) as error:
        if asked is not None:
            raise
        raise UsageError(f"{error}\nthe run's last start had this selector; name another with --selector") from error
    return chosen
