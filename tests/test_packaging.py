"""`pip install .` into an empty environment: what lands there, and that it works without the checkout."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CONTENT = ("sandbox", "tasks", "graphs")

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

    def evogit(self, *arguments: str, cwd: Path, timeout: float = 30) -> str:
        """Run the console script with next to nothing in its environment; its output."""
        done = subprocess.run(
            [self.folder / "bin" / "evogit", *arguments],
            cwd=cwd,
            env={"PATH": "/usr/bin:/bin", "HOME": str(cwd)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout


def tracked(*folders: str) -> set[str]:
    """Files of the checkout that Git knows, as they are in the work tree."""
    listing = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    return {path for path in listing.stdout.split("\0") if path and (ROOT / path).is_file()}


def awkward_files(task: Path) -> None:
    """Add to a task what ignore rules and installers like to drop, and what must be dropped."""
    for name in (".hidden", "seed/dist/page.js", "seed/build/out.txt", "seed/.gitignore", "seed/evogit-x/__init__.py"):
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text("*\n", encoding="utf-8")
    (task / "seed" / "__pycache__").mkdir(exist_ok=True)
    (task / "seed" / "__pycache__" / "stale.cpython-311.pyc").write_bytes(b"stale")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("environment")
    for path in tracked():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, source / path)
    awkward_files(source / "tasks" / "circle_packing")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--constraint", ROOT / "constraints.txt", "."], cwd=source, check=True)
    return Installed(source, folder)


def test_only_evogit_lands_in_site_packages(installed: Installed) -> None:
    tops = {Path(path).parts[0] for path, _, _ in installed.record()}
    (metadata,) = installed.site_packages.glob("evogit-*.dist-info")
    assert tops == {"evogit", metadata.name, ".."}
    assert [path for path, _, _ in installed.record() if path.startswith("..")] == ["../../../bin/evogit"]


def test_content_is_what_git_knows(installed: Installed) -> None:
    planted = {f"tasks/circle_packing/{name}" for name in (".hidden", "seed/dist/page.js", "seed/build/out.txt")}
    planted |= {f"tasks/circle_packing/seed/{name}" for name in (".gitignore", "evogit-x/__init__.py")}
    assert installed.content_files() == tracked(*CONTENT) | planted


def test_executable_content_stays_executable(installed: Installed) -> None:
    executable = {path for path in tracked(*CONTENT) if (ROOT / path).stat().st_mode & 0o100}
    content = installed.site_packages / "evogit" / "_content"
    assert executable <= {path for path in tracked(*CONTENT) if (content / path).stat().st_mode & 0o100}


def test_tasks_lists_the_gallery_anywhere(installed: Installed, tmp_path: Path) -> None:
    listed = installed.evogit("tasks", cwd=tmp_path)
    for folder in ("bin_packing", "circle_packing", "online_bin_packing"):
        assert folder in listed
    assert list(tmp_path.iterdir()) == []
