"""A Docker daemon of a test's own, to be mistreated."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import docker

from evogit.sandbox.docker.daemon import connect
from evogit.sandbox.docker.provider import Docker
from evogit.sandbox.docker.socket import UnreachableError, knock
from tests.clock import PATIENCE, wait_until


class OwnDaemon:
    """A Docker daemon that sees nothing of others: its mounts and its network go with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "d.sock"
        self._log = (folder / "log").open("ab")

    def start(self) -> None:
        options = f"--data-root {self.folder}/data --exec-root {self.folder}/exec --host unix://{self.socket}"
        options += f" --pidfile {self.folder}/pid --bridge none --iptables=false --ip-forward=false --ip-masq=false"
        for file in ("pid", "exec/containerd/containerd.pid"):  # of one that was killed, perhaps a zombie still
            (self.folder / file).unlink(missing_ok=True)
        command = ["unshare", "--mount", "--net", "dockerd", *options.split()]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log, start_new_session=True)
        until = time.monotonic() + PATIENCE
        while not self._answers():
            assert time.monotonic() < until, (self.folder / "log").read_text()[-2000:]
            assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            knock(str(self.socket), 2.0)
        except UnreachableError:
            return False
        return True

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Let it hang."""
        self._process.send_signal(signal.SIGSTOP)
        wait_until(self._stands_still)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def _stands_still(self) -> bool:
        threads = Path(f"/proc/{self._process.pid}/task").glob("*/stat")
        return all(thread.read_text().rpartition(")")[2].split()[0] == "T" for thread in threads)

    def end(self, number: signal.Signals) -> None:
        self._process.send_signal(number)
        self._process.wait()
        wait_until(lambda: not self.find("containerd --config"))

    def close(self) -> None:
        """End it, with whatever is left of its containers."""
        if self._process.poll() is None:
            self.end(signal.SIGTERM)
        self._log.close()
        while left := self.find(""):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder)

    def find(self, words: str) -> list[int]:
        """Its processes whose command line has these words."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if words in line and f"{self.folder}/exec" in line:
                    found.append(int(entry.parent.name))
        return found

    @contextlib.contextmanager
    def full_disk(self) -> Iterator[None]:
        """Give its containers a disk on which there is no room."""
        inside = ["nsenter", "--mount", f"--target={self._process.pid}"]
        containers = f"{self.folder}/data/containers"
        subprocess.run([*inside, "mount", "-t", "tmpfs", "-o", "size=4k", "none", containers], check=True)
        yield
        subprocess.run([*inside, "umount", containers], check=True)


@contextlib.contextmanager
def own_daemon() -> Iterator[OwnDaemon]:
    """One that has the image of the machine's daemon."""
    image = Docker()._image
    daemon = OwnDaemon(Path(tempfile.mkdtemp(prefix="evogit-test-")))
    try:
        daemon.start()
        shared = connect()
        archive = shared.images.get(image.name).save(named=image.name)
        docker.DockerClient(base_url=f"unix://{daemon.socket}").images.load(b"".join(archive))
        shared.close()
        yield daemon
    finally:
        daemon.close()
