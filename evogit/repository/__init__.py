"""All of Git: the only package that imports pygit2. Journals are the truth, branches and notes are projections."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evogit.repository.bundle import Step
    from evogit.repository.changes import Change, ChangedLines, Hunk
    from evogit.repository.conflicts import Choose, Conflict, MergeImpossibleError, Settlement, Settler, Side
    from evogit.repository.directives import inert, inert_markdown
    from evogit.repository.folders import tracked_below
    from evogit.repository.hunks import count_markers
    from evogit.repository.journal import BEGINNING, Journal, Position, StaleError
    from evogit.repository.journal_records import AGENT_NAME
    from evogit.repository.merge import Merged, Merger, UnsettledMerge
    from evogit.repository.messages import clean, clean_title, reason_in
    from evogit.repository.packing import Packer
    from evogit.repository.paths import UnfitChangeError, check_path, twins
    from evogit.repository.repository import RESERVED, Repository, check_run_name
    from evogit.repository.trees import EXECUTABLE, FILE, GITLINK, LINK, TreeEntry, blob_id

_HOMES = {
    "bundle": ("Step",),
    "changes": (
        "Change",
        "ChangedLines",
        "Hunk",
    ),
    "conflicts": (
        "Choose",
        "Conflict",
        "MergeImpossibleError",
        "Settlement",
        "Settler",
        "Side",
    ),
    "directives": (
        "inert",
        "inert_markdown",
    ),
    "folders": ("tracked_below",),
    "hunks": ("count_markers",),
    "journal": (
        "BEGINNING",
        "Journal",
        "Position",
        "StaleError",
    ),
    "journal_records": ("AGENT_NAME",),
    "merge": (
        "Merged",
        "Merger",
        "UnsettledMerge",
    ),
    "messages": (
        "clean",
        "clean_title",
        "reason_in",
    ),
    "packing": ("Packer",),
    "paths": (
        "UnfitChangeError",
        "check_path",
        "twins",
    ),
    "repository": (
        "RESERVED",
        "Repository",
        "check_run_name",
    ),
    "trees": (
        "EXECUTABLE",
        "FILE",
        "GITLINK",
        "LINK",
        "TreeEntry",
        "blob_id",
    ),
}
"""Module -> what it gives to other rooms; loaded when asked for, as who reads a run has no use for merging.

What is called like its module (`bundle`, `ignored`) is not here: a package has its modules as attributes, too.
"""

__all__ = [
    "AGENT_NAME",
    "BEGINNING",
    "Change",
    "ChangedLines",
    "Choose",
    "Conflict",
    "EXECUTABLE",
    "FILE",
    "GITLINK",
    "Hunk",
    "Journal",
    "LINK",
    "MergeImpossibleError",
    "Merged",
    "Merger",
    "Packer",
    "Position",
    "RESERVED",
    "Repository",
    "Settlement",
    "Settler",
    "Side",
    "StaleError",
    "Step",
    "TreeEntry",
    "UnfitChangeError",
    "UnsettledMerge",
    "blob_id",
    "check_path",
    "check_run_name",
    "clean",
    "clean_title",
    "count_markers",
    "inert",
    "inert_markdown",
    "reason_in",
    "tracked_below",
    "twins",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
