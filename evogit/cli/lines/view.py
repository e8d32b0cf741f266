"""Lines about candidates and runs, the same wherever they appear."""

from __future__ import annotations

import time
from functools import cached_property

from msgspec import Struct
from rich.text import Text

from evogit.cli.terminal import Glyphs, Styled, Terminal, joined
from evogit.cli.text import age, escape, measured
from evogit.core import Candidate
from evogit.history import History
from evogit.history.standing import OLD, WAITING, Comparison, Standing, compare, places, standing

SHORT = 7
"""Digits of an abbreviated id."""

MAX_LINE_CHARS = 2_000
"""Characters of a line of foreign text."""

MODEL_COLUMNS = 18

SHORT_STATUS = {
    WAITING: ("...", "dim"),
    OLD: ("old", "dim"),
    "evaluator-error": ("...", "dim"),
    "not-measured": ("not measured", "dim"),
}
"""Statuses in the place of a score; others are failures."""

STYLES = {"better": "green", "worse": "", "within noise": "dim", "tied": "dim"}


class View(Struct, frozen=True, dict=True):
    """How the candidates of one run look on one terminal now; after news of the run, make another one."""

    history: History
    glyphs: Glyphs
    now: float
    width: int | None = None
    """Columns that a line may take; None for as many as it needs."""

    @classmethod
    def of(cls, history: History, terminal: Terminal) -> View:
        """The run as seen now."""
        return cls(history, terminal.glyphs, time.time(), terminal.width)

    @cached_property
    def places(self) -> int:
        """Decimals of the primary metric, so that the values of a run line up."""
        return places(self.history)

    def glyph(self, commit: str) -> Text:
        """Return the symbol of a candidate."""
        return Text(*self.glyph_styled(commit))

    def glyph_styled(self, commit: str) -> Styled:
        """Return the symbol of a candidate: what users decided about it first, then what it is."""
        history, glyphs = self.history, self.glyphs
        if commit in history.pruned:
            return glyphs.pruned, "magenta"
        if commit == history.best:
            return glyphs.best, "bold yellow"
        if commit in history.promoted:
            return glyphs.promoted, "bold green"
        if commit == history.seed:
            return glyphs.seed, "cyan"
        known = self.standing(commit)
        if known.score is not None:
            return glyphs.scored, ""
        if known.status == OLD:
            return glyphs.scored, "dim"
        return (glyphs.failed, "red") if known.failed else (glyphs.pending, "dim")

    def standing(self, commit: str) -> Standing:
        """Return how a candidate stands, which several cells of a line ask for."""
        latest: tuple[str, Standing] | None = vars(self).get("_latest")
        if latest is None or latest[0] != commit:
            latest = vars(self)["_latest"] = (commit, standing(self.history, commit))
        return latest[1]

    def score(self, commit: str) -> Text:
        """The score, or in a word why there is none; `old`: evaluated only before the task changed."""
        return Text(*self.score_styled(self.standing(commit)))

    def score_styled(self, known: Standing) -> Styled:
        """The same for a line of many."""
        if known.score is not None:
            return self.measured(known.score, known.margin, self.places), ""
        return SHORT_STATUS.get(known.status) or ("flaky" if known.status == "flaky" else "fail", "red")

    def measured(self, value: float | None, margin: float | None, places: int) -> str:
        """A value with half of its 95 % interval."""
        return measured(value, margin, places, self.glyphs.give)

    def gain(self, commit: str, over: str = "") -> Text:
        """The gain over another candidate, or over what the candidate comes from; green when better."""
        compared = compare(self.history.scores, commit, over) if over else self.standing(commit).comparison
        return Text(*self.gain_styled(compared))

    def gain_styled(self, compared: Comparison | None) -> Styled:
        """The same for a line of many."""
        return (compared.text(self.places), STYLES[compared.verdict]) if compared else ("", "")

    def age(self, candidate: Candidate) -> Styled:
        """Return how long ago the candidate was proposed."""
        return age(self.now - candidate.time), "dim"

    def title(self, candidate: Candidate) -> list[Styled]:
        """Return what the candidate is about; for a failed one what went wrong."""
        known = self.standing(candidate.commit)
        if known.failed and (evaluation := self.history.evaluation(candidate.commit)):
            return [(f"{known.status} ", "red"), (first_line(evaluation.reason), "dim")]
        return [(first_line(candidate.title) or candidate.operator, "")]

    def marks(self, commit: str) -> Styled:
        """Return how users and agents marked the candidate, with space before it; empty without marks."""
        history, heads = self.history, self._heads.get(commit, [])
        agents = " ".join(map(escape, heads[:4])) + (f" and {len(heads) - 4} more" if len(heads) > 4 else "")
        sets = {"best": [history.best], "promoted": history.promoted, "refused": history.refused}
        sets |= {"pruned": history.pruned - history.refused.keys()}
        words = [*(word for word, commits in sets.items() if commit in commits), *([agents] if agents else [])]
        return f"  {self.glyphs.mark} {', '.join(words)}" if words else "", "bold"

    def finish(self, line: Text, candidate: Candidate, tail: Text | str = "") -> Text:
        """The line with the title, cut to fit, and the marks and the tail, which are never cut."""
        end = Text(*self.marks(candidate.commit)).append(tail)
        title = Text.assemble(*self.title(candidate))
        if self.width is not None:
            room = max(self.width - line.cell_len - 2 - end.cell_len, 8)
            self.glyphs.cut(title, room)
        return joined((line, "  ", title, end))

    @cached_property
    def _heads(self) -> dict[str, list[str]]:
        agents: dict[str, list[str]] = {}
        for agent in self.history.heads:
            agents.setdefault(self.history.head(agent), []).append(agent)
        return agents

    def line(self, candidate: Candidate, *, score: bool = False) -> Text:
        """A candidate as a sentence of its own: symbol, id, score if asked for, title, marks; however long that is."""
        commit = candidate.commit
        value = Text("  ").append_text(self.score(commit)) if score else ""
        about = (self.glyph(commit), " ", self.name(commit), value, "  ", *self.title(candidate))
        return Text.assemble(*about, self.marks(commit))

    def model(self, name: str) -> str:
        """A model's name, of a long one (a path, say) the end, so that the numbers beside it stay in sight."""
        name = first_line(name)
        return name if len(name) <= MODEL_COLUMNS else self.glyphs.more + name[1 - MODEL_COLUMNS :]

    def name(self, commit: str) -> Text:
        """The abbreviated id."""
        return Text(commit[:SHORT], "cyan")


def on_one_line(text: str) -> str:
    """All of a foreign text in one line, harmless: of what agents are told nothing may be out of sight."""
    return escape(" ".join(text.split()))


def first_line(text: str) -> str:
    """The first line of foreign text, harmless, and cut if it is very long."""
    line = text[: MAX_LINE_CHARS + 1].partition("\n")[0]
    return escape(line) if len(line) <= MAX_LINE_CHARS else escape(line[:MAX_LINE_CHARS]) + "..."
