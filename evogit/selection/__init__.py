"""Selection decides which parents breed next and which children survive; a selector is a function of the history."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from evogit.history import History

if TYPE_CHECKING:  # commands that look at a run take no program apart
    from evogit.selection.anatomy import Piece


class Move(Struct, frozen=True, kw_only=True):
    """What an agent does next.

    `mutation`: change the first parent, optionally with a `donor` to take code from; `boldness` multiplies the
    usual size of a change. `merge`: merge the two parents with Git, conflicts resolved by `strategy`. `graft`:
    apply what the second parent changed against its own first parent to the first parent, conflicts resolved
    likewise. A merge with the strategy `pieces` takes those of the second parent; a mutation of `several` may be of
    more changes than one, where the evaluation tells of each apart; one with `tuning` may change named numbers as
    what earlier changes of them did tells; one with `rebase` is put on the best candidate, the latest of equals, if
    that came of the parent while the agent was at work; one that makes what is there already is put on the first of
    its `spares` where it makes something new. One that is to `advise` makes nothing: the agent says what to try now
    that nothing has helped the parent; one with the entry of a `tactic` tells the agent of that. One with a `change`,
    path to content, is that under its `title` and asks no agent.
    """

    operator: Literal["mutation", "merge", "graft"]
    parents: tuple[str, ...]
    donor: str | None = None
    strategy: str = ""
    boldness: float = 1.0
    pieces: frozenset[Piece] = frozenset()
    several: bool = False
    tuning: bool = False
    rebase: bool = False
    spares: tuple[str, ...] = ()
    advise: bool = False
    tactic: str = ""
    change: Mapping[str, bytes] = {}
    title: str = ""

    @property
    def asks(self) -> bool:
        """Whether its agent makes something of it: most merges, and numbers that go on, need none."""
        return not self.change and (self.operator == "mutation" or self.strategy == "model")


class Selector(Protocol):
    """Chooses parents and survivors. Every random choice comes from the generator that is passed in.

    Look at evaluated candidates only, and ask `history.attempts` for what was tried: whether a candidate that still
    awaits its evaluation is in the history already depends on time, even in a deterministic run.
    """

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        """Which parents `agent` breeds from next, and how."""
        ...

    def adopts(self, history: History, agent: str, child: str) -> bool:
        """Whether the evaluated candidate `child` becomes the current individual of `agent`."""
        ...
