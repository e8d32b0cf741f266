"""From a task to its panel: the models that it names, and what their calls are charged to."""

from __future__ import annotations

from evogit.agents.population import Models
from evogit.engine.account import RunAccount
from evogit.history.context import RunContext
from evogit.llm import Account
from evogit.panel import NAME, Panel


def open_panel(context: RunContext, models: Models, account: RunAccount) -> Panel | None:
    """The panel of a task that names models which compare; None where people do, or none is needed.

    Raises:
        CredentialError: the key of a model cannot be had.
        UsageError: there is no such model.
    """
    pairwise = context.task.pairwise
    if pairwise is None or not pairwise.panel:
        return None
    found = [models(name) for name in dict.fromkeys(pairwise.panel)]

    def account_of(move: int) -> Account:
        return account.of_move(NAME, move)

    return Panel(context, pairwise, found, account_of)
