"""Selection decides which parents breed next and which children survive; a selector is a function of the history.

A `History` goes in, a `Move` comes out. Start with `weighted.py`, the shortest selector, and `elitist.py`, the default;
`registry.py` opens them by name, `merge_planner.py` plans merges.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol

from msgspec import Struct, StructMeta

from evogit.history import History

MODEL = "model"  # the strategy of merges and grafts whose conflicts a model settles


class _Kinds(StructMeta):
    """Lets `Move(operator=..., parents=..., ...)` make the kind that these name; options of other kinds are ignored."""

    def __call__(cls, *args: Any, **values: Any) -> Any:
        if cls is not Move:
            return super().__call__(*args, **values)
        operator, parents = values.pop("operator", None), values.pop("parents", ())
        kind: type[Move] | None = {"merge": Merge, "graft": Graft}.get(operator)
        if operator == "mutation":
            kind = LookBack if values.pop("advise", False) else Change if values.get("change") else Mutation
        wanted = 2 if kind in (Merge, Graft) else 1
        if kind is None or not isinstance(parents, tuple) or len(parents) != wanted:
            raise TypeError(
                "expected a mutation of one parent, or a merge or graft of two, as a tuple, "
                f"got {operator!r:.100} of {parents!r:.200}"
            )
        known = {"advise", *(name for each in KINDS for name in each.__struct_fields__)}
        own = {name: value for name, value in values.items() if name in kind.__struct_fields__ or name not in known}
        return kind(**({"parent": parents[0]} if wanted == 1 else {"parents": parents}), **own)


class Move(Struct, metaclass=_Kinds, frozen=True, kw_only=True):
    """An agent's next step: a `Mutation`, `Merge`, `Graft`, `LookBack` or `Change`.

    A selector may also write `Move(operator="mutation", parents=(commit,))`, with the options of the kind.
    """

    operator: ClassVar[Literal["mutation", "merge", "graft"]] = "mutation"

    @property
    def parents(self) -> tuple[str, ...]:
        """The candidates that the step begins from."""
        return (self.parent,)  # type: ignore[attr-defined]

    @property
    def strategy(self) -> str:
        """How conflicts are settled, or what kind of change is made, if the move decides that."""
        return ""

    @property
    def asks(self) -> bool:
        """True if an agent has to act: not for most merges, nor for a given change."""
        return True


class Mutation(Move, frozen=True, kw_only=True):
    """Ask an agent to change the parent, optionally with a `donor` to take code from.

    `boldness` multiplies the usual size of a change, `tuning` lets it change named numbers by what earlier changes of
    them brought. With `rebase` the change is put on the best candidate, the latest of equals, if that descends from the
    parent by then; one that repeats an earlier candidate is put on the first of its `spares` on which it makes
    something new. `tactic` is the entry of a look back whose advice the agent gets; `afresh` hides better code from it.
    """

    parent: str
    donor: str | None = None
    boldness: float = 1.0
    tuning: bool = False
    rebase: bool = False
    spares: tuple[str, ...] = ()
    tactic: str = ""
    afresh: bool = False


class Merge(Move, frozen=True, kw_only=True):
    """Merge both parents with Git; `strategy` resolves conflicts."""

    operator: ClassVar[Literal["merge", "graft"]] = "merge"
    parents: tuple[str, str]
    strategy: str = ""

    @property
    def asks(self) -> bool:
        """True if a model resolves conflicts."""
        return self.strategy == MODEL


class Graft(Merge, frozen=True, kw_only=True):
    """Apply the second parent's change of its own first parent to the first parent; `strategy` resolves conflicts."""

    operator = "graft"


class LookBack(Move, frozen=True, kw_only=True):
    """Ask an agent what to try now that nothing helps; it changes nothing."""

    parent: str


class Change(Move, frozen=True, kw_only=True):
    """Make a given change of the parent, path to content, under its `title`, without asking an agent."""

    parent: str
    change: Mapping[str, bytes]
    strategy: str = ""
    title: str = ""

    @property
    def asks(self) -> bool:
        """Return False: the change is there already."""
        return False


KINDS = (Mutation, Merge, Graft, LookBack, Change)


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
