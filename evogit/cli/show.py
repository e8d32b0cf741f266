"""`evogit show`: one candidate in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click
from rich.text import Text

from evogit.background import read_feedback
from evogit.cli.options import REVISION, with_run, with_terminal
from evogit.cli.place import Place
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import bar, count, decimals, escape, number, percent
from evogit.cli.view import SHORT, View, first_line
from evogit.core import Candidate, Decision, Evaluation, Metric, RepositoryError
from evogit.history import History
from evogit.readded import Readded
from evogit.review import candidate_record, resolve

EXCERPT = 12
"""Lines of each piece of evidence that are shown."""


@click.command()
@click.argument("rev", type=REVISION)
@with_run
@with_terminal
def show(place: Place, terminal: Terminal, rev: str) -> None:
    """Show one candidate: where it comes from, its metrics and cost, what it changed, what the evaluator said.

    REV is `best`, `seed`, an agent's name or the beginning of an id.
    """
    candidate = resolve(place.history, rev)
    evidence, files = _evidence(place, candidate.commit), _files(place, candidate)
    readded = Readded(place.repository, place.history).by(candidate)
    if terminal.json:
        texts = {name: content.decode(errors="backslashreplace") for name, content in evidence.items()}
        children = list(place.history.phylogeny.children(candidate.commit))
        record = candidate_record(place.history, candidate)
        terminal.data({**record, "children": children, "files": files, "readded": readded, "evidence": texts})
        return
    view = View.of(place.history, terminal)
    name = Text.assemble(view.glyph(candidate.commit), " ", (candidate.commit, "cyan"), view.marks(candidate.commit))
    title = Text(f"  {first_line(candidate.title)}")
    terminal.show(
        [name, title, Text(""), *_facts(view, candidate, files, readded), *_judged(view, candidate), *_said(evidence)]
    )


def _facts(view: View, candidate: Candidate, files: list[str], readded: Mapping[str, int]) -> list[Text]:
    history = view.history
    strategy = f" ({first_line(candidate.strategy)})" if candidate.strategy else ""
    by = f"{first_line(candidate.agent)}, {candidate.operator}{strategy}, {view.age(candidate).plain} ago"
    facts = [("by", Text(by))]
    for parent in candidate.parents:
        facts.append(("parent", view.line(history.phylogeny[parent], score=True)))
    if files:
        more = f" and {count(len(files) - 6, 'more file')}" if files[6:] else ""
        facts.append(("changed", Text(", ".join(escape(path) for path in files[:6]) + more)))
    for ancestor, lines in readded.items():
        facts.append(("re-adds", Text(f"{count(lines, 'line')} that {ancestor[:SHORT]} removed", "yellow")))
    facts.append(("children", Text(f"{len(history.phylogeny.children(candidate.commit)):,}")))
    facts += [("decided", line) for line in _decided(history, candidate.commit)]
    evaluation, former = history.evaluation(candidate.commit), history.former(candidate.commit)
    facts.append(
        (
            "status",
            Text("not judged since the task changed", "dim")
            if former and not evaluation
            else _status(evaluation, 1 + history.scores.repeated(candidate.commit)),
        )
    )
    if former:
        facts.append(("before", _former(former)))
    return table(((Text(f"  {name}", "dim"), text) for name, text in facts), "ll")


def _decided(history: History, commit: str) -> Iterator[Text]:
    for entry in history.in_force():
        decision = entry.event
        if isinstance(decision, Decision) and commit in decision.candidates:
            yield Text(f"{decision.kind} by {first_line(decision.by)}: {first_line(decision.reason)}")


def _status(evaluation: Evaluation | None, times: int) -> Text:
    if evaluation is None:
        return Text("not evaluated yet", "dim")
    cost = evaluation.cost
    words = [f"{evaluation.status} on {evaluation.split}", f"{cost.wall:.2f} s", f"{cost.cpu:.2f} s CPU"]
    words[:1] += [f"judged {times} times"] if times > 1 else []
    words += [f"{cost.memory / 1e6:.0f} MB"] if cost.memory else []
    words += ["judged: inside"] if evaluation.judged == "inside" else []
    words += ["known from an equal candidate"] if evaluation.cached else []
    return Text(", ".join(words), "" if evaluation.ok else "red")


def _former(evaluation: Evaluation) -> Text:
    """What it was judged to be before the task changed."""
    values = ", ".join(f"{escape(name)} {value:.6g}" for name, value in evaluation.metrics.items())
    return Text(f"{evaluation.status}, as the task was then{f': {values}' if values else ''}", "dim")


# --- what the evaluator said --------------------------------------------------------------------------------------


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
    for name, values in cases[:EXCERPT]:
        shown = ", ".join(f"{metric} {value:.6g}" for metric, value in values.items())
        yield Text(f"  {escape(name)}: {shown}", "dim")
    if cases[EXCERPT:]:
        yield Text(f"  and {count(len(cases) - EXCERPT, 'more case')}", "dim")


def _metric(view: View, commit: str, evaluation: Evaluation, metric: Metric) -> list[str]:
    """The value, and how far it is on the way from the seed's to the best known one (else the best's)."""
    history, value = view.history, evaluation.metrics[metric.name]
    goal, what = _value(history, history.best, metric), "the best"
    if metric.best_known is not None and history.split == "train":
        goal, what = metric.best_known, f"the best known {metric.best_known:.10g}"
    start = _value(history, history.seed, metric)
    holdout = _value(history, commit, metric, "holdout")
    beside = "" if holdout is None else f"holdout {_told(view, commit, holdout, metric, 'holdout')}"
    shown = _told(view, commit, value, metric)
    cells = [f"  {metric.name}", shown, beside, "", ""]
    if start is not None and goal is not None and start != goal:
        share = (value - start) / (goal - start)
        drawn = bar(share, 20, view.glyphs.full, view.glyphs.empty)
        cells[3:] = [drawn, f"{percent(share)} of the way from the seed to {what}"]
    return cells


def _told(view: View, commit: str, value: float, metric: Metric, split: str | None = None) -> str:
    margin = view.history.scores.margin(commit, split, metric.name)
    places = decimals(value, margins=[margin])
    return number(value, places) + view.margin(margin, places)


def _value(history: History, commit: str | None, metric: Metric, split: str | None = None) -> float | None:
    evaluation = history.evaluation(commit, split) if commit else None
    return evaluation.metrics.get(metric.name) if evaluation and evaluation.ok else None


def _said(evidence: Mapping[str, bytes]) -> Iterator[Text]:
    for name, content in evidence.items():
        lines = _lines(name, content)
        yield Text("")
        yield Text(f"  {escape(name.removesuffix('.json'))}", "dim")
        yield from (Text(f"    {escape(line)}") for line in lines[:EXCERPT])
        if lines[EXCERPT:]:
            yield Text(f"    and {count(len(lines) - EXCERPT, 'more line')}, see --json", "dim")


def _lines(name: str, content: bytes) -> list[str]:
    """Feedback as `case: text`, anything else as it is."""
    said = read_feedback(content) if name == "feedback.json" else {}
    told = [f"{case}: {line}" for case, text in said.items() for line in text.splitlines()]
    return told or content.decode(errors="backslashreplace").splitlines()


def _evidence(place: Place, commit: str) -> dict[str, bytes]:
    """The files that were kept of its evaluation; none when they are gone."""
    tree = place.history.evidence.get(commit)
    try:
        return place.repository.trees.files(tree, lambda _: True) if tree else {}
    except RepositoryError:
        return {}


def _files(place: Place, candidate: Candidate) -> list[str]:
    """Paths that differ from the first parent."""
    if not candidate.parents:
        return []
    return place.repository.changed_paths(place.history.phylogeny[candidate.parents[0]].tree, candidate.tree)
