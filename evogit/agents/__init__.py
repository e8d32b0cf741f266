"""Agents: a brief goes in, a proposal comes out, and this module is all that the loop knows of them.

`Agent`, `Brief` and `Proposal` are below. `briefs/` writes the text that a model is shown, `editing/` reads its reply,
`editor.py` and `coder.py` are the conversations in between, `mutation/` is the agent without a model and `programs/`
runs coding programs. Start with `editor.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field

from evogit.core import Candidate, Evaluation, Evidence, EvoGitError, Metric
from evogit.events import Measured
from evogit.history.ideas import Idea
from evogit.history.standing import Comparison, Standing
from evogit.llm import Account
from evogit.sandbox import Completed, Limits
from evogit.source.numbers import Constant

FileContents = Mapping[str, bytes]  # path relative to the root of the tree, with forward slashes -> content


class NoUsableChangeError(EvoGitError):
    """There is nothing to propose; the message is journalled, `evidence` (file name -> content) shows why.

    `idea` has `title`, `family` and `differs` of a reply that could not be used, as far as it gives them.
    """

    def __init__(
        self, reason: str, evidence: FileContents | None = None, idea: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(reason)
        self.evidence = dict(evidence or {})
        self.idea = dict(idea or {})


class ModelCredit(Struct, frozen=True, kw_only=True):
    """The recent gains of a model or a kind of agents; older moves count less."""

    moves: float  # how many there were, so counted
    # what a move of it gained on average, from 0 to 1: the largest gain of all moves that asked models of late
    gain: float
    tokens: float  # what a move of it took on average
    dollars: float | None  # the same in money; None where a price is not known


def no_merits() -> Mapping[str, ModelCredit]:
    """Where no model was asked yet."""
    return {}


class Relative(Struct, frozen=True, kw_only=True):
    """Another candidate as a brief tells of it: what it changed, and what came of it (None: not evaluated yet)."""

    candidate: Candidate
    evaluation: Evaluation | None
    standing: Standing  # its score, and what it gained over the fittest candidate that it comes from
    diff: str = ""  # against its first parent, as a patch; only of those close to the brief's parent
    rejected: str = ""  # by whom it was rejected, and why; empty if it was not
    # ancestor -> how many lines that it removed came back with this one; only of those close to the brief's parent
    readded: Mapping[str, int] = field(default_factory=dict)
    why: str = ""  # of one that failed: the line of its evaluation that tells most, such as the assertion; foreign text
    former: Evaluation | None = None  # what came of it before the task changed, where it was not evaluated since


class Background(Struct, frozen=True, kw_only=True):
    """Facts about a parent and its run, gathered when an agent asks for them."""

    task: str  # name of the task
    metrics: tuple[Metric, ...]  # all metrics, the primary one first
    split: str  # the split that candidates are evaluated on
    editable: tuple[str, ...]  # globs of the paths that may change
    sizes: Mapping[str, int]  # path -> bytes, of all files that agents may see
    # content of a path that agents may see, editable or not; raises KeyError for any other one
    read: Callable[[str], bytes]
    # what an editable file imports, and which of some names it defines, as far as is known
    imports: Callable[[str], Iterable[str]] = lambda path: ()
    defines: Callable[[str, frozenset[str]], Collection[str]] = lambda path, names: ()
    starts: tuple[str, ...] = ()  # files and modules that the measured command names, or its own script imports
    refusal: Callable[[str], str]  # why a path may not be changed, in one sentence; empty for those that may
    programs: frozenset[str] = frozenset()  # paths of the executable files among those that agents may see
    # Git's mode and id of all that agents may see, links and submodules too
    entries: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    changed: Collection[str] = frozenset()  # paths that some candidate of the run changed
    evaluation: Evaluation | None = None  # the parent's; None while there is none
    feedback: Mapping[str, str] = field(default_factory=dict)  # case -> what the evaluator said of it
    log: str = ""  # what it said of the whole
    profile: str = ""  # where the parent's time goes, the most expensive functions first; foreign text
    output: str = ""  # the end of what a parent that failed wrote to standard error
    seed_metrics: Mapping[str, float] = field(default_factory=dict)  # of the seed and of the best candidate
    best_metrics: Mapping[str, float] = field(default_factory=dict)
    guidance: tuple[str, ...] = ()  # what people said, oldest first
    notes: tuple[str, ...] = ()  # what earlier sessions noted at their ends, oldest first; foreign text
    lessons: tuple[str, ...] = ()  # what earlier runs proved, the likest one first; foreign text
    tactic: str = ""  # what a model advised after nothing had helped for a while; empty where this brief has none
    lineage: tuple[Relative, ...] = ()  # the parent's ancestors, the seed first, the parent last
    siblings: tuple[Relative, ...] = ()  # the best of what else was bred from the parent, and the last that failed
    ideas: tuple[Idea, ...] = ()  # what models tried in the run, oldest first
    carried: Collection[str] = frozenset()  # candidates of ideas that the parent descends from, or is
    failures: tuple[str, ...] = ()  # reasons of the latest proposals from this parent that were not usable
    last_failure: str = ""  # why the latest change of this parent that was not usable, or not valid, was not
    # titles of candidates by any agent that are not evaluated yet, and what agents at work are about to try
    others: tuple[str, ...] = ()
    inspirations: tuple[Relative, ...] = ()  # what the donor's lineage changed since it left the parent's, oldest first
    # the donor, with its difference to the parent as a patch, and files of it that differ from the parent's
    donor: Relative | None = None
    donor_files: FileContents = field(default_factory=dict)
    refusals: tuple[str, ...] = ()  # would-be bests that the reviewer refused lately, and why; foreign text
    # the best candidate, with its difference to the parent as a patch; None where it is the parent
    best: Relative | None = None
    best_files: FileContents = field(default_factory=dict)  # files of it that differ from the parent's
    lead: Comparison | None = None  # how the best compares with the parent; None where one of them has no score
    # of the parent's metrics, half of their 95 % intervals; infinite while nothing was evaluated twice
    margins: Mapping[str, float] = field(default_factory=dict)
    repeats: int = 0  # how often the parent was evaluated
    places: int = 6  # decimals that tell scores of the run apart
    inside: bool = False  # whether candidates are evaluated inside the sandbox, by code that they could tamper with
    # by which command they are evaluated, and how metrics are read from it; empty for trusted code outside
    judge: str = ""
    limits: Limits | None = None  # what candidates may use
    runtime: str = ""  # which language they run in, and which packages there are; empty where it is not known
    agents: int = 1  # how many agents the run has
    templates: Path = Path()  # the folder of the task's own templates of briefs, which may be absent
    # makes a Git bundle of the parent, its lineage and the inspirations, with their scores as notes: branches
    # `parent`, `seed`, `lineage/01-1a2b3c4`, `inspiration/01-5d6e7f8`. It takes a while, and is for a thread
    bundle: Callable[[], bytes] = bytes


class Measurement(Struct, frozen=True, kw_only=True):
    """A draft measured in turns with its parent and the seed: a hint for its agent, never a score.

    Attributes:
        evaluation: of the draft's first run, with the tests.
        evidence: of the same.
        values: the primary metric of `seed`, `parent` and `draft`, a value for each pair; empty for an invalid draft.
        measured: the ratios; None where they have none, as a value is 0 or below.
    """

    evaluation: Evaluation
    evidence: Evidence
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    measured: Measured | None = None


class Workshop(Protocol):
    """A place to try drafts, checked as proposals are; `evaluations` are left, `runs`: commands can be run.

    `measures` and `keeps` say whether `measure` and `keep` can be used; `kept` are the ids of steps that were.
    """

    @property
    def evaluations(self) -> int:
        """How many evaluations are left."""
        ...

    @property
    def runs(self) -> bool:
        """Whether `run` can be used."""
        ...

    def check(self, draft: Proposal) -> None:
        """Refuse what no candidate could be. Raises NoUsableChangeError: saying why."""
        ...

    async def run(self, draft: Proposal, command: str, *, wall: float) -> Completed:
        """Run a shell command in the sandbox, on those of the draft's files that agents may see; none is kept.

        Raises NoUsableChangeError: no candidate could be like this.
        """
        ...

    @property
    def measures(self) -> bool:
        """True if `measure` can be used."""
        ...

    @property
    def keeps(self) -> bool:
        """True if `keep` can be used."""
        ...

    @property
    def kept(self) -> Sequence[str]:
        """Ids of the steps that were kept, oldest first."""
        ...

    async def profile(self, draft: Proposal) -> str:
        """Return where the draft spends its time, by the task's `profile` command; empty if it has none."""
        ...

    async def measure(self, draft: Proposal, pairs: int, *, seconds: float, check: Callable[[], None]) -> Measurement:
        """Run the tests, then measure draft, parent and seed in turns; it uses up no evaluation.

        After so many `seconds` no further pair is begun; `check` raises what ends the session, before each run.

        Raises NoUsableChangeError: no candidate could be like this, or nothing can be measured.
        """
        ...

    def keep(self, draft: Proposal) -> str:
        """Make the draft a candidate, the parent of what follows, evaluated while the session goes on; return its id.

        Raises NoUsableChangeError: no candidate could be like this, it was proposed before, or no evaluation is left.
        """
        ...

    def judgements(self) -> Sequence[tuple[str, Evaluation | None]]:
        """Return the evaluations of kept steps that ended since the last call, by id; None if one was given up."""
        ...

    def close(self, ended: SessionNotes) -> None:
        """Journal the notes of a session that comes to its end."""
        ...

    async def evaluate(self, draft: Proposal) -> tuple[Evaluation, Evidence]:
        """Evaluate a draft, which uses up one of `evaluations`. Raises NoUsableChangeError: the draft is not valid."""
        ...


class SessionNotes(Struct, frozen=True, kw_only=True):
    """The notes that a session leaves for the next one, in its agent's words, with what shows how it went."""

    text: str
    model: str = ""
    evidence: FileContents = field(default_factory=dict)


class Claims(Protocol):
    """A board on which slow agents post what they try; absent in deterministic runs."""

    def make(self, plan: str) -> None:
        """Tell what is about to be tried, in a line; it takes the place of what was said before in this move."""
        ...

    def others(self) -> tuple[str, ...]:
        """What others are about to try, one line each, oldest first; foreign text."""
        ...


class Brief(Struct, frozen=True, kw_only=True):
    """What an agent is told before it proposes a change.

    `files` are the editable files of the parent. `donor` and `donor_files` are another good candidate, from which
    code may be taken; both are empty when there is none. `background` gathers the rest, which costs a few
    milliseconds. `move` is the number of the agent's move, `account` what its calls of models are charged to;
    `boldness` multiplies the usual size of a change. `merits` tells what models brought in this run, by their names.
    `steps` tells how far named numbers should go next, as far as that was learned; it is None where they are changed
    like any other number.
    """

    goal: str
    parent: Candidate
    files: FileContents
    donor: Candidate | None = None
    donor_files: FileContents = field(default_factory=dict)
    background: Callable[[], Background] | None = None
    move: int = 0
    account: Account | None = None
    boldness: float = 1.0
    merits: Callable[[], Mapping[str, ModelCredit]] = no_merits
    steps: Mapping[Constant, float] | None = None
    # files with conflicts of a merge that are to be settled now -> how many characters their markers have
    conflicts: Mapping[str, int] = field(default_factory=dict)
    # where drafts can be tried; None where nothing is run, as when a brief is only shown
    workshop: Workshop | None = None
    claims: Claims | None = None  # where agents say what they are about to try; None where a brief is only shown
    role: str = ""  # what this agent cares for, in the words of the person who started it


class Proposal(Struct, frozen=True, kw_only=True):
    """A change to the parent's files: path -> new content, or None to delete it.

    `reason` is what its author says for it, a paragraph; empty where they say nothing.
    `modes` are Git's modes of new files where they are not plain, such as those of renamed programs. `used_donor` says
    that code of the donor went in, which makes it the second parent of the child; `shown` are ids of the candidates of
    which the agent saw code or a diff, beside the parent and its ancestors; None stands for all that its brief gave it.
    `family` is a short key of the approach that its author gives and uses again, `differs` why an idea that was tried
    before is different this time. `strategy` names how the change was made; several ways are joined by `+`. `model`
    names the model that wrote the change; `evidence` are files that show how it came about, and may grow until the
    agent's move ends.
    """

    changes: Mapping[str, bytes | None]
    title: str
    family: str = ""
    differs: str = ""
    reason: str = ""
    strategy: str = ""
    modes: Mapping[str, int] = field(default_factory=dict)
    used_donor: bool = False
    shown: tuple[str, ...] | None = None
    model: str = ""
    evidence: FileContents = field(default_factory=dict)


class Advice(Struct, frozen=True, kw_only=True):
    """A tactic: what an agent's `model` says to try next, in a few sentences, and what shows how it came about."""

    text: str
    model: str = ""
    evidence: FileContents = field(default_factory=dict)


class Agent(Protocol):
    """A member of the population, to be derived from; all random choices come from the generator passed in."""

    kind: str
    trials: int = 0  # how many drafts it wants to have evaluated in a move before it proposes, at most
    # whether it pauses after moves that failed, as one that asks a model must; others just try again
    pauses: bool = True
    prolific: bool = False  # whether one more proposal costs it next to nothing, so that `proposals` is used
    role: str = ""  # what it cares for, in the words of the person who started it; each of its briefs has them

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Propose a change to the brief's parent. Raises NoUsableChangeError: there is none; the next move follows."""
        ...

    async def advise(self, brief: Brief, rng: random.Random) -> Advice:
        """Say what to try, after vain changes to the parent. Raises NoUsableChangeError: there is nothing to say."""
        raise NoUsableChangeError(f"a {self.kind} gives no advice")

    def proposals(self, brief: Brief, rng: random.Random) -> Iterator[Proposal]:
        """Yield changes to the brief's parent without end. Raises NoUsableChangeError: there is none."""
        raise NoUsableChangeError(f"a {self.kind} proposes once in a move")
