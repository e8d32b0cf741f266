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
from evogit.text import one_line

REPLY = 2000
"""Tokens of a reply that a forecast assumes: a plan and some blocks of edits, with some thinking."""

MAX_PATHS, MAX_ROLE_CHARS = 5, 200


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
    def reviewer(self) -> str:
        """The model that is asked once for each would-be best, if the task names one; a task with judges has none."""
        return "" if self.comparisons else "".join(self.settings.panel)

    @property
    def calls(self) -> int:
        """Calls for each candidate, about: of the agent that asks most often, and of a panel that judges."""
        return max(spec.calls for spec in self.settings.population) + self.comparisons

    @property
    def paid(self) -> tuple[str, ...]:
        """What the user agrees to: `NAME at ENDPOINT` of each model that costs money, unless it is replayed."""
        paid = (f"{model.name} at {endpoint}" for model, endpoint in self.models if endpoint and costs(model))
        return tuple(sorted(paid))


def confirm_costs(
    terminal: Terminal, setup: AgentSetup, task: Task, repository: Repository | None, history: History, *, yes: bool
) -> Settings:
    """Return the settings with what the user agreed to, if a model is asked. Raise RefusedError if they do not."""
    trusted = confirm_logins(terminal, setup, yes=yes)
    if not setup.asking:
        return replace(setup.settings, agreed=trusted)
    models = [(model, setup.models.endpoint(model.name)) for model in setup.asking]
    sent = reach(task, repository, history, max(model.context for model in setup.asking))
    pairs = task.pairwise.comparisons if task.pairwise and task.pairwise.panel else 0
    offer = CostForecast(
        settings=setup.settings, history=history, before=setup.before, models=models, reach=sent, comparisons=pairs
    )
    if setup.added:
        limits = ", ".join(amount(name, limit) for name, limit in setup.added.items())
        why = "as before" if any(RunLimits.of(setup.before.asking).ceilings.values()) else "as none was given"
        terminal.note(_fact("limit", f"{limits}, {why}; --dollars, --tokens, --calls or --proposals set others"))
    for doubt in filter(None, (setup.models.doubt(model.name) for model in setup.asking)):
        terminal.note(f"{escape(doubt)}; the endpoint is asked for that name", "yellow")
    return replace(setup.settings, agreed=(*consent(terminal, offer, yes=yes), *trusted))


def consent(terminal: Terminal, offer: CostForecast, *, yes: bool) -> tuple[str, ...]:
    """Print what is paid and sent, ask unless agreed before, and return what is agreed. Raise RefusedError if not.

    The user agreed before if the last start asked these models, with limits no lower.
    """
    before = offer.before.asking
    limits = zip(offer.settings.ceilings.values(), RunLimits.of(before).ceilings.values(), strict=True)
    raised = any(old is not None and (new is None or new > old) for new, old in limits)
    agreed = not raised and set(offer.paid) <= set(before.get("agreed", ()))
    for line in lines(offer, short=agreed or not offer.paid):
        terminal.note(line)
    if offer.paid and not (agreed or yes):
        _ask_to_pay(terminal)
    return offer.paid


def _ask_to_pay(terminal: Terminal) -> None:
    if not terminal.interactive:
        raise RefusedError("this costs money, and there is no terminal to ask on; add --yes to agree to it")
    if not click.confirm("Send these files and accept these costs?", err=True):
        raise RefusedError("nothing was sent and nothing was changed")


def confirm_question(terminal: Terminal, model: Model, endpoint: str, sent: SentFiles, most: str, *, yes: bool) -> None:
    """Print what one command sends and may cost; ask unless that is nothing. Raise RefusedError if not agreed."""
    if not endpoint:
        return
    terminal.note(_fact("model", f"{first_line(model.name)} at {first_line(endpoint)}, {_price(model)}"))
    for line in (*_sent(sent), _fact("at most", most)):
        terminal.note(line)
    if not yes and costs(model):
        _ask_to_pay(terminal)


def lines(offer: CostForecast, *, short: bool) -> Iterator[Text]:
    """Yield what the user should know; `short`: only what is sent where."""
    reach = offer.reach
    for model, endpoint in offer.models:
        where = f"at {first_line(endpoint)}, {_price(model)}" if endpoint else "from a file: nothing is sent or paid"
        yield _fact("model", f"{first_line(model.name)} {where}")
    if offer.reviewer:
        yield _fact("review", f"{first_line(offer.reviewer)} looks at each would-be best, one call each")
    for spec in offer.settings.population:
        if spec.role:
            yield _fact("role", f"{spec}: {first_line(one_line(spec.words, MAX_ROLE_CHARS))}")
    if any(endpoint for _, endpoint in offer.models):
        yield from _sent(reach, "; shared = [...] in the task's file sends them")
    if not short:
        price = dearest(offer)
        tokens = f"about {reach.brief:,} tokens of question and {REPLY:,} of reply"
        yield _fact("a call", tokens if price is None else f"{tokens}, {money(price)}")
        yield from _forecast(offer)


def _sent(reach: SentFiles, remedy: str = "") -> Iterator[Text]:
    names = ", ".join(map(first_line, sorted(reach.files)[:MAX_PATHS])) + " ..." * (len(reach.files) > MAX_PATHS)
    kept = f"; {count(reach.kept, 'withheld file')} {'is' if reach.kept == 1 else 'are'} not" if reach.kept else ""
    size = f"{sum(reach.files.values()):,} bytes at most"
    yield _fact("sent", f"{count(len(reach.files), 'file')} of {size}: {names}{kept}")
    if reach.secret:
        secret = f"not sent, as they hold credentials: {first_line(named(reach.secret))}"
        yield _fact("secret", secret + remedy)


def _fact(name: str, text: str) -> Text:
    return Text.assemble((f"{name:<8}", "dim"), text)


def _price(model: Model) -> str:
    if model.price is None:
        return "price not known"
    if model.price.free:
        return "free"
    return f"{money(model.price.prompt)} in and {money(model.price.completion)} out for a million tokens"


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
        expected, most_calls = offer.calls * least, _left(offer, "calls")
        if most_calls is None or expected <= most_calls:
            of = f"{amount(name, least)}, {offer.calls} calls for each"
            yield _fact("about", _use(offer, expected, of))
    most = offer.calls + offer.comparisons + bool(offer.reviewer)
    price, tokens = dearest(offer), offer.reach.brief + REPLY
    rates = {"proposals": most, "calls": 1.0, "tokens": 1 / tokens, "dollars": 1 / price if price else None}
    limits = {name: left for name in offer.settings.ceilings if (left := _left(offer, name)) is not None}
    calls = {name: left * rate for name, left in limits.items() if (rate := rates[name]) is not None}
    nearest = min(calls, key=lambda name: calls[name])
    if nearest == "proposals":
        of = f"{amount(nearest, limits[nearest])}, {most} calls each"
        guessed = any(spec.calls == PROGRAM_CALLS for spec in offer.settings.population)
        yield _fact("about" if guessed else "at most", _use(offer, calls[nearest], of))
    elif nearest == "calls":
        yield _fact("about", _use(offer, calls[nearest], "the whole run"))
    else:
        yield _fact("at most", f"{amount(nearest, limits[nearest])}, about {count(int(calls[nearest]), 'call')}")


def _use(offer: CostForecast, calls: float, of: str) -> str:
    price, each = dearest(offer), offer.reach.brief + REPLY
    cost = f"{calls * each:,.0f} tokens" if price is None else money(calls * price)
    return f"{cost} in {count(int(calls), 'call')} for {of}"


def _left(offer: CostForecast, name: Total) -> float | None:
    limit = offer.settings.totals[name]
    return None if limit is None else max(limit - used(offer.history, name), 0)


def confirm_logins(terminal: Terminal, setup: AgentSetup, *, yes: bool) -> tuple[str, ...]:
    """Print which programs get a login and a network, and ask unless agreed before. Raise RefusedError if not."""
    found = {spec.kind: setup.programs.find(spec.kind) for spec in setup.settings.population}
    mounted = {kind: program for kind, program in found.items() if program and not program.metered}
    agreed = tuple(f"{kind} with your login and a network" for kind in sorted(mounted))
    for kind, program in mounted.items():
        terminal.note(
            f'{kind} works with copies of {", ".join(program.preset.login)} and a network (auth = "mount"): its '
            "costs are neither counted nor limited, and what it runs can use that login and send the code anywhere",
            "yellow",
        )
    if yes or set(agreed) <= set(setup.before.agreed):
        return agreed
    if not terminal.interactive:
        raise RefusedError("there is no terminal to ask on; add --yes to allow it")
    if not click.confirm("Allow this?", err=True):
        raise RefusedError("nothing was sent and nothing was changed")
    return agreed


def check_programs(setup: AgentSetup) -> list[str]:
    """Return the kinds of programs that are yet to install. Raise SandboxError or UsageError if one cannot work."""
    kinds = dict.fromkeys(spec.kind for spec in setup.settings.population)
    return [kind for kind in kinds if setup.programs.find(kind) and not setup.programs.check(kind)]


def prepare(terminal: Terminal, setup: AgentSetup, kinds: Sequence[str]) -> None:
    """Have what programs of these kinds need installed. Raise SandboxError or UsageError if one cannot work."""
    found = {kind: program for kind in kinds if (program := setup.programs.find(kind))}
    for kind, program in found.items():
        if wanted := (*program.environment.packages, *program.environment.setup):
            terminal.note(f"preparing {kind}; the first time {', '.join(wanted)} is installed, which may take minutes")
        setup.programs.prepare(kind)
