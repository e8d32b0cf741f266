"""One hardened container with a supervisor as its first process, and the stream to it that the daemon carries."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import select
import socket
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, NotFound
from requests import Response
from requests.exceptions import RequestException

from evogit.core import SandboxError, SandboxLostError
from evogit.sandbox.docker.daemon import ANSWER, REQUEST, AwayError, plainly
from evogit.sandbox.docker.socket import UnreachableError, address, knock
from evogit.sandbox.session import SILENCE
from evogit.sandbox.wire import LostError, Wire
from evogit.subprocesses import QUERY_SECONDS, run_child

HEAD = struct.Struct(">BxxxI")  # in front of each piece of output: which stream it is of, and its size
STDOUT = 1
COMPLAINT = 4000  # most bytes of stderr that are kept for a message
PATIENCE = 3.0  # seconds for a container to be gone by itself, once its input is closed
VERDICT = 15.0  # seconds for the daemon to say how a container ended whose stream has ended
STOPPED, KILLED = 143, 137  # exit codes of a supervisor that was told to stop from outside, and of one that was killed
MARK = "evogit.worker"  # the label of all our containers, with the value 1; their images have another value
MACHINE, PROCESS, BORN = "evogit.machine", "evogit.process", "evogit.born"
"""Labels that tell which process made a container; process ids come again, so that its time of birth belongs to it."""
ENDED = "ZX"  # states of a process of which only how it ended is left (proc_pid_stat(5))


class AttachedWire(Wire):
    """A wire over a stream in which the daemon mixes stdout and stderr of a container."""

    def __init__(self, stream: int) -> None:
        super().__init__(stream, stream)
        self.complaint = bytearray()
        self._head = bytearray()
        self._kind = STDOUT
        self._left = 0

    def _arrived(self, piece: bytes) -> None:
        rest = memoryview(piece)
        while rest:
            if self._left:
                part, rest = rest[: self._left], rest[self._left :]
                self._left -= len(part)
                if self._kind == STDOUT:
                    self._come += part
                elif len(self.complaint) < COMPLAINT:
                    self.complaint += part[:COMPLAINT]
            else:
                missing = HEAD.size - len(self._head)
                self._head += rest[:missing]
                rest = rest[missing:]
                if len(self._head) == HEAD.size:
                    self._kind, self._left = HEAD.unpack(self._head)
                    self._head.clear()


class DockerWorker:
    """Keeps the contract of `Jail`. Docker removes the container when its input ends, even if this process is killed.

    A request that waits for that is sent before the start, so that the daemon reports how the container ended.
    """

    def __init__(
        self,
        client: docker.DockerClient,
        options: Mapping[str, Any],
        program: bytes,
        left_behind: Callable[[str], None],
    ) -> None:
        """Start a container that reads `program` first. `left_behind` takes the id of one that could not be removed."""
        self._client = client
        self._left_behind = left_behind
        self._gone = False
        self._away = ""
        self._code: int | None = None
        self._id = str(options["name"])
        with contextlib.ExitStack() as undo:
            undo.callback(self._remove)
            self._id = client.api.create_container(**options)["Id"]
            removed = {"condition": "removed"}  # the answer begins at once, and ends when the container is removed
            self._ending = undo.enter_context(self._post("wait", removed))
            streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            with self._post("attach", streams, {"Connection": "Upgrade", "Upgrade": "tcp"}) as response:
                joined = socket.fromfd(response.raw.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)
            self._stream = undo.enter_context(joined)
            client.api.start(self._id)
            self._attached = AttachedWire(self._stream.fileno())
            self.wire: Wire = self._attached
            with contextlib.suppress(LostError):  # it will be found when its first answer does not come
                self.wire.send_bytes(program, deadline=time.monotonic() + REQUEST)
            undo.pop_all()

    def complaint(self) -> str:
        """What it wrote to stderr so far."""
        return self._attached.complaint.decode(errors="replace")

    def autopsy(self) -> tuple[str, str]:
        """Who ended the container.

        From inside, the first process can only be ended by the kernel, for lack of memory: it ignores all signals but
        SIGTERM, and takes that one from nobody inside. So a container that was told to stop was stopped by a person
        or by the daemon, as was one that the daemon says it killed (at its own end it does so with those whose first
        process does not hear SIGTERM yet); and the daemon was restarted when it cannot tell.
        """
        self._learn_ending(VERDICT)
        if not self._away and self._code == KILLED:
            self._learn_killer()
        if self._away:
            raise SandboxLostError(f"the Docker daemon went away under the program: {self._away}")
        if self._code == STOPPED:
            raise SandboxLostError("the container of the program was stopped from outside")
        if self._code == KILLED:
            return "out-of-memory", "the kernel killed the sandbox for lack of memory"
        return "crashed", "the program brought its sandbox down"

    def silence(self) -> str:
        """Who is silent: the daemon, which carries all that is said, or the container."""
        try:
            knock(address(), ANSWER)
        except UnreachableError as error:
            self._away = str(error)
            raise SandboxLostError(f"the Docker daemon stopped answering under the program: {error}") from error
        return SILENCE

    def kill(self) -> None:
        """End the container and have it removed; may be called again."""
        if self._gone:
            return
        self._gone = True
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)
        self._stream.close()
        self._learn_ending(PATIENCE)
        self._ending.close()
        if self._away:
            self._left_behind(self._id)
        elif self._code is None:
            self._remove()

    def _learn_ending(self, patience: float) -> None:
        """Let the daemon tell how the container ended, if it does so in time, or learn that it is away."""
        if self._code is not None or self._away or self._ending.raw.closed:
            return
        ready = select.poll()
        ready.register(self._ending.raw.fileno(), select.POLLIN)
        if ready.poll(patience * 1000):
            try:
                with plainly("learn how a container ended"):
                    self._code = int(self._ending.json()["StatusCode"])
            except AwayError as error:
                self._away = str(error)

    def _learn_killer(self) -> None:
        """Read the daemon's events of the container's end: `kill` if it did that itself, and `die`."""
        api = self._client.api
        about = json.dumps({"container": [self._id], "event": ["kill", "die"]})
        period = {"since": "0", "until": f"{time.time():.9f}", "filters": about}
        try:
            with plainly("learn who killed a container"):
                response = api.get(f"{api.base_url}/v{api.api_version}/events", params=period, timeout=REQUEST)
                response.raise_for_status()
                acts = {json.loads(line)["Action"] for line in response.text.splitlines()}
        except AwayError as error:
            self._away = str(error)
            return
        if "kill" in acts:
            self._code = STOPPED
        elif not acts:
            self._away = "it does not know the container any more"

    def _post(self, what: str, parameters: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
        api = self._client.api
        url = f"{api.base_url}/v{api.api_version}/containers/{self._id}/{what}"
        response: Response = api.post(url, params=parameters, headers=headers, stream=True, timeout=REQUEST)
        response.raise_for_status()
        return response

    def _remove(self) -> None:
        if not remove(self._client, self._id):
            self._left_behind(self._id)


def remove(client: docker.DockerClient, container: str) -> bool:
    """Remove a container, running or not; false when the daemon is away."""
    try:
        knock(address(), REQUEST)
        client.api.remove_container(container, force=True, v=True)
    except NotFound:
        return True
    except APIError as error:
        if error.status_code != 409:  # 409: it is being removed already
            raise SandboxError(f"cannot remove the container {container}: {error.explanation}") from error
    except (RequestException, UnreachableError):
        return False
    return True


def labels() -> dict[str, str]:
    """The labels of containers that this process makes."""
    pid = os.getpid()
    return {MARK: "1", MACHINE: _machine(), PROCESS: str(pid), BORN: _born(pid)}


def clean(client: docker.DockerClient) -> list[str]:
    """Remove all containers of dead processes; return their ids. Raises SandboxError at the end, or AwayError."""
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
    """Return True if its process is gone, in this boot and PID namespace; those of an earlier boot all are."""
    theirs, ours = labels.get(MACHINE, ""), machine
    pid, born = labels.get(PROCESS, ""), labels.get(BORN, "")
    if not pid.isdecimal() or theirs.partition(" ")[0] != ours.partition(" ")[0]:
        return True
    return theirs == ours and _born(int(pid)) not in (born, "unknown")


def _machine() -> str:
    """Return this boot, and the namespace of its process ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node()


def _born(pid: int) -> str:
    """Return when a process was started: "" if there is none, or a zombie alone; `unknown` if that cannot be seen."""
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
