"""Where a candidate comes from, as commits of a repository that is made for an agent: what briefs tell, for Git."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from evogit.agents import Relative
from evogit.agents.briefs.digest import outcome
from evogit.core import Candidate, Metric
from evogit.repository import Step
from evogit.text import one_line

START = "parent"  # the branch that an agent begins at
LONGEST_REASON = 300  # characters of why a candidate failed or was rejected


class Ancestry(Struct, frozen=True, kw_only=True):
    """What is known of a parent's relatives when an agent asks."""

    parent: Candidate  # the candidate that is to be changed, with the tree that it is to be changed from
    seed: Relative  # the run's first candidate
    lineage: Sequence[Relative]  # the parent's ancestors and itself, oldest first
    inspirations: Sequence[Relative]  # what another candidate's lineage has that the parent's has not, oldest first
    fork: str | None  # id of the candidate from which the inspirations went their own way; None where there is none
    metrics: Sequence[Metric]  # all metrics, the primary one first
    places: int  # decimals of the primary one

    def steps(self) -> list[Step]:
        """The commits: the seed, the lineage, the inspirations; the branch `parent` is where the agent begins."""
        chain = _Chain(self)
        chain.add(self.seed, None, ["seed"])
        last = 0
        for number, each in enumerate(self.lineage, 1):
            last = chain.add(each, last, [f"lineage/{number:02}-{each.candidate.commit[:7]}"])
        at = chain.places.get(self.fork or "", 0)
        for number, each in enumerate(self.inspirations, 1):
            at = chain.places.get(next(iter(each.candidate.parents), ""), at)
            at = chain.add(each, at, [f"inspiration/{number:02}-{each.candidate.commit[:7]}"])
        return chain.ended(last)


@dataclass(slots=True)
class _Chain:
    """Commits in the making; `places` says which one each candidate became."""

    about: Ancestry
    steps: list[Step] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def add(self, relative: Relative, after: int | None, branches: Sequence[str]) -> int:
        """A commit for a candidate, unless it has one that gets these branches, too; its place."""
        candidate = relative.candidate
        if candidate.commit in self.places:
            place = self.places[candidate.commit]
            self.steps[place] = replace(self.steps[place], branches=[*self.steps[place].branches, *branches])
            return place
        known = [commit for commit, place in self.places.items() if place == after]
        self.places[candidate.commit] = len(self.steps)
        self.steps.append(
            Step(
                tree=candidate.tree,
                author=candidate.agent,
                number=candidate.number,
                title=candidate.title or candidate.operator,
                body=_body(candidate, known),
                after=after,
                note=self._note(relative),
                branches=branches,
            )
        )
        return len(self.steps) - 1

    def ended(self, last: int) -> list[Step]:
        """The commits with the branch `parent`, on a commit of its own where conflicts are to be settled first."""
        parent, end = self.about.parent, self.steps[last]
        if parent.tree != end.tree:
            donor = "".join(f" and {each.candidate.commit[:7]}" for each in self.about.inspirations[-1:])
            self.steps.append(
                Step(
                    tree=parent.tree,
                    author="evogit",
                    number=max(each.number for each in self.steps) + 1,
                    title=f"Half of a merge of {parent.commit[:7]}{donor}",
                    body="Its conflicts stand in the files between markers, and are to be settled.",
                    after=last,
                    note="not judged: conflicts are to be settled",
                    branches=[START],
                )
            )
            return self.steps
        self.steps[last] = replace(end, branches=[START, *end.branches])
        return self.steps

    def _note(self, relative: Relative) -> str:
        """The scores, one metric a line, or why there are none."""
        evaluation, (primary, *others) = relative.evaluation, self.about.metrics
        told = outcome(relative, self.about.places, next(iter(relative.candidate.parents), ""))
        if relative.standing.score is None:
            lines = [told]
        else:
            values = evaluation.metrics if evaluation else {}
            lines = [f"{primary.name} ({primary.direction} it, the primary metric): {told}"]
            lines += [
                f"{each.name} ({each.direction} it): {values[each.name]:.6g}" for each in others if each.name in values
            ]
        again = [f"re-adds {n} lines that {commit[:7]} removed" for commit, n in relative.readded.items()]
        rejected = [f"rejected by a person: {one_line(relative.rejected, LONGEST_REASON)}"] * bool(relative.rejected)
        return "\n".join([*lines, *again, *rejected])


def _body(candidate: Candidate, after: Sequence[str]) -> str:
    """What a candidate is; `after` are the candidates of the commit before, of which its first parent may be none."""
    first, others = candidate.parents[:1], candidate.parents[1:]
    way = f" ({candidate.strategy})" if candidate.strategy else ""
    lines = [f"Candidate {candidate.commit}, a {candidate.operator}{way} by {candidate.agent}."]
    lines += [f"Its parent is {commit[:7]}; what lies between is left out." for commit in first if commit not in after]
    other = "With what {} changed." if candidate.operator == "graft" else "Merged with {}."
    lines += [other.format(commit[:7]) for commit in others]
    return "\n".join(lines)
