"""A run on a Git server: what each host pushes there, and what it fetches of others.

Each host writes its own refs alone, here and there, and only forwards (but for its own `keep` after `evogit clean
RUN`). What a server has is fetched to refs of ours below `fetched/`, looked at, and then taken in (arrivals.py).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pygit2
from msgspec import Struct
from msgspec.structs import replace

from evogit.core import RepositoryError
from evogit.credentials import SeedSecrets
from evogit.repository import refs
from evogit.repository.arrivals import HOST, KINDS, Arrivals, Sealed, chain
from evogit.repository.branches import Branches
from evogit.repository.git_files import is_borrowing
from evogit.repository.keeping import is_link
from evogit.repository.objects import held, latest, named_errors
from evogit.repository.paths import named
from evogit.repository.person_git import RemoteError, check_address, person_git, receiving, shown, why
from evogit.repository.signatures import Signatures
from evogit.repository.state_files import Contact, contact_folder, note_contact, read_contact
from evogit.repository.state_folder import StateFolder
from evogit.text import one_line
from evogit.trust import Claim, Trust, UntrustedError

PREFIXES = ("refs/evogit/", "refs/heads/evogit/")  # some servers refuse all but branches and tags
BLOCKED = "cannot lock ref"  # of `git fetch`, if something of ours is in the way of some refs
MAX_NOTES = 20  # sentences about hosts of one run that are kept, as anybody may push thousands of refs
CLAIMS = 200  # entries of a stranger's journal that are looked at, the latest ones


class Exchanged(Struct, frozen=True):
    """What one fetch and push did: entries of others that came, refs of ours that went."""

    came: int = 0
    went: int = 0
    notes: Sequence[str] = ()


class Stranger(Struct, frozen=True):
    """A journal on a server that nobody vouches for: its last entry, what the latest say, and what its host keeps."""

    host: str
    tip: str
    events: Iterator[object]
    held: frozenset[str]


class _DeclinedError(RemoteError):
    """The server takes no refs of that kind."""


class Remote:
    """One run on one server, which is named as for `git push`: a remote of the repository's, or an address."""

    def __init__(
        self,
        repo: pygit2.Repository,
        common: Path,
        run: str,
        host: str,
        name: str,
        sealed: Sealed,
        keyed: Callable[[], bool],
        secrets: Callable[[], SeedSecrets | None],
    ) -> None:
        """`keyed`: whether the run's key is here and the user's; `secrets` is asked before the first push."""
        self._repo, self._common, self._run, self._host = repo, common, run, host
        self._where = common, Path(repo.workdir or common)
        self._name = check_address(name)
        self._state = StateFolder(common)
        plain = re.fullmatch(r"[A-Za-z0-9_-]+", name)
        place = name if plain else f"at-{hashlib.sha256(name.encode()).hexdigest()[:10]}"
        self._staged = f"refs/evogit/{run}/fetched/{place}/"
        self._sealed, self._keyed, self._secrets = sealed, keyed, secrets
        self._checked = False
        self._signatures = Signatures(repo, common, run)
        self._arrivals = Arrivals(repo, common, run, host, sealed, self._signed, keyed)
        self.shown = shown(name)

    @property
    def contact(self) -> Contact:
        """How it stands, as far as anybody noted that here."""
        found = read_contact(self._state, self._run)
        if not found or found.remote != self.shown:
            return Contact(self.shown)
        return found if found.prefix in PREFIXES else replace(found, prefix="")

    # --- exchanging -----------------------------------------------------------------------------------------------

    async def exchange(
        self, known: Callable[[], Callable[[str], bool]], *, seconds: float | None, asks: bool = False
    ) -> Exchanged:
        """Fetch what others pushed, then push; `known` is asked after fetching. Raises RemoteError, RepositoryError."""
        with self._alone(wait=asks) as alone, named_errors(f"what {self.shown} has"):
            if not alone:
                return Exchanged()
            try:
                lost = await self._fetch(seconds, asks=asks)
                hosts = ((host, tips) for staged in self._fetched() for host, tips in staged.items())
                signed = [(host, (tips.get("signed"), self._known("signed", host))) for host, tips in hosts]
                fit = [(host, tip) for host, tips in signed for tip in tips if tip and HOST.fullmatch(host)]
                await self._signatures.check(fit)
                came, notes, is_known = 0, list[str](), known()
                for staged in self._fetched():
                    entries, left = self._arrivals.take(staged, is_known)
                    came += entries
                    notes += left
                if (more := len(notes) - MAX_NOTES) > 0:
                    notes[MAX_NOTES:] = [f"and {more:,} more that were left as they were"]
                if self._signatures.signs and not self._keyed():
                    notes.append("signed nothing, as this clone has no key of the run that you trust")
                notes += lost
                went = await self._push(seconds, asks=asks)
            except RemoteError as error:
                past = self.contact
                since = past.failing or time.time()
                self._note(replace(past, failing=since, tries=past.tries + 1, why=str(error)))
                raise
            met = replace(self.contact, met=time.time(), failing=0.0, tries=0, why="", notes=tuple(notes))
            self._note(met)
            return Exchanged(came, went, notes)

    async def _fetch(self, seconds: float | None, *, asks: bool) -> list[str]:
        """Fetch what the server has, and forget what it has no more; what was in the way of some of it."""
        refs.clear_locks(self._common, self._staged.rstrip("/"), 0.0)  # of a git that was killed: this one is alone
        places = [(prefix, kind) for prefix in PREFIXES for kind in KINDS]
        specs = [f"+{prefix}{self._run}/{kind}/*:{self._stage(prefix)}{kind}/*" for prefix, kind in places]
        options = ("--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--refmap=", "--no-recurse-submodules")
        done = await person_git(*self._where, "fetch", *options, "--", self._name, *specs, seconds=seconds, asks=asks)
        if done.code and BLOCKED not in done.stderr:
            raise RemoteError(f"fetching from {self.shown}: {why(done.stderr)}")
        return [f"fetched all but some of {self.shown}: {why(done.stderr)}"] if done.code else []

    def strangers(self, known: Container[str]) -> Iterator[Stranger]:
        """Yield, after an exchange, each journal without a seal or signature that counts; not those `known`."""
        for host, tips in (each for staged in self._fetched() for each in staged.items()):
            tip = tips.get("journal")
            if tip is None or tip in known or host == self._host or not HOST.fullmatch(host):
                continue
            try:
                self._signed(host, tips)
            except RepositoryError:
                is_believed = False
            else:
                is_believed = self._sealed(host, tip)
            if not is_believed:
                kept = held(self._repo, tips["keep"], CLAIMS) if "keep" in tips else frozenset[str]()
                yield Stranger(host, tip, latest(self._repo, tip, CLAIMS), kept)

    def _signed(self, host: str, tips: Mapping[str, str]) -> str | None:
        return self._signatures.signed(host, tips, self._known("signed", host)).tip if self._signatures.checks else None

    def _fetched(self) -> list[dict[str, dict[str, str]]]:
        """What the server had, below each prefix: host -> kind -> commit."""
        found: dict[str, dict[str, dict[str, str]]] = {}
        for ref in [name for name in self._repo.references if name.startswith(self._staged)]:
            place, _, rest = ref.removeprefix(self._staged).partition("/")
            kind, _, host = rest.partition("/")
            if host and (tip := refs.target(self._repo, ref)):
                found.setdefault(place, {}).setdefault(host, {})[kind] = tip
        return list(found.values())

    # --- pushing --------------------------------------------------------------------------------------------------

    async def _push(self, seconds: float | None, *, asks: bool) -> int:
        """Push our refs below the first prefix that the server takes; how many moved there."""
        journal = self._ours("journal")  # first, as all that it names is kept by now
        if journal is None:
            return 0
        if not self._checked:  # whatever a note says, which an archive may bring along
            folder = self._where[1]
            if not self._keyed() and is_borrowing(self._common) and not Trust.of_user().covers(folder):
                effect = f"objects of another repository, where .git/objects leads, may be pushed to {self.shown}"
                raise UntrustedError([Claim("folder", str(folder.resolve()), effect)])
            await self._check_credentials(seconds, asks=asks)
            self._checked = True
        signed = await self._sign(journal, asks=asks)
        tips = {"keep": self._ours("keep"), "thinned": self._ours("thinned"), "signed": signed, "journal": journal}
        proven = self.contact.prefix
        for prefix in [proven] if proven else PREFIXES:
            try:
                went = await self._push_below(prefix, tips, seconds, asks=asks)
            except _DeclinedError:
                if prefix == (proven or PREFIXES[-1]):
                    raise
            else:
                if not proven:
                    self._note(replace(self.contact, prefix=prefix))
                return went
        return 0

    async def _check_credentials(self, seconds: float | None, *, asks: bool) -> None:
        """Refuse a push that would publish credentials of the seed, unless the server has that commit already."""
        secrets = self._secrets()
        if secrets is None or not secrets.paths:
            return
        done = await person_git(*self._where, "ls-remote", "--quiet", "--", self._name, seconds=seconds, asks=asks)
        if done.code:
            raise RemoteError(f"asking {self.shown}: {why(done.stderr)}")
        tips = {line.partition("\t")[0] for line in done.stdout.decode(errors="replace").splitlines()}
        branches = Branches(self._repo, self._common)
        if not any(branches.contains(tip, secrets.seed) for tip in tips):
            raise RemoteError(
                f"pushing to {self.shown} would publish {one_line(named(secrets.paths), 300)} of {secrets.seed[:10]}, "
                "which hold credentials; push that commit yourself, or name them in `shared` of the task's file"
            )

    async def _sign(self, journal: str, *, asks: bool) -> str | None:
        """The signature of our journal, made where the person's settings ask for it and it holds for less."""
        ours = self._ours("signed")
        own = self._keyed() and self._sealed(self._host, journal)  # a stranger's journal may have this clone's name
        if not own or not self._signatures.signs or self._signatures.signed_by(ours) == journal:
            return ours
        there = (found for prefix in PREFIXES if (found := self._there(prefix, "signed")))
        made = await self._signatures.sign(self._host, journal, ours or next(there, None), asks=asks)
        refs.move(self._repo, self._common, f"refs/evogit/{self._run}/signed/{self._host}", made)
        return made

    async def _push_below(self, prefix: str, tips: dict[str, str | None], seconds: float | None, *, asks: bool) -> int:
        moves = [(kind, tip) for kind, tip in tips.items() if tip and tip != self._there(prefix, kind)]
        if not moves:
            return 0
        there, here = self._there(prefix, "journal"), self._ours("journal")
        if there and here and chain(self._repo, here, there) is None:
            raise RemoteError(
                f"{self.shown} has another journal of the host {self._host}: this clone is a copy of one that pushes, "
                "too, or somebody wrote there; make a clone of its own by `git clone`, with the run's key"
            )
        options = ("--porcelain", "--no-verify", "--no-follow-tags")
        leases = list[str]()
        old, new = self._there(prefix, "keep"), dict(moves).get("keep")
        if old and new and chain(self._repo, new, old, is_link) is None:  # thinned since: that one alone gives way
            leases = [f"--force-with-lease={prefix}{self._run}/keep/{self._host}:{old}"]
        specs = [f"{tip}:{prefix}{self._run}/{kind}/{self._host}" for kind, tip in moves]
        command = ("push", *options, *await receiving(*self._where, self._name), *leases, "--", self._name, *specs)
        done = await person_git(*self._where, *command, seconds=seconds, asks=asks)
        refused = [line for line in done.stdout.decode(errors="replace").splitlines() if line.startswith("!")]
        if done.code and refused and all("[remote rejected]" in line for line in refused):
            raise _DeclinedError(f"{self.shown} takes no refs below {prefix}: {why(refused[0].split(chr(9))[-1])}")
        if done.code:
            raise RemoteError(f"pushing to {self.shown}: {why(chr(10).join([*refused, done.stderr]))}")
        for kind, tip in moves:
            refs.move(self._repo, self._common, f"{self._stage(prefix)}{kind}/{self._host}", tip)
        return len(moves)

    # --- what is noted ----------------------------------------------------------------------------------------------

    def _ours(self, kind: str) -> str | None:
        return self._known(kind, self._host)

    def _known(self, kind: str, host: str) -> str | None:
        return refs.target(self._repo, f"refs/evogit/{self._run}/{kind}/{host}")

    def _there(self, prefix: str, kind: str) -> str | None:
        return refs.target(self._repo, f"{self._stage(prefix)}{kind}/{self._host}")

    def _stage(self, prefix: str) -> str:
        return f"{self._staged}{'heads' if prefix == PREFIXES[1] else 'plain'}/"

    def _note(self, contact: Contact) -> None:
        note_contact(self._state, self._run, contact)

    @contextmanager
    def _alone(self, *, wait: bool) -> Iterator[bool]:
        """One process of this clone exchanges at a time; yields whether it is this one."""
        try:
            with contact_folder(self._state).opened(make=True) as folder:
                lock = folder.open(f"{self._run}.lock", os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise RemoteError(f"cannot write {error.filename}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(lock)


async def runs_there(common: Path, folder: Path, name: str, *, seconds: float | None, asks: bool = False) -> list[str]:
    """Names of the runs that a server has, fit or not. Raises RemoteError: it was not reached."""
    patterns = [f"{prefix}*" for prefix in PREFIXES]
    command = ("ls-remote", "--quiet", "--", check_address(name), *patterns)
    done = await person_git(common, folder, *command, seconds=seconds, asks=asks)
    if done.code:
        raise RemoteError(f"asking {shown(name)}: {why(done.stderr)}")
    found = re.findall(r"\trefs/(?:heads/)?evogit/([^/\s]+)/journal/", done.stdout.decode(errors="replace"))
    return sorted(set(found))
