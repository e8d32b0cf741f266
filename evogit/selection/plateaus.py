"""Plateaus of paid calls: when a model looks back, which briefs have its answer, and where the next calls begin."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

from evogit.config.run_settings import CALLS
from evogit.events import Tactic
from evogit.history import History
from evogit.history.counts import EXTENDED, MIRRORED

PATIENCE_CALLS = 4
"""Calls in a row without a gain beyond noise that are a plateau, if the usual wait of the run for one is not longer.

One of each paying agent where these are more.
"""

DRIFT_SHARE = 0.001
"""The share of all that a run gained up to which a gain of exact scores is drift.

Four gains after call 5 of a run of 30 calls came to 0.0012 of it together, and the holdout gained nothing.
"""

CALLS_PER_LOOK_BACK = 10
"""One call in so many looks back, at most."""

BRIEFS_PER_LOOK_BACK = 2
"""Calls whose briefs have the answer."""

WINDOW_CALLS = 100
"""The latest calls, from which a plateau and the worth of beginnings are learnt."""

Beginning = Literal["best", "other", "afresh"]
"""The parent of a call: the best, one of another line, or the seed (of a stage), with nothing shown that is better."""

FIRST_SHARES = {"best": 2 / 3, "other": 1 / 6, "afresh": 1 / 6}
"""The share of each beginning on the first plateau."""


class PaidCall(NamedTuple):
    """A move in which a model was asked: its number, the candidate that it worked on, the candidates that it made."""

    move: int
    parent: str
    made: Sequence[str]


class Plateau:
    """What the calls of paying agents came to, from the history alone.

    Moves that ask no model, of mutators above all, are not counted. `dry` are the latest calls without a gain beyond
    noise over their parent and all that calls gained before.
    """

    def __init__(self, history: History, agent: str) -> None:
        self._history = history
        self._able = _able(history, agent)
        self._agent = agent
        self._patience = float(max(PATIENCE_CALLS, len(self._able)))
        horizon = history.attempts.horizon
        known = [entry for entry, each in history.tactics.items() if horizon is None or each.move <= horizon]
        self._latest = known[-1] if known else ""
        self._look_backs = len(known)
        self._calls = _settled(history, agent)
        self.dry = 0
        self._tried = Counter[Beginning]()
        self._won = Counter[Beginning]()
        self._read()

    def _read(self) -> None:
        """Find the plateau of now, and what each beginning brought on this and earlier ones."""
        history, mark, gained, least = self._history, "", 0, self._patience
        lineage = history.phylogeny.ancestors(*history.records)
        for number, call in enumerate(self._calls, 1):
            if self.dry >= self._patience:
                beginning = self._beginning_of(call)
                self._tried[beginning] += 1
                self._won[beginning] += any(commit in lineage for commit in call.made)
            gains = (each for each in call.made if self._gains(each, call.parent) and self._gains(each, mark))
            gain = next(gains, "")
            self.dry, mark = (0, gain) if gain else (self.dry + 1, mark)
            gained += bool(gain)
            self._patience = max(least, number / gained) if gain else self._patience

    def _gains(self, commit: str, over: str) -> bool:
        history = self._history
        total = history.gain(history.best or "", history.seed or "") or 0.0
        return commit not in history.pruned and (not over or history.beyond_noise(commit, over, DRIFT_SHARE * total))

    def _beginning_of(self, call: PaidCall) -> Beginning:
        history, parent = self._history, call.parent
        before = (each for each in reversed(history.records) if history.phylogeny[each].move < call.move)
        best = next(before, parent)
        if parent == best or (parent != history.origin and history.phylogeny.is_ancestor(parent, best)):
            return "best"
        if parent == history.origin:
            return "afresh"
        return "best" if history.gain(parent, best) == 0 else "other"

    @property
    def in_force(self) -> str:
        """The entry of the latest answer until so many calls had it that began after it; empty if there is none."""
        if not self._latest or not self._tactic.text:
            return ""
        return "" if self._since_look_back(settled=False) >= BRIEFS_PER_LOOK_BACK else self._latest

    @property
    def _tactic(self) -> Tactic:
        return self._history.tactics[self._latest]

    def _since_look_back(self, *, settled: bool) -> int:
        horizon = self._history.attempts.horizon
        ended = (move for move, _, _ in reversed(self._history.authors.order) if horizon is None or move <= horizon)
        moves = (call.move for call in self._calls) if settled else ended
        return sum(move > self._tactic.move for move in moves)

    def is_due(self) -> bool:
        """Whether it is the agent's turn to look back: on a plateau, in one call of ten, with calls left to use it."""
        dry = min(self.dry, self._since_look_back(settled=True)) if self._latest else self.dry
        if dry < self._patience or not self._able or self._able[self._look_backs % len(self._able)] != self._agent:
            return False
        limit, calls = self._limit(), len(self._history.authors.order) + self._look_backs
        if self._history.attempts.horizon is None:  # else it depends on who is faster
            calls = max(calls, self._history.spent.charged)
        if limit and limit - calls <= BRIEFS_PER_LOOK_BACK:
            return False
        return CALLS_PER_LOOK_BACK * (self._look_backs + 1) <= (limit or calls + 1)

    def _limit(self) -> int:
        """The calls that the run may make: a limit on calls, or on proposals where all agents pay; 0 if unknown."""
        settings = [*self._history.engines.values()][-1].settings
        alone = all(spec.get("kind") in CALLS for spec in settings.get("population", ()))
        return int(settings.get("calls") or (alone and settings.get("proposals")) or 0)

    def beginning(self, rng: random.Random) -> Beginning:
        """Draw where the next call begins: at the best, on a plateau also elsewhere, as often as that brought a best.

        Each is drawn by the square of its share of calls that a later best descends from, as strategies of merges are;
        calls outside of plateaus are left out.
        """
        if self.dry < self._patience:
            return "best"
        beginnings: tuple[Beginning, ...] = get_args(Beginning)
        wins = {each: self._won[each] + FIRST_SHARES[each] ** 0.5 for each in beginnings}
        return rng.choices(beginnings, [(wins[each] / (self._tried[each] + 1)) ** 2 for each in beginnings])[0]


def _settled(history: History, agent: str) -> list[PaidCall]:
    """The latest calls of which all is known, oldest first; in a deterministic run those that this move may know.

    Where nothing says what was asked, as of agents of the user's own, mutations of the agent's kind count as calls.
    """
    horizon, authors = history.attempts.horizon, history.authors
    efforts = [authors.efforts[key] for key in authors.order[-WINDOW_CALLS:]]
    ends = [(each.move, each.done, each.made) for each in efforts]
    calls = [PaidCall(move, end.parents[0], made) for move, end, made in ends if end and end.parents]
    if not calls:
        kinds = {name: kind for (_, name), kind in history.past_kinds().items()}
        own = [history.phylogeny[commit] for commit in history.judgements[-WINDOW_CALLS:]]
        own = [each for each in own if kinds.get(each.agent) == kinds.get(agent)]
        own = [each for each in own if each.operator == "mutation" and each.strategy not in (EXTENDED, MIRRORED)]
        calls = [PaidCall(each.move, each.parents[0], (each.commit,)) for each in own]
    known = [call for call in calls if horizon is None or call.move <= horizon]
    return [call for call in known if all(map(history.judged, call.made))]


def _able(history: History, agent: str) -> list[str]:
    """The agents of an agent's engine whose models can look back."""
    started = next((each for each in reversed(history.engines.values()) if agent in each.agents), None)
    specs = started.settings.get("population", ()) if started else ()
    kinds = [spec.get("kind") for spec in specs for _ in range(spec.get("count", 1))]
    return [name for name, kind in zip(started.agents if started else (), kinds, strict=False) if kind in CALLS]
