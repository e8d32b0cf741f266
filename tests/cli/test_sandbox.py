"""`evogit doctor build`, `check`, `clean` on this machine."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.conftest import NOWHERE

from .conftest import Cli

ENVIRONMENT = {name: value for name, value in os.environ.items() if name == "DOCKER_HOST"}


@pytest.mark.slow
def test_check_tries_bubblewrap_where_docker_is_not_running(cli: Cli) -> None:
    done = cli("doctor", "sandbox", DOCKER_HOST=NOWHERE)
    assert done.code == 0
    checks = [line for line in done.out.splitlines() if line.startswith(("  ok", "  warn", "  fail"))]
    assert sum("no Docker daemon answers" in line for line in checks) == 1
    for limit, said in (("memory", "MiB of memory"), ("processes", "processes"), ("disk", "wrote"), ("CPU", "of CPU")):
        assert any(line.startswith(f"  ok   {limit} limit") and said in line for line in checks)
    assert any(line.startswith("  ok   system calls") for line in checks)


@pytest.mark.slow
def test_check_fails_where_a_sandbox_does_not_hold(cli: Cli) -> None:
    done = cli("doctor", "sandbox", "--sandbox", "none", "--json")
    assert done.code == 1
    levels = {check["what"]: check["level"] for check in done.json["checks"]}
    assert {levels[what] for what in ("isolation", "system calls", "namespaces")} == {"fail"}
    assert levels["CPU limit"] == "ok"


def test_build_without_docker_tells_what_is_used(cli: Cli) -> None:
    done = cli("doctor", "build", "--json", DOCKER_HOST=NOWHERE)
    assert (done.json["sandbox"], done.json["packages"]) == ("bubblewrap", "none")
    done = cli("doctor", "build", "--sandbox", "docker", DOCKER_HOST=NOWHERE)
    assert (done.code, done.out) == (1, "")
    assert "no Docker daemon answers" in done.err


def test_clean_removes_packages_that_no_task_here_asks_for(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "evogit" / "packages" / ("a" * 64)
    folder.mkdir(parents=True)
    (folder / "module.py").write_bytes(bytes(2_000_000))
    done = cli("clean", DOCKER_HOST=NOWHERE, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert "containers and images stay" in done.err
    assert done.out.split() == ["packages", "a" * 16, "2.0", "MB", "2.0", "MB", "freed"]
    assert not folder.exists()
    assert "nothing to remove" in cli("clean", DOCKER_HOST=NOWHERE, XDG_CACHE_HOME=str(tmp_path)).out


def test_clean_removes_what_was_prepared_long_ago(cli: Cli, tmp_path: Path) -> None:
    layers = tmp_path / "cache" / "evogit" / "layers"
    layers.mkdir(parents=True)
    for name, day in (("a", 31), ("b", 1)):
        (layers / f"{name * 64}.tar").write_bytes(bytes(1_000_000))
        os.utime(layers / f"{name * 64}.tar", (time.time() - day * 86400,) * 2)
    variables = {"DOCKER_HOST": NOWHERE, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert cli("clean", **variables).out.split()[:2] == ["prepared", "a" * 16]
    assert cli("clean", "--all", "--yes", **variables).out.split()[:2] == ["prepared", "b" * 16]
    assert list(layers.iterdir()) == []


@pytest.mark.parametrize("said", [f"n = {'1' * 5000}", "n = 1e", "\udcff"])
def test_clean_minds_no_folder_of_a_stranger(cli: Cli, tmp_path: Path, said: str) -> None:
    for name in ("bad", "tsp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "task.toml").write_bytes(said.encode(errors="surrogateescape"))
    done = cli("clean", DOCKER_HOST=NOWHERE, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (done.code, "nothing to remove" in done.out) == (0, True)
    assert cli("tasks").code == 0


@pytest.mark.docker
def test_check_tries_docker_and_tells_its_image(cli: Cli) -> None:
    done = cli("doctor", "sandbox", "--sandbox", "docker", "--json", **ENVIRONMENT)
    assert done.code == 0, done.out
    said = {check["what"]: check["said"] for check in done.json["checks"] if check["sandbox"] == "docker"}
    assert said["image"].startswith("evogit/sandbox:")
    assert {"memory limit", "processes limit", "disk limit", "CPU limit", "GPUs"} <= set(said)


@pytest.mark.docker
def test_build_names_the_image_and_its_digest(cli: Cli) -> None:
    made = cli("doctor", "build", "--sandbox", "docker", "--json", **ENVIRONMENT).json
    assert made["image"].startswith("evogit/sandbox:")
    assert len(made["digest"]) == 64
    again = cli("doctor", "build", **ENVIRONMENT).out.splitlines()
    assert any(line.split() == ["digest", made["digest"]] for line in again)
