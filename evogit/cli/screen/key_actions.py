"""What keys ask for: texts about a candidate, and decisions, by the code of the commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace
from rich.text import Text

from evogit.cli.deciding import decision_to_undo, plan_lines
from evogit.cli.lines.candidate import candidate_lines
from evogit.cli.lines.compare import change_lines
from evogit.cli.lines.view import SHORT, View
from evogit.cli.locate_run import Place
from evogit.cli.screen.frame import KEYS
from evogit.cli.screen.state import Asking, Order, Reading, State
from evogit.cli.terminal import table
from evogit.cli.text import escape
from evogit.core import Decision, Entry, EvoGitError
from evogit.repository import clean
from evogit.review import decide, effect
from evogit.review.landing import follow_undo

CHANGED = "something changed meanwhile: this is what would happen now"


def obey(order: Order, state: State, place: Place, view: View) -> State:
    """Do what a key asks for; what cannot be done is said."""
    try:
        if order.kind == "decide":
            return _decided(state, place, view)
        if order.kind in ("promote", "prune", "undo"):
            decision = _decision(order, place)
            return replace(state, asking=Asking(decision=decision, plan=_plan(place, view, decision)))
        return replace(state, reading=_reading(order, place, view))
    except EvoGitError as error:
        return replace(state, asking=None, message=Text(escape(str(error)), "yellow"))


def _reading(order: Order, place: Place, view: View) -> Reading:
    if order.kind == "keys":
        lines = table(((Text(f"  {keys}", "bold"), Text(what)) for keys, what in KEYS), "ll")
        return Reading(commit="", what="keys", lines=tuple(lines))
    candidate = place.history.phylogeny[order.commit]
    if order.kind == "show":
        return Reading(commit=order.commit, what="show", lines=tuple(candidate_lines(place, view, candidate)))
    origin = place.history.seed if order.far else next(iter(candidate.parents), None)
    old = place.history.phylogeny[origin] if origin else candidate
    patch = place.repository.diff(old.commit, candidate.commit)
    return Reading(commit=order.commit, what="diff", lines=tuple(change_lines(view, old, candidate, patch)))


# --- decisions ----------------------------------------------------------------------------------------------------


def _decision(order: Order, place: Place) -> Decision:
    """The decision as it is before there is a reason.

    Raises:
        NotFoundError: there is none to undo.
    """
    by = place.repository.user
    if order.kind == "undo":
        return Decision(kind="undo", by=by, undoes=decision_to_undo(place.history, None).id)
    kind: Literal["promote", "prune"] = "promote" if order.kind == "promote" else "prune"
    return Decision(kind=kind, by=by, candidates=(order.commit,), subtree=order.far)


def _plan(place: Place, view: View, decision: Decision) -> tuple[Text, ...]:
    """What it would change now.

    Raises:
        RefusedError: it cannot be made.
    """
    place.journal.refresh()
    return tuple(plan_lines(view, decision, effect(place.history, decision)))


def planned_anew(state: State, place: Place, view: View) -> State:
    """The same with what a decision in question would change by now; without it, if it cannot be made any more."""
    asking = state.asking
    if asking is None:
        return state
    try:
        return replace(state, asking=replace(asking, plan=_plan(place, view, asking.decision)))
    except EvoGitError as error:
        return replace(state, asking=None, message=Text(escape(str(error)), "yellow"))


def _decided(state: State, place: Place, view: View) -> State:
    """Make the decision, if it still changes what the person was shown; else show what it would change now."""
    asking = state.asking
    assert asking is not None
    decision = replace(asking.decision, reason=clean(asking.reason))
    plan = _plan(place, view, asking.decision)
    if _gist(plan) != _gist(asking.plan):
        return replace(state, asking=replace(asking, plan=plan, about=CHANGED))
    if not decision.reason and decision.kind != "undo":
        return replace(state, asking=replace(asking, about="expected a reason"))
    entry = decide(place, decision)
    return replace(state, asking=None, message=_said(place, entry, decision))


def _gist(plan: Sequence[Text]) -> list[str]:
    """What a plan comes to, without how many candidates it is about: while a run goes on there are more each second."""
    return [re.sub("^[0-9,]+ candidates?", "", line.plain.strip()) for line in plan[1:]]


def _said(place: Place, entry: Entry, decision: Decision) -> Text:
    """That it was made, and how it is taken back."""
    if decision.kind == "undo":
        followed = follow_undo(place.repository, place.history, decision.undoes)
        return Text(f"undone{f'; {escape(followed)}' if followed else ''}", "green")
    about = " ".join(commit[:SHORT] for commit in decision.candidates)
    return Text(f"{decision.kind} {about}: done; u undoes it ({entry.id[:SHORT]})", "green")
