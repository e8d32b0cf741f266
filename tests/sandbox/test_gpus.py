"""Graphics processors: those that there are, or those that a scheduler gave; there is none here, only names."""

from __future__ import annotations

from pathlib import Path

import pytest

from evogit.sandbox.docker.options import gpus_asked
from evogit.sandbox.gpus import gpus


def test_all_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name in ("nvidia1", "nvidia0", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / name).touch()
    assert gpus(tmp_path) == ["0", "1"]
    assert gpus_asked(1) == {"count": 1}


@pytest.mark.parametrize(("given", "found"), [("3, GPU-8a1b", ["3", "GPU-8a1b"]), ("", []), ("-1", [])])
def test_a_scheduler_gives_some(monkeypatch: pytest.MonkeyPatch, given: str, found: list[str]) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert gpus() == found
    assert gpus_asked(1) == {"device_ids": found[:1]}
