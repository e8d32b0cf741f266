"""From a draft to a proposal: what every agent whose edits are blocks has to see to."""

from __future__ import annotations

from evogit.agents import Background, Brief, FileContents, Proposal
from evogit.agents.editing.blocks import EditError
from evogit.agents.editing.draft import Draft
from evogit.repository import EXECUTABLE, FILE, count_markers
from evogit.text import one_line


def proposal_of(
    draft: Draft,
    brief: Brief,
    background: Background,
    *,
    title: str,
    reason: str,
    model: str,
    shown: tuple[str, ...],
    evidence: FileContents,
) -> Proposal:
    """The draft as a proposal of this title and reason, by `model` that was `shown` these, with how it came about.

    Raises EditError: a conflict that was to be settled is still open.
    """
    _refuse_open_conflicts(draft, brief)
    return Proposal(
        changes=draft.changes,
        title=title,
        reason=reason,
        strategy=draft.strategy,
        modes=_modes(draft, brief, background),
        shown=shown,
        model=model,
        evidence=evidence,
    )


def _refuse_open_conflicts(draft: Draft, brief: Brief) -> None:
    files = {**{path: brief.files[path] for path in brief.conflicts}, **draft.changes}
    for path, size in brief.conflicts.items():
        if count_markers(files[path] or b"", size):
            hint = "Settle every conflict of the file; SEARCH it with all its markers, or WRITE the whole file."
            raise EditError(f"markers of conflicts are left in {one_line(path, 300)!r}", hint)


def _modes(draft: Draft, brief: Brief, background: Background) -> dict[str, int]:
    """Renamed files keep their mode; new ones that begin like a program are one."""
    modes = {}
    for path, content in draft.changes.items():
        origin = draft.origins.get(path)
        if content is None or (path in brief.files and not origin):
            continue
        program = origin in background.programs if origin else content.startswith(b"#!")
        modes[path] = EXECUTABLE if program else FILE
    return modes
