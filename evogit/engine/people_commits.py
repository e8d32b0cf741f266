"""People's own commits as candidates, unchanged: a colleague's branch, a patch, several seeds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from msgspec import Struct

from evogit.config.values import matches
from evogit.core import HUMAN, NotFoundError, RefusedError, RepositoryError
from evogit.credentials import is_secret_name, tokens
from evogit.evaluation.seed_files import LFS_POINTER
from evogit.events import Decision, Entry, FailedProposal, Proposed
from evogit.history.carriers import CarriedCode
from evogit.history.context import StoredRun
from evogit.repository import UnfitChangeError, check_path, clean, clean_title
from evogit.repository.diff_limits import MAX_CHANGED_BYTES, check_extent
from evogit.repository.evidence import why

MOST_PARENTS = 2
"""Parents that a candidate has at most, as every display of the graph expects."""

FARTHEST = 10_000
"""Commits that are looked at for candidates among ancestors, nearest first: 0.1 s of a running engine's time."""


class Adding(Struct, frozen=True):
    """Makes commits of people candidates of one run, if they change at most `most` bytes."""

    run: StoredRun
    most: int = MAX_CHANGED_BYTES

    def known(self, commit: str) -> str | None:
        """The candidate that has the tree of this commit already, None if there is none."""
        return self.run.history.trees.get(self.run.repository.tree_of(commit))

    def check(self, commit: str) -> None:
        """Refuse what no agent could have proposed.

        Raises:
            RefusedError: naming the paths, and what is wrong with them.
        """
        seed, started = self.run.history.seed, self.run.history.started
        if seed is None or started is None:
            raise RefusedError(f"the run {self.run.history.run} has no seed yet; begin it with `evogit run`")
        before, after = self.run.history.phylogeny[seed].tree, self.run.repository.tree_of(commit)
        changed = self.run.repository.changed_paths(before, after)
        wrong = [path for path in changed if not matches(path, started.editable) or matches(path, started.withheld)]
        if wrong:
            raise RefusedError(
                f"expected changes to {', '.join(started.editable)} only, but {commit[:7]} differs from the seed in "
                f"{', '.join(wrong[:5])}{' and more' * (len(wrong) > 5)}; put your change on the seed: "
                f"git switch -c evogit/{self.run.history.run}/human/NAME {seed[:10]}"
            )
        try:
            check_extent(self.run.repository.trees, before, after, self.most)
        except UnfitChangeError as error:
            raise RefusedError(f"{commit[:7]}: {error}; begin a run from a seed that has most of it") from error
        try:
            self._check_files(commit, before, after, set(changed))
            self.run.repository.trees.refuse_twins(before, after)
        except UnfitChangeError as error:
            raise RefusedError(f"{commit[:7]}: {error}") from error
        if reason := CarriedCode(self.run.repository, self.run.history).refusal(after, self.parents(commit)):
            raise RefusedError(f"{commit[:7]}: {reason}; see `evogit log --decisions`")

    def _check_files(self, commit: str, before: str, after: str, changed: set[str]) -> None:
        trees = self.run.repository.trees
        known = {entry.path: entry.blob for entry in trees.entries(before) if entry.path in changed}
        for entry in trees.entries(after):
            if entry.path not in changed:
                continue
            check_path(entry.path)
            if not entry.is_file:
                raise RefusedError(f"{commit[:7]}: {entry.path} is a link or a submodule; candidates bring plain files")
            content = trees.blob(entry.blob)
            if content.startswith(LFS_POINTER):
                raise RefusedError(f"{commit[:7]}: {entry.path} is a pointer of Git LFS; candidates bring whole files")
            held = tokens(trees.blob(known[entry.path])) if entry.path in known else set[bytes]()
            if is_secret_name(entry.path) or not tokens(content) <= held:
                raise RefusedError(
                    f"{commit[:7]}: {entry.path} brings what looks like a private key or token; take it out of the "
                    "commit, as agents and servers would get it"
                )

    def add(self, commit: str, reason: str = "") -> Entry | None:
        """Journal the commit as a candidate that awaits its evaluation; None if its tree came from elsewhere first.

        Raises:
            RefusedError: as `check` does.
        """
        self.check(commit)
        tree = self.run.repository.tree_of(commit)
        evidence = self.run.journal.keep(why(clean(reason)), commit)
        proposed = Proposed(
            engine="",
            move=self.run.history.moves,
            candidate=commit,
            tree=tree,
            parents=self.parents(commit),
            agent=HUMAN,
            operator="human",
            title=clean_title(self.run.repository.message(commit)),
            evidence=evidence,
        )
        return self.run.journal.append(proposed, unless=lambda: tree in self.run.history.trees)

    def parents(self, commit: str) -> tuple[str, ...]:
        """The nearest candidates among the commit's ancestors, the seed where there is none.

        A commit that landed a candidate stands for it, so that work on top of one descends from it.
        """
        phylogeny, branches = self.run.history.phylogeny, self.run.repository.branches
        landed = {
            event.commit: event.candidates[0]
            for entry in self.run.history.decisions
            if isinstance(event := entry.event, Decision) and event.kind == "land" and event.candidates[0] in phylogeny
        }
        found, seen, frontier = list[str](), {commit}, list(branches.parents(commit))
        for each in frontier:  # grows as it is walked: breadth first, first parents before others
            if each in seen or len(seen) > FARTHEST:
                continue
            seen.add(each)
            if each in phylogeny or each in landed:
                found.append(landed.get(each, each))
            else:
                frontier.extend(branches.parents(each))
        nearest = [
            each for each in dict.fromkeys(found) if not any(phylogeny.is_ancestor(each, o) for o in found if o != each)
        ]
        return tuple(nearest[:MOST_PARENTS]) or (self.run.history.seed or "",)


@dataclass(slots=True)
class People:
    """Picks up commits on `evogit/<run>/human/*` branches, and has the best adopted if selection says so."""

    adding: Adding
    adopt: Callable[[str, str], None]
    _stamp: object = None
    _seen: set[str] = field(default_factory=set)
    _considered: set[str] = field(default_factory=set)

    def look(self) -> None:
        """Make new tips of people's branches candidates; what is refused is journalled once."""
        branches, history = self.adding.run.repository.branches, self.adding.run.history
        folder = f"refs/heads/evogit/{history.run}/human/"
        if history.seed is None or (stamp := branches.stamp(folder)) == self._stamp:
            return
        self._stamp = stamp  # from before the look: what comes after it changes it again
        tips = set[str]()
        for branch in branches.below(folder):
            with suppress(NotFoundError):  # it leads to another one, which is broken
                tips.add(branches.commit(branch))
        for commit in tips - self._seen:
            self._seen.add(commit)
            if not self._refused_before(commit):
                self._add(commit)

    def _add(self, commit: str) -> None:
        history = self.adding.run.history
        try:
            if self.adding.known(commit) is None:
                self.adding.add(commit)
        except (RefusedError, RepositoryError) as error:
            reason, parents = f"{commit}: {error}", self.adding.parents(commit)
            self.adding.run.journal.append(
                FailedProposal(engine="", move=history.moves, agent=HUMAN, parents=parents, reason=reason),
                unless=lambda: self._refused_before(commit),
            )

    def _refused_before(self, commit: str) -> bool:
        failures = self.adding.run.history.failures
        return any(event.agent == HUMAN and event.reason.startswith(commit) for event in failures)

    def consider(self) -> None:
        """Let what people added and was evaluated meanwhile be the individual of `human`, if selection says so."""
        history = self.adding.run.history
        for commit in [commit for commit in history.human if commit not in self._considered]:
            if history.judged(commit):
                self._considered.add(commit)
                head = history.heads.get(HUMAN)
                newer = head is None or history.phylogeny[head].number < history.phylogeny[commit].number
                if newer or history.fitter(commit, head or ""):
                    self.adopt(HUMAN, commit)
