"""A person's branches and commits: what they name, what is checked out, and refs of ours that are made or removed."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path

import pygit2

from evogit.core import NotFoundError, RefusedError
from evogit.repository import refs
from evogit.repository.faults import written
from evogit.repository.objects import named_errors, parents_of, read_commit
from evogit.repository.state_folder import read_line

HEADS = "refs/heads/"


class Branches:
    """Reads a person's branches and never moves one that is checked out in any worktree."""

    def __init__(self, repo: pygit2.Repository, common: Path) -> None:
        self._repo = repo
        self._common = common

    # --- reading ------------------------------------------------------------------------------------------------

    def current(self) -> str | None:
        """The branch (a whole ref) that HEAD names, None when HEAD is a mere commit."""
        target = self._repo.lookup_reference("HEAD").raw_target
        return target.decode(errors="replace") if isinstance(target, bytes) else None

    def commit(self, revision: str) -> str:
        """The commit that any revision of Git's names. Raises NotFoundError: it names none."""
        try:
            return str(self._repo.revparse_single(revision).peel(pygit2.Commit).id)
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise NotFoundError(f"expected a commit, branch or tag of this repository, got {revision!r}") from error

    def parents(self, commit: str) -> tuple[str, ...]:
        """The commit's parents in Git; none where a shallow clone ends."""
        return parents_of(self._repo, commit)

    def ours(self, commit: str) -> bool:
        """Whether EvoGit wrote the commit, so that it is not a person's work."""
        found = read_commit(self._repo, commit)
        return not isinstance(found, str) and found.committer.raw_email.endswith(b"@evogit.invalid")

    def contains(self, tip: str, commit: str) -> bool:
        """Whether `commit` is `tip` or an ancestor of it."""
        if any(isinstance(read_commit(self._repo, name), str) for name in (tip, commit)):
            return False
        with named_errors(f"the history of {commit[:10]}"):
            return tip == commit or self._repo.descendant_of(tip, commit)

    def ahead(self, tip: str, commit: str) -> int:
        """How many commits a tip has that a commit of its history does not."""
        with named_errors(f"the history of {commit[:10]}"):
            return self._repo.ahead_behind(tip, commit)[0]

    def fork(self, a: str, b: str) -> str | None:
        """The commit at which two histories parted, None when they have nothing in common."""
        with named_errors(f"the history of {b[:10]}"):
            found = self._repo.merge_base(a, b)
        return str(found) if found else None

    def checked_out(self, ref: str) -> bool:
        """Return True if a worktree has the branch checked out, without opening the repository again."""
        return self.worktree(ref) is not None

    def worktree(self, ref: str) -> Path | None:
        """The folder of the worktree that has the branch checked out, None if none has."""
        linked = self._common / "worktrees"
        for head in (self._common / "HEAD", *sorted(linked.glob("*/HEAD") if linked.is_dir() else ())):
            with suppress(FileNotFoundError):  # it is removed just now
                if read_line(head) != f"ref: {ref}":
                    continue
                if head.parent != self._common:
                    return Path(read_line(head.with_name("gitdir"))).parent
                if not pygit2.Repository(str(self._common)).is_bare:  # seen from a linked worktree, it is never bare
                    return self._common.parent
        return None

    def below(self, folder: str) -> dict[str, str]:
        """Every ref whose name begins with `folder`, which ends in a slash, and the object it points to."""
        found = ((name, refs.target(self._repo, name)) for name in self._repo.references if name.startswith(folder))
        return {name: target for name, target in found if target}

    def stamp(self, folder: str) -> object:
        """Something that differs once a ref below `folder` was written; costs less than to list all refs."""
        found = []
        for file in (self._common / "packed-refs", *sorted(refs.below(self._common, folder.rstrip("/")))):
            with suppress(FileNotFoundError):
                about = file.stat()
                found.append((file, about.st_ino, about.st_mtime_ns))
        return found

    def remote(self, ref: str) -> str:
        """The name of the remote that a branch is pushed to: its own, else `origin`, else the only one or none."""
        name = ref.removeprefix(HEADS)
        with suppress(KeyError):
            own = str(self._repo.config[f"branch.{name}.remote"])
            if not own.startswith("-"):  # git would take it for an option
                return own
        names = self.remotes()
        return names[0] if len(names) == 1 else "origin"

    def remotes(self) -> list[str]:
        """Return the names of the remotes that Git's settings have, without those that look like options."""
        return [name for name in self._repo.remotes.names() if name and not name.startswith("-")]

    # --- writing ------------------------------------------------------------------------------------------------

    def write_commit(self, tree: str, parents: tuple[str, ...], message: str) -> str:
        """A commit by the person; no ref moves. Raises RefusedError: Git does not know the person."""
        who = self.person()
        write = partial(self._repo.create_commit, None, who, who, message, tree, list(parents))
        return str(written("a commit", self._repo, write))

    def person(self) -> pygit2.Signature:
        """Return the committer with the current time. Raises RefusedError: Git does not know the user."""
        try:
            return self._repo.default_signature
        except (KeyError, pygit2.GitError) as error:
            raise RefusedError(
                "expected Git to know who you are, as the commit is yours; "
                "set `git config user.name NAME` and `git config user.email ADDRESS`"
            ) from error

    def remove(self, ref: str) -> bool:
        """Delete a ref with its log and the folders that are empty then; a branch that is checked out stays (False)."""
        if self.checked_out(ref):
            return False
        with suppress(KeyError):
            self._repo.references.delete(ref)
        for root in (self._common, self._common / "logs"):
            folder = (root / ref).parent
            while folder not in (root / "refs", root / "refs/heads"):
                try:
                    folder.rmdir()
                except FileNotFoundError:  # its refs were packed
                    pass
                except OSError:  # something else is in it
                    break
                folder = folder.parent
        return True
