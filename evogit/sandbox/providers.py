"""Chooses a provider by name, and tells whether it works here."""

from __future__ import annotations

import time
from collections.abc import Iterator

from evogit.core import SandboxError, UsageError
from evogit.sandbox import Environment, Limits, Sandbox, Session
from evogit.sandbox.archive import pack
from evogit.sandbox.bare import Bare
from evogit.sandbox.bubblewrap import Bubblewrap

NAMES = ("auto", "docker", "bubblewrap", "none")

Check = tuple[str, bool, str]
"""What was checked, whether it is well, and a sentence about it."""

PROBE = b"""
import os, socket, sys

def about():
    return [os.geteuid(), os.getpid(), "%d.%d.%d" % sys.version_info[:3]]

def outside():
    found = [path for path in ("/var", "/run", "/sys") if os.path.exists(path)]
    if os.access("/usr", os.W_OK):
        found.append("a writable system")
    try:
        socket.create_connection(("192.0.2.1", 9), timeout=0.2).close()
    except OSError as error:
        if not "unreachable" in str(error):
            found.append("a network")
    return found
"""


def provider(name: str, environment: Environment | None = None) -> Sandbox:
    """The provider of that name, for programs that need this environment (default: nothing special).

    `auto` is the best isolation that works here, and never `none`.

    Raises:
        SandboxError: when it does not work here; the message says what to do.
        UsageError: when there is no such provider.
    """
    if name == "bubblewrap":
        return Bubblewrap()
    if name == "none":
        return Bare()
    if name == "docker":
        raise SandboxError("the sandbox docker is not available in this version of EvoGit; use bubblewrap")
    if name == "auto":
        return _automatic()
    raise UsageError(f"expected one of the sandboxes {', '.join(NAMES)}, got {name!r}")


def self_check(name: str) -> list[Check]:
    """Whether a provider works here and holds what it promises, for `evogit doctor`."""
    try:
        sandbox = provider(name)
        began = time.perf_counter()
        with _open(sandbox) as session:
            opened = time.perf_counter() - began
            return [("sandbox", True, f"{sandbox.name} opens a session in {1000 * opened:.0f} ms"), *_probe(session)]
    except SandboxError as error:
        return [("sandbox", False, str(error))]


def _automatic() -> Sandbox:
    try:
        sandbox = Bubblewrap()
        _open(sandbox).close()
    except SandboxError as error:
        raise SandboxError(
            f"no sandbox works here. bubblewrap: {error}. Install it (apt-get install bubblewrap) on a kernel that "
            "allows unprivileged user namespaces, or start Docker (systemctl start docker) and use a version of "
            "EvoGit that supports it. EvoGit does not run code without a sandbox unless you say --sandbox none"
        ) from error
    return sandbox


def _open(sandbox: Sandbox) -> Session:
    return sandbox.open(pack({"probe.py": PROBE}), Limits())


def _probe(session: Session) -> Iterator[Check]:
    about, outside = session.call("probe:about", b"{}"), session.call("probe:outside", b"{}")
    yield "sandboxed Python", not about.failure, about.detail or f"[user, pid, version]: {about.value.decode()}"
    found = outside.detail or outside.value.decode()
    isolated = found == "[]"
    yield "isolation", isolated, "no host files, no network" if isolated else f"programs see the host: {found}"
    yield "limits", True, "memory, CPU and processes are sampled every 10 ms (no cgroup of its own)"
