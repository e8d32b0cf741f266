"""Every question and every decision that a person can put to the graph; nothing here prints."""

from evogit.review.beginning import beginning
from evogit.review.choosing import choices
from evogit.review.contributing import contributions
from evogit.review.decisions import Effect, decide, effect
from evogit.review.export import Exported, export
from evogit.review.facts import SCHEMA, candidate_record, gap_closed, graph_record, status_record
from evogit.review.lanes import Cell, lanes
from evogit.review.runs import agents, kinds, open_run, own_names, resolve
from evogit.review.skeleton import Row, SkeletonEdge, expanded, most_telling, rows, skeleton
from evogit.review.spending import (
    TOTALS,
    Use,
    last_asking_start,
    last_start,
    spending_by_model,
    spending_record,
    used,
    uses,
)

__all__ = [
    "SCHEMA",
    "TOTALS",
    "Cell",
    "SkeletonEdge",
    "Effect",
    "Exported",
    "Row",
    "Use",
    "agents",
    "beginning",
    "candidate_record",
    "choices",
    "contributions",
    "decide",
    "effect",
    "expanded",
    "export",
    "gap_closed",
    "graph_record",
    "kinds",
    "lanes",
    "last_asking_start",
    "last_start",
    "most_telling",
    "open_run",
    "own_names",
    "resolve",
    "rows",
    "skeleton",
    "spending_by_model",
    "spending_record",
    "status_record",
    "used",
    "uses",
]
