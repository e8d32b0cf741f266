"""Whose containers are whose: those of a process that is gone are removed, those of a living one never."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

import docker

from evogit.core import SandboxError
from evogit.sandbox.docker.daemon import plainly
from evogit.sandbox.docker.worker import remove
from evogit.subprocesses import QUERY_SECONDS, run_child

MARK = "evogit.worker"
"""The label of all our containers, in every version of EvoGit, with the value 1; images made from them have another."""
MACHINE, PROCESS, BORN = "evogit.machine", "evogit.process", "evogit.born"
"""Labels that tell which process made a container; process ids come again, so that its time of birth belongs to it."""

ENDED = "ZX"
"""States of a process of which only how it ended is left (proc_pid_stat(5))."""


def labels() -> dict[str, str]:
    """The labels of containers that this process makes."""
    pid = os.getpid()
    return {MARK: "1", MACHINE: _machine(), PROCESS: str(pid), BORN: _born(pid)}


def clean(client: docker.DockerClient) -> list[str]:
    """Remove all containers of processes that are gone; the ids of those removed.

    Raises:
        SandboxError: when the daemon refuses to; the others are removed all the same.
        AwayError: when it does not answer.
    """
    with plainly("remove containers of dead engines"):
        found = client.api.containers(all=True, filters={"label": f"{MARK}=1"})
    machine = _machine()
    orphans = [container["Id"] for container in found if _is_orphan(container["Labels"], machine)]
    removed, refusal = list[str](), None
    for container in orphans:
        try:
            removed += [container] if remove(client, container) else []
        except SandboxError as error:
            refusal = error
    if refusal:
        raise refusal
    return removed


def _is_orphan(labels: Mapping[str, str], machine: str) -> bool:
    """Whether its process is gone: of this boot and this view of processes; those of an earlier boot all are."""
    theirs, ours = labels.get(MACHINE, ""), machine
    pid, born = labels.get(PROCESS, ""), labels.get(BORN, "")
    if not pid.isdecimal() or theirs.partition(" ")[0] != ours.partition(" ")[0]:
        return True
    return theirs == ours and _born(int(pid)) not in (born, "unknown")


def _machine() -> str:
    """This boot, and the namespace in which process ids are meant."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node()


def _born(pid: int) -> str:
    """When a process was started, in whatever unit; empty when there is none, `unknown` when that is not told.

    One that has ended is none, even where its parent never asks how: the first process of a container may be one.
    """
    try:
        state, *about = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in ENDED else about[18]
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "unknown"
    told = run_child(["ps", "-o", "lstart=", "-p", str(pid)], seconds=QUERY_SECONDS, env=os.environ)
    return told.stdout.decode(errors="replace").strip() or "unknown"
