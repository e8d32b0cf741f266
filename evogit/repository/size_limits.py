"""How much candidates may differ from their seed: everything that looks at one takes the longer the more that is."""

from __future__ import annotations

from evogit.repository.paths import UnfitChangeError
from evogit.repository.trees import GITLINK, Trees

MOST_FILES = 500
"""Files that differ: each takes about 0.1 ms wherever they are listed, packed or compared."""

MOST_BYTES = 8 << 20
"""Bytes of what is new or changed in them: libgit2 reads 1 MB in 5 to 10 ms."""


def check_extent(trees: Trees, seed: str, tree: str, most: int = MOST_BYTES) -> None:
    """Refuse a tree that differs from a seed in too much.

    Raises:
        UnfitChangeError: saying by how much.
    """
    found = [new for _, new in trees.differences(seed, tree)]
    size = sum(trees.size(entry.blob) for entry in found if entry and entry.mode != GITLINK)
    if len(found) > MOST_FILES or size > most:
        much = f"{len(found):,} files" if len(found) > MOST_FILES else f"{size:,} bytes"
        raise UnfitChangeError(
            f"expected a candidate that differs from the seed in {MOST_FILES:,} files and {most:,} bytes of them "
            f"at most, got {much}"
        )
