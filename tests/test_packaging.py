"""What an installation puts where: by `pip install .` into an empty environment, and by `scripts/setup`."""

from __future__ import annotations

import csv
import faulthandler
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clock import PATIENCE, wait_until
from tests.conftest import Once

ROOT = Path(__file__).parent.parent
CONTENT = ("sandbox", "tasks", "graphs")
SEED = "tasks/circle_packing/seed"
AWKWARD = {
    f"{SEED}/{name}" for name in (".gitignore", ".hidden/x", "build/x", "dist/x", "evogit-x/__init__.py", "run.sh")
}

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Installed:
    """An environment that EvoGit was installed into from `source`."""

    source: Path
    folder: Path

    @property
    def site_packages(self) -> Path:
        return next(self.folder.glob("lib/python3*/site-packages"))

    def record(self) -> list[list[str]]:
        """Rows of path relative to site-packages, hash and size; what the installer compiled has no hash."""
        (file,) = self.site_packages.glob("evogit-*.dist-info/RECORD")
        return list(csv.reader(file.read_text(encoding="utf-8").splitlines()))

    def content_files(self) -> set[str]:
        """Content files of the wheel, as named in the checkout."""
        return {
            path.removeprefix("evogit/_content/")
            for path, digest, _ in self.record()
            if digest and path.startswith("evogit/_content/")
        }

    def begin(self, *arguments: str, cwd: Path) -> subprocess.Popen[str]:
        """Start the console script with next to nothing in its environment."""
        return subprocess.Popen(
            [self.folder / "bin" / "evogit", *arguments],
            cwd=cwd,
            env={"PATH": "/usr/bin:/bin", "HOME": str(cwd)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def evogit(self, *arguments: str, cwd: Path) -> str:
        """What the console script prints."""
        return ended(self.begin(*arguments, cwd=cwd))


def ended(process: subprocess.Popen[str]) -> str:
    """What a process printed, once it ended well."""
    shown, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, told + shown
    return shown


def tracked(*folders: str) -> set[str]:
    """Files of the checkout that Git knows, as they are in the work tree."""
    listing = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    return {path for path in listing.stdout.split("\0") if path and (ROOT / path).is_file()}


def plant(source: Path) -> None:
    """Add to a copy of the project what ignore rules and installers like to drop, and what must be dropped."""
    for name in [*AWKWARD, f"{SEED}/__pycache__/stale.cpython-311.pyc"]:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("*\n", encoding="utf-8")
    (source / SEED / "run.sh").chmod(0o755)


@pytest.fixture(scope="module")
def installed(once: Once) -> Installed:
    folder = once("installed", install)
    return Installed(folder / "source", folder / "environment")


def install(place: Path) -> None:
    """Install a copy of the checkout into a new environment."""
    source, folder = place / "source", place / "environment"
    for path in tracked():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, source / path)
    plant(source)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "--disable-pip-version-check"]
    faulthandler.cancel_dump_traceback_later()  # pip may take minutes
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "."], cwd=source, check=True)
    ours = sysconfig.get_path("purelib")  # has what EvoGit depends on
    (Installed(source, folder).site_packages / "dependencies.pth").write_text(ours)


def test_only_evogit_lands_in_site_packages(installed: Installed) -> None:
    tops = {Path(path).parts[0] for path, _, _ in installed.record()}
    (metadata,) = installed.site_packages.glob("evogit-*.dist-info")
    assert tops == {"evogit", metadata.name, ".."}
    assert [path for path, _, _ in installed.record() if path.startswith("..")] == ["../../../bin/evogit"]


def test_content_is_what_git_knows(installed: Installed) -> None:
    assert installed.content_files() == tracked(*CONTENT) | AWKWARD


def test_templates_of_briefs_come_along(installed: Installed) -> None:
    templates = tracked("evogit/agents/briefs/templates")
    assert "evogit/agents/briefs/templates/brief.md" in templates
    assert templates <= {path for path, _, _ in installed.record()}


def test_executable_content_stays_executable(installed: Installed) -> None:
    assert (installed.site_packages / "evogit" / "_content" / SEED / "run.sh").stat().st_mode & 0o100


def test_tasks_lists_the_gallery_anywhere(installed: Installed, tmp_path: Path) -> None:
    listed = installed.evogit("tasks", cwd=tmp_path)
    gallery = {Path(path).parent.name for path in tracked("tasks") if path.endswith("task.toml")}
    assert "circle_packing" in gallery
    assert gallery <= set(listed.split())
    assert list(tmp_path.iterdir()) == []


def test_demo_evolves_anywhere(installed: Installed, tmp_path: Path) -> None:
    demo = installed.begin("--color", "never", "demo", "--minutes", "60", cwd=tmp_path)
    adopted = tmp_path / "evogit-demo" / ".git" / "refs" / "heads" / "evogit" / "demo"
    try:
        wait_until(lambda: demo.poll() is not None or adopted.exists(), "an agent that adopted the seed", every=0.1)
        installed.evogit("stop", "-C", "evogit-demo", cwd=tmp_path)
        assert "seed of circle_packing" in ended(demo)
    finally:
        demo.kill()
    assert [path.name for path in tmp_path.glob("[!.]*")] == ["evogit-demo"]


def test_setup_without_root_names_the_packages() -> None:
    with tempfile.TemporaryDirectory() as commands:
        Path(commands).chmod(0o755)
        for name in ("apt-get", "dirname", "git", "id"):
            Path(commands, name).symlink_to(f"/usr/bin/{name}")
        done = subprocess.run(
            ["/bin/sh", "-s"],
            input=(ROOT / "scripts" / "setup").read_text(encoding="utf-8"),
            env={"PATH": commands, "PYTHON": "/nowhere/python3"},
            user=None if os.geteuid() else 65534,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 1
    assert "apt-get install -y --no-install-recommends bubblewrap python3-venv\n" in done.stderr
