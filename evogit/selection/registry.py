"""Makes the selector that a text names: one that comes along, with its options, or a person's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from evogit.config.custom_classes import is_own
from evogit.config.values import nearest
from evogit.core import UsageError
from evogit.selection import Selector
from evogit.selection.anatomy import Anatomy
from evogit.selection.cells import Axis, Trait, untold
from evogit.selection.controls import BestOfN, OnePlusLambda, RandomParent, Sequential
from evogit.selection.custom_selector import Own
from evogit.selection.elitist import DEFAULT, Elitist, ElitistOptions
from evogit.selection.frugal import DEFAULT as FRUGAL
from evogit.selection.frugal import Frugal, FrugalOptions
from evogit.selection.islands import Islands
from evogit.selection.map_elites import MapElites
from evogit.selection.pareto import Pareto
from evogit.selection.tournament import Tournament
from evogit.selection.weighted import Weighted

Traits = Mapping[str, Trait]
"""What describes candidates of the task at hand, by name."""

Options = Mapping[str, str]

MOST_BOLD = 100.0
"""The largest boldness that can be asked for."""


class Kind(Struct, frozen=True):
    """A selector that comes along: how it is made, its options as they are typed, and one line about it.

    `make` gets the options, what describes candidates, and what takes them apart; both are None where no task is at
    hand. It raises `UsageError`.
    """

    make: Callable[[Options, Traits | None, Anatomy | None], Selector]
    about: str
    usage: str = ""


def _plain(kind: Callable[[], Selector]) -> Callable[[Options, Traits | None, Anatomy | None], Selector]:
    return lambda options, traits, anatomy: kind(**_numbers(options))


def _numbers(options: Options, **defaults: int) -> dict[str, int]:
    """Options that are whole numbers above 0, and defaults for the others."""
    if unknown := [key for key in options if key not in defaults]:
        known = nearest(unknown[0], defaults) if defaults else "it has none"
        raise UsageError(f"no option {unknown[0]!r}; {known}")
    for key, text in options.items():
        if not (text.isascii() and text.isdigit() and len(text) <= 7 and 0 < int(text) <= 1_000_000):
            raise UsageError(f"expected {key}=N, a whole number from 1 to a million, got {key}={text:.200}")
    return defaults | {key: int(text) for key, text in options.items()}


def _elitist(options: Options, traits: Traits | None, anatomy: Anatomy | None) -> Selector:
    return Elitist(ElitistOptions(**_typed_options(options, DEFAULT)), anatomy=anatomy)


def _frugal(options: Options, traits: Traits | None, anatomy: Anatomy | None) -> Selector:
    return Frugal(FrugalOptions(**_typed_options(options, FRUGAL)), anatomy=anatomy)


def _typed_options(options: Options, defaults: ElitistOptions | FrugalOptions) -> dict[str, Any]:
    """What is given, with the types of the defaults."""
    known = asdict(defaults)
    if unknown := [key for key in options if key not in known]:
        raise UsageError(f"no option {unknown[0]!r}; {nearest(unknown[0], known)}")
    return {key: _typed(key, text, known[key]) for key, text in options.items()}


def _typed(key: str, text: str, default: float) -> float:
    """An option's value, of the type of its default; a probability where it is called one."""
    if isinstance(default, bool):
        if text not in ("yes", "no"):
            raise UsageError(f"expected {key}=yes or {key}=no, got {key}={text:.200}")
        return text == "yes"
    if isinstance(default, int):
        return _numbers({key: text}, **{key: default})[key]
    least, most = (0.0, 1.0) if key.startswith("p_") else (1.0, MOST_BOLD)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise UsageError(f"expected {key}=X, a number from {least:g} to {most:g}, got {key}={text:.200}")
    return value


def _told(value: float) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else f"{value:g}"


def _weighted(options: Options, traits: Traits | None, anatomy: Anatomy | None) -> Selector:
    return Weighted(**_numbers(options, archive=40, pressure=10))


def _tournament(options: Options, traits: Traits | None, anatomy: Anatomy | None) -> Selector:
    return Tournament(**_numbers(options, size=4, latest=0))


def _pareto(options: Options, traits: Traits | None, anatomy: Anatomy | None) -> Selector:
    match list(options.items()):
        case []:
            return Pareto()
        case [("over", "metrics" | "cases" as over)]:
            return Pareto(over)
    raise UsageError(f"expected over=metrics or over=cases, got {', '.join(map('='.join, options.items()))}")


def _map_elites(options: Options, traits: Traits | None, anatomy: Anatomy | None) -> Selector:
    if not options:
        raise UsageError("expected what makes a kind: METRIC=LOW..HIGH/PARTS, such as size=0..10000/20")
    axes = {name: Axis.parse(name, text) for name, text in options.items()}
    if traits is None:
        return MapElites([(untold, axis) for axis in axes.values()])
    if unknown := [name for name in axes if name not in traits]:
        near = nearest(unknown[0], traits)
        raise UsageError(f"nothing called {unknown[0]!r} describes candidates of this task; {near}")
    return MapElites([(traits[name], axis) for name, axis in axes.items()])


def _islands(options: Options, traits: Traits | None, anatomy: Anatomy | None) -> Selector:
    inner = options.get("of", "elitist")
    if not is_own(inner):
        inner = inner.replace("+", ",")
    if inner.partition(":")[0] == "islands":
        raise UsageError("expected of=SELECTOR other than islands")
    open_selector(inner, traits, anatomy)
    numbers = _numbers({key: text for key, text in options.items() if key != "of"}, count=4, every=20, migrants=1)
    return Islands(lambda: open_selector(inner, traits, anatomy), **numbers)


def _others(defaults: ElitistOptions | FrugalOptions) -> str:
    """The options but for the first one, with what they are where nobody says so."""
    return ", ".join(f"{name}={_told(value)}" for name, value in list(asdict(defaults).items())[1:])


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
        _weighted, "the fit and the childless are drawn more often, after ShinkaEvolve", "archive=N,pressure=N"
    ),
    "tournament": Kind(_tournament, "the fittest of a few drawn ones, of all or of the latest", "size=N,latest=N"),
    "pareto": Kind(_pareto, "candidates unbeaten over several metrics, or best on some case", "over=metrics|cases"),
    "map-elites": Kind(
        _map_elites, "the fittest of each kind: metrics of the task, size, changed", "METRIC=LOW..HIGH/PARTS,..."
    ),
    "islands": Kind(
        _islands,
        "populations that breed apart and send each other their best; + parts the options of SELECTOR",
        "of=SELECTOR,count=N,every=N,migrants=N",
    ),
    "best-of-n": Kind(_plain(BestOfN), "a control: every candidate is a mutation of the seed"),
    "sequential": Kind(_plain(Sequential), "a control: each agent goes on alone"),
    "one-plus-lambda": Kind(_plain(OnePlusLambda), "a control: all agents mutate the best"),
    "random-parent": Kind(_plain(RandomParent), "a control: descent without selection"),
}
"""Those that come along, by name."""


def open_selector(text: str, traits: Traits | None = None, anatomy: Anatomy | None = None) -> Selector:
    """The selector for `NAME`, `NAME:KEY=VALUE,...` or `FILE.py:Name`, whose class is called without arguments.

    `traits` are what describes candidates of the task at hand; without them such names are not checked. With an
    `anatomy` a selector that can use it looks into candidates.

    Raises:
        ConfigError: a person's own file is wrong.
        UsageError: there is no such selector or option.
    """
    name, _, rest = text.partition(":")
    if is_own(text) and name not in SELECTORS:
        return Own(text)
    if name not in SELECTORS:
        meant = nearest(name, SELECTORS).partition("known:")[0] or "available:"
        raise UsageError(f"no selector {name!r}; {meant}\n{overview()}")
    try:
        return SELECTORS[name].make(_options(rest), traits, anatomy)
    except UsageError as error:
        usage = SELECTORS[name].usage
        raise UsageError(f"--selector {name}{f':{usage}' if usage else ''}: {error}") from error


def overview() -> str:
    """Every selector with its options and what it does, a line each."""
    lines = [f"  {name}{kind.usage and f':{kind.usage}'}  ({kind.about})" for name, kind in SELECTORS.items()]
    return "\n".join([*lines, "  FILE.py:Name  (your own class)"])


def _options(text: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in text.split(",") if each]
    if odd := [key for key, equals, value in pairs if not (key and equals and value)]:
        raise UsageError(f"expected KEY=VALUE,..., got {odd[0]!r}")
    if len(pairs) > len({key for key, _, _ in pairs}):
        raise UsageError("expected each option once")
    return {key: value for key, _, value in pairs}
