"""Hosts of a run as lines: what each brought, and how the run stands with the server on which they meet."""

from __future__ import annotations

import time
from typing import Any

from rich.text import Text

from evogit.cli.lines.view import SHORT, View, first_line
from evogit.cli.locate_run import Place
from evogit.cli.terminal import table
from evogit.cli.text import age, count


def server_lines(place: Place) -> list[Text]:
    """When the run was exchanged with its Git server, and since when that fails; nothing without one."""
    contact = place.repository.contact(place.history.run)
    if contact is None:
        return []
    name, now = first_line(contact.remote), time.time()
    met = f"exchanged {age(now - contact.met)} ago" if contact.met else "never exchanged"
    lines = [Text(f"server {name}: {met}", "dim")]
    if contact.failing:
        tries = count(contact.tries, "attempt")
        said = f"in vain for {age(now - contact.failing)}, {tries}: {first_line(contact.why)}"
        lines = [Text(f"server {name}: {met}, {said}", "yellow")]
    return [*lines, *(Text(f"  {first_line(note)}", "yellow") for note in contact.notes)]


def host_lines(view: View, hosts: list[dict[str, Any]]) -> list[Text]:
    """A line for each host; its last entry is told by its own clock."""
    heads = ("host", "agents", "candidates", "evaluated", "records", "best", "", "decisions", "last entry")
    return table([[Text(head, "dim") for head in heads], *(_row(view, each) for each in hosts)], "lrrrrrlrl")


def _row(view: View, host: dict[str, Any]) -> list[Text | str]:
    best = host["best"]["commit"] if host["best"] else None
    numbers = [f"{host[name]:,}" for name in ("candidates", "evaluated", "records")]
    last = f"{age(max(view.now - host['last'], 0))} ago" if host["last"] else "not here"
    return [
        first_line(host["host"]) + (" (here)" if host["here"] else ""),
        f"{len(host['agents']):,}",
        *numbers,
        view.score(best) if best else "",
        Text(best[:SHORT] if best else "", "yellow"),
        f"{host['decisions']:,}",
        Text(last, "dim"),
    ]
