"""The settings of a run as a journal tells them: anybody's, so they are checked before anything reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from evogit.repository.shapes import MisshapenError, reader

MAX_SETTING = 1e30
"""Numbers among a run's settings are smaller, in either direction."""

MAX_AGENTS = 10_000
"""Of all kinds together."""

ABOVE_ZERO = ("evaluations", "proposals", "minutes", "dollars", "tokens", "patience", "confirmations")
"""Settings that bound a run."""


class ToldSettings(Struct, frozen=True, kw_only=True):
    """The settings that anything reads and their types; a later version may tell more."""

    population: tuple[Any, ...] = ()
    evaluations: float | None = None
    proposals: float | None = None
    minutes: float | None = None
    dollars: float | None = None
    tokens: float | None = None
    patience: float | None = None
    confirmations: float | None = None
    target: float | None = None
    grace: float | None = None
    jobs: float = 1
    seed: float = 0
    beyond: bool = False
    count_repeats: bool = False
    deterministic: bool = False
    join: bool = False
    detached: bool = False
    selector: str = ""
    split: str = ""
    sandbox: str = ""
    panel: tuple[str, ...] = ()
    agreed: tuple[str, ...] = ()


_read = reader(ToldSettings)


def odd_settings(settings: Mapping[str, Any], depth: int) -> str:
    """Return what no engine would have told, empty if there is nothing; values lie at most `depth` brackets deep."""
    if not _is_plain(dict(settings), depth):
        return "expected settings of texts and finite numbers"
    try:
        told: ToldSettings = _read(dict(settings))
    except MisshapenError as error:
        return f"settings: {error}"
    for name in ABOVE_ZERO:
        limit = getattr(told, name)
        if limit is not None and not limit > 0:
            return f"expected a number above 0 as the limit {name}, got {limit!r:.80}"
    if told.grace is not None and not 0 <= told.grace < 60 * (told.minutes or 0.0):
        return f"expected grace of 0 seconds or more, and less than minutes, got {told.grace:g}"
    if not all(map(_is_spec, told.population)):
        return f"expected kinds, models and counts as population, got {told.population!r:.80}"
    if sum(spec.get("count", 1) for spec in told.population) > MAX_AGENTS:
        return f"expected at most {MAX_AGENTS:,} agents"
    return ""


def _is_spec(spec: Any) -> bool:
    """Return whether this says how many agents there are of a kind, and which models each asks, every one once."""
    if type(spec) is not dict or type(spec.get("kind")) is not str:
        return False
    model, count = spec.get("model", ""), spec.get("count", 1)
    if type(model) is not str or type(count) is not int or not 0 < count <= MAX_AGENTS:
        return False
    models = model.split(",")
    return len(models) == 1 or (all(models) and len(set(models)) == len(models))


def _is_plain(value: Any, depth: int) -> bool:
    """Return whether a value of settings is not too deep, and its numbers are finite."""
    if isinstance(value, dict | list):
        values = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_plain(each, depth - 1) for each in values)
    return not isinstance(value, int | float) or abs(value) < MAX_SETTING
