"""Sandboxes made by Docker: one hardened container per worker, and in it one user per session."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import secrets
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import docker
from docker.types import DeviceRequest, LogConfig, Ulimit

from evogit.content import content
from evogit.core import SandboxError
from evogit.sandbox import Environment
from evogit.sandbox.archive import PAGE, disk_of, entries_of
from evogit.sandbox.cache import Say
from evogit.sandbox.cgroups import TASKS, room
from evogit.sandbox.cores import exclusive_core
from evogit.sandbox.docker.daemon import (
    ANSWER,
    GVISOR,
    PATIENCE,
    AwayError,
    check_daemon,
    connect,
    patiently,
    plainly,
)
from evogit.sandbox.docker.images import Image, build_image
from evogit.sandbox.docker.socket import address, knock
from evogit.sandbox.docker.worker import DockerWorker, clean, labels, remove
from evogit.sandbox.gpus import lender
from evogit.sandbox.interpreter import BOOTSTRAP, environment, program
from evogit.sandbox.pool import MOST_SESSIONS, Pool, WorkerStart, no_gpus
from evogit.sandbox.seccomp import compile_filter

logger = logging.getLogger(__name__)

BOX = "/tmp"  # the one writable folder, a tmpfs
COMMAND = ("python3", "-s", "-P", "-S", "-B", "-c", BOOTSTRAP, "users", BOX)
CAPABILITIES = ("SETUID", "SETGID", "KILL")  # to change users and to end what they leave
SLACK = 1 << 20  # bytes of disk above the limit, so that a full disk shows as more than the limit
NOTHING = "ro,noexec,nosuid,nodev,mode=0555,size=4096,nr_inodes=1"  # a tmpfs that stays empty
FILES = 65_536  # files that every session may have, as in the supervisor
UNCONNECTED = {"net.ipv4.tcp_max_tw_buckets": "0"}  # else a connection would outlive its session by a minute
CERTIFICATES = Path("/etc/ssl")  # the certificates of this machine's registries and proxies, which an image cannot know
LIKELY_VICTIM = 500  # Of 1000: when the machine has no memory left, workers go before the engine. Programs are at 1000.


class Docker:
    """The provider `docker`: warm containers that give each session a user and a folder of its own."""

    name = "docker"

    def __init__(
        self,
        environment: Environment | None = None,
        say: Say = logger.warning,
        patience: float = PATIENCE,
        *,
        worked: bool = False,
    ) -> None:
        """Find the daemon and the image. One that `worked` may be away for `patience` seconds. Raises SandboxError."""
        self._environment = environment or Environment()
        self.timing: Literal["counted", "sampled"] = "sampled" if self._environment.runtime else "counted"
        self._client = patiently(connect, patience) if worked else connect()
        self._left_behind: list[str] = []
        patiently(lambda: check_daemon(self._client, self._environment), patience if worked else 0.0)
        patiently(lambda: clean(self._client), patience if worked else 0.0)
        self._image = build_image(self._client, self._environment, say)
        folder = content("sandbox")
        self._program = program(folder)
        self._filter = compile_filter(folder / "seccomp.json")
        self._core = exclusive_core() if self._environment.exclusive else None
        number, exclusive = self._environment.gpus, self._environment.exclusive
        sessions = 1 if self._environment.isolation == "fresh" else MOST_SESSIONS
        self._pool = Pool(
            lambda start: patiently(lambda: self._start(start), patience),
            self._filter,
            sessions,
            network=self._environment.network,
            cpus=self._environment.cpus,
            gpus=partial(lender().lent, number, logger.warning, equal=exclusive) if number else no_gpus,
        )
        self.open = self._pool.open

    def image(self) -> str:
        """A digest of what programs find inside: system, interpreter, libraries, supervisor."""
        parts = [self._image.digest, self._program.hex(), self._filter.hex(), self._environment.runtime]
        return f"docker:{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]}"

    def close(self) -> None:
        """End the idle workers; a daemon that is there removes what it could not, or was not asked to in time."""
        self._pool.close()
        for remove_some in (self._remove_left_behind, lambda: clean(self._client)):
            with contextlib.suppress(AwayError, SandboxError):  # the next engine tries again, and says what is wrong
                remove_some()

    def _start(self, start: WorkerStart) -> DockerWorker:
        if self._environment.runtime == GVISOR and start.base and start.base.readonly:
            entries, _ = entries_of(start.base.archive)
            for path in (path for path, kind, *_ in entries if kind != "folder" and path in start.base.readonly):
                raise SandboxError(
                    f"gVisor cannot keep a program from putting a file of its own in the place of {path}, which is to "
                    "be read-only: withhold its whole folder (FOLDER/**), or take sandbox.runtime out"
                )
        named = f" with the GPUs {', '.join(start.gpus)}" if start.gpus else ""
        with plainly(f"start a container{named}"):
            knock(address(), ANSWER)
            self._remove_left_behind()
            options = container_options(
                self._client, start, image=self._image, wanted=self._environment, labels=labels(), core=self._core
            )
            return DockerWorker(self._client, options, self._program, self._left_behind.append)

    def _remove_left_behind(self) -> None:
        """Remove what could not be removed while the daemon was away."""
        while self._left_behind and remove(self._client, self._left_behind[-1]):
            self._left_behind.pop()


def container_options(
    client: docker.DockerClient,
    start: WorkerStart,
    *,
    image: Image,
    wanted: Environment,
    labels: Mapping[str, str],
    core: int | None,
) -> dict[str, Any]:
    """Return the arguments of `create_container`; limits are wider than the task's, so that breaches are seen."""
    volumes = sorted(client.api.inspect_image(image.id)["Config"].get("Volumes") or ())
    variables: dict[str, str | None] = {**environment(Path("python3"), BOX, ""), "HOSTNAME": None}
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
        "host_config": client.api.create_host_config(**confinement(start, volumes, wanted, core)),
    }


def confinement(start: WorkerStart, volumes: Iterable[str], wanted: Environment, core: int | None) -> dict[str, Any]:
    """Return how a container is confined. All that is writable is the box: volumes would outlive a session."""
    memory = room(start.limits, start.base, preloads=bool(start.preload))
    certified = wanted.network and CERTIFICATES.is_dir()
    size, files = disk_of(start.base.archive) if start.base else (0, 0)
    size += start.limits.disk + SLACK
    files += max(FILES, start.limits.disk // PAGE) + FILES
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
        "mem_limit": memory,
        "memswap_limit": memory,
        "pids_limit": start.limits.processes + TASKS,
        "nano_cpus": int(wanted.cpus * 1e9),
        "cpuset_cpus": None if core is None else str(core),
        "device_requests": [DeviceRequest(device_ids=[*start.gpus], capabilities=[["gpu"]])] if start.gpus else None,
        "oom_score_adj": LIKELY_VICTIM,
        "ulimits": [Ulimit(name="core", soft=1, hard=1)],
        "read_only": True,
        "binds": [f"{CERTIFICATES}:{CERTIFICATES}:ro"] if certified else [],
        "tmpfs": {
            BOX: f"exec,nosuid,nodev,mode=1777,size={size},nr_inodes={files}",
            **dict.fromkeys(("/dev/mqueue", *volumes), NOTHING),
        },
    }
