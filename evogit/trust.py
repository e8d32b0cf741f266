"""The things from elsewhere that the user of this machine agreed to run, believe or pay for.

Whatever comes with a repository, task folder, archive, journal, remote or worker is data until it is trusted here. A
folder is trusted by its path, so edits keep the trust; everything else is trusted by digest. The records lie in the
user's state folder, never in a Git folder, which an archive can bring along.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

from evogit.core import NotFoundError, RefusedError, RepositoryError
from evogit.text import escape

DIGEST_DIGITS = 32
"""Hex digits of a claim's digest: 128 bits of SHA-256."""

EFFECT_CHARS = 2000
"""Characters of an effect that are shown; parts of it may be a stranger's. No question is about a longer one."""

Kind = Literal["task", "repository", "folder", "tree", "sent", "key", "run", "start", "settings", "code"]
"""The task.toml in a folder, which was made here; the same for an evogit.toml; a folder without the repositories below
it; a folder with them; a folder whose files may be sent to models; the key of a run; a run without a key that began
elsewhere; a start of an engine that the user made here; the agents of one made elsewhere; a file of code as it is."""


PATHS: tuple[Kind, ...] = ("task", "repository", "folder", "tree")
"""Kinds whose subject is the path of a folder."""


class Claim(Struct, frozen=True):
    """Something that has no effect until the user trusts it.

    `subject` identifies it: a resolved path, or what a digest is made of; `effect` is what would happen, as one clause.
    """

    kind: Kind
    subject: str
    effect: str = ""

    @property
    def digest(self) -> str:
        """The name of its record."""
        return hashlib.sha256(f"{self.kind}\0{self.subject}".encode(errors="surrogateescape")).hexdigest()[
            :DIGEST_DIGITS
        ]

    @property
    def argument(self) -> str:
        """The argument with which `evogit trust` grants it."""
        return self.subject if self.kind in PATHS else self.digest

    @property
    def shown(self) -> str:
        """The effect in one line, as far as it is shown."""
        line = escape(self.effect)
        return line if len(line) <= EFFECT_CHARS else f"{line[:EFFECT_CHARS]} ... (too long to be shown whole)"

    @property
    def is_shown_whole(self) -> bool:
        """Return whether the user sees all of the effect, and so can agree to it."""
        return len(escape(self.effect)) <= EFFECT_CHARS


class UntrustedError(RefusedError):
    """Something from elsewhere would run, count or cost before the user agreed to it."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self.claims = tuple(claims)
        effects = "".join(f"\n  {claim.shown}" for claim in claims)
        super().__init__(f"EvoGit did not make this here, and you have not trusted it:{effects}\n{self.way_on}")

    @property
    def way_on(self) -> str:
        """The command that grants what is missing, or what to do where there is none."""
        long = [claim for claim in self.claims if not claim.is_shown_whole]
        if any(claim.kind not in PATHS for claim in long):
            return "what is not shown cannot be agreed to: name agents and a selector of your own"
        if odd := next((claim.argument for claim in self.claims if not claim.argument.isprintable()), ""):
            return f"rename {escape(odd)} first: its name has characters that are not seen"
        arguments = " ".join(dict.fromkeys(shlex.quote(claim.argument) for claim in self.claims))
        return f"if you trust it{', once you read all of it there' if long else ''}: evogit trust {arguments}"


def state_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the user's own files that are not settings: evogit/ in $XDG_STATE_HOME or ~/.local/state."""
    named = Path(environ.get("XDG_STATE_HOME", ""))
    home = Path(environ.get("HOME") or "~").expanduser()
    return (named if named.is_absolute() else home / ".local" / "state") / "evogit"


class Trust:
    """The records of what a user trusts: one file per claim, named by the claim's digest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of_user(cls, environ: Mapping[str, str] = os.environ) -> Trust:
        """The records of the user whose environment this is."""
        return cls(state_folder(environ) / "trust")

    def accepts(self, claim: Claim) -> bool:
        """Return whether the user trusts this claim."""
        return (self.folder / claim.digest).is_file()

    def covers(self, folder: Path, made: Kind | None = None) -> bool:
        """Return whether a folder is trusted: itself, one around it in the same repository, or a tree around it.

        `made` is the kind of the task that is meant; then one of this kind that was made here is trusted, too.
        """
        inside = True
        folder = folder.resolve()
        if made and self.accepts(Claim(made, str(folder))):
            return True
        for place in (folder, *folder.parents):
            kinds: tuple[Kind, ...] = ("folder", "tree") if inside else ("tree",)
            if any(self.accepts(Claim(kind, str(place))) for kind in kinds):
                return True
            inside = inside and not _is_repository(place)
        return False

    def check(self, claims: Iterable[Claim]) -> None:
        """Refuse claims that the user does not trust. Raises UntrustedError: naming all that are missing."""
        if missing := [claim for claim in claims if not self.accepts(claim)]:
            self.offer(missing)
            raise UntrustedError(missing)

    def offer(self, claims: Iterable[Claim]) -> None:
        """Remember claims that a refusal shows, so that the user can trust them by digest; no others can be."""
        for claim in claims:
            if claim.kind not in PATHS and claim.is_shown_whole:
                with suppress(RepositoryError):  # nothing can be trusted then, as `evogit trust` will say
                    self._write(self._offers, claim)

    def add(self, claim: Claim) -> None:
        """Record that the user trusts a claim. Raises RepositoryError: the state folder cannot be written to."""
        self._write(self.folder, claim)

    def add_task(self, folder: Path) -> None:
        """Trust the task in a folder, which was made here; what else lies in the folder may be a stranger's."""
        self.add(Claim("task", str(folder.resolve())))

    def offered(self, digest: str) -> Claim:
        """Return the claim with this digest that a refused command showed here. Raises NotFoundError: none did."""
        file = self._offers / digest
        if not file.is_file():
            raise NotFoundError(
                f"no command was refused here for want of {digest}; run it again to see what it is about"
            )
        record = json.loads(file.read_text(encoding="utf-8"))
        return Claim(record["kind"], record["subject"], record["effect"])

    @property
    def _offers(self) -> Path:
        return self.folder / "offers"

    def _write(self, folder: Path, claim: Claim) -> None:
        draft = folder / f".{claim.digest}.{os.getpid()}"
        record = {"kind": claim.kind, "subject": claim.subject, "effect": claim.effect, "time": int(time.time())}
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft.write_text(json.dumps(record), encoding="utf-8")
            draft.replace(folder / claim.digest)
        except OSError as error:
            raise RepositoryError(
                f"expected to be allowed to record what you trust in {self.folder}: {error.strerror}; set "
                "XDG_STATE_HOME to a folder of yours"
            ) from error

    def remove(self, argument: str) -> bool:
        """Forget a folder or a digest; return whether there was such a record."""
        path = str(Path(argument).resolve())
        digests = [argument, *(Claim(kind, path).digest for kind in get_args(Kind))]
        files = [self.folder / digest for digest in digests if is_digest(digest)]
        found = [file for file in files if file.is_file()]
        for file in found:
            file.unlink(missing_ok=True)
        return bool(found)

    def records(self) -> Iterator[Mapping[str, str]]:
        """Yield all records, oldest first; each has `kind`, `subject`, `effect`, `time` and `digest`."""
        files = [file for file in self.folder.glob("*") if is_digest(file.name)] if self.folder.is_dir() else []
        for file in sorted(files, key=lambda file: (file.stat().st_mtime, file.name)):
            yield {**json.loads(file.read_text(encoding="utf-8")), "digest": file.name}


def _is_repository(folder: Path) -> bool:
    return (folder / ".git").exists() or all((folder / name).exists() for name in ("HEAD", "objects", "refs"))


def is_digest(text: str) -> bool:
    """Return whether a text has the form of a claim's digest."""
    return len(text) == DIGEST_DIGITS and all(digit in "0123456789abcdef" for digit in text)
