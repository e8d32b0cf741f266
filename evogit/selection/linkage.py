"""Which cases of the evaluation a piece of the code has a say in, learned from what changes did.

Empirical linkage learning (Przewozniczek & Komarnicki, 2020, "Empirical linkage learning", IEEE Transactions on
Evolutionary Computation 24), with pieces of code for variables and the values of cases for fitness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from evogit.history import History
from evogit.history.scores import Scores
from evogit.selection.anatomy import Anatomy, Changes, Piece

Cases = frozenset[str]

Told = tuple[bool, Mapping[str, float]]
"""Whether a candidate is valid, and the values of its cases."""

NO_CASES: Cases = frozenset()

MAX_CHANGES = 8
"""Changes that are tried at once, at most."""

PRIOR_MUTATIONS, PRIOR_INVALID = 15.0, 1.5
"""What is assumed before anything is seen, in the mutations that it weighs as much as: one in ten is invalid."""

REMEMBERED = 300
"""Latest evaluated candidates whose pieces are known."""


@dataclass(slots=True)
class Links:
    """Piece, and file, -> the cases that it was seen to have a say in."""

    _pieces: dict[Piece, Cases] = field(default_factory=dict)
    _files: dict[str, Cases] = field(default_factory=dict)

    def add(self, piece: Piece, cases: Cases) -> bool:
        """A change of the piece moved these; whether that is news."""
        if piece in self._pieces and cases <= self._pieces[piece]:
            return False
        self._pieces[piece] = self._pieces.get(piece, NO_CASES) | cases
        self._files[piece.path] = self._files.get(piece.path, NO_CASES) | cases
        return True

    def copy(self) -> Links:
        """What is known now."""
        return Links(dict(self._pieces), dict(self._files))

    def __contains__(self, piece: object) -> bool:
        return piece in self._pieces

    def cases(self, piece: Piece) -> Cases:
        """The cases that a piece has a say in; of an unknown one all those of its file, none if that is unknown too."""
        return self._pieces.get(piece) or self._files.get(piece.path, NO_CASES)

    def linked(self, cases: Cases) -> list[Piece]:
        """The pieces that have a say in one of these cases."""
        return [piece for piece, known in self._pieces.items() if known & cases]

    def groups(self, changed: Iterable[Piece]) -> list[tuple[set[Piece], Cases]]:
        """Pieces that have a say in the same cases, directly or through others, with these cases."""
        groups: list[tuple[set[Piece], Cases]] = []
        for piece in sorted(changed):
            members, cases = {piece}, self.cases(piece)
            for group in [group for group in groups if group[1] & cases]:
                groups.remove(group)
                members, cases = members | group[0], cases | group[1]
            groups.append((members, cases))
        return groups

    def are_apart(self) -> bool:
        """Whether some pieces have a say in other cases than some others."""
        fewest = min(self._pieces.values(), key=len, default=NO_CASES)
        return any(not cases & fewest for cases in self._pieces.values())


class Packing(Struct, frozen=True):
    """Which changes of a candidate can be tried at once, each of them evaluated by cases of its own.

    All as it was known when it was made, so that evaluations meanwhile do not matter. `most` is how many: with
    more, the pack would more likely be invalid than teach anything.
    """

    history: History
    anatomy: Anatomy
    parent: str
    most: int
    links: Links
    judged: Sequence[str]

    def cases(self, changes: Changes) -> Cases | None:
        """The cases that a change has a say in; None where that is unknown, or would be all."""
        found = [self.links.cases(piece) for piece in changes]
        cases = NO_CASES.union(*found)
        whole = len(cases) == len(self.history.scores.cases(self.parent))
        return cases if found and all(found) and not whole else None

    def is_known(self, changes: Changes, cases: Cases) -> bool:
        """Whether a candidate was evaluated already that has the same in all pieces with a say in these cases."""
        linked = self.links.linked(cases)
        return any(self.anatomy.is_like(self.history, commit, changes, self.parent, linked) for commit in self.judged)


@dataclass(slots=True)
class Linkage:
    """Learns the links of a history, evaluation by evaluation; equal to one that looks at all of it at once.

    A change of one piece shows in the cases whose values it moves. Of a change of several, what no other piece of it
    accounts for is put down to the one that is not known yet, if it is one.
    """

    anatomy: Anatomy
    links: Links = field(default_factory=Links)
    version: int = 0
    """Counts up when the links change, or what they were learned from."""
    _invalid: float = 0.0
    """Mutations that failed, each divided by the pieces that it changed: its share of the blame."""
    _mutations: int = 0
    _scores: Scores | None = None
    _position: int = 0
    _judged: dict[str, Told | None] = field(default_factory=dict)
    """Candidate -> what its evaluation told when it was learned from; None while it did not count."""

    def follow(self, history: History) -> bool:
        """Take in what is new; whether it serves: scores are exact, and some pieces are linked to other cases."""
        scores = history.scores
        if history.repeats or scores.shifting:
            return False
        new = scores.log[self._position :] if scores is self._scores else scores.log
        if scores is not self._scores or any(self._is_told_anew(history, commit) for commit in new):
            self._scores = scores
            self._judged = {}
            new = scores.log
            self.links = Links()
            self._invalid = 0.0
            self._mutations = 0
            self.version += 1
        for commit in new:
            if commit not in self._judged:
                self._judged[commit] = _told(history, commit)
                self._learn(history, commit)
        self._position = len(scores.log)
        return self.links.are_apart()

    def _is_told_anew(self, history: History, commit: str) -> bool:
        return commit in self._judged and self._judged[commit] != _told(history, commit)

    def packing(self, history: History, parent: str) -> Packing | None:
        """Which changes of a candidate can be tried at once; None where each must be tried alone."""
        if not self.follow(history) or history.fitness(parent) is None:
            return None
        most = self._most_changes()
        judged = history.judgements[-REMEMBERED:]
        return Packing(history, self.anatomy, parent, most, self.links.copy(), judged) if most > 1 else None

    def _most_changes(self) -> int:
        """So many changes at once that one of them is expected to be invalid: the inverse of the share that is.

        The share is the mean of a Beta distribution, of what was assumed and what was seen.
        """
        mutations, invalid = PRIOR_MUTATIONS + self._mutations, PRIOR_INVALID + self._invalid
        return min(MAX_CHANGES, round(mutations / invalid))

    def _learn(self, history: History, commit: str) -> None:
        candidate = history.phylogeny[commit]
        if candidate.operator != "mutation" or len(candidate.parents) != 1:
            return
        told, origin = self._judged[commit], self._judged.get(candidate.parents[0])
        if told is None or origin is None or len(origin[1]) < 2:
            return
        (is_valid, after), (_, before) = told, origin
        moved = frozenset(case for case in after if before.get(case) != after[case])
        self._mutations += 1
        if is_valid and not moved:
            return  # without a look at what it changed, which takes the parser's time
        changed = self.anatomy.differing(history, candidate.parents[0], commit)
        if not is_valid:
            self._invalid += 1 / max(1, len(changed))
        if before.keys() != after.keys():
            return
        unknown = list(changed)
        if len(changed) > 1:
            moved -= NO_CASES.union(*map(self.links.cases, changed))
            unknown = [piece for piece in changed if piece not in self.links]
        if len(unknown) == 1 and moved and self.links.add(unknown[0], moved):
            self.version += 1


def _told(history: History, commit: str) -> Told | None:
    if not history.judged(commit):
        return None
    return history.fitness(commit) is not None, history.scores.cases(commit)
