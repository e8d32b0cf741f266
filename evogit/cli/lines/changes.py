"""What changed between two candidates, as `diff` prints it and `watch` shows it."""

from __future__ import annotations

from rich.text import Text

from evogit.cli.lines.compare import versus
from evogit.cli.lines.patch import patch_lines
from evogit.cli.lines.view import SHORT, View
from evogit.core import Candidate


def change_lines(view: View, old: Candidate, new: Candidate, patch: str) -> list[Text]:
    """Both candidates, their metrics, and the patch from one to the other."""
    metrics = versus(view, old.commit, new.commit, (old.commit[:SHORT], new.commit[:SHORT]))
    return [view.line(old), view.line(new), Text(""), *metrics, Text(""), *patch_lines(patch)]
