"""The Docker daemon of this machine: how it is found, what its refusals mean, and how long it is waited for."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import docker
from docker.errors import DockerException, ImageNotFound
from requests.exceptions import HTTPError, RequestException

from evogit.core import SandboxError
from evogit.sandbox import Environment
from evogit.sandbox.docker.socket import UnreachableError, address, knock
from evogit.sandbox.gpus import words

T = TypeVar("T")

OLDEST_API = (1, 40)  # Docker Engine 19.03: the first with GPUs
ANSWER = 10.0  # seconds that a daemon has to say which version it is
REQUEST = 60.0  # seconds that it has for any other request
PATIENCE = 60.0  # seconds that a daemon which was there may be away, as when it is restarted
PAUSES = (0.1, 2.0)  # seconds between two attempts to reach it: the first pause, and the longest
REFUSALS = {
    "no space left on device": "the disk of the Docker daemon is full; make room (`docker system df` tells what for)",
    "could not select device driver": (
        "sandbox.gpus needs Docker's support for GPUs, which this daemon lacks (NVIDIA: install "
        "nvidia-container-toolkit and restart Docker)"
    ),
    "unknown runtime specified": "this daemon does not know the runtime of sandbox.runtime; register it in daemon.json",
    "range of cpus is": "sandbox.cpus asks for more cores than this machine has",
    '"python3": executable file not found': "there is no python3 in the image of sandbox.image; it needs 3.11 or newer",
}
"""What the daemon says when it refuses a container -> what that means to a person."""

KERNEL_LIMITS = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "cores"}
"""What the daemon says that its kernel can do."""
GVISOR, IGNORES_LIMITS = "runsc", "--ignore-cgroups"


class AwayError(Exception):
    """The daemon did not answer, as while it is restarted."""


def connect(answer: float = ANSWER) -> docker.DockerClient:
    """Connect; the daemon has `answer` seconds to reply. Raises SandboxError with what to do when it cannot be used."""
    path = address()
    knock(path, answer)
    try:
        client = docker.DockerClient(base_url=f"unix://{path}", version="auto", timeout=answer)
    except (DockerException, RequestException) as error:
        raise UnreachableError(f"the Docker daemon at {path} does not answer: {error}") from error
    version = client.api.api_version
    if tuple(map(int, version.split("."))) < OLDEST_API:
        client.close()
        oldest = ".".join(map(str, OLDEST_API))
        raise SandboxError(
            f"expected a Docker Engine with API {oldest} (19.03) or newer at {path}, got {version}; update it"
        )
    client.api.timeout = REQUEST
    return client


@contextlib.contextmanager
def plainly(doing: str) -> Iterator[None]:
    """Turn the daemon's errors into a SandboxError with its meaning, or AwayError when it does not answer."""
    try:
        yield
    except ImageNotFound as error:
        raise SandboxError(f"cannot {doing}: its image is gone; `evogit doctor build` makes it again") from error
    except HTTPError as error:
        said = str(getattr(error, "explanation", None) or error)
        meaning = next((meaning for words, meaning in REFUSALS.items() if words in said.lower()), "")
        raise SandboxError(f"cannot {doing}: {meaning + '. Docker says: ' if meaning else ''}{said}") from error
    except (DockerException, RequestException, UnreachableError, OSError) as error:
        raise AwayError(f"cannot {doing}: {error}") from error


def patiently(act: Callable[[], T], patience: float) -> T:
    """Repeat while the daemon is away, for `patience` seconds. Raises SandboxError when it refuses or stays away."""
    until, (pause, longest) = time.monotonic() + patience, PAUSES
    while True:
        try:
            return act()
        except (AwayError, UnreachableError) as error:
            if time.monotonic() + pause > until:
                raise SandboxError(
                    f"the Docker daemon has been away for {patience:g} s ({error}); start it again, then go on"
                ) from error
        time.sleep(pause)
        pause = min(2 * pause, longest)


def check_daemon(client: docker.DockerClient, environment: Environment) -> None:
    """Raise SandboxError if programs cannot be kept apart as the environment asks, AwayError without an answer."""
    with plainly("look at the Docker daemon"):
        about = client.api.info()
    if about["OSType"] != "linux":
        raise SandboxError(f"expected Linux containers, got {about['OSType']}; switch Docker to Linux containers")
    if any(option.startswith(("name=rootless", "name=userns")) for option in about["SecurityOptions"]):
        raise SandboxError(
            "this Docker daemon runs containers in a user namespace (rootless, or userns-remap), where there are no "
            "user ids for candidates; use the system's daemon, or bubblewrap"
        )
    if environment.runtime and environment.runtime not in about["Runtimes"]:
        known = ", ".join(about["Runtimes"])
        raise SandboxError(
            f"sandbox.runtime = {environment.runtime} is not registered with the Docker daemon, which knows {known}; "
            "install gVisor, name it in daemon.json and restart Docker"
        )


def describe(environment: Environment) -> Iterator[tuple[str, bool, str]]:
    """Yield each check of the daemon: what, whether it is well, and a sentence. Raises SandboxError if unusable."""
    client = connect()
    about = client.api.info()
    yield "Docker", True, f"Engine {about['ServerVersion']}, API {client.api.api_version}"
    runtime = about["Runtimes"].get(environment.runtime or about["DefaultRuntime"], {})
    if IGNORES_LIMITS in (runtime.get("runtimeArgs") or []):
        missing = [*KERNEL_LIMITS.values()]
    else:
        missing = [name for key, name in KERNEL_LIMITS.items() if not about.get(key, True)]
    supervised = f"the kernel does not limit {', '.join(missing)} there; the supervisor alone does, by sampling"
    yield "container", True, supervised if missing else "the kernel limits it too, a little above the task's limits"
    if environment.gpus:
        yield "GPUs", True, words(environment.gpus)
    gvisor = "is registered: runtime in [sandbox] chooses it" if GVISOR in about["Runtimes"] else "is not registered"
    yield "gVisor", True, f"{GVISOR} {'serves the system calls' if environment.runtime == GVISOR else gvisor}"
    client.close()
