"""Engines, workers, what leads to them, evaluators and sandboxes are killed at random: nothing is lost or left."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from .world import TRANSPORT, World

pytestmark = pytest.mark.slow

KINDS = ("engine", "worker", "transport", "evaluator", "sandbox")
AGENTS = ("--agent", "mutator:3", "--agent", "editor@m", "--dollars", "1000")
WORKERS = ("--workers", f"{TRANSPORT}:2", "--workers", f"{TRANSPORT}:2")


def test_what_is_killed_anywhere_loses_nothing(world: Callable[..., World], seed: int, long: bool) -> None:
    run, rng = world(*AGENTS, "-j", str(seed % 2), *WORKERS), random.Random(seed)
    killed = run.storm(50 if long else 6, KINDS, rng)
    history = run.finish()
    print(f"\n{seed}: {dict(killed)}, {history.counts.evaluated} evaluated, {history.spent.calls} calls")
