"""What a landed commit and its pull request say: the goal, what was measured, and each step that is in it and why."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from evogit.core import Metric
from evogit.history import History
from evogit.repository import Repository, clean, clean_title, inert_markdown
from evogit.review.landed_steps import DiffSize, LandedStep, landed_steps
from evogit.review.landing import Landing, SplitTrial
from evogit.review.reporting import first_sentence, opening

WIDTH = 72  # columns of a commit's message
MOST_STEPS = 15  # steps that are told, those that gained most


class LandingText(Struct, frozen=True, kw_only=True):
    """The texts of a landing; `markdown` is the body for pages, where a model's words are text alone.

    `series` has tree and message of a commit for each of the `steps`, or for several that apply only together.
    """

    title: str
    body: str
    markdown: str
    trailers: str
    steps: tuple[LandedStep, ...]
    series: tuple[tuple[str, str], ...]

    def message(self, *, squash: bool) -> str:
        """The commit's message, its long lines broken, each as far to the right as it began."""
        return _message(self.headline(squash=squash), self.body, self.trailers)

    def headline(self, *, squash: bool) -> str:
        """The commit's title."""
        return self.title if squash else clean_title(f"Merge: {self.title}")

    def pull_request(self) -> str:
        """What a pull request says; its lines are not wrapped, as pages that show them break every line."""
        return f"{self.markdown}\n\n{self.trailers}\n"


def _message(title: str, body: str, trailers: str) -> str:
    lines = "\n".join(map(_broken, body.splitlines()))
    return f"{title}\n\n{lines}\n\n{trailers}\n"


def describe(
    repository: Repository,
    history: History,
    landing: Landing,
    trials: Sequence[SplitTrial],
    goal: str,
    reason: str,
    remarks: Sequence[str] = (),
) -> LandingText:
    """The text for what was prepared and measured; `reason` is the user's and comes first, `remarks` come last."""
    steps = landed_steps(repository, history, landing)
    rendered = [replace(step, title=inert_markdown(step.title), reason=inert_markdown(step.reason)) for step in steps]
    measured = "\n".join([*_measured(history, trials), str(DiffSize.of(repository, landing.tip_tree, landing.tree))])
    if any(trial.after.judged == "inside" for trial in trials):
        remarks = [*remarks, "The score was computed within the candidate's reach (judged: inside)."]
    bodies = (
        "\n\n".join(filter(None, [clean(reason), *_parts(history, each, measured, clean(goal)), *remarks]))
        for each in (steps, rendered)
    )
    body, markdown = bodies
    return LandingText(
        title=_title(history.metric, steps, trials, clean(goal)),
        body=body,
        markdown=markdown,
        trailers=_trailers(history, landing.candidate.commit),
        steps=tuple(steps),
        series=tuple(_series(history, landing, steps, [clean(reason), measured, *remarks])),
    )


def _trailers(history: History, commit: str) -> str:
    return f"Evogit-Run: {history.run}\nEvogit-Candidate: {commit}"


def _series(
    history: History, landing: Landing, steps: Sequence[LandedStep], end: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the tree and message of each step's commit; the last message ends with what was measured of all."""
    titles, body = list[str](), list[str]()
    for step in steps:
        gain = _gained(history.metric, step).removeprefix(": ")
        titles, body = [*titles, step.title], [*body, step.reason, gain and f"This step: {gain}"]
        if step.tree:
            last = step is steps[-1]
            body += [f"All {len(steps)} steps:", *end] if last else []
            commit = landing.candidate.commit if last else step.candidate.commit
            text = "\n\n".join(filter(None, body))
            yield step.tree, _message(clean_title(" and ".join(titles)), text, _trailers(history, commit))
            titles, body = [], []


def _parts(history: History, steps: Sequence[LandedStep], measured: str, goal: str) -> Iterator[str]:
    if not steps[1:]:
        yield steps[0].reason
    elif goal and goal != first_sentence(goal):
        yield f"Goal: {opening(goal)}"
    yield measured
    if steps[1:]:
        yield "Steps, each with its gain and the size of its diff:"
        told = _largest(history.metric, steps)
        for step in (step for step in steps if step in told):
            reason = (f"  {line}".rstrip() for line in step.reason.splitlines())
            size = f"; {step.size}" if step.size else ""
            yield "\n".join([f"- {step.title}{_gained(history.metric, step)}{size}", *reason])
        if rest := len(steps) - len(told):
            yield f"And {rest} more step{'s' * (rest > 1)} that gained less."


def _title(metric: Metric, steps: Sequence[LandedStep], trials: Sequence[SplitTrial], goal: str) -> str:
    """Of one step its title. Of several the goal and how far it was reached, or where that is long the largest step."""
    if not steps[1:]:
        return steps[0].title
    wanted = first_sentence(goal).rstrip(" .;:")
    compared = trials[0].compared(metric) if trials else None
    reached = compared.relative if compared else ""
    titles = [f"{wanted} ({metric.name} {reached})"] if reached else []
    fitting = [title for title in [*titles, wanted] if wanted and len(title) <= WIDTH]
    if fitting:
        return clean_title(fitting[0])
    largest = _largest(metric, steps)[0]
    rest = len(steps) - 1
    more = f" and {rest} more step{'s' * (rest > 1)}"
    return clean_title(textwrap.shorten(largest.title, max(WIDTH - len(more), 40), placeholder="…") + more)


def _largest(metric: Metric, steps: Sequence[LandedStep]) -> list[LandedStep]:
    def gain(step: LandedStep) -> float:
        return step.compared.gain if step.compared else -math.inf

    return sorted(steps, key=gain, reverse=True)[:MOST_STEPS]


# --- what was measured --------------------------------------------------------------------------------------------


def _measured(history: History, trials: Sequence[SplitTrial]) -> Iterator[str]:
    primary = history.metric.name
    metrics = {each.name: each for each in history.started.metrics} if history.started else {}
    for trial in trials:
        names = trial.before.metrics.keys() | trial.after.metrics.keys()
        for name in sorted(names, key=lambda name: (name != primary, name)):
            metric = metrics.get(name)
            compared = trial.compared(metric) if metric else None
            remarks = [compared.relative] if compared and compared.relative else []
            if compared and compared.verdict in ("within noise", "tied"):
                remarks.append(compared.verdict)
            if name == primary and trial is trials[0]:
                remarks.append("higher is better" if history.metric.sign > 0 else "lower is better")
            values = f"{_value(trial, 0, name)} -> {_value(trial, 1, name)}"
            told = f" ({', '.join(remarks)})" if remarks else ""
            yield f"{trial.split}: {name} {values}{told}"
        if not names:
            yield f"{trial.split}: {trial.before.status} -> {trial.after.status}"


def _value(trial: SplitTrial, side: int, name: str) -> str:
    evaluation = (trial.before, trial.after)[side]
    if name not in evaluation.metrics:
        return evaluation.status
    margin = trial.margins[name][side] if name in trial.margins else 0.0
    if not margin or not math.isfinite(margin):
        return f"{evaluation.metrics[name]:.6g}{_give(margin)}"
    return f"{evaluation.metrics[name]:.{max(1 - math.floor(math.log10(margin)), 0)}f}{_give(margin)}"


def _give(margin: float) -> str:
    return f" ± {margin:.2g}" if margin and math.isfinite(margin) else " ± ?" if margin else ""


# --- steps --------------------------------------------------------------------------------------------------------


def _gained(metric: Metric, step: LandedStep) -> str:
    compared = step.compared
    if compared is None:
        return ""
    if compared.verdict in ("better", "worse"):
        told = f"{compared.verdict} by {abs(compared.gain):.4g}{_give(compared.margin)}"
        return f": {metric.name} {told}{f' ({compared.relative})' if compared.relative else ''}"
    return f": {metric.name} {compared.verdict}"


def _broken(line: str) -> str:
    if len(line) <= WIDTH:
        return line
    begin = re.match(r"\s*(?:[-*] )?", line)
    indent = " " * len(begin[0]) if begin else ""
    return textwrap.fill(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
