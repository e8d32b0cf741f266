"""From a task to its panel: the models that it names, and what their calls are charged to."""

from __future__ import annotations

from evogit.agents.population import Models
from evogit.config import Task
from evogit.engine.account import RunAccount
from evogit.history import History
from evogit.llm import Account
from evogit.panel import NAME, Panel
from evogit.repository import Journal, Repository


def open_panel(
    repository: Repository,
    journal: Journal,
    history: History,
    task: Task,
    engine: str,
    models: Models,
    purse: RunAccount,
) -> Panel | None:
    """The panel of a task that names models who compare; None where nobody or people do.

    Raises:
        CredentialError: the key of a model cannot be had.
        UsageError: there is no such model.
    """
    if task.pairwise is None or not task.pairwise.panel:
        return None
    found = [models(name) for name in dict.fromkeys(task.pairwise.panel)]

    def account(move: int) -> Account:
        return purse.account(NAME, move)

    return Panel(repository, journal, history, task, task.pairwise, engine, found, account)
