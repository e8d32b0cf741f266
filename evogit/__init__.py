"""EvoGit: a population of coding agents improves a code base; the commit graph is the phylogeny."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evogit.agents import Brief, NoUsableChangeError, Proposal
    from evogit.evaluation.program import Case, Invalid
    from evogit.history import History
    from evogit.selection import Move, Selector

__all__ = ["Brief", "Case", "History", "Invalid", "Move", "NoUsableChangeError", "Proposal", "Selector"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """What evaluators, agents and selectors need, loaded when asked for: no program loads what it does not use."""
    modules = {"History": "history", "Move": "selection", "Selector": "selection"}
    modules |= dict.fromkeys(("Case", "Invalid"), "evaluation.program")
    modules |= dict.fromkeys(("Brief", "NoUsableChangeError", "Proposal"), "agents")
    if name not in modules:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"evogit.{modules[name]}"), name)
