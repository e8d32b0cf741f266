"""Tasks of other systems, as they are: recognised, read into EvoGit's words, and written as task folders."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evogit.adopt.finding import find_task, recognise
    from evogit.adopt.foreign_task import ForeignTask

_HOMES = {"foreign_task": ("ForeignTask",), "finding": ("find_task", "recognise")}
"""Module -> what it gives to other rooms; loaded when asked for."""

__all__ = ["ForeignTask", "find_task", "recognise"]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
