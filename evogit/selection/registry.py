"""Makes the selector that a text names: one that is included, with its options, or the user's own."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from evogit.config.custom_classes import is_own
from evogit.config.values import nearest
from evogit.core import UsageError
from evogit.selection import Selector
from evogit.selection.controls import BestOfN, OnePlusLambda, RandomParent, Sequential
from evogit.selection.custom_selector import Own
from evogit.selection.elitist import DEFAULT, Elitist, ElitistOptions
from evogit.selection.frugal import DEFAULT as FRUGAL
from evogit.selection.frugal import Frugal, FrugalOptions
from evogit.selection.islands import Islands
from evogit.selection.map_elites import Axis, MapElites, Trait, no_value
from evogit.selection.number_steps import NumberSteps
from evogit.selection.pareto import Pareto
from evogit.selection.weighted import Weighted

logger = logging.getLogger(__name__)

Traits = Mapping[str, Trait]
"""What describes candidates of the task at hand, by name."""

Options = Mapping[str, str]
Make = Callable[[Options, Traits | None, NumberSteps | None], Selector]

MAX_BOLDNESS = 100.0
"""The largest boldness that can be asked for."""

REMOVED = {"tournament": "weighted"}
"""Selectors that there were -> what is used instead."""

REMOVED_OPTIONS = {
    "elitist": {"graft", "p_explore_per_wait", "p_explore_max", "explore_records", "wait_min"},
    "frugal": {
        *("p_begin", "p_explore", "p_explore_per_wait", "p_explore_max", "others", "p_near", "p_tactic", "wait"),
    },
    "islands": {"of"},
}
"""Options of earlier versions by selector; they are ignored."""


class Kind(Struct, frozen=True):
    """A selector that is included: how it is made, its options as they are typed, and one line about it.

    `make` gets the options, what describes candidates, and the memory of numbers; both are None without a task at
    hand. It raises `UsageError`.
    """

    make: Make
    about: str
    usage: str = ""


def _plain(kind: Callable[..., Selector], **defaults: int) -> Make:
    """Make a selector whose options are whole numbers."""
    return lambda options, traits, numbers: kind(**(defaults | _typed_options(options, defaults)))


def _typed_options(options: Options, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the types of their defaults."""
    if unknown := [key for key in options if key not in defaults]:
        near = nearest(unknown[0], defaults) if defaults else "it has none"
        raise UsageError(f"no option {unknown[0]!r}; {near}")
    return {key: _typed(key, text, defaults[key]) for key, text in options.items()}


def _typed(key: str, text: str, default: float) -> float:
    """Return an option's value, of the type of its default; its name begins with `p_` if it is a probability."""
    if isinstance(default, bool):
        if text not in ("yes", "no"):
            raise UsageError(f"expected {key}=yes or {key}=no, got {key}={text:.200}")
        return text == "yes"
    if isinstance(default, int):
        if not (text.isascii() and text.isdigit() and len(text) <= 7 and 0 < int(text) <= 1_000_000):
            raise UsageError(f"expected {key}=N, a whole number from 1 to a million, got {key}={text:.200}")
        return int(text)
    least, most = (0.0, 1.0) if key.startswith("p_") else (1.0, MAX_BOLDNESS)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise UsageError(f"expected {key}=X, a number from {least:g} to {most:g}, got {key}={text:.200}")
    return value


def _elitist(options: Options, traits: Traits | None, numbers: NumberSteps | None) -> Selector:
    return Elitist(ElitistOptions(**_typed_options(options, asdict(DEFAULT))), numbers=numbers)


def _frugal(options: Options, traits: Traits | None, numbers: NumberSteps | None) -> Selector:
    return Frugal(FrugalOptions(**_typed_options(options, asdict(FRUGAL))), numbers=numbers)


def _pareto(options: Options, traits: Traits | None, numbers: NumberSteps | None) -> Selector:
    match list(options.items()):
        case []:
            return Pareto()
        case [("over", "metrics" | "cases" as over)]:
            return Pareto(over)
    raise UsageError(f"expected over=metrics or over=cases, got {', '.join(map('='.join, options.items()))}")


def _map_elites(options: Options, traits: Traits | None, numbers: NumberSteps | None) -> Selector:
    if not options:
        raise UsageError("expected what makes a kind: METRIC=LOW..HIGH/PARTS, such as size=0..10000/20")
    axes = {name: Axis.parse(name, text) for name, text in options.items()}
    if traits is None:
        return MapElites([(no_value, axis) for axis in axes.values()])
    if unknown := [name for name in axes if name not in traits]:
        near = nearest(unknown[0], traits)
        raise UsageError(f"nothing called {unknown[0]!r} describes candidates of this task; {near}")
    return MapElites([(traits[name], axis) for name, axis in axes.items()])


def _others(defaults: ElitistOptions | FrugalOptions) -> str:
    """Return the options but for the first one, with their defaults."""
    others = list(asdict(defaults).items())[1:]
    texts = {name: ("no", "yes")[value] if isinstance(value, bool) else f"{value:g}" for name, value in others}
    return ", ".join(f"{name}={text}" for name, text in texts.items())


SELECTORS: Mapping[str, Kind] = {
    "elitist": Kind(
        _elitist,
        f"mostly the best breeds; what helped elsewhere is merged onto it; also {_others(DEFAULT)}",
        "merge=yes|no",
    ),
    "frugal": Kind(
        _frugal, f"each call works on the best, or what is nearly as good; also {_others(FRUGAL)}", "merge=yes|no"
    ),
    "weighted": Kind(
        _plain(Weighted, archive=40, pressure=10),
        "the fit and the childless are drawn more often, after ShinkaEvolve",
        "archive=N,pressure=N",
    ),
    "pareto": Kind(_pareto, "candidates unbeaten over several metrics, or best on some case", "over=metrics|cases"),
    "map-elites": Kind(
        _map_elites, "the fittest of each kind: metrics of the task, size, changed", "METRIC=LOW..HIGH/PARTS,..."
    ),
    "islands": Kind(
        _plain(Islands, count=4, every=20, migrants=1),
        "populations that breed apart and send each other their best",
        "count=N,every=N,migrants=N",
    ),
    "best-of-n": Kind(_plain(BestOfN), "a control: every candidate is a mutation of the seed"),
    "sequential": Kind(_plain(Sequential), "a control: each agent continues alone"),
    "one-plus-lambda": Kind(_plain(OnePlusLambda), "a control: all agents mutate the best"),
    "random-parent": Kind(_plain(RandomParent), "a control: descent without selection"),
}
"""The selectors that are included, by name."""


def open_selector(text: str, traits: Traits | None = None, numbers: NumberSteps | None = None) -> Selector:
    """Return the selector for `NAME`, `NAME:KEY=VALUE,...` or `FILE.py:Name`, whose class is called without arguments.

    `traits` are what describes candidates of the task at hand; without them such names are not checked. `numbers` is
    the memory of the run's numbers, for selectors that can use it.

    Raises:
        ConfigError: the user's own file is wrong.
        UsageError: there is no such selector or option.
    """
    name, _, rest = text.partition(":")
    if is_own(text) and name not in SELECTORS:
        return Own(text)
    if name in REMOVED:
        if traits is not None:  # a run begins; without traits the text is only checked
            logger.warning("the selector %s was removed; %s is used instead", name, REMOVED[name])
        name, rest = REMOVED[name], ""
    if name not in SELECTORS:
        meant = nearest(name, SELECTORS).partition("known:")[0] or "available:"
        raise UsageError(f"no selector {name!r}; {meant}\n{overview()}")
    try:
        options = _options(rest)
        for option in [each for each in options if each in REMOVED_OPTIONS.get(name, ())]:
            if traits is not None:
                logger.warning("%s of the selector %s can no longer be set and is ignored", option, name)
            del options[option]
        return SELECTORS[name].make(options, traits, numbers)
    except UsageError as error:
        usage = SELECTORS[name].usage
        raise UsageError(f"--selector {name}{f':{usage}' if usage else ''}: {error}") from error


def overview() -> str:
    """Return every selector with its options and what it does, a line each."""
    lines = [f"  {name}{kind.usage and f':{kind.usage}'}  ({kind.about})" for name, kind in SELECTORS.items()]
    return "\n".join([*lines, "  FILE.py:Name  (your own class)"])


def _options(text: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in text.split(",") if each]
    if odd := [key for key, equals, value in pairs if not (key and equals and value)]:
        raise UsageError(f"expected KEY=VALUE,..., got {odd[0]!r}")
    if len(pairs) > len({key for key, _, _ in pairs}):
        raise UsageError("expected each option once")
    return {key: value for key, _, value in pairs}
