"""The default: breed from the best, merge onto it what helped elsewhere, and look wider the longer nothing helps."""

from __future__ import annotations

import random

from msgspec import Struct

from evogit.history import History
from evogit.selection import MODEL, Move, Mutation
from evogit.selection.frugal import Frugal, FrugalOptions
from evogit.selection.merge_planner import Planner
from evogit.selection.merge_strategies import FUNCTION, RANDOM, asks_model
from evogit.selection.number_steps import NumberSteps
from evogit.selection.pool import Offspring, favoured
from evogit.selection.registry import BuiltIn


class ElitistOptions(Struct, frozen=True, kw_only=True):
    """How the default selector searches; each is settable as `--selector elitist:NAME=VALUE,...`."""

    merge: bool = True
    """Combine candidates: merges and donors."""
    numbers: bool = True
    """Let agents that ask models go on with changes of single numbers without a call."""
    random: bool = False
    """Plan merges whose conflicts a coin settles, too, as in EvoGit's paper."""
    p_restart: float = 0.40
    """Probability of a child of the (tuned) seed at the beginning; it falls to 0 linearly."""
    restart_horizon: int = 200
    """Judged candidates after which that is 0."""
    p_explore: float = 0.02
    """Probability of a parent other than the best while the search goes well."""
    p_donor: float = 0.25
    """Probability that an agent is shown a second candidate, where one has something that the best lacks."""
    boldness_max: float = 3.0
    """How many times larger than usual a change becomes at most; each wait adds 1."""


DEFAULT = ElitistOptions()

P_EXPLORE_PER_WAIT = 0.20
"""The addition to `p_explore` for each wait beyond the first."""

P_EXPLORE_MAX = 0.6

EXPLORED_RECORDS = 64
"""The latest record holders among which such a parent is drawn, in addition to the living."""

MIN_WAIT_EVALUATIONS = 20
"""Evaluations without a better candidate that are never more than one wait."""


class Elitist(BuiltIn):
    """All agents breed from the best one; what helped on another line is merged onto it.

    Elitism after De Jong (1975), and after EvoGit (Huang et al., 2025, "Decentralized Code Evolution via Git-Based
    Multi-Agent Collaboration") each agent's own individual, which its child replaces if no worse: here that is what
    keeps other lines alive. Some children are the seed's, ever fewer: climbing alone settles for the first hill, and
    what such a child gained can be merged onto the best one. If numbers of the seed were changed, these are the
    children of the seed with its numbers tuned, unless that is the best already. The longer the wait for a better
    candidate, in waits of usual length, the more parents are others: record holders and individuals with few children,
    as ShinkaEvolve weighs them (arXiv 2509.19349), and the bolder the changes. Without `merge` no two candidates are
    ever combined. All that holds for agents whose moves are free; those that ask models breed as with `frugal`.
    """

    name = "elitist"
    help = "mostly the best breeds; what helped elsewhere is merged onto it"
    Options = ElitistOptions
    removed_options = frozenset(("graft", "p_explore_per_wait", "p_explore_max", "explore_records", "wait_min"))
    uses_numbers = True

    def __init__(self, options: ElitistOptions = DEFAULT, *, numbers: NumberSteps | None = None) -> None:
        self._options = options
        self._paid = Frugal(
            FrugalOptions(merge=options.merge, donors=options.merge, numbers=options.numbers), numbers=numbers
        )
        self._offspring = Offspring()
        self._numbers = numbers
        strategies = (FUNCTION, MODEL, *([RANDOM] if options.random else []))
        self._planner = Planner(numbers.repository if numbers else None, strategies)

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        """Return a planned merge if one is worthwhile, else a mutation."""
        if asks_model(history, agent):
            return self._paid.next_move(history, agent, rng)
        best = history.best
        if best is None:
            return Mutation(parent=history.head(agent))
        if self._options.merge and (planned := self._planner.move(history, best, agent, rng)):
            return planned
        options = self._options
        waits = waited(history)
        parent = favoured(history, rng) or self._parent(history, best, waits, rng)
        boldness = rng.uniform(1.0, min(options.boldness_max, 1.0 + waits))
        donor = self._donor(history, best, rng) if self._options.merge and rng.random() < options.p_donor else None
        donor = None if donor == parent else donor
        return Mutation(parent=parent, donor=donor, boldness=boldness, tuning=True)

    def crossing(self, history: History, agent: str, rng: random.Random) -> Move | None:
        """Return a merge that is worthwhile while an agent goes on with its session."""
        return self._paid.crossing(history, agent, rng)

    def adopts(self, history: History, agent: str, child: str) -> bool:
        """Valid, not pruned, no worse than what the agent has, beyond noise, and no merge that gained nothing."""
        return child not in history.pruned and history.no_worse(child, history.head(agent)) and history.earned(child)

    def _donor(self, history: History, best: str, rng: random.Random) -> str | None:
        donors = [each for each in history.living() if self._planner.complements(history, best, each)]
        return rng.choice(donors) if donors else None

    def _parent(self, history: History, best: str, waits: float, rng: random.Random) -> str:
        options = self._options
        p_restart = options.p_restart * (1 - len(history.judgements) / options.restart_horizon)
        if rng.random() < p_restart and (seed := _untouched(history, best)):
            tuned = self._numbers.tuned(history, seed) if self._numbers else seed
            return seed if tuned == best else tuned
        if rng.random() > min(P_EXPLORE_MAX, options.p_explore + P_EXPLORE_PER_WAIT * waits):
            return _latest(history, best)
        children = self._offspring.of(history)
        known = dict.fromkeys([*history.records[-EXPLORED_RECORDS:], *history.living()])
        pool = [each for each in known if each not in history.pruned and history.fitness(each) is not None]
        return rng.choices(pool, [1 / (1 + children[each]) for each in pool])[0] if pool else best


def waited(history: History, least: int = MIN_WAIT_EVALUATIONS) -> float:
    """How long there was no better candidate, in waits of usual length, of `least` evaluations, beyond the first."""
    usual = (len(history.judgements) - history.stagnant) / max(1, len(history.records))
    return max(0.0, history.stagnant / max(float(least), usual) - 1.0)


def _untouched(history: History, best: str) -> str | None:
    """The seed, unless it may not breed or a person brought something better."""
    seed = history.seed
    if seed is None or seed in history.pruned or history.phylogeny[best].operator == "human":
        return None
    return seed if history.fitness(seed) is not None else None


def _latest(history: History, best: str) -> str:
    """The youngest individual that equals the best: drifting where nothing changes the value leads out of plateaus."""
    equal = [each for each in history.living() if history.fitness(each) == history.fitness(best)]
    return max([best, *equal], key=history.phylogeny.numbers.__getitem__)
