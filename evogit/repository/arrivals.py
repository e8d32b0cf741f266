"""What a fetch brought of other hosts, looked at before it becomes a part of the run here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pygit2
from msgspec import Struct

from evogit.core import RefusedError, RepositoryError
from evogit.events import Proposed
from evogit.repository import journal_records, refs
from evogit.repository.keeping import Keeping, is_link
from evogit.repository.objects import (
    Allowance,
    committer_of,
    message_of,
    mismatch,
    named_errors,
    object_size,
    parents_of,
    read_commit,
)
from evogit.text import one_line

KINDS = ("keep", "thinned", "signed", "journal")  # a host's refs, in the order in which they move
HOST = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")  # what a host may be called
MOST_TIP = 8 << 20  # bytes of a last entry that are unpacked to see whether it is sealed

MAX_LINKS_EXCESS = 64 << 20
"""Bytes of other refs of a host beyond those of ordinary commits; `evogit clean RUN` leaves 200 candidates in each."""

Sealed = Callable[[str, str], bool]
"""Whether an entry of a host's journal has the seal of this run, as far as one is asked for."""

Signed = Callable[[str, Mapping[str, str]], str | None]
"""Up to which entry a host's journal is signed by somebody who may; None where that is not asked for.

Raises RepositoryError where it is asked for and not so.
"""


class _Arrival(Struct, frozen=True):
    """The news of one host's journal, and the moves of its refs: name, commit, and commit before."""

    host: str
    moves: Sequence[tuple[str, str, str | None]]
    proposals: Sequence[Proposed]
    entries: int


@dataclass(slots=True)
class Arrivals:
    """Moves the refs of other hosts to where a server has them, forwards only, and only with all that they name."""

    repo: pygit2.Repository
    common: Path
    run: str
    host: str
    sealed: Sealed
    signed: Signed
    keyed: Callable[[], bool]
    _unsealed: set[tuple[str, str]] = field(default_factory=set)
    _fruitless: set[tuple[str, str, str | None]] = field(default_factory=set)

    def take(self, staged: Mapping[str, Mapping[str, str]], known: Callable[[str], bool]) -> tuple[int, list[str]]:
        """Take in `staged` (host -> kind -> commit); return how many entries came, and the reasons for what did not."""
        found, notes = list[_Arrival](), list[str]()
        for host, tips in sorted(staged.items()):
            try:
                with named_errors("it"):
                    found += filter(None, [self._look(host, tips)])
            except (RefusedError, RepositoryError) as error:
                notes.append(f"left {one_line(host, 60)} as it was: {error}")
        ready, count = found, -1
        while len(ready) != count:  # until nothing waits for the news of another host
            count, new = len(ready), {each.candidate for arrival in ready for each in arrival.proposals}
            ready = [
                arrival
                for arrival in ready
                if all(parent in new or known(parent) for each in arrival.proposals for parent in each.parents)
            ]
        notes += [f"{each.host} waits for what it builds on" for each in found if each not in ready]
        for ref, tip, here in (move for each in ready for move in each.moves):
            refs.swap(self.repo, self.common, ref, tip, here)
        return sum(each.entries for each in ready), notes

    def _look(self, host: str, tips: Mapping[str, str]) -> _Arrival | None:
        """Return what a host's journal would bring; None where it brings nothing."""
        tip = tips.get("journal")
        if tip and not HOST.fullmatch(host):
            raise RepositoryError("expected letters, digits and dashes as the name of a host")
        here = self._here("journal", host) if tip else None
        if tip is None or tip == here or (host, tip, here) in self._fruitless:
            return None
        unsealed = (host, tip) in self._unsealed or object_size(self.repo, tip) > MOST_TIP
        if unsealed or not self.sealed(host, tip):
            self._unsealed.add((host, tip))
            raise RepositoryError("its journal is not sealed with the key of this run")
        if host == self.host and here and chain(self.repo, here, tip) is not None:
            return None  # as ever: the server has what was pushed
        if host == self.host and not self.keyed():
            raise RepositoryError("it has the name of this clone, and no key here vouches for it")
        tips = self._vouched(host, tips, here)
        news = chain(self.repo, tips["journal"], here, allowance=None if self.keyed() else Allowance(self.repo))
        if news is None:
            self._fruitless.add((host, tip, here))
            return None  # an older state, or another journal of that name: ours stays
        proposals = list[Proposed]()
        for commit in news:
            found = read_commit(self.repo, commit)
            if not isinstance(found, str):
                when = found.commit_time
                event = journal_records.entry(commit, committer_of(found), when, message_of(found)).event
                proposals += [event] if isinstance(event, Proposed) else []
        for each in proposals:
            if each.candidate not in self.repo:
                raise RepositoryError(f"its candidate {each.candidate[:7]} did not come with it")
            if wrong := mismatch(self.repo, each):
                raise RepositoryError(wrong)
        moves = list(self._moves(host, tips, {each.candidate for each in proposals}))
        moves.append((self._ref("journal", host), tips["journal"], here))
        return _Arrival(host, moves, proposals, len(news))

    def _vouched(self, host: str, tips: Mapping[str, str], here: str | None) -> Mapping[str, str]:
        """The part of a journal that counts if signatures are required: up to its last signed entry."""
        signed = self.signed(host, tips)
        if signed is None:  # then nobody has looked at it; our own goes on
            return {kind: tip for kind, tip in tips.items() if kind != "signed" or host == self.host}
        about = host, tips["journal"], signed
        if about in self._fruitless or chain(self.repo, tips["journal"], signed) is None:
            self._fruitless.add(about)
            raise RepositoryError("it has the signature of another journal")
        if signed == here:
            raise RepositoryError("what it wrote since its last signature is not signed")
        return {**tips, "journal": signed}

    def _moves(self, host: str, tips: Mapping[str, str], wanted: set[str]) -> Iterator[tuple[str, str, str | None]]:
        """Yield the moves of a host's refs but its journal. Raises RepositoryError: one of `wanted` is not kept."""
        kept, keep = set[str](), self._here("keep", host)
        for kind in KINDS[:-1]:
            tip, here = tips.get(kind), self._here(kind, host)
            if tip is None or tip == here or (host, tip, here) in self._fruitless:
                continue
            only = {"keep": is_link, "signed": lambda commit: commit.gpg_signature[0] is not None}.get(kind)
            links = chain(self.repo, tip, here, only, Allowance(self.repo, MAX_LINKS_EXCESS))
            if links is None and not (kind == "keep" and here and self._holds(tip, here)):
                self._fruitless.add((host, tip, here))
                continue
            if kind == "keep":
                keep, kept = tip, {parent for link in links or () for parent in parents_of(self.repo, link)}
            yield self._ref(kind, host), tip, here
        # a server takes no chain that lacks objects: a commit whose id alone is known elsewhere would be handed on
        if (lost := wanted - kept) and keep:
            keeping = Keeping(self.repo, self.run)
            lost -= keeping.reached(keeping.read([keep]), lost)
        if lost:
            raise RepositoryError(f"it does not keep its candidate {min(lost)[:7]}")

    def _holds(self, tip: str, here: str) -> bool:
        """Return whether a `keep` that `evogit clean RUN` rewrote holds all candidates that the one here holds."""
        keeping = Keeping(self.repo, self.run)
        wanted = keeping.read([here]).commits
        return keeping.reached(keeping.read([tip]), wanted) == wanted

    def _ref(self, kind: str, host: str) -> str:
        return f"refs/evogit/{self.run}/{kind}/{host}"

    def _here(self, kind: str, host: str) -> str | None:
        return refs.target(self.repo, self._ref(kind, host))


def chain(
    repo: pygit2.Repository,
    tip: str,
    before: str | None,
    only: Callable[[pygit2.Commit], bool] | None = None,
    allowance: Allowance | None = None,
) -> list[str] | None:
    """Return the commits after `before`, newest first; None if it does not lead there. Raises RepositoryError."""
    found, commit = list[str](), tip
    while commit != before:
        if allowance:
            allowance.check(commit)
        link = read_commit(repo, commit)
        if isinstance(link, str):
            raise RepositoryError(f"the entry {commit[:10]} {link}")
        if only and not only(link):
            break
        found.append(commit)
        if not link.parent_ids:
            break
        commit = str(link.parent_ids[0])
    else:
        return found
    return found if before is None else None
