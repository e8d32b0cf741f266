"""Facts about a candidate and its relatives, and reports of test runners, as short texts for a model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from evogit.agents import Background, Relative
from evogit.agents.briefs.bodies import Mentions, part_of
from evogit.core import Cost, Evaluation, Metric
from evogit.history.ideas import Idea, by_family
from evogit.history.standing import OLD, WAITING, decimals
from evogit.llm import estimate_tokens
from evogit.text import MAX_FAMILY_CHARS, cut, ends, escaped, fence, lines_of, measured, one_line, plain

MOST_CASES = 30  # cases that are listed

CASE_FEEDBACK = 400
"""Tokens of what the evaluator said of one case, more where there is room, or of why a candidate failed."""

NAME = 25  # tokens of a case's name and of what is around it
MAX_STEPS = 5  # ancestors that are told of, the candidate included
MAX_OUTCOME_CHARS = 120  # characters of why an idea failed
SMALL = 400  # tokens of a sibling's change that is shown
LONGEST_WHY = 300  # characters of why a candidate failed
MAX_FIXED = 1e15  # values from here on are written with exponents

READS = {
    WAITING: "not evaluated yet",
    OLD: "not evaluated since the task changed",
    "evaluator-error": "not measured, as the evaluator itself failed, which says nothing of the change",
    "not-measured": "not measured, as the machine was too busy, which says nothing of the change",
}
"""The meaning of statuses without a score that are no failures of the candidate."""

THIS = "this candidate"  # what the parent is called

LOADED = 0.25
"""The share of an evaluation's time that a program waits for a core, from which on a failure may be the machine's."""

_HEAD = re.compile(r"^diff --git .*\n(?:(?:index|---) .*\n)*(?=\+\+\+ b/)", re.MULTILINE)
_WORD = re.compile(r"[\w.]+")


def output(text: str, tokens: int) -> str:
    """What a program printed, between fences: beginning and end of it, of about so many tokens."""
    return fence(ends(plain(text), 4 * tokens))


def cleaned(background: Background) -> Background:
    """The same without what the evaluator said of tests that passed."""
    feedback = {name: without_passing(said) for name, said in background.feedback.items()}
    return replace(background, feedback=feedback, log=without_passing(background.log))


def scores(background: Background) -> str:
    """The parent's metrics beside those of the seed, or why it has none."""
    evaluation = background.evaluation
    lines = ["The candidate has not been evaluated yet."] if evaluation is None else []
    if evaluation and not evaluation.ok:
        failed = f"failed: {evaluation.status}{under_load(evaluation)}"
        said = failed if evaluation.counts else f"is {unjudged(evaluation)}"
        lines += [f"The candidate {said}.", output(evaluation.reason, CASE_FEEDBACK)]
    lines += [_metric(metric, background) for metric in background.metrics]
    if background.repeats > 1 or any(background.margins.values()):
        lines.append(f"- evaluations of this candidate: {background.repeats}; ± is half of a 95 % interval")
    for stage, metrics in (evaluation.stages if evaluation else {}).items():
        lines.append(f"- before that, on {stage}: {_values(metrics)}")
    return "\n".join(lines)


def judge(background: Background) -> str:
    """What evaluates, what it measures, and what candidates may use."""
    lines = []
    if background.judge:
        lines.append(f"By a command that runs beside the code, and how each metric is read:\n{fence(background.judge)}")
    if background.inside:
        lines.append("What evaluates runs beside the code; tampering with it is cheating.")
    if limits := background.limits:
        lines.append(
            f"Limits of a call: {limits.cpu:g} s of CPU, {limits.wall:g} s of wall clock; "
            f"{limits.memory >> 20:,} MB of memory; no network."
        )
    lines += [f"Programs run with {background.runtime}."] if background.runtime else []
    return "\n".join(lines)


def used(background: Background) -> str:
    """What the parent's evaluation took, which is never the same twice; empty where it is not known."""
    cost = background.evaluation.cost if background.evaluation else Cost()
    if not cost.wall:
        return ""
    memory = f"; {max(cost.memory >> 20, 1):,} MB of memory at most" if cost.memory else ""
    whole = f"{cost.cpu:.2g} s of CPU, {cost.wall:.2g} s of wall clock"
    if not cost.call_share:  # evaluated before calls were told apart, or by no sandbox
        return f"- used in all: {whole}{memory}"
    return (
        f"- used by the largest call: {cost.call_cpu:.2g} s of CPU, {cost.call_wall:.2g} s of wall clock, "
        f"{min(cost.call_share, 1):.0%} of its limit; by all: {cost.cpu:.2g} and {cost.wall:.2g} s{memory}"
    )


def best(background: Background) -> str:
    """What the best candidate has now, of which nothing that comes before may depend, as it changes."""
    known, primary = background.best_metrics, background.metrics[0]
    if not known:
        return ""
    margin = background.best.standing.margin if background.best else background.margins.get(primary.name, 0.0)
    values = [
        f"{name} {score(value, margin, background.places) if name == primary.name else f'{value:.6g}'}"
        for name, value in known.items()
    ]
    doubt = background.lead is not None and background.lead.verdict == "within noise"
    beside = ", which differs from this candidate within noise" if doubt else ""
    return f"The best so far has {', '.join(values)}{beside}."


def _metric(metric: Metric, background: Background) -> str:
    evaluation = background.evaluation
    known = {
        THIS: evaluation.metrics.get(metric.name) if evaluation and evaluation.ok else None,
        "the seed": background.seed_metrics.get(metric.name),
        "the best possible" if metric.bound else "the best known anywhere": metric.best_known,
    }
    margin = background.margins.get(metric.name, 0.0)
    places = background.places if metric.primary else decimals(*known.values(), margins=[margin])
    shown = ", ".join(
        f"{who} {score(value, margin if who == THIS else 0.0, places)}"
        for who, value in known.items()
        if value is not None
    )
    primary = ", the primary metric" if metric.primary else ""
    own = known[THIS]
    left = None if own is None or metric.best_known is None else metric.gain(metric.best_known, own)
    away = "" if left is None else f" ({left:.3g} better than this one)" if left > 0 else " (no better than this one)"
    return f"- {metric.name} ({metric.direction} it{primary}): {shown or 'no value yet'}{away}"


def _values(metrics: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.6g}" for name, value in metrics.items())


def worst_first(background: Background) -> list[str]:
    """Names of the parent's cases, those first that are worst by the primary metric."""
    cases = background.evaluation.cases if background.evaluation else {}
    primary = background.metrics[0]
    return sorted(cases, key=lambda name: primary.sign * cases[name].get(primary.name, -primary.sign * math.inf))


def cases(background: Background) -> str:
    """The parent's values, case by case; nothing of a single case that has the values of the whole."""
    names, known = worst_first(background), background.evaluation.cases if background.evaluation else {}
    if background.evaluation and list(known.values()) == [background.evaluation.metrics]:
        return ""
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


def lineage(background: Background, tokens: int) -> str:
    """List the parent's largest steps, each with its gain over the one before; what they changed is in the code."""
    early, last = background.lineage[:-1], background.lineage[-1:]
    largest = sorted(early, key=lambda each: each.standing.gain or 0.0)[1 - MAX_STEPS :]
    steps = [each for each in early if each in largest]
    return fence(_latest(_chain([*steps, *last], background), tokens))


def inspirations(background: Background, tokens: int) -> str:
    """What the donor's ancestors did, each with its gain over the one before; changes as far as they fit."""
    lines = _chain(background.inspirations, background)
    return fence(_with_diffs(lines, _not_best(background.inspirations, background), tokens, tokens))


def siblings(background: Background, tokens: int) -> str:
    """Show what was made of the parent: a few children, each with its gain, and with its change if that is small."""
    parent = background.lineage[-1].candidate.commit if background.lineage else ""
    lines = [_line(each, background.places, parent) for each in background.siblings]
    told = _with_diffs(lines, _not_best(background.siblings, background), tokens, SMALL)
    listed = {idea.candidate for idea in background.ideas}  # a line without a change would say the same again
    new = any(each.candidate.commit not in listed or each.rejected for each in background.siblings)
    return fence(told) if new or shown(background.siblings, f"{told}\n") else ""


def ideas(background: Background, tokens: int) -> str:
    """List the ideas of the run by family, as many as fit: the best of each family, then the latest ones.

    Each has a line with its outcome; a family says how many of its ideas are left out.
    """
    groups = by_family(idea for idea in background.ideas if idea.candidate and idea.outcome != WAITING)
    firsts = {id(max(group, key=lambda idea: idea.gain or -math.inf)) for group in groups.values()}
    order = [idea for group in groups.values() for idea in group]
    order.sort(key=lambda idea: (id(idea) not in firsts, -idea.moves[-1]))
    left, lines = tokens - sum(estimate_tokens(family) + NAME // 2 for family in groups), dict[int, str]()
    for idea in order:
        line = _idea_line(idea, background)
        if (needed := estimate_tokens(line + "\n")) <= left:
            lines[id(idea)] = line
            left -= needed
    parts = list[str]()
    for family, group in groups.items():
        shown = [lines[id(idea)] for idea in group if id(idea) in lines]
        more = f" ({len(group) - len(shown)} not listed)" if len(shown) < len(group) else ""
        heading = f"{one_line(family, MAX_FAMILY_CHARS) or 'of no family'}{more}:"
        parts += [heading, *shown] if family or more or len(groups) > 1 else shown
    return fence(cut("\n".join(parts), tokens))


def _idea_line(idea: Idea, background: Background) -> str:
    known, outcome = idea.standing, one_line(READS.get(idea.outcome, idea.outcome), MAX_OUTCOME_CHARS)
    if known and known.score is not None:
        compared = known.comparison
        gain = f"{known.mark}{compared.gain:+.3g}" if compared and compared.gain else idea.outcome
        doubt = ", within noise" if idea.outcome == "within noise" else ""
        outcome = f"{score(known.score, known.margin, background.places)} ({gain}{doubt})"
    times = f" x{idea.tries}" if idea.tries > 1 else ""
    return f"{'+' if idea.candidate in background.carried else '-'} {one_line(idea.title)}{times}: {outcome}"


def code_of(other: Relative | None, contents: Mapping[str, bytes], tokens: int, name: str) -> str:
    """What another candidate, named `of the best`, has that the parent has not: a patch, or files if shorter."""
    if other is None or not other.diff or tokens <= NAME:
        return ""
    patch = f"{_heading(other)}\n{fence(_HEAD.sub('', plain(other.diff)))}"
    files = {path: plain(lines_of(content) or "") for path, content in contents.items()}
    whole = "\n\n".join(f"Its {one_line(path, 300)}:\n{fence(escaped(text))}" for path, text in files.items() if text)
    if estimate_tokens(min(patch, whole or patch, key=len)) <= tokens:
        return whole if whole and len(whole) < len(patch) else patch
    changed = Mentions().take_patch(other.diff, after=True)
    each = tokens // max(len(files), 1) - NAME
    parts = (part_of(path, text, changed, each, 0.0, f" {name}") for path, text in files.items() if text)
    return "\n\n".join(parts)


def _chain(relatives: Sequence[Relative], background: Background) -> list[str]:
    """A line for each, with its gain over the one that it was made of."""
    return [_line(each, background.places, next(iter(each.candidate.parents), "")) for each in relatives]


def _not_best(relatives: Sequence[Relative], background: Background) -> list[Relative]:
    """Those whose change is not in what is shown of the best."""

    def changed(patch: str) -> set[str]:
        return {line for line in patch.split("\n") if line[:1] in ("+", "-")}

    shown = changed(background.best.diff) if background.best else set()
    return [relative for relative in relatives if not shown or not changed(relative.diff) <= shown]


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


def _line(relative: Relative, places: int, parent: str) -> str:
    """A candidate and what came of it; `parent` is what it is taken to be compared with unless told."""
    candidate = relative.candidate
    rejected = f"; rejected by {one_line(relative.rejected, 300)}" if relative.rejected else ""
    title = one_line(candidate.title) or candidate.operator
    back = [f"{lines} line{'s' * (lines > 1)} that {commit[:7]} removed" for commit, lines in relative.readded.items()]
    again = f"; re-adds {' and '.join(back)}" if back else ""
    came = outcome(relative, places, parent)
    why = one_line(relative.why, LONGEST_WHY)
    why = f"; {why}" if why and why not in came else ""
    return f"- {candidate.commit[:7]} {title}: {came}{why}{again}{rejected}"


def outcome(relative: Relative, places: int, parent: str = "") -> str:
    """Tell a candidate's score and how it compares, or why it has none; compared with `parent` unless named."""
    known, evaluation = relative.standing, relative.evaluation
    if known.failed and evaluation:
        return f"failed ({known.status}{under_load(evaluation)}) {one_line(evaluation.reason, LONGEST_WHY)}"
    if known.score is None:
        former = relative.former
        before = f"; before: {_values(former.metrics) or former.status}" if former else ""
        return f"{READS.get(known.status, known.status)}{before}"
    value, compared = score(known.score, known.margin, places), known.comparison
    if compared is None:
        return value
    if compared.verdict == "tied" and known.origin == parent:
        return compared.verdict  # most of what is told of a line of equals would be their value, again and again
    over = "" if known.origin == parent else f" over {(known.origin or '')[:7]}"
    gain = "" if compared.verdict == "tied" else f", {'~' * compared.apart}{compared.gain:+.3g}"
    return f"{value} ({compared.verdict}{gain}{over})"


def score(value: float, margin: float, places: int) -> str:
    """A value as a model is told it: without zeros that say nothing."""
    if margin:
        return measured(value, margin, places)
    text = f"{value:.{places}f}" if abs(value) < MAX_FIXED else f"{value:.6g}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def unjudged(evaluation: Evaluation) -> str:
    """Return why an evaluation does not count."""
    return READS[evaluation.status]


def under_load(evaluation: Evaluation) -> str:
    """Return a remark that the machine may have caused a failure, if the candidate waited long for a core."""
    cost = evaluation.cost
    if cost.waited < LOADED * cost.wall or not cost.waited:
        return ""
    return f", on a busy machine: {cost.waited:.2g} of {cost.wall:.2g} s it waited for a core"


def _with_diffs(lines: Sequence[str], relatives: Sequence[Relative], tokens: int, most: int) -> str:
    """The lines, and those changes of at most so many tokens that fit, none twice: the latest ones, in their order."""
    told = _latest(lines, tokens)
    left = tokens - estimate_tokens(told)
    diffs = dict[str, str]()
    for relative in reversed(relatives):
        text = "" if _tells_all(relative.candidate.title, relative.diff) else _HEAD.sub("", plain(relative.diff))
        needed = estimate_tokens(text) + NAME
        if text and text not in diffs and needed <= min(left, most):
            diffs[text] = f"\n{_heading(relative)}\n{text}"
            left -= needed
    return "\n".join([told, *reversed(diffs.values())])


def _tells_all(title: str, patch: str) -> bool:
    """Whether a title, such as `tune SIZE 3 -> 4`, says what the only changed line of a patch says."""
    added = [line for line in patch.split("\n") if line.startswith("+") and not line.startswith("+++ ")]
    return len(added) == 1 and set(_WORD.findall(added[0])) <= set(_WORD.findall(title))


def _latest(lines: Sequence[str], tokens: int) -> str:
    """Return as many of the last lines as fit; "" if none does."""
    first = 0
    while first < len(lines) and estimate_tokens("\n".join(lines[first:])) > max(tokens - NAME, 0):
        first += 1
    if first == len(lines):
        return ""
    return "\n".join([*([f"({first} earlier left out)"] if first else []), *lines[first:]])


def _heading(relative: Relative) -> str:
    return f"Change of {relative.candidate.commit[:7]}:"


def shown(relatives: Iterable[Relative], text: str) -> tuple[str, ...]:
    """Ids of those whose change is in a text, which `siblings` or `inspirations` gave."""
    found = (each.candidate.commit for each in relatives if each.diff and f"\n{_heading(each)}\n" in text)
    return tuple(dict.fromkeys(found))


LONGEST = 300  # characters of a line that are looked at
MOST = 20_000  # characters of a report, its last ones, in which the reason for a failure is looked for

_PASSING = re.compile(
    r"""
    (?:\S{1,200}\s+)?[sxX]*\.[.sxX]*\s*(?:\[\s*\d+%\])?\s*   # pytest: dots, behind the name of a file or not
    | \S{1,200}\s+PASSED\b.*                              # pytest -v
    | =*\s*\d+\ (?:passed|passing)\b(?!.*(?:fail|error)).*
    | (?:=+\ test\ session\ starts|platform\ |rootdir:|plugins:|cachedir:|collected\ \d|collecting\ ).*
    | [✓✔√].*                                            # mocha, jest
    | ok\ \d+\b.*                                        # TAP
    | (?:---\ PASS|===\ (?:RUN|PAUSE|CONT)|PASS\b|ok\s+\S+\s+[\d.]+s).*     # Go
    | -{10,} | Ran\ \d+\ tests?\ in\ .* | OK(?:\ \(.*\))?      # unittest
    | .{1,250}\.\.\.\ ok                                  # Rust
    """,
    re.VERBOSE,
)
_HEADING = re.compile(r"last lines of (?:stdout|stderr):|=+ .{1,60} =+")

_TESTS = (
    r"(?:FAILED|ERROR) (\S+)(?: - .*)?",  # pytest
    r"(?:FAIL|ERROR): (\S+).*",  # unittest
    r"--- FAIL: (\S+).*",  # Go
    r"not ok \d+ (?:- )?(.+)",  # TAP
    r"test (\S+) \.\.\. FAILED",  # Rust
)
_REASONS = (
    r"E\s+(\S.*)",
    r"((?:AssertionError|Assertion failed|panicked at|thread .* panicked at)\b.*)",
    r"((?:\w+\.)*\w*(?:Error|Exception)\b:.*)",
    r"(assert\b.*)",
    r"(.*\b(?:expected|error:)\s.*)",
)
"""Patterns of a line that names a failed test and of one with its reason, the most telling first."""


def without_passing(text: str) -> str:
    """The lines that tell of anything but success, and headings of such."""
    kept: list[str] = []
    for line in text.split("\n"):
        if _PASSING.fullmatch(line.strip()[:LONGEST]) or (not line.strip() and not (kept and kept[-1].strip())):
            continue
        if kept and _HEADING.fullmatch(kept[-1].strip()) and _HEADING.fullmatch(line.strip()[:LONGEST]):
            kept.pop()
        kept.append(line)
    while kept and (not kept[-1].strip() or _HEADING.fullmatch(kept[-1].strip()[:LONGEST])):
        kept.pop()
    return "\n".join(kept)


def telling(text: str) -> str:
    """Return the line that best explains a failure, the test and its assertion; empty if there is none."""
    lines = [line.strip()[:LONGEST] for line in text[-MOST:].split("\n")]
    return ": ".join(filter(None, (_first(_TESTS, lines), _first(_REASONS, lines))))


def _first(patterns: Iterable[str], lines: Sequence[str]) -> str:
    """Return the match of the first pattern that fits any line, in the first such line."""
    found = (found[1] for pattern in patterns for line in lines if (found := re.fullmatch(pattern, line)))
    return next(found, "")
