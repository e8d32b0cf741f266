"""Lines about candidates and runs, the same wherever they appear."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rich.text import Text

from evogit.cli.terminal import Glyphs, Terminal
from evogit.cli.text import age, change, decimals, escape, number
from evogit.core import Candidate
from evogit.history import History

SHORT = 7
"""Digits of an abbreviated id."""


@dataclass(frozen=True, slots=True)
class View:
    """How the candidates of one run look on one terminal."""

    history: History
    glyphs: Glyphs
    now: float

    @classmethod
    def of(cls, history: History, terminal: Terminal) -> View:
        """The run as seen now."""
        return cls(history, terminal.glyphs, time.time())

    @property
    def places(self) -> int:
        """Decimals of the primary metric, so that the values of a run line up."""
        history = self.history
        known = [history.fitness(commit) for commit in (history.seed, history.best) if commit]
        return decimals(*known, history.metric.baseline if not any(known) else None)

    def glyph(self, commit: str) -> Text:
        """The symbol of a candidate: what people decided about it first, then what it is."""
        history, glyphs = self.history, self.glyphs
        if commit in history.pruned:
            return Text(glyphs.pruned, "magenta")
        if commit == history.best:
            return Text(glyphs.best, "bold yellow")
        if commit in history.promoted:
            return Text(glyphs.promoted, "bold green")
        if commit == history.seed:
            return Text(glyphs.seed, "cyan")
        if history.fitness(commit) is not None:
            return Text(glyphs.scored)
        evaluation = history.evaluation(commit)
        return Text(glyphs.failed, "red") if evaluation and evaluation.counts else Text(glyphs.pending, "dim")

    def score(self, commit: str) -> Text:
        """The primary metric, or in a word why there is none."""
        value, evaluation = self.history.fitness(commit), self.history.evaluation(commit)
        if value is not None:
            return Text(number(value, self.places))
        return Text("fail", "red") if evaluation and evaluation.counts else Text("...", "dim")

    def gain(self, commit: str, over: tuple[str, ...]) -> Text:
        """The change against the fittest of `over`, green when better."""
        value, metric = self.history.fitness(commit), self.history.metric
        known = [fitness for other in over if (fitness := self.history.fitness(other)) is not None]
        if value is None or not known:
            return Text("")
        fittest = max(known) if metric.direction == "maximize" else min(known)
        style = "green" if metric.better(value, fittest) else "dim"
        return Text(change(value - fittest, self.places), style)

    def age(self, candidate: Candidate) -> Text:
        """How long ago the candidate was proposed."""
        return Text(age(self.now - candidate.time), "dim")

    def title(self, candidate: Candidate) -> Text:
        """What the candidate is about; for a failed one what went wrong; and how people marked it."""
        commit, evaluation = candidate.commit, self.history.evaluation(candidate.commit)
        if evaluation and evaluation.counts and not evaluation.ok:
            text = Text.assemble((f"{evaluation.status} ", "red"), (first_line(evaluation.reason), "dim"))
        else:
            text = Text(first_line(candidate.title) or candidate.operator)
        marks = [word for word, has in self._marks(commit) if has]
        return text.append(f"  {self.glyphs.mark} {', '.join(marks)}", "bold") if marks else text

    def _marks(self, commit: str) -> list[tuple[str, bool]]:
        history = self.history
        heads = [agent for agent in history.heads if history.head(agent) == commit]
        agents = " ".join(heads[:4]) + (f" and {len(heads) - 4} more" if len(heads) > 4 else "")
        return [
            ("best", commit == history.best),
            ("promoted", commit in history.promoted),
            ("pruned", commit in history.pruned),
            (agents, bool(agents)),
        ]

    def line(self, candidate: Candidate, *, score: bool = False) -> Text:
        """A candidate in one line: symbol, id, score if asked for, title, marks."""
        commit = candidate.commit
        value = self.score(commit).append("  ") if score else ""
        return Text.assemble(self.glyph(commit), " ", self.name(commit), "  ", value, self.title(candidate))

    def plain(self, commit: str) -> Text:
        """A candidate in one line without any mark: id, score, title."""
        title = first_line(self.history.phylogeny[commit].title)
        return Text.assemble(self.name(commit), "  ", self.score(commit), "  ", title)

    def name(self, commit: str) -> Text:
        """The abbreviated id."""
        return Text(commit[:SHORT], "cyan")


def first_line(text: str) -> str:
    """The first line of foreign text, harmless."""
    return escape(text.partition("\n")[0])
