"""Makes the selector that a text names: one that comes along, with its options, or a person's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evogit.core import UsageError
from evogit.loading import is_own, load
from evogit.schema import nearest
from evogit.selection import Selector
from evogit.selection.controls import BestOfN, OnePlusLambda, RandomParent, Sequential
from evogit.selection.elitist import Elitist

Maker = Callable[[Mapping[str, str]], Selector]
"""Makes a selector from its options, or raises `UsageError`."""


def _plain(kind: Callable[[], Selector]) -> Maker:
    def make(options: Mapping[str, str]) -> Selector:
        if options:
            raise UsageError(f"expected no options, got {', '.join(options)}")
        return kind()

    return make


def _elitist(options: Mapping[str, str]) -> Selector:
    if options not in ({}, {"merge": "yes"}, {"merge": "no"}):
        raise UsageError(f"expected elitist:merge=yes or merge=no, got {', '.join(map('='.join, options.items()))}")
    return Elitist(merging=options != {"merge": "no"})


SELECTORS: Mapping[str, Maker] = {
    "elitist": _elitist,
    "best-of-n": _plain(BestOfN),
    "sequential": _plain(Sequential),
    "one-plus-lambda": _plain(OnePlusLambda),
    "random-parent": _plain(RandomParent),
}
"""Those that come along, by name."""


def open_selector(text: str) -> Selector:
    """The selector for `NAME`, `NAME:KEY=VALUE,...` or `FILE.py:Name`, whose class is called without arguments.

    Raises:
        ConfigError: a person's own file is wrong.
        UsageError: there is no such selector or option.
    """
    if is_own(text):
        selector: Selector = load(text)()
        missing = [name for name in ("next_move", "adopts") if not callable(getattr(selector, name, None))]
        if missing:
            raise UsageError(f"expected {text} to be a selector with {' and '.join(missing)}, got {selector!r}")
        return selector
    name, _, rest = text.partition(":")
    if name not in SELECTORS:
        raise UsageError(f"no selector {name!r}; {nearest(name, SELECTORS)}; one of your own is FILE.py:Name")
    return SELECTORS[name](_options(name, rest))


def _options(name: str, text: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in text.split(",") if each]
    if odd := [key for key, equals, value in pairs if not (key and equals and value)]:
        raise UsageError(f"expected {name}:KEY=VALUE,..., got {', '.join(odd)!r}")
    return {key: value for key, _, value in pairs}
