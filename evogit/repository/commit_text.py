"""What a commit says, read as it is: one of a stranger's may claim an encoding that nobody knows."""

from __future__ import annotations

import pygit2


def message_of(commit: pygit2.Commit) -> str:
    """The message, as UTF-8, which all of ours are."""
    return commit.raw_message.decode(errors="replace")


def committer_of(commit: pygit2.Commit) -> str:
    """The committer's name, which in a journal is the host."""
    return commit.committer.raw_name.decode(errors="replace")
