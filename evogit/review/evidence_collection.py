"""Which evidence of a run can go and which stays, and letting it go; candidates and journals stay whatever is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from msgspec import Struct

from evogit.core import RefusedError
from evogit.events import Decision, Entry, Evaluated, FailedProposal, Proposed
from evogit.history import History
from evogit.repository import Repository
from evogit.review.evidence_files import named, uses

Wish = Literal["failed", "all-but-best"]
"""Whose evidence goes: of what failed; or of all that is no lineage of what counts."""

WISHES: Sequence[str] = get_args(Wish)

Owner = Literal["lineages", "other candidates", "failed candidates", "failed proposals", "advice and verdicts"]
"""What evidence is about, the first one that it fits, as equal evidence is one tree."""

OWNERS: Sequence[Owner] = get_args(Owner)


class Share(Struct, frozen=True, kw_only=True):
    """Pieces of evidence and their size, in bytes before Git compresses them; what several share counts once."""

    pieces: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The evidence that would go and stay, by subject; all `candidates` and `entries` stay.

    `lineages` counts the candidates that matter or lead to some; `gone` are ids of evidence trees, `given_up` those
    that this clone gave up before, as other hosts' lists may name anything; `thinned` counts those that are gone.
    """

    run: str
    candidates: int
    entries: int
    lineages: int
    gone: Sequence[str] = field(repr=False)
    given_up: Sequence[str] = field(repr=False)
    going: dict[Owner, Share]
    staying: dict[Owner, Share]
    thinned: int


class Collected(Struct, frozen=True, kw_only=True):
    """The plan that was carried out, bytes on the disk before and after, and how many objects could not go yet."""

    plan: Plan
    before: int
    after: int
    removed: int
    young: int
    held: int


def plan(repository: Repository, run: str, wish: Wish) -> Plan:
    """Return the evidence of this clone that would go and stay. Raises RepositoryError: something is damaged."""
    entries, history = list[Entry](), History(run)
    repository.journal(run, entries.append)
    history.extend(entries)
    return _Choice(repository, history, entries, wish).plan()


def collect(repository: Repository, run: str, wish: Wish) -> Collected:
    """Remove the evidence of `plan` and free its room. If it is killed, only evidence that was to go is lost.

    Raises:
        RefusedError: an engine is at work on some run of the repository.
        RepositoryError: something is damaged; `evogit doctor runs` tells.
    """
    if busy := [name for name in repository.runs() if repository.engines(name).alive()]:
        raise RefusedError(f"an engine works on {busy[0]}; stop it first (`evogit stop --name {busy[0]}`), or wait")
    repository.check_links()
    with repository.engines(run).enter(join=False):
        before = repository.space()
        made = plan(repository, run, wish)
        if made.gone:
            later = list[Entry]()
            journal = repository.journal(run, later.append)
            known = len(later)
            repository.thin(run, made.gone, f"thinned: {len(made.gone):,} pieces of evidence ({wish})")
            journal.refresh()
            gone = set(made.gone)
            for entry in later[min(known, made.entries) :]:
                if (tree := named(entry)) in gone:
                    journal.keep(tree)
        swept = repository.sweep({*made.gone, *made.given_up})
    return Collected(
        plan=made, before=before, after=repository.space(), removed=swept.removed, young=swept.young, held=swept.held
    )


class _Choice:
    """The choice of what goes of one run."""

    def __init__(self, repository: Repository, history: History, entries: Sequence[Entry], wish: Wish) -> None:
        self.repository = repository
        self.history = history
        self.entries = entries
        self.wish = wish
        self.lineages = lineages(history)
        self.counted = set[str]()

    def plan(self) -> Plan:
        keeping = self.repository.keeping(self.history.run)
        host = self.repository.host
        mine = keeping.tips().get(host)
        kept = keeping.read([mine] if mine else []).trees
        named = uses(self.entries)
        found = {tree: users for tree, users in named.items() if tree in kept}
        chosen: tuple[Owner, ...] = ("failed candidates", "failed proposals")
        chosen = chosen if self.wish == "failed" else (*chosen, "other candidates")
        gone = [tree for tree, users in found.items() if all(self._owner(entry) in chosen for entry in users)]
        out = set(gone)
        staying = self._shares({tree: users for tree, users in found.items() if tree not in out})
        return Plan(
            run=self.history.run,
            candidates=len(self.history.phylogeny),
            entries=len(self.entries),
            lineages=len(self.lineages),
            gone=gone,
            given_up=[tree for tree in keeping.listed(keeping.tips("thinned").get(host)) if tree in named],
            staying=staying,
            going=self._shares({tree: found[tree] for tree in gone}),
            thinned=sum(not self.repository.trees.exists(tree) for tree in keeping.thinned()),
        )

    def _shares(self, found: dict[str, list[Entry]]) -> dict[Owner, Share]:
        owners: dict[Owner, list[str]] = {}
        for tree, users in found.items():
            owners.setdefault(min(map(self._owner, users), key=OWNERS.index), []).append(tree)
        shares, entries = dict[Owner, Share](), self.repository.trees.entries
        for owner in filter(owners.get, OWNERS):
            blobs = {entry.blob for tree in owners[owner] for entry in entries(tree)} - self.counted
            self.counted |= blobs
            shares[owner] = Share(pieces=len(owners[owner]), bytes=sum(map(self.repository.trees.size, blobs)))
        return shares

    def _owner(self, entry: Entry) -> Owner:
        match entry.event:
            case Proposed(candidate=commit) | Evaluated(candidate=commit):
                if commit in self.lineages:
                    return "lineages"
                failed = self.history.judged(commit) and self.history.fitness(commit) is None
                return "failed candidates" if failed else "other candidates"
            case FailedProposal():
                return "failed proposals"
            case _:
                return "advice and verdicts"


def lineages(history: History) -> set[str]:
    """What counts, with all that it was bred from.

    The seed, the best and every record holder, the agents' individuals, what people brought, promoted or decided about,
    and what awaits its evaluation.
    """
    decisions = (entry.event for entry in history.decisions)
    named = [commit for event in decisions if isinstance(event, Decision) for commit in event.candidates]
    ends: Iterable[str | None] = (
        *(history.seed, history.best),
        *(*history.records, *history.living(), *history.human, *history.promoted, *history.pending, *named),
    )
    return history.phylogeny.ancestors(*(commit for commit in ends if commit and commit in history.phylogeny))
