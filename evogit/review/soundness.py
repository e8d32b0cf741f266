"""Whether all that a run is made of is there and fits together, and what of the rest can be put right without loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from msgspec import Struct

from evogit.core import EvoGitError
from evogit.engine.projections import Projections, agent_ref, has_ref
from evogit.events import Adopted, Entry, FailedProposal, Proposed
from evogit.history import History, snapshot
from evogit.history.context import StoredRun
from evogit.repository import Repository, StaleError
from evogit.repository.keeping import Chain, Kept
from evogit.review.evidence_files import uses

Part = Literal["journal", "candidates", "evidence", "branches", "snapshot", "locks"]

NAMED = 7
"""Digits of an id in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something to be known of a `part` of a run, in a sentence; `wrong`: it must not be so, else it is no damage.

    `mend` puts it right and loses nothing; None where there is nothing such.
    """

    part: Part
    said: str
    wrong: bool = True
    mend: Callable[[], object] | None = field(default=None, repr=False, compare=False)


class Report(Struct, frozen=True, kw_only=True):
    """The findings in a run, and how many entries, candidates and pieces of evidence were looked at.

    `at_work` are the engines whose branches and locks move meanwhile.
    """

    run: str
    entries: int
    candidates: int
    evidence: int
    at_work: Sequence[str]
    findings: Sequence[Finding]

    @property
    def wrong(self) -> list[Finding]:
        """What must not be so."""
        return [finding for finding in self.findings if finding.wrong]


def inspect(repository: Repository, run: str) -> Report:
    """Look at all of a run; nothing is written. Contents of files are for `git fsck` to check."""
    looking = _Looking(repository, run)
    findings = list(looking.findings())
    return Report(
        run=run,
        entries=len(looking.entries),
        candidates=len(looking.proposed),
        evidence=len(looking.uses),
        at_work=looking.at_work,
        findings=findings,
    )


def repair(repository: Repository, run: str) -> tuple[list[Finding], Report]:
    """Put right what can be without loss; what that was, and what is left. Raises RefusedError: an engine works."""
    engines = repository.engines(run)
    with engines.enter(join=False):
        mended = [finding for finding in _Looking(repository, run, alone=True).findings() if finding.mend]
        for finding in mended:
            assert finding.mend
            finding.mend()
    return mended, inspect(repository, run)


class _Looking:
    """One look at a run: journals first, as what they name was kept before."""

    def __init__(self, repository: Repository, run: str, *, alone: bool = False) -> None:
        self.repository = repository
        self.run = run
        self.at_work: list[str] = [] if alone else repository.engines(run).alive()
        self.chains = repository.chains(run)
        self.entries = sorted(
            (entry for chain in self.chains for entry in chain.entries), key=lambda e: (e.seq, e.host)
        )
        self.proposed = {entry.event.candidate: entry for entry in self.entries if isinstance(entry.event, Proposed)}
        self.uses = uses(self.entries)
        self.keeping = repository.keeping(run)
        self.hosts = self.keeping.tips()
        self.whole = repository.whole()

    def findings(self) -> Iterator[Finding]:
        journal = [finding for chain in self.chains for finding in self._journal(chain)]
        yield from journal
        kept = self.keeping.read(list(self.hosts.values()))
        yield from (Finding(part="evidence", said=said) for said in kept.wrong)
        damaged = any(finding.wrong for finding in journal)
        yield from self._candidates(kept, damaged=damaged)
        yield from self._evidence(kept, damaged=damaged)
        if damaged:
            said = "branches and the snapshot were not looked at, as they follow from a journal that is damaged"
            yield Finding(part="branches", said=said, wrong=False)
        elif not self.at_work:
            yield from self._follows()
        if not self.at_work:
            for ref in self.repository.locks(self.run):
                said = f"{ref} has a lock that a dead process left"
                yield Finding(part="locks", said=said, mend=partial(self.repository.break_lock, ref))

    # --- the truth ----------------------------------------------------------------------------------------------

    def _journal(self, chain: Chain) -> Iterator[Finding]:
        yield from (Finding(part="journal", said=said) for said in chain.wrong)
        if not chain.unsealed:
            return
        behind = f"the journal of {chain.host} goes on behind what the key of the run sealed, by {len(chain.unsealed)}"
        if chain.host != self.repository.host:
            said = f"{behind}: those entries do not count"
            yield Finding(part="journal", said=said, wrong=False)
            return
        ref = f"refs/evogit/{self.run}/journal/{chain.host}"
        way = f"{ref} {chain.sealed}" if chain.sealed else f"-d {ref}"
        said = f"{behind}: it came from elsewhere, or before the key; take it away with `git update-ref {way}`"
        yield Finding(part="journal", said=said)

    def _candidates(self, kept: Kept, *, damaged: bool) -> Iterator[Finding]:
        held = self.keeping.reached(kept, self.proposed)
        for commit, entry in self.proposed.items():
            assert isinstance(entry.event, Proposed)
            name = f"the candidate {commit[:NAMED]}"
            tree = self.repository.tree_if_there(commit)
            if tree is None:
                said = f"{name} is missing ({commit}); fetch it from another clone"
                yield Finding(part="candidates", said=said, wrong=self._is_here(entry))
            elif tree != entry.event.tree:
                said = f"{name} has the tree {tree}, and the journal says {entry.event.tree}"
                yield Finding(part="candidates", said=said)
            elif lack := self.whole.lacks(tree):
                said = f"{name} is not whole: {lack}; fetch it from another clone"
                yield Finding(part="candidates", said=said)
            elif commit not in held:
                said = f"{name} is not kept, so that Git may collect it"
                mend = None if damaged or not self._vouched([entry]) else self._keep("", commit)
                yield Finding(part="candidates", said=said, mend=mend)

    def _is_here(self, entry: Entry) -> bool:
        return entry.host == self.repository.host or entry.host in self.hosts

    def _vouched(self, entries: Sequence[Entry]) -> bool:
        """Whether the run's key sealed these entries, or this clone wrote one; what others name may be private."""
        ours = any(entry.host == self.repository.host for entry in entries)
        return ours or bool(self.repository.keys.find(self.run))

    def _evidence(self, kept: Kept, *, damaged: bool) -> Iterator[Finding]:
        thinned, known = self.keeping.thinned(), 0
        for tree, entries in self.uses.items():
            lack = self.whole.lacks(tree)
            if tree in thinned:
                known += bool(lack)
                continue
            event = entries[0].event
            of = getattr(event, "candidate", "")[:NAMED] or getattr(event, "a", "")[:NAMED] or f"a {event.event} entry"
            of = f"the move {event.move}" if isinstance(event, FailedProposal) else of
            name = f"the evidence {tree[:NAMED]} of {of}"
            if lack:
                here = any(map(self._is_here, entries))
                yield Finding(part="evidence", said=f"{name} is not whole: {lack}, and nobody thinned it", wrong=here)
            elif tree not in kept.trees:
                mend = None if damaged or not self._vouched(entries) else self._keep(tree, None)
                yield Finding(part="evidence", said=f"{name} is not kept, so that Git may collect it", mend=mend)
        if known:
            said = f"{known:,} of {len(self.uses):,} pieces were thinned by `evogit clean RUN`"
            yield Finding(part="evidence", said=said, wrong=False)

    def _keep(self, tree: str, commit: str | None) -> Callable[[], object]:
        return lambda: StoredRun.open(self.repository, self.run).journal.keep(tree or {}, commit)

    # --- what follows from it -----------------------------------------------------------------------------------

    def _follows(self) -> Iterator[Finding]:
        history, bests = History(self.run), set[str | None]()
        try:
            for entry in self.entries:
                history.apply(entry)
                if history.started and history.strengths is None:
                    bests.add(history.best)
            yield from self._branches(history, bests)
            yield from self._snapshot(history)
        except EvoGitError as error:
            yield Finding(part="journal", said=f"the entries do not fit together: {error}")

    def _branches(self, history: History, bests: set[str | None]) -> Iterator[Finding]:
        if history.started is None or history.seed is None:
            return
        adopted: dict[str, set[str]] = {}
        for entry in self.entries:
            if isinstance(entry.event, Adopted) and entry.event.candidate in history.phylogeny:
                adopted.setdefault(entry.event.agent, {history.seed}).add(entry.event.candidate)
        several = len({entry.host for entry in self.entries}) > 1  # each of which goes by what it heard
        shifting = history.strengths is not None or several
        known = {each.commit for each in history.phylogeny} if shifting else bests | {history.seed}
        best = {f"refs/heads/evogit/{self.run}/best": (history.best or history.seed, known)}
        places = {
            agent_ref(history, agent): (history.head(agent), history.phylogeny.ancestors(*before) | before)
            for agent, before in adopted.items()
            if has_ref(agent)
        }
        follow, behind = Projections(self.repository, history).follow, list[str]()
        for ref, (expected, before) in (places | best).items():
            current = self.repository.target(ref)
            if current == expected:
                continue
            if current is None or current in before:
                behind.append(ref.rpartition("/")[2])
                continue
            held = self.repository.branches.checked_out(ref)
            if held or not (current in history.phylogeny or self.repository.branches.ours(current)):
                said = f"{ref} is at {current[:NAMED]}, a person's, and stays there"
                yield Finding(part="branches", said=said, wrong=False)
            else:
                said = f"{ref} is at {current[:NAMED]}, where the journal never had it"
                yield Finding(part="branches", said=said, mend=follow)
        if behind:
            said = f"behind the journal or absent: {', '.join(behind)}; the next engine moves them"
            yield Finding(part="branches", said=said, wrong=False, mend=follow)

    def _snapshot(self, history: History) -> Iterator[Finding]:
        file = self.repository.snapshot(self.run)
        if not file.read():
            return
        loaded = snapshot.load(self.repository, self.run)
        if loaded is None:
            said = "the snapshot is damaged or another version's, so nobody reads it"
            yield Finding(part="snapshot", said=said, wrong=False, mend=file.forget)
            return
        known, position = loaded
        try:
            self.repository.journal(self.run, known.apply, (), position)
        except StaleError:
            said = "the snapshot holds entries that are not in the journals any more, so nobody reads it"
            yield Finding(part="snapshot", said=said, wrong=False, mend=file.forget)
            return
        if differing := [name for name, ask in FACTS.items() if ask(known) != ask(history)]:
            said = f"the snapshot says otherwise than the journals: {', '.join(differing)}"
            yield Finding(part="snapshot", said=said, mend=file.forget)


FACTS: Mapping[str, Callable[[History], object]] = {
    "candidates": lambda history: list(history.phylogeny),
    "evaluations": lambda history: [history.evaluation(each.commit) for each in history.phylogeny],
    "the best": lambda history: (history.best, history.records),
    "agents": lambda history: dict(history.heads),
    "decisions": lambda history: (history.pruned, history.promoted, history.decisions),
    "what awaits evaluation": lambda history: set(history.pending),
    "counts": lambda history: (history.counts, history.attempts, history.seq, history.moves),
    "money": lambda history: (history.spent, history.spent_by, history.reserved),
    "evidence": lambda history: (history.evidence, history.sessions),
}
"""What is asked of a snapshot and of the journals alike."""
