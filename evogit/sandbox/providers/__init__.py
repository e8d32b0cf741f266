"""The providers of sandboxes, a file each; chooses one by name, and checks whether it works here."""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import ClassVar

from evogit.core import SandboxError, UsageError
from evogit.lazy_exports import declared
from evogit.sandbox import AUTO, Environment, Limits, NotHereError, provider_names
from evogit.sandbox.archive import pack
from evogit.sandbox.cache import Say
from evogit.sandbox.packages import DEBIAN, packages_folder
from evogit.sandbox.session import Sandbox, Session
from evogit.subprocesses import QUERY_SECONDS, run_child

logger = logging.getLogger(__name__)

Check = tuple[str, bool, str]  # what was checked, whether it is well, and a sentence about it
PROBE = b"""
import errno, os, socket, sys

def about():
    return [os.geteuid(), os.getpid(), "%d.%d.%d" % sys.version_info[:3]]

def outside(path):
    found = [path] if os.path.exists(path) else []
    found += ["a writable " + folder for folder in ("/", "/usr", "/etc") if os.access(folder, os.W_OK)]
    try:
        socket.create_connection(("192.0.2.1", 9), timeout=0.2).close()
    except OSError as error:
        if error.errno not in (errno.ENETUNREACH, errno.EHOSTUNREACH):
            found.append("a network")
    return found
"""


class Provider:
    """A way to run programs apart: a `Sandbox`, or what makes one, with a `name` in a file of that name in this folder.

    `auto` takes the first one by `rank` that works here; 0 is never taken.
    """

    name: str
    title: ClassVar[str]
    rank: ClassVar[int] = 0
    isolates: ClassVar[bool] = True
    """Programs are kept from the host and its network."""
    needs_image: ClassVar[bool] = False
    """Programs run in an image with its own Python and programs, not with those of this machine."""
    supports: ClassVar[frozenset[str]] = frozenset()
    """Keys of `[sandbox]` that not every provider has, of those in `_asked`."""

    @classmethod
    def start(cls, wanted: Environment, private: Sequence[Path] | None, *, worked: bool) -> Sandbox:
        """Return a sandbox. Raises SandboxError: it does not work here."""
        raise NotImplementedError

    @classmethod
    def knock(cls) -> None:
        """Raise SandboxError if it obviously does not work here; it takes at most seconds."""

    @classmethod
    def describe(cls, environment: Environment) -> Iterator[Check]:
        """Yield checks that only this provider has. Raises SandboxError."""
        yield from ()

    @classmethod
    def details(cls, environment: Environment) -> Iterator[Check]:
        """Yield more checks for `evogit doctor sandbox`. Raises SandboxError."""
        yield from ()

    @classmethod
    def variants(cls, environment: Environment) -> Mapping[str, Environment]:
        """Return other environments that it can give here, by name."""
        return {}

    @classmethod
    def build(cls, environment: Environment, say: Say) -> dict[str, str | int]:
        """Make what sessions need ahead of time, and describe it. Raises SandboxError."""
        folder = packages_folder(environment, sys.version_info[:2], say=say)
        box = provider(cls.name, environment)
        box.close()
        return {"packages": str(folder or "none"), "digest": box.image()}


@cache
def kinds() -> Mapping[str, type[Provider]]:
    """Return the providers by name, in the order in which `auto` tries them."""
    found = sorted(declared(__name__, Provider), key=lambda kind: (not kind.rank, kind.rank))
    return {kind.name: kind for kind in found}


def isolating() -> list[str]:
    """Return the names of the providers that keep programs apart."""
    return [name for name, kind in kinds().items() if kind.isolates]


def isolates(name: str) -> bool:
    """Return whether a provider keeps programs apart, as `auto` and a name that is none ("") always do."""
    return name not in kinds() or kinds()[name].isolates


def runs_here(name: str) -> bool:
    """Return whether programs run with the Python and the programs of this machine."""
    return name in kinds() and not kinds()[name].needs_image


def may_need_image(name: str) -> bool:
    """Return whether programs run in an image with a provider, or may with `auto`."""
    return name in provider_names() and not runs_here(name)


def likely(name: str) -> type[Provider] | None:
    """Return the provider of a name; for `auto`, the one that it takes as far as can be told without opening it."""
    for kind in kinds().values() if name == AUTO else ():
        with suppress(SandboxError):
            kind.knock()
            return kind
    return kinds().get(name)


def provider(
    name: str,
    environment: Environment | None = None,
    private: Sequence[Path] | None = None,
    *,
    worked: bool = False,
) -> Sandbox:
    """Return the provider of that name, for programs that need this environment.

    Programs cannot read `private` folders (default: where we are). What `worked` before is waited for while it is away.
    `auto` is the first that works here and has what is needed, and always isolates.
    Raises SandboxError: when it does not work here, or cannot give what is needed; the message says what to do;
    UsageError: when there is no such provider.
    """
    wanted = environment or Environment()
    if name == AUTO:
        return _automatic(wanted, private)
    if name not in kinds():
        raise UsageError(f"expected one of the sandboxes {', '.join(provider_names())}, got {name!r}")
    _refuse(kinds()[name], wanted)
    return kinds()[name].start(wanted, private, worked=worked)


def self_check(name: str, environment: Environment | None = None) -> list[Check]:
    """Check that a provider works here and keeps its promises, for `evogit doctor` and `evogit doctor sandbox`."""
    try:
        sandbox = provider(name, environment)
    except SandboxError as error:
        return [("sandbox", False, str(error))]
    try:
        checks = list(_probe(sandbox))
        return [*checks, *kinds()[sandbox.name].describe(environment or Environment())]
    except SandboxError as error:
        return [("sandbox", False, str(error))]
    finally:
        sandbox.close()


# --- the choice ---------------------------------------------------------------------------------------------------


def _automatic(wanted: Environment, private: Sequence[Path] | None) -> Sandbox:
    failures: dict[str, SandboxError] = {}
    for name in isolating():
        kind = kinds()[name]
        try:
            _refuse(kind, wanted)
            kind.knock()
            sandbox = _shown(kind.start(wanted, private, worked=False))
        except SandboxError as error:
            failures[kind.title] = error
            continue
        for failure in failures.values():
            if not isinstance(failure, LacksError):
                level = logging.INFO if isinstance(failure, NotHereError) else logging.WARNING
                logger.log(level, "using %s, as %s", name, failure)
        return sandbox
    reasons = ". ".join(f"{title}: {failure}" for title, failure in reversed(failures.items()))
    unsafe = next(name for name in kinds() if not isolates(name))
    raise SandboxError(
        f"no sandbox works here, and one is needed. {reasons}. "
        f"EvoGit does not run code without a sandbox unless you say --sandbox {unsafe}"
    )


def _shown(sandbox: Sandbox) -> Sandbox:
    try:
        with _open(sandbox) as session:
            reply = session.call("probe:about", b"{}")
    finally:
        sandbox.close()
    if reply.failure:
        raise SandboxError(f"{sandbox.name} starts, but no program runs in it: {reply.detail}")
    return sandbox


class LacksError(SandboxError):
    """Something is asked for that this provider does not have."""


def _refuse(kind: type[Provider], wanted: Environment) -> None:
    """Raise LacksError if something is asked for that a provider does not have."""
    for feature, key in _asked(kind.supports, wanted):
        able = [each for each in kinds().values() if feature in each.supports]
        raise LacksError(
            f"{key} needs {' or '.join(each.title for each in able)}, got --sandbox {kind.name}; "
            f"use --sandbox {able[0].name}, or take it out of [sandbox] in evogit.toml or task.toml"
        )


def _asked(supported: frozenset[str], wanted: Environment) -> Iterator[tuple[str, str]]:
    """Yield what is asked for and not supported: the feature, and how people write it."""
    usual = Environment()
    for name in ("links", "image", "setup", "runtime", "gpus", "cpus"):
        if name not in supported and getattr(wanted, name) != getattr(usual, name):
            yield name, f"sandbox.{name}"
    debian = [name.removeprefix(DEBIAN) for name in wanted.packages if name.startswith(DEBIAN)]
    for name in _absent(debian) if "debian" not in supported else ():
        yield "debian", f"apt:{name} in sandbox.packages, which is not installed here (apt-get install {name}),"


def _absent(packages: Sequence[str]) -> list[str]:
    if not packages:
        return []
    command = ["dpkg-query", "--show", "--showformat", "${binary:Package} ${db:Status-Status}\n", "--", *packages]
    try:
        said = run_child(command, seconds=QUERY_SECONDS, env=os.environ).stdout.decode(errors="replace")
    except OSError:  # no Debian
        return list(packages)
    here = {line.split()[0].partition(":")[0] for line in said.splitlines() if line.endswith(" installed")}
    return [name for name in packages if name not in here]


# --- what it is like ----------------------------------------------------------------------------------------------


def _open(sandbox: Sandbox) -> Session:
    return sandbox.open(pack({"probe.py": PROBE}), Limits())


def _probe(sandbox: Sandbox) -> Iterator[Check]:
    began = time.perf_counter()
    with _open(sandbox) as session:
        session.call("probe:about", b"{}")
    first = time.perf_counter()
    with _open(sandbox) as session, tempfile.NamedTemporaryFile() as file:
        about = session.call("probe:about", b"{}")
        second = time.perf_counter()
        times = f"in {1000 * (first - began):.0f} ms, the next one in {1000 * (second - first):.0f} ms"
        yield "sandbox", True, f"{sandbox.name} opens a session and gets a reply {times}"
        yield "sandboxed Python", not about.failure, about.detail or f"[user, pid, version]: {about.value.decode()}"
        outside = session.call("probe:outside", json.dumps({"args": [file.name]}).encode())
        found = outside.detail or outside.value.decode()
        isolated = found == "[]"
        yield "isolation", isolated, "no host files, no network" if isolated else f"programs see the host: {found}"
        counted = sandbox.timing == "counted"
        how = "counted by a cgroup of its own" if counted else "sampled every 10 ms (no cgroup of its own)"
        yield "limits", True, f"memory, CPU and processes are {how}"
