"""What a journal's entries say, in one line each."""

from __future__ import annotations

from rich.text import Text

from evogit.cli.lines.view import SHORT, View, first_line
from evogit.cli.text import clock, number
from evogit.events import (
    Adopted,
    Compared,
    Decision,
    Duplicate,
    Evaluated,
    Event,
    FailedProposal,
    Forked,
    Halted,
    Lesson,
    Proposed,
    Reserved,
    ReviewAsked,
    Reviewed,
    RunStarted,
    SessionEnded,
    Spent,
    StageBegun,
    Stopped,
    Tactic,
    TaskChanged,
)
from evogit.history.standing import decimals

HALTED = {
    "asleep": "the machine slept, or the process was stopped",
    "no-room": "the disk was full",
    "remote": "the Git server was away or refused, and the run went on alone",
    "review": "it waited for a person",
}


def event_line(view: View, event: Event) -> Text:
    """The event, and what it is about."""
    match event:
        case RunStarted():
            agents = f"{first_line(event.agents[0])} to {first_line(event.agents[-1])}" if event.agents else "no agents"
            return _line("began", f"{first_line(event.task)}: {agents}, sandbox {event.provider}")
        case Proposed():
            return _line("proposed", f"{event.candidate[:SHORT]}  {first_line(event.agent)}: {first_line(event.title)}")
        case Evaluated():
            return _evaluated(view, event)
        case Duplicate():
            again = "proposed it again" if event.likeness == "same" else "proposed nearly the same"
            return _line("duplicate", f"{event.first[:SHORT]}  {first_line(event.agent)} {again}")
        case FailedProposal():
            return _line("no change", f"{first_line(event.agent)}: {first_line(event.reason)}")
        case Reserved():
            tokens = f"{event.prompt + event.completion:,} tokens{_cost(event.dollars)}"
            return _line("asks", f"{first_line(event.agent)}: {first_line(event.model)}, at most {tokens}")
        case Spent():
            tokens = f"{event.prompt:,} + {event.completion:,} tokens{_cost(event.dollars)}{_why(event.failure)}"
            return _line("asked", f"{first_line(event.agent)}: {first_line(event.model)}, {tokens}")
        case Tactic():
            return _line("tactic", f"{first_line(event.agent)}: {first_line(event.text or event.failure)}")
        case SessionEnded():
            steps = f"{event.kept} kept of {event.measured} measured"
            return _line("session", f"{first_line(event.agent)}: {steps}. {first_line(event.text)}".rstrip())
        case Compared():
            return _line("verdict", _verdict(event))
        case Reviewed():
            return _line("reviewed", _reviewed(event))
        case TaskChanged():
            return _line("task", f"changed by {first_line(event.by)}; earlier evaluations no longer rank candidates")
        case Forked():
            return _line("forked", f"from {first_line(event.run)} at {event.entry[:SHORT]}")
        case Adopted():
            return _line("adopted", f"{event.candidate[:SHORT]}  by {first_line(event.agent)}")
        case Decision():
            names = " ".join(commit[:SHORT] for commit in event.candidates) or event.undoes[:SHORT]
            return _line(event.kind, f"{names}  by {first_line(event.by)}: {first_line(event.reason)}".strip(" :"))
        case Lesson():
            return _line("lesson", f"{event.step[:SHORT]}  {first_line(event.withdrawn or event.text)}")
        case Halted():
            return _line("halted", f"{HALTED[event.reason]}, for {clock(event.seconds)}{_why(event.detail)}")
        case StageBegun():
            why = f"  ({first_line(event.why)})" if event.why else ""
            return _line("stage", f"{event.number} of {event.of}: {first_line(event.goal)}{why}")
        case ReviewAsked():
            alone = f", and goes on alone after {event.minutes:g} minutes" if event.minutes else ""
            return _line("review", f"{event.best[:SHORT]}  the run waits for a person{alone}")
        case Stopped():
            return _line("stopped", f"{event.reason} {first_line(event.detail)}".rstrip())


def _why(reason: str) -> str:
    return f": {first_line(reason)}" if reason else ""


def _reviewed(event: Reviewed) -> str:
    return f"{event.candidate[:SHORT]}  {event.verdict} by {first_line(event.model)}{_why(event.reason)}"


def _cost(dollars: float | None) -> str:
    return "" if dollars is None else f", ${dollars:.4f}"


def _verdict(event: Compared) -> str:
    if event.calibration:
        passed = "knows" if event.winner == "a" else "does not know"
        return f"{first_line(event.judge)} {passed} the seed from half of it"
    said = "is as good as" if event.winner == "tie" else "beats"
    one, other = (event.b, event.a) if event.winner == "b" else (event.a, event.b)
    return f"{one[:SHORT]} {said} {other[:SHORT]}  by {first_line(event.judge)}: {first_line(event.reason)}"


def _evaluated(view: View, event: Evaluated) -> Text:
    history, commit, evaluation = view.history, event.candidate, event.evaluation
    if not evaluation.counts:
        return _line("evaluated", f"{commit[:SHORT]}  {evaluation.status}: {first_line(evaluation.reason)}")
    if evaluation.split != history.split:
        values = ", ".join(f"{name} {number(value, decimals(value))}" for name, value in evaluation.metrics.items())
        return _line("evaluated", f"{commit[:SHORT]}  {evaluation.split}: {values or evaluation.status}")
    candidate = history.phylogeny[commit]
    if evaluation.repeat:
        told = evaluation.metrics.get(history.metric.name)
        once = evaluation.status if told is None else number(told, view.places)
        if evaluation.beside and (other := evaluation.beside.metrics.get(history.metric.name)) is not None:
            once += f" beside {number(other, view.places)} of {evaluation.beside.candidate[:SHORT]}"
        known = Text.assemble(view.name(commit), f"  again ({evaluation.repeat}): {once}, so ", view.score(commit))
        return _line("evaluated", known)
    if event.instead:
        why = f", as {first_line(event.instead)}"
        return _line("corrected", Text.assemble(view.name(commit), "  ", view.score(commit), why))
    score, gain = view.score(commit), view.gain(commit)
    return _line(
        "evaluated", view.finish(Text.assemble(view.name(commit), "  ", score, " " if gain else "", gain), candidate)
    )


def _line(what: str, about: str | Text) -> Text:
    return Text(f"{what:<10} ", "dim").append_text(about if isinstance(about, Text) else Text(about))
