"""What agents of one engine say that they are about to try, so that others try something else meanwhile.

It lives in memory and ends with the move: from then on the candidate's title tells it, or the reason why there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from evogit.text import one_line

LONGEST = 200
"""Characters of a plan."""

MOST = 12
"""Plans that one agent is told of at a time, the latest ones."""


@dataclass(eq=False, slots=True)
class Claim:
    """The `agents.Claims` of one move, made by `who`."""

    board: Board
    who: str
    plan: str = ""

    def make(self, plan: str) -> None:
        """Tell the others; it takes the place of what was said before in this move."""
        self.plan = one_line(plan, LONGEST)

    def others(self) -> tuple[str, ...]:
        """What others say, one line each, oldest first."""
        return self.board.plans(but=self)


@dataclass(slots=True)
class Board:
    """The claims of all moves that are being thought about. One that is `silent` shows nothing to anybody."""

    silent: bool = False
    _claims: list[Claim] = field(default_factory=list)

    @contextmanager
    def claim(self, who: str) -> Iterator[Claim]:
        """That of a move, while it lasts."""
        claim = Claim(self, who)
        self._claims.append(claim)
        try:
            yield claim
        finally:
            self._claims.remove(claim)

    def plans(self, but: Claim | None = None) -> tuple[str, ...]:
        """All plans but one, each behind whose it is."""
        if self.silent:
            return ()
        said = [f"{claim.who}: {claim.plan}" for claim in self._claims if claim.plan and claim is not but]
        return tuple(said[-MOST:])
