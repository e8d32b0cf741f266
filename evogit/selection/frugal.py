"""How agents that ask models breed: a call costs money, so it works on the best, or on what is nearly as good."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from evogit.history import History
from evogit.selection import LookBack, Move, Mutation
from evogit.selection.donors import donor
from evogit.selection.merge_planner import Planner
from evogit.selection.number_steps import NumberSteps
from evogit.selection.plateaus import Beginning, Plateau
from evogit.selection.pool import Offspring, Ranking, favoured
from evogit.selection.registry import BuiltIn


class FrugalOptions(Struct, frozen=True, kw_only=True):
    """How agents that ask models search; each is settable as `--selector frugal:NAME=VALUE,...`."""

    numbers: bool = True
    """Go on with changes of single numbers, without asking a model."""
    merge: bool = True
    """Merge candidates: where that asks no model, and by a model while such merges earn their cost."""
    donors: bool = True
    """While the run stands still, show some calls the code of another line (`donors.py`)."""
    tactics: bool = True
    """After a plateau a model is asked what to try instead."""


DEFAULT = FrugalOptions()

MAX_OTHERS = 4
"""Candidates of other lines among which such a parent is drawn."""

MIN_GAIN_SHARE = 0.5
"""The least share of the best's gain over the seed that such a parent has."""

SPARES = 12
"""Candidates, the fittest ones, on which a change is tried that was there already; each try is a merge."""


class Frugal(BuiltIn):
    """Every call works on the best candidate, on a plateau also on the next best of other lines, or on the seed afresh.

    Of equals it is the latest: changes that change no value add up, which leads out of plateaus (Barnett, 2001). None
    works on the seed while calls gain, nor on what lost more than half of what was gained. A change of one
    number goes on without a call (`number_steps.py`). Merges that ask nobody are planned as by default. A conflict is
    put to a model only while such merges were better than both parents more often than candidates became the best of
    all: at first that is rare, and a run that goes well does without.
    """

    name = "frugal"
    help = "each call works on the best, or what is nearly as good"
    Options = FrugalOptions
    removed_options = frozenset(
        ("p_begin", "p_explore", "p_explore_per_wait", "p_explore_max", "others", "p_near", "p_tactic", "wait")
    )
    uses_numbers = True

    def __init__(self, options: FrugalOptions = DEFAULT, *, numbers: NumberSteps | None = None) -> None:
        self._options = options
        self._offspring = Offspring()
        self._numbers = numbers if options.numbers else None
        self._ranking = Ranking()
        self._planner = Planner(numbers.repository if numbers else None)

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        """A merge where one is worthwhile, else a mutation of the best or of one nearly as good."""
        best = history.best
        if best is None:
            return Mutation(parent=history.head(agent))
        if step := self._numbers and self._numbers.move(history, agent):
            return step
        plateau = Plateau(history, agent)
        if self._options.tactics and plateau.is_due():
            return LookBack(parent=best)
        if self._options.merge:
            planned = self._planner.move(history, best, agent, rng, by_model=self._model_merges_pay(history))
            if planned:
                return planned
        tactic = plateau.in_force
        beginning = "best" if tactic else plateau.beginning(rng)
        parent = favoured(history, rng) or self._parent(history, best, beginning, rng)
        afresh = beginning == "afresh" and parent == history.origin != best
        spares = () if afresh else tuple(self._spares(history, best))
        rebase = parent in (best, history.latest_best)
        shown = donor(history, self._others(history, best), rng) if rebase and self._options.donors else None
        return Mutation(parent=parent, donor=shown, tactic=tactic, rebase=rebase, spares=spares, afresh=afresh)

    def crossing(self, history: History, agent: str, rng: random.Random) -> Move | None:
        """Return a merge without a model's help that is worthwhile while an agent goes on with its session."""
        if not self._options.merge or history.best is None:
            return None
        return self._planner.move(history, history.best, agent, rng, by_model=False, at_once=True)

    def adopts(self, history: History, agent: str, child: str) -> bool:
        """Valid, not pruned, no worse than what the agent has, beyond noise, and no merge that gained nothing."""
        return child not in history.pruned and history.no_worse(child, history.head(agent)) and history.earned(child)

    def _model_merges_pay(self, history: History) -> bool:
        """Whether merges by models help more often than anything else; one of four is assumed to where none was."""
        tally = self._planner.tally(history)
        usual = (len(history.records) + 1) / (len(history.judgements) + 2)
        return (tally.better + 1) / (tally.made + 4) > usual

    def _parent(self, history: History, best: str, beginning: Beginning, rng: random.Random) -> str:
        """The parent of a call; without another line, or where the seed may not breed, it is the best."""
        if beginning == "other" and (others := self._others(history, best)):
            children = self._offspring.of(history)
            return rng.choices(others, [1 / (1 + children[each]) for each in others])[0]
        seed = history.origin
        if beginning == "afresh" and seed and seed not in history.pruned and history.fitness(seed) is not None:
            return seed
        return history.latest_best or best

    def _spares(self, history: History, best: str) -> Sequence[str]:
        """Where a change is put that was there already: the best, and those next to it."""
        return list(islice(self._near(history, best, {history.seed or best}), SPARES))

    def _others(self, history: History, best: str) -> Sequence[str]:
        """The fittest candidates that the best does not descend from, nor they from it, as far as they are near."""
        graph = history.phylogeny
        kin = {history.seed or best, best, *graph.ancestors(best), *graph.descendants(best)}
        return list(islice(self._near(history, best, kin), MAX_OTHERS))

    def _near(self, history: History, best: str, without: Collection[str]) -> Iterator[str]:
        """The candidates that lost little of what was gained, fittest first."""
        most = (1 - MIN_GAIN_SHARE) * (history.gain(best, history.seed or best) or 0.0)
        for _, _, commit in self._ranking.of(history):
            if (history.gain(best, commit) or 0.0) > most:
                return
            if commit not in without:
                yield commit
