"""Chooses a provider by name, and tells whether it works here."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from evogit.core import SandboxError, UsageError
from evogit.sandbox import Environment, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.bare import Bare
from evogit.sandbox.bubblewrap import Bubblewrap
from evogit.sandbox.docker.socket import AbsentError, address, knock
from evogit.sandbox.packages import DEBIAN
from evogit.sandbox.session import Sandbox, Session
from evogit.subprocesses import QUERY_SECONDS, run_child

logger = logging.getLogger(__name__)

NAMES = ("auto", "docker", "bubblewrap", "none")
QUICK = 2.0  # seconds that `auto` waits for a Docker daemon to say something
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


def provider(
    name: str,
    environment: Environment | None = None,
    private: Sequence[Path] | None = None,
    *,
    worked: bool = False,
) -> Sandbox:
    """Return the provider of that name, for programs that need this environment.

    Programs cannot read `private` folders (default: where we are). What `worked` before is waited for while it is away.
    `auto` is Docker if its daemon answers and the image is there or soon made, else bubblewrap, and never `none`.
    Raises SandboxError: when it does not work here, or cannot give what is needed; the message says what to do;
    UsageError: when there is no such provider.
    """
    wanted = environment or Environment()
    if name == "auto":
        return _automatic(wanted, private)
    if name in ("docker", "none") and wanted.links:
        raise SandboxError(f"sandbox.links needs bubblewrap, got --sandbox {name}; use --sandbox bubblewrap")
    if name == "docker":
        return _docker(wanted, worked)
    if name not in NAMES:
        raise UsageError(f"expected one of the sandboxes {', '.join(NAMES)}, got {name!r}")
    for key in _only_docker(wanted):
        raise SandboxError(
            f"{key} needs Docker, got --sandbox {name}; start Docker (systemctl start docker) "
            "and use --sandbox docker, or take it out of [sandbox] in evogit.toml or task.toml"
        )
    return Bubblewrap(wanted, private=private) if name == "bubblewrap" else Bare(wanted)


def is_docker(name: str) -> bool:
    """Whether the provider of that name is Docker, as far as can be told without opening it."""
    if name != "auto":
        return name == "docker"
    try:
        knock(address(), QUICK)
    except SandboxError:
        return False
    return True


def self_check(name: str, environment: Environment | None = None) -> list[Check]:
    """Check that a provider works here and keeps its promises, for `evogit doctor` and `evogit doctor sandbox`."""
    try:
        sandbox = provider(name, environment)
    except SandboxError as error:
        return [("sandbox", False, str(error))]
    try:
        checks = list(_probe(sandbox))
        if sandbox.name == "docker":
            from evogit.sandbox.docker.daemon import describe

            checks += describe(environment or Environment())
        return checks
    except SandboxError as error:
        return [("sandbox", False, str(error))]
    finally:
        sandbox.close()


# --- the choice ---------------------------------------------------------------------------------------------------


def _docker(wanted: Environment, worked: bool = False) -> Sandbox:
    from evogit.sandbox.docker.provider import Docker  # takes 0.15 s to import, which bubblewrap need not pay

    return Docker(wanted, worked=worked)


def _automatic(wanted: Environment, private: Sequence[Path] | None) -> Sandbox:
    if wanted.links:
        return _shown(Bubblewrap(wanted, private=private))
    try:
        knock(address(), QUICK)
        return _shown(_docker(wanted))
    except SandboxError as error:
        docker = error
    for key in _only_docker(wanted):
        raise SandboxError(f"{key} needs Docker, which does not work here: {docker}") from docker
    try:
        sandbox = _shown(Bubblewrap(wanted, private=private))
    except SandboxError as bubblewrap:
        raise SandboxError(
            f"no sandbox works here, and one is needed. bubblewrap: {bubblewrap}. Docker: {docker}. "
            "EvoGit does not run code without a sandbox unless you say --sandbox none"
        ) from bubblewrap
    logger.log(logging.INFO if isinstance(docker, AbsentError) else logging.WARNING, "using bubblewrap, as %s", docker)
    return sandbox


def _shown(sandbox: Sandbox) -> Sandbox:
    try:
        with _open(sandbox) as session:
            reply = session.call("probe:about", b"{}")
    finally:
        sandbox.close()
    if reply.failure:
        raise SandboxError(f"{sandbox.name} starts, but no program runs in it: {reply.detail}")
    return sandbox


def _only_docker(wanted: Environment) -> Iterator[str]:
    """What is asked for that no other provider has."""
    asked = {
        "sandbox.image": bool(wanted.image),
        "sandbox.setup": bool(wanted.setup),
        **{
            f"apt:{name} in sandbox.packages, which is not installed here (apt-get install {name}),": True
            for name in _absent([name.removeprefix(DEBIAN) for name in wanted.packages if name.startswith(DEBIAN)])
        },
        "sandbox.runtime": bool(wanted.runtime),
        "sandbox.gpus": bool(wanted.gpus),
        "sandbox.cpus": wanted.cpus != Environment().cpus,
    }
    yield from (key for key, is_asked in asked.items() if is_asked)


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
