"""Lines about candidates and runs, the same wherever they appear."""

from __future__ import annotations

import math
import time
from functools import cached_property

from msgspec import Struct
from rich.text import Text

from evogit.cli.terminal import Glyphs, Styled, Terminal, joined
from evogit.cli.text import age, change, escape, number
from evogit.core import Candidate
from evogit.history import History
from evogit.review.decimals import places

SHORT = 7
"""Digits of an abbreviated id."""

MAX_LINE_CHARS = 2_000
"""Characters of a line of foreign text."""

MODEL = 18
"""Columns of a model's name."""


class View(Struct, frozen=True):
    """How the candidates of one run look on one terminal."""

    history: History
    glyphs: Glyphs
    now: float
    width: int | None = None
    """Columns that a line may take; None for as many as it needs."""

    @classmethod
    def of(cls, history: History, terminal: Terminal) -> View:
        """The run as seen now."""
        return cls(history, terminal.glyphs, time.time(), terminal.width)

    @property
    def places(self) -> int:
        """Decimals of the primary metric, so that the values of a run line up."""
        return places(self.history)

    def glyph(self, commit: str) -> Text:
        """The symbol of a candidate: what people decided about it first, then what it is."""
        return Text(*self.glyph_styled(commit))

    def glyph_styled(self, commit: str) -> Styled:
        """The same for a line of many."""
        history, glyphs = self.history, self.glyphs
        if commit in history.pruned:
            return glyphs.pruned, "magenta"
        if commit == history.best:
            return glyphs.best, "bold yellow"
        if commit in history.promoted:
            return glyphs.promoted, "bold green"
        if commit == history.seed:
            return glyphs.seed, "cyan"
        if history.fitness(commit) is not None:
            return glyphs.scored, ""
        evaluation = history.evaluation(commit)
        if evaluation is None and history.former(commit):
            return glyphs.scored, "dim"
        return (glyphs.failed, "red") if evaluation and evaluation.counts else (glyphs.pending, "dim")

    def score(self, commit: str) -> Text:
        """The primary metric, or in a word why there is none.

        `old`: evaluated only before the task changed; `busy`: the machine was too busy to measure it.
        """
        return Text(*self.score_styled(commit))

    def score_styled(self, commit: str) -> Styled:
        """The same for a line of many."""
        value = self.history.fitness(commit)
        if value is not None:
            return number(value, self.places) + self.give(commit, self.places), ""
        evaluation = self.history.evaluation(commit)
        if evaluation is None and self.history.former(commit):
            return "old", "dim"
        if evaluation and evaluation.status == "flaky":
            return "flaky", "red"
        if evaluation and evaluation.status == "not-measured":
            return "busy", "dim"
        return ("fail", "red") if evaluation and evaluation.counts else ("...", "dim")

    def give(self, commit: str, places: int, split: str | None = None, metric: str | None = None) -> str:
        """` ± x`, half of the 95 % interval of a value; empty where scores are exact, ` ± ?` while unknown."""
        return self.margin(self.history.scores.margin(commit, split, metric), places)

    def margin(self, margin: float | None, places: int) -> str:
        """The same for an interval of half the width `margin`."""
        if not margin:
            return ""
        return f" {self.glyphs.give} {number(margin, places) if math.isfinite(margin) else '?'}"

    def gain(self, commit: str, over: tuple[str, ...]) -> Text:
        """The change against the fittest of `over`, green when better."""
        return Text(*self.gain_styled(commit, over))

    def gain_styled(self, commit: str, over: tuple[str, ...]) -> Styled:
        """The same for a line of many."""
        value, metric = self.history.fitness(commit), self.history.scores.metric
        known = [fitness for other in over if (fitness := self.history.fitness(other)) is not None]
        if value is None or not known:
            return "", ""
        fittest = max(known) if metric.direction == "maximize" else min(known)
        style = "green" if metric.better(value, fittest) else "dim"
        return change(value - fittest, self.places), style

    def age(self, candidate: Candidate) -> Text:
        """How long ago the candidate was proposed."""
        return Text(*self.age_styled(candidate))

    def age_styled(self, candidate: Candidate) -> Styled:
        """The same for a line of many."""
        return age(self.now - candidate.time), "dim"

    def title(self, candidate: Candidate) -> Text:
        """What the candidate is about; for a failed one what went wrong."""
        return Text.assemble(*self.title_styled(candidate))

    def title_styled(self, candidate: Candidate) -> list[Styled]:
        """The same for a line of many."""
        commit = candidate.commit
        evaluation = self.history.evaluation(commit) if self.history.fitness(commit) is None else None
        if evaluation and evaluation.counts and not evaluation.ok:
            return [(f"{evaluation.status} ", "red"), (first_line(evaluation.reason), "dim")]
        return [(first_line(candidate.title) or candidate.operator, "")]

    def marks(self, commit: str) -> Text:
        """How people and agents marked the candidate, with space before it; empty without marks."""
        return Text(*self.marks_styled(commit))

    def marks_styled(self, commit: str) -> Styled:
        """The same for a line of many."""
        words = [word for word, has in self._marks(commit) if has]
        return f"  {self.glyphs.mark} {', '.join(words)}" if words else "", "bold"

    def finish(self, line: Text, candidate: Candidate, tail: Text | str = "") -> Text:
        """The line with the title, cut to fit, and the marks and the tail, which are never cut."""
        end = self.marks(candidate.commit).append(tail)
        title = self.title(candidate)
        if self.width is not None:
            room = max(self.width - line.cell_len - 2 - end.cell_len, 8)
            self.glyphs.cut(title, room)
        return joined((line, "  ", title, end))

    def agents_at(self, commit: str) -> list[str]:
        """The agents whose individual a candidate is."""
        return [agent for agent in self.history.heads if self.history.head(agent) == commit]

    def _marks(self, commit: str) -> list[tuple[str, bool]]:
        history = self.history
        heads = self.agents_at(commit)
        agents = " ".join(map(escape, heads[:4])) + (f" and {len(heads) - 4} more" if len(heads) > 4 else "")
        return [
            ("best", commit == history.best),
            ("promoted", commit in history.promoted),
            ("pruned", commit in history.pruned),
            (agents, bool(agents)),
        ]

    def line(self, candidate: Candidate, *, score: bool = False) -> Text:
        """A candidate as a sentence of its own: symbol, id, score if asked for, title, marks; however long that is."""
        commit = candidate.commit
        value = Text("  ").append_text(self.score(commit)) if score else ""
        about = (self.glyph(commit), " ", self.name(commit), value, "  ", self.title(candidate), self.marks(commit))
        return Text.assemble(*about)

    def plain(self, commit: str) -> Text:
        """A candidate in one line without any mark: id, score, title."""
        title = first_line(self.history.phylogeny[commit].title)
        return Text.assemble(self.name(commit), "  ", self.score(commit), "  ", title)

    def model(self, name: str) -> str:
        """A model's name, of a long one (a path, say) the end, so that the numbers beside it stay in sight."""
        name = first_line(name)
        return name if len(name) <= MODEL else self.glyphs.more + name[1 - MODEL :]

    def name(self, commit: str) -> Text:
        """The abbreviated id."""
        return Text(commit[:SHORT], "cyan")


class StillView(View, frozen=True, dict=True):
    """The same for many candidates of a history that does not change meanwhile: what holds for all is found once."""

    @cached_property
    def places(self) -> int:
        """Decimals of the primary metric."""
        return super().places

    def agents_at(self, commit: str) -> list[str]:
        """The agents whose individual a candidate is."""
        return self._heads.get(commit, [])

    @cached_property
    def _heads(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for agent in self.history.heads:
            found.setdefault(self.history.head(agent), []).append(agent)
        return found


def on_one_line(text: str) -> str:
    """All of a foreign text in one line, harmless: of what agents are told nothing may be out of sight."""
    return escape(" ".join(text.split()))


def first_line(text: str) -> str:
    """The first line of foreign text, harmless, and cut if it is very long."""
    line = text[: MAX_LINE_CHARS + 1].partition("\n")[0]
    return escape(line) if len(line) <= MAX_LINE_CHARS else escape(line[:MAX_LINE_CHARS]) + "..."
