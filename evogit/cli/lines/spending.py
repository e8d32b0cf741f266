"""How money, tokens and limits read on a terminal."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from rich.text import Text

from evogit.cli.lines.view import View, first_line
from evogit.cli.terminal import table
from evogit.cli.text import bar, count, percent
from evogit.history import History, Spending
from evogit.history.state import OUTAGE
from evogit.review import Use, last_limits, spending_by_model, uses

MAX_SPENDERS = 16
BAR_COLUMNS = 24


def money(dollars: float) -> str:
    """`$1.23`; less than ten cents with two digits of its own, such as `$0.0042`."""
    return f"${dollars:,.2f}" if dollars >= 0.1 or not dollars else f"${dollars:.2g}"


def amount(what: str, value: float) -> str:
    """A limit's amount in words: `$5.00`, `2,000,000 tokens`."""
    if what == "dollars":
        return money(value)
    return f"{value:,.10g} {what.removesuffix('s') if value == 1 else what}"


def use_text(use: Use) -> str:
    """`$1.23 of $5.00`, `7 of 20 proposals`."""
    done = money(use.used) if use.what == "dollars" else f"{use.used:,}"
    return f"{done} of {amount(use.what, use.most)}"


def spent_words(history: History) -> list[str]:
    """Calls of models and their cost, in a few words; empty while there were none."""
    spent = history.spent
    if not spent.calls:
        return []
    asked = sum(effort.done is not None for effort in history.authors.efforts.values())
    words = [count(spent.calls, "call") + (f" for {count(asked, 'proposal')}" if asked else "")]
    words[0] += f", {spent.failed:,} failed" if spent.failed else ""
    words.append(
        f"{spent.tokens:,} tokens" + (f", {percent(spent.cached / spent.prompt)} cached" if spent.cached else "")
    )
    words.append(_dollars(spent))
    if spent.broken:  # it is not known whether they are billed
        cost = f", {money(spent.broken_dollars)} at most" if spent.broken_dollars else ""
        words.append(f"included: {count(spent.broken, 'call')} that broke off{cost}")
    return words


def outage_lines(history: History) -> list[Text]:
    """The models that have not answered of late, since when and why."""
    lines = []
    for model, outage in history.outages.items():
        if outage.attempts >= OUTAGE:
            since = time.strftime("%H:%M", time.localtime(outage.since))
            said = f"{first_line(model)} has not answered since {since}, {outage.attempts:,} attempts: "
            lines.append(Text(said + first_line(outage.why), "yellow"))
    return lines


def spending_lines(view: View) -> list[Text]:
    """The bars of the limits, and each agent's use of models; empty for a run without limits and models."""
    history, glyphs = view.history, view.glyphs
    lines = []
    for use in uses(history, last_limits(history)):
        drawn = bar(use.share, BAR_COLUMNS, glyphs.full, glyphs.empty)
        lines.append(Text.assemble(("budget  ", "dim"), (drawn, "cyan"), f"  {use_text(use)}"))
    if not history.spent.calls:
        return lines
    spenders: Iterable[tuple[str, str, Spending]]
    if len(history.spent_by) <= MAX_SPENDERS:
        spenders = [(agent, model, spending) for (agent, model), spending in history.spent_by.items()]
    else:
        agents = Counter(model for _, model in history.spent_by)
        models = spending_by_model(history).items()
        spenders = [(count(agents[model], "agent"), model, spending) for model, spending in models]
    rows: list[list[Text | str]] = []
    for who, model, spending in spenders:
        cached = percent(spending.cached / spending.prompt) if spending.prompt else "-"
        cells = [count(spending.calls, "call"), f"{spending.failed:,} failed", f"{spending.tokens:,} tokens"]
        rows.append([Text(first_line(who), "dim"), view.model(model), _dollars(spending), *cells, f"{cached} cached"])
    total = Text(f" {glyphs.dot} ".join(spent_words(history)), "dim")
    return [*lines, Text.assemble(("spent   ", "dim"), total), *table(rows, "llrrrrr")]


def _dollars(spending: Spending) -> str:
    if spending.unpriced == spending.calls:
        return "no price known"
    return money(spending.dollars) + (
        f" and {count(spending.unpriced, 'call')} without a price" * bool(spending.unpriced)
    )
