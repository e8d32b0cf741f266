"""Every question and every decision that a person can put to the graph; nothing here prints.

A `StoredRun` goes in, a record comes out, which the faces (terminal, JSON, page, notebook) render. Start with
`json_records.py`; a decision is a file of its own, such as `forking.py` or `landing.py`.
"""

from typing import TYPE_CHECKING

from evogit.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from evogit.review.contributors import contributions
    from evogit.review.decisions import Effect, decide, effect
    from evogit.review.export import Exported
    from evogit.review.graph import Cell, Row, SkeletonEdge, most_telling, rows
    from evogit.review.json_records import SCHEMA, candidate_record, graph_record, status_record
    from evogit.review.runs import agents, kinds, open_run, own_names, resolve
    from evogit.review.spending import (
        Costs,
        EarlierStarts,
        Use,
        choices,
        last_limits,
        last_settings,
        last_start,
        spending_by_model,
        spending_record,
        used,
        uses,
    )

__getattr__ = lazy_exports(
    __name__,
    {
        "contributors": ["contributions"],
        "decisions": ["Effect", "decide", "effect"],
        "export": ["Exported"],
        "graph": ["Cell", "Row", "SkeletonEdge", "most_telling", "rows"],
        "json_records": ["SCHEMA", "candidate_record", "graph_record", "status_record"],
        "runs": ["agents", "kinds", "open_run", "own_names", "resolve"],
        "spending": ["Costs", "EarlierStarts", "Use", "choices", "last_limits", "last_settings", "last_start"]
        + ["spending_by_model", "spending_record", "used", "uses"],
    },
)
