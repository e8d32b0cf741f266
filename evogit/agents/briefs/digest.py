"""What is known about a candidate and its relatives, as short texts for a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from evogit.agents import Background, Relative
from evogit.core import Evaluation, Metric
from evogit.llm import estimate_tokens
from evogit.text import cut, ends, fence, one_line, plain

MOST_CASES = 30
"""Cases that are listed."""

CASE_FEEDBACK = 400
"""Tokens of what the evaluator said of one case, more where there is room, or of why a candidate failed."""


NAME = 25
"""Tokens of a case's name and of what is around it."""


def output(text: str, tokens: int) -> str:
    """What a program printed, between fences: beginning and end of it, of about so many tokens."""
    return fence(ends(plain(text), 4 * tokens))


def scores(background: Background) -> str:
    """The parent's metrics beside those of the seed, or why it has none."""
    evaluation = background.evaluation
    lines = ["The candidate has not been evaluated yet."] if evaluation is None else []
    if evaluation and not evaluation.ok:
        lines += [f"The candidate failed: {evaluation.status}.", output(evaluation.reason, CASE_FEEDBACK)]
    lines += [_metric(metric, background) for metric in background.metrics]
    for stage, metrics in (evaluation.stages if evaluation else {}).items():
        lines.append(f"- before that, on {stage}: {_values(metrics)}")
    if background.inside:
        lines.append(
            "The candidate is evaluated by a command that runs beside its code; tampering with it is cheating."
        )
    return "\n".join(lines)


def best(background: Background) -> str:
    """What the best candidate has now, of which nothing that comes before may depend, as it changes."""
    return f"The best so far has {_values(background.best_metrics)}." if background.best_metrics else ""


def _metric(metric: Metric, background: Background) -> str:
    evaluation = background.evaluation
    known = {
        "this candidate": evaluation.metrics.get(metric.name) if evaluation and evaluation.ok else None,
        "the seed": background.seed_metrics.get(metric.name),
        "the best known anywhere": metric.best_known,
    }
    shown = ", ".join(f"{who} {value:.6g}" for who, value in known.items() if value is not None)
    primary = ", the primary metric" if metric.primary else ""
    return f"- {metric.name} ({metric.direction} it{primary}): {shown or 'no value yet'}"


def _values(metrics: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.6g}" for name, value in metrics.items())


def worst_first(background: Background) -> list[str]:
    """Names of the parent's cases, those first that are worst by the primary metric."""
    cases = background.evaluation.cases if background.evaluation else {}
    primary = background.metrics[0]
    return sorted(cases, key=lambda name: primary.sign * cases[name].get(primary.name, -primary.sign * math.inf))


def cases(background: Background) -> str:
    """The parent's values, case by case."""
    names, known = worst_first(background), background.evaluation.cases if background.evaluation else {}
    lines = [f"{one_line(name)}: {_values(known[name])}" for name in names[:MOST_CASES]]
    return fence("\n".join([*lines, f"and {len(names) - MOST_CASES} more"] if names[MOST_CASES:] else lines))


def feedback(background: Background, tokens: int) -> str:
    """What the evaluator said of cases, the worst ones first."""
    said = background.feedback
    names = [name for name in worst_first(background) if name in said]
    names += [name for name in said if name not in names]
    each = 4 * max(CASE_FEEDBACK, tokens // max(len(names), 1) - NAME)
    parts = [f"{one_line(name)}:\n{ends(plain(said[name].strip()), each)}" for name in names if said[name].strip()]
    return fence(cut("\n\n".join(parts), tokens))


def steps(relatives: Sequence[Relative], metric: Metric, tokens: int) -> str:
    """Candidates that were bred one from the other, each with its gain over the one before."""
    before = [None, *(each.evaluation for each in relatives)]
    lines = [_line(each, over, metric) for each, over in zip(relatives, before, strict=False)]
    return fence(_with_diffs(lines, relatives, tokens))


def siblings(background: Background, tokens: int) -> str:
    """What was bred from the parent, each with its gain over it."""
    parent = background.evaluation
    lines = [_line(each, parent, background.metrics[0]) for each in background.siblings]
    return fence(_with_diffs(lines, background.siblings, tokens))


def listed(lines: Iterable[str], tokens: int) -> str:
    """Foreign lines, one below the other."""
    return fence(cut("\n".join(f"- {one_line(line, 300)}" for line in lines), tokens))


def conflicts(markers: Mapping[str, int]) -> str:
    """Files with conflicts, and what the markers of each are, given their length."""
    lines = [
        f"- {one_line(path, 300)}: `{'<' * size} ours`, ours, `{'|' * size} base`, what both came from, "
        f"`{'=' * size}`, theirs, `{'>' * size} theirs`"
        for path, size in markers.items()
    ]
    return "\n".join(lines)


def _line(relative: Relative, over: Evaluation | None, metric: Metric) -> str:
    candidate = relative.candidate
    rejected = f"; rejected by a person: {one_line(relative.rejected, 300)}" if relative.rejected else ""
    title = one_line(candidate.title) or candidate.operator
    back = [f"{lines} line{'s' * (lines > 1)} that {commit[:7]} removed" for commit, lines in relative.readded.items()]
    again = f"; re-adds {' and '.join(back)}" if back else ""
    return f"- {candidate.commit[:7]} {title}: {outcome(relative.evaluation, over, metric)}{again}{rejected}"


def outcome(evaluation: Evaluation | None, over: Evaluation | None, metric: Metric) -> str:
    """What came of a candidate, beside what came of the one it is compared with."""
    if evaluation is None:
        return "not evaluated yet"
    if not evaluation.ok:
        return f"failed ({evaluation.status}) {one_line(evaluation.reason, 300)}"
    value = evaluation.metrics[metric.name]
    if over is None or not over.ok:
        return f"{value:.6g}"
    gain = metric.gain(value, over.metrics[metric.name])
    return f"{value:.6g} ({'better' if gain > 0 else 'worse' if gain < 0 else 'no better'}, {gain:+.3g})"


def _with_diffs(lines: Sequence[str], relatives: Sequence[Relative], tokens: int) -> str:
    """The lines, and as many of the changes as fit: the latest ones, in their order."""
    left = tokens - estimate_tokens("\n".join(lines))
    diffs: list[str] = []
    for relative in reversed(relatives):
        if relative.diff and left > 0:
            diffs.append(f"\n{_heading(relative)}\n{cut(plain(relative.diff), min(left, tokens // 2))}")
            left -= estimate_tokens(diffs[-1])
    return "\n".join([*lines, *reversed(diffs)])


def _heading(relative: Relative) -> str:
    return f"Change of {relative.candidate.commit[:7]}:"


def shown(relatives: Iterable[Relative], text: str) -> tuple[str, ...]:
    """Ids of those whose change is in a text, which `steps` or `siblings` gave."""
    found = (each.candidate.commit for each in relatives if each.diff and f"\n{_heading(each)}\n" in text)
    return tuple(dict.fromkeys(found))
