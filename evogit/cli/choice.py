"""Which selector a run goes on with."""

from __future__ import annotations

from evogit.config import Task
from evogit.core import ConfigError, UsageError
from evogit.history import History
from evogit.review import last_start
from evogit.selection.opening import open_selector, overview
from evogit.selection.traits import traits_of
from evogit.settings import USUAL_SELECTOR


def selector_before(asked: str | None, task: Task, history: History) -> str:
    """The selector that a person asks for, else that of the run's last start; checked before anything is made.

    Raises:
        ConfigError: a person's own file is wrong.
        UsageError: there is no such selector or option, or `help` was asked for.
    """
    if asked == "help":
        raise UsageError(f"selectors for --selector NAME:\n{overview()}")
    chosen = asked or str(last_start(history).get("selector", USUAL_SELECTOR))
    try:
        open_selector(chosen, traits_of(task))
    except (ConfigError, UsageError) as error:
        if asked:
            raise
        raise UsageError(f"{error}\nthe run's last start had this selector; name another with --selector") from error
    return chosen
