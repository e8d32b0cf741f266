"""Who wrote a journal, shown by ssh signatures as Git makes them, for hosts that meet on a server.

A signature is a commit with nothing in it, whose last parent is an entry of a journal: it holds for all entries before
that one, too, as each names the one before it. It costs one call of ssh-keygen a push, whatever that brings.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import pygit2
from msgspec import Struct

from evogit.core import ConfigError, RepositoryError
from evogit.repository.objects import message_of, read_commit
from evogit.repository.person_git import RemoteError, person_git, signing_config, why
from evogit.text import one_line

SIGN = "evogit.sign"  # the setting of Git's that has a clone sign what it pushes
CHECK = "evogit.trustedSigners"  # Git's setting by which journals count only if an allowed signer signed them
ALLOWED = "gpg.ssh.allowedSignersFile"

BEGINNING = b"-----BEGIN SSH SIGNATURE-----"

LONGEST = 60.0  # seconds that a signature, or its check, may take where nobody is asked for a password


class Signature(Struct, frozen=True):
    """A signature of a host's journal: up to which entry, and by whom, as the allowed signers' file calls them."""

    tip: str
    by: str


class Signatures:
    """Signs the journal of one run, and checks those of others, as Git's settings ask. Raises ConfigError."""

    def __init__(self, repo: pygit2.Repository, common: Path, run: str) -> None:
        self._repo = repo
        self._where = common, Path(repo.workdir or common)
        self._run = run
        config = signing_config(*self._where)
        self.signs = _is_on(config, SIGN)
        self.checks = _is_on(config, CHECK)
        self._allowed = Path()
        self._found: dict[tuple[str, str], Signature | str] = {}
        self._as_of = 0
        if self.signs or self.checks:
            program = config.get("gpg.ssh.program") or "ssh-keygen"
            if shutil.which(program) is None:
                raise ConfigError(
                    f"{SIGN} or {CHECK} is set: expected {program} on the PATH; install OpenSSH "
                    "(Debian: openssh-client)"
                )
        if self.signs:
            self._check_key(config)
        if self.checks:
            named = config.get(ALLOWED.lower())
            if not named:
                raise ConfigError(
                    f"{CHECK} is set: expected a file of those who may sign, of each a line with a name and a public "
                    f"ssh key; name it by `git config {ALLOWED} FILE`"
                )
            self._allowed = allowed = self._where[1] / Path(named).expanduser()
            if not os.access(allowed, os.R_OK) or not allowed.is_file():
                raise ConfigError(f"{CHECK} is set: expected {allowed}, which {ALLOWED} names, to be a readable file")

    # --- signing --------------------------------------------------------------------------------------------------

    async def sign(self, host: str, tip: str, before: str | None, *, asks: bool) -> str:
        """Sign a host's journal up to an entry, after the signature `before`; a commit. Raises RemoteError."""
        who = ("-c", f"user.name={host}", "-c", f"user.email={host}@evogit.invalid")
        parents = [word for parent in (before, tip) if parent for word in ("-p", parent)]
        command = (*who, "commit-tree", "-S", "-m", _subject(host, self._run), *parents, f"{tip}^{{tree}}")
        done = await person_git(*self._where, *command, seconds=None if asks else LONGEST, asks=asks)
        if done.code:
            raise RemoteError(f"signing the journal of this clone, as {SIGN} asks for: {why(done.stderr)}")
        return done.stdout.decode().strip()

    def signed_by(self, commit: str | None) -> str:
        """The entry up to which a signature of ours holds; empty for none."""
        found = read_commit(self._repo, commit) if commit else ""
        return "" if isinstance(found, str) or not found.parent_ids else str(found.parent_ids[-1])

    # --- checking -------------------------------------------------------------------------------------------------

    async def check(self, commits: Iterable[tuple[str, str]]) -> None:
        """Look at new signatures (host, commit) by the file as it is now. Raises RemoteError: it takes too long."""
        if not self.checks:
            return
        as_of = self._allowed.stat().st_mtime_ns if self._allowed.exists() else 0
        if as_of != self._as_of:
            self._found.clear()
            self._as_of = as_of
        wanted = set(commits)
        self._found = {each: self._found[each] for each in wanted if each in self._found}
        for each in wanted - self._found.keys():
            self._found[each] = await self._checked(*each)

    async def _checked(self, host: str, commit: str) -> Signature | str:
        found = read_commit(self._repo, commit)
        if isinstance(found, str):
            return f"its signature {found}"
        sign, _ = found.gpg_signature
        if not (sign or b"").lstrip().startswith(BEGINNING) or not found.parent_ids:
            return "its journal is not signed with an ssh key"
        if message_of(found).strip() != _subject(host, self._run):
            return "it has the signature of another journal"
        command = ("-c", "log.showSignature=false", "show", "-s", "--format=%G?%n%GS", commit)
        done = await person_git(*self._where, *command, seconds=LONGEST)
        good, _, who = done.stdout.decode(errors="replace").partition("\n")
        if by := one_line(who.strip(), 100) if not done.code and good == "G" else "":
            return Signature(str(found.parent_ids[-1]), by)
        return f"no one listed in {self._allowed} signed its journal"

    def signed(self, host: str, tips: Mapping[str, str], here: str | None) -> Signature:
        """The signature of a host's journal that came, after the one `here`. Raises RepositoryError: none counts."""
        found = self._found.get((host, tips.get("signed", "")), f"its journal is not signed, as {CHECK} asks for")
        if isinstance(found, str):
            raise RepositoryError(found)
        past = self._found.get((host, here or ""))
        if isinstance(past, Signature) and past.by != found.by:
            raise RepositoryError(f"its journal was signed by {past.by}, and is by {found.by} now")
        return found

    # --- settings -------------------------------------------------------------------------------------------------

    def _check_key(self, config: dict[str, str | None]) -> None:
        if config.get("gpg.format") != "ssh":
            got = config.get("gpg.format") or "none"
            raise ConfigError(
                f"{SIGN} is set, which takes an ssh key: expected the setting gpg.format = ssh, got {got}; "
                "see `git help config`"
            )
        key = config.get("user.signingkey")
        if not key and not config.get("gpg.ssh.defaultkeycommand"):
            raise ConfigError(
                f"{SIGN} is set: expected the ssh key to sign with; name it by "
                "`git config user.signingkey ~/.ssh/id_ed25519.pub`"
            )
        is_name = key and not key.startswith(("ssh-", "key::"))
        if key and is_name and not (self._where[1] / Path(key).expanduser()).is_file():
            raise ConfigError(
                f"{SIGN} is set: expected {key}, which user.signingkey names, to be the file of an ssh key"
            )


def _subject(host: str, run: str) -> str:
    return f"evogit: the journal of {host} in the run {run}"


def _is_on(config: dict[str, str | None], name: str) -> bool:
    """Return True if a setting is on, as Git reads it. Raises ConfigError: it is neither on nor off."""
    if (key := name.lower()) not in config:
        return False
    value = config[key]
    if value is None or value.lower() in ("true", "yes", "on", "1"):
        return True
    if value.lower() in ("false", "no", "off", "0", ""):
        return False
    raise ConfigError(f"expected true or false as the setting {name} of Git, got {value!r}")
