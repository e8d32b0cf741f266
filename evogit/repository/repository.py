"""A Git repository: what EvoGit reads there and what it writes."""

from __future__ import annotations

import getpass
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pygit2

from evogit.core import NotFoundError, RefusedError, RepositoryError, UsageError
from evogit.credentials import SeedSecrets
from evogit.events import Entry, Event, Forked
from evogit.repository import engines, refs
from evogit.repository.branches import Branches
from evogit.repository.changes import ChangedLines, ComparedFile, compare, lines, same_lines
from evogit.repository.commit_writer import CommitWriter, notes_commit
from evogit.repository.faults import advice
from evogit.repository.git_files import check_files, check_repository, folder_of, tree_around
from evogit.repository.journal import BEGINNING, Journal, Position, counts, fork
from evogit.repository.journal_records import RUN_NAME, decode
from evogit.repository.keeping import Chain, Keeping, Whole, read_chain
from evogit.repository.messages import candidate_message, clean, clean_title
from evogit.repository.objects import Allowance, message_of, read_commit
from evogit.repository.paths import parts_of
from evogit.repository.run_keys import RunKeys
from evogit.repository.state_files import Contact, Holdouts, SnapshotFile, read_contact
from evogit.repository.state_folder import StateFolder, read_line
from evogit.repository.trees import Trees
from evogit.text import one_line
from evogit.trust import Claim, Trust, UntrustedError

if TYPE_CHECKING:
    from evogit.repository.merge import Merger
    from evogit.repository.remote import Remote
    from evogit.repository.sweeping import Swept

RESERVED = frozenset({"best", "seed", "human", "land", "minimize"})  # names that no agent may have
MARKER = "created"  # the file that says that EvoGit created the repository
CACHE = 64_000_000  # bytes of objects that libgit2 may keep: a journal is read once, and would fill what there is
LONGEST_RUN_NAME = 100  # characters; files of an engine are called after it, with some more


class Repository:
    """One Git repository and what EvoGit does in it; the person's checkout, index, HEAD and settings stay."""

    def __init__(self, repo: pygit2.Repository) -> None:
        self._repo = repo
        self._durable = False
        pygit2.settings.cache_max_size(CACHE)
        repo.set_ident("evogit", "evogit@evogit.invalid")
        self.git_dir = Path(repo.path)
        pointer = self.git_dir / "commondir"
        self.common = (self.git_dir / read_line(pointer)).resolve() if pointer.exists() else self.git_dir.resolve()
        self.path = Path(repo.workdir or repo.path).resolve()
        self.bare = bool(repo.is_bare)
        self.trees = Trees(repo, {self.common / "modules", self.git_dir / "modules"})
        self.branches = Branches(repo, self.common)
        self._commits = CommitWriter(repo, self.common)
        self.trust = Trust.of_user()
        self.state = StateFolder(self.common)
        self.keys = RunKeys(self.common, self.trust)
        self.holdouts = Holdouts(self.state)
        self._keepings: dict[str, Keeping] = {}

    @cached_property
    def merger(self) -> Merger:
        """What merges here; loaded with all that merging takes when something is merged."""
        from evogit.repository.merge import Merger

        return Merger(self.state, self._repo, self.trees)

    # --- finding ------------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path) -> Repository:
        """Open the repository at `path` exactly.

        Raises NotFoundError: there is none; UntrustedError: a commit may have brought it along; RepositoryError: else.
        """
        check_repository(path)
        try:
            repository = cls(pygit2.Repository(str(path), pygit2.enums.RepositoryOpenFlag.NO_SEARCH))
        except (pygit2.GitError, KeyError, ValueError) as error:
            if "not found" in str(error).lower() and not (path / ".git").exists():
                raise NotFoundError(f"expected a Git repository at {path}; create one with `git init`") from error
            raise RepositoryError(f"cannot use the repository at {path}: {error}; {advice(str(error))}") from error
        repository._check_place(path)
        return repository

    def _check_place(self, path: Path) -> None:
        """Refuse files that are elsewhere than where this was opened, and a Git folder among another one's files."""
        place, git_dir = Path(os.path.realpath(path)), Path(os.path.realpath(self.git_dir))
        own = place.parent if place.name == ".git" else place
        beside = git_dir.parent if git_dir.name == ".git" else own
        linked = self.common in (git_dir, git_dir.parent.parent)
        if not linked or (self._repo.workdir and not self.path == own == beside):
            raise RepositoryError(
                f"expected {git_dir} to be the Git folder of {own}, but core.worktree, commondir or .git there leads "
                "elsewhere, as an archive may have it; see `git worktree repair`"
            )
        around = tree_around(place) if own == place and not os.path.lexists(place / ".git") else None
        if around and not self.trust.covers(place):
            effect = f"{place} would be a Git folder, with its settings and refs, but lies among files of {around}"
            raise UntrustedError([Claim("folder", str(place), effect)])

    @classmethod
    def discover(cls, path: Path) -> Repository:
        """The repository that `path` lies in. Raises NotFoundError: it lies in none."""
        start = Path(os.path.realpath(path))
        places = (start, *start.parents)
        for place in places:
            check_files(place)
            if os.path.lexists(place / ".git"):
                break
        found = pygit2.discover_repository(str(start)) if start.exists() else None
        if found is None:
            raise NotFoundError(f"expected {path} to lie in a Git repository; go to one, or name it with -C DIR")
        git_dir = Path(os.path.realpath(found))
        return cls.open(next((place for place in places if folder_of(place) == git_dir), git_dir))

    @classmethod
    def create(cls, path: Path) -> Repository:
        """A new repository of EvoGit's own. Raises RefusedError, RepositoryError: `path` is not empty or writable."""
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RefusedError(f"expected {path} to be empty or a Git repository; choose another folder with -C DIR")
        try:
            pygit2.init_repository(str(path), bare=False, initial_head="main")
        except pygit2.GitError as error:
            raise RepositoryError(f"cannot create a repository at {path}: {error}; choose another folder") from error
        repository = cls.open(path)
        with repository.state.opened(make=True) as folder:
            folder.write_once(MARKER, b"")
        return repository

    @classmethod
    def borrow(cls, path: Path, source: Repository) -> Repository:
        """A new one that stands where `source` does and reads its objects. Raises NotFoundError: it has no commit."""
        head, repository = source.head(), cls.create(path)
        alternates = repository.common / "objects" / "info" / "alternates"
        alternates.write_bytes(os.fsencode(source.common / "objects") + b"\n")
        borrowed = cls.open(path)  # alternates are read when it is opened
        borrowed._repo.set_head(pygit2.Oid(hex=head))
        return borrowed

    @staticmethod
    def default_folder(name: str) -> Path:
        """The folder of runs of the task `name`. Raises RefusedError: it is a link, perhaps a stranger's."""
        folder = Path(f"evogit-{name}")
        if folder.is_symlink():
            raise RefusedError(
                f"expected {folder} to be a folder, found a link to {one_line(str(folder.readlink()), 200)}; if it is "
                "yours, name that place itself with -C DIR"
            )
        return folder

    @property
    def created(self) -> bool:
        """Whether EvoGit created this repository, so that agents may have plain branches in it."""
        with suppress(FileNotFoundError), self.state.opened() as folder:
            return folder.holds(MARKER)
        return False

    def runs(self) -> list[str]:
        """Names of the runs that have a journal here."""
        return _parted(self._journals())[0]

    def unfit_runs(self) -> list[str]:
        """Names under which journals lie here although no run has such a name: a stranger's refs."""
        return _parted(self._journals())[1]

    def _journals(self) -> list[str]:
        with self._there():
            names = [name.split("/") for name in self._repo.references if name.startswith("refs/evogit/")]
        return sorted({parts[2] for parts in names if len(parts) == 5 and parts[3] == "journal"})

    @contextmanager
    def _there(self) -> Iterator[None]:
        """Report what libgit2 cannot read, as of a repository that is removed meanwhile, as a RepositoryError."""
        try:
            yield
        except pygit2.GitError as error:
            raise RepositoryError(f"cannot read the repository at {self.path}: {error}") from error

    @property
    def host(self) -> str:
        """The name of this clone."""
        return engines.host_name(self.state)

    @property
    def user(self) -> str:
        """The person's name as Git knows it, else (none, or one that is no UTF-8) as the machine does."""
        name = ""
        with suppress(KeyError, UnicodeDecodeError):
            name = clean(self._repo.config["user.name"] or "")
        try:
            return clean_title(name) if name else getpass.getuser()
        except (KeyError, OSError):  # a container's user may be a mere number
            return f"user {os.getuid()}"

    def survive_power_loss(self) -> None:
        """Have all that this process writes reach the disk before it counts; without it, a kill alone is survived."""
        pygit2.settings.enable_fsync_gitdir(True)
        self._durable = True

    # --- one run ------------------------------------------------------------------------------------------------

    def journal(
        self, run: str, sink: Callable[[Entry], None], secrets: Sequence[str] = (), after: Position = BEGINNING
    ) -> Journal:
        """Return a run's journals, with entries `after` those known. Raises StaleError: others; RepositoryError."""
        name, durable = check_run_name(run), self._durable
        about = self._repo, self.common, self.trees, name, self.host
        with self._there():
            return Journal(*about, sink, secrets, after, keys=self.keys, durable=durable)

    def snapshot(self, run: str) -> SnapshotFile:
        """The file for what was made of a run's journals."""
        return SnapshotFile(self.state, check_run_name(run))

    def engines(self, run: str) -> engines.Engines:
        """The engines at work on a run."""
        return engines.Engines(self.state, check_run_name(run), self.host)

    def log_file(self, run: str) -> Path:
        """Where what a run says goes while no terminal shows it."""
        return self.state.path / "logs" / f"{check_run_name(run)}.log"

    def open_log(self, run: str, *, reading: bool = False) -> int:
        """Open that file to append to it, or to read it; return its descriptor. Raises OSError."""
        flags = os.O_RDONLY if reading else os.O_CREAT | os.O_WRONLY | os.O_APPEND
        with self.state.below("logs").opened(make=True) as folder:
            return folder.open(self.log_file(run).name, flags, 0o600)

    def population(self, run: str) -> str:
        """The prefix of a run's agents' refs: not a team's branches, which would be pushed and start its CI."""
        return f"refs/heads/evogit/{run}/" if self.created else f"refs/evogit/{run}/agents/"

    def fork(self, run: str, tips: Mapping[str, str], event: Forked, seq: int) -> bool:
        """Begin a run with entries of another one, up to `tips` (host -> id); False where it is there already."""
        return fork(self._repo, self.common, self.host, run, tips, event, seq, self.keys)

    def remote(self, run: str, name: str, secrets: Callable[[], SeedSecrets | None] = lambda: None) -> Remote:
        """A run on a Git server, which is named as for `git push`; `secrets` of its seed are not published there."""
        from evogit.repository.remote import Remote

        def sealed(host: str, commit: str) -> bool:
            return counts(self._repo, self.keys.find(run), host, commit)

        def keyed() -> bool:
            return bool(self.keys.find(run))

        return Remote(self._repo, self.common, check_run_name(run), self.host, name, sealed, keyed, secrets)

    def contact(self, run: str) -> Contact | None:
        """How a run stands with its Git server; None where it has none."""
        return read_contact(self.state, check_run_name(run))

    async def runs_there(self, name: str) -> tuple[list[str], list[str]]:
        """Names of a Git server's runs, and those that no run has. Raises RepositoryError: it was not reached."""
        from evogit.repository.remote import runs_there

        return _parted(await runs_there(self.common, self.path, name, seconds=None, asks=True))

    def name_clone(self, name: str) -> None:
        """Name this clone. Raises UsageError, RefusedError: it cannot be so, or a journal has another name by now."""
        journals = {host for run in self.runs() for host in self.keeping(run).tips("journal")}
        engines.name_clone(self.state, name, journals)

    def event(self, entry: str) -> Event | None:
        """The fact that a journal entry holds; None if it is gone or cannot be read."""
        found = read_commit(self._repo, entry)
        if not isinstance(found, str):
            with suppress(RefusedError, RepositoryError):
                return decode(message_of(found))[0]
        return None

    def chains(self, run: str) -> list[Chain]:
        """The journals of a run as they are, damaged or not: of each host one."""
        key = self.keys.find(run)
        foreign = None if key else Allowance(self._repo)
        return [
            read_chain(self._repo, host, tip, key, None if host == self.host else foreign)
            for host, tip in sorted(self.keeping(run).tips("journal").items())
        ]

    def keeping(self, run: str) -> Keeping:
        """What keeps the candidates and the evidence of a run reachable."""
        return self._keepings.setdefault(run, Keeping(self._repo, check_run_name(run)))

    def thin(self, run: str, gone: Collection[str], why: str) -> None:
        """Let go of evidence trees that this clone keeps for a run, and note that they are given up, and `why`."""
        from evogit.repository.sweeping import Thinner

        name, host = check_run_name(run), self.host
        Thinner(repo=self._repo, commits=self._commits, common=self.common, trees=self.trees, run=name, host=host).thin(
            gone, why
        )

    def check_links(self) -> None:
        """Refuse to sweep where a link leads out of objects or refs. Raises RepositoryError: naming it."""
        from evogit.repository.sweeping import check_links

        check_links(self.common)

    def sweep(self, given_up: Collection[str]) -> Swept:
        """Remove from the disk what nothing holds any more of evidence that was given up."""
        from evogit.repository.sweeping import sweep

        return sweep(self._repo, self.common, given_up)

    def space(self) -> int:
        """Bytes that the objects of this repository take on the disk."""
        from evogit.repository.sweeping import space

        return space(self.common)

    def locks(self, run: str) -> list[str]:
        """Refs of a run, and of its branches and notes, whose locks a dead process left, as they are too old."""
        return refs.stale_locks(self.common, [f"refs/evogit/{run}", f"refs/heads/evogit/{run}", "refs/notes/evogit"])

    def break_lock(self, ref: str) -> bool:
        """Remove the lock of a ref if it is too old to be of a process at work; says whether it did."""
        return refs.break_lock(self.common, ref, refs.STALE_AFTER)

    def clear_locks(self, run: str) -> None:
        """Remove ref locks that a killed engine of this run left; only for the engine that holds the run's lock."""
        for folder in (f"refs/evogit/{run}", f"refs/heads/evogit/{run}"):
            refs.clear_locks(self.common, folder)

    def landing_text(self, run: str, commit: str) -> Path:
        """The file for what a pull request of a candidate says."""
        return self.state.path / "land" / run / f"{commit[:7]}.md"

    def keep_landing_text(self, run: str, commit: str, text: str) -> None:
        """Write that file."""
        file = self.landing_text(run, commit)
        with self.state.below("land", run).opened(make=True) as folder:
            folder.replace(file.name, [text.encode(errors="replace")])

    def forget_run(self, run: str) -> None:
        """Remove what is kept of a run beside the refs; of the last one all but the mark of a repository of our own."""
        self.snapshot(run).forget()
        self.keys.forget(run)
        files = {"remotes": (f"{run}.json", f"{run}.lock"), "logs": (self.log_file(run).name,)}
        for place, names in files.items():
            with suppress(FileNotFoundError), self.state.below(place).opened() as folder:
                for name in names:
                    folder.remove(name)
        with suppress(OSError), self.state.below("land").opened() as folder:
            folder.remove_tree(run)
        with suppress(OSError), self.state.opened() as folder:
            folder.remove_folder("land")
        if not self.runs():
            engines.forget_clone(self.state)

    def check_room(self, run: str) -> None:
        """Refuse a run whose refs have no room here. Raises RefusedError: naming the ref or link in the way."""
        folders = (f"refs/evogit/{run}", f"refs/heads/evogit/{run}", "refs/notes/evogit")
        if link := refs.first_link(self.common, folders):
            raise RefusedError(f"expected folders and files of Git's at {link}, found a link; remove it with `rm`")
        for ref in ("refs/heads/evogit", f"refs/heads/evogit/{run}", "refs/notes/evogit"):
            if self.target(ref) is not None:
                kind, name = ref.removeprefix("refs/").split("/", 1)
                rename = f"`git branch -m {name} NAME`" if kind == "heads" else f"`git update-ref -d {ref}`"
                raise RefusedError(f"expected room for refs below {ref}/, found a ref of that name; try {rename}")

    # --- candidates ---------------------------------------------------------------------------------------------

    def commit(
        self,
        tree: str,
        parents: tuple[str, ...],
        *,
        author: str,
        time: int,
        title: str,
        reason: str = "",
        trailers: Mapping[str, str | Sequence[str]],
    ) -> str:
        """Write a candidate commit; no ref moves. `time` is in seconds since the epoch, the zone is UTC."""
        who = pygit2.Signature(f"evogit {author}", f"{author}@evogit.invalid", time, 0)
        message = candidate_message(title, reason, trailers)
        return self._commits.write("a candidate", who, message, tree, parents)

    def tree_of(self, commit: str) -> str:
        """The tree id of a commit."""
        return str(self._commit(commit).tree_id)

    def tree_if_there(self, commit: str) -> str | None:
        """The tree id of a commit; None where the repository lacks the commit, or has a damaged one."""
        found = read_commit(self._repo, commit)
        return None if isinstance(found, str) else str(found.tree_id)

    def is_own(self, commit: str) -> bool:
        """Whether a branch, tag, stash or remote of the user holds a commit, or did as far as Git's logs go back."""
        from evogit.repository.git import run_git

        others = ("--exclude=refs/evogit/*", "--exclude=refs/remotes/*/evogit/*", "--all", "--reflog")
        return not run_git(self.common, "rev-list", "-n1", commit, "--not", *others, seconds=10.0).stdout

    def whole(self) -> Whole:
        """What tells whether trees are there with all that is in them."""
        return Whole(self._repo)

    def commit_time(self, commit: str) -> int:
        """The committer's time of a commit, in seconds since the epoch."""
        return self._commit(commit).commit_time

    def message(self, commit: str) -> str:
        """The whole message of a commit."""
        return message_of(self._commit(commit))

    def head(self) -> str:
        """The commit that HEAD names. Raises NotFoundError: before the first commit."""
        if self._repo.head_is_unborn:
            raise NotFoundError(f"expected a commit at HEAD of {self.path}; commit what is to be improved first")
        return str(self._repo.head.peel(pygit2.Commit).id)

    def dirty(self) -> bool:
        """Whether the checkout holds changes that HEAD does not."""
        if self.bare:
            return False
        with self._there():
            states = self._repo.status(untracked_files="no").values()
            sparse = "core.sparsecheckout" in self._repo.config and self._repo.config.get_bool("core.sparsecheckout")
        nothing = {pygit2.enums.FileStatus.IGNORED, pygit2.enums.FileStatus.WT_NEW}
        if sparse:  # libgit2 takes what is not checked out for deleted
            nothing.add(pygit2.enums.FileStatus.WT_DELETED)
        return any(flags not in nothing for flags in states)

    def last_version(self) -> str:
        """Return the version in the latest tag below HEAD, such as `1.2.0`; "0" without one."""
        try:
            tag = self._repo.describe(describe_strategy=pygit2.enums.DescribeStrategy.TAGS, abbreviated_size=0)
        except (KeyError, pygit2.GitError):
            return "0"
        version = re.search(r"\d+(?:\.\d+)*", tag)
        return version[0] if version else "0"

    def ignores(self, paths: Sequence[str]) -> list[str]:
        """Those of the paths below the checkout that Git ignores here, as this person has set it up."""
        with self._there():
            return [path for path in paths if self._repo.path_is_ignored(path)]

    def diff(self, old: str, new: str, wanted: Callable[[str], bool] = lambda path: True) -> str:
        """The change from one commit or tree to another as a patch, of the wanted paths; of large files a sentence."""
        texts = (each.text for each in compare(self._repo, self.trees, old, new, wanted))
        return b"".join(texts).decode(errors="replace")

    def file_changes(self, old: str, new: str) -> list[ComparedFile]:
        """The files in which two commits or trees differ."""
        return list(compare(self._repo, self.trees, old, new))

    def line_changes(self, old: str, new: str) -> list[tuple[str, int, int]]:
        """Path, lines added and removed of each file that differs; 0 for binary and very large files."""
        found = self.file_changes(old, new)
        return [(each.path, *(each.patch.line_stats[1:] if each.patch else (0, 0))) for each in found]

    def lines(self, old: str, new: str, wanted: Callable[[str], bool]) -> ChangedLines:
        """The lines that one tree has and the other has not, in wanted files."""
        return lines(self._repo, self.trees, old, new, wanted)

    def same_lines(self, old: str, new: str) -> dict[int, int]:
        """Line of one blob -> the same line of an older one, counted from 0; none of what is no text or too large."""
        return same_lines(self._repo, self.trees, old, new)

    def changed_paths(self, old: str, new: str) -> list[str]:
        """Paths that differ between two trees."""
        return sorted({each.path for pair in self.trees.differences(old, new) for each in pair if each})

    def _commit(self, commit: str) -> pygit2.Commit:
        found = read_commit(self._repo, commit)
        if isinstance(found, str):
            raise RepositoryError(f"expected the commit {commit:.80}, which {found}")
        return found

    # --- projections --------------------------------------------------------------------------------------------

    def move_branch(self, ref: str, commit: str) -> bool:
        """Point a ref of ours to `commit`, unless some worktree has it checked out: then nothing moves (False)."""
        if self.branches.checked_out(ref):
            return False
        refs.move(self._repo, self.common, ref, commit)
        return True

    def target(self, ref: str) -> str | None:
        """The commit that a ref names, None when it is absent."""
        return refs.target(self._repo, ref)

    def plant(self, commit: str) -> None:
        """Check `commit` out as the first of `main` in a repository of ours. Raises RefusedError: no room."""
        # its own folder, as `core.worktree` of an unpacked archive may name any other
        if self.created and self._repo.head_is_unborn and self.path == self.common.parent:
            self._check_way(commit)
            force = pygit2.enums.CheckoutStrategy.FORCE
            self._repo.checkout_tree(self._repo[commit], strategy=force)  # type: ignore[no-untyped-call]
            with suppress(pygit2.AlreadyExistsError):  # another run began at the same time
                self._repo.create_reference("refs/heads/main", commit)  # last: until then it is done again

    def _check_way(self, commit: str) -> None:
        for entry in self.trees.entries(self.tree_of(commit)):
            for part in parts_of(entry.path):
                place, isdir = self.path / part, part != entry.path
                with suppress(FileNotFoundError, NotADirectoryError):
                    kind = stat.S_IFMT(place.lstat().st_mode)
                    if kind != (stat.S_IFDIR if isdir else stat.S_IFMT(entry.mode)):
                        raise RefusedError(
                            f"expected room for {entry.path} of the seed in {self.path}, found something else at "
                            f"{place}; remove it, then run again"
                        )

    def write_notes(self, run: str, texts: Mapping[str, str]) -> None:
        """Show the texts (commit id -> note) under `refs/notes/evogit/<run>`."""
        ref = f"refs/notes/evogit/{run}"
        refs.move(self._repo, self.common, ref, notes_commit(self._repo, self.trees, self.target(ref), texts))

    async def pack(self) -> None:
        """Pack loose objects, many small packs into one, and list commits for Git; takes some seconds."""
        from evogit.repository.git import MANY_PACKS, git

        many = sum(1 for _ in (self.common / "objects" / "pack").glob("*.pack")) > MANY_PACKS
        await git(self.common, "repack", "-d", "-n", "-q", "--window=5", *(["--geometric=2"] if many else []))
        await git(self.common, "commit-graph", "write", "--reachable", "--split", "--no-progress")


def check_run_name(name: str) -> str:
    """The name itself, if a ref can hold it. Raises UsageError: it cannot."""
    if not _is_fit(name):
        raise UsageError(
            f"expected a run's name of at most {LONGEST_RUN_NAME} letters, digits, `-`, `_`, single dots, got {name!r}"
        )
    return name


def _is_fit(name: str) -> bool:
    return bool(RUN_NAME.fullmatch(name)) and len(name) <= LONGEST_RUN_NAME


def _parted(names: Sequence[str]) -> tuple[list[str], list[str]]:
    fit = [name for name in names if _is_fit(name)]
    return fit, [name for name in names if name not in set(fit)]
