"""Audits of small tasks, on bubblewrap."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from evogit.audit.attack import Finding
from evogit.audit.auditing import audited, chosen
from evogit.audit.laboratory import Laboratory
from evogit.config import load_task

from .small_tasks import Small

Audit = Callable[..., Awaitable[list[Finding]]]


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    """Audits a small task with the attacks of these names, all of them where there is none; gives the findings."""

    async def attack(small: Small, *names: str) -> list[Finding]:
        task = load_task(small.write(tmp_path / "small"))
        async with Laboratory(task, "bubblewrap") as lab:
            return [finding async for each in audited(lab, chosen(names)) for finding in each.findings]

    return attack
