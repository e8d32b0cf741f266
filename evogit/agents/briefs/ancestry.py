"""Where a candidate comes from, as commits of a repository that is made for an agent: what briefs tell, for Git."""

from __future__ import annotations

from collections.abc import Sequence

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
    """The relatives of a parent that are known when an agent asks."""

    parent: Candidate  # the candidate that is to be changed, with the tree that it is to be changed from
    seed: Relative  # the run's first candidate
    lineage: Sequence[Relative]  # the parent's ancestors and itself, oldest first
    inspirations: Sequence[Relative]  # what another candidate's lineage has that the parent's has not, oldest first
    fork: str | None  # id of the candidate from which the inspirations went their own way; None: there is none
    metrics: Sequence[Metric]  # all metrics, the primary one first
    places: int  # decimals of the primary one

    def steps(self) -> list[Step]:
        """Return the commits; `parent` is the branch to begin at, on a commit of its own if there are conflicts."""
        steps, numbers = list[Step](), dict[str, int]()  # candidate -> which of the steps it is

        def add(relative: Relative, after: int | None, branch: str) -> int:
            commit = relative.candidate.commit
            if commit in numbers:
                step = steps[numbers[commit]]
                steps[numbers[commit]] = replace(step, branches=[*step.branches, branch])
            else:
                before = [known for known, number in numbers.items() if number == after]
                numbers[commit] = len(steps)
                steps.append(self._step(relative, before, after, branch))
            return numbers[commit]

        add(self.seed, None, "seed")
        last = 0
        for number, relative in enumerate(self.lineage, 1):
            last = add(relative, last, f"lineage/{number:02}-{relative.candidate.commit[:7]}")
        at = numbers.get(self.fork or "", 0)
        for number, relative in enumerate(self.inspirations, 1):
            at = numbers.get(next(iter(relative.candidate.parents), ""), at)
            at = add(relative, at, f"inspiration/{number:02}-{relative.candidate.commit[:7]}")
        if self.parent.tree == steps[last].tree:
            steps[last] = replace(steps[last], branches=[START, *steps[last].branches])
        else:
            steps.append(self._conflicts(max(step.number for step in steps) + 1, last))
        return steps

    def _step(self, relative: Relative, before: Sequence[str], after: int | None, branch: str) -> Step:
        candidate = relative.candidate
        return Step(
            tree=candidate.tree,
            author=candidate.agent,
            number=candidate.number,
            title=candidate.title or candidate.operator,
            body=_body(candidate, before),
            after=after,
            note=self._note(relative),
            branches=[branch],
        )

    def _conflicts(self, number: int, after: int) -> Step:
        donor = "".join(f" and {relative.candidate.commit[:7]}" for relative in self.inspirations[-1:])
        return Step(
            tree=self.parent.tree,
            author="evogit",
            number=number,
            title=f"Half of a merge of {self.parent.commit[:7]}{donor}",
            body="Its conflicts stand in the files between markers, and are to be settled.",
            after=after,
            note="not judged: conflicts are to be settled",
            branches=[START],
        )

    def _note(self, relative: Relative) -> str:
        """The scores, one metric a line, or why there are none."""
        evaluation, (primary, *others) = relative.evaluation, self.metrics
        told = outcome(relative, self.places, next(iter(relative.candidate.parents), ""))
        if relative.standing.score is None:
            lines = [told]
        else:
            values = evaluation.metrics if evaluation else {}
            lines = [f"{primary.name} ({primary.direction} it, the primary metric): {told}"]
            lines += [
                f"{each.name} ({each.direction} it): {values[each.name]:.6g}" for each in others if each.name in values
            ]
        again = [f"re-adds {n} lines that {commit[:7]} removed" for commit, n in relative.readded.items()]
        rejected = [f"rejected by {one_line(relative.rejected, LONGEST_REASON)}"] * bool(relative.rejected)
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
