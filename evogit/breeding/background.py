"""Gathers what a brief tells besides the code: how the parent was evaluated, where it comes from, what was tried."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import islice
from typing import Any

from evogit.agents import Background, Relative
from evogit.agents.briefs.ancestry import START, Ancestry
from evogit.agents.briefs.digest import telling
from evogit.agents.briefs.relevance import words_of
from evogit.config import Task
from evogit.core import Candidate, Metric, RepositoryError
from evogit.credentials import Redactor
from evogit.events import Decision, FailedProposal
from evogit.history import History
from evogit.history.context import redactor
from evogit.history.counts import TUNING
from evogit.history.ideas import Idea, ideas
from evogit.history.phylogeny import Phylogeny
from evogit.history.readded_lines import Readded
from evogit.history.standing import compare, places, standing
from evogit.history.strengths import said_of
from evogit.repository import EXECUTABLE, Repository, UnfitChangeError, check_path
from evogit.repository.bundle import bundle
from evogit.repository.evidence import FEEDBACK, LOG, STDERR, read_feedback, redacted_evaluation
from evogit.sandbox.providers import runs_here
from evogit.source.imports import imports
from evogit.source.outline import outline
from evogit.text import lines_of

CLOSE = 3
"""Ancestors, siblings and inspirations, the latest ones, whose diffs are shown."""

MAX_NOTED_SESSIONS = 2
"""The latest sessions of the parent's line, and as many of other lines, whose notes are in a brief."""

LOOKED_AT = 500
"""Ancestors, the latest ones, among which the largest steps are looked for."""

STILL = 4
"""Ideas since the best was made, none of them better, from which on another family's program is shown."""

MAX_REFUSALS = 3
"""Refusals by the reviewer that are told of, the latest ones."""

MOST = 12
"""Ancestors, siblings, failures and candidates in the making that are told of."""

MOST_SIZES = 200_000
"""Files whose size is remembered."""

MOST_PATCHES, LONGEST_PATCH = 500, 40_000
"""Changes that are remembered, since relatives share them, and characters of each: about as much as a brief shows."""

MORE_PLACES = 2
"""Decimals of exact scores that a model is told beyond those that a user reads."""

MAX_SCANNED_BYTES = 500_000
"""A file beyond this is not read to find out what it imports and defines."""

TAIL = 4_000
"""Bytes of a failed parent's output, its end."""

READS: dict[str, str] = {
    "exit": "1 if the command ends with exit code 0, else 0",
    "junit": "the share of tests in {} that pass",
    "regex": "the number in the last line that matches {}",
    "json": "{} of the last JSON object in the output",
    "cpu": "seconds of CPU that the command takes",
    "wall": "seconds that the command takes",
}
"""How a metric is read -> what it measures."""


class Backgrounds:
    """Gathers backgrounds for one run; what it learned of a path or a file holds for all candidates."""

    def __init__(
        self, repository: Repository, task: Task, history: History, profiles: Mapping[str, str] | None = None
    ) -> None:
        """`profiles`: tree -> where its time goes, as far as that is known."""
        self._profiles = {} if profiles is None else profiles
        self._repository = repository
        self._task = task
        self._history = history
        self._size = lru_cache(MOST_SIZES)(repository.trees.size)
        self._visible = cache(task.is_visible)
        self._imports = lru_cache(MOST_SIZES)(self._read_imports)
        self._defines = lru_cache(MOST_SIZES)(self._read_defined)
        self._patch = lru_cache(MOST_PATCHES)(self._read_patch)
        self._telling = lru_cache(MOST_PATCHES)(self._read_telling)
        self._restless = set[str]()
        self._seen = 0
        self._readded = Readded(repository, history, self._visible)

    @cached_property
    def _redactor(self) -> Redactor:
        """For the evidence of earlier versions, which has all that programs printed."""
        return redactor(self._task, self._repository, self._history)

    def of(
        self,
        parent: Candidate,
        donor: Candidate | None = None,
        known: int | None = None,
        plans: Sequence[str] = (),
        *,
        afresh: bool = False,
    ) -> Background:
        """Gather the facts about `parent`, the steps of `donor` that it lacks, and the `plans` of others.

        `known` is the last move that counts, where a brief must not depend on how long others take. With `afresh` no
        code of other candidates is shown.
        """
        task, history = self._task, self._history
        files = self._repository.trees.lazily(parent.tree, self._visible)
        tried = ideas(history, known)
        ancestors = history.phylogeny.ancestors(parent.commit)
        carried = ancestors.intersection(commit for idea in tried for commit in idea.candidates)
        other = donor or (None if afresh else self._other_family(tried, carried))
        return Background(
            task=task.name,
            metrics=_metrics(task),
            split=history.split,
            editable=task.editable,
            sizes={path: self._size(entry.blob) for path, entry in files.entries.items()},
            changed=self._changed(known is not None),
            read=files.__getitem__,
            imports=lambda path: self._imports(path, files.entries[path].blob),
            defines=lambda path, names: self._defines(files.entries[path].blob, names),
            starts=self._starts,
            refusal=_refusal(task),
            programs=frozenset(path for path, entry in files.entries.items() if entry.mode == EXECUTABLE),
            entries=self._entries(parent.tree),
            profile=self._profiles.get(parent.tree, ""),
            **self._evaluated(parent),
            seed_metrics=self._metrics(history.seed),
            best_metrics=self._metrics(history.best),
            guidance=tuple(history.guidance),
            **self._past(parent, history.moves if known is None else known),
            ideas=tried,
            carried=carried,
            others=(*self._others(parent), *plans) if known is None else (),
            **self._relations(parent, other, afresh=afresh),
            places=places(history) + (0 if history.repeats else MORE_PLACES),
            **self._conditions(parent, files.entries),
        )

    def _past(self, parent: Candidate, until: int) -> dict[str, Any]:
        """Return the fields of notes, failures and refusals, of moves up to `until`."""
        return {
            "notes": self._notes(parent, until),
            "failures": self._failures(parent, until),
            "last_failure": self._last_failure(parent, until),
            "refusals": self._refusals(until),
        }

    def _relations(self, parent: Candidate, donor: Candidate | None, *, afresh: bool) -> dict[str, Any]:
        """Return the fields of relatives: lineage, siblings, donor and best; `afresh` shows the code of none."""
        history = self._history
        lineage = self._relatives(self._steps(parent.commit))  # whose tree is its own, not half of a merge
        inspirations = self._relatives(_of_donor(history.phylogeny, parent, donor)) if donor else ()
        foreign, foreign_files = self._instead(parent, donor.commit if donor else None)
        best, best_files = self._instead(parent, None if afresh else history.best)
        return {
            "lineage": lineage,
            "siblings": self._siblings(parent, inspirations, with_code=not afresh),
            "inspirations": inspirations,
            "donor": foreign,
            "donor_files": foreign_files,
            "best": best,
            "best_files": best_files,
            "lead": compare(history.scores, best.candidate.commit, parent.commit) if best else None,
            "bundle": self._bundle(parent, lineage, donor, inspirations),
        }

    def _conditions(self, parent: Candidate, paths: Iterable[str]) -> dict[str, Any]:
        """Return the fields of how candidates are evaluated, how certainly, and by how many agents they are made."""
        task, started, scores = self._task, self._history.started, self._history.scores
        return {
            "margins": {each.name: scores.margin(parent.commit, metric=each.name) or 0.0 for each in task.metrics},
            "templates": task.templates,
            "inside": started is not None and started.judged == "inside",
            "judge": _judge(task),
            "limits": task.told_limits,
            "runtime": _runtime(task, started.provider if started else "", paths),
            "agents": len(started.agents) if started else 1,
        }

    def _steps(self, commit: str) -> list[Candidate]:
        """Return the latest first-parent ancestors of a candidate and itself, and of earlier ones the largest steps."""
        whole = self._history.phylogeny.lineage(commit)
        early, late = whole[:-CLOSE][-LOOKED_AT:], whole[-CLOSE:]
        gains = {each.commit: standing(self._history, each.commit).gain for each in early}
        largest = sorted(early, key=lambda each: gains[each.commit] or 0.0)[CLOSE - MOST :]
        return [*sorted(largest, key=lambda each: each.number), *late]

    def _other_family(self, tried: Sequence[Idea], carried: set[str]) -> Candidate | None:
        """Return the best candidate of a family that a candidate has nothing of, when the run stands still."""
        history = self._history
        record = history.phylogeny[history.best].move if history.best else 0
        own = {"", TUNING, *(idea.family for idea in tried if not carried.isdisjoint(idea.candidates))}
        others = [idea for idea in tried if idea.family not in own and idea.score is not None]
        if sum(move > record for idea in tried for move in idea.moves) < STILL or not others:
            return None
        fittest = max(others, key=lambda idea: history.metric.sign * (idea.score or 0.0))
        return history.phylogeny[fittest.candidate]

    def _evaluated(self, parent: Candidate) -> dict[str, Any]:
        """Return how the parent was evaluated: the fields from `evaluation` to `output`."""
        history, commit = self._history, parent.commit
        evidence, evaluation = self._files(history.evidence.get(commit, "")), history.evaluation(commit)
        if evaluation:  # its journal may be older than the redaction of names
            names = {*self._task.metric_names, *self._task.splits}
            evaluation = redacted_evaluation(evaluation, self._redactor, names)
        verdicts = said_of(history.strengths, commit, MOST) if history.strengths else {}
        failed = evaluation is not None and not evaluation.ok
        return {
            "evaluation": evaluation,
            "repeats": history.scores.repeated(commit) + 1 if evaluation else 0,
            "feedback": read_feedback(evidence.get(FEEDBACK, b"")) | verdicts,
            "log": evidence.get(LOG, b"").decode(errors="replace"),
            "output": evidence.get(STDERR, b"")[-TAIL:].decode(errors="replace") if failed else "",
        }

    def _notes(self, parent: Candidate, until: int) -> tuple[str, ...]:
        """Return the latest notes of the parent's line and of others, oldest first; of moves up to `until`."""
        graph = self._history.phylogeny
        pruned = self._history.pruned
        ends = [end for end in self._history.notes if end.text and end.move <= until and end.candidate in graph]
        ends = [end for end in ends if end.candidate not in pruned]
        own = [end for end in ends if end.candidate == parent.commit or graph.is_ancestor(end.candidate, parent.commit)]
        chosen = own[-MAX_NOTED_SESSIONS:] + [end for end in ends if end not in own][-MAX_NOTED_SESSIONS:]
        return tuple(
            f"{end.agent}, which kept {end.kept} steps up to {end.candidate[:7]}: {end.text}"
            for end in sorted(chosen, key=lambda end: end.move)
        )

    @cached_property
    def _starts(self) -> tuple[str, ...]:
        """The files that the measured command names, and the imports of the evaluator's files among them."""
        if self._task.command is None:
            return ()
        words, own = list(words_of(self._task.command.text)), self._task.evaluator_files()
        texts = {path: data.decode(errors="replace") for path, (data, _) in own.items()}
        folder = self._task.command.folder
        whole = {path: f"/{folder}/{path}" for path in texts}
        named = [path for path in texts if folder in words or any(whole[path].endswith(f"/{word}") for word in words)]
        return (*words, *(word for path in named for word in imports(path, texts[path])))

    def _read_imports(self, path: str, blob: str) -> tuple[str, ...]:
        text = "" if self._size(blob) > MAX_SCANNED_BYTES else lines_of(self._repository.trees.blob(blob))
        return imports(path, text or "")

    def _read_defined(self, blob: str, names: frozenset[str]) -> frozenset[str]:
        text = "" if self._size(blob) > MAX_SCANNED_BYTES else lines_of(self._repository.trees.blob(blob)) or ""
        parts = outline(text) if any(name in text for name in names) else ()
        return names.intersection(part.name for part in parts)

    def _entries(self, tree: str) -> dict[str, tuple[int, str]]:
        entries = self._repository.trees.entries(tree)
        return {path: (mode, blob) for path, mode, blob in entries if self._visible(path)}

    def _bundle(
        self, parent: Candidate, lineage: Sequence[Relative], donor: Candidate | None, inspirations: Sequence[Relative]
    ) -> Callable[[], bytes]:
        """Makes a bundle of what is known now, whenever it is called."""
        history, graph = self._history, self._history.phylogeny
        seed = graph[history.seed] if history.seed else lineage[0].candidate
        first = Relative(
            candidate=seed, evaluation=history.evaluation(seed.commit), standing=standing(history, seed.commit)
        )
        ancestry = Ancestry(
            parent=parent,
            seed=first,
            lineage=lineage,
            inspirations=inspirations,
            fork=graph.merge_base(parent.commit, donor.commit) if donor else None,
            metrics=_metrics(self._task),
            places=places(history) + (0 if history.repeats else MORE_PLACES),
        )
        return lambda: bundle(self._repository.common, ancestry.steps(), START, self._visible)

    def _changed(self, judged: bool) -> Collection[str]:
        """Paths that candidates changed, where `judged` those before the first one that awaits its evaluation."""
        history, graph = self._history, self._history.phylogeny
        for candidate in islice(graph, self._seen, None):
            if judged and not history.judged(candidate.commit):
                break
            for parent in candidate.parents[:1]:
                self._restless.update(self._repository.changed_paths(graph[parent].tree, candidate.tree))
            self._seen += 1
        return self._restless

    def _metrics(self, commit: str | None) -> dict[str, float]:
        """Of the run's split; empty while there are none."""
        evaluation = self._history.evaluation(commit) if commit else None
        return dict(evaluation.metrics) if evaluation else {}

    def _instead(self, parent: Candidate, commit: str | None) -> tuple[Relative | None, Mapping[str, bytes]]:
        """Return the best or a donor with its patch against the parent, and its versions of a few changed files.

        None and no files without one, or if it has the parent's tree.
        """
        history, trees = self._history, self._repository.trees
        if commit is None or (other := history.phylogeny[commit]).tree == parent.tree:
            return None, {}
        relative = Relative(
            candidate=other,
            evaluation=history.evaluation(commit),
            standing=standing(history, commit),
            diff=self._patch(parent.commit, commit),
        )
        changed = sorted(self._repository.changed_paths(parent.tree, other.tree))
        return relative, trees.files(other.tree, set(islice(filter(self._visible, changed), MOST)).__contains__)

    def _siblings(self, parent: Candidate, others: Sequence[Relative], *, with_code: bool) -> tuple[Relative, ...]:
        """Return the best child that gained and the last that failed, with their changes, and rejected children.

        Inspirations and candidates that await their evaluation are in other sections.
        """
        history = self._history
        told_of = {*history.pending, *(each.candidate.commit for each in others)}
        children = [each for each in self._children(parent) if each.commit not in told_of]
        rejected = [each.commit for each in children if each.commit in history.pruned]
        kept = [each.commit for each in children if each.commit not in history.pruned]
        better = [commit for commit in kept if history.fitter(commit, parent.commit)]
        failed = [commit for commit in kept if standing(history, commit).failed]
        best = sorted(better, key=lambda commit: self._task.primary.sign * (history.fitness(commit) or 0.0))
        shown = {*best[-1:], *failed[-1:]}
        told = shown.union(rejected[-MOST:])
        return self._relatives([each for each in children if each.commit in told], shown if with_code else ())

    def _children(self, parent: Candidate) -> list[Candidate]:
        """Return what was made of a candidate, also where it was put on another one, oldest first."""
        graph = self._history.phylogeny
        made = {*graph.children(parent.commit), *self._history.rebased.get(parent.commit, ())}
        return sorted(map(graph.__getitem__, made), key=lambda each: each.number)

    def _relatives(self, candidates: Sequence[Candidate], shown: Collection[str] | None = None) -> tuple[Relative, ...]:
        """The last of them, oldest first; those that are `shown` (default: the very last ones) with their diffs."""
        told = candidates if shown is not None else candidates[-MOST:]
        shown = {candidate.commit for candidate in candidates[-CLOSE:]} if shown is None else shown
        rejected = self._rejections()
        return tuple(
            Relative(
                candidate=each,
                evaluation=self._history.evaluation(each.commit),
                diff=self._patch(each.parents[0], each.commit) if each.commit in shown and each.parents else "",
                rejected=rejected.get(each.commit, ""),
                readded=self._readded.by(each) if each.commit in shown else {},
                standing=standing(self._history, each.commit),
                why=self._why(each),
                former=self._history.former(each.commit),
            )
            for each in told
        )

    def _why(self, candidate: Candidate) -> str:
        """The line that tells most of a failed evaluation; empty for one that is valid."""
        evaluation = self._history.evaluation(candidate.commit)
        if evaluation is None or evaluation.ok or not evaluation.counts:
            return ""
        return self._telling(self._history.evidence.get(candidate.commit, ""))

    def _read_telling(self, tree: str) -> str:
        kept = self._files(tree)
        said = [*read_feedback(kept.get(FEEDBACK, b"")).values()]
        said += [kept.get(name, b"")[-TAIL:].decode(errors="replace") for name in (LOG, STDERR)]
        return next(filter(None, map(telling, said)), "")

    def _rejections(self) -> dict[str, str]:
        """Id of each pruned candidate -> by whom, and the reason that was given for itself."""
        pruned = self._history.pruned
        decisions = (entry.event for entry in self._history.in_force()) if pruned else ()
        prunings = [each for each in decisions if isinstance(each, Decision) and each.kind == "prune"]
        reasons = {commit: each.reason for each in prunings for commit in each.candidates}
        refused = {commit: f"the reviewer: {reason}" for commit, reason in self._history.refused.items()}
        return {commit: f"a person: {reasons.get(commit) or 'no reason given'}" for commit in pruned} | refused

    def _refusals(self, until: int) -> tuple[str, ...]:
        """The latest refusals by the reviewer of candidates of moves up to `until`, oldest first."""
        graph, refused = self._history.phylogeny, self._history.refused
        latest = [commit for commit in refused if graph[commit].move <= until][-MAX_REFUSALS:]
        return tuple(f"{commit[:7]} {graph[commit].title}: {refused[commit]}" for commit in latest)

    def _read_patch(self, old: str, new: str) -> str:
        """What changed, without what a person of more rights may have changed of withheld files."""
        return self._redactor.text(self._repository.diff(old, new, self._visible)[:LONGEST_PATCH])

    def _failures(self, parent: Candidate, known: int) -> tuple[str, ...]:
        """Return why the latest proposals from the parent were not usable, each reason once, oldest first."""
        reasons = dict.fromkeys(event.reason for event in self._unusable(parent, known))
        return tuple(islice(reasons, MOST))[::-1]

    def _unusable(self, parent: Candidate, known: int) -> Iterator[FailedProposal]:
        """Yield the proposals from the parent that were not usable, up to the move `known`, the latest first.

        Those for which no model could be reached say nothing.
        """
        answered = self._history.authors.answered
        for event in reversed(self._history.failures):
            if event.move <= known and parent.commit in event.parents and answered(event):
                yield event

    def _last_failure(self, parent: Candidate, known: int) -> str:
        """Return why the latest change of the parent that was unusable or not valid failed; empty if none did."""
        reasons = [(event.move, event.reason) for event in islice(self._unusable(parent, known), 1)]
        for child in self._children(parent):
            evaluation = self._history.evaluation(child.commit)
            if child.move <= known and evaluation and not evaluation.ok and evaluation.counts:
                reasons.append((child.move, "\n".join(filter(None, [evaluation.reason, self._why(child)]))))
        return max(reasons, default=(0, ""))[1]

    def _others(self, parent: Candidate) -> tuple[str, ...]:
        """What is tried right now: titles of candidates that await their evaluation, the parent left out."""
        waiting = [each for commit, each in self._history.pending.items() if commit != parent.commit]
        return tuple(f"{each.agent}: {each.title}" for each in waiting[-MOST:])

    def _files(self, tree: str) -> dict[str, bytes]:
        """Return what a tree of evidence keeps of an evaluation; nothing if it is gone."""
        wanted = (LOG, FEEDBACK, STDERR)
        try:
            kept = self._repository.trees.files(tree, wanted.__contains__) if tree else {}
        except RepositoryError:
            return {}
        return {name: self._redactor.data(content) for name, content in kept.items()}


def _metrics(task: Task) -> tuple[Metric, ...]:
    """All metrics, the primary one first."""
    return tuple(sorted(task.metrics, key=lambda metric: not metric.primary))


def _judge(task: Task) -> str:
    """The command that evaluates, and how each metric is read; empty where trusted code does."""
    if task.command is None:
        return ""
    place = f"in {task.command.directory}/: " if task.command.directory else ""
    reads = [f"{name}: {READS[read.how].format(read.what or name)}" for name, read in task.command.reads.items()]
    tests = [f"{place}{task.command.tests} (must exit with 0; what follows is measured)"] if task.command.tests else []
    return "\n".join([*tests, f"{place}{task.command.text}", *reads])


def _runtime(task: Task, provider: str, paths: Iterable[str]) -> str:
    """The language's version, of Python where programs run with the engine's own, and the packages."""
    if not any(path.endswith(".py") for path in paths):
        return ", ".join(task.environment.packages)
    version = f"Python {sys.version_info[0]}.{sys.version_info[1]}" if runs_here(provider) else "Python"
    packages = ", ".join(task.environment.packages) or ("" if task.command else "the standard library alone")
    return f"{version} and {packages}" if packages else version


def _refusal(task: Task) -> Callable[[str], str]:
    """Says why agents may not change a path; of what they may not see it says no more than of what is not there."""

    def refusal(path: str) -> str:
        try:
            check_path(path)
        except UnfitChangeError as error:
            return str(error)
        allowed = ", ".join(task.editable)
        return "" if task.is_editable(path) else f"expected changes to {allowed} only, got {path!r}"

    return refusal


def _of_donor(graph: Phylogeny, parent: Candidate, donor: Candidate) -> list[Candidate]:
    """Return the steps of the donor's lineage since it left the parent's; none of an ancestor."""
    base = graph.merge_base(parent.commit, donor.commit)
    since = graph[base].number if base else -1
    return [each for each in graph.lineage(donor.commit) if each.number > since]
