"""What became of a candidate that a person made of others."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from evogit.cli.lines.view import SHORT, View
from evogit.cli.locate_run import Place
from evogit.cli.terminal import Terminal


def outcome(place: Place, terminal: Terminal, made: str | None, known: str | None) -> Iterator[Text | str]:
    """That it was added and how it is evaluated, or why there is no new one."""
    view = View.of(place.history, terminal)
    if made:
        yield Text.assemble(("added  ", "bold"), view.line(place.history.phylogeny[made]))
        if place.repository.engines(place.history.run).alive():
            yield Text("the running engine evaluates it within seconds", "dim")
        else:
            yield Text.assemble(("evaluate with  ", "dim"), place.hint("run"))
    elif known:
        yield f"that gives the files of {known[:SHORT]}, which is a candidate already"
    else:
        yield Text("no candidate was made", "dim")
