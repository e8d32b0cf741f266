"""Tables of contributions, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evogit.cli.lines.spending import money
from evogit.cli.lines.view import View, first_line
from evogit.cli.text import change
from evogit.review import own_names

Rows = list[dict[str, Any]]
"""Contributions, as `evogit status --json` has them."""

COUNTED = {"proposals": "tried", "valid": "valid", "records": "best"}

NAME_COLUMNS = 26

LEGEND = "best: of all by then; gained: on the way to the best"
PAID = f"{LEGEND}; each: cost per gain"


def contribution_tables(view: View, found: Mapping[str, Rows], most: int) -> Iterator[tuple[str, list[list[str]], int]]:
    """For agents, roles, models and operators: what they are called, rows with a head, and how many more there are."""
    own = own_names(view.history)
    money_heads = ("tokens", "paid", "each") if view.history.spent.calls else ("top gain",)
    for what, title in (("agents", "agent"), ("roles", "role"), ("models", "model"), ("operators", "operator")):
        rows = found[what]
        if len(rows) > most:
            rows = sorted(
                rows,
                key=lambda row: (-row["gained"], -row["records"], -row["improved"], -row["proposals"], -row["tokens"]),
            )
            rows = [row for row in rows[:most] if row["proposals"] or row["calls"]]
        if rows:
            lines = [[title, *COUNTED.values(), "gained", *money_heads]]
            for row in rows:
                kind = own.get(row["name"]) or row.get("kind", "")
                name = first_line(f"{row['name']} {kind}".rstrip())
                shown = view.model(row["name"]) if what == "models" else _cut(view, name)
                lines.append([shown, *_cells(view, row)])
            yield title, lines, len(found[what]) - len(rows)


def legend(view: View) -> str:
    """What the columns mean."""
    return PAID if view.history.spent.calls else LEGEND


def _cells(view: View, row: Mapping[str, Any]) -> Sequence[str]:
    counted = [f"{row[key]:,}" for key in COUNTED]
    counted.append(change(row["gained"], view.places) if row["gained"] else "-")
    if not view.history.spent.calls:
        return [*counted, "-" if row["best_step"] is None else change(row["best_step"], view.places)]
    if not row["calls"]:
        return [*counted, "-", "-", "-"]
    paid, each = row["dollars"], row["dollars_per_improvement"]
    return [*counted, _short(row["tokens"]), "?" if paid is None else money(paid), "-" if each is None else money(each)]


def _cut(view: View, name: str) -> str:
    """A name that fits its column: of a long one with a model the end of that is kept, else the beginning."""
    if len(name) <= NAME_COLUMNS:
        return name
    head, at, tail = name.partition("@")
    if not at or len(head) > NAME_COLUMNS - 4:
        return name[: NAME_COLUMNS - 1] + view.glyphs.more
    return f"{head}@{view.glyphs.more}{tail[len(head) + 2 - NAME_COLUMNS :]}"


def _short(tokens: int) -> str:
    """`812`, `12.3k`, `4.56M`, of five characters at most."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if tokens >= size:
            return f"{tokens / size:.3g}{unit}" if tokens < 999.5 * size else f"{tokens / size:.0f}{unit}"
    return str(tokens)
