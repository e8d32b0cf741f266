"""The graphics processors of this machine, or those of them that a scheduler gave to this process."""

from __future__ import annotations

import os
from pathlib import Path

GIVEN = "CUDA_VISIBLE_DEVICES"
"""What Slurm and Ray name them in, by number or by UUID."""


def given_gpus() -> list[str] | None:
    """Those that a scheduler gave; None where nobody says."""
    told = os.environ.get(GIVEN)
    return None if told is None else [each.strip() for each in told.split(",") if each.strip() not in ("", "-1")]


def gpus(devices: Path = Path("/dev")) -> list[str]:
    """All that this process may use, as Docker names them."""
    given = given_gpus()
    if given is not None:
        return given
    return sorted(file.name.removeprefix("nvidia") for file in devices.glob("nvidia[0-9]*"))
