"""Removes everything that a run left in a repository; what people merged of it is theirs and stays."""

from __future__ import annotations

from msgspec import Struct

from evogit.core import NotFoundError, RefusedError
from evogit.repository import Repository, check_run_name


class Remains(Struct, frozen=True, kw_only=True):
    """What there is of a run: refs and what they point to, in the order in which they go; the journals are the last."""

    run: str
    refs: dict[str, str]

    @property
    def branches(self) -> list[str]:
        """Names of the plain branches among them."""
        return [ref.removeprefix("refs/heads/") for ref in self.refs if ref.startswith("refs/heads/")]

    @property
    def human(self) -> list[str]:
        """Those to which people commit, whose work may be nowhere else."""
        return [branch for branch in self.branches if branch.startswith(f"evogit/{self.run}/human/")]


def remains(repository: Repository, run: str) -> Remains:
    """What would be removed.

    Raises:
        NotFoundError: there is no such run.
        RefusedError: an engine is at work, or a branch of the run is checked out in some worktree.
    """
    check_run_name(run)
    found = _found(repository, run)
    if not found.refs:
        there = ", ".join(repository.runs()) or "none"
        raise NotFoundError(f"expected a run of {repository.path}, got {run!r}; there is {there}")
    if engines := repository.engines(run).alive():
        raise RefusedError(f"an engine ({', '.join(engines)}) works on {run}; stop it first, then remove the run")
    return found


def remove(repository: Repository, run: str) -> Remains:
    """Remove all refs of a run, their logs, and its files in the Git directory; says what was removed.

    Raises RefusedError: an engine came, or a branch was checked out meanwhile.
    """
    engines = repository.engines(run)
    with engines.enter(join=False):  # so that none begins now
        repository.clear_locks(run)
        gone = _found(repository, run)
        for ref in gone.refs:
            if not repository.branches.remove(ref):
                raise RefusedError(f"{ref} is checked out; switch to a branch of your own, then remove the run again")
    engines.forget()
    repository.forget_run(run)
    return gone


def _found(repository: Repository, run: str) -> Remains:
    below = repository.branches.below
    notes = {ref: commit for ref, commit in below("refs/notes/evogit/").items() if ref == f"refs/notes/evogit/{run}"}
    found = below(f"refs/heads/evogit/{run}/") | notes | below(f"refs/evogit/{run}/")
    if held := [ref.removeprefix("refs/heads/") for ref in found if repository.branches.checked_out(ref)]:
        raise RefusedError(f"{', '.join(held)} is checked out; switch to a branch of your own first")
    journals = f"refs/evogit/{run}/journal/"
    return Remains(run=run, refs=dict(sorted(found.items(), key=lambda pair: pair[0].startswith(journals))))
