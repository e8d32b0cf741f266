"""`scripts/with-docker`: a daemon that is there while a command runs, and nothing of it afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "with-docker"

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts a daemon")
pytestmark = [pytest.mark.slow, pytest.mark.docker]

CLEANING = """
"$EVOGIT" sandbox clean --all --json
tar --create --files-from /dev/null | docker import - evogit/sandbox:feed >/dev/null
"$EVOGIT" sandbox clean --json
docker images --quiet | wc -l
exit 7
"""


def environment(folder: Path, host: str = "unix:///nonexistent/docker.sock") -> dict[str, str]:
    """One in which no daemon answers."""
    own = {"DOCKER_HOST": host, "TMPDIR": str(folder), "XDG_CACHE_HOME": str(folder)}
    return {**os.environ, **own, "EVOGIT": str(Path(sys.executable).with_name("evogit"))}


def commands() -> Iterator[str]:
    """The command lines of all processes, but for those that end meanwhile."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield path.read_bytes().replace(b"\0", b" ").decode()


def remains(folder: Path) -> list[str]:
    """Processes, mounts, interfaces and control groups of daemons that were started in the folder."""
    found = [command for command in commands() if str(folder) in command and "with-docker" not in command]
    found += [line for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]
    found += [path.name for path in folder.glob("evogit-docker.*")]
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def interfaces() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}


@root_only
def test_its_own_daemon_ends_with_the_command(folder: Path) -> None:
    before = interfaces()
    done = subprocess.run(
        [SCRIPT, "sh", "-c", CLEANING], env=environment(folder), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 7, done.stderr
    first, second, images = done.stdout.splitlines()
    assert '"removed": []' in first
    assert '"name": "evogit/sandbox:feed"' in second
    assert images == "0"
    assert remains(folder) == []
    assert interfaces() == before


@root_only
def test_it_ends_when_it_is_told_to(folder: Path) -> None:
    script = 'echo "$DOCKER_HOST" >"$TMPDIR/new" && mv "$TMPDIR/new" "$TMPDIR/ready" && docker info && sleep 60'
    with subprocess.Popen([SCRIPT, "sh", "-c", script], env=environment(folder), start_new_session=True) as process:
        while process.poll() is None and not (folder / "ready").exists():
            time.sleep(0.05)
        assert (folder / "ready").read_text().startswith(f"unix://{folder}/")
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(60) == 143
    assert remains(folder) == []


def test_a_daemon_that_answers_is_used_and_left_alone(folder: Path) -> None:
    host = os.environ.get("DOCKER_HOST", "")
    done = subprocess.run(
        [SCRIPT, "sh", "-c", 'echo "$DOCKER_HOST"'], env=environment(folder, host), capture_output=True, text=True
    )
    assert done.stdout.strip() == host
    assert list(folder.iterdir()) == []
