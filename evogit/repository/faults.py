"""What libgit2 and the system say about a failed write, as a sentence with a way on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pygit2

from evogit.core import RepositoryError


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Around the writing of `what`.

    Raises:
        RepositoryError: when the disk is full, a permission is missing, or objects that should be there are gone.
    """
    try:
        yield
    except (pygit2.GitError, OSError) as error:
        raise RepositoryError(
            f"cannot write {what} to the repository: {str(error).strip(': ')}; make room or mend it, then run again: "
            "nothing that was recorded is lost"
        ) from error
