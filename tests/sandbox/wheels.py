"""Wheels made by hand, so that pip needs no index."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
KIND = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-{platform}\n"
COMMANDS = "[console_scripts]\n{name} = {name}:main\n"


def write_wheel(folder: Path, name: str, source: str, platform: str = "any", needs: str = "") -> None:
    """A wheel with one module and a command, which perhaps needs another package."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": source,
        f"{info}/METADATA": METADATA.format(name=name) + (f"Requires-Dist: {needs}\n" if needs else ""),
        f"{info}/WHEEL": KIND.format(platform=platform),
        f"{info}/entry_points.txt": COMMANDS.format(name=name),
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-{platform}.whl", "w") as wheel:
        for path, content in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(path, content)


def only_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip know nothing but this folder."""
    for name, value in {"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}.items():
        monkeypatch.setenv(name, value)
