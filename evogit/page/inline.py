"""What is within pages themselves, and how their policy names it."""

from __future__ import annotations

import base64
import hashlib

from evogit.content import content

AGAIN = (content("graphs") / "again.js").read_text(encoding="utf-8")
"""Loads a page anew where one of its files did not come."""


def source_hash(text: str) -> str:
    """How a Content-Security-Policy allows one script or style within a page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
