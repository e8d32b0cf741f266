"""Graphics processors: those that there are, or those that a scheduler gave; there is none here, only names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from evogit.config import Task
from evogit.core import SandboxError
from evogit.evaluation.evaluator_process import _environment
from evogit.evaluation.machine import simultaneous
from evogit.sandbox import Environment, Limits
from evogit.sandbox.docker.provider import confinement
from evogit.sandbox.gpus import Gpu, Lender, alike, asked_for, gpus, kind
from evogit.sandbox.pool import WorkerStart

INFORMATION = """\
Model: \t\t {model}
IRQ:   \t\t 147
GPU UUID: \t {uuid}
Video BIOS: \t 92.00.45.00.03
Bus Type: \t PCIe
Bus Location: \t 0000:0{minor}:00.0
Device Minor: \t {minor}
GPU Excluded:\t No
"""
VERSION = """\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build  (dvs-builder@U16)
GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)
"""

HOLDER = """\
import sys
from evogit.sandbox.gpus import Lender
lender = Lender()
print(*lender.take(int(sys.argv[1]), lambda said: None), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def driver(folder: Path, *models: str) -> Path:
    for minor, model in enumerate(models):
        (folder / "gpus" / f"0000:0{minor}:00.0").mkdir(parents=True)
        text = INFORMATION.format(model=model, uuid=f"GPU-{minor}a1b-77", minor=minor)
        (folder / "gpus" / f"0000:0{minor}:00.0" / "information").write_text(text)
    (folder / "version").write_text(VERSION)
    return folder


def hold(number: int) -> subprocess.Popen[str]:
    """Another process that has so many GPUs until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(number)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def names(holder: subprocess.Popen[str]) -> list[str]:
    assert holder.stdout
    return holder.stdout.readline().split()


def test_all_are_found_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("nvidia10", "nvidia1", "nvidia0", "nvidiactl", "nvidia-uvm", "nvidia0-x", "null"):
        (tmp_path / name).touch()
    assert [each.id for each in gpus(tmp_path, tmp_path)] == ["0", "1", "10"]


@pytest.mark.parametrize(("given", "found"), [("3, GPU-8a1b", ["3", "GPU-8a1b"]), ("", []), ("-1", [])])
def test_a_scheduler_gives_some(
    monkeypatch: pytest.MonkeyPatch, tiny: Callable[..., Task], given: str, found: list[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert [each.id for each in gpus()] == found
    assert _environment(tiny())["CUDA_VISIBLE_DEVICES"] == given, "containers are made by evaluator processes"


def test_the_kind_of_machine_names_models_and_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = driver(tmp_path, "NVIDIA A100-SXM4-40GB", "NVIDIA H100 PCIe", "NVIDIA H100 PCIe")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,GPU-1a1b")
    given = gpus(driver=about)
    assert [each.model for each in given] == ["NVIDIA H100 PCIe"] * 2
    assert kind(given, about) == "NVIDIA H100 PCIe, driver 550.54.14"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    mixed = gpus(driver=about)
    assert [each.id for each in alike(mixed)] == ["0"], "times of another model are not comparable"
    assert kind(alike(mixed), about) != kind(given, about)
    assert kind([], tmp_path / "absent") == ""


def test_processes_that_evaluate_at_the_same_time_have_different_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4")
    holders = [hold(2) for _ in range(2)]
    try:
        held = [*names(holders[0]), *names(holders[1])]
        assert len(set(held)) == 4
        lender = Lender()
        with lender.lent(1, pytest.fail) as one, lender.lent(1, pytest.fail) as again:
            assert {*one, *held} == set("01234")
            assert again == one, "all sessions of an evaluation have the same"
    finally:
        for holder in holders:
            holder.communicate()


def test_one_waits_until_enough_are_free_or_their_holder_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    holder, said = hold(1), list[str]()
    names(holder)

    def say(text: str) -> None:
        said.append(text)
        holder.communicate()

    with Lender().lent(2, say) as ids:
        assert ([*ids], len(said)) == (["0", "1"], 1)
    killed = hold(2)
    assert names(killed) == ["0", "1"]
    killed.kill()
    killed.communicate()
    with Lender().lent(1, pytest.fail) as ids:
        assert [*ids] == ["0"]


def test_docker_is_asked_for_the_ids_that_were_lent() -> None:
    limits, wanted = Limits(), Environment(gpus=2)
    [request] = confinement(WorkerStart(limits, gpus=("3", "GPU-8a1b")), [], wanted, None)["device_requests"]
    assert (request["DeviceIDs"], request["Count"]) == (["3", "GPU-8a1b"], 0)
    assert confinement(WorkerStart(limits), [], Environment(), None)["device_requests"] is None


def test_where_none_is_known_the_first_ids_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [each.id for each in asked_for(2, [])] == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(SandboxError, match="gives 0"):
        asked_for(1, [])
    with pytest.raises(SandboxError, match=r"gives 1 \(3\)"):
        asked_for(2, [Gpu("3")])


@pytest.mark.parametrize(
    ("needed", "given", "jobs", "places"), [(1, "0,1,2", 8, 3), (2, "0,1,2", 8, 1), (1, "0,1,2", 2, 2), (4, "0", 8, 1)]
)
def test_no_more_evaluations_than_gpus_at_a_time(tiny, monkeypatch, needed: int, given: str, jobs: int, places: int):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    task = tiny()
    task = replace(task, environment=replace(task.environment, gpus=needed))
    assert simultaneous(task, jobs) == places


def test_exclusive_evaluations_with_gpus_need_a_core_each(tiny: Callable[..., Task], monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(100))))
    task = tiny()
    task = replace(task, environment=replace(task.environment, gpus=1, exclusive=True))
    assert simultaneous(task, 100) == max(1, len(os.sched_getaffinity(0)) - 1)
    assert simultaneous(replace(task, environment=replace(task.environment, gpus=0)), 100) == 1
