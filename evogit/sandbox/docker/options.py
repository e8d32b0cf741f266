"""What a worker's container may do: everything that Docker is told about it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import docker
from docker.types import DeviceRequest, LogConfig, Ulimit

from evogit.sandbox import Environment
from evogit.sandbox.archive import PAGE, disk_of
from evogit.sandbox.cgroups import TASKS, room
from evogit.sandbox.docker.images import Image
from evogit.sandbox.interpreter import environment
from evogit.sandbox.pool import WorkerStart
from evogit.sandbox.supervisor import BOOTSTRAP

BOX = "/tmp"
"""The one writable folder, a tmpfs."""
COMMAND = ("python3", "-s", "-P", "-S", "-B", "-c", BOOTSTRAP, "users", BOX)
CAPABILITIES = ("SETUID", "SETGID", "KILL")
"""What the supervisor needs to be one user after the other, and to end what they leave."""
SLACK = 1 << 20
"""Bytes of disk above the limit, so that a full disk shows as more than the limit."""
NOTHING = "ro,noexec,nosuid,nodev,mode=0555,size=4096,nr_inodes=1"
"""A tmpfs that stays empty."""
FILES = 65_536
"""Files that every session may have, as in the supervisor."""
UNCONNECTED = {"net.ipv4.tcp_max_tw_buckets": "0"}
"""Of the kernel: or a connection of a session would outlive it by a minute."""
CERTIFICATES = Path("/etc/ssl")
"""Where the machine has those of its registries and proxies, which an image cannot know."""
LIKELY_VICTIM = 500
"""Of 1000: when the machine has no memory left, workers go before the engine. Programs are at 1000."""


def container_options(
    client: docker.DockerClient,
    start: WorkerStart,
    *,
    image: Image,
    wanted: Environment,
    labels: Mapping[str, str],
    core: int | None,
) -> dict[str, Any]:
    """The arguments of `create_container` for one worker.

    Args:
        client: of the daemon.
        start: what the worker is started with; the kernel's limits are wider than those in it, so that what goes
            beyond them is seen, and told as what it is.
        image: what it is made from; folders that it declares as volumes are empty and read-only.
        wanted: the environment of the task.
        labels: whose container it is.
        core: the one core that it is pinned to.
    """
    variables: dict[str, str | None] = {**environment(Path("python3"), BOX), "HOSTNAME": None}
    del variables["PATH"]  # the image knows where its Python is
    return {
        "name": f"evogit-{secrets.token_hex(8)}",
        "image": image.id,
        "entrypoint": list(COMMAND),
        "command": [],
        "environment": variables,
        "use_config_proxy": False,
        "user": "0:0",
        "working_dir": "/",
        "hostname": "box",
        "stdin_open": True,
        "stop_signal": "SIGTERM",
        "healthcheck": {"test": ["NONE"]},
        "labels": dict(labels),
        "host_config": client.api.create_host_config(
            **_isolation(wanted), **_resources(start, wanted, core), **_places(start, _volumes(client, image), wanted)
        ),
    }


def _isolation(wanted: Environment) -> dict[str, Any]:
    return {
        "auto_remove": True,
        "cap_drop": ["ALL"],
        "cap_add": list(CAPABILITIES),
        "security_opt": ["no-new-privileges"],
        "network_mode": "host" if wanted.network else "none",
        "sysctls": {} if wanted.network else UNCONNECTED,
        "ipc_mode": "none" if not wanted.runtime else "private",
        "init": False,
        "log_config": LogConfig(type="none"),
        "runtime": wanted.runtime or None,
    }


def _resources(start: WorkerStart, wanted: Environment, core: int | None) -> dict[str, Any]:
    memory = room(start.limits, start.base, preloads=bool(start.preload))
    return {
        "mem_limit": memory,
        "memswap_limit": memory,
        "pids_limit": start.limits.processes + TASKS,
        "nano_cpus": int(wanted.cpus * 1e9),
        "cpuset_cpus": None if core is None else str(core),
        "device_requests": [DeviceRequest(device_ids=[*start.gpus], capabilities=[["gpu"]])] if start.gpus else None,
        "oom_score_adj": LIKELY_VICTIM,
        "ulimits": [Ulimit(name="core", soft=1, hard=1)],
    }


def _places(start: WorkerStart, volumes: Iterable[str], wanted: Environment) -> dict[str, Any]:
    """All that is writable is the box: message queues and volumes would outlive a session."""
    certified = wanted.network and CERTIFICATES.is_dir()
    size, files = disk_of(start.base.archive) if start.base else (0, 0)
    size += start.limits.disk + SLACK
    files += max(FILES, start.limits.disk // PAGE) + FILES
    return {
        "read_only": True,
        "binds": [f"{CERTIFICATES}:{CERTIFICATES}:ro"] if certified else [],
        "tmpfs": {
            BOX: f"exec,nosuid,nodev,mode=1777,size={size},nr_inodes={files}",
            **dict.fromkeys(("/dev/mqueue", *volumes), NOTHING),
        },
    }


def _volumes(client: docker.DockerClient, image: Image) -> list[str]:
    return sorted(client.api.inspect_image(image.id)["Config"].get("Volumes") or ())
