"""Every question and every decision that a person can put to the graph; nothing here prints."""

from evogit.review.decisions import Effect, decide, effect, standing
from evogit.review.export import Exported, export
from evogit.review.facts import SCHEMA, candidate_record, gap_closed, graph_record, status_record
from evogit.review.lanes import Cell, lanes
from evogit.review.runs import agents, open_run, resolve
from evogit.review.skeleton import Edge, Row, expanded, most_telling, rows, skeleton

__all__ = [
    "SCHEMA",
    "Cell",
    "Edge",
    "Effect",
    "Exported",
    "Row",
    "agents",
    "candidate_record",
    "decide",
    "effect",
    "expanded",
    "export",
    "gap_closed",
    "graph_record",
    "lanes",
    "most_telling",
    "open_run",
    "resolve",
    "rows",
    "skeleton",
    "standing",
    "status_record",
]
