"""Runs untrusted programs: the records that every provider takes and gives; `session.py` has the contract.

Everything here is synchronous: it runs inside the evaluator's own process, one session at a time.
An error of the provider itself is a `SandboxError`; whatever the program does comes back as a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from msgspec import Struct, field
from msgspec.structs import asdict

from evogit.core import SandboxError, shown

AUTO = "auto"
"""The name that stands for the best provider that works here."""


def provider_names() -> tuple[str, ...]:
    """Return the names of all providers after `auto`, without importing them: their files are called so."""
    return AUTO, *sorted(file.stem for file in (Path(__file__).parent / "providers").glob("[a-z]*.py"))


class NotHereError(SandboxError):
    """A provider cannot be used here, as something that it needs is not installed or not running."""


Breach = Literal["timeout", "out-of-memory", "output-limit", "process-limit", "disk-limit"]
"""A limit that the program broke."""


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of one session. Sizes are in bytes, times in seconds."""

    wall: float = 10.0  # of each request: a call, one streamed item, a run
    cpu: float = 10.0  # from the end of the previous request on, so that imports belong to the first
    total: float = 600.0  # wall clock of all requests together; with a server, the time between them counts, too
    memory: int = 512 * 1024 * 1024  # of all processes of the session together
    processes: int = 64  # threads count
    disk: int = 256 * 1024 * 1024  # of all that is written, which counts as memory, too, if the disk is in memory
    output: int = 1024 * 1024  # of stdout and stderr each, of all calls together and of each run
    reply: int = 16 * 1024 * 1024  # of one value that comes back from a call, and of the files of one run together
    open_files: ClassVar[int] = 256  # of each process; pipes in flight take memory that no other limit sees


class PreparingLimits(Limits, frozen=True, kw_only=True):
    """The limits of `prepare`, in which npm and others open hundreds of files at once."""

    open_files: ClassVar[int] = 1024


FolderEntry = tuple[str, str, int, int]
"""Path, kind (file, executable, link, folder, other), size in bytes of the content (that of a link is its target), and
when it was last changed in seconds since 1970; 0 stands for now."""


class Environment(Struct, frozen=True, kw_only=True):
    """What programs find in their sandbox, and how they are kept apart: the rest of a task's `[sandbox]`."""

    image: str = ""  # of which the sandbox's system is made; empty: EvoGit's own
    packages: tuple[str, ...] = ()  # Python requirements and, with the prefix "apt:", Debian packages
    setup: tuple[str, ...] = ()  # shell commands that run once on top of both, with a network
    isolation: Literal["warm", "fresh"] = "warm"  # fresh: each session has a worker of its own
    runtime: Literal["", "runsc"] = ""
    cpus: float = 1.0  # cores that all processes of a session share
    gpus: int = 0
    exclusive: bool = False  # sessions are pinned to one core that the rest of EvoGit keeps away from
    network: bool = False  # the host's, for `prepare` alone: a candidate never has one
    links: tuple[str, ...] = ()  # "PATH=FOLDER": a path that programs expect -> the candidate's folder (bubblewrap)

    def __repr__(self) -> str:
        return shown(self, but=("links",))  # journals hold digests of it

    @property
    def described(self) -> dict[str, Any]:
        """All of it, for digests: `links` only where there are any, so that what earlier journals say still holds."""
        values = asdict(self)
        return values if self.links else {name: value for name, value in values.items() if name != "links"}


class ResourceUsage(Struct, frozen=True, kw_only=True):
    """Seconds of wall clock and CPU, peak bytes, and `waited`: the part of `wall` in which others had the cores."""

    wall: float
    cpu: float
    memory: int
    waited: float = 0.0


class LargestRequest(Struct, frozen=True, kw_only=True):
    """The request that came nearest to a limit of its own: seconds, and the `share` of that limit."""

    wall: float = 0.0
    cpu: float = 0.0
    share: float = 0.0


Place = int | str  # where an argument belongs: its number, or its name
Form = tuple[Any, ...]  # `json`, `bytes`, or `numpy` or `memory` with format and shape


class Piece(Struct, frozen=True):
    """A value as bytes, by itself: one that JSON cannot say, or one that is sent once for several calls."""

    form: Form
    content: bytes | memoryview

    def __repr__(self) -> str:
        return shown(self, but=("content",))


class Phases(Struct, frozen=True, kw_only=True):
    """Seconds of CPU and wall clock of the parts of a call: until the arguments were there, the call, what followed.

    `clean`: nothing of the candidate's ran before the call. `counted`: the kernel counted the CPU of all processes.
    """

    call: tuple[float, float]
    decode: tuple[float, float] = (0.0, 0.0)
    encode: tuple[float, float] = (0.0, 0.0)
    clean: bool = False
    counted: bool = False


class CallReply(Struct, frozen=True, kw_only=True):
    """A reply to a call."""

    value: bytes = b""  # the JSON text of the result, untrusted and not yet parsed
    failure: Literal["", "crashed", "invalid"] | Breach = ""  # crashed: the program raised, exited or was killed
    detail: str = ""  # one sentence, with the traceback's last lines
    usage: ResourceUsage
    phases: Phases | None = None  # the parts of `usage`
    binary: bool = False  # pieces, each after its length: places and forms as JSON, the value with nulls, contents


class Completed(Struct, frozen=True, kw_only=True):
    """How a command ended. `code` is None when a signal or a breach ended it; cut output ends in a marker."""

    code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    breach: Breach | None
    usage: ResourceUsage
    detail: str = ""  # one sentence about the breach, or about the end of the sandbox
    files: Mapping[str, bytes] = field(default_factory=dict)  # those asked for with `out` that are regular files
