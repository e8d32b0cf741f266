"""A patch as it is shown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from evogit.cli.text import escape


def patch_lines(patch: str) -> Iterator[Text]:
    """A patch in Git's colours, its text made harmless."""
    styles = {"+": "green", "-": "red", "@": "cyan", "d": "bold", "i": "bold"}
    for line in patch.split("\n")[:-1] if patch else [" no difference"]:
        style = "bold" if line.startswith(("--- ", "+++ ")) else styles.get(line[:1], "")
        yield Text(escape(line.removesuffix("\r")), style, overflow="ignore")
