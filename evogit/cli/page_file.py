"""A run as one HTML file, for the commands that write one."""

from __future__ import annotations

from evogit.cli.locate_run import Place
from evogit.cli.terminal import Terminal
from evogit.cli.text import count


def page_file(place: Place, terminal: Terminal, page: str, *, redact: bool = False) -> str:
    """The run as one HTML file that shows `page` first, `graph` or `run`; a note says what had no room."""
    from evogit.page.html_file import html_file
    from evogit.page.payload import FollowedRun

    made = html_file(FollowedRun(place.repository, place.history.run), redact=redact, page=page)
    if made.left_out:
        terminal.note(
            f"of {count(made.left_out, 'dead end')} the file has only what graph and table show, to stay small"
        )
    return made.text
