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
    """Return what would be removed. Raises NotFoundError, RefusedError: there is no such run, or it is in use."""
    check_run_name(run)
    found = _found(repository, run)
    if not found.refs:
        there = ", ".join(repository.runs()) or "none"
        raise NotFoundError(f"expected a run of {repository.path}, got {run!r}; there is {there}")
    if engines := repository.engines(run).alive():
        raise RefusedError(f"an engine ({', '.join(engines)}) works on {run}; stop it first, then remove the run")
    return found


def remove(repository: Repository, run: str) -> Remains:
    """Remove a run's refs, logs and files; says what. Raises RefusedError: an engine or a checkout is in the way."""
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
