"""Commands that a person is pointed to."""

from __future__ import annotations

from rich.text import Text

from evogit.cli.locate_run import Place
from evogit.history.standing import compare


def next_steps(place: Place, *commands: str) -> list[Text]:
    """Commands to try, as they are typed from here."""
    return [Text.assemble(("try  " if i == 0 else "     ", "dim"), place.hint(each)) for i, each in enumerate(commands)]


def take_command(place: Place) -> str:
    """The command that takes the best one: onto the branch of a person whose repository it is, else as files.

    One that is not better than the seed beyond noise is only looked at.
    """
    history = place.history
    gain = compare(history.scores, history.best, history.seed) if history.best and history.seed else None
    if gain is not None and gain.verdict != "better":
        return "show best"
    return "export best DIR" if place.repository.created else "land best --squash"


def judge_commands(place: Place) -> tuple[str, ...]:
    """The command with which people compare candidates, where these are not measured."""
    return ("judge",) if place.history.strengths is not None else ()
