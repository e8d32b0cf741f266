"""How agents that ask models breed: a call costs money, so it works on the best, or on what is nearly as good."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from evogit.history import History
from evogit.selection import Move
from evogit.selection.donors import donor
from evogit.selection.merge_planner import Planner
from evogit.selection.number_steps import NumberSteps
from evogit.selection.pool import Offspring, Ranking, favoured
from evogit.selection.tactics import Tactics


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
    p_tactic: float = 0.5
    """Probability that a call carries a tactic while one is in force."""
    wait: int = 6
    """Evaluations without a better candidate that are a wait."""


DEFAULT = FrugalOptions()

P_BEGIN = 0.2
"""Probability that a call with a tactic begins at the best, and not at the best candidate of the tactic."""

P_EXPLORE_PER_WAIT = 0.05
"""The addition to the probability of a parent other than the best, for each wait beyond the first."""

P_EXPLORE_MAX = 0.5

MAX_OTHERS = 4
"""Candidates of other lines among which such a parent is drawn."""

MIN_GAIN_SHARE = 0.5
"""The least share of the best's gain over the seed that such a parent has."""

SPARES = 12
"""Candidates, the fittest ones, on which a change is tried that was there already; each try is a merge."""


class Frugal:
    """Every call works on the best candidate; the longer nothing is better, the more on the next best of other lines.

    Of equals it is the latest: changes that change no value add up, which leads out of plateaus (Barnett, 2001). None
    works on the seed once something is better, nor on what lost more than half of what was gained. A change of one
    number goes on without a call (`number_steps.py`). Merges that ask nobody are planned as by default. A conflict is
    put to a model only while such merges were better than both parents more often than candidates became the best of
    all: at first that is rare, and a run that goes well does without.
    """

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
            return Move(operator="mutation", parents=(history.head(agent),))
        if step := self._numbers and self._numbers.move(history, agent):
            return step
        tactics = Tactics(history)
        if self._options.tactics and tactics.is_due(agent):
            return Move(operator="mutation", parents=(best,), advise=True)
        if self._options.merge:
            planned = self._planner.move(history, best, agent, rng, by_model=self._model_merges_pay(history))
            if planned:
                return planned
        tactic = tactics.in_force
        if tactic and rng.random() < self._options.p_tactic:
            parent = self._advised_parent(tactics, best, rng)
        else:
            tactic, parent = "", favoured(history, rng) or self._parent(history, best, rng)
        spares = tuple(self._spares(history, best))
        rebase = parent in (best, history.latest_best)
        shown = donor(history, self._others(history, best), rng) if rebase and self._options.donors else None
        return Move(operator="mutation", parents=(parent,), donor=shown, tactic=tactic, rebase=rebase, spares=spares)

    def crossing(self, history: History, agent: str, rng: random.Random) -> Move | None:
        """Return a merge without a model's help that is worthwhile while an agent goes on with its session."""
        if not self._options.merge or history.best is None:
            return None
        return self._planner.move(history, history.best, agent, rng, by_model=False, at_once=True)

    def adopts(self, history: History, agent: str, child: str) -> bool:
        """Valid, not pruned, and no worse than what the agent has, beyond noise."""
        return child not in history.pruned and history.no_worse(child, history.head(agent))

    def _model_merges_pay(self, history: History) -> bool:
        """Whether merges by models help more often than anything else; one of four is assumed to where none was."""
        tally = self._planner.tally(history)
        usual = (len(history.records) + 1) / (len(history.judgements) + 2)
        return (tally.better + 1) / (tally.made + 4) > usual

    def _advised_parent(self, tactics: Tactics, best: str, rng: random.Random) -> str:
        """The best of what the tactic made, or, to begin once more, the best of all."""
        made = tactics.best_of(tactics.in_force)
        return best if made is None or rng.random() < P_BEGIN else made

    def _parent(self, history: History, best: str, rng: random.Random) -> str:
        waits = max(0.0, history.stagnant / self._options.wait - 1.0)
        if rng.random() >= min(P_EXPLORE_MAX, P_EXPLORE_PER_WAIT * waits):
            return history.latest_best or best
        others = self._others(history, best)
        children = self._offspring.of(history)
        return rng.choices(others, [1 / (1 + children[each]) for each in others])[0] if others else best

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
