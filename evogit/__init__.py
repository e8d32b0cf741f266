"""EvoGit: a population of coding agents improves a code base; the commit graph is the phylogeny."""

from typing import TYPE_CHECKING, Any

from evogit.program import Case, Invalid

if TYPE_CHECKING:
    from evogit.history import History
    from evogit.selection import Move, Selector

__all__ = ["Case", "History", "Invalid", "Move", "Selector"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """What a selector of one's own needs, loaded when it is asked for: evaluators are imported without all that."""
    if name not in ("History", "Move", "Selector"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from evogit import history, selection

    return getattr(history if name == "History" else selection, name)
