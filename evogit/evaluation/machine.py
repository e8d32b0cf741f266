"""What kind of machine this is: times that two kinds measured are not compared."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

NAMING = ("model name", "CPU implementer", "CPU part", "uarch", "cpu")
"""Lines of /proc/cpuinfo that name a processor, on one architecture or another."""


@cache
def machine() -> str:
    """The processor's name, such as "x86_64 AMD EPYC 7B13"; the architecture alone where it has none."""
    named: dict[str, str] = {}
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in NAMING:
            named.setdefault(name.strip(), value.strip())
    return " ".join([os.uname().machine, *(named[name] for name in NAMING if name in named)])
