"""One candidate in full, as `show` prints it and `watch` shows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from rich.text import Text

from evogit.cli.lines.view import MAX_LINE_CHARS, SHORT, STYLES, View, first_line
from evogit.cli.locate_run import Place
from evogit.cli.terminal import Terminal, fact_table, table
from evogit.cli.text import bar, count, escape, percent
from evogit.core import Candidate, Evaluation, Metric, NotFoundError
from evogit.history.readded_lines import Readded
from evogit.history.standing import OLD, Standing, decimals, value_of
from evogit.repository.evidence import (
    FEEDBACK,
    SESSION,
    ends_tell_most,
    is_prompt,
    is_transcript,
    read_feedback,
    session_facts,
)
from evogit.review import SCHEMA
from evogit.review.decisions import said_of
from evogit.review.evidence_files import gone, texts

MAX_CASES = 12


def candidate_lines(place: Place, view: View, candidate: Candidate) -> list[Text]:
    """Parents, metrics, cost, what it changed, what the evaluator and the agent said."""
    history, commit = place.history, candidate.commit
    judged = place.repository.trees.kept(history.evidence.get(commit))
    session = place.repository.trees.kept(history.sessions.get(commit))
    files, readded = changed_files(place, candidate), Readded(place.repository, history).by(candidate)
    name = Text.assemble(view.glyph(commit), " ", (commit, "cyan"), view.marks(commit))
    title = Text(f"  {first_line(candidate.title)}")
    lines = [name, title, Text(""), *_facts(view, candidate, files, readded), *_judged(view, candidate)]

    def command(name: str) -> str:
        return place.hint(f"show {commit[:SHORT]} --file {name}")

    told = [*judged_lines(judged, command), *session_lines(candidate.agent, session, command)]
    return [*lines, *told, *missing_lines(lost(place, commit))]


def lost(place: Place, commit: str) -> str:
    """Why some of what was kept of a candidate is not here, in a sentence; empty where all is."""
    history = place.history
    trees = (history.evidence.get(commit), history.sessions.get(commit))
    return "; ".join(dict.fromkeys(filter(None, (gone(place.repository, history.run, tree) for tree in trees))))


def changed_files(place: Place, candidate: Candidate) -> list[str]:
    """Paths that differ from the first parent."""
    if not candidate.parents:
        return []
    return place.repository.changed_paths(place.history.phylogeny[candidate.parents[0]].tree, candidate.tree)


def _facts(view: View, candidate: Candidate, files: list[str], readded: Mapping[str, int]) -> list[Text]:
    history = view.history
    strategy = f" ({first_line(candidate.strategy)})" if candidate.strategy else ""
    by = f"{first_line(candidate.agent)}, {candidate.operator}{strategy}, {view.age(candidate)[0]} ago"
    facts = [("by", Text(by))]
    lenders = history.inspirations.get(candidate.commit, ())
    for head, commits in (("parent", candidate.parents), ("lines of", lenders)):
        facts += [(head, view.line(history.phylogeny[commit], score=True)) for commit in commits]
    if shown := history.shown.get(candidate.commit):
        facts.append(("was shown", Text(", ".join(each[:SHORT] for each in shown))))
    if written := history.written_on.get(candidate.commit):
        facts.append(("made on", Text(f"{written[:SHORT]}, and put on the parent: better by then, or new only there")))
    if measured := history.measured.get(candidate.commit):
        low, high = (measured.parent * math.exp(side * measured.margin) for side in (-1, 1))
        ratio = f"{measured.parent:.3f} ({low:.3f} to {high:.3f}) of its parent's {first_line(history.metric.name)}"
        facts.append(("measured", Text(f"{ratio} by its session, {measured.pairs} pairs; no score")))
    if tactic := history.tactics.get(history.advised.get(candidate.commit, "")):
        facts.append(("tactic", Text(first_line(tactic.text))))
    if files:
        more = f" and {count(len(files) - 6, 'more file')}" if files[6:] else ""
        facts.append(("changed", Text(", ".join(escape(path) for path in files[:6]) + more)))
    for ancestor, lines in readded.items():
        facts.append(("re-adds", Text(f"{count(lines, 'line')} that {ancestor[:SHORT]} removed", "yellow")))
    facts.append(("children", Text(f"{len(history.phylogeny.children(candidate.commit)):,}")))
    facts += [("decided", Text(escape(line))) for line in said_of(history, candidate.commit)]
    known, former = view.standing(candidate.commit), history.former(candidate.commit)
    evaluation, repeated = history.evaluation(candidate.commit), history.scores.repeated(candidate.commit)
    facts.append(("status", _status(known, evaluation, repeated)))
    if known.comparison and known.origin:
        about = f"{known.comparison.words(view.places)} over {known.origin[:SHORT]}"
        facts.append(("gain", Text(about, STYLES[known.comparison.verdict])))
    if former:
        values = ", ".join(f"{escape(name)} {value:.6g}" for name, value in former.metrics.items())
        text = f"{former.status}, as the task was then{f': {values}' if values else ''}"
        facts.append(("before", Text(text, "dim")))
    return fact_table(facts, "  ")


def _status(known: Standing, evaluation: Evaluation | None, repeated: int) -> Text:
    if evaluation is None:
        return Text("not evaluated since the task changed" if known.status == OLD else "not evaluated yet", "dim")
    cost = evaluation.cost
    words = [f"{known.status} on {evaluation.split}", f"{cost.wall:.2f} s", f"{cost.cpu:.2f} s CPU"]
    words[:1] += [f"evaluated {1 + repeated} times"] if repeated else []
    words += [f"{cost.memory / 1e6:.0f} MB"] if cost.memory else []
    words += ["judged: inside"] if evaluation.judged == "inside" else []
    words += ["known from an equal candidate"] if evaluation.cached else []
    return Text(", ".join(words), "" if evaluation.ok else "red")


def _judged(view: View, candidate: Candidate) -> Iterator[Text]:
    evaluation = view.history.evaluation(candidate.commit)
    if evaluation is None:
        return
    yield Text("")
    yield from (Text(f"  {escape(line)}", "red") for line in evaluation.reason.splitlines())
    if evaluation.ok and view.history.started:
        metrics = sorted(view.history.started.metrics, key=lambda metric: not metric.primary)
        known = [metric for metric in metrics if metric.name in evaluation.metrics]
        yield from table((_metric(view, candidate.commit, evaluation, metric) for metric in known), "lrlll")
    cases = list(evaluation.cases.items())
    for name, values in cases[:MAX_CASES]:
        shown = ", ".join(f"{escape(metric)} {value:.6g}" for metric, value in values.items())
        yield Text(f"  {escape(name)}: {shown}", "dim")
    if cases[MAX_CASES:]:
        yield Text(f"  and {count(len(cases) - MAX_CASES, 'more case')}", "dim")


def _metric(view: View, commit: str, evaluation: Evaluation, metric: Metric) -> list[str]:
    """The value, and how far it is on the way from the seed's to the best known one (else the best's)."""
    history, value = view.history, evaluation.metrics[metric.name]
    start, goal = (value_of(history.scores, each or "", None, metric) for each in (history.seed, history.best))
    what = "the best"
    if metric.best_known is not None and history.split == "train":
        goal, what = metric.best_known, f"the best known {metric.best_known:.10g}"
    holdout = value_of(history.scores, commit, "holdout", metric)
    beside = "" if holdout is None else f"holdout {_told(view, commit, holdout, metric, 'holdout')}"
    shown = _told(view, commit, value, metric)
    cells = [f"  {escape(metric.name)}", shown, beside, "", ""]
    if start is not None and goal is not None and start != goal:
        share = (value - start) / (goal - start)
        drawn = bar(share, 20, view.glyphs.full, view.glyphs.empty)
        cells[3:] = [drawn, f"{percent(share)} of the way from the seed to {what}"]
    return cells


def _told(view: View, commit: str, value: float, metric: Metric, split: str | None = None) -> str:
    margin = view.history.scores.margin(commit, split, metric.name)
    places = view.places if metric.primary and split is None else decimals(value, margins=[margin])
    return view.measured(value, margin, places)


MAX_EXCERPT_LINES = 12

MAX_EXCERPT_CHARS = 240
"""Characters of a line of an excerpt: some programs print all that they do as one."""

ShowFile = Callable[[str], str]
"""The command line that prints a file of this name whole."""


def show_whole(terminal: Terminal, files: Mapping[str, bytes], name: str, lost: str = "") -> None:
    """Print one file whole; `lost`: why some are not here. Raise NotFoundError if there is none of this name."""
    if name not in files:
        known = f"one of {', '.join(map(escape, files))}" if files else f"no file, as {lost or 'none is kept'}"
        if files and lost:
            raise NotFoundError(f"expected {known}, got {name!r}; of others, {lost}")
        raise NotFoundError(f"expected {known}, got {name!r}")
    if terminal.json:
        terminal.data({"schema": SCHEMA, "file": name, "text": texts(files)[name]})
        return
    terminal.show((Text(escape(line)) for line in texts(files)[name].splitlines()), fit="ignore")


def judged_lines(files: Mapping[str, bytes], command: ShowFile) -> Iterator[Text]:
    """Yield the beginning of each piece of the evaluator's evidence."""
    for name, content in files.items():
        feedback = read_feedback(content) if name == FEEDBACK else {}
        lines = [f"{case}: {line}" for case, text in feedback.items() for line in text.splitlines()]
        lines = lines or content.decode(errors="backslashreplace").splitlines()
        yield Text("")
        yield Text(f"  {escape(name.removesuffix('.json'))}", "dim")
        yield from (Text(f"    {_short(line, MAX_LINE_CHARS)}") for line in lines[:MAX_EXCERPT_LINES])
        if lines[MAX_EXCERPT_LINES:] or any(len(line) > MAX_LINE_CHARS for line in lines):
            more = (
                count(len(lines) - MAX_EXCERPT_LINES, "more line")
                if lines[MAX_EXCERPT_LINES:]
                else "more of these lines"
            )
            yield Text(f"    and {more}: {command(escape(name))}", "dim")


def missing_lines(lost: str) -> Iterator[Text]:
    """Yield a line about evidence that is not here, if there is any."""
    if lost:
        yield Text("")
        yield Text(f"  {lost}", "dim")


def session_lines(agent: str, files: Mapping[str, bytes], command: ShowFile) -> Iterator[Text]:
    """Yield the facts of an agent's session, then each file with its size and mostly an excerpt."""
    if not files:
        return
    facts = [(name, _short(text)) for name, text in session_facts(files.get(SESSION, b""))]
    yield Text("")
    yield Text(f"  session of {escape(agent)}", "dim")
    yield from fact_table(facts, "    ")
    shown = {name: content for name, content in files.items() if not (name == SESSION and facts)}
    for name, content in shown.items():
        text = "" if is_prompt(name) else content.decode(errors="backslashreplace")  # prompts are all alike
        lines, at_end = [line for line in text.splitlines() if line.strip()], ends_tell_most(name)
        lines = lines[-MAX_EXCERPT_LINES:] if at_end else lines[:MAX_EXCERPT_LINES]
        where = f", {'ends' if at_end else 'begins'}:" if lines else ""
        yield Text(f"    {escape(name)}, {count(len(content), 'byte')}{where}", "dim")
        yield from (Text(f"      {_short(line)}") for line in lines)
    name = max(files, key=lambda name: (is_transcript(name), name in shown) if files[name] else (False, False))
    yield Text(f"    all of it:  {command(escape(name))}", "dim")


def _short(text: str, most: int = MAX_EXCERPT_CHARS) -> str:
    return escape(text if len(text) <= most else f"{text[:most]}...")
