"""Selection decides which parents breed next and which children survive; a selector is a function of the history.

A `History` goes in, a `Move` comes out. Start with `weighted.py`, the shortest selector, and `elitist.py`, the default;
`registry.py` opens them by name, `merge_planner.py` plans merges.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Literal, Protocol

from msgspec import Struct

from evogit.history import History


class Move(Struct, frozen=True, kw_only=True):
    """An agent's next step.

    `mutation`: change the first parent, optionally with a `donor` to take code from; `boldness` multiplies the usual
    size of a change, `tuning` lets it change named numbers by what earlier changes of them brought. `merge`: merge
    both parents with Git, conflicts resolved by `strategy`. `graft`: apply the second parent's change of its own first
    parent to the first parent, conflicts resolved likewise. With `rebase` a mutation is put on the best candidate, the
    latest of equals, if that descends from the parent by then; one that makes what is there already is put on the first
    of its `spares` on which it makes something new. With `advise` the agent makes nothing, and says what to try now
    that nothing helps; `tactic` is the entry of such advice that the agent is given; `afresh` it sees no better code.
    A `change`, path to content, is made under its `title` without asking an agent.
    """

    operator: Literal["mutation", "merge", "graft"]
    parents: tuple[str, ...]
    donor: str | None = None
    strategy: str = ""
    boldness: float = 1.0
    tuning: bool = False
    rebase: bool = False
    spares: tuple[str, ...] = ()
    advise: bool = False
    tactic: str = ""
    afresh: bool = False
    change: Mapping[str, bytes] = {}
    title: str = ""

    @property
    def asks(self) -> bool:
        """True if an agent has to act: not for most merges, nor for a given change."""
        return not self.change and (self.operator == "mutation" or self.strategy == "model")


class Selector(Protocol):
    """Chooses parents and survivors. Every random choice comes from the generator that is passed in.

    Look at evaluated candidates only, and ask `history.attempts` for what was tried: whether a candidate that still
    awaits its evaluation is in the history already depends on time, even in a deterministic run.
    """

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        """Return the parents from which `agent` breeds next, and how."""
        ...

    def adopts(self, history: History, agent: str, child: str) -> bool:
        """Return whether the evaluated candidate `child` becomes the current individual of `agent`."""
        ...
