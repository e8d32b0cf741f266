"""Decisions in words: what one would change, and which one is meant; for the commands and for `watch`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from rich.text import Text

from evogit.cli.lines.view import SHORT, View, first_line, on_one_line
from evogit.cli.terminal import table
from evogit.cli.text import age, escape
from evogit.core import NotFoundError
from evogit.events import Decision, Entry
from evogit.history import History
from evogit.review import Effect
from evogit.review.decisions import consequences


def plan_lines(view: View, decision: Decision, change: Effect) -> Iterator[Text]:
    """The decision and what it would change, a line each."""
    if decision.kind == "undo":
        entry = next(entry for entry in view.history.decisions if entry.id == decision.undoes)
        reason = getattr(entry.event, "reason", "")
        told = f": {on_one_line(reason)}" if reason else ""
        yield Text("undo  ", "bold").append_text(decision_text(entry.event)).append(told)
    elif decision.kind == "guide":
        yield Text("guide  ", "bold").append(on_one_line(decision.reason))
    else:
        candidate = view.history.phylogeny[decision.candidates[0]]
        yield Text(f"{decision.kind}  ", "bold").append_text(view.line(candidate, score=True))
    yield from (Text(f"  {escape(line)}") for line in consequences(view.history, decision, change))


def decision_to_undo(history: History, prefix: str | None) -> Entry:
    """The decision that is meant: by the beginning of its id, else the last one in force that is not an undo.

    A refusal by the reviewer is nobody's last decision, so that it has to be named.
    """
    if prefix is None:
        undoable = [entry for entry in history.in_force() if getattr(entry.event, "kind", "") not in ("stop", "refuse")]
        if not undoable:
            raise NotFoundError("there is no decision to undo; see `evogit log --decisions`")
        return undoable[-1]
    found = [entry for entry in history.decisions if len(prefix) >= 4 and entry.id.startswith(prefix.lower())]
    if len(found) != 1:
        raise NotFoundError(
            f"expected the id of one decision (4 digits or more), got {prefix!r}; see `evogit log --decisions`"
        )
    return found[0]


def decision_text(decision: Any) -> Text:
    """A decision without its reason."""
    if decision.kind == "undo":
        return Text(f"undo {decision.undoes[:SHORT]}")
    names = " ".join(commit[:SHORT] for commit in decision.candidates)
    below = " and all below" if decision.subtree else ""
    carriers = " and all that carry its code" if decision.carriers is not None else ""
    return Text(f"{decision.kind} {names}{below}{carriers}".rstrip())


def decision_table(decisions: Iterable[tuple[Entry, bool]]) -> list[Text]:
    """A line for each decision: id, age, by whom, what, why; and whether it is in force."""
    rows = []
    for entry, in_force in decisions:
        decision = entry.event
        assert isinstance(decision, Decision)
        cells = [Text(age(time.time() - entry.time), "dim"), Text(first_line(decision.by)), decision_text(decision)]
        reason = Text(on_one_line(decision.reason)).append("" if in_force else "  (undone)", "dim")
        rows.append([Text(entry.id[:SHORT], "cyan"), *cells, reason])
    return table(rows, "lrlll")
