"""The secrets of runs: files beside the refs, which no commit, journal or program holds.

Two keys come from the one of a run: evaluators draw their inputs with the first, and journal entries are sealed with
the second. The first `run-started` has a hash of the first. Anyone who has the file may write to the run and can repeat
its evaluations; with the journal alone neither is possible.

A file of 33 or 65 bytes begins with `DERIVED`, and both keys are derived from the rest. Older files have no such byte:
the first 32 bytes draw inputs, and the whole file seals.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import msgspec

from evogit.core import RepositoryError
from evogit.events import RunStarted
from evogit.repository import journal_records
from evogit.repository.state_folder import OpenFolder, StateFolder, open_folder
from evogit.text import one_line
from evogit.trust import Claim, Kind, Trust

LENGTH = 32  # bytes of a key; deterministic runs share theirs and have as many more for seals
DERIVED = b"\x02"  # the first byte of a file whose two keys are derived, each with a label
MAX_KEY_BYTES = 4096
ENGINE_CHARS = 60  # characters of an engine's name that are shown, which may be a stranger's choice
SEAL = 32  # hex digits of a seal: 128 bits of HMAC-SHA256


def inputs_key(key: bytes) -> bytes:
    """The key that inputs are drawn with, of the key of a run; it says nothing about that of seals."""
    if len(key) % LENGTH == 0:
        return key[:LENGTH]
    return hmac.digest(key[1 : 1 + LENGTH], b"evogit key of inputs", "sha256")


def seal_key(key: bytes) -> bytes:
    """The key that journal entries are sealed with, of the key of a run."""
    return key if len(key) % LENGTH == 0 else hmac.digest(key[1:], b"evogit key of seals", "sha256")


def commitment(key: bytes) -> str:
    """The public hash that identifies the key of a run by the one that inputs are drawn with; empty for none."""
    return committed(inputs_key(key)) if key else ""


def committed(inputs: bytes) -> str:
    """The public hash of a key that inputs are drawn with; empty for none."""
    return hashlib.sha256(b"evogit inputs\0" + inputs).hexdigest() if inputs else ""


def seal(key: bytes, host: str, before: str | None, record: str) -> str:
    """What shows that the holder of a key wrote this entry of a host after the one `before`, and so all before it."""
    text = "\0".join(("evogit journal", host, before or "", record))
    return hmac.digest(seal_key(key), text.encode(), "sha256").hex()[:SEAL]


def kept(file: Path) -> bytes:
    """Return the key in a file of the user's alone, made if it is absent. Raises RepositoryError: it cannot be."""
    with _secret(file), open_folder(file.parent, mode=0o700) as folder:
        return _made(folder, file.name, os.urandom(LENGTH))


def _made(folder: OpenFolder, name: str, key: bytes) -> bytes:
    if not folder.holds(name):
        folder.write_once(name, key, 0o600)
    return folder.read(name, MAX_KEY_BYTES)


@contextmanager
def _secret(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RepositoryError(f"expected to be allowed to keep a secret in {file}: {error.strerror}") from error


class RunKeys:
    """The keys of a clone's runs, in files of the run's name. A file counts only if the user's state knows its key."""

    def __init__(self, common: Path, trust: Trust) -> None:
        self._files = StateFolder(common, ("keys",))
        self.folder = self._files.path
        self._common = common
        self.trust = trust

    def make(self, run: str) -> bytes:
        """Make a run's key. Raises RepositoryError: it cannot be kept; UntrustedError: an unknown one is there."""
        drawn = DERIVED + os.urandom(LENGTH)
        self.trust.add(_claim(run, drawn))  # before another engine can find the file
        with _secret(self.folder / run), self._files.opened(make=True, mode=0o700) as folder:
            key = _made(folder, run, drawn)
        self.trust.check([_claim(run, key)])
        return key

    def keep(self, run: str, key: bytes) -> None:
        """Keep the key of a run that begins. Raises RepositoryError: it cannot be kept."""
        self._keep(run, key, _claim(run, key))

    def copy(self, origin: str, run: str) -> bytes:
        """Keep the key of a run for its fork, trusted as before; empty if there is none. Raises RepositoryError."""
        if key := self.find(origin):
            made, brought = self._claims(run, key)
            self._keep(run, key, made if self.trust.accepts(made) else brought)
        return key

    def _keep(self, run: str, key: bytes, claim: Claim) -> None:
        self.trust.add(claim)
        with _secret(self.folder / run), self._files.opened(make=True, mode=0o700) as folder:
            folder.replace(run, [key], 0o600)

    def share(self, run: str, secret: bytes) -> bytes:
        """The key of a run that draws inputs as others with this secret, and seals as none. Raises RepositoryError."""
        known, key = self.find(run), DERIVED + secret + os.urandom(LENGTH)
        if known and inputs_key(known) in (secret, inputs_key(key)):
            return known
        self.keep(run, key)
        return key

    def find(self, run: str) -> bytes:
        """Return the key of a run; empty if there is none that the user trusts. Raises RepositoryError."""
        key = self._read(run)
        return key if key and any(map(self.trust.accepts, self._claims(run, key))) else b""

    def untrusted(self, run: str) -> list[Claim]:
        """Return the claim to a key that lies here, unless the user made it or trusts it here, or there is none."""
        key = self._read(run)
        made, brought = self._claims(run, key)
        return [brought] if key and not self.trust.accepts(made) and not self.trust.accepts(brought) else []

    def _claims(self, run: str, key: bytes) -> tuple[Claim, Claim]:
        """Return the claims that the user made a key, and that one which came here is trusted for this run alone."""
        made = _claim(run, key)
        return made, Claim(made.kind, "\0".join((str(self._common.resolve()), run, made.subject)), made.effect)

    def check(self, run: str) -> None:
        """Refuse to write to a run whose key lies here but is not trusted. Raises UntrustedError: naming the key."""
        self.trust.check(self.untrusted(run))

    def start(self, run: str, started: RunStarted, kind: Kind = "start", effect: str = "") -> Claim:
        """Return a claim about one start of an engine of a run in this clone; no other run has it."""
        event = msgspec.json.encode(msgspec.to_builtins(started), order="sorted")
        subject = (str(self._common.resolve()), run, hashlib.sha256(event).hexdigest())
        return Claim(kind, "\0".join(subject), effect)

    def add_start(self, run: str, started: RunStarted) -> None:
        """Record that the user makes this start of an engine here."""
        read, *_ = journal_records.decode(journal_records.encode(started, 1))
        assert isinstance(read, RunStarted)
        self.trust.add(self.start(run, read))  # as it will be read

    def take_over(self, origin: str, run: str, starts: Iterable[RunStarted]) -> None:
        """Trust the starts of a run in a fork that the user makes of it, too, each as far as it was trusted."""
        kinds: tuple[Kind, ...] = ("start", "run", "settings")
        for started, kind in product(starts, kinds):
            if self.trust.accepts(self.start(origin, started, kind)):
                self.trust.add(self.start(run, started, kind))

    def origin(self, run: str, started: RunStarted | None) -> list[Claim]:
        """Return what the user must trust before a run goes on here: a key of unknown origin, or the lack of a key."""
        claims = self.untrusted(run)
        if started and not started.inputs and not self.trust.accepts(self.start(run, started)):
            engine = one_line(started.engine, ENGINE_CHARS)
            effect = f"the run {run} has no key: anybody may have made up its scores and decisions; begun by {engine!r}"
            claims.append(self.start(run, started, "run", effect))
        return [claim for claim in claims if not self.trust.accepts(claim)]

    def _read(self, run: str) -> bytes:
        try:
            with self._files.opened() as folder:
                return folder.read(run, MAX_KEY_BYTES)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise RepositoryError(f"the key of the run {run} cannot be read: {error}") from error

    def forget(self, run: str) -> None:
        """Remove the key of a run that is removed."""
        with suppress(FileNotFoundError), self._files.opened() as folder:
            folder.remove(run)


def _claim(run: str, key: bytes) -> Claim:
    effect = f"the key of the run {run}: it lies in this Git folder, and whoever has it can forge scores and decisions"
    return Claim("key", hashlib.sha256(b"evogit trust\0" + key).hexdigest(), effect)
