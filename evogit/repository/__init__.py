"""All of Git: the only package that imports pygit2. Journals are the truth, branches and notes follow from them.

Start with `repository.py`; `journal.py` appends and reads events, `trees.py` reads and writes files, `merge.py` merges.
"""

from typing import TYPE_CHECKING

from evogit.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from evogit.repository.bundle import Step
    from evogit.repository.changes import ChangedLines
    from evogit.repository.conflicts import (
        Choose,
        Conflict,
        MergeImpossibleError,
        Settlement,
        Settler,
        Side,
        count_markers,
    )
    from evogit.repository.git import Packer
    from evogit.repository.ignored import tracked_below
    from evogit.repository.journal import BEGINNING, Journal, Position, StaleError
    from evogit.repository.journal_records import AGENT_NAME
    from evogit.repository.merge import Merged, Merger, UnsettledMerge
    from evogit.repository.messages import clean, clean_title, inert, inert_markdown, reason_in
    from evogit.repository.paths import UnfitChangeError, check_path, twins
    from evogit.repository.repository import RESERVED, Repository, check_run_name
    from evogit.repository.trees import EXECUTABLE, FILE, GITLINK, LINK, TreeEntry, blob_id

__getattr__ = lazy_exports(
    __name__,
    {
        "bundle": ["Step"],
        "changes": ["ChangedLines"],
        "conflicts": ["Choose", "Conflict", "MergeImpossibleError", "Settlement", "Settler", "Side", "count_markers"],
        "git": ["Packer"],
        "ignored": ["tracked_below"],
        "journal": ["BEGINNING", "Journal", "Position", "StaleError"],
        "journal_records": ["AGENT_NAME"],
        "merge": ["Merged", "Merger", "UnsettledMerge"],
        "messages": ["clean", "clean_title", "inert", "inert_markdown", "reason_in"],
        "paths": ["UnfitChangeError", "check_path", "twins"],
        "repository": ["RESERVED", "Repository", "check_run_name"],
        "trees": ["EXECUTABLE", "FILE", "GITLINK", "LINK", "TreeEntry", "blob_id"],
    },
)
