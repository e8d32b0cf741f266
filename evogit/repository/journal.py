"""The facts of one run: a chain of records per host, and a parallel chain that keeps candidates and evidence alive."""

from __future__ import annotations

import hmac
import math
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import merge
from itertools import islice
from pathlib import Path

import pygit2
from msgspec import Struct

from evogit.core import EvoGitError, RepositoryError
from evogit.credentials import REDACTED, Redactor
from evogit.events import Entry, Event, Forked, RunStarted
from evogit.repository import journal_records, refs
from evogit.repository.commit_writer import CommitWriter
from evogit.repository.objects import Allowance, TooLargeError, committer_of, message_of, mismatch, read_commit
from evogit.repository.run_keys import RunKeys, commitment, seal
from evogit.repository.trees import Trees

Record = tuple[str, str, int, str]  # a commit: id, committer, seconds since the epoch, message; no zero bytes
Raw = tuple[bytes, bytes, int, bytes]  # the same as it is stored
CHUNK = 2000  # records that are compressed together


class Backlog:
    """Records that come newest first and go oldest first, once; long ones wait compressed, to an eighth."""

    def __init__(self) -> None:
        self._waiting: list[Raw] = []
        self._packed: list[bytes] = []

    def __len__(self) -> int:
        return len(self._packed) * CHUNK + len(self._waiting)

    def add(self, record: Raw) -> None:
        """Take in the one before the last that came."""
        self._waiting.append(record)
        if len(self._waiting) == CHUNK:
            text = b"\0".join([b"%b\0%b\0%d\0%b" % each for each in self._waiting])
            self._packed.append(zlib.compress(text, 1))
            self._waiting = []

    def __iter__(self) -> Iterator[Record]:
        for raw in reversed(self._waiting):
            yield _text(raw[0]), _text(raw[1]), raw[2], _text(raw[3])
        self._waiting = []
        while self._packed:
            parts = _text(zlib.decompress(self._packed.pop())).split("\0")
            while parts:
                name, who, when, message = parts[-4:]
                del parts[-4:]
                yield name, who, int(when), message


def _text(raw: bytes) -> str:
    """Return the message as UTF-8, as all of ours is; a stranger may claim an unknown encoding."""
    return raw.decode(errors="replace")


LOOK_FOR_HOSTS_EVERY = 1.0  # seconds between two looks for journals of other hosts; our own is looked at every time
SHORTEST_SECRET = 8  # characters of a secret that is redacted; what stands for "no key" at local servers is shorter


class Position(Struct, frozen=True, kw_only=True):
    """The first entries of a run's journals: up to `tips` (host -> id), the last one of `host` with the clock `seq`."""

    tips: Mapping[str, str]
    seq: int
    host: str
    entries: int  # how many they are


BEGINNING = Position(tips={}, seq=0, host="", entries=0)


class LeftOut(Struct, frozen=True):
    """The last entries of another host, up to `tip`, which do not count: without a seal, or `why` else."""

    tip: str
    entries: int
    why: str = ""


class StaleError(RepositoryError):
    """Entries that were known are gone, or others belong between them."""


class Journal:
    """Appends to this host's journal of a run, and feeds every host's entries to `sink` in the order of `seq`.

    With the run's key our entries are sealed, and of other hosts' those count that are, up to the first unreadable one.
    `secrets` (ASCII without quotes) and all that looks like a key are redacted. `durable`: it survives a power loss.
    """

    def __init__(
        self,
        repo: pygit2.Repository,
        common: Path,
        trees: Trees,
        run: str,
        host: str,
        sink: Callable[[Entry], None],
        secrets: Sequence[str] = (),
        after: Position = BEGINNING,
        *,
        keys: RunKeys,
        durable: bool = False,
    ) -> None:
        self._repo, self._common, self._trees = repo, common, trees
        self._commits = CommitWriter(repo, common)
        self._run, self._host, self._durable = run, host, durable
        self._folder = f"refs/evogit/{run}/journal/"
        self._keep = f"refs/evogit/{run}/keep/{host}"
        self._keys, self._key = keys, b""
        self._left_out: dict[str, LeftOut] = {}
        self._alone = False
        self._allowance = Allowance(repo)
        self._sinks = [sink]
        self._secrets = [secret for secret in secrets if len(secret) >= SHORTEST_SECRET]
        self._seen: dict[str, str | None] = {host: None, **after.tips}
        self._newest = after.seq, after.host
        self._entries = after.entries
        self._in_order = True
        self._looked = float("-inf")
        if any(not counts(self._repo, self.key, *each) for each in after.tips.items()):
            raise StaleError("entries were known that do not count any more")
        fresh = self._fresh()
        for first in islice(fresh, 1):
            if _order(first) <= self._newest:
                raise StaleError(f"the journal of {first.host} brought entries that are older than those known")
            self._deliver(first)
        for entry in fresh:
            self._deliver(entry)

    @property
    def position(self) -> Position | None:
        """How far it was read; None if some entries came after later ones, as others' do that are fetched."""
        tips = {host: tip for host, tip in self._seen.items() if tip}
        seq, host = self._newest
        return Position(tips=tips, seq=seq, host=host, entries=self._entries) if self._in_order else None

    # --- reading ------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Take in what was appended. Raises RefusedError: newer versions; RepositoryError: damage; StaleError: loss."""
        for entry in self._fresh():
            self._deliver(entry)

    def stay_alone(self) -> None:
        """Look for no journals of other hosts any more."""
        self._alone = True

    def _fresh(self) -> Iterator[Entry]:
        if not self._alone and time.monotonic() - self._looked > LOOK_FOR_HOSTS_EVERY:
            self._looked = time.monotonic()
            for name in self._repo.references:
                if name.startswith(self._folder):
                    self._seen.setdefault(name.removeprefix(self._folder), None)
        found = list[Iterable[Entry]]()
        while news := [each for host in self._seen if (each := self._news(host))]:  # a child may be read before
            found += news  # its parent came; once nothing more comes, all that came before is here
        return merge(*found, key=_order)

    def _news(self, host: str) -> Iterable[Entry]:
        """Return a host's new entries, oldest first; very many are read one by one while they are delivered."""
        tip, last = refs.target(self._repo, self._folder + host), self._seen[host]
        if tip == last or (host in self._left_out and self._left_out[host].tip == tip):
            return []
        sealed, left = self._sealed(host, tip, last)
        allowance = None if self.key or host == self._host else self._allowance
        try:
            backlog, first = self._backlog(sealed, last, allowance=allowance)
        except RepositoryError as error:
            if host == self._host:
                raise
            entries = error.entries if isinstance(error, TooLargeError) else 1
            self._left_out[host] = LeftOut(tip or "", entries, str(error))
            return []
        if first != last:
            raise StaleError(f"the journal of {host} lost entries that were there before; see `evogit doctor`")
        if left and host == self._host:
            raise RepositoryError(self._of_others(tip, sealed, left))
        self._left_out.pop(host, None)
        if left and tip:
            self._left_out[host] = LeftOut(tip, left)
        self._seen[host] = sealed
        news = self._readable(host, tip or "", last, backlog)
        try:
            return news if len(backlog) > CHUNK else list(news)
        except EvoGitError:
            self._seen[host] = last
            raise

    def _readable(self, host: str, tip: str, last: str | None, backlog: Backlog) -> Iterator[Entry]:
        """The entries of a backlog; of another host those before the first that cannot be read."""
        left, ours = len(backlog), host == self._host and bool(self.key)
        for record in backlog:
            try:
                entry = journal_records.entry(*record)
                if not ours and (wrong := mismatch(self._repo, entry.event)):
                    raise RepositoryError(wrong)
            except RepositoryError as error:
                if host == self._host:
                    raise
                self._left_out[host] = LeftOut(tip, left, str(error))
                self._seen[host] = last
                return
            left, last = left - 1, entry.id
            yield entry

    def _sealed(self, host: str, tip: str | None, last: str | None) -> tuple[str | None, int]:
        """The newest entry of a chain with a seal, and how many come behind it, which are not read as entries."""
        commit, left = tip, 0
        while commit is not None and commit != last and not counts(self._repo, self.key, host, commit):
            found = read_commit(self._repo, commit)
            before = () if isinstance(found, str) else found.parent_ids
            commit, left = str(before[0]) if before else None, left + 1
        return commit, left

    def _of_others(self, tip: str | None, sealed: str | None, left: int) -> str:
        """What to do about the last entries of our own chain, which have no seal."""
        entries = (journal_records.entry(*record) for record in self._backlog(tip, sealed)[0])
        started = (entry.event for entry in entries if isinstance(entry.event, RunStarted))
        if any(event.inputs not in ("", commitment(self.key)) for event in started):
            return (
                f"expected the key of the run {self._run} in {self._keys.folder / self._run}, found another one; put "
                "back the file of the clone in which the run began"
            )
        undo = f"{self._folder}{self._host} {sealed}" if sealed else f"-d {self._folder}{self._host}"
        return (
            f"the journal of this clone goes on behind what the key of the run {self._run} sealed, by {left}: that "
            f"came from elsewhere, or before the key; take it away with `git update-ref {undo}`"
        )

    @property
    def key(self) -> bytes:
        """The run's key, as soon as this clone has it."""
        self._key = self._key or self._keys.find(self._run)
        return self._key

    @property
    def strangers(self) -> Mapping[str, int]:
        """Entries that do not count, as they are not sealed with the run's key, by host."""
        return {host: left.entries for host, left in self._left_out.items() if not left.why}

    @property
    def unreadable(self) -> Mapping[str, LeftOut]:
        """Entries of other hosts that do not count, as they or one before them cannot be read, by host."""
        return {host: left for host, left in self._left_out.items() if left.why}

    @property
    def hosts(self) -> Sequence[str]:
        """The clones whose entries count, this one's first."""
        return [self._host, *sorted(host for host, tip in self._seen.items() if tip and host != self._host)]

    def latest(self, most: int) -> list[Entry]:
        """The last entries that were delivered, at most so many, oldest first."""
        chains = (self._backlog(tip, None, most)[0] for tip in self._seen.values())
        return sorted((journal_records.entry(*record) for chain in chains for record in chain), key=_order)[-most:]

    def _backlog(
        self, tip: str | None, last: str | None, most: float = math.inf, allowance: Allowance | None = None
    ) -> tuple[Backlog, str | None]:
        """The records after `last` up to `tip`, and what comes before them: `last`, or nothing."""
        commit, news = tip, Backlog()
        while commit is not None and commit != last and len(news) < most:
            if allowance:
                allowance.check(commit)
            found = read_commit(self._repo, commit)
            if isinstance(found, str):
                raise RepositoryError(f"the journal entry {commit} {found}; restore the repository from a clone")
            news.add((commit.encode(), found.committer.raw_name, found.commit_time, found.raw_message))
            commit = str(parents[0]) if (parents := found.parent_ids) else None
        return news, commit

    def _deliver(self, entry: Entry) -> None:
        self._in_order = self._in_order and self._newest < _order(entry)
        self._newest = max(self._newest, _order(entry))
        self._entries += 1
        for sink in self._sinks:
            sink(entry)

    def subscribe(self, sink: Callable[[Entry], None]) -> None:
        """Feed `sink`, too, with what is delivered from now on; what happened before is no news to it."""
        self._sinks.append(sink)

    # --- writing ------------------------------------------------------------------------------------------------

    def append(self, event: Event, *, unless: Callable[[], bool] | None = None) -> Entry | None:
        """Append one fact and deliver it; what others appended meanwhile is delivered before it.

        `unless` is asked after every look at the journals; when it says yes nothing is written and None comes back.
        Raises UntrustedError: the run has a key here that the user does not trust.
        """
        if not self.key:
            self._keys.check(self._run)
        if isinstance(event, RunStarted):
            self._keys.add_start(self._run, event)
        while True:
            self.refresh()
            if unless is not None and unless():
                return None
            last, seq = self._seen[self._host], self._newest[0] + 1
            now, ms = divmod(time.time_ns() // 10**6, 1000)
            record = self._redacted(journal_records.encode(event, seq, ms))
            message = journal_records.sealed(record, seal(self.key, self._host, last, record)) if self.key else record
            parents = [last] if last else []
            commit = entry_commit(self._commits, self._host, message, self._empty, parents, now)
            if self._move(self._folder + self._host, commit, last):
                self._seen[self._host] = commit
                entry = Entry(id=commit, host=self._host, seq=seq, time=now, event=event, ms=ms)
                self._deliver(entry)
                return entry

    def keep(self, evidence: Mapping[str, bytes] | str, candidate: str | None = None) -> str:
        """Keep evidence (files, or a tree) and its candidate from collection; return the tree's id, empty for none."""
        if isinstance(evidence, str):  # written again, the files are young, and a sweep leaves them (sweeping.py)
            evidence = self._trees.kept(evidence)
        texts = {name: self._redacted(content.decode("latin-1")) for name, content in evidence.items()}
        redacted = {name: text.encode("latin-1") for name, text in texts.items()}
        tree = self._trees.write(None, redacted) if redacted else self._empty

        def attempt() -> bool:
            tip = refs.target(self._repo, self._keep)
            parents = [parent for parent in (tip, candidate) if parent]
            subject = f"keep {candidate[:10] if candidate else 'a failed proposal'}\n"
            kept = entry_commit(self._commits, self._host, subject, tree, parents, int(time.time()))
            return self._move(self._keep, kept, tip)

        refs.retry(attempt)
        return tree if evidence else ""

    def _move(self, ref: str, new: str, expected: str | None) -> bool:
        return refs.swap(self._repo, self._common, ref, new, expected, exchange=not self._durable)

    def _redacted(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return Redactor().text(text)

    @cached_property
    def _empty(self) -> str:
        """The empty tree; made when something is written, as a reader without write access must not need it."""
        return self._trees.write(None, {})


def _order(entry: Entry) -> tuple[int, str]:
    return entry.seq, entry.host


def entry_commit(commits: CommitWriter, host: str, message: str, tree: str, parents: list[str], now: int) -> str:
    """Write a commit of a journal of `host` at `now`, in seconds since the epoch; no ref moves."""
    who = pygit2.Signature(host, f"{host}@evogit.invalid", now, 0)
    return commits.write("a journal entry", who, message, tree, parents)


def counts(repo: pygit2.Repository, key: bytes, host: str, commit: str) -> bool:
    """Return whether an entry counts: with a key only if it is sealed, under the name of its own host, else always."""
    if not key:
        return True
    found = read_commit(repo, commit)
    if isinstance(found, str) or committer_of(found) != host:
        return False
    record, told = journal_records.unsealed(message_of(found))
    before = str(found.parent_ids[0]) if found.parent_ids else None
    return hmac.compare_digest(told.encode(), seal(key, host, before, record).encode())


def fork(
    repo: pygit2.Repository,
    common: Path,
    host: str,
    run: str,
    tips: Mapping[str, str],
    event: Forked,
    seq: int,
    keys: RunKeys,
) -> bool:
    """Begin `run` after the entries `tips` (host -> id) of another one, with `event` as its first of its own.

    What keeps candidates and evidence reachable comes first, and this host's journal before those of others: a process
    killed in between leaves no run, or one that says where it comes from. False where there is such a run already.
    """
    journal = f"refs/evogit/{run}/journal/"
    if any(name.startswith(journal) for name in repo.references):
        return False
    for kind in ("thinned", "keep"):
        theirs = f"refs/evogit/{event.run}/{kind}/"
        for name in [name for name in repo.references if name.startswith(theirs)]:
            ours = f"refs/evogit/{run}/{kind}/{name.removeprefix(theirs)}"
            refs.move(repo, common, ours, str(repo.references[name].target))
    before, record, empty = tips.get(host), journal_records.encode(event, seq), Trees(repo).write(None, {})
    if key := keys.copy(event.run, run):
        record = journal_records.sealed(record, seal(key, host, before, record))
    commits = CommitWriter(repo, common)
    first = entry_commit(commits, host, record, empty, [before] if before else [], int(time.time()))
    if not refs.swap(repo, common, journal + host, first, None):
        return False
    for other, tip in tips.items():
        if other != host:
            refs.move(repo, common, journal + other, tip)
    return True
