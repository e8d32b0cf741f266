"""Every question and every decision that a person can put to the graph; nothing here prints."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evogit.review.contributors import contributions
    from evogit.review.decisions import Effect, decide, effect
    from evogit.review.export import Exported
    from evogit.review.graph import Cell, Row, SkeletonEdge, expanded, most_telling, rows
    from evogit.review.json_records import SCHEMA, candidate_record, graph_record, status_record
    from evogit.review.model_choice import choices
    from evogit.review.runs import agents, kinds, open_run, own_names, resolve
    from evogit.review.spending import (
        EarlierStarts,
        Use,
        last_limits,
        last_settings,
        last_start,
        spending_by_model,
        spending_record,
        used,
        uses,
    )

_HOMES = {
    "model_choice": ("choices",),
    "contributors": ("contributions",),
    "decisions": (
        "Effect",
        "decide",
        "effect",
    ),
    "export": ("Exported",),
    "json_records": (
        "SCHEMA",
        "candidate_record",
        "graph_record",
        "status_record",
    ),
    "runs": (
        "agents",
        "kinds",
        "open_run",
        "own_names",
        "resolve",
    ),
    "graph": (
        "Cell",
        "Row",
        "SkeletonEdge",
        "expanded",
        "most_telling",
        "rows",
    ),
    "spending": (
        "Use",
        "EarlierStarts",
        "last_limits",
        "last_settings",
        "last_start",
        "spending_by_model",
        "spending_record",
        "used",
        "uses",
    ),
}
"""Module -> what it gives to other rooms; loaded when asked for, as no command needs all of it.

What is called like its module (`export`, `lanes`, ...) is not here: a package has its modules as attributes, too.
"""

__all__ = [
    "SCHEMA",
    "Cell",
    "SkeletonEdge",
    "Effect",
    "Exported",
    "Row",
    "Use",
    "agents",
    "candidate_record",
    "choices",
    "contributions",
    "decide",
    "effect",
    "expanded",
    "graph_record",
    "kinds",
    "EarlierStarts",
    "last_limits",
    "last_settings",
    "last_start",
    "most_telling",
    "open_run",
    "own_names",
    "resolve",
    "rows",
    "spending_by_model",
    "spending_record",
    "status_record",
    "used",
    "uses",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
