"""The strategies that settle conflicts of merges and grafts: those that an agent may use, and what each earned."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from statistics import fmean
from typing import Any

from msgspec import Struct

from evogit.config.run_settings import CALLS
from evogit.history import History
from evogit.selection import MODEL

FITTER, RANDOM, FUNCTION = "fitter", "random", "function"

SETTLED_HERE = (FITTER, RANDOM, FUNCTION)
"""Those that need no model: the fitter parent's hunk; a coin's (EvoGit's, Huang et al., 2025); whole definitions."""

STRATEGIES = (*SETTLED_HERE, MODEL)

PIECES = "pieces"
"""A strategy of runs before December 2026: takes some definitions of the second parent, in conflict or not."""

RARELY = 0.03
"""Chance of a worthwhile merge or graft where they never help."""

Key = tuple[str, str]
"""An operator, `merge` or `graft`, and a strategy."""


def available(history: History, agent: str) -> tuple[str, ...]:
    """The strategies that a move of `agent` may name: `model` only where the agent can settle conflicts by one."""
    return STRATEGIES if _spec(history, agent).get("kind") in CALLS else SETTLED_HERE


def asks_model(history: History, agent: str) -> bool:
    """Whether an agent asks a model, so that its moves cost money, by its last start."""
    spec = _spec(history, agent)
    return spec.get("kind") in CALLS or bool(spec.get("model"))


def _spec(history: History, agent: str) -> Mapping[str, Any]:
    for started in reversed(history.engines.values()):
        if agent in started.agents:
            specs = started.settings.get("population", ())
            each = [spec for spec in specs for _ in range(spec.get("count", 1))]
            found: Mapping[str, Any] = dict(zip(started.agents, each, strict=False)).get(agent, {})
            return found
    return {}


class MergeOutcome(Struct, frozen=True, kw_only=True):
    """What became of an evaluated merge or graft. `clean`: nothing was in conflict; `helped`: it earned its gain.

    `gain` is over the better parent, in the primary metric's unit and positive when better; None if one is not valid.
    """

    key: Key
    clean: bool
    valid: bool
    helped: bool
    gain: float | None


class StrategyTally(Struct, frozen=True, kw_only=True):
    """How many merges or grafts were evaluated, and of these without a conflict, valid, better than both parents.

    `gain` is the mean over the better one, None while there is none.
    """

    made: int
    clean: int
    valid: int
    better: int
    gain: float | None

    @classmethod
    def of(cls, outcomes: Iterable[MergeOutcome]) -> StrategyTally:
        """Count them."""
        known = list(outcomes)
        gains = [each.gain for each in known if each.gain is not None]
        return cls(
            made=len(known),
            clean=sum(each.clean for each in known),
            valid=sum(each.valid for each in known),
            better=sum(each.helped for each in known),
            gain=fmean(gains) if gains else None,
        )


def outcome(history: History, commit: str) -> MergeOutcome | None:
    """What became of a candidate; None unless it was merged or grafted by a strategy and is evaluated."""
    candidate = history.phylogeny[commit]
    strategy = candidate.strategy or FITTER
    if candidate.operator not in ("merge", "graft") or strategy not in (*STRATEGIES, PIECES):
        return None
    if not history.judged(commit):
        return None
    parents = candidate.parents
    gains = [history.gain(commit, parent) for parent in parents]
    valid = [gain for gain in gains if gain is not None]
    return MergeOutcome(
        key=(candidate.operator, strategy),
        clean=not candidate.conflicts,
        valid=history.fitness(commit) is not None,
        helped=bool(valid) and min(valid) > 0 and history.earned(commit),
        gain=min(valid) if valid else None,
    )


def outcomes(history: History) -> list[MergeOutcome]:
    """Return the outcomes of all merges and grafts of a run."""
    return [found for commit in history.judgements if (found := outcome(history, commit))]


def tallies(outcomes: Iterable[MergeOutcome]) -> dict[Key, StrategyTally]:
    """Operator and strategy -> what is known of them, in the order of their names."""
    groups = defaultdict[Key, list[MergeOutcome]](list)
    for each in outcomes:
        groups[each.key].append(each)
    return {key: StrategyTally.of(groups[key]) for key in sorted(groups)}


class Successes(Struct, frozen=True):
    """How many merges and grafts there were, and how many were better than both parents.

    Of each way to make them, and of those whose sides had changed other cases (True), and the others.
    """

    made: Counter[Key | bool | None]
    helped: Counter[Key | bool | None]

    @classmethod
    def of(cls, latest: Sequence[MergeOutcome], apart: Sequence[bool | None]) -> Successes:
        """Count them; of each is told whether its sides had changed other cases, None where that counts for nothing."""
        kinds: list[Key | bool | None] = [*[each.key for each in latest], *apart]
        helped = [each.helped for each in latest]
        return cls(Counter(kinds), Counter(compress(kinds, helped * 2)))

    def is_turn(self, kind: Key | bool, prior: int, rng: random.Random) -> bool:
        """Whether there is to be another one: as often as these helped, and of `prior` + 1 more all but one."""
        share = (self.helped[kind] + prior) / (self.made[kind] + prior + 1)
        return rng.random() < max(RARELY, share)
