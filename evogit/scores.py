"""What candidates are worth by their evaluations: the measured values of one task, under which all are comparable."""

from __future__ import annotations

from dataclasses import dataclass, field

from evogit.core import Evaluation, Metric


@dataclass(slots=True)
class Scores:
    """The evaluations of one run under its present task; `metric` ranks, on `split`.

    `log` holds an id for each evaluation taken in, so that who keeps an index looks at what is new alone.
    """

    metric: Metric
    split: str
    log: list[str] = field(default_factory=list)
    _evaluations: dict[str, dict[tuple[str, int], Evaluation]] = field(default_factory=dict)

    def __contains__(self, commit: object) -> bool:
        return commit in self._evaluations

    def commits(self) -> list[str]:
        """Ids of all that have an evaluation."""
        return list(self._evaluations)

    def record(self, commit: str, evaluation: Evaluation) -> None:
        """Take in an evaluation, in the place of an earlier one on the same split with the same repeat."""
        self._evaluations.setdefault(commit, {})[evaluation.split, evaluation.repeat] = evaluation
        self.log.append(commit)

    def evaluation(self, commit: str, split: str | None = None, repeat: int = 0) -> Evaluation | None:
        """The latest evaluation on `split` (default: the one that ranks), None while there is none."""
        return self._evaluations.get(commit, {}).get((split or self.split, repeat))

    def fitness(self, commit: str) -> float | None:
        """The primary metric's value, None unless the candidate was judged and is valid."""
        evaluation = self.evaluation(commit)
        return evaluation.metrics[self.metric.name] if evaluation and evaluation.ok else None
