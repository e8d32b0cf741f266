"""Tells what models will cost and be sent, and asks once, before the first call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import click
from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from evogit.agents import Background, Brief
from evogit.agents.briefs import briefing
from evogit.cli.asking.program_consent import confirm_logins
from evogit.cli.lines.spending import amount, money
from evogit.cli.lines.view import first_line
from evogit.cli.options.agents import AgentSetup, costs
from evogit.cli.terminal import Terminal
from evogit.cli.text import count, escape
from evogit.config import Task
from evogit.config.run_settings import PROGRAM_CALLS, RunLimits, Settings, Total
from evogit.core import Candidate, RefusedError
from evogit.history import History
from evogit.history.context import screened
from evogit.llm import Model, TokenUsage
from evogit.repository import Repository
from evogit.repository.paths import named
from evogit.review import EarlierStarts, used

REPLY = 2000
"""Tokens of a reply that a forecast assumes: a plan and some blocks of edits, with some thinking."""

LABEL = 8
"""Columns of what a line is about."""

FIRST = 5
"""Paths that are named of those that are sent."""


class SentFiles(Struct, frozen=True, kw_only=True):
    """What models would be sent: path -> bytes of the `files` that agents may see, and how many are `kept` back.

    `secret` are the paths of those kept back that hold credentials. `brief` is about how many tokens a question has:
    that on the seed, or the average so far where that is more.
    """

    files: Mapping[str, int]
    kept: int
    brief: int
    secret: Sequence[str] = ()


def reach(task: Task, repository: Repository | None, history: History, context: int) -> SentFiles:
    """What models of a run would be sent of its seed, or what becomes its seed; `context` tokens a question at most."""
    if task.seed is None or history.seed is not None:
        task = screened(task, repository or Repository.discover(task.folder), history)
    contents = _contents(task, repository, history)
    visible = {path: read for path, read in contents.items() if task.is_visible(path)}
    files = {path: len(read()) for path, read in visible.items()}
    brief = Brief(
        goal=task.purpose,
        parent=Candidate(commit="0" * 40, tree="", parents=(), agent="seed", operator="seed"),
        files={path: read() for path, read in visible.items() if task.is_editable(path)},
    )
    known = Background(
        task=task.name,
        metrics=task.metrics,
        split="train",
        editable=task.editable,
        sizes=files,
        read=lambda path: visible[path](),
        refusal=lambda path: "",
        templates=task.templates,
    )
    spent, told = history.spent, sum(briefing.write(brief, known, context).tokens.values())
    brief_tokens = max(told, spent.prompt // max(spent.calls, 1))
    return SentFiles(
        files=files, kept=len(contents) - len(files), brief=brief_tokens, secret=task.withheld_for_credentials
    )


def _contents(task: Task, repository: Repository | None, history: History) -> dict[str, Callable[[], bytes]]:
    """How to read every file of the seed."""
    if task.seed is not None and history.seed is None:
        return {path: partial(bytes, content) for path, (content, _) in task.seed_files().items()}
    repository = repository or Repository.discover(task.folder)
    entries = repository.trees.entries(repository.tree_of(history.seed or repository.head()))
    files = (entry for entry in entries if entry.is_file)
    return {entry.path: partial(repository.trees.blob, entry.blob) for entry in files}


class CostForecast(Struct, frozen=True, kw_only=True):
    """A run as it would be paid: `models` with the endpoint of each, and `comparisons` of every new candidate."""

    settings: Settings
    history: History
    before: EarlierStarts
    models: Sequence[tuple[Model, str]]
    reach: SentFiles
    comparisons: int = 0

    @property
    def calls(self) -> int:
        """Calls for each candidate, about: of the agent that asks most often, and of a panel that judges."""
        return max(spec.calls for spec in self.settings.population) + self.comparisons

    @property
    def paid(self) -> tuple[str, ...]:
        """What a person agrees to: `NAME at ENDPOINT` of each model that costs money, unless it is replayed."""
        return tuple(
            sorted(f"{model.name} at {endpoint}" for model, endpoint in self.models if endpoint and costs(model))
        )

    def agreed_before(self) -> bool:
        """Return whether the user agreed when starting the run last: to these models, with limits no lower."""
        before = self.before.asking
        limits = zip(self.settings.ceilings.values(), RunLimits.of(before).ceilings.values(), strict=True)
        raised = any(old is not None and (new is None or new > old) for new, old in limits)
        return not raised and set(self.paid) <= set(before.get("agreed", ()))


def confirm_costs(
    terminal: Terminal, setup: AgentSetup, task: Task, repository: Repository | None, history: History, *, yes: bool
) -> Settings:
    """The setup's settings with what a person agreed to; for one that asks no model, nothing is to be agreed to.

    Raises:
        RefusedError: the person does not agree, or there is no terminal to ask on.
    """
    trusted = confirm_logins(terminal, setup, yes=yes)
    if not setup.asking:
        return replace(setup.settings, agreed=trusted)
    models = [(model, setup.models.endpoint(model.name)) for model in setup.asking]
    sent = reach(task, repository, history, max(model.context for model in setup.asking))
    comparisons = task.pairwise.comparisons if task.pairwise and task.pairwise.panel else 0
    offer = CostForecast(
        settings=setup.settings,
        history=history,
        before=setup.before,
        models=models,
        reach=sent,
        comparisons=comparisons,
    )
    if setup.added:
        limits = ", ".join(amount(name, limit) for name, limit in setup.added.items())
        before = RunLimits.of(setup.before.asking)
        why = "as before" if any(before.ceilings.values()) else "as none was given"
        terminal.note(_fact("limit", f"{limits}, {why}; --dollars, --tokens or --proposals set others"))
    for doubt in filter(None, (setup.models.doubt(model.name) for model in setup.asking)):
        terminal.note(f"{escape(doubt)}; the endpoint is asked for that name", "yellow")
    return replace(setup.settings, agreed=(*consent(terminal, offer, yes=yes), *trusted))


def consent(terminal: Terminal, offer: CostForecast, *, yes: bool) -> tuple[str, ...]:
    """Tell what will be paid and sent, and ask unless that was agreed to; returns what is agreed.

    Raises:
        RefusedError: the answer is no, or there is no terminal to give one.
    """
    agreed = offer.agreed_before()
    for line in lines(offer, short=agreed or not offer.paid):
        terminal.note(line)
    if not offer.paid or agreed or yes:
        return offer.paid
    if not terminal.interactive:
        raise RefusedError("this costs money, and there is no terminal to ask on; add --yes to agree to it")
    if not click.confirm("Send these files and accept these costs?", err=True):
        raise RefusedError("nothing was sent and nothing was changed")
    return offer.paid


def confirm_question(terminal: Terminal, model: Model, endpoint: str, sent: SentFiles, most: str, *, yes: bool) -> None:
    """Tell what one command sends to a model, and what that may cost at `most`; ask unless nothing is paid.

    Raises:
        RefusedError: the user does not agree, or there is no terminal to ask on.
    """
    if not endpoint:
        return
    terminal.note(_fact("model", f"{first_line(model.name)} at {first_line(endpoint)}, {_price(model)}"))
    terminal.note(_fact("sent", _sent(sent)))
    if sent.secret:
        terminal.note(_fact("secret", f"not sent, as they hold credentials: {first_line(named(sent.secret))}"))
    terminal.note(_fact("at most", most))
    if yes or not costs(model):
        return
    if not terminal.interactive:
        raise RefusedError("this costs money, and there is no terminal to ask on; add --yes to agree to it")
    if not click.confirm("Send these files and accept these costs?", err=True):
        raise RefusedError("nothing was sent and nothing was changed")


def lines(offer: CostForecast, *, short: bool) -> Iterator[Text]:
    """What a person should know; `short`: only what is sent where."""
    for model, endpoint in offer.models:
        where = f"at {first_line(endpoint)}, {_price(model)}" if endpoint else "from a file: nothing is sent or paid"
        yield _fact("model", f"{first_line(model.name)} {where}")
    if any(endpoint for _, endpoint in offer.models):
        yield _fact("sent", _sent(offer.reach))
        if offer.reach.secret:
            yield _fact("secret", _told_secret(offer.reach.secret))
    if not short:
        yield _fact("a call", _call(offer))
        yield from _forecast(offer)


def _fact(name: str, text: str) -> Text:
    return Text.assemble((f"{name:<{LABEL}}", "dim"), text)


def _price(model: Model) -> str:
    if model.price is None:
        return "price not known"
    if model.price.free:
        return "free"
    return f"{money(model.price.prompt)} in and {money(model.price.completion)} out for a million tokens"


def _sent(reach: SentFiles) -> str:
    first = sorted(reach.files)[:FIRST]
    names = ", ".join(map(first_line, first)) + (" ..." if len(reach.files) > FIRST else "")
    kept = f"; {count(reach.kept, 'withheld file')} {'is' if reach.kept == 1 else 'are'} not" if reach.kept else ""
    return f"{count(len(reach.files), 'file')} of {sum(reach.files.values()):,} bytes at most: {names}{kept}"


def _told_secret(paths: Sequence[str]) -> str:
    """A sentence on the files that hold credentials."""
    return (
        f"not sent, as they hold credentials: {first_line(named(paths))}; shared = [...] in the task's file sends them"
    )


def _call(offer: CostForecast) -> str:
    price = dearest(offer)
    tokens = f"about {offer.reach.brief:,} tokens of question and {REPLY:,} of reply"
    return tokens if price is None else f"{tokens}, {money(price)}"


def dearest(offer: CostForecast) -> float | None:
    """Dollars for a call of the dearest model; None while a price is not known."""
    usage = TokenUsage(prompt=offer.reach.brief, completion=REPLY)
    prices = [model.price.of(usage) if model.price else None for model, _ in offer.models]
    known = [price for price in prices if price is not None]
    return max(known) if len(known) == len(prices) else None


def _forecast(offer: CostForecast) -> Iterator[Text]:
    """What the run will use: about, until its candidates are evaluated, and at most, by the limit that is nearest.

    A proposal may take all calls that its agent may make, and may never be evaluated: evaluations bound no money.
    """
    if (evaluations := _left(offer, "evaluations")) is not None:
        proposals = _left(offer, "proposals")
        name: Total = "evaluations" if proposals is None or evaluations <= proposals else "proposals"
        least = evaluations if proposals is None else min(evaluations, proposals)
        of = f"{amount(name, least)}, {_number(offer.calls)} calls for each"
        yield _fact("about", _use(offer, offer.calls * least, of))
    limits = {name: left for name in offer.settings.ceilings if (left := _left(offer, name)) is not None}
    calls = {name: calls for name, left in limits.items() if (calls := _calls(offer, name, left)) is not None}
    nearest = min(calls, key=lambda name: calls[name])
    if nearest == "proposals":
        of = f"{amount(nearest, limits[nearest])}, {_number(_most(offer))} calls each"
        guessed = any(spec.calls == PROGRAM_CALLS for spec in offer.settings.population)
        yield _fact("about" if guessed else "at most", _use(offer, calls[nearest], of))
    else:
        yield _fact("at most", f"{amount(nearest, limits[nearest])}, about {count(int(calls[nearest]), 'call')}")


def _calls(offer: CostForecast, limit: str, left: float) -> float | None:
    """How many calls a limit leaves, about; None if unknown."""
    if limit == "proposals":
        return _most(offer) * left
    each = offer.reach.brief + REPLY if limit == "tokens" else dearest(offer)
    return left / each if each else None


def _most(offer: CostForecast) -> int:
    """Calls for each candidate at most, but for the few questions whose answer is known: any may be asked twice."""
    return offer.calls + offer.comparisons


def _number(calls: int) -> str:
    return "two" if calls == 2 else str(calls)


def _use(offer: CostForecast, calls: float, of: str) -> str:
    price, each = dearest(offer), offer.reach.brief + REPLY
    cost = f"{calls * each:,.0f} tokens" if price is None else money(calls * price)
    return f"{cost} in {count(int(calls), 'call')} for {of}"


def _left(offer: CostForecast, name: Total) -> float | None:
    limit = offer.settings.totals[name]
    return None if limit is None else max(limit - used(offer.history, name), 0)
