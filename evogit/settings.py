"""How a run is driven: the limits and choices that a person gives with `evogit run`."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field

from evogit.core import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a run is driven. `None` means no such limit.

    `evaluations` and `proposals` are totals of the run, so that a resumed run does the rest; `minutes` are this
    engine's own.
    """

    agents: int = 4
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    evaluations: int | None = None
    proposals: int | None = None
    minutes: float | None = None
    target: float | None = None
    split: str = "train"
    seed: int = 0
    deterministic: bool = False
    join: bool = False
    sandbox: str = "auto"

    def __post_init__(self) -> None:
        for name in ("agents", "jobs", "evaluations", "proposals", "minutes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"expected --{name} above 0, got {value}")
        for name in ("minutes", "target"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise UsageError(f"expected --{name} to be a finite number, got {value}")
        if self.deterministic and (self.minutes is not None or self.join):
            raise UsageError("--deterministic cannot go with --minutes or --join, which depend on the clock")
