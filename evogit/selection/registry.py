"""Opens the selector that a text names: a class of this folder, with its options, or the user's own."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import asdict

from evogit.config.custom_classes import is_own
from evogit.config.run_settings import DEFAULT_SELECTOR
from evogit.config.values import nearest
from evogit.core import UsageError
from evogit.history import History
from evogit.lazy_exports import declared
from evogit.selection import Selector
from evogit.selection.custom_selector import Own
from evogit.selection.number_steps import NumberSteps

logger = logging.getLogger(__name__)

Trait = Callable[[History, str], float | None]
"""Describes a valid candidate by a number; None if there is none."""

Traits = Mapping[str, Trait]
"""What describes candidates of the task at hand, by name."""

MAX_BOLDNESS = 100.0
"""The largest boldness that can be asked for."""

MAX_SHOWN_OPTIONS = 3
"""Options of a selector that are shown after its name; of one with more, only the first is."""

Typed = TypeVar("Typed", bound=Struct)


class NoOptions(Struct, frozen=True):
    """The options of a selector without any."""


class BuiltIn(Selector):
    """A selector that is included: a class with a `name`, in any file of this folder.

    `Options` are its options with their defaults: whole numbers, yes or no, `Literal` words, and numbers, which are
    probabilities if their names begin with `p_`.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    """One line for `--selector help`."""
    Options: ClassVar[type[Struct]] = NoOptions
    usage: ClassVar[str] = ""
    """How options are typed, if `Options` do not say it."""
    is_control: ClassVar[bool] = False
    """A baseline, which is listed last."""
    uses_numbers: ClassVar[bool] = False
    """It takes the run's memory of numbers, `numbers=`."""
    replaces: ClassVar[frozenset[str]] = frozenset()
    """Removed selectors in whose place this one is used."""
    removed_options: ClassVar[frozenset[str]] = frozenset()
    """Options of earlier versions; they are ignored."""

    @classmethod
    def open(cls, options: Mapping[str, str], traits: Traits | None, numbers: NumberSteps | None) -> Selector:
        """Return the selector with these options.

        `traits` are what describes candidates, `numbers` the memory of numbers; both are None without a task at hand.
        Raises UsageError for wrong options.
        """
        arguments = [read_options(cls.Options, options)] if options else []
        return cls(*arguments, **({"numbers": numbers} if cls.uses_numbers else {}))

    @classmethod
    def summary(cls) -> str:
        """Return the name with its options, and what it does."""
        values, hints = asdict(cls.Options()), get_type_hints(cls.Options)
        shown = list(values)[: None if len(values) <= MAX_SHOWN_OPTIONS else 1]
        usage = cls.usage or ",".join(f"{name}={_range(hints[name])}" for name in shown)
        others = ", ".join(
            f"{name}={['no', 'yes'][value] if isinstance(value, bool) else f'{value:g}'}"
            for name, value in values.items()
            if name not in shown
        )
        also = f"; also {others}" if others else ""
        return f"{cls.name}{usage and f':{usage}'}  ({cls.help}{also})"


def read_options(kind: type[Typed], options: Mapping[str, str]) -> Typed:
    """Return options as typed with the types of their class. Raises UsageError."""
    hints = get_type_hints(kind)
    if unknown := [key for key in options if key not in hints]:
        near = nearest(unknown[0], hints) if hints else "it has none"
        raise UsageError(f"no option {unknown[0]!r}; {near}")
    return kind(**{key: _typed(key, text, hints[key]) for key, text in options.items()})


def _range(hint: Any) -> str:
    """Return the values that an option of a type takes, as usages show them."""
    if get_origin(hint) is Literal:
        return "|".join(filter(None, get_args(hint)))
    return {bool: "yes|no", int: "N"}.get(hint, "X")


def _typed(key: str, text: str, hint: Any) -> Any:
    """Return an option's value, of its type; its name begins with `p_` if it is a probability."""
    if hint is bool or get_origin(hint) is Literal:
        words = _range(hint).split("|")
        if text not in words:
            raise UsageError(f"expected {' or '.join(f'{key}={word}' for word in words)}, got {key}={text:.200}")
        return text == "yes" if hint is bool else text
    if hint is int:
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


@cache
def selectors() -> Mapping[str, type[BuiltIn]]:
    """Return the selectors that are included by name: the default first, controls last."""
    kinds = declared("evogit.selection", BuiltIn)  # type: ignore[type-abstract]
    kinds.sort(key=lambda kind: (kind.name != DEFAULT_SELECTOR, kind.is_control, kind.name))
    return {kind.name: kind for kind in kinds}


def replacement(name: str) -> type[BuiltIn] | None:
    """Return the selector that is used in place of a removed one; None if there was none of that name."""
    return next((kind for kind in selectors().values() if name in kind.replaces), None)


def open_selector(text: str, traits: Traits | None = None, numbers: NumberSteps | None = None) -> Selector:
    """Return the selector for `NAME`, `NAME:KEY=VALUE,...` or `FILE.py:Name`, whose class is called without arguments.

    `traits` are what describes candidates of the task at hand; without them such names are not checked. `numbers` is
    the memory of the run's numbers, for selectors that can use it.

    Raises:
        ConfigError: the user's own file is wrong.
        UsageError: there is no such selector or option.
    """
    name, _, rest = text.partition(":")
    kind = selectors().get(name)
    if kind is None and is_own(text):
        return Own(text)
    if kind is None and (kind := replacement(name)):
        if traits is not None:  # a run begins; without traits the text is only checked
            logger.warning("the selector %s was removed; %s is used instead", name, kind.name)
        rest = ""
    if kind is None:
        meant = nearest(name, selectors()).partition("known:")[0] or "available:"
        raise UsageError(f"no selector {name!r}; {meant}\n{overview()}")
    try:
        options = _options(rest)
        for option in kind.removed_options & options.keys():
            if traits is not None:
                logger.warning("%s of the selector %s can no longer be set and is ignored", option, name)
            del options[option]
        return kind.open(options, traits, numbers)
    except UsageError as error:
        raise UsageError(f"--selector {kind.summary().partition('  ')[0]}: {error}") from error


def overview() -> str:
    """Return every selector with its options and what it does, a line each."""
    return "\n".join([*(f"  {kind.summary()}" for kind in selectors().values()), "  FILE.py:Name  (your own class)"])


def _options(text: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in text.split(",") if each]
    if odd := [key for key, equals, value in pairs if not (key and equals and value)]:
        raise UsageError(f"expected KEY=VALUE,..., got {odd[0]!r}")
    if len(pairs) > len({key for key, _, _ in pairs}):
        raise UsageError("expected each option once")
    return {key: value for key, _, value in pairs}
