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
from evogit.history.counts import CallCost
from evogit.history.state import OUTAGE
from evogit.review import Costs, Use, last_limits, spending_by_model, uses

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
    """Return the use of a limit, such as `$1.23 of $5.00` or `7 of 20 proposals`, and how much of it is set aside."""

    def plain(value: float) -> str:
        return money(value) if use.what == "dollars" else f"{value:,}"

    held = f" ({plain(use.held)} of it set aside for calls in flight or lost)" if use.held else ""
    return f"{plain(use.used)} of {amount(use.what, use.most)}{held}"


def spent_words(history: History, costs: Costs) -> list[str]:
    """Return the calls of models and their cost, in a few words; none if there were no calls."""
    if not costs.calls:
        return []
    spent, priced = history.spent, history.spent.unpriced < history.spent.calls or not history.spent.calls

    def cost(calls: CallCost, at_most: str = "") -> str:
        return f"{money(calls.dollars)}{at_most}" if priced else f"{calls.tokens:,} tokens{at_most}"

    efforts = history.authors.efforts.values()
    asked = sum(effort.done is not None and not history.authors.unanswered(effort.done) for effort in efforts)
    answered = costs.answered
    words = [f"answered: {count(answered.calls, 'call')}" + (f" for {count(asked, 'proposal')}" if asked else "")]
    words.append(f"{answered.tokens:,} tokens")
    words[-1] += f", {percent(spent.cached / spent.prompt)} cached" if spent.cached else ""
    words.append(money(answered.dollars) if priced else "no price known")
    words[-1] += f" and {count(spent.unpriced, 'call')} without a price" if priced and spent.unpriced else ""
    for calls, what in (
        (costs.in_flight, "in flight"),
        (costs.at_most, "without a reply that may be billed"),
        (costs.inherited, f"of {first_line(history.forked.run)} before the fork" if history.forked else ""),
    ):
        most = "" if calls is costs.inherited else " at most"
        words += [f"{count(calls.calls, 'call')} {what}, {cost(calls, most)}"] if calls.calls else []
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


def spending_lines(view: View, costs: Costs) -> list[Text]:
    """The bars of the limits, and each agent's use of models; empty for a run without limits and models."""
    history, glyphs = view.history, view.glyphs
    lines = []
    for use in uses(history, last_limits(history)):
        drawn = bar(use.share, BAR_COLUMNS, glyphs.full, glyphs.empty)
        lines.append(Text.assemble(("budget  ", "dim"), (drawn, "cyan"), f"  {use_text(use)}"))
    if not costs.calls:
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
        tokens = f"{spending.answered.tokens:,} tokens"
        cells = [count(spending.calls, "call"), f"{spending.failed:,} failed", tokens]
        rows.append([Text(first_line(who), "dim"), view.model(model), _dollars(spending), *cells, f"{cached} cached"])
    total = Text(f" {glyphs.dot} ".join(spent_words(history, costs)), "dim")
    return [*lines, Text.assemble(("spent   ", "dim"), total), *table(rows, "llrrrrr")]


def _dollars(spending: Spending) -> str:
    if spending.unpriced == spending.calls:
        return "no price known"
    return money(spending.answered.dollars) + (
        f" and {count(spending.unpriced, 'call')} without a price" * bool(spending.unpriced)
    )
