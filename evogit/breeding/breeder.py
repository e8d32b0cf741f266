"""From a move to a tree: the brief for an agent, the checks on what it proposes, and merges."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field as data_field
from functools import cache, partial
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from evogit.agents import Advice, Agent, Background, Brief, FileContents, NoUsableChangeError, Proposal, Workshop
from evogit.breeding.background import Backgrounds
from evogit.breeding.credit import merits
from evogit.breeding.crossings import Crossings, title
from evogit.breeding.fingerprints import Fingerprints
from evogit.breeding.inspirations import Inspirations
from evogit.config import Task
from evogit.core import Candidate, Operator, UsageError
from evogit.credentials import tokens
from evogit.events import Measured
from evogit.history import History
from evogit.history.carriers import CarriedCode
from evogit.history.counts import TUNING
from evogit.history.lessons import Source, kept_lessons, offered
from evogit.llm import Account
from evogit.repository import Repository, UnfitChangeError
from evogit.repository.diff_limits import check_extent
from evogit.selection import MODEL, Change, Graft, LookBack, Merge, Move, Mutation
from evogit.selection.conflict_settlers import Crossing
from evogit.selection.number_steps import NumberSteps
from evogit.source.marks import END, START, keeps_marks
from evogit.source.numbers import changed_numbers
from evogit.text import one_line

MAX_PLAN_CHARS, MAX_PLANS = 200, 12
"""The length of a plan, and how many plans of others an agent is shown, the latest ones."""

DRAWN = 8
"""Proposals of a prolific agent that are drawn for a move until one is new."""


class Bred(Struct, frozen=True, kw_only=True):
    """A tree that may become a candidate, and where it came from."""

    tree: str
    parents: tuple[str, ...]
    operator: Operator
    strategy: str
    title: str
    family: str = ""
    """The key of the approach, which its author gives."""
    differs: str = ""
    """Why an idea that was tried before is different this time."""
    reason: str = ""
    """What its author says for it."""
    model: str = ""
    shown: tuple[str, ...] = ()
    """Candidates, no ancestors, of which the brief showed code or a diff."""
    inspirations: tuple[str, ...] = ()
    """Those of them that brought lines which the tree has and no parent has."""
    conflicts: int = 0
    """Decisions that its conflicts took, of a merge or a graft."""
    rebased_from: str = ""
    """The candidate that the agent changed, where the change was put on a later one."""
    tactic: str = ""
    """The entry of the tactic that the brief had."""
    kept: bool = False
    """True for one of several steps of a session."""
    measured: Measured | None = None
    """The measurement by the session that made it."""
    evidence: Mapping[str, bytes] = field(default_factory=dict)


OpenWorkshop = Callable[[Callable[[Proposal], Bred]], Workshop]
"""Gives the agent of a move a place for drafts, of which that function makes trees if they could be candidates."""


@dataclass(eq=False, slots=True)
class Claim:
    """The `agents.Claims` of one move, made by `who`."""

    board: Board
    who: str
    plan: str = ""

    def make(self, plan: str) -> None:
        """Show a plan to the others, in place of an earlier one of this move."""
        self.plan = one_line(plan, MAX_PLAN_CHARS)

    def others(self) -> tuple[str, ...]:
        """Return the plans of others, one line each, oldest first."""
        return self.board.plans(but=self)


@dataclass(slots=True)
class Board:
    """The claims of all moves that agents think about, so that others try something else; `silent` shows none.

    They live in memory and end with the move: from then on the candidate's title, or the reason for none, is shown.
    """

    silent: bool = False
    _claims: list[Claim] = data_field(default_factory=list)

    @contextmanager
    def claim(self, who: str) -> Iterator[Claim]:
        """Hold the claim of a move."""
        claim = Claim(self, who)
        self._claims.append(claim)
        try:
            yield claim
        finally:
            self._claims.remove(claim)

    def plans(self, but: Claim | None = None) -> tuple[str, ...]:
        """Return all plans but one, each after its owner."""
        if self.silent:
            return ()
        plans = [f"{claim.who}: {claim.plan}" for claim in self._claims if claim.plan and claim is not but]
        return tuple(plans[-MAX_PLANS:])


class Breeder:
    """Turns moves into trees. Everything that an agent proposes is checked here, before anything is committed.

    `fingerprint` tells what a tree does, None where the task wants none; `numbers` is the memory of the run's numbers.
    `deterministic_agents` is the number of agents of a deterministic run (else 0), whose briefs tell nothing that
    depends on who is faster. `lessons` are the runs whose lessons briefs tell, as they are at the first brief.
    """

    def __init__(
        self,
        repository: Repository,
        task: Task,
        history: History,
        *,
        numbers: NumberSteps | None = None,
        secrets: Sequence[str] = (),
        deterministic_agents: int = 0,
        lessons: Sequence[Source] = (),
    ) -> None:
        self._repository = repository
        self._task = task
        self._history = history
        self.profiles: dict[str, str] = {}
        """Tree -> where its time goes, for briefs."""
        self._backgrounds = Backgrounds(repository, task, history, self.profiles)
        self._kept_lessons = cache(partial(kept_lessons, lessons))
        self._is_editable = cache(task.is_editable)
        self._crossings = Crossings(repository, history, self._is_editable)
        self._numbers = numbers or NumberSteps(repository)
        self._deterministic_agents = deterministic_agents
        self._inspirations = Inspirations(repository, history)
        self._carried = CarriedCode(repository, history)
        self._claims = Board(silent=deterministic_agents > 0)
        self.fingerprint = Fingerprints(repository, history).fingerprint if task.fingerprints else None
        self._secrets = [secret.encode() for secret in secrets]

    async def breed(
        self,
        agent: Agent,
        move: Move,
        rng: random.Random,
        *,
        number: int = 0,
        account: Account | None = None,
        workshop: OpenWorkshop | None = None,
    ) -> Bred:
        """Carry out a move.

        Args:
            agent: what proposes a change.
            move: which parents, and how.
            rng: the generator of this move.
            number: the number of the move.
            account: what the agent's calls of models are charged to.
            workshop: gives the agent a place where it may try drafts.

        Raises:
            NoUsableChangeError: when nothing came of it that may be committed; the message says why.
        """
        try:
            bred = await self._carried_out(agent, move, rng, number, account, workshop)
        except UnfitChangeError as error:
            raise NoUsableChangeError(str(error)) from error
        self._check(bred)
        return bred

    async def _carried_out(
        self,
        agent: Agent,
        move: Move,
        rng: random.Random,
        number: int,
        account: Account | None,
        workshop: OpenWorkshop | None,
    ) -> Bred:
        if isinstance(move, Merge):
            how: Crossing = "graft" if isinstance(move, Graft) else "merge"
            if move.asks:
                return await self._settled_by(agent, how, move, rng, number, account, workshop)
            return self._cross(how, move, rng)
        if isinstance(move, Change):
            parent = self._history.phylogeny[move.parent]
            return self._bred(parent, None, Proposal(changes=move.change, title=move.title, strategy=move.strategy))
        assert isinstance(move, Mutation), move
        brief = self.brief(
            self._history.phylogeny[move.parent],
            self._history.phylogeny[move.donor] if move.donor else None,
            number=number,
            account=account,
            boldness=move.boldness,
            tactic=move.tactic,
            afresh=move.afresh,
        )
        brief = replace(brief, role=agent.role)
        if move.tuning:
            brief = replace(brief, steps=self._numbers.steps(self._history, move.parent))
        brief, seen = _watched(brief)

        def made(proposal: Proposal) -> Bred:
            if proposal.shown is None:
                proposal = replace(proposal, shown=seen())
            bred = replace(self._bred(brief.parent, brief.donor, proposal), tactic=move.tactic)
            self._check(bred)
            return replace(bred, family=TUNING) if _tunes(brief.files, proposal.changes) else bred

        if workshop:
            brief = replace(brief, workshop=workshop(made))
        if agent.prolific:
            return self._drawn(agent, brief, rng)
        with self._claims.claim(f"{agent.kind} at work on {move.parent[:7]}") as claim:
            bred = made(await agent.propose(replace(brief, claims=claim), rng))
        return bred if brief.workshop and brief.workshop.kept else self._placed(bred, move, number)

    async def advise(
        self, agent: Agent, move: LookBack, rng: random.Random, *, number: int = 0, account: Account | None = None
    ) -> Advice:
        """Have an agent look back at what was tried on the parent of a move in vain.

        Raises:
            NoUsableChangeError: no usable answer came; the message says why.
        """
        brief = self.brief(self._history.phylogeny[move.parent], None, number=number, account=account)
        return await agent.advise(replace(brief, role=agent.role), rng)

    def _check(self, bred: Bred) -> None:
        """Refuse what differs from the seed in too much, or copies code that was pruned with its carriers."""
        if reason := self._carried.refusal(bred.tree, bred.parents):
            raise NoUsableChangeError(reason, bred.evidence)
        seed = next(iter(self._history.phylogeny))
        try:
            check_extent(self._repository.trees, seed.tree, bred.tree)
        except UnfitChangeError as error:
            raise NoUsableChangeError(str(error), bred.evidence) from error

    def _drawn(self, agent: Agent, brief: Brief, rng: random.Random) -> Bred:
        """Return the first of an agent's proposals that is new, of `DRAWN` at most."""
        proposals = agent.proposals(brief, rng)
        for _ in range(DRAWN):
            bred = self._bred(brief.parent, brief.donor, next(proposals))
            if not self._is_known(bred.tree):
                break
        return bred

    def _is_known(self, tree: str) -> bool:
        """Whether a candidate does the same; in a deterministic run one whose evaluation this move may know."""
        first = self._first(tree)
        return first is not None and (not self._deterministic_agents or self._history.judged(first))

    def _was_made(self, tree: str, number: int) -> bool:
        """The same when the reply to a move has come, which in a deterministic run knows no more than its brief did."""
        first, agents = self._first(tree), self._deterministic_agents
        return first is not None and (not agents or self._history.phylogeny[first].move <= number - agents)

    def _first(self, tree: str) -> str | None:
        """The candidate that does the same."""
        return self._history.duplicate_of(tree, self.fingerprint(tree) if self.fingerprint else "")

    def _cross(self, how: Crossing, move: Merge, rng: random.Random) -> Bred:
        try:
            merged = self._crossings.cross(how, move.parents, move.strategy, rng)
        except UsageError as error:
            raise NoUsableChangeError(str(error)) from error
        return Bred(
            tree=merged.tree,
            parents=move.parents,
            operator=how,
            strategy=move.strategy,
            title=title(self._history, how, move.parents, merged, move.strategy),
            conflicts=merged.conflicts,
        )

    async def _settled_by(
        self,
        agent: Agent,
        how: Crossing,
        move: Merge,
        rng: random.Random,
        number: int,
        account: Account | None,
        workshop: OpenWorkshop | None,
    ) -> Bred:
        """Have the agent settle the conflicts of a merge or a graft; it is asked only if there are any."""
        known = merits(self._history)
        opened = self._crossings.open(how, move.parents)
        first, second = (self._history.phylogeny[parent] for parent in move.parents)
        bred = Bred(
            tree=opened.merged.tree,
            parents=move.parents,
            operator=how,
            strategy=MODEL,
            title=title(self._history, how, move.parents, opened.merged, MODEL),
            conflicts=opened.merged.conflicts,
        )
        if not opened.markers:
            return bred
        begun = replace(first, tree=bred.tree)
        brief = self.brief(begun, second, number=number, account=account, conflicts=opened.markers)
        brief = replace(brief, merits=lambda: known, role=agent.role)  # merits as when the move was planned

        def settled(proposal: Proposal) -> Bred:
            try:
                tree = self._apply(bred.tree, proposal)
                self._crossings.close(move.parents, opened, tree)
            except UnfitChangeError as error:
                raise NoUsableChangeError(str(error), proposal.evidence) from error
            done = replace(bred, tree=tree, reason=proposal.reason, model=proposal.model, evidence=proposal.evidence)
            return self._traced(done, proposal.shown or ())

        if workshop:
            brief = replace(brief, workshop=workshop(settled))
        return settled(await agent.propose(brief, rng))

    def brief(
        self,
        parent: Candidate,
        donor: Candidate | None,
        *,
        number: int = 0,
        account: Account | None = None,
        boldness: float = 1.0,
        tactic: str = "",
        afresh: bool = False,
        conflicts: Mapping[str, int] | None = None,
    ) -> Brief:
        """What an agent is told before it changes `parent`, or settles `conflicts` in its files."""
        return Brief(
            goal=self._task.purpose_in(len(self._history.stages)),
            parent=parent,
            files=self._editable_files(parent.tree),
            donor=donor,
            donor_files=self._editable_files(donor.tree) if donor else {},
            background=lambda: self._background(parent, donor, number, tactic, afresh=afresh),
            move=number,
            account=account,
            boldness=boldness,
            merits=lambda: merits(self._history),
            conflicts=conflicts or {},
        )

    def _background(
        self, parent: Candidate, donor: Candidate | None, number: int, tactic: str, *, afresh: bool
    ) -> Background:
        known = number - self._deterministic_agents if self._deterministic_agents else None
        background = self._backgrounds.of(parent, donor, known, self._claims.plans(), afresh=afresh)
        kept = (lesson for _, lesson in self._kept_lessons())
        lessons = offered(kept, self._history, self._task.purpose, background.sizes)
        return replace(background, lessons=lessons, tactic=self._history.tactics[tactic].text if tactic else "")

    def _bred(self, parent: Candidate, donor: Candidate | None, proposal: Proposal) -> Bred:
        try:
            tree = self._apply(parent.tree, proposal)
        except UnfitChangeError as error:
            raise NoUsableChangeError(str(error), proposal.evidence) from error
        crossed = donor is not None and proposal.used_donor
        bred = Bred(
            tree=tree,
            parents=(parent.commit, donor.commit) if crossed and donor else (parent.commit,),
            operator="merge" if crossed else "mutation",
            strategy=proposal.strategy,
            title=proposal.title,
            family=proposal.family,
            differs=proposal.differs,
            reason=proposal.reason,
            model=proposal.model,
            evidence=proposal.evidence,
        )
        return self._traced(bred, proposal.shown or ())

    def _placed(self, bred: Bred, move: Mutation, number: int) -> Bred:
        """A change on the best of now; if that is there already, as it was made, or on the first spare where it is new.

        So a reply that repeats what was tried still tells something: its change with another candidate's code.
        """
        placed = self._rebased(bred) if move.rebase else bred
        if not move.spares or len(bred.parents) > 1 or not self._was_made(placed.tree, number):
            return placed
        places = chain([bred], (self._put(bred, spare) for spare in move.spares))
        return next((each for each in places if not self._was_made(each.tree, number)), placed)

    def _rebased(self, bred: Bred) -> Bred:
        """The same change on the best candidate, the latest of equals, where that came of the parent meanwhile.

        Of what both changed it has the new version. Not in a deterministic run, where it must not matter who was
        faster.
        """
        history, parent = self._history, bred.parents[0]
        best = history.latest_best
        if self._deterministic_agents or best in (None, parent) or len(bred.parents) > 1:
            return bred
        assert best
        return self._put(bred, best) if history.phylogeny.is_ancestor(parent, best) else bred

    def _put(self, bred: Bred, onto: str) -> Bred:
        """The same change on another candidate; as it was where that cannot be, or nothing is left of one of them."""
        parent = bred.parents[0]
        try:
            tree = self._crossings.rebased(parent, onto, bred.tree)
        except UnfitChangeError:
            return bred
        if tree in (bred.tree, self._history.phylogeny[onto].tree):
            return bred
        return self._traced(replace(bred, tree=tree, parents=(onto,), rebased_from=parent), bred.shown)

    def _traced(self, bred: Bred, shown: Sequence[str]) -> Bred:
        """The same with what its author was shown, and what of that is in the tree."""
        if not shown:
            return bred
        graph = self._history.phylogeny
        family = graph.ancestors(*bred.parents)
        others = tuple(each for each in dict.fromkeys(shown) if each in graph and each not in family)
        return replace(bred, shown=others, inspirations=self._inspirations.of(bred.tree, bred.parents, others))

    def _editable_files(self, tree: str) -> FileContents:
        return self._repository.trees.lazily(tree, self._is_editable)

    def _apply(self, tree: str, proposal: Proposal) -> str:
        """The tree with the proposed changes, all of which must lie in editable paths."""
        changes = proposal.changes
        if protected := sorted(path for path in changes if not self._task.is_editable(path)):
            allowed = ", ".join(self._task.editable)
            reason = f"expected changes to {allowed} only, got {', '.join(protected)}"
            raise NoUsableChangeError(reason, proposal.evidence)
        before = self._editable_files(tree)
        if astray := sorted(
            path for path in changes if path in before and not keeps_marks(before[path], changes[path])
        ):
            reason = f"expected changes between {START} and {END} alone, got others in {', '.join(astray)}"
            raise NoUsableChangeError(reason, proposal.evidence)
        self._check_credentials(proposal, before)
        return self._repository.trees.write(tree, changes, proposal.modes)

    def _check_credentials(self, proposal: Proposal, before: FileContents) -> None:
        """Refuse a proposal that holds a key of the user's settings, or a credential that its files had not.

        Raises:
            NoUsableChangeError: naming the file.
        """
        texts = (proposal.title, proposal.family, proposal.differs, proposal.reason)
        told = "\n".join(texts).encode(errors="replace")
        for path, content in (("its title", told), *proposal.changes.items()):
            if any(secret in (content or b"") for secret in self._secrets):
                raise NoUsableChangeError("the change holds a key from your settings, so it was not kept")
            if (found := tokens(content or b"")) and not found <= tokens(before.get(path, b"")):
                reason = (
                    f"expected a change without credentials, but {path} holds what looks like a private key or token"
                )
                raise NoUsableChangeError(reason, proposal.evidence)


def _tunes(before: FileContents, changes: Mapping[str, bytes | None]) -> bool:
    """Return whether changes are of numbers alone."""
    return all(
        content is not None and path in before and bool(changed_numbers(path, before[path], content))
        for path, content in changes.items()
    )


def _watched(brief: Brief) -> tuple[Brief, Callable[[], tuple[str, ...]]]:
    """The same brief, and the candidates whose code it has shown: its donor, and relatives once they were asked for."""
    gather, gathered = brief.background, list[Background]()

    def background() -> Background:
        assert gather
        gathered.append(gather())
        return gathered[-1]

    def seen() -> tuple[str, ...]:
        relatives = [each for past in gathered for each in (*past.siblings, *past.inspirations, past.best)]
        shown = [each.candidate.commit for each in relatives if each and each.diff]
        return tuple([brief.donor.commit, *shown] if brief.donor else shown)

    return replace(brief, background=background if gather else None), seen
