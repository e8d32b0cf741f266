"""Tries several changes in one candidate, where the evaluation tells of each apart from the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from msgspec.structs import replace

from evogit.agents import FileContents, NoUsableChangeError, Proposal
from evogit.agents.mutation.mutator import MAX_WAYS
from evogit.selection.anatomy import Changes, Piece, changes_of
from evogit.selection.linkage import Cases, Packing
from evogit.source.pieces import WHOLE, Versions, exchanged, versions
from evogit.text import TITLE_LENGTH, one_line

DRAWN = 12
"""Changes to choose from: most have a say in cases that another one has a say in, or are known."""


def packed(proposals: Iterator[Proposal], files: FileContents, packing: Packing) -> Proposal:
    """The first of the next proposals that is new, with others that are evaluated apart from it.

    `files` are those of the parent.
    """
    first: Proposal | None = None
    before: dict[str, Versions] = {}
    pack: Pack | None = None
    for proposal in islice(proposals, DRAWN):
        first = first or proposal
        changes = _changes(files, before, proposal)
        cases = packing.cases(changes)
        if cases and packing.is_known(changes, cases):
            continue
        if pack is None:
            pack = Pack([proposal], dict(proposal.changes), set(changes), cases or frozenset())
        elif cases:
            pack.take(proposal, changes, cases)
        if not pack.cases or len(pack.proposals) >= packing.most:
            break
    if first is None:
        raise NoUsableChangeError("nothing more to propose")
    return pack.proposal if pack else first


@dataclass(slots=True)
class Pack:
    """Changes that are tried together. Without `cases` it is unknown what the only one of them affects."""

    proposals: list[Proposal]
    files: dict[str, bytes | None]
    pieces: set[Piece]
    cases: Cases

    def take(self, proposal: Proposal, changes: Changes, cases: Cases) -> None:
        """Add a change, unless it has a say where another one has, or is to a file that they cannot share."""
        shared = [path for path in proposal.changes if path in self.files]
        whole = any(piece.path in shared and piece.name == WHOLE for piece in self.pieces | changes.keys())
        if cases & self.cases or whole or self.pieces & changes.keys():
            return
        for path, content in proposal.changes.items():
            mine = self.files.get(path)
            names = {piece.name for piece in changes if piece.path == path}
            self.files[path] = exchanged(path, mine, content, names) if mine and content else content
        self.proposals.append(proposal)
        self.pieces |= changes.keys()
        self.cases |= cases

    @property
    def proposal(self) -> Proposal:
        """All changes as one."""
        first, *others = self.proposals
        if not others:
            return first
        ways = dict.fromkeys(way for each in self.proposals for way in each.strategy.split("+"))
        more = f" (+{len(others)} apart)"
        return replace(
            first,
            changes=self.files,
            modes={path: mode for each in self.proposals for path, mode in each.modes.items()},
            title=one_line(first.title, TITLE_LENGTH - len(more)) + more,
            strategy="+".join(list(ways)[:MAX_WAYS]),
        )


def _changes(files: FileContents, before: dict[str, Versions], proposal: Proposal) -> Changes:
    """The pieces that a proposal alters. `before` remembers those of the parent, since parsing takes time."""
    found: dict[Piece, str] = {}
    for path, content in proposal.changes.items():
        if path not in before:
            before[path] = versions(path, files.get(path, b""))
        found |= changes_of(path, before[path], content)
    return found
