"""Asks Python itself whether a module is one."""

from __future__ import annotations

import warnings


def compiles(content: bytes) -> bool:
    """Whether Python accepts a module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of invalid escapes and the like
        try:
            compile(content, "<candidate>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
